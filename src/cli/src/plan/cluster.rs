//! Reads the current cluster once through its API.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};
use std::sync::Arc;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{self as k8s, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1alpha2::PodGroup;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, StorageClass};
use kube::api::ListParams;
use kube::core::Request;
use kube::{Api, Client, Resource, ResourceExt};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_controller::Learned;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_core::{Namespace, PoolName, Profile, Profiles, Snapshot};
use poolwright_intake::{Admission, CoschedulingPodGroup, VolcanoPodGroup};
use poolwright_report::plan::CatalogueSummary;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use super::makers::{self, Makers};
use super::missing::Origin;
use super::narrowed::Uncut;
use super::{Input, Offers, PodNames, lives, pool, told};
use crate::args::InputFlags;
use crate::exit::Failure;
use crate::node_classes::{self, Known};
use crate::snapshot::SavedCluster;
use crate::{connect, lease};

/// The selector of unfinished pods. Finished pods use no resources, and clusters that run jobs keep many of them.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Reads the cluster that the flags name, or a snapshot. `instead` is the flag to plan for manifests.
pub fn read_all(
    flags: &InputFlags,
    saved: Option<&SavedCluster>,
    profiles: &Profiles,
    instead: &str,
) -> Result<Objects, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    let spreads = profiles.values().any(Profile::spreads_pods);
    let read = async { read(&client(flags, saved).await?, spreads, saved).await };
    runtime.block_on(read).map_err(|error: anyhow::Error| {
        let told = match saved {
            Some(_) => "cannot plan for the snapshot".to_owned(),
            None => format!("cannot read the cluster (to plan for manifests instead, use {instead})"),
        };
        error.context(told).into()
    })
}

/// Makes the input of a plan from what was read of a cluster.
pub fn input(objects: Objects, offers: &Offers) -> Result<Input, Failure> {
    let now = objects.read_at;
    let mut notes = objects.notes.clone();
    let mut snapshot = objects.snapshot(&mut notes);
    makers::want_own_pods(&mut snapshot);
    notes.extend(poolwright_intake::unread_of_drivers(objects.drivers.as_deref(), &snapshot));
    let lives_unread = lives::put_in(&mut snapshot, objects.learned, now);
    notes.extend(lives_unread.clone());
    notes.extend(objects.makers.notes);
    let mut told_of_pools: BTreeMap<PoolName, String> =
        objects.pools.iter().filter_map(told::of_pool).collect();
    match &objects.failed_launches {
        Ok(events) => told::add_failed_launches(&mut told_of_pools, &objects.pools, events, now),
        Err(why) => {
            notes.push(format!("launches that failed lately are not known: cannot list events: {why}"));
        }
    }
    let catalogue = pool::set_catalogues(&mut snapshot, &objects.classes, true, offers, &mut notes)?;
    Ok(Input {
        snapshot,
        catalogue: CatalogueSummary::of(&catalogue),
        notes,
        unread: Vec::new(),
        left_out: BTreeSet::new(),
        on_unknown_nodes: Vec::new(),
        refused: objects.makers.refused,
        polite: BTreeSet::new(),
        preempting: Vec::new(),
        names: PodNames::Qualified,
        namespace: objects.namespace,
        include_waiting: false,
        lives_unread,
        told_of_pools,
        leadership: told::of_leases(&objects.leases, objects.leases_at),
        makers_unread: objects.makers.unread,
        gangs: objects.makers.gangs,
        time: objects.is_saved.then_some(now),
        uncut: Uncut { offers: offers.clone(), classes: objects.classes, strict: true },
        origin: Origin::Cluster,
    })
}

