//! Tests of measured resources: later nodes of a type are expected to lack the amounts that earlier ones lacked.

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::index::{Change, ClusterIndex};
use poolwright_core::*;

use crate::kit::*;

/// Returns the list with this memory in MiB.
fn with_memory(list: ResourceList, mib: u64) -> ResourceList {
    list.with(ResourceName::MEMORY, mib << 20)
}

/// Returns a pod that needs all memory that the catalogue promises for a g5.xlarge.
fn full(name: &str) -> Pod {
    pod(name, requests(1, 16, 1))
}

/// Returns the node of the claim, with the memory that it reports.
fn measured_node(mib: u64) -> Node {
    Node { allocatable: with_memory(capacity(4, 16, 1), mib), ..claimed_node() }
}

fn index(things: impl FnOnce(&mut ClusterIndex)) -> ClusterIndex {
    let mut index = ClusterIndex::new();
    let snapshot = cluster(aws(), [pool("gpu")]);
    index.apply_pool(pool("gpu"));
    index.reset_catalogues(snapshot.catalogues.clone());
    things(&mut index);
    index
}

/// Returns an index after a node with this memory has come and gone.
fn after_a_node_with(mib: u64) -> ClusterIndex {
    let mut index = index(|index| {
        index.apply_claim(initialized());
        index.apply_node(measured_node(mib));
    });
    index.delete_node("n");
    index.delete_claim(&ClaimName("c".into()));
    index
}

#[test]
fn a_pod_that_does_not_fit_what_a_node_turned_out_to_have_is_not_bought_the_same_again() {
    let index = index(|index| {
        index.apply_claim(launched(claim()));
        index.apply_pod(full("p"));
    });
    assert_eq!(bought(&planned(&index.snapshot())), Vec::<String>::new(), "it is planned there");
    let mut index = index;
    index.apply_claim(initialized());
    assert_eq!(index.apply_node(measured_node(16_000)), Change::Room);
    assert_eq!(bought(&planned(&index.snapshot())), ["g6.xlarge: p"]);
}

#[test]
fn it_is_known_whichever_comes_first_and_after_the_node_is_gone() {
    for node_first in [false, true] {
        let mut index = index(|index| {
            if node_first {
                index.apply_node(measured_node(16_000));
                index.apply_claim(initialized());
            } else {
                index.apply_claim(initialized());
                index.apply_node(measured_node(16_000));
            }
        });
        index.delete_node("n");
        index.delete_claim(&ClaimName("c".into()));
        index.apply_pod(full("p"));
        assert_eq!(bought(&planned(&index.snapshot())), ["g6.xlarge: p"], "{node_first}");
    }
}

#[test]
fn the_least_that_any_had_counts_and_more_than_was_promised_does_not() {
    let mut index = index(|index| {
        index.apply_claim(initialized());
        index.apply_node(measured_node(17_000));
    });
    let mut without = index.clone();
    without.delete_node("n");
    without.apply_pod(full("p"));
    assert_eq!(bought(&planned(&without.snapshot())), ["g5.xlarge: p"]);
    index.apply_node(measured_node(16_000));
    index.apply_node(measured_node(16_200));
    index.delete_node("n");
    index.apply_pod(pod("p", with_memory(requests(1, 16, 1), 16_100)));
    assert_eq!(bought(&planned(&index.snapshot())), ["g6.xlarge: p"]);
}

#[test]
fn a_class_that_promises_more_later_is_believed_in_the_difference() {
    let mut index = after_a_node_with(16_000);
    index.apply_pod(full("p"));
    assert_eq!(bought(&planned(&index.snapshot())), ["g6.xlarge: p"]);
    let more = catalogue(vec![Kind("g5.xlarge", capacity(4, 17, 1), Some("a10g"), &[("a", "1.006")])]);
    index.reset_catalogues([(node_class(), Ok(std::sync::Arc::new(more)))]);
    assert_eq!(bought(&planned(&index.snapshot())), ["g5.xlarge: p"]);
}

#[test]
fn a_node_that_is_not_what_was_ordered_says_nothing_of_others() {
    let of = |claim: Claim, node: Node| {
        let mut index = index(|index| {
            index.apply_claim(claim);
            index.apply_node(node);
        });
        index.delete_node("n");
        index.delete_claim(&ClaimName("c".into()));
        index.apply_pod(full("p"));
        bought(&planned(&index.snapshot()))
    };
    assert_eq!(of(registered(), measured_node(16_000)), ["g5.xlarge: p"], "it may still be starting");
    assert_eq!(
        of(initialized(), measured_node(8_000)),
        ["g5.xlarge: p"],
        "half of it is a fault, not a measure"
    );
}

#[test]
fn pods_that_share_what_is_measured_are_packed_by_it() {
    let mut index = after_a_node_with(16_000);
    for name in ["p", "q"] {
        index.apply_pod(pod(name, requests(1, 8, 0)));
    }
    let plan = planned(&index.snapshot());
    // By the catalogue, one node would be enough.
    assert_eq!(bought(&plan).len(), 2);
    assert_eq!(plan.unplaced, []);
}

#[test]
fn nodes_on_their_way_are_expected_to_have_no_more() {
    let other =
        Claim { name: ClaimName("d".into()), uid: Uid("uid-d".into()), planned_pods: vec![], ..claim() };
    let mut index = index(|index| {
        index.apply_claim(other);
        index.apply_claim(Claim { planned_pods: vec![], ..initialized() });
        index.apply_pod(full("p"));
    });
    assert_eq!(bought(&planned(&index.snapshot())), Vec::<String>::new(), "room that is on its way");
    index.apply_node(measured_node(16_000));
    assert_eq!(bought(&planned(&index.snapshot())), ["g6.xlarge: p"]);
}
