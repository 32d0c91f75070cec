//! Tests of `minValues`: the choice that a launch must leave to the cloud.

use std::collections::BTreeSet;

use poolwright_catalog::ResourceName;
use poolwright_core::plan::{CostRule, MinValuesPolicy, Plan, PlanOptions, UnplacedReason, plan};
use poolwright_core::{Pool, PoolLimits, Snapshot};
use poolwright_terms::CapacityType;
use poolwright_terms::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE};

use crate::kit::*;

/// Four types: three with 4 cores, of which the last is much dearer, and one with 16.
fn kinds() -> poolwright_catalog::Catalogue {
    catalogue(vec![
        Kind("one", capacity(4, 16, 0), None, &[("a", "0.20"), ("b", "0.20")]),
        Kind("two", capacity(4, 16, 0), None, &[("a", "0.21")]),
        Kind("three", capacity(4, 16, 0), None, &[("a", "0.90")]),
        Kind("large", capacity(16, 64, 0), None, &[("a", "0.60"), ("c", "0.60")]),
    ])
}

fn asking(key: &str, least: u32) -> Pool {
    Pool { min_values: [(key.to_owned(), least)].into(), ..pool("gpu") }
}

fn planned_by(snapshot: &Snapshot, min_values: MinValuesPolicy) -> Plan {
    let options = PlanOptions { min_values, ..PlanOptions::default() };
    let plan = plan(snapshot, at(10), &options, &mut poolwright_solver::NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    plan
}

fn one_pod(pool: Pool, cpu: u64) -> Snapshot {
    with(cluster(kinds(), [pool]), [pod("p", requests(cpu, 1, 0))])
}

/// Returns the types that the first launch call names, in order.
fn called(plan: &Plan) -> Vec<String> {
    let claim = &plan.claims[0];
    let offerings = claim.offerings[..claim.together].iter().map(|ranked| &ranked.offering);
    assert_eq!(offerings.clone().map(|id| id.capacity_type).collect::<BTreeSet<_>>().len(), 1);
    offerings.map(|id| format!("{}/{}", id.instance_type, id.zone)).collect()
}

#[test]
fn one_launch_call_names_as_many_types_as_the_pool_asks_for_at_any_price_the_cheapest_first() {
    let plan = planned(&one_pod(asking(INSTANCE_TYPE, 4), 2));
    assert_eq!(called(&plan), ["one/a", "one/b", "two/a", "large/a", "three/a"]);
    assert!(
        plan.claims[0].reason.contains("4 values of `node.kubernetes.io/instance-type`, as minValues 4 asks"),
        "{}",
        plan.claims[0].reason
    );
    assert_eq!(plan.cost, usd("0.20"));
    let plan = planned(&one_pod(pool("gpu"), 2));
    assert_eq!((plan.claims[0].together, plan.claims[0].offerings.len()), (0, 3));
}

#[test]
fn the_number_of_alternatives_is_not_cut_below_what_the_pool_asks_for() {
    let names: Vec<&'static str> =
        (0..40).map(|at| &*Box::leak(format!("t{at:02}").into_boxed_str())).collect();
    let many =
        catalogue(names.iter().map(|name| Kind(name, capacity(4, 16, 0), None, &[("a", "0.20")])).collect());
    let snapshot = with(cluster(many, [asking(INSTANCE_TYPE, 35)]), [pod("p", requests(1, 1, 0))]);
    assert_eq!(called(&planned(&snapshot)).len(), 35);
}

#[test]
fn a_pod_that_too_few_types_hold_is_left_out_with_both_numbers_or_bought_for_with_best_effort() {
    let snapshot = one_pod(asking(INSTANCE_TYPE, 2), 10);
    let strict = planned(&snapshot);
    assert!(strict.claims.is_empty());
    assert_eq!(strict.unplaced[0].reason, UnplacedReason::NoOfferingFits);
    assert_eq!(
        strict.unplaced[0].message,
        "pool `gpu` asks for 2 values of `node.kubernetes.io/instance-type` to choose from (minValues), but offerings with only 1 \
         value can hold it; widen the pool's requirements, lower minValues, or set --min-values-policy BestEffort"
    );
    let relaxed = planned_by(&snapshot, MinValuesPolicy::BestEffort);
    assert_eq!(bought(&relaxed), ["large: p"]);
    let reason = &relaxed.claims[0].reason;
    assert!(
        reason.contains("only 1 value of `node.kubernetes.io/instance-type`, where minValues asks for 2"),
        "{reason}"
    );
}

#[test]
fn every_label_of_which_a_pod_leaves_too_few_values_is_named() {
    let min_values = [(INSTANCE_TYPE.to_owned(), 2), (ZONE.to_owned(), 3)].into();
    let plan = planned(&one_pod(Pool { min_values, ..pool("gpu") }, 10));
    let said = &plan.unplaced[0].message;
    let both = "offerings with only 1 value can hold it (they have 2 of 3 values of `topology.kubernetes.io/zone`, too); widen";
    assert!(said.contains(both), "{said}");
}

#[test]
fn a_limit_over_all_pools_that_leaves_too_little_choice_is_not_called_the_limit_of_the_pool() {
    let pods = ["p", "q"].map(|name| pod(name, requests(3, 1, 0)));
    let limits = PoolLimits { usd_per_hour: Some(usd("1.00")), ..PoolLimits::default() };
    let options = PlanOptions { limits, ..PlanOptions::default() };
    let snapshot = with(cluster(kinds(), [asking(INSTANCE_TYPE, 3)]), pods);
    let plan = plan(&snapshot, at(10), &options, &mut poolwright_solver::NeverStop);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 1));
    let said = &plan.unplaced[0].message;
    let limits =
        "but the limits over all pools leave 2 for such a node; raise these limits, or lower minValues";
    assert!(said.contains(limits), "{said}");
}

