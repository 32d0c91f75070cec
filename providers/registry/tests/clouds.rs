//! Tests that apply to every cloud.

use std::collections::BTreeSet;

use poolwright_provider_registry::CLOUDS;

#[test]
fn no_two_clouds_share_a_name_or_a_kind_of_node_class() {
    let names: BTreeSet<_> = CLOUDS.iter().map(|cloud| cloud.name).collect();
    let kinds: BTreeSet<_> = CLOUDS.iter().map(|cloud| cloud.node_class.kind.kind).collect();
    assert_eq!((names.len(), kinds.len()), (CLOUDS.len(), CLOUDS.len()));
}

#[test]
fn the_definition_of_every_node_class_is_of_its_kind() {
    for cloud in &CLOUDS {
        let crd = (cloud.node_class.crd)();
        let (kind, names) = (cloud.node_class.kind, &crd.spec.names);
        assert_eq!((names.kind.as_str(), names.plural.as_str()), (kind.kind, kind.plural), "{}", cloud.name);
    }
}
