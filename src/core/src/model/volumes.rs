//! Volumes that pods use: what they claim, what there is, what it is made from, and how much a node takes of it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::names::Uid;
use crate::model::pod_key::ObjectKey;
use crate::model::rules::{NodeTerm, Requirement};

/// A volume of a pod that not every node can provide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PodVolume {
    /// By a PersistentVolumeClaim of the pod's namespace.
    Claim {
        /// The claim's name.
        name: String,
        /// Whether it is made for this pod alone, with it (a generic ephemeral volume).
        ephemeral: bool,
    },
    /// By its own description; the scheduler counts it for this driver and asks no more.
    Attached {
        /// The CSI driver.
        driver: String,
        /// Which volume of the driver.
        handle: String,
    },
}

/// What a claim asks of a volume, or a volume offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeShape {
    /// Bytes.
    pub size: u64,
    /// `ReadWriteOnce`, `ReadWriteOncePod`, ...
    pub access_modes: BTreeSet<String>,
    /// A block device; else a file system.
    pub block: bool,
    /// `volumeAttributesClassName`, empty for none.
    pub attributes_class: String,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its StorageClass; `None` when it names none, empty when it wants none.
    pub class: Option<String>,
    /// The volume that it is bound to, or is to be.
    pub volume: Option<String>,
    /// Whether the binding is complete.
    pub bound: bool,
    /// Its volume was there and is gone.
    pub lost: bool,
    /// The node that the scheduler has chosen for it to be provided to.
    pub selected_node: Option<String>,
    /// What it asks for.
    pub shape: VolumeShape,
    /// Labels that a volume must have, AND-ed; empty for every volume.
    pub selector: Vec<Requirement>,
    /// The pod that it was made for and goes with, by UID.
    pub made_for: Option<Uid>,
    /// It is being deleted.
    pub deleting: bool,
}

/// A PersistentVolume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Its StorageClass, empty for none.
    pub class: String,
    /// What it offers.
    pub shape: VolumeShape,
    /// Labels, by which claims choose.
    pub labels: BTreeMap<String, String>,
    /// The claim that has it, or that it is kept for; the UID where that claim is meant and no other of its name.
    pub claim: Option<ObjectKey>,
    /// Whether it is free to be bound.
    pub available: bool,
    /// It is being deleted.
    pub deleting: bool,
    /// Where it can be used: AND-ed lists of OR-ed terms, from its node affinity and its zone labels.
    pub topology: Vec<Vec<NodeTerm>>,
    /// The CSI driver that attaches it, and its handle there.
    pub attached: Option<(String, String)>,
}

/// A volume that is attached to a node, or is being attached or detached (a VolumeAttachment).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The object's name.
    pub name: String,
    /// The node's name.
    pub node: String,
    /// The PersistentVolume; `None` for one that a pod describes itself.
    pub volume: Option<String>,
}

/// A StorageClass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageClass {
    /// Its name.
    pub name: String,
    /// Who makes its volumes; `None` when nobody does and they must be there.
    pub provisioner: Option<String>,
    /// Whether a claim is bound where its first pod goes (`WaitForFirstConsumer`); else at once.
    pub waits_for_pod: bool,
    /// Where its volumes can be made, OR-ed; `None` for everywhere.
    pub allowed: Option<Vec<NodeTerm>>,
    /// Since when it is there, if it is the class of claims that name none.
    pub default_since: Option<Timestamp>,
}

/// How many volumes of each CSI driver a node takes (a CSINode).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDrivers {
    /// The node's name.
    pub node: String,
    /// By driver; drivers without a limit are left out.
    pub limits: BTreeMap<String, u64>,
}
