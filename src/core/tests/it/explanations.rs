//! Tests of explanations of pods, claims, nodes and pools.

use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_catalog::{RankedOffering, Usd};
use poolwright_core::plan::{Plan, PlanOptions, Sharing, plan};
use poolwright_core::{
    Claim, ClaimName, Lives, Pod, PodDuration, PodKey, Pool, PoolName, Reported, RequestOrigin, RequestPart,
    Retirement, Retirements, Snapshot, TopologySpreadConstraint, why,
};
use poolwright_solver::NeverStop;
use poolwright_terms::ConditionType;
use poolwright_terms::keys::RESERVED_TAINT;

use crate::kit::*;

fn of_pod(snapshot: &Snapshot, name: &str) -> Vec<String> {
    let plan = planned(snapshot);
    why::pod(snapshot, at(10), &PlanOptions::default(), &plan, &key(name)).expect("the pod exists")
}

#[test]
fn the_story_of_a_pod_that_gets_a_node_says_what_was_considered_and_why_this_one() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [pod("p", requests(1, 1, 1))]);
    assert_eq!(
        of_pod(&snapshot, "p"),
        [
            "Pod default/p asks for 1 cpu, 1Gi memory, 1 x nvidia.com/gpu.",
            "Considered 5 offerings, by pool: gpu (5).",
            "Ruled out: 1 (less than 1 nvidia.com/gpu).",
            "4 offerings could hold it alone; the cheapest is g5.xlarge/a/on-demand of pool gpu at $1.01/h.",
            "Planned on a new node of pool gpu alone: g5.xlarge on-demand in a at $1.01/h holds 1 pod (1 x nvidia.com/gpu); next best: g6.xlarge at $1.10/h, 9 % dearer.",
        ]
    );
}

#[test]
fn the_story_of_a_pod_that_nothing_holds_names_the_nearest_miss_and_what_to_do() {
    let mut wanting = pod("p", requests(1, 1, 8));
    wanting.spec.node_selector.insert("poolwright.dev/gpu-model".into(), "a10g".into());
    let mut tainted = pool("tainted");
    tainted.taints = vec![taint("team", "x")];
    let lines = of_pod(&with(cluster(aws(), [pool("gpu"), tainted]), [wanting]), "p");
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert_eq!(
        lines[0],
        "Pod default/p asks for 1 cpu, 1Gi memory, 8 x nvidia.com/gpu; a node with `poolwright.dev/gpu-model=a10g`."
    );
    assert_eq!(
        lines[2],
        "Ruled out: 5 (taint `team=x:NoSchedule` of pool tainted), 3 (less than 8 nvidia.com/gpu), 2 (not `poolwright.dev/gpu-model=a10g`)."
    );
    assert_eq!(
        lines[3],
        "Nearest miss: g5.12xlarge/a/on-demand of pool gpu: less than 8 nvidia.com/gpu. To change that: ask for at most 4 nvidia.com/gpu."
    );
    assert_eq!(
        lines[4],
        "Not planned (NoOfferingFits): needs 8 nvidia.com/gpu in one node; the largest offering of pool `gpu` for it, g5.12xlarge, has 4; no instance type in the catalogue has more than 4, so ask for less."
    );
}

#[test]
fn the_nearest_miss_is_the_one_that_lacks_least_and_says_how_to_get_past_it() {
    let nearest = |pod: Pod, pool: Pool| {
        let lines = of_pod(&with(cluster(aws(), [pool]), [pod]), "p");
        lines.into_iter().find(|line| line.starts_with("Nearest")).expect("nothing fits")
    };
    assert_eq!(
        nearest(pod("p", requests(64, 1, 0)), pool("gpu")),
        "Nearest miss: g5.12xlarge/a/on-demand of pool gpu: less than 64 cpu. To change that: ask for at most 48 cpu."
    );
    let mut tainted = pool("gpu");
    tainted.taints = vec![taint("team", "x")];
    let line = nearest(pod("p", requests(1, 1, 0)), tainted);
    assert!(line.ends_with("To change that: add a toleration of `team=x:NoSchedule`."), "{line}");
    let mut selecting = pod("p", requests(1, 1, 0));
    selecting.spec.node_selector.insert("disk".into(), "ssd".into());
    let line = nearest(selecting, pool("gpu"));
    assert!(
        line.contains("To change that: drop the rule on `disk`, or add the label to spec.template"),
        "{line}"
    );
}

