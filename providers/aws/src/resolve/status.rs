//! Writes the result of resolving a node class as its status.

use std::collections::BTreeMap;

use async_trait::async_trait;
use poolwright_catalog::InstanceTypeName;
use poolwright_provider_aws_model::instance::KubeletReserved;
use poolwright_provider_contract::{
    ConditionOutcome, NodeClassCondition, NodeClassStatus, NodeClassStatusSource, ProviderError,
};
use poolwright_terms::{NodeClassRef, RegisteredReason};
use serde::Serialize;
use serde_json::Value;

use super::{Resolution, check_kind, dry_run};
use crate::node_class::{ResolvedPlacementGroup, conditions};
use crate::provider::AwsProvider;
use crate::reason::AwsReason;

/// The maximum number of instance types that a message names.
const NAMED: usize = 10;

#[async_trait]
impl NodeClassStatusSource for AwsProvider {
    async fn status(&self, key: &NodeClassRef) -> Result<Option<NodeClassStatus>, ProviderError> {
        check_kind(key)?;
        let Some(object) = self.object(&key.name).await? else {
            self.dry_runs().forget(&key.name);
            return Ok(None);
        };
        let (resolution, whole) = self.resolution(&key.name, &object.spec).await;
        let validated = match whole {
            Ok(class) => {
                self.dry_runs().condition(&self.clients().ec2, self.cluster(), &class, self.now()).await
            }
            Err(_) => dry_run::not_tried(),
        };
        let too_small = self.too_small(&key.name, &object.spec);
        let mut report = report(&resolution, &too_small);
        report.conditions.push(validated);
        Ok(Some(NodeClassStatus {
            uid: object.metadata.uid,
            generation: object.metadata.generation,
            ..report
        }))
    }

    fn reasons(&self) -> &'static [RegisteredReason] {
        AwsReason::TABLE
    }

    fn interruption_condition(&self) -> Option<NodeClassCondition> {
        self.interruption_queue_condition()
    }
}

/// Returns the status without the result of the dry run. `too_small` lists instance types with no resources left for pods.
fn report(resolution: &Resolution, too_small: &[InstanceTypeName]) -> NodeClassStatus {
    let mut fields = BTreeMap::new();
    if let Ok(family) = resolution.family {
        fields.insert("imageFamily".to_owned(), value(&family));
    }
    let images = resolution.family.clone().and_then(|_| resolution.images.clone());
    let mut conditions = vec![
        part(
            &mut fields,
            "SubnetsReady",
            AwsReason::SubnetsUnusable,
            "subnets",
            &resolution.subnets,
            |subnets| {
                let zones: std::collections::BTreeSet<&str> =
                    subnets.iter().map(|one| one.zone.as_str()).collect();
                format!("{} in {}", count(subnets.len(), "subnet"), Vec::from_iter(zones).join(", "))
            },
        ),
        part(
            &mut fields,
            "SecurityGroupsReady",
            AwsReason::SecurityGroupsUnusable,
            "securityGroups",
            &resolution.groups,
            |groups| count(groups.len(), "security group"),
        ),
        part(&mut fields, "ImagesReady", AwsReason::ImagesUnusable, "images", &images, |images| {
            let mut archs: Vec<&str> = images.iter().map(|one| one.architecture.as_str()).collect();
            archs.sort_unstable();
            archs.dedup();
            format!("{} for {}", count(images.len(), "image"), archs.join(", "))
        }),
        part(
            &mut fields,
            "InstanceProfileReady",
            AwsReason::InstanceProfileUnusable,
            "instanceProfile",
            &resolution.profile,
            |name| format!("instance profile {name}"),
        ),
    ];
    // A class without a placement group or reservations gets no condition for them, and earlier results are removed.
    match &resolution.placement {
        Some(placement) => {
            let words =
                |found: &ResolvedPlacementGroup| format!("placement group {} ({})", found.id, found.strategy);
            conditions.push(part(
                &mut fields,
                "PlacementGroupReady",
                AwsReason::PlacementGroupUnusable,
                "placementGroup",
                placement,
                words,
            ));
        }
        None => drop(fields.insert("placementGroup".to_owned(), Value::Null)),
    }
    if resolution.asks_for_reservations {
        let shown = resolution.reservations.as_ref().map_err(Clone::clone);
        let shown = shown.map(|found| found.iter().map(|one| one.shown.clone()).collect::<Vec<_>>());
        conditions.push(part(
            &mut fields,
            "CapacityReservationsReady",
            AwsReason::CapacityReservationsUnusable,
            "capacityReservations",
            &shown,
            |found| count(found.len(), "capacity reservation"),
        ));
    } else {
        fields.insert("capacityReservations".to_owned(), Value::Array(Vec::new()));
    }
    if resolution.sets_kubelet || !too_small.is_empty() {
        conditions.push(kubelet(&resolution.kept, too_small));
    }
    conditions.extend(resolution.user_data.as_ref().map(user_data));
    NodeClassStatus { uid: None, generation: None, fields, conditions }
}

