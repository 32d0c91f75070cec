//! From a deleted claim to an instance that is gone.

use poolwright_core::*;

use crate::kit::*;

fn deleted(claim: Claim) -> Claim {
    Claim { deleting_since: Some(at(100)), ..claim }
}

fn terminating() -> Action {
    Action::SetConditions {
        subject: Subject::Claim(ClaimName("c".into())),
        conditions: vec![ConditionUpdate {
            kind: ConditionType::InstanceTerminating,
            status: ConditionStatus::True,
            reason: "Terminating".into(),
            message: "no work is on it: its instance is being given back".into(),
        }],
    }
}

fn terminate() -> Action {
    Action::Terminate { claim: ClaimName("c".into()) }
}

fn close() -> Action {
    Action::SetTaints { node: "n".into(), taints: vec![taint(DISRUPTED_TAINT, "")] }
}

#[test]
fn without_work_the_node_is_closed_and_the_instance_given_back() {
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [deleted(initialized())]), [claimed_node()]);
    let decision = decide(&snapshot, at(101));
    assert_eq!(decision.actions, [close(), terminating(), terminate()]);
    assert_eq!(decision.wake_at, Some(at(106)));
}

#[test]
fn work_is_never_killed_and_the_claim_says_what_it_waits_for() {
    let pods = ["x", "y"].map(|name| bound(pod(name, requests(1, 1, 0)), "n"));
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [deleted(initialized())]), [claimed_node()]);
    let snapshot = with(snapshot, pods);
    assert_eq!(
        decide(&snapshot, at(101)).actions,
        [
            close(),
            Action::SetConditions {
                subject: Subject::Claim(ClaimName("c".into())),
                conditions: vec![ConditionUpdate {
                    kind: ConditionType::InstanceTerminating,
                    status: ConditionStatus::False,
                    reason: "WaitingForPods".into(),
                    message: "node n still runs 2 pods (default/x, default/y); the instance is given back when they have ended: wait, or delete them".into(),
                }],
            },
        ]
    );
}

#[test]
fn on_an_instance_that_is_gone_there_is_no_work_left_to_save() {
    let mut snapshot = with(with(cluster(aws(), [pool("gpu")]), [deleted(initialized())]), [claimed_node()]);
    snapshot = with(snapshot, [bound(pod("x", requests(1, 1, 0)), "n")]);
    snapshot.instances = Some((at(100), [].into()));
    assert_eq!(decide(&snapshot, at(101)).actions, [close(), terminating(), terminate()]);
}

#[test]
fn a_claim_that_was_never_launched_is_terminated_too() {
    // An order may have gone out that was never recorded: only the provider knows.
    let snapshot = with(cluster(aws(), [pool("gpu")]), [deleted(claim())]);
    assert_eq!(decide(&snapshot, at(101)).actions, [terminating(), terminate()]);
}