#[test]
fn no_pool_is_told_to_give_all_its_nodes_one_host_name() {
    let mut selecting = pod("p", requests(1, 1, 0));
    selecting.spec.node_selector.insert("kubernetes.io/hostname".into(), "n1".into());
    let lines = of_pod(&with(cluster(aws(), [pool("gpu")]), [selecting]), "p");
    assert!(lines[3].ends_with("a new node has another name."), "{lines:#?}");
}

#[test]
fn a_node_that_is_not_ready_is_not_said_to_be_used_first() {
    let told = |node: poolwright_core::Node| {
        let snapshot = with(cluster(aws(), [pool("gpu")]), [node]);
        why::node(&snapshot, at(10), &planned(&snapshot), "n").expect("the node exists")[2].clone()
    };
    let node = node("n", capacity(4, 16, 1));
    assert_eq!(told(node.clone()), "It runs no workload pod; Poolwright uses its room first.");
    assert_eq!(told(poolwright_core::Node { ready: false, ..node.clone() }), "It runs no workload pod.");
    assert_eq!(told(poolwright_core::Node { cordoned: true, ..node }), "It runs no workload pod.");
}

#[test]
fn room_behind_a_taint_is_only_said_to_be_used_for_pods_that_tolerate_it() {
    let tainted = |key: &str, value: &str| {
        let node = poolwright_core::Node { taints: vec![taint(key, value)], ..node("n", capacity(4, 16, 1)) };
        let snapshot = with(cluster(aws(), [pool("gpu")]), [node]);
        why::node(&snapshot, at(10), &planned(&snapshot), "n").expect("the node exists")[2].clone()
    };
    assert_eq!(
        tainted("nvidia.com/gpu", "true"),
        "It runs no workload pod; Poolwright uses its room first for pods that tolerate its taint `nvidia.com/gpu=true:NoSchedule`."
    );
    let ended = tainted(poolwright_terms::keys::DISRUPTED_TAINT, "");
    assert_eq!(ended, "It runs no workload pod.", "no plan uses it");
    let pressed = poolwright_core::Node {
        taints: vec![taint("node.kubernetes.io/disk-pressure", "")],
        ..claimed_node()
    };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [initialized()]), [pressed]);
    let lines = why::node(&snapshot, at(1000), &planned(&snapshot), "n").expect("the node exists");
    let told =
        "It is open only to pods that tolerate its taint `node.kubernetes.io/disk-pressure:NoSchedule`.";
    assert!(lines.iter().any(|line| line == told), "{lines:#?}");
}

#[test]
fn the_nearest_miss_names_every_label_that_is_missing() {
    let mut selecting = pod("p", requests(1, 1, 0));
    for (key, value) in [("disk", "ssd"), ("team", "ml")] {
        selecting.spec.node_selector.insert(key.into(), value.into());
    }
    let lines = of_pod(&with(cluster(aws(), [pool("gpu")]), [selecting]), "p");
    let nearest = lines.iter().find(|line| line.starts_with("Nearest")).expect("nothing fits");
    assert!(
        nearest.contains("not `disk=ssd`; not `team=ml`. To change that: drop the rule on `disk`"),
        "{nearest}"
    );
    assert!(nearest.contains("; and drop the rule on `team`"), "{nearest}");
}

#[test]
fn only_offerings_with_gpus_to_cut_could_hold_a_pod_that_asks_for_a_mig_instance() {
    let requests = requests(1, 1, 0).with("nvidia.com/mig-1g.10gb", 1);
    let snapshot = with(cluster(aws(), [pool("gpu")]), [pod("p", requests)]);
    let options = PlanOptions { sharing: Sharing::Mig { mixed: false }, ..PlanOptions::default() };
    let plan = plan(&snapshot, at(10), &options, &mut NeverStop);
    let lines = why::pod(&snapshot, at(10), &options, &plan, &key("p")).expect("the pod exists");
    assert!(!lines.iter().any(|line| line.contains("could hold it alone")), "{lines:#?}");
    assert!(lines[2].starts_with("Ruled out: 5 ("), "{lines:#?}");
}

