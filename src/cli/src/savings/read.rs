//! The objects of what runs: those of a cluster, of a snapshot of one, or of manifests.
//!
//! Only what says where pods run and what may be bought is kept. The controllers of pods and pods without a node would make plans
//! buy more than what runs now.

use anyhow::Context;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::core::Request;
use kube::{Client, Error};
use poolwright_catalog::Catalogue;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_intake::manifest;
use poolwright_terms::GROUP;
use serde_json::{Value, json};

use crate::args::{ClusterFlags, SavingsFlags};
use crate::clouds::{self, KARPENTER, is_karpenters};
use crate::exit::Failure;
use crate::problems::Problems;
use crate::snapshot::{self, SavedCluster};
use crate::source::{self, Source};
use crate::{catalogue, connect};

/// The kinds that say where pods run.
const KINDS: [&str; 11] = [
    "CSINode",
    "DaemonSet",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodGroup",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
];

/// What was read.
pub struct Objects {
    /// The nodes, the pods on them, and what these need.
    pub running: Vec<Value>,
    /// The NodePools, NodeClaims and node classes of Poolwright.
    pub own: Vec<Value>,
    /// The NodePools and node classes of Karpenter.
    pub karpenter: Vec<Value>,
    /// The number of pods without a node.
    pub waiting: usize,
    /// Instance types and prices.
    pub catalogue: Catalogue,
    /// The time of all plans.
    pub now: Timestamp,
    /// Notes on how it was read.
    pub notes: Vec<String>,
}

/// Reads what the flags name.
pub fn read(flags: &SavingsFlags) -> Result<Objects, Failure> {
    let now = SystemClock::new().now();
    if !flags.filename.is_empty() {
        let mut read = Objects::new(catalogue::load(&flags.prices.catalogue)?, now);
        read.put_all(written(source::manifests(&flags.filename)?)?);
        return read.checked();
    }
    let (saved, karpenter) = if let Some(path) = &flags.cluster.snapshot {
        (SavedCluster::read(path)?, Vec::new())
    } else {
        let ClusterFlags { kubeconfig, context, .. } = &flags.cluster;
        let (kubeconfig, context) = (kubeconfig.as_deref(), context.as_deref());
        let mut taken = snapshot::taken(kubeconfig, context, catalogue::load(&flags.prices.catalogue)?)?;
        // `convert` tells of their other fields, too.
        taken.saved.items.retain(|object| !is_karpenters(group_of(object)));
        (taken.saved, karpenter(flags)?)
    };
    let prices = catalogue::load_or(&flags.prices.catalogue, Some(&saved.header.catalogue))?;
    let mut read = Objects::new(prices, saved.header.taken_at);
    let forbidden = saved.header.forbidden();
    if !forbidden.is_empty() {
        read.notes.push(format!("what you may not list is missing: {}", forbidden.join("; ")));
    }
    let asked_for_karpenter = saved.header.kinds.iter().any(|asked| asked.group == KARPENTER);
    read.put_all(saved.items.into_iter().chain(karpenter));
    if flags.cluster.snapshot.is_some() && !read.karpenter.is_empty() {
        read.notes.push(
            "a snapshot lacks userData, tags and most annotations of Karpenter's objects, so `poolwright convert` for the cluster may \
             say more"
                .to_owned(),
        );
    } else if !asked_for_karpenter && !read.has_own_pools() {
        read.notes.push(
            "this snapshot is of an older version and has no NodePools of Karpenter; take it again, or give them to -f with the nodes \
             and pods of the cluster"
                .to_owned(),
        );
    }
    read.checked()
}

/// Returns the objects of manifests.
fn written(sources: Vec<Source>) -> Result<Vec<Value>, Failure> {
    let (mut all, mut problems) = (Vec::new(), Problems::new());
    for Source { name, text } in sources {
        match manifest::objects(&name, &text) {
            Ok(objects) => all.extend(objects),
            Err(found) => problems.extend(Problems::all(found)),
        }
    }
    problems
        .or(all)
        .map_err(|problems| Failure::bad_input(format!("the manifests cannot be used: {problems}")))
}

impl Objects {
    fn new(catalogue: Catalogue, now: Timestamp) -> Self {
        Self {
            running: Vec::new(),
            own: Vec::new(),
            karpenter: Vec::new(),
            waiting: 0,
            catalogue,
            now,
            notes: Vec::new(),
        }
    }

    fn put_all(&mut self, objects: impl IntoIterator<Item = Value>) {
        objects.into_iter().for_each(|object| self.put(object));
    }

    /// Keeps an object where it belongs, or drops it.
    fn put(&mut self, object: Value) {
        let (kind, group) = (object["kind"].as_str().unwrap_or_default(), group_of(&object));
        if is_karpenters(group) {
            if kind == "NodePool" || kind.ends_with("NodeClass") {
                self.karpenter.push(object);
            }
        } else if group == GROUP {
            self.own.push(object);
        } else if kind == "Pod" && !object["spec"]["nodeName"].is_string() {
            let has_ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
            self.waiting += usize::from(!has_ended);
        } else if KINDS.contains(&kind) {
            self.running.push(object);
        }
    }

