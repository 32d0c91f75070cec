//! The loop that receives interruption notices from providers (on AWS from an SQS queue), and records them on claims.
//!
//! A notice is recorded first and acknowledged afterwards. If the controller ends in between, the cloud delivers it again. A
//! notice about an instance without a claim may be early: the launch may not be recorded yet. It is redelivered for a while and
//! then acknowledged, because clouds also send notices about foreign instances. A notice that cannot be recorded does not delay
//! others. Notices about one claim that are in hand together are one write.

mod gathered;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, OptionFuture, join_all};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use jiff::SignedDuration;
use poolwright_core::{Claim, Interruption};
use poolwright_intake::{api_interruption, interruption};
use poolwright_provider_contract::{self as contract, InterruptionMessage, ProviderError, instance_of};
use poolwright_terms::{ConditionType, InterruptionKind};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use self::gathered::{Gathered, Notice};
use super::leader_loop::LeaderLoop;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;
use crate::executor::unrecorded::InterruptionGuard;
use crate::executor::{Executor, RecordResult};
use crate::leader::writer::{Permit, WriteError};
use crate::observed::providers::{Cloud, error_label};

/// The timeout of one poll of a provider.
const LIMIT: Duration = Duration::from_mins(1);
/// The timeout of acknowledging notices.
const ACKNOWLEDGE_LIMIT: Duration = Duration::from_secs(20);
/// The pause after a failure: first and longest. It doubles.
const AFTER_FAILURE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// The age up to which a notice may be about an instance whose launch is not recorded yet.
const UNRECORDED: SignedDuration = SignedDuration::from_mins(5);
/// The number of attempts to record a notice. After that, the cloud delivers it again. If the API server refuses at once, the
/// attempts take 16 s, which is less than the time after which clouds deliver a notice again.
const ATTEMPTS: u32 = 8;
/// The pause between two attempts: first and longest. It doubles.
const BETWEEN_ATTEMPTS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
/// How long decisions wait for the answer to one record. The record itself may take longer.
const ANSWER: Duration = Duration::from_secs(2);
/// The most unfinished notices. At this number, no more are received.
const MOST_IN_HAND: usize = 2_000;

/// The loop that receives and records notices.
#[derive(Clone)]
pub struct Interruptions {
    context: Context,
    executor: Arc<Executor>,
}

impl LeaderLoop for Interruptions {
    const NAME: &'static str = "hearing the clouds";

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    /// Looks once for the whole term, because notices arrive at any time.
    async fn look(&mut self) -> Option<Duration> {
        self.listen_to_all().await;
        None
    }
}

impl Interruptions {
    /// Creates a loop that receives notices from every provider.
    pub fn new(context: Context, executor: Arc<Executor>) -> Self {
        Self { context, executor }
    }

    async fn listen_to_all(&self) {
        join_all(self.context.providers.all().iter().map(|provider| self.listen(provider))).await;
    }

    /// Receives notices of one provider, for ever.
    async fn listen(&self, provider: &Cloud) {
        let gathered = Gathered::default();
        let mut in_hand = FuturesUnordered::new();
        let mut receipts: Vec<String> = Vec::new();
        let mut giving_back: OptionFuture<BoxFuture<'_, ()>> = None.into();
        let mut is_giving_back = false;
        let mut hearing = self.hear(provider, Duration::ZERO);
        loop {
            if !is_giving_back && !receipts.is_empty() {
                giving_back = Some(self.give_back(provider, std::mem::take(&mut receipts)).boxed()).into();
                is_giving_back = true;
            }
            tokio::select! {
                biased;
                Some(receipt) = in_hand.next(), if !in_hand.is_empty() => receipts.extend(receipt),
                _ = &mut giving_back, if is_giving_back => is_giving_back = false,
                (heard, pause) = &mut hearing, if in_hand.len() < MOST_IN_HAND => {
                    in_hand.extend(heard.into_iter().map(|notice| self.take(provider, notice, &gathered)));
                    hearing = self.hear(provider, pause);
                }
            }
        }
    }

