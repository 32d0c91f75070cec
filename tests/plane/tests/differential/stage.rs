//! The real cluster that plays cases: it creates and deletes objects, and watches the results of the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{DeleteParams, ListParams, PostParams, PropagationPolicy};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use poolwright_core::Snapshot;
use poolwright_intake as intake;
use poolwright_plane::{ControlPlane, Options};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::case::{
    IMPORTANCES, NAMESPACES, PROFILES_YAML, PROTECTED, SERVICES, budget, key, name, priority_class, service,
};
use crate::extender::{Allowed, Extender, FENCE};

/// The time limit of every operation.
const WITHIN: Duration = Duration::from_mins(1);

/// The number of concurrent requests.
const AT_A_TIME: usize = 8;

/// The scheduler's decision about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Bound to this node.
    Bound(String),
    /// No node fits, with the message.
    Unschedulable(String),
}

/// An object that the API server rejects: the case itself makes no sense.
#[derive(Debug)]
pub struct Senseless(pub String);

impl std::fmt::Display for Senseless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Senseless {}

/// A real cluster to play cases on.
pub struct Stage {
    plane: ControlPlane,
    client: Client,
    /// The minor version of Kubernetes.
    minor: String,
    extender: Extender,
    /// The decisions by pod. `changed` signals every change.
    verdicts: Arc<Mutex<BTreeMap<String, Verdict>>>,
    changed: watch::Receiver<()>,
    fences: AtomicU64,
}

fn options(port: u16) -> Options {
    Options::api_server_only().with_extended_scheduler(port).with_profiles(PROFILES_YAML)
}

impl Stage {
    /// Starts a control plane that only has the objects every case uses: namespaces, Services, budgets, a runtime class,
    /// PriorityClasses.
    pub async fn start() -> anyhow::Result<Self> {
        let (extender, port) = Extender::serve()?;
        let plane = ControlPlane::start(options(port)).await?;
        let client = plane.client()?;
        for team in NAMESPACES {
            let object = json!({"metadata": {"name": team, "labels": {"team": team}}});
            create::<Namespace>(&Api::all(client.clone()), &object).await?;
        }
        for namespace in NAMESPACES {
            for app in SERVICES {
                let api = Api::<Service>::namespaced(client.clone(), namespace);
                create(&api, &service(namespace, app)).await?;
            }
        }
        for (namespace, app) in PROTECTED {
            let api = Api::<PodDisruptionBudget>::namespaced(client.clone(), namespace);
            create(&api, &budget(namespace, app)).await?;
        }
        let class = json!({
            "metadata": {"name": "sandboxed"}, "handler": "sandboxed",
            "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
        });
        create::<RuntimeClass>(&Api::all(client.clone()), &class).await?;
        for importance in 0..IMPORTANCES {
            let object = json!({"metadata": {"name": priority_class(importance)}, "value": importance});
            create::<PriorityClass>(&Api::all(client.clone()), &object).await?;
        }
        let verdicts = Arc::default();
        #[expect(clippy::disallowed_methods, reason = "one waits for it, on a real control plane")]
        let (sender, changed) = watch::channel(());
        tokio::spawn(listen(client.clone(), Arc::clone(&verdicts), sender));
        let minor = client.apiserver_version().await?.minor;
        Ok(Self { plane, client, minor, extender, verdicts, changed, fences: AtomicU64::new(0) })
    }

    /// Returns the extender.
    pub fn extender(&self) -> &Extender {
        &self.extender
    }

    /// Checks whether the scheduler is of the release whose messages the simulated one copies.
    pub fn has_these_words(&self) -> bool {
        self.minor == "36"
    }

