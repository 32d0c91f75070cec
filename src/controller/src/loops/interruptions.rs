//! Hearing what clouds say of their own accord.
//!
//! What is heard is recorded on the claim first, and given back to the cloud only then: whatever ends us in between, it comes again.
//! What nobody can be found for is left to come again for a while, for an instance may be told to go before its launch is recorded; then
//! it is given back, for clouds tell of instances that are none of ours too. What cannot be recorded holds up nothing else.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, OptionFuture, join_all};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use jiff::SignedDuration;
use poolwright_core::{Claim, ConditionType, Interruption, InterruptionKind};
use poolwright_intake::{api_interruption, interruption};
use poolwright_provider_contract::{self as contract, Notice, ProviderError, instance_of};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::acts::executor::{Executor, Recorded};
use crate::edge::clock::SharedClock;
use crate::edge::metrics::Metrics;
use crate::leader::writer::WriteError;
use crate::sees::providers::{SharedProvider, error_label};
use crate::sees::ready::Ready;
use crate::sees::world::World;

/// A provider that has said nothing for so long is asked anew.
const LIMIT: Duration = Duration::from_mins(1);
/// How long a provider may take to take receipts back.
const ACKNOWLEDGE_LIMIT: Duration = Duration::from_secs(20);
/// How soon a provider that failed is asked again; the pause doubles.
const AFTER_FAILURE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// For how long after it was said a notice may be about an instance whose launch is not recorded yet.
const UNRECORDED: SignedDuration = SignedDuration::from_mins(5);
/// How many are recorded at a time.
const AT_A_TIME: usize = 32;
/// With more than this in hand no more are heard.
const MOST_IN_HAND: usize = 2_000;

/// Hears and records.
#[derive(Clone)]
pub struct Notices {
    /// Whom to hear.
    pub providers: Vec<SharedProvider>,
    /// What is known.
    pub world: Arc<World>,
    /// Who records.
    pub executor: Arc<Executor>,
    /// Counts.
    pub metrics: Metrics,
    /// Time.
    pub clock: SharedClock,
    /// When the cluster is known.
    pub ready: Ready,
    /// Told to stop.
    pub shutdown: CancellationToken,
}

impl Notices {
    /// Hears while we lead, until told to stop.
    pub async fn run(self) {
        let claims = self.executor.writer.claims();
        claims.while_leading("hearing the clouds", &self.shutdown, |_| self.lead()).await;
    }

    async fn lead(&self) {
        self.ready.wait().await;
        join_all(self.providers.iter().map(|provider| self.listen(provider))).await;
    }

