//! Finds the classes that can meet on one node.

use std::collections::BTreeMap;

use crate::bits::BitSet;

/// The pairs of classes with a common bin. Distinct sets of bins are few and pairs of classes are many, so each pair of
/// sets is compared once.
pub(super) struct Meetings {
    /// By class: the number of its set of bins.
    sets: Vec<usize>,
    /// By number: the sets that share a bin with it.
    common: Vec<BitSet>,
}

impl Meetings {
    /// Compares the bins of each class, `homes`, all below `bins`.
    pub fn new<'a>(homes: impl Iterator<Item = &'a [u32]>, bins: usize) -> Self {
        let mut known: BTreeMap<&'a [u32], usize> = BTreeMap::new();
        let mut members: Vec<BitSet> = Vec::new();
        let mut number = |homes: &'a [u32]| {
            *known.entry(homes).or_insert_with(|| {
                let mut set = BitSet::new(bins);
                for bin in homes {
                    set.insert(*bin as usize);
                }
                members.push(set);
                members.len() - 1
            })
        };
        let sets: Vec<usize> = homes.map(&mut number).collect();
        let mut common = vec![BitSet::new(members.len()); members.len()];
        for (at, one) in members.iter().enumerate() {
            for (other, _) in members.iter().enumerate().filter(|(_, set)| one.intersects(set)) {
                common[at].insert(other);
            }
        }
        Self { sets, common }
    }

    /// Returns the number of a class's set of bins.
    pub fn set(&self, class: usize) -> usize {
        self.sets[class]
    }

    /// Returns whether two classes have a common bin.
    pub fn meet(&self, one: usize, other: usize) -> bool {
        self.common[self.sets[one]].contains(self.sets[other])
    }
}