    /// Returns the next notices of the provider, and the pause before the next poll.
    fn hear<'a>(
        &'a self,
        provider: &'a Cloud,
        pause: Duration,
    ) -> BoxFuture<'a, (Vec<InterruptionMessage>, Duration)> {
        async move {
            sleep(pause).await;
            let heard = timeout(LIMIT, provider.interruptions()).await;
            for error in provider.failures() {
                // The provider has logged it already.
                self.count(provider, "look", &error);
            }
            self.context
                .metrics
                .unreadable
                .with_label_values(&[provider.name()])
                .inc_by(provider.unreadable());
            match heard {
                Ok(Ok(notices)) => (notices, Duration::ZERO),
                // No notice within the timeout.
                Err(_) => (Vec::new(), Duration::ZERO),
                Ok(Err(error)) => {
                    self.failed(provider, "notices", &error);
                    (Vec::new(), (pause * 2).clamp(AFTER_FAILURE.0, AFTER_FAILURE.1))
                }
            }
        }
        .boxed()
    }

    fn count(&self, provider: &Cloud, call: &str, error: &ProviderError) {
        let labels = [provider.name(), call, error_label(error)];
        self.context.metrics.provider_errors.with_label_values(&labels).inc();
    }

    fn failed(&self, provider: &Cloud, call: &str, error: &ProviderError) {
        self.count(provider, call, error);
        warn!(provider = provider.name(), call, %error, "cannot receive or acknowledge interruptions from the cloud; trying again");
    }

    /// Handles a notice. Returns its receipt if it can be acknowledged.
    async fn take(
        &self,
        provider: &Cloud,
        notice: InterruptionMessage,
        gathered: &Gathered,
    ) -> Option<String> {
        let all = notice.interruptions.into_iter().map(|said| async move {
            let outcome = self.record(provider, &said, gathered).await;
            let labels = [provider.name(), said.kind.as_str(), outcome.label()];
            self.context.metrics.interruptions.with_label_values(&labels).inc();
            outcome.is_final()
        });
        let is_done = join_all(all).await.into_iter().all(|done| done);
        notice.receipt.filter(|_| is_done)
    }

    async fn record(&self, provider: &Cloud, told: &contract::Interruption, gathered: &Gathered) -> Handled {
        let kinds = provider.node_class_kinds();
        let claim = self.context.world.view(|all| {
            let mut called_so = all.claims.of_instance(&told.instance);
            called_so.find(|claim| kinds.iter().any(|one| one.kind == claim.node_class.kind)).cloned()
        });
        let Some(claim) = claim else { return self.nobody(provider, told) };
        let said = said(told);
        if is_recorded(&claim, &said) {
            return Handled::Known;
        }
        if said.kind == InterruptionKind::Ending && is_given_back(&claim) {
            return Handled::Expected;
        }
        let mut heard = Some(self.executor.unrecorded().heard());
        let notice = gathered.add(&claim.uid, &said);
        // The other notices that came with this one are added first, so that one write records all about this claim.
        yield_now().await;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                let (first, longest) = BETWEEN_ATTEMPTS;
                sleep((first * 2_u32.pow(attempt - 1)).min(longest)).await;
            }
            let handled = self.try_to_record(&claim, &said, &notice, &mut heard).await;
            // Decisions wait only for the first attempt.
            drop(heard.take());
            if let Some(handled) = handled {
                return handled;
            }
        }
        Handled::Failed
    }

    /// Records a notice, together with all others in hand about its claim. Returns `None` if another attempt may succeed.
    async fn try_to_record(
        &self,
        claim: &Claim,
        said: &Interruption,
        notice: &Notice<'_>,
        heard: &mut Option<InterruptionGuard<'_>>,
    ) -> Option<Handled> {
        let _turn = notice.turn().await;
        // The write of another notice may have recorded this one meanwhile.
        let seen = self.context.world.claim(&claim.name).filter(|seen| seen.uid == claim.uid);
        if seen.is_some_and(|seen| is_recorded(&seen, said)) {
            return Some(Handled::Known);
        }
        let merged = notice.merged(said);
        let mut recording = pin!(self.executor.record_interruption(claim, &merged));
        let answer = timeout(ANSWER, recording.as_mut()).await;
        let result = if let Ok(result) = answer {
            result
        } else {
            drop(heard.take());
            recording.await
        };
        match result {
            RecordResult::Recorded => {
                let age = self.context.clock.now().duration_since(said.noticed).max(SignedDuration::ZERO);
                self.context.metrics.interruption_age.observe(age.as_secs_f64());
                Some(Handled::Recorded)
            }
            RecordResult::AlreadyRecorded => Some(Handled::Known),
            RecordResult::ClaimGone => Some(Handled::Gone),
            RecordResult::NotLeading => Some(Handled::Failed),
            RecordResult::NotRecorded => None,
        }
    }

    /// Handles a notice about an instance without a claim.
    fn nobody(&self, provider: &Cloud, told: &contract::Interruption) -> Handled {
        let kinds = provider.node_class_kinds();
        let may_be_ours = self.context.world.view(|all| {
            // Before the first listing, any instance may be ours.
            let listed = all.instances.as_ref().is_none_or(|instances| {
                kinds.iter().any(|one| instances.listed_at(one.kind).is_none())
                    || instances.iter().any(|one| instance_of(&one.provider_id) == told.instance)
            });
            let of_kind = |claim: &Claim| kinds.iter().any(|one| one.kind == claim.node_class.kind);
            listed || all.claims.values().any(|claim| claim.launched.is_none() && of_kind(claim))
        });
        let age = self.context.clock.now().duration_since(told.noticed);
        if may_be_ours && age < UNRECORDED {
            return Handled::Later;
        }
        info!(
            provider = provider.name(),
            instance = told.instance,
            kind = told.kind.as_str(),
            "the cloud announced an interruption of an instance that no NodeClaim has"
        );
        Handled::Unknown
    }

    async fn give_back(&self, provider: &Cloud, receipts: Vec<String>) {
        let call = async |permit: &Permit| provider.writable(permit).acknowledge(&receipts).await;
        match self.context.writer.write("acknowledge", ACKNOWLEDGE_LIMIT, call).await {
            Ok(()) | Err(WriteError::NotLeading) => {}
            // The cloud delivers these notices again, and they are then found to be recorded.
            Err(WriteError::TimedOut(limit)) => {
                let error = ProviderError::Transient(format!("no answer within {limit:?}"));
                self.failed(provider, "acknowledge", &error);
            }
            Err(WriteError::Failed(error)) => self.failed(provider, "acknowledge", &error),
        }
    }
}

