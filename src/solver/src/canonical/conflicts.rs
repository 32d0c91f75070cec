//! The classes that may not share a node. Ten thousand classes that exclude each other have 50 million pairs but one set, so
//! equal sets are stored once.

use std::collections::BTreeMap;

use super::sets::{Numbered, Parties};
use crate::problem::Problem;

/// The conflicting classes of each class. A set contains the class itself if its pods exclude each other.
#[derive(Debug)]
pub(crate) struct Conflicts {
    /// By class: the number of its set.
    numbers: Vec<u32>,
    /// By number: the classes, ascending. Equal sets have equal numbers.
    sets: Vec<Vec<u32>>,
}

impl Conflicts {
    /// Creates conflicts from numbers of sets, one for each class, and the sets. Sets must be symmetric: each class of a set has
    /// the owners of the set in its own.
    pub(super) fn new(numbers: Vec<u32>, sets: Numbered) -> Self {
        Self { numbers, sets: sets.into_sets() }
    }

    /// Returns the conflicts of the problem's classes. A class with ports conflicts with itself.
    pub fn of_all(problem: &Problem) -> Self {
        let mut partners: Vec<Vec<u32>> = vec![Vec::new(); problem.classes.len()];
        for (i, j) in &problem.conflicts {
            partners[*i as usize].push(*j);
            partners[*j as usize].push(*i);
        }
        let mut by_port: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (index, class) in (0..).zip(&problem.classes) {
            for port in &class.ports {
                by_port.entry(*port).or_default().push(index);
            }
        }
        let mut sets = Numbered::default();
        // Classes with the same partners and shared ports have the same set, which is built once.
        let mut known: BTreeMap<(Vec<u32>, Vec<u32>), u32> = BTreeMap::new();
        let mut numbers = Vec::with_capacity(problem.classes.len());
        for (index, (class, mut others)) in (0..).zip(problem.classes.iter().zip(partners)) {
            let shared: Vec<u32> =
                class.ports.iter().copied().filter(|port| by_port[port].len() > 1).collect();
            if shared.is_empty() && !class.ports.is_empty() {
                others.push(index);
            }
            let number = *known.entry((others, shared)).or_insert_with_key(|(others, shared)| {
                let mut set = others.clone();
                set.extend(shared.iter().flat_map(|port| &by_port[port]));
                set.sort_unstable();
                set.dedup();
                sets.number(set)
            });
            numbers.push(number);
        }
        Self::new(numbers, sets)
    }

    /// Returns the conflicts with classes that have pods to place, as [`Self::of_all`] does. A single pod whose ports no other pod
    /// has conflicts with none, so that thousands of such pods can be merged.
    pub fn of_waiting(problem: &Problem) -> Self {
        let count = |class: u32| problem.classes[class as usize].count;
        let all = Self::of_all(problem);
        let mut sets = Numbered::default();
        let none = sets.number(Vec::new());
        let waiting: Vec<u32> = all
            .sets
            .into_iter()
            .map(|mut set| {
                set.retain(|other| count(*other) > 0);
                sets.number(set)
            })
            .collect();
        let numbers = all.numbers.into_iter().map(|number| waiting[number as usize]).collect();
        let mut conflicts = Self::new(numbers, sets);
        for (class, number) in (0..).zip(&mut conflicts.numbers) {
            if conflicts.sets[*number as usize] == [class] && count(class) == 1 {
                *number = none;
            }
        }
        conflicts
    }

    /// Returns the conflicting classes of a class, ascending.
    pub fn of(&self, class: usize) -> &[u32] {
        self.set(self.number(class))
    }

    /// Returns the number of the set of a class.
    pub fn number(&self, class: usize) -> u32 {
        self.numbers[class]
    }

    /// Returns the set with this number.
    pub fn set(&self, number: u32) -> &[u32] {
        &self.sets[number as usize]
    }

    /// Returns whether a class conflicts with itself.
    pub fn is_alone(&self, class: u32) -> bool {
        self.of(class as usize).binary_search(&class).is_ok()
    }

    /// Returns whether a class conflicts with another one.
    pub fn has_others(&self, class: u32) -> bool {
        self.of(class as usize).iter().any(|other| *other != class)
    }

    /// Returns the parties: groups of classes with the same conflicts.
    pub fn parties(&self) -> Parties {
        Parties::new(&self.numbers, &self.sets)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::problem::PodClass;

    #[test]
    fn ten_thousand_classes_that_exclude_each_other_have_one_set_and_one_party() {
        // Each has a port of its own, too.
        let class = |at: u32| PodClass { count: 1, ports: vec![0, 1 + at], ..PodClass::default() };
        let problem = Problem { classes: (0..10_000).map(class).collect(), ..Problem::default() };
        let conflicts = Conflicts::of_waiting(&problem);
        assert!((0..10_000).all(|at| conflicts.is_alone(at) && conflicts.of(at as usize).len() == 10_000));
        let stored: usize = conflicts.sets.iter().map(Vec::len).sum();
        assert_eq!(stored, 10_000, "the set is stored once");
        let parties = conflicts.parties();
        assert_eq!(parties.apart, [[0_u32]]);
        assert!(parties.of.iter().all(|party| *party == 0));
    }

    proptest! {
        #[test]
        fn classes_are_in_conflict_if_a_pair_says_so_or_if_they_have_a_common_port(
            pairs in btree_set((0..8_u32, 0..8_u32), 0..12),
            ports in vec(btree_set(0..6_u32, 0..3), 8),
        ) {
            let class = |ports: &BTreeSet<u32>| PodClass {
                ports: ports.iter().copied().collect(),
                ..PodClass::default()
            };
            let problem = Problem {
                classes: ports.iter().map(class).collect(),
                conflicts: pairs.into_iter().filter(|(one, other)| one < other).collect(),
                ..Problem::default()
            };
            let apart = |one: u32, other: u32| {
                problem.conflicts.contains(&(one.min(other), one.max(other)))
                    || !ports[one as usize].is_disjoint(&ports[other as usize])
            };
            let conflicts = Conflicts::of_all(&problem);
            let parties = conflicts.parties();
            for one in 0..8_u32 {
                let plain: Vec<u32> = (0..8).filter(|other| apart(one, *other)).collect();
                prop_assert_eq!(conflicts.of(one as usize), plain.as_slice());
                for other in (0..8_u32).filter(|other| *other != one) {
                    let said = parties.apart[parties.of[one as usize] as usize]
                        .binary_search(&parties.of[other as usize]);
                    prop_assert_eq!(said.is_ok(), apart(one, other));
                }
            }
        }
    }
}
