//! Rule: a price is not about ten times above or below the other sizes of its family (a misplaced decimal point).
//!
//! Siblings are the types of one provider, family and GPU model, in one zone and capacity type. At least two other sizes
//! must have a price: if only two prices contradict each other, either may be wrong.
//!
//! Prices are compared per unit of two resources: cores and GPUs, or cores and MiB without GPUs. No single unit suffices:
//! `g5.16xlarge` has one GPU and 64 cores, `g5.48xlarge` eight GPUs and 192 cores; burstable types have the same two cores with
//! 0.5 to 8 GiB. A price is wrong if it is ten times off by one unit and at least two times off in the same direction by the
//! other. A size that is expensive per GPU is cheap per core. So a tenfold error shows by one of the two units, and a right price
//! that looks low by one unit does not by the other.

use std::collections::BTreeMap;

use poolwright_terms::CapacityType;

use crate::instance::InstanceType;
use crate::money::UsdPerHour;
use crate::offering::Offering;
use crate::price::UnknownPrice;
use crate::resources::ResourceName;

/// The number of other sizes that must have a price.
const OTHERS_NEEDED: usize = 2;
/// The limit in tenths: ten times, minus a margin for rounding and for prices that are not quite linear.
const FACTOR_TENTHS: u128 = 95;
/// The minimum deviation by the other unit, in tenths.
const AGREE_TENTHS: u128 = 20;
/// The parts of a micro-dollar in which prices per unit are computed.
const SCALE: u128 = 1_000_000;

struct Member {
    at: usize,
    price: UsdPerHour,
    /// Cores and GPUs, or cores and MiB. Never zero.
    units: [u128; 2],
}

/// Returns the wrong prices, with the prices that their siblings suggest.
pub(super) fn check(types: &[InstanceType], offerings: &[Offering]) -> Vec<(usize, UnknownPrice)> {
    let by_name: BTreeMap<_, _> = types.iter().map(|kind| (&kind.name, kind)).collect();
    let mut groups: BTreeMap<_, Vec<Member>> = BTreeMap::new();
    for (at, offering) in offerings.iter().enumerate() {
        let (Some(kind), Some(price)) = (by_name.get(&offering.id.instance_type), offering.price.known())
        else {
            continue;
        };
        // Prepaid capacity has no hourly price to compare.
        if offering.id.capacity_type == CapacityType::Reserved {
            continue;
        }
        let model = kind.gpu.as_ref().map(|gpu| &gpu.model);
        let group = (&kind.provider, kind.family(), model, offering.id.capacity_type, &offering.id.zone);
        groups.entry(group).or_default().push(Member { at, price, units: units(kind) });
    }
    let mut found = Vec::new();
    for members in groups.values().filter(|members| members.len() > OTHERS_NEEDED) {
        judge(members, &mut found);
    }
    found
}

fn units(kind: &InstanceType) -> [u128; 2] {
    // The kubelet reserves a fraction of a core, so rounding up gives the cores of the type.
    let cores = kind.allocatable.get(ResourceName::CPU).div_ceil(1000).max(1);
    let other = match &kind.gpu {
        Some(gpu) => u64::from(gpu.count.max(1)),
        None => (kind.allocatable.get(ResourceName::MEMORY) >> 20).max(1),
    };
    [cores.into(), other.into()]
}

/// A member's price per unit, and the median of the others. For an even number of others, both middle values: a high price is
/// compared with the higher one and a low price with the lower one, so that one wrong price beside a right one does not reject a
/// third.
#[derive(Clone, Copy, Default)]
struct Standing {
    own: u128,
    low: u128,
    high: u128,
}

impl Standing {
    fn is_dear(self, tenths: u128) -> bool {
        self.own * 10 >= self.high * tenths
    }

    fn is_cheap(self, tenths: u128) -> bool {
        self.own * tenths <= self.low * 10
    }
}

fn judge(members: &[Member], found: &mut Vec<(usize, UnknownPrice)>) {
    let by_unit = [0, 1].map(|unit| standings(members, unit));
    for (which, member) in members.iter().enumerate() {
        let expected_per_unit = |unit: usize| {
            let (here, other) = (by_unit[unit][which], by_unit[1 - unit][which]);
            if here.is_dear(FACTOR_TENTHS) && other.is_dear(AGREE_TENTHS) {
                Some(here.high)
            } else if here.is_cheap(FACTOR_TENTHS) && other.is_cheap(AGREE_TENTHS) {
                Some(here.low)
            } else {
                None
            }
        };
        if let Some((unit, per_unit)) =
            [0, 1].into_iter().find_map(|unit| Some((unit, expected_per_unit(unit)?)))
        {
            let micros = per_unit * member.units[unit] / SCALE;
            let expected = UsdPerHour::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
            found.push((member.at, UnknownPrice::OutOfLine { quoted: member.price, expected }));
        }
    }
}

/// Returns the price of each member per unit, with the median of the others.
fn standings(members: &[Member], unit: usize) -> Vec<Standing> {
    let per_unit =
        |which: usize| u128::from(members[which].price.micros()) * SCALE / members[which].units[unit];
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|which| per_unit(*which));
    let others = members.len() - 1;
    let mut standings = vec![Standing::default(); members.len()];
    for (rank, which) in order.iter().enumerate() {
        // The sorted others are all except the one at `rank`.
        let other = |place: usize| per_unit(order[place + usize::from(place >= rank)]);
        standings[*which] =
            Standing { own: per_unit(*which), low: other((others - 1) / 2), high: other(others / 2) };
    }
    standings
}