#[test]
fn the_nearest_miss_of_a_gpu_pod_is_a_node_with_gpus_and_names_everything_in_the_way() {
    let cpus = Pool {
        requirements: vec![is_in("node.kubernetes.io/instance-type", &["c7.xlarge"])],
        ..pool("a-cpu")
    };
    let gpus = Pool { taints: vec![taint("gpu", "")], ..pool("z-gpu") };
    let lines = of_pod(&with(cluster(aws(), [cpus, gpus]), [pod("p", requests(8, 1, 1))]), "p");
    let nearest = lines.iter().find(|line| line.starts_with("Nearest")).expect("nothing fits");
    assert!(nearest.contains("of pool z-gpu: taint `gpu:NoSchedule` of pool z-gpu"), "{nearest}");
    assert!(nearest.ends_with("To change that: add a toleration of `gpu:NoSchedule`."), "{nearest}");
}

#[test]
fn the_story_of_a_pod_names_the_daemonset_that_takes_the_room() {
    let agent = poolwright_core::DaemonSet {
        key: object_key("agent"),
        labels: std::collections::BTreeMap::new(),
        spec: poolwright_core::PodSpec { requests: requests(6, 1, 0), ..Default::default() },
    };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [agent]), [pod("p", requests(44, 1, 0))]);
    let lines = of_pod(&snapshot, "p");
    let nearest = lines.iter().find(|line| line.starts_with("Nearest")).expect("nothing fits");
    assert!(nearest.contains("less than 44 cpu, because DaemonSet default/agent takes 6."), "{nearest}");
}

#[test]
fn the_event_of_a_pod_carries_the_story_and_is_cut_between_lines() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [pod("p", requests(1, 1, 8))]);
    let lines = of_pod(&snapshot, "p");
    let sentence = "needs 8 nvidia.com/gpu in one node";
    let note = why::event_note(&key("p"), sentence, &lines, 1024);
    let told: Vec<&str> = note.lines().collect();
    assert_eq!(told[0], sentence, "lists of events show one line");
    assert_eq!(told[1..], lines[..lines.len() - 1], "the whole story: {note}");

    // Lines after the result are included too.
    let relaxed = [lines.clone(), vec!["Relaxed: a preference.".to_owned()]].concat();
    let note = why::event_note(&key("p"), sentence, &relaxed, 1024);
    assert!(note.ends_with("\nRelaxed: a preference.") && !note.contains("Not planned"), "{note}");

    let cut = why::event_note(&key("p"), sentence, &lines, 200);
    let told: Vec<&str> = cut.lines().collect();
    assert!(cut.len() <= 200 && told.len() >= 3, "{} {cut}", cut.len());
    assert_eq!(told.last(), Some(&"`poolwright explain pod default/p` shows the rest."));
    assert_eq!(told[1..told.len() - 1], lines[..told.len() - 2], "no line is cut");
    let cut = why::event_note(&key("p"), &"€".repeat(1000), &lines, 1024);
    assert!(cut.len() <= 1024 && cut.contains("...\n`poolwright explain"), "{} {cut}", cut.len());
}

#[test]
fn a_name_in_an_explanation_begins_no_line_of_the_event() {
    let story = ["Node a\n  FORGED\u{202e} is full.".to_owned()];
    let note = why::event_note(&key("p"), "no pool has `a\nFORGED`", &story, 1024);
    assert_eq!(note, "no pool has `a\\nFORGED`\nNode a\\n  FORGED\\u{202e} is full.");
}

#[test]
fn pods_that_ask_for_the_same_are_told_of_together_as_alone() {
    let pods = ["p", "q", "r"].map(|name| pod(name, requests(1, 1, if name == "r" { 8 } else { 1 })));
    let snapshot = with(cluster(aws(), [pool("gpu")]), pods);
    let plan = planned(&snapshot);
    let keys = ["p", "q", "r", "gone"].map(key);
    let told = why::pods(&snapshot, at(10), &PlanOptions::default(), &plan, &keys.iter().collect::<Vec<_>>());
    let alone = ["p", "q", "r"].map(|name| Some(of_pod(&snapshot, name)));
    assert_eq!(told[..3], alone);
    assert_eq!(told[3], None);
}

