//! Tests of preferences, which influence only the nodes that are bought, and only within bounds.

use std::collections::BTreeMap;

use poolwright_catalog::{Catalogue, ResourceName};
use poolwright_core::plan::{Plan, PlanOptions, PreferencePolicy, plan};
use poolwright_core::*;
use poolwright_solver::NeverStop;
use poolwright_terms::labels::{HOSTNAME, INSTANCE_TYPE, ZONE};
use poolwright_terms::{Taint, TaintEffect};

use crate::kit::*;

const GPU: &str = "poolwright.dev/gpu-model";

fn preference(mut pod: Pod, add: impl FnOnce(&mut Preferences)) -> Pod {
    add(pod.spec.preferences.get_or_insert_default());
    pod
}

fn prefers(pod: Pod, weight: u32, key: &str, value: &str) -> Pod {
    let term = NodeSelectorTerm { requirements: vec![is_in(key, &[value])] };
    preference(pod, |preferences| preferences.nodes.push(Weighted { weight, term }))
}

fn gpu_pod(name: &str) -> Pod {
    pod(name, requests(1, 4, 1))
}

fn app(name: &str, app: &str) -> Pod {
    let labels = BTreeMap::from([("app".to_owned(), app.to_owned())]);
    Pod { labels: labels.into(), ..pod(name, requests(2, 4, 0)) }
}

fn about(key: &str, app: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: key.into(),
        namespaces: Namespaces::Named(["default".to_owned()].into()),
        selector: Some(vec![is_in("app", &[app])]),
    }
}

fn would_be_near(pod: Pod, key: &str, app: &str) -> Pod {
    preference(pod, |preferences| preferences.affinity.push(Weighted { weight: 10, term: about(key, app) }))
}

fn would_be_away(pod: Pod, key: &str, app: &str) -> Pod {
    preference(pod, |preferences| {
        preferences.anti_affinity.push(Weighted { weight: 10, term: about(key, app) });
    })
}

fn would_spread(pod: Pod, key: &str, max_skew: u32) -> Pod {
    let selector = Some(vec![is_in("app", &[&pod.labels["app"]])]);
    let rule = TopologySpreadConstraint {
        topology_key: key.into(),
        max_skew,
        selector,
        ..TopologySpreadConstraint::default()
    };
    preference(pod, |preferences| preferences.spreads.push(rule))
}

/// Returns the nodes that a plan buys, with zones.
fn bought_where(plan: &Plan) -> Vec<String> {
    let mut bought: Vec<String> = plan
        .claims
        .iter()
        .map(|claim| {
            let pods: Vec<_> = claim.planned_pods.iter().map(PodKey::name).collect();
            format!("{}/{}: {}", claim.instance_type(), claim.offering().zone, pods.join(" "))
        })
        .collect();
    bought.sort();
    bought
}

fn relaxed(plan: &Plan) -> Vec<String> {
    plan.relaxed.iter().map(ToString::to_string).collect()
}

fn without(snapshot: &Snapshot) -> Plan {
    let options = PlanOptions { preferences: PreferencePolicy::Ignore, ..PlanOptions::default() };
    plan(snapshot, at(10), &options, &mut NeverStop)
}

/// Returns two sizes in three zones. Zone c is a little more expensive.
fn three_zones() -> Catalogue {
    catalogue(vec![
        Kind("c7.large", capacity(2, 8, 0), None, &[("a", "0.10"), ("b", "0.10"), ("c", "0.11")]),
        Kind("c7.2xlarge", capacity(8, 32, 0), None, &[("a", "0.40"), ("b", "0.40"), ("c", "0.44")]),
    ])
}

