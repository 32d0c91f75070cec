//! Actions: decisions as data. The controller carries them out and decides nothing itself.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use poolwright_terms::{ConditionStatus, ConditionType, NodeClassRef, Reason, Taint};
use serde::{Deserialize, Serialize};

use crate::model::{ClaimName, ObjectKey, PoolName, Uid};

/// One thing to do. Every action is idempotent: doing it twice, or after a restart, does no harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Launch an instance for the claim, trying its offerings in order. The claim's UID is the idempotency key, so a second
    /// launch returns the existing instance.
    Launch {
        /// The claim.
        claim: ClaimName,
    },
    /// The claim's node has joined. Give it the promised labels, annotations and taints, and cordon it against workload pods,
    /// with the annotation [`poolwright_terms::keys::CORDONED_UNTIL_ANNOTATION`]. DaemonSet pods tolerate a cordon, so drivers
    /// and device plugins can still start. Then record the node's name in the claim's status.
    Register {
        /// The claim.
        claim: ClaimName,
        /// Its node.
        node: String,
        /// Labels to set.
        labels: BTreeMap<String, String>,
        /// Annotations to set, including the one that marks our cordon.
        annotations: BTreeMap<String, String>,
        /// The complete list of taints.
        taints: Vec<Taint>,
    },
    /// Nominate a waiting pod to the node that it was planned for (`status.nominatedNodeName`), so that the scheduler follows the
    /// plan. This is done after the node has registered and before it opens, and before pods of an open node give way.
    Nominate {
        /// The pod.
        pod: ObjectKey,
        /// UID of the pod; a later pod of the same name is left alone.
        uid: Uid,
        /// The node.
        node: String,
    },
    /// Let a waiting pod run on the reserved node that it is planned for, by adding a toleration for that node's
    /// [`poolwright_terms::keys::RESERVED_TAINT`]. Nothing else of the pod changes.
    Tolerate {
        /// The pod.
        pod: ObjectKey,
        /// UID of the pod; a later pod of the same name is left alone.
        uid: Uid,
        /// The claim.
        claim: ClaimName,
    },
    /// Open the node to pods: remove our cordon and its annotation and, if asked, reserve the node in the same write.
    Open {
        /// The node.
        node: String,
        /// The claim for whose pods the node is reserved, with [`poolwright_terms::keys::RESERVED_TAINT`]; `None` to open it to
        /// all pods.
        reserve_for: Option<ClaimName>,
    },
    /// Replace the taints of a node.
    SetTaints {
        /// The node.
        node: String,
        /// The complete list of taints.
        taints: Vec<Taint>,
    },
    /// Delete the NodeClaim. Its finalizer then terminates the instance.
    DeleteClaim {
        /// The claim.
        claim: ClaimName,
        /// UID of the claim; a later claim of the same name is left alone.
        uid: Uid,
        /// Whether to delete it only if its node is empty. The executor then asks the API server whether a workload pod is bound
        /// to the node, and does nothing if there is one.
        only_if_empty: bool,
    },
    /// Delete the NodeClaim of a disrupted node, because its pods have room elsewhere or there is no time to wait for such room.
    Drain {
        /// The claim.
        claim: ClaimName,
        /// UID of the claim; a later claim of the same name is left alone.
        uid: Uid,
    },
    /// Evict a pod with the Eviction API. A PodDisruptionBudget may refuse it.
    Evict {
        /// The pod.
        pod: ObjectKey,
        /// UID of the pod; a later pod of the same name is left alone.
        uid: Uid,
        /// The reason in a clause, such as "its node will be terminated".
        why: String,
    },
    /// Delete a pod regardless of budgets and annotations, because its node is about to end.
    EndPod {
        /// The pod.
        pod: ObjectKey,
        /// UID of the pod; a later pod of the same name is left alone.
        uid: Uid,
        /// The grace period, from SIGTERM to SIGKILL.
        grace: SignedDuration,
    },
    /// Terminate the instance of a deleted claim. Repeated until the provider confirms that the instance is gone.
    Terminate {
        /// The claim.
        claim: ClaimName,
        /// Whether to terminate even if pods still run there, because the deadline has passed.
        forced: bool,
    },
    /// Terminate an instance that belongs to no claim.
    Reap {
        /// The cloud's id of the instance.
        provider_id: String,
        /// UID of the claim that it was launched for. The executor first asks the API server whether that claim still exists.
        claim_uid: Uid,
        /// The node class that it was launched with.
        node_class: NodeClassRef,
    },
    /// Write conditions of a claim's or a pool's status.
    SetConditions {
        /// The object.
        subject: Subject,
        /// The conditions.
        conditions: Vec<ConditionUpdate>,
    },
    /// Avoid the claim's current offering for a while, because it failed after launch.
    HoldBack {
        /// The claim.
        claim: ClaimName,
        /// The reason, in a sentence.
        message: String,
    },
    /// Plan at once, without waiting for the batch window, because the pods have waited already.
    PlanNow,
    /// Read the node classes and their catalogues again.
    RefreshCatalogues,
    /// Record an event on an object, for users.
    RecordEvent(Event),
}

/// The object of a condition or an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Subject {
    /// A pod.
    Pod(ObjectKey),
    /// A claim.
    Claim(ClaimName),
    /// A pool.
    Pool(PoolName),
    /// A node.
    Node(String),
    /// A PodDisruptionBudget.
    PodDisruptionBudget(ObjectKey),
}

/// A Kubernetes event on an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Event {
    /// The object.
    pub subject: Subject,
    /// The type: normal or warning.
    pub kind: EventType,
    /// The reason, for programs.
    pub reason: Reason,
    /// The message, a sentence.
    pub message: String,
}

/// The type of a Kubernetes event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventType {
    /// Information about normal operation.
    Normal,
    /// A problem that a person should look at.
    Warning,
}

/// A condition to write. Its transition time changes only when its status does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionUpdate {
    /// Its type.
    pub kind: ConditionType,
    /// Its status.
    pub status: ConditionStatus,
    /// The reason, for programs.
    pub reason: Reason,
    /// The message, a sentence.
    pub message: String,
}