#[test]
fn pods_share_no_node_that_would_leave_too_little_choice() {
    // Alone on a node of 16 cores, the pods would cost $0.6000/h. Each fits three types.
    let pods = ["p", "q", "r", "s"].map(|name| pod(name, requests(3, 1, 0)));
    let shared = with(cluster(kinds(), [pool("gpu")]), pods.clone());
    assert_eq!(planned(&shared).claims.len(), 1);
    let snapshot = with(cluster(kinds(), [asking(INSTANCE_TYPE, 3)]), pods);
    for policy in [MinValuesPolicy::Strict, MinValuesPolicy::BestEffort] {
        let plan = planned_by(&snapshot, policy);
        assert_eq!((plan.claims.len(), plan.unplaced.len()), (4, 0));
        assert!(plan.claims.iter().all(|claim| claim.together >= 3));
    }
}

#[test]
fn pods_that_a_strict_pool_cannot_serve_go_to_a_pool_of_less_weight() {
    let strict = Pool { weight: 10, ..asking(INSTANCE_TYPE, 2) };
    let snapshot = with(cluster(kinds(), [strict, pool("other")]), [pod("p", requests(10, 1, 0))]);
    assert_eq!(planned(&snapshot).claims[0].pool, pool("other").name);
}

#[test]
fn any_label_of_offerings_can_be_asked_for_and_all_keys_count() {
    let mut zones = asking(ZONE, 3);
    zones.min_values.insert(INSTANCE_TYPE.to_owned(), 3);
    let plan = planned(&one_pod(zones, 2));
    let zones: BTreeSet<_> =
        called(&plan).iter().map(|one| one.rsplit('/').next().unwrap().to_owned()).collect();
    assert_eq!(zones.len(), 3);
    let impossible = planned(&one_pod(asking(ZONE, 4), 2));
    assert!(impossible.unplaced[0].message.contains("4 values of `topology.kubernetes.io/zone`"));
}

#[test]
fn only_offerings_of_the_same_capacity_type_count_since_a_launch_call_has_one() {
    let of = |catalogue: poolwright_catalog::Catalogue| {
        let (origin, types) = (catalogue.origin().clone(), catalogue.types().values().cloned().collect());
        let mut offerings = catalogue.offerings().to_vec();
        let spot: Vec<_> =
            offerings.iter().filter(|one| one.id.instance_type.as_str() == "one").cloned().collect();
        offerings.extend(spot.into_iter().map(|mut one| {
            one.id.capacity_type = CapacityType::Spot;
            one.price = poolwright_catalog::Price::Known(poolwright_catalog::Quote {
                usd_per_hour: usd("0.05"),
                source: poolwright_catalog::PriceSource::new("test"),
                as_of: None,
            });
            one
        }));
        poolwright_catalog::Catalogue::new(origin, types, offerings)
    };
    let snapshot = |pool| with(cluster(of(kinds()), [pool]), [pod("p", requests(2, 1, 0))]);
    assert_eq!(planned(&snapshot(pool("gpu"))).cost, usd("0.05"));
    let plan = planned(&snapshot(asking(INSTANCE_TYPE, 2)));
    assert_eq!(plan.cost, usd("0.20"));
    assert_eq!(called(&plan)[..2], ["one/a", "one/b"]);
    assert!(called(&plan).contains(&"two/a".to_owned()));
    let plan = planned(&snapshot(asking(CAPACITY_TYPE, 2)));
    let listed: BTreeSet<_> =
        plan.claims[0].offerings.iter().map(|ranked| ranked.offering.capacity_type).collect();
    assert_eq!((plan.cost, listed.len()), (usd("0.05"), 2));
}

