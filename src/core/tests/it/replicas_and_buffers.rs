//! Tests of static pools and buffers.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use poolwright_core::plan::{Plan, PlanOptions, Target, plan};
use poolwright_core::*;
use poolwright_solver::NeverStop;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::kit::*;

fn replicas(count: u64) -> Pool {
    Pool { replicas: Some(count), ..pool("static") }
}

fn buffer(units: u32, cpu: u64, gpus: u64) -> Buffer {
    Buffer { units: Units::Fixed(units), requests: requests(cpu, 1, gpus), window: None }
}

fn buffered(units: Vec<Buffer>) -> Pool {
    Pool { buffer: units, ..pool("gpu") }
}

/// Returns the claim and the node with this name and pool, a g5.xlarge that is open since 30 s.
fn open(name: &str, pool: &str) -> (Claim, Node) {
    let claim = Claim {
        name: ClaimName(name.into()),
        uid: Uid(format!("uid-{name}")),
        pool: PoolName(pool.into()),
        node_name: Some(name.into()),
        planned_pods: vec![],
        ..initialized()
    };
    let claim = launched(claim);
    let node = Node { provider_id: Some(format!("kwok://{name}")), ..node(name, capacity(4, 16, 1)) };
    let labels = [("poolwright.dev/nodepool".to_owned(), pool.to_owned())];
    (claim, Node { labels: node.labels.clone().into_iter().chain(labels).collect(), ..node })
}

fn with_open(snapshot: Snapshot, names: &[&str], pool: &str) -> Snapshot {
    names.iter().fold(snapshot, |snapshot, name| {
        let (claim, node) = open(name, pool);
        with(with(snapshot, [claim]), [node])
    })
}

fn types(plan: &Plan) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for claim in &plan.claims {
        *counts.entry(claim.offering().instance_type.to_string()).or_default() += 1;
    }
    counts
}

fn deleted(snapshot: &Snapshot, seconds: i64) -> Vec<String> {
    let actions = decide(snapshot, at(seconds)).actions;
    let names = actions.iter().filter_map(|action| match action {
        Action::DeleteClaim { claim, .. } => Some(claim.to_string()),
        _ => None,
    });
    names.collect()
}

#[test]
fn a_static_pool_gets_as_many_of_the_cheapest_nodes_as_it_says_and_no_more_the_second_time() {
    let pool = Pool { requirements: vec![is_in("poolwright.dev/gpu-model", &["a10g"])], ..replicas(3) };
    let snapshot = cluster(aws(), [pool]);
    let plan = planned(&snapshot);
    assert_eq!(types(&plan), [("g5.xlarge".to_owned(), 3)].into());
    assert!(plan.claims.iter().all(|claim| claim.planned_pods.is_empty()));
    let said = &plan.claims.iter().map(|claim| claim.reason.as_str()).collect::<Vec<_>>();
    assert!(said.iter().any(|reason| reason.contains("has 0 of its 3 replicas")), "{said:?}");
    let zones: Vec<&str> = plan.claims[0].offerings.iter().map(|one| one.offering.zone.as_str()).collect();
    assert_eq!(zones, ["a", "b"], "the other zone is taken where this one has none; nothing much dearer is");
    assert_eq!((plan.cost, plan.bound), (usd("3.018"), usd("3.018")));
    assert_eq!(plan.again_at, Some(at(20)), "somebody may take one away without a word");
    assert_eq!(planned_at(&carried_out(&snapshot, &plan, 10), 20).claims, []);
}

#[test]
fn a_pool_whose_label_has_the_gpus_of_its_nodes_cut_buys_none_and_says_why() {
    let labelled = |config: &str, pool: Pool| {
        let labels = [("nvidia.com/mig.config".to_owned(), config.to_owned())];
        Pool { labels: labels.into(), ..pool }
    };
    let cuttable = || catalogue(vec![Kind("a2", capacity(12, 80, 1), Some("a100"), &[("a", "3")])]);
    for wanted in [replicas(2), Pool { buffer: vec![buffer(2, 1, 1)], ..pool("static") }] {
        let plan = planned(&cluster(cuttable(), [labelled("all-1g.5gb", wanted.clone())]));
        assert_eq!(plan.claims, []);
        let (reason, said) = plan.pools[&PoolName("static".into())].invalid.clone().unwrap();
        assert_eq!(reason, Reason::GpusCut);
        assert!(said.contains("`nvidia.com/mig.config: all-1g.5gb`"), "{said}");
        assert!(said.ends_with("remove the label"), "{said}");
        let whole = planned(&cluster(cuttable(), [labelled("all-disabled", wanted)]));
        assert_eq!(types(&whole), [("a2".to_owned(), 2)].into());
    }
    // GPUs that cannot be cut stay whole.
    let other = planned(&cluster(aws(), [labelled("all-1g.5gb", replicas(1))]));
    assert_eq!(other.claims.len(), 1);
}