/// Returns the condition of the kubelet settings. They have no status field.
fn kubelet(
    kept: &Result<KubeletReserved, ProviderError>,
    too_small: &[InstanceTypeName],
) -> NodeClassCondition {
    let counted = |(): &()| {
        let counted = "its reserved resources are subtracted from the allocatable resources".to_owned();
        if too_small.is_empty() { counted } else { format!("{counted}; {}", nothing_left(too_small)) }
    };
    let kept = kept.as_ref().map(|_| ()).map_err(Clone::clone);
    part(&mut BTreeMap::new(), "KubeletReady", AwsReason::KubeletUnusable, "kubelet", &kept, counted)
}

/// Returns the condition of the user data and of the policy for local disks. They have no status field.
fn user_data(found: &Result<(), ProviderError>) -> NodeClassCondition {
    let supported = |(): &()| "the image family supports its userData and instanceStorePolicy".to_owned();
    let unusable = AwsReason::UserDataUnusable;
    part(&mut BTreeMap::new(), conditions::USER_DATA_READY, unusable, "userData", found, supported)
}

/// Returns the message about instance types that are not sold because no resources are left for pods.
pub(crate) fn nothing_left(of: &[InstanceTypeName]) -> String {
    let mut names: Vec<&str> = of.iter().take(NAMED).map(InstanceTypeName::as_str).collect();
    let more = format!("{} more", of.len() - names.len());
    if of.len() > names.len() {
        names.push(&more);
    }
    format!(
        "no resources are left for pods on {}, which Poolwright does not buy: {}",
        count(of.len(), "instance type"),
        names.join(", ")
    )
}

