//! A reference implementation of the rules and costs that tries every assignment of pods to nodes. It is written from the
//! problem's documentation and shares no code with the solver. For a handful of pods.

use poolwright_catalog::MigProfile;
use poolwright_solver::problem::{GPU_UNITS, GpuMode, GpuRequest, GpuState, risk};
use poolwright_solver::{Problem, Solution};

/// A GPU while it fills up.
#[derive(Clone, Debug)]
enum Gpu {
    Full,
    Shared { units: u32, memory: u64, empty: bool },
    Cut { geometry: poolwright_catalog::MigGeometry, mixed: bool, taken: u32, counts: [u8; 6] },
}

fn slot(profile: MigProfile) -> usize {
    MigProfile::ALL.iter().position(|other| *other == profile).expect("every profile is in the list")
}

fn empty_gpus(problem: &Problem, candidate: u32) -> Vec<Gpu> {
    let Some(gpus) = &problem.candidates[candidate as usize].gpus else { return Vec::new() };
    let one = match gpus.mode {
        GpuMode::Shared => Gpu::Shared { units: GPU_UNITS, memory: gpus.memory_mib, empty: true },
        GpuMode::Mig { geometry, mixed } => Gpu::Cut { geometry, mixed, taken: 0, counts: [0; 6] },
    };
    vec![one; gpus.count as usize]
}

fn gpus_there(problem: &Problem, node: u32) -> Vec<Gpu> {
    problem.existing[node as usize]
        .gpus
        .iter()
        .map(|state| match state {
            GpuState::Busy => Gpu::Full,
            GpuState::Shared { units_used, memory_used_mib, memory_mib } => Gpu::Shared {
                units: GPU_UNITS - units_used,
                memory: memory_mib - memory_used_mib,
                empty: *units_used == 0 && *memory_used_mib == 0,
            },
            GpuState::Mig { geometry, mixed, in_use } => {
                let mut counts = [0; 6];
                let mut taken = 0;
                for (profile, start) in in_use {
                    let size = geometry.placements(*profile).expect("validated").size;
                    taken |= ((1 << size) - 1) << start;
                    counts[slot(*profile)] += 1;
                }
                Gpu::Cut { geometry: *geometry, mixed: *mixed, taken, counts }
            }
        })
        .collect()
}

/// One GPU's part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Whole,
    Instance(MigProfile),
    Share(u32, u64),
}

/// Returns whether all these pieces fit at once.
fn packs(gpus: &mut [Gpu], pieces: &[Piece]) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return true };
    for at in 0..gpus.len() {
        let before = gpus[at].clone();
        match (*piece, &before) {
            (Piece::Whole, Gpu::Shared { empty: true, .. } | Gpu::Cut { mixed: true, taken: 0, .. }) => {
                gpus[at] = Gpu::Full;
                if packs(gpus, rest) {
                    return true;
                }
            }
            (Piece::Share(wanted, mib), Gpu::Shared { units, memory, .. })
                if wanted <= *units && mib <= *memory =>
            {
                gpus[at] = Gpu::Shared { units: units - wanted, memory: memory - mib, empty: false };
                if packs(gpus, rest) {
                    return true;
                }
            }
            (Piece::Instance(profile), Gpu::Cut { geometry, mixed, taken, counts }) => {
                let Some(placements) = geometry.placements(profile) else { continue };
                let mut counts = *counts;
                counts[slot(profile)] += 1;
                if counts[slot(profile)] > placements.most {
                    continue;
                }
                for start in placements.starts {
                    let mask: u32 = ((1 << placements.size) - 1) << start;
                    if taken & mask == 0 {
                        gpus[at] =
                            Gpu::Cut { geometry: *geometry, mixed: *mixed, taken: taken | mask, counts };
                        if packs(gpus, rest) {
                            return true;
                        }
                    }
                }
            }
            _ => {}
        }
        gpus[at] = before;
    }
    false
}

