//! The fields of a node class: what they select, and what the launch call contains.

use std::collections::BTreeMap;

use poolwright_catalog::{RankedOffering, ResourceName};
use poolwright_plane::aws::Capacity;
use poolwright_provider_contract::conformance::World;
use poolwright_provider_contract::{CloudProvider, NodeClassStatusSource};
use poolwright_terms::CapacityType;
use serde_json::{Value, json};

use super::reserved::{capacity, template};
use super::two_offerings;
use super::world::{AwsWorld, eks, training, user_data};

/// Returns the text of the first element of this name.
fn text<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    xml.split(&format!("<{name}>")).nth(1)?.split(&format!("</{name}>")).next()
}

async fn ec2(world: &AwsWorld, query: String) -> String {
    world.front.call("ec2", &format!("{query}&Version=2016-11-15")).await.unwrap()
}

async fn tag(world: &AwsWorld, id: &str, key: &str, value: &str) {
    ec2(world, format!("Action=CreateTags&ResourceId.1={id}&Tag.1.Key={key}&Tag.1.Value={value}")).await;
}

/// Makes an image of this account by copying one of moto's.
async fn image(world: &AwsWorld, name: &str, of: &str) -> String {
    let copy = format!("Action=CopyImage&Name={name}&SourceImageId={of}&SourceRegion={}", world.region);
    let made = ec2(world, copy).await;
    text(&made, "imageId").unwrap_or_else(|| panic!("no image: {made}")).to_owned()
}

/// Returns the ids that a field of the status lists, or the problem.
async fn found(world: &AwsWorld, patch: Value, field: &str) -> Result<Vec<String>, String> {
    world.merge_class(patch);
    let report = world
        .connect()
        .await
        .unwrap()
        .status(&world.node_class())
        .await
        .unwrap()
        .expect("the class is there");
    world.reset_class();
    let ids = report.fields.get(field).and_then(Value::as_array).into_iter().flatten();
    let ids: Vec<String> = ids.filter_map(|one| one["id"].as_str().map(str::to_owned)).collect();
    let wrong: Vec<String> = report.conditions.iter().map(|one| one.message.clone()).collect();
    if ids.is_empty() { Err(wrong.join("; ")) } else { Ok(ids) }
}

#[tokio::test]
async fn image_terms_select_images_of_the_owner_by_name_or_tags() {
    let world = AwsWorld::new().await.unwrap();
    let of = &world.cluster;
    let amd = image(&world, &format!("{of}-gpu-amd"), &world.account.image).await;
    let arm = image(&world, &format!("{of}-gpu-arm"), &world.account.arm_image).await;
    tag(&world, &amd, &format!("{of}-team"), "research").await;
    tag(&world, &arm, &format!("{of}-team"), "sales").await;
    let images = async |term: Value| found(&world, json!({"amiSelectorTerms": [term]}), "images").await;
    let both = [amd.clone(), arm.clone()].map(Some);
    let named = images(json!({"name": format!("{of}-gpu-*"), "owner": "self"})).await.unwrap();
    assert!(named.len() == 2 && both.iter().flatten().all(|id| named.contains(id)), "{named:?}");
    let key = format!("{of}-team");
    let tagged = images(json!({"tags": {&key: "research"}, "owner": "self"})).await;
    assert_eq!(tagged, Ok(vec![amd.clone()]));
    let tagged = images(json!({"tags": {&key: "*"}, "owner": "123456789012"})).await.unwrap();
    assert_eq!(tagged.len(), 2, "{tagged:?}");
    let both = images(json!({"name": format!("{of}-gpu-*"), "tags": {&key: "sales"}, "owner": "self"})).await;
    assert_eq!(both, Ok(vec![arm]));
    // Anybody can give an image any name, so the owner must match too.
    let foreign = images(json!({"name": format!("{of}-gpu-*"), "owner": "amazon"})).await.unwrap_err();
    assert!(foreign.contains("spec.amiSelectorTerms") && foreign.contains("or their owner"), "{foreign}");
}

