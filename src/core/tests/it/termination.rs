//! Tests of termination, from a deleted claim to a terminated instance.

use jiff::SignedDuration;
use poolwright_core::*;
use poolwright_terms::keys::DISRUPTED_TAINT;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::kit::*;

fn deleted(claim: Claim) -> Claim {
    Claim { deleting_since: Some(at(100)), ..claim }
}

fn drained(status: ConditionStatus, reason: Reason, message: &str) -> Action {
    Action::SetConditions {
        subject: Subject::Claim(ClaimName("c".into())),
        conditions: vec![ConditionUpdate {
            kind: ConditionType::Drained,
            status,
            reason,
            message: message.into(),
        }],
    }
}

fn is_drained() -> Action {
    drained(ConditionStatus::True, Reason::Drained, "no pod is left to wait for")
}

fn terminating(message: &str) -> Action {
    Action::SetConditions {
        subject: Subject::Claim(ClaimName("c".into())),
        conditions: vec![ConditionUpdate {
            kind: ConditionType::InstanceTerminating,
            status: ConditionStatus::True,
            reason: Reason::Terminating,
            message: message.into(),
        }],
    }
}

fn without_work() -> Action {
    terminating("no work is left on its node; its instance is being terminated")
}

fn terminate() -> Action {
    Action::Terminate { claim: ClaimName("c".into()), forced: false }
}

fn close() -> Action {
    Action::SetTaints { node: "n".into(), taints: vec![taint(DISRUPTED_TAINT, "")] }
}

fn evict(name: &str) -> Action {
    Action::Evict {
        pod: object_key(name),
        uid: Uid(format!("pod-{name}")),
        why: "its node will be terminated".to_owned(),
    }
}

/// Returns a cluster with a closed node that is drained, with these pods on it.
fn going(pods: impl IntoIterator<Item = Pod>) -> Snapshot {
    going_within(None, pods)
}

/// Returns a cluster with a closed node that is drained from 100 s on, within this many seconds.
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
    let message = "node n still runs 2 pods (default/x, default/y); eviction is under way";
    assert_eq!(
        decide(&with(snapshot, pods), at(101)).actions,
        [close(), evict("x"), evict("y"), drained(ConditionStatus::False, Reason::Draining, message)]
    );
}

#[test]
fn a_terminating_pod_is_not_evicted_again_but_waited_for() {
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
fn a_terminating_pod_delays_the_eviction_of_later_tiers() {
    let ending = Pod { deleting_since: Some(at(130)), ..work("plain") };
    let daemon = Pod { role: PodRole::DaemonSet, ..work("daemon") };
    assert_eq!(asked(&going([ending, daemon]), 101), []);
}

#[test]
fn those_that_would_come_back_to_the_closed_node_do_not_keep_it() {
    let everything = Toleration { key: None, matches: TolerationMatch::Exists, effect: None };
    let tolerant = |pod: Pod| {
        let spec = PodSpec { tolerations: vec![everything.clone()], ..PodSpec::clone(&pod.spec) };
        Pod { spec: spec.into(), ..pod }
    };
    let daemon = tolerant(Pod { role: PodRole::DaemonSet, ..work("daemon") });
    let mirror = Pod { role: PodRole::Mirror, ..work("mirror") };
    let late = tolerant(Pod { created: at(110), ..work("late") });
    assert!(decide(&going([daemon, mirror, late]), at(120)).actions.contains(&terminate()));
    // This pod was created before the node was closed, so the drain evicts it.
    assert_eq!(asked(&going([tolerant(work("early"))]), 120), evicted(&["early"]));
}

#[test]
fn a_pod_that_hangs_for_a_minute_does_not_delay_termination() {
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
        "node n still runs 1 pod (default/x), protected by poolwright.dev/do-not-disrupt=true until {}: wait, delete the pods, or remove the annotation",
        at(500)
    );
    assert!(decision.actions.contains(&drained(ConditionStatus::False, Reason::PodsProtected, &message)));
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
    // If Poolwright decides late, the pod gets the remaining time as its grace period.
    assert_eq!(asked(&snapshot, 670), [("x".to_owned(), Some(30))]);
}

#[test]
fn a_pod_with_more_grace_than_there_is_time_is_told_at_once() {
    let slow = Ending { grace: SignedDuration::from_secs(3_600), protection: None };
    let snapshot = going_within(Some(600), [Pod { ending: slow.clone(), ..work("x") }]);
    assert!(asked(&snapshot, 110).contains(&("x".to_owned(), Some(590))));
    // A pod that is already ending with a longer grace period gets a shorter one.
    let ending = Pod { ending: slow, deleting_since: Some(at(3_700)), ..work("x") };
    assert_eq!(asked(&going_within(Some(600), [ending]), 110), [("x".to_owned(), Some(590))]);
}

#[test]
fn when_time_is_up_the_instance_goes_with_whoever_is_left() {
    let snapshot = going_within(Some(600), [protected("x", None)]);
    let message = "the deadline has passed, and node n still runs 1 pod (default/x); its instance is terminated with them";
    assert_eq!(
        decide(&snapshot, at(700)).actions,
        [
            drained(ConditionStatus::False, Reason::TimeIsUp, message),
            terminating("its deadline has passed; its instance is being terminated"),
            Action::Terminate { claim: ClaimName("c".into()), forced: true },
        ]
    );
}