/// A node with the newly placed pods on it.
#[derive(Clone, Debug)]
struct Node {
    /// `Ok` for a candidate, `Err` for an existing node.
    kind: Result<u32, u32>,
    /// By class.
    pods: Vec<u32>,
    /// By class: the pods that stay on a removable node.
    stay: Vec<u32>,
}

/// The exhaustive search.
struct Search<'a> {
    problem: &'a Problem,
    /// The class indices, equal ones together.
    pods: Vec<u32>,
    nodes: Vec<Node>,
    /// The part of the objective that does not depend on the placement.
    base: u64,
    best: Option<u64>,
}

impl Search<'_> {
    /// Returns whether all pods of the node fit on a candidate.
    fn fits_candidate(&self, pods: &[u32], candidate: u32) -> bool {
        let offered = &self.problem.candidates[candidate as usize];
        let may = (0..pods.len())
            .all(|class| pods[class] == 0 || self.problem.classes[class].candidates.contains(&candidate));
        may && self.room(pods, &offered.capacity) && self.pack(pods, empty_gpus(self.problem, candidate))
    }

    fn room(&self, pods: &[u32], capacity: &[u64]) -> bool {
        capacity.iter().enumerate().all(|(resource, capacity)| {
            let used: u128 = pods
                .iter()
                .zip(&self.problem.classes)
                .map(|(count, class)| u128::from(*count) * u128::from(class.requests[resource]))
                .sum();
            used <= u128::from(*capacity)
        })
    }

    fn pack(&self, pods: &[u32], mut gpus: Vec<Gpu>) -> bool {
        let mut pieces = Vec::new();
        for (count, class) in pods.iter().zip(&self.problem.classes) {
            for _ in 0..*count {
                match class.gpu {
                    None => {}
                    Some(GpuRequest::Whole(count)) => {
                        pieces.extend((0..count).map(|_| Piece::Whole));
                    }
                    Some(GpuRequest::Share { units, memory_mib }) => {
                        pieces.push(Piece::Share(units, memory_mib));
                    }
                    Some(GpuRequest::Mig { profile, count }) => {
                        pieces.extend((0..count).map(|_| Piece::Instance(profile)));
                    }
                }
            }
        }
        pieces.sort_unstable();
        packs(&mut gpus, &pieces)
    }

    /// Returns whether the pods on the node may be there together, as far as more pods cannot repair it.
    fn possible(&self, node: &Node) -> bool {
        let classes = &self.problem.classes;
        let here = |class: usize| node.pods[class] + node.stay[class];
        for (class, wanted) in classes.iter().enumerate().filter(|(class, _)| node.pods[*class] > 0) {
            if wanted.max_per_node.is_some_and(|most| here(class) > most) {
                return false;
            }
            if !wanted.ports.is_empty() && here(class) > 1 {
                return false;
            }
            for (other, met) in classes.iter().enumerate() {
                let (low, high) = (class.min(other) as u32, class.max(other) as u32);
                let ports = class != other && wanted.ports.iter().any(|port| met.ports.contains(port));
                if here(other) > 0 && (ports || self.problem.conflicts.contains(&(low, high))) {
                    return false;
                }
            }
        }
        match node.kind {
            Ok(candidate) => {
                self.fits_candidate(&node.pods, candidate)
                    && self
                        .problem
                        .flexibility
                        .iter()
                        .filter(|rule| rule.candidates.contains(&candidate))
                        .all(|rule| {
                            let mut values: Vec<u32> = rule
                                .candidates
                                .iter()
                                .filter(|other| {
                                    self.problem.candidates[**other as usize].max_nodes != Some(0)
                                        && self.fits_candidate(&node.pods, **other)
                                })
                                .filter_map(|other| {
                                    value(&self.problem.candidates[*other as usize].domains, rule.topology)
                                })
                                .collect();
                            values.sort_unstable();
                            values.dedup();
                            values.len() >= rule.at_least as usize
                        })
            }
            Err(existing) => {
                let there = &self.problem.existing[existing as usize];
                let may = (0..classes.len())
                    .all(|class| node.pods[class] == 0 || classes[class].existing.contains(&existing));
                may && self.room(&node.pods, &there.free)
                    && self.pack(&node.pods, gpus_there(self.problem, existing))
            }
        }
    }

    fn domain(&self, node: &Node, topology: u32) -> Option<u32> {
        match node.kind {
            Ok(candidate) => value(&self.problem.candidates[candidate as usize].domains, topology),
            Err(existing) => value(&self.problem.existing[existing as usize].domains, topology),
        }
    }

    fn bought(&self) -> Vec<u64> {
        let mut counts = vec![0; self.problem.candidates.len()];
        for candidate in self.nodes.iter().filter_map(|node| node.kind.ok()) {
            counts[candidate as usize] += 1;
        }
        counts
    }

    /// Returns the objective of the nodes and their pods. It never falls when something is added, except by the rounding
    /// of commitments.
    fn cost(&self) -> u64 {
        let bought = self.bought();
        let mut cost = self.base + paid(self.problem, &bought).0;
        for node in &self.nodes {
            let Ok(candidate) = node.kind else { continue };
            let offered = &self.problem.candidates[candidate as usize];
            for (count, class) in node.pods.iter().zip(&self.problem.classes) {
                let disliked = class.preferences.iter().find(|(disliked, _)| *disliked == candidate);
                let each = risk(class.loss_on(candidate), offered.interruptions).micros()
                    + disliked.map_or(0, |(_, cost)| cost.micros());
                cost += u64::from(*count) * each;
            }
        }
        cost
    }

    /// Checks the rules that only a complete plan can satisfy.
    fn complete(&self) -> bool {
        let bought = self.bought();
        let sum = |of: &[u32]| of.iter().map(|candidate| bought[*candidate as usize]).sum::<u64>();
        self.problem.node_shares.iter().all(|share| {
            let permille = u64::from(share.at_most_permille);
            let rounding = if share.round_up { 999 } else { 0 };
            let before = u64::from(share.running_of) * permille + rounding;
            let spare = before.saturating_sub(u64::from(share.running_part) * 1000);
            sum(&share.part) * 1000 <= sum(&share.of) * permille + spare
        }) && self.spread()
            && self.together()
    }

    fn spread(&self) -> bool {
        self.problem.spreads.iter().all(|spread| {
            let mut counts = spread.running.clone();
            let mut given = vec![false; counts.len()];
            for node in &self.nodes {
                let sum =
                    |pods: &[u32]| spread.classes.iter().map(|class| pods[*class as usize]).sum::<u32>();
                let at = self
                    .domain(node, spread.topology)
                    .and_then(|met| spread.values.iter().position(|value| *value == met));
                match at {
                    Some(at) => {
                        counts[at] += sum(&node.pods) + sum(&node.stay);
                        given[at] |= sum(&node.pods) > 0;
                    }
                    None if sum(&node.pods) > 0 => return false,
                    None => {}
                }
            }
            let few = spread.min_domains.is_some_and(|least| spread.values.len() < least as usize);
            let least = if few { 0 } else { counts.iter().copied().min().unwrap_or(0) };
            counts.iter().zip(given).all(|(count, given)| !given || count - least <= spread.max_skew)
        })
    }

    fn together(&self) -> bool {
        self.problem.gangs.iter().all(|gang| {
            let Some(topology) = gang.within else { return true };
            let sum = |pods: &[u32]| gang.classes.iter().map(|class| pods[*class as usize]).sum::<u32>();
            let mut met = None;
            for node in self.nodes.iter().filter(|node| sum(&node.pods) > 0) {
                let Some(here) = self.domain(node, topology) else { return false };
                if *met.get_or_insert(here) != here {
                    return false;
                }
            }
            let staying = self.nodes.iter().filter(|node| sum(&node.stay) > 0);
            let apart = |node: &Node| self.domain(node, topology).is_some_and(|here| met != Some(here));
            met.is_none() || !staying.into_iter().any(apart)
        })
    }

    fn affordable(&self, candidate: u32) -> bool {
        let bought = self.bought();
        let stock = self.problem.candidates[candidate as usize].max_nodes;
        stock.is_none_or(|most| bought[candidate as usize] <= most.into())
            && self.problem.limits.iter().enumerate().all(|(limit, rule)| {
                let used: u128 = bought
                    .iter()
                    .zip(&self.problem.candidates)
                    .map(|(count, offered)| {
                        let amount = offered.limit_use.iter().find(|(index, _)| *index as usize == limit);
                        u128::from(*count) * amount.map_or(0, |(_, amount)| u128::from(*amount))
                    })
                    .sum();
                used <= u128::from(rule.bound)
            })
    }

    fn search(&mut self, at: usize, from: usize) {
        if self.best.is_some_and(|best| self.cost() > best) {
            return;
        }
        let Some(&class) = self.pods.get(at) else {
            if self.complete() {
                let cost = self.cost();
                self.best = Some(self.best.map_or(cost, |best| best.min(cost)));
            }
            return;
        };
        // Equal pods go to nodes in order, so that no division is tried twice.
        let from = if at > 0 && self.pods[at - 1] == class { from } else { 0 };
        for index in from..self.nodes.len() {
            self.nodes[index].pods[class as usize] += 1;
            if self.possible(&self.nodes[index]) {
                self.search(at + 1, index);
            }
            self.nodes[index].pods[class as usize] -= 1;
        }
        for candidate in self.problem.classes[class as usize].candidates.clone() {
            let classes = self.problem.classes.len();
            let mut node = Node { kind: Ok(candidate), pods: vec![0; classes], stay: vec![0; classes] };
            node.pods[class as usize] = 1;
            if self.possible(&node) {
                self.nodes.push(node);
                if self.affordable(candidate) {
                    self.search(at + 1, self.nodes.len() - 1);
                }
                self.nodes.pop();
            }
        }
    }
}

