//! The kinds that are watched.

use jiff::Timestamp;
use k8s_openapi::api::{
    apps, batch, core::v1 as k8s, policy::v1 as policy, scheduling::v1alpha2 as scheduling,
    storage::v1 as storage,
};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_core::index::Change;
use poolwright_core::{
    Attachment, Budget, Claim, ClaimName, DaemonSet, Gang, Namespace, Node, NodeDrivers, Pod, PodGroup,
    ObjectKey, Pool, PoolName, Quota, Service, StorageClass, Volume, VolumeClaim, Workload,
};

use crate::sees::convert;
use crate::sees::drafts;
use crate::sees::watch::Kind;
use crate::sees::world::State;

/// Finished pods take no room and are most of the pods of a cluster that runs jobs: they are not even sent to us.
pub const UNFINISHED_PODS: &str = "status.phase!=Succeeded,status.phase!=Failed";

fn key(namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey::new(namespace.unwrap_or_default(), name)
}

/// Pods.
pub struct Pods;

impl Kind for Pods {
    type Object = k8s::Pod;
    type Model = Pod;
    const NAME: &'static str = "Pod";

    fn convert(object: &k8s::Pod) -> Result<Pod, String> {
        convert::pod(object)
    }
    fn apply(state: &mut State, pod: Pod) -> Change {
        state.index.apply_pod(pod)
    }
    fn delete(state: &mut State, namespace: Option<&str>, name: &str) -> Change {
        state.index.delete_pod(&key(namespace, name))
    }
    fn reset(state: &mut State, pods: Vec<Pod>, _: Timestamp) -> Change {
        state.index.reset_pods(pods)
    }
    fn known(state: &State, namespace: Option<&str>, name: &str) -> Option<Pod> {
        state.index.view().pods.existing(&key(namespace, name)).map(|pod| (**pod).clone())
    }
}

/// Nodes.
pub struct Nodes;

impl Kind for Nodes {
    type Object = k8s::Node;
    type Model = Node;
    const NAME: &'static str = "Node";

    fn convert(object: &k8s::Node) -> Result<Node, String> {
        convert::node(object)
    }
    fn apply(state: &mut State, node: Node) -> Change {
        state.index.apply_node(node)
    }
    fn keep(state: &mut State, node: k8s::Node) {
        state.nodes.keep(drafts::of_node(node));
    }
    fn delete(state: &mut State, _: Option<&str>, name: &str) -> Change {
        state.nodes.forget(name);
        state.index.delete_node(name)
    }
    fn reset(state: &mut State, nodes: Vec<Node>, _: Timestamp) -> Change {
        state.nodes.retain(nodes.iter().map(|node| node.name.as_str()));
        state.index.reset_nodes(nodes)
    }
    fn known(state: &State, _: Option<&str>, name: &str) -> Option<Node> {
        state.index.view().nodes.get(name).map(|node| (**node).clone())
    }
}

/// NodeClaims.
pub struct NodeClaims;

impl Kind for NodeClaims {
    type Object = NodeClaim;
    type Model = Claim;
    const NAME: &'static str = "NodeClaim";

    fn convert(object: &NodeClaim) -> Result<Claim, String> {
        convert::claim(object)
    }
    fn apply(state: &mut State, claim: Claim) -> Change {
        state.index.apply_claim(claim)
    }
    fn keep(state: &mut State, claim: NodeClaim) {
        state.claims.keep(drafts::of_claim(claim));
    }
    fn delete(state: &mut State, _: Option<&str>, name: &str) -> Change {
        state.claims.forget(name);
        state.index.delete_claim(&ClaimName(name.to_owned()))
    }
    fn reset(state: &mut State, claims: Vec<Claim>, now: Timestamp) -> Change {
        state.claims.retain(claims.iter().map(|claim| claim.name.0.as_str()));
        state.index.reset_claims(claims, now)
    }
    fn known(state: &State, _: Option<&str>, name: &str) -> Option<Claim> {
        state.index.view().claims.get(&ClaimName(name.to_owned())).map(|claim| (**claim).clone())
    }
}

