//! Tests of the rules of pools on spot nodes: the floor of on-demand nodes, and the largest share of one offering.

use std::collections::BTreeMap;

use poolwright_catalog::{
    Catalogue, Offering, OfferingId, Price, PriceSource, Quote, RankedOffering, UsdPerHour,
};
use poolwright_core::plan::{
    CostRule, MinValuesPolicy, Plan, PlanOptions, PlannedClaim, UnplacedReason, plan,
};
use poolwright_core::{Claim, ClaimName, CountOrPercent, Pool, PoolLimits, Snapshot, SpotRules, Uid, why};
use poolwright_solver::{NeverStop, Proof};
use poolwright_terms::CapacityType::{OnDemand, Spot};
use poolwright_terms::labels::{CAPACITY_TYPE, INSTANCE_TYPE};
use poolwright_terms::{CapacityType, ConditionType};

use crate::kit::*;

/// Two types of one size, each on demand and, for a third of the price, on spot.
fn market() -> Catalogue {
    let sold = catalogue(vec![
        Kind("one", capacity(4, 16, 0), None, &[("a", "0.30"), ("b", "0.30")]),
        Kind("two", capacity(4, 16, 0), None, &[("a", "0.33")]),
    ]);
    and_on_spot(&sold, |kind| if kind == "one" { "0.10" } else { "0.11" })
}

/// Returns a catalogue that sells everything on spot, too, at these prices by type.
fn and_on_spot(sold: &Catalogue, price: impl Fn(&str) -> &'static str) -> Catalogue {
    let mut offerings = sold.offerings().to_vec();
    offerings.extend(sold.offerings().iter().cloned().map(|mut one| {
        let price = price(one.id.instance_type.as_str());
        one.id.capacity_type = Spot;
        one.price =
            Price::Known(Quote { usd_per_hour: usd(price), source: PriceSource::new("test"), as_of: None });
        one
    }));
    Catalogue::new(sold.origin().clone(), sold.types().values().cloned().collect(), offerings)
}

fn ruled(on_demand_floor: Option<CountOrPercent>, max_share: Option<u32>) -> Pool {
    Pool { spot: SpotRules { on_demand_floor, max_share }, ..pool("gpu") }
}

fn percent(floor: u64) -> Pool {
    ruled(Some(CountOrPercent::Percent(floor)), None)
}

fn number(floor: u64) -> Pool {
    ruled(Some(CountOrPercent::Count(floor)), None)
}

/// Returns a cluster with these pods, of which each fills a node.
fn with_pods(snapshot: Snapshot, count: usize) -> Snapshot {
    with(snapshot, (0..count).map(|at| pod(&format!("p{at}"), requests(3, 1, 0))))
}

fn of(pool: Pool, pods: usize) -> Snapshot {
    with_pods(cluster(market(), [pool]), pods)
}

/// Returns launched claims without room.
fn running(on_demand: usize, spot: usize) -> Vec<Claim> {
    let claim_of = |(name, capacity_type): (String, CapacityType)| {
        let offering = OfferingId { capacity_type, ..id("one", "a") };
        let offering = RankedOffering { offering, price: Some(usd("0.30")), allocatable: capacity(1, 1, 0) };
        let (uid, offerings) = (Uid(format!("uid-{name}")), vec![offering]);
        launched(Claim { name: ClaimName(name), uid, offerings, planned_pods: vec![], ..claim() })
    };
    let on_demand = (0..on_demand).map(|at| (format!("steady-{at}"), OnDemand));
    on_demand.chain((0..spot).map(|at| (format!("spot-{at}"), Spot))).map(claim_of).collect()
}

/// Returns the numbers of on-demand and spot nodes that a plan buys.
fn bought_of(plan: &Plan) -> (usize, usize) {
    let of = |kind: CapacityType| {
        plan.claims.iter().filter(|claim| claim.offering().capacity_type == kind).count()
    };
    (of(OnDemand), of(Spot))
}

#[test]
fn a_floor_in_percent_buys_its_part_of_the_nodes_on_demand_and_the_rest_on_spot() {
    assert_eq!(bought_of(&planned(&of(pool("gpu"), 10))), (0, 10));
    let plan = planned(&of(percent(20), 10));
    assert_eq!(bought_of(&plan), (2, 8));
    assert_eq!(plan.cost, usd("1.40"));
    assert!(plan.gap() < 0.001, "{}", plan.bound);
    assert_eq!(bought_of(&planned(&of(percent(100), 3))), (3, 0));
}