#[test]
fn the_heaviest_preferred_node_affinity_decides_among_what_is_cheap_enough() {
    let light = prefers(gpu_pod("p"), 10, GPU, "a10g");
    let snapshot = with(cluster(aws(), [pool("gpu")]), [prefers(light, 90, GPU, "l4")]);
    let plan = planned(&snapshot);
    assert_eq!(bought(&plan), ["g6.xlarge: p"]);
    assert_eq!(plan.steered_pods, 1);
    let said = "preferred node affinity `poolwright.dev/gpu-model=a10g` (weight 10): nothing meets it together with the preferences before it";
    assert_eq!(relaxed(&plan), [said]);
    assert!(plan.claims[0].reason.ends_with(&format!("; relaxed: {said}")), "{}", plan.claims[0].reason);
    assert_eq!(bought(&without(&snapshot)), ["g5.xlarge: p"]);
}

#[test]
fn further_terms_are_met_as_long_as_something_meets_all_of_them() {
    let preferences = prefers(prefers(gpu_pod("p"), 80, ZONE, "b"), 20, INSTANCE_TYPE, "g5.xlarge");
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [preferences]));
    assert_eq!(bought_where(&plan), ["g5.xlarge/b: p"]);
    assert_eq!(relaxed(&plan), Vec::<String>::new());
}

#[test]
fn a_preference_that_no_pool_offers_is_relaxed_and_named() {
    let pods = ["p", "q"].map(|name| prefers(gpu_pod(name), 50, GPU, "h100"));
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), pods));
    assert_eq!(bought(&plan), ["g5.xlarge: p", "g5.xlarge: q"]);
    let said = "preferred node affinity `poolwright.dev/gpu-model=h100` (weight 50): no pool offers it";
    assert_eq!(relaxed(&plan), [said]);
    assert_eq!(plan.relaxed[0].pods, [key("p"), key("q")], "named once for all");
}

#[test]
fn a_preference_that_costs_more_than_twice_as_much_is_relaxed() {
    let shop = || {
        catalogue(vec![
            Kind("usual", capacity(4, 16, 1), Some("a10g"), &[("a", "1.00")]),
            Kind("twice", capacity(4, 16, 1), Some("l4"), &[("a", "2.00")]),
            Kind("more", capacity(4, 16, 1), Some("h100"), &[("a", "2.01")]),
        ])
    };
    let buys = |model| planned(&with(cluster(shop(), [pool("gpu")]), [prefers(gpu_pod("p"), 1, GPU, model)]));
    assert_eq!(bought(&buys("l4")), ["twice: p"]);
    let plan = buys("h100");
    assert_eq!(bought(&plan), ["usual: p"]);
    assert!(relaxed(&plan)[0].ends_with(": it would cost more than twice as much"), "{:?}", relaxed(&plan));
}

#[test]
fn few_pods_pay_for_the_whole_node_that_they_prefer_and_many_share_it() {
    let shop = || {
        catalogue(vec![
            Kind("small", capacity(2, 8, 0), None, &[("a", "0.10")]),
            Kind("huge", capacity(64, 256, 0), None, &[("a", "4.00")]),
        ])
    };
    let buys = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("p{at}")).collect();
        let pods = names.iter().map(|name| prefers(pod(name, requests(2, 8, 0)), 1, INSTANCE_TYPE, "huge"));
        let plan = planned(&with(cluster(shop(), [pool("cpu")]), pods));
        plan.claims.iter().filter(|claim| claim.instance_type().as_str() == "huge").count()
    };
    assert_eq!((buys(1), buys(30)), (0, 1));
}

#[test]
fn a_preferred_offering_that_is_held_back_is_not_waited_for() {
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [prefers(gpu_pod("p"), 100, GPU, "l4")]);
    snapshot.held_back.insert((node_class(), id("g6.xlarge", "a")), at(1000));
    let plan = planned(&snapshot);
    assert_eq!(bought(&plan), ["g5.xlarge: p"]);
    assert!(
        relaxed(&plan)[0].ends_with("the offerings that meet it failed recently and are tried again later")
    );
}

