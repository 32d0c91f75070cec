//! Launch: orders exactly one instance for a stored claim.
//!
//! A crash does no harm, wherever it happens:
//! - before the provider call: nothing was bought, and the claim is launched later.
//! - during the call, or before the result is recorded: the launch is repeated with the same key, the claim's UID, and the
//!   provider returns the existing instance.
//! - after a failure, before the claim is deleted: the launch is repeated, and fails or succeeds.
//!
//! The claim is read from the API server immediately before the call. So a stale view never launches for a deleted claim, and
//! never reuses the key of a terminated instance.

use std::time::Duration;

use jiff::Timestamp;
use poolwright_api::{ClaimOffering, ClaimPrice, NodeClaim, OfferingRef};
use poolwright_catalog::{OfferingId, RankedOffering};
use poolwright_core::{self as core, Claim, ConditionUpdate, EventType, Subject};
use poolwright_intake::{claim_price, merge_conditions, offering_ref};
use poolwright_provider_contract::{
    FailedOffering, LaunchError, LaunchRequest, LaunchedInstance, ProviderError,
};
use poolwright_terms::{ConditionStatus, ConditionType, Reason, keys};
use tracing::{info, warn};

use super::give_back::doubted;
use super::lanes::lane_of_claim;
use super::progress::{Progress, refused};
use super::status::Changed;
use super::{Executor, taints};
use crate::executor::launch_batches;
use crate::leader::writer::WriteError;
use crate::observed::providers::error_label;

/// The timeout of a launch: longer than any cloud needs to refuse.
const LAUNCH_LIMIT: Duration = Duration::from_mins(2);
/// The retry interval of a launch that cannot succeed until a person changes something.
const INVALID_WAIT: Duration = Duration::from_mins(1);
/// The shortest pause after a cloud throttled a call.
const THROTTLED_WAIT: Duration = Duration::from_secs(5);

impl Executor {
    pub(super) async fn launch(&self, claim: &Claim) -> Progress {
        let api = self.context.reader.all::<NodeClaim>();
        let object = match api.get(&claim.name.0).await {
            Ok(Some(object)) => object,
            Ok(None) => {
                self.context.world.claim_gone(claim);
                return Progress::NothingToDo;
            }
            Err(error) => return refused("reading the NodeClaim", &error),
        };
        let wanted = object.metadata.uid.as_deref() == Some(claim.uid.0.as_str())
            && object.metadata.deletion_timestamp.is_none()
            && object.status.as_ref().is_none_or(|status| status.provider_id.is_none());
        if !wanted {
            self.context.world.claim_seen(&object);
            return Progress::NothingToDo;
        }
        let provider = match self.context.providers.for_class(&claim.node_class) {
            Ok(provider) => provider,
            Err(why) => return self.launch_invalid(claim, &why).await,
        };
        if let Some(wait) = doubted(provider) {
            return wait;
        }
        let request = request(claim, &object);
        let launched = self
            .context
            .writer
            .write("launch", LAUNCH_LIMIT, async |permit| provider.writable(permit).launch(&request).await)
            .await;
        let count =
            |result: &str| self.context.metrics.launches.with_label_values(&[provider.name(), result]).inc();
        match launched {
            Ok(launched) => {
                count("launched");
                let offering = &launched.instance.offering;
                let unavailable = self.count_unavailable(claim, &launched.failed);
                self.learn(&core::Outcome::Launched { claim, offering, unavailable: &unavailable }).await;
                self.record_launch(claim, &launched).await
            }
            Err(WriteError::NotLeading) => Progress::NotLeading,
            Err(WriteError::TimedOut(limit)) => {
                count("transient");
                let why = format!("the provider did not answer within {limit:?}");
                self.launch_again(claim, Duration::ZERO, why).await
            }
            Err(WriteError::Failed(LaunchError::AllFailed(failed))) => {
                count("all-failed");
                self.none_available(claim, &failed).await
            }
            Err(WriteError::Failed(error @ (LaunchError::StockOut(_) | LaunchError::Quota(_)))) => {
                count("all-failed");
                let failed = FailedOffering { offering: claim.offerings[0].offering.clone(), error };
                self.none_available(claim, &[failed]).await
            }
            Err(WriteError::Failed(LaunchError::Provider(error))) => {
                count(error_label(&error));
                let labels = [provider.name(), "launch", error_label(&error)];
                self.context.metrics.provider_errors.with_label_values(&labels).inc();
                match error {
                    ProviderError::Throttled(why) => {
                        self.launch_again(claim, THROTTLED_WAIT, format!("throttled: {why}")).await
                    }
                    ProviderError::Transient(why) => self.launch_again(claim, Duration::ZERO, why).await,
                    ProviderError::Invalid(why) => self.launch_invalid(claim, &why).await,
                }
            }
        }
    }

