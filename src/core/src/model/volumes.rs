//! Volumes of pods: PersistentVolumeClaims, PersistentVolumes, StorageClasses, attachments, and volume limits of nodes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::names::Uid;
use crate::model::pod_key::ObjectKey;
use crate::model::rules::{NodeSelectorTerm, Requirement};

/// A volume of a pod that not every node can provide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PodVolume {
    /// A PersistentVolumeClaim of the pod's namespace.
    Claim {
        /// The claim's name.
        name: String,
        /// Whether it is created with this pod (a generic ephemeral volume).
        ephemeral: bool,
    },
    /// An inline volume. The scheduler only counts it against the driver's limit.
    Attached {
        /// The CSI driver.
        driver: String,
        /// The driver's handle of the volume.
        handle: String,
    },
}

/// Properties that a claim requests and a volume offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeShape {
    /// The size in bytes.
    pub size: u64,
    /// `ReadWriteOnce`, `ReadWriteOncePod`, ...
    pub access_modes: BTreeSet<String>,
    /// Whether it is a block device; otherwise a file system.
    pub block: bool,
    /// `volumeAttributesClassName`, empty for none.
    pub attributes_class: String,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its StorageClass; `None` if not set, empty if it requests none.
    pub class: Option<String>,
    /// The volume that it is bound to, or will be.
    pub volume: Option<String>,
    /// Whether the binding is complete. With `volume: None`, the volume controller has bound it to a volume that the planner finds.
    pub bound: bool,
    /// Whether its volume was lost.
    pub lost: bool,
    /// The node that the scheduler selected for provisioning.
    pub selected_node: Option<String>,
    /// The size, access modes and other properties that it requests.
    pub shape: VolumeShape,
    /// Labels that a volume must have, AND-ed; empty for every volume.
    pub selector: Vec<Requirement>,
    /// UID of the pod that it was created for and will be deleted with.
    pub ephemeral_for: Option<Uid>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// For a claim of files that a ResourceQuota does not allow: the quota, and what it allows no more of. A claim of a cluster has
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_quota: Option<String>,
}

impl VolumeClaim {
    /// The access mode of volumes that one node at a time attaches. The kube-scheduler does not check it.
    pub const ONE_NODE: &str = "ReadWriteOnce";

    /// Returns whether only one node at a time attaches its volume, for all pods of that node.
    pub fn is_for_one_node(&self) -> bool {
        self.shape.access_modes.iter().eq([Self::ONE_NODE])
    }
}

/// A PersistentVolume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Its StorageClass, empty for none.
    pub class: String,
    /// The size, access modes and other properties that it offers.
    pub shape: VolumeShape,
    /// Labels, which selectors of claims match.
    pub labels: BTreeMap<String, String>,
    /// The claim that it is bound to or reserved for.
    pub claim: Option<ObjectKey>,
    /// Whether it can be bound.
    pub available: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The places where it can be used, from its node affinity and its zone labels: AND-ed lists of OR-ed terms.
    pub topology: Vec<Vec<NodeSelectorTerm>>,
    /// The CSI driver that attaches it, and the driver's handle of it.
    pub attached: Option<(String, String)>,
}

/// A VolumeAttachment: a volume that is attached to a node, or is being attached or detached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The object's name.
    pub name: String,
    /// The node's name.
    pub node: String,
    /// The PersistentVolume; `None` for an inline volume.
    pub volume: Option<String>,
}

/// A StorageClass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageClass {
    /// Its name.
    pub name: String,
    /// Its provisioner; `None` if volumes are created manually.
    pub provisioner: Option<String>,
    /// Whether a claim is bound when its first pod is scheduled (`WaitForFirstConsumer`); otherwise at once.
    pub waits_for_pod: bool,
    /// `allowedTopologies`: the places where volumes can be created, as OR-ed terms; `None` for everywhere.
    pub allowed: Option<Vec<NodeSelectorTerm>>,
    /// Its creation time, if it is the default class.
    pub default_since: Option<Timestamp>,
}

impl StorageClass {
    /// Returns the class of claims that name none. If several classes are the default, the newest counts, as in admission.
    pub fn default_of<'a>(classes: impl Iterator<Item = &'a Self>) -> Option<&'a Self> {
        let defaults = classes.filter(|class| class.default_since.is_some());
        defaults.max_by(|a, b| (a.default_since, &b.name).cmp(&(b.default_since, &a.name)))
    }
}

/// Volume limits of a node (a CSINode).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDrivers {
    /// The node's name.
    pub node: String,
    /// Limits by CSI driver.
    pub limits: BTreeMap<String, u64>,
    /// CSI drivers that say that they have no limit.
    #[serde(default)]
    pub unlimited: BTreeSet<String>,
}