#[tokio::test]
async fn security_group_terms_select_each_matching_group_once() {
    let world = AwsWorld::new().await.unwrap();
    let of = &world.cluster;
    let made =
        ec2(&world, format!("Action=CreateSecurityGroup&GroupName={of}-nodes&GroupDescription=nodes")).await;
    let group = text(&made, "groupId").expect("a group").to_owned();
    tag(&world, &group, of, "owned").await;
    let groups = async |terms: Value| {
        found(&world, json!({"securityGroupSelectorTerms": terms}), "securityGroups").await
    };
    assert_eq!(groups(json!([{"name": format!("{of}-nodes")}])).await, Ok(vec![group.clone()]));
    assert_eq!(groups(json!([{"tags": {of: "owned"}}])).await, Ok(vec![group.clone()]));
    assert_eq!(groups(json!([{"tags": {of: "*"}}, {"id": group}])).await, Ok(vec![group.clone()]));
    assert_eq!(groups(json!([{"name": format!("{of}-n?d*")}])).await, Ok(vec![group.clone()]));
    assert_eq!(groups(json!([{"tags": {of: "own*"}}])).await, Ok(vec![group]));
    let none = groups(json!([{"name": format!("{of}-\\*")}])).await.unwrap_err();
    assert!(none.contains("spec.securityGroupSelectorTerms"), "an escaped asterisk is no pattern: {none}");
}

#[tokio::test]
async fn a_bottlerocket_alias_selects_published_images_and_writes_toml_user_data() {
    let world = AwsWorld::new().await.unwrap();
    let standard = world.account.image.clone();
    let nvidia = image(&world, &format!("{}-nvidia", world.cluster), &standard).await;
    let parameter =
        |variant: &str| format!("/aws/service/bottlerocket/aws-k8s-1.36{variant}/x86_64/1.54.0/image_id");
    world.front.publish([(parameter(""), standard.clone()), (parameter("-nvidia"), nvidia.clone())]);
    world.merge_class(json!({"amiFamily": null, "amiSelectorTerms": [{"alias": "bottlerocket@v1.54.0"}],
        "userData": "[settings.host-containers.admin]\nenabled = false\n"}));
    let provider = world.connect_with(Some(eks())).await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let mut request = world.request(0, &offerings);
    request.labels.insert("team".to_owned(), "research".to_owned());
    provider.launch(&request).await.unwrap();
    let data = template(&world).await;
    assert_eq!(
        text(&data, "imageId"),
        Some(nvidia.as_str()),
        "a node with GPUs has the image with the driver"
    );
    let told = user_data(&world).await;
    let told = told.values().next().expect("a template");
    for line in [
        "[settings.kubernetes",
        "https://api.example",
        &world.cluster,
        "team = \"research\"",
        "[settings.host-containers.admin]",
    ] {
        assert!(told.contains(line), "{line} is not in {told}");
    }
}

#[tokio::test]
async fn reservation_terms_select_by_tags_owner_and_match_criteria() {
    let world = AwsWorld::new().await.unwrap();
    let tagged = BTreeMap::from([("team".to_owned(), "research".to_owned())]);
    let all = [
        ("cr-00000000000000001", Capacity { tags: tagged.clone(), ..capacity(2, false) }),
        ("cr-00000000000000002", Capacity { open: true, ..capacity(2, false) }),
        (
            "cr-00000000000000003",
            Capacity { owner: "222222222222".to_owned(), tags: tagged, ..capacity(2, false) },
        ),
    ];
    for (id, one) in all {
        world.front.hold_capacity(id, one);
    }
    let terms = async |term: Value| {
        let patch = json!({"capacityReservationSelectorTerms": [term]});
        // A class without matching reservations is not an error.
        let ids = match found(&world, patch, "capacityReservations").await {
            Err(told) if told.contains("0 capacity reservations") => Vec::new(),
            found => found.unwrap(),
        };
        ids.iter().filter_map(|id| id.chars().last()).collect::<String>()
    };
    assert_eq!(terms(json!({"tags": {"team": "research"}})).await, "13");
    assert_eq!(terms(json!({"tags": {"team": "*"}, "ownerID": "222222222222"})).await, "3");
    assert_eq!(terms(json!({"instanceMatchCriteria": "open"})).await, "2");
    assert_eq!(terms(json!({"tags": {"team": "sales"}})).await, "");
}

