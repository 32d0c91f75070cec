//! Rules of pods that the model does not know.

use serde::Deserialize;
use serde::Serialize;

/// A scheduling rule that the planner does not model yet, named as its user wrote it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnmodelledRule {
    /// The field: `spec.topologySpreadConstraints`.
    pub field: String,
    /// What the rule is, in words: `topology spread`.
    pub rule: String,
}
