//! The existing nodes, as consolidation sees them: the pods of each, whether it may be removed, and which pods may join
//! which node.

use crate::canonical::Conflicts;
use crate::problem::Problem;

/// An existing node.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Whether all of its pods may move.
    pub movable: bool,
    /// Its price while it stays, in micro-dollars; zero for nodes that are not removable.
    pub price: u64,
    /// The cost of removing it, including its pods' moves, in micro-dollars.
    pub drain: u64,
    /// The number of its pods that would move.
    pub evictions: u64,
    /// The pods that run on it, by class, ascending. Unknown, and therefore empty, if it is not removable.
    pub pods: Vec<(u32, u32)>,
}

/// The problem with derived data.
#[derive(Debug)]
pub(super) struct Cluster<'a> {
    /// The given problem.
    pub problem: &'a Problem,
    /// By index of the problem's existing nodes.
    pub nodes: Vec<Node>,
    /// By class: the maximum number of pods on one node.
    pub ceiling: Vec<u32>,
    conflicts: Conflicts,
    /// By class: whether only requests, ceilings and conflicts decide where it fits.
    pub plain: Vec<bool>,
}

impl<'a> Cluster<'a> {
    /// Derives the data from `problem`, which must be valid.
    pub fn new(problem: &'a Problem) -> Self {
        let classes = problem.classes.len();
        let ceiling = problem.classes.iter().map(|class| {
            let most = class.max_per_node.unwrap_or(u32::MAX);
            if class.ports.is_empty() { most } else { most.min(1) }
        });
        let ceiling = ceiling.collect();
        // The domain of a spread's pods matters to the others of the spread, so they stay where they are. So do pods of a
        // gang that has waiting pods: the placement of those must not move running ones.
        let mut bound = vec![false; classes];
        let mut grouped = vec![false; classes];
        for spread in &problem.spreads {
            spread.classes.iter().for_each(|class| bound[*class as usize] = true);
        }
        for gang in &problem.gangs {
            let waits = gang.classes.iter().any(|class| problem.classes[*class as usize].count > 0);
            for &class in &gang.classes {
                bound[class as usize] |= gang.within.is_some() || waits;
                grouped[class as usize] = true;
            }
        }
        let nodes = problem
            .existing
            .iter()
            .map(|node| {
                let Some(removal) = &node.removal else { return Node::default() };
                let moved = removal.pods.iter().map(|(class, count)| {
                    problem.classes[*class as usize].disruption.micros().saturating_mul(u64::from(*count))
                });
                Node {
                    movable: !removal.pods.iter().any(|(class, _)| bound[*class as usize]),
                    price: removal.price.micros(),
                    drain: moved.fold(removal.disruption.micros(), u64::saturating_add),
                    evictions: removal.pods.iter().map(|(_, count)| u64::from(*count)).sum(),
                    pods: removal.pods.clone(),
                }
            })
            .collect();
        let plain = (0..classes)
            .map(|class| problem.classes[class].gpu.is_none() && !bound[class] && !grouped[class])
            .collect();
        Self { problem, nodes, ceiling, conflicts: Conflicts::of_all(problem), plain }
    }

    /// Returns whether no pod of another class among `pods` keeps `class` away.
    pub fn meets<'p>(&self, class: u32, mut pods: impl Iterator<Item = &'p (u32, u32)>) -> bool {
        let enemies = self.conflicts.of(class as usize);
        enemies.is_empty() || pods.all(|(other, _)| *other == class || enemies.binary_search(other).is_err())
    }

    /// Returns the number of waiting pods of `class`.
    pub fn waiting(&self, class: usize) -> u64 {
        u64::from(self.problem.classes[class].count)
    }

    /// Returns the pods to place when the nodes in `drained` are removed, by class.
    pub fn homeless(&self, drained: &[u32]) -> Vec<u64> {
        let mut pods: Vec<u64> = (0..self.problem.classes.len()).map(|class| self.waiting(class)).collect();
        for &node in drained {
            for (class, count) in &self.nodes[node as usize].pods {
                pods[*class as usize] += u64::from(*count);
            }
        }
        pods
    }

    /// Returns the number of pods moved when the nodes in `drained` are removed.
    pub fn evictions(&self, drained: &[u32]) -> u64 {
        drained.iter().map(|node| self.nodes[*node as usize].evictions).sum()
    }

    /// Returns whether the disruption budget allows the removal of the nodes in `drained`.
    pub fn allows(&self, drained: &[u32]) -> bool {
        let budget = &self.problem.disruption;
        budget.evictions.is_none_or(|most| self.evictions(drained) <= u64::from(most))
            && budget.nodes.is_none_or(|most| drained.len() as u64 <= u64::from(most))
    }
}
