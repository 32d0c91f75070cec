//! Pods and DaemonSets.

use crate::model::duration::PodDuration;
use crate::model::names::Uid;
use crate::model::unmodelled::UnmodelledRule;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::ResourceList;
use serde::{Deserialize, Serialize};

use crate::model::gang_mark::GangMark;
use crate::model::names::ClaimName;
use crate::model::pod_affinity::{HostPort, PodAffinityTerm, TopologySpreadConstraint};
use crate::model::pod_key::{ObjectKey, PodKey};
use crate::model::preferences::Preferences;
use crate::model::profile::EnforcedAffinity;
use crate::model::quota::PodScopes;
use crate::model::request::RequestOrigin;
use crate::model::rules::{NodeSelectorTerm, Toleration};
use crate::model::shared::Shared;
use crate::model::volumes::PodVolume;

/// The requirements of a pod on its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodSpec {
    /// Effective requests: containers, init containers, sidecars and overhead, and one `pods`.
    pub requests: ResourceList,
    /// `nodeSelector`: the labels that the node must have, with their values.
    pub node_selector: BTreeMap<String, String>,
    /// Required node affinity, as OR-ed terms; `None` if there is none.
    pub node_affinity: Option<Vec<NodeSelectorTerm>>,
    /// Required node affinity that the scheduler's profile adds. Filled in by the planner.
    pub enforced: Option<Box<EnforcedAffinity>>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// A share of one GPU in thousandths, in addition to whole GPUs in `requests`. Counts as a whole GPU on nodes that do not
    /// share GPUs.
    pub gpu_share: Option<u32>,
    /// Host ports.
    pub host_ports: BTreeSet<HostPort>,
    /// Required pod affinity, AND-ed.
    pub affinity: Vec<PodAffinityTerm>,
    /// Required pod anti-affinity, AND-ed.
    pub anti_affinity: Vec<PodAffinityTerm>,
    /// Required topology spread constraints, AND-ed.
    pub spreads: Vec<TopologySpreadConstraint>,
    /// Preferences; `None` if it has none.
    pub preferences: Option<Box<Preferences>>,
    /// The places where each of its volumes can be used, as AND-ed lists of OR-ed node terms. Filled in by the planner from
    /// [`Pod::volumes`] and their bindings.
    pub volumes: Vec<Vec<NodeSelectorTerm>>,
    /// Rules that the planner does not model. A pod with such a rule is never planned.
    pub unmodelled: Vec<UnmodelledRule>,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Its key.
    pub key: PodKey,
    /// Its UID. A recreated pod of the same name is another pod.
    pub uid: Uid,
    /// The UID of its controller.
    pub owner: Option<Uid>,
    /// Labels, which selectors of other pods match.
    pub labels: Shared<BTreeMap<String, String>>,
    /// Its requirements on its node.
    pub spec: Shared<PodSpec>,
    /// What makes up the requests in `spec`, for messages; only of resources that its containers do not explain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request_origins: Vec<RequestOrigin>,
    /// Volumes that not every node can provide.
    pub volumes: Vec<PodVolume>,
    /// Priority; 0 if it has none.
    pub priority: i32,
    /// The name of its scheduler.
    pub scheduler: String,
    /// `spec.schedulingGroup`: the name of the PodGroup that it belongs to, in its namespace. Of another scheduler's PodGroup, the name
    /// in the model ([`crate::model::GangScheduler`]). Of a gang without a PodGroup, what it stands for: `PyTorchJob ml/train`.
    pub group: Option<String>,
    /// What is written on it about its gang, if nothing else says how many pods of `group` start together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<Box<GangMark>>,
    /// Its role.
    pub role: PodRole,
    /// The name of the DaemonSet that is its controller; `None` if it has none, or if the pod does not say which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemonset: Option<String>,
    /// The pod that it will replace; `None` for every pod that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Box<PodKey>>,
    /// Its phase.
    pub phase: PodPhase,
    /// Whether it works, as PodDisruptionBudgets ask.
    #[serde(default)]
    pub health: PodHealth,
    /// Claims whose reserved nodes it tolerates, in the order in which the tolerations were added
    /// ([`poolwright_terms::keys::RESERVED_TAINT`]). These tolerations are not in [`PodSpec::tolerations`], because the user did
    /// not write them.
    pub reserved_for: Vec<ClaimName>,
    /// `status.nominatedNodeName`.
    pub nominated_node: Option<String>,
    /// The deletion timestamp; `None` if it is not being deleted.
    pub deleting_since: Option<Timestamp>,
    /// The creation time.
    pub created: Timestamp,
    /// The settings for its termination.
    pub ending: Ending,
    /// What is known about its duration.
    pub duration: PodDuration,
    /// What the scopes of ResourceQuotas ask of it.
    #[serde(default)]
    pub scopes: PodScopes,
}

