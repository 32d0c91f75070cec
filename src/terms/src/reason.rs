//! The registry of reasons: every reason of an event or condition that Poolwright writes, what has happened, and what to do.
//!
//! Events and conditions carry a [`Reason`], so nobody can write a reason that is missing here. Each provider defines the reasons
//! of its own conditions with [`reasons!`](crate::reasons). `docs/reasons.md` is generated from all these tables.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{IntoDeserializer, value};
use serde::{Deserialize, Serialize};

/// An entry of a table of reasons. [`reasons!`](crate::reasons) defines such a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisteredReason {
    /// The name in the API: one word that programs can match.
    pub name: &'static str,
    /// What has happened, in a sentence.
    pub happened: &'static str,
    /// What to do, in a sentence.
    pub to_do: &'static str,
}

impl fmt::Display for RegisteredReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// Defines a table of reasons: an enum with the reasons as variants, and for each of them what has happened and what to do.
#[macro_export]
macro_rules! reasons {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $table:ident;
        $($name:ident: $happened:literal, $to_do:literal;)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $table {
            $(#[doc = $happened] $name,)*
        }

        impl $table {
            /// The entries of the table, in the order of the variants.
            $visibility const TABLE: &'static [$crate::RegisteredReason] = &[
                $($crate::RegisteredReason { name: stringify!($name), happened: $happened, to_do: $to_do },)*
            ];
        }

        impl From<$table> for $crate::RegisteredReason {
            fn from(reason: $table) -> Self {
                $table::TABLE[reason as usize]
            }
        }
    };
}

