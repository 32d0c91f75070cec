//! What decisions come to: actions as data. The controller carries them out and decides nothing.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use poolwright_terms::{ConditionStatus, ConditionType, NodeClassRef, Reason, Taint};
use serde::{Deserialize, Serialize};

use crate::model::{ClaimName, ObjectKey, PoolName, Uid};

/// One thing to do. Every action is idempotent: doing it twice, or after a restart, does no harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Order an instance for the claim, with its UID as idempotency key, trying its offerings in order. When it is not
    /// recorded as launched: whether an instance already exists only the provider knows.
    Launch {
        /// For which claim.
        claim: ClaimName,
    },
    /// The claim's node has joined: make sure that it has the promised labels, annotations and taints, and close it to
    /// workload pods by a cordon that carries [`poolwright_terms::keys::GATE_ANNOTATION`] (DaemonSets tolerate
    /// a cordon, so drivers and device plugins still get in). Then record the node's name in the claim's status.
    Register {
        /// Which claim.
        claim: ClaimName,
        /// Its node.
        node: String,
        /// Labels to set.
        labels: BTreeMap<String, String>,
        /// Annotations to set, the gate's included.
        annotations: BTreeMap<String, String>,
        /// The complete list of taints to have.
        taints: Vec<Taint>,
    },
    /// Tell the scheduler where a waiting pod was planned (`status.nominatedNodeName`), so that it does not undo the
    /// packing. Sent once the node has registered and before it opens to pods.
    Nominate {
        /// Which pod.
        pod: ObjectKey,
        /// This very pod, not a later one of the same name.
        uid: Uid,
        /// The node.
        node: String,
    },
    /// Let a waiting pod onto the reserved node of the claim that it is planned for, by a toleration of exactly that
    /// node's [`poolwright_terms::keys::RESERVED_TAINT`]. Nothing else of the pod changes.
    Tolerate {
        /// Which pod.
        pod: ObjectKey,
        /// This very pod, not a later one of the same name.
        uid: Uid,
        /// The claim.
        claim: ClaimName,
    },
    /// Open the node to pods: lift our cordon and its annotation and, in the same write, reserve it where it is to be.
    Open {
        /// Which node.
        node: String,
        /// For the pods of this claim alone, by [`poolwright_terms::keys::RESERVED_TAINT`]; `None` for anybody.
        reserve_for: Option<ClaimName>,
    },
    /// Set a node's taints to exactly this list.
    SetTaints {
        /// Which node.
        node: String,
        /// The complete list of taints to have.
        taints: Vec<Taint>,
    },
    /// Delete the NodeClaim; its finalizer then gives the instance back.
    DeleteClaim {
        /// Which claim.
        claim: ClaimName,
        /// This very claim.
        uid: Uid,
        /// When true, the executor first asks the API server itself whether any workload pod is bound to the claim's
        /// node, and does nothing if one is.
        only_if_empty: bool,
    },
    /// Delete the NodeClaim of a node that leaves: what its pods need elsewhere is there, or nothing can be waited for.
    Retire {
        /// Which claim.
        claim: ClaimName,
        /// This very claim.
        uid: Uid,
    },
    /// Ask a pod to go, by the Eviction API: budgets may refuse it.
    Evict {
        /// Which pod.
        pod: ObjectKey,
        /// This very pod, not a later one of the same name.
        uid: Uid,
    },
    /// Tell a pod to end, whatever protects it: its node goes.
    EndPod {
        /// Which pod.
        pod: ObjectKey,
        /// This very pod, not a later one of the same name.
        uid: Uid,
        /// From SIGTERM to SIGKILL.
        grace: SignedDuration,
    },
    /// Give the instance of a deleted claim back. Repeated until the provider says that it is gone.
    Terminate {
        /// Which claim.
        claim: ClaimName,
        /// Whether pods that still run there keep it no more: their time is up.
        forced: bool,
    },
    /// An instance that no claim explains: give it back.
    Reap {
        /// The cloud's id.
        provider_id: String,
        /// UID of the claim it was launched for. The executor first asks the API server itself whether it exists.
        claim_uid: Uid,
        /// Which node class launched it.
        node_class: NodeClassRef,
    },
    /// Write conditions of a claim's or a pool's status.
    SetConditions {
        /// Of what.
        subject: Subject,
        /// Which.
        conditions: Vec<ConditionUpdate>,
    },
    /// Do not buy this claim's offering for a while: it failed after launch.
    HoldBack {
        /// Whose current offering.
        claim: ClaimName,
        /// Why, in a sentence.
        message: String,
    },
    /// Plan at once, without waiting for the batch window: the pods concerned have waited already.
    PlanNow,
    /// Record an event on an object, for users.
    RecordEvent(Event),
}

/// What a condition or an event is about.
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
    Budget(ObjectKey),
}

/// A Kubernetes event on an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Event {
    /// About what.
    pub subject: Subject,
    /// Normal or warning.
    pub kind: EventType,
    /// Why, for programs.
    pub reason: Reason,
    /// A sentence.
    pub message: String,
}

/// The type of a Kubernetes event: how serious it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventType {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

/// A condition to record. Its time of transition changes only when its status does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionUpdate {
    /// Which.
    pub kind: ConditionType,
    /// Its status.
    pub status: ConditionStatus,
    /// Why, for programs.
    pub reason: Reason,
    /// A sentence.
    pub message: String,
}
