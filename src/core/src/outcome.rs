//! What a call of the executor came to, and what follows from it.
//!
//! The executor carries out actions and decides nothing. What a cloud or the API server answered comes back here: it is
//! remembered as a setback where it is one, and answered with further actions.

use jiff::Timestamp;
use poolwright_catalog::OfferingId;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::action::{Action, ConditionUpdate, Event, EventType, Subject};
use crate::model::{Claim, ObjectKey};
use crate::setbacks::Setbacks;

/// What a call came to.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// The claim has an instance.
    Launched {
        /// Which claim.
        claim: &'a Claim,
        /// The offering that was launched.
        offering: &'a OfferingId,
        /// The offerings that were tried before it.
        unavailable: &'a [Unavailable],
    },
    /// None of the claim's offerings can be had now.
    NoneAvailable {
        /// Which claim.
        claim: &'a Claim,
        /// The offerings that were tried.
        unavailable: &'a [Unavailable],
    },
    /// The claim's launch can never work until a person changes something.
    LaunchInvalid {
        /// Which claim.
        claim: &'a Claim,
        /// What to change.
        why: &'a str,
    },
    /// The API server does not let us add a toleration to a pod.
    TolerationRefused {
        /// Which pod.
        pod: &'a ObjectKey,
        /// Its words.
        why: &'a str,
    },
}

/// An offering that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// Which offering.
    pub offering: OfferingId,
    /// The cloud's words.
    pub why: String,
}

/// Remembers what an outcome says of the future, and decides what to do about it, in this order.
pub fn respond(outcome: &Outcome<'_>, setbacks: &mut Setbacks, now: Timestamp) -> Vec<Action> {
    match *outcome {
        Outcome::Launched { claim, offering, unavailable } => {
            fail(claim, unavailable, setbacks, now);
            setbacks.succeeded(&claim.node_class, offering);
            Vec::new()
        }
        Outcome::NoneAvailable { claim, unavailable } => {
            fail(claim, unavailable, setbacks, now);
            none_available(claim, unavailable)
        }
        Outcome::LaunchInvalid { claim, why } => {
            setbacks.launch_invalid(&claim.node_class, why);
            let warning = event(Subject::Claim(claim.name.clone()), Reason::LaunchInvalid, why.to_owned());
            vec![warning, not_launched(claim, Reason::LaunchInvalid, why.to_owned())]
        }
        Outcome::TolerationRefused { pod, why } => {
            if !setbacks.toleration_refused(&pod.namespace, now) {
                return Vec::new();
            }
            let message = format!(
                "Poolwright may not add a toleration to pods of namespace {}, so it cannot reserve nodes for them; it nominates them instead, and other pods may take their places. Grant `patch` on pods (deploy/rbac.yaml), or run with --placement nominate: {why}",
                pod.namespace
            );
            vec![event(Subject::Pod(pod.clone()), Reason::ReservationRefused, message)]
        }
    }
}

fn fail(claim: &Claim, unavailable: &[Unavailable], setbacks: &mut Setbacks, now: Timestamp) {
    for one in unavailable {
        setbacks.failed(&claim.node_class, &one.offering, now);
    }
}

/// The claim goes, and its pods are planned anew at once, without the offerings that failed.
fn none_available(claim: &Claim, unavailable: &[Unavailable]) -> Vec<Action> {
    let list: Vec<String> = unavailable.iter().map(|one| format!("{} ({})", one.offering, one.why)).collect();
    let message = format!("none of its offerings is available now: {}", list.join(", "));
    vec![
        event(Subject::Claim(claim.name.clone()), Reason::StockOut, message.clone()),
        event(Subject::Pool(claim.pool.clone()), Reason::StockOut, message.clone()),
        not_launched(claim, Reason::StockOut, message),
        Action::DeleteClaim { claim: claim.name.clone(), uid: claim.uid.clone(), only_if_empty: false },
        Action::PlanNow,
    ]
}

fn not_launched(claim: &Claim, reason: Reason, message: String) -> Action {
    let (kind, status, reason) = (ConditionType::Launched, ConditionStatus::False, reason);
    Action::SetConditions {
        subject: Subject::Claim(claim.name.clone()),
        conditions: vec![ConditionUpdate { kind, status, reason, message }],
    }
}

fn event(subject: Subject, reason: Reason, message: String) -> Action {
    Action::RecordEvent(Event { subject, kind: EventType::Warning, reason, message })
}
