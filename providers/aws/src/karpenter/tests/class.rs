//! The fields of a class other than its disks.

use serde_json::{Value, json};

use super::{Outcome, bottlerocket, class, custom, note, of, only, problem};
use crate::node_class::{AmiFamily, EC2NodeClass, Efa, HttpTokens};

#[test]
fn equal_fields_are_kept_and_implicit_defaults_of_karpenter_are_written() {
    let converted = of(&class(|spec| {
        spec["kubelet"] = json!({"maxPods": 110, "systemReserved": {"cpu": "1"}});
        spec["tags"] = json!({"team": "vision"});
        spec["instanceStorePolicy"] = json!("RAID0");
    }));
    let spec = &only(&converted).spec;
    assert_eq!((spec.kubelet.max_pods, spec.tags["team"].as_str()), (Some(110), "vision"));
    assert_eq!(note(&converted, "spec.kubelet").outcome, Outcome::Kept);
    assert!(note(&converted, "spec.tags").sentence.contains("launch templates get them, too"));
    assert_eq!(spec.subnet_selector_terms[0].tags.as_ref().unwrap()["karpenter.sh/discovery"], "c");
    let disk = &spec.block_device_mappings[0];
    assert_eq!((disk.device_name.as_str(), disk.ebs.volume_size.as_deref()), ("/dev/xvda", Some("20Gi")));
    assert_eq!(note(&converted, "spec.blockDeviceMappings").outcome, Outcome::Changed);
    assert!(note(&converted, "spec.associatePublicIPAddress").sentence.contains("subnet"));
}

#[test]
fn a_class_that_lets_the_metadata_service_answer_without_a_token_does_no_more() {
    let converted = of(&class(|spec| {
        spec["metadataOptions"] = json!({"httpTokens": "optional", "httpPutResponseHopLimit": 2});
    }));
    let options = &only(&converted).spec.metadata_options;
    assert_eq!((options.tokens, options.hop_limit), (HttpTokens::Required, 2));
    let note = note(&converted, "spec.metadataOptions.httpTokens");
    assert!(note.outcome == Outcome::Changed && note.sentence.contains("IMDSv1"), "{note:?}");
}

#[test]
fn images_by_name_get_the_owners_that_karpenter_takes_without_a_word() {
    let converted = of(&class(|spec| {
        spec["amiFamily"] = json!("Bottlerocket");
        spec["amiSelectorTerms"] =
            json!([{"name": "gpu-*"}, {"id": "ami-1"}, {"tags": {"a": "b"}, "owner": "self"}]);
    }));
    let spec = &only(&converted).spec;
    let owners: Vec<_> = spec.ami_selector_terms.iter().map(|term| term.owner.as_deref()).collect();
    assert_eq!(owners, [Some("self"), Some("amazon"), None, Some("self")]);
    assert_eq!(
        (note(&converted, "spec.amiSelectorTerms").outcome, spec.family()),
        (Outcome::Changed, Some(AmiFamily::Bottlerocket))
    );
}

#[test]
fn a_problem_of_a_term_for_images_names_its_place_in_the_source_once() {
    let wrong = json!({"id": 5});
    let said = problem(&of(&class(|spec| spec["amiSelectorTerms"] = json!([{"name": "gpu-*"}, wrong]))));
    assert!(
        said.contains("spec.amiSelectorTerms[1]") && !said.contains("spec.amiSelectorTerms[2]"),
        "{said}"
    );
    let twice = problem(&of(&class(|spec| spec["amiSelectorTerms"] = json!([{"name": 5}]))));
    assert_eq!(twice.matches("spec.amiSelectorTerms[").count(), 1, "{twice}");
}

