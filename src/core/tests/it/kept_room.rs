//! Tests of kept room: room on expensive nodes stays free for pods without a cheaper home, and no pod waits because of that.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_catalog::{Catalogue, RankedOffering};
use poolwright_core::plan::{CostRule, Plan, PlanOptions, Solve, plan};
use poolwright_core::*;
use poolwright_solver::NeverStop;
use poolwright_terms::keys::RESERVED_TAINT;
use poolwright_terms::labels::{INSTANCE_TYPE, ZONE};

use crate::horizons::{c, joins, lasting, newcomer, retires, with_limits};
use crate::kit::*;

/// An expensive node with eight GPUs, and a cheap one with one.
fn scarce() -> Catalogue {
    catalogue(vec![
        Kind("p3dn", capacity(96, 768, 8), Some("v100"), &[("a", "31.20")]),
        Kind("g4dn", capacity(4, 16, 1), Some("t4"), &[("a", "0.50")]),
    ])
}

/// What is known after a hundred pods have ended.
fn learned() -> Arc<Lives> {
    let mut lives = Lives::prior();
    for _ in 0..100 {
        lives.observe(&["1 GPUs".to_owned()], SignedDuration::from_hours(1), true, at(0));
    }
    lives.refresh(std::iter::empty(), at(0));
    Arc::new(lives)
}

/// A pod that needs the expensive node.
fn captive(name: &str) -> Pod {
    let mut pod = lasting(pod(name, requests(12, 64, 1)), 100);
    pod.spec.node_selector.insert(INSTANCE_TYPE.into(), "p3dn".into());
    pod
}

/// Two pods that need the expensive node, and so many that run on any.
fn with_captives(snapshot: Snapshot, others: usize) -> Snapshot {
    let others = (0..others).map(|number| lasting(pod(&format!("any-{number}"), requests(2, 8, 1)), 100));
    let mut snapshot = with(snapshot, [captive("v-0"), captive("v-1")]);
    snapshot.lives = learned();
    with(snapshot, others)
}

fn beside_captives(others: usize) -> Snapshot {
    with_captives(cluster(scarce(), [pool("gpu")]), others)
}

/// Adds an expensive node for the claim of this name, with so many pods that need it for long.
fn with_expensive_node(
    snapshot: Snapshot,
    (name, zone): (&str, &str),
    captives: usize,
    reserved: bool,
) -> Snapshot {
    let big = RankedOffering {
        offering: id("p3dn", zone),
        price: Some(usd("31.20")),
        allocatable: capacity(96, 768, 8),
    };
    let claim = Claim { offerings: vec![big.clone()], name: ClaimName(name.into()), ..claim() };
    let claim = Claim { uid: Uid(name.into()), node_name: Some(name.into()), planned_pods: vec![], ..claim };
    let claim = true_since(launched(claim), poolwright_terms::ConditionType::Initialized, 30);
    let taints = if reserved { vec![taint(RESERVED_TAINT, name)] } else { vec![] };
    let provider_id = Some(format!("kwok://{name}"));
    let mut node = Node { provider_id, taints, ..node(name, big.allocatable) };
    node.labels.insert(INSTANCE_TYPE.into(), "p3dn".into());
    node.labels.insert(ZONE.into(), zone.into());
    let there = (0..captives).map(|number| {
        let labels = BTreeMap::from([("app".to_owned(), name.to_owned())]);
        Pod { labels: labels.into(), ..bound(lasting(captive(&format!("{name}-{number}")), 2_000), name) }
    });
    let mut snapshot = with(with(with(snapshot, [claim]), [node]), there);
    snapshot.lives = learned();
    snapshot
}

/// An expensive node with six pods that need it for long, and room for two more.
fn nearly_full(reserved: bool) -> Snapshot {
    with_expensive_node(cluster(scarce(), [pool("gpu")]), ("c", "a"), 6, reserved)
}

