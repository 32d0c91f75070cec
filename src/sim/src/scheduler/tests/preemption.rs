//! Preemption: which pods are evicted.

use std::sync::Arc;

use jiff::Timestamp;
use poolwright_core::{
    BudgetLimit, BudgetSelector, CountOrPercent, HostPort, ObjectKey, PodDisruptionBudget, PodKey, Snapshot,
    Uid, UnhealthyPods,
};

use super::super::kit::{PodBuilder, cluster, is, node, pod, room, term, tried};
use super::super::{Cluster, MayPreempt, Outcome, Preemption, Scheduler};

/// Returns a pod of three cores; a node has room for one.
fn large(name: &str) -> PodBuilder {
    pod(name).spec(|spec| spec.requests = room(3000, 1))
}

fn evicts(cluster: &Cluster, made: PodBuilder) -> (String, Vec<String>) {
    match tried(cluster, made) {
        Outcome::Unschedulable { preemption: Preemption::Evict { node, victims, .. }, .. } => {
            (node, victims.into_iter().map(|victim| victim.name().into_owned()).collect())
        }
        other => panic!("it evicts nobody: {other:?}"),
    }
}

fn expect(node: &str, victims: &[&str]) -> (String, Vec<String>) {
    (node.to_owned(), victims.iter().map(|&victim| victim.to_owned()).collect())
}