    /// Returns everything on the stage that a scheduler considers, as the API server has it.
    pub async fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let all = ListParams::default();
        let (nodes, pods, services, namespaces, budgets) = (
            Api::<Node>::all(self.client.clone()),
            Api::<Pod>::all(self.client.clone()),
            Api::<Service>::all(self.client.clone()),
            Api::<Namespace>::all(self.client.clone()),
            Api::<PodDisruptionBudget>::all(self.client.clone()),
        );
        let (nodes, pods, services, namespaces, budgets) = futures::try_join!(
            nodes.list(&all),
            pods.list(&all),
            services.list(&all),
            namespaces.list(&all),
            budgets.list(&all)
        )?;
        let mut snapshot = Snapshot::default();
        for node in &nodes {
            let node = intake::node(node).map_err(|error| anyhow!("{error}"))?;
            snapshot.nodes.insert(node.name.clone(), Arc::new(node));
        }
        for pod in &pods {
            let pod = intake::pod(pod).map_err(|error| anyhow!("{error}"))?;
            snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
        }
        for service in services.iter().map(intake::service) {
            snapshot.services.insert(service.key.clone(), Arc::new(service));
        }
        for budget in &budgets {
            let budget = intake::budget(budget).map_err(|error| anyhow!("{error}"))?;
            snapshot.budgets.insert(budget.key.clone(), Arc::new(budget));
        }
        let namespaces = namespaces.iter().map(intake::namespace);
        snapshot.namespaces = poolwright_core::Namespace::labels_by_name(namespaces);
        Ok(snapshot)
    }

    /// Returns a pod (`namespace/name`), as the API server has it.
    pub async fn pod(&self, key: &str) -> anyhow::Result<poolwright_core::Pod> {
        let (namespace, name) = key.split_once('/').unwrap_or(("default", key));
        let pod = self.pods(namespace).get(name).await?;
        intake::pod(&pod).map_err(|error| anyhow!("{error}"))
    }

    /// Returns the pods (`namespace/name`) that the scheduler has evicted for others and that still exist.
    pub async fn preempted(&self) -> anyhow::Result<BTreeSet<String>> {
        let pods = Api::<Pod>::all(self.client.clone()).list(&ListParams::default()).await?;
        let is_evicted = |pod: &&Pod| {
            let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            pod.metadata.deletion_timestamp.is_some()
                && conditions.any(|one| one.reason.as_deref() == Some("PreemptionByScheduler"))
        };
        let name = |pod: &Pod| {
            let (namespace, name) = (pod.metadata.namespace.as_deref(), pod.metadata.name.as_deref());
            format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default())
        };
        Ok(pods.iter().filter(is_evicted).map(name).collect())
    }

    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Removes the pods and nodes of a case. The next user must pass a [`Self::fence`] before asking the scheduler.
    pub async fn clear(&self) -> anyhow::Result<()> {
        let now = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default().grace_period(0)
        };
        let all = ListParams::default();
        let pods = NAMESPACES.map(|namespace| self.pods(namespace));
        let fences = self.pods("default");
        let nodes: Api<Node> = Api::all(self.client.clone());
        futures::try_join!(
            pods[0].delete_collection(&now, &all),
            pods[1].delete_collection(&now, &all),
            fences.delete_collection(&now, &all),
            nodes.delete_collection(&now, &all),
        )?;
        self.extender.clear();
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }

    /// Creates nodes.
    pub async fn create_nodes(&self, nodes: &[Value]) -> anyhow::Result<()> {
        let api: Api<Node> = Api::all(self.client.clone());
        stream::iter(nodes)
            .map(|node| create(&api, node))
            .buffer_unordered(AT_A_TIME)
            .try_collect::<()>()
            .await
    }

    /// Creates pods. A pod with a `deletionTimestamp` is then deleted.
    pub async fn create_pods(&self, pods: &[Value]) -> anyhow::Result<()> {
        let one = |pod: &Value| {
            let (api, pod) =
                (self.pods(pod["metadata"]["namespace"].as_str().unwrap_or_default()), pod.clone());
            async move {
                create(&api, &pod).await?;
                if pod["metadata"]["deletionTimestamp"].is_string() {
                    api.delete(name(&pod), &DeleteParams::default().grace_period(3600)).await?;
                }
                anyhow::Ok(())
            }
        };
        stream::iter(pods).map(one).buffer_unordered(AT_A_TIME).try_collect::<()>().await
    }

    /// Deletes pods (`namespace/name`) without a grace period.
    pub async fn delete_pods(&self, keys: &[String]) -> anyhow::Result<()> {
        let one = |key: &String| {
            let (namespace, name) = key.split_once('/').unwrap_or(("default", key));
            let (api, name) = (self.pods(namespace), name.to_owned());
            async move { api.delete(&name, &DeleteParams::default().grace_period(0)).await.map(drop) }
        };
        Ok(stream::iter(keys).map(one).buffer_unordered(AT_A_TIME).try_collect::<()>().await?)
    }

    /// Deletes nodes.
    pub async fn delete_nodes(&self, names: &[String]) -> anyhow::Result<()> {
        let api: Api<Node> = Api::all(self.client.clone());
        let one = |name: &String| {
            let (api, name) = (api.clone(), name.clone());
            async move { api.delete(&name, &DeleteParams::default()).await.map(drop) }
        };
        Ok(stream::iter(names).map(one).buffer_unordered(AT_A_TIME).try_collect::<()>().await?)
    }

    /// Returns when the scheduler knows everything that was created and deleted before. It creates a node and then a pod, and
    /// waits until the scheduler binds the pod to the node: watches deliver in order. The node holds nothing else, and has no
    /// label that a rule of any case uses. No pod of a case can take the node, or
    /// evict the pod.
    pub async fn fence(&self) -> anyhow::Result<()> {
        let number = self.fences.fetch_add(1, Ordering::Relaxed);
        let name = format!("{FENCE}{number}");
        let room = json!({"pods": "1"});
        let node = json!({
            "metadata": {"name": name, "labels": {"fence": name}},
            "spec": {"taints": [{"key": "fence", "effect": "NoSchedule"}]},
            "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
        });
        let pod = json!({
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "nodeSelector": {"fence": name},
                "priorityClassName": "system-node-critical",
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "main", "image": "none"}],
            },
        });
        self.create_nodes(&[node]).await?;
        self.extender.allow(key(&pod), Allowed::Only(name));
        self.create_pods(std::slice::from_ref(&pod)).await?;
        let said = self.verdicts(&[key(&pod)], |verdict| matches!(verdict, Verdict::Bound(_))).await?;
        drop(said);
        Ok(())
    }

    /// Waits until each of these pods has a verdict that `counts`, and returns the verdicts in the same order.
    pub async fn verdicts(
        &self,
        pods: &[String],
        counts: impl Fn(&Verdict) -> bool,
    ) -> anyhow::Result<Vec<Verdict>> {
        let mut changed = self.changed.clone();
        let look = || {
            let verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
            let said = pods.iter().map(|pod| verdicts.get(pod).filter(|verdict| counts(verdict)).cloned());
            said.collect::<Option<Vec<_>>>()
        };
        let listening = async {
            loop {
                changed.borrow_and_update();
                if let Some(all) = look() {
                    return anyhow::Ok(all);
                }
                changed.changed().await.context("the watch of pods ended")?;
            }
        };
        if let Ok(heard) = tokio::time::timeout(WITHIN, listening).await {
            return heard;
        }
        self.plane.ensure_running()?;
        let verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let said: Vec<_> = pods.iter().map(|pod| (pod, verdicts.get(pod))).collect();
        Err(anyhow!("waited {} s for what the scheduler says of pods; it said {said:?}", WITHIN.as_secs()))
    }
}

