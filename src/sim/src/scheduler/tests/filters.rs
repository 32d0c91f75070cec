//! Rules about one pod and one node.

use poolwright_catalog::ResourceName;
use poolwright_core::rules::NODE_NAME_FIELD;
use poolwright_core::{
    ClaimName, EnforcedAffinity, HostPort, NodeSelectorTerm, Profile, Toleration, TolerationMatch,
};
use poolwright_terms::keys::{CORDON_TAINT, RESERVED_TAINT};
use poolwright_terms::{Taint, TaintEffect};

use super::super::kit::{PodBuilder, cluster, fits, is, node, only, pod, room, taint, tried};
use super::super::{MayPreempt, Outcome, Preemption, Scheduler};

fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|&name| name.to_owned()).collect()
}

fn tolerating(name: &str, key: Option<&str>) -> PodBuilder {
    let toleration =
        Toleration { key: key.map(str::to_owned), matches: TolerationMatch::Exists, effect: None };
    pod(name).spec(|spec| spec.tolerations = vec![toleration])
}

#[test]
fn a_cordoned_node_takes_only_pods_that_tolerate_the_taint_of_a_cordon() {
    let mut cordoned = node("n1", "a");
    cordoned.cordoned = true;
    let cluster = cluster([cordoned], []);
    assert_eq!(fits(&cluster, pod("p")), (vec![], "node(s) were unschedulable".to_owned()));
    assert_eq!(fits(&cluster, tolerating("p", Some(CORDON_TAINT))).0, ["n1"]);
}

#[test]
fn a_tainted_node_takes_tolerating_pods_and_a_soft_taint_rejects_none() {
    let nodes = [TaintEffect::NoSchedule, TaintEffect::NoExecute, TaintEffect::PreferNoSchedule];
    let nodes = nodes.map(|effect| {
        let mut tainted = node(&effect.to_string().to_lowercase(), "a");
        tainted.taints = vec![taint(effect)];
        tainted
    });
    let cluster = cluster(nodes, []);
    let reason = "node(s) had untolerated taint(s)";
    assert_eq!(fits(&cluster, pod("p")), (names(&["prefernoschedule"]), format!("{reason}; {reason}")));
    assert_eq!(fits(&cluster, tolerating("p", Some("team"))).0.len(), 3);
}

#[test]
fn a_node_that_is_kept_for_the_pods_it_was_bought_for_takes_the_pods_that_were_let_in() {
    let mut kept = node("n1", "a");
    kept.taints =
        vec![Taint { key: RESERVED_TAINT.into(), value: "claim-1".into(), effect: TaintEffect::NoSchedule }];
    let cluster = cluster([kept], []);
    let let_in = |claim: &str| pod("p").with(|pod| pod.reserved_for = vec![ClaimName(claim.to_owned())]);
    assert_eq!(fits(&cluster, let_in("claim-1")).0, ["n1"]);
    assert!(fits(&cluster, let_in("claim-2")).0.is_empty());
    assert!(fits(&cluster, pod("p")).0.is_empty());
}

#[test]
fn a_pod_goes_where_its_node_selector_and_one_term_of_its_node_affinity_are_met() {
    let mut fast = node("n1", "a");
    fast.labels.insert("disk".to_owned(), "ssd".to_owned());
    let cluster = cluster([fast, node("n2", "b")], []);
    let reason = "node(s) didn't match Pod's node affinity/selector";
    let selecting = pod("p").spec(|spec| drop(spec.node_selector.insert("disk".into(), "ssd".into())));
    assert_eq!(fits(&cluster, selecting), (names(&["n1"]), reason.to_owned()));
    let zone = "topology.kubernetes.io/zone";
    let either = || pod("p").spec(|spec| spec.node_affinity = Some(vec![only(zone, "x"), only(zone, "b")]));
    assert_eq!(fits(&cluster, either()).0, ["n2"]);
    let both = either().spec(|spec| drop(spec.node_selector.insert("disk".into(), "ssd".into())));
    assert_eq!(fits(&cluster, both), (vec![], format!("{reason}; {reason}")));
}

#[test]
fn added_affinity_of_a_profile_applies_to_its_pods() {
    let enforced =
        EnforcedAffinity { source: "s.yaml".into(), terms: vec![only("topology.kubernetes.io/zone", "b")] };
    let profile = Profile { enforced: Some(enforced), ..Profile::default() };
    let scheduler = Scheduler { profiles: [("default-scheduler".to_owned(), profile)].into() };
    let cluster = cluster([node("n1", "a"), node("n2", "b")], []);
    let found = scheduler.feasible(&cluster, &pod("p").build()).expect("nothing in it is unknown");
    assert_eq!(found.nodes, ["n2"]);
    assert_eq!(
        found.unfit[0].1.reasons[0].to_string(),
        "node(s) didn't match scheduler-enforced node affinity"
    );
}