#[test]
fn families_without_user_data_are_problems_that_say_where_to_go() {
    let said = problem(&of(&class(|spec| spec["amiSelectorTerms"] = json!([{"alias": "al2@latest"}]))));
    assert!(
        said.contains("spec.amiSelectorTerms[0].alias: Poolwright does not support the image family `al2`")
            && said.contains("move to al2023"),
        "{said}"
    );
    let said = problem(&of(&class(|spec| spec["amiFamily"] = json!("Windows2022"))));
    assert!(said.contains("`Windows2022`"), "{said}");
    let said = problem(&of(&class(|spec| spec["amiFamily"] = json!("Ubuntu"))));
    assert!(said.contains("kubeadm") && !said.contains("does not support"), "{said}");
    let with_raid = class(|spec| {
        spec["amiFamily"] = json!("Ubuntu");
        spec["instanceStorePolicy"] = json!("RAID0");
    });
    let said = problem(&of(&with_raid));
    assert!(said.contains("kubeadm") && said.contains("it does not support instanceStorePolicy;"), "{said}");
}

#[test]
fn placement_groups_and_fabric_adapters_have_other_names_here() {
    let converted = of(&class(|spec| {
        spec["placementGroupSelector"] = json!({"name": "training"});
        spec["networkInterfaces"] = json!([{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
            {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"}]);
    }));
    let spec = &only(&converted).spec;
    assert_eq!(spec.placement_group.as_ref().unwrap().name.as_deref(), Some("training"));
    assert_eq!(spec.efa, Efa::Auto);
    let plain = of(&class(|spec| spec["networkInterfaces"] = json!([{"interfaceType": "interface"}])));
    assert_eq!(
        (only(&plain).spec.efa, note(&plain, "spec.networkInterfaces").outcome),
        (Efa::None, Outcome::NotPossible)
    );
}

#[test]
fn a_field_without_a_counterpart_is_reported_at_any_depth() {
    let places = [
        "/spec",
        "/spec/amiSelectorTerms/0",
        "/spec/subnetSelectorTerms/0",
        "/spec/kubelet",
        "/spec/metadataOptions",
        "/spec/blockDeviceMappings/0/ebs",
    ];
    for place in places {
        let mut class = class(|spec| {
            spec["kubelet"] = json!({"maxPods": 10});
            spec["metadataOptions"] = json!({"httpEndpoint": "enabled"});
            spec["blockDeviceMappings"] = json!([{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "10Gi"}}]);
        });
        class.pointer_mut(place).unwrap()["unheardOf"] = json!("x");
        let converted = of(&class);
        only(&converted);
        let found: Vec<_> =
            converted.report.notes.iter().filter(|note| note.field.ends_with("unheardOf")).collect();
        let [note] = found.as_slice() else { panic!("{place}: {found:?}") };
        assert!(
            note.outcome == Outcome::NotPossible && note.sentence.contains("`unheardOf`"),
            "{place}: {note:?}"
        );
    }
    let converted = of(&class(|spec| spec["ipPrefixCount"] = json!(2)));
    assert!(note(&converted, "spec.ipPrefixCount").sentence.contains("ENABLE_PREFIX_DELEGATION"));
}

#[test]
fn an_invalid_node_class_is_a_problem_and_wrong_types_do_not_panic() {
    let said = problem(&of(&class(|spec| spec["instanceProfile"] = json!("both"))));
    assert!(said.contains("set either role or instanceProfile, but not both"), "{said}");
    let whole = class(|spec| {
        spec["kubelet"] = json!({"maxPods": 10, "kubeReserved": {"cpu": "1"}});
        spec["metadataOptions"] = json!({"httpTokens": "optional"});
        spec["blockDeviceMappings"] = json!([{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "10Gi"}}]);
        spec["placementGroupSelector"] = json!({"name": "a"});
        spec["networkInterfaces"] = json!([{"interfaceType": "efa"}]);
        spec["tags"] = json!({"a": "b"});
    });
    let keys: Vec<String> = whole["spec"].as_object().unwrap().keys().cloned().collect();
    for key in keys {
        for wrong in [json!([1]), json!("text"), json!({"a": {"b": 1}}), json!(true), json!(null), json!(7)] {
            let mut changed = whole.clone();
            changed["spec"][&key] = wrong;
            let converted = of(&changed);
            let is_a_class = || serde_json::from_value::<EC2NodeClass>(converted.class.clone()?).ok();
            assert!(!converted.report.problems.is_empty() || is_a_class().is_some(), "{key}");
        }
    }
}

#[test]
fn a_custom_image_gets_what_the_class_says_only_in_plans() {
    let converted = of(&class(|spec| {
        custom(spec);
        spec["kubelet"] = json!({"maxPods": 20});
        spec["instanceStorePolicy"] = json!("RAID0");
        spec["userData"] =
            json!("#!/bin/sh\nkubelet --register-with-taints=karpenter.sh/unregistered=:NoExecute\n");
    }));
    let said = |field: &str| note(&converted, field).sentence.clone();
    assert!(said("spec.kubelet").contains("do not reach the node"), "{}", said("spec.kubelet"));
    assert!(said("spec.instanceStorePolicy").contains("your user data must make it"));
    assert!(said("spec.userData").contains("unchanged"), "{}", said("spec.userData"));
    assert!(said("spec.userData").contains("only Karpenter removes"));
    assert!(said("spec.blockDeviceMappings").contains("Poolwright encrypts them"));
    assert!(said("spec.amiFamily").contains("your user data alone"));
}

#[test]
fn pods_per_core_of_bottlerocket_is_left_out_because_the_class_would_be_refused() {
    let converted = of(&class(|spec| {
        bottlerocket(spec);
        spec["kubelet"] = json!({"podsPerCore": 4, "maxPods": 20});
    }));
    let kubelet = &only(&converted).spec.kubelet;
    assert_eq!((kubelet.pods_per_core, kubelet.max_pods), (None, Some(20)));
    assert_eq!(note(&converted, "spec.kubelet.podsPerCore").outcome, Outcome::NotPossible);
}

#[test]
fn user_data_that_nodes_could_not_be_launched_with_is_a_problem() {
    let said = problem(&of(&class(|spec| spec["userData"] = json!("echo without an interpreter"))));
    assert!(said.contains("spec.userData") && said.contains("#!"), "{said}");
}

#[test]
fn images_by_tags_alone_may_be_of_any_owner_in_karpenter() {
    let of_terms = |terms: Value| {
        let converted = of(&class(|spec| {
            spec["amiFamily"] = json!("AL2023");
            spec["amiSelectorTerms"] = terms;
        }));
        note(&converted, "spec.amiSelectorTerms").sentence.clone()
    };
    let by_tags = of_terms(json!([{"tags": {"a": "b"}}]));
    assert!(by_tags.contains("any owner"), "{by_tags}");
    let by_name = of_terms(json!([{"name": "gpu-*"}]));
    assert!(by_name.contains("Karpenter's defaults") && !by_name.contains("any owner"), "{by_name}");
}

#[test]
fn all_problems_of_a_class_are_told_at_once_and_each_of_them_once() {
    let mut class = class(|spec| {
        spec["amiFamily"] = json!("Windows2022");
        spec["instanceProfile"] = json!("both");
        spec["userData"] = json!(7);
        spec["blockDeviceMappings"] = json!([{"deviceName": "/dev/xvda", "ebs": {}}]);
    });
    class["metadata"] = json!({"labels": {"team": 1}});
    let problems = of(&class).report.problems;
    let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
    for field in [
        "metadata.name",
        "metadata.labels.team",
        "spec.amiFamily",
        "spec.userData",
        "spec",
        "spec.blockDeviceMappings[0].ebs",
    ] {
        assert_eq!(fields.iter().filter(|one| **one == field).count(), 1, "{field}: {problems:#?}");
    }
    assert_eq!(fields.len(), 6, "{problems:#?}");
}

#[test]
fn an_empty_list_is_told_as_empty_and_hides_no_other_problem() {
    let problems = of(&class(|spec| {
        spec["subnetSelectorTerms"] = json!([]);
        spec["securityGroupSelectorTerms"] = json!(null);
        spec["kubelet"] = json!({"maxPods": "many"});
        spec["blockDeviceMappings"] = json!([{"deviceName": "/dev/xvda", "ebs": {}}]);
    }))
    .report
    .problems;
    let mut told: Vec<(&str, &str)> =
        problems.iter().map(|problem| (problem.field.as_str(), problem.cause.as_str())).collect();
    told.sort_unstable();
    let fields: Vec<&str> = told.iter().map(|(field, _)| *field).collect();
    assert_eq!(
        fields,
        [
            "spec.blockDeviceMappings[0].ebs",
            "spec.kubelet.maxPods",
            "spec.securityGroupSelectorTerms",
            "spec.subnetSelectorTerms"
        ],
        "{problems:#?}"
    );
    assert_eq!((told[2].1, told[3].1), ("missing field `securityGroupSelectorTerms`", "empty"));
}

#[test]
fn a_field_of_a_wrong_type_and_one_that_is_missing_are_named_by_their_paths() {
    let wrong = problem(&of(&class(|spec| spec["kubelet"] = json!({"maxPods": "many"}))));
    assert!(
        wrong.contains(": spec.kubelet.maxPods: ") && wrong.ends_with("; write a whole number"),
        "{wrong}"
    );
    let missing = problem(&of(&class(|spec| spec["amiSelectorTerms"] = json!(null))));
    assert!(
        missing.contains(": spec.amiSelectorTerms: missing field `amiSelectorTerms`; add it"),
        "{missing}"
    );
}

#[test]
fn each_entry_that_a_class_cannot_have_is_named_and_hides_no_other_problem() {
    let problems = of(&class(|spec| {
        spec["tags"] = json!({"team": "a", "aws:foo": "b", "eks:x": "c"});
        spec["instanceProfile"] = json!("both");
        spec["kubelet"] = json!({"systemReserved": {"cpu": "100m", "gpu": "1"}, "kubeReserved": {"memory": "lots"},
            "evictionHard": {"memory.available": "0", "nodefs.available": "200%", "pid.available": "5%"}});
    }))
    .report
    .problems;
    let mut fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "spec",
            "spec.kubelet.evictionHard[\"memory.available\"]",
            "spec.kubelet.evictionHard[\"nodefs.available\"]",
            "spec.kubelet.kubeReserved.memory",
            "spec.kubelet.systemReserved.gpu",
            "spec.tags[\"aws:foo\"]",
            "spec.tags[\"eks:x\"]",
        ],
        "{problems:#?}"
    );
    let zero = problems.iter().find(|problem| problem.cause.starts_with("`0` is not a valid threshold"));
    assert!(zero.is_some_and(|problem| problem.next_step.contains("0% for no threshold")), "{problems:#?}");
}

#[test]
fn fabric_adapters_and_a_public_address_exclude_each_other_in_the_words_of_the_manifest() {
    let said = problem(&of(&class(|spec| {
        spec["associatePublicIPAddress"] = json!(true);
        spec["networkInterfaces"] = json!([{"interfaceType": "efa-only"}]);
    })));
    assert!(said.contains("spec.networkInterfaces: ") && said.contains("public address"), "{said}");
}

#[test]
fn a_family_in_the_wrong_case_is_told_how_it_is_written() {
    let said = problem(&of(&class(|spec| spec["amiFamily"] = json!("al2023"))));
    assert!(said.ends_with("; write `AL2023`"), "{said}");
    let said = problem(&of(&class(|spec| spec["amiSelectorTerms"] = json!([{"alias": "AL2023@latest"}]))));
    assert!(said.ends_with("; write `al2023`"), "{said}");
}
