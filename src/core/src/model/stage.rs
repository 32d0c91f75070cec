//! Derives the stage of a claim from its conditions.

use jiff::Timestamp;
use poolwright_terms::{ConditionType, Stage};

use crate::model::claim::Claim;

impl Claim {
    /// Returns the stage of the claim, derived from its conditions.
    pub fn stage(&self) -> Stage {
        if self.deleting_since.is_some() {
            let terminates = self.since(ConditionType::InstanceTerminating).is_some();
            return if terminates { Stage::Terminating } else { Stage::Draining };
        }
        if self.since(ConditionType::Disrupting).is_some() { Stage::Disrupting } else { self.start_stage() }
    }

    /// Returns the time since which its open node retires: admits only planned pods, because others would run cheaper elsewhere.
    pub fn retires_since(&self) -> Option<Timestamp> {
        self.since(ConditionType::Retiring).filter(|_| self.stage() == Stage::Initialized)
    }

    /// Returns the stage that its node has reached on the way to open, whether or not it is disrupted: at most
    /// [`Stage::Initialized`].
    pub fn start_stage(&self) -> Stage {
        let is = |kind| self.since(kind).is_some();
        if is(ConditionType::Initialized) {
            Stage::Initialized
        } else if is(ConditionType::Registered) {
            Stage::Registered
        } else if self.launched.is_some() || is(ConditionType::Launched) {
            Stage::Launched
        } else {
            Stage::Pending
        }
    }
}
