//! Tests of limits of namespaces: one namespace cannot spend for others.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{Catalogue, RankedOffering, UsdPerHour};
use poolwright_core::index::{Change, ClusterIndex};
use poolwright_core::plan::{MovedTo, Plan, PlanOptions, PlannedClaim, UnplacedPod, UnplacedReason, plan};
use poolwright_core::why::events::of_plan;
use poolwright_core::*;
use poolwright_solver::{NeverStop, Options};
use poolwright_terms::{ConditionStatus, ConditionType, Reason};
use proptest::prelude::*;

use crate::kit::*;

const GPUS: NamespaceLimit = NamespaceLimit::Gpus;
const NODES: NamespaceLimit = NamespaceLimit::Nodes;
const MONEY: NamespaceLimit = NamespaceLimit::UsdPerHour;

fn namespace(name: &str, limits: &[(NamespaceLimit, Option<u64>)]) -> Namespace {
    let limits = limits.iter().copied().collect();
    Namespace { name: name.into(), labels: BTreeMap::new(), limits }
}

/// States a limit, as people write it.
fn limited(mut snapshot: Snapshot, name: &str, limit: NamespaceLimit, amount: &str) -> Snapshot {
    snapshot.put_namespace(namespace(name, &[(limit, Some(limit.read(amount).unwrap()))]));
    snapshot
}

/// Returns a pod of a namespace, created at this second.
fn of(namespace: &str, name: &str, second: i64, pod: Pod) -> Pod {
    let uid = Uid(format!("{namespace}-{name}"));
    Pod { key: PodKey::new(namespace, name), uid, created: at(second), ..pod }
}

/// Returns pods with one GPU each, the oldest first.
fn gpu_pods(namespace: &str, count: usize) -> Vec<Pod> {
    (0..count).map(|n| of(namespace, &format!("p{n}"), n as i64, pod("", requests(1, 1, 1)))).collect()
}

/// Returns the names of the pods of a namespace for which the plan buys nodes, sorted.
fn bought_for(plan: &Plan, namespace: &str) -> Vec<String> {
    let pods = plan.claims.iter().flat_map(|claim| &claim.planned_pods);
    let theirs = pods.filter(|pod| pod.namespace() == namespace);
    let mut names: Vec<String> = theirs.map(|pod| pod.name().into_owned()).collect();
    names.sort();
    names
}

/// Returns the reason and the message of the last pod that the plan leaves out.
fn left(plan: &Plan) -> (UnplacedReason, &str) {
    let left = plan.unplaced.last().expect("a pod is left out");
    (left.reason, &left.message)
}

#[test]
fn a_namespace_gets_the_gpus_of_its_limit_for_its_oldest_pods_and_others_get_all_of_theirs() {
    let newest_first = gpu_pods("ml", 5)
        .into_iter()
        .map(|pod| Pod { created: at(9 - pod.created.duration_since(at(0)).as_secs()), ..pod });
    let pods = newest_first.chain(gpu_pods("web", 3));
    let snapshot = limited(with(cluster(aws(), [pool("gpu")]), pods), "ml", GPUS, "2");
    let plan = planned(&snapshot);
    assert_eq!(bought_for(&plan, "ml"), ["p3", "p4"]);
    assert_eq!(bought_for(&plan, "web"), ["p0", "p1", "p2"]);
    assert_eq!(
        left(&plan),
        (
            UnplacedReason::NamespaceLimitReached,
            "limit gpus = 2 of namespace `ml` is reached (in use or on order: 2; it would add 1); raise \
             poolwright.dev/limit-gpus of the Namespace, or end pods of the namespace"
        )
    );
    assert_eq!(plan.pools[&pool("gpu").name].limit_reached, None, "no limit of the pool is reached");
    assert_eq!(plan.again_at, Some(at(310)));
    let is_told = |action: &Action| {
        matches!(action, Action::RecordEvent(event)
            if event.reason == Reason::NamespaceLimitReached && event.kind == EventType::Warning)
    };
    assert_eq!(of_plan(&plan).iter().filter(|action| is_told(action)).count(), 3);
}