#[test]
fn a_pod_that_runs_is_told_of_in_two_lines() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [bound(pod("p", requests(1, 1, 1)), "n")]);
    assert_eq!(of_pod(&snapshot, "p")[1], "It is bound to node n, which does not exist here.");
    let there = with(snapshot.clone(), [node("n", capacity(4, 16, 1))]);
    assert_eq!(of_pod(&there, "p")[1], "It is on node n; see `poolwright explain node n`.");
    let ends = Pod { deleting_since: Some(at(1)), ..bound(pod("p", requests(1, 1, 1)), "n") };
    let told = of_pod(&with(there, [ends]), "p");
    assert_eq!(told[1], "It is being deleted, and is still on node n; see `poolwright explain node n`.");
    let none =
        why::pod(&snapshot, at(10), &PlanOptions::default(), &planned(&snapshot), &PodKey::new("a", "b"));
    assert_eq!(none, None);
}

#[test]
fn the_story_of_a_claim_says_why_it_was_bought_and_what_keeps_it() {
    let first = with(cluster(aws(), [pool("gpu")]), [pod("p", requests(1, 1, 1))]);
    let plan = planned(&first);
    let carried = carried_out(&first, &plan, 10);
    let name = &plan.claims[0].name;
    let lines = why::claim(&carried, at(75), &plan, name).expect("the claim exists");
    assert_eq!(
        lines[0],
        format!(
            "Claim {name} of pool gpu: g5.xlarge/a/on-demand at $1.01/h ($734.38/month), created 1m 5s ago."
        )
    );
    assert!(
        lines[1].starts_with("Bought because g5.xlarge on-demand in a at $1.01/h holds 1 pod"),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].starts_with("If it is not available, g5.xlarge/b/on-demand at $1.01/h is next"),
        "{}",
        lines[2]
    );
    assert_eq!(lines[3], "It is not launched yet. Poolwright gives it up in 3m 55s, 5m after its creation.");
    assert_eq!(lines[4], "Kept for 1 pod: default/p.");
}

#[test]
fn the_explanation_of_a_node_names_its_claim_and_its_pods() {
    let runs = bound(pod("p", requests(1, 1, 1)), "n");
    let ours =
        with(with(with(cluster(aws(), [pool("gpu")]), [initialized()]), [claimed_node()]), [runs.clone()]);
    let lines = why::node(&ours, at(100), &Plan::default(), "n").expect("the node exists");
    assert_eq!(lines[0], "Node n has 1 x nvidia.com/gpu; ready.");
    assert_eq!(
        lines[1],
        "Claim c of pool gpu: g5.xlarge/a/on-demand at $1.01/h ($734.38/month), created 1m 40s ago."
    );
    assert_eq!(lines.last().map(String::as_str), Some("Kept because it runs 1 pod: default/p."));

    let foreign = with(with(cluster(aws(), [pool("gpu")]), [node("n", capacity(4, 16, 0))]), [runs]);
    let lines = why::node(&foreign, at(100), &Plan::default(), "n").expect("the node exists");
    assert_eq!(lines[1], "It has no claim: Poolwright did not buy it and never removes it.");
    assert_eq!(why::node(&foreign, at(100), &Plan::default(), "m"), None);
}

/// Returns a claim with a condition that is not met, and what keeps it so.
fn waits_for(mut claim: Claim, kind: ConditionType, message: &str) -> Claim {
    claim = true_since(claim, kind, 5);
    let condition = claim.conditions.get_mut(&kind).expect("just set");
    (condition.status, condition.message) = (poolwright_terms::ConditionStatus::False, message.to_owned());
    claim
}

/// Returns the lines about the claim and its node, without the first two.
fn told_of(claim: Claim, node: poolwright_core::Node) -> Vec<String> {
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim]), [node]);
    let lines = why::claim(&snapshot, at(100), &Plan::default(), &ClaimName("c".into()));
    lines.expect("the claim exists").split_off(2)
}

#[test]
fn a_claim_says_what_its_next_step_waits_for_and_until_when() {
    let taint = "the startup taint gpu-driver:NoSchedule is still there";
    let starting =
        Claim { node_name: Some("n".into()), ..true_since(launched(claim()), ConditionType::Registered, 10) };
    let told = told_of(waits_for(starting, ConditionType::Initialized, taint), claimed_node());
    assert_eq!(
        told[0],
        format!(
            "Its node has joined and is not open yet: {taint}. Poolwright gives it up in 13m 30s, 15m after its node joined."
        )
    );
    let ends = Claim { deleting_since: Some(at(40)), ..registered() };
    let told = told_of(waits_for(ends, ConditionType::Drained, "pod a/b is protected"), claimed_node());
    assert_eq!(
        told,
        [
            "It is being deleted since 1m: pod a/b is protected. It has no termination deadline, so it waits as long as pods and budgets require."
        ]
    );
}