fn value(found: &impl Serialize) -> Value {
    // Plain data can always be serialized.
    serde_json::to_value(found).unwrap_or_default()
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Sets the status field of one part of a class, and returns its condition.
fn part<T: Serialize>(
    fields: &mut BTreeMap<String, Value>,
    kind: &'static str,
    unusable: AwsReason,
    field: &str,
    found: &Result<T, ProviderError>,
    words: impl FnOnce(&T) -> String,
) -> NodeClassCondition {
    let (outcome, reason, message) = match found {
        Ok(found) => {
            fields.insert(field.to_owned(), value(found));
            (ConditionOutcome::True, AwsReason::Found, words(found))
        }
        Err(ProviderError::Invalid(why)) => {
            fields.insert(field.to_owned(), Value::Null);
            (ConditionOutcome::False, unusable, why.clone())
        }
        // The field keeps the last result.
        Err(error) => (ConditionOutcome::NoAnswer, AwsReason::NoAnswer, error.to_string()),
    };
    NodeClassCondition { kind, outcome, reason: reason.into(), message }
}

#[cfg(test)]
mod tests {
    use crate::node_class::{
        AmiFamily, Ec2NodeClassStatus, ResolvedImage, ResolvedSecurityGroup, ResolvedSubnet,
    };
    use serde_json::Map;

    use super::*;

    fn resolution() -> Resolution {
        let subnet = |id: &str, zone: &str| ResolvedSubnet {
            id: id.to_owned(),
            zone: zone.to_owned(),
            zone_id: None,
            available_addresses: Some(251),
        };
        let image = ResolvedImage {
            id: "ami-1".to_owned(),
            name: None,
            architecture: "amd64".to_owned(),
            created: None,
            nvidia: Some(true),
            unencrypted_volumes: Vec::new(),
        };
        Resolution {
            family: Ok(AmiFamily::Al2023),
            subnets: Ok(vec![subnet("subnet-1", "us-east-1a"), subnet("subnet-2", "us-east-1b")]),
            groups: Ok(vec![ResolvedSecurityGroup { id: "sg-1".to_owned(), name: Some("nodes".to_owned()) }]),
            images: Ok(vec![image]),
            profile: Ok("nodes".to_owned()),
            placement: None,
            asks_for_reservations: false,
            reservations: Ok(Vec::new()),
            sets_kubelet: false,
            kept: Ok(KubeletReserved::default()),
            user_data: None,
        }
    }

    #[test]
    fn resolved_terms_become_the_status_of_the_api() {
        let report = report(&resolution(), &[]);
        let status: Ec2NodeClassStatus =
            serde_json::from_value(Value::Object(Map::from_iter(report.fields))).expect("a status");
        assert_eq!(status.subnets, resolution().subnets.unwrap());
        assert_eq!(status.security_groups, resolution().groups.unwrap());
        assert_eq!(status.images, resolution().images.unwrap());
        assert_eq!(
            (status.image_family, status.instance_profile),
            (Some(AmiFamily::Al2023), Some("nodes".to_owned()))
        );
        assert!(
            report.conditions.iter().all(|one| one.outcome == ConditionOutcome::True),
            "{:?}",
            report.conditions
        );
        assert_eq!(report.conditions[0].message, "2 subnets in us-east-1a, us-east-1b");
    }

    #[test]
    fn a_placement_group_is_told_of_while_the_class_names_one_and_taken_out_of_the_status_when_it_does_not() {
        let group = ResolvedPlacementGroup { id: "pg-1".to_owned(), strategy: "cluster".to_owned() };
        let told = |placement| {
            let report = report(&Resolution { placement, ..resolution() }, &[]);
            let said = report.conditions.into_iter().find(|one| one.kind == "PlacementGroupReady");
            (report.fields.get("placementGroup").cloned(), said.map(|one| (one.outcome, one.message)))
        };
        let (field, said) = told(Some(Ok(group.clone())));
        assert_eq!(field, Some(value(&group)));
        assert_eq!(said, Some((ConditionOutcome::True, "placement group pg-1 (cluster)".to_owned())));
        let (field, said) = told(Some(Err(ProviderError::Throttled("slower".to_owned()))));
        assert_eq!(
            (field, said.map(|one| one.0)),
            (None, Some(ConditionOutcome::NoAnswer)),
            "what was found stands"
        );
        let gone = Err(ProviderError::Invalid("no such group".to_owned()));
        assert_eq!(
            told(Some(gone)),
            (Some(Value::Null), Some((ConditionOutcome::False, "no such group".to_owned())))
        );
        assert_eq!(told(None), (Some(Value::Null), None));
    }

    #[test]
    fn unmatched_terms_leave_the_status_and_unanswered_ones_stay() {
        let report = report(
            &Resolution {
                subnets: Err(ProviderError::Invalid("no subnet".to_owned())),
                groups: Err(ProviderError::Throttled("slower".to_owned())),
                ..resolution()
            },
            &[],
        );
        assert_eq!(report.fields["subnets"], Value::Null);
        assert!(!report.fields.contains_key("securityGroups"));
        let said: Vec<_> = report.conditions.iter().map(|one| (one.kind, one.outcome)).collect();
        assert_eq!(
            said[..3],
            [
                ("SubnetsReady", ConditionOutcome::False),
                ("SecurityGroupsReady", ConditionOutcome::NoAnswer),
                ("ImagesReady", ConditionOutcome::True)
            ]
        );
        assert_eq!(report.conditions[0].message, "no subnet");
    }

    #[test]
    fn kubelet_reservations_are_reported_if_configured_or_if_they_exhaust_a_type() {
        let told = |resolution: &Resolution, too_small: &[InstanceTypeName]| {
            let report = report(resolution, too_small);
            let found = report.conditions.into_iter().find(|one| one.kind == "KubeletReady");
            found.map(|one| (one.outcome, one.message))
        };
        assert_eq!(told(&resolution(), &[]), None);
        let counted = "its reserved resources are subtracted from the allocatable resources".to_owned();
        let sets = Resolution { sets_kubelet: true, ..resolution() };
        assert_eq!(told(&sets, &[]), Some((ConditionOutcome::True, counted.clone())));
        let small: Vec<InstanceTypeName> =
            (0..12).map(|n| InstanceTypeName::new(format!("t{n}.nano"))).collect();
        let (outcome, message) = told(&resolution(), &small).expect("it is told of");
        assert_eq!(outcome, ConditionOutcome::True);
        let left = "; no resources are left for pods on 12 instance types, which Poolwright does not buy: t0.nano, t1.nano,";
        assert!(
            message.starts_with(&format!("{counted}{left}")) && message.ends_with("t9.nano, 2 more"),
            "{message}"
        );
        let wrong = Resolution { kept: Err(ProviderError::Invalid("no quantity".to_owned())), ..sets };
        assert_eq!(told(&wrong, &[]), Some((ConditionOutcome::False, "no quantity".to_owned())));
    }

    #[test]
    fn user_data_that_the_image_family_does_not_support_makes_the_class_not_ready() {
        let told = |user_data| {
            let report = report(&Resolution { user_data, ..resolution() }, &[]);
            let found = report.conditions.into_iter().find(|one| one.kind == "UserDataReady");
            found.map(|one| (one.outcome, one.reason.name, one.message))
        };
        assert_eq!(told(None), None, "a class without user data has no such condition");
        let (outcome, ..) = told(Some(Ok(()))).expect("it is told of");
        assert_eq!(outcome, ConditionOutcome::True);
        let refused = Some(Err(ProviderError::Invalid("no such policy".to_owned())));
        let expected = (ConditionOutcome::False, "UserDataUnusable", "no such policy".to_owned());
        assert_eq!(told(refused), Some(expected));
    }
}
