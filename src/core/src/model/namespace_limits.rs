//! Limits of namespaces: what Poolwright buys at most for the pods of one namespace.

use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_terms::keys::{LIMIT_GPUS_ANNOTATION, LIMIT_NODES_ANNOTATION, LIMIT_USD_PER_HOUR_ANNOTATION};
use serde::{Deserialize, Serialize};

use crate::model::monthly_budget::Month;

/// What a limit of a namespace counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NamespaceLimit {
    /// Nodes with pods of the namespace.
    Nodes,
    /// GPUs of machines that these pods request, in thousandths.
    Gpus,
    /// The share of these pods in the prices of their nodes, in micro-dollars per hour.
    UsdPerHour,
}

/// Limits of every namespace that states none: the amount of each.
pub type NamespaceLimits = BTreeMap<NamespaceLimit, u64>;

/// Limits that a namespace states: the amount of each; `None` for an amount that cannot be read.
pub type StatedLimits = BTreeMap<NamespaceLimit, Option<u64>>;

/// A limit that holds for a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceCeiling {
    /// What it counts.
    pub kind: NamespaceLimit,
    /// The largest amount.
    pub most: u64,
    /// Where the amount comes from.
    pub origin: CeilingOrigin,
}

/// Where the amount of a limit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CeilingOrigin {
    /// The annotation of the namespace.
    Stated,
    /// The default, because the namespace has no annotation.
    Default,
    /// The default, or zero without one, because the annotation cannot be read.
    Unreadable,
    /// The monthly budget, which is spent.
    Spent(SpentBudget),
}

/// The monthly budget of a namespace for which nothing is bought any more, because it is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentBudget {
    /// The budget.
    pub budget: Usd,
    /// What was spent.
    pub spent: Usd,
    /// The end of the month.
    pub until: Timestamp,
}

/// Namespaces for which nothing is bought in this month, by name.
pub type SpentBudgets = BTreeMap<String, SpentBudget>;

impl SpentBudget {
    /// Returns the limit of a namespace at a time; `None` in another month.
    pub(crate) fn ceiling(self, now: Timestamp) -> Option<NamespaceCeiling> {
        let origin = CeilingOrigin::Spent(self);
        let is_of_month = Month::of(now).end == self.until;
        is_of_month.then_some(NamespaceCeiling { kind: NamespaceLimit::Nodes, most: 0, origin })
    }

    /// Returns the message for a pod that waits. What changes with each minute is in parentheses, where it is no news.
    pub(crate) fn sentence(self, namespace: &str) -> String {
        format!(
            "monthly budget {:#} of namespace `{namespace}` is spent ({:#} spent), so no node is bought for it before {}; raise \
             --namespace-budget of the controller, or wait until then",
            self.budget, self.spent, self.until
        )
    }
}

impl NamespaceLimit {
    /// Every limit.
    pub const ALL: [Self; 3] = [Self::Nodes, Self::Gpus, Self::UsdPerHour];

    /// Returns its name in flags and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Gpus => "gpus",
            Self::UsdPerHour => "usdPerHour",
        }
    }

    /// Returns the annotation of a Namespace that states it.
    pub const fn annotation(self) -> &'static str {
        match self {
            Self::Nodes => LIMIT_NODES_ANNOTATION,
            Self::Gpus => LIMIT_GPUS_ANNOTATION,
            Self::UsdPerHour => LIMIT_USD_PER_HOUR_ANNOTATION,
        }
    }

    /// Reads an amount as people write it.
    ///
    /// # Errors
    /// The cause and the next step, for a message that names the text's place.
    pub fn read(self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        let whole = || {
            let count = text.parse::<u64>();
            count.map_err(|_| format!("`{text}` is not a whole number; write one, such as 8"))
        };
        match self {
            Self::Nodes => whole(),
            Self::Gpus => Ok(whole()?.saturating_mul(1000)),
            Self::UsdPerHour => match text.parse::<UsdPerHour>() {
                Ok(money) => Ok(money.micros()),
                Err(error) => Err(format!("{error}; write a plain decimal number, such as 40")),
            },
        }
    }
}

/// Returns the limits that hold for a namespace. A stated limit replaces the default. One that cannot be read never means that there
/// is no limit.
pub(crate) fn ceilings(defaults: &NamespaceLimits, stated: Option<&StatedLimits>) -> Vec<NamespaceCeiling> {
    let of = |kind: NamespaceLimit| {
        let default = defaults.get(&kind).copied();
        let (most, origin) = match stated.and_then(|all| all.get(&kind)) {
            Some(Some(most)) => (*most, CeilingOrigin::Stated),
            Some(None) => (default.unwrap_or(0), CeilingOrigin::Unreadable),
            None => (default?, CeilingOrigin::Default),
        };
        Some(NamespaceCeiling { kind, most, origin })
    };
    NamespaceLimit::ALL.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_limit_replaces_the_default_and_one_that_cannot_be_read_is_never_no_limit() {
        let defaults = NamespaceLimits::from([(NamespaceLimit::Nodes, 4), (NamespaceLimit::Gpus, 8000)]);
        let stated = StatedLimits::from([
            (NamespaceLimit::Nodes, Some(9)),
            (NamespaceLimit::Gpus, None),
            (NamespaceLimit::UsdPerHour, None),
        ]);
        let held = |stated: Option<&StatedLimits>| {
            let all = ceilings(&defaults, stated);
            all.into_iter().map(|one| (one.kind, one.most, one.origin)).collect::<Vec<_>>()
        };
        assert_eq!(
            held(Some(&stated)),
            [
                (NamespaceLimit::Nodes, 9, CeilingOrigin::Stated),
                (NamespaceLimit::Gpus, 8000, CeilingOrigin::Unreadable),
                (NamespaceLimit::UsdPerHour, 0, CeilingOrigin::Unreadable),
            ]
        );
        assert_eq!(
            held(None),
            [
                (NamespaceLimit::Nodes, 4, CeilingOrigin::Default),
                (NamespaceLimit::Gpus, 8000, CeilingOrigin::Default),
            ]
        );
    }

    #[test]
    fn amounts_are_read_as_people_write_them_and_refused_with_a_remedy() {
        assert_eq!(NamespaceLimit::Nodes.read(" 12 "), Ok(12));
        assert_eq!(NamespaceLimit::Gpus.read("8"), Ok(8000));
        assert_eq!(NamespaceLimit::UsdPerHour.read("40.5"), Ok(40_500_000));
        for (limit, wrong) in [
            (NamespaceLimit::Nodes, "many"),
            (NamespaceLimit::Nodes, "-1"),
            (NamespaceLimit::Gpus, "1.5"),
            (NamespaceLimit::UsdPerHour, "$40"),
            (NamespaceLimit::UsdPerHour, ""),
        ] {
            let said = limit.read(wrong).unwrap_err();
            assert!(said.contains(&format!("`{wrong}`")) && said.contains("; write "), "{said}");
        }
    }
}
