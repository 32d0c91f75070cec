//! Tests of buffers with `units: auto`: what the index learns from pods, and what plans and the lifecycle make of it.

use jiff::SignedDuration;
use poolwright_core::index::ClusterIndex;
use poolwright_core::*;
use poolwright_terms::ConditionType;
use poolwright_terms::keys::NODEPOOL_LABEL;

use crate::kit::*;

/// When pods have come for long enough.
const LATER: i64 = 7_200;

/// A pool that keeps as many units of one GPU as pay, and nodes without work for 15 seconds.
fn auto() -> Pool {
    let units = Units::Auto { at_most: 4 };
    let buffer = vec![Buffer { units, requests: requests(1, 1, 1), window: None }];
    Pool { buffer, scale_to_zero: ScaleToZero::After(SignedDuration::from_secs(15)), ..pool("gpu") }
}

/// A cluster with this pool, to which a pod of one GPU came each minute.
fn busy(pool: Pool) -> Snapshot {
    let mut arrivals = Arrivals::default();
    for seconds in (0..LATER).step_by(60) {
        let size = pool.buffer[0].size(&pool.name);
        arrivals.came(&size, (at(seconds), at(seconds)), Some(SignedDuration::ZERO), 4);
    }
    Snapshot { arrivals: arrivals.into(), ..cluster(aws(), [pool]) }
}

/// What the plan of a time says about the pool's units.
fn told(snapshot: &Snapshot, seconds: i64) -> String {
    let plan = planned_at(snapshot, seconds);
    let explained = why::pool(snapshot, &plan, &PoolName("gpu".into())).expect("the pool exists").join("\n");
    let [chosen] = plan.pools[&PoolName("gpu".into())].units_chosen.as_slice() else { panic!("{plan:?}") };
    assert!(
        explained.contains(&format!("Poolwright chooses how much room it keeps: {chosen}.")),
        "{explained}"
    );
    chosen.clone()
}

#[test]
fn room_is_bought_for_as_many_units_as_pay_and_for_none_without_history() {
    let snapshot = busy(auto());
    let plan = planned_at(&snapshot, LATER);
    assert_eq!(plan.claims.len(), 2);
    assert!(plan.claims.iter().all(|claim| claim.planned_pods.is_empty()), "pods may have it at once");
    assert_eq!(planned_at(&carried_out(&snapshot, &plan, LATER), LATER + 10).claims, []);
    let said = told(&snapshot, LATER);
    assert!(said.starts_with("spec.buffer[0]: auto asks for 2 units, because 2 or more pods "), "{said}");
    assert_eq!(planned_at(&snapshot, LATER + 3_600).claims, [], "no pod has come for an hour");
    let unknown = cluster(aws(), [auto()]);
    assert_eq!(planned(&unknown).claims, []);
    let said = told(&unknown, 10);
    assert!(
        said.starts_with("spec.buffer[0]: auto keeps 0 units, because nothing is known yet about how often"),
        "{said}"
    );
}

#[test]
fn the_limits_of_the_pool_and_the_pods_that_wait_come_first() {
    let limits = PoolLimits { nodes: Some(1), ..PoolLimits::default() };
    assert_eq!(planned_at(&busy(Pool { limits, ..auto() }), LATER).claims.len(), 1);
    let plan = planned_at(&with(busy(auto()), [pod("p", requests(1, 1, 1))]), LATER);
    assert_eq!(bought(&plan), ["g5.xlarge: p"]);
}

#[test]
fn a_schedule_limits_when_auto_keeps_units() {
    // The test's time begins at 08:00.
    let scheduled = |hour: u32| {
        let schedule = Schedule::parse(&format!("0 {hour} * * *"), "UTC").unwrap();
        let window = Some(Window::Scheduled { schedule, length: SignedDuration::from_hours(2) });
        let pool = auto();
        let buffer = vec![Buffer { window, ..pool.buffer[0].clone() }];
        busy(Pool { buffer, ..pool })
    };
    assert_eq!(planned_at(&scheduled(9), LATER).claims.len(), 2);
    assert_eq!(planned_at(&scheduled(12), LATER).claims, []);
    let said = told(&scheduled(12), LATER);
    assert_eq!(said, "spec.buffer[0]: auto keeps 0 units now, because its schedule keeps none");
}

#[test]
fn an_empty_node_stays_while_its_room_pays_and_goes_when_it_does_not() {
    let claim = Claim { planned_pods: vec![], ..true_since(initialized(), ConditionType::Empty, 40) };
    let snapshot = with(with(busy(auto()), [claim]), [claimed_node()]);
    let closes = |seconds| {
        let actions = decide(&snapshot, at(seconds)).actions;
        actions.iter().any(|action| matches!(action, Action::SetTaints { taints, .. } if !taints.is_empty()))
    };
    assert!(!closes(LATER));
    assert!(
        decide(&snapshot, at(LATER)).wake_at.is_some_and(|wake| wake <= at(LATER + 60)),
        "nobody else tells"
    );
    assert!(closes(LATER + 3_600));
}

