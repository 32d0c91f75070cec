//! What the converter calls kept, this provider does: each sentence about a kept field names tests that show it.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::super::class::spec_schema;
use super::super::sentences;
use super::{Outcome, bottlerocket, class, custom, of};
use crate::node_class::AmiFamily;

const BOOTSTRAP: &str = "providers/aws/src/bootstrap.rs";
const CLASSES: &str = "tests/plane/tests/aws_conformance/classes.rs";
const CONFORMANCE: &str = "tests/plane/tests/aws_conformance/main.rs";
const DISKS: &str = "providers/aws/src/karpenter/tests/disks.rs";
const FIELDS: &str = "tests/plane/tests/aws_conformance/fields.rs";
const INSTANCES: &str = "providers/aws-model/tests/instances.rs";
const MARKET: &str = "providers/aws/src/market/offline/tests.rs";
const ON_A_CLUSTER: &str = "tests/plane/tests/aws_conformance/on_a_cluster.rs";
const TEMPLATE: &str = "providers/aws/src/launch/template.rs";
const USER_DATA: &str = "providers/aws-model/tests/bootstrap/main.rs";

/// Each kept field, the beginning of a sentence about it, and a test that shows it.
const SHOWN: &[(&str, &str, (&str, &str))] = &[
    (
        "amiFamily",
        "Nodes of this family join the cluster as in Karpenter.",
        (CONFORMANCE, "al2023_nodes_get_the_api_server_address_and_no_public_address"),
    ),
    (
        "amiFamily",
        "Nodes of this family join the cluster as in Karpenter.",
        (FIELDS, "a_bottlerocket_alias_selects_published_images_and_writes_toml_user_data"),
    ),
    (
        "amiFamily",
        "Nodes join by your user data alone",
        (USER_DATA, "custom_user_data_is_the_users_to_the_byte"),
    ),
    ("associatePublicIPAddress", "It has the same meaning.", (TEMPLATE, OF_A_CLASS)),
    ("blockDeviceMappings", "The same disks.", (DISKS, "disks_that_are_kept_are_launched_as_they_are")),
    ("detailedMonitoring", "It has the same meaning.", (TEMPLATE, OF_A_CLASS)),
    (
        "instanceProfile",
        "Nodes get this instance profile.",
        (CLASSES, "a_class_reports_its_resolved_terms_and_a_dry_run_without_a_launch"),
    ),
    ("instanceProfile", "Nodes get this instance profile.", (TEMPLATE, OF_A_CLASS)),
    (
        "instanceStorePolicy",
        "The local disks become one RAID 0",
        (
            BOOTSTRAP,
            "nodes_of_a_class_with_the_policy_for_local_disks_make_one_array_of_them_unless_the_user_data_is_all_they_get",
        ),
    ),
    (
        "instanceStorePolicy",
        "Plans count the local disks as one RAID 0.",
        (
            MARKET,
            "ephemeral_storage_is_the_array_of_local_disks_if_the_class_makes_one_and_the_type_has_some",
        ),
    ),
    (
        "kubelet",
        "The kubelet gets the same settings.",
        (BOOTSTRAP, "every_kubelet_setting_of_a_class_reaches_its_nodes"),
    ),
    (
        "kubelet",
        "Plans use these settings.",
        (INSTANCES, "kubelet_reservations_reduce_allocatable_resources"),
    ),
    ("metadataOptions", "The metadata service has the same settings.", (TEMPLATE, OF_A_CLASS)),
    ("metadataOptions", "Its other settings stay.", (TEMPLATE, OF_A_CLASS)),
    (
        "role",
        "Nodes get this role, in an instance profile",
        (CONFORMANCE, "a_role_gets_one_instance_profile_and_an_alias_selects_published_images"),
    ),
    (
        "securityGroupSelectorTerms",
        "It selects the same security groups.",
        (FIELDS, "security_group_terms_select_each_matching_group_once"),
    ),
    (
        "subnetSelectorTerms",
        "It selects the same subnets.",
        (ON_A_CLUSTER, "a_class_without_subnets_becomes_ready_when_a_subnet_is_tagged"),
    ),
    (
        "userData",
        "Nodes get it unchanged, as in Karpenter.",
        (USER_DATA, "custom_user_data_is_the_users_to_the_byte"),
    ),
    (
        "userData",
        "Poolwright adds its settings to it, which win.",
        (USER_DATA, "bottlerocket_keeps_the_users_settings_and_ours_win"),
    ),
    (
        "userData",
        "Poolwright adds its own part at the end, which wins.",
        (USER_DATA, "nodeadm_reads_what_was_planned_from_the_last_part"),
    ),
];

const OF_A_CLASS: &str =
    "a_node_has_the_address_the_profile_the_metadata_service_and_the_monitoring_of_its_class";

