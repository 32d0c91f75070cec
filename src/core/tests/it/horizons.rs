//! Tests of costs over time: pods go where they postpone the end of nodes least, and nodes retire whose end newcomers would
//! postpone.

use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_catalog::RankedOffering;
use poolwright_core::plan::{Plan, PlanOptions, Sharing, Solve, Target, plan};
use poolwright_core::*;
use poolwright_solver::NeverStop;
use poolwright_terms::keys::RESERVED_TAINT;

use crate::kit::*;

pub fn c() -> ClaimName {
    ClaimName("c".into())
}

/// A pod that says how long it runs.
pub fn lasting(pod: Pod, hours: i64) -> Pod {
    let expected = Some(SignedDuration::from_hours(hours));
    Pod { duration: PodDuration { expected, ..pod.duration }, ..pod }
}

/// A node with four GPUs for $5.67/h, with one pod that runs for this long. Free room is for three pods with a GPU.
fn scene(hours: i64, reserved: bool) -> Snapshot {
    let big = RankedOffering {
        offering: id("g5.12xlarge", "a"),
        price: Some(usd("5.672")),
        allocatable: capacity(48, 192, 4),
    };
    let claim = Claim { offerings: vec![big.clone()], ..claim() };
    let claim = true_since(launched(claim), poolwright_terms::ConditionType::Initialized, 30);
    let claim = Claim { node_name: Some("n".into()), planned_pods: vec![], ..claim };
    let taints = if reserved { vec![taint(RESERVED_TAINT, "c")] } else { vec![] };
    let node = Node { allocatable: big.allocatable, taints, ..claimed_node() };
    let there = bound(lasting(pod("there", requests(4, 16, 1)), hours), "n");
    let there = Pod { duration: PodDuration { started: Some(at(0)), ..there.duration }, ..there };
    let mut snapshot = with(with(with(cluster(aws(), [pool("gpu")]), [claim]), [node]), [there]);
    snapshot.lives = Arc::new(Lives::prior());
    snapshot
}

pub fn newcomer(hours: i64) -> Pod {
    lasting(pod("new", requests(2, 8, 1)), hours)
}

/// Returns whether the newcomer goes to the node that is there.
pub fn joins(plan: &Plan) -> bool {
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    assert_eq!(plan.claims.len() + plan.placements.len(), 1, "{plan:?}");
    plan.placements.first().is_some_and(|placement| placement.target == Target::Claim(c()))
}

#[test]
fn a_pod_that_ends_before_the_others_joins_them() {
    assert!(joins(&planned_at(&with(scene(100, true), [newcomer(1)]), 60)));
}

#[test]
fn a_pod_that_would_keep_an_expensive_node_for_itself_gets_its_own() {
    let plan = planned_at(&with(scene(1, true), [newcomer(100)]), 60);
    assert!(!joins(&plan));
    assert_eq!(bought(&plan), ["g5.xlarge: new"]);
}

#[test]
fn room_that_the_scheduler_fills_anyway_is_used_first() {
    assert!(joins(&planned_at(&with(scene(1, false), [newcomer(100)]), 60)), "buying would pay twice");
}

#[test]
fn without_any_knowledge_of_lives_free_room_costs_nothing() {
    let mut snapshot = with(scene(1, true), [newcomer(100)]);
    snapshot.lives = Arc::default();
    let plan = planned_at(&snapshot, 60);
    assert!(joins(&plan));
    assert!(plan.retirements.claims.is_empty() && plan.over_time.is_none());
}

#[test]
fn a_pod_that_nothing_on_sale_fits_joins_however_long_it_keeps_the_node() {
    let mut snapshot = with(scene(1, true), [newcomer(100)]);
    let no_money = Pool {
        limits: PoolLimits { usd_per_hour: Some(usd("5.7")), ..PoolLimits::default() },
        ..pool("gpu")
    };
    snapshot.pools.insert(PoolName("gpu".into()), Arc::new(no_money));
    assert!(joins(&planned_at(&snapshot, 60)), "a closed node is never the reason that a pod waits");
}

#[test]
fn a_node_retires_if_recent_pods_would_run_cheaper_elsewhere() {
    let plan = planned_at(&with(scene(1, false), [bound(newcomer(100), "other")]), 60);
    let retirement = plan.retirements.claims.get(&c()).expect("it retires");
    assert_eq!(retirement.newcomer, key("new"));
    assert!(retirement.here > retirement.elsewhere, "{retirement:?}");
}

#[test]
fn a_node_is_open_if_its_pods_outlive_newcomers() {
    let plan = planned_at(&with(scene(500, false), [bound(newcomer(1), "other")]), 60);
    assert!(plan.retirements.claims.is_empty(), "{:?}", plan.retirements);
}