#[test]
fn no_alternative_may_break_a_limit() {
    let limited = |cpu: u64| {
        let mut pool = asking(INSTANCE_TYPE, 4);
        pool.limits.resources.insert(ResourceName::new(ResourceName::CPU), cpu * 1000);
        planned(&one_pod(pool, 2))
    };
    let plan = limited(15);
    assert!(plan.claims.is_empty());
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::LimitReached);
    assert!(plan.unplaced[0].message.contains("asks for 4 values"), "{}", plan.unplaced[0].message);
    assert_eq!(called(&limited(16)).len(), 5);
}

#[test]
fn pods_go_elsewhere_if_a_limit_leaves_a_pool_too_little_choice() {
    let kinds = vec![
        Kind("big.one", capacity(16, 64, 4), Some("a10g"), &[("a", "4.60")]),
        Kind("big.two", capacity(16, 64, 4), Some("a10g"), &[("a", "5.67")]),
        Kind("small", capacity(4, 16, 1), Some("l4"), &[("a", "0.60")]),
    ];
    let mut heavy = asking(INSTANCE_TYPE, 2);
    (heavy.name, heavy.weight) = (poolwright_core::PoolName("heavy".into()), 10);
    heavy.requirements = vec![is_in(INSTANCE_TYPE, &["big.one", "big.two"])];
    heavy.limits.usd_per_hour = Some(usd("5"));
    let light = Pool { requirements: vec![is_in(INSTANCE_TYPE, &["small"])], ..pool("light") };
    let pods = ["p", "q", "r", "s"].map(|name| pod(name, requests(3, 1, 1)));
    let plan = planned(&with(cluster(catalogue(kinds), [heavy, light]), pods));
    assert!(plan.unplaced.is_empty(), "{:?}", plan.unplaced);
    assert_eq!((plan.claims.len(), plan.cost), (4, usd("2.40")));
}

#[test]
fn static_pools_leave_the_same_choice() {
    let of = |least| Pool { replicas: Some(1), ..asking(INSTANCE_TYPE, least) };
    let plan = planned(&cluster(kinds(), [of(4)]));
    let types: BTreeSet<_> =
        called(&plan).iter().map(|one| one.split('/').next().unwrap().to_owned()).collect();
    assert_eq!(types.len(), 4);
    let plan = planned(&cluster(kinds(), [of(5)]));
    assert!(plan.claims.is_empty());
    let limit = plan.pools[&pool("gpu").name].limit_reached.clone().unwrap();
    assert!(limit.contains("asks for 5 values") && limit.contains("have 4"), "{limit}");
    let plan = planned_by(&cluster(kinds(), [of(5)]), MinValuesPolicy::BestEffort);
    assert!(plan.claims[0].reason.contains("only 4 values"), "{}", plan.claims[0].reason);
}

#[test]
fn a_plan_says_what_min_values_cost_where_they_keep_pods_off_a_node_with_less_choice() {
    let pods = || [pod("big", requests(15, 1, 0)), pod("small", requests(1, 1, 0))];
    let costs = |least| {
        let snapshot = with(cluster(kinds(), [asking(INSTANCE_TYPE, least)]), pods());
        let plan = planned_by(&snapshot, MinValuesPolicy::BestEffort);
        let rules: Vec<_> = plan.rules.iter().map(|of| (of.rule, of.cost)).collect();
        (plan.cost, rules)
    };
    // Only one type holds the large pod. The small one keeps the choice among three, on a node of its own.
    assert_eq!(costs(3), (usd("0.80"), vec![(CostRule::MinValues, Some(usd("0.20")))]));
    assert_eq!(costs(1), (usd("0.60"), vec![]), "a rule that costs nothing is not listed");
}

#[test]
fn only_a_simpler_way_with_a_node_that_leaves_too_little_choice_breaks_min_values() {
    let four =
        |pool| with(cluster(kinds(), [pool]), (0..4).map(|at| pod(&format!("p{at}"), requests(3, 1, 0))));
    let baselines = planned(&four(asking(INSTANCE_TYPE, 2))).baselines;
    assert_eq!(baselines.first_fit.cost, usd("0.60"), "only `large` holds four pods");
    assert!(baselines.first_fit.breaks_min_values);
    assert!(!baselines.one_pod_per_node.breaks_min_values);
    assert!(!planned(&four(pool("gpu"))).baselines.first_fit.breaks_min_values);
}