#[test]
fn a_reclaimed_offering_is_not_preferred_over_cheaper_ones() {
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [prefers(gpu_pod("p"), 50, ZONE, "b")]);
    assert_eq!(bought_where(&planned(&snapshot)), ["g5.xlarge/b: p"]);
    let reclaims = poolwright_core::Reclaims { until: at(1000), consecutive: 1 };
    snapshot.reclaims.insert((node_class(), id("g5.xlarge", "b")), reclaims);
    let plan = planned(&snapshot);
    assert_eq!(bought_where(&plan), ["g5.xlarge/a: p"]);
    assert_eq!(plan.relaxed.len(), 1);
}

#[test]
fn a_claim_falls_back_on_what_is_less_preferred_when_the_preferred_cannot_be_had() {
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [prefers(gpu_pod("p"), 50, ZONE, "b")]));
    let ranked: Vec<String> =
        plan.claims[0].offerings.iter().map(|ranked| ranked.offering.to_string()).collect();
    let expected = ["g5.xlarge/b/on-demand", "g5.xlarge/a/on-demand", "g6.xlarge/a/on-demand"];
    assert_eq!(ranked, expected);
}

#[test]
fn a_limit_that_leaves_a_pod_over_relaxes_its_preference_first() {
    let mut own = pool("gpu");
    own.limits.usd_per_hour = Some(usd("1.05"));
    let plan = planned(&with(cluster(aws(), [own]), [prefers(gpu_pod("p"), 50, GPU, "l4")]));
    assert_eq!((bought(&plan), plan.unplaced.len()), (vec!["g5.xlarge: p".to_owned()], 0));
    assert!(
        relaxed(&plan)[0].ends_with("limits or stock leave nothing that meets it"),
        "{:?}",
        relaxed(&plan)
    );
}

#[test]
fn preferences_of_pods_leave_no_other_pod_unplaced() {
    let mut own = pool("gpu");
    own.limits.usd_per_hour = Some(usd("2.05"));
    let pods = [prefers(gpu_pod("p"), 50, GPU, "l4"), gpu_pod("q")];
    let plan = planned(&with(cluster(aws(), [own]), pods));
    assert_eq!((bought(&plan), plan.unplaced.len()), (vec!["g5.xlarge: p".into(), "g5.xlarge: q".into()], 0));
    assert_eq!(plan.relaxed[0].pods, [key("p")]);
}

#[test]
fn a_pool_with_a_soft_taint_is_kept_off_while_another_holds_the_pod() {
    let mut tainted = pool("a-tainted");
    tainted.taints.push(Taint { effect: TaintEffect::PreferNoSchedule, ..taint("spare", "yes") });
    let mut other = pool("other");
    other.limits.nodes = Some(1);
    other.requirements.push(is_in(INSTANCE_TYPE, &["g5.xlarge"]));
    let pods = ["p", "q"].map(gpu_pod);
    let plan = planned(&with(cluster(aws(), [tainted.clone(), other.clone()]), pods));
    let mut pools: Vec<&str> = plan.claims.iter().map(|claim| claim.pool.0.as_str()).collect();
    pools.sort_unstable();
    assert_eq!(pools, ["a-tainted", "other"], "one node is all that the other may have");
    let said = "avoiding the taint `spare=yes:PreferNoSchedule`: limits or stock leave nothing that meets it";
    assert_eq!((relaxed(&plan), plan.relaxed[0].pods.len()), (vec![said.to_owned()], 1));
    let mut tolerant = gpu_pod("r");
    tolerant.spec.tolerations.push(tolerate("spare"));
    let plan = planned(&with(cluster(aws(), [tainted, other]), [tolerant]));
    assert_eq!((plan.claims.len(), plan.relaxed.len(), plan.steered_pods), (1, 0, 0));
}

#[test]
fn preferences_come_before_the_weight_of_pools() {
    let mut heavy = pool("heavy");
    heavy.weight = 10;
    heavy.requirements.push(is_in(ZONE, &["a"]));
    let pods = [prefers(gpu_pod("p"), 50, ZONE, "b"), gpu_pod("q")];
    let plan = planned(&with(cluster(aws(), [heavy, pool("light")]), pods));
    let pool_of = |name: &str| {
        let claim = plan.claims.iter().find(|claim| claim.planned_pods.contains(&key(name)));
        claim.expect("bought").pool.0.clone()
    };
    assert_eq!((pool_of("p"), pool_of("q")), ("light".to_owned(), "heavy".to_owned()));
}