#[test]
fn more_important_pods_come_before_older_ones() {
    let important = Pod { priority: 1, ..of("ml", "z", 100, pod("", requests(1, 1, 1))) };
    let pods = gpu_pods("ml", 3).into_iter().chain([important]);
    let snapshot = limited(with(cluster(aws(), [pool("gpu")]), pods), "ml", GPUS, "2");
    assert_eq!(bought_for(&planned(&snapshot), "ml"), ["p0", "z"]);
}

#[test]
fn limits_on_nodes_and_on_money_hold_too() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), gpu_pods("ml", 5));
    let nodes = planned(&limited(snapshot.clone(), "ml", NODES, "1"));
    assert_eq!((nodes.claims.len(), nodes.unplaced.len()), (1, 1), "the largest node holds four pods");
    // The alternatives at $1.10 would be beyond the limit, so they are left out.
    let money = planned(&limited(snapshot.clone(), "ml", MONEY, "2.012"));
    assert_eq!((money.claims.len(), money.cost), (2, usd("2.012")));
    assert!(
        money.claims.iter().flat_map(|claim| &claim.offerings).all(|one| one.price == Some(usd("1.006")))
    );
    assert_eq!(
        left(&money).1,
        "limit usdPerHour = 2.012 of namespace `ml` is reached (in use or on order: $2.012/h; it would add $1.01/h); raise \
         poolwright.dev/limit-usd-per-hour of the Namespace, or end pods of the namespace"
    );
    let too_low = planned(&limited(snapshot, "ml", MONEY, "1"));
    assert_eq!(too_low.claims, []);
    assert_eq!(
        left(&too_low).1,
        "limit usdPerHour = 1.00 of namespace `ml` is below the $1.01/h that it would take in the best plan found; raise \
         poolwright.dev/limit-usd-per-hour of the Namespace"
    );
}

