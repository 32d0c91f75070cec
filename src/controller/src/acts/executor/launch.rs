//! Launching: from a durable intent to an instance, exactly one.
//!
//! Where a crash can happen, and why it does no harm:
//! - before the provider's call: nothing was bought; the claim still asks to be launched.
//! - during it, or before its answer is written down: the claim is launched again with the same key, its UID, and the
//!   provider answers with the instance that is there.
//! - after a failure was noticed and before the claim was deleted: the launch is tried again and fails (or works) again.
//!
//! The claim is read from the API server itself immediately before the call: a view of the cluster that is late may not
//! buy for a claim that was deleted, nor use a key again whose instance was given back.

use std::time::Duration;

use kube::Api;
use poolwright_api::{ClaimOffering, ClaimPrice, NodeClaim, OfferingRef};
use poolwright_catalog::{OfferingId, RankedOffering};
use poolwright_core::{Claim, ConditionUpdate, NoticeKind, Subject};
use poolwright_intake::{claim_price, merge_conditions, offering_ref};
use poolwright_provider_contract::{
    FailedOffering, LaunchError, LaunchRequest, LaunchedInstance, ProviderError,
};
use poolwright_terms::{CapacityType, ConditionStatus, ConditionType, Reason, keys};
use tracing::{info, warn};

use super::outcome::{Outcome, refused};
use super::status::Changed;
use super::{Executor, taints};
use crate::acts::batches;
use crate::leader::writer::WriteError;
use crate::sees::providers::error_label;
use crate::sees::reader::answer;

/// How long a provider may take. Longer than any cloud needs to say no.
const LAUNCH_LIMIT: Duration = Duration::from_mins(2);
/// A launch that can never work is tried again this rarely: only a person can change that.
const INVALID_WAIT: Duration = Duration::from_mins(1);
/// How long a cloud that asked us to slow down is left alone, at least.
const THROTTLED_WAIT: Duration = Duration::from_secs(5);

impl Executor {
    pub(super) async fn launch(&self, claim: &Claim) -> Outcome {
        let api: Api<NodeClaim> = Api::all(self.client.clone());
        let object = match answer(api.get_opt(&claim.name.0)).await {
            Ok(Some(object)) => object,
            Ok(None) => {
                self.world.claim_gone(claim);
                return Outcome::NothingToDo;
            }
            Err(error) => return refused("reading the NodeClaim", &error),
        };
        let wanted = object.metadata.uid.as_deref() == Some(claim.uid.0.as_str())
            && object.metadata.deletion_timestamp.is_none()
            && object.status.as_ref().is_none_or(|status| status.provider_id.is_none());
        if !wanted {
            self.world.claim_seen(&object);
            return Outcome::NothingToDo;
        }
        let provider = match self.providers.for_class(&claim.node_class) {
            Ok(provider) => provider,
            Err(why) => return self.launch_invalid(claim, &why).await,
        };
        let request = request(claim, &object);
        let launched = self.writer.write("launch", LAUNCH_LIMIT, || provider.launch(&request)).await;
        let count = |result: &str| self.metrics.launches.with_label_values(&[provider.name(), result]).inc();
        match launched {
            Ok(launched) => {
                count("launched");
                self.note_failures(claim, &launched.failed);
                self.world.offering_succeeded(&claim.node_class, &launched.instance.offering);
                if launched.instance.offering.capacity_type == CapacityType::Reserved {
                    // There is one less of it than was last read.
                    self.world.classes_changed();
                }
                self.world.launch_problem(&claim.node_class, None);
                self.record_launch(claim, &launched).await
            }
            Err(WriteError::NotLeading) => Outcome::NotLeading,
            Err(WriteError::TimedOut(limit)) => {
                count("transient");
                Outcome::retry(format!("the provider did not answer within {limit:?}"))
            }
            Err(WriteError::Failed(LaunchError::AllFailed(failed))) => {
                count("all-failed");
                self.none_to_be_had(claim, &failed).await
            }
            Err(WriteError::Failed(error @ (LaunchError::StockOut(_) | LaunchError::Quota(_)))) => {
                count("all-failed");
                let failed = FailedOffering { offering: claim.offerings[0].offering.clone(), error };
                self.none_to_be_had(claim, &[failed]).await
            }
            Err(WriteError::Failed(LaunchError::Provider(error))) => {
                count(error_label(&error));
                let labels = [provider.name(), "launch", error_label(&error)];
                self.metrics.provider_errors.with_label_values(&labels).inc();
                match error {
                    ProviderError::Throttled(why) => {
                        Outcome::Retry(THROTTLED_WAIT, format!("throttled: {why}"))
                    }
                    ProviderError::Transient(why) => Outcome::retry(why),
                    ProviderError::Invalid(why) => self.launch_invalid(claim, &why).await,
                }
            }
        }
    }

