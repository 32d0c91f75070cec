//! Records the interruption of an instance in the status of its claim. After that, it survives a restart, and the notice can be
//! acknowledged.

use std::time::Duration;

use poolwright_core::lifecycle::interruption_conditions;
use poolwright_core::{Claim, Interruption};
use poolwright_intake::{api_interruption, interruption, merge_conditions};
use tokio::time::sleep;
use tracing::{info, warn};

use super::Executor;
use super::progress::Progress;
use super::status::Changed;
use crate::executor::unrecorded::Heard;

/// How often to try a record before the notice is left to be delivered again.
const ATTEMPTS: u32 = 4;
/// The pause after the first failure; it doubles.
const PAUSE: Duration = Duration::from_millis(250);

/// The result of recording an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is recorded now.
    Yes,
    /// It was recorded before.
    Before,
    /// The claim is gone.
    Gone,
    /// It is not recorded.
    No,
}

impl Executor {
    /// Records an interruption of this claim's instance, merged with earlier ones. Loops wait for the first attempt.
    pub async fn record_interruption(
        &self,
        claim: &Claim,
        said: &Interruption,
        heard: Heard<'_>,
    ) -> Recorded {
        let mut heard = Some(heard);
        for attempt in 0..ATTEMPTS {
            let outcome = self.try_to_record(claim, said).await;
            drop(heard.take());
            match outcome {
                Ok(recorded) => return recorded,
                Err(Progress::NotLeading) => return Recorded::No,
                Err(outcome) => {
                    warn!(claim = %claim.name, ?outcome, "an interruption was not recorded; trying again");
                }
            }
            sleep(PAUSE * 2_u32.pow(attempt)).await;
        }
        Recorded::No
    }

    async fn try_to_record(&self, claim: &Claim, said: &Interruption) -> Result<Recorded, Progress> {
        let now = self.context.clock.now();
        let changed = self.change_claim(&claim.name, Some(&claim.uid), |object| {
            let generation = object.metadata.generation;
            let status = object.status.get_or_insert_default();
            let before = status.clone();
            let known = status.interruption.as_ref().map(interruption);
            let merged = known.map_or_else(|| said.clone(), |known| known.merged(said));
            let updates = interruption_conditions(&merged, now);
            status.conditions = merge_conditions(&status.conditions, &updates, now, generation);
            status.interruption = Some(api_interruption(&merged));
            *status != before
        });
        match changed.await {
            Changed::Written(_) => {
                let deadline = said.deadline.map_or_else(|| "unknown".to_owned(), |at| at.to_string());
                info!(claim = %claim.name, kind = %said.kind, deadline, message = said.message, "interrupted");
                Ok(Recorded::Yes)
            }
            Changed::Unchanged(_) => Ok(Recorded::Before),
            Changed::Not(Progress::NothingToDo) => Ok(Recorded::Gone),
            Changed::Not(outcome) => Err(outcome),
        }
    }
}
