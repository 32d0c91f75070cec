//! Every interruption message is recorded in the claim in time.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_api::Interruption;
use poolwright_terms::InterruptionKind;

use super::{Memory, Scene};

pub(super) const RECORDED: &str = "an interruption is recorded on its NodeClaim, with the earliest deadline, before its message is acknowledged";
pub(super) const KEPT: &str = "no deadline of an interruption is postponed, and none becomes less certain";

/// The largest age of a controller's knowledge, because watches stall and requests are late.
const AS_OLD: Duration = Duration::from_mins(5);

/// A claim may record its deadline to the second.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The memory of these rules.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Since when a claim names its instance, by provider id.
    launched: BTreeMap<String, Duration>,
    /// The interruption that each claim last recorded, by UID.
    announced: BTreeMap<String, (InterruptionKind, Option<Timestamp>)>,
}

pub(super) fn recorded(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let seen = &mut memory.notices;
    let mut told: BTreeMap<&str, (&str, Option<&Interruption>)> = BTreeMap::new();
    for claim in scene.cluster.claims.values() {
        let Some(status) = &claim.status else { continue };
        let Some(id) = &status.provider_id else { continue };
        seen.launched.entry(id.clone()).or_insert(scene.now);
        let said = status.interruption.as_ref();
        // A claim that was being deleted when it was to be recorded needs it no more.
        if said.is_some() || claim.metadata.deletion_timestamp.is_none() {
            told.insert(id, (claim.metadata.name.as_deref().unwrap_or_default(), said));
        }
    }
    let mail = scene.cluster.cloud.mail();
    mail.iter().find_map(|one| {
        let given_back = one.given_back?;
        let (claim, said) = told.get(one.provider_id.as_str())?;
        let recorded = said.and_then(|said| said.deadline.as_ref()).map(|at| at.0);
        let is_late = one
            .interruption
            .deadline
            .is_some_and(|deadline| recorded.is_none_or(|recorded| recorded > deadline + SECOND));
        let known = seen.launched.get(&one.provider_id).is_some_and(|since| *since + AS_OLD < given_back);
        (known && (said.is_none() || is_late)).then(|| {
            let kind = one.interruption.kind.as_str();
            let deadline = one.interruption.deadline;
            format!("{claim} does not record {kind} of {} by {deadline:?}", one.provider_id)
        })
    })
}

pub(super) fn kept(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let seen = &mut memory.notices.announced;
    scene.cluster.claims.values().find_map(|claim| {
        let interruption = claim.status.as_ref()?.interruption.as_ref()?;
        let now = (interruption.kind, interruption.deadline.as_ref().map(|at| at.0));
        let uid = claim.metadata.uid.clone().unwrap_or_default();
        let (kind, deadline) = seen.insert(uid, now)?;
        let put_off = deadline.is_some_and(|before| now.1.is_none_or(|after| after > before));
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        (put_off || now.0 < kind).then(|| format!("{name} said {kind:?} by {deadline:?}, and then {now:?}"))
    })
}
