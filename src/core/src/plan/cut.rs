//! Which pods to leave out if a limit has no room for all, so that the others keep their topology spread.
//!
//! The solver serves as many pods as a limit has room for, in whatever zones, so these may end up uneven. If only as many pods are
//! planned as had room, each zone gets its part of them. Nodes come in sizes, so that may still be a few too many. Then the number is
//! halved between one that kept the rule and one that broke it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::plan::Plan;
use crate::model::{Pod, PodKey};
use crate::plan::attempt::Attempt;
use crate::plan::context::PlanContext;
use crate::plan::left_by::LeftBy;

/// The most attempts of one search. The last one that may be needed plans only as many pods as kept the rule.
const STEPS: usize = 6;

/// A search ends if the number of pods may rise by less than this part.
const PRECISION: usize = 32;

/// A search for the number of pods to plan.
pub(crate) struct Cut<'a> {
    groups: Vec<Group<'a>>,
    steps: usize,
    /// Whether an attempt kept the rules.
    has_held: bool,
}

/// Pods that can take each other's places.
struct Group<'a> {
    /// The pods, those that are left out last first.
    pods: Vec<&'a PodKey>,
    /// The reason of those that are left out.
    by: LeftBy,
    /// How many pods the next attempt plans.
    next: usize,
    range: Range,
}

/// What is known about the number of pods that keep their rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    /// So many kept them, or would have without those that broke them.
    kept: usize,
    /// So many broke them, if that is known.
    broke: Option<usize>,
}

impl<'a> Cut<'a> {
    /// Begins a search after an attempt that broke a spread; `None` if no limit left out pods that the spread counts.
    pub fn new(context: &PlanContext<'a>, attempt: &Attempt) -> Option<Self> {
        let relations = &context.relations;
        let broken = attempt.violations.iter().flat_map(|broken| context.spreads_of(&broken.pod));
        let broken: BTreeSet<usize> = broken.copied().collect();
        if broken.is_empty() {
            return None;
        }
        let on_rooms: BTreeSet<&PodKey> =
            attempt.plan.placements.iter().map(|placement| &placement.pod).collect();
        let placed = placed(&attempt.plan);
        let left = attempt.plan.unplaced.iter().filter(|left| left.reason.may_be_for_others());
        let left: BTreeSet<&PodKey> = left.map(|left| &left.pod).collect();
        let mut alike: BTreeMap<_, Vec<&'a Pod>> = BTreeMap::new();
        for pod in context.demand.pending.iter().map(|want| want.pod) {
            let kind = relations.of(&pod.key);
            let of_kind = &relations.kinds[kind];
            let is_concerned = of_kind.spreads.iter().chain(&of_kind.counted).any(|at| broken.contains(at));
            if is_concerned && (placed.contains(&pod.key) || left.contains(&pod.key)) {
                alike.entry((kind, pod.priority, &pod.spec, &pod.group)).or_default().push(pod);
            }
        }
        let mut groups = Vec::new();
        for ((kind, ..), mut pods) in alike {
            let of_kind = &relations.kinds[kind];
            let spread = of_kind.spreads.iter().chain(&of_kind.counted).find(|at| broken.contains(*at));
            let by_limit = pods.iter().find_map(|pod| attempt.left.by_limit.get(&pod.key));
            let limit = by_limit.and_then(|(_, by)| by.reached());
            let Some((spread, limit)) = spread.zip(limit) else { continue };
            let rule = relations.spreads[*spread].rule;
            let words = format!(
                "; no plan was found that holds more such pods within the limit and keeps the spread over `{}` (maxSkew {})",
                rule.topology_key, rule.max_skew
            );
            // What one more node uses may well be left, but it would not keep the spread.
            let by = LeftBy::limit(limit, 0).with(&words);
            pods.sort_by_key(|pod| (!on_rooms.contains(&pod.key), pod.created, &pod.key));
            let next = pods.iter().filter(|pod| placed.contains(&pod.key)).count();
            let pods = pods.into_iter().map(|pod| &pod.key).collect();
            groups.push(Group { pods, by, next, range: Range { kept: 0, broke: None } });
        }
        (!groups.is_empty()).then_some(Self { groups, steps: 0, has_held: false })
    }