/// NodePools.
pub struct NodePools;

impl Kind for NodePools {
    type Object = NodePool;
    type Model = Pool;
    const NAME: &'static str = "NodePool";

    fn convert(object: &NodePool) -> Result<Pool, String> {
        // What is wrong with a pool is part of it, and shows as its condition.
        Ok(convert::pool(object))
    }
    fn apply(state: &mut State, pool: Pool) -> Change {
        state.index.apply_pool(pool)
    }
    fn delete(state: &mut State, _: Option<&str>, name: &str) -> Change {
        state.index.delete_pool(&PoolName(name.to_owned()))
    }
    fn reset(state: &mut State, pools: Vec<Pool>, _: Timestamp) -> Change {
        state.index.reset_pools(pools)
    }
    fn known(state: &State, _: Option<&str>, name: &str) -> Option<Pool> {
        state.index.view().pools.get(&PoolName(name.to_owned())).map(|pool| (**pool).clone())
    }
}

/// DaemonSets.
pub struct DaemonSets;

impl Kind for DaemonSets {
    type Object = apps::v1::DaemonSet;
    type Model = DaemonSet;
    const NAME: &'static str = "DaemonSet";

    fn convert(object: &apps::v1::DaemonSet) -> Result<DaemonSet, String> {
        convert::daemonset(object)
    }
    fn apply(state: &mut State, daemonset: DaemonSet) -> Change {
        state.index.apply_daemonset(daemonset)
    }
    fn delete(state: &mut State, namespace: Option<&str>, name: &str) -> Change {
        state.index.delete_daemonset(&key(namespace, name))
    }
    fn reset(state: &mut State, daemonsets: Vec<DaemonSet>, _: Timestamp) -> Change {
        state.index.reset_daemonsets(daemonsets)
    }
    fn known(state: &State, namespace: Option<&str>, name: &str) -> Option<DaemonSet> {
        state.index.view().daemonsets.get(&key(namespace, name)).map(|one| (**one).clone())
    }
}

/// Namespaces, for the rules of pods that choose by their labels.
pub struct Namespaces;

impl Kind for Namespaces {
    type Object = k8s::Namespace;
    type Model = Namespace;
    const NAME: &'static str = "Namespace";

    fn convert(object: &k8s::Namespace) -> Result<Namespace, String> {
        Ok(convert::namespace(object))
    }
    fn apply(state: &mut State, namespace: Namespace) -> Change {
        state.index.apply_namespace(namespace)
    }
    fn delete(state: &mut State, _: Option<&str>, name: &str) -> Change {
        state.index.delete_namespace(name)
    }
    fn reset(state: &mut State, namespaces: Vec<Namespace>, _: Timestamp) -> Change {
        state.index.reset_namespaces(namespaces)
    }
    fn known(state: &State, _: Option<&str>, name: &str) -> Option<Namespace> {
        let labels = state.index.view().namespaces.get(name)?.clone();
        Some(Namespace { name: name.to_owned(), labels })
    }
}

/// PersistentVolumeClaims.
pub struct VolumeClaims;

impl Kind for VolumeClaims {
    type Object = k8s::PersistentVolumeClaim;
    type Model = VolumeClaim;
    const NAME: &'static str = "PersistentVolumeClaim";

    fn convert(object: &k8s::PersistentVolumeClaim) -> Result<VolumeClaim, String> {
        convert::volume_claim(object)
    }
    fn apply(state: &mut State, claim: VolumeClaim) -> Change {
        state.index.apply_volume_claim(claim)
    }
    fn delete(state: &mut State, namespace: Option<&str>, name: &str) -> Change {
        state.index.delete_volume_claim(&key(namespace, name))
    }
    fn reset(state: &mut State, claims: Vec<VolumeClaim>, _: Timestamp) -> Change {
        state.index.reset_volume_claims(claims)
    }
    fn known(state: &State, namespace: Option<&str>, name: &str) -> Option<VolumeClaim> {
        state.index.view().volume_claims.get(&key(namespace, name)).map(|claim| (**claim).clone())
    }
}