#[test]
fn all_limits_of_the_namespace_that_a_pod_exceeds_are_named_because_raising_one_does_not_help() {
    let within = |gpus: u64, nodes: u64| {
        let kinds = vec![Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")])];
        let mut snapshot = with(cluster(catalogue(kinds), [pool("gpu")]), gpu_pods("ml", 3));
        snapshot.put_namespace(namespace("ml", &[(GPUS, Some(gpus * 1000)), (NODES, Some(nodes))]));
        planned(&snapshot)
    };
    let short = within(2, 2);
    let said = left(&short).1;
    for (name, key) in [("gpus", "limit-gpus"), ("nodes", "limit-nodes")] {
        let limit = format!(
            "limit {name} = 2 of namespace `ml` is reached (in use or on order: 2; it would add 1); raise poolwright.dev/{key} of the \
             Namespace, or end pods of the namespace"
        );
        assert!(said.contains(&limit), "{said}");
    }
    assert!(said.contains("; besides, "), "{said}");
    assert_eq!([within(3, 2).unplaced.len(), within(2, 3).unplaced.len()], [1, 1], "one alone does not help");
    assert_eq!(within(3, 3).unplaced, []);
}

#[test]
fn a_limit_on_money_as_high_as_the_message_says_serves_the_pod_beside_what_is_in_use() {
    let within = |most: &str| {
        let sold = catalogue(vec![
            Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")]),
            Kind("g5.12xlarge", capacity(48, 192, 4), Some("a10g"), &[("a", "5.672")]),
        ]);
        let pods =
            [of("ml", "a", 0, pod("", requests(1, 1, 1))), of("ml", "b", 1, pod("", requests(1, 1, 4)))];
        planned(&limited(with(cluster(sold, [pool("gpu")]), pods), "ml", MONEY, most))
    };
    assert_eq!(
        left(&within("5")).1,
        "limit usdPerHour = 5.00 of namespace `ml` is below the $5.68/h that it would take in the best plan found (in use or on order \
         besides: $1.01/h); raise poolwright.dev/limit-usd-per-hour of the Namespace"
    );
    assert_eq!(within("5.68").unplaced.len(), 1, "the other pod has its node already");
    assert_eq!(within("6.69").unplaced, []);
}

#[test]
fn a_limit_on_nodes_buys_larger_nodes_for_the_pods_that_it_would_leave_out_and_for_no_others() {
    let sold = catalogue(vec![
        Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")]),
        Kind("g5.12xlarge", capacity(48, 192, 4), Some("a10g"), &[("a", "5.672")]),
        Kind("g5.48xlarge", capacity(192, 768, 8), Some("a10g"), &[("a", "16.288")]),
    ]);
    let pods = gpu_pods("ml", 8).into_iter().chain(gpu_pods("web", 2));
    let snapshot = with(cluster(sold, [pool("gpu")]), pods);
    assert_eq!(planned(&snapshot).claims.len(), 10, "ten small nodes are the cheapest");
    let bought = |most: &str| {
        let plan = planned(&limited(snapshot.clone(), "ml", NODES, most));
        assert_eq!((bought_for(&plan, "web").len(), plan.unplaced.len()), (2, 0), "{most} nodes");
        let of = |namespace: &str| {
            let theirs =
                |claim: &&PlannedClaim| claim.planned_pods.iter().any(|pod| pod.namespace() == namespace);
            let kinds = plan
                .claims
                .iter()
                .filter(theirs)
                .map(|claim| claim.offerings[0].offering.instance_type.to_string());
            kinds.collect::<Vec<String>>()
        };
        assert_eq!(of("web"), ["g5.xlarge", "g5.xlarge"], "others buy as before");
        assert!(plan.bound <= plan.cost);
        of("ml")
    };
    assert_eq!(bought("1"), ["g5.48xlarge"]);
    assert_eq!(bought("2"), ["g5.12xlarge", "g5.12xlarge"]);
    assert_eq!(bought("8").len(), 8, "a limit that leaves out no pod changes nothing");
}

#[test]
fn the_end_of_a_pod_makes_a_plan_if_the_limit_of_its_namespace_holds_others_back() {
    let running = |namespace: &str| bound(of(namespace, "old", 0, pod("", requests(1, 1, 1))), "n");
    let ended = |namespace: &str| Pod { phase: PodPhase::Finished, ..running(namespace) };
    let plan = planned(&limited(with(cluster(aws(), [pool("gpu")]), gpu_pods("ml", 2)), "ml", GPUS, "1"));
    assert_eq!(plan.unplaced.len(), 1);
    let mut index = ClusterIndex::new();
    for pod in gpu_pods("ml", 2).into_iter().chain([running("ml"), running("web")]) {
        index.apply_pod(pod);
    }
    index.set_held_by_limits(&plan);
    assert_eq!(index.apply_pod(ended("web")), Change::Life);
    assert_eq!(index.apply_pod(ended("ml")), Change::Room);
    assert_eq!(index.delete_pod(&ObjectKey::new("ml", "old")), Change::Life, "its place is free already");
    assert_eq!(index.delete_pod(&ObjectKey::new("ml", "p1")), Change::Life, "a held pod has no place");
    index.apply_pod(running("ml"));
    index.set_held_by_limits(&Plan::default());
    assert_eq!(index.delete_pod(&ObjectKey::new("ml", "old")), Change::Life, "nobody waits");
}

#[test]
fn a_baseline_that_may_exceed_a_limit_of_a_namespace_is_marked_and_one_within_all_limits_is_not() {
    let sold = catalogue(vec![
        Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")]),
        Kind("g5.12xlarge", capacity(48, 192, 4), Some("a10g"), &[("a", "5.672")]),
    ]);
    let snapshot = with(cluster(sold, [pool("gpu")]), gpu_pods("ml", 5));
    let alone = |limit: NamespaceLimit, most: &str| {
        let plan = planned(&limited(snapshot.clone(), "ml", limit, most));
        assert_eq!(plan.unplaced, [], "{most}");
        plan.baselines.one_pod_per_node
    };
    // Four nodes for five pods: large nodes are bought, and a node for each pod would be one too many.
    assert!(alone(NODES, "4").ignores_namespace_limits);
    for (limit, most) in [(NODES, "5"), (GPUS, "5"), (MONEY, "5.03")] {
        let alone = alone(limit, most);
        assert!(!alone.ignores_namespace_limits, "{limit:?}");
        assert_eq!((alone.cost, alone.nodes), (usd("5.03"), 5), "of the cheapest nodes");
    }
    // Small pods share one node, and the limit on nodes holds nobody back.
    let small = (0..3).map(|n| of("ml", &format!("s{n}"), n, pod("", requests(1, 1, 0))));
    let sold = catalogue(vec![Kind("m6i.xlarge", capacity(4, 16, 0), None, &[("a", "0.192")])]);
    let plan = planned(&limited(with(cluster(sold, [pool("cpu")]), small), "ml", NODES, "1"));
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 0));
    assert!(plan.baselines.one_pod_per_node.ignores_namespace_limits);
    assert!(!plan.baselines.first_fit.ignores_namespace_limits, "it buys one node, too");
}

