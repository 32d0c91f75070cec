//! The hosts of pods: slots of nodes to buy, and existing nodes. Capacity and conflicts.

use good_lp::{Expression, Variable};
use poolwright_solver::{PodClass, Problem};

use super::program::Program;

/// The kind of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A node to buy: index of the candidate.
    New(usize),
    /// An existing node: its index.
    There(usize),
}

/// A count of pods, and its maximum.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    pub pods: Variable,
    pub most: u64,
}

/// A node that may be used.
pub struct Host {
    pub kind: Kind,
    /// Whether it is bought, or kept; `None` where it always exists.
    pub used: Option<Variable>,
    /// By class: the pods newly placed on it; `None` where there can be none.
    pub counts: Vec<Option<Count>>,
}

impl Host {
    /// Returns one when it can hold pods, otherwise zero.
    pub fn on(&self) -> Expression {
        self.used.map_or_else(|| Expression::from(1.0), Expression::from)
    }

    /// Returns the classes that may be on it.
    pub fn counts(&self) -> impl Iterator<Item = (usize, Count)> {
        self.counts.iter().enumerate().filter_map(|(class, count)| Some((class, (*count)?)))
    }

    /// Returns all its new pods of these classes.
    pub fn pods(&self, classes: &[u32]) -> Expression {
        classes.iter().filter_map(|class| self.counts[*class as usize]).map(|count| count.pods).sum()
    }

    /// Returns its value of a topology.
    pub fn value(&self, problem: &Problem, topology: u32) -> Option<u32> {
        let domains = match self.kind {
            Kind::New(candidate) => &problem.candidates[candidate].domains,
            Kind::There(node) => &problem.existing[node].domains,
        };
        domains.iter().find(|(of, _)| *of == topology).map(|(_, value)| *value)
    }

    /// Returns the number of pods of a class that stay while a removable node is kept.
    pub fn stay(&self, problem: &Problem, class: usize) -> u64 {
        let Kind::There(node) = self.kind else { return 0 };
        let pods = problem.existing[node].removal.iter().flat_map(|removal| &removal.pods);
        pods.filter(|(of, _)| *of as usize == class).map(|(_, count)| u64::from(*count)).sum()
    }
}

pub struct Hosts {
    pub all: Vec<Host>,
    /// By class: the waiting pods that are placed.
    pub placed: Vec<Variable>,
    /// By existing node: whether a removable one is kept.
    pub kept: Vec<Option<Variable>>,
}

impl Hosts {
    pub fn new(problem: &Problem, counts: Option<&[u32]>, program: &mut Program) -> Self {
        let placed = (0..problem.classes.len())
            .map(|class| {
                let most = problem.classes[class].count.into();
                let (least, most) = counts.map_or((0, most), |counts| {
                    let exactly = counts[class].into();
                    (exactly, exactly)
                });
                program.integer(least, most)
            })
            .collect();
        let kept: Vec<Option<Variable>> =
            problem.existing.iter().map(|node| node.removal.is_some().then(|| program.binary())).collect();
        let mut hosts = Self { all: Vec::new(), placed, kept };
        for node in 0..problem.existing.len() {
            hosts.there(problem, node, program);
        }
        for candidate in 0..problem.candidates.len() {
            hosts.slots(problem, candidate, program);
        }
        for host in &hosts.all {
            room(problem, host, program);
            meetings(problem, host, program);
        }
        hosts.everyone(problem, program);
        hosts
    }

    fn there(&mut self, problem: &Problem, node: usize, program: &mut Program) {
        let free = &problem.existing[node].free;
        let mut host = Host { kind: Kind::There(node), used: self.kept[node], counts: Vec::new() };
        for (class, wanted) in problem.classes.iter().enumerate() {
            let mut most = 0;
            if wanted.existing.contains(&(node as u32)) {
                most = together(wanted).saturating_sub(host.stay(problem, class)).min(fit(wanted, free));
                most = most.min(everywhere(problem, class));
            }
            host.counts.push((most > 0).then(|| Count { pods: program.integer(0, most), most }));
        }
        self.all.push(host);
    }

    /// Adds as many slots as there are pods for them. Each holds at least as many pods as the next, since otherwise every
    /// plan would have factorially many equivalent forms.
    fn slots(&mut self, problem: &Problem, candidate: usize, program: &mut Program) {
        let offered = &problem.candidates[candidate];
        let users: Vec<u64> = (0..problem.classes.len())
            .map(|class| {
                let may = problem.classes[class].candidates.contains(&(candidate as u32));
                if may { everywhere(problem, class) } else { 0 }
            })
            .collect();
        let all: u64 = users.iter().sum();
        let mut slots = offered.max_nodes.map_or(all, |most| all.min(most.into()));
        for (limit, amount) in &offered.limit_use {
            if let Some(most) = problem.limits[*limit as usize].bound.checked_div(*amount) {
                slots = slots.min(most);
            }
        }
        let mut before: Option<Expression> = None;
        for slot in 0..slots {
            let bought = program.binary();
            let mut host = Host { kind: Kind::New(candidate), used: Some(bought), counts: Vec::new() };
            for (class, wanted) in problem.classes.iter().enumerate() {
                let most = users[class]
                    .min(all / (slot + 1))
                    .min(together(wanted))
                    .min(fit(wanted, &offered.capacity));
                host.counts.push((most > 0).then(|| Count { pods: program.integer(0, most), most }));
            }
            let pods: Expression = host.counts().map(|(_, count)| count.pods).sum();
            program.row((pods.clone() - bought).geq(0));
            if let Some(before) = before {
                program.row((before - pods.clone()).geq(0));
            }
            before = Some(pods);
            self.all.push(host);
        }
    }