/// Creates an object. If the API server rejects it, the error is [`Senseless`].
async fn create<T>(api: &Api<T>, object: &Value) -> anyhow::Result<()>
where
    T: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    let typed = T::deserialize(object).with_context(|| format!("{object}"))?;
    match api.create(&PostParams::default(), &typed).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 422 || status.code == 403 => {
            Err(Senseless(format!("{}: {}", key(object), status.message)).into())
        }
        Err(error) => Err(error).with_context(|| format!("creating {}", key(object))),
    }
}

/// Records the scheduler's decisions about pods, as long as the runtime lives.
async fn listen(client: Client, verdicts: Arc<Mutex<BTreeMap<String, Verdict>>>, changed: watch::Sender<()>) {
    let api: Api<Pod> = Api::all(client);
    let mut pods = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
    while let Some(heard) = pods.next().await {
        let Ok(pod) = heard else { continue };
        let (meta, status) = (pod.metadata, pod.status.unwrap_or_default());
        let key = format!("{}/{}", meta.namespace.unwrap_or_default(), meta.name.unwrap_or_default());
        let mut conditions = status.conditions.unwrap_or_default().into_iter();
        let scheduled = conditions.find(|condition| condition.type_ == "PodScheduled");
        let verdict = match pod.spec.and_then(|spec| spec.node_name) {
            Some(node) => Verdict::Bound(node),
            None => match scheduled {
                Some(said) if said.status == "False" => {
                    Verdict::Unschedulable(said.message.unwrap_or_default())
                }
                _ => continue,
            },
        };
        verdicts.lock().unwrap_or_else(PoisonError::into_inner).insert(key, verdict);
        if changed.send(()).is_err() {
            return;
        }
    }
}
