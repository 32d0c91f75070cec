//! Tests of unknown prices.

use poolwright_catalog::Catalogue;
use poolwright_core::plan::{Plan, PlanOptions, UnplacedReason, plan};
use poolwright_core::{Pod, Pool, PoolLimits, Snapshot, why};
use poolwright_solver::NeverStop;
use poolwright_terms::labels::INSTANCE_TYPE;

use crate::kit::*;

fn kinds() -> Catalogue {
    catalogue(vec![
        Kind("known", capacity(4, 16, 1), Some("a10g"), &[("a", "9.00")]),
        Kind("mystery", capacity(4, 16, 8), Some("h100"), &[("a", "unknown")]),
    ])
}

fn allowing() -> Pool {
    Pool { allow_unknown_price: ["mystery".into()].into(), ..pool("gpu") }
}

#[test]
fn an_offering_with_an_unknown_price_is_not_bought() {
    let plan = planned(&with(cluster(kinds(), [pool("gpu")]), [pod("a", requests(1, 1, 8))]));
    assert!(plan.claims.is_empty());
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::PriceUnknown);
    assert_eq!(
        plan.unplaced[0].message,
        "only offerings with unknown prices fit it; list mystery under allowUnknownPrices of pool `gpu`, or, if prices come from --catalogue, add its price there"
    );
}

#[test]
fn an_allowed_unpriced_type_is_bought_if_nothing_else_fits() {
    let pods = [pod("a", requests(1, 1, 8)), pod("b", requests(1, 1, 1))];
    let plan = planned(&with(cluster(kinds(), [allowing()]), pods));
    assert_eq!(bought(&plan), ["known: b", "mystery: a"]);
    assert_eq!((plan.cost, plan.unknown_price_claims), (usd("9"), 1));
    let unknown = plan.claims.iter().find(|claim| claim.price().is_none()).unwrap();
    assert_eq!(
        unknown.reason,
        "mystery on-demand in a at an unknown price, which pool `gpu` allows, holds 1 pod (8 x nvidia.com/gpu), because no offering with a known price does"
    );
}

#[test]
fn a_money_limit_cannot_be_kept_with_unknown_prices_so_none_is_bought() {
    let mut limited = allowing();
    limited.limits.usd_per_hour = Some(usd("1000"));
    let plan = planned(&with(cluster(kinds(), [limited]), [pod("a", requests(1, 1, 8))]));
    assert!(plan.claims.is_empty());
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::PriceUnknown);
}

fn under_default(most: &str) -> PlanOptions {
    PlanOptions { default_usd_per_hour: Some(usd(most)), ..PlanOptions::default() }
}

fn planned_with(snapshot: &Snapshot, options: &PlanOptions) -> Plan {
    let plan = plan(snapshot, at(10), options, &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    plan
}

#[test]
fn the_default_money_limit_keeps_no_pool_from_types_that_it_allows_by_name() {
    let of = |pool: Pool| with(cluster(kinds(), [pool]), [pod("a", requests(1, 1, 8))]);
    let bought_of = |pool: Pool, options: &PlanOptions| bought(&planned_with(&of(pool), options));
    let over_all = PlanOptions {
        limits: PoolLimits { usd_per_hour: Some(usd("1000")), ..PoolLimits::default() },
        ..PlanOptions::default()
    };
    assert_eq!(bought_of(allowing(), &under_default("1")), ["mystery: a"]);
    assert!(bought_of(allowing(), &over_all).is_empty());
    let only = vec![is_in(INSTANCE_TYPE, &["mystery"])];
    let fixed = || Pool { replicas: Some(1), requirements: only.clone(), ..allowing() };
    let replicas = |options: &PlanOptions| planned_with(&of(fixed()), options).claims.len();
    assert_eq!((replicas(&under_default("1")), replicas(&over_all)), (1, 0));
    assert!(bought_of(pool("gpu"), &under_default("1")).is_empty(), "it does not allow the type");
}

#[test]
fn only_a_money_limit_that_somebody_set_must_go_before_unknown_prices_are_allowed() {
    let mystery = Kind("mystery", capacity(4, 16, 8), Some("h100"), &[("a", "unknown")]);
    let kinds = catalogue(vec![mystery]);
    let told = |limits: PoolLimits, options: &PlanOptions| {
        let limited = Pool { limits, ..pool("gpu") };
        let snapshot = with(cluster(kinds.clone(), [limited]), [pod("a", requests(1, 1, 8))]);
        let plan = planned_with(&snapshot, options);
        let (_, condition) = plan.pools[&pool("gpu").name].unsold.clone().expect("no price is known");
        let lines = why::pod(&snapshot, at(10), options, &plan, &key("a")).expect("the pod exists");
        let nearest = lines.into_iter().find(|line| line.starts_with("Nearest")).expect("nothing fits");
        [plan.unplaced[0].message.clone(), condition, nearest]
    };
    let own = PoolLimits { usd_per_hour: Some(usd("1000")), ..PoolLimits::default() };
    for said in told(own, &PlanOptions::default()) {
        assert!(said.contains("remove the limit") && said.contains("allowUnknownPrices"), "{said}");
    }
    for said in told(PoolLimits::default(), &under_default("1000")) {
        assert!(!said.contains("limit") && said.contains("allowUnknownPrices"), "{said}");
    }
}

fn within(limits: PoolLimits) -> Pool {
    Pool { limits, ..allowing() }
}

fn nodes(count: u64) -> Pool {
    within(PoolLimits { nodes: Some(count), ..PoolLimits::default() })
}

fn money(most: &str) -> PoolLimits {
    PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() }
}