/// The settings inside kept fields. The test of the kubelet has each setting, and so has that of the metadata service.
const SETTINGS: &[(&str, &[&str])] = &[
    (
        "kubelet",
        &[
            "clusterDNS",
            "cpuCFSQuota",
            "evictionHard",
            "evictionMaxPodGracePeriod",
            "evictionSoft",
            "evictionSoftGracePeriod",
            "imageGCHighThresholdPercent",
            "imageGCLowThresholdPercent",
            "kubeReserved",
            "maxPods",
            "podsPerCore",
            "systemReserved",
        ],
    ),
    ("metadataOptions", &["httpEndpoint", "httpProtocolIPv6", "httpPutResponseHopLimit", "httpTokens"]),
];

fn source(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns whether a source has a test of this name.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_test = |line: &str| line == "#[test]" || line.starts_with("#[tokio::test");
    lines.windows(2).any(|pair| is_test(pair[0]) && pair[1].contains(&format!("fn {name}(")))
}

/// Classes of Karpenter with all fields that may be kept, for each image family.
fn samples() -> Vec<Value> {
    let disk = |device: &str| {
        json!({"deviceName": device, "ebs": {"volumeSize": "50Gi", "volumeType": "gp3", "encrypted": true,
            "deleteOnTermination": true}})
    };
    let with = |spec: &mut Value, user_data: &str| {
        for (field, value) in [
            ("associatePublicIPAddress", json!(true)),
            ("blockDeviceMappings", json!([disk("/dev/xvda"), disk("/dev/xvdb")])),
            ("detailedMonitoring", json!(true)),
            ("instanceStorePolicy", json!("RAID0")),
            ("kubelet", json!({"maxPods": 58})),
            ("metadataOptions", json!({"httpPutResponseHopLimit": 2})),
            ("userData", json!(user_data)),
        ] {
            spec[field] = value;
        }
    };
    let al2023 = class(|spec| {
        with(spec, "#!/bin/bash\necho\n");
        spec["amiFamily"] = json!("AL2023");
        spec["metadataOptions"]["httpTokens"] = json!("optional");
    });
    let with_bottlerocket = class(|spec| {
        bottlerocket(spec);
        with(spec, "[settings.motd]\n");
        let fields = spec.as_object_mut().expect("a map");
        fields.remove("role");
        fields.insert("instanceProfile".to_owned(), json!("nodes"));
    });
    let of_the_user = class(|spec| {
        custom(spec);
        with(spec, "#!/bin/bash\njoin\n");
    });
    vec![al2023, with_bottlerocket, of_the_user]
}

#[test]
fn each_sentence_about_a_kept_field_names_a_test_that_exists() {
    let mut said: Vec<(String, String)> = Vec::new();
    for sample in samples() {
        let converted = of(&sample);
        assert_eq!(converted.report.problems, [], "{sample}");
        let kept = converted.report.notes.into_iter().filter(|note| note.outcome == Outcome::Kept);
        let fields =
            kept.filter_map(|note| Some((note.field.strip_prefix("spec.")?.to_owned(), note.sentence)));
        said.extend(fields);
    }
    let is_about = |(field, begin): (&str, &str), (of, sentence): &(String, String)| {
        field == of.as_str() && sentence.starts_with(begin)
    };
    for one in &said {
        let shown = SHOWN.iter().any(|(field, begin, _)| is_about((*field, *begin), one));
        assert!(shown, "no test shows that the provider does it: {one:?}");
    }
    for (field, begin, (file, test)) in SHOWN {
        assert!(said.iter().any(|one| is_about((*field, *begin), one)), "nothing says of {field}: {begin}");
        assert!(has_test(&source(file), test), "{file} has no test {test}");
    }
}

#[test]
fn each_field_and_each_setting_that_is_kept_is_in_the_tables() {
    let schema = spec_schema();
    let names = |schema: &Value| -> BTreeSet<String> {
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    for field in names(&schema) {
        let is_kept =
            |family: AmiFamily| matches!(sentences::of_field(&field, Some(family)), Some((Outcome::Kept, _)));
        let is_shown = SHOWN.iter().any(|(shown, ..)| *shown == field);
        assert!(is_shown || !is_kept(AmiFamily::Al2023), "no test shows that the provider keeps {field}");
    }
    let template = source(TEMPLATE);
    let bootstrap = source(BOOTSTRAP);
    for (field, settings) in SETTINGS {
        let all: BTreeSet<String> = settings.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(names(&schema["properties"][*field]), all, "{field}");
        for name in *settings {
            let is_set = |source: &str| source.contains(&format!("\"{name}\": "));
            // Poolwright always requires tokens, whatever the class says.
            let is_shown = match *name {
                "httpTokens" => {
                    has_test(&template, "a_node_asks_for_no_public_address_and_for_a_session_token")
                }
                _ => is_set(&template) || is_set(&bootstrap),
            };
            assert!(is_shown, "no test sets {field}.{name}");
        }
    }
}