#[test]
fn nodes_that_are_kept_anyway_and_those_of_a_pool_that_says_so_never_retire() {
    for kept in [
        Pool { replicas: Some(1), ..pool("gpu") },
        Pool { scale_to_zero: ScaleToZero::Never, ..pool("gpu") },
        Pool { disruption: Disruption { retires: false, ..Disruption::default() }, ..pool("gpu") },
    ] {
        let mut snapshot = with(scene(1, false), [bound(newcomer(100), "other")]);
        snapshot.pools.insert(kept.name.clone(), Arc::new(kept));
        assert!(planned_at(&snapshot, 60).retirements.claims.is_empty());
    }
}

#[test]
fn pods_that_live_equally_long_are_planned_by_the_price_of_the_moment() {
    let pods = || (0..9).map(|number| pod(&format!("p{number}"), requests(2, 8, 1)));
    let unknown = with(cluster(aws(), [pool("gpu")]), pods());
    let mut known = unknown.clone();
    known.lives = Arc::new(Lives::prior());
    let (unknown, known) = (planned_at(&unknown, 60), planned_at(&known, 60));
    assert_eq!((known.claims, known.cost, known.bound), (unknown.claims, unknown.cost, unknown.bound));
}

/// Plans for four pods with a GPU, and one that runs for 100 hours. A node with four GPUs costs less than four nodes with one.
fn plan_for_four(change: impl Fn(Pod) -> Pod) -> Plan {
    planned_at(&four_and_a_long_one(change), 60)
}

fn four_and_a_long_one(change: impl Fn(Pod) -> Pod) -> Snapshot {
    let kinds = vec![
        Kind("small", capacity(4, 16, 1), Some("a10g"), &[("a", "1.00")]),
        Kind("large", capacity(16, 64, 4), Some("a10g"), &[("a", "3.60")]),
    ];
    let pods = (0..4).map(|number| change(pod(&format!("p{number}"), requests(2, 8, 1))));
    let long = lasting(pod("long", requests(2, 8, 1)), 100);
    let mut snapshot = with(cluster(catalogue(kinds), [pool("gpu")]), pods.chain([long]));
    snapshot.lives = Arc::new(Lives::prior());
    snapshot
}

/// Returns the explanations for all classes of pods in the solver calls of a plan.
fn explanations(snapshot: &Snapshot) -> Vec<String> {
    let options = PlanOptions { keep_solves: true, ..PlanOptions::default() };
    let plan = plan(snapshot, at(60), &options, &mut NeverStop);
    let of = |solve: &Solve| -> Vec<String> {
        assert!(solve.is_over_time);
        let all =
            (0..solve.pods.len()).map(|class| solve.explain(class).expect("an explanation").to_string());
        all.collect()
    };
    plan.solves.iter().flat_map(of).collect()
}

#[test]
fn an_explanation_has_the_prices_of_this_moment_and_names_each_kind_of_node_once() {
    let told = explanations(&four_and_a_long_one(|pod| pod));
    assert!(told.len() > 1, "{told:?}");
    for told in told {
        // Over time, the nodes of the four pods cost much less than that of the long one.
        assert!(told.contains(" at $1.00/h"), "{told}");
        assert!(!told.contains("not allowed"), "{told}");
        for kind in ["gpu: small", "gpu: large"] {
            assert_eq!(told.matches(kind).count(), 1, "{told}");
        }
    }
}

#[test]
fn an_explanation_calls_no_existing_node_new() {
    let told = explanations(&with(scene(100, true), [newcomer(1)])).join("");
    assert!(told.contains("  1 pod on existing node `c`\n"), "{told}");
    assert!(!told.contains(" new "), "{told}");
}

#[test]
fn pods_whose_ends_are_uncertain_share_no_node_that_the_last_of_them_would_keep() {
    let plan = plan_for_four(|pod| pod);
    let expected = ["small: long", "small: p0", "small: p1", "small: p2", "small: p3"];
    assert_eq!(bought(&plan), expected);
    assert!(plan.gap() < 0.01, "{}", plan.gap());
}

#[test]
fn pods_that_surely_end_together_share_a_node_by_its_price() {
    // A pod that its controller keeps running ends at its deadline, and not before.
    let until = Some(SignedDuration::from_hours(6));
    let sure = |pod: Pod| {
        let duration = PodDuration { is_service: true, deadline: until, ..pod.duration };
        Pod { duration, ..pod }
    };
    assert_eq!(bought(&plan_for_four(sure)), ["large: p0 p1 p2 p3", "small: long"]);
}