/// The number of pods on each expensive node that a plan buys.
fn expensive(plan: &Plan) -> Vec<usize> {
    bought(plan)
        .iter()
        .filter(|node| node.starts_with("p3dn"))
        .map(|node| node.split(' ').count() - 1)
        .collect()
}

/// The rules of a plan, with what each costs.
fn rules(plan: &Plan) -> Vec<(CostRule, Option<poolwright_catalog::UsdPerHour>)> {
    plan.rules.iter().map(|of| (of.rule, of.cost)).collect()
}

/// The pods that a plan leaves out.
fn left_out(plan: &Plan) -> Vec<String> {
    plan.unplaced.iter().map(|left| left.pod.name().into_owned()).collect()
}

#[test]
fn room_on_an_expensive_node_stays_free_for_as_many_pods_as_need_it() {
    let plan = planned_at(&beside_captives(6), 60);
    assert_eq!(
        (expensive(&plan), plan.claims.len()),
        (vec![2], 7),
        "six pods do not fit beside the kept room"
    );
    assert_eq!(rules(&plan), [(CostRule::KeptRoom, Some(usd("3.00")))], "what it costs now is told");
    let plan = planned_at(&beside_captives(4), 60);
    assert_eq!((expensive(&plan), plan.claims.len()), (vec![6], 1), "room for two more pods is left");
    assert!(plan.rules.is_empty(), "{:?}", plan.rules);
}

#[test]
fn without_history_no_room_is_kept() {
    for lives in [Lives::prior(), Lives::default()] {
        let mut snapshot = beside_captives(6);
        snapshot.lives = Arc::new(lives);
        assert_eq!(expensive(&planned_at(&snapshot, 60)), [8]);
    }
}

#[test]
fn pods_without_another_home_are_never_kept_off() {
    let mut out_of_stock = beside_captives(6);
    out_of_stock.held_back.insert((node_class(), id("g4dn", "a")), at(600));
    assert_eq!(expensive(&planned_at(&out_of_stock, 60)), [8]);
    let money = PoolLimits { usd_per_hour: Some(usd("31.60")), ..PoolLimits::default() };
    let plan = planned_at(&with_limits(beside_captives(6), money), 60);
    assert!(plan.unplaced.is_empty(), "no pod waits because of kept room: {:?}", plan.unplaced);
    assert_eq!(expensive(&plan), [8]);
}

#[test]
fn no_room_is_kept_if_a_limit_then_leaves_pods_out() {
    let money = PoolLimits { usd_per_hour: Some(usd("32.80")), ..PoolLimits::default() };
    let plan = planned_at(&with_limits(beside_captives(6), money), 60);
    assert!(plan.unplaced.is_empty(), "three of them would wait: {:?}", plan.unplaced);
    assert_eq!((expensive(&plan), rules(&plan)), (vec![8], vec![]));
}

#[test]
fn no_gang_is_left_out_because_of_kept_room() {
    let money = PoolLimits { usd_per_hour: Some(usd("32.80")), ..PoolLimits::default() };
    let gang = PodGroup {
        key: object_key("team"),
        uid: Uid("group-team".into()),
        min_count: Some(6),
        roles: vec![],
        unmodelled: vec![],
        stands_for: None,
        held: None,
    };
    let members = (0..6).map(|number| {
        let any = lasting(pod(&format!("any-{number}"), requests(2, 8, 1)), 100);
        Pod { group: Some("team".into()), ..any }
    });
    let snapshot = with(with(with_limits(beside_captives(0), money), [gang]), members);
    let plan = planned_at(&snapshot, 60);
    assert!(plan.unplaced.is_empty(), "with kept room, three of them have no node: {:?}", plan.unplaced);
    assert_eq!(expensive(&plan), [8]);
}