#[test]
fn a_claim_says_that_its_instance_runs_on_without_its_tags() {
    let mut ends = Claim { deleting_since: Some(at(40)), ..registered() };
    for kind in [ConditionType::Drained, ConditionType::InstanceTerminating, ConditionType::InstanceUnlisted]
    {
        ends = true_since(ends, kind, 50);
        ends.conditions.get_mut(&kind).expect("just set").message = format!("this is {kind}");
    }
    let told = told_of(ends, claimed_node());
    assert_eq!(told, ["It is being deleted since 1m: this is InstanceUnlisted."]);
    let told = told_of(true_since(initialized(), ConditionType::InstanceUnlisted, 50), claimed_node());
    assert_eq!(told[1], "Something is wrong: as the test says.");
}

#[test]
fn a_node_that_is_not_ready_or_cordoned_is_not_said_to_be_open() {
    let told = |node| told_of(initialized(), node)[0].clone();
    assert!(told(claimed_node()).starts_with("It is open to pods"));
    let sick = poolwright_core::Node { ready: false, ..claimed_node() };
    assert!(told(sick).starts_with("Its node is not ready, so no new pod goes there"));
    let cordoned = poolwright_core::Node { cordoned: true, ..claimed_node() };
    assert_eq!(told(cordoned), "Its node is cordoned, so no new pod goes there.");
}

#[test]
fn an_empty_node_that_an_annotation_keeps_is_not_said_to_be_terminated() {
    let kept = Claim { do_not_disrupt: true, planned_pods: vec![], ..initialized() };
    let told = told_of(kept, claimed_node());
    assert_eq!(
        told[1],
        "It has no work, and the annotation poolwright.dev/do-not-disrupt of its NodeClaim keeps it."
    );
}

#[test]
fn a_pod_that_only_static_pools_could_hold_is_told_what_to_change() {
    let only = |kind: &str| Pool {
        replicas: Some(0),
        requirements: vec![is_in("node.kubernetes.io/instance-type", &[kind])],
        ..pool("fixed")
    };
    let told = |kind: &str| of_pod(&with(cluster(aws(), [only(kind)]), [pod("p", requests(1, 1, 1))]), "p");
    let (helps, does_not) = (told("g5.xlarge"), told("c7.xlarge"));
    let last = helps.last().expect("an outcome");
    assert!(last.contains("`replicas` sets how many nodes pool `fixed` has; raise it"), "{last}");
    let last = does_not.last().expect("an outcome");
    let lack = "more `replicas` of pool `fixed` would not help: the pod needs 1 nvidia.com/gpu in one node, and the next one, \
                c7.xlarge, has 0 for it";
    assert!(last.contains(lack) && !last.contains("raise it"), "{last}");
    let fixed = "every NodePool has a fixed number of nodes (`replicas`)";
    assert!(helps.iter().any(|line| line.contains(fixed)), "{helps:?}");
}

#[test]
fn a_weight_that_makes_a_pod_dearer_is_named_with_the_cheaper_pool() {
    let only = |kind: &str| vec![is_in("node.kubernetes.io/instance-type", &[kind])];
    let heavy = Pool { weight: 50, requirements: only("g5.12xlarge"), ..pool("heavy") };
    let light = Pool { weight: 1, requirements: only("g5.xlarge"), ..pool("light") };
    let lines = of_pod(&with(cluster(aws(), [heavy, light]), [pod("p", requests(1, 1, 1))]), "p");
    let last = lines.last().expect("an outcome");
    assert!(last.ends_with("Pool heavy comes first, because its weight 50 is higher than the 1 of pool light, where g5.xlarge/a/on-demand at $1.01/h would hold the pod."), "{last}");
}

