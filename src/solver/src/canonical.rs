//! The problem the algorithms see: equal classes merged, candidates that cannot matter dropped, equal existing nodes
//! counted together. [`crate::plan`] maps plans back.

use std::collections::BTreeMap;

use crate::bits::BitSet;
use crate::problem::{Candidate, Problem};

/// No ceiling on a count.
pub(crate) const UNLIMITED: u64 = u64::MAX;

/// Pods that are interchangeable to the solver; one or more classes of the problem.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// What one pod takes.
    pub requests: Vec<u64>,
    /// How many pods there are.
    pub demand: u64,
    /// At most this many on one node; `u32::MAX` when only capacity bounds it.
    pub per_node: u32,
    /// Higher is placed first when not all can be placed.
    pub priority: i32,
    /// The problem's classes, ascending, with their counts.
    pub members: Vec<(u32, u64)>,
    /// Bins that hold at least one such pod, ascending.
    pub bins: Vec<u32>,
}

/// Where a bin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A candidate of the problem.
    Candidate(u32),
    /// Existing nodes with the same free room and the same admitted classes, ascending.
    Existing(Vec<u32>),
}

/// A kind of node: to buy, or there already.
#[derive(Clone, Debug)]
pub(crate) struct Bin {
    /// Room on one node.
    pub capacity: Vec<u64>,
    /// Price of one node in micro-dollars; 0 for existing nodes.
    pub price: u64,
    /// How many there can be.
    pub available: u64,
    /// What one node takes of each limit.
    pub limit_use: Vec<(u32, u64)>,
    /// Classes of which at least one pod fits, ascending.
    pub classes: Vec<u32>,
    /// What it stands for.
    pub origin: Origin,
}

/// What pods of one merged class share: requests, bins, priority, and a ceiling per node with the class it belongs to.
type Kind = (Vec<u64>, Vec<u32>, i32, Option<(u32, usize)>);

/// The canonical problem.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// Number of resources that some pod requests.
    pub dims: usize,
    /// Merged classes that fit somewhere.
    pub classes: Vec<Class>,
    /// Existing bins first, then those to buy; candidates in the problem's order.
    pub bins: Vec<Bin>,
    /// Ceilings.
    pub limits: Vec<u64>,
    /// The problem's classes that no bin holds, with their counts.
    pub homeless: Vec<(u32, u64)>,
}

impl Bin {
    /// Whether using it is free.
    pub fn is_existing(&self) -> bool {
        matches!(self.origin, Origin::Existing(_))
    }

    /// How many pods of `class` one empty node holds, demand aside.
    pub fn holds(&self, class: &Class) -> u64 {
        fit_count(&self.capacity, &class.requests).min(u64::from(class.per_node))
    }
}

/// How often `requests` fits into `room`; `UNLIMITED` for a pod that requests nothing.
pub(crate) fn fit_count(room: &[u64], requests: &[u64]) -> u64 {
    room.iter()
        .zip(requests)
        .filter_map(|(room, request)| room.checked_div(*request))
        .min()
        .unwrap_or(UNLIMITED)
}

fn project(vector: &[u64], dims: &[usize]) -> Vec<u64> {
    dims.iter().map(|&dim| vector[dim]).collect()
}

/// `a` can replace `b` wherever `b` is bought.
fn dominates(a: &Candidate, b: &Candidate, dims: &[usize]) -> bool {
    let amount = |candidate: &Candidate, limit: u32| {
        candidate.limit_use.iter().find(|(index, _)| *index == limit).map_or(0, |(_, amount)| *amount)
    };
    a.price <= b.price
        && a.max_nodes.is_none()
        && dims.iter().all(|&dim| a.capacity[dim] >= b.capacity[dim])
        && a.limit_use.iter().all(|(limit, used)| *used <= amount(b, *limit))
}

