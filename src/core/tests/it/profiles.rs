//! Tests of scheduler profiles: default spread constraints and added affinity.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::Catalogue;
use poolwright_core::plan::{Plan, PlanOptions, UnplacedReason, plan};
use poolwright_core::{
    EnforcedAffinity, Node, NodeSelectorTerm, Pod, Profile, Service, Snapshot, TopologySpreadConstraint, Uid,
    Weighted, Workload, why,
};
use poolwright_solver::NeverStop;
use poolwright_terms::labels::ZONE;

use crate::kit::*;

const FILE: &str = "scheduler.yaml";

/// Returns one type in three zones, cheapest in the first. Two pods fill a node.
fn three_zones() -> Catalogue {
    let prices = &[("a", "0.20"), ("b", "0.21"), ("c", "0.22")];
    catalogue(vec![Kind("c7.large", capacity(2, 8, 0), None, prices)])
}

fn app(name: &str, app: &str) -> Pod {
    let labels = BTreeMap::from([("app".to_owned(), app.to_owned())]);
    Pod { labels: labels.into(), ..pod(name, requests(1, 1, 0)) }
}

/// Returns a cluster with pods a, b and c of the app `web`.
fn web() -> Snapshot {
    with(cluster(three_zones(), [pool("any")]), ["a", "b", "c"].map(|name| app(name, "web")))
}

fn node_in_a(name: &str) -> Node {
    let labels = [(ZONE, "a"), ("kubernetes.io/hostname", name)];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    Node { labels, ..node(name, capacity(2, 8, 0)) }
}

fn service(namespace: &str, of: &str) -> Service {
    let selector = BTreeMap::from([("app".to_owned(), of.to_owned())]);
    Service { key: poolwright_core::ObjectKey::new(namespace, of), selector }
}

fn served(mut snapshot: Snapshot, service: Service) -> Snapshot {
    snapshot.services.insert(service.key.clone(), Arc::new(service));
    snapshot
}

fn over_zones(max_skew: u32) -> TopologySpreadConstraint {
    let default_of = Some(FILE.to_owned());
    TopologySpreadConstraint {
        topology_key: ZONE.into(),
        max_skew,
        default_of,
        ..TopologySpreadConstraint::default()
    }
}

fn spreading() -> Profile {
    Profile { spreads: vec![over_zones(1)], ..Profile::default() }
}

fn enforcing(key: &str, value: &str) -> Profile {
    let terms = vec![NodeSelectorTerm { requirements: vec![is_in(key, &[value])] }];
    Profile { enforced: Some(EnforcedAffinity { source: FILE.into(), terms }), ..Profile::default() }
}

fn options(profile: Profile) -> PlanOptions {
    PlanOptions { profiles: [("default-scheduler".to_owned(), profile)].into(), ..PlanOptions::default() }
}

