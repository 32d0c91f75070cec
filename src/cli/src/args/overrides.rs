//! Flags that count instead of fields of NodePools: what would it cost with another policy?

use std::collections::BTreeSet;
use std::fmt;

use clap::ValueEnum;
use poolwright_api::meant;
use poolwright_core::CountOrPercent;
use poolwright_intake::{max_spot_share, on_demand_floor};
use poolwright_terms::labels::DECIDED_BY_OFFERING;

use super::number::whole;

/// What counts instead of fields of all NodePools.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PoolOverrides {
    /// Consolidate by this policy, whatever the NodePools say: what would it cost? [default: what the pools say]
    ///
    /// WhenEmpty and WhenEmptyOrUnderutilized count instead of disruption.consolidationPolicy. Never counts instead of
    /// disruption.retire and scaleToZero.after, too.
    #[arg(long, value_name = "POLICY", value_enum, ignore_case = true, help_heading = "What may be bought")]
    pub consolidation: Option<ConsolidationChoice>,

    /// Leave the cloud a choice among this many values of a label, whatever minValues of the NodePools say:
    /// topology.kubernetes.io/zone=2, or 0 for no choice
    ///
    /// Takes the labels that offerings decide, such as node.kubernetes.io/instance-type, topology.kubernetes.io/zone and
    /// poolwright.dev/capacity-type. minValues of other labels stay. Repeat the flag for more labels.
    #[arg(long, value_name = "LABEL=NUMBER", value_parser = least_values, help_heading = "What may be bought")]
    pub min_values: Vec<LeastValues>,

    /// Have at least this many nodes of each NodePool on demand, whatever spot.onDemandFloor of the NodePools says: 3, 20%, or 0
    /// for no floor
    ///
    /// A percentage is of all nodes of the pool. Static pools have no floor.
    #[arg(long, value_name = "NODES", value_parser = floor, help_heading = "What may be bought")]
    pub on_demand_floor: Option<CountOrPercent>,

    /// Have at most this part of the spot nodes of each NodePool of one instance type and zone, whatever spot.maxShare of the
    /// NodePools says: 40%, or 100% for no ceiling
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "What may be bought")]
    pub max_spot_share: Option<u32>,
}

impl PoolOverrides {
    /// Returns the first of its flags that is there.
    pub fn first_flag(&self) -> Option<&'static str> {
        let all = [
            ("--consolidation", self.consolidation.is_some()),
            ("--min-values", !self.min_values.is_empty()),
            ("--on-demand-floor", self.on_demand_floor.is_some()),
            ("--max-spot-share", self.max_spot_share.is_some()),
        ];
        all.into_iter().find(|(_, is_there)| *is_there).map(|(flag, _)| flag)
    }

    /// Checks that no label is there twice.
    ///
    /// # Errors
    /// A sentence about the label.
    pub fn check(&self) -> Result<(), String> {
        let mut labels = BTreeSet::new();
        match self.min_values.iter().find(|one| !labels.insert(&one.label)) {
            Some(twice) => Err(format!("--min-values: `{}` is there twice; keep one", twice.label)),
            None => Ok(()),
        }
    }
}

/// Which nodes are emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConsolidationChoice {
    /// No pod moves, no node retires, and nodes without work stay
    #[value(name = "Never")]
    Never,
    /// No pod moves
    #[value(name = "WhenEmpty")]
    WhenEmpty,
    /// Pods move if that saves enough
    #[value(name = "WhenEmptyOrUnderutilized")]
    WhenEmptyOrUnderutilized,
}

impl ConsolidationChoice {
    /// Returns the fields below `spec` of a NodePool that make the choice, as `--policy` takes them.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Never => &[
                "disruption.consolidationPolicy=WhenEmpty",
                "disruption.retire=Never",
                "scaleToZero.after=Never",
            ],
            Self::WhenEmpty => &["disruption.consolidationPolicy=WhenEmpty"],
            Self::WhenEmptyOrUnderutilized => &["disruption.consolidationPolicy=WhenEmptyOrUnderutilized"],
        }
    }
}