impl Model {
    /// Builds the canonical problem. `problem` must be valid.
    pub fn new(problem: &Problem) -> Self {
        let dims: Vec<usize> = (0..problem.resources.len())
            .filter(|&dim| problem.classes.iter().any(|class| class.count > 0 && class.requests[dim] > 0))
            .collect();
        let wanted: Vec<usize> =
            (0..problem.classes.len()).filter(|&index| problem.classes[index].count > 0).collect();
        let requests: Vec<Vec<u64>> =
            wanted.iter().map(|&index| project(&problem.classes[index].requests, &dims)).collect();

        // Who admits whom, capacity included.
        let mut admitted = vec![BitSet::new(wanted.len()); problem.candidates.len()];
        let mut admitted_existing = vec![BitSet::new(wanted.len()); problem.existing.len()];
        for (position, &index) in wanted.iter().enumerate() {
            let class = &problem.classes[index];
            if class.max_per_node == Some(0) {
                continue;
            }
            for &candidate in &class.candidates {
                let room = &problem.candidates[candidate as usize].capacity;
                if problem.candidates[candidate as usize].max_nodes != Some(0)
                    && fit_count(room, &class.requests) > 0
                {
                    admitted[candidate as usize].insert(position);
                }
            }
            for &node in &class.existing {
                if fit_count(&problem.existing[node as usize].free, &class.requests) > 0 {
                    admitted_existing[node as usize].insert(position);
                }
            }
        }

        let candidates: Vec<usize> =
            (0..problem.candidates.len()).filter(|&index| !admitted[index].is_empty()).collect();
        let kept: Vec<usize> = candidates
            .iter()
            .copied()
            .filter(|&b| {
                !candidates.iter().any(|&a| {
                    a != b
                        && admitted[b].is_subset(&admitted[a])
                        && dominates(&problem.candidates[a], &problem.candidates[b], &dims)
                        // Of two that dominate each other the first stays.
                        && (a < b
                            || !(admitted[a].is_subset(&admitted[b])
                                && dominates(&problem.candidates[b], &problem.candidates[a], &dims)))
                })
            })
            .collect();

        let mut groups: BTreeMap<(BitSet, Vec<u64>), Vec<u32>> = BTreeMap::new();
        for (node, set) in admitted_existing.into_iter().enumerate() {
            if !set.is_empty() {
                let free = project(&problem.existing[node].free, &dims);
                groups.entry((set, free)).or_default().push(node as u32);
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by(|a, b| a.1.cmp(&b.1));

        let mut bins = Vec::with_capacity(groups.len() + kept.len());
        let mut admits = Vec::with_capacity(groups.len() + kept.len());
        for ((set, free), nodes) in groups {
            bins.push(Bin {
                capacity: free,
                price: 0,
                available: nodes.len() as u64,
                limit_use: Vec::new(),
                classes: Vec::new(),
                origin: Origin::Existing(nodes),
            });
            admits.push(set);
        }
        for index in kept {
            let candidate = &problem.candidates[index];
            bins.push(Bin {
                capacity: project(&candidate.capacity, &dims),
                price: candidate.price.micros(),
                available: candidate.max_nodes.map_or(UNLIMITED, u64::from),
                limit_use: candidate.limit_use.iter().copied().filter(|(_, amount)| *amount > 0).collect(),
                classes: Vec::new(),
                origin: Origin::Candidate(index as u32),
            });
            admits.push(admitted[index].clone());
        }

        let mut homeless = Vec::new();
        let mut merged: BTreeMap<Kind, Vec<(u32, u64)>> = BTreeMap::new();
        for (position, &index) in wanted.iter().enumerate() {
            let class = &problem.classes[index];
            let homes: Vec<u32> =
                (0..bins.len()).filter(|&bin| admits[bin].contains(position)).map(|bin| bin as u32).collect();
            let member = (index as u32, u64::from(class.count));
            if homes.is_empty() {
                homeless.push(member);
                continue;
            }
            let most = homes
                .iter()
                .map(|&bin| fit_count(&bins[bin as usize].capacity, &requests[position]))
                .max()
                .unwrap_or(0)
                .min(u64::from(class.count));
            // A ceiling that cannot bind is none; one that can makes the class its own.
            let ceiling = class.max_per_node.filter(|&ceiling| u64::from(ceiling) < most).map(|c| (c, index));
            merged
                .entry((requests[position].clone(), homes, class.priority, ceiling))
                .or_default()
                .push(member);
        }
        let mut classes: Vec<Class> = merged
            .into_iter()
            .map(|((requests, bins, priority, ceiling), members)| Class {
                requests,
                demand: members.iter().map(|(_, count)| count).sum(),
                per_node: ceiling.map_or(u32::MAX, |(ceiling, _)| ceiling),
                priority,
                members,
                bins,
            })
            .collect();
        classes.sort_by_key(|class| class.members[0].0);
        for (index, class) in classes.iter().enumerate() {
            for &bin in &class.bins {
                bins[bin as usize].classes.push(index as u32);
            }
        }
        Self {
            dims: dims.len(),
            classes,
            bins,
            limits: problem.limits.iter().map(|limit| limit.bound).collect(),
            homeless,
        }
    }

    /// Demand of every class.
    pub fn demand(&self) -> Vec<u64> {
        self.classes.iter().map(|class| class.demand).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{candidate, class, problem};

    #[test]
    fn a_candidate_that_is_dearer_and_smaller_is_dropped() {
        let problem = problem(
            vec![class("a", [1000, 1, 0], 1, &[0, 1])],
            vec![candidate("small", 20, [1000, 4, 0]), candidate("large", 10, [2000, 8, 0])],
        );
        let model = Model::new(&problem);
        assert_eq!(model.bins.len(), 1);
        assert_eq!(model.bins[0].origin, Origin::Candidate(1));
    }

    #[test]
    fn of_two_equal_candidates_the_first_is_kept() {
        let problem = problem(
            vec![class("a", [1000, 1, 0], 1, &[0, 1])],
            vec![candidate("one", 10, [2000, 8, 0]), candidate("two", 10, [2000, 8, 0])],
        );
        let model = Model::new(&problem);
        assert_eq!(model.bins.len(), 1);
        assert_eq!(model.bins[0].origin, Origin::Candidate(0));
    }

    #[test]
    fn a_dominating_candidate_with_few_nodes_left_drops_nobody() {
        let mut problem = problem(
            vec![class("a", [1000, 1, 0], 1, &[0, 1])],
            vec![candidate("small", 20, [1000, 4, 0]), candidate("large", 10, [2000, 8, 0])],
        );
        problem.candidates[1].max_nodes = Some(1);
        assert_eq!(Model::new(&problem).bins.len(), 2);
    }

    #[test]
    fn equal_classes_are_merged_unless_a_ceiling_per_node_tells_them_apart() {
        let mut problem = problem(
            vec![class("a", [1000, 1, 0], 3, &[0]), class("b", [1000, 1, 0], 4, &[0])],
            vec![candidate("node", 10, [8000, 64, 0])],
        );
        let model = Model::new(&problem);
        assert_eq!(model.classes.len(), 1);
        assert_eq!(model.classes[0].demand, 7);
        problem.classes[0].max_per_node = Some(1);
        assert_eq!(Model::new(&problem).classes.len(), 2);
    }

    #[test]
    fn a_pod_larger_than_every_node_is_homeless() {
        let problem =
            problem(vec![class("a", [9000, 1, 0], 3, &[0])], vec![candidate("node", 10, [8000, 64, 0])]);
        let model = Model::new(&problem);
        assert_eq!(model.homeless, [(0, 3)]);
        assert!(model.classes.is_empty());
    }
}
