//! Tests of launch decisions.

use poolwright_core::lifecycle::Decision;
use poolwright_core::*;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::kit::*;

#[test]
fn a_new_claim_is_launched_and_launched_again_until_that_is_recorded() {
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim()]), [pod("p", requests(1, 1, 1))]);
    let launch = Action::Launch { claim: ClaimName("c".into()) };
    let decision = decide(&snapshot, at(1));
    assert_eq!(decision, Decision { actions: vec![launch.clone()], wake_at: Some(at(6)) });
    assert_eq!(decide(&snapshot, at(299)).actions, [launch]);
}

#[test]
fn a_claim_that_is_not_launched_in_time_is_given_up_with_the_reason() {
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim()]), [pod("p", requests(1, 1, 1))]);
    let why = "g5.xlarge/a/on-demand: no instance was launched within 5 min";
    assert_eq!(
        decide(&snapshot, at(300)).actions,
        [
            Action::HoldBack { claim: ClaimName("c".into()), message: why.into() },
            Action::RecordEvent(Event {
                subject: Subject::Claim(ClaimName("c".into())),
                kind: EventType::Warning,
                reason: Reason::LaunchTimeout,
                message: format!(
                    "{why}. The claim is deleted, the offering is not bought for a while, and its pods are planned again"
                ),
            }),
            Action::DeleteClaim {
                claim: ClaimName("c".into()),
                uid: Uid("uid-c".into()),
                only_if_empty: false
            },
        ]
    );
}

#[test]
fn a_claim_whose_pods_are_gone_or_run_elsewhere_is_deleted_before_it_is_launched() {
    let empty = with(cluster(aws(), [pool("gpu")]), [claim()]);
    let elsewhere = with(empty.clone(), [bound(pod("p", requests(1, 1, 1)), "other")]);
    for snapshot in [empty, elsewhere] {
        let first = decide(&snapshot, at(1));
        let [Action::SetConditions { conditions, .. }] = &first.actions[..] else { panic!("{first:?}") };
        assert_eq!((conditions[0].kind, conditions[0].status), (ConditionType::Empty, ConditionStatus::True));
        let seen = with(snapshot, [true_since(claim(), ConditionType::Empty, 1)]);
        assert_eq!(
            decide(&seen, at(5)),
            Decision { actions: vec![], wake_at: Some(at(6)) },
            "its pods may come back"
        );
        let last = decide(&seen, at(6)).actions;
        let [Action::RecordEvent(event), Action::DeleteClaim { only_if_empty: true, .. }] = &last[..] else {
            panic!("{last:?}")
        };
        assert_eq!(
            event.message,
            "nothing needs its node any more, so it is deleted before an instance is launched"
        );
    }
}

/// A leader that was suspended can write a claim when its successor has long bought nodes for the same pods.
#[test]
fn the_later_of_two_claims_for_the_same_pods_launches_nothing() {
    let late =
        Claim { name: ClaimName("late".into()), uid: Uid("uid-late".into()), created: at(40), ..claim() };
    let both = with(cluster(aws(), [pool("gpu")]), [launched(claim()), late]);
    let both = with(both, [pod("p", requests(1, 1, 1))]);
    let launches = |action: &Action| matches!(action, Action::Launch { .. });
    assert!(!decide(&both, at(41)).actions.iter().any(launches));
}

#[test]
fn a_claim_that_is_needed_again_is_launched() {
    let unneeded = true_since(claim(), ConditionType::Empty, 1);
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [unneeded]), [pod("p", requests(1, 1, 1))]);
    let actions = decide(&snapshot, at(30)).actions;
    assert!(actions.contains(&Action::Launch { claim: ClaimName("c".into()) }), "{actions:?}");
    let no_more = |action: &Action| {
        matches!(action, Action::SetConditions { conditions, .. }
            if conditions[0].kind == ConditionType::Empty && conditions[0].status == ConditionStatus::False)
    };
    assert!(actions.iter().any(no_more), "{actions:?}");
}

#[test]
fn a_launched_claim_is_recorded_as_such_once() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [launched(claim())]);
    let decision = decide(&snapshot, at(1));
    assert_eq!(
        decision.actions,
        [Action::SetConditions {
            subject: Subject::Claim(ClaimName("c".into())),
            conditions: vec![ConditionUpdate {
                kind: ConditionType::Launched,
                status: ConditionStatus::True,
                reason: Reason::Launched,
                message: "g5.xlarge/a/on-demand runs as kwok://c".into(),
            }],
        }]
    );
    let recorded = true_since(launched(claim()), ConditionType::Launched, 1);
    let snapshot = with(snapshot, [recorded]);
    assert_eq!(decide(&snapshot, at(2)), Decision { actions: vec![], wake_at: Some(at(901)) });
}

