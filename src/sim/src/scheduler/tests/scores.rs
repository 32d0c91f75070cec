//! Scores: which of several fitting nodes is chosen.

use poolwright_core::{Preferences, Weighted};
use poolwright_terms::TaintEffect;
use poolwright_terms::labels::{HOSTNAME, ZONE};

use super::super::kit::{PodBuilder, cluster, node, only, pod, room, spread, taint, term};
use super::super::{Cluster, MayPreempt, Outcome, Scheduler};

fn best(cluster: &Cluster, made: PodBuilder) -> Vec<String> {
    Scheduler::default().feasible(cluster, &made.build()).expect("nothing in it is unknown").best
}

fn preferring(change: impl FnOnce(&mut Preferences)) -> PodBuilder {
    let mut preferences = Preferences::default();
    change(&mut preferences);
    pod("p").spec(|spec| spec.preferences = preferences.some())
}

#[test]
fn the_node_with_most_room_is_the_best_and_of_equal_ones_the_caller_chooses() {
    let cluster = cluster([node("n1", "a"), node("n2", "a"), node("n3", "a")], [pod("there").on("n2")]);
    assert_eq!(best(&cluster, pod("p")), ["n1", "n3"]);
    let scheduler = Scheduler::default();
    let mut attempt = Vec::new();
    let mut last = |count: usize| {
        attempt.push(count);
        count - 1
    };
    let outcome = scheduler.schedule(&cluster, &pod("p").build(), MayPreempt::LessImportant, &mut last);
    assert_eq!(outcome, Ok(Outcome::Bind { node: "n3".to_owned() }));
    assert_eq!(attempt, [2]);
}

#[test]
fn cpu_and_memory_are_to_be_used_alike() {
    // Both nodes have the same free share, but the rest of n1 has the shape of the pod.
    let there = |name: &str, cpu, gib| pod(name).spec(|spec| spec.requests = room(cpu, gib));
    let cluster = cluster(
        [node("n1", "a"), node("n2", "a")],
        [there("much-memory", 0, 8).on("n1"), there("much-cpu", 2000, 0).on("n2")],
    );
    let cpu_only = pod("p").spec(|spec| spec.requests = room(1000, 0));
    assert_eq!(best(&cluster, cpu_only), ["n1"]);
}

#[test]
fn soft_taints_are_avoided() {
    let mut tainted = node("n1", "a");
    tainted.taints = vec![taint(TaintEffect::PreferNoSchedule)];
    let cluster = cluster([tainted, node("n2", "a")], [pod("there").on("n2")]);
    assert_eq!(best(&cluster, pod("p")), ["n2"]);
}

#[test]
fn preferred_node_affinity_goes_by_weight() {
    let cluster = cluster([node("n1", "a"), node("n2", "b")], []);
    let rather = |a, b| {
        preferring(|preferences| {
            let preference = |zone: &str, weight| Weighted { weight, term: only(ZONE, zone) };
            preferences.nodes = vec![preference("a", a), preference("b", b)];
        })
    };
    assert_eq!(best(&cluster, rather(10, 20)), ["n2"]);
    assert_eq!(best(&cluster, rather(30, 20)), ["n1"]);
}

#[test]
fn a_preferred_spread_goes_to_the_emptier_place_and_past_nodes_without_its_label() {
    let mut bare = node("n3", "c");
    bare.labels.remove(ZONE);
    let there = [pod("one").on("n1"), pod("two").on("n1")];
    let cluster = cluster([node("n1", "a"), node("n2", "b"), bare], there);
    assert_eq!(best(&cluster, pod("p")), ["n2", "n3"]);
    let spread = preferring(|preferences| preferences.spreads = vec![spread("web", ZONE)]);
    assert_eq!(best(&cluster, spread), ["n2"]);
}

#[test]
fn pods_of_a_service_are_spread_over_hosts_and_zones_by_default() {
    // Both nodes of zone a have the same load; the pods on n1 belong to the Service.
    let nodes = [node("n1", "a"), node("n2", "a")];
    let mut cluster = cluster(nodes, [pod("one").on("n1"), pod("other").app("db").on("n2")]);
    assert_eq!(best(&cluster, pod("p")), ["n1", "n2"]);
    let selector = [("app".to_owned(), "web".to_owned())].into();
    let service =
        poolwright_core::Service { key: poolwright_core::ObjectKey::new("default", "web"), selector };
    cluster.set_around(&poolwright_core::Snapshot {
        services: [(service.key.clone(), std::sync::Arc::new(service))].into(),
        ..poolwright_core::Snapshot::default()
    });
    assert_eq!(best(&cluster, pod("p")), ["n2"]);
}

#[test]
fn pods_are_drawn_to_those_they_like_and_to_those_that_like_them() {
    let nodes = || [node("n1", "a"), node("n2", "b")];
    let there = || pod("there").app("db").on("n1");
    let weighted = |app: &str, key: &str| vec![Weighted { weight: 50, term: term(app, key) }];
    let plain = cluster(nodes(), [there()]);
    assert_eq!(best(&plain, pod("p")), ["n2"]);
    assert_eq!(best(&plain, preferring(|preferences| preferences.affinity = weighted("db", ZONE))), ["n1"]);
    assert_eq!(
        best(&plain, preferring(|preferences| preferences.anti_affinity = weighted("db", HOSTNAME))),
        ["n2"]
    );
    let likes = Preferences { affinity: weighted("web", ZONE), ..Preferences::default() };
    let liking = cluster(nodes(), [there().spec(|spec| spec.preferences = likes.some())]);
    assert_eq!(best(&liking, pod("p")), ["n1"]);
    // A required affinity of another pod counts too.
    let needing = cluster(nodes(), [there().spec(|spec| spec.affinity = vec![term("web", ZONE)])]);
    assert_eq!(best(&needing, pod("p")), ["n1"]);
}