#[test]
fn within_a_limit_a_higher_priority_gets_its_node_at_an_unknown_price_before_others_get_one_at_a_known_price()
{
    let beside = |cpu: u64, priority: i32, count: u64| {
        let first = Pod { priority, ..pod("a", requests(1, 1, 8)) };
        planned(&with(cluster(kinds(), [nodes(count)]), [first, pod("b", requests(cpu, 1, 0))]))
    };
    for priority in [0, 100] {
        let plan = beside(1, priority, 1);
        assert_eq!((bought(&plan), plan.unplaced.len()), (vec!["mystery: a b".to_owned()], 0));
        let reason = &plan.claims[0].reason;
        let why = "because within all limits and rules, known prices alone would serve fewer pods or lower priorities";
        assert!(reason.contains(why), "{reason}");
        assert_eq!(bought(&beside(1, priority, 2)), ["known: b", "mystery: a"]);
    }
    let plan = beside(4, 100, 1);
    assert_eq!(bought(&plan), ["mystery: a"]);
    assert_eq!((&plan.unplaced[0].pod, plan.unplaced[0].reason), (&key("b"), UnplacedReason::LimitReached));
}

#[test]
fn as_few_nodes_as_possible_are_bought_at_unknown_prices_and_none_if_known_prices_serve_all_pods() {
    let of = |count: u64, pods: &[&str]| {
        let pods = pods.iter().map(|name| pod(name, requests(1, 1, 1)));
        planned(&with(cluster(kinds(), [nodes(count)]), pods))
    };
    assert_eq!(bought(&of(3, &["a", "b", "c"])), ["known: a", "known: b", "known: c"]);
    assert_eq!(bought(&of(1, &["a", "b", "c"])), ["mystery: a b c"]);
    let plan = of(2, &["a", "b", "c", "d", "e"]);
    assert_eq!((plan.claims.len(), plan.unknown_price_claims, plan.unplaced.len()), (2, 1, 0));
    assert_eq!(plan.cost, usd("9"));
}

#[test]
fn a_pod_that_a_money_limit_leaves_out_is_told_of_the_type_that_the_limit_excludes() {
    let pods = || ["a", "b"].map(|name| pod(name, requests(1, 1, 1)));
    let of = |pool: Pool| planned(&with(cluster(kinds(), [pool]), pods()));
    let plan = of(within(money("9")));
    assert_eq!((plan.claims.len(), plan.unknown_price_claims), (1, 0));
    let said = &plan.unplaced[0].message;
    let excluded = "; mystery would fit it too, but with a limit usdPerHour, pool `gpu` buys nothing at an unknown price";
    assert!(said.ends_with(excluded), "{said}");
    assert!(!of(Pool { limits: money("9"), ..pool("gpu") }).unplaced[0].message.contains("mystery"));
}

#[test]
fn a_pool_that_allows_unknown_prices_is_not_advised_to_set_a_money_limit_that_would_end_that() {
    let on_known = |name: &str| {
        let mut wants = pod(name, requests(1, 1, 1));
        wants.spec.node_selector.insert(INSTANCE_TYPE.into(), "known".into());
        wants
    };
    let of = |pools: Vec<Pool>| {
        with(cluster(kinds(), pools), [pod("a", requests(1, 1, 8)), on_known("b"), on_known("c")])
    };
    let plan = planned_with(&of(vec![allowing()]), &under_default("10"));
    assert_eq!((plan.claims.len(), plan.unknown_price_claims), (2, 1));
    let said = &plan.unplaced[0].message;
    let advice = "; raise --default-usd-per-hour (a limit of the pool's own would end allowUnknownPrices) or create a NodePool with its own limit";
    assert!(said.ends_with(advice), "{said}");
    let left = |pools: Vec<Pool>, most: &str| planned_with(&of(pools), &under_default(most)).unplaced.len();
    assert_eq!(left(vec![allowing()], "18"), 0, "a higher default helps");
    let other = Pool { limits: money("9"), ..pool("other") };
    assert_eq!(left(vec![allowing(), other], "10"), 0, "another pool helps");
    assert_eq!(
        left(vec![within(money("18"))], "10"),
        1,
        "a limit of the pool leaves the pod at the unknown price out"
    );
}
