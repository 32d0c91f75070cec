//! Tests of the resources that DaemonSet pods take on nodes.

use std::collections::BTreeMap;

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::index::{Change, ClusterIndex};
use poolwright_core::{Claim, DaemonSet, Pod, PodPhase, PodRole, PodSpec, Snapshot};

use crate::kit::*;

fn daemon(requests: ResourceList) -> DaemonSet {
    DaemonSet {
        key: object_key("agent"),
        labels: BTreeMap::new(),
        spec: PodSpec { requests, ..PodSpec::default() },
    }
}

fn cluster_with(daemon: DaemonSet, pods: impl IntoIterator<Item = Pod>) -> Snapshot {
    with(with(cluster(aws(), [pool("gpu")]), [daemon]), pods)
}

#[test]
fn a_daemonset_takes_room_on_every_new_node() {
    let plan = planned(&cluster_with(daemon(requests(1, 1, 0)), [pod("a", requests(4, 1, 1))]));
    assert_eq!(bought(&plan), ["g5.12xlarge: a"], "with the agent a g5.xlarge has only 3 cores for pods");
}

#[test]
fn a_daemonset_counts_only_where_it_lands() {
    let mut picky = daemon(requests(1, 1, 0));
    picky.spec.node_selector.insert("poolwright.dev/gpu-model".into(), "l4".into());
    let plan = planned(&cluster_with(picky, [pod("a", requests(4, 1, 1))]));
    assert_eq!(bought(&plan), ["g5.xlarge: a"]);
    let types: Vec<_> = plan.claims[0].offerings.iter().map(|o| o.offering.instance_type.as_str()).collect();
    assert_eq!(types, ["g5.xlarge", "g5.xlarge"], "on a g6.xlarge the agent leaves too little");
    let tainted = poolwright_core::Pool { taints: vec![taint("gpu", "")], ..pool("gpu") };
    let mut tolerant = pod("a", requests(4, 1, 1));
    tolerant.spec.tolerations = vec![tolerate("gpu")];
    let snapshot = with(with(cluster(aws(), [tainted]), [daemon(requests(1, 1, 0))]), [tolerant]);
    assert_eq!(bought(&planned(&snapshot)), ["g5.xlarge: a"], "the agent does not tolerate the taint");
}

#[test]
fn a_daemonset_takes_room_of_claims_in_flight() {
    let in_flight = Claim { planned_pods: vec![], ..claim() };
    let snapshot =
        with(cluster_with(daemon(requests(1, 1, 0)), [pod("a", requests(4, 1, 0))]), [in_flight.clone()]);
    assert_eq!(planned(&snapshot).claims.len(), 1);
    let snapshot = with(cluster_with(daemon(requests(1, 1, 0)), [pod("a", requests(3, 1, 0))]), [in_flight]);
    assert_eq!(planned(&snapshot).claims.len(), 0);
}

#[test]
fn on_a_node_it_counts_once_before_and_after_its_pod_has_come() {
    let waits = pod("a", requests(3, 1, 0));
    let before = with(cluster_with(daemon(requests(1, 1, 0)), [waits]), [node("n", capacity(4, 16, 0))]);
    assert_eq!(planned(&before).claims.len(), 0);
    let arrived = Pod { role: PodRole::DaemonSet, ..bound(pod("agent-x7k2p", requests(1, 1, 0)), "n") };
    assert_eq!(planned(&with(before.clone(), [arrived])).claims.len(), 0);
    let stranger = Pod { role: PodRole::DaemonSet, ..bound(pod("agent-two-x7k2p", requests(1, 1, 0)), "n") };
    assert_eq!(planned(&with(before, [stranger])).claims.len(), 1, "it belongs to another DaemonSet");
}

#[test]
fn the_places_of_daemonset_pods_count_too() {
    let few = capacity(8, 32, 0).with(ResourceName::PODS, 3);
    let kinds = catalogue(vec![Kind("few", few, None, &[("a", "1.00")])]);
    let pods = ["a", "b", "c"].map(|name| pod(name, requests(1, 1, 0)));
    let snapshot = with(with(cluster(kinds, [pool("gpu")]), [daemon(requests(1, 1, 0))]), pods);
    assert_eq!(planned(&snapshot).claims.len(), 2);
}

