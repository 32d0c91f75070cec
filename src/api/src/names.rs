//! Keys and names that are part of the API: labels, annotations, taints, finalizers, conditions, field managers.

/// Labels that describe an offering; their meaning is the catalogue's.
pub use poolwright_catalog::labels as offering_labels;

/// Domain of every key of ours.
pub const DOMAIN: &str = "poolwright.dev";

/// Label on NodeClaims and nodes: the NodePool they belong to.
pub const NODEPOOL_LABEL: &str = "poolwright.dev/nodepool";
/// Label on nodes: the NodeClaim they belong to.
pub const NODECLAIM_LABEL: &str = "poolwright.dev/nodeclaim";
/// Label on nodes, `true` once the node has registered.
pub const REGISTERED_LABEL: &str = "poolwright.dev/registered";
/// Label on nodes, `true` once the node is initialized.
pub const INITIALIZED_LABEL: &str = "poolwright.dev/initialized";

/// Annotation on a node whose cordon is ours; its value is [`GATE_UNTIL_INITIALIZED`].
pub const GATE_ANNOTATION: &str = "poolwright.dev/cordoned-until";
/// The value of [`GATE_ANNOTATION`].
pub const GATE_UNTIL_INITIALIZED: &str = "initialization";

/// Annotation on NodeClaims that were bought because pods lost the place that an earlier plan gave them: those pods.
pub const BOUGHT_AGAIN_ANNOTATION: &str = "poolwright.dev/bought-again";
/// Annotation on NodeClaims: why this node, in a sentence.
pub const REASON_ANNOTATION: &str = "poolwright.dev/reason";

/// Annotation on NodeClaims of one plan that are alike, so that a cloud may be asked for all of them in one call: what they have in
/// common, a slash, and how many they are.
pub const LAUNCH_BATCH_ANNOTATION: &str = "poolwright.dev/launch-batch";

/// Key of the taint (`NoExecute`) that a new node carries until its claim has recognised it.
pub const UNREGISTERED_TAINT: &str = "poolwright.dev/unregistered";
/// Key of the taint (`NoSchedule`, the NodeClaim's name as value) on an open node that waits for the pods it was bought for.
pub const RESERVED_TAINT: &str = "poolwright.dev/reserved";
/// Key of the taint (`NoSchedule`) on a node that will be given back.
pub const DISRUPTED_TAINT: &str = "poolwright.dev/disrupted";

/// Annotation on pods that are not to be disturbed: `true`, or for how long after their start (`4h`).
pub const DO_NOT_DISRUPT_ANNOTATION: &str = "poolwright.dev/do-not-disrupt";

/// Finalizer on NodeClaims: removed when the provider has confirmed that the instance is gone.
pub const TERMINATION_FINALIZER: &str = "poolwright.dev/termination";

/// Field manager of the controller's writes.
pub const FIELD_MANAGER: &str = "poolwright-controller";
/// Name of the leader's Lease.
pub const LEASE: &str = "poolwright-controller";

/// Label keys that a pool's template may not set, because an offering, a node or Poolwright decides them. Keys under
/// [`DOMAIN`] may not be set either.
pub const RESERVED_LABELS: [&str; 6] = [
    offering_labels::HOSTNAME,
    offering_labels::INSTANCE_TYPE,
    offering_labels::ZONE,
    offering_labels::REGION,
    offering_labels::ARCH,
    offering_labels::OS,
];

/// Names of conditions.
pub mod conditions {
    /// Claim: an instance exists.
    pub const LAUNCHED: &str = "Launched";
    /// Claim: its node joined the cluster.
    pub const REGISTERED: &str = "Registered";
    /// Claim: its node is ready and advertises what was promised; pods may use it.
    pub const INITIALIZED: &str = "Initialized";
    /// Claim: no workload pod is on its node or planned for it.
    pub const EMPTY: &str = "Empty";
    /// Claim: it is not what its pool would make now.
    pub const DRIFTED: &str = "Drifted";
    /// Claim: its node has a condition that its pool does not bear for long.
    pub const UNHEALTHY: &str = "Unhealthy";
    /// Claim: its cloud takes the instance back, or says that something else is about to happen to it.
    pub const INTERRUPTED: &str = "Interrupted";
    /// Claim: its node is closed to pods because it will be given back.
    pub const DISRUPTING: &str = "Disrupting";
    /// Claim: its node goes, and no pod is left on it that is waited for.
    pub const DRAINED: &str = "Drained";
    /// Claim: its node goes, and no volume of the work that was there is attached to it any more.
    pub const VOLUMES_DETACHED: &str = "VolumesDetached";
    /// Claim: its instance is being given back.
    pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
    /// Pool or node class: usable, all in all.
    pub const READY: &str = "Ready";
    /// Pool: its spec makes sense.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    /// Pool: its node class exists and can buy.
    pub const NODE_CLASS_READY: &str = "NodeClassReady";
    /// Pool: a limit keeps it from buying what pods need.
    pub const LIMIT_REACHED: &str = "LimitReached";

    /// Every condition of this API.
    pub const ALL: [&str; 15] = [
        LAUNCHED,
        REGISTERED,
        INITIALIZED,
        EMPTY,
        DRIFTED,
        UNHEALTHY,
        INTERRUPTED,
        DISRUPTING,
        DRAINED,
        VOLUMES_DETACHED,
        INSTANCE_TERMINATING,
        READY,
        VALIDATION_SUCCEEDED,
        NODE_CLASS_READY,
        LIMIT_REACHED,
    ];
}

/// Names of the conditions of an EC2NodeClass, beside [`conditions::READY`], which sums them up.
pub mod class_conditions {
    /// At least one subnet was found.
    pub const SUBNETS_READY: &str = "SubnetsReady";
    /// At least one security group was found.
    pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
    /// At least one image was found.
    pub const IMAGES_READY: &str = "ImagesReady";
    /// Nodes have an instance profile with a role.
    pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
    /// The placement group is there; absent where none is asked for.
    pub const PLACEMENT_GROUP_READY: &str = "PlacementGroupReady";
    /// What was asked for as capacity reservations was looked up; absent where none are.
    pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";
    /// The settings of kubelet can be planned with; absent where there are none.
    pub const KUBELET_READY: &str = "KubeletReady";
    /// A launch as a dry run was allowed; else which permission of IAM is missing.
    pub const VALIDATED: &str = "Validated";

    /// All of them.
    pub const ALL: [&str; 8] = [
        SUBNETS_READY,
        SECURITY_GROUPS_READY,
        IMAGES_READY,
        INSTANCE_PROFILE_READY,
        PLACEMENT_GROUP_READY,
        CAPACITY_RESERVATIONS_READY,
        KUBELET_READY,
        VALIDATED,
    ];
}