/// PersistentVolumes.
pub struct Volumes;

impl Kind for Volumes {
    type Object = k8s::PersistentVolume;
    type Model = Volume;
    const NAME: &'static str = "PersistentVolume";

    fn convert(object: &k8s::PersistentVolume) -> Result<Volume, String> {
        convert::volume(object)
    }
    fn apply(state: &mut State, volume: Volume) -> Change {
        state.index.apply_volume(volume)
    }
    fn delete(state: &mut State, _: Option<&str>, name: &str) -> Change {
        state.index.delete_volume(name)
    }
    fn reset(state: &mut State, volumes: Vec<Volume>, _: Timestamp) -> Change {
        state.index.reset_volumes(volumes)
    }
    fn known(state: &State, _: Option<&str>, name: &str) -> Option<Volume> {
        state.index.view().volumes.get(name).map(|volume| (**volume).clone())
    }
}

/// StorageClasses.
pub struct StorageClasses;

impl Kind for StorageClasses {
    type Object = storage::StorageClass;
    type Model = StorageClass;
    const NAME: &'static str = "StorageClass";

    fn convert(object: &storage::StorageClass) -> Result<StorageClass, String> {
        Ok(convert::storage_class(object))
    }
    fn apply(state: &mut State, class: StorageClass) -> Change {
        state.index.apply_storage_class(class)
    }
    fn delete(state: &mut State, _: Option<&str>, name: &str) -> Change {
        state.index.delete_storage_class(name)
    }
    fn reset(state: &mut State, classes: Vec<StorageClass>, _: Timestamp) -> Change {
        state.index.reset_storage_classes(classes)
    }
    fn known(state: &State, _: Option<&str>, name: &str) -> Option<StorageClass> {
        state.index.view().storage_classes.get(name).map(|class| (**class).clone())
    }
}

/// VolumeAttachments: what is attached to which node.
pub struct Attachments;

impl Kind for Attachments {
    type Object = storage::VolumeAttachment;
    type Model = Attachment;
    const NAME: &'static str = "VolumeAttachment";

    fn convert(object: &storage::VolumeAttachment) -> Result<Attachment, String> {
        Ok(convert::attachment(object))
    }
    fn apply(state: &mut State, attachment: Attachment) -> Change {
        state.index.apply_attachment(attachment)
    }
    fn delete(state: &mut State, _: Option<&str>, name: &str) -> Change {
        state.index.delete_attachment(name)
    }
    fn reset(state: &mut State, attachments: Vec<Attachment>, _: Timestamp) -> Change {
        state.index.reset_attachments(attachments)
    }
    fn known(state: &State, _: Option<&str>, name: &str) -> Option<Attachment> {
        state.index.view().attachments.get(name).map(|attachment| (**attachment).clone())
    }
}

/// CSINodes: how many volumes nodes take.
pub struct CsiNodes;

impl Kind for CsiNodes {
    type Object = storage::CSINode;
    type Model = NodeDrivers;
    const NAME: &'static str = "CSINode";

    fn convert(object: &storage::CSINode) -> Result<NodeDrivers, String> {
        Ok(convert::node_drivers(object))
    }
    fn apply(state: &mut State, drivers: NodeDrivers) -> Change {
        state.index.apply_node_drivers(drivers)
    }
    fn delete(state: &mut State, _: Option<&str>, name: &str) -> Change {
        state.index.delete_node_drivers(name)
    }
    fn reset(state: &mut State, all: Vec<NodeDrivers>, _: Timestamp) -> Change {
        state.index.reset_all_node_drivers(all)
    }
    fn known(state: &State, _: Option<&str>, name: &str) -> Option<NodeDrivers> {
        state.index.view().node_drivers.get(name).map(|drivers| (**drivers).clone())
    }
}