#[test]
fn a_claim_that_cannot_be_launched_is_not_said_to_be_bought() {
    let stuck = waits_for(claim(), ConditionType::Launched, "RequestLimitExceeded");
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [stuck]), [pod("p", requests(1, 1, 1))]);
    let lines = of_pod(&snapshot, "p");
    let last = lines.last().expect("an outcome");
    assert_eq!(
        last,
        "Planned on claim `c`, which is ordered but not launched yet (RequestLimitExceeded); see `poolwright explain claim c`."
    );
}

#[test]
fn the_story_of_a_pool_says_what_it_has_and_what_holds_it_back() {
    let mut small = pool("gpu");
    small.limits.nodes = Some(1);
    let pods = ["p", "q"].map(|name| pod(name, requests(3, 1, 1)));
    let snapshot = with(cluster(aws(), [small]), pods);
    let plan = planned(&snapshot);
    let lines = why::pool(&snapshot, &plan, &PoolName("gpu".into())).expect("the pool exists");
    assert_eq!(lines[1], "It may buy 5 offerings now.");
    assert_eq!(lines[2], "It has no nodes.");
    assert!(lines[3].starts_with("The plan buys 1 more for"), "{}", lines[3]);

    let mut wrong = pool("gpu");
    wrong.requirements = vec![is_in("poolwright.dev/gpu-model", &["h100"])];
    let snapshot = cluster(aws(), [wrong]);
    let lines = why::pool(&snapshot, &planned(&snapshot), &PoolName("gpu".into())).expect("the pool exists");
    assert!(
        lines[1].starts_with("It buys nothing (NoOfferingMatches): none of the 5 offerings"),
        "{}",
        lines[1]
    );
}

/// A retiring node with one pod that has run for an hour, and room for three pods with a GPU.
fn retiring() -> Snapshot {
    let big = RankedOffering {
        offering: id("g5.12xlarge", "a"),
        price: Some(usd("5.672")),
        allocatable: capacity(48, 192, 4),
    };
    let claim =
        true_since(launched(Claim { offerings: vec![big], ..claim() }), ConditionType::Initialized, 30);
    let claim = true_since(claim, ConditionType::Retiring, 300);
    let claim = Claim { node_name: Some("n".into()), planned_pods: vec![], ..claim };
    let node = poolwright_core::Node {
        allocatable: capacity(48, 192, 4),
        taints: vec![taint(RESERVED_TAINT, "c")],
        ..claimed_node()
    };
    let there = bound(pod("there", requests(4, 16, 1)), "n");
    let there = Pod { duration: PodDuration { started: Some(at(0)), ..there.duration }, ..there };
    let mut snapshot = with(with(with(cluster(aws(), [pool("gpu")]), [claim]), [node]), [there]);
    snapshot.lives = Arc::new(Lives::prior());
    snapshot
}

#[test]
fn a_retiring_node_says_why_with_money_and_its_expected_end() {
    let snapshot = retiring();
    let decided = Retirement {
        newcomer: key("train-7"),
        extension: SignedDuration::from_mins(40),
        here: Usd(18_000_000),
        displaced: Usd(0),
        elsewhere: Usd(2_100_000),
        ends_in: SignedDuration::from_mins(35),
    };
    let claims = [(ClaimName("c".into()), decided)].into_iter().collect();
    let retirements = Retirements { decided: Some(at(590)), claims, ..Retirements::default() };
    let plan = Plan { retirements: Arc::new(retirements), ..Plan::default() };
    let lines = why::node(&snapshot, at(600), &plan, "n").unwrap();
    assert!(lines.contains(&"Retiring for 5m: admits only planned pods, because a pod like default/train-7 would keep this node 40 min longer, for $18.00, and costs $2.10 on a node of its own; its last pod is expected to end in 35 min.".to_owned()), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("open to pods")), "{lines:#?}");
    // A plan that knows no lives cannot say more than what is recorded.
    let lines = why::claim(&snapshot, at(600), &Plan::default(), &ClaimName("c".into())).unwrap();
    assert!(lines.contains(&"Retiring for 5m. When that began: as the test says.".to_owned()), "{lines:#?}");
}

#[test]
fn a_node_that_was_opened_by_hand_is_not_said_to_admit_only_planned_pods() {
    let node = poolwright_core::Node { allocatable: capacity(48, 192, 4), ..claimed_node() };
    let snapshot = with(retiring(), [node]);
    let lines = why::node(&snapshot, at(600), &Plan::default(), "n").unwrap();
    assert!(!lines.iter().any(|line| line.contains("Retiring")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("open to pods")), "{lines:#?}");
}