#[test]
fn pods_use_the_room_of_a_static_pool_and_buy_nothing_from_it() {
    let snapshot = with_open(cluster(aws(), [replicas(1)]), &["s"], "static");
    let snapshot = with(snapshot, [pod("a", requests(1, 1, 1)), pod("b", requests(1, 1, 1))]);
    let plan = planned(&snapshot);
    assert_eq!(plan.claims, []);
    assert_eq!((plan.counts.on_existing, plan.unplaced.len()), (1, 1));
    // If there is another pool, the node is bought from that pool.
    let both = with_open(cluster(aws(), [replicas(1), pool("gpu")]), &["s"], "static");
    let plan = planned(&with(both, [pod("a", requests(1, 1, 1)), pod("b", requests(1, 1, 1))]));
    assert_eq!(plan.claims.iter().map(|claim| claim.pool.0.as_str()).collect::<Vec<_>>(), ["gpu"]);
}

#[test]
fn pods_wait_for_a_replica_that_is_ordered_with_the_same_plan() {
    let snapshot = with(cluster(aws(), [replicas(1), pool("gpu")]), [pod("a", requests(1, 1, 0))]);
    let plan = planned(&snapshot);
    assert_eq!(plan.claims.len(), 1, "{plan:?}");
    assert_eq!(plan.claims[0].pool.0, "static");
    assert_eq!(plan.placements[0].target, Target::Claim(plan.claims[0].name.clone()));
    assert_eq!((plan.counts.total, plan.counts.on_existing, plan.counts.on_new), (1, 0, 1));
    let said =
        why::pod(&snapshot, at(10), &PlanOptions::default(), &plan, &key("a")).expect("the pod exists");
    let last = said.last().expect("an outcome");
    assert!(
        last.ends_with("a new node that its static pool buys in any case: it costs nothing more."),
        "{last}"
    );
    let said = why::pool(&snapshot, &plan, &PoolName("static".into())).expect("the pool exists");
    assert!(said[3].ends_with("to have all replicas."), "{said:?}");
    assert_eq!(said[4], "Its `replicas` keeps 1 node, with and without pods.");
}

#[test]
fn a_static_pool_names_all_limits_that_keep_it_from_its_replicas_because_raising_one_does_not_help() {
    let bought = |own: u64, of_all: u64| {
        let nodes = |most: u64| PoolLimits { nodes: Some(most), ..PoolLimits::default() };
        let options = PlanOptions { limits: nodes(of_all), ..PlanOptions::default() };
        let pool = Pool { limits: nodes(own), ..replicas(3) };
        let plan = plan(&cluster(aws(), [pool]), at(10), &options, &mut NeverStop);
        (plan.claims.len(), plan.pools[&PoolName("static".into())].limit_reached.clone())
    };
    let said = "limit nodes = 2 of pool `static` allows no more of its replicas (in use or on order: 2), and limit nodes = 2 over all pools \
                allows no more of its replicas (in use or on order: 2); raise these limits, or lower spec.replicas";
    assert_eq!(bought(2, 2), (2, Some(said.to_owned())));
    assert_eq!([bought(3, 2).0, bought(2, 3).0, bought(3, 3).0], [2, 2, 3], "only both together help");
}

#[test]
fn a_static_pool_keeps_within_its_limits_and_says_so() {
    let limits = PoolLimits { nodes: Some(2), ..PoolLimits::default() };
    let plan = planned(&cluster(aws(), [Pool { limits, ..replicas(5) }]));
    assert_eq!(plan.claims.len(), 2);
    let said = plan.pools[&PoolName("static".into())].limit_reached.clone().unwrap();
    let wanted = "limit nodes = 2 of pool `static` allows no more of its replicas (in use or on order: 2); raise spec.limits, or lower spec.replicas";
    assert_eq!(said, wanted);
}

#[test]
fn nodes_of_a_static_pool_stay_without_work() {
    let (claim, node) = open("s", "static");
    let claim = true_since(claim, ConditionType::Empty, 40);
    let snapshot = with(with(cluster(aws(), [replicas(1)]), [claim]), [node]);
    assert_eq!(deleted(&snapshot, 100_000), Vec::<String>::new());
    let closes = |action: &Action| matches!(action, Action::SetTaints { taints, .. } if !taints.is_empty());
    assert!(!decide(&snapshot, at(100_000)).actions.iter().any(closes));
}

