//! Tests of the cluster index.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::RankedOffering;
use poolwright_core::index::{Change, ClusterIndex};
use poolwright_core::plan::{Plan, PlanOptions, plan};
use poolwright_core::*;
use poolwright_solver::NeverStop;
use poolwright_terms::keys::RESERVED_TAINT;

use crate::kit::*;

fn small(name: &str) -> Pod {
    pod(name, requests(1, 1, 1))
}

#[test]
fn a_pod_that_wants_a_node_is_demand_once() {
    let mut index = ClusterIndex::new();
    let waiting = Pod { phase: PodPhase::Waiting, ..small("a") };
    assert_eq!(index.apply_pod(waiting), Change::Life);
    assert_eq!(index.apply_pod(small("a")), Change::Demand);
    assert_eq!(index.apply_pod(small("a")), Change::None);
    let again = PodPhase::Unschedulable { since: at(0), message: "0/1 nodes are available".into() };
    assert_eq!(index.apply_pod(Pod { phase: again, ..small("a") }), Change::Life, "only the message changed");
    let nominated = Pod { nominated_node: Some("n".into()), ..small("a") };
    assert_eq!(index.apply_pod(nominated), Change::Life);
    assert_eq!(index.apply_pod(small("a")), Change::Demand, "a preemption came to nothing");
    let anew = Pod { uid: Uid("another".into()), ..small("a") };
    assert_eq!(index.apply_pod(anew), Change::Demand, "another pod of the same name");
    assert_eq!(index.delete_pod(&object_key("a")), Change::Life);
    assert_eq!(index.delete_pod(&object_key("a")), Change::None);
}

#[test]
fn a_pod_bound_as_planned_changes_no_plan_and_any_other_may() {
    let mut index = ClusterIndex::new();
    index.apply_claim(registered());
    index.set_nominations(BTreeMap::from([(key("p"), (Uid("pod-p".into()), "c".to_owned()))]), false);
    index.apply_pod(small("p"));
    index.apply_pod(small("q"));
    assert_eq!(index.apply_pod(bound(small("p"), "n")), Change::Life);
    assert_eq!(index.apply_pod(bound(small("q"), "n")), Change::Room);
    let daemon = Pod { role: PodRole::DaemonSet, ..bound(small("d"), "n") };
    assert_eq!(index.apply_pod(daemon), Change::Life);
}

#[test]
fn nodes_wake_the_planner_only_when_they_are_open() {
    let mut index = ClusterIndex::new();
    let cordoned = Node { cordoned_until_initialized: true, cordoned: true, ..claimed_node() };
    assert_eq!(index.apply_node(cordoned.clone()), Change::Life);
    assert_eq!(index.apply_node(cordoned), Change::None);
    assert_eq!(index.apply_node(claimed_node()), Change::Room);
    assert_eq!(index.delete_node("n"), Change::Room);
}

#[test]
fn a_relist_drops_what_is_gone_and_says_what_changed_most() {
    let mut index = ClusterIndex::new();
    index.reset_pods([small("a"), small("b")]);
    assert_eq!(index.reset_pods([small("b"), small("a")]), Change::None);
    assert_eq!(index.reset_pods([small("b")]), Change::Life);
    assert_eq!(index.reset_pods([small("b"), small("c")]), Change::Demand);
    assert_eq!(index.snapshot().pods.len(), 2);
    index.reset_nodes([node("n", capacity(1, 1, 0))]);
    assert_eq!(index.reset_nodes([]), Change::Room);
    assert!(index.snapshot().nodes.is_empty());
}

#[test]
fn a_claim_we_wrote_outlives_a_list_that_was_read_before() {
    let mut index = ClusterIndex::new();
    assert_eq!(index.expect_claim(claim(), at(0)), Change::Life);
    index.reset_claims([], at(30));
    assert_eq!(index.snapshot().claims.len(), 1, "the list may be older than the write");
    index.reset_claims([], at(60));
    assert_eq!(index.snapshot().claims.len(), 0, "after a minute lists are believed");
}

#[test]
fn once_a_watch_has_shown_a_claim_lists_are_believed_at_once() {
    let mut index = ClusterIndex::new();
    index.expect_claim(claim(), at(0));
    assert_eq!(index.apply_claim(launched(claim())), Change::Life);
    assert_eq!(index.expect_claim(claim(), at(1)), Change::None, "the watch was faster: its word stays");
    assert!(index.snapshot().claims[&ClaimName("c".into())].launched.is_some());
    assert_eq!(index.reset_claims([], at(2)), Change::Room);
    index.expect_claim(claim(), at(3));
    assert_eq!(index.delete_claim(&ClaimName("c".into())), Change::Room);
    index.reset_claims([], at(4));
    assert!(index.snapshot().claims.is_empty());
}