#[test]
fn the_plan_says_what_its_rules_on_spot_nodes_cost() {
    let costs = |pool| {
        let plan = planned(&of(pool, 10));
        plan.rules.iter().map(|of| (of.rule, of.cost, of.at_least)).collect::<Vec<_>>()
    };
    assert_eq!(costs(percent(20)), [(CostRule::SpotRules, Some(usd("0.40")), false)]);
    assert!(costs(pool("gpu")).is_empty());
    let without_spot = Pool { requirements: vec![is_in(CAPACITY_TYPE, &["on-demand"])], ..percent(20) };
    assert!(costs(without_spot).is_empty(), "they cost nothing");
}

#[test]
fn running_nodes_count_so_a_floor_does_not_make_every_small_plan_buy_on_demand() {
    for (there, expected) in
        [((0, 0), (1, 0)), ((1, 0), (0, 1)), ((1, 3), (0, 1)), ((1, 4), (1, 0)), ((2, 4), (0, 1))]
    {
        let snapshot = with(of(percent(20), 1), running(there.0, there.1));
        assert_eq!(bought_of(&planned(&snapshot)), expected, "{there:?} run");
    }
}

#[test]
fn nodes_that_are_about_to_go_do_not_count() {
    let mut leaving = running(1, 1);
    leaving[0] = true_since(leaving[0].clone(), ConditionType::Disrupting, 5);
    let snapshot = with(of(number(1), 1), leaving);
    assert_eq!(bought_of(&planned(&snapshot)), (1, 0));
    assert_eq!(bought_of(&planned(&with(of(number(1), 1), running(1, 1)))), (0, 1));
}

#[test]
fn a_floor_in_nodes_buys_so_many_on_demand_and_all_others_on_spot() {
    let plan = planned(&of(number(2), 5));
    assert_eq!(bought_of(&plan), (2, 3));
    assert_eq!(plan.cost, usd("0.90"));
    assert_eq!(plan.bound, plan.cost, "the bound knows the floor");
    let cheapest = planned(&of(number(9), 3));
    assert_eq!((bought_of(&cheapest), cheapest.bound), ((3, 0), usd("0.90")), "too few pods for a spot node");
    assert_eq!(bought_of(&planned(&of(number(2), 1))), (1, 0));
    assert_eq!(bought_of(&planned(&with(of(number(2), 2), running(2, 0)))), (0, 2));
}

#[test]
fn a_floor_of_one_node_does_not_put_all_pods_on_one_large_on_demand_node_if_a_small_one_and_spot_cost_less() {
    let snapshot = |large: &'static [(&'static str, &'static str)]| {
        let sold = catalogue(vec![
            Kind("small", capacity(4, 16, 0), None, &[("a", "0.40")]),
            Kind("large", capacity(16, 64, 0), None, large),
        ]);
        let sold = and_on_spot(&sold, |kind| if kind == "small" { "0.10" } else { "0.50" });
        with_pods(cluster(sold, [number(1)]), 4)
    };
    // Without spot nodes, one large node is cheaper than four small ones.
    let plan = planned(&snapshot(&[("a", "1.00")]));
    assert_eq!((bought_of(&plan), plan.cost), ((1, 3), usd("0.70")));
    assert!(plan.bound <= plan.cost, "{}", plan.bound);
    let plan = planned(&snapshot(&[("a", "0.60")]));
    assert_eq!((bought_of(&plan), plan.cost), ((1, 0), usd("0.60")), "here, the large node costs less");
}

#[test]
fn a_pool_below_its_floor_first_gets_the_on_demand_nodes_that_it_lacks() {
    for (pods, expected) in [(1, (1, 0)), (4, (4, 0)), (5, (5, 0)), (6, (5, 1)), (8, (6, 2))] {
        let snapshot = with(of(percent(50), pods), running(0, 4));
        assert_eq!(bought_of(&planned(&snapshot)), expected, "{pods} pods");
    }
}

