//! The values of Karpenter's labels on the types of the built-in catalogue.

use std::collections::BTreeMap;

use poolwright_catalog::{InstanceType, builtin};
use poolwright_provider_contract::karpenter::{FromKarpenter, LabelMapping};
use poolwright_terms::labels::INSTANCE_FAMILY;

use super::Karpenter;

fn types() -> Vec<InstanceType> {
    let catalogue = builtin();
    catalogue.types().values().filter(|kind| kind.provider.as_str() == "aws").cloned().collect()
}

/// Returns the keys of the labels that are facts about instance types, with the labels that list the types.
fn facts() -> Vec<(String, &'static str)> {
    let keys = Karpenter.label_names().iter().map(|name| format!("karpenter.k8s.aws/{name}"));
    let fact = |key: String| match Karpenter.label(&key) {
        Some(LabelMapping::OfType(to)) => Some((key, to)),
        _ => None,
    };
    keys.filter_map(fact).collect()
}

#[test]
fn a_type_has_the_values_that_karpenter_documents() {
    let of = |name: &str, label: &str| {
        let kind = types().into_iter().find(|kind| kind.name.as_str() == name).expect("AWS sells it");
        Karpenter.value_of(&format!("karpenter.k8s.aws/{label}"), &kind)
    };
    for (name, manufacturer) in [
        ("g4dn.xlarge", "intel"),
        ("g5.xlarge", "amd"),
        ("g5g.xlarge", "aws"),
        ("m6i.large", "intel"),
        ("p5.48xlarge", "amd"),
    ] {
        assert_eq!(of(name, "instance-cpu-manufacturer").as_deref(), Some(manufacturer), "{name}");
    }
    assert_eq!(of("g5.xlarge", "instance-cpu-sustained-clock-speed-mhz").as_deref(), Some("3300"));
    assert_eq!(of("g5.xlarge", "instance-network-bandwidth").as_deref(), Some("2500"));
    assert_eq!(of("g5.xlarge", "instance-ebs-bandwidth").as_deref(), Some("3500"));
    assert_eq!(of("g5.xlarge", "instance-unheard-of"), None);
}

#[test]
fn every_type_of_the_catalogue_has_a_value_of_every_fact_that_all_types_have() {
    let facts = facts();
    assert_eq!(facts.len(), 9, "{facts:?}");
    // Karpenter labels only types that have local disks.
    for (key, _) in facts.iter().filter(|(key, _)| !key.ends_with("/instance-local-nvme")) {
        for kind in types() {
            assert!(Karpenter.value_of(key, &kind).is_some(), "{} has no {key}", kind.name);
        }
    }
}

#[test]
fn types_of_a_family_do_not_differ_in_a_fact_by_which_families_are_listed() {
    for (key, _) in facts().iter().filter(|(_, to)| *to == INSTANCE_FAMILY) {
        let mut of_family: BTreeMap<String, Option<String>> = BTreeMap::new();
        for kind in types() {
            let value = Karpenter.value_of(key, &kind);
            let known = of_family.entry(kind.family().to_owned()).or_insert_with(|| value.clone());
            assert_eq!(*known, value, "{}: {key}", kind.name);
        }
    }
}
