//! The watched kinds of objects, each declared once.
//!
//! A row of [`watched!`] declares a kind completely: its watch, its name in messages and metrics, and whether readiness waits
//! for it. Its permissions are in the ClusterRole, and a test compares the two.

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1 as apps, batch::v1 as batch, core::v1 as k8s, node::v1::RuntimeClass, policy::v1 as policy,
    scheduling::v1::PriorityClass, scheduling::v1alpha2 as scheduling, storage::v1 as storage,
};
use poolwright_core::index::Change;
use poolwright_core::{
    Attachment, Claim, ClaimName, DaemonSet, Gang, GangScheduler, Namespace, Node, NodeDrivers, ObjectKey,
    Pod, PodDisruptionBudget, PodGroup, Pool, PoolName, Quota, Service, Snapshot, StorageClass, Volume,
    VolumeClaim, Workload,
};
use poolwright_intake as intake;

use super::ObserverContext;
use super::last_seen;
use super::watch::{self, Kind, Need};
use super::world::State;

/// The name of an object.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// Its namespace, if it has one.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
    /// How the object went; `None` if it exists.
    pub gone: Option<Gone>,
}

/// How an object left its watch.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    /// When.
    pub at: Timestamp,
    /// Whether it was deleted. Otherwise it only stopped to match the watch, such as a pod that has finished.
    pub deleted: bool,
}

impl Key<'_> {
    fn namespaced(self) -> ObjectKey {
        ObjectKey::new(self.namespace.unwrap_or_default(), self.name)
    }

    fn claim(self) -> ClaimName {
        ClaimName(self.name.to_owned())
    }

    fn pool(self) -> PoolName {
        PoolName(self.name.to_owned())
    }

    fn group_of(self, scheduler: GangScheduler) -> ObjectKey {
        ObjectKey::new(self.namespace.unwrap_or_default(), scheduler.model_name(self.name))
    }

    fn of(self, kind: &str) -> (String, ObjectKey) {
        (kind.to_owned(), self.namespaced())
    }
}

/// A watched kind.
#[derive(Clone, Copy)]
pub struct Watched {
    /// Its name in messages and metrics.
    pub name: &'static str,
    /// What it is needed for.
    pub need: Need,
    /// Its API group and plural name.
    #[cfg(test)]
    resource: fn() -> (String, String),
    /// Starts the watch.
    pub start: fn(ObserverContext) -> BoxFuture<'static, ()>,
}

/// Returns the kinds that this controller watches. Some are needed only if a scheduler has default spread constraints.
pub fn watched(spreads_pods: bool) -> impl Iterator<Item = &'static Watched> {
    ALL.iter().filter(move |kind| spreads_pods || kind.need != Need::ToSpreadPods)
}

/// Wraps a conversion that cannot fail.
fn always<O, M>(read: impl Fn(&O) -> M) -> impl Fn(&O) -> Result<M, String> {
    move |object| Ok(read(object))
}

/// Wraps a conversion that may fail.
fn checked<O, M, E: ToString>(read: impl Fn(&O) -> Result<M, E>) -> impl Fn(&O) -> Result<M, String> {
    move |object| read(object).map_err(|error| error.to_string())
}