    async fn record_launch(&self, claim: &Claim, launched: &LaunchedInstance) -> Outcome {
        let instance = &launched.instance;
        let price = self.price(claim, &instance.offering);
        let cost =
            price.as_ref().map_or("price unknown".to_owned(), |price| format!("{} $/h", price.usd_per_hour));
        let message = format!("{} at {cost}{}", instance.offering, instead_of(&launched.failed));
        let update = ConditionUpdate {
            kind: ConditionType::Launched,
            status: ConditionStatus::True,
            reason: Reason::Launched,
            message: message.clone(),
        };
        let now = self.clock.now();
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
                self.say(&Subject::Claim(claim.name.clone()), NoticeKind::Normal, Reason::Launched, &message);
                Outcome::Done
            }
            Changed::Unchanged(_) => Outcome::NothingToDo,
            Changed::Not(outcome) => outcome,
        }
    }

    /// Remembers what could not be had on the way.
    fn note_failures(&self, claim: &Claim, failed: &[FailedOffering]) {
        for one in failed {
            let reason = if matches!(one.error, LaunchError::Quota(_)) { "quota" } else { "stock-out" };
            let until = self.world.offering_failed(&claim.node_class, &one.offering, self.clock.now());
            let labels = [one.offering.instance_type.as_str(), reason];
            self.metrics.offerings_failed.with_label_values(&labels).inc();
            info!(claim = %claim.name, offering = %one.offering, error = %one.error, %until, "offering held back");
        }
    }

    /// No offering of the claim can be had: it goes, and its pods are planned anew at once, without what failed.
    async fn none_to_be_had(&self, claim: &Claim, failed: &[FailedOffering]) -> Outcome {
        self.note_failures(claim, failed);
        let list: Vec<String> =
            failed.iter().map(|one| format!("{} ({})", one.offering, one.error)).collect();
        let message = format!("none of its offerings can be had now: {}", list.join(", "));
        warn!(claim = %claim.name, pool = %claim.pool, %message, "not launched; planning anew");
        self.say(&Subject::Claim(claim.name.clone()), NoticeKind::Warning, Reason::StockOut, &message);
        self.say(&Subject::Pool(claim.pool.clone()), NoticeKind::Warning, Reason::StockOut, &message);
        let outcome = self.not_launched(claim, Reason::StockOut, &message).await;
        if matches!(outcome, Outcome::NotLeading | Outcome::Retry(..)) {
            return outcome;
        }
        let outcome = self.delete_claim(&claim.name, &claim.uid).await;
        self.world.urgent();
        outcome
    }

    /// A launch that can never work until a person changes something.
    async fn launch_invalid(&self, claim: &Claim, why: &str) -> Outcome {
        self.world.launch_problem(&claim.node_class, Some(why.to_owned()));
        self.say(&Subject::Claim(claim.name.clone()), NoticeKind::Warning, Reason::LaunchInvalid, why);
        match self.not_launched(claim, Reason::LaunchInvalid, why).await {
            Outcome::NotLeading => Outcome::NotLeading,
            _ => Outcome::Retry(INVALID_WAIT, why.to_owned()),
        }
    }

    async fn not_launched(&self, claim: &Claim, reason: Reason, message: &str) -> Outcome {
        let update = ConditionUpdate {
            kind: ConditionType::Launched,
            status: ConditionStatus::False,
            reason,
            message: message.to_owned(),
        };
        self.claim_conditions(&claim.name, Some(&claim.uid), &[update]).await
    }

    /// What the offering costs, and who says so; `None` when it is not known.
    fn price(&self, claim: &Claim, offering: &OfferingId) -> Option<ClaimPrice> {
        let catalogue = self.world.catalogue(&claim.node_class);
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
        labels,
        annotations: object.spec.annotations.clone(),
        taints: taints::at_launch(claim),
        batch: batches::read(object),
    }
}

/// Which offerings could not be had before the one that was launched, if any.
fn instead_of(failed: &[FailedOffering]) -> String {
    if failed.is_empty() {
        return String::new();
    }
    let list: Vec<String> = failed.iter().map(|one| format!("{} ({})", one.offering, one.error)).collect();
    format!("; could not be had before it: {}", list.join(", "))
}

fn is(one: &ClaimOffering, offering: &OfferingRef) -> bool {
    one.instance_type == offering.instance_type
        && one.zone == offering.zone
        && one.capacity_type == offering.capacity_type
}
