//! The loop that receives interruption notices from providers (on AWS from an SQS queue), and records them on claims.
//!
//! A notice is recorded first and acknowledged afterwards. If the controller ends in between, the cloud delivers it again. A
//! notice about an instance without a claim may be early: the launch may not be recorded yet. It is redelivered for a while and
//! then acknowledged, because clouds also send notices about foreign instances. A notice that cannot be recorded does not delay
//! others.

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
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::leader_loop::LeaderLoop;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;
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
/// How many notices are recorded concurrently.
const AT_A_TIME: usize = 32;
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
        let permits = Semaphore::new(AT_A_TIME);
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
                    in_hand.extend(heard.into_iter().map(|notice| self.take(provider, notice, &permits)));
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
        permits: &Semaphore,
    ) -> Option<String> {
        let all = notice.interruptions.into_iter().map(|said| async move {
            let outcome = self.record(provider, &said, permits).await;
            let labels = [provider.name(), said.kind.as_str(), outcome.label()];
            self.context.metrics.interruptions.with_label_values(&labels).inc();
            outcome.is_final()
        });
        let is_done = join_all(all).await.into_iter().all(|done| done);
        notice.receipt.filter(|_| is_done)
    }

    async fn record(&self, provider: &Cloud, told: &contract::Interruption, permits: &Semaphore) -> Handled {
        let kinds = provider.node_class_kinds();
        let claim = self.context.world.view(|all| {
            let mut called_so = all.claims.of_instance(&told.instance);
            called_so.find(|claim| kinds.iter().any(|one| one.kind == claim.node_class.kind)).cloned()
        });
        let Some(claim) = claim else { return self.nobody(provider, told) };
        let said = said(told);
        let known = claim.interruption.as_ref();
        if known.is_some_and(|known| known.merged(&said) == *known) {
            return Handled::Known;
        }
        if said.kind == InterruptionKind::Ending && is_given_back(&claim) {
            return Handled::Expected;
        }
        let heard = self.executor.unrecorded().heard();
        let Ok(_permit) = permits.acquire().await else { return Handled::Failed };
        match self.executor.record_interruption(&claim, &said, heard).await {
            RecordResult::Recorded => {
                let age = self.context.clock.now().duration_since(said.noticed).max(SignedDuration::ZERO);
                self.context.metrics.interruption_age.observe(age.as_secs_f64());
                Handled::Recorded
            }
            RecordResult::AlreadyRecorded => Handled::Known,
            RecordResult::ClaimGone => Handled::Gone,
            RecordResult::NotRecorded => Handled::Failed,
        }
    }

    /// Handles a notice about an instance without a claim.
    fn nobody(&self, provider: &Cloud, told: &contract::Interruption) -> Handled {
        let kinds = provider.node_class_kinds();
        let may_be_ours = self.context.world.view(|all| {
            let listed = all.instances.as_ref().is_some_and(|instances| {
                instances.iter().any(|one| instance_of(&one.provider_id) == told.instance)
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