/// The result of handling one interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handled {
    Recorded,
    Known,
    Expected,
    Gone,
    Unknown,
    Later,
    Failed,
}

impl Handled {
    const fn label(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Known => "known",
            Self::Expected => "expected",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
            Self::Later => "later",
            Self::Failed => "failed",
        }
    }

    /// Returns whether the notice can be acknowledged.
    const fn is_final(self) -> bool {
        !matches!(self, Self::Later | Self::Failed)
    }
}

/// Returns whether the claim records all that a notice says.
fn is_recorded(claim: &Claim, said: &Interruption) -> bool {
    claim.interruption.as_ref().is_some_and(|known| known.merged(said) == *known)
}

/// Returns whether we are terminating the claim's instance ourselves.
fn is_given_back(claim: &Claim) -> bool {
    claim.deleting_since.is_some() && claim.since(ConditionType::InstanceTerminating).is_some()
}

/// Returns the interruption to record.
fn said(told: &contract::Interruption) -> Interruption {
    let kind = match told.kind {
        poolwright_terms::InterruptionKind::Rebalance => InterruptionKind::Rebalance,
        poolwright_terms::InterruptionKind::Maintenance => InterruptionKind::Maintenance,
        poolwright_terms::InterruptionKind::Unhealthy => InterruptionKind::Unhealthy,
        poolwright_terms::InterruptionKind::ReservationEnd => InterruptionKind::ReservationEnd,
        poolwright_terms::InterruptionKind::ReservationReclaim => InterruptionKind::ReservationReclaim,
        poolwright_terms::InterruptionKind::Reclaim => InterruptionKind::Reclaim,
        poolwright_terms::InterruptionKind::Ending => InterruptionKind::Ending,
    };
    let contract::Interruption { noticed, deadline, message, .. } = told.clone();
    interruption(&api_interruption(&Interruption { kind, noticed, deadline, message }))
}

#[cfg(test)]
mod tests;
