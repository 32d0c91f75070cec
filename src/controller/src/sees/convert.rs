//! Conversion between API objects and the model: the intake room does it, this is how the controller asks for it.

use k8s_openapi::api::{
    apps, batch, core::v1 as k8s, policy::v1 as policy, scheduling::v1alpha2 as scheduling,
    storage::v1 as storage,
};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_core::{
    Attachment, Budget, Claim, DaemonSet, Namespace, Node, NodeDrivers, Pod, PodGroup, Pool, Quota, Service,
    StorageClass, Volume, VolumeClaim, Workload,
};

/// A pod.
pub fn pod(object: &k8s::Pod) -> Result<Pod, String> {
    poolwright_intake::pod(object).map_err(|error| error.to_string())
}

/// A namespace.
pub fn namespace(object: &k8s::Namespace) -> Namespace {
    poolwright_intake::namespace(object)
}

/// A node.
pub fn node(object: &k8s::Node) -> Result<Node, String> {
    poolwright_intake::node(object).map_err(|error| error.to_string())
}

/// A claim.
pub fn claim(object: &NodeClaim) -> Result<Claim, String> {
    poolwright_intake::node_claim(object).map_err(|error| error.to_string())
}

/// A pool.
pub fn pool(object: &NodePool) -> Pool {
    poolwright_intake::node_pool(object)
}

/// A DaemonSet.
pub fn daemonset(object: &apps::v1::DaemonSet) -> Result<DaemonSet, String> {
    poolwright_intake::daemonset(object).map_err(|error| error.to_string())
}

/// A PersistentVolumeClaim.
pub fn volume_claim(object: &k8s::PersistentVolumeClaim) -> Result<VolumeClaim, String> {
    poolwright_intake::volume_claim(object).map_err(|error| error.to_string())
}

/// A PersistentVolume.
pub fn volume(object: &k8s::PersistentVolume) -> Result<Volume, String> {
    poolwright_intake::volume(object).map_err(|error| error.to_string())
}

/// A StorageClass.
pub fn storage_class(object: &storage::StorageClass) -> StorageClass {
    poolwright_intake::storage_class(object)
}

/// A volume that is attached to a node.
pub fn attachment(object: &storage::VolumeAttachment) -> Attachment {
    poolwright_intake::attachment(object)
}

/// How many volumes a node takes.
pub fn node_drivers(object: &storage::CSINode) -> NodeDrivers {
    poolwright_intake::node_drivers(object)
}

/// A Job.
pub fn job(object: &batch::v1::Job) -> Workload {
    poolwright_intake::job(object)
}

/// A ReplicaSet.
pub fn replica_set(object: &apps::v1::ReplicaSet) -> Workload {
    poolwright_intake::replica_set(object)
}

/// A StatefulSet.
pub fn stateful_set(object: &apps::v1::StatefulSet) -> Workload {
    poolwright_intake::stateful_set(object)
}

/// A ReplicationController.
pub fn replication_controller(object: &k8s::ReplicationController) -> Workload {
    poolwright_intake::replication_controller(object)
}

/// A Service.
pub fn service(object: &k8s::Service) -> Service {
    poolwright_intake::service(object)
}

/// A ResourceQuota.
pub fn quota(object: &k8s::ResourceQuota) -> Result<Quota, String> {
    poolwright_intake::quota(object).map_err(|error| error.to_string())
}

/// A PodGroup.
pub fn pod_group(object: &scheduling::PodGroup) -> Result<PodGroup, String> {
    poolwright_intake::pod_group(object).map_err(|error| error.to_string())
}

/// A PodDisruptionBudget.
pub fn budget(object: &policy::PodDisruptionBudget) -> Result<Budget, String> {
    poolwright_intake::budget(object).map_err(|error| error.to_string())
}
