//! Amounts of resources as the kube-scheduler counts them: integers, CPU in thousandths of a core.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a resource as Kubernetes writes it: `cpu`, `memory`, `pods`, `nvidia.com/gpu`, ...
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceName(String);

impl ResourceName {
    /// Processor time, in thousandths of a core.
    pub const CPU: &'static str = "cpu";
    /// Memory, in bytes.
    pub const MEMORY: &'static str = "memory";
    /// Local scratch disk, in bytes.
    pub const EPHEMERAL_STORAGE: &'static str = "ephemeral-storage";
    /// The number of pods on a node.
    pub const PODS: &'static str = "pods";
    /// The number of whole NVIDIA GPUs, as the NVIDIA device plugin advertises them.
    pub const NVIDIA_GPU: &'static str = "nvidia.com/gpu";
    /// GPUs that pods share, as the device plugin advertises them if it renames them.
    pub const NVIDIA_GPU_SHARED: &'static str = "nvidia.com/gpu.shared";
    /// The beginning of the names of MIG instances: `nvidia.com/mig-1g.10gb`.
    pub const MIG_PREFIX: &'static str = "nvidia.com/mig-";

    /// Creates a resource name from its Kubernetes name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Returns the Kubernetes name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is `cpu`, the only resource counted in thousandths.
    pub fn is_cpu(&self) -> bool {
        self.0 == Self::CPU
    }

    /// Formats an amount of this resource as a Kubernetes quantity: `3920m` for CPU, a plain integer for all others.
    pub fn quantity(&self, amount: u64) -> String {
        if self.is_cpu() { format!("{amount}m") } else { amount.to_string() }
    }
}

impl Borrow<str> for ResourceName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Amounts by resource. CPU is in thousandths of a core, every other resource in its own whole unit (bytes, counts), as
/// the kube-scheduler compares them. A resource that is not listed is zero; zero amounts are not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceList(BTreeMap<ResourceName, u64>);

/// A resource that is short: more is requested than available.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shortage {
    /// The resource.
    pub resource: ResourceName,
    /// The requested amount.
    pub wanted: u64,
    /// The available amount.
    pub available: u64,
}

impl ResourceList {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Returns the amount of one resource, zero when not listed.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Sets the amount of one resource.
    pub fn set(&mut self, name: impl Into<ResourceName>, amount: u64) {
        let name = name.into();
        if amount == 0 {
            self.0.remove(&name);
        } else {
            self.0.insert(name, amount);
        }
    }

    /// Returns the list with one amount set, for building lists in one expression.
    pub fn with(mut self, name: impl Into<ResourceName>, amount: u64) -> Self {
        self.set(name, amount);
        self
    }

    /// Returns whether every amount is zero.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the non-zero amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, u64)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// Adds `other` to this list, saturating.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            match self.0.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(amount),
                None => self.set(name.clone(), amount),
            }
        }
    }

    /// Subtracts `other` from this list, down to zero.
    pub fn saturating_sub(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let Some(left) = self.0.get_mut(name) else { continue };
            *left = left.saturating_sub(amount);
            if *left == 0 {
                self.0.remove(name);
            }
        }
    }

    /// Returns the larger amount of both lists for each resource.
    pub fn max(&self, other: &Self) -> Self {
        let mut larger = self.clone();
        for (name, amount) in other.iter() {
            if amount > larger.get(name.as_str()) {
                larger.set(name.clone(), amount);
            }
        }
        larger
    }

    /// Returns the first resource, by name, of which this list has more than `room`, if any.
    pub fn first_shortage(&self, room: &Self) -> Option<Shortage> {
        self.iter().find(|(name, wanted)| *wanted > room.get(name.as_str())).map(|(name, wanted)| Shortage {
            resource: name.clone(),
            wanted,
            available: room.get(name.as_str()),
        })
    }

    /// Returns whether this list fits into `room`.
    pub fn fits(&self, room: &Self) -> bool {
        self.first_shortage(room).is_none()
    }
}

impl<N: Into<ResourceName>> FromIterator<(N, u64)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(iter: I) -> Self {
        let mut list = Self::new();
        for (name, amount) in iter {
            list.set(name, amount);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_names_what_is_wanted_and_what_there_is() {
        let wanted = ResourceList::new().with(ResourceName::CPU, 4000).with(ResourceName::NVIDIA_GPU, 8);
        let room = ResourceList::new().with(ResourceName::CPU, 8000).with(ResourceName::NVIDIA_GPU, 4);
        let shortage = wanted.first_shortage(&room).expect("eight GPUs do not fit where there are four");
        assert_eq!(
            (shortage.resource.as_str(), shortage.wanted, shortage.available),
            ("nvidia.com/gpu", 8, 4)
        );
        assert!(room.fits(&room));
    }

    #[test]
    fn zero_amounts_leave_no_trace_so_that_equal_lists_compare_equal() {
        let mut list = ResourceList::new().with(ResourceName::CPU, 5);
        list.saturating_sub(&ResourceList::new().with(ResourceName::CPU, 7));
        assert_eq!(list, ResourceList::new());
    }
}