#[test]
fn pods_of_one_controller_or_gang_share_a_node_although_their_end_is_uncertain() {
    let of_one_job = |pod: Pod| Pod { owner: Some(Uid("job".into())), ..pod };
    assert_eq!(bought(&plan_for_four(of_one_job)), ["large: p0 p1 p2 p3", "small: long"]);
    let mut gang = four_and_a_long_one(|pod| Pod { group: Some("gang".into()), ..pod });
    let (key, uid) = (object_key("gang"), Uid("group-gang".into()));
    let group = PodGroup {
        key,
        uid,
        min_count: Some(4),
        roles: vec![],
        unmodelled: vec![],
        stands_for: None,
        held: None,
    };
    gang.pod_groups.insert(group.key.clone(), group.into());
    assert_eq!(bought(&planned_at(&gang, 60)), ["large: p0 p1 p2 p3", "small: long"]);
}

#[test]
fn the_cost_over_time_has_a_bound_of_its_own() {
    let plan = planned_at(&with(scene(1, true), [newcomer(100)]), 60);
    let over_time = plan.over_time.expect("the plan weighs time");
    assert!(
        over_time.bound <= over_time.cost && over_time.cost > poolwright_catalog::Usd(0),
        "{over_time:?}"
    );
    assert!(plan.gap() < 0.01, "{}", plan.gap());
}

/// The scene in which the node retires: it runs for one more hour, and the last pod that came runs for 100.
fn retiring_scene() -> Snapshot {
    with(scene(1, false), [bound(newcomer(100), "other")])
}

pub fn retires(snapshot: &Snapshot) -> bool {
    !planned_at(snapshot, 60).retirements.claims.is_empty()
}

pub fn with_limits(mut snapshot: Snapshot, limits: PoolLimits) -> Snapshot {
    snapshot.pools.insert(PoolName("gpu".into()), Arc::new(Pool { limits, ..pool("gpu") }));
    snapshot
}

#[test]
fn a_pod_that_may_share_gpus_joins_if_a_limit_lets_nothing_be_bought_for_it() {
    let limits = PoolLimits { usd_per_hour: Some(usd("5.7")), ..PoolLimits::default() };
    let snapshot = with_limits(with(scene(1, true), [newcomer(100)]), limits);
    let options = PlanOptions { sharing: Sharing::Shared, ..PlanOptions::default() };
    assert!(joins(&plan(&snapshot, at(60), &options, &mut NeverStop)));
}

#[test]
fn a_pod_joins_if_all_other_offerings_are_held_back() {
    let mut snapshot = with(scene(1, true), [newcomer(100)]);
    for (kind, zone) in [("g5.xlarge", "a"), ("g5.xlarge", "b"), ("g5.12xlarge", "a"), ("g6.xlarge", "a")] {
        snapshot.held_back.insert((node_class(), id(kind, zone)), at(600));
    }
    assert!(joins(&planned_at(&snapshot, 60)));
}

#[test]
fn a_pod_whose_own_node_starts_late_joins_a_retiring_node() {
    let snapshot = with(scene(1, true), [newcomer(100)]);
    let plan = planned_at(&snapshot, 60);
    assert!(!joins(&plan));
    let mut snapshot = carried_out(&snapshot, &plan, 60);
    let claim = (**snapshot.claims.get(&c()).expect("the node's claim")).clone();
    snapshot = with(snapshot, [true_since(claim, poolwright_terms::ConditionType::Retiring, 40)]);
    let target = |seconds| planned_at(&snapshot, seconds).placements[0].target.clone();
    assert_ne!(target(360), Target::Claim(c()), "it is usual to wait this long");
    assert_eq!(target(361), Target::Claim(c()));
    assert_ne!(target(-1000), Target::Claim(c()), "after the clock was set back");
    let own = (**snapshot.claims.get(&plan.claims[0].name).expect("it was bought")).clone();
    let opened = with(snapshot, [true_since(own, poolwright_terms::ConditionType::Initialized, 350)]);
    assert_ne!(planned_at(&opened, 361).placements[0].target, Target::Claim(c()), "its own node is open");
}