#[test]
fn a_static_pool_removes_idle_surplus_nodes_first() {
    let snapshot = with_open(cluster(aws(), [replicas(1)]), &["a", "b", "c"], "static");
    let snapshot = with(snapshot, [bound(pod("p", requests(1, 1, 1)), "b")]);
    assert_eq!(deleted(&snapshot, 100), ["a", "c"]);
    let kept = with_open(cluster(aws(), [replicas(0)]), &["a"], "static");
    let (claim, _) = open("a", "static");
    assert_eq!(deleted(&with(kept, [Claim { do_not_disrupt: true, ..claim }]), 100), Vec::<String>::new());
}

#[test]
fn a_replica_that_leaves_is_ordered_again_while_it_is_still_there() {
    let snapshot = with_open(cluster(aws(), [replicas(1)]), &["s"], "static");
    let mut claim = snapshot.claims[&ClaimName("s".into())].as_ref().clone();
    let leaving = Condition {
        status: ConditionStatus::True,
        since: at(50),
        reason: Some(Reason::Drifted),
        message: "it drifted".into(),
    };
    claim.conditions.insert(ConditionType::Disrupting, leaving);
    let snapshot = with(snapshot, [claim]);
    assert_eq!(planned(&snapshot).claims.len(), 1);
    assert_eq!(deleted(&snapshot, 100), Vec::<String>::new());
}

#[test]
fn room_that_is_to_be_kept_free_is_bought_once_and_is_nobodys() {
    let snapshot = cluster(aws(), [buffered(vec![buffer(2, 1, 1)])]);
    let plan = planned(&snapshot);
    assert_eq!(types(&plan), [("g5.xlarge".to_owned(), 2)].into());
    assert!(plan.claims.iter().all(|claim| claim.planned_pods.is_empty()), "pods may have it at once");
    let said = &plan.claims[0].reason;
    assert!(said.ends_with("; 1 of these is free room for the pool's buffer"), "{said}");
    assert_eq!(planned_at(&carried_out(&snapshot, &plan, 10), 20).claims, []);
}

#[test]
fn pods_take_the_room_first_and_it_is_made_anew_behind_them() {
    let snapshot = with_open(cluster(aws(), [buffered(vec![buffer(1, 1, 1)])]), &["n"], "gpu");
    let waiting = with(snapshot.clone(), [pod("p", requests(1, 1, 1))]);
    let plan = planned(&waiting);
    assert_eq!((plan.claims.len(), plan.counts.on_existing), (0, 1), "{plan:?}");
    let bound = with(snapshot, [bound(pod("p", requests(1, 1, 1)), "n")]);
    assert_eq!(types(&planned(&bound)), [("g5.xlarge".to_owned(), 1)].into());
}

#[test]
fn a_plan_from_files_counts_both() {
    let snapshot = with(cluster(aws(), [buffered(vec![buffer(1, 1, 1)])]), [pod("p", requests(1, 1, 1))]);
    let options = PlanOptions { include_waiting: true, ..PlanOptions::default() };
    let plan = plan(&snapshot, at(10), &options, &mut NeverStop);
    assert_eq!(types(&plan), [("g5.xlarge".to_owned(), 2)].into());
    assert_eq!(types(&planned(&snapshot)), [("g5.xlarge".to_owned(), 1)].into());
}

