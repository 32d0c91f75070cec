//! Keys and names in the Kubernetes API: labels, annotations, taints, finalizers, the API group, field managers.
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

/// Annotation on a node that Poolwright has cordoned until its claim is initialized; its value is [`GATE_UNTIL_INITIALIZED`].
pub const GATE_ANNOTATION: &str = "poolwright.dev/cordoned-until";
/// The value of [`GATE_ANNOTATION`].
pub const GATE_UNTIL_INITIALIZED: &str = "initialization";

/// Annotation on NodeClaims that were bought because pods lost an earlier place: those pods.
pub const BOUGHT_AGAIN_ANNOTATION: &str = "poolwright.dev/bought-again";
/// Annotation on NodeClaims: why the node was bought, in a sentence.
pub const REASON_ANNOTATION: &str = "poolwright.dev/reason";
/// Annotation on NodeClaims that are launched in one call: the id of the batch, a slash, and the number of claims.
pub const LAUNCH_BATCH_ANNOTATION: &str = "poolwright.dev/launch-batch";

/// Annotation on pods, nodes, NodeClaims and NodePools that must not be disrupted: `true`, or how long after the start (`4h`).
pub const DO_NOT_DISRUPT_ANNOTATION: &str = "poolwright.dev/do-not-disrupt";
/// Karpenter's equivalent. Poolwright honors it.
pub const KARPENTER_DO_NOT_DISRUPT_ANNOTATION: &str = "karpenter.sh/do-not-disrupt";

/// Key of the taint (`NoExecute`) on a new node until it is registered, so that no pods run on a node without a claim.
pub const UNREGISTERED_TAINT: &str = "poolwright.dev/unregistered";
/// Key of the taint (`NoSchedule`, value: the NodeClaim's name) on an open node that is reserved for the pods it was bought
/// for.
pub const RESERVED_TAINT: &str = "poolwright.dev/reserved";
/// Key of the taint (`NoSchedule`) on a node that will be terminated.
pub const DISRUPTED_TAINT: &str = "poolwright.dev/disrupted";

/// Key of the taint that Kubernetes puts on a cordoned node.
pub const CORDON_TAINT: &str = "node.kubernetes.io/unschedulable";
/// Key of the taint of a node that is not ready.
pub const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
/// Key of the taint of a node whose kubelet does not respond.
pub const UNREACHABLE_TAINT: &str = "node.kubernetes.io/unreachable";
/// Key of the taint of a node that is short of disk.
pub const DISK_PRESSURE_TAINT: &str = "node.kubernetes.io/disk-pressure";
/// Key of the taint of a node that is short of memory.
pub const MEMORY_PRESSURE_TAINT: &str = "node.kubernetes.io/memory-pressure";
/// Key of the taint of a node that is short of process ids.
pub const PID_PRESSURE_TAINT: &str = "node.kubernetes.io/pid-pressure";
/// Key of the taint of a node whose network is not set up.
pub const NETWORK_UNAVAILABLE_TAINT: &str = "node.kubernetes.io/network-unavailable";

/// Finalizer on NodeClaims: removed after the provider confirms that the instance is terminated.
pub const TERMINATION_FINALIZER: &str = "poolwright.dev/termination";

/// Field manager of the controller's writes.
pub const FIELD_MANAGER: &str = "poolwright-controller";
/// Name of the leader's Lease.
pub const LEASE: &str = "poolwright-controller";
/// Reporting controller of events.
pub const REPORTING_CONTROLLER: &str = "poolwright.dev/controller";
