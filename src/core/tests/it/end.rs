//! From a deleted claim to an instance that is gone.

use jiff::SignedDuration;
use poolwright_core::*;

use crate::kit::*;

fn deleted(claim: Claim) -> Claim {
    Claim { deleting_since: Some(at(100)), ..claim }
}

fn drained(status: ConditionStatus, reason: &str, message: &str) -> Action {
    Action::SetConditions {
        subject: Subject::Claim(ClaimName("c".into())),
        conditions: vec![ConditionUpdate {
            kind: ConditionType::Drained,
            status,
            reason: reason.into(),
            message: message.into(),
        }],
    }
}

fn is_drained() -> Action {
    drained(ConditionStatus::True, "Drained", "no pod is left that it waits for")
}

fn terminating(message: &str) -> Action {
    Action::SetConditions {
        subject: Subject::Claim(ClaimName("c".into())),
        conditions: vec![ConditionUpdate {
            kind: ConditionType::InstanceTerminating,
            status: ConditionStatus::True,
            reason: "Terminating".into(),
            message: message.into(),
        }],
    }
}

fn without_work() -> Action {
    terminating("no work is on it: its instance is being given back")
}

fn terminate() -> Action {
    Action::Terminate { claim: ClaimName("c".into()), forced: false }
}

fn close() -> Action {
    Action::SetTaints { node: "n".into(), taints: vec![taint(DISRUPTED_TAINT, "")] }
}

fn evict(name: &str) -> Action {
    Action::Evict { pod: key(name), uid: Uid(format!("pod-{name}")) }
}

/// A node that is closed and goes, with these pods on it.
fn going(pods: impl IntoIterator<Item = Pod>) -> Snapshot {
    going_within(None, pods)
}

/// A node that is closed and goes within so many seconds from 100 on.
fn going_within(seconds: Option<i64>, pods: impl IntoIterator<Item = Pod>) -> Snapshot {
    let termination = seconds.map(SignedDuration::from_secs);
    let claim = Claim { deadlines: Deadlines { termination, ..Deadlines::default() }, ..initialized() };
    let node = Node { taints: vec![taint(DISRUPTED_TAINT, "")], ..claimed_node() };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [deleted(claim)]), [node]);
    with(snapshot, pods.into_iter().map(|pod| bound(pod, "n")).collect::<Vec<_>>())
}

fn work(name: &str) -> Pod {
    Pod { created: at(50), ..pod(name, requests(1, 1, 0)) }
}

fn protected(name: &str, until: Option<jiff::Timestamp>) -> Pod {
    let protection = Some(Protection { annotation: "poolwright.dev/do-not-disrupt=true".into(), until });
    Pod { ending: Ending { protection, grace: SignedDuration::from_secs(90) }, ..work(name) }
}

/// Pods that are asked to go, and those that are told to, with their grace in seconds.
fn asked(snapshot: &Snapshot, seconds: i64) -> Vec<(String, Option<i64>)> {
    let of = |action| match action {
        Action::Evict { pod, .. } => Some((pod.name, None)),
        Action::EndPod { pod, grace, .. } => Some((pod.name, Some(grace.as_secs()))),
        _ => None,
    };
    decide(snapshot, at(seconds)).actions.into_iter().filter_map(of).collect()
}

fn evicted(names: &[&str]) -> Vec<(String, Option<i64>)> {
    names.iter().map(|name| ((*name).to_owned(), None)).collect()
}

#[test]
fn without_work_the_node_is_closed_and_the_instance_given_back() {
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [deleted(initialized())]), [claimed_node()]);
    let decision = decide(&snapshot, at(101));
    assert_eq!(decision.actions, [close(), is_drained(), without_work(), terminate()]);
    assert_eq!(decision.wake_at, Some(at(106)));
}

#[test]
fn work_is_asked_to_go_and_the_instance_waits_for_it() {
    let pods = ["x", "y"].map(|name| bound(work(name), "n"));
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [deleted(initialized())]), [claimed_node()]);
    let message = "node n still runs 2 pods (default/x, default/y), which are asked to go";
    assert_eq!(
        decide(&with(snapshot, pods), at(101)).actions,
        [close(), evict("x"), evict("y"), drained(ConditionStatus::False, "Draining", message)]
    );
}

#[test]
fn who_is_going_already_is_not_asked_again_and_is_waited_for() {
    let ending = Pod { deleting_since: Some(at(130)), ..work("x") };
    let decision = decide(&going([ending]), at(120));
    assert!(!decision.actions.iter().any(|action| matches!(action, Action::Evict { .. })));
    assert!(!decision.actions.contains(&terminate()));
}

#[test]
fn the_plain_go_before_the_important_then_daemons_then_what_is_critical() {
    let important = Pod { priority: 1_000, ..work("important") };
    let daemon = Pod { role: PodRole::DaemonSet, ..work("daemon") };
    let critical = Pod { priority: 2_000_000_000, ..work("critical") };
    let mut pods = vec![critical, daemon, important, work("plain")];
    for name in ["plain", "important", "daemon", "critical"] {
        assert_eq!(asked(&going(pods.clone()), 101), evicted(&[name]));
        pods.pop();
    }
    assert!(decide(&going(pods), at(101)).actions.contains(&terminate()));
}

