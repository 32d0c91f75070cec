//! The scheduler's cache.

use std::sync::Arc;

use poolwright_core::{PodKey, PodPhase, Snapshot};

use super::super::kit::{PodBuilder, cluster, fits, node, pod, room, tried};
use super::super::{Cluster, Outcome, schedule};

fn large(name: &str) -> PodBuilder {
    pod(name).spec(|spec| spec.requests = room(3000, 1))
}

#[test]
fn a_pod_that_is_being_bound_takes_its_room_at_once_and_gives_it_back_when_it_goes() {
    let mut cluster = cluster([node("n1", "a")], []);
    cluster.assume(&large("one").build(), "n1");
    assert!(fits(&cluster, large("two")).0.is_empty());
    // The watch delivers it again.
    cluster.set_pod(Arc::new(large("one").on("n1").build()));
    assert_eq!(fits(&cluster, pod("two")).0, ["n1"]);
    cluster.remove_pod(&PodKey::new("default", "one"));
    assert_eq!(fits(&cluster, large("two")).0, ["n1"]);
    cluster.set_pod(Arc::new(large("one").on("n1").build()));
    cluster.set_pod(Arc::new(large("one").on("n1").with(|pod| pod.phase = PodPhase::Finished).build()));
    assert_eq!(fits(&cluster, large("two")).0, ["n1"]);
}

#[test]
fn pods_are_told_before_their_node_or_outlive_it_and_count_when_it_is_there() {
    let mut cluster = Cluster::default();
    cluster.set_pod(Arc::new(large("one").on("n1").build()));
    cluster.set_node(Arc::new(node("n1", "a")));
    assert!(fits(&cluster, large("two")).0.is_empty());
    cluster.remove_node("n1");
    assert!(cluster.is_empty());
    cluster.set_node(Arc::new(node("n1", "a")));
    assert!(fits(&cluster, large("two")).0.is_empty());
    cluster.remove_node("n1");
    cluster.remove_pod(&PodKey::new("default", "one"));
    cluster.set_node(Arc::new(node("n1", "a")));
    assert_eq!(fits(&cluster, large("two")).0, ["n1"]);
}

#[test]
fn the_incremental_cluster_equals_a_fresh_snapshot() {
    let mut snapshot = Snapshot::default();
    let mut kept = Cluster::default();
    for number in 0..4 {
        let node = Arc::new(node(&format!("n{number}"), if number % 2 == 0 { "a" } else { "b" }));
        snapshot.nodes.insert(node.name.clone(), node.clone());
        kept.set_node(node);
    }
    for number in 0..20 {
        let one = pod(&format!("p{number}")).build();
        let outcome = schedule(&snapshot, &one, &mut |_| 0).expect("nothing in it is unknown");
        assert_eq!(outcome, tried(&kept, pod(&format!("p{number}"))));
        let Outcome::Bind { node } = outcome else { continue };
        kept.assume(&one, &node);
        let bound = pod(&one.key.name()).on(&node).build();
        snapshot.pods.insert(bound.key.clone(), Arc::new(bound));
    }
    assert_eq!(snapshot.pods.len(), 16, "four of them on each node");
}

#[test]
fn a_nominated_pod_binds_to_its_node_first() {
    let busy = || pod("there").on("n1");
    let cluster = cluster([node("n1", "a"), node("n2", "a")], [busy()]);
    assert_eq!(tried(&cluster, pod("p")), Outcome::Bind { node: "n2".to_owned() });
    let nominated = pod("p").with(|pod| pod.nominated_node = Some("n1".to_owned()));
    assert_eq!(tried(&cluster, nominated), Outcome::Bind { node: "n1".to_owned() });
    let full = large("p").with(|pod| {
        pod.nominated_node = Some("n1".to_owned());
        pod.spec.requests = room(3500, 1);
    });
    assert_eq!(tried(&cluster, full), Outcome::Bind { node: "n2".to_owned() });
}