    /// Hears one provider, for ever.
    async fn listen(&self, provider: &SharedProvider) {
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

    /// What the provider says next, and the pause to make before it is asked after that.
    fn hear<'a>(
        &'a self,
        provider: &'a SharedProvider,
        pause: Duration,
    ) -> BoxFuture<'a, (Vec<Notice>, Duration)> {
        async move {
            sleep(pause).await;
            let heard = timeout(LIMIT, provider.notices()).await;
            for error in provider.failures() {
                // The provider says so itself, once.
                self.count(provider, "look", &error);
            }
            self.metrics.unreadable.with_label_values(&[provider.name()]).inc_by(provider.unreadable());
            match heard {
                Ok(Ok(notices)) => (notices, Duration::ZERO),
                // Clouds that never say anything never answer.
                Err(_) => (Vec::new(), Duration::ZERO),
                Ok(Err(error)) => {
                    self.failed(provider, "notices", &error);
                    (Vec::new(), (pause * 2).clamp(AFTER_FAILURE.0, AFTER_FAILURE.1))
                }
            }
        }
        .boxed()
    }

    fn count(&self, provider: &SharedProvider, call: &str, error: &ProviderError) {
        let labels = [provider.name(), call, error_label(error)];
        self.metrics.provider_errors.with_label_values(&labels).inc();
    }

    fn failed(&self, provider: &SharedProvider, call: &str, error: &ProviderError) {
        self.count(provider, call, error);
        warn!(provider = provider.name(), call, %error, "what the cloud says of instances is not heard; asking again");
    }

    /// Deals with all that a notice says. Its receipt, when it need not come again.
    async fn take(&self, provider: &SharedProvider, notice: Notice, permits: &Semaphore) -> Option<String> {
        let all = notice.interruptions.into_iter().map(|said| async move {
            let outcome = self.record(provider, &said, permits).await;
            let labels = [provider.name(), said.kind.as_str(), outcome.label()];
            self.metrics.interruptions.with_label_values(&labels).inc();
            outcome.is_final()
        });
        let is_done = join_all(all).await.into_iter().all(|done| done);
        notice.receipt.filter(|_| is_done)
    }

    async fn record(
        &self,
        provider: &SharedProvider,
        told: &contract::Interruption,
        permits: &Semaphore,
    ) -> Outcome {
        let kinds = provider.node_class_kinds();
        let claim = self.world.view(|all| {
            let mut called_so = all.claims.of_instance(&told.instance);
            called_so.find(|claim| kinds.contains(&claim.node_class.kind.as_str())).cloned()
        });
        let Some(claim) = claim else { return self.nobody(provider, told) };
        let said = said(told);
        let known = claim.interruption.as_ref();
        if known.is_some_and(|known| known.merged(&said) == *known) {
            return Outcome::Known;
        }
        if said.kind == InterruptionKind::Ending && is_given_back(&claim) {
            return Outcome::Expected;
        }
        let heard = self.executor.rush.heard();
        let Ok(_permit) = permits.acquire().await else { return Outcome::Failed };
        match self.executor.record_interruption(&claim, &said, heard).await {
            Recorded::Yes => {
                let age = self.clock.now().duration_since(said.noticed).max(SignedDuration::ZERO);
                self.metrics.interruption_age.observe(age.as_secs_f64());
                Outcome::Recorded
            }
            Recorded::Before => Outcome::Known,
            Recorded::Gone => Outcome::Gone,
            Recorded::No => Outcome::Failed,
        }
    }

    /// A notice about an instance that no claim has.
    fn nobody(&self, provider: &SharedProvider, told: &contract::Interruption) -> Outcome {
        let kinds = provider.node_class_kinds();
        let may_be_ours = self.world.view(|all| {
            let listed = all.instances.as_ref().is_some_and(|instances| {
                instances.iter().any(|one| instance_of(&one.provider_id) == told.instance)
            });
            let of_kind = |claim: &Claim| kinds.contains(&claim.node_class.kind.as_str());
            listed || all.claims.values().any(|claim| claim.launched.is_none() && of_kind(claim))
        });
        let age = self.clock.now().duration_since(told.noticed);
        if may_be_ours && age < UNRECORDED {
            return Outcome::Later;
        }
        info!(
            provider = provider.name(),
            instance = told.instance,
            kind = told.kind.as_str(),
            "the cloud speaks of an instance that no NodeClaim has"
        );
        Outcome::Unknown
    }

    async fn give_back(&self, provider: &SharedProvider, receipts: Vec<String>) {
        let call = || provider.acknowledge(&receipts);
        match self.executor.writer.write("acknowledge", ACKNOWLEDGE_LIMIT, call).await {
            Ok(()) | Err(WriteError::NotLeading) => {}
            // They come again, and are known then.
            Err(WriteError::TimedOut(limit)) => {
                let error = ProviderError::Transient(format!("no answer within {limit:?}"));
                self.failed(provider, "acknowledge", &error);
            }
            Err(WriteError::Failed(error)) => self.failed(provider, "acknowledge", &error),
        }
    }
}

/// What became of what was said of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Recorded,
    Known,
    Expected,
    Gone,
    Unknown,
    Later,
    Failed,
}

impl Outcome {
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

    /// Whether it need not come again.
    const fn is_final(self) -> bool {
        !matches!(self, Self::Later | Self::Failed)
    }
}

/// Whether we give the claim's instance back ourselves.
fn is_given_back(claim: &Claim) -> bool {
    claim.deleting_since.is_some() && claim.since(ConditionType::InstanceTerminating).is_some()
}

/// What a cloud says, as it is recorded.
fn said(told: &contract::Interruption) -> Interruption {
    let kind = match told.kind {
        contract::InterruptionKind::Rebalance => InterruptionKind::Rebalance,
        contract::InterruptionKind::Maintenance => InterruptionKind::Maintenance,
        contract::InterruptionKind::Unhealthy => InterruptionKind::Unhealthy,
        contract::InterruptionKind::ReservationEnd => InterruptionKind::ReservationEnd,
        contract::InterruptionKind::ReservationReclaim => InterruptionKind::ReservationReclaim,
        contract::InterruptionKind::Reclaim => InterruptionKind::Reclaim,
        contract::InterruptionKind::Ending => InterruptionKind::Ending,
    };
    let contract::Interruption { noticed, deadline, message, .. } = told.clone();
    interruption(&api_interruption(&Interruption { kind, noticed, deadline, message }))
}

#[cfg(test)]
mod tests;
