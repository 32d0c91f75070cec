//! `--anonymise`: gives names other names, the same for the same name wherever it stands, so that references and selectors still
//! match. Aliases sort as the names did, because plans break ties by names.

use std::collections::BTreeMap;

use poolwright_core::rules;
use poolwright_terms::{domains, keys, labels};
use serde_json::Value;

use super::fields::{Part, rewrite};
use super::kinds::Shapes;

/// Names that say nothing about whose cluster it is, or that are rules of Kubernetes and Poolwright.
const PUBLIC: [&str; 7] = [
    "default",
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "system-node-critical",
    "system-cluster-critical",
    // The container by which a head of Ray shows that it changes the number of its workers.
    "autoscaler",
];

/// Domains whose keys are public, also with something before them, beside those of clouds and programs that label nodes.
const PUBLIC_DOMAINS: [&str; 12] = [
    "kubernetes.io",
    "k8s.io",
    "x-k8s.io",
    keys::DOMAIN,
    "karpenter.sh",
    "nvidia.com",
    "amd.com",
    "intel.com",
    "google.com",
    "kubeflow.org",
    "ray.io",
    "volcano.sh",
];

/// Labels whose values are words of operators, beside those that an offering decides.
const PUBLIC_VALUES: [&str; 3] =
    ["training.kubeflow.org/replica-type", "training.kubeflow.org/job-role", "ray.io/node-type"];

/// Aliases by name.
#[derive(Default)]
pub struct Aliases(BTreeMap<String, String>);

impl Aliases {
    /// Chooses the aliases of all names in these objects, and of `more`, a namespace.
    pub fn of(items: &mut [Value], shapes: &Shapes, more: &str) -> Self {
        let mut known: BTreeMap<String, &'static str> = BTreeMap::new();
        let mut add = |word: &'static str, name: &str| {
            if !name.is_empty() && !PUBLIC.contains(&name) {
                known.entry(name.to_owned()).or_insert(word);
            }
        };
        // The kind of an object decides about the alias of its name, wherever else it stands.
        for item in items.iter_mut() {
            let Some(shape) = shapes.of(item) else { continue };
            rewrite(item, shape, "", &mut |part, text| {
                if let Part::Own(word) = part {
                    add(word, text);
                }
                None
            });
        }
        add("namespace", more);
        for item in items.iter_mut() {
            let Some(shape) = shapes.of(item) else { continue };
            rewrite(item, shape, "", &mut |part, text| {
                match part {
                    Part::Name(word) => add(word, text),
                    Part::Key if !is_public_key(text) => add("label", text),
                    Part::Value(key) if !is_public_value(key, text) => add("value", text),
                    Part::PodKey => {
                        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
                        add("namespace", namespace);
                        add("pod", owner_of_expected(name).unwrap_or(name));
                    }
                    Part::Own(_) | Part::Key | Part::Value(_) | Part::Text => {}
                }
                None
            });
        }
        let mut aliases = numbered(&known);
        for item in items.iter() {
            for (claim, alias) in ephemeral_claims(item, &aliases) {
                aliases.insert(claim, alias);
            }
        }
        Self(aliases)
    }

    /// Renames everything in an object.
    pub fn rename(&self, item: &mut Value, shapes: &Shapes) {
        let Some(shape) = shapes.of(item) else { return };
        rewrite(item, shape, "", &mut |part, text| match part {
            Part::Text => Some(String::new()),
            Part::Key if is_public_key(text) => None,
            Part::Value(key) if is_public_value(key, text) => None,
            Part::PodKey => Some(self.pod(text)),
            Part::Own(_) | Part::Name(_) | Part::Key | Part::Value(_) => self.0.get(text).cloned(),
        });
    }

    /// Returns the alias of a name; the name if it is public.
    pub fn name(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// Returns a pod as NodeClaims name it: `ml/train-0`, or `ml/Job:train#7` if it is still to come.
    fn pod(&self, text: &str) -> String {
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        let namespace = self.name(namespace);
        let Some(owner) = owner_of_expected(name) else { return format!("{namespace}/{}", self.name(name)) };
        let (kind, number) = (name.split_once(':'), name.rsplit_once('#'));
        let (kind, number) = (kind.map_or("", |(kind, _)| kind), number.map_or("", |(_, number)| number));
        format!("{namespace}/{kind}:{}#{number}", self.name(owner))
    }
}

/// Returns the name of the owner of a pod that is still to come: `train` of `Job:train#7`.
fn owner_of_expected(name: &str) -> Option<&str> {
    let (maker, _) = name.rsplit_once('#')?;
    Some(maker.split_once(':')?.1)
}

