//! The built-in spot interruption rates, from the ranges of the Spot Advisor.
//!
//! Source: <https://aws.amazon.com/ec2/spot/instance-advisor/>. It shows which share of the instances of a type was interrupted
//! in a region during the last month, as one of five ranges: below 5 %, 5 to 10, 10 to 15, 15 to 20, and above 20. No EC2 API has
//! this data.
//!
//! To convert a percentage to a rate, the lifetime of the instances is needed, which AWS does not publish. The conversion assumes
//! one day, which is cautious: one month would divide every rate by thirty. The planner assumes the same for types without data
//! (`SpotRisk::prior`). The order of types does not depend on this assumption.

use std::collections::BTreeMap;

use jiff::civil::{Date, date};
use poolwright_catalog::{InstanceTypeName, Interruptions, PriceSource};

/// The date of the built-in rates.
pub const INTERRUPTIONS_AS_OF: Date = date(2025, 6, 28);

const BUILTIN: &str = include_str!("../../../../fixtures/aws/spot-interruptions.csv");
pub(super) const SOURCE: &str = "AWS Spot Advisor: spotinfo@5eedf20";

/// The share of interrupted instances of each range, in thousandths: the middle of the range. The last range has no upper end and
/// counts as 20 to 40 %.
const MIDDLES: [u32; 5] = [25, 75, 125, 175, 300];

/// The assumed lifetime of an instance, in hours.
const LIFE: u32 = 24;

/// The spot interruption rates of a region, by instance type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptionRates {
    /// Interruptions per million node-hours.
    rates: BTreeMap<InstanceTypeName, u32>,
}

impl InterruptionRates {
    /// Returns the built-in rates of a region. It does not copy rates of other regions.
    pub fn builtin(region: &str) -> Self {
        let rate = |line: &str| {
            let (name, bucket) = line.strip_prefix(region)?.strip_prefix(',')?.split_once(',')?;
            Some((InstanceTypeName::from(name), rate(bucket.parse().ok()?)?))
        };
        Self { rates: BUILTIN.lines().skip(1).filter_map(rate).collect() }
    }

    /// Returns the rate of a type; `None` if it is unknown.
    pub fn of(&self, name: &InstanceTypeName) -> Option<Interruptions> {
        Some(Interruptions {
            per_million_hours: *self.rates.get(name)?,
            source: PriceSource::from(SOURCE),
            as_of: Some(INTERRUPTIONS_AS_OF),
        })
    }

    /// Returns the number of types with a rate.
    pub fn len(&self) -> usize {
        self.rates.len()
    }

    /// Returns whether no type has a rate.
    pub fn is_empty(&self) -> bool {
        self.rates.is_empty()
    }
}

/// Returns the interruptions per million node-hours of a range, rounded half up.
fn rate(bucket: usize) -> Option<u32> {
    let thousandths = MIDDLES.get(bucket)?;
    Some((thousandths * 1000 + LIFE / 2) / LIFE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_its_middle_in_a_day() {
        let rates: Vec<_> = (0..6).map(rate).collect();
        assert_eq!(rates, [Some(1_042), Some(3_125), Some(5_208), Some(7_292), Some(12_500), None]);
    }

    #[test]
    fn every_line_of_the_list_built_in_is_read() {
        let regions: std::collections::BTreeSet<&str> =
            BUILTIN.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        assert_eq!(regions.len(), 27);
        let read: usize = regions.iter().map(|region| InterruptionRates::builtin(region).len()).sum();
        assert_eq!(read, BUILTIN.lines().count() - 1);
    }
}
