//! How often AWS takes spot capacity back: the Spot Advisor's buckets, built in.
//!
//! Source: <https://aws.amazon.com/ec2/spot/instance-advisor/>. It says how often capacity of a type was reclaimed in a region
//! during the last month, as one of five ranges: below 5 %, to 10, to 15, to 20, and above. No API of EC2 tells it.
//!
//! A percentage is no rate: AWS does not say how long the instances lived that it is a part of. They are taken to have lived for a
//! day, the cautious end (a month would make every rate a thirtieth), as for types of which nobody says anything
//! (`SpotRisk::prior` of the planner). The order of types does not depend on it.

use std::collections::BTreeMap;

use jiff::civil::{Date, date};
use poolwright_catalog::{InstanceTypeName, Interruptions, PriceSource};

/// The day of the list that is built in.
pub const INTERRUPTIONS_AS_OF: Date = date(2025, 6, 28);

const BUILTIN: &str = include_str!("../../../../fixtures/aws/spot-interruptions.csv");
pub(super) const SOURCE: &str = "AWS Spot Advisor: spotinfo@5eedf20";

/// Thousandths of instances that each bucket stands for: the middle of its range. The last has no end; it is taken to be as wide
/// as all below it together, from 20 to 40 %.
const MIDDLES: [u32; 5] = [25, 75, 125, 175, 300];

/// Hours that an instance lives.
const LIFE: u32 = 24;

/// How often spot instances of a region are taken back, by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptionRates {
    /// In a million node-hours.
    rates: BTreeMap<InstanceTypeName, u32>,
}

impl InterruptionRates {
    /// Those built in of a region. Nothing is known of other types, and none is copied from another region.
    pub fn builtin(region: &str) -> Self {
        let rate = |line: &str| {
            let (name, bucket) = line.strip_prefix(region)?.strip_prefix(',')?.split_once(',')?;
            Some((InstanceTypeName::from(name), rate(bucket.parse().ok()?)?))
        };
        Self { rates: BUILTIN.lines().skip(1).filter_map(rate).collect() }
    }

    /// How often a type is taken back; `None` where nobody says.
    pub fn of(&self, name: &InstanceTypeName) -> Option<Interruptions> {
        Some(Interruptions {
            per_million_hours: *self.rates.get(name)?,
            source: PriceSource::from(SOURCE),
            as_of: Some(INTERRUPTIONS_AS_OF),
        })
    }

    /// Of how many types it is known.
    pub fn len(&self) -> usize {
        self.rates.len()
    }

    /// Whether it is known of none.
    pub fn is_empty(&self) -> bool {
        self.rates.is_empty()
    }
}

/// Interruptions in a million node-hours of a bucket, rounded half up.
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