    async fn record_launch(&self, claim: &Claim, launched: &LaunchedInstance) -> Progress {
        let instance = &launched.instance;
        let price = self.price(claim, &instance.offering);
        let cost =
            price.as_ref().map_or("price unknown".to_owned(), |price| format!("{:#}", price.usd_per_hour));
        let message = format!("{} at {cost}{}", instance.offering, instead_of(&launched.failed));
        let update = ConditionUpdate {
            kind: ConditionType::Launched,
            status: ConditionStatus::True,
            reason: Reason::Launched,
            message: message.clone(),
        };
        let now = self.context.clock.now();
        let reference = offering_ref(&instance.offering);
        let changed = self.change_claim(&claim.name, Some(&claim.uid), |object| {
            let generation = object.metadata.generation;
            let promise = object.spec.offerings.iter().find(|one| is(one, &reference));
            let allocatable = promise.map(|one| one.allocatable.clone()).unwrap_or_default();
            let status = object.status.get_or_insert_default();
            let before = status.clone();
            status.provider_id = Some(instance.provider_id.clone());
            status.offering = Some(reference.clone());
            status.price.clone_from(&price);
            status.allocatable = allocatable;
            status.conditions =
                merge_conditions(&status.conditions, std::slice::from_ref(&update), now, generation);
            *status != before
        });
        match changed.await {
            Changed::Written(_) => {
                info!(claim = %claim.name, pool = %claim.pool, provider_id = %instance.provider_id,
                    offering = %instance.offering, usd_per_hour = %cost, "launched");
                self.record_event(
                    &Subject::Claim(claim.name.clone()),
                    EventType::Normal,
                    Reason::Launched,
                    &message,
                );
                Progress::Done
            }
            Changed::Unchanged(_) => Progress::NothingToDo,
            Changed::NotWritten(outcome) => outcome,
        }
    }

    /// Counts the offerings that were not available.
    fn count_unavailable(&self, claim: &Claim, failed: &[FailedOffering]) -> Vec<core::Unavailable> {
        let count = |one: &FailedOffering| {
            let reason = if matches!(one.error, LaunchError::Quota(_)) { "quota" } else { "stock-out" };
            let labels = [one.offering.instance_type.as_str(), reason];
            self.context.metrics.offerings_failed.with_label_values(&labels).inc();
            info!(claim = %claim.name, offering = %one.offering, error = %one.error, "an offering was not available");
            core::Unavailable { offering: one.offering.clone(), why: one.error.to_string() }
        };
        failed.iter().map(count).collect()
    }

    /// Handles a claim without available offerings.
    async fn none_available(&self, claim: &Claim, failed: &[FailedOffering]) -> Progress {
        let unavailable = self.count_unavailable(claim, failed);
        warn!(claim = %claim.name, pool = %claim.pool, "not launched: none of its offerings is available now");
        self.learn(&core::Outcome::NoneAvailable { claim, unavailable: &unavailable }).await
    }

    /// Handles a launch that cannot succeed until a person changes something.
    async fn launch_invalid(&self, claim: &Claim, why: &str) -> Progress {
        match self.learn(&core::Outcome::LaunchInvalid { claim, why }).await {
            Progress::NotLeading => Progress::NotLeading,
            _ => Progress::Retry(INVALID_WAIT, why.to_owned()),
        }
    }

    /// Handles a launch that failed for a cause that may pass. It is repeated after at least this time.
    async fn launch_again(&self, claim: &Claim, at_least: Duration, why: String) -> Progress {
        let clock = &self.context.clock;
        let lane = lane_of_claim(&claim.name.0);
        let wait = self.lanes.next_wait(&lane, "launch", at_least, clock.monotonic());
        let next = clock.now().checked_add(wait).unwrap_or(Timestamp::MAX);
        match self.learn(&core::Outcome::LaunchRetried { claim, why: &why, next }).await {
            Progress::NotLeading => Progress::NotLeading,
            _ => Progress::Retry(at_least, why),
        }
    }

    /// Returns the price of the offering and its source; `None` if unknown.
    fn price(&self, claim: &Claim, offering: &OfferingId) -> Option<ClaimPrice> {
        let catalogue = self.context.world.catalogue(&claim.node_class);
        let found = catalogue.as_ref().and_then(|catalogue| catalogue.offering(offering));
        if let Some(price) = found.and_then(|found| claim_price(&found.price)) {
            return Some(price);
        }
        let planned = claim.offerings.iter().find(|ranked| ranked.offering == *offering)?.price?;
        Some(ClaimPrice { usd_per_hour: planned.to_string(), source: "the plan".to_owned(), as_of: None })
    }
}

fn request(claim: &Claim, object: &NodeClaim) -> LaunchRequest {
    let mut labels = claim.labels.clone();
    labels.insert(keys::NODEPOOL_LABEL.to_owned(), claim.pool.0.clone());
    labels.insert(keys::NODECLAIM_LABEL.to_owned(), claim.name.0.clone());
    let offerings = claim.offerings.iter().map(|ranked| RankedOffering {
        offering: ranked.offering.clone(),
        price: ranked.price,
        allocatable: ranked.allocatable.clone(),
    });
    LaunchRequest {
        key: claim.uid.0.clone(),
        claim: claim.name.0.clone(),
        node_class: claim.node_class.clone(),
        offerings: offerings.collect(),
        together: object.spec.together.map_or(0, |together| usize::try_from(together).unwrap_or(0)),
        labels,
        annotations: object.spec.annotations.clone(),
        taints: taints::at_launch(claim),
        batch: launch_batches::read(object),
    }
}

/// Returns the unavailable offerings that were tried first, in words.
fn instead_of(failed: &[FailedOffering]) -> String {
    if failed.is_empty() {
        return String::new();
    }
    let list: Vec<String> = failed.iter().map(|one| format!("{} ({})", one.offering, one.error)).collect();
    format!("; not available before it: {}", list.join(", "))
}

fn is(one: &ClaimOffering, offering: &OfferingRef) -> bool {
    one.instance_type == offering.instance_type
        && one.zone == offering.zone
        && one.capacity_type == offering.capacity_type
}