fn value(domains: &[(u32, u32)], topology: u32) -> Option<u32> {
    domains.iter().find(|(of, _)| *of == topology).map(|(_, value)| *value)
}

/// Returns the cost of these nodes after commitments, and the use of each commitment.
pub fn paid(problem: &Problem, bought: &[u64]) -> (u64, Vec<u64>) {
    let mut cost: u64 =
        bought.iter().zip(&problem.candidates).map(|(count, offered)| count * offered.price.micros()).sum();
    let mut uses = Vec::new();
    for commitment in &problem.commitments {
        let mut rates: Vec<(u32, u128, u128)> = commitment
            .rates
            .iter()
            .map(|(candidate, rate)| {
                let price = problem.candidates[*candidate as usize].price.micros();
                (*candidate, u128::from(price), u128::from(rate.micros()))
            })
            .collect();
        rates.sort_by(|a, b| (b.1 * a.2).cmp(&(a.1 * b.2)).then(a.0.cmp(&b.0)));
        let mut left = u128::from(commitment.left.micros());
        'nodes: for (candidate, price, rate) in rates {
            for _ in 0..bought[candidate as usize] {
                cost -= price as u64;
                if rate <= left {
                    left -= rate;
                } else {
                    cost += (price * (rate - left)).div_ceil(rate) as u64;
                    left = 0;
                    break 'nodes;
                }
            }
        }
        uses.push(commitment.left.micros() - left as u64);
    }
    (cost, uses)
}