#[test]
fn pods_of_a_daemonset_that_ask_for_more_than_its_template_count_as_they_are() {
    let agent = |name: &str, cores: u64| Pod {
        role: PodRole::DaemonSet,
        ..bound(pod(name, requests(cores, 1, 0)), "elsewhere")
    };
    let mut index = ClusterIndex::new();
    index.apply_daemonset(daemon(requests(0, 1, 0)));
    let cores = |index: &ClusterIndex| {
        let sets = &index.view().daemonsets;
        sets.get(&object_key("agent")).expect("it is there").spec.requests.get(ResourceName::CPU) / 1000
    };
    assert_eq!(cores(&index), 0);
    assert_eq!(index.apply_pod(agent("agent-aaaaa", 2)), Change::Room);
    assert_eq!(index.apply_pod(agent("agent-bbbbb", 1)), Change::Life, "it changes nothing");
    assert_eq!(cores(&index), 2);
    index.apply_pod(agent("agent-two-aaaaa", 9));
    let leaves = Pod { deleting_since: Some(at(1)), ..agent("agent-ddddd", 9) };
    index.apply_pod(leaves);
    assert_eq!(cores(&index), 2, "the pod of another DaemonSet, and one that is being deleted");
    index.apply_daemonset(DaemonSet {
        labels: BTreeMap::from([("app".to_owned(), "new".to_owned())]),
        ..daemon(requests(0, 1, 0))
    });
    assert_eq!(cores(&index), 2, "a new template changes nothing about the pods that are there");
    assert_eq!(index.delete_pod(&object_key("agent-aaaaa")), Change::Room);
    assert_eq!(cores(&index), 1);
    assert_eq!(index.reset_pods([agent("agent-ccccc", 3)]), Change::Room);
    assert_eq!(cores(&index), 3);
    index.reset_pods([]);
    assert_eq!(cores(&index), 0);
}

#[test]
fn a_pod_that_names_its_daemonset_is_its_pod_whatever_its_own_name_is() {
    let named = |name: &str, set: &str, cores: u64| Pod {
        role: PodRole::DaemonSet,
        daemonset: Some(set.to_owned()),
        ..bound(pod(name, requests(cores, 1, 0)), "n")
    };
    let cores = |index: &ClusterIndex| {
        let sets = &index.view().daemonsets;
        sets.get(&object_key("agent")).expect("it is there").spec.requests.get(ResourceName::CPU) / 1000
    };
    for name in ["agent-x", "agent-node1", "x"] {
        let mut index = ClusterIndex::new();
        index.apply_daemonset(daemon(requests(1, 1, 0)));
        assert_eq!(index.apply_pod(named(name, "agent", 2)), Change::Room, "{name}");
        assert_eq!(cores(&index), 2, "{name}");
        // Another DaemonSet adopts it.
        assert_eq!(index.apply_pod(named(name, "other", 2)), Change::Room, "{name}");
        assert_eq!(cores(&index), 1, "{name}");
        let waits = pod("a", requests(3, 1, 0));
        let before = with(cluster_with(daemon(requests(1, 1, 0)), [waits]), [node("n", capacity(4, 16, 0))]);
        let of_agent = with(before, [named(name, "agent", 1)]);
        assert_eq!(planned(&of_agent).claims.len(), 0, "{name} is the agent, which counts once");
    }
    let mut index = ClusterIndex::new();
    index.apply_daemonset(daemon(requests(1, 1, 0)));
    index.apply_pod(named("agent-x7k2p", "other", 2));
    assert_eq!(cores(&index), 1, "it only looks like a pod of the agent");
}

#[test]
fn a_pod_of_a_daemonset_that_has_ended_takes_no_other_pod_of_its_size_with_it() {
    let agent =
        |name: &str| Pod { role: PodRole::DaemonSet, ..bound(pod(name, requests(2, 1, 0)), "elsewhere") };
    let mut index = ClusterIndex::new();
    index.apply_daemonset(daemon(requests(1, 1, 0)));
    index.apply_pod(agent("agent-aaaaa"));
    index.apply_pod(agent("agent-bbbbb"));
    index.apply_pod(Pod { phase: PodPhase::Finished, ..agent("agent-aaaaa") });
    index.delete_pod(&object_key("agent-aaaaa"));
    let sets = &index.view().daemonsets;
    let sized = sets.get(&object_key("agent")).expect("it is there");
    assert_eq!(sized.spec.requests.get(ResourceName::CPU), 2000);
}