#[tokio::test]
async fn a_launch_uses_disks_keys_metadata_placement_monitoring_and_tags_of_the_class() {
    let world = AwsWorld::new().await.unwrap();
    world.front.place("pg-0a1b2c3d", training("partition", 3));
    world.merge_class(json!({
        "blockDeviceMappings": [
            {"deviceName": "/dev/xvda", "rootVolume": true, "ebs": {
                "volumeSize": "200Gi", "volumeType": "gp3", "iops": 4000, "throughput": 500, "kmsKeyID": "alias/nodes"}},
            {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "1Ti", "volumeType": "io2", "iops": 9000, "deleteOnTermination": false}},
        ],
        "metadataOptions": {"httpPutResponseHopLimit": 2, "httpProtocolIPv6": "enabled"},
        "placementGroup": {"name": "training", "partition": 2},
        "detailedMonitoring": true,
        "tags": {"cost-center": "4711"},
    }));
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let launched = provider.launch(&world.request(0, &offerings)).await.unwrap().instance;
    let data = template(&world).await;
    let disks = text(&data, "blockDeviceMappingSet").expect("disks");
    let disks: Vec<&str> = disks.split("<item>").skip(1).collect();
    let said = |disk: &str, fields: &[(&str, &str)]| {
        for (field, value) in fields {
            assert_eq!(text(disk, field), Some(*value), "{field} in {disk}");
        }
    };
    let [root, other, ..] = &disks[..] else { panic!("{data}") };
    said(
        root,
        &[
            ("deviceName", "/dev/xvda"),
            ("volumeSize", "200"),
            ("volumeType", "gp3"),
            ("iops", "4000"),
            ("throughput", "500"),
            ("encrypted", "true"),
            ("kmsKeyId", "alias/nodes"),
            ("deleteOnTermination", "true"),
        ],
    );
    said(
        other,
        &[
            ("deviceName", "/dev/xvdb"),
            ("volumeSize", "1024"),
            ("volumeType", "io2"),
            ("iops", "9000"),
            ("encrypted", "true"),
            ("deleteOnTermination", "false"),
        ],
    );
    let metadata = text(&data, "metadataOptions").expect("metadata options");
    said(
        metadata,
        &[
            ("httpTokens", "required"),
            ("httpPutResponseHopLimit", "2"),
            ("httpProtocolIpv6", "enabled"),
            ("httpEndpoint", "enabled"),
        ],
    );
    said(
        text(&data, "placement").expect("placement"),
        &[("groupName", "training"), ("partitionNumber", "2")],
    );
    said(text(&data, "monitoring").expect("monitoring"), &[("enabled", "true")]);

    let [fleet] = &world.front.fleets()[..] else { panic!("one order") };
    let tagged: Vec<&str> = fleet
        .iter()
        .filter(|(name, value)| name.ends_with(".Key") && value.as_str() == "cost-center")
        .filter_map(|(name, _)| {
            fleet.get(&format!("{}.ResourceType", name.split(".Tag.").next()?)).map(String::as_str)
        })
        .collect();
    assert_eq!(tagged, ["instance", "volume", "fleet"]);
    let id = launched.provider_id.rsplit('/').next().unwrap_or_default();
    let listed = ec2(&world, format!("Action=DescribeInstances&InstanceId.1={id}")).await;
    assert!(listed.contains("<key>cost-center</key><value>4711</value>"), "{listed}");
    // Pods get as much ephemeral storage as the class's disk has.
    let catalogue = provider.catalogue(&world.node_class()).await.unwrap();
    let storage =
        catalogue.types()[&launched.offering.instance_type].allocatable.get(ResourceName::EPHEMERAL_STORAGE);
    assert!((170 << 30..200 << 30).contains(&storage), "{storage}");
}

#[tokio::test]
async fn efa_auto_attaches_an_adapter_to_every_capable_network_card() {
    for (efa, adapters) in [("Auto", 4), ("None", 0)] {
        let world = AwsWorld::new().await.unwrap();
        world.merge_class(json!({"efa": efa}));
        let provider = world.connect().await.unwrap();
        let catalogue = provider.catalogue(&world.node_class()).await.unwrap();
        let offering = catalogue.offerings().iter().find(|one| {
            one.id.instance_type.as_str() == "p4d.24xlarge" && one.id.capacity_type == CapacityType::OnDemand
        });
        let offering = offering.expect("it is sold");
        let allocatable = catalogue.types()[&offering.id.instance_type].allocatable.clone();
        assert_eq!(allocatable.get("vpc.amazonaws.com/efa"), adapters, "{efa}");
        let ranked =
            RankedOffering { offering: offering.id.clone(), price: offering.price.known(), allocatable };
        provider.launch(&world.request(0, &[ranked])).await.unwrap();
        let told = template(&world).await.matches("<interfaceType>efa").count();
        assert_eq!(u64::try_from(told).unwrap(), adapters, "{efa}");
    }
}

#[tokio::test]
async fn a_class_that_names_unusual_types_offers_them_but_never_fractional_gpus() {
    let world = AwsWorld::new().await.unwrap();
    let sold = async || {
        let catalogue = world.connect().await.unwrap().catalogue(&world.node_class()).await.unwrap();
        ["t3.large", "t3.small", "m7i.metal-24xl", "g6f.large", "m7i.large"]
            .map(|name| catalogue.instance_type(&name.into()).is_some())
    };
    assert_eq!(sold().await, [false, false, false, false, true]);
    world.merge_class(json!({"alsoInstanceTypes": ["t3", "m7i.metal-24xl", "g6f.large"]}));
    assert_eq!(sold().await, [true, true, true, false, true]);
}