#[test]
fn less_important_pods_go_and_no_more_of_them_than_needed() {
    let cluster = cluster(
        [node("n1", "a")],
        [
            pod("one").on("n1"),
            pod("two").priority(3).on("n1"),
            large("three").spec(|spec| spec.requests = room(2000, 1)).on("n1"),
        ],
    );
    let two_cores = || pod("p").spec(|spec| spec.requests = room(2000, 1));
    assert_eq!(evicts(&cluster, two_cores().priority(5)), expect("n1", &["three"]));
    let message = "0/1 nodes are available: 1 Insufficient cpu.".to_owned();
    let preemption = Preemption::InVain;
    let in_vain = format!(
        "{message} no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    );
    assert_eq!(tried(&cluster, two_cores()), Outcome::Unschedulable { message: in_vain, preemption });
}

#[test]
fn the_node_is_chosen_where_the_least_important_go() {
    let cluster = cluster(
        [node("n1", "a"), node("n2", "a"), node("n3", "a")],
        [
            large("one").priority(2).on("n1"),
            large("two").priority(1).on("n2"),
            large("three").priority(3).on("n3"),
        ],
    );
    assert_eq!(evicts(&cluster, large("p").priority(9)), expect("n2", &["two"]));
}

#[test]
fn among_equal_priorities_preemption_evicts_fewer_and_younger_pods() {
    let half = |name: &str| pod(name).spec(|spec| spec.requests = room(2000, 1));
    let at = |made: PodBuilder, second| {
        made.with(|pod| pod.created = Timestamp::from_second(second).expect("in range"))
    };
    let two = cluster(
        [node("n1", "a"), node("n2", "a")],
        [half("one").on("n1"), half("two").on("n1"), large("three").on("n2")],
    );
    let all = || pod("p").priority(9).spec(|spec| spec.requests = room(4000, 1));
    assert_eq!(evicts(&two, all()), expect("n2", &["three"]));
    let ages = cluster(
        [node("n1", "a"), node("n2", "a")],
        [at(large("old"), 1).on("n1"), at(large("young"), 2).on("n2")],
    );
    assert_eq!(evicts(&ages, large("p").priority(9)), expect("n2", &["young"]));
}

fn budget(available: u64) -> Snapshot {
    let budget = PodDisruptionBudget {
        key: ObjectKey::new("default", "web"),
        uid: Uid("budget".to_owned()),
        selector: BudgetSelector::Pods(vec![is("app", "web")]),
        limit: Some(BudgetLimit::MinAvailable(CountOrPercent::Count(available))),
        expected: 0,
        allowed: None,
        failure: None,
        unhealthy: UnhealthyPods::default(),
    };
    Snapshot { budgets: [(budget.key.clone(), Arc::new(budget))].into(), ..Snapshot::default() }
}

#[test]
fn pods_that_a_budget_protects_are_spared_where_others_will_do() {
    let there = || [large("web").on("n1"), large("db").app("db").priority(4).on("n2")];
    let mut cluster = cluster([node("n1", "a"), node("n2", "a")], there());
    assert_eq!(evicts(&cluster, large("p").priority(9)), expect("n1", &["web"]));
    cluster.set_around(&budget(1));
    assert_eq!(evicts(&cluster, large("p").priority(9)), expect("n2", &["db"]));
    cluster.remove_node("n2");
    // If no other choice works, protected pods are evicted.
    assert_eq!(evicts(&cluster, large("p").priority(9)), expect("n1", &["web"]));
    cluster.set_around(&budget(0));
    assert_eq!(evicts(&cluster, large("p").priority(9)), expect("n1", &["web"]));
}

#[test]
fn preemption_evicts_no_pod_in_vain() {
    let mut tainted = node("n1", "a");
    tainted.taints = vec![super::super::kit::taint(poolwright_terms::TaintEffect::NoSchedule)];
    let cluster = cluster([tainted, node("n2", "a")], [large("there").on("n1")]);
    let huge = pod("p").priority(9).spec(|spec| spec.requests = room(5000, 1));
    let message = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
    let preemption = Preemption::InVain;
    assert_eq!(tried(&cluster, huge), Outcome::Unschedulable { message: message.to_owned(), preemption });
}

#[test]
fn a_pod_that_keeps_it_away_is_evicted_too() {
    let shy =
        pod("there").app("db").spec(|spec| spec.anti_affinity = vec![term("web", "kubernetes.io/hostname")]);
    let cluster = cluster([node("n1", "a")], [shy.on("n1"), pod("kind").app("db").on("n1")]);
    assert_eq!(evicts(&cluster, pod("p").priority(1)), expect("n1", &["there"]));
}

#[test]
fn a_host_port_that_two_pods_have_is_free_for_the_scheduler_as_soon_as_one_of_them_is_gone() {
    let port = HostPort { port: 80, protocol: "TCP".to_owned(), ip: None };
    let with = |name: &str| pod(name).spec(|spec| spec.host_ports = [port.clone()].into());
    let cluster = cluster([node("n1", "a")], [with("one").on("n1"), with("two").priority(9).on("n1")]);
    assert_eq!(evicts(&cluster, with("p").priority(5)), expect("n1", &["one"]));
}

#[test]
fn a_pod_that_has_evicted_others_waits_for_them_to_leave() {
    let leaving = large("there").on("n1").with(|pod| pod.deleting_since = Some(pod.created));
    let cluster = cluster([node("n1", "a"), node("n2", "a")], [leaving, large("other").on("n2")]);
    let nominated = large("p").priority(9).with(|pod| pod.nominated_node = Some("n1".to_owned()));
    let message = "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to a terminating pod on the nominated node.";
    let preemption = Preemption::NotTried;
    assert_eq!(
        tried(&cluster, nominated),
        Outcome::Unschedulable { message: message.to_owned(), preemption }
    );
}

#[test]
fn less_important_pods_that_were_promised_the_node_lose_it() {
    let promised = large("promised").priority(2).with(|pod| pod.nominated_node = Some("n1".to_owned()));
    let cluster = cluster([node("n1", "a")], [large("there").on("n1"), promised]);
    let Outcome::Unschedulable { preemption: Preemption::Evict { set_back, .. }, .. } =
        tried(&cluster, large("p").priority(9))
    else {
        panic!("it evicts the pod that is there");
    };
    assert_eq!(set_back, [PodKey::new("default", "promised")]);
}

#[test]
fn a_pod_that_may_not_preempt_does_not() {
    let cluster = cluster([node("n1", "a")], [large("there").on("n1")]);
    let with = |may| {
        let outcome =
            Scheduler::default().schedule(&cluster, &large("p").priority(9).build(), may, &mut |_| 0);
        let Ok(Outcome::Unschedulable { message, preemption: Preemption::NotTried }) = outcome else {
            panic!("it evicts somebody: {outcome:?}");
        };
        message
    };
    let first = "0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!(with(MayPreempt::Disabled), format!("{first} no new claims to deallocate"));
    assert_eq!(
        with(MayPreempt::Never),
        format!(
            "{first} no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
        )
    );
}
