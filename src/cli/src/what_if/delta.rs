//! A difference of costs, which may be negative.

use std::fmt;

use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_report::money::Ratio;
use serde::{Serialize, Serializer};

use crate::args::Threshold;
use crate::print::counted;

/// How much more a plan costs than another one, or how much less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    is_less: bool,
    size: UsdPerHour,
}

impl Delta {
    /// Returns the difference from `before` to `after`.
    pub fn between(before: UsdPerHour, after: UsdPerHour) -> Self {
        match after.checked_sub(before) {
            Some(size) => Self { is_less: false, size },
            None => Self { is_less: true, size: before.saturating_sub(after) },
        }
    }

    /// Returns whether there is none.
    pub fn is_zero(self) -> bool {
        self.size == UsdPerHour::ZERO
    }

    /// Returns the sign before an amount; empty if there is no difference.
    pub fn sign(self) -> &'static str {
        match self {
            _ if self.is_zero() => "",
            Self { is_less: true, .. } => "-",
            Self { is_less: false, .. } => "+",
        }
    }

    /// Returns its part of the cost before; `None` if that was zero.
    fn part_of(self, before: UsdPerHour) -> Option<Ratio> {
        let (part, whole) = (u128::from(self.size.micros()), u128::from(before.micros()));
        (whole > 0).then_some(Ratio { part, whole })
    }

    /// Formats it as a percentage of the cost before: `+12.0 %`; `None` if that was zero.
    pub fn percent_of(self, before: UsdPerHour) -> Option<String> {
        Some(format!("{}{}", self.sign(), self.part_of(before)?))
    }

    /// Formats it as the amount of a month: `+$2,496.60/month`.
    pub fn per_month(self) -> String {
        format!("{}{:#}/month", self.sign(), self.size.per_month())
    }

    /// Names the limits that it exceeds. It may exceed any limit if the change adds nodes of unknown price, whose number is `unpriced`.
    pub fn exceeded(self, limits: &[Threshold], before: UsdPerHour, unpriced: usize) -> Vec<String> {
        let above = limits.iter().filter(|limit| self.is_above(**limit, before));
        let above = above.map(|limit| format!("the cost rises by more than {limit}"));
        let unknown = (unpriced > 0 && !limits.is_empty()).then(|| {
            format!(
                "the rise cannot be judged, because the change adds {} of unknown price; --catalogue takes types and prices \
                 (docs/catalogue.md)",
                counted(unpriced, "node")
            )
        });
        above.chain(unknown).collect()
    }

    /// Returns whether it is a rise above a limit. Without a cost before, every rise is more than any percentage.
    pub fn is_above(self, limit: Threshold, before: UsdPerHour) -> bool {
        if self.is_less || self.is_zero() {
            return false;
        }
        match limit {
            Threshold::Monthly(amount) => self.size.per_month() > amount,
            Threshold::Percent(millionths) => {
                let rise = u128::from(self.size.micros()) * u128::from(crate::args::WHOLE);
                rise > u128::from(before.micros()) * u128::from(millionths)
            }
        }
    }
}

impl fmt::Display for Delta {
    /// Writes it for people: `+$3.42/h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}{:#}", self.sign(), self.size))
    }
}

impl Serialize for Delta {
    /// Writes dollars per hour as a number.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        signed(self.is_less, self.size.as_f64(), serializer)
    }
}

/// Serializes the difference of a month as a number.
pub fn monthly<S: Serializer>(delta: &Delta, serializer: S) -> Result<S::Ok, S::Error> {
    let size: Usd = delta.size.per_month();
    signed(delta.is_less, size.as_f64(), serializer)
}

fn signed<S: Serializer>(is_less: bool, size: f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(if is_less { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> UsdPerHour {
        text.parse().expect("an amount")
    }

    #[test]
    fn a_difference_has_a_sign_a_percentage_and_an_amount_for_a_month() {
        let more = Delta::between(usd("28.5"), usd("31.92"));
        assert_eq!(more.to_string(), "+$3.42/h");
        assert_eq!(more.percent_of(usd("28.5")).as_deref(), Some("+12.0 %"));
        assert_eq!(more.per_month(), "+$2,496.60/month");
        assert_eq!(serde_json::to_string(&more).expect("a number"), "3.42");
        let less = Delta::between(usd("2"), usd("1.5"));
        assert_eq!(less.to_string(), "-$0.5000/h");
        assert_eq!(less.percent_of(usd("2")).as_deref(), Some("-25.0 %"));
        assert_eq!(serde_json::to_string(&less).expect("a number"), "-0.5");
        let same = Delta::between(usd("2"), usd("2"));
        assert!(same.is_zero());
        assert_eq!(same.to_string(), "$0.00/h");
        assert_eq!(more.percent_of(UsdPerHour::ZERO), None);
    }

    #[test]
    fn only_a_rise_above_the_limit_is_above_it() {
        let (before, monthly) = (usd("10"), |usd| Threshold::Monthly(Usd(usd)));
        let rise = Delta::between(before, usd("11"));
        assert!(rise.is_above(monthly(729_000_000), before));
        assert!(!rise.is_above(monthly(730_000_000), before));
        assert!(rise.is_above(Threshold::Percent(9_000_000), before));
        assert!(!rise.is_above(Threshold::Percent(10_000_000), before));
        assert!(rise.is_above(Threshold::Percent(90_000_000), UsdPerHour::ZERO), "nothing was paid before");
        assert!(!Delta::between(before, usd("9")).is_above(Threshold::Percent(0), before));
        assert!(!Delta::between(before, before).is_above(monthly(0), before));
    }

    #[test]
    fn no_limit_is_kept_for_certain_if_nodes_of_unknown_price_are_added() {
        let (before, limit) = (usd("10"), [Threshold::Percent(10_000_000)]);
        let less = Delta::between(before, usd("9"));
        let said = less.exceeded(&limit, before, 1);
        assert!(
            said.len() == 1 && said[0].contains("because the change adds 1 node of unknown price; "),
            "{said:?}"
        );
        assert!(less.exceeded(&limit, before, 0).is_empty());
        assert!(less.exceeded(&[], before, 1).is_empty(), "nobody asked");
        assert_eq!(Delta::between(before, usd("12")).exceeded(&limit, before, 1).len(), 2);
    }
}