#[test]
fn a_launch_wakes_the_planner_if_a_limit_counted_a_dearer_alternative_before() {
    let launches_after = |last: &Plan, pool: Pool| {
        let mut index = ClusterIndex::new();
        index.apply_pool(pool);
        index.set_held_by_limits(last);
        let mut claim = claim();
        let (offering, price) = (id("g6.xlarge", "a"), Some(usd("1.10")));
        claim.offerings.push(RankedOffering { offering, price, allocatable: capacity(4, 16, 1) });
        index.apply_claim(claim.clone());
        index.apply_claim(launched(claim))
    };
    let limits = PoolLimits { usd_per_hour: Some(usd("5")), ..PoolLimits::default() };
    let nothing = Plan::default();
    assert_eq!(launches_after(&nothing, Pool { limits: limits.clone(), ..pool("gpu") }), Change::Room);
    assert_eq!(launches_after(&nothing, pool("gpu")), Change::Life);
    let default = PlanOptions { default_usd_per_hour: limits.usd_per_hour, ..PlanOptions::default() };
    let over_all = PlanOptions { limits, ..PlanOptions::default() };
    let waiting = with(cluster(aws(), [pool("gpu")]), ["a", "b", "c", "d", "e"].map(small));
    for (options, change) in
        [(default, Change::Room), (over_all, Change::Room), (PlanOptions::default(), Change::Life)]
    {
        let last = plan(&waiting, at(10), &options, &mut NeverStop);
        assert_eq!(launches_after(&last, pool("gpu")), change, "{:?}", last.unplaced);
    }
}

#[test]
fn pods_of_a_deleted_claim_become_demand_again() {
    let mut index = ClusterIndex::new();
    index.apply_claim(claim());
    assert_eq!(index.apply_claim(Claim { deleting_since: Some(at(1)), ..claim() }), Change::Room);
}

#[test]
fn rules_and_offers_wake_the_planner_when_they_change() {
    let mut index = ClusterIndex::new();
    assert_eq!(index.apply_pool(pool("gpu")), Change::Room);
    assert_eq!(index.apply_pool(pool("gpu")), Change::None);
    assert_eq!(index.delete_pool(&PoolName("gpu".into())), Change::Room);
    assert_eq!(index.set_catalogue(node_class(), Ok(Arc::new(aws()))), Change::Room);
    assert_eq!(index.set_catalogue(node_class(), Ok(Arc::new(aws()))), Change::None);
    assert_eq!(index.set_catalogue(node_class(), Err("no".into())), Change::Room);
    assert_eq!(index.reset_catalogues([]), Change::Room);
    let held = BTreeMap::from([((node_class(), id("g5.xlarge", "a")), at(60))]);
    assert_eq!(index.set_held_back(held.clone()), Change::Room);
    assert_eq!(index.set_held_back(held), Change::None);
    let agent = DaemonSet { key: object_key("agent"), labels: BTreeMap::new(), spec: PodSpec::default() };
    assert_eq!(index.apply_daemonset(agent.clone()), Change::Room);
    assert_eq!(index.reset_daemonsets([agent]), Change::None);
    assert_eq!(index.delete_daemonset(&object_key("agent")), Change::Room);
}

#[test]
fn other_labels_of_a_waiting_pod_are_another_demand() {
    let mut index = ClusterIndex::new();
    let waits = pod("a", requests(1, 1, 0));
    index.apply_pod(waits.clone());
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    assert_eq!(
        index.apply_pod(Pod { labels: labels.into(), ..waits }),
        Change::Demand,
        "rules of others may choose it now"
    );
}

#[test]
fn a_reservation_that_is_lifted_gives_the_planner_no_room_that_it_did_not_see() {
    let mut index = ClusterIndex::new();
    let reserved = Node { taints: vec![taint(RESERVED_TAINT, "c")], ..claimed_node() };
    assert_eq!(index.apply_node(reserved), Change::Room);
    assert_eq!(index.apply_node(claimed_node()), Change::Life);
    assert_eq!(index.view().nodes["n"].taints, []);
    assert_eq!(index.apply_node(Node { taints: vec![taint("team", "a")], ..claimed_node() }), Change::Room);
}