#[test]
fn a_node_beyond_the_limit_on_money_is_replaced_by_a_cheaper_one_for_fewer_pods() {
    let sold = catalogue(vec![
        Kind("c7.xlarge", capacity(4, 8, 0), None, &[("a", "0.17")]),
        Kind("c7.2xlarge", capacity(8, 16, 0), None, &[("a", "0.30")]),
    ]);
    let pods = (0..7).map(|n| of("ml", &format!("p{n}"), n, pod("", requests(1, 1, 0))));
    let snapshot = with(cluster(sold, [pool("cpu")]), pods);
    assert_eq!(planned(&snapshot).cost, usd("0.30"));
    let plan = planned(&limited(snapshot, "ml", MONEY, "0.29"));
    assert_eq!((plan.cost, bought_for(&plan, "ml").len()), (usd("0.17"), 4));
    assert_eq!(plan.unplaced.len(), 3);
}

#[test]
fn the_default_holds_for_namespaces_that_state_no_limit_and_an_unreadable_limit_lifts_none() {
    let options = PlanOptions { namespace_limits: [(GPUS, 2000)].into(), ..PlanOptions::default() };
    let pods = ["ml", "web", "typo"].into_iter().flat_map(|name| gpu_pods(name, 4));
    let mut snapshot = limited(with(cluster(aws(), [pool("gpu")]), pods), "ml", GPUS, "3");
    snapshot.put_namespace(namespace("typo", &[(GPUS, None), (NODES, None)]));
    let plan = plan(&snapshot, at(10), &options, &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    let counts = ["ml", "web", "typo"].map(|name| bought_for(&plan, name).len());
    assert_eq!(counts, [3, 2, 0], "an unreadable limit without a default is zero");
    let message = |name: &str| {
        let left = plan.unplaced.iter().find(|left| left.pod.namespace() == name).unwrap();
        left.message.clone()
    };
    assert_eq!(
        message("web"),
        "limit gpus = 2 (default) of namespace `web` is reached (in use or on order: 2; it would add 1); set \
         poolwright.dev/limit-gpus of the Namespace, or end pods of the namespace"
    );
    assert_eq!(
        message("typo"),
        "limit nodes = 0 of namespace `typo` is below the 1 that it would take in the best plan found; correct poolwright.dev/limit-nodes of the Namespace"
    );
}

#[test]
fn what_is_on_order_counts_also_after_a_restart_and_what_has_ended_does_not() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), gpu_pods("ml", 5));
    let snapshot = limited(snapshot, "ml", GPUS, "2");
    let first = planned(&snapshot);
    let mut restarted = carried_out(&snapshot, &first, 10);
    restarted.nominations.clear();
    let second = planned_at(&restarted, 20);
    assert_eq!((second.claims.len(), second.unplaced.len()), (0, 3));
    // One of the nodes is gone with its pod.
    let gone = first.claims[0].planned_pods[0].clone();
    restarted.pods.remove(&gone);
    restarted.claims.remove(&first.claims[0].name);
    assert_eq!(bought_for(&planned_at(&restarted, 30), "ml"), ["p2"]);
}

