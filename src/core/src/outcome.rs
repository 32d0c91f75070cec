//! Outcomes of the executor's calls, and the actions that follow from them.
//!
//! The executor carries out actions and decides nothing. It passes those answers of a cloud or the API server that matter to
//! decisions to this module. The module records failures as setbacks and returns the actions that follow.

use jiff::Timestamp;
use poolwright_catalog::OfferingId;
use poolwright_terms::{CapacityType, ConditionStatus, ConditionType, Reason};

use crate::action::{Action, ConditionUpdate, Event, EventType, Subject};
use crate::model::{Claim, ObjectKey};
use crate::setbacks::Setbacks;

/// The outcome of a call of the executor.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// The claim's instance was launched.
    Launched {
        /// The claim.
        claim: &'a Claim,
        /// The offering that was launched.
        offering: &'a OfferingId,
        /// The offerings that were tried before it.
        unavailable: &'a [Unavailable],
    },
    /// None of the claim's offerings is available now.
    NoneAvailable {
        /// The claim.
        claim: &'a Claim,
        /// The offerings that were tried.
        unavailable: &'a [Unavailable],
    },
    /// The launch cannot succeed until a person changes something.
    LaunchInvalid {
        /// The claim.
        claim: &'a Claim,
        /// The change that is needed.
        why: &'a str,
    },
    /// The launch failed for a cause that may pass, and is repeated.
    LaunchRetried {
        /// The claim.
        claim: &'a Claim,
        /// The cause.
        why: &'a str,
        /// The time of the next try.
        next: Timestamp,
    },
    /// The API server refused to add a toleration to a pod.
    TolerationRefused {
        /// The pod.
        pod: &'a ObjectKey,
        /// The message of the API server.
        why: &'a str,
    },
}

/// An offering that was not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// The offering.
    pub offering: OfferingId,
    /// The cloud's message.
    pub why: String,
}

/// Updates the setbacks and returns the actions that follow, in the order in which to carry them out.
pub fn respond(outcome: &Outcome<'_>, setbacks: &mut Setbacks, now: Timestamp) -> Vec<Action> {
    match *outcome {
        Outcome::Launched { claim, offering, unavailable } => {
            fail(claim, unavailable, setbacks, now);
            setbacks.succeeded(claim, offering, now);
            // The reservation has one instance less now, so the catalogue is stale.
            let used_reservation = offering.capacity_type == CapacityType::Reserved;
            if used_reservation { vec![Action::RefreshCatalogues] } else { Vec::new() }
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
        Outcome::LaunchRetried { claim, why, next } => {
            let why = why.trim_end_matches('.');
            // It has no time, so that repetitions are recognised.
            let warning = event(Subject::Claim(claim.name.clone()), Reason::LaunchRetried, why.to_owned());
            let message = format!("{why}; {}", next_try(claim, next));
            vec![warning, not_launched(claim, Reason::LaunchRetried, message)]
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
        setbacks.failed(claim, &one.offering, now);
    }
}

/// Deletes the claim and plans its pods again at once, without the offerings that failed.
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

/// Says when a launch is tried again, unless its claim is given up before that.
fn next_try(claim: &Claim, next: Timestamp) -> String {
    let deadline = claim.created.checked_add(claim.deadlines.launch).unwrap_or(Timestamp::MAX);
    if next < deadline {
        format!("the next try is at {next:.0}")
    } else {
        format!("no try follows, because the launch deadline is {deadline:.0}")
    }
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
