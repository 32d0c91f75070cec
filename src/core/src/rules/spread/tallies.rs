//! Topology spread over nodes, expressed as resources of the solver: the number of further pods that a constraint allows on a
//! node.

use std::collections::{BTreeMap, BTreeSet};

use crate::rules::colocation::Colocation;
use crate::rules::colocation::present::{Present, UNLIMITED};
use crate::rules::spread::hosts::HostSpread;

/// A spread constraint that is counted on every node like a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tallied {
    /// The pods with the constraint.
    Owners(usize),
    /// The pods that it counts but that do not have it, on nodes that already hold pods with it.
    Guests(usize),
}

impl Colocation<'_> {
    /// Returns the constraints that limit pods of several profiles together, or that residents use up in part. `present` are the
    /// residents of the nodes in question.
    pub fn tallies<'p>(
        &self,
        profiles: impl Iterator<Item = usize>,
        present: impl Iterator<Item = &'p Present>,
    ) -> Vec<Tallied> {
        let mut limited: BTreeMap<usize, usize> = BTreeMap::new();
        let profiles: Vec<usize> = profiles.collect();
        let is_guest = |spread: &HostSpread<'_>| {
            profiles.iter().any(|one| spread.weight(*one) > 0 && !spread.owned_by.contains(one))
        };
        let guests: Vec<usize> = (0..self.spreads.len()).filter(|at| is_guest(&self.spreads[*at])).collect();
        for profile in profiles {
            for at in self.spreads_of(profile) {
                if self.spreads[*at].is_shared() && self.spreads[*at].weight(profile) > 0 {
                    *limited.entry(*at).or_default() += 1;
                }
            }
        }
        if limited.is_empty() && guests.is_empty() {
            return Vec::new();
        }
        let (mut met, mut visited): (BTreeSet<usize>, BTreeSet<usize>) = Default::default();
        for present in present.filter(|present| !present.is_empty()) {
            met.extend(limited.keys().filter(|at| self.spreads[**at].count(present) > 0));
            visited.extend(guests.iter().filter(|at| self.spreads[**at].is_owned_among(present)));
        }
        let several = limited.into_iter().filter(|(at, classes)| *classes > 1 || met.contains(at));
        several.map(|(at, _)| Tallied::Owners(at)).chain(visited.into_iter().map(Tallied::Guests)).collect()
    }

    /// Returns the number of limited pods that one member of a profile counts as.
    pub fn tally(&self, of: Tallied, profile: usize) -> u64 {
        let (Tallied::Owners(at) | Tallied::Guests(at)) = of;
        let spread = &self.spreads[at];
        let is_owner = spread.owned_by.contains(&profile);
        if is_owner == matches!(of, Tallied::Owners(_)) { spread.weight(profile) } else { 0 }
    }

    /// Returns the number of further pods that a node with these residents may hold.
    pub fn tally_left(&self, of: Tallied, present: &Present) -> u64 {
        let (Tallied::Owners(at) | Tallied::Guests(at)) = of;
        let spread = &self.spreads[at];
        if matches!(of, Tallied::Guests(_)) && !spread.is_owned_among(present) {
            // The constraint does not apply on a node without a pod that has it.
            return UNLIMITED;
        }
        spread.ceiling().saturating_sub(spread.count(present))
    }
}
