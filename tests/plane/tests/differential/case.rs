//! A case: a small cluster and its pending pods, as data. Poolwright and the API server get the same objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use poolwright_api::NodePool;
use poolwright_catalog::offering::CatalogueOrigin;
use poolwright_catalog::{
    Arch, Catalogue, Gpu, InstanceType, Offering, OfferingId, Price, PriceSource, Quote, ResourceList,
    ResourceName,
};
use poolwright_core::{Namespace, Snapshot};
use poolwright_intake as intake;
use poolwright_terms::{CapacityType, NodeClassRef};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The namespaces of every case; each has its own name as the label `team`.
pub const NAMESPACES: [&str; 2] = ["red", "blue"];

/// The scheduler's profiles, besides the default one.
pub const PROFILES: [&str; 3] = ["even", "apart", "fenced"];

/// These profiles as the list `profiles` of the scheduler's configuration. `even` spreads pods over zones, `apart` over hosts.
/// `fenced` keeps them on certain nodes and spreads them too.
pub const PROFILES_YAML: &str = "\
- schedulerName: even
  plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}
  pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
- schedulerName: apart
  plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}
  pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
- schedulerName: fenced
  plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}
  pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{key: disk, operator: In, values: [ssd]}]
          - matchExpressions: [{key: rack, operator: Exists}]
          - matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]
- schedulerName: evicting
";

/// The only profile whose pods preempt others. No case draws it.
pub const EVICTING: &str = "evicting";

/// The number of priorities, from zero.
pub const IMPORTANCES: u32 = 80;

/// Returns the name of the PriorityClass with this value.
pub fn priority_class(importance: u32) -> String {
    format!("importance-{importance}")
}

/// The Services of every case, which the scheduler's default spread uses. A Service selects the application of the same name.
/// Pods of other applications are not spread by default.
pub const SERVICES: [&str; 2] = ["web", "db"];

/// Returns a Service of this application.
pub fn service(namespace: &str, app: &str) -> Value {
    serde_json::json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": app, "namespace": namespace},
        "spec": {"clusterIP": "None", "selector": {"app": app}},
    })
}

/// The applications, with namespace, whose PodDisruptionBudget allows no disruption.
pub const PROTECTED: [(&str, &str); 2] = [("red", "web"), ("blue", "db")];

/// Returns such a budget. It requires more pods than ever exist, so its status needs no counting.
pub fn budget(namespace: &str, app: &str) -> Value {
    serde_json::json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": namespace},
        "spec": {"minAvailable": 1000, "selector": {"matchLabels": {"app": app}}},
    })
}

/// Returns the profiles as Poolwright reads them from the configuration.
pub fn profiles() -> anyhow::Result<poolwright_core::Profiles> {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n{PROFILES_YAML}"
    );
    let read = intake::scheduler_config("scheduler.yaml", &text);
    Ok(read.map_err(|errors| anyhow!("{errors:?}"))?.profiles)
}

/// A cluster and its waiting pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Case {
    /// A sentence that says what a kept case shows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The seed of a generated case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How planned pods are kept on their nodes: if set, by a taint on every node that only its own pods tolerate, otherwise by
    /// the extender, which changes no rule.
    pub reserved: bool,
    /// Whether each claim gets the last of its offerings instead of the first. All of them must be good enough.
    pub last_offering: bool,
    /// The instance types on offer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
    /// NodePools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Value>,
    /// Existing nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Value>,
    /// DaemonSets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub daemonsets: Vec<Value>,
    /// Pods on those nodes. A pod with a `deletionTimestamp` is being deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<Value>,
    /// Waiting pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Value>,
}

/// An instance type, sold on demand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Allocatable CPU, in cores.
    pub cores: u64,
    /// Allocatable memory, in GiB.
    pub memory_gib: u64,
    /// The number of GPUs.
    pub gpus: u32,
    /// The largest number of pods.
    pub pods: u64,
    /// Its price in dollars per hour, by zone.
    pub prices: BTreeMap<String, String>,
}

