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

/// Numbered sets that it owns: equal sets get equal numbers.
#[derive(Default)]
pub(super) struct Numbered(BTreeMap<Vec<u32>, u32>);

impl Numbered {
    /// Returns the number of an ascending set.
    pub fn number(&mut self, set: Vec<u32>) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(set).or_insert(next)
    }

    /// Returns the sets by their numbers.
    pub fn into_sets(self) -> Vec<Vec<u32>> {
        let mut sets = vec![Vec::new(); self.0.len()];
        for (set, number) in self.0 {
            sets[number as usize] = set;
        }
        sets
    }
}

/// Groups of classes with the same conflicts.
pub(crate) struct Parties {
    /// The party of each class.
    pub of: Vec<u32>,
    /// By party: the parties whose classes may not share a node with one of its own, ascending. It contains itself where
    /// its classes conflict with each other or with themselves.
    pub apart: Vec<Vec<u32>>,
}

impl Parties {
    /// Builds the parties from the number of each class's set of conflicts, and the sets, which ascend and are symmetric. A class
    /// may be in its own set.
    ///
    /// Classes belong to one party when they have the same conflicts, apart from themselves: either all pairs of them
    /// conflict or none.
    pub fn new(numbers: &[u32], sets: &[Vec<u32>]) -> Self {
        let mut known = Numbered::default();
        // By set: the number of the set itself, for classes that are in their own set.
        let mut own: Vec<Option<u32>> = vec![None; sets.len()];
        let closed: Vec<u32> = (0..)
            .zip(numbers)
            .map(|(class, number)| {
                let set = &sets[*number as usize];
                match set.binary_search(&class) {
                    Err(at) if !set.is_empty() => {
                        let mut set = set.clone();
                        set.insert(at, class);
                        known.number(set)
                    }
                    _ => *own[*number as usize].get_or_insert_with(|| known.number(set.clone())),
                }
            })
            .collect();
        let mut sharing: BTreeMap<u32, u32> = BTreeMap::new();
        for number in &closed {
            *sharing.entry(*number).or_default() += 1;
        }
        // By party: its set.
        let mut parties: BTreeMap<(bool, u32), (u32, u32)> = BTreeMap::new();
        let mut of = Vec::with_capacity(numbers.len());
        for (number, closed) in numbers.iter().zip(closed) {
            let is_closed = sharing[&closed] > 1 && !sets[*number as usize].is_empty();
            let key = if is_closed { (true, closed) } else { (false, *number) };
            let next = parties.len() as u32;
            of.push(parties.entry(key).or_insert((next, *number)).0);
        }
        let mut apart = vec![Vec::new(); parties.len()];
        for (party, number) in parties.values() {
            let set = &mut apart[*party as usize];
            set.extend(sets[*number as usize].iter().map(|other| of[*other as usize]));
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
            let mut sets = Numbered::default();
            let numbers: Vec<u32> = conflicts.iter().map(|set| sets.number(set.clone())).collect();
            let parties = Parties::new(&numbers, &sets.into_sets());
            for one in 0..conflicts.len() {
                for other in (0..conflicts.len()).filter(|other| *other != one) {
                    let said = parties.apart[parties.of[one] as usize].binary_search(&parties.of[other]);
                    prop_assert_eq!(said.is_ok(), conflicts[one].binary_search(&(other as u32)).is_ok());
                }
            }
        }
    }
}
