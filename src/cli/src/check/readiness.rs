//! Checks of the clock, and of the software that advertises the GPUs of nodes to Kubernetes.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use poolwright_api::NodePool;
use poolwright_catalog::ResourceName;
use poolwright_core::rules::{self, Discovered, NewNodeLabels};
use poolwright_intake::ignored_annotations;
use poolwright_provider_contract::preflight::Verdict;

/// The largest tolerated difference of the clocks, in seconds. Leases, deadlines and certificates tolerate little more.
const TOO_FAR: i64 = 5;

/// The software that advertises NVIDIA GPUs: names and images of the device plugin and of the operator that installs it.
const PLUGINS: [&str; 3] = ["nvidia-device-plugin", "k8s-device-plugin", "gpu-operator"];

/// Checks whether the clock of the API server and the local clock agree. The `Date` header has whole seconds.
pub fn clock(server: Option<Timestamp>, local: Timestamp) -> Verdict {
    let Some(server) = server else {
        return Verdict::undetermined("no response of the API server had a Date header");
    };
    let ahead = local.as_second() - server.as_second();
    if ahead.abs() <= TOO_FAR {
        return Verdict::fine(format!("within {TOO_FAR} s of the API server's"));
    }
    let which = if ahead > 0 { "ahead of" } else { "behind" };
    Verdict::wrong(
        format!("this machine's clock is {} s {which} the API server's", ahead.abs()),
        "timedatectl set-ntp true (here, or on the machine of the API server)",
    )
}

/// The most pods that are named, unless all are.
const NAMED: usize = 3;

/// Finds pods with durations that cannot be read, which count as not given; `None` if there are none.
pub fn durations(pods: &[Pod], names_all: bool) -> Option<Verdict> {
    let of = |pod: &Pod| {
        let ignored = ignored_annotations(pod)?;
        Some(format!("{}/{}: {ignored}", pod.namespace().unwrap_or_default(), pod.name_any()))
    };
    let all: Vec<String> = pods.iter().filter_map(of).collect();
    let most = if names_all { all.len() } else { NAMED };
    let more = if all.len() > most { format!("; and {} more", all.len() - most) } else { String::new() };
    let named = all.iter().take(most).map(String::as_str).collect::<Vec<_>>().join("; ");
    let fix = "correct these annotations, or remove them, where the pods are created";
    (!all.is_empty()).then(|| Verdict::wrong(format!("ignored: {named}{more}"), fix))
}

/// The software that labels nodes with GPUs after they have joined.
const DISCOVERIES: [&str; 3] = ["gpu-operator", "node-feature-discovery", "gpu-feature-discovery"];