#[test]
fn a_pod_with_named_nodes_is_filtered_only_there() {
    let mut full = node("n2", "a");
    full.allocatable = room(100, 16);
    let cluster = cluster([node("n1", "a"), full, node("n3", "a")], []);
    let named = |terms: Vec<NodeSelectorTerm>| pod("p").spec(|spec| spec.node_affinity = Some(terms));
    let term = |all: &[&str]| NodeSelectorTerm {
        requirements: all.iter().map(|name| is(NODE_NAME_FIELD, name)).collect(),
    };
    assert_eq!(fits(&cluster, named(vec![term(&["n3"])])).0, ["n3"]);
    assert_eq!(
        tried(&cluster, named(vec![term(&["n2"]), term(&["n9"])])),
        Outcome::Unschedulable {
            message: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.".to_owned(),
            preemption: Preemption::InVain,
        }
    );
    let Outcome::Unschedulable { message, .. } = tried(&cluster, named(vec![term(&["n1", "n2"])])) else {
        panic!("no node has two names");
    };
    assert!(message.starts_with("0/3 nodes are available: pod affinity terms conflict."), "{message}");
}

#[test]
fn two_pods_on_a_node_do_not_share_a_host_port() {
    let port = || HostPort { port: 80, protocol: "TCP".into(), ip: None };
    let with = |name: &str| pod(name).spec(|spec| spec.host_ports = [port()].into());
    let cluster = cluster([node("n1", "a"), node("n2", "a")], [with("there").on("n1")]);
    let reason = "node(s) didn't have free ports for the requested pod ports";
    assert_eq!(fits(&cluster, with("p")), (names(&["n2"]), reason.to_owned()));
    assert_eq!(fits(&cluster, pod("p")).0.len(), 2);
}

#[test]
fn a_node_must_have_room_for_every_resource_and_for_one_pod_more() {
    let mut few = node("n1", "a");
    few.allocatable.set(ResourceName::PODS, 1);
    let cluster = cluster([few, node("n2", "a")], [pod("one").on("n1"), pod("two").on("n2")]);
    let wanting = |cpu, gpus: u64| {
        pod("p").spec(|spec| {
            spec.requests.set(ResourceName::CPU, cpu);
            spec.requests.set(ResourceName::NVIDIA_GPU, gpus);
        })
    };
    assert_eq!(fits(&cluster, wanting(3000, 0)), (names(&["n2"]), "Too many pods".to_owned()));
    assert_eq!(
        fits(&cluster, wanting(3001, 1)).1,
        "Too many pods; Insufficient cpu; Insufficient nvidia.com/gpu; Insufficient cpu; Insufficient nvidia.com/gpu"
    );
}

#[test]
fn an_unmodelled_rule_is_rejected_by_name() {
    let cluster = cluster([node("n1", "a")], []);
    let refused = |pod: PodBuilder| {
        let scheduler = Scheduler::default();
        let outcome = scheduler.schedule(&cluster, &pod.build(), MayPreempt::LessImportant, &mut |_| 0);
        outcome.expect_err("it cannot be scheduled").to_string()
    };
    assert_eq!(
        refused(pod("p").with(|pod| pod.group = Some("gang".to_owned()))),
        "pod default/p: spec.schedulingGroup: the simulated scheduler does not know a PodGroup whose pods are placed as one; simulate the pod without it"
    );
    assert!(refused(pod("p").spec(|spec| spec.gpu_share = Some(500))).contains("the share of a GPU"));
}

#[test]
fn a_pod_of_a_gang_that_only_its_operator_knows_is_bound_alone() {
    let marked = pod("p").with(|pod| {
        pod.group = Some("PyTorchJob default/train".to_owned());
        pod.gang = Some(Box::default());
    });
    assert_eq!(tried(&cluster([node("n1", "a")], []), marked), Outcome::Bind { node: "n1".to_owned() });
}

#[test]
fn without_any_node_the_scheduler_says_so() {
    let outcome = tried(&cluster([], []), pod("p"));
    let message = "no nodes available to schedule pods".to_owned();
    assert_eq!(outcome, Outcome::Unschedulable { message, preemption: Preemption::NotTried });
}