impl Kind {
    /// Returns what its nodes advertise.
    pub fn allocatable(&self) -> ResourceList {
        let room = ResourceList::new()
            .with(ResourceName::CPU, self.cores * 1000)
            .with(ResourceName::MEMORY, self.memory_gib << 30)
            .with(ResourceName::PODS, self.pods);
        if self.gpus == 0 { room } else { room.with(ResourceName::NVIDIA_GPU, u64::from(self.gpus)) }
    }
}

/// Returns the node class of all pools.
pub fn node_class() -> NodeClassRef {
    NodeClassRef { group: "poolwright.dev".into(), kind: "KwokNodeClass".into(), name: "default".into() }
}

impl Case {
    /// Returns the cluster as Poolwright sees it.
    pub fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.catalogues.insert(node_class(), Ok(Arc::new(self.catalogue()?)));
        for pool in read::<NodePool>(&self.pools)? {
            let pool = intake::node_pool(&pool);
            ensure!(pool.problem.is_none(), "pool {}: {:?}", pool.name, pool.problem);
            snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
        }
        for node in read(&self.nodes)? {
            let node = intake::node(&node).map_err(|error| anyhow!("{error}"))?;
            snapshot.nodes.insert(node.name.clone(), Arc::new(node));
        }
        for set in read(&self.daemonsets)? {
            let set = intake::daemonset(&set).map_err(|error| anyhow!("{error}"))?;
            snapshot.daemonsets.insert(set.key.clone(), Arc::new(set));
        }
        for pod in read(&self.running)?.iter().chain(&read(&self.waiting)?) {
            let pod = intake::pod(pod).map_err(|error| anyhow!("{error}"))?;
            snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
        }
        for namespace in NAMESPACES {
            for service in read(&SERVICES.map(|app| service(namespace, app)))? {
                let service = intake::service(&service);
                snapshot.services.insert(service.key.clone(), Arc::new(service));
            }
        }
        let team = |name: &str| Namespace {
            name: name.to_owned(),
            labels: BTreeMap::from([("team".to_owned(), name.to_owned())]),
            limits: BTreeMap::new(),
        };
        snapshot.namespaces = Namespace::labels_by_name(NAMESPACES.into_iter().map(team));
        let pods = self.running.len() + self.waiting.len();
        ensure!(snapshot.pods.len() == pods, "two pods of one name");
        Ok(snapshot)
    }

    fn catalogue(&self) -> anyhow::Result<Catalogue> {
        let (mut types, mut offerings) = (Vec::new(), Vec::new());
        for kind in &self.kinds {
            for (zone, price) in &kind.prices {
                let id = OfferingId {
                    instance_type: kind.name.as_str().into(),
                    zone: zone.as_str().into(),
                    capacity_type: CapacityType::OnDemand,
                };
                let usd_per_hour = price.parse().map_err(|error| anyhow!("price of {id}: {error}"))?;
                let price =
                    Price::Known(Quote { usd_per_hour, source: PriceSource::new("case"), as_of: None });
                let region = Some("us-east-1".to_owned());
                let (available, interruptions, notice) = (None, None, None);
                offerings.push(Offering { id, region, price, available, interruptions, notice });
            }
            types.push(InstanceType {
                name: kind.name.as_str().into(),
                provider: "aws".into(),
                arch: Arch::Amd64,
                gpu: (kind.gpus > 0).then(|| Gpu {
                    model: "a10g".into(),
                    count: kind.gpus,
                    memory_mib: None,
                }),
                allocatable: kind.allocatable(),
            });
        }
        let origin = CatalogueOrigin { source: "case".into(), as_of: None };
        Ok(Catalogue::new(origin, types, offerings))
    }
}

fn read<T: DeserializeOwned>(objects: &[Value]) -> anyhow::Result<Vec<T>> {
    let one = |object: &Value| T::deserialize(object).with_context(|| format!("{object}"));
    objects.iter().map(one).collect()
}

/// Returns the name of an object.
pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns `namespace/name` of an object.
pub fn key(object: &Value) -> String {
    format!("{}/{}", object["metadata"]["namespace"].as_str().unwrap_or_default(), name(object))
}
