//! Tests of the reasons why a node stays. Each begins with a node that the next search would empty, and adds one reason. So without
//! the reason, the decision goes on.

use poolwright_core::disruption::{Kept, Outlook, outlook};
use poolwright_core::why;
use poolwright_terms::CapacityType;

use super::*;

fn outlook_at(snapshot: &Snapshot, name: &str, history: &MoveHistory, seconds: i64) -> Outlook {
    let current = planned_at(snapshot, seconds);
    let name = ClaimName(name.into());
    let options = PlanOptions::default();
    outlook(snapshot, &current, history, at(seconds), &options, &name, &mut NeverStop).expect("it exists")
}

fn of(snapshot: &Snapshot) -> Outlook {
    outlook_at(snapshot, "big", &MoveHistory::default(), NOW)
}

/// Returns the lines that users read.
fn told(snapshot: &Snapshot) -> Vec<String> {
    why::consolidation(&of(snapshot))
}

fn kept(snapshot: &Snapshot) -> String {
    let lines = told(snapshot);
    let reason =
        lines[0].strip_prefix("Not consolidated: ").unwrap_or_else(|| panic!("it leaves: {lines:?}"));
    reason.trim_end_matches('.').to_owned()
}

fn base() -> Snapshot {
    of_pool(moving_pool())
}

fn of_pool(pool: Pool) -> Snapshot {
    cluster_of(pool, vec![large("big")], &[("a", "big")])
}

fn with_disruption(change: impl FnOnce(&mut Disruption)) -> Snapshot {
    let mut pool = moving_pool();
    change(&mut pool.disruption);
    of_pool(pool)
}

fn with_pod(change: impl FnOnce(&mut Pod)) -> Snapshot {
    let mut pod = bound(replica("a"), "big");
    change(&mut pod);
    with(base(), [pod])
}

fn with_claim(change: impl FnOnce(&mut Claim, &mut Node)) -> Snapshot {
    let (mut claim, mut node) = large("big");
    change(&mut claim, &mut node);
    with(with(base(), [claim]), [node])
}

const SAVING: &str =
    "Without that, emptying it might save up to $4.67/h ($3,406.18/month): its pods would go to new gpu-";

#[test]
fn a_node_without_a_reason_to_stay_is_said_to_leave_and_what_that_saves() {
    let lines = told(&base());
    assert_eq!(lines.len(), 1);
    let start = "The next search for savings would empty it: the work of its node costs $5.67/h now and $1.01/h elsewhere";
    assert!(lines[0].starts_with(start), "{lines:?}");
}

#[test]
fn the_policy_of_the_pool_keeps_a_node() {
    let when_empty = with_disruption(|rules| rules.consolidates = false);
    assert_eq!(
        kept(&when_empty),
        "its pool does not consolidate nodes with pods (disruption.consolidationPolicy)"
    );
    assert!(told(&when_empty)[1].starts_with(SAVING), "{:?}", told(&when_empty));
    assert_eq!(
        kept(&with_disruption(|rules| rules.consolidate_after = None)),
        "pool gpu moves no pods to save money (disruption.consolidateAfter: Never)"
    );
    assert_eq!(
        kept(&of_pool(Pool { replicas: Some(1), ..moving_pool() })),
        "pool gpu keeps a fixed number of nodes (spec.replicas)"
    );
    assert_eq!(kept(&of_pool(Pool { deleting: true, ..moving_pool() })), "pool gpu is being deleted");
}

#[test]
fn a_node_stays_whose_free_room_no_new_node_can_give_the_buffer() {
    let shared = "nvidia.com/gpu.shared";
    // The device plugin has begun to share GPUs after the node opened.
    let (_, node) = large("big");
    let node = Node { allocatable: node.allocatable.clone().with(shared, 2), ..node };
    let for_unit = |requests| {
        let buffer = vec![Buffer { units: Units::Fixed(1), requests, window: None }];
        with(of_pool(Pool { buffer, ..moving_pool() }), [node.clone()])
    };
    assert_eq!(
        kept(&for_unit(requests(1, 1, 0).with(shared, 1))),
        "without it, the buffer of pool gpu would have less room, and no node can be bought for it"
    );
    // What a new node holds has a price.
    let lines = told(&for_unit(requests(1, 1, 1)));
    assert!(lines[0].starts_with("The next search for savings would empty it"), "{lines:?}");
}

