//! Creates claims, and writes conditions of claims and pools.
//!
//! A claim's name comes from the plan, and the same snapshot and time give the same name. So if the response to a creation is
//! lost, the creation is repeated under the same name and finds the object.

use std::time::Duration;

use futures::StreamExt;
use kube::api::PostParams;
use poolwright_api::{NodeClaim, NodePool};
use poolwright_core::plan::PlannedClaim;
use poolwright_core::{ClaimName, ConditionUpdate, Subject, Uid};
use poolwright_intake::{claim_object, merge_conditions};
use poolwright_provider_contract::LaunchBatch;
use poolwright_terms::keys::{FIELD_MANAGER, LAUNCH_BATCH_ANNOTATION};
use tokio::time::sleep;
use tracing::{info, warn};

use super::progress::Progress;
use super::status::{Changed, WRITE_LIMIT, change_status};
use super::{Executor, stage_durations};
use crate::executor::launch_batches;
use crate::leader::writer::WriteError;

/// The number of attempts to create a claim while the outcome is unknown.
const ATTEMPTS: u32 = 5;

/// The result of creating a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateResult {
    /// It exists.
    Created,
    /// It was refused.
    Refused,
    /// The outcome is unknown because there was no response.
    Unknown,
    /// We do not lead.
    NotLeading,
}

impl Executor {
    /// Creates the claims of a plan, `at_a_time` concurrently. Returns the worst result.
    pub async fn create_claims(&self, claims: &[PlannedClaim], at_a_time: usize) -> CreateResult {
        let batches = launch_batches::of(claims);
        let creations = futures::stream::iter(claims.to_vec()).map(|claim| {
            let batch = batches.get(&claim.name).cloned();
            async move { self.create_claim(&claim, batch.as_ref()).await }
        });
        let outcomes: Vec<CreateResult> = creations.buffer_unordered(at_a_time).collect().await;
        let has = |outcome| outcomes.contains(&outcome);
        if has(CreateResult::Unknown) {
            self.context.world.claims_doubtful(true);
        }
        [CreateResult::NotLeading, CreateResult::Unknown, CreateResult::Refused]
            .into_iter()
            .find(|one| has(*one))
            .unwrap_or(CreateResult::Created)
    }

    /// Creates a claim, and adds it to the world at once. `batch` is its launch batch.
    pub async fn create_claim(&self, planned: &PlannedClaim, batch: Option<&LaunchBatch>) -> CreateResult {
        let api = self.context.reader.all::<NodeClaim>();
        let mut object = claim_object(planned);
        if let Some(batch) = batch {
            let annotations = object.metadata.annotations.get_or_insert_default();
            annotations.insert(LAUNCH_BATCH_ANNOTATION.to_owned(), launch_batches::written(batch));
        }
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
        let mut unknown = false;
        for attempt in 0..ATTEMPTS {
            let written = self
                .context
                .writer
                .write("nodeclaim", WRITE_LIMIT, async |permit| {
                    api.writable(permit).create(&params, &object).await
                })
                .await;
            match written {
                Ok(object) => return self.created(planned, &object),
                Err(WriteError::NotLeading) => return CreateResult::NotLeading,
                Err(WriteError::Failed(kube::Error::Api(status))) if status.is_already_exists() => {
                    match api.get(&planned.name.0).await {
                        Ok(Some(object)) => return self.created(planned, &object),
                        Ok(None) => return CreateResult::Refused,
                        Err(error) => {
                            unknown = true;
                            warn!(claim = %planned.name, %error, "the NodeClaim exists but cannot be read");
                        }
                    }
                }
                // The API server refused: nothing was created.
                Err(WriteError::Failed(kube::Error::Api(status))) if (400..500).contains(&status.code) => {
                    warn!(claim = %planned.name, pool = %planned.pool, why = %status.message, "the claim was refused");
                    return if unknown { CreateResult::Unknown } else { CreateResult::Refused };
                }
                Err(error) => {
                    unknown = true;
                    warn!(claim = %planned.name, %error, "it is unknown whether the NodeClaim was created; reading it again");
                }
            }
            sleep(Duration::from_millis(200 << attempt)).await;
        }
        CreateResult::Unknown
    }