/// What was read of a cluster.
#[derive(Clone)]
pub struct Objects {
    /// When it was read.
    read_at: Timestamp,
    /// Whether it is a snapshot.
    is_saved: bool,
    /// The namespace of the context.
    namespace: String,
    /// What the controller has learned, or why it cannot be read.
    learned: Result<Learned, String>,
    /// The Leases of the controller, or why they cannot be read.
    leases: Result<Vec<Lease>, String>,
    /// The time of the API server just before it was read, or of this machine if the server does not tell.
    leases_at: Timestamp,
    /// The events about failed launches, or why they cannot be listed.
    failed_launches: Result<Vec<Event>, String>,
    /// Notes on what was read, and on the objects that were left out.
    pub notes: Vec<String>,
    pods: Vec<Pod>,
    nodes: Vec<Node>,
    namespaces: Vec<k8s::Namespace>,
    daemonsets: Vec<DaemonSet>,
    pools: Vec<NodePool>,
    claims: Vec<NodeClaim>,
    classes: Known,
    volume_claims: Vec<PersistentVolumeClaim>,
    volumes: Vec<PersistentVolume>,
    storage_classes: Vec<StorageClass>,
    node_drivers: Vec<CSINode>,
    /// `None` if we may not list them.
    drivers: Option<Vec<CSIDriver>>,
    budgets: Vec<PodDisruptionBudget>,
    pod_groups: Vec<PodGroup>,
    volcano_groups: Vec<VolcanoPodGroup>,
    coscheduling_groups: Vec<CoschedulingPodGroup>,
    services: Vec<k8s::Service>,
    makers: Makers,
    limit_ranges: Vec<k8s::LimitRange>,
    runtime_classes: Vec<RuntimeClass>,
    priority_classes: Vec<PriorityClass>,
}

/// Says what a snapshot shows, and what none has.
fn of_snapshot(saved: &SavedCluster) -> String {
    let SavedCluster { name, header, .. } = saved;
    let names = if header.anonymised { ", with aliases for names" } else { "" };
    let which = if name.is_empty() { "a snapshot".to_owned() } else { format!("the snapshot {name}") };
    format!(
        "the cluster is that of {which}, as it was at {}{names}; it has no events, so failed launches and refused pods of \
         StatefulSets and Jobs are not known",
        header.taken_at
    )
}

/// Returns the client of the cluster that the flags name, or of a snapshot.
async fn client(flags: &InputFlags, saved: Option<&SavedCluster>) -> Result<Client> {
    let (kubeconfig, context) = (flags.cluster.kubeconfig.as_deref(), flags.cluster.context.as_deref());
    match saved {
        Some(saved) => Ok(saved.client()),
        None => connect::client(kubeconfig, context, connect::Patience::Retries).await,
    }
}

/// Reads the objects of the cluster. `spreads` says whether a scheduler profile spreads pods by their Services. A snapshot has no
/// events, and who led when it was taken says nothing about now, so neither is asked for.
async fn read(client: &Client, spreads: bool, saved: Option<&SavedCluster>) -> Result<Objects> {
    let is_live = saved.is_none();
    let date = if is_live { connect::date(client).await } else { None };
    let mut notes = Vec::new();
    let classes = node_classes::list(client, &mut notes)
        .await
        .map_err(|(kind, error)| anyhow::Error::new(error).context(format!("cannot list {kind}")))?;
    let limit_ranges = followed(client, &mut notes).await?;
    let runtime_classes = followed(client, &mut notes).await?;
    let priority_classes = followed(client, &mut notes).await?;
    notes.extend(saved.map(of_snapshot));
    Ok(Objects {
        namespace: client.default_namespace().to_owned(),
        learned: lives::learned(client).await,
        leases: if is_live { lease::read(client, lease::NAMESPACE).await } else { Ok(Vec::new()) },
        leases_at: date.unwrap_or_else(|| SystemClock::new().now()),
        failed_launches: if is_live { told::failed_launches(client).await } else { Ok(Vec::new()) },
        notes,
        limit_ranges,
        runtime_classes,
        priority_classes,
        pods: list(client, &ListParams::default().fields(UNFINISHED)).await?,
        nodes: list(client, &ListParams::default()).await?,
        namespaces: list(client, &ListParams::default()).await?,
        daemonsets: list(client, &ListParams::default()).await?,
        pools: custom(client).await?,
        claims: custom(client).await?,
        classes,
        volume_claims: list(client, &ListParams::default()).await?,
        volumes: list(client, &ListParams::default()).await?,
        storage_classes: list(client, &ListParams::default()).await?,
        node_drivers: list(client, &ListParams::default()).await?,
        drivers: permitted(client).await?,
        budgets: list(client, &ListParams::default()).await?,
        pod_groups: pod_groups(client).await?,
        volcano_groups: pod_groups(client).await?,
        coscheduling_groups: pod_groups(client).await?,
        services: list_if(spreads, client).await?,
        makers: makers::read(client, is_live).await,
        // Fields are evaluated in their order, so everything else has been read.
        read_at: saved.map_or_else(|| SystemClock::new().now(), |saved| saved.header.taken_at),
        is_saved: !is_live,
    })
}