/// Declares kinds: API type, model type, what the kind is needed for, and how objects get into the index.
macro_rules! watched {
    ($(
        $(#[$about:meta])*
        $kind:ident ($name:literal): $object:ty => $model:ty {
            need: $need:expr,
            $(fields: $fields:literal,)?
            read: $read:expr,
            $(keep: $keep:expr,)?
            $(learn: $learn:expr,)?
            $(ignored: $ignored:expr,)?
            apply: $apply:expr,
            delete: $delete:expr,
            reset: $reset:expr,
            known: $known:expr,
        }
    )*) => {
        $(
            $(#[$about])*
            pub struct $kind;

            impl Kind for $kind {
                type Object = $object;
                type Model = $model;
                const NAME: &'static str = $name;
                const NEED: Need = $need;
                $(const FIELDS: Option<&'static str> = Some($fields);)?

                fn read(object: &$object) -> Result<$model, String> {
                    $read(object)
                }
                $(fn keep(state: &mut State, object: $object) {
                    let keep: fn(&mut State, $object) = $keep;
                    keep(state, object);
                })?
                $(fn learn(state: &mut State, model: &$model, now: Timestamp) {
                    let learn: fn(&mut State, &$model, Timestamp) = $learn;
                    learn(state, model, now);
                })?
                $(fn ignored(object: &$object) -> Option<String> {
                    $ignored(object)
                })?
                fn apply(state: &mut State, model: $model) -> Change {
                    let apply: fn(&mut State, $model) -> Change = $apply;
                    apply(state, model)
                }
                fn delete(state: &mut State, key: Key<'_>) -> Change {
                    let delete: fn(&mut State, Key<'_>) -> Change = $delete;
                    delete(state, key)
                }
                fn reset(state: &mut State, models: Vec<$model>, now: Timestamp) -> Change {
                    let reset: fn(&mut State, Vec<$model>, Timestamp) -> Change = $reset;
                    reset(state, models, now)
                }
                fn known(known: &Snapshot, key: Key<'_>) -> Option<$model> {
                    let find: fn(&Snapshot, Key<'_>) -> Option<$model> = $known;
                    find(known, key)
                }
            }
        )*

        /// All kinds, in the order in which their watches start.
        pub const ALL: &[Watched] = &[$(
            Watched {
                name: $name,
                need: $need,
                #[cfg(test)]
                resource: || {
                    let resource = kube::api::ApiResource::erase::<$object>(&());
                    (resource.group, resource.plural)
                },
                start: |observers| watch::run::<$kind>(observers).boxed(),
            },
        )*];
    };
}

watched! {
    /// Pods, without finished ones, which use no resources and are most of the pods in a cluster that runs jobs.
    Pods("Pod"): k8s::Pod => Pod {
        need: Need::ToDecide,
        fields: "status.phase!=Succeeded,status.phase!=Failed",
        read: checked(intake::pod),
        learn: |state, pod, now| state.index.learn_arrival(pod, now),
        ignored: intake::ignored_in_pod,
        apply: |state, pod| state.index.apply_pod(pod),
        delete: |state, key| {
            if let Some(gone) = key.gone {
                state.index.learn_end(&key.namespaced(), !gone.deleted, gone.at);
                state.index.learn_departure(&key.namespaced(), gone.at);
            }
            state.index.delete_pod(&key.namespaced())
        },
        reset: |state, all, _| state.index.reset_pods(all),
        known: |all, key| all.pods.existing(&key.namespaced()).map(|one| (**one).clone()),
    }

    /// Nodes.
    Nodes("Node"): k8s::Node => Node {
        need: Need::ToDecide,
        read: checked(intake::node),
        keep: |state, node| state.nodes.keep(last_seen::of_node(node)),
        apply: |state, node| state.index.apply_node(node),
        delete: |state, key| {
            state.nodes.forget(key.name);
            state.index.delete_node(key.name)
        },
        reset: |state, all, _| {
            state.nodes.retain(all.iter().map(|node| node.name.as_str()));
            state.index.reset_nodes(all)
        },
        known: |all, key| all.nodes.get(key.name).map(|one| (**one).clone()),
    }

    /// Namespaces, for namespace selectors of pods, for the limits of namespaces, and for what they add to their pods.
    Namespaces("Namespace"): k8s::Namespace => Namespace {
        need: Need::ToDecide,
        read: always(intake::namespace),
        keep: |state, namespace| state.templates.keep_namespace(namespace),
        ignored: intake::ignored_in_namespace,
        apply: |state, namespace| state.apply_namespace(namespace),
        delete: |state, key| state.delete_namespace(key.name),
        reset: |state, all, _| state.reset_namespaces(all),
        known: |all, key| all.namespace(key.name),
    }

    /// NodeClaims.
    NodeClaims("NodeClaim"): poolwright_api::NodeClaim => Claim {
        need: Need::ToDecide,
        read: checked(intake::node_claim),
        keep: |state, claim| state.claims.keep(last_seen::of_claim(claim)),
        apply: |state, claim| state.index.apply_claim(claim),
        delete: |state, key| {
            state.claims.forget(key.name);
            state.index.delete_claim(&key.claim())
        },
        reset: |state, all, now| {
            state.claims.retain(all.iter().map(|claim| claim.name.0.as_str()));
            state.index.reset_claims(all, now)
        },
        known: |all, key| all.claims.get(&key.claim()).map(|one| (**one).clone()),
    }

    /// NodePools. Errors in a pool are part of the model, and appear as its condition.
    NodePools("NodePool"): poolwright_api::NodePool => Pool {
        need: Need::ToDecide,
        read: always(intake::node_pool),
        apply: |state, pool| state.index.apply_pool(pool),
        delete: |state, key| state.index.delete_pool(&key.pool()),
        reset: |state, all, _| state.index.reset_pools(all),
        known: |all, key| all.pools.get(&key.pool()).map(|one| (**one).clone()),
    }

    /// DaemonSets.
    DaemonSets("DaemonSet"): apps::DaemonSet => DaemonSet {
        need: Need::ToDecide,
        read: checked(intake::daemonset),
        keep: |state, set| state.templates.keep_daemonset(set),
        apply: |state, set| {
            let set = state.templates.daemonset(set);
            state.index.apply_daemonset(set)
        },
        delete: |state, key| {
            state.templates.forget(Self::NAME, &key.namespaced());
            state.index.delete_daemonset(&key.namespaced())
        },
        reset: |state, all, _| {
            state.templates.retain(Self::NAME, all.iter().map(|set| &set.key));
            let all: Vec<_> = all.into_iter().map(|set| state.templates.daemonset(set)).collect();
            state.index.reset_daemonsets(all)
        },
        known: |all, key| all.daemonsets.get(&key.namespaced()).map(|one| (**one).clone()),
    }

    /// PersistentVolumeClaims.
    VolumeClaims("PersistentVolumeClaim"): k8s::PersistentVolumeClaim => VolumeClaim {
        need: Need::ToDecide,
        read: checked(intake::volume_claim),
        apply: |state, claim| state.index.apply_volume_claim(claim),
        delete: |state, key| state.index.delete_volume_claim(&key.namespaced()),
        reset: |state, all, _| state.index.reset_volume_claims(all),
        known: |all, key| all.volume_claims.get(&key.namespaced()).map(|one| (**one).clone()),
    }

    /// PersistentVolumes.
    Volumes("PersistentVolume"): k8s::PersistentVolume => Volume {
        need: Need::ToDecide,
        read: checked(intake::volume),
        apply: |state, volume| state.index.apply_volume(volume),
        delete: |state, key| state.index.delete_volume(key.name),
        reset: |state, all, _| state.index.reset_volumes(all),
        known: |all, key| all.volumes.get(key.name).map(|one| (**one).clone()),
    }

    /// StorageClasses.
    StorageClasses("StorageClass"): storage::StorageClass => StorageClass {
        need: Need::ToDecide,
        read: always(intake::storage_class),
        apply: |state, class| state.index.apply_storage_class(class),
        delete: |state, key| state.index.delete_storage_class(key.name),
        reset: |state, all, _| state.index.reset_storage_classes(all),
        known: |all, key| all.storage_classes.get(key.name).map(|one| (**one).clone()),
    }

    /// CSINodes: volume limits of nodes.
    CsiNodes("CSINode"): storage::CSINode => NodeDrivers {
        need: Need::ToDecide,
        read: always(intake::node_drivers),
        apply: |state, drivers| state.index.apply_node_drivers(drivers),
        delete: |state, key| state.index.delete_node_drivers(key.name),
        reset: |state, all, _| state.index.reset_all_node_drivers(all),
        known: |all, key| all.node_drivers.get(key.name).map(|one| (**one).clone()),
    }

    /// VolumeAttachments: which volumes are attached to which node.
    Attachments("VolumeAttachment"): storage::VolumeAttachment => Attachment {
        need: Need::ToDecide,
        read: always(intake::attachment),
        apply: |state, attachment| state.index.apply_attachment(attachment),
        delete: |state, key| state.index.delete_attachment(key.name),
        reset: |state, all, _| state.index.reset_attachments(all),
        known: |all, key| all.attachments.get(key.name).map(|one| (**one).clone()),
    }

    /// Jobs, for expected pods.
    Jobs("Job"): batch::Job => Workload {
        need: Need::ToDecide,
        read: always(intake::job),
        apply: |state, job| state.index.apply_workload(job),
        delete: |state, key| state.index.delete_workload(Self::NAME, &key.namespaced()),
        reset: |state, all, _| state.index.reset_workloads(Self::NAME, all),
        known: |all, key| all.workloads.get(&key.of(Self::NAME)).map(|one| (**one).clone()),
    }

    /// ReplicaSets, for expected pods.
    ReplicaSets("ReplicaSet"): apps::ReplicaSet => Workload {
        need: Need::ToDecide,
        read: always(intake::replica_set),
        apply: |state, set| state.index.apply_workload(set),
        delete: |state, key| state.index.delete_workload(Self::NAME, &key.namespaced()),
        reset: |state, all, _| state.index.reset_workloads(Self::NAME, all),
        known: |all, key| all.workloads.get(&key.of(Self::NAME)).map(|one| (**one).clone()),
    }

    /// StatefulSets, for expected pods.
    StatefulSets("StatefulSet"): apps::StatefulSet => Workload {
        need: Need::ToDecide,
        read: always(intake::stateful_set),
        apply: |state, set| state.index.apply_workload(set),
        delete: |state, key| state.index.delete_workload(Self::NAME, &key.namespaced()),
        reset: |state, all, _| state.index.reset_workloads(Self::NAME, all),
        known: |all, key| all.workloads.get(&key.of(Self::NAME)).map(|one| (**one).clone()),
    }

    /// ResourceQuotas: how many pods controllers can create.
    Quotas("ResourceQuota"): k8s::ResourceQuota => Quota {
        need: Need::ToDecide,
        read: checked(intake::quota),
        apply: |state, quota| state.index.apply_quota(quota),
        delete: |state, key| state.index.delete_quota(&key.namespaced()),
        reset: |state, all, _| state.index.reset_quotas(all),
        known: |all, key| all.quotas.get(&key.namespaced()).map(|one| (**one).clone()),
    }

    /// LimitRanges: the default requests of pods that do not exist yet.
    LimitRanges("LimitRange"): k8s::LimitRange => k8s::LimitRange {
        need: Need::ToAdmit,
        read: |range: &k8s::LimitRange| {
            let checked = intake::Admission::default().add_limit_range(range);
            let told = |one: poolwright_api::FieldProblem| format!("{}: {}", one.path, one.cause);
            let told = |all: Vec<_>| all.into_iter().map(told).collect::<Vec<_>>().join("; ");
            checked.map(|()| range.clone()).map_err(told)
        },
        apply: |state, range| state.apply_limit_range(range),
        delete: |state, key| state.delete_limit_range(&key.namespaced()),
        reset: |state, all, _| state.reset_limit_ranges(all),
        known: |_, _| None,
    }

    /// RuntimeClasses: the overhead of pods that do not exist yet.
    RuntimeClasses("RuntimeClass"): RuntimeClass => RuntimeClass {
        need: Need::ToAdmit,
        read: always(RuntimeClass::clone),
        apply: |state, class| state.apply_runtime_class(class),
        delete: |state, key| state.delete_runtime_class(key.name),
        reset: |state, all, _| state.reset_runtime_classes(all),
        known: |_, _| None,
    }

    /// PriorityClasses: the priority of pods that do not exist yet.
    PriorityClasses("PriorityClass"): PriorityClass => PriorityClass {
        need: Need::ToAdmit,
        read: always(PriorityClass::clone),
        apply: |state, class| state.apply_priority_class(class),
        delete: |state, key| state.delete_priority_class(key.name),
        reset: |state, all, _| state.reset_priority_classes(all),
        known: |_, _| None,
    }

    /// PodDisruptionBudgets.
    Budgets("PodDisruptionBudget"): policy::PodDisruptionBudget => PodDisruptionBudget {
        need: Need::ToMovePods,
        read: checked(intake::budget),
        apply: |state, budget| state.index.apply_budget(budget),
        delete: |state, key| state.index.delete_budget(&key.namespaced()),
        reset: |state, all, _| state.index.reset_budgets(all),
        known: |all, key| all.budgets.get(&key.namespaced()).map(|one| (**one).clone()),
    }

    /// Services, for default spread constraints.
    Services("Service"): k8s::Service => Service {
        need: Need::ToSpreadPods,
        read: always(intake::service),
        apply: |state, service| state.index.apply_service(service),
        delete: |state, key| state.index.delete_service(&key.namespaced()),
        reset: |state, all, _| state.index.reset_services(all),
        known: |all, key| all.services.get(&key.namespaced()).map(|one| (**one).clone()),
    }

    /// ReplicationControllers, for default spread constraints.
    ReplicationControllers("ReplicationController"): k8s::ReplicationController => Workload {
        need: Need::ToSpreadPods,
        read: always(intake::replication_controller),
        apply: |state, controller| state.index.apply_workload(controller),
        delete: |state, key| state.index.delete_workload(Self::NAME, &key.namespaced()),
        reset: |state, all, _| state.index.reset_workloads(Self::NAME, all),
        known: |all, key| all.workloads.get(&key.of(Self::NAME)).map(|one| (**one).clone()),
    }

    /// JobSets, for expected pods.
    JobSets("JobSet"): intake::JobSet => Gang {
        need: Need::WhenInstalled,
        read: checked(intake::job_set),
        keep: |state, set| state.templates.keep_job_set(set),
        apply: |state, set| {
            let set = state.templates.gang(set);
            state.index.apply_gang(set)
        },
        delete: |state, key| {
            state.templates.forget(Self::NAME, &key.namespaced());
            state.index.delete_gang(Self::NAME, &key.namespaced())
        },
        reset: |state, all, _| {
            state.templates.retain(Self::NAME, all.iter().map(|set| &set.key));
            let all: Vec<_> = all.into_iter().map(|set| state.templates.gang(set)).collect();
            state.index.reset_gangs(Self::NAME, all)
        },
        known: |all, key| all.gangs.get(&key.of(Self::NAME)).map(|one| (**one).clone()),
    }

    /// LeaderWorkerSets, for expected pods.
    LeaderWorkerSets("LeaderWorkerSet"): intake::LeaderWorkerSet => Gang {
        need: Need::WhenInstalled,
        read: checked(intake::leader_worker_set),
        keep: |state, set| state.templates.keep_leader_worker_set(set),
        apply: |state, set| {
            let set = state.templates.gang(set);
            state.index.apply_gang(set)
        },
        delete: |state, key| {
            state.templates.forget(Self::NAME, &key.namespaced());
            state.index.delete_gang(Self::NAME, &key.namespaced())
        },
        reset: |state, all, _| {
            state.templates.retain(Self::NAME, all.iter().map(|set| &set.key));
            let all: Vec<_> = all.into_iter().map(|set| state.templates.gang(set)).collect();
            state.index.reset_gangs(Self::NAME, all)
        },
        known: |all, key| all.gangs.get(&key.of(Self::NAME)).map(|one| (**one).clone()),
    }

    /// PodGroups, for gangs.
    PodGroups("PodGroup"): scheduling::PodGroup => PodGroup {
        need: Need::WhenInstalled,
        read: checked(intake::pod_group),
        apply: |state, group| state.index.apply_pod_group(group),
        delete: |state, key| state.index.delete_pod_group(&key.namespaced()),
        reset: |state, all, _| state.index.reset_pod_groups(None, all),
        known: |all, key| all.pod_groups.get(&key.namespaced()).map(|one| (**one).clone()),
    }

    /// PodGroups of Volcano, for gangs.
    VolcanoPodGroups("PodGroup.scheduling.volcano.sh"): intake::VolcanoPodGroup => PodGroup {
        need: Need::WhenInstalled,
        read: always(intake::volcano_pod_group),
        apply: |state, group| state.index.apply_pod_group(group),
        delete: |state, key| state.index.delete_pod_group(&key.group_of(GangScheduler::Volcano)),
        reset: |state, all, _| state.index.reset_pod_groups(Some(GangScheduler::Volcano), all),
        known: |all, key| {
            all.pod_groups.get(&key.group_of(GangScheduler::Volcano)).map(|one| (**one).clone())
        },
    }

    /// PodGroups of the plugin coscheduling, for gangs.
    CoschedulingPodGroups("PodGroup.scheduling.x-k8s.io"): intake::CoschedulingPodGroup => PodGroup {
        need: Need::WhenInstalled,
        read: always(intake::coscheduling_pod_group),
        apply: |state, group| state.index.apply_pod_group(group),
        delete: |state, key| state.index.delete_pod_group(&key.group_of(GangScheduler::Coscheduling)),
        reset: |state, all, _| state.index.reset_pod_groups(Some(GangScheduler::Coscheduling), all),
        known: |all, key| {
            all.pod_groups.get(&key.group_of(GangScheduler::Coscheduling)).map(|one| (**one).clone())
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
    use poolwright_core::batch::BatchWindow;
    use poolwright_core::setbacks::Setbacks;
    use serde_json::json;

    use super::*;
    use crate::edge::clock::testing::TestClock;
    use crate::observed::world::World;

    #[test]
    fn the_cluster_role_lets_every_kind_be_listed_and_watched() {
        let text = include_str!("../../../../deploy/rbac.yaml");
        let role = text.split("\n---").next().expect("the first document");
        let role: ClusterRole = serde_saphyr::from_str(role).expect("a ClusterRole");
        let rules = role.rules.expect("its rules");
        for kind in ALL {
            let (group, plural) = (kind.resource)();
            let allows = |rule: &PolicyRule, verb: &str| {
                rule.api_groups.iter().flatten().any(|one| *one == group)
                    && rule.resources.iter().flatten().any(|one| *one == plural)
                    && rule.verbs.iter().any(|one| one == verb)
            };
            for verb in ["list", "watch"] {
                let is_allowed = rules.iter().any(|rule| allows(rule, verb));
                assert!(
                    is_allowed,
                    "deploy/rbac.yaml does not allow to {verb} {plural} of the group {group:?}"
                );
            }
        }
    }

    #[test]
    fn a_daemonset_counts_with_the_defaults_of_a_limit_range_whichever_arrives_first() {
        let set = json!({"metadata": {"name": "agent", "namespace": "kube-system"}, "spec": {"selector": {},
            "template": {"spec": {"containers": [{"name": "agent", "image": "agent"}]}}}});
        let range = json!({"metadata": {"name": "defaults", "namespace": "kube-system"}, "spec": {"limits":
            [{"type": "Container", "defaultRequest": {"cpu": "3"}}]}});
        let set: apps::DaemonSet = serde_json::from_value(set).unwrap();
        let range: k8s::LimitRange = serde_json::from_value(range).unwrap();
        let cpu = |world: &World| {
            let key = ObjectKey::new("kube-system", "agent");
            world.view(|all| all.daemonsets[&key].spec.requests.get("cpu"))
        };
        let add = |world: &World| {
            world.change(|state| {
                DaemonSets::keep(state, set.clone());
                DaemonSets::apply(state, DaemonSets::read(&set).unwrap())
            });
        };
        let limit = |world: &World| {
            world.change(|state| LimitRanges::apply(state, LimitRanges::read(&range).unwrap()));
        };
        let world = || World::new(BatchWindow::default(), Setbacks::default(), Arc::new(TestClock::new()));
        let (first, second) = (world(), world());
        add(&first);
        assert_eq!(cpu(&first), 0);
        limit(&first);
        limit(&second);
        add(&second);
        assert_eq!((cpu(&first), cpu(&second)), (3000, 3000));
        let key = Key { namespace: Some("kube-system"), name: "defaults", gone: None };
        first.change(|state| LimitRanges::delete(state, key));
        assert_eq!(cpu(&first), 0, "the LimitRange is gone");
    }

    #[test]
    fn controllers_are_watched_only_for_default_spreading() {
        let names = |spreads_pods| watched(spreads_pods).map(|kind| kind.name).collect::<Vec<_>>();
        let only_then: Vec<_> = names(true).into_iter().filter(|name| !names(false).contains(name)).collect();
        assert_eq!(only_then, ["Service", "ReplicationController"]);
    }

    /// Returns the life tables after a pod that ran for ten minutes left its watch.
    fn learned(deleted: bool) -> String {
        let world = World::new(BatchWindow::default(), Setbacks::default(), Arc::new(TestClock::new()));
        let node = json!({"metadata": {"name": "n"}, "status": {}});
        let pod = json!({"metadata": {"name": "p", "namespace": "ml", "uid": "p"},
            "spec": {"nodeName": "n", "containers": []},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}});
        let node = Nodes::read(&serde_json::from_value(node).unwrap()).unwrap();
        let pod = Pods::read(&serde_json::from_value(pod).unwrap()).unwrap();
        world.change(|state| Nodes::apply(state, node).max(Pods::apply(state, pod)));
        let gone = Some(Gone { at: "2026-01-01T00:10:00Z".parse().unwrap(), deleted });
        world.change(|state| Pods::delete(state, Key { namespace: Some("ml"), name: "p", gone }));
        world.view(|all| {
            assert!(all.pods.existing(&ObjectKey::new("ml", "p")).is_none(), "it is gone");
            serde_json::to_string(&all.lives.tables()["0 GPUs"]).unwrap()
        })
    }

    #[test]
    fn a_pod_that_leaves_its_watch_without_a_deletion_has_finished() {
        let (finished, deleted) = (learned(false), learned(true));
        assert!(finished.contains(",1]") && finished.contains(r#""lost":[]"#), "{finished}");
        assert!(deleted.contains(",1]") && deleted.contains(r#""ended":[]"#), "{deleted}");
    }
}
