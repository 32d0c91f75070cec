//! A fixed-size set of small integers.

/// A set of integers below the size given at its creation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    /// Returns the empty subset of `0..size`.
    pub fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    /// Adds `member`.
    pub fn insert(&mut self, member: usize) {
        self.0[member / 64] |= 1 << (member % 64);
    }

    /// Removes `member`.
    pub fn remove(&mut self, member: usize) {
        self.0[member / 64] &= !(1 << (member % 64));
    }

    /// Returns whether the set has `member`.
    pub fn contains(&self, member: usize) -> bool {
        self.0[member / 64] >> (member % 64) & 1 == 1
    }

    /// Returns whether the set has no member.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Returns whether `other`, a set of the same size, has every member.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// Returns whether `other`, a set of the same size, has a common member.
    pub fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(mine, theirs)| mine & theirs != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn membership_crosses_word_borders() {
        let mut set = BitSet::new(130);
        for member in [0, 63, 64, 129] {
            set.insert(member);
        }
        assert!(set.contains(63) && set.contains(64) && set.contains(129) && !set.contains(65));
        let mut larger = set.clone();
        larger.insert(65);
        assert!(set.is_subset(&larger) && !larger.is_subset(&set) && set.intersects(&larger));
        larger.remove(65);
        assert_eq!(larger, set);
        assert!(!set.is_empty() && BitSet::new(130).is_empty());
    }
}