#[test]
fn on_an_instance_that_is_gone_there_is_no_work_left_to_save() {
    let dead = Node { ready: false, ..claimed_node() };
    let mut snapshot = with(with(cluster(aws(), [pool("gpu")]), [deleted(initialized())]), [dead]);
    snapshot = with(snapshot, [bound(work("x"), "n")]);
    snapshot.instances = Some(listing(at(100), []));
    assert_eq!(decide(&snapshot, at(101)).actions, [close(), without_work(), terminate()]);
}

#[test]
fn a_claim_that_was_never_launched_is_terminated_too() {
    // A launch may have happened without being recorded. Only the provider knows.
    let snapshot = with(cluster(aws(), [pool("gpu")]), [deleted(claim())]);
    assert_eq!(decide(&snapshot, at(101)).actions, [without_work(), terminate()]);
}

fn attached(name: &str, volume: &str) -> Attachment {
    Attachment { name: name.into(), node: "n".into(), volume: Some(volume.into()) }
}

fn with_attached(mut snapshot: Snapshot, all: impl IntoIterator<Item = Attachment>) -> Snapshot {
    for one in all {
        snapshot.attachments.insert(one.name.clone(), one.into());
    }
    snapshot
}

/// Records that volumes have been waited for since then.
fn waiting_since(mut snapshot: Snapshot, seconds: i64) -> Snapshot {
    let mut claim = snapshot.claims[&ClaimName("c".into())].as_ref().clone();
    let (status, reason) = (ConditionStatus::False, Some(Reason::VolumesAttached));
    let condition = Condition { status, since: at(seconds), reason, message: String::new() };
    claim.conditions.insert(ConditionType::VolumesDetached, condition);
    snapshot.claims.insert(claim.name.clone(), claim.into());
    snapshot
}

fn ends(snapshot: &Snapshot, seconds: i64) -> bool {
    decide(snapshot, at(seconds)).actions.iter().any(|action| matches!(action, Action::Terminate { .. }))
}

fn of_volumes(snapshot: &Snapshot, seconds: i64) -> (ConditionStatus, String) {
    let found = decide(snapshot, at(seconds)).actions.into_iter().find_map(|action| match action {
        Action::SetConditions { conditions, .. } => {
            conditions.into_iter().find(|one| one.kind == ConditionType::VolumesDetached)
        }
        _ => None,
    });
    let found = found.expect("it says what it waits for");
    (found.status, found.message)
}

#[test]
fn an_instance_ends_when_the_volumes_of_its_work_are_detached() {
    let elsewhere = Attachment { node: "other".into(), ..attached("x", "theirs") };
    let snapshot = with_attached(going([]), [attached("a", "data"), elsewhere]);
    assert!(!ends(&snapshot, 101));
    let (status, said) = of_volumes(&snapshot, 101);
    assert_eq!(status, ConditionStatus::False);
    let until = at(101 + 360);
    assert_eq!(
        said,
        format!("still attached to node n: data; Poolwright waits for that until {until} at the latest")
    );
    assert_eq!(decide(&snapshot, at(101)).wake_at, Some(until));
    // While pods are on the node, no condition about volumes is written. Once no volume is attached, the condition says so.
    let busy = with_attached(going([work("p")]), [attached("a", "data")]);
    assert_eq!(asked(&busy, 101), evicted(&["p"]));
    let detached = waiting_since(going([]), 101);
    assert!(ends(&detached, 110));
    assert_eq!(of_volumes(&detached, 110).0, ConditionStatus::True);
}

#[test]
fn a_volume_that_is_not_detached_holds_an_instance_for_six_minutes_and_never_beyond_its_time() {
    let snapshot = waiting_since(with_attached(going([]), [attached("a", "data")]), 200);
    assert!(!ends(&snapshot, 559), "a restart does not begin anew");
    assert!(ends(&snapshot, 560));
    let said = of_volumes(&snapshot, 560).1;
    assert!(said.ends_with("for too long; its instance is terminated anyway"), "{said}");
    let bounded = waiting_since(with_attached(going_within(Some(60), []), [attached("a", "data")]), 110);
    assert!(!ends(&bounded, 159));
    assert!(ends(&bounded, 160));
}

#[test]
fn volumes_of_ignored_pods_do_not_delay_termination() {
    let volumes = vec![PodVolume::Claim { name: "cache".into(), ephemeral: false }];
    let mut daemon = Pod { role: PodRole::DaemonSet, volumes, ..work("d") };
    daemon.spec.tolerations = vec![tolerate(DISRUPTED_TAINT)];
    let mut snapshot = with_attached(going([daemon]), [attached("a", "kept")]);
    assert!(!ends(&snapshot, 101), "whose it is nobody knows yet");
    let claim = VolumeClaim {
        key: object_key("cache"),
        class: None,
        volume: Some("kept".into()),
        bound: true,
        lost: false,
        selected_node: None,
        shape: VolumeShape::default(),
        selector: vec![],
        ephemeral_for: None,
        deleting: false,
        over_quota: None,
    };
    snapshot.volume_claims.insert(claim.key.clone(), claim.into());
    assert!(ends(&snapshot, 101));
}
