//! Tests of the invariants that a cluster breaks.

use std::collections::BTreeSet;

use poolwright_catalog::ResourceName;
use poolwright_core::plan::PlanOptions;
use poolwright_core::why::{Broken, broken};
use poolwright_core::*;
use poolwright_terms::ConditionType;
use poolwright_terms::keys::{DISRUPTED_TAINT, RESERVED_TAINT};

use crate::kit::*;

/// Later than the controller and the clouds may take to agree.
const LATE: i64 = 1_000;

/// Returns the names of what is broken.
fn names(snapshot: &Snapshot, options: &PlanOptions, seconds: i64) -> Vec<&'static str> {
    let kinds = BTreeSet::from(["KwokNodeClass"]);
    broken(snapshot, options, &kinds, at(seconds)).iter().map(Broken::name).collect()
}

fn is_broken(snapshot: &Snapshot, seconds: i64) -> Vec<&'static str> {
    names(snapshot, &PlanOptions::default(), seconds)
}

fn instance(provider_id: &str, uid: &str) -> ListedInstance {
    ListedInstance {
        provider_id: provider_id.into(),
        claim_uid: Uid(uid.into()),
        node_class: node_class(),
        launched: at(0),
    }
}

/// Returns a cluster with one open node, whose instance is listed.
fn whole(pool: Pool) -> Snapshot {
    let mut snapshot = with(with(cluster(aws(), [pool]), [initialized()]), [claimed_node()]);
    snapshot.instances = Some(listing(at(0), [instance("kwok://c", "uid-c")]));
    snapshot
}

#[test]
fn a_cluster_whose_parts_agree_breaks_nothing() {
    assert_eq!(is_broken(&whole(pool("gpu")), LATE), [""; 0]);
    let unlisted = Snapshot { instances: None, ..whole(pool("gpu")) };
    assert_eq!(is_broken(&unlisted, LATE), [""; 0], "nothing is known about instances yet");
}

#[test]
fn claims_and_instances_without_each_other_are_broken_after_a_while() {
    let mut snapshot = whole(pool("gpu"));
    let listed_at = |seconds| Some(listing(at(seconds), [instance("kwok://lost", "uid-lost")]));
    snapshot.instances = listed_at(300);
    assert_eq!(is_broken(&snapshot, 300), [""; 0], "it may still be under way");
    assert_eq!(is_broken(&snapshot, LATE), ["instance-without-claim"], "an old listing lacks new instances");
    snapshot.instances = listed_at(LATE);
    assert_eq!(is_broken(&snapshot, LATE), ["claim-without-instance", "instance-without-claim"]);
    let none = BTreeSet::new();
    let others = broken(&snapshot, &PlanOptions::default(), &none, at(LATE));
    assert_eq!(others.len(), 1, "the instances of another kind of node class are not listed");
    let ends = true_since(initialized(), ConditionType::InstanceTerminating, 40);
    assert_eq!(is_broken(&with(snapshot, [ends]), LATE), ["instance-without-claim"]);
}

#[test]
fn a_node_that_is_closed_without_a_reason_or_lacks_a_gpu_is_broken() {
    let node = |change: fn(&mut Node)| {
        let mut node = claimed_node();
        change(&mut node);
        is_broken(&with(whole(pool("gpu")), [node]), LATE)
    };
    assert_eq!(node(|node| node.taints = vec![taint(DISRUPTED_TAINT, "")]), ["closed-node"]);
    assert_eq!(node(|node| node.taints = vec![taint(RESERVED_TAINT, "c")]), ["closed-node"]);
    assert_eq!(node(|node| node.allocatable = capacity(4, 16, 0)), ["lacking-node"]);
    let leaves = true_since(initialized(), ConditionType::Disrupting, 40);
    let closed = Node { taints: vec![taint(DISRUPTED_TAINT, "")], ..claimed_node() };
    assert_eq!(is_broken(&with(with(whole(pool("gpu")), [leaves]), [closed]), LATE), [""; 0]);
}

#[test]
fn limits_on_money_nodes_and_gpus_of_a_pool_and_of_all_pools_are_broken_when_they_are_exceeded() {
    let limits = |dollars: &str, nodes: u64, gpus: u64| PoolLimits {
        resources: [(ResourceName::new(ResourceName::NVIDIA_GPU), gpus)].into(),
        nodes: Some(nodes),
        usd_per_hour: Some(usd(dollars)),
    };
    let of = |limits: PoolLimits| is_broken(&whole(Pool { limits, ..pool("gpu") }), LATE);
    assert_eq!(of(limits("1.006", 1, 1)), [""; 0]);
    assert_eq!(of(limits("1", 0, 0)), ["pool-limit"; 3]);
    let options = PlanOptions { limits: limits("1", 1, 0), ..PlanOptions::default() };
    assert_eq!(names(&whole(pool("gpu")), &options, LATE), ["pool-limit"; 2]);
    let snapshot = whole(pool("gpu"));
    let options = PlanOptions { default_usd_per_hour: Some(usd("1")), ..PlanOptions::default() };
    let all = broken(&snapshot, &options, &BTreeSet::new(), at(LATE));
    let [Broken::PoolLimit { pool: Some(of), exceeded }] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((of.name.0.as_str(), exceeded.is_default), ("gpu", true));
    assert_eq!((exceeded.name.as_str(), exceeded.used.as_str()), ("usdPerHour", "$1.01/h"));
}

#[test]
fn the_limit_of_a_namespace_is_broken_by_the_pods_on_nodes() {
    let snapshot = with(whole(pool("gpu")), [bound(pod("p", requests(1, 1, 1)), "n")]);
    let with_limit = |gpus: u64| PlanOptions {
        namespace_limits: [(NamespaceLimit::Gpus, gpus * 1000)].into(),
        ..PlanOptions::default()
    };
    assert_eq!(names(&snapshot, &with_limit(1), LATE), [""; 0]);
    assert_eq!(names(&snapshot, &with_limit(0), LATE), ["namespace-limit"]);
}