#[test]
fn a_claim_that_counts_as_on_demand_lists_no_spot_offering() {
    let plan = planned(&of(percent(50), 2));
    let counts = |claim: &&poolwright_core::plan::PlannedClaim| claim.offering().capacity_type == OnDemand;
    let claims: Vec<_> = plan.claims.iter().filter(counts).collect();
    assert_eq!(claims.len(), 1);
    assert!(claims[0].offerings.iter().all(|one| one.offering.capacity_type == OnDemand), "{claims:?}");
    assert!(claims[0].reason.contains("no spot node may take its place (spec.spot)"), "{}", claims[0].reason);
}

#[test]
fn pods_that_only_spot_would_fit_wait_and_their_reason_names_the_floor() {
    for (floor, words) in [(percent(20), "20 % of its nodes"), (number(1), "1 node")] {
        let pool = Pool { requirements: vec![is_in(CAPACITY_TYPE, &["spot"])], ..floor };
        let plan = planned(&of(pool, 2));
        assert!(plan.claims.is_empty(), "{:?}", plan.claims);
        assert_eq!(plan.unplaced.len(), 2);
        for left in &plan.unplaced {
            assert_eq!(left.reason, UnplacedReason::LimitReached);
            assert_eq!(
                left.message,
                format!(
                    "pool `gpu` must have at least {words} on demand (spec.spot.onDemandFloor), and no on-demand node that fits it can \
                     be bought now; allow more on-demand offerings, or lower the floor"
                )
            );
        }
    }
}

#[test]
fn a_floor_and_a_choice_of_capacity_types_that_exclude_each_other_are_both_named_and_without_one_pods_are_planned()
 {
    let choosing = |pool: Pool| Pool { min_values: [(CAPACITY_TYPE.to_owned(), 2)].into(), ..pool };
    let barred = "pool `gpu` asks for 2 values of `poolwright.dev/capacity-type` (minValues), but the launch of an on-demand node lists \
                  no spot offering, because the pool has rules on spot nodes (spec.spot); lower minValues to 1, or remove these rules";
    let plan = planned(&of(choosing(number(1)), 4));
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 4));
    for left in &plan.unplaced {
        let floor =
            "pool `gpu` must have at least 1 node on demand (spec.spot.onDemandFloor), which it cannot buy: ";
        assert_eq!((left.reason, &left.message), (UnplacedReason::LimitReached, &format!("{floor}{barred}")));
    }
    let share = planned(&of(choosing(percent(20)), 4));
    assert!(share.unplaced.iter().any(|left| left.message == barred), "{:?}", share.unplaced);
    assert_eq!(bought_of(&planned(&of(number(1), 4))), (1, 3));
    assert_eq!(bought_of(&planned(&of(choosing(pool("gpu")), 4))), (0, 4));
}