#[test]
fn a_node_whose_pod_came_lately_stays_until_a_time_that_is_named() {
    let young = with_pod(|pod| pod.created = at(NOW - 100));
    let until = at(NOW + 200);
    assert_eq!(
        kept(&young),
        format!(
            "pod default/a came less than 5m ago (disruption.consolidateAfter of pool gpu); that ends at {until}"
        )
    );
    assert!(told(&young)[1].starts_with(SAVING), "{:?}", told(&young));
    let then = outlook_at(&young, "big", &MoveHistory::default(), NOW + 200);
    assert!(matches!(then, Outlook::Leaves(_)), "{then:?}");
    let opened =
        with_claim(|claim, _| *claim = true_since(claim.clone(), ConditionType::Initialized, NOW - 299));
    assert!(kept(&opened).starts_with("the node opened less than 5m ago"), "{}", kept(&opened));
}

#[test]
fn the_pod_in_the_way_is_named_with_what_makes_it_stay() {
    let protection = Protection { annotation: "poolwright.dev/do-not-disrupt=true".into(), until: None };
    let protected = with_pod(|pod| pod.ending.protection = Some(protection));
    assert_eq!(kept(&protected), "pod default/a is protected by poolwright.dev/do-not-disrupt=true");
    assert!(told(&protected)[1].starts_with(SAVING), "{:?}", told(&protected));
    let bare = with_pod(|pod| pod.owner = None);
    assert_eq!(kept(&bare), "pod default/a would not be recreated: it has no controller");
    assert_eq!(told(&bare).len(), 1, "a pod that ends saves nothing: {:?}", told(&bare));
    assert_eq!(
        kept(&with_pod(|pod| pod.group = Some("gang".into()))),
        "pod default/a belongs to a gang, and gangs are not moved in parts"
    );
    let gated = with(base(), [Workload { scheduling_gated: true, ..web(1) }]);
    assert_eq!(kept(&gated), "the successor of pod default/a would have scheduling gates");
}

#[test]
fn an_unhealthy_node_that_is_replaced_now_is_not_said_to_be_kept_by_a_pod() {
    let lasts = |seconds: i64| {
        let mut pool = moving_pool();
        let (condition, status) = ("Ready".to_owned(), "Unknown".to_owned());
        let rule = RepairRule { condition, status, after: SignedDuration::from_mins(30) };
        pool.disruption.repair = vec![rule.clone()];
        let since = at(NOW - seconds);
        let sick = NodeCondition { kind: rule.condition, status: rule.status, since, cause: String::new() };
        let (claim, node) = large("big");
        let node = Node { ready: false, unhealthy_conditions: vec![sick], ..node };
        let mut pod = bound(replica("a"), "big");
        pod.owner = None;
        kept(&with(cluster_of(pool, vec![(claim, node)], &[("a", "big")]), [pod]))
    };
    assert_eq!(lasts(1_800), "it is unhealthy, and repair replaces it now");
    assert_eq!(lasts(1_799), "pod default/a would not be recreated: it has no controller");
}

#[test]
fn an_annotation_that_keeps_a_node_is_named_with_its_object() {
    let of = |kind: &str| format!("the annotation poolwright.dev/do-not-disrupt of its {kind} keeps it");
    assert_eq!(kept(&with_claim(|claim, _| claim.do_not_disrupt = true)), of("NodeClaim"));
    assert_eq!(kept(&with_claim(|_, node| node.do_not_disrupt = true)), of("Node"));
    assert_eq!(kept(&with_disruption(|rules| rules.do_not_disrupt = true)), of("NodePool"));
}

#[test]
fn budgets_that_keep_a_node_are_named() {
    let mut shut = base();
    let pdb = PodDisruptionBudget {
        key: object_key("web"),
        uid: Uid("pdb".into()),
        selector: BudgetSelector::Pods(vec![]),
        limit: Some(BudgetLimit::MaxUnavailable(CountOrPercent::Count(1))),
        expected: 1,
        allowed: Some(0),
        failure: None,
        unhealthy: UnhealthyPods::default(),
    };
    shut.budgets.insert(object_key("web"), pdb.into());
    assert_eq!(kept(&shut), "PodDisruptionBudget default/web allows no eviction of pod default/a now");
    let schedule = Schedule::parse("* * * * *", "UTC").unwrap();
    let window = Some(Window::Scheduled { schedule, length: SignedDuration::from_hours(8) });
    let none = DisruptionBudget { window, ..budget(CountOrPercent::Count(0)) };
    assert_eq!(
        kept(&with_disruption(|rules| rules.budgets = vec![none])),
        "spec.disruption.budgets[0] of pool `gpu` allows 0 of 1 node at a time for 8h from each time of `* * * * * (UTC)` on, and 0 are disrupted now"
    );
    let mut over_all = base();
    over_all.disruption_budgets = vec![budget(CountOrPercent::Count(0))].into();
    assert!(kept(&over_all).starts_with("budget 1 over all pools (--disruption-budget) allows 0 of 1 node"));
    assert!(told(&over_all)[1].starts_with(SAVING), "{:?}", told(&over_all));
}