#[test]
fn pods_that_no_offering_fits_use_up_no_limit() {
    let huge = of("ml", "huge", -1, pod("", requests(1, 1, 2)));
    let only_small =
        Pool { requirements: vec![is_in("node.kubernetes.io/instance-type", &["g5.xlarge"])], ..pool("gpu") };
    let pods = gpu_pods("ml", 3).into_iter().chain([huge]);
    let snapshot = limited(with(cluster(aws(), [only_small]), pods), "ml", GPUS, "2");
    assert_eq!(bought_for(&planned(&snapshot), "ml"), ["p0", "p1"]);
}

/// Returns a cluster with a gang of pods with one GPU each, and a pod of its own in the same namespace.
fn gang_and_single(pods: usize, min_count: u32) -> Snapshot {
    let group = PodGroup {
        key: ObjectKey::new("ml", "train"),
        uid: Uid("train".into()),
        min_count: Some(min_count),
        roles: vec![],
        unmodelled: vec![],
        stands_for: None,
        held: None,
    };
    let member = |n: usize| {
        let pod = Pod { group: Some("train".into()), ..pod("", requests(1, 1, 1)) };
        of("ml", &format!("train-{n}"), 0, pod)
    };
    let single = of("ml", "z", 50, pod("", requests(1, 1, 1)));
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), (0..pods).map(member).chain([single]));
    snapshot.pod_groups.insert(group.key.clone(), group.into());
    snapshot
}

#[test]
fn a_gang_is_bought_whole_or_not_at_all_and_leaves_the_limit_to_others() {
    let snapshot = gang_and_single(4, 4);
    let whole = planned(&limited(snapshot.clone(), "ml", GPUS, "4"));
    assert_eq!(bought_for(&whole, "ml"), ["train-0", "train-1", "train-2", "train-3"]);
    let none = planned(&limited(snapshot, "ml", GPUS, "3"));
    assert_eq!(bought_for(&none, "ml"), ["z"]);
    assert_eq!(
        left(&none),
        (
            UnplacedReason::NamespaceLimitReached,
            "limit gpus = 3 of namespace `ml` is below the 4 that its gang needs (in use or on order besides: 1); raise poolwright.dev/limit-gpus of the Namespace"
        )
    );
}

#[test]
fn a_limit_needs_to_hold_the_minimum_of_a_gang_and_its_further_pods_come_one_by_one() {
    let snapshot = gang_and_single(6, 4);
    let gpus = |most: &str| planned(&limited(snapshot.clone(), "ml", GPUS, most));
    let four = gpus("4");
    assert_eq!(bought_for(&four, "ml"), ["train-0", "train-1", "train-2", "train-3"]);
    assert_eq!(
        left(&four).1,
        "limit gpus = 4 of namespace `ml` is reached (in use or on order: 4; it would add 1); raise \
         poolwright.dev/limit-gpus of the Namespace, or end pods of the namespace"
    );
    assert_eq!(bought_for(&gpus("5"), "ml").len(), 5);
    let none = gpus("3");
    assert_eq!(bought_for(&none, "ml"), ["z"], "no pod of a gang starts without its minimum");
    let is_gangs = |left: &&UnplacedPod| left.message.contains("below the 4 that its gang needs");
    assert_eq!(none.unplaced.iter().filter(is_gangs).count(), 6);
    // The pods with a node count for the minimum.
    let mut running = snapshot.clone();
    for name in ["train-0", "train-1", "train-2"] {
        let key = PodKey::new("ml", name);
        let pod = Pod::clone(running.pods.get(&key).unwrap());
        running = with(running, [bound(pod, "elsewhere")]);
    }
    assert_eq!(bought_for(&planned(&limited(running, "ml", GPUS, "1")), "ml"), ["train-3"]);
    // Money and nodes are judged only when nodes are chosen.
    assert_eq!(bought_for(&planned(&limited(snapshot, "ml", MONEY, "4.1")), "ml").len(), 4);
}