#[cfg(test)]
mod tests {
    use poolwright_terms::CapacityType;
    use proptest::prelude::*;

    use crate::money::UsdPerHour;
    use crate::price::{Price, UnknownPrice};
    use crate::reader::read_csv;

    const HEADER: &str = "instance_type,arch,allocatable_cpu_milli,allocatable_memory_mib,allocatable_pods,gpu_model,\
                          gpu_count,gpu_memory_mib_each,on_demand_usd_per_hour\n";

    /// Cores, GPUs and price in micro-dollars of the sizes of AWS g5 in us-east-1.
    const G5: [(u64, u64, u64); 8] = [
        (4, 1, 1_006_000),
        (8, 1, 1_212_000),
        (16, 1, 1_624_000),
        (32, 1, 2_448_000),
        (48, 4, 5_672_000),
        (64, 1, 4_096_000),
        (96, 4, 8_144_000),
        (192, 8, 16_288_000),
    ];

    fn out_of_line(rows: &str) -> Vec<(String, UnknownPrice)> {
        let catalogue =
            read_csv(&[("test.csv", &format!("{HEADER}{rows}"))]).expect("the rows are well-formed");
        let quarantined = |price: &Price| match price {
            Price::Unknown(reason @ UnknownPrice::OutOfLine { .. }) => Some(reason.clone()),
            _ => None,
        };
        catalogue
            .offerings()
            .iter()
            .filter_map(|offering| {
                Some((offering.id.instance_type.to_string(), quarantined(&offering.price)?))
            })
            .collect()
    }

    fn g5_with(strayed: usize, micros: u64) -> String {
        let row = |(which, (cores, gpus, price)): (usize, (u64, u64, u64))| {
            let price = crate::UsdPerHour::from_micros(if which == strayed { micros } else { price });
            format!("g5.c{cores},amd64,{},{},50,a10g,{gpus},22888,{price}", cores * 1000 - 80, cores * 3800)
        };
        G5.into_iter().enumerate().map(row).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_slipped_decimal_point_on_any_size_of_a_gpu_family_is_found_and_only_there() {
        for (strayed, (cores, _, price)) in G5.into_iter().enumerate() {
            for wrong in [price * 10, price / 10] {
                let found = out_of_line(&g5_with(strayed, wrong));
                let names: Vec<_> = found.iter().map(|(name, _)| name.clone()).collect();
                assert_eq!(names, [format!("g5.c{cores}")], "at {wrong} micro-dollars");
            }
        }
    }

    #[test]
    fn a_family_as_it_is_sold_is_not_out_of_line() {
        assert_eq!(out_of_line(&g5_with(0, G5[0].2)), []);
    }

    #[test]
    fn a_cpu_family_with_one_price_ten_times_off_loses_that_price_and_says_what_was_expected() {
        let found = out_of_line(
            "c6i.large,amd64,1930,3114,29,,0,,0.085\nc6i.xlarge,amd64,3920,6584,58,,0,,1.7\n\
             c6i.2xlarge,amd64,7910,14162,58,,0,,0.34\n",
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "c6i.xlarge");
        let text = found[0].1.to_string();
        assert!(text.contains("$1.70/h") && text.contains("$0.1700/h"), "{text}");
    }

    #[test]
    fn burstable_sizes_that_sell_two_cores_with_sixteen_times_the_memory_are_all_plausible() {
        let rows = "t3.nano,amd64,1930,74,4,,0,,0.0052\nt3.small,amd64,1930,1495,11,,0,,0.0208\n\
                    t3.large,amd64,1930,7031,35,,0,,0.0832\nt3.xlarge,amd64,3920,14162,58,,0,,0.1664\n\
                    t3.2xlarge,amd64,7910,29317,58,,0,,0.3328\n";
        assert_eq!(out_of_line(rows), []);
    }

    #[test]
    fn two_conflicting_prices_are_both_kept() {
        let rows = "c6i.large,amd64,1930,3114,29,,0,,0.085\nc6i.xlarge,amd64,3920,6584,58,,0,,17\n";
        assert_eq!(out_of_line(rows), []);
    }

    #[test]
    fn sizes_that_are_all_paid_for_beforehand_are_not_out_of_line_with_each_other() {
        let catalogue = read_csv(&[("test.csv", &format!("{HEADER}{}", g5_with(0, G5[0].2)))])
            .expect("the rows are well-formed");
        let types: Vec<_> = catalogue.types().values().cloned().collect();
        let mut offerings = catalogue.offerings().to_vec();
        for offering in &mut offerings {
            offering.id.capacity_type = CapacityType::Reserved;
            if let Price::Known(quote) = &mut offering.price {
                quote.usd_per_hour = UsdPerHour::ZERO;
            }
        }
        assert_eq!(offerings.len(), G5.len());
        assert_eq!(super::check(&types, &offerings), []);
    }

    proptest! {
        #[test]
        fn prices_that_spread_no_more_than_threefold_are_never_out_of_line(
            sizes in proptest::collection::vec((1u64..200, 100_000u64..300_000), 1..20)
        ) {
            let row = |(which, (cores, per_core)): (usize, &(u64, u64))| {
                let price = crate::UsdPerHour::from_micros(cores * per_core);
                format!("m.s{which},amd64,{},{},50,,0,,{price}", cores * 1000, cores * 4096)
            };
            let rows = sizes.iter().enumerate().map(row).collect::<Vec<_>>().join("\n");
            prop_assert_eq!(out_of_line(&rows), []);
        }
    }
}
