//! The status of a node class: the resolved terms, and whether a launch would be allowed.

use std::sync::atomic::Ordering;

use poolwright_catalog::ResourceName;
use poolwright_plane::aws::Group;
use poolwright_provider_contract::conformance::World;
use poolwright_provider_contract::{CloudProvider, ConditionOutcome, NodeClassStatus, NodeClassStatusSource};
use serde_json::json;

use super::two_offerings;
use super::world::{AwsWorld, training};

async fn report(provider: &impl NodeClassStatusSource, world: &AwsWorld) -> NodeClassStatus {
    provider.status(&world.node_class()).await.unwrap().expect("the class is there")
}

fn condition<'a>(report: &'a NodeClassStatus, kind: &str) -> (ConditionOutcome, &'a str) {
    let found = report.conditions.iter().find(|one| one.kind == kind);
    let found = found.unwrap_or_else(|| panic!("no {kind}: {:?}", report.conditions));
    (found.outcome, &found.message)
}

fn calls(world: &AwsWorld, action: &str) -> usize {
    world.front.calls().get(action).copied().unwrap_or(0)
}

#[tokio::test]
async fn a_class_reports_its_resolved_terms_and_a_dry_run_without_a_launch() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let found = report(&provider, &world).await;
    let ids: Vec<_> =
        found.fields["subnets"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&json!(world.account.subnet_in("us-east-1b"))), "{ids:?}");
    assert_eq!(found.fields["subnets"][0]["zone"].as_str().map(|zone| &zone[..9]), Some("us-east-1"));
    assert_eq!(found.fields["securityGroups"][0]["id"], world.account.group.as_str());
    assert_eq!(found.fields["images"][0]["id"], world.account.image.as_str());
    assert_eq!(found.fields["images"][0]["architecture"], "amd64");
    assert_eq!(found.fields["instanceProfile"], world.account.profile.as_str());
    assert!(
        found.conditions.iter().all(|one| one.outcome == ConditionOutcome::True),
        "{:?}",
        found.conditions
    );
    for action in ["ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:RunInstances"] {
        assert_eq!(calls(&world, action), 1, "{action} is tried dry once");
    }
    assert_eq!(provider.list().await.unwrap(), []);
    let templates =
        world.front.call("ec2", "Action=DescribeLaunchTemplates&Version=2016-11-15").await.unwrap();
    assert!(!templates.contains("poolwright-dry-run"), "{templates}");
    assert_eq!(report(&provider, &world).await, found);
    assert_eq!(calls(&world, "ec2:RunInstances"), 1, "what was allowed a moment ago is not tried again");
    let nobody = poolwright_terms::NodeClassRef { name: "nobody".to_owned(), ..world.node_class() };
    assert_eq!(provider.status(&nobody).await.unwrap(), None);
}

#[tokio::test]
async fn a_class_reports_an_unmatched_term_until_the_account_matches_it() {
    let world = AwsWorld::new().await.unwrap();
    let tag = format!("poolwright.test/{}", world.cluster);
    world.merge_class(json!({"subnetSelectorTerms": [{"tags": {&tag: "yes"}}]}));
    let provider = world.connect().await.unwrap();
    let found = report(&provider, &world).await;
    let (outcome, why) = condition(&found, "SubnetsReady");
    assert_eq!(outcome, ConditionOutcome::False);
    assert!(
        why.contains("EC2NodeClass `gpu`: spec.subnetSelectorTerms") && why.contains("put the tags on"),
        "{why}"
    );
    assert_eq!(found.fields["subnets"], serde_json::Value::Null);
    assert_eq!(condition(&found, "ImagesReady").0, ConditionOutcome::True);
    assert_eq!(condition(&found, "Validated").0, ConditionOutcome::Unknown);
    assert_eq!(calls(&world, "ec2:RunInstances"), 0);
    let subnet = world.account.subnet_in("us-east-1a");
    let tagged =
        format!("Action=CreateTags&Version=2016-11-15&ResourceId.1={subnet}&Tag.1.Key={tag}&Tag.1.Value=yes");
    world.front.call("ec2", &tagged).await.unwrap();
    let found = report(&provider, &world).await;
    assert_eq!(condition(&found, "SubnetsReady"), (ConditionOutcome::True, "1 subnet in us-east-1a"));
    assert_eq!(condition(&found, "Validated").0, ConditionOutcome::True);
}

