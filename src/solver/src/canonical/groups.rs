//! Gangs and spreads in the model. A class that is divided over the values of a topology becomes one class for each
//! value, with the bins that have this value.

use std::collections::BTreeSet;

use super::Class;
use crate::choice::{Choice, Even, Part, Rule};
use crate::problem::Problem;
use crate::solution::UnplacedReason;

/// Group, class of the problem, and position among the group's values. Undivided gangs have zeros for the last two, so
/// that their equal pods are merged.
pub(super) type Key = (u32, u32, u32);

/// A gang or a spread.
struct Group {
    /// Index into the problem's gangs, or else its spreads.
    origin: u32,
    topology: Option<u32>,
    /// Values of the topology, ascending.
    values: Vec<u32>,
    rule: Rule,
}

/// All groups.
pub(super) struct Groups {
    groups: Vec<Group>,
    /// By position.
    keys: Vec<Option<Key>>,
}

impl Groups {
    /// Returns the groups, and the classes with pods; divided classes appear once for each value.
    pub fn new(problem: &Problem) -> (Self, Vec<usize>) {
        let mut made = Self { groups: Vec::new(), keys: Vec::new() };
        let mut of: Vec<Option<u32>> = vec![None; problem.classes.len()];
        let mut join = |group: Group, classes: &[u32], groups: &mut Vec<Group>| {
            for class in classes {
                of[*class as usize] = Some(groups.len() as u32);
            }
            groups.push(group);
        };
        for (index, gang) in problem.gangs.iter().enumerate() {
            let group = Group {
                origin: index as u32,
                topology: gang.within,
                values: gang.within.map_or_else(Vec::new, |topology| present(problem, topology)),
                rule: if gang.within.is_some() { Rule::One } else { Rule::Whole },
            };
            join(group, &gang.classes, &mut made.groups);
        }
        for (index, spread) in problem.spreads.iter().enumerate() {
            let floor =
                spread.min_domains.is_some_and(|least| (spread.values.len() as u64) < u64::from(least));
            let even = Even {
                skew: u64::from(spread.max_skew),
                running: spread.running.iter().map(|pods| u64::from(*pods)).collect(),
                floor,
            };
            let group = Group {
                origin: index as u32,
                topology: Some(spread.topology),
                values: spread.values.clone(),
                rule: Rule::Even(even),
            };
            join(group, &spread.classes, &mut made.groups);
        }
        let mut wanted = Vec::new();
        for index in (0..problem.classes.len()).filter(|index| problem.classes[*index].count > 0) {
            let Some(group) = of[index] else {
                wanted.push(index);
                made.keys.push(None);
                continue;
            };
            if made.groups[group as usize].topology.is_none() {
                wanted.push(index);
                made.keys.push(Some((group, 0, 0)));
                continue;
            }
            for value in 0..made.groups[group as usize].values.len() {
                wanted.push(index);
                made.keys.push(Some((group, index as u32, value as u32)));
            }
            if made.groups[group as usize].values.is_empty() {
                // Keep one position, to report that the class fits nowhere.
                wanted.push(index);
                made.keys.push(Some((group, index as u32, 0)));
            }
        }
        (made, wanted)
    }

    /// Returns the group of a position.
    pub fn key(&self, position: usize) -> Option<Key> {
        self.keys[position]
    }

    /// Returns whether a node with these values may hold pods of `position`.
    pub fn admits(&self, position: usize, domains: &[(u32, u32)]) -> bool {
        let Some((group, _, at)) = self.keys[position] else { return true };
        let group = &self.groups[group as usize];
        let Some(topology) = group.topology else { return true };
        let value = group.values.get(at as usize);
        domains.iter().any(|(index, has)| *index == topology && Some(has) == value)
    }

    /// Returns which positions are dropped, given the bins of each, and the problem's classes left without a position, with
    /// the reason where the group is the reason.
    pub fn settle(
        &self,
        wanted: &[usize],
        homes: &[Vec<u32>],
        elsewhere: &[bool],
    ) -> (Vec<bool>, Vec<(usize, Option<UnplacedReason>)>) {
        let mut dropped: Vec<bool> = homes.iter().map(Vec::is_empty).collect();
        let mut homeless: Vec<(usize, Option<UnplacedReason>)> = Vec::new();
        let mut of: Vec<Vec<usize>> = vec![Vec::new(); self.groups.len()];
        for (position, key) in self.keys.iter().enumerate() {
            match key {
                Some((group, ..)) => of[*group as usize].push(position),
                None if dropped[position] => homeless.push((wanted[position], None)),
                None => {}
            }
        }
        for (group, positions) in self.groups.iter().zip(&of) {
            let classes: BTreeSet<usize> = positions.iter().map(|position| wanted[*position]).collect();
            let housed = |class: usize, dropped: &[bool]| {
                positions.iter().any(|position| wanted[*position] == class && !dropped[*position])
            };
            let known = |class: usize| {
                positions.iter().any(|position| wanted[*position] == class && elsewhere[*position])
            };
            if let Rule::Even(_) = group.rule {
                for &class in classes.iter().filter(|class| !housed(**class, &dropped)) {
                    let reason = known(class).then_some(UnplacedReason::Unspreadable(group.origin));
                    homeless.push((class, reason));
                }
                continue;
            }
            // A value without a bin for one class of the gang is useless for the others.
            let bare: BTreeSet<u32> = positions
                .iter()
                .filter(|position| dropped[**position])
                .filter_map(|position| self.keys[*position].map(|key| key.2))
                .collect();
            let alone: Vec<bool> = classes.iter().map(|class| housed(*class, &dropped)).collect();
            for position in positions {
                if self.keys[*position].is_some_and(|key| bare.contains(&key.2)) {
                    dropped[*position] = true;
                }
            }
            for (class, alone) in classes.iter().zip(alone) {
                if !housed(*class, &dropped) {
                    let gang = UnplacedReason::GangIncomplete(group.origin);
                    homeless.push((*class, (alone || known(*class)).then_some(gang)));
                }
            }
        }
        (dropped, homeless)
    }

    /// Returns the remaining groups as choices, and sets `choice` and `owner` of their classes (given with their keys).
    pub fn choices(&self, classes: &mut [(Class, Option<Key>)]) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            let mut parts: Vec<(u32, Part)> = Vec::new();
            for (at, (class, key)) in classes.iter_mut().enumerate() {
                let Some((_, member, value)) = key.filter(|key| key.0 as usize == index) else { continue };
                let width = group.values.len().max(1);
                if group.topology.is_none() || parts.last().is_none_or(|(last, _)| *last != member) {
                    parts.push((member, Part { owner: at as u32, cells: vec![None; width] }));
                }
                if let Some((_, part)) = parts.last_mut() {
                    part.cells[value as usize] = Some(at as u32);
                    class.owner = part.owner;
                }
                class.choice = Some(choices.len() as u32);
            }
            if !parts.is_empty() {
                let parts = parts.into_iter().map(|(_, part)| part).collect();
                choices.push(Choice { rule: group.rule.clone(), parts, origin: group.origin });
            }
        }
        choices
    }
}

/// Returns the values that some node has.
fn present(problem: &Problem, topology: u32) -> Vec<u32> {
    let candidates = problem.candidates.iter().map(|candidate| &candidate.domains);
    let all = candidates.chain(problem.existing.iter().map(|node| &node.domains)).flatten();
    let values: BTreeSet<u32> =
        all.filter(|(index, _)| *index == topology).map(|(_, value)| *value).collect();
    values.into_iter().collect()
}
