//! Numbers for sets that many classes share, so that equal sets have equal numbers. Classes with the same conflicts form
//! one party, so that few pairs of parties stand for many pairs of classes.

use std::collections::BTreeMap;

/// Numbered sets.
#[derive(Default)]
pub(super) struct Sets<'a> {
    known: BTreeMap<&'a [u32], u32>,
    all: Vec<&'a [u32]>,
}

impl<'a> Sets<'a> {
    /// Returns the number of an ascending set.
    pub fn number(&mut self, set: &'a [u32]) -> u32 {
        let next = self.all.len() as u32;
        let at = *self.known.entry(set).or_insert(next);
        if at == next {
            self.all.push(set);
        }
        at
    }

    /// Returns the set with this number.
    pub fn of(&self, number: u32) -> &'a [u32] {
        self.all[number as usize]
    }
}

/// Groups of classes with the same conflicts.
pub(crate) struct Parties {
    /// The party of each class.
    pub of: Vec<u32>,
    /// By party: the parties whose classes may not share a node with one of its own, ascending. It contains itself where
    /// its classes conflict with each other.
    pub apart: Vec<Vec<u32>>,
}

impl Parties {
    /// Builds the parties from the ascending conflicts of each class. They say nothing about a class and itself.
    ///
    /// Classes belong to one party when they have the same conflicts, apart from themselves: either all pairs of them
    /// conflict or none.
    pub fn new(conflicts: &[&[u32]]) -> Self {
        let with_itself: Vec<Vec<u32>> = (0..)
            .zip(conflicts)
            .map(|(index, conflicts)| {
                let mut set = conflicts.to_vec();
                if let (false, Err(at)) = (set.is_empty(), set.binary_search(&index)) {
                    set.insert(at, index);
                }
                set
            })
            .collect();
        let mut sets = Sets::default();
        let closed: Vec<u32> = with_itself.iter().map(|set| sets.number(set)).collect();
        let mut sharing = vec![0u32; sets.all.len()];
        for number in &closed {
            sharing[*number as usize] += 1;
        }
        let mut open = Sets::default();
        // By party: one of its classes.
        let mut known: BTreeMap<(bool, u32), (u32, usize)> = BTreeMap::new();
        let mut of = Vec::with_capacity(conflicts.len());
        for (index, conflicts) in conflicts.iter().enumerate() {
            let closed = closed[index];
            let key = if sharing[closed as usize] > 1 && !conflicts.is_empty() {
                (true, closed)
            } else {
                (false, open.number(conflicts))
            };
            let next = known.len() as u32;
            of.push(known.entry(key).or_insert((next, index)).0);
        }
        let mut apart = vec![Vec::new(); known.len()];
        for (party, index) in known.values() {
            let set = &mut apart[*party as usize];
            set.extend(conflicts[*index].iter().map(|other| of[*other as usize]));
            set.sort_unstable();
            set.dedup();
        }
        Self { of, apart }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parties_say_of_each_pair_of_classes_what_their_conflicts_say(
            pairs in proptest::collection::vec((0..12u32, 0..12u32), 0..60),
            cliques in proptest::collection::vec(proptest::collection::btree_set(0..12u32, 2..5), 0..3),
        ) {
            let mut conflicts: Vec<Vec<u32>> = vec![Vec::new(); 12];
            let within = cliques.iter().flat_map(|set| set.iter().flat_map(|one| set.iter().map(|other| (*one, *other))));
            for (one, other) in pairs.into_iter().chain(within).filter(|(one, other)| one != other) {
                conflicts[one as usize].push(other);
                conflicts[other as usize].push(one);
            }
            for set in &mut conflicts {
                set.sort_unstable();
                set.dedup();
            }
            let lists: Vec<&[u32]> = conflicts.iter().map(Vec::as_slice).collect();
            let parties = Parties::new(&lists);
            for one in 0..conflicts.len() {
                for other in (0..conflicts.len()).filter(|other| *other != one) {
                    let said = parties.apart[parties.of[one] as usize].binary_search(&parties.of[other]);
                    prop_assert_eq!(said.is_ok(), conflicts[one].binary_search(&(other as u32)).is_ok());
                }
            }
        }
    }
}
