//! The clock, and what makes GPUs of nodes known to Kubernetes.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use poolwright_catalog::ResourceName;
use poolwright_provider_contract::preflight::Verdict;

/// Seconds. Leases, deadlines and certificates bear this much and little more.
const TOO_FAR: i64 = 5;

/// What makes NVIDIA's GPUs known: names and images of its device plugin and of the operator that installs it.
const PLUGINS: [&str; 3] = ["nvidia-device-plugin", "k8s-device-plugin", "gpu-operator"];

/// Whether the clock of the API server and ours agree. Its `Date` header has whole seconds.
pub fn clock(theirs: Option<Timestamp>, ours: Timestamp) -> Verdict {
    let Some(theirs) = theirs else { return Verdict::undetermined("no answer of the API server had a date") };
    let ahead = ours.as_second() - theirs.as_second();
    if ahead.abs() <= TOO_FAR {
        return Verdict::fine(format!("within {TOO_FAR} s of the API server's"));
    }
    let which = if ahead > 0 { "ahead of" } else { "behind" };
    Verdict::wrong(
        format!("the clock of this machine is {} s {which} the API server's", ahead.abs()),
        "timedatectl set-ntp true (here, or on the machine of the API server)",
    )
}

/// Whether anything makes GPUs known. Bottlerocket's images bring it along.
pub fn device_plugin(nodes: &[Node], daemonsets: &[DaemonSet], bottlerocket: bool) -> Verdict {
    let with_gpus = nodes.iter().filter(|node| advertises_gpus(node)).count();
    if with_gpus > 0 {
        let s = if with_gpus == 1 { " advertises" } else { "s advertise" };
        return Verdict::fine(format!("{with_gpus} node{s} {}", ResourceName::NVIDIA_GPU));
    }
    if let Some(daemonset) = daemonsets.iter().find(|one| is_plugin(one)) {
        let namespace = daemonset.namespace().unwrap_or_default();
        return Verdict::fine(format!(
            "DaemonSet {namespace}/{}; no node has GPUs yet",
            daemonset.name_any()
        ));
    }
    if bottlerocket {
        return Verdict::fine("Bottlerocket's images bring it along; no node has GPUs yet");
    }
    Verdict::wrong(
        format!(
            "no node advertises {}, and no DaemonSet would make one do so: nodes with GPUs would never open",
            ResourceName::NVIDIA_GPU
        ),
        "helm upgrade --install nvidia-device-plugin nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin -n kube-system, \
         and nvidia.com/gpu.present: \"true\" in template.metadata.labels of the pools, for its DaemonSet chooses nodes by that label",
    )
}

fn advertises_gpus(node: &Node) -> bool {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let gpus = allocatable.and_then(|allocatable| allocatable.get(ResourceName::NVIDIA_GPU));
    gpus.is_some_and(|gpus| gpus.0 != "0")
}

fn is_plugin(daemonset: &DaemonSet) -> bool {
    let is_one = |text: &str| PLUGINS.iter().any(|plugin| text.contains(plugin));
    let pod = daemonset.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let mut images = pod.into_iter().flat_map(|pod| &pod.containers).filter_map(|one| one.image.as_deref());
    is_one(&daemonset.name_any()) || images.any(is_one)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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

    #[test]
    fn gpus_are_known_by_a_node_that_has_some_or_by_what_will_make_them_known() {
        let fine = |verdict| matches!(verdict, Verdict::Fine(_));
        assert!(fine(device_plugin(&[node("0"), node("8")], &[], false)));
        assert!(fine(device_plugin(&[], &[daemonset("nvidia-device-plugin-ds", "x")], false)));
        assert!(fine(device_plugin(
            &[],
            &[daemonset("gpu", "nvcr.io/nvidia/k8s-device-plugin:v0.17.1")],
            false
        )));
        assert!(fine(device_plugin(&[], &[], true)));
        let none = device_plugin(&[node("0")], &[daemonset("kube-proxy", "kube-proxy")], false);
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
