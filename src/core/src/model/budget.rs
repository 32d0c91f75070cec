//! PodDisruptionBudgets: how many pods of a set may be evicted at a time.

use serde::{Deserialize, Serialize};

use crate::model::names::Uid;
use crate::model::pod_key::ObjectKey;
use crate::model::rules::Requirement;

/// A PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Uid,
    /// Which pods of its namespace it is about, AND-ed: an empty list is every pod.
    pub selector: BudgetSelector,
    /// What it allows; `None` where it says nothing.
    pub limit: Option<BudgetLimit>,
    /// How many pods the disruption controller expects of the workloads behind it; zero where it has not said.
    pub expected: u64,
    /// How many pods may be evicted now, as the disruption controller says; `None` where it has not said.
    pub allowed: Option<u64>,
    /// What the disruption controller says when it cannot work the budget out: then nothing may be evicted.
    pub failure: Option<String>,
}

/// Which pods a budget is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BudgetSelector {
    /// It has no selector, and is about no pod.
    Nobody,
    /// Pods that meet all of these.
    Pods(Vec<Requirement>),
    /// It cannot be read, by the field that is wrong; the API server takes it for one about no pod.
    Unreadable(String),
}

/// What a budget allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BudgetLimit {
    /// `minAvailable`: so many must be healthy.
    MinAvailable(Share),
    /// `maxUnavailable`: so many may be gone.
    MaxUnavailable(Share),
}

/// A number of pods, or a percentage of those expected (rounded up, as the disruption controller does).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Share {
    /// So many.
    Count(u64),
    /// So many of a hundred.
    Percent(u64),
}