#[test]
fn the_explanation_of_a_pool_tells_nodes_for_pods_from_nodes_for_its_buffer_and_names_units_without_room() {
    let limits = PoolLimits { nodes: Some(3), ..PoolLimits::default() };
    let pool = Pool { limits, ..buffered(vec![buffer(2, 1, 1)]) };
    let name = pool.name.clone();
    let pods = ["p", "q"].map(|name| pod(name, requests(1, 1, 1)));
    let kinds = vec![Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")])];
    let snapshot = with(cluster(catalogue(kinds), [pool]), pods);
    let options = PlanOptions { include_waiting: true, ..PlanOptions::default() };
    let plan = plan(&snapshot, at(10), &options, &mut NeverStop);
    let said = why::pool(&snapshot, &plan, &name).expect("the pool exists").join("\n");
    let bought = "The plan buys 3 more for $3.02/h ($2,203.14/month), 2 for 2 waiting pods and 1 to keep the room of its buffer free.";
    assert!(said.contains(bought), "{said}");
    let left = "\nIt cannot keep all of this room: spec.buffer[0]: no room is kept for 1 unit: limit nodes = 3 of pool `gpu` is reached (in use \
                or on order: 3); raise spec.limits.";
    assert!(said.contains(left), "{said}");
}

#[test]
fn units_that_a_limit_over_all_pools_leaves_out_name_it_once_for_each_entry_of_the_buffer() {
    let kinds = vec![Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")])];
    let snapshot = cluster(catalogue(kinds), [buffered(vec![buffer(2, 1, 1), buffer(3, 2, 1)])]);
    let limits = PoolLimits { nodes: Some(1), ..PoolLimits::default() };
    let options = PlanOptions { limits, ..PlanOptions::default() };
    let plan = plan(&snapshot, at(10), &options, &mut NeverStop);
    let findings = &plan.pools[&pool("gpu").name];
    assert_eq!((plan.claims.len(), findings.units_left, &findings.limit_reached), (1, 4, &None));
    let units = |said: &String| {
        let (entry, rest) = said.split_once(": no room is kept for ").expect("the units are counted");
        let (count, why) = rest.split_once(" unit").expect("the units are counted");
        let limit = ": limit nodes = 1 over all pools is reached (in use or on order: 1); raise it";
        assert_eq!(why.trim_start_matches('s'), limit);
        (entry.to_owned(), count.parse::<usize>().expect("a number"))
    };
    let told: Vec<(String, usize)> = findings.buffer_left.iter().map(units).collect();
    let entries: Vec<&str> = told.iter().map(|(entry, _)| entry.as_str()).collect();
    assert_eq!(entries, ["spec.buffer[0]", "spec.buffer[1]"]);
    assert_eq!(told.iter().map(|(_, count)| count).sum::<usize>(), 4);
}

#[test]
fn so_many_empty_nodes_are_kept_as_the_room_needs_and_the_others_go() {
    let mut snapshot = with_open(cluster(aws(), [buffered(vec![buffer(2, 1, 1)])]), &["a", "b", "c"], "gpu");
    for name in ["a", "b", "c"] {
        let claim = snapshot.claims[&ClaimName(name.into())].as_ref().clone();
        let claim = true_since(claim, ConditionType::Empty, 40);
        snapshot = with(snapshot, [claim]);
    }
    let closing: Vec<String> = decide(&snapshot, at(10_000))
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::SetTaints { node, taints } if !taints.is_empty() => Some(node.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(closing, ["c"]);
    // Later plans buy nothing for the node that went.
    let without = with_open(cluster(aws(), [buffered(vec![buffer(2, 1, 1)])]), &["a", "b"], "gpu");
    assert_eq!(planned_at(&without, 10_000).claims, []);
}

#[test]
fn room_is_kept_by_a_schedule_and_goes_when_its_time_is_over() {
    let schedule = Schedule::parse("0 9 * * *", "UTC").unwrap();
    let window = Some(Window::Scheduled { schedule, length: SignedDuration::from_hours(8) });
    let pool = buffered(vec![Buffer { window, ..buffer(1, 1, 1) }]);
    // The test's time begins at 08:00 on 2027-01-15.
    let snapshot = cluster(aws(), [pool.clone()]);
    assert_eq!(planned_at(&snapshot, 0).claims, []);
    let plan = planned_at(&snapshot, 3600);
    assert_eq!(plan.claims.len(), 1);
    let (claim, node) = open("n", "gpu");
    let claim = true_since(claim, ConditionType::Empty, 3700);
    let snapshot = with(with(cluster(aws(), [pool]), [claim]), [node]);
    let closes = |seconds| {
        let actions = decide(&snapshot, at(seconds)).actions;
        actions.iter().any(|action| matches!(action, Action::SetTaints { .. }))
    };
    assert!(!closes(7200), "in its time it stays");
    assert!(decide(&snapshot, at(7200)).wake_at.is_some_and(|at_| at_ <= at(7260)), "nobody else tells");
    assert!(closes(9 * 3600 + 60), "after it, it goes");
}

#[test]
fn a_plan_counts_units_of_buffers_apart_from_pods() {
    let limits = PoolLimits { nodes: Some(2), ..PoolLimits::default() };
    let pool = Pool {
        requirements: vec![is_in("node.kubernetes.io/instance-type", &["g5.xlarge"])],
        limits,
        ..buffered(vec![buffer(3, 1, 1)])
    };
    // A plan from files plans pods and units together.
    let options = PlanOptions { include_waiting: true, ..PlanOptions::default() };
    let snapshot = with(cluster(aws(), [pool]), [pod("a", requests(2, 1, 0))]);
    let plan = plan(&snapshot, at(10), &options, &mut NeverStop);
    assert_eq!((plan.counts.total, plan.counts.on_new, plan.counts.unplaced), (1, 1, 0));
    assert_eq!((plan.counts.units, plan.counts.units_unplaced), (3, 1), "two nodes of one GPU are allowed");
    assert_eq!(plan.units_on.values().copied().collect::<Vec<_>>(), [1, 1]);
    // A node for the pod alone leaves one node for the units that the plan has room for.
    let alone = plan.baselines.one_pod_per_node;
    assert_eq!((alone.unplaced, alone.units_unplaced), (0, 1));
}