/// Checks whether something advertises the GPUs of nodes. `in_images` says whether the images of every node class contain the
/// device plugin.
///
/// A DaemonSet advertises the GPUs of a pool's nodes if it selects them by their labels and tolerates their taints. If GPU
/// discovery runs in the cluster, nodes also have the labels that it sets on them.
pub fn device_plugin(
    nodes: &[Node],
    daemonsets: &[DaemonSet],
    pools: &[NodePool],
    in_images: bool,
) -> Verdict {
    let with_gpus = nodes.iter().filter(|node| advertises_gpus(node)).count();
    if with_gpus > 0 {
        let s = if with_gpus == 1 { " advertises" } else { "s advertise" };
        return Verdict::fine(format!("{with_gpus} node{s} {}", ResourceName::NVIDIA_GPU));
    }
    let plugins: Vec<&DaemonSet> = daemonsets.iter().filter(|one| is_any(one, &PLUGINS)).collect();
    if let Some(daemonset) = plugins.first() {
        let name =
            format!("DaemonSet {}/{}", daemonset.namespace().unwrap_or_default(), daemonset.name_any());
        let is_discovered = daemonsets.iter().any(|one| is_any(one, &DISCOVERIES));
        let found = pools.iter().map(|pool| (pool.name_any(), chosen(&plugins, pool, is_discovered)));
        let found: Vec<(String, Chosen)> = found.collect();
        let names = |which: Chosen| {
            let names = found.iter().filter(|(_, chosen)| *chosen == which).map(|(name, _)| name.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        let (never, hardly) = (names(Chosen::Never), names(Chosen::NeverWithGpus));
        if !never.is_empty() {
            return Verdict::wrong(
                format!(
                    "{name} does not run on nodes of NodePool {never}, because of their labels or a taint; these nodes would never advertise GPUs"
                ),
                "kubectl patch nodepool NAME --type merge -p '{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"nvidia.com/gpu.present\":\"true\"}}}}}' \
                 (the label by which NVIDIA's chart chooses nodes; and a toleration in the chart's values for each taint of the pool)",
            );
        }
        if !hardly.is_empty() {
            return Verdict::undetermined(format!(
                "{name} would choose no node with GPUs of NodePool {hardly}, which may have others: give it requirements that leave out \
                 types with GPUs, or give pods with GPUs a pool of their own"
            ));
        }
        return Verdict::fine(format!("{name}; no node has GPUs yet"));
    }
    if in_images {
        return Verdict::fine("the images of the node classes contain it; no node has GPUs yet");
    }
    Verdict::wrong(
        format!(
            "no node advertises {}, and no DaemonSet installs a device plugin: new nodes would never advertise their GPUs",
            ResourceName::NVIDIA_GPU
        ),
        "helm upgrade --install nvidia-device-plugin nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin -n kube-system, \
         and nvidia.com/gpu.present: \"true\" in template.metadata.labels of the pools, because its DaemonSet selects nodes by that label",
    )
}

fn advertises_gpus(node: &Node) -> bool {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let gpus = allocatable.and_then(|allocatable| allocatable.get(ResourceName::NVIDIA_GPU));
    gpus.is_some_and(|gpus| gpus.0 != "0")
}

/// The nodes of a pool that the device plugins select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    /// Some nodes with GPUs, or the pool has no types with GPUs.
    Some,
    /// None, and all types of the pool have GPUs.
    Never,
    /// None with GPUs. The pool may buy types without GPUs.
    NeverWithGpus,
}

/// Returns the nodes of a pool on which these DaemonSets run; `is_discovered` says whether GPU discovery labels nodes. Zones are
/// ignored, because only the zones of one region are known here. DaemonSets that cannot be read, and those that choose nodes by what
/// only discovery finds out, count as selecting nodes.
fn chosen(plugins: &[&DaemonSet], pool: &NodePool, is_discovered: bool) -> Chosen {
    let plugins: Result<Vec<_>, _> = plugins.iter().map(|one| poolwright_intake::daemonset(one)).collect();
    let Ok(plugins) = plugins else { return Chosen::Some };
    let discovered = plugins.iter().filter(|_| is_discovered);
    let discovered: Vec<_> = discovered.map(|one| rules::without_unforeseen(&one.spec)).collect();
    let pool = poolwright_intake::node_pool(pool);
    let catalogue = poolwright_catalog::builtin();
    let (mut with_gpus, mut others) = (false, false);
    for offering in catalogue.offerings() {
        let has_gpus = catalogue.types()[&offering.id.instance_type].gpu.is_some();
        let offering = catalogue.node_labels(offering);
        let labels = NewNodeLabels { offering: &offering, template: &pool.labels, pool: &pool.name };
        let mut wanted = pool.requirements.iter().filter(|one| !one.key.starts_with("topology."));
        if !wanted.all(|one| rules::matches(one, &labels)) {
            continue;
        }
        if !has_gpus {
            others = true;
        } else if plugins.iter().any(|one| rules::daemonset_lands(&one.spec, &labels, &pool.taints))
            || discovered.iter().any(|spec| rules::daemonset_lands(spec, &Discovered(&labels), &pool.taints))
        {
            return Chosen::Some;
        } else {
            with_gpus = true;
        }
    }
    match (with_gpus, others) {
        (false, _) => Chosen::Some,
        (true, false) => Chosen::Never,
        (true, true) => Chosen::NeverWithGpus,
    }
}

fn is_any(daemonset: &DaemonSet, names: &[&str]) -> bool {
    let is_one = |text: &str| names.iter().any(|name| text.contains(name));
    let pod = daemonset.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let mut images = pod.into_iter().flat_map(|pod| &pod.containers).filter_map(|one| one.image.as_deref());
    is_one(&daemonset.name_any()) || images.any(is_one)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_with_durations_that_cannot_be_read_are_named() {
        let pod = |name: &str, duration: &str| -> Pod {
            let annotations = json!({"poolwright.dev/expected-duration": duration});
            serde_json::from_value(
                json!({"metadata": {"name": name, "namespace": "ml", "annotations": annotations}}),
            )
            .expect("a pod")
        };
        assert_eq!(durations(&[pod("a", "90m")], false), None);
        let bad = ["b", "c", "d", "e"].map(|name| pod(name, "soon"));
        let Some(Verdict::Wrong { why, .. }) = durations(&bad, false) else { panic!("nothing was found") };
        assert!(
            why.starts_with(
                "ignored: ml/b: annotation poolwright.dev/expected-duration: `soon` is not a duration"
            ),
            "{why}"
        );
        assert!(why.ends_with("; and 1 more") && !why.contains("ml/e"), "{why}");
        let Some(Verdict::Wrong { why, .. }) = durations(&bad, true) else { panic!("nothing was found") };
        assert!(why.contains("; ml/e: annotation ") && !why.contains("; and "), "{why}");
    }

    fn node(gpus: &str) -> Node {
        serde_json::from_value(
            json!({"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": gpus}}}),
        )
        .expect("a node")
    }

    fn daemonset(name: &str, image: &str) -> DaemonSet {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}))
        .expect("a daemonset")
    }

    fn pool(template: serde_json::Value) -> NodePool {
        let mut spec =
            json!({"nodeClassRef": {"group": "poolwright.dev", "kind": "EC2NodeClass", "name": "gpu"}});
        let (labels, taints) = (&template["labels"], &template["taints"]);
        spec["requirements"] = json!([{"key": "poolwright.dev/instance-family", "operator": "In", "values": [template["family"]]}]);
        if taints.is_array() {
            spec["taints"] = taints.clone();
        }
        let labels = if labels.is_object() { labels.clone() } else { json!({}) };
        serde_json::from_value(json!({"metadata": {"name": "gpu"}, "spec": {"template": {"metadata": {"labels": labels}, "spec": spec}}}))
            .expect("a pool")
    }

    /// Returns the DaemonSet as NVIDIA's chart makes it.
    fn of_the_chart() -> DaemonSet {
        let mut made = serde_json::to_value(daemonset("nvidia-device-plugin", "x")).expect("JSON");
        let term = |key: &str, value: &str| json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]});
        let terms = [
            term("feature.node.kubernetes.io/pci-10de.present", "true"),
            term("feature.node.kubernetes.io/cpu-model.vendor_id", "NVIDIA"),
            term("nvidia.com/gpu.present", "true"),
        ];
        let pods = &mut made["spec"]["template"]["spec"];
        pods["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        pods["tolerations"] =
            json!([{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]);
        serde_json::from_value(made).expect("a daemonset")
    }

    #[test]
    fn a_plugin_that_chooses_no_node_of_a_pool_with_gpus_is_told_with_the_pool() {
        let chart = of_the_chart();
        let verdict = |pools: &[NodePool], others: &[DaemonSet]| {
            let all: Vec<DaemonSet> = std::iter::once(chart.clone()).chain(others.iter().cloned()).collect();
            device_plugin(&[], &all, pools, false)
        };
        let fine = |verdict| matches!(verdict, Verdict::Fine(_));
        let present = json!({"nvidia.com/gpu.present": "true"});
        let of_nvidia = json!([{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]);
        let of_a_team = json!([{"key": "team", "value": "research", "effect": "NoSchedule"}]);
        assert!(fine(verdict(&[pool(json!({"family": "g5", "labels": present, "taints": of_nvidia}))], &[])));
        assert!(fine(verdict(&[pool(json!({"family": "m7i"}))], &[])), "it has no GPUs");
        assert!(fine(verdict(
            &[pool(json!({"family": "g5"}))],
            &[daemonset("node-feature-discovery-worker", "x")]
        )));
        let discovery = daemonset("node-feature-discovery-worker", "x");
        let tainted = pool(json!({"family": "g5", "taints": of_a_team}));
        let Verdict::Wrong { why, .. } = verdict(&[tainted], &[discovery]) else {
            panic!("discovery removes no taint")
        };
        assert!(why.contains("NodePool gpu"), "{why}");
        for unchosen in
            [json!({"family": "g5"}), json!({"family": "g5", "labels": present, "taints": of_a_team})]
        {
            let Verdict::Wrong { why, fix } = verdict(&[pool(unchosen)], &[]) else {
                panic!("it is not chosen")
            };
            assert!(
                why.contains("kube-system/nvidia-device-plugin") && why.contains("NodePool gpu"),
                "{why}"
            );
            assert!(fix.contains("nvidia.com/gpu.present"), "{fix}");
        }
    }

    #[test]
    fn gpus_are_known_by_a_node_that_has_some_or_by_what_will_make_them_known() {
        let fine = |verdict| matches!(verdict, Verdict::Fine(_));
        assert!(fine(device_plugin(&[node("0"), node("8")], &[], &[], false)));
        assert!(fine(device_plugin(&[], &[daemonset("nvidia-device-plugin-ds", "x")], &[], false)));
        assert!(fine(device_plugin(
            &[],
            &[daemonset("gpu", "nvcr.io/nvidia/k8s-device-plugin:v0.17.1")],
            &[],
            false
        )));
        assert!(fine(device_plugin(&[], &[], &[], true)));
        let none = device_plugin(&[node("0")], &[daemonset("kube-proxy", "kube-proxy")], &[], false);
        let Verdict::Wrong { fix, .. } = none else { panic!("{none:?}") };
        assert!(fix.contains("nvidia-device-plugin"), "{fix}");
    }

    #[test]
    fn a_clock_that_is_far_off_is_told_in_which_direction() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        assert!(matches!(clock(Some(at(100)), at(105)), Verdict::Fine(_)));
        let Verdict::Wrong { why, .. } = clock(Some(at(100)), at(90)) else {
            panic!("ten seconds are too many")
        };
        assert!(why.contains("10 s behind"), "{why}");
        assert!(matches!(clock(None, at(1)), Verdict::Undetermined(_)));
    }
}
