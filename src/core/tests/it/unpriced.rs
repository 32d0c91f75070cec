//! Tests of what is said about instance types whose prices are unknown for a capacity type.

use poolwright_catalog::{Catalogue, Price, PriceSource, Quote};
use poolwright_core::plan::{PlanOptions, plan};
use poolwright_core::{Pool, PoolLimits, Snapshot, why};
use poolwright_solver::NeverStop;
use poolwright_terms::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE};
use poolwright_terms::{CapacityType, Reason};

use crate::kit::*;

/// Returns the catalogue with spot offerings of these types at these prices.
fn with_spot(base: &Catalogue, spot: &[(&str, &str)]) -> Catalogue {
    let mut offerings = base.offerings().to_vec();
    for (kind, price) in spot {
        let mut one = base
            .offerings()
            .iter()
            .find(|one| one.id.instance_type.as_str() == *kind)
            .expect("the type is there")
            .clone();
        one.id.capacity_type = CapacityType::Spot;
        one.price =
            Price::Known(Quote { usd_per_hour: usd(price), source: PriceSource::new("test"), as_of: None });
        offerings.push(one);
    }
    Catalogue::new(base.origin().clone(), base.types().values().cloned().collect(), offerings)
}

/// Returns a cluster with two small pods, where only g5.xlarge has a spot price.
fn two_pods(spot: &str, pool: Pool) -> Snapshot {
    let pods = ["a", "b"].map(|name| pod(name, requests(1, 1, 0)));
    with(cluster(with_spot(&aws(), &[("g5.xlarge", spot)]), [pool]), pods)
}

fn said(snapshot: &Snapshot) -> Option<why::Unpriced> {
    why::unpriced(snapshot, &planned(snapshot), &PlanOptions::default(), None)
}

#[test]
fn types_that_might_cost_less_if_their_prices_were_known_are_named() {
    let snapshot = two_pods("0.05", pool("any"));
    assert_eq!(bought(&planned(&snapshot)), ["g5.xlarge: a b"]);
    let unpriced = said(&snapshot).expect("a c7.xlarge on spot may cost 0.017");
    assert_eq!(unpriced.types, 1);
    assert!(unpriced.note.starts_with("the catalogue has no spot price of c7.xlarge, "), "{}", unpriced.note);
    let of =
        |name: &str| why::unpriced(&snapshot, &planned(&snapshot), &PlanOptions::default(), Some(&key(name)));
    assert!(of("a").is_some() && of("nobody").is_none());
}

#[test]
fn types_that_cannot_cost_less_or_may_not_be_bought_are_not_named() {
    assert_eq!(said(&two_pods("0.01", pool("any"))), None, "no discount is that high");
    let on_demand = Pool { requirements: vec![is_in(CAPACITY_TYPE, &["on-demand"])], ..pool("any") };
    assert_eq!(said(&two_pods("0.05", on_demand)), None, "the pool buys no spot");
    let only_g5 = Pool { requirements: vec![is_in(INSTANCE_TYPE, &["g5.xlarge"])], ..pool("any") };
    assert_eq!(said(&two_pods("0.05", only_g5)), None, "the pool does not buy the type");
    let gpus = with(
        cluster(with_spot(&aws(), &[("g5.xlarge", "0.05")]), [pool("any")]),
        [pod("a", requests(1, 1, 1))],
    );
    assert_eq!(said(&gpus), None, "the type has no GPU");
    let plain = with(cluster(aws(), [pool("any")]), [pod("a", requests(1, 1, 0))]);
    assert_eq!(said(&plain), None, "the catalogue is without spot on purpose");
}

#[test]
fn a_type_that_the_pool_allows_by_name_is_named_as_such_unless_a_money_limit_excludes_it() {
    let allowing =
        |limits: PoolLimits| Pool { limits, allow_unknown_price: ["c7.xlarge".into()].into(), ..pool("any") };
    let told = |limits: PoolLimits, default_usd_per_hour| {
        let options = PlanOptions { default_usd_per_hour, ..PlanOptions::default() };
        let snapshot = two_pods("0.05", allowing(limits));
        let plan = plan(&snapshot, at(10), &options, &mut NeverStop);
        let unpriced = why::unpriced(&snapshot, &plan, &options, None).expect("it might cost less");
        assert_eq!(unpriced.types, 1);
        unpriced.note
    };
    let own = PoolLimits { usd_per_hour: Some(usd("9")), ..PoolLimits::default() };
    let excluded = told(own, None);
    assert!(excluded.starts_with("the catalogue has no spot price of c7.xlarge, "), "{excluded}");
    assert_eq!(
        told(PoolLimits::default(), Some(usd("9"))),
        "types in allowUnknownPrices with an unknown price would hold pods of new nodes and might cost less (c7.xlarge); the plan buys at \
         known prices first"
    );
}

fn invalid(pool: Pool) -> (Reason, String) {
    let name = pool.name.clone();
    let snapshot = cluster(with_spot(&aws(), &[("g5.xlarge", "0.40")]), [pool]);
    planned(&snapshot).pools[&name].invalid.clone().expect("the pool may buy nothing")
}

#[test]
fn a_pool_whose_types_lack_a_price_is_told_so_and_not_to_widen_its_requirements() {
    let spot = is_in(CAPACITY_TYPE, &["spot"]);
    let c7 = is_in(INSTANCE_TYPE, &["c7.xlarge", "g6.xlarge"]);
    let (reason, message) = invalid(Pool { requirements: vec![c7, spot.clone()], ..pool("spot") });
    assert_eq!(reason, Reason::NoOfferingMatches);
    let start = "none of the 6 offerings of KwokNodeClass `default` meets all requirements together: there is no spot price here of \
                 2 instance types that meet the others (c7.xlarge, g6.xlarge); ";
    assert!(message.starts_with(start), "{message}");
    assert!(message.contains("--catalogue") && !message.contains("widen"), "{message}");
    let reserved = is_in(CAPACITY_TYPE, &["reserved"]);
    let (_, message) = invalid(Pool { requirements: vec![reserved], ..pool("spot") });
    assert!(message.contains("--commitments"), "{message}");
    let (_, message) = invalid(Pool { requirements: vec![is_in(CAPACITY_TYPE, &["cheap"])], ..pool("spot") });
    assert!(message.ends_with("or use a node class or catalogue that sells it"), "{message}");
}

#[test]
fn a_requirement_that_excludes_what_the_others_allow_is_named() {
    let c7 = is_in(INSTANCE_TYPE, &["c7.xlarge"]);
    let (_, message) = invalid(Pool { requirements: vec![c7, is_in(ZONE, &["b"])], ..pool("zone") });
    let end = "meets all requirements together; without the rules on `node.kubernetes.io/instance-type`, 1 offering would; without the \
               rules on `topology.kubernetes.io/zone`, 1 offering would; widen one of them in spec.template.spec.requirements";
    assert!(message.ends_with(end), "{message}");
}