    fn created(&self, planned: &PlannedClaim, object: &NodeClaim) -> CreateResult {
        if let Err(why) = self.context.world.claim_created(object) {
            warn!(claim = %planned.name, why, "a NodeClaim that Poolwright wrote cannot be read");
        }
        let price = planned.price().map_or_else(|| "unknown".to_owned(), |price| price.to_string());
        info!(claim = %planned.name, pool = %planned.pool, offering = %planned.offering(), usd_per_hour = %price,
            pods = planned.planned_pods.len(), reason = %planned.reason, "claim created");
        CreateResult::Created
    }

    pub(super) async fn set_conditions(&self, subject: &Subject, updates: &[ConditionUpdate]) -> Progress {
        match subject {
            Subject::Claim(name) => {
                let uid = self.context.world.claim(name).map(|claim| claim.uid.clone());
                self.claim_conditions(name, uid.as_ref(), updates).await
            }
            Subject::Pool(name) => {
                let api = self.context.reader.all::<NodePool>();
                let now = self.context.clock.now();
                let changed = change_status(&api, &self.context.writer, &name.0, None, |object| {
                    let generation = object.metadata.generation;
                    let status = object.status.get_or_insert_default();
                    let merged = merge_conditions(&status.conditions, updates, now, generation);
                    let changed = merged != status.conditions || status.observed_generation != generation;
                    status.conditions = merged;
                    status.observed_generation = generation;
                    changed
                });
                match changed.await {
                    Changed::Written(_) => Progress::Done,
                    Changed::Unchanged(_) => Progress::NothingToDo,
                    Changed::NotWritten(outcome) => outcome,
                }
            }
            // Conditions of pods and nodes are not ours to write.
            Subject::Pod(_) | Subject::Node(_) | Subject::PodDisruptionBudget(_) => Progress::NothingToDo,
        }
    }

    /// Records on the claim with this UID that its node is disrupted. Returns whether it is recorded now.
    pub async fn record_leaving(&self, name: &ClaimName, uid: &Uid, update: &ConditionUpdate) -> bool {
        let _ = self.claim_conditions(name, Some(uid), std::slice::from_ref(update)).await;
        let claim = self.context.world.claim(name).filter(|claim| claim.uid == *uid);
        claim.is_some_and(|claim| claim.leaving().is_some())
    }

    pub(super) async fn claim_conditions(
        &self,
        name: &ClaimName,
        uid: Option<&Uid>,
        updates: &[ConditionUpdate],
    ) -> Progress {
        let now = self.context.clock.now();
        let mut reached = Vec::new();
        let changed = self.change_claim(name, uid, |object| {
            reached = stage_durations::reached(object, updates, now);
            let generation = object.metadata.generation;
            let status = object.status.get_or_insert_default();
            let merged = merge_conditions(&status.conditions, updates, now, generation);
            let changed = merged != status.conditions;
            status.conditions = merged;
            changed
        });
        let changed = changed.await;
        match changed {
            Changed::Written(_) => {
                for (stage, took) in reached {
                    self.context
                        .metrics
                        .stage_duration
                        .with_label_values(&[stage])
                        .observe(took.as_secs_f64());
                }
                Progress::Done
            }
            Changed::Unchanged(_) => Progress::NothingToDo,
            Changed::NotWritten(outcome) => outcome,
        }
    }

    /// Holds back the offering of a claim whose node never became usable.
    pub(super) fn hold_back(&self, name: &ClaimName, message: &str) -> Progress {
        let Some(claim) = self.context.world.claim(name) else { return Progress::NothingToDo };
        let offering = &claim.current_offering().offering;
        let until = self.context.world.hold_back(&claim);
        let labels = [offering.instance_type.as_str(), "after-launch"];
        self.context.metrics.offerings_failed.with_label_values(&labels).inc();
        warn!(claim = %name, %offering, %until, message, "offering held back");
        Progress::Done
    }
}
