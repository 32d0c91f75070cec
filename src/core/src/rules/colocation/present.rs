//! Who is on a node, as far as rules about other pods are concerned.

use std::collections::BTreeMap;

/// How many pods of each profile are on one node; profile 0 is never among them.
pub(crate) type Present = BTreeMap<usize, u32>;

/// More pods than any node takes.
pub(crate) const UNLIMITED: u64 = 1 << 20;

/// Pods of one profile come to a node.
pub(crate) fn join(present: &mut Present, profile: usize, count: u32) {
    if profile > 0 && count > 0 {
        *present.entry(profile).or_default() += count;
    }
}
