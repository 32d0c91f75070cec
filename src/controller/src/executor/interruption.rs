//! Records the interruption of an instance in the status of its claim. After that, it survives a restart, and the notice can be
//! acknowledged.

use std::time::Duration;

use poolwright_core::lifecycle::interruption_conditions;
use poolwright_core::{Claim, Interruption};
use poolwright_intake::{api_interruption, merge_conditions};
use tokio::time::sleep;
use tracing::{info, warn};

use super::Executor;
use super::progress::Progress;
use super::status::Changed;
use crate::executor::unrecorded::InterruptionGuard;

/// The number of attempts to record an interruption. After that, the cloud delivers the notice again.
const ATTEMPTS: u32 = 4;
/// The pause after the first failure; it doubles.
const PAUSE: Duration = Duration::from_millis(250);

/// The result of recording an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordResult {
    /// It is recorded now.
    Recorded,
    /// It was recorded before.
    AlreadyRecorded,
    /// The claim is gone.
    ClaimGone,
    /// It is not recorded.
    NotRecorded,
}

impl Executor {
    /// Records an interruption of this claim's instance, merged with earlier ones. Loops wait only for the first attempt.
    pub async fn record_interruption(
        &self,
        claim: &Claim,
        interruption: &Interruption,
        heard: InterruptionGuard<'_>,
    ) -> RecordResult {
        let mut heard = Some(heard);
        for attempt in 0..ATTEMPTS {
            let outcome = self.try_to_record(claim, interruption).await;
            drop(heard.take());
            match outcome {
                Ok(recorded) => return recorded,
                Err(Progress::NotLeading) => return RecordResult::NotRecorded,
                Err(outcome) => {
                    warn!(claim = %claim.name, ?outcome, "an interruption was not recorded; trying again");
                }
            }
            sleep(PAUSE * 2_u32.pow(attempt)).await;
        }
        RecordResult::NotRecorded
    }

    async fn try_to_record(
        &self,
        claim: &Claim,
        interruption: &Interruption,
    ) -> Result<RecordResult, Progress> {
        let now = self.context.clock.now();
        let changed = self.change_claim(&claim.name, Some(&claim.uid), |object| {
            let generation = object.metadata.generation;
            let status = object.status.get_or_insert_default();
            let before = status.clone();
            let known = status.interruption.as_ref().map(poolwright_intake::interruption);
            let merged = known.map_or_else(|| interruption.clone(), |known| known.merged(interruption));
            let updates = interruption_conditions(&merged, now);
            status.conditions = merge_conditions(&status.conditions, &updates, now, generation);
            status.interruption = Some(api_interruption(&merged));
            *status != before
        });
        match changed.await {
            Changed::Written(_) => {
                let deadline =
                    interruption.deadline.map_or_else(|| "unknown".to_owned(), |at| at.to_string());
                info!(claim = %claim.name, kind = %interruption.kind, deadline, message = interruption.message, "interrupted");
                Ok(RecordResult::Recorded)
            }
            Changed::Unchanged(_) => Ok(RecordResult::AlreadyRecorded),
            Changed::NotWritten(Progress::NothingToDo) => Ok(RecordResult::ClaimGone),
            Changed::NotWritten(outcome) => Err(outcome),
        }
    }
}