#[test]
fn the_minimum_of_a_gang_has_the_pods_that_its_roles_need() {
    let mut snapshot = gang_and_single(3, 2);
    let key = ObjectKey::new("ml", "train");
    let label = ("role".to_owned(), "master".to_owned());
    let roles = vec![GroupRole { name: "master".into(), label: label.clone(), least: 1 }];
    let group = PodGroup { roles, ..PodGroup::clone(&snapshot.pod_groups[&key]) };
    snapshot.pod_groups.insert(key, group.into());
    let labels = BTreeMap::from([label]);
    let master = Pod { group: Some("train".into()), labels: labels.into(), ..pod("", requests(1, 1, 1)) };
    let snapshot = with(snapshot, [of("ml", "master", 9, master)]);
    let plan = planned(&limited(snapshot, "ml", GPUS, "2"));
    assert_eq!(bought_for(&plan, "ml"), ["master", "train-0"], "{:?}", plan.unplaced);
}

#[test]
fn a_namespace_pays_its_share_of_a_node_that_it_shares() {
    // Both pods fill one c7.xlarge at $0.17, each with half of it.
    let half = |name: &str| of(name, "half", 0, pod("", requests(2, 2, 0)));
    let snapshot = with(cluster(aws(), [pool("cpu")]), [half("ml"), half("web")]);
    let shared = planned(&limited(snapshot.clone(), "ml", MONEY, "0.085"));
    assert_eq!((shared.claims.len(), shared.unplaced.len()), (1, 0));
    let alone = planned(&limited(snapshot, "ml", MONEY, "0.084"));
    assert_eq!((bought_for(&alone, "ml"), bought_for(&alone, "web")), (vec![], vec!["half".to_owned()]));
}

#[test]
fn a_node_is_replaced_also_where_the_limit_is_reached() {
    let running = Pod { owner: Some(Uid("web".into())), ..bound(pod("a", requests(1, 1, 1)), "n") };
    let mut claim = Claim { planned_pods: vec![], ..initialized() };
    let drifted = Condition {
        status: ConditionStatus::True,
        since: at(40),
        reason: Some(Cause::Drifted.reason()),
        message: String::new(),
    };
    claim.conditions.insert(ConditionType::Disrupting, drifted);
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim]), [claimed_node()]);
    let waiting = pod("b", requests(1, 1, 1));
    let snapshot = with(with(snapshot, [running, waiting]), [web(1)]);
    let plan = planned_at(&limited(snapshot, "default", GPUS, "1"), 50);
    assert_eq!(bought(&plan), ["g5.xlarge: ReplicaSet:web#0"]);
    assert!(matches!(plan.moved[0].to, MovedTo::New(_)));
    assert_eq!(left(&plan).0, UnplacedReason::NamespaceLimitReached);
}

#[test]
fn a_changed_limit_makes_a_new_plan() {
    let mut index = ClusterIndex::new();
    let two = || namespace("ml", &[(GPUS, Some(2000))]);
    assert_eq!(index.apply_namespace(two()), Change::Room);
    assert_eq!(index.apply_namespace(two()), Change::None);
    assert_eq!(index.view().namespace("ml"), Some(two()));
    assert_eq!(index.reset_namespaces([namespace("ml", &[])]), Change::Room);
    assert_eq!(index.view().namespace("ml"), Some(namespace("ml", &[])));
    assert_eq!(index.apply_namespace(two()), Change::Room);
    assert_eq!(index.delete_namespace("ml"), Change::Room);
    assert!(index.view().namespace_limits.is_empty());
}

