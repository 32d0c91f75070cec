//! Tests of unknown prices.

use poolwright_catalog::Catalogue;
use poolwright_core::Pool;
use poolwright_core::plan::UnplacedReason;

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
