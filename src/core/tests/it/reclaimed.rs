//! Tests of offerings that were reclaimed recently, which are avoided, but not at any price.

use poolwright_catalog::{OfferingId, ResourceName, UsdPerHour};
use poolwright_core::Reclaims;
use poolwright_core::setbacks::Setbacks;
use poolwright_core::*;
use poolwright_terms::{CapacityType, InterruptionKind, NodeClassRef};

use crate::kit::*;

/// Returns a catalogue with GPU nodes at half a dollar, at five times that price and at over two hundred times that price.
fn ladder() -> poolwright_catalog::Catalogue {
    catalogue(vec![
        Kind("small", capacity(4, 16, 1), Some("t4"), &[("a", "0.50"), ("b", "0.50")]),
        Kind("large", capacity(48, 192, 4), Some("t4"), &[("a", "2.50")]),
        Kind("huge", capacity(96, 1024, 8), Some("b300"), &[("a", "142")]),
    ])
}

fn one_pod(pools: impl IntoIterator<Item = Pool>) -> Snapshot {
    with(cluster(ladder(), pools), [pod("p", requests(1, 1, 1))])
}

fn reclaimed(mut snapshot: Snapshot, offerings: &[(&str, &str)]) -> Snapshot {
    for (kind, zone) in offerings {
        snapshot.reclaims.insert((node_class(), id(kind, zone)), Reclaims { until: at(60), consecutive: 1 });
    }
    snapshot
}

/// Returns a pool that buys one type.
fn only(name: &str, weight: u32, kind: &str) -> Pool {
    let requirements = vec![is_in("node.kubernetes.io/instance-type", &[kind])];
    Pool { weight, requirements, ..pool(name) }
}

fn first(plan: &plan::Plan) -> String {
    plan.claims[0].offering().to_string()
}

#[test]
fn a_reclaimed_offering_is_replaced_by_another_zone_with_a_reason() {
    let snapshot = reclaimed(one_pod([pool("gpu")]), &[("small", "a")]);
    let plan = planned_at(&snapshot, 10);
    assert_eq!(first(&plan), "small/b/on-demand");
    assert_eq!((plan.cost, plan.risk, plan.bound), (usd("0.50"), usd("0"), usd("0.50")));
    assert_eq!(first(&planned_at(&snapshot, 60)), "small/a/on-demand", "its time is over");
    let cheaper = catalogue(vec![
        Kind("small", capacity(4, 16, 1), Some("t4"), &[("a", "0.50")]),
        Kind("other", capacity(4, 16, 1), Some("l4"), &[("a", "0.80")]),
    ]);
    let snapshot = with(cluster(cheaper, [pool("gpu")]), [pod("p", requests(1, 1, 1))]);
    let plan = planned_at(&reclaimed(snapshot, &[("small", "a")]), 10);
    assert_eq!(
        plan.claims[0].reason,
        "other on-demand in a at $0.8000/h holds 1 pod (1 x nvidia.com/gpu); small/a/on-demand at $0.5000/h is cheaper, \
         but the cloud takes such instances back: until 2027-01-15T08:01:00Z it counts as 4 times its price"
    );
}

#[test]
fn it_is_bought_again_where_all_else_costs_more_than_four_times_as_much() {
    let all = [("small", "a"), ("small", "b")];
    let plan = planned_at(&reclaimed(one_pod([pool("gpu")]), &all), 10);
    assert_eq!(first(&plan), "small/a/on-demand");
    assert_eq!(plan.claims[0].price(), Some(usd("0.50")), "it is paid at its price");
    assert_eq!((plan.cost, plan.risk, plan.bound), (usd("0.50"), usd("1.50"), usd("2.00")));
    assert!(plan.gap().abs() < 1e-9);
    let reason = &plan.claims[0].reason;
    assert!(reason.contains("the cloud takes such instances back, so until "), "{reason}");
}

#[test]
fn a_limit_of_money_counts_what_is_paid() {
    let mut limited = pool("gpu");
    limited.limits.usd_per_hour = Some(usd("0.60"));
    let plan = planned_at(&reclaimed(one_pod([limited]), &[("small", "a"), ("small", "b")]), 10);
    assert_eq!(first(&plan), "small/a/on-demand");
}

#[test]
fn a_heavier_pool_that_has_nothing_else_is_not_preferred_for_it() {
    let all = [("small", "a"), ("small", "b")];
    // The second type costs three times as much, like on-demand compared to spot.
    let kinds = catalogue(vec![
        Kind("small", capacity(4, 16, 1), Some("t4"), &[("a", "0.50"), ("b", "0.50")]),
        Kind("demand", capacity(4, 16, 1), Some("t4"), &[("a", "1.50")]),
        Kind("huge", capacity(96, 1024, 8), Some("b300"), &[("a", "142")]),
    ]);
    let pods = || [pod("p", requests(1, 1, 1))];
    let with_other =
        with(cluster(kinds.clone(), [only("first", 10, "small"), only("second", 1, "demand")]), pods());
    assert_eq!(first(&planned_at(&with_other, 10)), "small/a/on-demand");
    assert_eq!(first(&planned_at(&reclaimed(with_other, &all), 10)), "demand/a/on-demand");
    let with_huge = with(cluster(kinds, [only("first", 10, "small"), only("second", 1, "huge")]), pods());
    assert_eq!(first(&planned_at(&reclaimed(with_huge, &all), 10)), "small/a/on-demand");
}