/// The settings for the termination of a pod when its node is drained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// `spec.terminationGracePeriodSeconds`: from SIGTERM to SIGKILL.
    pub grace: SignedDuration,
    /// Protection from disruption, if any.
    pub protection: Option<Protection>,
}

impl Default for Ending {
    /// Creates the defaults of Kubernetes: 30 seconds, and no protection.
    fn default() -> Self {
        Self { grace: SignedDuration::from_secs(30), protection: None }
    }
}

/// Protection of a pod from disruption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// The annotation that protects it: `poolwright.dev/do-not-disrupt=4h`.
    pub annotation: String,
    /// The end of the protection; `None` for as long as the pod runs.
    pub until: Option<Timestamp>,
}

impl Pod {
    /// Returns whether it has started work. Such pods say how long pods of their kinds run.
    pub fn has_started_work(&self) -> bool {
        self.role == PodRole::Workload && self.duration.started.is_some()
    }

    /// Creates a pod that waits for the default scheduler, of which only the spec is known. Its name is its UID.
    pub fn waiting(key: PodKey, spec: impl Into<Shared<PodSpec>>) -> Self {
        Self {
            uid: Uid(key.name().into_owned()),
            key,
            owner: None,
            labels: Shared::default(),
            spec: spec.into(),
            request_origins: Vec::new(),
            volumes: Vec::new(),
            priority: 0,
            scheduler: "default-scheduler".to_owned(),
            group: None,
            gang: None,
            role: PodRole::Workload,
            daemonset: None,
            replaces: None,
            phase: PodPhase::Waiting,
            health: PodHealth::default(),
            reserved_for: Vec::new(),
            nominated_node: None,
            deleting_since: None,
            created: Timestamp::UNIX_EPOCH,
            ending: Ending::default(),
            duration: PodDuration::default(),
            scopes: PodScopes::default(),
        }
    }

    /// Returns the key of the PodGroup that it belongs to.
    pub fn group_key(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new(self.key.namespace(), self.group.as_ref()?))
    }
}

/// The role of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodRole {
    /// A workload pod: its node is kept for it.
    Workload,
    /// A DaemonSet pod: it goes with its node.
    DaemonSet,
    /// The mirror of a static pod: it goes with its node.
    Mirror,
}

/// The phase of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not bound, and not yet reported as unschedulable.
    Waiting,
    /// Has scheduling gates: no node is bought for it.
    Gated,
    /// The scheduler found no node for it.
    Unschedulable {
        /// The time at which the scheduler first reported it.
        since: Timestamp,
        /// The scheduler's message.
        message: String,
    },
    /// Bound to a node.
    Bound {
        /// The node's name.
        node: String,
    },
    /// Finished: it uses no resources any more.
    Finished,
}

/// The health of a pod that has not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodHealth {
    /// Its containers have not all started: `status.phase` is `Pending`.
    Pending,
    /// It has started, and its condition `Ready` is not true.
    NotReady,
    /// It is ready, or its status is unknown.
    #[default]
    Ready,
}