#[test]
fn a_node_that_pods_are_planned_for_stays_and_they_are_named() {
    let waiting = with(base(), [pod("next", requests(2, 4, 1))]);
    assert_eq!(kept(&waiting), "1 pod is planned for it: default/next");
}

#[test]
fn consolidation_waits_while_nodes_are_bought() {
    let waiting = with(base(), [pod("large", requests(40, 4, 4))]);
    assert_eq!(kept(&waiting), "1 new node is bought now, and consolidation waits until that is done");
}

#[test]
fn a_node_whose_pods_cost_no_less_elsewhere_is_told_with_both_prices() {
    let snapshot = cluster_of(moving_pool(), vec![small("big")], &[("a", "big")]);
    let Outlook::Stays { why: Kept::NotWorth { .. }, elsewhere: None } = of(&snapshot) else {
        panic!("{:?}", of(&snapshot))
    };
    let line = kept(&snapshot);
    assert!(line.starts_with("its pods cost no less elsewhere: $1.01/h (new gpu-"), "{line}");
    assert!(line.ends_with("and this node costs $1.01/h"), "{line}");
}

#[test]
fn a_saving_below_what_moving_costs_is_told_with_the_amounts() {
    let job = |began: i64| {
        let pod = Pod { owner: Some(Uid("job".into())), created: at(began), ..replica("a") };
        let job = Workload { kind: "Job".into(), key: object_key("job"), uid: Uid("job".into()), ..web(1) };
        with(with(base(), [bound(pod, "big")]), [job])
    };
    assert!(matches!(of(&job(NOW - 3600)), Outlook::Leaves(_)));
    let line = kept(&job(NOW - 7 * 1800));
    assert!(line.starts_with("emptying it would save $4.67/h (new gpu-"), "{line}");
    assert!(
        line.ends_with("but moving its pods costs more than it saves within 1h or until they end: $10.33 against $4.67 (disruption.paybackWithin)"),
        "{line}"
    );
    let line = kept(&job(NOW - 8 * 1800));
    assert_eq!(
        line,
        "moving its pods would lose work worth $5.79, more than the $5.67 that the node costs until they end"
    );
}

#[test]
fn a_pod_without_another_place_is_named() {
    let full = PoolLimits { nodes: Some(1), ..PoolLimits::default() };
    let line = kept(&of_pool(Pool { limits: full, ..moving_pool() }));
    assert!(line.starts_with("pod default/a has no other place: "), "{line}");
}

#[test]
fn a_node_of_a_pool_with_a_higher_weight_is_not_replaced_by_one_with_a_lower() {
    let full = PoolLimits { nodes: Some(1), ..PoolLimits::default() };
    let mut snapshot = of_pool(Pool { limits: full, weight: 9, ..moving_pool() });
    let other = Pool { weight: 5, ..pool("other") };
    snapshot.pools.insert(other.name.clone(), other.into());
    assert_eq!(
        kept(&snapshot),
        "its pods would go to a new node of pool other, whose weight is lower than that of its own pool"
    );
}

#[test]
fn pods_that_moved_lately_keep_their_node_and_their_controller_is_named() {
    let snapshot = base();
    let mut history = MoveHistory::default();
    history.record(&snapshot, &proposed(&snapshot).unwrap(), at(NOW));
    let lines = why::consolidation(&outlook_at(&snapshot, "big", &history, NOW + 60));
    assert_eq!(
        lines[0],
        "Not consolidated: ReplicaSet default/web has 1 pod and no move left: each may move once within 1h (disruption.paybackWithin)."
    );
    assert!(matches!(outlook_at(&snapshot, "big", &history, NOW + 3600), Outlook::Leaves(_)));
}

#[test]
fn a_node_that_is_not_open_or_leaves_already_says_so() {
    let opening = with_claim(|claim, _| {
        claim.conditions.remove(&ConditionType::Initialized);
    });
    assert_eq!(kept(&opening), "it is not open to pods yet");
    assert_eq!(kept(&with_claim(|claim, _| claim.deleting_since = Some(at(NOW)))), "it is being deleted");
    let snapshot = base();
    let line = kept(&begun(&snapshot, &proposed(&snapshot).unwrap()));
    assert!(line.starts_with("it is being emptied already: the work of its node costs $5.67/h"), "{line}");
    let without_pods = cluster_of(moving_pool(), vec![large("big")], &[]);
    assert!(kept(&without_pods).starts_with("it runs no workload pod"), "{}", kept(&without_pods));
}