reasons! {
    /// Why an event was sent, or why a condition has its status.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub enum Reason;
    AsPoolSays: "The claim matches what its pool would create now.", "Nothing.";
    BudgetNeverMet: "A PodDisruptionBudget never allows an eviction.", "Correct the budget. Until then, nobody can drain the nodes of its pods.";
    BudgetOnTrack: "The monthly budget of the pool lasts until the month ends, at the prices of now.", "Nothing.";
    BudgetSpent: "The monthly budget of the pool is spent. With `action: StopBuying`, the pool buys nothing until the month ends.", "Raise `spec.monthlyBudget.usd`, or wait until the month ends.";
    BudgetWillBeMissed: "At the prices of now, the monthly budget of the pool is spent before the month ends.", "Run less, or raise `spec.monthlyBudget.usd`.";
    BufferKept: "The node is kept as free room for its pool's `buffer`.", "Nothing. To keep fewer nodes, lower `spec.buffer`.";
    BufferUnmet: "Units of the pool's `buffer` fit no offering that the pool may buy, so no room is kept for them.", "Read the nearest miss in the message. Ask for less in `spec.buffer`, or allow more offerings in the pool.";
    CalledOff: "Poolwright was about to empty the node, and now keeps it.", "Nothing. The message says why.";
    CheaperElsewhere: "Pods that would join the node's pods would run cheaper elsewhere. So the node admits only pods that Poolwright plans for it, and is terminated when its pods have ended.", "Nothing. To admit all pods, set `spec.disruption.retire: Never` in the pool.";
    ContradictingRequirements: "The requirements of the pool contradict each other, or a label of its template.", "Correct `spec.template.spec.requirements`, or the label.";
    Detached: "No volume is attached to the node any more.", "Nothing.";
    DisruptionBlocked: "Poolwright must replace the node, but cannot yet.", "Check the budget, annotation, pod or limit that the message names.";
    DisruptionBudgetUnreadable: "A disruption budget of the pool is invalid, so it allows no disruption.", "Correct the schedule or the duration in `spec.disruption.budgets`.";
    DisruptionCalledOff: "Poolwright was about to empty the node, and now keeps it.", "Nothing. The message says why.";
    Drained: "The node has no pod left to wait for.", "Nothing.";
    Draining: "Poolwright is evicting the pods of the node.", "Nothing. If it takes long, check PodDisruptionBudgets and grace periods.";
    Drifted: "The claim differs from what its pool would create now, so Poolwright replaces its node.", "Nothing.";
    Empty: "The node has had no work for longer than `scaleToZero.after`.", "Nothing.";
    Ended: "Poolwright deleted a pod because its node must end soon. Budgets and protection no longer count.", "If the pod needs longer, raise `deadlines.termination`.";
    Ending: "The cloud is stopping or terminating the instance.", "Nothing: Poolwright plans its pods again. If nobody intended it, check the cloud's audit log.";
    Evicted: "Poolwright evicted a pod because its node will be terminated, or to make room for a waiting pod.", "Nothing.";
    EvictionRefused: "The API server refused to evict a pod.", "Read the message. Usually a PodDisruptionBudget allows no eviction now.";
    Expired: "The node is older than its pool's `expireAfter`, so Poolwright replaces it.", "Nothing.";
    GangIncomplete: "Poolwright finds no room for all pods of a gang, which must start together.", "Raise the limits of the pool, allow more offerings, or make the gang smaller.";
    GangReleased: "Poolwright finds no room for some pods of a gang, so it deletes a claim that it created for the gang.", "Raise the limits of the pool, allow more offerings, or make the gang smaller.";
    GpusCut: "A label of the pool's template makes NVIDIA's GPU operator cut the GPUs of its nodes, and Poolwright buys nodes for whole GPUs.", "Remove the label `nvidia.com/mig.config` from the template.";
    GpusShared: "A new node of the pool does not advertise whole GPUs, because its device plugin shares or cuts them. Poolwright buys nodes for whole GPUs, so the node stays closed.", "Turn time slicing, MPS and MIG off in the device plugin for the nodes of this pool.";
    HasPods: "The node runs pods.", "Nothing.";
    InitializationTimeout: "The node joined, but was not usable in time. Poolwright terminates it and plans its pods again.", "Check drivers, device plugins and startup taints, or raise `deadlines.initialization`.";
    Initialized: "The node is ready and advertises the promised resources.", "Nothing.";
    InstanceGone: "The instance no longer exists, although Poolwright did not terminate it. Poolwright plans its pods again.", "Find out who terminated it: a person, another controller, or the cloud.";
    InstanceUnlisted: "The claim's instance seems to run, but its cloud does not find it. Either the claim is deleted, and the instance can be terminated neither by its tags nor by its id. Or its node is ready, and the cloud does not know its id.", "Read the message: restore the tags of the instance or terminate it yourself, or correct the credentials of the controller.";
    Interrupted: "The cloud takes the instance back, or will maintain its machine.", "Nothing: Poolwright plans its pods again.";
    InvalidBuffer: "`spec.buffer` of the pool is invalid.", "Correct the entry that the message names.";
    InvalidDuration: "A duration of the pool is invalid.", "Write whole numbers with h, m, s or ms, such as `90s` or `1h30m`.";
    InvalidQuantity: "A limit of the pool is invalid.", "Write a Kubernetes quantity, such as `16` or `64Gi`.";
    InvalidReplicas: "`spec.replicas` of the pool is below zero.", "Write 0 or more.";
    InvalidRequirement: "A requirement of the pool is invalid.", "Correct the entry of `spec.template.spec.requirements` that the message names.";
    InvalidSpot: "`spec.spot` of the pool is invalid.", "Write the field that the message names as a number or a percentage, such as `20%`.";
    LaunchInvalid: "The cloud rejected the launch, and would reject it again.", "Correct the node class as the message says.";
    LaunchRetried: "A launch failed for a cause that may pass, such as throttling. Poolwright repeats it until the launch deadline.", "Nothing. If it lasts, read the cause in the message: usually the cloud throttles calls or does not answer.";
    LaunchTimeout: "No instance was launched in time. Poolwright deletes the claim and plans its pods again.", "Read the earlier events of the claim, or raise `deadlines.launch`.";
    Launched: "An instance was launched for the claim.", "Nothing.";
    LedgerNotKept: "The ledger cannot be read or written, or the clock of the leader has jumped. Nothing else waits for the ledger.", "Read the message. Check the room and the credentials of the ledger, or the time of the leader's node.";
    LimitReached: "A limit of the pool leaves pods waiting.", "Raise `spec.limits`, or remove work.";
    LowPriority: "The priority of the pod is too low for Poolwright to buy a node.", "Give the pod a higher priority, or lower the controller's `--min-priority`.";
    Maintenance: "The cloud will maintain the machine at the deadline.", "Nothing: Poolwright moves its pods before that.";
    NamespaceLimitReached: "A limit of the namespace leaves the pod waiting.", "Raise the limit that the message names, or end pods of the namespace.";
    NoNodeClaim: "The NodeClaim of the node is gone, but pods still run on the node. Poolwright terminates the instance when they have ended.", "Nothing. If you created the instance by hand, remove Poolwright's tags from it.";
    NoOfferingFits: "The pod fits no offering of any pool.", "Read the nearest miss in the message. Request less, or allow more in a pool.";
    NoOfferingMatches: "No offering of the pool's node class meets the pool's requirements.", "Correct `spec.template.spec.requirements`, or the node class.";
    NoUsablePool: "No pool can buy anything.", "Create a NodePool, or check the conditions of your pools.";
    NoWorkload: "The node runs no work, and none is planned for it.", "Nothing.";
    NodeClassNotFound: "The node class of the pool does not exist.", "Create it, or correct `nodeClassRef`.";
    NodeClassNotReady: "The node class is not usable.", "Read the message, and check the conditions of the node class.";
    NodeDeleted: "Somebody is deleting the Node object.", "To remove a node, delete its NodeClaim instead.";
    NodeGone: "The Node object no longer exists.", "Find out who deleted it. If the node was open, Poolwright terminates its instance.";
    NodeNotReady: "The node is not ready yet.", "Wait. If it takes long, check the kubelet and the network plugin.";
    NodePlanned: "Poolwright buys a node for the pod.", "Nothing.";
    NodeUnhealthy: "The node has been unhealthy for longer than its pool allows, so Poolwright replaces it.", "Check the condition that the message names.";
    NotDetachedInTime: "Volumes are still attached to the node, and Poolwright waits no longer.", "Check the CSI driver of these volumes.";
    NotScheduledAsPlanned: "The scheduler did not place a pod on the node that Poolwright bought for it.", "Read the scheduler's own event on the pod.";
    NotYetTried: "The scheduler has not tried the pod yet.", "Nothing.";
    OfferingsHeldBack: "The pod fits some offerings, but all that limits allow failed recently.", "Wait, or allow more types, zones or capacity types in a pool.";
    OtherScheduler: "Another scheduler places the pod.", "Nothing.";
    PlanFailed: "A plan with the pod fails. That is a bug of Poolwright, which plans without the pod for an hour.", "Report it with the log of the controller, and with the input of the plan, which --save-failures saves.";
    PodGroupMissing: "The PodGroup of the pod does not exist, or Poolwright may not list it.", "Create the PodGroup, or apply deploy/rbac.yaml.";
    PodGroupPending: "The gang of the pod waits for more pods, or in a queue.", "Nothing. If it takes long, check the controller that creates the other pods, or the queue that the message names.";
    PodsExpected: "The node is kept for pods that are planned for it.", "Nothing.";
    PodsProtected: "Pods on the node are protected from eviction.", "Check the annotations that the message names.";
    PoolChanged: "The pool or its node class has changed since the claim was created.", "Nothing: Poolwright replaces the node when the disruption budgets allow it.";
    PreemptionInProgress: "The scheduler is preempting other pods to make room for the pod.", "Nothing.";
    PriceUnknown: "The pod fits some offerings, but their prices are unknown.", "List the instance types in `allowUnknownPrices` of the NodePool, which must have no `usdPerHour` limit of its own. If their prices come from `--catalogue`, you can add them to that file instead; node classes that ask their cloud for prices ignore the file.";
    ReadinessGates: "A condition listed in the pool's `readinessGates` is not true on the node yet.", "Check the component that sets this condition.";
    Ready: "The pool can buy nodes, or the node class can be used.", "Nothing.";
    Rebalance: "The cloud will probably take the spot instance back.", "Nothing.";
    RebalanceRecommended: "The cloud will probably take the spot instance back.", "Nothing.";
    Reclaim: "The cloud takes the spot instance back.", "Nothing: Poolwright plans its pods again.";
    Recovered: "The node is healthy again.", "Nothing.";
    Registered: "The node has joined the cluster.", "Nothing.";
    RegistrationTimeout: "The node did not join in time. Poolwright terminates the instance and plans its pods again.", "Check the user data, network and permissions of the node, or raise `deadlines.registration`.";
    Replica: "The node is one of the replicas of its pool.", "Nothing. To keep fewer nodes, lower `spec.replicas`.";
    ReservationEnd: "The capacity reservation of the instance ends.", "Nothing: Poolwright plans its pods again.";
    ReservationReclaim: "The owner of the capacity reservation takes it back from the instance.", "Nothing: Poolwright plans its pods again.";
    ReservationRefused: "The API server refused the toleration that admits a pod to its reserved node. For ten minutes, Poolwright nominates the pods of this namespace instead.", "Allow Poolwright to patch pods there: check RBAC and admission policies.";
    ResourcesDiffer: "The node does not advertise the promised resources yet.", "Wait for device plugins. If it takes long, compare the message with the node.";
    RoomIsCheap: "The node admits all pods again: recent pods would not run cheaper elsewhere, a pod may need its room, its pool no longer lets nodes retire, or the controller stops.", "Nothing.";
    RoomMade: "The pod gets the room of other pods, which move or end. That costs less than a new node for it.", "Nothing.";
    ScaledDown: "The node is not needed any more, so Poolwright terminates it.", "Nothing.";
    SchedulingGated: "The pod has scheduling gates.", "Nothing. The component that set the gates removes them.";
    StartupTaintsPresent: "The node still has startup taints.", "Check the component that removes them.";
    StockOut: "None of the claim's offerings is available now. Poolwright does not buy them for a while, and plans the pods again.", "Nothing. If it repeats, allow more types, zones or capacity types.";
    Terminating: "Poolwright is terminating the instance.", "Nothing.";
    TerminationRetried: "A cloud did not terminate the instance of a claim. Poolwright repeats the call until the instance is gone.", "Read the cause in the message. If it lasts, check the rights of the controller in the cloud.";
    TimeIsUp: "The deadline of the node has passed, and pods still run on it.", "If the work needs longer, raise `deadlines.termination`.";
    TooManyPodsExpected: "A controller is about to create more pods than Poolwright plans ahead for. It plans for the others when they exist.", "Check the number of pods that the controller asks for, or set a ResourceQuota.";
    TopologyRule: "Rules about other pods leave no place for the pod: topology spread, affinity, anti-affinity or a volume that they share.", "Relax the rule that the message names, or allow more zones in a pool.";
    Underutilized: "The pods of the node cost less elsewhere.", "Nothing.";
    Unhealthy: "The instance fails the cloud's own checks.", "Nothing: Poolwright plans its pods again.";
    UnmodelledRule: "The pod uses a rule that Poolwright does not model yet.", "Change the field that the message names, or add a node for the pod by hand.";
    Unreadable: "Poolwright ignores the object, or a part of it, because it cannot read it.", "Correct the field that the message names.";
    Valid: "The spec of the pool is valid.", "Nothing.";
    VolumePending: "A volume of the pod is not bound yet, or another pod uses it.", "Nothing. If it takes long, check the PersistentVolumeClaim.";
    VolumeUnusable: "The pod cannot use one of its volumes until you correct something.", "Correct the PersistentVolumeClaim, volume or StorageClass that the message names.";
    VolumesAttached: "Volumes are still attached to the node.", "Nothing. If it takes long, check the CSI driver.";
    WithinLimits: "No limit of the pool leaves pods waiting.", "Nothing.";
    WriteDenied: "The API server denies a change of the node, pod or NodeClaim, because RBAC or an admission policy forbids it. Poolwright tries again within five minutes. It leaves a Node object to you if a policy denies its deletion.", "Allow Poolwright to change nodes, pods and NodeClaims: check RBAC and admission policies.";
}

impl Reason {
    /// Returns the name in the API.
    pub const fn as_str(self) -> &'static str {
        Self::TABLE[self as usize].name
    }

    /// Returns the reason that has this name in the API.
    pub fn named(name: &str) -> Option<Self> {
        Self::deserialize(IntoDeserializer::<value::Error>::into_deserializer(name)).ok()
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