/// Plans with nodes that leave less choice than `minValues` asks for.
fn best_effort(snapshot: &Snapshot) -> Plan {
    let options = PlanOptions { min_values: MinValuesPolicy::BestEffort, ..PlanOptions::default() };
    let plan = plan(snapshot, at(10), &options, &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    plan
}

/// Returns whether the reasons of all claims of a capacity type contain these words.
fn all_say(plan: &Plan, kind: CapacityType, words: &str) -> bool {
    let mut claims = plan.claims.iter().filter(|claim| claim.offering().capacity_type == kind);
    claims.all(|claim| claim.reason.contains(words))
}

#[test]
fn with_best_effort_the_on_demand_nodes_of_a_floor_leave_less_choice_of_capacity_types_and_say_so() {
    for floor in [number(1), percent(25)] {
        let choosing = Pool { min_values: [(CAPACITY_TYPE.to_owned(), 2)].into(), ..floor };
        let plan = best_effort(&of(choosing, 4));
        assert_eq!((bought_of(&plan), plan.cost), ((1, 3), usd("0.60")), "{:?}", plan.unplaced);
        let less = "only 1 value of `poolwright.dev/capacity-type`, where minValues asks for 2";
        assert!(all_say(&plan, OnDemand, less), "{:?}", plan.claims);
        let enough = "2 values of `poolwright.dev/capacity-type`, as minValues 2 asks";
        assert!(all_say(&plan, Spot, enough), "{:?}", plan.claims);
    }
}

#[test]
fn with_best_effort_the_on_demand_nodes_of_a_floor_are_of_fewer_types_than_spot_nodes_where_no_more_are_sold()
{
    let sold = market();
    let is_sold = |one: &&Offering| one.id.capacity_type == Spot || one.id.instance_type.as_str() == "one";
    let offerings = sold.offerings().iter().filter(is_sold).cloned().collect();
    let sold = Catalogue::new(sold.origin().clone(), sold.types().values().cloned().collect(), offerings);
    let choosing = Pool { min_values: [(INSTANCE_TYPE.to_owned(), 2)].into(), ..number(1) };
    let snapshot = with_pods(cluster(sold, [choosing]), 4);
    assert_eq!(bought_of(&planned(&snapshot)), (0, 0), "the first node must be on demand");
    let plan = best_effort(&snapshot);
    assert_eq!((bought_of(&plan), plan.cost), ((1, 3), usd("0.60")), "{:?}", plan.unplaced);
    let words = |found: &str| format!("{found} of `node.kubernetes.io/instance-type`");
    assert!(all_say(&plan, OnDemand, &words("only 1 value")), "{:?}", plan.claims);
    assert!(all_say(&plan, Spot, &words("2 values")), "{:?}", plan.claims);
}

#[test]
fn the_spot_nodes_are_divided_so_that_none_of_their_offerings_exceeds_its_share() {
    let spot_only =
        |max_share| Pool { requirements: vec![is_in(CAPACITY_TYPE, &["spot"])], ..ruled(None, max_share) };
    let by_offering = |plan: &Plan| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for claim in &plan.claims {
            *counts.entry(claim.offering().to_string()).or_default() += 1;
        }
        counts
    };
    let free = by_offering(&planned(&of(spot_only(None), 5)));
    assert!(!free.contains_key("two/a/spot"), "{free:?}");
    let plan = planned(&of(spot_only(Some(40)), 5));
    let shared = by_offering(&plan);
    assert_eq!(shared.into_values().collect::<Vec<_>>(), [2, 2, 1]);
    let dearer =
        plan.claims.iter().find(|claim| claim.instance_type().as_str() == "two").expect("it is bought");
    assert!(dearer.reason.contains("cheaper spot offerings keep to their share"), "{}", dearer.reason);
    assert!(dearer.offerings.iter().all(|one| one.offering.instance_type.as_str() == "two"), "{dearer:?}");
    // Four of five spot nodes run as one/a, more than its share.
    let snapshot = with(of(spot_only(Some(40)), 1), running(0, 4));
    assert!(!by_offering(&planned(&snapshot)).contains_key("one/a/spot"));
}

#[test]
fn a_share_that_no_offering_can_keep_leaves_pods_out_and_their_reason_names_it() {
    let pool = Pool {
        requirements: vec![is_in(CAPACITY_TYPE, &["spot"]), is_in("topology.kubernetes.io/zone", &["b"])],
        ..ruled(None, Some(40))
    };
    let plan = planned(&of(pool, 3));
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 2));
    let told = &plan.unplaced[0].message;
    assert!(
        told.starts_with(
            "pool `gpu` may have at most 40 % of its spot nodes of one instance type and zone (spec.spot.maxShare)"
        ),
        "{told}"
    );
}

#[test]
fn the_explanation_of_a_pool_says_what_its_rules_ask_and_what_there_is() {
    let pool = ruled(Some(CountOrPercent::Percent(20)), Some(50));
    let snapshot = with(of(pool.clone(), 0), running(1, 2));
    let lines = why::pool(&snapshot, &planned(&snapshot), &pool.name).expect("the pool is there");
    for line in [
        "Its onDemandFloor asks for at least 20 % of its nodes on demand; of 3 nodes that stay now, 2 are spot.",
        "Its maxShare allows at most 50 % of its spot nodes of one instance type and zone; now 2 of 2 are one/a/spot.",
    ] {
        assert!(lines.iter().any(|told| told == line), "{line}: {lines:?}");
    }
}

/// Returns a cluster with a limit on the pool's cost, three types of one size, and ten pods of which each fills a node.
fn of_three_types(limit: &str, pool: Pool) -> Snapshot {
    let sold = catalogue(vec![
        Kind("one", capacity(4, 16, 0), None, &[("a", "0.80")]),
        Kind("two", capacity(4, 16, 0), None, &[("a", "0.97")]),
        Kind("three", capacity(4, 16, 0), None, &[("a", "1.00")]),
    ]);
    let sold = and_on_spot(&sold, |kind| match kind {
        "one" => "0.40",
        "two" => "0.41",
        _ => "0.42",
    });
    let limits = PoolLimits { usd_per_hour: Some(usd(limit)), ..pool.limits.clone() };
    with_pods(cluster(sold, [Pool { limits, ..pool }]), 10)
}

