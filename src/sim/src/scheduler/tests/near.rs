//! Rules about other pods: spread, affinity, anti-affinity.

use poolwright_core::{ObjectKey, PodKey, Profile, Service, TopologySpreadConstraint};
use poolwright_terms::TaintEffect;
use poolwright_terms::labels::{HOSTNAME, ZONE};

use super::super::kit::{PodBuilder, cluster, fits, is, node, only, pod, spread, taint, term};
use super::super::{Cluster, Scheduler};

const SPREAD: &str = "node(s) didn't match pod topology spread constraints";

fn spreading(change: impl FnOnce(&mut TopologySpreadConstraint)) -> PodBuilder {
    let mut rule = spread("web", ZONE);
    change(&mut rule);
    pod("p").spec(|spec| spec.spreads = vec![rule])
}

/// Returns two pods of `web` in zone a, one in b, none in c.
fn three_zones() -> Cluster {
    cluster(
        [node("n1", "a"), node("n2", "b"), node("n3", "c")],
        [pod("one").on("n1"), pod("two").on("n1"), pod("three").on("n2")],
    )
}

#[test]
fn pods_are_spread_so_that_no_place_has_more_than_the_skew_beyond_the_emptiest() {
    let cluster = three_zones();
    assert_eq!(fits(&cluster, spreading(|_| {})), (vec!["n3".to_owned()], format!("{SPREAD}; {SPREAD}")));
    assert_eq!(fits(&cluster, spreading(|rule| rule.max_skew = 2)).0, ["n2", "n3"]);
    // Pods that the rule does not count change nothing.
    assert_eq!(fits(&cluster, spreading(|_| {}).app("db")).0, ["n2", "n3"]);
}

#[test]
fn a_spread_counts_pods_of_its_namespace_that_stay() {
    let gone = pod("two").on("n1").with(|pod| pod.deleting_since = Some(pod.created));
    let foreign = pod("three").on("n1").with(|pod| pod.key = PodKey::new("other", pod.key.name()));
    let cluster = cluster([node("n1", "a"), node("n2", "b")], [gone, foreign]);
    assert_eq!(fits(&cluster, spreading(|_| {})).0, ["n1", "n2"]);
}

#[test]
fn with_fewer_places_than_wanted_the_emptiest_counts_as_empty() {
    let cluster = cluster([node("n1", "a"), node("n2", "b")], [pod("one").on("n1"), pod("two").on("n2")]);
    assert_eq!(fits(&cluster, spreading(|_| {})).0.len(), 2);
    assert!(fits(&cluster, spreading(|rule| rule.min_domains = Some(3))).0.is_empty());
}

#[test]
fn a_node_without_the_label_takes_no_pod_that_is_spread_over_it() {
    let mut bare = node("n1", "a");
    bare.labels.remove(ZONE);
    let cluster = cluster([bare], []);
    assert_eq!(fits(&cluster, spreading(|_| {})).1, format!("{SPREAD} (missing required label)"));
}

#[test]
fn nodes_that_the_pod_may_not_have_count_unless_the_rule_says_otherwise() {
    let mut tainted = node("n3", "c");
    tainted.taints = vec![taint(TaintEffect::NoSchedule)];
    let cluster =
        cluster([node("n1", "a"), node("n2", "b"), tainted], [pod("one").on("n1"), pod("two").on("n2")]);
    // Zone c is empty. The pod does not tolerate its taint, but the zone counts.
    assert!(fits(&cluster, spreading(|_| {})).0.is_empty());
    assert_eq!(fits(&cluster, spreading(|rule| rule.honor_node_taints = true)).0, ["n1", "n2"]);
    // The constraint honours node affinity, unless told not to.
    let not_c = |made: PodBuilder| {
        made.spec(|spec| spec.node_affinity = Some(vec![only(ZONE, "a"), only(ZONE, "b")]))
    };
    assert_eq!(fits(&cluster, not_c(spreading(|_| {}))).0, ["n1", "n2"]);
    assert!(fits(&cluster, not_c(spreading(|rule| rule.ignore_node_affinity = true))).0.is_empty());
}

#[test]
fn pods_of_a_service_are_spread_as_the_profile_says() {
    let mut cluster = three_zones();
    let service =
        Service { key: ObjectKey::new("default", "web"), selector: [("app".into(), "web".into())].into() };
    let snapshot = poolwright_core::Snapshot {
        services: [(service.key.clone(), std::sync::Arc::new(service))].into(),
        ..poolwright_core::Snapshot::default()
    };
    cluster.set_around(&snapshot);
    let rule = TopologySpreadConstraint { selector: None, ..spread("", ZONE) };
    let profile = Profile { spreads: vec![rule], ..Profile::default() };
    let scheduler = Scheduler { profiles: [("even".to_owned(), profile)].into() };
    let nodes =
        |made: PodBuilder| scheduler.feasible(&cluster, &made.build()).expect("nothing is unknown").nodes;
    let even = |app: &str| pod("p").app(app).with(|pod| pod.scheduler = "even".to_owned());
    assert_eq!(nodes(even("web")), ["n3"]);
    assert_eq!(nodes(even("db")).len(), 3, "of no Service");
    assert_eq!(nodes(pod("p")).len(), 3, "of another profile");
}