async fn list<K>(client: &Client, parameters: &ListParams) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    all(client, parameters).await.with_context(|| format!("cannot list {}", K::plural(&())))
}

/// Lists all objects of a kind. If one cannot be read, as after a change of a snapshot by hand, the error names it.
async fn all<K>(client: &Client, parameters: &ListParams) -> kube::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    match Api::<K>::all(client.clone()).list(parameters).await {
        Ok(listed) => Ok(listed.items),
        Err(kube::Error::SerdeError(error)) => {
            let named = unreadable::<K>(client, parameters).await;
            Err(kube::Error::SerdeError(named.unwrap_or(error)))
        }
        Err(error) => Err(error),
    }
}

/// Returns the name of the first object of a kind that cannot be read, and why; `None` if all can.
async fn unreadable<K>(client: &Client, parameters: &ListParams) -> Option<serde_json::Error>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let request = Request::new(K::url_path(&(), None)).list(parameters).ok()?;
    let listed = client.request::<Value>(request).await.ok()?;
    listed["items"].as_array()?.iter().find_map(|object| {
        let error = serde_json::from_value::<K>(object.clone()).err()?;
        let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let name = match meta("namespace") {
            "" => meta("name").to_owned(),
            namespace => format!("{namespace}/{}", meta("name")),
        };
        Some(serde_json::Error::custom(format!("{} {name}: {error}", K::kind(&()))))
    })
}

/// Lists all objects of a kind if they are needed.
async fn list_if<K>(needed: bool, client: &Client) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    if needed { list(client, &ListParams::default()).await } else { Ok(Vec::new()) }
}

/// Lists all objects of a kind that admission follows; none, with a note, if we may not.
async fn followed<K>(client: &Client, notes: &mut Vec<String>) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let listed = permitted::<K>(client).await?;
    if listed.is_none() {
        notes.push(format!(
            "you may not list {}, so DaemonSets count as their templates are written; allow `list` to count what they add",
            K::plural(&())
        ));
    }
    Ok(listed.unwrap_or_default())
}

/// Lists all objects of a kind; `None` if we may not.
async fn permitted<K>(client: &Client) -> Result<Option<Vec<K>>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    match all::<K>(client, &ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(None),
        listed => Ok(Some(listed.with_context(|| format!("cannot list {}", K::plural(&())))?)),
    }
}

/// Lists the objects of one of our resources; none if the resource is not installed.
async fn custom<K>(client: &Client) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    match all::<K>(client, &ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        listed => listed.with_context(|| format!("cannot list {}", K::plural(&()))),
    }
}

/// Lists PodGroups of Kubernetes or of another scheduler; none if the cluster does not have them, or if we may not read them.
/// Explanations of pods that belong to one then say so.
async fn pod_groups<K>(client: &Client) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    match all::<K>(client, &ListParams::default()).await {
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(Vec::new()),
        listed => listed.with_context(|| format!("cannot list podgroups of {}", K::group(&()))),
    }
}