#[test]
fn a_static_pool_takes_what_else_is_little_dearer_first() {
    let pool = Pool { replicas: Some(1), ..pool("gpu") };
    let snapshot = cluster(ladder(), [pool]);
    assert_eq!(first(&planned_at(&snapshot, 10)), "small/a/on-demand");
    let snapshot = reclaimed(snapshot, &[("small", "a")]);
    assert_eq!(first(&planned_at(&snapshot, 10)), "small/b/on-demand");
    assert_eq!(first(&planned_at(&reclaimed(snapshot, &[("small", "b")]), 10)), "small/a/on-demand");
}

#[test]
fn a_reclaimed_prepaid_offering_is_held_back() {
    let mut setbacks = Setbacks::default();
    let prepaid = OfferingId { capacity_type: CapacityType::Reserved, ..id("small", "a") };
    setbacks.interrupted(&node_class(), &prepaid, InterruptionKind::ReservationReclaim, at(0));
    setbacks.interrupted(&node_class(), &id("small", "a"), InterruptionKind::Reclaim, at(0));
    let id_of = |(_, id): &(NodeClassRef, OfferingId)| id.clone();
    assert_eq!(setbacks.held_back(at(1)).keys().map(id_of).collect::<Vec<_>>(), [prepaid]);
    assert_eq!(setbacks.reclaims(at(1)).keys().map(id_of).collect::<Vec<_>>(), [id("small", "a")]);
    assert_eq!(setbacks.next_release(at(1)), Some(at(300)));
    assert!(setbacks.reclaims(at(300)).is_empty());
}

#[test]
fn the_more_often_in_a_row_the_more_is_paid_for_something_else() {
    let all = [("small", "a"), ("small", "b")];
    let bought = |consecutive| {
        let mut snapshot = reclaimed(one_pod([pool("gpu")]), &all);
        snapshot.reclaims.values_mut().for_each(|one| one.consecutive = consecutive);
        first(&planned_at(&snapshot, 10))
    };
    // The large type costs five times as much, which is more than four and less than eight times.
    assert_eq!((bought(1).as_str(), bought(2).as_str()), ("small/a/on-demand", "large/a/on-demand"));
    let mut snapshot = reclaimed(one_pod([only("few", 1, "small"), only("many", 1, "huge")]), &all);
    snapshot.reclaims.values_mut().for_each(|one| one.consecutive = 100);
    assert_eq!(first(&planned_at(&snapshot, 10)), "small/a/on-demand", "never at any price");
}

#[test]
fn a_lighter_pool_that_has_nothing_else_is_asked_when_the_others_are_full() {
    let mut full = only("first", 10, "large");
    full.limits.nodes = Some(0);
    let snapshot = one_pod([full, only("second", 1, "small")]);
    let plan = planned_at(&reclaimed(snapshot, &[("small", "a"), ("small", "b")]), 10);
    assert_eq!(first(&plan), "small/a/on-demand");
}

#[test]
fn a_reclaimed_offering_without_a_price_is_held_back() {
    const PRICES: [&[(&str, &str)]; 2] = [&[("a", "unknown"), ("b", "unknown")], &[("a", "0"), ("b", "0")]];
    for price in PRICES {
        let kinds = catalogue(vec![Kind("odd", capacity(4, 16, 1), Some("t4"), price)]);
        let allowed = Pool { allow_unknown_price: ["odd".into()].into(), ..pool("gpu") };
        let snapshot = with(cluster(kinds, [allowed]), [pod("p", requests(1, 1, 1))]);
        let one = reclaimed(snapshot, &[("odd", "a")]);
        assert_eq!(first(&planned_at(&one, 10)), "odd/b/on-demand", "{price:?}");
        let both = reclaimed(one, &[("odd", "b")]);
        let plan = planned_at(&both, 10);
        assert_eq!(plan.claims, [], "{price:?}");
        assert_eq!(plan.unplaced[0].reason, plan::UnplacedReason::OfferingsHeldBack, "{price:?}");
    }
}

#[test]
fn a_static_pool_keeps_its_limit_of_money_with_every_alternative() {
    let kinds = catalogue(vec![
        Kind("small", capacity(4, 16, 1), Some("t4"), &[("a", "0.50")]),
        Kind("other", capacity(4, 16, 1), Some("t4"), &[("a", "2.20")]),
    ]);
    let mut limited = Pool { replicas: Some(1), ..pool("gpu") };
    limited.limits.usd_per_hour = Some(usd("1.00"));
    let plan = planned_at(&reclaimed(cluster(kinds, [limited]), &[("small", "a")]), 10);
    let offered: Vec<_> = plan.claims[0].offerings.iter().map(|ranked| ranked.offering.to_string()).collect();
    assert_eq!(offered, ["small/a/on-demand"]);
    assert!(plan.gap().abs() < 1e-9);
}

#[test]
fn a_failed_offering_is_held_back_even_if_it_was_also_reclaimed() {
    let mut snapshot = reclaimed(one_pod([pool("gpu")]), &[("small", "a"), ("small", "b")]);
    snapshot.held_back.insert((node_class(), id("small", "a")), at(60));
    assert_eq!(first(&planned_at(&snapshot, 10)), "small/b/on-demand");
}

#[test]
fn nothing_is_counted_of_gpus_that_are_not_bought() {
    let snapshot = reclaimed(one_pod([pool("gpu")]), &[("huge", "a")]);
    let plan = planned_at(&snapshot, 10);
    assert_eq!((first(&plan).as_str(), plan.risk), ("small/a/on-demand", UsdPerHour::ZERO));
    assert_eq!(plan.claims[0].offerings[0].allocatable.get(ResourceName::NVIDIA_GPU), 1);
}