/// An index of a cluster with one node of this pool.
fn index(pool: Pool) -> ClusterIndex {
    let mut index = ClusterIndex::new();
    index.apply_node(of_pool(&pool));
    index.apply_pool(pool);
    index
}

fn of_pool(pool: &Pool) -> Node {
    let node = claimed_node();
    let label = (NODEPOOL_LABEL.to_owned(), pool.name.0.clone());
    Node { labels: node.labels.clone().into_iter().chain([label]).collect(), ..node }
}

/// Binds a pod to the node, as watches show it.
fn bind(index: &mut ClusterIndex, pod: Pod, seconds: i64) {
    index.apply_pod(pod.clone());
    let pod = bound(pod, "n");
    index.learn_arrival(&pod, at(seconds));
    index.apply_pod(pod);
}

/// How many pods have counted.
fn seen(index: &ClusterIndex) -> u64 {
    let pool = auto();
    index.view().arrivals.choose(&pool.buffer[0].size(&pool.name), 4, at(0)).seen
}

#[test]
fn each_pod_that_gets_a_node_of_the_pool_and_needs_one_unit_counts_once() {
    let mut index = index(auto());
    bind(&mut index, pod("a", requests(1, 1, 1)), 10);
    assert_eq!(seen(&index), 1);
    let there = bound(pod("a", requests(1, 1, 1)), "n");
    index.learn_arrival(&there, at(20));
    index.learn_arrival(&bound(pod("b", requests(1, 1, 1)), "n"), at(20));
    assert_eq!(seen(&index), 1, "it has counted, and nobody saw when the other one came");
    for (name, requests) in
        [("large", requests(2, 1, 1)), ("more", requests(1, 1, 2)), ("no-gpu", requests(1, 1, 0))]
    {
        bind(&mut index, pod(name, requests), 30);
    }
    bind(&mut index, Pod { role: PodRole::DaemonSet, ..pod("daemon", requests(1, 1, 1)) }, 30);
    assert_eq!(seen(&index), 1, "they need no such unit");
    bind(&mut index, Pod { phase: PodPhase::Waiting, ..pod("c", requests(1, 1, 1)) }, 40);
    assert_eq!(seen(&index), 2);
    index.apply_node(claimed_node());
    bind(&mut index, pod("d", requests(1, 1, 1)), 50);
    assert_eq!(seen(&index), 2, "the node is of no pool");
}

#[test]
fn pods_of_which_several_fit_one_unit_do_not_count_and_only_what_the_unit_names_does() {
    let requests_of = |unit| {
        let pool = auto();
        let buffer = vec![Buffer { requests: unit, ..pool.buffer[0].clone() }];
        Pool { buffer, ..pool }
    };
    let seen_of = |unit: poolwright_catalog::ResourceList, pod: Pod| {
        let pool = requests_of(unit.clone());
        let size = pool.buffer[0].size(&pool.name);
        let mut index = index(pool);
        bind(&mut index, pod, 10);
        index.view().arrivals.choose(&size, 4, at(10)).seen
    };
    let no_memory = requests(4, 0, 1);
    assert_eq!(seen_of(no_memory.clone(), pod("p", requests(1, 16, 1))), 1);
    assert_eq!(seen_of(no_memory, pod("p", requests(4, 16, 0))), 0);
    assert_eq!(seen_of(requests(4, 4, 0), pod("p", requests(2, 2, 0))), 0, "two of them fit");
    assert_eq!(seen_of(requests(4, 4, 0), pod("p", requests(3, 1, 0))), 1);
}

#[test]
fn a_number_of_units_learns_nothing() {
    let pool = auto();
    let buffer = vec![Buffer { units: Units::Fixed(2), ..pool.buffer[0].clone() }];
    let mut index = index(Pool { buffer, ..pool });
    bind(&mut index, pod("a", requests(1, 1, 1)), 10);
    assert_eq!(*index.view().arrivals, Arrivals::default());
}

#[test]
fn the_room_of_ended_pods_needs_no_unit_unless_its_node_goes() {
    let pays = |cordoned: bool| {
        let pool = auto();
        let mut index = index(pool.clone());
        index.apply_node(Node { cordoned, ..of_pool(&pool) });
        for number in 0..200 {
            let name = format!("p-{number}");
            let waiting = Pod { phase: PodPhase::Waiting, ..pod(&name, requests(1, 1, 1)) };
            bind(&mut index, waiting, 60 * number);
            index.learn_departure(&object_key(&name), at(60 * number + 50));
            index.delete_pod(&object_key(&name));
        }
        pool.buffer[0].wanted(&pool.name, &index.view().arrivals, at(12_000))
    };
    assert_eq!((pays(false), pays(true)), (0, 2));
}
