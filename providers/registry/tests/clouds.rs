//! Tests that apply to every cloud.

use std::collections::BTreeSet;

use poolwright_provider_registry::{CLOUDS, SUPPORTED, left_out};

#[test]
fn no_two_clouds_share_a_name_or_a_kind_of_node_class() {
    let names: BTreeSet<_> = CLOUDS.iter().map(|cloud| cloud.name).collect();
    let kinds: BTreeSet<_> = CLOUDS.iter().map(|cloud| cloud.node_class.kind.kind).collect();
    assert_eq!((names.len(), kinds.len()), (CLOUDS.len(), CLOUDS.len()));
}

#[test]
fn the_definition_of_every_node_class_is_of_its_kind() {
    for cloud in CLOUDS {
        let crd = (cloud.node_class.crd)();
        let (kind, names) = (cloud.node_class.kind, &crd.spec.names);
        assert_eq!((names.kind.as_str(), names.plural.as_str()), (kind.kind, kind.plural), "{}", cloud.name);
    }
}

#[test]
fn a_build_knows_of_a_cloud_that_it_does_not_have_what_its_registration_says() {
    assert_eq!(CLOUDS.len(), SUPPORTED.len(), "the build of the tests has all clouds");
    for (cloud, supported) in CLOUDS.iter().zip(&SUPPORTED) {
        let groups: Vec<&str> = cloud
            .karpenter
            .into_iter()
            .flat_map(|one| [Some(one.group()), one.managed().map(|managed| managed.group)])
            .flatten()
            .collect();
        let said = (supported.name, supported.node_class, supported.karpenter_groups);
        assert_eq!((cloud.name, cloud.node_class.kind.kind, groups.as_slice()), said);
        let (flags, variables) =
            (format!("{}-", cloud.name), format!("POOLWRIGHT_{}_", cloud.name.to_uppercase()));
        for flag in cloud.flags {
            assert!(flag.name.starts_with(&flags), "{}", flag.name);
            assert!(flag.env.is_none_or(|variable| variable.starts_with(&variables)), "{:?}", flag.env);
        }
    }
}

#[test]
fn the_clouds_that_a_build_does_not_have_are_named() {
    let names = |clouds| left_out(clouds).map(|one| one.name).collect::<Vec<_>>();
    assert_eq!(names(CLOUDS), [""; 0]);
    assert_eq!(names(&CLOUDS[..1]), ["aws"]);
    assert_eq!(names(&[]), ["kwok", "aws"]);
}