/// Returns the pool with a launch that must leave the choice among all three types. So in limits, an on-demand node counts with
/// $1.00/h and a spot node with $0.42/h.
fn choosing(pool: Pool) -> Pool {
    Pool { min_values: [(INSTANCE_TYPE.to_owned(), 3)].into(), ..pool }
}

#[test]
fn a_looser_limit_places_no_fewer_pods_where_launches_must_leave_a_choice() {
    for (limit, nodes, cost) in [
        ("1.20", (1, 0), "0.80"),
        ("2.90", (2, 2), "2.40"),
        ("3.20", (2, 2), "2.40"),
        ("3.30", (2, 3), "2.80"),
        ("3.70", (2, 3), "2.80"),
        ("4.30", (3, 3), "3.60"),
        ("5.00", (3, 4), "4.00"),
        ("5.50", (3, 5), "4.40"),
    ] {
        let plan = planned(&of_three_types(limit, choosing(percent(34))));
        assert_eq!((bought_of(&plan), plan.cost), (nodes, usd(cost)), "{limit}: {:?}", plan.unplaced);
        assert!(plan.bound <= plan.cost, "{limit}: {}", plan.bound);
        let dearest = |claim: &PlannedClaim| claim.offerings.iter().filter_map(|one| one.price).max();
        let most: UsdPerHour = plan.claims.iter().filter_map(dearest).sum();
        assert!(most <= usd(limit), "{limit}: the launches may cost {most}");
    }
}

#[test]
fn pods_beyond_a_limit_are_told_what_it_lacks_room_for() {
    let told = |limit: &str, pool: Pool| {
        let plan = planned(&of_three_types(limit, choosing(pool)));
        assert!(plan.unplaced.iter().all(|left| left.reason == UnplacedReason::LimitReached));
        plan.unplaced[0].message.clone()
    };
    assert_eq!(
        told("2.90", percent(34)),
        "limit usdPerHour = 2.90 of pool `gpu` leaves too little (in use or on order: $2.84/h; one more node uses at least $0.4000/h); \
         raise spec.limits"
    );
    assert_eq!(
        told("3.70", percent(34)),
        "pool `gpu` must have at least 34 % of its nodes on demand (spec.spot.onDemandFloor), and limit usdPerHour leaves too little \
         for another on-demand node that fits it; raise the limit, or lower the floor"
    );
    let steady = Pool { requirements: vec![is_in(CAPACITY_TYPE, &["on-demand"])], ..pool("gpu") };
    assert_eq!(
        told("1.90", steady),
        "pool `gpu` asks for 3 values of `node.kubernetes.io/instance-type` (minValues), but its limits leave 1 for such a node; raise \
         spec.limits, or lower minValues"
    );
}

#[test]
fn a_choice_of_capacity_types_that_need_not_be_left_is_not_blamed_for_a_limit() {
    let choosing = Pool { min_values: [(CAPACITY_TYPE.to_owned(), 2)].into(), ..percent(34) };
    let options = PlanOptions { min_values: MinValuesPolicy::BestEffort, ..PlanOptions::default() };
    let plan = plan(&of_three_types("3.30", choosing), at(10), &options, &mut NeverStop);
    assert_eq!((bought_of(&plan), &plan.refused), ((2, 3), &Vec::new()));
    assert_eq!(
        plan.unplaced[0].message,
        "pool `gpu` must have at least 34 % of its nodes on demand (spec.spot.onDemandFloor), and limit usdPerHour leaves too little \
         for another on-demand node that fits it; raise the limit, or lower the floor"
    );
}

#[test]
fn the_bound_of_a_plan_that_a_limit_cuts_short_is_for_the_pods_that_have_a_place() {
    let plan = planned(&of_three_types("3.00", number(2)));
    assert_eq!((bought_of(&plan), plan.cost), ((2, 3), usd("2.80")));
    assert_eq!(plan.bound, usd("2.00"), "without the floor, five spot nodes hold these pods");
}