#[test]
fn a_node_is_open_while_no_node_can_be_bought_for_the_next_pod() {
    assert!(retires(&retiring_scene()));
    let mut out_of_stock = retiring_scene();
    for (kind, zone) in [("g5.xlarge", "a"), ("g5.xlarge", "b"), ("g5.12xlarge", "a"), ("g6.xlarge", "a")] {
        out_of_stock.held_back.insert((node_class(), id(kind, zone)), at(600));
    }
    assert!(!retires(&out_of_stock));
    let few = PoolLimits { nodes: Some(1), ..PoolLimits::default() };
    assert!(!retires(&with_limits(retiring_scene(), few)));
    let money = PoolLimits { usd_per_hour: Some(usd("6.5")), ..PoolLimits::default() };
    assert!(!retires(&with_limits(retiring_scene(), money)));
    let enough = PoolLimits { usd_per_hour: Some(usd("6.7")), ..PoolLimits::default() };
    assert!(retires(&with_limits(retiring_scene(), enough)));
}

#[test]
fn a_stock_out_opens_a_retiring_node_within_a_minute() {
    let mut snapshot = retiring_scene();
    snapshot.retirements = planned_at(&snapshot, 60).retirements;
    assert!(!snapshot.retirements.claims.is_empty());
    for (kind, zone) in [("g5.xlarge", "a"), ("g5.xlarge", "b"), ("g5.12xlarge", "a"), ("g6.xlarge", "a")] {
        snapshot.held_back.insert((node_class(), id(kind, zone)), at(600));
    }
    assert!(planned_at(&snapshot, 100).retirements.claims.is_empty(), "prices of before do not count");
}

#[test]
fn a_pods_own_node_is_the_cheapest_that_can_be_bought_in_each_pool_that_admits_it() {
    let mut of_team = Pod { uid: Uid("of-team".into()), key: key("of-team"), ..newcomer(100) };
    of_team.spec.node_selector.insert("team".into(), "x".into());
    let mut snapshot = with(retiring_scene(), [bound(of_team.clone(), "other")]);
    let labels = [("team".to_owned(), "x".to_owned())].into();
    snapshot.pools.insert(PoolName("x".into()), Arc::new(Pool { labels, ..pool("x") }));
    let own = |snapshot: &Snapshot, of: &Pod| {
        let prices = planned_at(snapshot, 60).retirements.prices.by_spec[&*of.spec].clone();
        prices.into_iter().map(|(pool, price)| format!("{pool} {price}")).collect::<Vec<_>>()
    };
    assert_eq!(own(&snapshot, &newcomer(100)), ["gpu 1.006", "x 1.006"]);
    assert_eq!(own(&snapshot, &of_team), ["x 1.006"]);
    for zone in ["a", "b"] {
        snapshot.held_back.insert((node_class(), id("g5.xlarge", zone)), at(600));
    }
    assert_eq!(own(&snapshot, &of_team), ["x 1.10"]);
    let limits = PoolLimits { usd_per_hour: Some(usd("5.7")), ..PoolLimits::default() };
    let snapshot = with_limits(snapshot, limits);
    assert_eq!(own(&snapshot, &newcomer(100)), ["x 1.10"], "a limit lets the other pool buy nothing");
}

#[test]
fn a_node_is_open_while_a_pod_waits_that_only_the_scheduler_can_place() {
    let theirs = Pod { scheduler: "another".into(), ..newcomer(100) };
    let unlike = Pod { uid: Uid("unlike".into()), key: key("unlike"), ..theirs.clone() };
    assert!(!retires(&with(retiring_scene(), [unlike])));
    let low = Pod { priority: -5, key: key("low"), ..newcomer(100) };
    let snapshot = with(retiring_scene(), [low]);
    let options = PlanOptions { min_priority: Some(0), ..PlanOptions::default() };
    assert!(plan(&snapshot, at(60), &options, &mut NeverStop).retirements.claims.is_empty());
    let large = Pod { key: key("large"), spec: pod("large", requests(2, 8, 4)).spec, ..theirs };
    assert!(retires(&with(retiring_scene(), [large])), "there is no room for it");
    let gated = Pod { phase: PodPhase::Gated, key: key("gated"), ..newcomer(100) };
    assert!(retires(&with(retiring_scene(), [gated])), "it does not wait for room");
}

#[test]
fn a_node_is_open_until_the_daemons_are_there_that_its_closing_would_keep_out() {
    let daemon = |name: &str, tolerations| DaemonSet {
        key: object_key(name),
        labels: std::collections::BTreeMap::new(),
        spec: PodSpec { tolerations, requests: requests(1, 1, 0), ..PodSpec::default() },
    };
    assert!(!retires(&with(retiring_scene(), [daemon("agent", vec![])])));
    assert!(retires(&with(retiring_scene(), [daemon("agent", vec![tolerate(RESERVED_TAINT)])])));
    let there = Pod { role: PodRole::DaemonSet, ..bound(pod("agent-abcde", requests(1, 1, 0)), "n") };
    assert!(retires(&with(with(retiring_scene(), [daemon("agent", vec![])]), [there])));
}
