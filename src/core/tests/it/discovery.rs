//! Tests of DaemonSets that select nodes by labels which discovery software sets after a node has joined.

use std::collections::BTreeMap;

use poolwright_core::{
    Claim, DaemonSet, NodeSelectorTerm, Operator, Pod, PodSpec, Pool, Requirement, Snapshot, why,
};

use crate::kit::*;

/// Returns a DaemonSet of 1 core and 1 GiB with OR-ed terms of one label each.
fn selecting(labels: &[(&str, &str)]) -> DaemonSet {
    let term = |(key, value): &(&str, &str)| NodeSelectorTerm { requirements: vec![is_in(key, &[*value])] };
    let node_affinity = Some(labels.iter().map(term).collect());
    DaemonSet {
        key: object_key("agent"),
        labels: BTreeMap::new(),
        spec: PodSpec { requests: requests(1, 1, 0), node_affinity, ..PodSpec::default() },
    }
}

/// Returns the device plugin as NVIDIA's chart makes it.
fn device_plugin() -> DaemonSet {
    selecting(&[
        ("feature.node.kubernetes.io/pci-10de.present", "true"),
        ("feature.node.kubernetes.io/cpu-model.vendor_id", "NVIDIA"),
        ("nvidia.com/gpu.present", "true"),
    ])
}

fn cluster_with(daemon: DaemonSet, pool: Pool, pods: impl IntoIterator<Item = Pod>) -> Snapshot {
    with(with(cluster(aws(), [pool]), [daemon]), pods)
}

#[test]
fn a_daemonset_for_nodes_with_gpus_takes_room_there_and_on_no_other_node() {
    for set in [
        device_plugin(),
        selecting(&[("nvidia.com/gpu.deploy.dcgm-exporter", "true")]),
        selecting(&[("feature.node.kubernetes.io/pci-0302_10de.present", "true")]),
    ] {
        let snapshot = cluster_with(set.clone(), pool("gpu"), [pod("a", requests(4, 1, 1))]);
        let plan = planned(&snapshot);
        assert_eq!(bought(&plan), ["g5.12xlarge: a"], "on a g5.xlarge its pod leaves 3 cores");
        assert_eq!(why::uncounted_daemonsets(&snapshot, &plan), None);
        let plain = cluster_with(set, pool("gpu"), [pod("a", requests(4, 1, 0))]);
        assert_eq!(bought(&planned(&plain)), ["c7.xlarge: a"]);
    }
}

#[test]
fn a_daemonset_for_nodes_with_gpus_takes_room_of_nodes_that_have_not_joined() {
    let in_flight = Claim { planned_pods: vec![], ..claim() };
    let waiting = |cpu: u64| {
        let snapshot = cluster_with(device_plugin(), pool("gpu"), [pod("a", requests(cpu, 1, 0))]);
        planned(&with(snapshot, [in_flight.clone()])).claims.len()
    };
    assert_eq!((waiting(4), waiting(3)), (1, 0));
}

#[test]
fn a_label_of_the_pool_says_more_than_what_discovery_usually_sets() {
    let labels = [("nvidia.com/gpu.present".to_owned(), "false".to_owned())].into();
    let set = selecting(&[("nvidia.com/gpu.present", "true")]);
    let snapshot = cluster_with(set, Pool { labels, ..pool("gpu") }, [pod("a", requests(4, 1, 1))]);
    assert_eq!(bought(&planned(&snapshot)), ["g5.xlarge: a"]);
}

#[test]
fn a_daemonset_that_selects_by_what_nobody_can_foresee_is_named_with_the_label() {
    let avx = "feature.node.kubernetes.io/cpu-cpuid.AVX512F";
    let of = |pool: Pool| cluster_with(selecting(&[(avx, "true")]), pool, [pod("a", requests(4, 1, 1))]);
    let snapshot = of(pool("gpu"));
    let plan = planned(&snapshot);
    assert_eq!(bought(&plan), ["g5.xlarge: a"], "it is not counted");
    let note = why::uncounted_daemonsets(&snapshot, &plan).expect("it is named");
    assert!(
        note.starts_with(&format!("DaemonSet default/agent (`{avx}`) selects nodes by labels")),
        "{note}"
    );
    let labelled = of(Pool { labels: [(avx.to_owned(), "true".to_owned())].into(), ..pool("gpu") });
    let plan = planned(&labelled);
    assert_eq!(bought(&plan), ["g5.12xlarge: a"], "the advice helps");
    assert_eq!(why::uncounted_daemonsets(&labelled, &plan), None);
    let tainted = of(Pool { taints: vec![taint("team", "x")], ..pool("gpu") });
    assert_eq!(why::uncounted_daemonsets(&tainted, &planned(&tainted)), None, "its pods never come there");
}

#[test]
fn a_daemonset_that_excludes_a_label_of_discovery_takes_room_until_the_label_is_there() {
    let mut set = selecting(&[]);
    let absent = Requirement { key: "nvidia.com/gpu.present".into(), operator: Operator::DoesNotExist };
    set.spec.node_affinity = Some(vec![NodeSelectorTerm { requirements: vec![absent] }]);
    let plan = planned(&cluster_with(set, pool("gpu"), [pod("a", requests(4, 1, 1))]));
    assert_eq!(bought(&plan), ["g5.12xlarge: a"], "its pod runs on a new g5.xlarge and leaves 3 cores");
}
