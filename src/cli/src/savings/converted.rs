//! What `convert` makes of Karpenter's NodePools, as the pools of the best plan, and as a summary.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_provider_contract::karpenter::Outcome;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels::DECIDED_BY_OFFERING;
use serde::Serialize;
use serde_json::Value;

use super::read::group;
use crate::args::SavingsFlags;
use crate::convert::{Problem, convert, labels_of_node};
use crate::source::Source;

/// What the conversion makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The number of Karpenter's NodePools.
    pub of: usize,
    /// The number of NodePools that they become.
    pub pools: usize,
    /// The number of node classes.
    pub node_classes: usize,
    /// Fields that stay.
    pub kept: usize,
    /// Fields that change.
    pub changed: usize,
    /// Fields without a counterpart.
    pub not_possible: usize,
    /// Why objects are not converted.
    pub problems: Vec<String>,
    /// The command that converts.
    pub next: String,
}

/// The objects that the conversion makes.
pub struct Converted {
    /// NodePools and node classes.
    pub objects: Vec<Value>,
    /// The summary.
    pub summary: Summary,
}

/// Converts Karpenter's objects, and changes what pods and DaemonSets that run take from Karpenter. Nodes get the labels that these then
/// ask for.
pub fn converted(karpenter: &[Value], running: &mut [Value], next: String) -> Converted {
    // Most pods take nothing, and there may be many.
    let is_of_karpenter =
        |object: &&Value| object["kind"] != "Node" && object.to_string().contains("karpenter");
    let users: Vec<Value> = running.iter().filter(is_of_karpenter).cloned().collect();
    let all = convert(&[named("Karpenter", karpenter), named("pods", &users)]);
    let mut places = BTreeMap::new();
    for (place, object) in running.iter().enumerate() {
        places.entry(id(object)).or_insert(place);
    }
    for made in &all.workloads {
        if let Some(place) = places.get(&id(made)) {
            running[*place]["spec"] = made["spec"].clone();
        }
    }
    let asked = asked_for(&all.workloads);
    for node in running.iter_mut().filter(|object| object["kind"] == "Node") {
        let Some(labels) = node.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) else {
            continue;
        };
        let more = labels_of_node(labels).into_iter().filter(|(key, _)| asked.contains(key));
        labels.extend(more.map(|(key, value)| (key.to_owned(), value.into())));
    }
    let is_pool = |object: &str| object.starts_with("NodePool/") || object.contains("NodeClass/");
    let notes = || all.notes.iter().filter(|note| is_pool(&note.object));
    let count = |outcome: Outcome| notes().filter(|note| note.outcome == outcome).count();
    let problems = all.problems.iter().filter(|problem| is_pool(&problem.object));
    let told = |one: &Problem| {
        let parts = [&one.object, &one.field, &one.cause].into_iter().filter(|part| !part.is_empty());
        parts.map(String::as_str).collect::<Vec<_>>().join(": ")
    };
    let summary = Summary {
        of: karpenter.iter().filter(|object| object["kind"] == "NodePool").count(),
        pools: all.manifests.len(),
        node_classes: all.node_classes.len(),
        kept: count(Outcome::Kept),
        changed: count(Outcome::Changed),
        not_possible: count(Outcome::NotPossible),
        problems: problems.map(told).collect(),
        next,
    };
    // What cannot be written as JSON is a bug of `convert`, which reports it.
    let pools = all.manifests.iter().filter_map(|pool| serde_json::to_value(pool).ok());
    Converted { objects: pools.chain(all.node_classes.iter().cloned()).collect(), summary }
}

/// Returns the labels by which converted pods choose nodes.
fn asked_for(workloads: &[Value]) -> BTreeSet<&'static str> {
    let specs: Vec<String> = workloads.iter().map(|made| made["spec"].to_string()).collect();
    let all = DECIDED_BY_OFFERING.into_iter().chain([NODEPOOL_LABEL]);
    all.filter(|key| specs.iter().any(|spec| spec.contains(*key))).collect()
}

/// Returns the command that converts what was read.
pub fn command(flags: &SavingsFlags, karpenter: &[Value]) -> String {
    if flags.filename.is_empty() {
        let kinds: BTreeSet<String> = karpenter.iter().map(resource).collect();
        let kinds: Vec<String> = kinds.into_iter().collect();
        return format!("kubectl get {} -o yaml | poolwright convert -f - > converted.yaml", kinds.join(","));
    }
    let files: Vec<String> = flags.filename.iter().map(|path| path.display().to_string()).collect();
    format!("poolwright convert -f {} > converted.yaml", files.join(" "))
}

/// Returns how kubectl names the resource of an object: `nodepools.karpenter.sh`.
fn resource(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let kind = text("kind").to_lowercase();
    let end = if kind.ends_with('s') { "es" } else { "s" };
    format!("{kind}{end}.{}", group(text("apiVersion")))
}

fn named(name: &str, objects: &[Value]) -> Source {
    Source { name: name.to_owned(), ..super::read::file(objects) }
}

/// Returns the kind, namespace and name of an object; each empty if it has none.
fn id(object: &Value) -> [String; 3] {
    let meta = &object["metadata"];
    [&object["kind"], &meta["namespace"], &meta["name"]]
        .map(|part| part.as_str().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pools_are_converted_and_pods_ask_for_labels_of_their_nodes() {
        let pool = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "general"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                ],
            }}},
        });
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "ml", "uid": "u"},
            "spec": {
                "nodeName": "n",
                "nodeSelector": {"karpenter.sh/capacity-type": "on-demand"},
                "containers": [{"name": "c", "image": "i"}],
            },
            "status": {"phase": "Running"},
        });
        let mut other = pod.clone();
        other["metadata"]["namespace"] = "web".into();
        other["metadata"]["uid"] = "v".into();
        other["spec"]["nodeSelector"] = json!({"karpenter.sh/capacity-type": "spot"});
        let mut running = [pod, other];
        let made = converted(&[pool], &mut running, "convert".to_owned());
        assert_eq!((made.summary.of, made.summary.pools), (1, 1), "{:?}", made.summary.problems);
        assert_eq!(made.objects[0]["apiVersion"], "poolwright.dev/v1alpha1");
        let selector = &running[0]["spec"]["nodeSelector"];
        assert_eq!(selector, &json!({"poolwright.dev/capacity-type": "on-demand"}));
        assert_eq!(running[0]["status"]["phase"], "Running", "the pod still runs");
        let selector = &running[1]["spec"]["nodeSelector"];
        assert_eq!(
            selector,
            &json!({"poolwright.dev/capacity-type": "spot"}),
            "one of the same name elsewhere"
        );
    }

    #[test]
    fn the_next_command_names_the_resources_of_the_cluster() {
        let object = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind});
        assert_eq!(resource(&object("karpenter.sh/v1", "NodePool")), "nodepools.karpenter.sh");
        let class = object("karpenter.k8s.aws/v1", "EC2NodeClass");
        assert_eq!(resource(&class), "ec2nodeclasses.karpenter.k8s.aws");
    }
}
