//! Tests of purchases: known answers, and all numbers tried.

use proptest::prelude::*;

use super::*;

/// What the arithmetic of doubles and the rounding of node-hours may come to, in micro-dollars.
const NEAR: u128 = 50;

fn usd(micros: u64) -> UsdPerHour {
    UsdPerHour::from_micros(micros)
}

fn nodes(kind: usize, price: u64) -> Offer {
    Offer { terms: Terms::Nodes { kind, price: usd(price) }, least: 1, most: None }
}

fn money(rates: &[Option<u64>]) -> Offer {
    Offer { terms: Terms::Money(rates.iter().map(|rate| rate.map(usd)).collect()), least: 1, most: None }
}

/// Returns a market in which every offer is there all the time.
fn market(prices: &[u64], slices: &[(u64, &[u64])], offers: Vec<Offer>) -> Market {
    let slice = |(hours, used): &(u64, &[u64])| Slice {
        hours: *hours,
        nodes: used.iter().map(|whole| whole * MILLION).collect(),
        active: vec![true; offers.len()],
    };
    let slices = slices.iter().map(slice).collect();
    Market { prices: prices.iter().copied().map(usd).collect(), slices, offers }
}

fn found(market: &Market) -> Purchase {
    let found = best(market).expect("it is solved");
    assert_eq!(found.cost, bill(market, &found.counts).total());
    found
}

#[test]
fn a_constant_load_buys_exactly_its_nodes_if_the_discount_pays() {
    let constant = market(&[1_000_000], &[(730, &[3])], vec![nodes(0, 600_000)]);
    let bought = found(&constant);
    assert_eq!((&bought.counts, bought.cost), (&vec![3], Usd(730 * 3 * 600_000)));
    assert!(bought.bound.is_some_and(|bound| bought.cost.0 - bound.0 < NEAR), "it is proven: {bought:?}");
}

#[test]
fn a_load_below_the_break_even_buys_nothing() {
    // At 60 % of the price, a node must run in 60 of 100 hours.
    for (hours, counts) in [(59, vec![0]), (60, vec![0]), (61, vec![1])] {
        let partly = market(&[1_000_000], &[(hours, &[1]), (100 - hours, &[0])], vec![nodes(0, 600_000)]);
        assert_eq!(found(&partly).counts, counts, "{hours} hours");
    }
}

#[test]
fn a_least_number_is_bought_whole_or_not_at_all() {
    let with = |least, used: &[u64]| {
        let offer = Offer { least, ..nodes(0, 500_000) };
        found(&market(&[1_000_000], &[(10, used)], vec![offer])).counts
    };
    assert_eq!((with(4, &[3]), with(4, &[1]), with(1, &[1])), (vec![4], vec![0], vec![1]));
}

#[test]
fn what_the_tolerance_of_the_solver_buys_below_the_least_is_nothing() {
    let of = |value| program::allowed(value, 1_000, 2_000);
    assert_eq!([-1e-9, 10.0, 999.9999, 1_500.2, 2_000.9].map(of), [0, 0, 1_000, 1_500, 2_000]);
    assert_eq!(program::allowed(0.4, 1, 5), 0);
}

#[test]
fn a_limit_of_an_offer_holds_and_the_next_best_takes_the_rest() {
    let first = Offer { most: Some(2), ..nodes(0, 400_000) };
    let both = market(&[1_000_000], &[(10, &[5])], vec![nodes(0, 600_000), first]);
    assert_eq!(found(&both).counts, [3, 2]);
}

#[test]
fn money_pays_where_it_saves_most_and_in_steps() {
    let plan = money(&[Some(700_000), Some(500_500)]);
    let both = market(&[1_000_000, 1_000_000], &[(10, &[1, 1])], vec![plan]);
    // All of it uses 1.2005 $/h. The last half step would pay for less on demand than a step costs.
    let bought = found(&both);
    assert_eq!(bought.counts, [1200]);
    let one = bill(&both, &[501]);
    assert_eq!(one.committed, Usd(5_010_000));
    assert!(one.on_demand < Usd(10_000_000), "the second type is paid whole, and a little of the first");
}

#[test]
fn a_block_is_paid_and_used_only_in_its_hours() {
    let mut block = market(&[1_000_000], &[(10, &[2]), (90, &[2])], vec![nodes(0, 900_000)]);
    block.slices[1].active[0] = false;
    let bought = found(&block);
    assert_eq!((bought.counts, bought.cost), (vec![2], Usd(10 * 2 * 900_000 + 90 * 2 * 1_000_000)));
}

#[test]
fn without_offers_everything_is_on_demand() {
    let alone = market(&[1_000_000], &[(2, &[3])], Vec::new());
    assert_eq!(found(&alone), Purchase { counts: vec![], cost: Usd(6_000_000), bound: Some(Usd(6_000_000)) });
}

/// Returns all numbers up to these, the last changing fastest.
fn all_counts(most: &[u64]) -> Vec<Vec<u64>> {
    most.iter().fold(vec![Vec::new()], |begun, most| {
        let with = |begin: Vec<u64>| (0..=*most).map(move |count| [&begin[..], &[count]].concat());
        begun.into_iter().flat_map(with).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_numbers_cost_less_and_the_bound_is_below_all(
        used in proptest::collection::vec((1u64..20, 0u64..3, 0u64..3), 1..4),
        discounts in (1u64..100, 1u64..100, 1u64..100),
        least in 1u64..4,
    ) {
        // The rates of the money are so small that all its steps can be tried.
        let prices = [40_000, 70_000];
        let part = |of: u64, percent: u64| (of * percent / 100).max(1);
        let offers = vec![
            Offer { least, ..nodes(0, part(prices[0], discounts.0)) },
            nodes(1, part(prices[1], discounts.1)),
            money(&[Some(part(prices[0], discounts.2)), Some(part(prices[1], discounts.2))]),
        ];
        let slices: Vec<(u64, [u64; 2])> = used.iter().map(|(hours, a, b)| (*hours, [*a, *b])).collect();
        let slices: Vec<(u64, &[u64])> = slices.iter().map(|(hours, used)| (*hours, &used[..])).collect();
        let market = market(&prices, &slices, offers);
        let most: Vec<u64> = (0..3).map(|at| market.most(at)).collect();
        let allowed = |counts: &Vec<u64>| counts[0] == 0 || counts[0] >= least;
        let costs = all_counts(&most).into_iter().filter(allowed).map(|counts| bill(&market, &counts).total());
        let cheapest = costs.min().expect("nothing may be bought");
        let bought = found(&market);
        prop_assert!(allowed(&bought.counts), "{bought:?}");
        prop_assert!(bought.cost.0 <= cheapest.0 + NEAR, "{bought:?} against {cheapest:?}");
        let bound = bought.bound.expect("it is proven");
        prop_assert!(bound.0.abs_diff(cheapest.0) <= NEAR, "{bought:?} against {cheapest:?}");
    }
}