#[tokio::test]
async fn a_class_reports_a_missing_permission_with_its_policy_line_and_checks_again_later() {
    let world = AwsWorld::new().await.unwrap();
    for (forbidden, on) in [
        ("iam:PassRole", "arn:aws:iam::123456789012:role/PoolwrightNode"),
        ("ec2:RunInstances", "arn:aws:ec2:us-east-1:123456789012:instance/*"),
        ("ec2:CreateFleet", "arn:aws:ec2"),
        ("ec2:CreateLaunchTemplate", "arn:aws:ec2"),
    ] {
        let provider = world.connect().await.unwrap();
        world.front.forbid([forbidden.to_owned()]);
        let found = report(&provider, &world).await;
        let (outcome, why) = condition(&found, "Validated");
        assert_eq!(outcome, ConditionOutcome::False, "{forbidden}: {why}");
        assert!(why.contains(&format!("add {forbidden} to the policy")) && why.contains(on), "{why}");
        assert!(why.contains(&format!("\"Action\": \"{forbidden}\"")), "{why}");
        assert!(!why.contains("4GIOHlTkIaWHQD0Q0m6XSnuUMCm") && why.len() < 1000, "{why}");
        assert_eq!(condition(&found, "SubnetsReady").0, ConditionOutcome::True);
        world.front.forbid([]);
        let tried = calls(&world, "ec2:CreateLaunchTemplate");
        assert_eq!(report(&provider, &world).await, found, "it is not tried at every look");
        assert_eq!(calls(&world, "ec2:CreateLaunchTemplate"), tried);
        world.ahead.fetch_add(180, Ordering::Relaxed);
        assert_eq!(
            condition(&report(&provider, &world).await, "Validated").0,
            ConditionOutcome::True,
            "{forbidden}"
        );
    }
    // A lookup without permission is reported by the condition that needs it.
    world.front.forbid(["ec2:DescribeImages".to_owned()]);
    let found = report(&world.connect().await.unwrap(), &world).await;
    let (outcome, why) = condition(&found, "ImagesReady");
    assert!(
        outcome == ConditionOutcome::False && why.contains("add ec2:DescribeImages to the policy"),
        "{why}"
    );
}

/// Offerings carry the amounts that claims record and nodes are measured by.
#[tokio::test]
async fn kubelet_reservations_reduce_offerings_and_a_fully_reserved_type_is_reported() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let memory_mib = async |name: &str| {
        let catalogue = provider.catalogue(&world.node_class()).await.unwrap();
        catalogue.instance_type(&name.into()).map(|kind| kind.allocatable.get(ResourceName::MEMORY) >> 20)
    };
    assert_eq!(memory_mib("g5.xlarge").await, Some(14_162));
    assert!(report(&provider, &world).await.conditions.iter().all(|one| one.kind != "KubeletReady"));
    world.merge_class(json!({"kubelet": {"kubeReserved": {"memory": "1Gi"}, "podsPerCore": 5}}));
    assert_eq!(memory_mib("g5.xlarge").await, Some(14_031));
    let found = report(&provider, &world).await;
    let (outcome, said) = condition(&found, "KubeletReady");
    assert!(
        outcome == ConditionOutcome::True && said.starts_with("its reserved resources are subtracted"),
        "{said}"
    );
    world.merge_class(json!({"kubelet": {"systemReserved": {"memory": "14Gi"}}}));
    assert_eq!(
        (memory_mib("g5.xlarge").await, memory_mib("g5.2xlarge").await),
        (None, Some(29_317 - (14 << 10)))
    );
    let found = report(&provider, &world).await;
    let (outcome, said) = condition(&found, "KubeletReady");
    assert!(
        outcome == ConditionOutcome::True && said.contains("no resources are left for pods on"),
        "{said}"
    );
    assert_eq!(condition(&found, "Validated").0, ConditionOutcome::True, "the others can be had");
}

