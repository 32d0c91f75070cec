//! Tests of consolidation if the cloud may choose the offering of a new node (`minValues`).

use poolwright_terms::labels::INSTANCE_TYPE;

use super::*;

/// Returns a cluster with one pod on a node of this type. Three types hold the pod, and a launch names this many of them.
fn on(kind: &str, price: &str, least: u32) -> Snapshot {
    let kinds = catalogue(vec![
        Kind("cheap", capacity(4, 16, 1), Some("a10g"), &[("a", "1.00")]),
        Kind("dear", capacity(4, 16, 1), Some("a10g"), &[("a", "4.00")]),
        Kind("dearest", capacity(4, 16, 1), Some("a10g"), &[("a", "9.00")]),
    ]);
    let pool = Pool { min_values: [(INSTANCE_TYPE.to_owned(), least)].into(), ..moving_pool() };
    let (claim, node) = running("big", kind, price, capacity(4, 16, 1));
    let snapshot = with(with(cluster(kinds, [pool]), [claim]), [node]);
    with(with(snapshot, [bound(replica("a"), "big")]), [web(1)])
}

#[test]
fn a_node_of_the_dearest_type_that_a_launch_names_is_not_replaced_again_and_again() {
    let chosen_by_the_cloud = on("dear", "4.00", 2);
    assert_eq!(proposed(&chosen_by_the_cloud).map(|one| one.nodes_to_empty), None);
    let why = looked(&chosen_by_the_cloud).kept[&ClaimName("big".into())].to_string();
    assert!(why.starts_with("its pods cost no less elsewhere: $4.00/h (new gpu-"), "{why}");
    assert!(why.contains("at $1.00/h, or another up to $4.00/h that the cloud chooses)"), "{why}");
    assert!(proposed(&on("dear", "4.00", 1)).is_some(), "without a choice, the cheapest is bought");
}

#[test]
fn a_node_that_costs_more_than_any_offering_of_a_launch_is_replaced() {
    let proposal = proposed(&on("dearest", "9.00", 2)).expect("two types suffice for the choice");
    assert_eq!((leaving(&proposal), proposal.saving), (vec![("big", "Underutilized")], usd("5.00")));
    let why = &proposal.nodes_to_empty[0].condition.message;
    assert!(why.starts_with("the work of its node costs $9.00/h now and at most $4.00/h elsewhere"), "{why}");
    assert_eq!(proposed(&on("dearest", "9.00", 3)).map(|one| one.nodes_to_empty), None);
}
