//! PodDisruptionBudgets, which limit how many pods may be evicted at a time.

use serde::{Deserialize, Serialize};

use crate::model::names::Uid;
use crate::model::pod_key::ObjectKey;
use crate::model::rules::Requirement;

/// A PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodDisruptionBudget {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Uid,
    /// The pods of its namespace that it selects.
    pub selector: BudgetSelector,
    /// The limit; `None` if the budget has none.
    pub limit: Option<BudgetLimit>,
    /// `status.expectedPods`; zero if not set.
    pub expected: u64,
    /// `status.disruptionsAllowed`: the number of pods that may be evicted now. `None` if not set.
    pub allowed: Option<u64>,
    /// The disruption controller's message if it cannot compute the budget. Then no pod may be evicted.
    pub failure: Option<String>,
    /// What it says about pods that have started and are not ready.
    #[serde(default)]
    pub unhealthy: UnhealthyPods,
}

/// What a budget says about pods that have started and are not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnhealthyPods {
    /// Whether `unhealthyPodEvictionPolicy` is `AlwaysAllow`.
    pub always_allowed: bool,
    /// `status.currentHealthy`: the number of pods that are ready.
    pub healthy: u64,
    /// `status.desiredHealthy`: the number of pods that must be ready; zero if not set.
    pub desired: u64,
}

impl UnhealthyPods {
    /// Returns whether such pods may be evicted without a disruption that the budget allows.
    pub const fn may_be_evicted(&self) -> bool {
        self.always_allowed || (self.healthy >= self.desired && self.desired > 0)
    }
}

/// The pods that a budget selects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BudgetSelector {
    /// No pods: the budget has no selector.
    Nothing,
    /// Pods that meet all these requirements.
    Pods(Vec<Requirement>),
    /// An invalid selector, with the name of the invalid field. The API server treats it as selecting no pods.
    Invalid(String),
}

/// The limit of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BudgetLimit {
    /// `minAvailable`: the number of pods that must stay healthy.
    MinAvailable(CountOrPercent),
    /// `maxUnavailable`: the number of pods that may be unavailable.
    MaxUnavailable(CountOrPercent),
}

/// A number of pods, or a percentage of the expected pods. Percentages are rounded up, as the disruption controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CountOrPercent {
    /// A number.
    Count(u64),
    /// A percentage.
    Percent(u64),
}