#[test]
fn a_node_that_has_drifted_but_is_blocked_says_what_blocks_it() {
    let mut pool = moving_pool();
    pool.requirements = vec![is_in("node.kubernetes.io/instance-type", &["g6.xlarge"])];
    let protection = Protection { annotation: "poolwright.dev/do-not-disrupt=true".into(), until: None };
    let mut pod = bound(replica("a"), "big");
    pod.ending.protection = Some(protection);
    assert_eq!(
        kept(&with(of_pool(pool.clone()), [pod])),
        "it has drifted and is not replaced yet: pod default/a is protected by poolwright.dev/do-not-disrupt=true"
    );
    assert!(matches!(of(&of_pool(pool)), Outlook::Leaves(why) if why.starts_with("it has drifted")));
}

#[test]
fn a_price_that_is_not_known_keeps_a_node() {
    let unknown = with_claim(|claim, _| claim.offerings[0].price = None);
    assert!(
        kept(&unknown).starts_with("the price of g5.12xlarge/a/on-demand is unknown"),
        "{}",
        kept(&unknown)
    );
}

#[test]
fn a_search_returns_the_first_reason_of_each_node() {
    let protection = Protection { annotation: "poolwright.dev/do-not-disrupt=true".into(), until: None };
    let protected = |name: &str, node: &str| {
        let mut pod = bound(replica(name), node);
        pod.ending.protection = Some(protection.clone());
        pod
    };
    let nodes = vec![large("big"), small("s")];
    let pods = [protected("a", "big"), protected("b", "s")];
    let snapshot = with(cluster_of(moving_pool(), nodes, &[("a", "big"), ("b", "s")]), pods);
    let found = looked(&snapshot);
    assert_eq!(found.proposal, None);
    let kept: Vec<(&str, bool)> =
        found.kept.iter().map(|(name, why)| (name.0.as_str(), matches!(why, Kept::Obstacle(_)))).collect();
    assert_eq!(kept, [("big", true), ("s", true)]);
}

#[test]
fn a_floor_keeps_an_on_demand_node_whose_pods_would_leave_too_few_of_them() {
    // The pod of the large node would fit the spot node.
    let of = |on_demand_floor| {
        let (mut claim, node) = running("spare", "g5.12xlarge", "1.500", capacity(48, 192, 4));
        claim.offerings[0].offering.capacity_type = CapacityType::Spot;
        let claim = launched(claim);
        let spot = SpotRules { on_demand_floor, max_share: None };
        let nodes = vec![large("big"), (claim, node)];
        cluster_of(Pool { spot, ..moving_pool() }, nodes, &[("a", "big"), ("b", "spare")])
    };
    let free = told(&of(None));
    assert!(free[0].starts_with("The next search for savings would empty it"), "{free:?}");
    for floor in [CountOrPercent::Percent(50), CountOrPercent::Count(1)] {
        assert_eq!(
            kept(&of(Some(floor))),
            "without it, too few nodes of pool gpu would be on demand (spot.onDemandFloor)"
        );
    }
    let low = told(&of(Some(CountOrPercent::Count(0))));
    assert!(low[0].starts_with("The next search for savings would empty it"), "{low:?}");
}

#[test]
fn of_two_nodes_that_could_take_each_others_pods_only_one_leaves_next_and_the_other_names_it() {
    let half = |name: &str| running(name, "g5.12xlarge", "0.900", capacity(8, 32, 2));
    let snapshot = cluster_of(moving_pool(), vec![half("x"), half("y")], &[("a", "x"), ("b", "y")]);
    let outlooks = ["x", "y"].map(|name| outlook_at(&snapshot, name, &MoveHistory::default(), NOW));
    let leaves = outlooks.iter().position(|one| matches!(one, Outlook::Leaves(_))).expect("one leaves");
    let next = ClaimName(["x", "y"][leaves].to_owned());
    let other = &outlooks[1 - leaves];
    assert!(matches!(other, Outlook::Later { first, .. } if *first == [next.clone()]), "{outlooks:?}");
    let lines = why::consolidation(other);
    assert_eq!(
        lines[0],
        format!(
            "The next search for savings would empty the node of claim {next} first; a later one looks at this node again."
        )
    );
    assert!(lines[1].starts_with("If it alone were emptied: the work of its node costs"), "{lines:?}");
}