#[test]
fn spread_that_is_a_preference_spreads_what_is_bought() {
    let pods = ["p", "q", "r"].map(|name| would_spread(app(name, "web"), ZONE, 1));
    let plan = planned(&with(cluster(three_zones(), [pool("cpu")]), pods));
    assert_eq!(bought_where(&plan), ["c7.large/a: p", "c7.large/b: q", "c7.large/c: r"]);
    assert_eq!(relaxed(&plan), Vec::<String>::new());
}

#[test]
fn spread_counts_what_runs() {
    let mut there = node("n", capacity(8, 32, 0));
    there.labels.insert(ZONE.into(), "a".into());
    let snapshot = with(cluster(three_zones(), [pool("cpu")]), [there]);
    let snapshot = with(snapshot, ["w", "x", "y", "z"].map(|name| bound(app(name, "web"), "n")));
    let plan = planned(&with(snapshot, ["p", "q"].map(|name| would_spread(app(name, "web"), ZONE, 1))));
    assert_eq!(bought_where(&plan), ["c7.large/b: p", "c7.large/c: q"]);
}

#[test]
fn a_skew_that_is_kept_anyway_splits_nothing() {
    let pods = ["p", "q", "r"].map(|name| would_spread(app(name, "web"), ZONE, 5));
    let plan = planned(&with(cluster(three_zones(), [pool("cpu")]), pods));
    assert_eq!((plan.cost, plan.steered_pods, plan.relaxed.len()), (usd("0.30"), 0, 0));
}

#[test]
fn small_pods_that_fit_one_node_are_not_spread_over_three() {
    let tiny = |name: &str| {
        let mut pod = app(name, "web");
        pod.spec.requests.set(ResourceName::new(ResourceName::CPU), 100);
        pod.spec.requests.set(ResourceName::new(ResourceName::MEMORY), 1 << 28);
        would_spread(pod, ZONE, 1)
    };
    let plan = planned(&with(cluster(three_zones(), [pool("cpu")]), ["p", "q", "r"].map(tiny)));
    assert_eq!(plan.claims.len(), 1);
    let said =
        "spread over `topology.kubernetes.io/zone` (ScheduleAnyway): it would cost more than twice as much";
    assert_eq!(relaxed(&plan), [said]);
}

#[test]
fn preferred_pod_affinity_follows_pods_that_run_and_gathers_those_that_come() {
    let mut there = node("n", capacity(2, 4, 0));
    there.labels.insert(ZONE.into(), "c".into());
    let snapshot = with(cluster(three_zones(), [pool("cpu")]), [there]);
    let snapshot = with(snapshot, [bound(app("db", "db"), "n")]);
    let plan = planned(&with(snapshot.clone(), [would_be_near(app("p", "web"), ZONE, "db")]));
    assert_eq!(bought_where(&plan), ["c7.large/c: p"]);
    let plan = planned(&with(snapshot, ["p", "q"].map(|name| would_be_near(app(name, "web"), ZONE, "web"))));
    let zones: Vec<_> = plan.claims.iter().map(|claim| claim.offering().zone.to_string()).collect();
    assert!(zones.iter().all(|zone| *zone == zones[0]), "{zones:?}");
    let plan =
        planned(&with(cluster(three_zones(), [pool("cpu")]), [would_be_near(app("p", "web"), ZONE, "db")]));
    assert!(relaxed(&plan)[0].ends_with("(weight 10): no such pod has a place yet"), "{:?}", relaxed(&plan));
}