#[test]
fn room_is_kept_beside_pods_that_wait_in_any_case() {
    let huge = lasting(pod("huge", requests(2, 8, 16)), 100);
    let plan = planned_at(&with(beside_captives(6), [huge]), 60);
    assert_eq!(left_out(&plan), ["huge"], "no node holds it");
    assert_eq!(expensive(&plan), [2]);
    let team = BTreeMap::from([("team".to_owned(), "x".to_owned())]);
    let limits = PoolLimits { nodes: Some(0), ..PoolLimits::default() };
    let closed = Pool { labels: team.clone(), limits, ..pool("closed") };
    let mut waits = lasting(pod("waits", requests(2, 8, 1)), 100);
    waits.spec.node_selector = team;
    let snapshot = with_captives(cluster(scarce(), [pool("gpu"), closed]), 6);
    let plan = planned_at(&with(snapshot, [waits]), 60);
    assert_eq!(left_out(&plan), ["waits"], "it waits because of another limit");
    assert_eq!(expensive(&plan), [2]);
}

/// Limits what the namespace of the pods may cost per hour.
fn with_namespace_limit(mut snapshot: Snapshot, usd_per_hour: &str) -> Snapshot {
    let most = NamespaceLimit::UsdPerHour.read(usd_per_hour).unwrap();
    let limits = BTreeMap::from([(NamespaceLimit::UsdPerHour, Some(most))]);
    snapshot.put_namespace(Namespace { name: "default".into(), labels: BTreeMap::new(), limits });
    snapshot
}

#[test]
fn no_room_is_kept_while_pods_of_a_namespace_with_limits_wait() {
    let plan = planned_at(&with_namespace_limit(beside_captives(6), "31.60"), 60);
    assert!(plan.unplaced.is_empty(), "no pod waits because of kept room: {:?}", plan.unplaced);
    assert_eq!(expensive(&plan), [8]);
}

#[test]
fn pods_that_find_room_beside_the_kept_one_leave_that_of_other_nodes_to_others() {
    let one = with_expensive_node(cluster(scarce(), [pool("gpu")]), ("n-1", "a"), 3, true);
    let two = with_expensive_node(one, ("n-2", "a"), 3, true);
    let small = (0..2).map(|number| lasting(pod(&format!("small-{number}"), requests(1, 8, 1)), 100));
    let large = (0..2).map(|number| lasting(pod(&format!("large-{number}"), requests(2, 8, 1)), 100));
    let plan = planned_at(&with(two, small.chain(large)), 60);
    assert_eq!((bought(&plan), plan.placements.len()), (vec![], 4), "each node has room for two of them");
}

#[test]
fn room_in_another_zone_than_that_of_the_pods_is_no_room_for_them() {
    let in_two_zones = catalogue(vec![
        Kind("p3dn", capacity(96, 768, 8), Some("v100"), &[("a", "31.20"), ("b", "31.20")]),
        Kind("g4dn", capacity(4, 16, 1), Some("t4"), &[("a", "0.50"), ("b", "0.50")]),
    ]);
    let one = with_expensive_node(cluster(in_two_zones, [pool("gpu")]), ("n-1", "a"), 3, true);
    let two = with_expensive_node(one, ("n-2", "b"), 3, true);
    let near = (0..2).map(|number| {
        let mut pod = lasting(pod(&format!("near-{number}"), requests(2, 8, 1)), 100);
        pod.spec.affinity = vec![PodAffinityTerm {
            topology_key: ZONE.into(),
            namespaces: Namespaces::Named(["default".to_owned()].into()),
            selector: Some(vec![is_in("app", &["n-2"])]),
        }];
        pod
    });
    let plan = planned_at(&with(two, near), 60);
    assert_eq!((bought(&plan), plan.placements.len()), (vec![], 2), "n-2 has room beside the kept one");
}