#[test]
fn who_is_going_still_holds_up_those_whose_turn_comes_later() {
    let ending = Pod { deleting_since: Some(at(130)), ..work("plain") };
    let daemon = Pod { role: PodRole::DaemonSet, ..work("daemon") };
    assert_eq!(asked(&going([ending, daemon]), 101), []);
}

#[test]
fn those_that_would_come_back_to_the_closed_node_do_not_keep_it() {
    let everything = Toleration { key: None, matches: TolerationMatch::Exists, effect: None };
    let tolerant = |pod: Pod| {
        let spec = PodSpec { tolerations: vec![everything.clone()], ..pod.spec.clone() };
        Pod { spec, ..pod }
    };
    let daemon = tolerant(Pod { role: PodRole::DaemonSet, ..work("daemon") });
    let mirror = Pod { role: PodRole::Mirror, ..work("mirror") };
    let late = tolerant(Pod { created: at(110), ..work("late") });
    assert!(decide(&going([daemon, mirror, late]), at(120)).actions.contains(&terminate()));
    // It was there before, so that there is work of it to be saved.
    assert_eq!(asked(&going([tolerant(work("early"))]), 120), evicted(&["early"]));
}

#[test]
fn a_pod_whose_end_hangs_for_a_minute_holds_nothing_up() {
    let hanging = Pod { deleting_since: Some(at(130)), ..work("x") };
    let snapshot = going([hanging]);
    assert!(!decide(&snapshot, at(189)).actions.contains(&terminate()));
    assert!(decide(&snapshot, at(190)).actions.contains(&terminate()));
}

#[test]
fn a_protected_pod_is_waited_for_and_the_claim_says_for_how_long() {
    let snapshot = going([protected("x", Some(at(500))), work("y")]);
    assert_eq!(asked(&snapshot, 101), evicted(&["y"]));
    let decision = decide(&snapshot, at(101));
    let message = format!(
        "node n still runs 1 pod (default/x), protected by poolwright.dev/do-not-disrupt=true until {}: wait, delete them, or take it away",
        at(500)
    );
    assert!(decision.actions.contains(&drained(ConditionStatus::False, "PodsProtected", &message)));
    assert_eq!(decision.wake_at, Some(at(500)));
    assert_eq!(asked(&snapshot, 500), evicted(&["x", "y"]));
    assert_eq!(asked(&going([protected("x", None)]), 100_000_000), []);
}

#[test]
fn before_time_is_up_a_protected_pod_is_told_to_end_with_all_of_its_grace() {
    let snapshot = going_within(Some(600), [protected("x", None)]);
    assert_eq!(asked(&snapshot, 609), []);
    assert_eq!(decide(&snapshot, at(609)).wake_at, Some(at(610)));
    assert_eq!(asked(&snapshot, 610), [("x".to_owned(), Some(90))]);
    // Whoever was not there to say so in time leaves what grace there is.
    assert_eq!(asked(&snapshot, 670), [("x".to_owned(), Some(30))]);
}

#[test]
fn a_pod_with_more_grace_than_there_is_time_is_told_at_once() {
    let slow = Ending { grace: SignedDuration::from_secs(3_600), protection: None };
    let snapshot = going_within(Some(600), [Pod { ending: slow.clone(), ..work("x") }]);
    assert!(asked(&snapshot, 110).contains(&("x".to_owned(), Some(590))));
    // One that has been told elsewhere to take longer is told again.
    let ending = Pod { ending: slow, deleting_since: Some(at(3_700)), ..work("x") };
    assert_eq!(asked(&going_within(Some(600), [ending]), 110), [("x".to_owned(), Some(590))]);
}

#[test]
fn when_time_is_up_the_instance_goes_with_whoever_is_left() {
    let snapshot = going_within(Some(600), [protected("x", None)]);
    let message = "time is up, and node n still runs 1 pod (default/x): it goes with them";
    assert_eq!(
        decide(&snapshot, at(700)).actions,
        [
            drained(ConditionStatus::False, "TimeIsUp", message),
            terminating("its time is up: its instance is being given back"),
            Action::Terminate { claim: ClaimName("c".into()), forced: true },
        ]
    );
}

#[test]
fn on_an_instance_that_is_gone_there_is_no_work_left_to_save() {
    let mut snapshot = with(with(cluster(aws(), [pool("gpu")]), [deleted(initialized())]), [claimed_node()]);
    snapshot = with(snapshot, [bound(work("x"), "n")]);
    snapshot.instances = Some((at(100), [].into()));
    assert_eq!(decide(&snapshot, at(101)).actions, [close(), without_work(), terminate()]);
}

#[test]
fn a_claim_that_was_never_launched_is_terminated_too() {
    // An order may have gone out that was never recorded: only the provider knows.
    let snapshot = with(cluster(aws(), [pool("gpu")]), [deleted(claim())]);
    assert_eq!(decide(&snapshot, at(101)).actions, [without_work(), terminate()]);
}