#[test]
fn a_pod_says_how_much_longer_it_is_expected_to_run_and_why() {
    let mut declared = pod("declared", requests(1, 1, 1));
    declared.duration.expected = Some(SignedDuration::from_hours(5));
    let mut service = pod("service", requests(1, 1, 1));
    service.duration.make_service();
    let mut limited = pod("limited", requests(1, 1, 1));
    limited.duration.deadline = Some(SignedDuration::from_mins(10));
    let mut snapshot = with(retiring(), [declared, service, limited]);
    let told = |snapshot: &Snapshot, name: &str| why::life(snapshot, at(3600), &key(name));
    let text = told(&snapshot, "there").unwrap();
    assert!(text.starts_with("It is expected to run for another "), "{text}");
    assert!(text.ends_with(": no such pod has ended yet."), "{text}");
    let text = told(&snapshot, "declared").unwrap();
    assert!(text.ends_with(" h (the median): it declares a duration of 5.0 h."), "{text}");
    assert_eq!(
        told(&snapshot, "service").unwrap(),
        "It is expected to run on: its controller keeps it running."
    );
    let text = told(&snapshot, "limited").unwrap();
    assert!(
        text.ends_with("; `activeDeadlineSeconds` ends it 10 min after its start at the latest."),
        "{text}"
    );
    assert_eq!(told(&snapshot, "nobody"), None);
    let reported = |started: i64| {
        let mut pod = pod("reported", requests(1, 1, 1));
        pod.duration.started = (started > 0).then(|| at(started));
        pod.duration.reported = Some(Reported { at: at(1800), left: SignedDuration::from_hours(5) });
        told(&with(snapshot.clone(), [pod]), "reported").unwrap()
    };
    assert!(
        reported(60)
            .ends_with(" its TrainJob reported that 5.0 h were left, and it has run for 30 min since.")
    );
    assert!(reported(3000).ends_with(" and it has run for 10 min since."), "it began anew after the report");
    assert!(reported(0).ends_with(" and it has run for less than a minute since."), "it does not run");
    snapshot.lives = Arc::default();
    assert_eq!(told(&snapshot, "there"), None, "nothing is known");
}

#[test]
fn a_pod_that_waits_although_a_retiring_node_has_room_learns_that_and_what_to_do() {
    let told = |snapshot: &Snapshot, name: &str| {
        let plan = planned_at(snapshot, 60);
        why::closed_room(snapshot, at(60), &PlanOptions::default(), &plan, &key(name))
    };
    // Long work would keep the node for itself, so it gets a node of its own.
    let lasting = |name: &str, hours: i64, gpus: u64| {
        let mut pod = pod(name, requests(2, 8, gpus));
        pod.duration.expected = Some(SignedDuration::from_hours(hours));
        pod
    };
    let ends_soon = bound(lasting("there", 1, 1), "n");
    let ends_soon = Pod { duration: PodDuration { started: Some(at(0)), ..ends_soon.duration }, ..ends_soon };
    let snapshot = with(with(retiring(), [ends_soon]), [lasting("long", 100, 1)]);
    let text = told(&snapshot, "long").unwrap();
    assert!(text.starts_with("Node n has room for it, but retires. Retiring for "), "{text}");
    assert!(
        text.ends_with("The plan buys a new node for it instead. To open nodes of pool gpu to all pods, set `spec.disruption.retire: Never` there; if no controller runs: `poolwright open n`."),
        "{text}"
    );
    let large = with(retiring(), [lasting("large", 400, 4)]);
    assert_eq!(told(&large, "large"), None, "the node has no room for it");
    assert_eq!(told(&snapshot, "there"), None, "it runs");
    // Where nothing is on sale, the plan lets it in.
    let mut poor = with(retiring(), [lasting("long", 400, 1)]);
    poor.pools.insert(
        PoolName("gpu".into()),
        Arc::new(Pool {
            limits: poolwright_core::PoolLimits {
                usd_per_hour: Some(usd("5.7")),
                ..poolwright_core::PoolLimits::default()
            },
            ..pool("gpu")
        }),
    );
    assert_eq!(
        told(&poor, "long").unwrap(),
        "Node n retires and admits only planned pods. The controller lets this one in; if no controller runs, open the node: `poolwright open n`."
    );
}

