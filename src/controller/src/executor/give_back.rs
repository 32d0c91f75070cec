//! Gives instances back: asks a cloud to terminate them, and makes sure that they are gone.
//!
//! The answers of a cloud can be wrong. Its listing lacks an instance whose tags somebody removed, and with wrong credentials it
//! lacks all of them. So an instance counts as gone only if the cloud does not know its id either. It never does while the
//! listings are doubted, nor for a while after a termination while its node is ready. Otherwise it would run on, unseen and paid
//! for.

use std::time::Duration;

use jiff::SignedDuration;
use poolwright_core::{Claim, ConditionUpdate, EventType, Subject, Uid};
use poolwright_provider_contract::{Instance, InstanceState, ProviderError};
use poolwright_terms::{ConditionStatus, ConditionType, Reason};
use tokio::time::timeout;
use tracing::debug;

use super::Executor;
use super::progress::Progress;
use crate::leader::writer::WriteError;
use crate::observed::providers::{Cloud, error_label};

/// The timeout of a provider call.
const LIMIT: Duration = Duration::from_mins(1);
/// How soon to check again whether an instance is gone.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How soon to look again whether a node is still ready.
const NODE_AGAIN: Duration = Duration::from_secs(5);
/// How long a ready node outweighs a cloud that does not know its instance.
///
/// The node lifecycle controller makes a node not ready 40 to 50 seconds after its kubelet has gone. Without that controller, or
/// with a watch that hangs, the node would seem ready for ever, and its claim would stay for ever.
const NODE_COUNTS: SignedDuration = SignedDuration::from_mins(10);
/// The retry interval of a call that cannot succeed until a person changes something.
const PERSON_WAIT: Duration = Duration::from_mins(1);
/// The shortest pause after a cloud throttled a call.
const THROTTLED_WAIT: Duration = Duration::from_secs(5);

/// Returns when to repeat an action on a cloud whose listings are doubted, or not judged yet; `None` if they are right.
///
/// It is no failure, so the wait does not double: after a long doubt, all goes on within a minute. The log and the pools say why.
/// A launch has no exception: the cloud may have launched the instance before without showing it, and a second call may buy
/// twice.
pub(super) fn doubted(provider: &Cloud) -> Option<Progress> {
    if !provider.is_judged() {
        // The controller has just started, and the first listing is under way.
        return Some(Progress::Again(ASK_AGAIN));
    }
    provider.doubt().map(|_| Progress::Again(PERSON_WAIT))
}

/// Returns when to repeat a termination while the listings of this cloud are doubted, unless the cloud shows the instance by its id.
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
            None => match doubted(provider) {
                Some(wait) => Err(wait),
                None if claim.is_some_and(|claim| self.seems_to_run(claim, id)) => {
                    debug!(instance = id, "its node is still ready, so it does not count as gone yet");
                    Err(Progress::Again(NODE_AGAIN))
                }
                None => Ok(()),
            },
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

    /// Returns whether the node of this instance shows that it runs, although its cloud does not know it.
    ///
    /// A cloud that announced the end is believed. One that did not know the instance before the claim was deleted says nothing new,
    /// so against it the node counts for as long as it is ready.
    fn seems_to_run(&self, claim: &Claim, id: &str) -> bool {
        let now = self.context.clock.now();
        let since = claim.since(ConditionType::InstanceTerminating).or(claim.deleting_since);
        let unlisted = claim.since(ConditionType::InstanceUnlisted).zip(claim.deleting_since);
        let was_unlisted = unlisted.is_some_and(|(unlisted, deleted)| unlisted < deleted);
        (was_unlisted || since.is_some_and(|since| now.duration_since(since) < NODE_COUNTS))
            && !claim.ends_soon(now)
            && self.context.world.view(|all| all.nodes.with_provider_id(id).is_some_and(|node| node.ready))
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