#[test]
fn preferred_pod_anti_affinity_takes_zones_one_by_one_until_there_are_no_more() {
    let pods = ["p", "q", "r", "s"].map(|name| would_be_away(app(name, "web"), ZONE, "web"));
    let plan = planned(&with(cluster(three_zones(), [pool("cpu")]), pods));
    let of = |name: &str| {
        let claim = plan.claims.iter().find(|claim| claim.planned_pods.contains(&key(name)));
        claim.expect("bought").offering().zone.to_string()
    };
    let mut zones = ["p", "q", "r"].map(of);
    zones.sort();
    assert_eq!(zones, ["a", "b", "c"]);
    assert!(relaxed(&plan)[0].ends_with("(weight 10): every place has such a pod"), "{:?}", relaxed(&plan));
    assert_eq!(plan.relaxed[0].pods, [key("s")]);
}

#[test]
fn no_node_is_bought_for_a_preference_about_single_nodes() {
    let spread = |name: &str| {
        let pod = would_spread(app(name, "web"), HOSTNAME, 1);
        would_be_away(pod, HOSTNAME, "web")
    };
    let shop = || catalogue(vec![Kind("c7.xlarge", capacity(4, 16, 0), None, &[("a", "0.20")])]);
    let plan = planned(&with(cluster(shop(), [pool("cpu")]), ["p", "q"].map(spread)));
    assert_eq!(bought(&plan), ["c7.xlarge: p q"]);
    let said = "spread over `kubernetes.io/hostname` (ScheduleAnyway): no node is bought for a preference about single nodes";
    assert_eq!(relaxed(&plan).last().map(String::as_str), Some(said));
    assert_eq!(plan.relaxed.len(), 2);
}

#[test]
fn free_room_is_used_first_whatever_is_preferred() {
    let mut there = node("n", capacity(8, 32, 1));
    there.labels.insert(ZONE.into(), "a".into());
    let snapshot = with(cluster(aws(), [pool("gpu")]), [there]);
    let plan = planned(&with(snapshot, [prefers(gpu_pod("p"), 100, ZONE, "b")]));
    assert_eq!((plan.claims.len(), plan.placements.len(), plan.relaxed.len()), (0, 1, 0));
}

#[test]
fn a_preference_that_makes_no_sense_is_dropped_and_named() {
    let rule =
        UnmodelledRule { field: "spec.x".into(), rule: "node affinity with the operator `Near`".into() };
    let pod = preference(gpu_pod("p"), |preferences| preferences.unread.push(rule));
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [pod]));
    assert_eq!(bought(&plan), ["g5.xlarge: p"]);
    let said = "node affinity with the operator `Near` (`spec.x`): it is invalid; correct or remove it";
    assert_eq!(relaxed(&plan), [said]);
}

#[test]
fn preferences_that_are_ignored_are_named() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [prefers(gpu_pod("p"), 90, GPU, "l4")]);
    let plan = without(&snapshot);
    assert_eq!((bought(&plan), plan.steered_pods), (vec!["g5.xlarge: p".to_owned()], 0));
    assert!(relaxed(&plan)[0].ends_with("preferences are ignored (--preferences ignore)"));
}

#[test]
fn rules_about_other_pods_come_before_preferences() {
    let pods = ["p", "q", "r"].map(|name| {
        let mut pod = prefers(app(name, "web"), 100, ZONE, "a");
        let selector = Some(vec![is_in("app", &["web"])]);
        pod.spec.spreads = vec![TopologySpreadConstraint {
            topology_key: ZONE.into(),
            max_skew: 1,
            selector,
            ..TopologySpreadConstraint::default()
        }];
        pod
    });
    let plan = planned(&with(cluster(three_zones(), [pool("cpu")]), pods));
    let mut zones: Vec<_> = plan.claims.iter().map(|claim| claim.offering().zone.to_string()).collect();
    zones.sort();
    assert_eq!(zones, ["a", "b", "c"]);
    assert_eq!(plan.relaxed[0].pods.len(), 2);
    assert!(relaxed(&plan)[0].ends_with("its required rules leave nothing that meets it"));
}