/// Controllers of pods of one kind: how many pods they are about to make.
macro_rules! workloads {
    ($(#[$about:meta])* $kinds:ident, $object:ty, $name:literal, $convert:path) => {
        $(#[$about])*
        pub struct $kinds;

        impl Kind for $kinds {
            type Object = $object;
            type Model = Workload;
            const NAME: &'static str = $name;

            fn convert(object: &$object) -> Result<Workload, String> {
                Ok($convert(object))
            }
            fn apply(state: &mut State, workload: Workload) -> Change {
                state.index.apply_workload(workload)
            }
            fn delete(state: &mut State, namespace: Option<&str>, name: &str) -> Change {
                state.index.delete_workload(Self::NAME, &key(namespace, name))
            }
            fn reset(state: &mut State, workloads: Vec<Workload>, _: Timestamp) -> Change {
                state.index.reset_workloads(Self::NAME, workloads)
            }
            fn known(state: &State, namespace: Option<&str>, name: &str) -> Option<Workload> {
                let key = (Self::NAME.to_owned(), key(namespace, name));
                state.index.view().workloads.get(&key).map(|workload| (**workload).clone())
            }
        }
    };
}

workloads!(
    /// Jobs: how many pods they are about to make.
    Jobs, batch::v1::Job, "Job", convert::job
);
workloads!(
    /// ReplicaSets: how many pods they are about to make.
    ReplicaSets, apps::v1::ReplicaSet, "ReplicaSet", convert::replica_set
);
workloads!(
    /// StatefulSets: how many pods they are about to make.
    StatefulSets, apps::v1::StatefulSet, "StatefulSet", convert::stateful_set
);

workloads!(
    /// ReplicationControllers: what their pods are like. Watched where a scheduler spreads pods by default.
    ReplicationControllers,
    k8s::ReplicationController,
    "ReplicationController",
    convert::replication_controller
);

/// Services: what their pods are like. Watched where a scheduler spreads pods by default.
pub struct Services;

impl Kind for Services {
    type Object = k8s::Service;
    type Model = Service;
    const NAME: &'static str = "Service";

    fn convert(object: &k8s::Service) -> Result<Service, String> {
        Ok(convert::service(object))
    }
    fn apply(state: &mut State, service: Service) -> Change {
        state.index.apply_service(service)
    }
    fn delete(state: &mut State, namespace: Option<&str>, name: &str) -> Change {
        state.index.delete_service(&key(namespace, name))
    }
    fn reset(state: &mut State, all: Vec<Service>, _: Timestamp) -> Change {
        state.index.reset_services(all)
    }
    fn known(state: &State, namespace: Option<&str>, name: &str) -> Option<Service> {
        state.index.view().services.get(&key(namespace, name)).map(|service| (**service).clone())
    }
}

/// ResourceQuotas: how many pods controllers can make.
pub struct Quotas;

impl Kind for Quotas {
    type Object = k8s::ResourceQuota;
    type Model = Quota;
    const NAME: &'static str = "ResourceQuota";

    fn convert(object: &k8s::ResourceQuota) -> Result<Quota, String> {
        convert::quota(object)
    }
    fn apply(state: &mut State, quota: Quota) -> Change {
        state.index.apply_quota(quota)
    }
    fn delete(state: &mut State, namespace: Option<&str>, name: &str) -> Change {
        state.index.delete_quota(&key(namespace, name))
    }
    fn reset(state: &mut State, quotas: Vec<Quota>, _: Timestamp) -> Change {
        state.index.reset_quotas(quotas)
    }
    fn known(state: &State, namespace: Option<&str>, name: &str) -> Option<Quota> {
        state.index.view().quotas.get(&key(namespace, name)).map(|quota| (**quota).clone())
    }
}

/// PodDisruptionBudgets: those that can never be met are told of.
pub struct Budgets;

impl Kind for Budgets {
    type Object = policy::PodDisruptionBudget;
    type Model = Budget;
    const NAME: &'static str = "PodDisruptionBudget";
    const REQUIRED: bool = false;

    fn convert(object: &policy::PodDisruptionBudget) -> Result<Budget, String> {
        convert::budget(object)
    }
    fn apply(state: &mut State, budget: Budget) -> Change {
        state.index.apply_budget(budget)
    }
    fn delete(state: &mut State, namespace: Option<&str>, name: &str) -> Change {
        state.index.delete_budget(&key(namespace, name))
    }
    fn reset(state: &mut State, budgets: Vec<Budget>, _: Timestamp) -> Change {
        state.index.reset_budgets(budgets)
    }
    fn known(state: &State, namespace: Option<&str>, name: &str) -> Option<Budget> {
        state.index.view().budgets.get(&key(namespace, name)).map(|budget| (**budget).clone())
    }
}

/// PodGroups: which pods the scheduler places together. Not every cluster has the kind.
pub struct PodGroups;

impl Kind for PodGroups {
    type Object = scheduling::PodGroup;
    type Model = PodGroup;
    const NAME: &'static str = "PodGroup";
    const REQUIRED: bool = false;

    fn convert(object: &scheduling::PodGroup) -> Result<PodGroup, String> {
        convert::pod_group(object)
    }
    fn apply(state: &mut State, group: PodGroup) -> Change {
        state.index.apply_pod_group(group)
    }
    fn delete(state: &mut State, namespace: Option<&str>, name: &str) -> Change {
        state.index.delete_pod_group(&key(namespace, name))
    }
    fn reset(state: &mut State, groups: Vec<PodGroup>, _: Timestamp) -> Change {
        state.index.reset_pod_groups(groups)
    }
    fn known(state: &State, namespace: Option<&str>, name: &str) -> Option<PodGroup> {
        state.index.view().pod_groups.get(&key(namespace, name)).map(|group| (**group).clone())
    }
}

/// Gangs of one kind: what pods their controllers are about to make. Not every cluster has the kind.
macro_rules! gangs {
    ($(#[$about:meta])* $kinds:ident, $object:ty, $name:literal, $convert:path) => {
        $(#[$about])*
        pub struct $kinds;

        impl Kind for $kinds {
            type Object = $object;
            type Model = Gang;
            const NAME: &'static str = $name;
            const REQUIRED: bool = false;

            fn convert(object: &$object) -> Result<Gang, String> {
                $convert(object).map_err(|error| error.to_string())
            }
            fn apply(state: &mut State, gang: Gang) -> Change {
                state.index.apply_gang(gang)
            }
            fn delete(state: &mut State, namespace: Option<&str>, name: &str) -> Change {
                state.index.delete_gang(Self::NAME, &key(namespace, name))
            }
            fn reset(state: &mut State, gangs: Vec<Gang>, _: Timestamp) -> Change {
                state.index.reset_gangs(Self::NAME, gangs)
            }
            fn known(state: &State, namespace: Option<&str>, name: &str) -> Option<Gang> {
                let key = (Self::NAME.to_owned(), key(namespace, name));
                state.index.view().gangs.get(&key).map(|gang| (**gang).clone())
            }
        }
    };
}

gangs!(
    /// JobSets: which Jobs they are about to make.
    JobSets, poolwright_intake::JobSet, "JobSet", poolwright_intake::job_set
);
gangs!(
    /// LeaderWorkerSets: which StatefulSets they are about to make.
    LeaderWorkerSets,
    poolwright_intake::LeaderWorkerSet,
    "LeaderWorkerSet",
    poolwright_intake::leader_worker_set
);
