//! Pods and the DaemonSets that put one on every node.

use crate::model::names::Uid;
use crate::model::unmodelled::UnmodelledRule;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::ResourceList;
use serde::{Deserialize, Serialize};

use crate::model::names::ClaimName;
use crate::model::pod_affinity::{HostPort, PodTerm, SpreadRule};
use crate::model::pod_key::{ObjectKey, PodKey};
use crate::model::preferences::Preferences;
use crate::model::profile::EnforcedAffinity;
use crate::model::rules::{NodeTerm, Toleration};
use crate::model::volumes::PodVolume;

/// What a pod asks of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodSpec {
    /// Effective requests: containers, init containers, sidecars and overhead, and one `pods`.
    pub requests: ResourceList,
    /// `nodeSelector`: labels the node must have, by value.
    pub node_selector: BTreeMap<String, String>,
    /// Required node affinity: `None` when there is none, else OR-ed terms.
    pub node_affinity: Option<Vec<NodeTerm>>,
    /// Required node affinity that its scheduler adds to its own. Filled in when a plan is made.
    pub enforced: Option<Box<EnforcedAffinity>>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// A share of one GPU, in thousandths of it, beside the whole ones in `requests`; it counts as a whole one where GPUs
    /// are not shared.
    pub gpu_share: Option<u32>,
    /// Ports of the node that it takes.
    pub host_ports: BTreeSet<HostPort>,
    /// Required pod affinity, AND-ed.
    pub affinity: Vec<PodTerm>,
    /// Required pod anti-affinity, AND-ed.
    pub anti_affinity: Vec<PodTerm>,
    /// How its like are spread, AND-ed.
    pub spreads: Vec<SpreadRule>,
    /// What it would like besides; `None` when it has no preferences.
    pub preferences: Option<Box<Preferences>>,
    /// Where each of its volumes can be used, as OR-ed terms on nodes, AND-ed. Filled in when a plan is made, from
    /// [`Pod::volumes`] and what they are bound to then.
    pub volumes: Vec<Vec<NodeTerm>>,
    /// Rules of the pod that the planner does not model. A pod that has one is never planned.
    pub unmodelled: Vec<UnmodelledRule>,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Which pod it is.
    pub key: PodKey,
    /// UID; a pod made anew under the same name is another pod.
    pub uid: Uid,
    /// The UID of the controller that made it.
    pub owner: Option<Uid>,
    /// Labels, by which the rules of other pods choose it.
    pub labels: BTreeMap<String, String>,
    /// What it asks of a node.
    pub spec: PodSpec,
    /// Volumes that not every node can provide.
    pub volumes: Vec<PodVolume>,
    /// Priority, 0 when it has none.
    pub priority: i32,
    /// Which scheduler places it.
    pub scheduler: String,
    /// `spec.schedulingGroup`: the name of the PodGroup that it belongs to, in its namespace.
    pub group: Option<String>,
    /// What kind of pod it is.
    pub role: PodRole,
    /// The pod that it will be made in place of; `None` for every pod that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Box<PodKey>>,
    /// Where it stands.
    pub phase: PodPhase,
    /// Claims whose reserved nodes let it in, in the order in which it was given their tolerations
    /// ([`poolwright_terms::keys::RESERVED_TAINT`]). They are not in [`PodSpec::tolerations`]: they say nothing about what the pod asks for.
    pub reserved_for: Vec<ClaimName>,
    /// `status.nominatedNodeName`.
    pub nominated_node: Option<String>,
    /// Being deleted since.
    pub deleting_since: Option<Timestamp>,
    /// When it was created.
    pub created: Timestamp,
    /// How it ends.
    pub ending: Ending,
}

/// How a pod ends when its node goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// `spec.terminationGracePeriodSeconds`: from SIGTERM to SIGKILL.
    pub grace: SignedDuration,
    /// That it is not to be disturbed.
    pub protection: Option<Protection>,
}

impl Default for Ending {
    /// Half a minute, and nothing that protects it, as Kubernetes has it.
    fn default() -> Self {
        Self { grace: SignedDuration::from_secs(30), protection: None }
    }
}

/// That a pod is not to be disturbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// What says so: `poolwright.dev/do-not-disrupt=4h`.
    pub annotation: String,
    /// Until when; `None` for as long as it runs.
    pub until: Option<Timestamp>,
}

impl Pod {
    /// A pod that waits for the default scheduler and of which nothing is known but what it asks for. Its name is its UID.
    pub fn waiting(key: PodKey, spec: PodSpec) -> Self {
        Self {
            uid: Uid(key.name().into_owned()),
            key,
            owner: None,
            labels: BTreeMap::new(),
            spec,
            volumes: Vec::new(),
            priority: 0,
            scheduler: "default-scheduler".to_owned(),
            group: None,
            role: PodRole::Workload,
            replaces: None,
            phase: PodPhase::Waiting,
            reserved_for: Vec::new(),
            nominated_node: None,
            deleting_since: None,
            created: Timestamp::UNIX_EPOCH,
            ending: Ending::default(),
        }
    }

    /// The key of the PodGroup that it belongs to.
    pub fn group_key(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new(self.key.namespace(), self.group.as_ref()?))
    }
}

/// What kind of pod it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodRole {
    /// Work: it keeps its node alive.
    Workload,
    /// Owned by a DaemonSet: it follows its node.
    DaemonSet,
    /// A static pod's mirror: it belongs to its node.
    Mirror,
}

/// Where a pod stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not bound, and the scheduler has not said that it cannot place it.
    Waiting,
    /// Held by scheduling gates: it buys nothing.
    Gated,
    /// The scheduler found no node for it.
    Unschedulable {
        /// When the scheduler said so first.
        since: Timestamp,
        /// What it said.
        message: String,
    },
    /// On a node.
    Bound {
        /// The node's name.
        node: String,
    },
    /// Ended; it takes no room any more.
    Finished,
}

/// A DaemonSet, as far as new nodes feel it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonSet {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Labels of its pods.
    pub labels: BTreeMap<String, String>,
    /// What each of its pods asks of a node.
    pub spec: PodSpec,
}
