//! Scheduling rules that the planner does not model.

use serde::Deserialize;
use serde::Serialize;

/// A scheduling rule that the planner does not model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnmodelledRule {
    /// The field, such as `spec.topologySpreadConstraints`.
    pub field: String,
    /// The name of the rule, such as `topology spread`.
    pub rule: String,
}
