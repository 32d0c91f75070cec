//! The kinds of limits, and their amounts in words.

use poolwright_catalog::{InstanceType, OfferingId, ResourceList, ResourceName, UsdPerHour};

use crate::model::Pool;
use crate::rules::format;
use crate::rules::gpus::GpuNeed;
use crate::supply::limits::cut::instances;

/// The kind of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LimitKind {
    Resource(ResourceName),
    Nodes,
    UsdPerHour,
    /// The number of available instances of an offering.
    Available(OfferingId),
}

impl LimitKind {
    pub fn name(&self) -> String {
        match self {
            Self::Resource(name) => name.to_string(),
            Self::Nodes => "nodes".to_owned(),
            Self::UsdPerHour => "usdPerHour".to_owned(),
            Self::Available(id) => format!("{id} to be had"),
        }
    }

    /// Formats an amount as limits are written.
    pub fn quantity(&self, amount: u64) -> String {
        match self {
            Self::Resource(name) => format::quantity(name, amount),
            Self::Nodes | Self::Available(_) => amount.to_string(),
            Self::UsdPerHour => UsdPerHour::from_micros(amount).to_string(),
        }
    }

    /// Formats an amount for people.
    pub fn in_words(&self, amount: u64) -> String {
        match self {
            Self::UsdPerHour => format!("{:#}", UsdPerHour::from_micros(amount)),
            _ => self.quantity(amount),
        }
    }

    /// Formats an amount that a limit must allow, as limits are written. It suffices if the limit is set to it.
    pub fn enough(&self, amount: u64) -> String {
        match self {
            Self::Resource(name) => format::at_least(name, amount),
            _ => self.quantity(amount),
        }
    }

    /// Formats an amount that a limit must allow, for people. Money and bytes are rounded up, so that the limit is high enough if it is
    /// set to what they read.
    pub fn needed_in_words(&self, amount: u64) -> String {
        match self {
            Self::UsdPerHour => format::needed_price(UsdPerHour::from_micros(amount)),
            _ => self.enough(amount),
        }
    }

    /// Formats an amount that is used of a limit, for people. It is rounded up, because a higher limit must allow it besides, but never
    /// to more than a limit that allows it.
    pub fn used_in_words(&self, used: u64, ceiling: u64) -> String {
        match self {
            Self::UsdPerHour => {
                format::used_price(UsdPerHour::from_micros(used), UsdPerHour::from_micros(ceiling))
            }
            Self::Resource(name) if used > ceiling || format::rounded_up(name, used) <= ceiling => {
                format::at_least(name, used)
            }
            _ => self.quantity(used),
        }
    }

    /// Returns whether such a limit of a pool is the default, because the pool states none.
    pub fn is_default_of(&self, pool: &Pool) -> bool {
        *self == Self::UsdPerHour && pool.limits.usd_per_hour.is_none()
    }

    /// Returns the amount that one node uses of such a limit.
    pub fn of(&self, allocatable: &ResourceList, price: Option<UsdPerHour>) -> u64 {
        match self {
            Self::Resource(name) => allocatable.get(name.as_str()),
            Self::Nodes | Self::Available(_) => 1,
            Self::UsdPerHour => price.map_or(0, UsdPerHour::micros),
        }
    }

    /// Returns the amount that one node of a type uses of such a limit if its GPUs are cut for these requests.
    pub fn of_type(&self, kind: &InstanceType, price: Option<UsdPerHour>, needs: &[&GpuNeed]) -> u64 {
        let promised = self.of(&kind.allocatable, price);
        let Some(name) = self.mig() else { return promised };
        let mut cut = needs.iter().filter_map(|need| instances(need, kind));
        let most = cut.find(|(resource, _)| resource == name.as_str()).map_or(0, |(_, most)| most);
        promised.saturating_add(most)
    }

    /// Returns the MIG instances that it limits, if it limits some.
    pub fn mig(&self) -> Option<&ResourceName> {
        match self {
            Self::Resource(name) if name.as_str().starts_with(ResourceName::MIG_PREFIX) => Some(name),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_set_to_what_is_said_to_be_needed_allows_it() {
        let memory = LimitKind::Resource(ResourceName::new(ResourceName::MEMORY));
        assert_eq!(memory.needed_in_words(14_162 << 20), "14Gi");
        assert_eq!(memory.enough(14_162 << 20), "14Gi");
        assert_eq!(memory.used_in_words(14_162 << 20, 16 << 30), "14Gi");
        assert_eq!(memory.used_in_words(14_162 << 20, 14_162 << 20), "13.8Gi", "the limit is shown so, too");
        assert_eq!(LimitKind::UsdPerHour.needed_in_words(4_714_000), "$4.72/h");
        assert_eq!(LimitKind::UsdPerHour.enough(4_714_000), "4.714");
    }
}