/// Returns a cluster whose pool must have two nodes on demand, with a small pod and others that fill a large node. The small pod may
/// have to be on a small node.
fn one_small_pod_and(large: usize, is_narrowed: bool) -> Snapshot {
    let sold = catalogue(vec![
        Kind("p4", capacity(96, 1100, 8), Some("a100"), &[("a", "21.96")]),
        Kind("g6", capacity(192, 1500, 8), Some("l40s"), &[("a", "30.13"), ("b", "30.13")]),
        Kind("g5", capacity(4, 16, 1), Some("a10g"), &[("a", "1.01")]),
    ]);
    let sold = and_on_spot(&sold, |kind| match kind {
        "p4" => "15.00",
        "g6" => "9.64",
        _ => "0.50",
    });
    let mut small = pod("small", requests(2, 8, 0));
    if is_narrowed {
        small.spec.node_selector.insert(INSTANCE_TYPE.into(), "g5".into());
    }
    let pool = ruled(Some(CountOrPercent::Count(2)), Some(50));
    let snapshot = with(cluster(sold, [pool]), [small]);
    with(snapshot, (0..large).map(|at| pod(&format!("large-{at}"), requests(90, 900, 8))))
}

#[test]
fn a_floor_in_nodes_is_met_by_a_small_node_of_its_own_if_that_costs_less_than_a_second_large_one() {
    for (large, spot, cost) in [(3, 2, "42.25"), (8, 7, "90.45")] {
        let plan = planned(&one_small_pod_and(large, false));
        assert_eq!((bought_of(&plan), plan.cost), ((2, spot), usd(cost)), "{:?}", bought(&plan));
        assert!(plan.bound <= plan.cost && plan.gap() < 0.002, "the bound knows the floor: {}", plan.bound);
        let narrowed = planned(&one_small_pod_and(large, true));
        assert_eq!(narrowed.cost, plan.cost, "a selector that the plan meets anyway changes nothing");
    }
}

#[test]
fn what_the_rules_on_spot_nodes_cost_is_at_most_that_unless_the_plan_is_proved_the_cheapest() {
    // Of eight pods that differ, two can be chosen in 28 ways, which are too many to solve.
    let kinds = (1..=8).map(|cpu| pod(&format!("p{cpu}"), requests(cpu, 1, 0)));
    let large = catalogue(vec![
        Kind("small", capacity(4, 16, 0), None, &[("a", "0.40")]),
        Kind("large", capacity(16, 64, 0), None, &[("a", "1.00")]),
    ]);
    let large = and_on_spot(&large, |kind| if kind == "small" { "0.10" } else { "0.30" });
    for snapshot in [one_small_pod_and(3, false), with(cluster(large, [number(2)]), kinds)] {
        let plan = planned(&snapshot);
        let of = plan.rules.iter().find(|of| of.rule == CostRule::SpotRules).expect("the floor costs money");
        let is_cheapest = plan.proof == Proof::Exact && plan.bound == plan.cost + plan.risk;
        assert_eq!(of.at_most, !is_cheapest, "{of:?}, cost {}, bound {}", plan.cost, plan.bound);
    }
}

#[test]
fn two_pools_with_a_floor_each_get_nodes_for_the_same_pods() {
    let pools = || [number(2), Pool { spot: number(2).spot, ..pool("other") }];
    for (pods, expected, cost) in [(1, (1, 0), "0.30"), (2, (2, 0), "0.60"), (4, (2, 2), "0.80")] {
        let plan = planned(&with_pods(cluster(market(), pools()), pods));
        assert!(plan.unplaced.is_empty(), "{:?}", plan.unplaced);
        assert_eq!((bought_of(&plan), plan.cost), (expected, usd(cost)), "{pods} pods");
        assert!(plan.bound <= plan.cost, "{}", plan.bound);
    }
}

/// Returns all ways to group pods, as the sums of their CPU.
fn groupings(pods: &[u64]) -> Vec<Vec<u64>> {
    let mut all: Vec<Vec<u64>> = vec![Vec::new()];
    for cpu in pods {
        let mut longer = Vec::new();
        for groups in all {
            for at in 0..=groups.len() {
                let mut with_this = groups.clone();
                if at == groups.len() {
                    with_this.push(*cpu);
                } else {
                    with_this[at] += cpu;
                }
                longer.push(with_this);
            }
        }
        all = longer;
    }
    all
}

