//! Gives instances back: asks a cloud to terminate them, and makes sure that they are gone.
//!
//! The answers of a cloud can be wrong. Its listing lacks an instance whose tags somebody removed, and with wrong credentials it
//! lacks all of them. So an instance counts as gone only if the cloud does not know its id either, and never while the listings
//! are doubted. Otherwise it would run on, unseen and paid for.

use std::time::Duration;

use poolwright_core::{Claim, ConditionUpdate, EventType, Subject, Uid};
use poolwright_provider_contract::{Instance, InstanceState, ProviderError};
use poolwright_terms::{ConditionStatus, ConditionType, Reason};
use tokio::time::timeout;

use super::Executor;
use super::progress::Progress;
use crate::leader::writer::WriteError;
use crate::observed::providers::{Cloud, error_label};

/// The timeout of a provider call.
const LIMIT: Duration = Duration::from_mins(1);
/// How soon to check again whether an instance is gone.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The retry interval of a call that cannot succeed until a person changes something.
const PERSON_WAIT: Duration = Duration::from_mins(1);
/// The shortest pause after a cloud throttled a call.
const THROTTLED_WAIT: Duration = Duration::from_secs(5);

/// Returns the retry of an action on a cloud whose listings are doubted; `None` if they are not.
///
/// A launch has no exception: the cloud may have launched the instance before without showing it, and a second call may buy
/// twice.
pub(super) fn doubted(provider: &Cloud) -> Option<Progress> {
    provider.doubt().map(|why| Progress::Retry(PERSON_WAIT, why))
}

/// Returns the retry of a termination while the listings of this cloud are doubted, unless the cloud shows the instance by its id.
///
/// To terminate an instance that the cloud shows is safe, because its id is unique. It may also be urgent: a person deleted the
/// claim, or its time is up. An instance that the cloud does not show cannot be terminated, and does not count as gone.
pub(super) async fn unproven(provider: &Cloud, id: Option<&str>) -> Option<Progress> {
    let wait = doubted(provider)?;
    let Some(id) = id else { return Some(wait) };
    match look(provider, id).await {
        Ok(Some(_)) => None,
        Ok(None) => Some(wait),
        Err(outcome) => Some(outcome),
    }
}

/// Looks an instance up by its id.
pub(super) async fn look(provider: &Cloud, id: &str) -> Result<Option<Instance>, Progress> {
    match timeout(LIMIT, provider.get(id)).await {
        Ok(found) => found.map_err(|error| refused(&error)),
        Err(_) => Err(no_answer(LIMIT)),
    }
}

fn not_ours(id: &str) -> String {
    format!(
        "the cloud does not find instance {id} by its tags any more, and no NodeClaim records it, so it runs on"
    )
}

fn no_answer(limit: Duration) -> Progress {
    Progress::retry(format!("the provider did not answer within {limit:?}"))
}

fn refused(error: &ProviderError) -> Progress {
    match error {
        ProviderError::Throttled(_) => Progress::Retry(THROTTLED_WAIT, error.to_string()),
        ProviderError::Invalid(_) => Progress::Retry(PERSON_WAIT, error.to_string()),
        ProviderError::Transient(_) => Progress::retry(error),
    }
}

impl Executor {
    /// Terminates the instance of the claim with this UID. `id` is its id, if known, and `claim` the claim, if it still exists.
    /// Returns `Ok` if the instance is gone.
    pub(super) async fn give_back(
        &self,
        provider: &Cloud,
        uid: &Uid,
        id: Option<&str>,
        claim: Option<&Claim>,
    ) -> Result<(), Progress> {
        outcome(self.ask_back(provider, uid, None).await)?;
        let Some(id) = id else { return Ok(()) };
        match look(provider, id).await? {
            // A doubt may have begun meanwhile.
            None => doubted(provider).map_or(Ok(()), Err),
            Some(found) if found.state == InstanceState::Terminating => Err(Progress::Again(ASK_AGAIN)),
            Some(_) => {
                // Its tags were changed. Only the record of its claim proves that it is ours.
                let Some(claim) = claim else { return Err(Progress::Retry(PERSON_WAIT, not_ours(id))) };
                let answer = self.ask_back(provider, uid, Some(id)).await;
                if let Err(WriteError::Failed(ProviderError::Invalid(why))) = &answer {
                    self.report_unlisted(claim, id, why).await;
                }
                outcome(answer)
            }
        }
    }

    /// Calls the provider once: to terminate the instance of this claim, or the one with this id. Returns whether it is gone.
    async fn ask_back(
        &self,
        provider: &Cloud,
        uid: &Uid,
        id: Option<&str>,
    ) -> Result<bool, WriteError<ProviderError>> {
        let answer = self
            .context
            .writer
            .write("terminate", LIMIT, async |permit| match id {
                None => provider.writable(permit).terminate(&uid.0).await,
                Some(id) => provider.writable(permit).terminate_by_id(id, &uid.0).await,
            })
            .await;
        let count = |result: &str| {
            self.context.metrics.terminations.with_label_values(&[provider.name(), result]).inc();
        };
        match &answer {
            Ok(true) => count("gone"),
            Ok(false) => count("going"),
            Err(WriteError::NotLeading) => {}
            Err(WriteError::TimedOut(_)) => count("error"),
            Err(WriteError::Failed(error)) => {
                count("error");
                let labels = [provider.name(), "terminate", error_label(error)];
                self.context.metrics.provider_errors.with_label_values(&labels).inc();
            }
        }
        answer
    }

    /// Reports that an instance runs which Poolwright can neither find by its tags nor terminate by its id.
    async fn report_unlisted(&self, claim: &Claim, id: &str, why: &str) {
        let message = format!(
            "instance {id} still runs, but its cloud does not find it by its tags, and does not let Poolwright terminate it by its id: \
             {why}. Restore the tags of the instance, or terminate it yourself"
        );
        let update = ConditionUpdate {
            kind: ConditionType::InstanceUnlisted,
            status: ConditionStatus::True,
            reason: Reason::InstanceUnlisted,
            message: message.clone(),
        };
        let written = self.claim_conditions(&claim.name, Some(&claim.uid), &[update]).await;
        if matches!(written, Progress::Done) {
            let subject = Subject::Claim(claim.name.clone());
            self.record_event(&subject, EventType::Warning, Reason::InstanceUnlisted, &message);
        }
    }
}

/// Returns `Ok` if the instance is gone.
fn outcome(answer: Result<bool, WriteError<ProviderError>>) -> Result<(), Progress> {
    match answer {
        Ok(true) => Ok(()),
        Ok(false) => Err(Progress::Again(ASK_AGAIN)),
        Err(WriteError::NotLeading) => Err(Progress::NotLeading),
        Err(WriteError::TimedOut(limit)) => Err(no_answer(limit)),
        Err(WriteError::Failed(error)) => Err(refused(&error)),
    }
}