impl Objects {
    /// Converts the objects to a snapshot. Objects that cannot be read are left out, with a note.
    fn snapshot(&self, notes: &mut Vec<String>) -> Snapshot {
        let pods = convert(&self.pods, poolwright_intake::pod, notes);
        for pod in &self.pods {
            let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
            let ignored = poolwright_intake::ignored_annotations(pod);
            notes.extend(ignored.map(|ignored| format!("Pod {namespace}/{name}: ignored {ignored}")));
            let singly = poolwright_intake::planned_singly(pod);
            notes.extend(singly.map(|singly| format!("Pod {namespace}/{name}: {singly}")));
        }
        let mut admission = Admission::default();
        for namespace in &self.namespaces {
            let name = namespace.name_any();
            let added = admission.add_namespace(namespace).ok().flatten();
            notes.extend(added.map(|added| format!("Namespace {name}: {added}")));
            let ignored = poolwright_intake::ignored_in_namespace(namespace);
            notes.extend(ignored.map(|ignored| format!("Namespace {name}: ignored {ignored}")));
        }
        let namespaces: Vec<Namespace> = self.namespaces.iter().map(poolwright_intake::namespace).collect();
        let nodes = convert(&self.nodes, poolwright_intake::node, notes);
        for range in &self.limit_ranges {
            for problem in admission.add_limit_range(range).err().into_iter().flatten() {
                let (namespace, name) = (range.namespace().unwrap_or_default(), range.name_any());
                notes.push(format!(
                    "left out: LimitRange {namespace}/{name}: {}: {}",
                    problem.path, problem.cause
                ));
            }
        }
        for class in &self.runtime_classes {
            admission.add_runtime_class(class.clone());
        }
        for class in &self.priority_classes {
            admission.add_priority_class(class.clone());
        }
        let daemonsets = convert(&self.daemonsets, |set| admission.daemonset(set), notes);
        let claims = convert(&self.claims, poolwright_intake::node_claim, notes);
        let pools = self.pools.iter().map(poolwright_intake::node_pool);
        let volume_claims = convert(&self.volume_claims, poolwright_intake::volume_claim, notes);
        let volumes = convert(&self.volumes, poolwright_intake::volume, notes);
        let budgets = convert(&self.budgets, poolwright_intake::budget, notes);
        let mut pod_groups = convert(&self.pod_groups, poolwright_intake::pod_group, notes);
        pod_groups.extend(self.volcano_groups.iter().map(poolwright_intake::volcano_pod_group));
        pod_groups.extend(self.coscheduling_groups.iter().map(poolwright_intake::coscheduling_pod_group));
        let storage_classes = self.storage_classes.iter().map(poolwright_intake::storage_class);
        let node_drivers = self.node_drivers.iter().map(poolwright_intake::node_drivers);
        let services = self.services.iter().map(poolwright_intake::service);
        let workloads = self.makers.workloads.iter().cloned();
        Snapshot {
            services: keyed(services, |service| service.key.clone()),
            workloads: keyed(workloads, |workload| (workload.kind.clone(), workload.key.clone())),
            pods: keyed(pods, |pod| pod.key.clone()),
            nodes: keyed(nodes, |node| node.name.clone()),
            namespace_limits: Namespace::limits_by_name(&namespaces),
            namespaces: Namespace::labels_by_name(namespaces),
            daemonsets: keyed(daemonsets, |daemonset| daemonset.key.clone()),
            claims: keyed(claims, |claim| claim.name.clone()),
            pools: keyed(pools, |pool| pool.name.clone()),
            volume_claims: keyed(volume_claims, |claim| claim.key.clone()),
            volumes: keyed(volumes, |volume| volume.name.clone()),
            storage_classes: keyed(storage_classes, |class| class.name.clone()),
            node_drivers: keyed(node_drivers, |drivers| drivers.node.clone()),
            budgets: keyed(budgets, |budget| budget.key.clone()),
            pod_groups: keyed(pod_groups, |group| group.key.clone()),
            ..Snapshot::default()
        }
    }
}

fn convert<T, M, E: Display>(
    objects: &[T],
    convert: impl Fn(&T) -> Result<M, E>,
    notes: &mut Vec<String>,
) -> Vec<M> {
    let mut models = Vec::new();
    for object in objects {
        match convert(object) {
            Ok(model) => models.push(model),
            Err(error) => notes.push(format!("left out: {error}")),
        }
    }
    models
}

fn keyed<K, M, A: FromIterator<(K, Arc<M>)>>(models: impl IntoIterator<Item = M>, key: fn(&M) -> K) -> A {
    models.into_iter().map(|model| (key(&model), Arc::new(model))).collect()
}
