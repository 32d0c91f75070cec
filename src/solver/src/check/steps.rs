//! Rule: the steps lead from the current cluster to the plan. Nodes launch before pods move to them. Pods move from
//! removed nodes only. No node ever holds pods that the plan does not have there, so the steps break no rule about single
//! nodes that the plan keeps. Nodes are removed when they are empty. Each step saves the stated amount.

use std::collections::BTreeMap;

use super::cost::usd;
use super::step_fault::StepFault;
use super::view::NodeRef;
use super::view::count_of;
use super::violation::Violation;
use super::{availability, commitments};
use crate::problem::Problem;
use crate::solution::{MoveTarget, Solution, Step};

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    let (removed, steps) = (solution.removed.len(), solution.steps.len());
    if (removed == 0) != (steps == 0) {
        violations.push(Violation::Step(StepFault::Uncalled { removed, steps }));
    }
    if steps == 0 {
        return;
    }
    let mut way = Way::new(problem, solution);
    for (index, step) in solution.steps.iter().enumerate() {
        way.take(index + 1, step);
    }
    for index in &solution.removed {
        let times = way.gone[*index as usize];
        if times != 1 {
            way.faults.push(StepFault::Times { node: problem.existing[*index as usize].name.clone(), times });
        }
    }
    violations.extend(way.faults.into_iter().map(Violation::Step));
}

/// The state after some steps.
struct Way<'a> {
    problem: &'a Problem,
    solution: &'a Solution,
    /// By group of new nodes.
    launched: Vec<u64>,
    /// The pods still on removed nodes, by node and class.
    there: BTreeMap<(u32, u32), u64>,
    /// The pods that arrived, by target and class.
    come: BTreeMap<(MoveTarget, u32), u64>,
    /// The number of times that each existing node was removed.
    gone: Vec<u32>,
    /// The bought nodes that run, by candidate.
    bought: Vec<u64>,
    /// The cost of the bought nodes that run.
    paid: u128,
    faults: Vec<StepFault>,
}

impl<'a> Way<'a> {
    fn new(problem: &'a Problem, solution: &'a Solution) -> Self {
        let there = solution
            .removed
            .iter()
            .flat_map(|node| {
                let removal = problem.existing[*node as usize].removal.iter();
                removal
                    .flat_map(|removal| &removal.pods)
                    .map(|(class, count)| ((*node, *class), u64::from(*count)))
            })
            .collect();
        // Nodes that no step launches run from the start.
        let mut bought = availability::bought(problem, solution);
        for (group, count) in solution.steps.iter().flat_map(|step| &step.launch) {
            let of = &mut bought[solution.new_nodes[*group as usize].candidate as usize];
            *of = of.saturating_sub(u64::from(*count));
        }
        let (paid, _) = commitments::paid(problem, &bought);
        Self {
            problem,
            solution,
            launched: vec![0; solution.new_nodes.len()],
            there,
            come: BTreeMap::new(),
            gone: vec![0; problem.existing.len()],
            bought,
            paid,
            faults: Vec::new(),
        }
    }

    fn group(&self, group: u32) -> NodeRef {
        let candidate = self.solution.new_nodes[group as usize].candidate;
        NodeRef::New {
            candidate: self.problem.candidates[candidate as usize].name.clone(),
            group: group as usize,
        }
    }

    fn take(&mut self, step: usize, taken: &Step) {
        let before = self.paid;
        self.launch(step, taken);
        self.move_pods(step, taken);
        let gone = self.remove(step, taken);
        let saved = (before + gone).checked_sub(self.paid).filter(|saved| *saved > 0).map(usd);
        if saved != taken.saving {
            self.faults.push(StepFault::Saving { step, said: taken.saving, saved });
        }
    }

    fn launch(&mut self, step: usize, taken: &Step) {
        for (group, count) in &taken.launch {
            let nodes = &self.solution.new_nodes[*group as usize];
            self.launched[*group as usize] += u64::from(*count);
            self.bought[nodes.candidate as usize] += u64::from(*count);
            let launched = self.launched[*group as usize];
            if launched > u64::from(nodes.count) {
                let node = self.group(*group);
                self.faults.push(StepFault::Launched { step, node, launched, bought: nodes.count });
            }
            if self.problem.commitments.is_empty() {
                let price = self.problem.candidates[nodes.candidate as usize].price.micros();
                self.paid += u128::from(price) * u128::from(*count);
            }
        }
        if !self.problem.commitments.is_empty() && !taken.launch.is_empty() {
            (self.paid, _) = commitments::paid(self.problem, &self.bought);
        }
    }

    fn move_pods(&mut self, step: usize, taken: &Step) {
        let mut moved = 0;
        for pods in &taken.moves {
            let count = u64::from(pods.count);
            moved += count;
            let class = || self.problem.classes[pods.class as usize].name.clone();
            let name = |node: u32| self.problem.existing[node as usize].name.clone();
            if self.solution.removed.binary_search(&pods.from).is_err() {
                self.faults.push(StepFault::Keeps { step, node: name(pods.from) });
            } else {
                let there = self.there.entry((pods.from, pods.class)).or_default();
                if *there < count {
                    let fault = StepFault::NotThere { step, node: name(pods.from), class: class() };
                    self.faults.push(fault);
                }
                *there = there.saturating_sub(count);
            }
            let come = self.come.entry((pods.to, pods.class)).or_default();
            *come += count;
            let come = *come;
            let (node, planned) = match pods.to {
                MoveTarget::Existing(node) => {
                    if self.solution.removed.binary_search(&node).is_ok() {
                        self.faults.push(StepFault::ToRemoved { step, node: name(node) });
                    }
                    let used = &self.solution.on_existing;
                    let planned = used
                        .binary_search_by_key(&node, |used| used.node)
                        .map_or(0, |at| count_of(&used[at].pods, pods.class));
                    (NodeRef::Existing(name(node)), planned)
                }
                MoveTarget::New(group, number) => {
                    if u64::from(number) >= self.launched[group as usize] {
                        let node = self.group(group);
                        self.faults.push(StepFault::NotLaunched { step, node, number });
                    }
                    let planned = count_of(&self.solution.new_nodes[group as usize].pods, pods.class);
                    (self.group(group), planned)
                }
            };
            if come > u64::from(planned) {
                let class = self.problem.classes[pods.class as usize].name.clone();
                self.faults.push(StepFault::NotPlanned { step, node, class, moved: come, planned });
            }
        }
        if moved != u64::from(taken.evictions) {
            self.faults.push(StepFault::Evictions { step, said: taken.evictions, moved });
        }
    }

    /// Removes nodes, and returns their price.
    fn remove(&mut self, step: usize, taken: &Step) -> u128 {
        let mut saved = 0;
        for node in &taken.remove {
            let existing = &self.problem.existing[*node as usize];
            let name = || existing.name.clone();
            if self.solution.removed.binary_search(node).is_err() {
                self.faults.push(StepFault::Keeps { step, node: name() });
                continue;
            }
            self.gone[*node as usize] += 1;
            let left = self.there.range((*node, 0)..=(*node, u32::MAX)).map(|(_, count)| *count).sum();
            if left > 0 {
                self.faults.push(StepFault::NotEmpty { step, node: name(), left });
            }
            saved += existing.removal.as_ref().map_or(0, |removal| u128::from(removal.price.micros()));
        }
        saved
    }
}
