//! The registry of reasons: every reason of Poolwright's events and conditions, with what has happened and what to do.
//!
//! A reason that is not here cannot be written, because events and conditions carry a [`Reason`]. `docs/reasons.md` is
//! [made from this table](Reason::markdown). Providers keep the reasons of their own node classes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($name:ident: $happened:literal, $todo:literal;)*) => {
        /// Why an event was sent, or why a condition has its status: one word for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Reason {
            $(#[doc = $happened] $name,)*
        }

        impl Reason {
            /// Every reason, by name.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in the API.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// What has happened, in a sentence.
            pub const fn happened(self) -> &'static str {
                match self {
                    $(Self::$name => $happened,)*
                }
            }

            /// What to do, in a sentence.
            pub const fn to_do(self) -> &'static str {
                match self {
                    $(Self::$name => $todo,)*
                }
            }
        }
    };
}

reasons! {
    AsPoolSays: "The claim is what its pool would make now.", "Nothing.";
    BudgetNeverMet: "A PodDisruptionBudget can never allow an eviction.", "Correct the budget, or its pods hold their nodes for good.";
    BufferKept: "The node is kept as the free room that its pool's `buffer` asks for.", "Nothing; lower `spec.buffer` for fewer nodes.";
    CalledOff: "The node was about to leave and stays.", "Nothing; the message says why.";
    ContradictingRequirements: "The requirements of the pool exclude each other.", "Correct `spec.template.spec.requirements`.";
    Detached: "No volume of the node's work is attached to it any more.", "Nothing.";
    DisruptionBlocked: "The node is to be replaced, and something keeps it.", "Look at what the message names: a budget, an annotation, a pod, or a limit.";
    DisruptionBudgetUnreadable: "A disruption budget of the pool makes no sense, so it allows nothing.", "Correct the schedule or the duration in `spec.disruption.budgets`.";
    DisruptionCalledOff: "The node was about to leave and stays.", "Nothing; the message says why.";
    Drained: "No pod is left on the node that Poolwright waits for.", "Nothing.";
    Draining: "The pods of the node are asked to go.", "Nothing; if it takes long, look at PodDisruptionBudgets and grace periods.";
    Drifted: "The claim is not what its pool would make now, and is replaced.", "Nothing.";
    Empty: "The node has had no work for longer than `scaleToZero.after`.", "Nothing.";
    Ended: "A pod was told to end although something protects it: the time of its node is up.", "Raise `deadlines.termination` if its work needs longer.";
    Ending: "The cloud is stopping or terminating the instance.", "Nothing: its pods are planned anew. If nobody meant it, look at the cloud's audit log.";
    Evicted: "A pod was asked to go because its node goes.", "Nothing.";
    EvictionRefused: "The API server refused to evict a pod.", "Look at the message: most often a PodDisruptionBudget that allows nothing now.";
    Expired: "The node is older than its pool's `expireAfter`, and is replaced.", "Nothing.";
    GangIncomplete: "A gang cannot have room for as many pods as it starts with, or its nodes wait for the rest of it.", "Raise the limits of the pool, allow more offerings, or make the gang smaller.";
    GangReleased: "Not all pods of a gang could have room, so a node bought for some of them is given back.", "Raise the limits of the pool, allow more offerings, or make the gang smaller.";
    HasPods: "The node runs pods.", "Nothing.";
    InitializationTimeout: "The node was not usable in time after it joined. It is given back and its pods are planned anew.", "Look at drivers, device plugins and startup taints, or raise `deadlines.initialization`.";
    Initialized: "The node is ready and advertises what was promised.", "Nothing.";
    InstanceGone: "The instance does not exist any more, and Poolwright did not end it. Its pods are planned anew.", "Find out who ended it: a person, another controller, or the cloud.";
    Interrupted: "The cloud takes the instance back, or is about to service it.", "Nothing: its pods are planned anew.";
    InvalidBuffer: "`spec.buffer` of the pool cannot be read.", "Correct what the message names.";
    InvalidDuration: "A duration of the pool cannot be read.", "Write whole numbers with h, m, s or ms, such as `90s` or `1h30m`.";
    InvalidQuantity: "A limit of the pool cannot be read.", "Write a quantity as Kubernetes has it, such as `16` or `64Gi`.";
    InvalidReplicas: "`spec.replicas` of the pool is below zero.", "Write 0 or more.";
    InvalidRequirement: "A requirement of the pool cannot be read.", "Correct what the message names in `spec.template.spec.requirements`.";
    LaunchInvalid: "The cloud says that this launch can never work.", "Correct the node class as the message says.";
    LaunchTimeout: "No instance could be launched in time. The claim is deleted and its pods are planned anew.", "Look at the events before it, or raise `deadlines.launch`.";
    Launched: "An instance was launched for the claim.", "Nothing.";
    LimitReached: "A limit of the pool keeps it from buying what pods need.", "Raise `spec.limits`, or remove work.";
    LowPriority: "The priority of the pod is below the least that buys nodes.", "Give the pod a higher priority, or lower the controller's threshold.";
    Maintenance: "The cloud services the machine at the deadline.", "Nothing: its pods are planned anew in time.";
    NoNodeClaim: "An instance or a node of this cluster belongs to no NodeClaim, and is given back.", "Nothing; if you made it by hand, remove Poolwright's tags or labels from it.";
    NoOfferingFits: "No offering of any pool holds the pod.", "Look at the nearest miss in the message: ask for less, or allow more in a pool.";
    NoOfferingMatches: "The requirements of the pool match no offering of its node class.", "Correct `spec.template.spec.requirements`, or the node class.";
    NoUsablePool: "There is no pool that could buy anything.", "Make a NodePool, or look at the conditions of those there are.";
    NoWorkload: "No workload pod is on the node or planned for it.", "Nothing.";
    NodeClassNotFound: "The node class of the pool does not exist.", "Make it, or correct `nodeClassRef`.";
    NodeClassNotReady: "The node class of the pool cannot be used.", "Look at the message, and at the conditions of the node class.";
    NodeDeleted: "Somebody is deleting the Node object.", "Delete the NodeClaim instead, if the node is to go.";
    NodeGone: "The Node object does not exist any more.", "Find out who deleted it. The instance is given back.";
    NodeNotReady: "The node is not ready yet.", "Wait; if it lasts, look at the kubelet and the network plugin.";
    NodePlanned: "A node is bought for the pod.", "Nothing.";
    NodeUnhealthy: "The node has had a bad condition for longer than its pool bears. It is replaced.", "Look at the condition that the message names.";
    NotDetachedInTime: "Volumes are still attached, and the time of the node is up.", "Look at the CSI driver of these volumes.";
    NotScheduledAsPlanned: "The scheduler did not place a pod on the node that was bought for it.", "Look at the scheduler's own event on the pod.";
    NotYetTried: "The scheduler has not tried the pod yet.", "Nothing.";
    OfferingsHeldBack: "Offerings hold the pod, but all of them failed lately.", "Wait, or allow more types, zones or capacity types in a pool.";
    OtherScheduler: "Another scheduler places the pod.", "Nothing.";
    PodGroupMissing: "The PodGroup of the pod does not exist.", "Make the PodGroup.";
    PodGroupPending: "The gang of the pod waits for more pods.", "Nothing; if it lasts, look at what makes the other pods.";
    PodsExpected: "The node is kept for pods that are still to come.", "Nothing.";
    PodsProtected: "Pods on the node are protected from eviction.", "Look at the budgets and annotations that the message names.";
    PoolChanged: "The pool or its node class has changed since the claim was made.", "Nothing: the node is replaced as budgets allow.";
    PreemptionInProgress: "The scheduler makes room for the pod by preemption.", "Nothing.";
    PriceUnknown: "Offerings hold the pod, but their price is unknown.", "List the types in `allowUnknownPrices`, or give their prices.";
    ReadinessGates: "A condition that the pool asks for is not true on the node yet.", "Look at what sets the conditions in `readinessGates`.";
    Ready: "The pool can buy.", "Nothing.";
    Rebalance: "The cloud says that spot capacity is likely to be taken back.", "Nothing.";
    RebalanceRecommended: "The cloud says that spot capacity is likely to be taken back.", "Nothing.";
    Reclaim: "The cloud takes spot capacity back.", "Nothing: its pods are planned anew.";
    Recovered: "The node is well again.", "Nothing.";
    Registered: "The node has joined the cluster.", "Nothing.";
    RegistrationTimeout: "The node did not join in time. It is given back and its pods are planned anew.", "Look at user data, network and permissions of the node, or raise `deadlines.registration`.";
    Replica: "The node is one of the replicas of its pool.", "Nothing; lower `spec.replicas` for fewer nodes.";
    ReservationEnd: "The reservation that the instance runs in ends.", "Nothing: its pods are planned anew.";
    ReservationReclaim: "The lender of the reservation that the instance runs in takes it back.", "Nothing: its pods are planned anew.";
    ReservationRefused: "The API server refused the toleration that lets a pod onto its reserved node. Nodes for its namespace open by nomination for a while.", "Allow Poolwright to patch pods there: look at RBAC and admission policies.";
    ResourcesDiffer: "The node does not advertise what was promised yet.", "Wait for device plugins; if it lasts, compare the message with the node.";
    ScaledDown: "The node was not needed any more, and is given back.", "Nothing.";
    SchedulingGated: "The pod is held by scheduling gates.", "Nothing; whoever set the gates lifts them.";
    StartupTaintsPresent: "Startup taints are still on the node.", "Look at what is to lift them.";
    StockOut: "The cloud has none of these offerings now. They are not tried for a while, and the pods are planned anew.", "Nothing; if it repeats, allow more types, zones or capacity types.";
    Terminating: "The instance is being given back.", "Nothing.";
    TimeIsUp: "Pods are left on the node, and its time is up.", "Raise `deadlines.termination` if the work needs longer.";
    TopologyRule: "Rules about other pods leave the pod no place: topology spread, affinity or anti-affinity.", "Look at the message: loosen the rule, or allow more zones in a pool.";
    Underutilized: "The work of the node costs less elsewhere.", "Nothing.";
    Unhealthy: "The cloud's own checks of the instance fail.", "Nothing: its pods are planned anew.";
    UnmodelledRule: "The pod uses a rule that Poolwright does not model yet.", "Change the field that the message names, or place the pod by hand.";
    Unreadable: "Poolwright cannot read the object and leaves it out.", "Correct what the message names.";
    Valid: "The spec of the pool makes sense.", "Nothing.";
    VolumePending: "A volume of the pod is about to be had, or another pod has it.", "Nothing; if it lasts, look at the PersistentVolumeClaim.";
    VolumeUnusable: "A volume of the pod cannot be had until something changes.", "Correct the claim, the volume or the class that the message names.";
    VolumesAttached: "Volumes of the node's work are still attached to it.", "Nothing; if it lasts, look at the CSI driver.";
    WithinLimits: "The limits of the pool hold nothing back.", "Nothing.";
}

impl Reason {
    /// The reason that has this name in the API.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == name)
    }

    /// The registry as the rows of a table in Markdown.
    pub fn markdown() -> String {
        let row = |reason: &Self| format!("| `{reason}` | {} | {} |\n", reason.happened(), reason.to_do());
        Self::ALL.iter().map(row).collect()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl PartialEq<str> for Reason {
    fn eq(&self, name: &str) -> bool {
        self.as_str() == name
    }
}

impl PartialEq<&str> for Reason {
    fn eq(&self, name: &&str) -> bool {
        self.as_str() == *name
    }
}

impl PartialEq<Reason> for String {
    fn eq(&self, reason: &Reason) -> bool {
        self == reason.as_str()
    }
}
