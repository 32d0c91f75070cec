//! Profiles of kube-schedulers: rules that a scheduler's configuration adds to its pods.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::pod_affinity::TopologySpreadConstraint;
use crate::model::pod_key::ObjectKey;
use crate::model::preferences::Weighted;
use crate::model::rules::NodeSelectorTerm;

/// A profile of a scheduler: the part that affects where pods may go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Default constraints for pods without constraints of their own (`defaultConstraints` with `DoNotSchedule`), without
    /// selectors. Selectors come from the pod's Services and controllers ([`Service`],
    /// [`crate::model::workload::Workload::selector`]).
    pub spreads: Vec<TopologySpreadConstraint>,
    /// Default constraints with `ScheduleAnyway`.
    pub preferred_spreads: Vec<TopologySpreadConstraint>,
    /// Required node affinity added to every pod (`addedAffinity`); `None` for none.
    pub enforced: Option<EnforcedAffinity>,
    /// Preferred node affinity added to every pod, with the configuration file.
    pub preferred: Vec<(Weighted<NodeSelectorTerm>, String)>,
}

/// Profiles by scheduler name (`spec.schedulerName`).
pub type Profiles = BTreeMap<String, Profile>;

impl Profile {
    /// Returns whether it has default spread constraints. They need the Services and controllers of pods.
    pub fn spreads_pods(&self) -> bool {
        !self.spreads.is_empty() || !self.preferred_spreads.is_empty()
    }
}

/// Required node affinity that a scheduler adds to every pod. Topology spread constraints that honor the pod's node affinity
/// ignore it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EnforcedAffinity {
    /// The scheduler's configuration file.
    pub source: String,
    /// OR-ed terms.
    pub terms: Vec<NodeSelectorTerm>,
}

/// A Service: the part that default spread constraints use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its selector; empty if it selects no pods.
    pub selector: BTreeMap<String, String>,
}