/// Returns the lowest objective of a plan that places exactly `counts` waiting pods of each class; `None` when there is
/// none.
///
/// It does not check whether a removal is possible step by step, which could only raise the optimum.
pub fn least(problem: &Problem, counts: &[u32]) -> Option<u64> {
    for gang in &problem.gangs {
        let waiting: u32 = gang.classes.iter().map(|class| problem.classes[*class as usize].count).sum();
        let placed: u32 = gang.classes.iter().map(|class| counts[*class as usize]).sum();
        if placed != 0 && placed != waiting {
            return None;
        }
    }
    let removable: Vec<u32> = (0..problem.existing.len() as u32)
        .filter(|node| problem.existing[*node as usize].removal.is_some())
        .collect();
    let mut best = None;
    for choice in 0..1u32 << removable.len() {
        let removed: Vec<u32> = removable
            .iter()
            .enumerate()
            .filter(|(at, _)| choice >> at & 1 == 1)
            .map(|(_, node)| *node)
            .collect();
        let mut pods: Vec<u32> = counts.to_vec();
        let (mut base, mut evictions) = (0, 0);
        for node in &removable {
            let Some(removal) = &problem.existing[*node as usize].removal else { continue };
            if removed.contains(node) {
                base += removal.disruption.micros();
                for (class, count) in &removal.pods {
                    pods[*class as usize] += count;
                    evictions += count;
                    base += problem.classes[*class as usize].disruption.micros() * u64::from(*count);
                }
            } else {
                base += removal.price.micros();
            }
        }
        let budget = &problem.disruption;
        if budget.evictions.is_some_and(|most| evictions > most)
            || budget.nodes.is_some_and(|most| removed.len() > most as usize)
        {
            continue;
        }
        let classes = problem.classes.len();
        let nodes = (0..problem.existing.len() as u32)
            .filter(|node| !removed.contains(node))
            .map(|node| {
                let mut stay = vec![0; classes];
                if let Some(removal) = &problem.existing[node as usize].removal {
                    removal.pods.iter().for_each(|(class, count)| stay[*class as usize] = *count);
                }
                Node { kind: Err(node), pods: vec![0; classes], stay }
            })
            .collect();
        let pods = (0..classes as u32)
            .flat_map(|class| std::iter::repeat_n(class, pods[class as usize] as usize))
            .collect();
        let mut search = Search { problem, pods, nodes, base, best };
        search.search(0, 0);
        best = search.best;
    }
    best
}