#[tokio::test]
async fn an_invalid_kubelet_setting_is_reported_with_its_field_and_prevents_launches() {
    let world = AwsWorld::new().await.unwrap();
    let offerings = two_offerings(&world.connect().await.unwrap(), &world).await;
    world.merge_class(json!({"kubelet": {"kubeReserved": {"memory": "1Gib"}}}));
    let provider = world.connect().await.unwrap();
    let found = report(&provider, &world).await;
    let (outcome, why) = condition(&found, "KubeletReady");
    assert_eq!(outcome, ConditionOutcome::False);
    assert!(why.contains("EC2NodeClass `gpu`: spec.kubelet.kubeReserved.memory: `1Gib`"), "{why}");
    assert_eq!(condition(&found, "Validated").0, ConditionOutcome::Unknown);
    let error = provider.launch(&world.request(0, &offerings)).await.unwrap_err().to_string();
    assert!(error.contains("kubeReserved.memory"), "{error}");
    assert!(provider.catalogue(&world.node_class()).await.is_err());
    assert_eq!(provider.list().await.unwrap(), []);
}

#[tokio::test]
async fn an_unusable_placement_group_is_reported_and_prevents_launches() {
    let world = AwsWorld::new().await.unwrap();
    let offerings = two_offerings(&world.connect().await.unwrap(), &world).await;
    assert_eq!(calls(&world, "ec2:DescribePlacementGroups"), 0, "nobody names one");
    let id = "pg-0a1b2c3d4e5f60718";
    for (named, group, words) in [
        (json!({"name": "training"}), None, "no placement group `training` in this region"),
        (json!({"id": id}), None, "no placement group `pg-0a1b2c3d4e5f60718`"),
        (
            json!({"name": "training"}),
            Some(Group { state: "deleting".to_owned(), ..training("cluster", 0) }),
            "is deleting and not available",
        ),
        (
            json!({"name": "training", "partition": 2}),
            Some(training("cluster", 0)),
            "its strategy is cluster",
        ),
        (
            json!({"id": id, "partition": 4}),
            Some(training("partition", 3)),
            "has no partition 4, only 1 to 3",
        ),
    ] {
        world.merge_class(json!({"placementGroup": named}));
        if let Some(group) = group {
            world.front.place(id, group);
        }
        let provider = world.connect().await.unwrap();
        let found = report(&provider, &world).await;
        let (outcome, why) = condition(&found, "PlacementGroupReady");
        assert_eq!(outcome, ConditionOutcome::False, "{why}");
        assert!(why.contains("EC2NodeClass `gpu`: spec.placementGroup: ") && why.contains(words), "{why}");
        assert_eq!(found.fields["placementGroup"], serde_json::Value::Null);
        assert_eq!(condition(&found, "Validated").0, ConditionOutcome::Unknown);
        let error = provider.launch(&world.request(0, &offerings)).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(calls(&world, "ec2:CreateFleet"), 0, "neither launched nor tried dry");
    world.merge_class(json!({"placementGroup": {"id": id, "partition": 3}}));
    let provider = world.connect().await.unwrap();
    let found = report(&provider, &world).await;
    let placed = (ConditionOutcome::True, "placement group pg-0a1b2c3d4e5f60718 (partition)");
    assert_eq!(condition(&found, "PlacementGroupReady"), placed);
    assert_eq!(found.fields["placementGroup"], json!({"id": id, "strategy": "partition"}));
    provider.launch(&world.request(0, &offerings)).await.unwrap();
    world.front.forbid(["ec2:DescribePlacementGroups".to_owned()]);
    let found = report(&world.connect().await.unwrap(), &world).await;
    let (outcome, why) = condition(&found, "PlacementGroupReady");
    assert!(
        outcome == ConditionOutcome::False && why.contains("add ec2:DescribePlacementGroups to the policy"),
        "{why}"
    );
}

#[tokio::test]
async fn an_unanswered_call_does_not_make_a_class_unready() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    world.trouble(100, 7);
    let found = report(&provider, &world).await;
    world.trouble(0, 0);
    assert_eq!(condition(&found, "SubnetsReady").0, ConditionOutcome::NoAnswer);
    assert!(!found.fields.contains_key("subnets"), "{:?}", found.fields);
    let found = report(&provider, &world).await;
    assert!(
        found.conditions.iter().all(|one| one.outcome == ConditionOutcome::True),
        "{:?}",
        found.conditions
    );
}
