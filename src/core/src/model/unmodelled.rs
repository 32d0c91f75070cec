//! Scheduling rules that the planner does not model.

use serde::Deserialize;
use serde::Serialize;

/// A scheduling rule that the planner does not model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnmodelledRule {
    /// The field: `spec.topologySpreadConstraints`.
    pub field: String,
    /// The rule, in words: `topology spread`.
    pub rule: String,
}
