//! Keys and names that clusters see: labels, annotations, taints, finalizers, the API group, field managers.
//!
//! Labels that describe an offering have [a module of their own](crate::labels).

/// Domain of every key of Poolwright, and the group of its API.
pub const DOMAIN: &str = "poolwright.dev";

/// API group.
pub const GROUP: &str = DOMAIN;
/// API version.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of every object of this API.
pub const API_VERSION: &str = "poolwright.dev/v1alpha1";

/// Label on NodeClaims and nodes: the NodePool they belong to.
pub const NODEPOOL_LABEL: &str = "poolwright.dev/nodepool";
/// Label on nodes: the NodeClaim they belong to.
pub const NODECLAIM_LABEL: &str = "poolwright.dev/nodeclaim";
/// Label on nodes, `true` once the node has registered.
pub const REGISTERED_LABEL: &str = "poolwright.dev/registered";
/// Label on nodes, `true` once the node is initialized.
pub const INITIALIZED_LABEL: &str = "poolwright.dev/initialized";

/// Annotation on a node whose cordon is Poolwright's and is lifted when its claim is initialized; its value is
/// [`CORDONED_UNTIL_INITIALIZED`].
pub const CORDONED_UNTIL_ANNOTATION: &str = "poolwright.dev/cordoned-until";
/// The value of [`CORDONED_UNTIL_ANNOTATION`].
pub const CORDONED_UNTIL_INITIALIZED: &str = "initialization";

/// Annotation on NodeClaims that Poolwright bought because pods lost the place that an earlier plan gave them. It names these
/// pods.
pub const BOUGHT_AGAIN_ANNOTATION: &str = "poolwright.dev/bought-again";
/// Annotation on NodeClaims: a sentence that says why this node was bought.
pub const REASON_ANNOTATION: &str = "poolwright.dev/reason";
/// Annotation on NodeClaims of one plan that look the same to a cloud, so that one call may launch them all. Its value is the
/// name of their batch, a slash, and the number of claims.
pub const LAUNCH_BATCH_ANNOTATION: &str = "poolwright.dev/launch-batch";

/// Annotation on Namespaces: the most nodes that Poolwright buys for their pods.
pub const LIMIT_NODES_ANNOTATION: &str = "poolwright.dev/limit-nodes";
/// Annotation on Namespaces: the most GPUs for which Poolwright buys nodes for their pods.
pub const LIMIT_GPUS_ANNOTATION: &str = "poolwright.dev/limit-gpus";
/// Annotation on Namespaces: the most that the nodes of their pods may cost, in US dollars per hour.
pub const LIMIT_USD_PER_HOUR_ANNOTATION: &str = "poolwright.dev/limit-usd-per-hour";

/// The duration that the author of a pod expects: `90m`.
pub const EXPECTED_DURATION_ANNOTATION: &str = "poolwright.dev/expected-duration";
/// The time that a pod's work ran before, in pods that it continues: `35h`. For jobs that resume from a checkpoint.
pub const RAN_FOR_ANNOTATION: &str = "poolwright.dev/ran-for";
/// Kueue's label with the name of the queue that a pod waits in.
pub const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// Annotation on pods that Poolwright must not disrupt: `true`, or a duration after their start (`4h`).
pub const DO_NOT_DISRUPT_ANNOTATION: &str = "poolwright.dev/do-not-disrupt";
/// Karpenter's annotation with the same meaning. Poolwright respects it.
pub const KARPENTER_DO_NOT_DISRUPT_ANNOTATION: &str = "karpenter.sh/do-not-disrupt";
/// Key of the taint of new nodes in Karpenter, which only Karpenter removes.
pub const KARPENTER_UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";

/// Key of the taint (`NoExecute`) that a new node has until its claim recognises it. So no pod runs on a node
/// without a claim.
pub const UNREGISTERED_TAINT: &str = "poolwright.dev/unregistered";
/// Key of the taint (`NoSchedule`, the NodeClaim's name as value) on an open node that is reserved for the pods it was bought
/// for. No other pod may take their room.
pub const RESERVED_TAINT: &str = "poolwright.dev/reserved";
/// Key of the taint (`NoSchedule`) on a node that will be terminated.
pub const DISRUPTED_TAINT: &str = "poolwright.dev/disrupted";

/// Key of the taint that Kubernetes puts on a cordoned node.
pub const CORDON_TAINT: &str = "node.kubernetes.io/unschedulable";
/// Key of the taint of a node that is not ready.
pub const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
/// Key of the taint of a node whose kubelet no longer reports.
pub const UNREACHABLE_TAINT: &str = "node.kubernetes.io/unreachable";
/// Key of the taint of a node that is short of disk.
pub const DISK_PRESSURE_TAINT: &str = "node.kubernetes.io/disk-pressure";
/// Key of the taint of a node that is short of memory.
pub const MEMORY_PRESSURE_TAINT: &str = "node.kubernetes.io/memory-pressure";
/// Key of the taint of a node that is short of process ids.
pub const PID_PRESSURE_TAINT: &str = "node.kubernetes.io/pid-pressure";
/// Key of the taint of a node whose network is not set up.
pub const NETWORK_UNAVAILABLE_TAINT: &str = "node.kubernetes.io/network-unavailable";

/// Finalizer on NodeClaims: removed when the provider has confirmed that the instance is gone.
pub const TERMINATION_FINALIZER: &str = "poolwright.dev/termination";

/// Field manager of the controller's writes.
pub const FIELD_MANAGER: &str = "poolwright-controller";
/// Name of the leader's Lease.
pub const LEASE: &str = "poolwright-controller";
/// Annotation on the Lease: the version of the leader.
pub const VERSION_ANNOTATION: &str = "poolwright.dev/version";
/// Annotation on the Lease: the date of the oldest price of what the pools may buy, if the leader's prices have dates.
pub const PRICES_AS_OF_ANNOTATION: &str = "poolwright.dev/prices-as-of";
/// The name under which the controller reports events.
pub const REPORTING_CONTROLLER: &str = "poolwright.dev/controller";