fn planned_with(snapshot: &Snapshot, options: &PlanOptions) -> Plan {
    let plan = plan(snapshot, at(10), options, &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    plan
}

/// Returns the number of pods that go to each zone.
fn zones(plan: &Plan) -> BTreeMap<String, usize> {
    let mut zones = BTreeMap::new();
    for claim in &plan.claims {
        *zones.entry(claim.offering().zone.to_string()).or_default() += claim.planned_pods.len();
    }
    zones
}

fn in_each() -> BTreeMap<String, usize> {
    ["a", "b", "c"].map(|zone| (zone.to_owned(), 1)).into()
}

fn in_cheapest() -> BTreeMap<String, usize> {
    [("a".to_owned(), 3)].into()
}

#[test]
fn pods_of_a_service_are_spread_as_the_scheduler_does_by_default() {
    let snapshot = served(web(), service("default", "web"));
    assert_eq!(zones(&planned_with(&snapshot, &options(spreading()))), in_each());
    assert_eq!(zones(&planned(&snapshot)), in_cheapest());
}

#[test]
fn pods_that_nothing_chooses_are_not_spread() {
    for other in [service("default", "api"), service("elsewhere", "web")] {
        let plan = planned_with(&served(web(), other), &options(spreading()));
        assert_eq!(zones(&plan), in_cheapest());
    }
}

#[test]
fn the_selector_is_that_of_the_controllers_that_the_scheduler_looks_at() {
    let owned = |kind: &str| {
        let mut snapshot = web();
        for name in ["a", "b", "c"] {
            snapshot.pods.change(&key(name), |pod| pod.owner = Some(Uid("owner".into())));
        }
        let (kind, uid) = (kind.to_owned(), Uid("owner".into()));
        let selector = Some(vec![is_in("app", &["web"])]);
        let workload = Workload {
            kind,
            key: object_key("w"),
            uid,
            owner: None,
            total: 3,
            wanted: 0,
            current: 3,
            scheduling_gated: false,
            selector,
        };
        snapshot.workloads.insert((workload.kind.clone(), workload.key.clone()), Arc::new(workload));
        zones(&planned_with(&snapshot, &options(spreading())))
    };
    for kind in ["ReplicaSet", "StatefulSet", "ReplicationController"] {
        assert_eq!(owned(kind), in_each(), "{kind}");
    }
    assert_eq!(owned("Job"), in_cheapest());
}

#[test]
fn a_pod_with_constraints_of_its_own_has_no_others() {
    let mut snapshot = served(web(), service("default", "web"));
    let selector = Some(vec![is_in("app", &["web"])]);
    for name in ["a", "b", "c"] {
        snapshot.pods.change(&key(name), |pod| {
            pod.spec.spreads = vec![TopologySpreadConstraint {
                topology_key: "kubernetes.io/arch".into(),
                max_skew: 3,
                selector: selector.clone(),
                ..TopologySpreadConstraint::default()
            }];
        });
    }
    assert_eq!(zones(&planned_with(&snapshot, &options(spreading()))), in_cheapest());
}

#[test]
fn pods_of_another_profile_are_left_alone() {
    let mut options = options(spreading());
    options.schedulers.push("packing".into());
    options.profiles.insert("packing".into(), Profile::default());
    let mut snapshot = served(web(), service("default", "web"));
    for name in ["a", "b", "c"] {
        snapshot.pods.change(&key(name), |pod| pod.scheduler = "packing".into());
    }
    assert_eq!(zones(&planned_with(&snapshot, &options)), in_cheapest());
}

#[test]
fn pods_that_run_count_for_the_default_spread_and_are_not_ruled_by_it() {
    let running = ["x", "y"].map(|name| bound(app(name, "web"), "n"));
    let snapshot = with(with(served(web(), service("default", "web")), [node_in_a("n")]), running);
    let expected = [("b".to_owned(), 2), ("c".to_owned(), 1)].into();
    assert_eq!(zones(&planned_with(&snapshot, &options(spreading()))), expected);
}

#[test]
fn a_default_that_is_a_preference_steers_what_is_bought() {
    let profile = Profile { preferred_spreads: vec![over_zones(1)], ..Profile::default() };
    let snapshot =
        with(served(web(), service("default", "web")), ["d", "e", "f"].map(|name| app(name, "web")));
    let plan = planned_with(&snapshot, &options(profile));
    let two_in_each = ["a", "b", "c"].map(|zone| (zone.to_owned(), 2)).into();
    assert_eq!((zones(&plan), plan.steered_pods), (two_in_each, 6));
}

#[test]
fn added_affinity_decides_where_every_pod_may_be() {
    let plan = planned_with(&web(), &options(enforcing(ZONE, "c")));
    assert_eq!(zones(&plan), [("c".to_owned(), 3)].into());
    let claim = &plan.claims[0];
    assert!(claim.offerings.iter().all(|ranked| ranked.offering.zone.as_str() == "c"), "alternatives too");
}

#[test]
fn a_spread_counts_zones_that_added_affinity_excludes() {
    let profile = Profile { spreads: vec![over_zones(1)], ..enforcing(ZONE, "c") };
    let snapshot = with(served(web(), service("default", "web")), [node_in_a("n")]);
    let plan = planned_with(&snapshot, &options(profile));
    // No pod may be in zone a, but its node still counts. So a second pod in zone c would be one too many.
    assert_eq!(zones(&plan), [("c".to_owned(), 1)].into());
    let left = &plan.unplaced[0];
    assert_eq!(left.reason, UnplacedReason::TopologyRule);
    assert!(left.message.contains("maxSkew of 1 (the scheduler's default, from scheduler.yaml)"), "{left:?}");
    assert!(left.message.contains("give the pods topologySpreadConstraints of their own"), "{left:?}");
}

#[test]
fn added_affinity_that_nothing_meets_is_named_with_its_file() {
    let plan = planned_with(&web(), &options(enforcing("team", "ml")));
    assert_eq!(plan.unplaced.len(), 3);
    assert_eq!(
        plan.unplaced[0].message,
        "the scheduler's addedAffinity (scheduler.yaml) allows only nodes with `team In [ml]`, but no offering of pool `any` that it may use has that; widen the pool's requirements, or add the label to spec.template.metadata.labels if its nodes will have it"
    );
}

#[test]
fn affinity_that_the_scheduler_prefers_is_a_preference_that_names_it() {
    let preference = |zone: &str, weight| {
        let term = NodeSelectorTerm { requirements: vec![is_in(ZONE, &[zone])] };
        (Weighted { weight, term }, FILE.to_owned())
    };
    let profile = Profile { preferred: vec![preference("c", 10), preference("z", 5)], ..Profile::default() };
    let plan = planned_with(&web(), &options(profile));
    assert_eq!(zones(&plan), [("c".to_owned(), 3)].into());
    assert_eq!(
        plan.relaxed[0].preference,
        "preferred node affinity `topology.kubernetes.io/zone=z` (weight 5, the scheduler's, from scheduler.yaml)"
    );
}

#[test]
fn the_story_of_a_pod_says_which_rules_are_its_schedulers() {
    let snapshot = served(web(), service("default", "web"));
    let told = |profile: Profile| {
        let options = options(profile);
        let plan = planned_with(&snapshot, &options);
        why::pod(&snapshot, at(10), &options, &plan, &key("a")).expect("it is there").swap_remove(0)
    };
    assert_eq!(
        told(spreading()),
        "Pod default/a asks for 1 cpu, 1Gi memory; at most 1 more of its group in one `topology.kubernetes.io/zone` than in another (the scheduler's default, from scheduler.yaml)."
    );
    assert_eq!(
        told(enforcing(ZONE, "c")),
        "Pod default/a asks for 1 cpu, 1Gi memory; a node with `topology.kubernetes.io/zone In [c]` (the scheduler's addedAffinity, from scheduler.yaml)."
    );
}