#[test]
fn the_story_of_a_pod_names_what_was_relaxed() {
    let snapshot =
        with(cluster(aws(), [pool("gpu")]), [prefers(gpu_pod("p"), 50, GPU, "h100"), gpu_pod("q")]);
    let plan = planned(&snapshot);
    let options = PlanOptions::default();
    let told = |name: &str| why::pod(&snapshot, at(10), &options, &plan, &key(name)).expect("it is there");
    let said =
        "Relaxed: preferred node affinity `poolwright.dev/gpu-model=h100` (weight 50): no pool offers it.";
    let lines = told("p");
    assert_eq!(lines.last().map(String::as_str), Some(said));
    assert!(lines.len() <= why::MOST_LINES && !lines[lines.len() - 2].contains("relaxed"));
    assert!(!told("q").iter().any(|line| line.contains("elaxed")));
}

#[test]
fn a_preference_does_not_replace_a_bought_claim() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [prefers(gpu_pod("p"), 50, GPU, "l4")]);
    let plan = planned(&snapshot);
    let again = planned(&carried_out(&snapshot, &plan, 1));
    assert_eq!((again.claims.len(), again.placements.len()), (0, 1));
    let mut moved = carried_out(&snapshot, &plan, 1);
    moved.pods.change(&key("p"), |pod| pod.spec.preferences = None);
    assert_eq!(planned(&moved).claims.len(), 0);
}

/// Returns a pod that keeps zones apart from pods like itself, and prefers a zone.
fn apart_but_prefers(name: &str, zone: &str) -> Pod {
    let mut pod = prefers(app(name, "x"), 50, ZONE, zone);
    pod.spec.anti_affinity = vec![about(ZONE, "x")];
    pod
}

#[test]
fn a_preferred_zone_decides_where_required_rules_about_other_pods_leave_a_choice() {
    let alone = with(cluster(three_zones(), [pool("cpu")]), [apart_but_prefers("p", "b")]);
    let plan = planned(&alone);
    assert_eq!(bought_where(&plan), ["c7.large/b: p"]);
    assert_eq!((relaxed(&plan), plan.steered_pods), (vec![], 1));
    assert_eq!(bought_where(&without(&alone)), ["c7.large/a: p"], "preferences are ignored");
    let two = ["p", "q"].map(|name| apart_but_prefers(name, "c"));
    let plan = planned(&with(cluster(three_zones(), [pool("cpu")]), two));
    assert_eq!(bought_where(&plan), ["c7.large/a: q", "c7.large/c: p"], "only one of them can have it");
    assert_eq!(plan.relaxed.len(), 1);
    assert_eq!(plan.relaxed[0].pods, [key("q")]);
    let mut spread = prefers(app("p", "x"), 50, ZONE, "c");
    spread.spec.spreads = vec![TopologySpreadConstraint {
        topology_key: ZONE.into(),
        max_skew: 1,
        selector: Some(vec![is_in("app", &["x"])]),
        ..TopologySpreadConstraint::default()
    }];
    let plan = planned(&with(cluster(three_zones(), [pool("cpu")]), [spread]));
    assert_eq!(bought_where(&plan), ["c7.large/c: p"]);
}

#[test]
fn preferences_about_other_pods_decide_too_where_required_rules_leave_a_choice() {
    let mut there = node("n", capacity(2, 8, 0));
    there.labels.insert(ZONE.to_owned(), "c".to_owned());
    let full = with(with(cluster(three_zones(), [pool("cpu")]), [there]), [bound(app("d", "db"), "n")]);
    let mut apart = app("p", "x");
    apart.spec.anti_affinity = vec![about(ZONE, "x")];
    let near = planned(&with(full.clone(), [would_be_near(apart.clone(), ZONE, "db")]));
    assert_eq!(bought_where(&near), ["c7.large/c: p"]);
    let mut there = node("m", capacity(2, 8, 0));
    there.labels.insert(ZONE.to_owned(), "a".to_owned());
    let both = with(with(full, [there]), [bound(app("e", "db"), "m")]);
    let away = planned(&with(both, [would_be_away(apart, ZONE, "db")]));
    assert_eq!(bought_where(&away), ["c7.large/b: p"]);
}