#[test]
fn a_listing_from_before_the_calendar_was_set_back_does_not_say_that_a_new_instance_is_gone() {
    let claim = true_since(launched(claim()), ConditionType::Launched, 10);
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [claim]);
    snapshot.instances = Some(listing(at(600), []));
    assert_eq!(decide(&snapshot, at(12)).actions, []);
    assert_ne!(decide(&snapshot, at(600)).actions, []);
}

#[test]
fn an_instance_whose_node_is_ready_is_there_whatever_a_listing_says() {
    let claim =
        Claim { node_name: Some("n".into()), ..true_since(launched(claim()), ConditionType::Launched, 10) };
    let node = Node { ready: true, ..claimed_node() };
    let mut snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim]), [node.clone()]);
    snapshot.instances = Some(listing(at(40), []));
    let is_deleted = |snapshot: &Snapshot| {
        decide(snapshot, at(50)).actions.iter().any(|action| matches!(action, Action::DeleteClaim { .. }))
    };
    assert!(!is_deleted(&snapshot));
    let snapshot = with(snapshot, [Node { ready: false, ..node }]);
    assert!(is_deleted(&snapshot));
}

#[test]
fn an_instance_that_a_later_listing_lacks_is_gone_and_its_claim_with_it() {
    let claim = true_since(launched(claim()), ConditionType::Launched, 10);
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [claim]);
    snapshot.instances = Some(listing(at(39), []));
    assert_eq!(decide(&snapshot, at(50)).actions, [], "so soon a listing may lack a new instance");
    snapshot.instances = Some(listing(at(40), []));
    let actions = decide(&snapshot, at(50)).actions;
    assert!(matches!(&actions[0], Action::RecordEvent(event) if event.reason == "InstanceGone"));
    assert_eq!(
        actions[1..],
        [Action::DeleteClaim {
            claim: ClaimName("c".into()),
            uid: Uid("uid-c".into()),
            only_if_empty: false
        }]
    );
}

#[test]
fn a_listing_of_one_cloud_does_not_say_that_an_instance_of_another_is_gone() {
    let claim = true_since(launched(claim()), ConditionType::Launched, 10);
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [claim]);
    snapshot.instances = Some(Instances::new(&["OtherNodeClass"], at(40), []));
    assert_eq!(decide(&snapshot, at(50)).actions, []);
}

#[test]
fn nothing_is_launched_while_the_cloud_knows_none_of_the_instances_whose_nodes_are_ready() {
    let lone = Claim { planned_pods: vec![], ..initialized() };
    let new = Claim { name: ClaimName("d".into()), uid: Uid("uid-d".into()), ..claim() };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [lone, new]), [claimed_node()]);
    let mut snapshot = with(snapshot, [pod("p", requests(1, 1, 1))]);
    let launches = |snapshot: &Snapshot| {
        let actions = decide(snapshot, at(50)).actions;
        actions.iter().any(|action| matches!(action, Action::Launch { .. }))
    };
    snapshot.instances = Some(listing(at(40), []));
    assert!(!launches(&snapshot), "it may be another account");
    assert!(launches(&with(snapshot, [Node { ready: false, ..claimed_node() }])), "the instance is gone");
}

#[test]
fn a_claim_says_that_its_node_is_ready_although_the_cloud_does_not_know_its_instance() {
    let unlisted = |claim: Claim, node: Node, listed: Vec<ListedInstance>| {
        let mut snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim]), [node]);
        snapshot.instances = Some(listing(at(40), listed));
        let actions = decide(&snapshot, at(50)).actions;
        let is_deleted = actions.iter().any(|action| matches!(action, Action::DeleteClaim { .. }));
        let updates = actions.into_iter().filter_map(|action| match action {
            Action::SetConditions { conditions, .. } => Some(conditions),
            _ => None,
        });
        let told = updates.flatten().find(|one| one.kind == ConditionType::InstanceUnlisted);
        (told.map(|one| (one.status, one.reason, one.message)), is_deleted)
    };
    let (told, is_deleted) = unlisted(initialized(), claimed_node(), vec![]);
    let (status, reason, message) = told.expect("it says so");
    assert_eq!((status, reason, is_deleted), (ConditionStatus::True, Reason::InstanceUnlisted, false));
    assert!(message.contains("kwok://c") && message.contains("credentials"), "{message}");

    let recorded = || true_since(initialized(), ConditionType::InstanceUnlisted, 40);
    let listed = ListedInstance {
        provider_id: "kwok://c".into(),
        claim_uid: Uid("uid-c".into()),
        node_class: node_class(),
        launched: at(10),
    };
    let ended = |reason| Some((ConditionStatus::False, reason));
    let (told, is_deleted) = unlisted(recorded(), claimed_node(), vec![listed]);
    let told = told.map(|(status, reason, _)| (status, reason));
    assert_eq!((told, is_deleted), (ended(Reason::Launched), false));
    let (told, is_deleted) = unlisted(recorded(), Node { ready: false, ..claimed_node() }, vec![]);
    let told = told.map(|(status, reason, _)| (status, reason));
    assert_eq!((told, is_deleted), (ended(Reason::InstanceGone), true));
}