#[test]
fn a_pod_with_affinity_goes_where_those_are_that_it_wants_and_the_first_of_its_kind_goes_anywhere() {
    let near = |app: &str, of: &str| pod("p").app(app).spec(|spec| spec.affinity = vec![term(of, ZONE)]);
    let db = || pod("db").app("db").on("n1");
    let cluster = cluster([node("n1", "a"), node("n2", "a"), node("n3", "b")], [db()]);
    let reason = "node(s) didn't match pod affinity rules";
    assert_eq!(fits(&cluster, near("web", "db")), (vec!["n1".into(), "n2".into()], reason.to_owned()));
    assert_eq!(fits(&cluster, near("web", "web")).0.len(), 3, "the first of its kind");
    assert!(fits(&cluster, near("web", "cache")).0.is_empty(), "nobody is there, and it is none itself");
    let both = near("web", "db").spec(|spec| spec.affinity.push(term("cache", ZONE)));
    assert!(fits(&cluster, both).0.is_empty(), "one pod must meet all terms");
}

#[test]
fn pods_keep_away_from_each_other_whoever_came_first() {
    let shy = |name: &str, app: &str, of: &str| {
        pod(name).app(app).spec(|spec| spec.anti_affinity = vec![term(of, ZONE)])
    };
    let nodes = || [node("n1", "a"), node("n2", "a"), node("n3", "b")];
    let theirs = cluster(nodes(), [shy("there", "db", "web").on("n1")]);
    let reason = "node(s) didn't satisfy existing pods anti-affinity rules";
    assert_eq!(fits(&theirs, pod("p")), (vec!["n3".to_owned()], format!("{reason}; {reason}")));
    let ours = cluster(nodes(), [pod("there").app("db").on("n1")]);
    let reason = "node(s) didn't match pod anti-affinity rules";
    assert_eq!(fits(&ours, shy("p", "web", "db")), (vec!["n3".to_owned()], format!("{reason}; {reason}")));
    assert_eq!(fits(&ours, shy("p", "web", "web")).0.len(), 3, "it may be near others");
}

#[test]
fn a_node_without_the_topology_label_is_in_no_domain() {
    let mut bare = node("n1", "a");
    bare.labels.remove(HOSTNAME);
    let cluster = cluster([bare], [pod("there").on("n1")]);
    let shy = pod("p").spec(|spec| spec.anti_affinity = vec![term("web", HOSTNAME)]);
    assert_eq!(fits(&cluster, shy).0, ["n1"]);
    let near = pod("p").spec(|spec| spec.affinity = vec![term("web", HOSTNAME)]);
    assert!(fits(&cluster, near).0.is_empty());
}

#[test]
fn a_nominated_pod_does_not_block_a_pod_by_anti_affinity_alone() {
    let shy = || pod("shy").priority(9).spec(|spec| spec.anti_affinity = vec![term("web", HOSTNAME)]);
    let nominated = || shy().with(|pod| pod.nominated_node = Some("n1".to_owned()));
    let nodes = || [node("n1", "a"), node("n2", "a")];
    // The kube-scheduler applies such rules only if one matches at the start.
    assert_eq!(fits(&cluster(nodes(), [nominated()]), pod("p")).0, ["n1", "n2"]);
    let other = shy().with(|pod| pod.key = PodKey::new(pod.key.namespace(), "other")).on("n2");
    assert!(fits(&cluster(nodes(), [nominated(), other]), pod("p")).0.is_empty());
}

#[test]
fn pods_for_which_room_is_made_count_against_those_that_are_not_more_important() {
    let nominated = || pod("first").priority(5).spec(|spec| spec.requests = super::super::kit::room(4000, 1));
    let nominated = nominated().with(|pod| pod.nominated_node = Some("n1".to_owned()));
    let cluster = cluster([node("n1", "a")], [nominated]);
    assert_eq!(fits(&cluster, pod("p")), (vec![], "Insufficient cpu".to_owned()));
    assert!(fits(&cluster, pod("p").priority(5)).0.is_empty());
    assert_eq!(fits(&cluster, pod("p").priority(6)).0, ["n1"]);
    // No pod may rely on a pod that is not bound yet.
    let near = pod("p").app("db").priority(6).spec(|spec| spec.affinity = vec![term("web", ZONE)]);
    assert!(fits(&cluster, near).0.is_empty());
    let with = spread("web", ZONE);
    assert_eq!(with.selector, Some(vec![is("app", "web")]));
}
