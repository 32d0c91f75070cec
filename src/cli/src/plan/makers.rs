//! The controllers of pods. They say whether a pod is recreated after a move; their missing pods are no demand here.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, ReplicationController};
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use poolwright_controller::causes;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_core::{Gang, PodPhase, Snapshot, Workload};
use poolwright_intake::manifest::RefusedPods;
use poolwright_intake::refused::{self, FAILED_CREATE, Refusals};
use poolwright_intake::{JobSet, LeaderWorkerSet};
use serde::de::DeserializeOwned;

/// The controllers of a cluster.
#[derive(Clone, Default)]
pub struct Makers {
    /// ReplicaSets, StatefulSets, ReplicationControllers and Jobs, without the pods that they lack.
    pub workloads: Vec<Workload>,
    /// JobSets and LeaderWorkerSets.
    pub gangs: Vec<Gang>,
    /// Says that some could not be read.
    pub unread: Option<String>,
    /// The pods that the API server refuses to create.
    pub refused: Vec<RefusedPods>,
    /// Says why it refuses them, or that nobody knows whether it does.
    pub notes: Vec<String>,
}

/// Reads the controllers of pods. A kind that may not be listed is left out, because a plan is possible without it. A snapshot has no
/// events (`has_events`), so nobody knows there whether the API server refuses pods of StatefulSets and Jobs.
pub async fn read(client: &Client, has_events: bool) -> Makers {
    let mut makers = Makers::default();
    let sets = makers.list::<ReplicaSet>(client).await;
    makers.workloads.extend(sets.iter().map(poolwright_intake::replica_set));
    makers.refuse(sets.iter().filter_map(refused::of_replica_set));
    let sets = makers.list::<StatefulSet>(client).await;
    makers.workloads.extend(sets.iter().map(poolwright_intake::stateful_set));
    let controllers = makers.list::<ReplicationController>(client).await;
    makers.workloads.extend(controllers.iter().map(poolwright_intake::replication_controller));
    makers.refuse(controllers.iter().filter_map(refused::of_replication_controller));
    let jobs = makers.list::<Job>(client).await;
    makers.workloads.extend(jobs.iter().map(poolwright_intake::job));
    let lacking = sets.iter().map(refused::lacking_of_stateful_set);
    let mut lacking = lacking.chain(jobs.iter().map(refused::lacking_of_job));
    if has_events && lacking.any(|pods| pods > 0) {
        let refusals = makers.refusals(client).await;
        makers.refuse(sets.iter().filter_map(|set| refused::of_stateful_set(set, &refusals)));
        makers.refuse(jobs.iter().filter_map(|job| refused::of_job(job, &refusals)));
    }
    makers.workloads = makers.workloads.into_iter().map(Workload::without_demand).collect();
    let sets = makers.list::<JobSet>(client).await;
    makers.gangs.extend(sets.iter().filter_map(|set| poolwright_intake::job_set(set).ok()));
    let sets = makers.list::<LeaderWorkerSet>(client).await;
    makers.gangs.extend(sets.iter().filter_map(|set| poolwright_intake::leader_worker_set(set).ok()));
    makers
}

impl Makers {
    fn refuse(&mut self, refused: impl Iterator<Item = (RefusedPods, String)>) {
        let (refused, notes): (Vec<_>, Vec<_>) = refused.unzip();
        self.refused.extend(refused);
        self.notes.extend(notes);
    }

    /// Lists the events about pods that StatefulSets and Jobs could not create. Other controllers have a condition for that.
    async fn refusals(&mut self, client: &Client) -> Refusals {
        let failed = ListParams::default().fields(&format!("reason={FAILED_CREATE}"));
        match Api::<Event>::all(client.clone()).list(&failed).await {
            Ok(listed) => Refusals::of(&listed.items, SystemClock::new().now()),
            Err(error) => {
                self.notes.push(format!(
                    "Poolwright cannot list events ({}), so it does not know whether the API server refuses pods of StatefulSets and Jobs; \
                     ask for the right to list them",
                    causes(&error)
                ));
                Refusals::default()
            }
        }
    }

    async fn list<K>(&mut self, client: &Client) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        match Api::<K>::all(client.clone()).list(&ListParams::default()).await {
            Ok(listed) => listed.items,
            // The kind is not installed.
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => {
                self.unread.get_or_insert_with(|| {
                    format!(
                        "Poolwright cannot list {} ({}), so it assumes that nothing recreates their pods; ask for the right to list them",
                        K::plural(&()),
                        causes(&error)
                    )
                });
                Vec::new()
            }
        }
    }
}

/// Lets each Job with pods on nodes want as many pods as it has: none is missing, and each that moves is recreated.
pub fn want_own_pods(snapshot: &mut Snapshot) {
    let mut changed = Vec::new();
    for workload in snapshot.workloads.values().filter(|workload| workload.kind == "Job") {
        let pods = snapshot.pods.of_owner(&workload.uid).filter(|pod| pod.deleting_since.is_none());
        let (mut all, mut bound) = (0, 0);
        for pod in pods {
            all += 1;
            bound += u64::from(matches!(pod.phase, PodPhase::Bound { .. }));
        }
        if bound > 0 {
            changed.push(Workload { wanted: all, ..(**workload).clone() });
        }
    }
    for workload in changed {
        snapshot.workloads.insert((workload.kind.clone(), workload.key.clone()), Arc::new(workload));
    }
}