    /// Refuses what has no node.
    fn checked(self) -> Result<Self, Failure> {
        if self.running.iter().any(|object| object["kind"] == "Node") {
            return Ok(self);
        }
        Err(Failure::bad_input(
            "there is no Node, so nothing costs money; write the cluster with `kubectl get nodes,pods,daemonsets,pv,pvc -A -o yaml`",
        ))
    }

    /// Returns whether a pool of Poolwright says what may be bought.
    pub fn has_own_pools(&self) -> bool {
        self.own.iter().any(|object| object["kind"] == "NodePool")
    }
}

/// Returns the objects as one file.
pub fn file(objects: &[Value]) -> Source {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    Source { name: "the cluster".to_owned(), text: list.to_string() }
}

/// Returns the API group of a version; empty for the core.
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Returns the API group of an object; empty for the core.
fn group_of(object: &Value) -> &str {
    group(object["apiVersion"].as_str().unwrap_or_default())
}

/// Lists the NodePools and node classes of Karpenter, as they are.
fn karpenter(flags: &SavingsFlags) -> Result<Vec<Value>, Failure> {
    let mut wanted = vec![(KARPENTER, "NodePool", "nodepools")];
    for cloud in clouds::clouds() {
        let Some(karpenter) = cloud.karpenter else { continue };
        wanted.push((karpenter.group(), karpenter.kind(), cloud.node_class.kind.plural));
        wanted.extend(karpenter.managed().map(|service| (service.group, service.kind, service.plural)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    let read = async {
        let ClusterFlags { kubeconfig, context, .. } = &flags.cluster;
        let (kubeconfig, context) = (kubeconfig.as_deref(), context.as_deref());
        let client = connect::client(kubeconfig, context, connect::Patience::Retries).await?;
        let mut found = Vec::new();
        for (group, kind, plural) in wanted {
            list(&client, group, kind, plural, &mut found).await?;
        }
        anyhow::Ok(found)
    };
    Ok(runtime.block_on(read).context("cannot read the cluster")?)
}

/// Lists the objects of a kind that the cluster may not have, or that one may not list, which another note says.
async fn list(
    client: &Client,
    group: &str,
    kind: &str,
    plural: &str,
    found: &mut Vec<Value>,
) -> anyhow::Result<()> {
    let path = format!("/apis/{group}/v1/{plural}");
    let request = Request::new(path).list(&ListParams::default()).map_err(Error::BuildRequest)?;
    match client.request::<Value>(request).await {
        Ok(mut answer) => {
            let items = answer.get_mut("items").map(Value::take);
            let Some(Value::Array(items)) = items else { return Ok(()) };
            found.extend(items.into_iter().filter(Value::is_object).map(|mut object| {
                // Objects in a list do not have these fields.
                object["apiVersion"] = format!("{group}/v1").into();
                object["kind"] = kind.into();
                object
            }));
            Ok(())
        }
        Err(Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot list {plural}.{group}")),
    }
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::builtin;

    use super::*;

    #[test]
    fn what_runs_is_kept_and_what_asks_for_more_is_not() {
        let object = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "spec": {}});
        let mut bound = object("v1", "Pod");
        bound["spec"]["nodeName"] = "n".into();
        let mut ended = object("v1", "Pod");
        ended["status"]["phase"] = "Succeeded".into();
        let mut read = Objects::new(builtin(), Timestamp::UNIX_EPOCH);
        read.put_all([
            object("v1", "Node"),
            bound,
            object("v1", "Pod"),
            ended,
            object("apps/v1", "Deployment"),
            object("apps/v1", "DaemonSet"),
            object("karpenter.sh/v1", "NodePool"),
            object("karpenter.sh/v1", "NodeClaim"),
            object("karpenter.k8s.aws/v1", "EC2NodeClass"),
            object("poolwright.dev/v1alpha1", "NodePool"),
        ]);
        let kinds = |objects: &[Value]| -> Vec<String> {
            objects.iter().map(|object| object["kind"].as_str().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(kinds(&read.running), ["Node", "Pod", "DaemonSet"]);
        assert_eq!(kinds(&read.karpenter), ["NodePool", "EC2NodeClass"]);
        assert_eq!((read.waiting, read.has_own_pools()), (1, true));
    }

    #[test]
    fn without_a_node_nothing_costs_money() {
        let none = Objects::new(builtin(), Timestamp::UNIX_EPOCH).checked();
        let Err(Failure::BadInput(told)) = none else { panic!("there is no node") };
        assert!(told.contains("kubectl get nodes,pods"), "{told}");
    }
}