/// Returns the number of waiting pods of each class that a plan places.
pub fn placed(problem: &Problem, solution: &Solution) -> Vec<u32> {
    let mut counts: Vec<u32> = problem.classes.iter().map(|class| class.count).collect();
    for left in &solution.unplaced {
        counts[left.class as usize] -= left.count;
    }
    counts
}

/// Returns the quantities that a plan maximises if it leaves pods out: by descending priority, the total value of the
/// placed pods, then their number.
pub fn worth(problem: &Problem, counts: &[u32]) -> Vec<u64> {
    let mut priorities: Vec<i32> = problem.classes.iter().map(|class| class.priority).collect();
    priorities.sort_unstable_by(|a, b| b.cmp(a));
    priorities.dedup();
    priorities
        .into_iter()
        .flat_map(|priority| {
            let classes = problem.classes.iter().zip(counts).filter(|(class, _)| class.priority == priority);
            let sum = |each: fn(u64) -> u64| {
                classes.clone().map(|(class, count)| u64::from(*count) * each(class.value)).sum()
            };
            [sum(|value| value), sum(|_| 1)]
        })
        .collect()
}

/// Returns the highest [`worth`] that can be placed, and the lowest objective of a plan that places it.
pub fn optimum(problem: &Problem) -> (Vec<u64>, u64) {
    let mut choices: Vec<Vec<u32>> = vec![Vec::new()];
    for class in &problem.classes {
        choices = choices
            .into_iter()
            .flat_map(|counts| {
                (0..=class.count).map(move |count| {
                    let mut counts = counts.clone();
                    counts.push(count);
                    counts
                })
            })
            .collect();
    }
    choices.sort_by_key(|counts| std::cmp::Reverse(worth(problem, counts)));
    let equal = choices.chunk_by(|one, other| worth(problem, one) == worth(problem, other));
    let mut leasts = equal.filter_map(|counts| {
        let least = counts.iter().filter_map(|counts| least(problem, counts)).min()?;
        Some((worth(problem, &counts[0]), least))
    });
    leasts.next().expect("placing nothing is possible")
}
