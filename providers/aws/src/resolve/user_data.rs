//! Whether nodes of a class can get user data, before one is launched.

use poolwright_provider_aws_model::bootstrap::{
    self, ClusterFacts, Family, KubeadmFacts, NodeFacts, Problem, UserData,
};
use poolwright_provider_contract::ProviderError;

use super::WrongField;
use crate::node_class::{AmiFamily, EC2NodeClassSpec};

/// A well-formed token. No node gets it.
const TOKEN: &str = "abcdef.0123456789abcdef";

/// Returns whether the image family supports the user data of a class and its policy for local disks; `None` if the class has
/// neither.
pub(crate) fn find(class: &str, spec: &EC2NodeClassSpec) -> Option<Result<(), ProviderError>> {
    let family = spec.family()?;
    let is_asked = spec.user_data.is_some() || spec.instance_store_policy.is_some();
    let first = || refusals(spec, family).into_iter().next();
    is_asked.then(|| first().map_or(Ok(()), |wrong| Err(wrong.of(class))))
}

/// Returns the fields that the image family of a class does not support as they are. The causes quote no user data.
pub(crate) fn refusals(spec: &EC2NodeClassSpec, family: AmiFamily) -> Vec<WrongField> {
    let own = spec.user_data.as_ref().and_then(|own| problem(family, own.as_str(), false));
    let raid = spec.instance_store_policy.and_then(|_| problem(family, "", true));
    let fields = [("userData", own), ("instanceStorePolicy", raid)];
    let wrong =
        |(field, problem): (&str, Option<Problem>)| Some(WrongField::new(field, problem?.to_string()));
    fields.into_iter().filter_map(wrong).collect()
}

/// Returns why nodes of this family cannot be launched with this user data and, if `raid` is set, with one array of their local
/// disks.
pub(crate) fn problem(family: AmiFamily, user_data: &str, raid: bool) -> Option<Problem> {
    let family = match family {
        AmiFamily::Al2023 => Family::Al2023,
        AmiFamily::Bottlerocket => Family::Bottlerocket { nvidia: None },
        AmiFamily::Custom => Family::Custom,
        AmiFamily::Ubuntu => {
            let token = TOKEN.parse().ok()?;
            Family::Ubuntu(KubeadmFacts { token, external_cloud_provider: false })
        }
    };
    // Only the class is judged: these facts are well-formed.
    let cluster = ClusterFacts {
        name: "cluster".to_owned(),
        endpoint: "https://api.example".to_owned(),
        ca: "TFMwdA==".to_owned(),
        service_cidr: Some("10.100.0.0/16".to_owned()),
    };
    let node = NodeFacts { instance_store_raid: raid, ..NodeFacts::default() };
    let own = UserData::from(user_data);
    let made = bootstrap::user_data("", &cluster, &node, &family, Some(&own));
    made.err().map(|error| error.problem)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(family: &str, fields: &Value) -> Option<Result<(), String>> {
        let mut spec = json!({"role": "Nodes", "amiFamily": family, "subnetSelectorTerms": [],
            "securityGroupSelectorTerms": [], "amiSelectorTerms": [{"id": "ami-1"}]});
        spec.as_object_mut().expect("a map").extend(fields.as_object().expect("a map").clone());
        let spec: EC2NodeClassSpec = serde_json::from_value(spec).expect("a class");
        find("gpu", &spec).map(|found| found.map_err(|error| error.message().to_owned()))
    }

    #[test]
    fn ubuntu_does_not_support_the_policy_for_local_disks_and_the_other_families_do() {
        let raid = json!({"instanceStorePolicy": "RAID0"});
        let why = of("Ubuntu", &raid).expect("it is asked").expect_err("it is refused");
        let begin = "EC2NodeClass `gpu`: spec.instanceStorePolicy: the family Ubuntu does not support instanceStorePolicy; remove it";
        assert!(why.starts_with(begin), "{why}");
        for family in ["AL2023", "Bottlerocket", "Custom"] {
            assert_eq!(of(family, &raid), Some(Ok(())), "{family}");
        }
        assert_eq!(of("Ubuntu", &json!({})), None, "it has neither");
    }

    #[test]
    fn user_data_in_a_form_that_the_family_does_not_take_is_refused_and_not_quoted() {
        let script = json!({"userData": "#!/bin/sh\nexport TOKEN=hunter2\n"});
        let why = of("Bottlerocket", &script).expect("it is asked").expect_err("it is refused");
        assert!(why.starts_with("EC2NodeClass `gpu`: spec.userData: ") && !why.contains("hunter2"), "{why}");
        for family in ["AL2023", "Ubuntu", "Custom"] {
            assert_eq!(of(family, &script), Some(Ok(())), "{family}");
        }
    }
}
