//! Where pods can be: slots of nodes to buy, and nodes that are there. Room, and who may meet whom.

use good_lp::{Expression, Variable};
use poolwright_solver::{PodClass, Problem};

use super::program::Program;

/// Which node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To buy: index of the candidate.
    New(usize),
    /// There: index of the existing node.
    There(usize),
}

/// A count of pods, and the most it can be.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    pub pods: Variable,
    pub most: u64,
}

/// A node that may be used.
pub struct Host {
    pub kind: Kind,
    /// Whether it is bought, or kept; `None` where it is there in any case.
    pub used: Option<Variable>,
    /// By class: pods newly placed on it; `None` where there can be none.
    pub counts: Vec<Option<Count>>,
}

impl Host {
    /// One when it can hold pods, else zero.
    pub fn on(&self) -> Expression {
        self.used.map_or_else(|| Expression::from(1.0), Expression::from)
    }

    /// Classes that may be there.
    pub fn counts(&self) -> impl Iterator<Item = (usize, Count)> {
        self.counts.iter().enumerate().filter_map(|(class, count)| Some((class, (*count)?)))
    }

    /// All its new pods of these classes.
    pub fn pods(&self, classes: &[u32]) -> Expression {
        classes.iter().filter_map(|class| self.counts[*class as usize]).map(|count| count.pods).sum()
    }

    /// Its value of a topology.
    pub fn value(&self, problem: &Problem, topology: u32) -> Option<u32> {
        let domains = match self.kind {
            Kind::New(candidate) => &problem.candidates[candidate].domains,
            Kind::There(node) => &problem.existing[node].domains,
        };
        domains.iter().find(|(of, _)| *of == topology).map(|(_, value)| *value)
    }

    /// Pods of a class that are there as long as a removable node is kept.
    pub fn stay(&self, problem: &Problem, class: usize) -> u64 {
        let Kind::There(node) = self.kind else { return 0 };
        let pods = problem.existing[node].removal.iter().flat_map(|removal| &removal.pods);
        pods.filter(|(of, _)| *of as usize == class).map(|(_, count)| u64::from(*count)).sum()
    }
}

pub struct Hosts {
    pub all: Vec<Host>,
    /// By class: waiting pods that are placed.
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

    /// As many slots as there are pods for them; each holds as many pods as the next, or more: else there are factorially
    /// many ways to say one thing.
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

    /// Every pod that is placed or has to move is somewhere.
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

/// How many pods of a class there can be at most.
fn everywhere(problem: &Problem, class: usize) -> u64 {
    let removals = problem.existing.iter().filter_map(|node| node.removal.as_ref());
    let run = removals.flat_map(|removal| &removal.pods).filter(|(of, _)| *of as usize == class);
    u64::from(problem.classes[class].count) + run.map(|(_, count)| u64::from(*count)).sum::<u64>()
}

/// How many pods of a class fit.
fn fit(class: &PodClass, capacity: &[u64]) -> u64 {
    let each = class.requests.iter().zip(capacity);
    each.filter_map(|(request, capacity)| capacity.checked_div(*request)).min().unwrap_or(u64::MAX)
}

/// How many pods of a class may be on one node.
fn together(class: &PodClass) -> u64 {
    let most = class.max_per_node.map_or(u64::MAX, u64::from);
    if class.ports.is_empty() { most } else { most.min(1) }
}

/// All pods fit, and there are none where there is no node.
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

/// Conflicts and ports between classes; what stays on a removable node is met too.
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