#[test]
fn a_gang_that_only_larger_nodes_bring_beyond_a_limit_of_a_pool_is_told_of_the_limit_of_its_namespace() {
    const TYPE: &str = "node.kubernetes.io/instance-type";
    let sold = catalogue(vec![
        Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")]),
        Kind("g5.12xlarge", capacity(48, 192, 4), Some("a10g"), &[("a", "3.90")]),
        Kind("c7.small", capacity(2, 8, 0), None, &[("a", "0.10")]),
        Kind("c7.large", capacity(8, 32, 0), None, &[("a", "0.50")]),
    ]);
    let gpus = PoolLimits {
        resources: [(poolwright_catalog::ResourceName::new("nvidia.com/gpu"), 7)].into(),
        ..PoolLimits::default()
    };
    let gpu = Pool {
        limits: gpus,
        taints: vec![taint("team", "a")],
        requirements: vec![is_in(TYPE, &["g5.xlarge", "g5.12xlarge"])],
        ..pool("gpu")
    };
    let cpu = Pool { requirements: vec![is_in(TYPE, &["c7.small", "c7.large"])], ..pool("cpu") };
    let mut snapshot = cluster(sold, [gpu, cpu]);
    snapshot.pod_groups = gang_and_single(6, 6).pod_groups;
    let member = |at: usize| {
        let mut one = Pod { group: Some("train".into()), ..pod("", requests(1, 1, 1)) };
        one.spec.tolerations.push(tolerate("team"));
        of("ml", &format!("train-{at}"), 0, one)
    };
    let web = |at: usize| of("web", &format!("w{at}"), 0, pod("", requests(2, 2, 0)));
    let snapshot = with(snapshot, (0..6).map(member).chain((0..4).map(web)));
    // The four pods of the other namespace get one larger node, so this plan leaves out fewer pods.
    let within =
        |most: &str| planned(&limited(limited(snapshot.clone(), "web", NODES, "1"), "ml", NODES, most));
    let plan = within("2");
    assert_eq!((bought_for(&plan, "web").len(), bought_for(&plan, "ml").len()), (4, 0));
    for left in &plan.unplaced {
        assert_eq!(
            (left.reason, left.message.as_str()),
            (
                UnplacedReason::NamespaceLimitReached,
                "limit nodes = 2 of namespace `ml` is below the 3 that its gang would take in the best plan found; raise \
                 poolwright.dev/limit-nodes of the Namespace"
            )
        );
    }
    assert_eq!(within("3").unplaced, [], "the advice helps");
}

fn shop() -> Catalogue {
    catalogue(vec![
        Kind("one", capacity(4, 16, 1), Some("a10g"), &[("a", "1.00"), ("b", "1.05")]),
        Kind("four", capacity(16, 64, 4), Some("a10g"), &[("a", "3.50")]),
        Kind("cpu", capacity(8, 32, 0), None, &[("a", "0.40"), ("b", "0.40")]),
        Kind("large", capacity(32, 128, 0), None, &[("a", "1.50")]),
    ])
}

const TEAMS: [&str; 3] = ["a", "b", "c"];

fn any_limits() -> impl Strategy<Value = StatedLimits> {
    let amount = |most: u64, unit: u64| proptest::option::of((0..most).prop_map(move |n| n * unit));
    (amount(5, 1), amount(6, 1000), amount(40, 250_000)).prop_map(|(nodes, gpus, money)| {
        let all = [(NODES, nodes), (GPUS, gpus), (MONEY, money)];
        all.into_iter().filter(|(_, amount)| amount.is_some()).collect()
    })
}

fn any_cluster() -> impl Strategy<Value = Snapshot> {
    let one = (0_usize..TEAMS.len(), 1_u64..9, 1_u64..30, 0_u64..4, 0_i32..2);
    let limits = [any_limits(), any_limits(), any_limits()];
    (proptest::collection::vec(one, 0..20), limits).prop_map(|(pods, limits)| {
        let pods = pods.into_iter().enumerate().map(|(n, (team, cpu, memory, gpus, priority))| Pod {
            priority,
            ..of(TEAMS[team], &format!("p{n}"), (n % 5) as i64, pod("", requests(cpu, memory, gpus)))
        });
        let mut snapshot = with(cluster(shop(), [pool("all")]), pods);
        for (name, limits) in TEAMS.into_iter().zip(limits) {
            snapshot.put_namespace(Namespace { name: name.into(), labels: BTreeMap::new(), limits });
        }
        snapshot
    })
}

fn quick(snapshot: &Snapshot, seconds: i64) -> Plan {
    let solver = Options { work: 50_000, ..Options::default() };
    let options = PlanOptions { solver, baselines: false, ..PlanOptions::default() };
    plan(snapshot, at(seconds), &options, &mut NeverStop)
}

