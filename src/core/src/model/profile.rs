//! What the configuration of a kube-scheduler adds to the rules of the pods that it places.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::pod_affinity::SpreadRule;
use crate::model::pod_key::ObjectKey;
use crate::model::preferences::Weighted;
use crate::model::rules::NodeTerm;

/// A profile of a scheduler, as far as it changes where pods may go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// How pods without constraints of their own must be spread (`defaultConstraints` with `DoNotSchedule`), without
    /// selectors: those come from what made the pod ([`Service`], [`crate::model::workload::Workload::selector`]).
    pub spreads: Vec<SpreadRule>,
    /// How such pods should be spread (`ScheduleAnyway`).
    pub preferred_spreads: Vec<SpreadRule>,
    /// What the node of every pod must be like besides (`addedAffinity`); `None` for nothing.
    pub enforced: Option<EnforcedAffinity>,
    /// What the node of every pod should be like, and the file in which that is written.
    pub preferred: Vec<(Weighted<NodeTerm>, String)>,
}

/// Profiles, by the name that pods choose them by (`spec.schedulerName`).
pub type Profiles = BTreeMap<String, Profile>;

impl Profile {
    /// Whether it spreads pods, so that it must be known what made them.
    pub fn spreads_pods(&self) -> bool {
        !self.spreads.is_empty() || !self.preferred_spreads.is_empty()
    }
}

/// Required node affinity that a scheduler demands of every pod. It is not a rule of the pod: a spread that honours the
/// pod's node affinity does not look at it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EnforcedAffinity {
    /// The file in which it is written.
    pub source: String,
    /// OR-ed terms.
    pub terms: Vec<NodeTerm>,
}

/// A Service, as far as the scheduler's default spread goes by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The labels of its pods; empty for a Service that chooses none.
    pub selector: BTreeMap<String, String>,
}
