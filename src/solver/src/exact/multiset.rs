//! Numbers for the multisets of the pods of a demand.

use crate::canonical::{Content, Model};

/// All multisets of the pods of a demand. Number 0 is the empty one, the last is the whole demand. The difference of two
/// numbers is the number of the difference.
pub(super) struct Multisets {
    /// The classes with demand, each with the number of the multiset of one of its pods.
    classes: Vec<(u32, usize)>,
    /// The number of pods of each of `classes`.
    counts: Vec<u64>,
    /// The number of multisets.
    pub states: usize,
    /// The counts side by side, each with a spare bit above it.
    packed: Vec<u64>,
    spare: u64,
    /// The first of `classes` with a pod in it.
    lowest: Vec<u8>,
}

impl Multisets {
    /// Numbers the multisets. Returns `None` when there are more than `most`, which is at most 2^14.
    pub fn new(demand: &[u64], most: u64) -> Option<Self> {
        let mut states: u64 = 1;
        let (mut classes, mut counts) = (Vec::new(), Vec::new());
        for (class, count) in demand.iter().enumerate().filter(|(_, count)| **count > 0) {
            classes.push((class as u32, states as usize));
            counts.push(*count);
            states = count
                .checked_add(1)
                .and_then(|each| states.checked_mul(each))
                .filter(|states| *states <= most)?;
        }
        // At most 14 classes with 28 bits in all, and as many spare bits.
        let (mut shifts, mut spare, mut at) = (Vec::new(), 0u64, 0);
        for count in &counts {
            shifts.push(at);
            at += 64 - count.leading_zeros();
            spare |= 1 << at;
            at += 1;
        }
        let mut made =
            Self { classes, counts, states: states as usize, packed: Vec::new(), spare, lowest: Vec::new() };
        for state in 0..made.states {
            let (mut packed, mut lowest) = (0, u8::MAX);
            for (at, shift) in shifts.iter().enumerate() {
                let count = made.count(state, at);
                packed |= count << shift;
                if count > 0 && lowest == u8::MAX {
                    lowest = at as u8;
                }
            }
            made.packed.push(packed);
            made.lowest.push(lowest);
        }
        Some(made)
    }

    /// Returns the number of classes with pods.
    pub fn kinds(&self) -> usize {
        self.classes.len()
    }

    /// Returns the number of pods of the class at position `at` in `state`.
    fn count(&self, state: usize, at: usize) -> u64 {
        (state / self.classes[at].1) as u64 % (self.counts[at] + 1)
    }

    /// Returns whether `part` is a subset of `whole`.
    pub fn within(&self, part: usize, whole: usize) -> bool {
        ((self.packed[whole] | self.spare) - self.packed[part]) & self.spare == self.spare
    }

    /// Returns the first class position with a pod in `state`, which must not be empty.
    pub fn lowest(&self, state: usize) -> usize {
        usize::from(self.lowest[state])
    }

    /// Returns the pods of `state` by class, ascending.
    pub fn pods(&self, state: usize) -> Vec<(u32, u32)> {
        (0..self.classes.len())
            .map(|at| (self.classes[at].0, self.count(state, at) as u32))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Returns whether a node of `bin` may hold exactly `pods`; `None` where that is undecided.
    pub fn fits(model: &Model, bin: u32, pods: &[(u32, u32)]) -> Option<bool> {
        let node = &model.bins[bin as usize];
        let holds = |(class, count): &(u32, u32)| node.holds(*class) >= u64::from(*count);
        // Each class alone first, which settles most cases quickly.
        if pods.iter().all(holds) { Content::verdict(model, bin, pods) } else { Some(false) }
    }
}