#[test]
fn a_pool_that_nobody_wrote_is_in_no_story() {
    let implicit = Pool { is_implicit: true, ..pool("any") };
    let snapshot =
        with(cluster(aws(), [implicit]), [pod("p", requests(1, 1, 1)), pod("q", requests(1, 1, 8))]);
    let lines = of_pod(&snapshot, "p");
    assert_eq!(lines[1], "Considered 5 offerings.");
    assert_eq!(
        lines[3],
        "4 offerings could hold it alone; the cheapest is g5.xlarge/a/on-demand at $1.01/h."
    );
    assert!(lines[4].starts_with("Planned on a new node alone: g5.xlarge on-demand in a "), "{lines:#?}");
    let nearest = of_pod(&snapshot, "q").into_iter().find(|line| line.starts_with("Nearest"));
    assert_eq!(
        nearest.as_deref(),
        Some(
            "Nearest miss: g5.12xlarge/a/on-demand: less than 8 nvidia.com/gpu. To change that: ask for at most 4 nvidia.com/gpu."
        )
    );
    assert_eq!(why::pool(&snapshot, &planned(&snapshot), &PoolName("any".into())), None);
}

#[test]
fn the_story_of_a_pod_says_where_its_requests_come_from_and_what_its_spread_counts() {
    let mut asks = pod("p", requests(1, 1, 1));
    asks.request_origins = vec![RequestOrigin {
        resource: "nvidia.com/gpu".into(),
        parts: vec![RequestPart::Sidecar { container: "share".into(), amount: 1 }],
    }];
    asks.spec.spreads = vec![TopologySpreadConstraint {
        topology_key: "topology.kubernetes.io/zone".into(),
        max_skew: 1,
        selector: Some(vec![is_in("app", &["web"])]),
        min_domains: Some(3),
        ignore_node_affinity: true,
        honor_node_taints: true,
        match_label_keys: vec!["pod-template-hash".into()],
        default_of: None,
    }];
    assert_eq!(
        of_pod(&with(cluster(aws(), [pool("gpu")]), [asks]), "p")[0],
        "Pod default/p asks for 1 cpu, 1Gi memory, 1 x nvidia.com/gpu (sidecar `share` asks for 1 nvidia.com/gpu); at most 1 more of its group in one `topology.kubernetes.io/zone` than in another (minDomains 3, nodeAffinityPolicy Ignore, nodeTaintsPolicy Honor, matchLabelKeys pod-template-hash)."
    );
}

#[test]
fn the_nearest_miss_of_a_pod_that_asks_for_a_mig_instance_says_how_to_plan_cut_gpus() {
    let kinds = catalogue(vec![Kind("p4d", capacity(96, 1152, 8), Some("a100-40gb"), &[("a", "21.95")])]);
    let asks = requests(1, 1, 0).with("nvidia.com/mig-3g.20gb", 1);
    let lines = of_pod(&with(cluster(kinds, [pool("gpu")]), [pod("p", asks)]), "p");
    let nearest = lines.iter().find(|line| line.starts_with("Nearest")).expect("nothing fits");
    assert!(nearest.ends_with("To change that: plan with `--sharing mig`."), "{nearest}");
}

#[test]
fn a_claim_whose_node_does_not_exist_is_neither_said_to_be_open_nor_kept_for_pods_that_are_planned_anew() {
    let name = ClaimName("c".into());
    let told = |claim: Claim, pods: Vec<Pod>| {
        let snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim]), pods);
        why::claim(&snapshot, at(100), &Plan::default(), &name).expect("the claim exists").split_off(2)
    };
    let lost = "Its node n does not exist here, so no pod is planned for its room.";
    let runs = bound(pod("p", requests(1, 1, 1)), "n");
    assert_eq!(told(initialized(), vec![runs]), [lost, "Bound to that node: 1 pod: default/p."]);
    let planned = Claim { planned_pods: vec![key("q")], ..initialized() };
    assert_eq!(
        told(planned, vec![pod("q", requests(1, 1, 1))]),
        [lost, "It was bought for pods that are planned anew: 1 pod: default/q."]
    );
    let starting = Claim { node_name: None, ..launched(claim()) };
    assert!(told(starting, Vec::new())[0].starts_with("Its instance is launched and has not joined yet"));
}
