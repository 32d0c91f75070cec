//! Rule: indices exist, lists ascend strictly and have the right length, and no entry is empty.

use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::{GpuLayout, MoveTarget, Placement, Solution, Step, UnplacedReason};

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    for (position, group) in solution.new_nodes.iter().enumerate() {
        let mut entry = Entry { list: "newNodes", position, violations };
        entry.index("candidate", group.candidate, problem.candidates.len());
        entry.filled(group.count != 0);
        if position > 0 {
            let before = &solution.new_nodes[position - 1];
            entry.ordered((before.candidate, &before.pods) < (group.candidate, &group.pods));
        }
        entry.pods(problem, &group.pods);
        entry.layouts(problem, &group.gpus);
    }
    for (position, used) in solution.on_existing.iter().enumerate() {
        let mut entry = Entry { list: "onExisting", position, violations };
        entry.index("existing node", used.node, problem.existing.len());
        entry.ordered(position == 0 || solution.on_existing[position - 1].node < used.node);
        entry.pods(problem, &used.pods);
        entry.layouts(problem, &used.gpus);
    }
    for (position, left) in solution.unplaced.iter().enumerate() {
        let mut entry = Entry { list: "unplaced", position, violations };
        entry.filled(left.count != 0);
        entry.ordered(position == 0 || solution.unplaced[position - 1] < *left);
        if entry.index("class", left.class, problem.classes.len()) {
            entry.reason(problem, left.class, left.reason);
        }
    }
    for (position, node) in solution.removed.iter().enumerate() {
        let mut entry = Entry { list: "removed", position, violations };
        entry.index("existing node", *node, problem.existing.len());
        entry.ordered(position == 0 || solution.removed[position - 1] < *node);
    }
    for (position, step) in solution.steps.iter().enumerate() {
        Entry { list: "steps", position, violations }.step(problem, solution, step);
    }
    let mut length = |list: &'static str, got: usize, want: usize| {
        if got != want {
            violations.push(Violation::WrongLength { list, got, want });
        }
    };
    length("commitmentUse", solution.commitment_use.len(), problem.commitments.len());
    if let Some(prices) = &solution.prices {
        length("prices.classes", prices.classes.len(), problem.classes.len());
        length("prices.limits", prices.limits.len(), problem.limits.len());
        length("prices.candidates", prices.candidates.len(), problem.candidates.len());
    }
}

/// One entry of a list of the plan.
struct Entry<'a> {
    list: &'static str,
    position: usize,
    violations: &'a mut Vec<Violation>,
}

impl Entry<'_> {
    fn index(&mut self, what: &'static str, index: u32, size: usize) -> bool {
        let exists = (index as usize) < size;
        if !exists {
            let (list, position) = (self.list, self.position);
            self.violations.push(Violation::UnknownIndex { list, position, what, index });
        }
        exists
    }

    fn ordered(&mut self, ordered: bool) {
        if !ordered {
            self.violations.push(Violation::OutOfOrder { list: self.list, position: self.position });
        }
    }

    fn filled(&mut self, filled: bool) {
        if !filled {
            self.violations.push(Violation::Empty { list: self.list, position: self.position });
        }
    }

    fn pods(&mut self, problem: &Problem, pods: &[Placement]) {
        self.filled(!pods.is_empty() && pods.iter().all(|(_, count)| *count != 0));
        self.ordered(pods.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (class, _) in pods {
            self.index("class", *class, problem.classes.len());
        }
    }

    fn layouts(&mut self, problem: &Problem, layouts: &[GpuLayout]) {
        for layout in layouts {
            match layout {
                GpuLayout::Idle => {}
                GpuLayout::Whole(class) => {
                    self.index("class", *class, problem.classes.len());
                }
                GpuLayout::Shared(pods) => self.pods(problem, pods),
                GpuLayout::Mig(instances) => {
                    self.filled(!instances.is_empty());
                    self.ordered(instances.windows(2).all(|pair| pair[0].start < pair[1].start));
                    for instance in instances {
                        self.index("class", instance.class, problem.classes.len());
                    }
                }
            }
        }
    }

    fn reason(&mut self, problem: &Problem, class: u32, reason: UnplacedReason) {
        let (what, index, size) = match reason {
            UnplacedReason::NothingFits | UnplacedReason::NoMoreAvailable | UnplacedReason::NoLayout => {
                return;
            }
            UnplacedReason::LimitReached(limit) => ("limit", limit, problem.limits.len()),
            UnplacedReason::GangIncomplete(gang) => ("gang", gang, problem.gangs.len()),
            UnplacedReason::Unspreadable(spread) => ("spread", spread, problem.spreads.len()),
            UnplacedReason::Inflexible(rule) => ("flexibility", rule, problem.flexibility.len()),
            UnplacedReason::ShareReached(share) => ("node share", share, problem.node_shares.len()),
        };
        if !self.index(what, index, size) {
            return;
        }
        let at = index as usize;
        let (classes, name) = match reason {
            UnplacedReason::GangIncomplete(_) => (&problem.gangs[at].classes, &problem.gangs[at].name),
            UnplacedReason::Unspreadable(_) => (&problem.spreads[at].classes, &problem.spreads[at].name),
            _ => return,
        };
        if classes.binary_search(&class).is_err() {
            let class = problem.classes[class as usize].name.clone();
            self.violations.push(Violation::WrongReason { class, group: name.clone() });
        }
    }

    fn step(&mut self, problem: &Problem, solution: &Solution, step: &Step) {
        self.filled(!(step.launch.is_empty() && step.moves.is_empty() && step.remove.is_empty()));
        self.filled(step.launch.iter().all(|(_, count)| *count != 0));
        self.filled(step.moves.iter().all(|pods| pods.count != 0));
        self.ordered(step.launch.windows(2).all(|pair| pair[0].0 < pair[1].0));
        self.ordered(step.moves.windows(2).all(|pair| pair[0] < pair[1]));
        self.ordered(step.remove.windows(2).all(|pair| pair[0] < pair[1]));
        for (group, _) in &step.launch {
            self.index("group of new nodes", *group, solution.new_nodes.len());
        }
        for node in &step.remove {
            self.index("existing node", *node, problem.existing.len());
        }
        for pods in &step.moves {
            self.index("existing node", pods.from, problem.existing.len());
            self.index("class", pods.class, problem.classes.len());
            match pods.to {
                MoveTarget::Existing(node) => {
                    self.index("existing node", node, problem.existing.len());
                }
                MoveTarget::New(group, number) => {
                    if self.index("group of new nodes", group, solution.new_nodes.len()) {
                        let count = solution.new_nodes[group as usize].count;
                        self.index("new node", number, count as usize);
                    }
                }
            }
        }
    }
}