impl fmt::Display for ConsolidationChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Never => "Never",
            Self::WhenEmpty => "WhenEmpty",
            Self::WhenEmptyOrUnderutilized => "WhenEmptyOrUnderutilized",
        })
    }
}

/// The least number of values of a label; 0 for any number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeastValues {
    /// The key of the label.
    pub label: String,
    /// The number.
    pub at_least: u32,
}

/// Parses `LABEL=NUMBER`, with the numbers that `minValues` takes, or 0.
fn least_values(text: &str) -> Result<LeastValues, String> {
    let (label, number) = text
        .split_once('=')
        .ok_or("has no `=`; write LABEL=NUMBER, like node.kubernetes.io/instance-type=5")?;
    if !DECIDED_BY_OFFERING.contains(&label) {
        let next = match meant(label, DECIDED_BY_OFFERING) {
            Some(label) => format!("did you mean {label}?"),
            None => format!("write one of {}", DECIDED_BY_OFFERING.join(", ")),
        };
        return Err(format!("`{label}` is not a label that offerings decide; {next}"));
    }
    let at_least = whole(0..=50_u32, 5)(number)?;
    Ok(LeastValues { label: label.to_owned(), at_least })
}

/// Parses what `spot.onDemandFloor` takes.
fn floor(text: &str) -> Result<CountOrPercent, String> {
    on_demand_floor(text).ok_or_else(|| {
        "is neither a number of nodes nor a percentage up to 100%; write 3 or 20%, or 0 for no floor"
            .to_owned()
    })
}

/// Parses what `spot.maxShare` takes, in percent.
fn share(text: &str) -> Result<u32, String> {
    max_spot_share(text).ok_or_else(|| {
        "is not a percentage from 1% to 100%; write such as 40%, or 100% for no ceiling".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_number_of_values_is_read_and_a_wrong_one_is_refused_with_what_to_write() {
        let zones = LeastValues { label: "topology.kubernetes.io/zone".to_owned(), at_least: 2 };
        assert_eq!(least_values("topology.kubernetes.io/zone=2"), Ok(zones));
        for (wrong, told) in [
            ("3", "has no `=`"),
            ("topology.kubernetes.io/zones=2", "did you mean topology.kubernetes.io/zone?"),
            ("team=2", "write one of node.kubernetes.io/instance-type, "),
            ("topology.kubernetes.io/zone=two", "not a whole number"),
            ("topology.kubernetes.io/zone=51", "too large; write 50 or less"),
        ] {
            let said = least_values(wrong).expect_err(wrong);
            assert!(said.contains(told), "{wrong}: {said}");
        }
    }

    #[test]
    fn a_label_may_have_one_least_number() {
        let zones = |at_least| LeastValues { label: "topology.kubernetes.io/zone".to_owned(), at_least };
        let with = |min_values| PoolOverrides { min_values, ..PoolOverrides::default() }.check();
        assert_eq!(with(vec![zones(2)]), Ok(()));
        let said = with(vec![zones(2), zones(3)]).expect_err("it is there twice");
        assert!(said.contains("`topology.kubernetes.io/zone` is there twice"), "{said}");
    }

    #[test]
    fn a_floor_is_a_number_or_a_percentage_and_a_share_is_a_percentage() {
        assert_eq!(floor("3"), Ok(CountOrPercent::Count(3)));
        assert_eq!(floor("20%"), Ok(CountOrPercent::Percent(20)));
        assert_eq!(floor("0"), Ok(CountOrPercent::Count(0)));
        assert_eq!(share("40%"), Ok(40));
        assert_eq!(share("100%"), Ok(100));
        for wrong in ["", "-1", "101%", "a fifth", "0.2"] {
            let said = floor(wrong).expect_err(wrong);
            assert!(said.contains("write 3 or 20%, or 0 for no floor"), "{wrong}: {said}");
        }
        for wrong in ["", "40", "0%", "101%", "-1%"] {
            let said = share(wrong).expect_err(wrong);
            assert!(said.contains("write such as 40%"), "{wrong}: {said}");
        }
    }
}
