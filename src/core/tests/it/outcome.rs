//! Tests of outcomes and the actions that follow.

use poolwright_catalog::OfferingId;
use poolwright_core::outcome::{Outcome, Unavailable, respond};
use poolwright_core::plan::PoolFindings;
use poolwright_core::setbacks::Setbacks;
use poolwright_core::why::events::{add_launch_problems, conditions};
use poolwright_core::*;
use poolwright_terms::{CapacityType, ConditionStatus, ConditionType, Reason};

use crate::kit::*;

fn unavailable(offering: &OfferingId) -> Unavailable {
    Unavailable { offering: offering.clone(), why: "out of stock".into() }
}

fn condition(reason: Reason, message: &str) -> Action {
    Action::SetConditions {
        subject: Subject::Claim(ClaimName("c".into())),
        conditions: vec![ConditionUpdate {
            kind: ConditionType::Launched,
            status: ConditionStatus::False,
            reason,
            message: message.into(),
        }],
    }
}

fn warning(subject: Subject, reason: Reason, message: &str) -> Action {
    let message = message.into();
    Action::RecordEvent(Event { subject, kind: EventType::Warning, reason, message })
}

#[test]
fn a_claim_that_nothing_can_be_had_for_is_deleted_and_its_pods_are_planned_at_once() {
    let (claim, offering, mut setbacks) = (claim(), id("g5.xlarge", "a"), Setbacks::default());
    let outcome = Outcome::NoneAvailable { claim: &claim, unavailable: &[unavailable(&offering)] };
    let why = "none of its offerings is available now: g5.xlarge/a/on-demand (out of stock)";
    assert_eq!(
        respond(&outcome, &mut setbacks, at(0)),
        [
            warning(Subject::Claim(ClaimName("c".into())), Reason::StockOut, why),
            warning(Subject::Pool(PoolName("gpu".into())), Reason::StockOut, why),
            condition(Reason::StockOut, why),
            Action::DeleteClaim {
                claim: ClaimName("c".into()),
                uid: Uid("uid-c".into()),
                only_if_empty: false
            },
            Action::PlanNow,
        ]
    );
    assert_eq!(setbacks.held_back(at(0)), [((node_class(), offering), at(60))].into());
}

#[test]
fn offerings_that_could_not_be_had_before_the_one_that_was_are_held_back_and_nothing_else_is_done() {
    let (claim, mut setbacks) = (claim(), Setbacks::default());
    let (first, second) = (id("g5.xlarge", "a"), id("g5.xlarge", "b"));
    setbacks.launch_invalid(&node_class(), "no such image");
    let unavailable = [unavailable(&first)];
    let outcome = Outcome::Launched { claim: &claim, offering: &second, unavailable: &unavailable };
    assert_eq!(respond(&outcome, &mut setbacks, at(0)), []);
    assert_eq!(setbacks.held_back(at(0)).into_keys().collect::<Vec<_>>(), [(node_class(), first)]);
    assert!(setbacks.launch_problems().is_empty(), "this one worked");
}

#[test]
fn a_launch_into_a_reservation_refreshes_the_catalogues() {
    let (claim, mut setbacks) = (claim(), Setbacks::default());
    let mut offering = id("g5.xlarge", "a");
    offering.capacity_type = CapacityType::Reserved;
    let outcome = Outcome::Launched { claim: &claim, offering: &offering, unavailable: &[] };
    assert_eq!(respond(&outcome, &mut setbacks, at(0)), [Action::RefreshCatalogues]);
}

#[test]
fn a_launch_that_can_never_work_shows_on_its_claim_and_on_the_pools_of_its_node_class() {
    let (claim, mut setbacks) = (claim(), Setbacks::default());
    let outcome = Outcome::LaunchInvalid { claim: &claim, why: "no such image" };
    assert_eq!(
        respond(&outcome, &mut setbacks, at(0)),
        [
            warning(Subject::Claim(ClaimName("c".into())), Reason::LaunchInvalid, "no such image"),
            condition(Reason::LaunchInvalid, "no such image"),
        ]
    );
    let snapshot = cluster(aws(), [pool("gpu")]);
    let subject = Subject::Pool(PoolName("gpu".into()));
    let found = PoolFindings::default();
    let mut actions = [Action::SetConditions { subject, conditions: conditions(&found) }];
    add_launch_problems(&mut actions, &snapshot, setbacks.launch_problems());
    let [Action::SetConditions { conditions, .. }] = &actions else { panic!("{actions:?}") };
    let of = |kind| conditions.iter().find(|update| update.kind == kind).unwrap();
    assert_eq!(of(ConditionType::Ready).status, ConditionStatus::False);
    assert!(of(ConditionType::NodeClassReady).message.contains("no such image"));
    assert_eq!(of(ConditionType::ValidationSucceeded).status, ConditionStatus::True);
}

#[test]
fn a_launch_that_is_repeated_shows_why_and_the_next_try_unless_its_deadline_comes_first() {
    let (claim, mut setbacks) = (claim(), Setbacks::default());
    let why = "throttled: slow down";
    let mut told = |next| {
        let outcome = Outcome::LaunchRetried { claim: &claim, why: "throttled: slow down.", next };
        respond(&outcome, &mut setbacks, at(0))
    };
    let says = |then: String| {
        [
            warning(Subject::Claim(ClaimName("c".into())), Reason::LaunchRetried, why),
            condition(Reason::LaunchRetried, &format!("{why}; {then}")),
        ]
    };
    assert_eq!(told(at(5)), says(format!("the next try is at {}", at(5))));
    let deadline = at(claim.deadlines.launch.as_secs());
    assert_eq!(told(deadline), says(format!("no try follows, because the launch deadline is {deadline}")));
    assert_eq!(setbacks, Setbacks::default(), "no offering is held back for it");
}

#[test]
fn a_namespace_that_refuses_tolerations_is_told_of_once_and_tried_again_after_ten_minutes() {
    let (pod, mut setbacks) = (ObjectKey::new("team", "train"), Setbacks::default());
    let outcome = Outcome::TolerationRefused { pod: &pod, why: "forbidden" };
    let told = respond(&outcome, &mut setbacks, at(0));
    assert!(
        matches!(&told[..], [Action::RecordEvent(Event { subject: Subject::Pod(about), reason, .. })]
            if *about == pod && *reason == Reason::ReservationRefused),
        "{told:?}"
    );
    assert_eq!(respond(&outcome, &mut setbacks, at(1)), []);
    assert_eq!(setbacks.unpatchable(at(600)), ["team".to_owned()].into());
    assert!(setbacks.unpatchable(at(601)).is_empty());
    assert_eq!(respond(&outcome, &mut setbacks, at(601)).len(), 1, "it is news again");
}