/// A node: what it may be, and its pods.
type Shared<'a> = (&'a [RankedOffering], Vec<&'a Pod>);

/// Returns how many nodes, thousandths of GPUs and micro-dollars a namespace uses.
fn used(nodes: &[Shared<'_>], namespace: &str) -> BTreeMap<NamespaceLimit, u64> {
    let mut used = BTreeMap::from([(NODES, 0), (GPUS, 0), (MONEY, 0)]);
    for (offerings, pods) in nodes {
        let own: Vec<&Pod> = pods.iter().copied().filter(|pod| pod.key.namespace() == namespace).collect();
        if own.is_empty() {
            continue;
        }
        let weight = |pods: &[&Pod], offering: &RankedOffering| -> u64 {
            let of = |pod: &&Pod| {
                let requests = pod.spec.requests.iter().filter(|(name, _)| name.as_str() != "pods");
                let parts = requests.map(|(name, wanted)| {
                    wanted * 1_000_000 / offering.allocatable.get(name.as_str()).max(1)
                });
                parts.max().unwrap_or(0).clamp(1, 1_000_000)
            };
            pods.iter().map(of).sum()
        };
        let share = |offering: &RankedOffering| {
            let price = offering.price.map_or(0, UsdPerHour::micros);
            (price * weight(&own, offering)).div_ceil(weight(pods, offering))
        };
        let gpus: u64 = own.iter().map(|pod| pod.spec.requests.get("nvidia.com/gpu")).sum();
        *used.entry(NODES).or_default() += 1;
        *used.entry(GPUS).or_default() += gpus * 1000;
        *used.entry(MONEY).or_default() += offerings.iter().map(share).max().unwrap_or(0);
    }
    used
}

/// Returns the nodes that a plan buys.
fn nodes<'a>(plan: &'a Plan, snapshot: &'a Snapshot) -> Vec<Shared<'a>> {
    let of = |key: &PodKey| snapshot.pods.get(key).map(AsRef::as_ref);
    let node = plan.claims.iter();
    node.map(|claim| (claim.offerings.as_slice(), claim.planned_pods.iter().filter_map(of).collect()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_plan_buys_beyond_a_limit_and_pods_beyond_it_do_not_change_the_plans_of_others(snapshot in any_cluster()) {
        let plan = quick(&snapshot, 10);
        prop_assert_eq!(&plan.refused, &Vec::<String>::new());
        for (name, limits) in snapshot.namespace_limits.iter() {
            let used = used(&nodes(&plan, &snapshot), name);
            for (limit, most) in limits {
                prop_assert!(used[limit] <= most.unwrap(), "{name}: {limit:?}: {} of {most:?}", used[limit]);
            }
        }
        let held: BTreeSet<&PodKey> = plan
            .unplaced
            .iter()
            .filter(|left| left.reason == UnplacedReason::NamespaceLimitReached)
            .map(|left| &left.pod)
            .collect();
        let mut without = snapshot.clone();
        without.pods.retain(|key, _| !held.contains(key));
        prop_assert_eq!(&quick(&without, 10).claims, &plan.claims);
        // What was bought keeps its place, and nothing more is bought beyond a limit.
        let second = quick(&carried_out(&snapshot, &plan, 10), 20);
        prop_assert_eq!(&second.refused, &Vec::<String>::new());
        let once: BTreeSet<&PodKey> = plan.claims.iter().flat_map(|claim| &claim.planned_pods).collect();
        prop_assert!(second.claims.iter().flat_map(|claim| &claim.planned_pods).all(|pod| !once.contains(pod)));
    }

    #[test]
    fn without_limits_nothing_is_held(snapshot in any_cluster()) {
        let mut free = snapshot;
        free.namespace_limits = LimitsByNamespace::new().into();
        let plan = quick(&free, 10);
        prop_assert!(plan.unplaced.iter().all(|left| left.reason != UnplacedReason::NamespaceLimitReached));
    }
}