/// Numbers the names of each word in their order. All numbers of a word have as many digits.
fn numbered(known: &BTreeMap<String, &'static str>) -> BTreeMap<String, String> {
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    for &word in known.values() {
        *totals.entry(word).or_default() += 1;
    }
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    let alias = |(name, &word): (&String, &&'static str)| {
        let number = last.entry(word).or_default();
        *number += 1;
        let width = totals[word].to_string().len();
        (name.clone(), format!("{word}-{number:0width$}"))
    };
    known.iter().map(alias).collect()
}

/// Returns the PersistentVolumeClaims that Kubernetes makes for a pod, with the names that they get for its alias.
fn ephemeral_claims(item: &Value, aliases: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let Some(pod) = item["metadata"]["name"].as_str().filter(|_| item["kind"] == "Pod") else {
        return Vec::new();
    };
    let volumes = item["spec"]["volumes"].as_array().into_iter().flatten();
    let names = volumes.filter(|one| !one["ephemeral"].is_null()).filter_map(|one| one["name"].as_str());
    let alias = |name: &str| aliases.get(name).cloned().unwrap_or_else(|| name.to_owned());
    names.map(|name| (format!("{pod}-{name}"), format!("{}-{}", alias(pod), alias(name)))).collect()
}

fn is_public_key(key: &str) -> bool {
    let (domain, rest) = key.split_once('/').unwrap_or((key, ""));
    // A tag of a cloud ends with the name of a cluster: `kubernetes.io/cluster/prod`. No label has two slashes.
    if rest.contains('/') {
        return false;
    }
    let is_in =
        |known: &&str| domain.strip_suffix(*known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    // Node affinity by field names a node so.
    key == "metadata.name" || PUBLIC_DOMAINS.iter().any(is_in) || domains::is_set_by_others(key)
}

/// Returns whether a value of a label tells nothing about its cluster, or decides what may be bought.
fn is_public_value(key: &str, value: &str) -> bool {
    let is_short = value.len() <= 6 && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_decided = |key: &str| labels::DECIDED_BY_OFFERING.contains(&key);
    // Clouds and their drivers repeat such labels under keys of their own.
    let original = rules::repeats(key).or_else(|| domains::counterpart(key));
    is_short
        || ["true", "false"].contains(&value)
        || is_decided(key)
        || original.is_some_and(is_decided)
        || is_of_instance(key)
        || PUBLIC_VALUES.contains(&key)
        || key.starts_with("nvidia.com/")
}

/// Returns whether Karpenter, or a service that runs it, describes instance types by the label.
fn is_of_instance(key: &str) -> bool {
    let name = key.split_once('/').map_or("", |(_, name)| name);
    name.starts_with("instance-") && (domains::is_karpenters(key) || domains::is_foreign(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fields::kept;
    use super::super::kinds::kinds;
    use super::*;

    fn versioned(mut object: Value) -> Value {
        let kind =
            kinds().into_iter().find(|kind| object["kind"] == kind.name).expect("a kind of a snapshot");
        object["apiVersion"] = kind.api_version().into();
        object
    }

    #[test]
    fn a_name_has_one_alias_wherever_it_stands_and_what_decides_about_purchases_keeps_its_name() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "bert-0", "namespace": "acme", "uid": "u1",
                "labels": {"team": "vision", "topology.kubernetes.io/zone": "us-east-1a", "index": "7"},
                "ownerReferences": [{"kind": "StatefulSet", "name": "bert", "uid": "u2"}]},
            "spec": {"nodeName": "ip-10", "nodeSelector": {"acme.com/rack": "r17", "nvidia.com/gpu.product": "T4"},
                "volumes": [{"name": "scratch", "ephemeral": {}}],
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [
                        {"key": "team", "operator": "In", "values": ["vision"]}]}}]}}}});
        let set =
            json!({"kind": "StatefulSet", "metadata": {"name": "bert", "namespace": "acme", "uid": "u2"}});
        let claim = json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "bert-0-scratch", "namespace": "acme"}});
        let bought = json!({"kind": "NodeClaim", "metadata": {"name": "gpu-a", "annotations": {"poolwright.dev/reason": "for bert-0"}},
            "spec": {"pods": ["acme/bert-0", "acme/StatefulSet:bert#7"]}});
        let node = json!({"kind": "Node", "metadata": {"name": "ip-10", "labels": {"kubernetes.io/hostname": "ip-10"}}});
        let mut all: Vec<_> = [pod, set, claim, bought, node].into_iter().map(versioned).collect();
        let shapes = Shapes::new();
        let aliases = Aliases::of(&mut all, &shapes, "acme");
        for item in &mut all {
            aliases.rename(item, &shapes);
        }
        let [pod, set, claim, bought, node] = [0, 1, 2, 3, 4].map(|at| &all[at]);
        assert_eq!(pod["metadata"]["name"], "pod-1");
        assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], set["metadata"]["name"]);
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], set["metadata"]["uid"]);
        assert_eq!(pod["spec"]["nodeName"], node["metadata"]["name"]);
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], node["metadata"]["name"]);
        let terms =
            &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let selected = &terms[0]["labelSelector"]["matchExpressions"][0];
        let key = selected["key"].as_str().expect("a key");
        assert_eq!(pod["metadata"]["labels"][key], selected["values"][0]);
        assert_eq!(pod["metadata"]["labels"]["topology.kubernetes.io/zone"], "us-east-1a");
        assert_eq!(pod["spec"]["nodeSelector"]["nvidia.com/gpu.product"], "T4");
        let volume = &pod["spec"]["volumes"][0]["name"];
        assert_eq!(claim["metadata"]["name"], format!("pod-1-{}", volume.as_str().expect("a name")));
        assert_eq!(
            bought["spec"]["pods"],
            json!(["namespace-1/pod-1", "namespace-1/StatefulSet:statefulset-1#7"])
        );
        let text = json!(all).to_string();
        for name in ["acme", "bert", "vision", "team", "ip-10", "scratch", "r17", "gpu-a", "u1"] {
            assert!(!text.contains(name), "{name}: {text}");
        }
    }

    #[test]
    fn tasks_of_a_volcano_group_have_the_aliases_of_their_label() {
        let group = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "lot"},
            "spec": {"minMember": 2, "minTaskMember": {"reader": 2}, "queue": "slow", "networkTopology": {"mode": "soft", "x": 1}}});
        let written = group;
        let mut group =
            kept(&written, Shapes::new().of(&written).expect("it is in snapshots")).expect("an object");
        for field in ["apiVersion", "kind"] {
            group[field] = written[field].clone();
        }
        let pod = versioned(
            json!({"kind": "Pod", "metadata": {"name": "p", "labels": {"volcano.sh/task-spec": "reader"},
            "annotations": {"scheduling.k8s.io/group-name": "lot"}}}),
        );
        let (mut all, shapes) = ([group, pod], Shapes::new());
        let aliases = Aliases::of(&mut all, &shapes, "");
        for item in &mut all {
            aliases.rename(item, &shapes);
        }
        let [group, pod] = &all;
        let task = pod["metadata"]["labels"]["volcano.sh/task-spec"].as_str().expect("a task");
        let spec = json!({"minMember": 2, "minTaskMember": {task: 2}, "queue": aliases.name("slow"),
            "networkTopology": {"mode": "soft"}});
        assert_ne!(task, "reader");
        assert_eq!(group["spec"], spec);
        assert_eq!(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], group["metadata"]["name"]);
    }

    #[test]
    fn the_name_of_a_cluster_in_the_key_of_a_tag_is_not_public() {
        assert!(is_public_key("kubernetes.io/hostname") && is_public_key("karpenter.sh/discovery"));
        for key in ["kubernetes.io/cluster/acme", "k8s.io/cluster-autoscaler/acme"] {
            assert!(!is_public_key(key), "{key}");
        }
    }

    #[test]
    fn values_that_clouds_give_labels_of_their_own_are_public_if_they_decide_what_may_be_bought() {
        for (key, value) in [
            ("eks.amazonaws.com/capacityType", "ON_DEMAND"),
            ("karpenter.sh/capacity-type", "spot"),
            ("topology.ebs.csi.aws.com/zone", "us-east-1a"),
            ("karpenter.k8s.aws/instance-category", "g"),
            ("beta.kubernetes.io/instance-type", "g5.xlarge"),
        ] {
            assert!(is_public_value(key, value), "{key}");
        }
        for key in ["eks.amazonaws.com/nodegroup", "karpenter.sh/nodepool", "acme.com/instance-category"] {
            assert!(!is_public_value(key, "acme"), "{key}");
        }
    }

    #[test]
    fn aliases_sort_as_the_names_did() {
        let pods = (0..12).map(|at| json!({"kind": "Pod", "metadata": {"name": format!("p-{at:02}")}}));
        let mut pods: Vec<_> = pods.map(versioned).collect();
        let aliases = Aliases::of(&mut pods, &Shapes::new(), "");
        assert_eq!((aliases.name("p-01"), aliases.name("p-11")), ("pod-02".to_owned(), "pod-12".to_owned()));
        assert_eq!(aliases.name("kube-system"), "kube-system");
    }
}
