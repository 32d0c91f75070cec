//! Tests of consolidation with commitments.

use poolwright_core::plan::{Commitment, plan};

use super::*;

/// Returns options with a commitment for nodes of the large type, each of which uses four dollars.
fn committed(left: &str) -> PlanOptions {
    let rates = [(id("g5.12xlarge", "a"), usd("4"))].into();
    let commitment = Commitment { name: "plan".into(), left: usd(left), rates };
    PlanOptions { commitments: vec![commitment], ..PlanOptions::default() }
}

fn proposed_with(snapshot: &Snapshot, options: &PlanOptions) -> Option<Proposal> {
    let current = plan(snapshot, at(NOW), options, &mut NeverStop);
    propose(snapshot, &current, &MoveHistory::default(), at(NOW), options, &mut NeverStop).proposal
}

#[test]
fn a_node_that_a_commitment_pays_is_not_emptied_for_one_that_costs_less_by_its_price() {
    let snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    assert!(proposed_with(&snapshot, &PlanOptions::default()).is_some());
    assert_eq!(
        proposed_with(&snapshot, &committed("4")).map(|one| one.nodes_to_empty),
        None,
        "it costs nothing"
    );
    let part = proposed_with(&snapshot, &committed("1")).expect("three quarters of it are paid");
    // The saving is three quarters of 5.672, minus a node for 1.006 or less.
    assert!(part.saving > usd("3.2") && part.saving < usd("4.254"), "{}", part.saving);
}

#[test]
fn removing_one_of_several_committed_nodes_saves_the_uncovered_part() {
    let nodes = vec![large("big"), large("other")];
    let snapshot = cluster_of(moving_pool(), nodes, &[("a", "big"), ("b", "other")]);
    assert_eq!(
        proposed_with(&snapshot, &committed("8")).map(|one| one.nodes_to_empty),
        None,
        "both are paid"
    );
    let one = proposed_with(&snapshot, &committed("4")).expect("one of them is paid in full, whichever");
    assert_eq!(one.nodes_to_empty.len(), 1, "the other costs nothing: {:?}", one.nodes_to_empty);
    assert!(one.saving > usd("4"), "{}", one.saving);
}