    /// Requires that every pod that is placed or must move is on a host.
    fn everyone(&self, problem: &Problem, program: &mut Program) {
        for (class, placed) in self.placed.iter().enumerate() {
            let mut missing = Expression::from(*placed);
            for (node, kept) in problem.existing.iter().zip(&self.kept) {
                let (Some(removal), Some(kept)) = (&node.removal, kept) else { continue };
                for (_, count) in removal.pods.iter().filter(|(of, _)| *of as usize == class) {
                    missing += f64::from(*count);
                    missing.add_mul(-f64::from(*count), *kept);
                }
            }
            let there = self.all.iter().filter_map(|host| host.counts[class]);
            program.row((missing - there.map(|count| count.pods).sum::<Expression>()).eq(0));
        }
        let budget = &problem.disruption;
        let (mut nodes, mut evictions) = (Expression::default(), Expression::default());
        for (node, kept) in problem.existing.iter().zip(&self.kept) {
            let (Some(removal), Some(kept)) = (&node.removal, kept) else { continue };
            let removed = 1.0 - *kept;
            nodes += removed.clone();
            evictions.add_mul(removal.pods.iter().map(|(_, count)| f64::from(*count)).sum::<f64>(), removed);
        }
        if let Some(most) = budget.nodes {
            program.row(nodes.leq(most));
        }
        if let Some(most) = budget.evictions {
            program.row(evictions.leq(most));
        }
    }
}

/// Returns the maximum number of pods of a class.
fn everywhere(problem: &Problem, class: usize) -> u64 {
    let removals = problem.existing.iter().filter_map(|node| node.removal.as_ref());
    let run = removals.flat_map(|removal| &removal.pods).filter(|(of, _)| *of as usize == class);
    u64::from(problem.classes[class].count) + run.map(|(_, count)| u64::from(*count)).sum::<u64>()
}

/// Returns how many pods of a class fit.
fn fit(class: &PodClass, capacity: &[u64]) -> u64 {
    let each = class.requests.iter().zip(capacity);
    each.filter_map(|(request, capacity)| capacity.checked_div(*request)).min().unwrap_or(u64::MAX)
}

/// Returns how many pods of a class may be on one node.
fn together(class: &PodClass) -> u64 {
    let most = class.max_per_node.map_or(u64::MAX, u64::from);
    if class.ports.is_empty() { most } else { most.min(1) }
}

/// Requires that all pods fit, and that unused hosts have none.
fn room(problem: &Problem, host: &Host, program: &mut Program) {
    let capacity = match host.kind {
        Kind::New(candidate) => &problem.candidates[candidate].capacity,
        Kind::There(node) => &problem.existing[node].free,
    };
    for (resource, capacity) in capacity.iter().enumerate() {
        let mut used = Expression::default();
        for (class, count) in host.counts() {
            used.add_mul(problem.classes[class].requests[resource] as f64, count.pods);
        }
        program.row((used - *capacity as f64 * host.on()).leq(0));
    }
    for (_, count) in host.counts().filter(|_| host.used.is_some()) {
        program.row((count.pods - count.most as f64 * host.on()).leq(0));
    }
}

/// Adds conflicts and ports between classes, including pods that stay on a removable node.
fn meetings(problem: &Problem, host: &Host, program: &mut Program) {
    let mut present: Vec<Option<Variable>> = vec![None; problem.classes.len()];
    let mut presence = |class: usize, count: Count, program: &mut Program| {
        *present[class].get_or_insert_with(|| {
            let here = program.binary();
            program.row((count.pods - count.most as f64 * here).leq(0));
            here
        })
    };
    for (class, count) in host.counts() {
        for other in (0..problem.classes.len()).filter(|other| *other != class) {
            let (low, high) = (class.min(other), class.max(other));
            let ports = &problem.classes[other].ports;
            if !problem.conflicts.contains(&(low as u32, high as u32))
                && !problem.classes[class].ports.iter().any(|port| ports.contains(port))
            {
                continue;
            }
            if host.stay(problem, other) > 0 {
                program.row(Expression::from(count.pods).leq(0));
            }
            if let Some(met) = host.counts[other].filter(|_| class < other) {
                let both = presence(class, count, program) + presence(other, met, program);
                program.row(both.leq(1));
            }
        }
    }
}
