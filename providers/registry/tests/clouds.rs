//! What holds of every cloud.

use std::collections::BTreeSet;

use poolwright_provider_registry::{CLOUDS, find};

#[test]
fn no_two_clouds_share_a_name_or_a_kind_of_node_class() {
    let names: BTreeSet<_> = CLOUDS.iter().map(|cloud| cloud.name).collect();
    let kinds: BTreeSet<_> = CLOUDS.iter().map(|cloud| cloud.node_class.kind).collect();
    assert_eq!((names.len(), kinds.len()), (CLOUDS.len(), CLOUDS.len()));
    assert!(CLOUDS.iter().all(|cloud| find(cloud.name).is_some_and(|found| found.title == cloud.title)));
    assert!(find("nimbus").is_none());
}

#[test]
fn the_node_class_of_every_cloud_is_a_custom_resource_that_is_installed() {
    let installed = poolwright_api::crds();
    for cloud in &CLOUDS {
        let crd = installed.iter().find(|crd| crd.spec.names.kind == cloud.node_class.kind);
        assert_eq!(
            crd.map(|crd| crd.spec.names.plural.as_str()),
            Some(cloud.node_class.plural),
            "{}",
            cloud.name
        );
    }
}
