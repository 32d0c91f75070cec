//! The pods on a node, counted by colocation profile.

use std::collections::BTreeMap;

/// The number of pods of each profile on a node, without profile 0.
pub(crate) type Present = BTreeMap<usize, u32>;

/// A number of pods that exceeds every node.
pub(crate) const UNLIMITED: u64 = 1 << 20;

/// Adds pods of one profile to a node.
pub(crate) fn join(present: &mut Present, profile: usize, count: u32) {
    if profile > 0 && count > 0 {
        *present.entry(profile).or_default() += count;
    }
}