/// Returns the lowest cost for pods, if this number of nodes must be on demand while any is spot. The types are triples of CPU, the
/// price on demand and the price on spot.
fn lowest_cost(pods: &[u64], types: &[(u64, u64, u64)], floor: usize) -> u64 {
    let cost = |groups: Vec<u64>| -> Option<u64> {
        let mut nodes = Vec::new();
        for cpu in groups {
            let fit = || types.iter().filter(|(room, _, _)| *room >= cpu);
            nodes.push((fit().map(|one| one.1).min()?, fit().map(|one| one.2).min()?));
        }
        // Those that cost the least more on demand.
        nodes.sort_by_key(|(on_demand, spot)| on_demand.saturating_sub(*spot));
        let each = nodes.iter().enumerate();
        Some(
            each.map(|(at, (on_demand, spot))| if at < floor { *on_demand } else { *on_demand.min(spot) })
                .sum(),
        )
    };
    groupings(pods).into_iter().filter_map(cost).min().expect("each pod fits a node")
}

#[test]
fn a_plan_under_a_floor_costs_no_more_than_the_best_of_all_ways_to_group_its_pods() {
    let mut state = 7_u64;
    let mut dice = |sides: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    };
    let types = catalogue(vec![
        Kind("2", capacity(2, 64, 0), None, &[("a", "1.00")]),
        Kind("4", capacity(4, 64, 0), None, &[("a", "1.00")]),
        Kind("8", capacity(8, 64, 0), None, &[("a", "1.00")]),
    ]);
    for case in 0..40 {
        let prices: Vec<(u64, u64, u64)> = [2, 4, 8]
            .map(|cpu| {
                let on_demand = cpu * (200_000 + dice(200_000));
                (cpu, on_demand, on_demand * (20 + dice(90)) / 100)
            })
            .to_vec();
        let mut sold = and_on_spot(&types, |_| "1.00").offerings().to_vec();
        for one in &mut sold {
            let of_type = |(cpu, _, _): &&(u64, u64, u64)| cpu.to_string() == one.id.instance_type.as_str();
            let (_, on_demand, spot) = prices.iter().find(of_type).expect("it has a price");
            let micros = if one.id.capacity_type == Spot { *spot } else { *on_demand };
            let usd_per_hour = UsdPerHour::from_micros(micros);
            one.price = Price::Known(Quote { usd_per_hour, source: PriceSource::new("test"), as_of: None });
        }
        let sold = Catalogue::new(types.origin().clone(), types.types().values().cloned().collect(), sold);
        let floor = 1 + dice(3);
        let pods: Vec<u64> = (0..=dice(4)).map(|_| 1 + dice(4)).collect();
        let waiting = pods.iter().enumerate().map(|(at, cpu)| pod(&format!("p{at}"), requests(*cpu, 1, 0)));
        let plan = planned(&with(cluster(sold, [number(floor)]), waiting));
        let lowest = lowest_cost(&pods, &prices, usize::try_from(floor).expect("it is small"));
        let told =
            format!("case {case}: floor {floor}, pods {pods:?}, prices {prices:?}, {:?}", bought(&plan));
        assert!(plan.unplaced.is_empty(), "{told}");
        assert!(plan.cost.micros() >= lowest, "{} is less than any plan costs; {told}", plan.cost);
        assert!(plan.cost.micros() <= lowest + lowest / 1000, "{}, not {lowest}; {told}", plan.cost);
        assert!(plan.bound.micros() <= lowest, "bound {} above {lowest}; {told}", plan.bound);
    }
}

#[test]
fn first_fit_breaks_the_rules_on_spot_nodes_only_where_its_own_nodes_do() {
    let breaks = |snapshot: &Snapshot| planned(snapshot).baselines.first_fit.breaks_spot_rules;
    assert!(breaks(&of(percent(20), 10)), "it buys ten spot nodes");
    assert!(!breaks(&of(pool("gpu"), 10)));
    assert!(!breaks(&with(of(percent(20), 1), running(1, 0))), "one of two nodes is on demand");
    assert!(breaks(&of(ruled(None, Some(40)), 10)), "all ten spot nodes are of one offering");
}