    /// Returns the pods that the next attempt leaves out, with the reason.
    pub fn pods(&self) -> BTreeMap<PodKey, LeftBy> {
        let left = |group: &Group<'a>| -> Vec<(PodKey, LeftBy)> {
            group.pods[group.next..].iter().map(|pod| ((*pod).clone(), group.by.clone())).collect()
        };
        self.groups.iter().flat_map(left).collect()
    }

    /// Learns from an attempt without these pods. Returns whether another number of pods may be better.
    pub fn learn(&mut self, attempt: &Attempt) -> bool {
        let placed = placed(&attempt.plan);
        let broken: BTreeSet<&PodKey> = attempt.violations.iter().map(|broken| &broken.pod).collect();
        let among = |group: &Group<'a>, all: &BTreeSet<&PodKey>| {
            group.pods.iter().filter(|pod| all.contains(**pod)).count()
        };
        let counts = self.groups.iter().map(|group| (among(group, &placed), among(group, &broken)));
        let counts: Vec<(usize, usize)> = counts.collect();
        self.step(broken.is_empty(), &counts)
    }

    /// Learns the numbers of pods of each group that had room, and of those that broke a rule.
    fn step(&mut self, holds: bool, counts: &[(usize, usize)]) -> bool {
        self.steps += 1;
        self.has_held |= holds;
        let is_first = self.steps == 1;
        let must_hold = self.steps + 1 == STEPS && !self.has_held;
        let (mut changes, mut matters) = (false, false);
        for (group, (placed, broken)) in self.groups.iter_mut().zip(counts) {
            let (before, range) = (group.next, &mut group.range);
            group.next = if holds {
                range.after_success(before, *placed)
            } else if must_hold {
                range.after_failure(before, (*placed, *broken), false);
                range.kept.min(before)
            } else {
                range.after_failure(before, (*placed, *broken), is_first)
            };
            changes |= group.next != before;
            matters |= group.next.saturating_sub(range.kept) * PRECISION > range.kept;
        }
        self.steps < STEPS && changes && (matters || !self.has_held)
    }
}

impl Range {
    /// Returns the next number to try after `tried` pods kept the rules and `placed` of them had room.
    fn after_success(&mut self, tried: usize, placed: usize) -> usize {
        self.kept = self.kept.max(placed);
        self.broke.map_or(tried, |broke| self.kept + broke.saturating_sub(self.kept) / 2)
    }

    /// Returns the next number to try after `tried` pods broke the rules: `placed` had room, and `broken` of these broke a rule.
    fn after_failure(&mut self, tried: usize, (placed, broken): (usize, usize), is_first: bool) -> usize {
        if placed == tried && broken == 0 {
            // The pods of another group are too many.
            self.kept = self.kept.max(placed);
            return tried;
        }
        self.kept = self.kept.max(placed.saturating_sub(broken)).min(tried.saturating_sub(1));
        self.broke = Some(self.broke.map_or(tried, |before| before.min(tried)));
        let half = self.kept + (tried - self.kept) / 2;
        if is_first && placed < tried { placed } else { half }
    }
}

/// Returns the pods that a plan places.
fn placed(plan: &Plan) -> BTreeSet<&PodKey> {
    let on_rooms = plan.placements.iter().map(|placement| &placement.pod);
    plan.claims.iter().flat_map(|claim| &claim.planned_pods).chain(on_rooms).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers that a search tries if up to `most` pods keep their rules, and the last of them that did. With more, all
    /// pods but `lacking` have room, and `broken` of these break a rule.
    fn tried(first: usize, most: usize, lacking: usize, broken: usize) -> (Vec<usize>, Option<usize>) {
        let by = LeftBy::other(String::new());
        let group = Group { pods: Vec::new(), by, next: first, range: Range { kept: 0, broke: None } };
        let mut cut = Cut { groups: vec![group], steps: 0, has_held: false };
        let (mut tried, mut found) = (Vec::new(), None);
        loop {
            let next = cut.groups[0].next;
            tried.push(next);
            let holds = next <= most;
            found = if holds { found.max(Some(next)) } else { found };
            let counts = if holds { (next, 0) } else { (next - lacking, broken) };
            if !cut.step(holds, &[counts]) {
                return (tried, found);
            }
        }
    }

    #[test]
    fn as_many_pods_are_tried_first_as_had_room() {
        assert_eq!(tried(195, 195, 0, 0), (vec![195], Some(195)));
        assert_eq!(tried(195, 190, 5, 21), (vec![195, 190], Some(190)));
    }

    #[test]
    fn the_number_is_halved_until_the_rules_hold_and_then_raised_again() {
        let (numbers, found) = tried(100, 70, 0, 60);
        assert_eq!((&numbers[..3], found), (&[100, 70, 85][..], Some(70)));
        for most in 0..=64 {
            let (numbers, found) = tried(64, most, 1, 64);
            assert!(numbers.len() <= STEPS, "{numbers:?}");
            let found = found.unwrap_or(0);
            assert!(found <= most && found + 8 >= most, "{found} of {most}: {numbers:?}");
        }
    }

    #[test]
    fn the_number_of_pods_that_break_nothing_stays() {
        let mut range = Range { kept: 0, broke: None };
        assert_eq!(range.after_failure(5, (5, 0), true), 5);
        assert_eq!(range.after_failure(5, (5, 2), false), 4);
        assert_eq!(range.after_success(4, 4), 4);
    }
}