#[test]
fn the_last_room_of_an_expensive_node_is_for_pods_that_need_it() {
    let plan = planned_at(&with(nearly_full(true), [newcomer(100)]), 60);
    assert!(!joins(&plan));
    assert_eq!(rules(&plan), [(CostRule::KeptRoom, None)]);
    assert!(plan.over_time.is_some(), "so it has no price at this moment");
    assert!(joins(&planned_at(&with(nearly_full(true), [captive("new")]), 60)));
    let mut without_history = with(nearly_full(true), [newcomer(100)]);
    without_history.lives = Arc::new(Lives::prior());
    assert!(joins(&planned_at(&without_history, 60)));
}

#[test]
fn an_expensive_node_retires_while_newcomers_would_take_its_last_room() {
    let with_recent = || with(nearly_full(false), [bound(newcomer(1), "other")]);
    let plan = planned_at(&with_recent(), 60);
    let retirement = plan.retirements.claims.get(&c()).expect("it retires");
    assert!(retirement.displaced > retirement.elsewhere, "{retirement:?}");
    assert!(retirement.to_string().contains("that is kept for pods without a cheaper home"), "{retirement}");
    let mut without_history = with_recent();
    without_history.lives = Arc::new(Lives::prior());
    assert!(!retires(&without_history));
}

#[test]
fn no_node_retires_because_of_kept_room_while_a_plan_keeps_none() {
    let waits = lasting(pod("waits", requests(2, 8, 1)), 1);
    let snapshot = with(nearly_full(false), [bound(newcomer(1), "other"), waits]);
    assert!(retires(&snapshot));
    assert!(!retires(&with_namespace_limit(snapshot, "1000")), "pods of a namespace with limits wait");
}

#[test]
fn an_explanation_says_that_nodes_are_kept_free_and_not_that_the_pods_do_not_allow_them() {
    let options = PlanOptions { keep_solves: true, ..PlanOptions::default() };
    let plan = plan(&beside_captives(6), at(60), &options, &mut NeverStop);
    assert_eq!(expensive(&plan), [2]);
    let class_of = |solve: &Solve| solve.pods.iter().position(|pods| pods.contains(&key("any-0")));
    let mut told = plan.solves.iter().filter_map(|solve| solve.explain(class_of(solve)?));
    let told = told.next().expect("an explanation").to_string();
    assert!(told.contains("kept free for pods without a cheaper home: gpu: p3dn"), "{told}");
    assert!(!told.contains("not allowed"), "{told}");
}

#[test]
fn what_another_rule_costs_is_not_hidden_by_room_that_only_a_plan_without_it_keeps() {
    // With these weights, the expensive node is the first choice of all pods with GPUs, so none is kept off it.
    let of = |name: &str, kind: &str, weight: u32| Pool {
        requirements: vec![is_in(INSTANCE_TYPE, &[kind])],
        weight,
        ..pool(name)
    };
    let catalogue = catalogue(vec![
        Kind("p3dn", capacity(96, 768, 8), Some("v100"), &[("a", "31.20")]),
        Kind("g4dn", capacity(4, 16, 1), Some("t4"), &[("a", "0.50")]),
        Kind("c6", capacity(4, 16, 0), None, &[("a", "0.30")]),
        Kind("c7", capacity(4, 16, 0), None, &[("a", "0.20")]),
    ]);
    let team = BTreeMap::from([("team".to_owned(), "x".to_owned())]);
    let of_team = |one: Pool| Pool { labels: team.clone(), ..one };
    let pools = [
        of("first", "p3dn", 10),
        of("later", "g4dn", 0),
        of_team(of("dear", "c6", 10)),
        of_team(of("cheap", "c7", 0)),
    ];
    let mut light = lasting(pod("light", requests(2, 8, 0)), 100);
    light.spec.node_selector.clone_from(&team);
    let plan = planned_at(&with(with_captives(cluster(catalogue, pools), 6), [light]), 60);
    assert_eq!(expensive(&plan), [8]);
    assert_eq!(rules(&plan), [(CostRule::Weights, Some(usd("0.10")))]);
}
