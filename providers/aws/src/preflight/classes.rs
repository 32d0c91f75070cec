//! Checks that each EC2NodeClass resolves in the account.

use poolwright_provider_aws_model::instance::KubeletReserved;
use poolwright_provider_contract::ProviderError;
use poolwright_provider_contract::preflight::{CheckResult, Verdict};

use super::{CLASSES, Scope, deploy};
use crate::error::is_refusal;
use crate::node_class::{EC2NodeClassSpec, ResolvedImage, ResolvedPlacementGroup, ResolvedSubnet};
use crate::resolve::{self, ProfileState};

/// A class: its name, its spec, and its resolved parts.
pub(super) type Parts<'a> = (&'a str, &'a EC2NodeClassSpec, resolve::Inspection);

/// Checks all classes.
pub(super) fn check(classes: &[Parts<'_>], scope: &Scope) -> Vec<CheckResult> {
    if classes.is_empty() {
        let why = "there is no EC2NodeClass: create one (docs/ec2nodeclass.md), or give a manifest with -f";
        return vec![CheckResult::new(CLASSES, "all", Verdict::undetermined(why))];
    }
    classes.iter().flat_map(|one| of_class(one, scope)).collect()
}

fn of_class((name, spec, parts): &Parts<'_>, scope: &Scope) -> Vec<CheckResult> {
    let result = |part: &str, verdict| CheckResult::new(CLASSES, format!("{name}: {part}"), verdict);
    let edit = |field: &str| format!("kubectl edit ec2nodeclass {name} (spec.{field})");
    let tag = |kind: &str, tags: Option<&crate::node_class::TagSelector>| {
        let (key, value) = tags.and_then(|tags| tags.iter().next())?;
        // A pattern is no value of a tag.
        let value = if value.contains(['*', '?', '\\']) { "VALUE" } else { value };
        Some(format!("aws ec2 create-tags --resources {kind}-ID --tags Key={key},Value={value}"))
    };
    let of_subnets = spec.subnet_selector_terms.iter().find_map(|term| tag("subnet", term.tags.as_ref()));
    let of_groups = spec.security_group_selector_terms.iter().find_map(|term| tag("sg", term.tags.as_ref()));
    let uses_alias = spec.ami_selector_terms.iter().any(|term| term.alias.is_some());
    let image = if uses_alias && scope.kubernetes.is_none() {
        Verdict::undetermined(
            "the image of an alias depends on the Kubernetes version of the cluster, which is not known",
        )
    } else {
        found(&parts.images, edit("amiSelectorTerms"), |images| images_of(images))
    };
    let fix = of_subnets.unwrap_or_else(|| edit("subnetSelectorTerms"));
    let subnets = match &parts.subnets {
        Ok(subnets) => subnets_of(subnets),
        error => found(error, fix, |_| String::new()),
    };
    let fix = of_groups.unwrap_or_else(|| edit("securityGroupSelectorTerms"));
    let groups = found(&parts.groups, fix, |groups| {
        groups.iter().map(|group| group.id.as_str()).collect::<Vec<_>>().join(", ")
    });
    let profile = match &parts.profile {
        Ok(seen) => profile_of(seen, &scope.cluster),
        error => found(error, edit("instanceProfile"), |_| String::new()),
    };
    let mut found = vec![
        result("subnets", subnets),
        result("security groups", groups),
        result("image", image),
        result("role", profile),
    ];
    // Show only the parts that the class has.
    if let Some(placement) = &parts.placement {
        let says = |group: &ResolvedPlacementGroup| format!("{} ({})", group.id, group.strategy);
        found.push(result("placement group", self::found(placement, edit("placementGroup"), says)));
    }
    if !spec.kubelet.is_empty() {
        let counted = |_: &KubeletReserved| {
            "its reserved resources are subtracted from the allocatable resources".to_owned()
        };
        found.push(result("kubelet", self::found(&parts.kept, edit("kubelet"), counted)));
    }
    if let Some(user_data) = &parts.user_data {
        let says = |(): &()| "the image family supports its userData and instanceStorePolicy".to_owned();
        let fix = format!("kubectl edit ec2nodeclass {name}");
        found.push(result("user data", self::found(user_data, fix, says)));
    }
    found
}

/// Returns the verdict about a part: its resolved value, or the reason why it could not be resolved.
fn found<T>(part: &Result<T, ProviderError>, fix: String, says: impl FnOnce(&T) -> String) -> Verdict {
    match part {
        Ok(part) => Verdict::fine(says(part)),
        Err(error) if is_refusal(error) => {
            Verdict::undetermined("Poolwright may not look it up; see the permissions")
        }
        Err(ProviderError::Invalid(why)) => Verdict::wrong(why.clone(), fix),
        Err(error) => Verdict::undetermined(error.to_string()),
    }
}

fn subnets_of(subnets: &[ResolvedSubnet]) -> Verdict {
    let each: Vec<String> = subnets
        .iter()
        .map(|subnet| match subnet.available_addresses {
            Some(free) => format!("{} in {} ({free} addresses free)", subnet.id, subnet.zone),
            None => format!("{} in {}", subnet.id, subnet.zone),
        })
        .collect();
    if subnets.iter().all(|subnet| subnet.available_addresses == Some(0)) {
        return Verdict::wrong(
            format!("the subnets have no free addresses: {}", each.join(", ")),
            "aws ec2 create-subnet --vpc-id VPC --cidr-block CIDR --availability-zone ZONE, with the tags of the class",
        );
    }
    Verdict::fine(each.join(", "))
}

/// Describes the images by the nodes they are for, and the architectures without an image, whose types the class does not sell.
fn images_of(images: &[ResolvedImage]) -> String {
    let newest = |arch: &str, gpus: bool| {
        images.iter().find(|one| one.architecture == arch && one.nvidia.is_none_or(|nvidia| nvidia == gpus))
    };
    let mut said = Vec::new();
    for (arch, gpus) in [("amd64", true), ("amd64", false), ("arm64", true), ("arm64", false)] {
        let of = if gpus { "with" } else { "without" };
        said.push(match newest(arch, gpus) {
            Some(image) => format!("{arch} {of} GPUs: {}", image.id),
            None => format!("{arch} {of} GPUs: none, so Poolwright does not buy such types"),
        });
    }
    said.join("; ")
}

fn profile_of(seen: &ProfileState, cluster: &str) -> Verdict {
    match seen {
        ProfileState::Exists(profile) => Verdict::fine(format!("instance profile {profile}")),
        ProfileState::ToCreate { role, role_exists: Some(false), .. } => Verdict::wrong(
            format!("there is no IAM role {role}"),
            deploy(cluster, &format!("NodeRoleName={role}")),
        ),
        ProfileState::ToCreate { profile, role_exists: Some(true), role } => Verdict::fine(format!(
            "role {role}; Poolwright creates the instance profile {profile} with the first node"
        )),
        ProfileState::ToCreate { role, role_exists: None, .. } => Verdict::undetermined(format!(
            "iam:GetRole is not allowed, which Poolwright needs for nothing else: aws iam get-role --role-name {role}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec() -> EC2NodeClassSpec {
        serde_json::from_value(json!({
            "role": "Nodes",
            "subnetSelectorTerms": [{"tags": {"team": "ml"}}],
            "securityGroupSelectorTerms": [{"id": "sg-1"}],
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
        }))
        .expect("a class")
    }

    fn scope(kubernetes: Option<&str>) -> Scope {
        Scope { cluster: "blue".to_owned(), kubernetes: kubernetes.map(str::to_owned), ..Scope::default() }
    }

    fn invalid<T>(why: &str) -> Result<T, ProviderError> {
        Err(ProviderError::Invalid(why.to_owned()))
    }

    fn image(architecture: &str, nvidia: bool) -> ResolvedImage {
        ResolvedImage {
            id: format!("ami-{architecture}-{nvidia}"),
            name: None,
            architecture: architecture.to_owned(),
            created: None,
            nvidia: Some(nvidia),
            unencrypted_volumes: Vec::new(),
        }
    }

    #[test]
    fn an_unmatched_selector_is_wrong_and_its_fix_is_the_missing_tag() {
        let parts = resolve::Inspection {
            subnets: invalid("EC2NodeClass `gpu`: spec.subnetSelectorTerms: no subnet"),
            groups: Err(ProviderError::Throttled("later".to_owned())),
            images: Ok(vec![image("amd64", true)]),
            profile: Ok(ProfileState::ToCreate {
                profile: "poolwright-Nodes".to_owned(),
                role: "Nodes".to_owned(),
                role_exists: Some(false),
            }),
            placement: None,
            kept: Ok(KubeletReserved::default()),
            user_data: None,
        };
        let found = check(&[("gpu", &spec(), parts)], &scope(Some("1.36")));
        let names: Vec<_> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["gpu: subnets", "gpu: security groups", "gpu: image", "gpu: role"]);
        let Verdict::Wrong { fix, .. } = &found[0].verdict else { panic!("{:?}", found[0]) };
        assert_eq!(fix, "aws ec2 create-tags --resources subnet-ID --tags Key=team,Value=ml");
        assert!(matches!(&found[1].verdict, Verdict::Undetermined(_)));
        let Verdict::Fine(images) = &found[2].verdict else { panic!("{:?}", found[2]) };
        assert!(
            images.contains("amd64 with GPUs: ami-amd64-true") && images.contains("arm64 with GPUs: none"),
            "{images}"
        );
        let Verdict::Wrong { fix, .. } = &found[3].verdict else { panic!("{:?}", found[3]) };
        assert!(fix.ends_with("ClusterName=blue NodeRoleName=Nodes"), "{fix}");
    }

    #[test]
    fn the_fix_of_a_pattern_leaves_the_value_of_the_tag_to_the_user() {
        let mut spec = spec();
        spec.subnet_selector_terms[0].tags = Some([("Name".to_owned(), "*private-?".to_owned())].into());
        let parts = resolve::Inspection {
            subnets: invalid("EC2NodeClass `gpu`: spec.subnetSelectorTerms: no subnet"),
            groups: Ok(Vec::new()),
            images: Ok(Vec::new()),
            profile: Ok(ProfileState::Exists("nodes".to_owned())),
            placement: None,
            kept: Ok(KubeletReserved::default()),
            user_data: None,
        };
        let found = check(&[("gpu", &spec, parts)], &scope(Some("1.36")));
        let Verdict::Wrong { fix, .. } = &found[0].verdict else { panic!("{:?}", found[0]) };
        assert_eq!(fix, "aws ec2 create-tags --resources subnet-ID --tags Key=Name,Value=VALUE");
    }

    #[test]
    fn an_alias_says_nothing_without_the_version_of_the_cluster() {
        let parts = resolve::Inspection {
            subnets: Ok(Vec::new()),
            groups: Ok(Vec::new()),
            images: invalid("there is no parameter"),
            profile: Ok(ProfileState::Exists("nodes".to_owned())),
            placement: None,
            kept: Ok(KubeletReserved::default()),
            user_data: None,
        };
        let found = check(&[("gpu", &spec(), parts)], &scope(None));
        assert!(matches!(&found[2].verdict, Verdict::Undetermined(_)), "{:?}", found[2]);
        assert_eq!(found[3].verdict, Verdict::fine("instance profile nodes"));
    }

    #[test]
    fn subnets_without_a_free_address_hold_no_node() {
        let subnet = |free| ResolvedSubnet {
            id: "subnet-1".to_owned(),
            zone: "us-east-1a".to_owned(),
            zone_id: None,
            available_addresses: Some(free),
        };
        assert!(subnets_of(&[subnet(0), subnet(0)]).is_wrong());
        assert!(!subnets_of(&[subnet(0), subnet(5)]).is_wrong());
    }

    #[test]
    fn a_missing_node_class_is_reported() {
        assert!(
            matches!(&check(&[], &scope(None))[..], [one] if matches!(one.verdict, Verdict::Undetermined(_)))
        );
    }
}
