//! The residual problem for given nodes to remove: the pods of these nodes and the waiting pods, on new nodes and on free
//! room of the nodes that stay. Branch and price solves it like any other problem.

use std::collections::BTreeMap;

use poolwright_catalog::{ResourceName, UsdPerHour};

use super::cluster::Cluster;
use crate::branch_and_price;
use crate::options::Options;
use crate::problem::{DisruptionBudget, Problem, ProblemError};
use crate::solution::{Charges, ExistingUse, GpuLayout, Proof, Solution, Stopped, Unplaced};
use crate::stop::{Progress, StopSignal};

/// A complete solution: the removed nodes, and the places of all pods.
#[derive(Clone, Debug, Default)]
pub(super) struct Target {
    /// The removed nodes, ascending.
    pub gone: Vec<u32>,
    /// The solution without steps.
    pub solution: Solution,
    /// The value left out, by priority, highest first.
    pub left_out: Vec<u128>,
}

impl Target {
    /// Returns the sort key: less left out is better, then a lower objective, then fewer removed nodes.
    pub fn key(&self) -> (&[u128], u64, usize) {
        (&self.left_out, self.solution.objective().micros(), self.gone.len())
    }
}

/// Hides the progress of a part of the work from the caller, who only receives complete solutions.
pub(super) struct Part<'w>(pub &'w mut dyn StopSignal);

impl StopSignal for Part<'_> {
    fn should_stop(&mut self) -> bool {
        self.0.should_stop()
    }
    fn is_abandoned(&mut self) -> bool {
        self.0.is_abandoned()
    }
    fn improved(&mut self, _plan: &Solution) {}
    fn progress(&mut self, _progress: &Progress) {}
    fn spent(&mut self, units: u64) {
        self.0.spent(units);
    }
}

/// The maximum number of classes whose ceiling per node becomes an extra resource because running pods use a part of it.
const CEILINGS: usize = 4;

/// Returns the residual problem when the nodes in `gone` are removed and `guests` (by existing node) are placed already.
/// `rooms` decides which free room the solver may use. The flag is false if the problem is more restricted than
/// necessary.
pub(super) fn problem(
    cluster: &Cluster<'_>,
    demand: &[u64],
    gone: &[u32],
    guests: &[Vec<(u32, u32)>],
    rooms: &dyn Fn(usize, u32) -> bool,
) -> (Problem, bool) {
    let given = cluster.problem;
    let mut left = Problem {
        resources: given.resources.clone(),
        classes: given.classes.clone(),
        candidates: given.candidates.clone(),
        existing: given.existing.clone(),
        limits: given.limits.clone(),
        topologies: given.topologies.clone(),
        conflicts: given.conflicts.clone(),
        gangs: given.gangs.clone(),
        spreads: given.spreads.clone(),
        commitments: given.commitments.clone(),
        node_shares: given.node_shares.clone(),
        flexibility: given.flexibility.clone(),
        disruption: DisruptionBudget::default(),
    };
    // A gang without waiting pods runs already. Its pods move like others.
    for gang in &mut left.gangs {
        if gang.classes.iter().all(|class| given.classes[*class as usize].count == 0) {
            gang.classes.clear();
        }
    }
    join(cluster, gone, &mut left);
    for node in &mut left.existing {
        node.removal = None;
    }
    for (node, pods) in guests.iter().enumerate() {
        for (class, count) in pods {
            let requests = &given.classes[*class as usize].requests;
            for (free, request) in left.existing[node].free.iter_mut().zip(requests) {
                *free -= request * u64::from(*count);
            }
        }
    }
    let on = |node: u32| {
        cluster.nodes[node as usize].pods.iter().chain(guests.get(node as usize).into_iter().flatten())
    };
    let mut exact = true;
    let mut extra = 0;
    for (index, class) in left.classes.iter_mut().enumerate() {
        class.count = u32::try_from(demand[index]).unwrap_or(u32::MAX);
        if class.count == 0 {
            class.existing.clear();
            continue;
        }
        let ceiling = cluster.ceiling[index];
        let running = |node: u32| -> u32 {
            on(node).filter(|(other, _)| *other as usize == index).map(|(_, count)| count).sum()
        };
        class.existing.retain(|node| {
            gone.binary_search(node).is_err()
                && rooms(index, *node)
                && cluster.meets(index as u32, on(*node))
                && (ceiling == u32::MAX || running(*node) < ceiling)
        });
        if ceiling == u32::MAX || class.existing.iter().all(|node| running(*node) == 0) {
            continue;
        }
        if extra == CEILINGS {
            exact = false;
            class.existing.retain(|node| running(*node) == 0);
            continue;
        }
        extra += 1;
        let name = format!("poolwright.io/ceiling-{index}");
        left.resources.push(ResourceName::new(&name));
        class.requests.push(1);
        // The loop below extends the requests of the other classes.
        for (at, node) in left.existing.iter_mut().enumerate() {
            node.free.push(u64::from(ceiling.saturating_sub(running(at as u32))));
        }
        for candidate in &mut left.candidates {
            candidate.capacity.push(u64::from(ceiling));
        }
    }
    if extra > 0 {
        // Each class with a ceiling pushed one request, which belongs in the column of that class.
        let dims = left.resources.len();
        let base = dims - extra;
        for (index, class) in left.classes.iter_mut().enumerate() {
            let own = class.requests.len() > base;
            class.requests.truncate(base);
            class.requests.resize(dims, 0);
            let name = format!("poolwright.io/ceiling-{index}");
            if own && let Some(at) = left.resources.iter().position(|resource| resource.as_str() == name) {
                class.requests[at] = 1;
            }
        }
    }
    (left, exact)
}

/// Keeps staying pods in their groups: spreads count them where they are, and waiting pods of a gang join them there.
fn join(cluster: &Cluster<'_>, gone: &[u32], left: &mut Problem) {
    let staying = (0..cluster.nodes.len()).filter(|node| gone.binary_search(&(*node as u32)).is_err());
    for node in staying {
        let domains = &cluster.problem.existing[node].domains;
        let value = |topology: u32| domains.iter().find(|(of, _)| *of == topology).map(|(_, value)| *value);
        for (class, count) in &cluster.nodes[node].pods {
            for spread in left.spreads.iter_mut().filter(|spread| spread.classes.contains(class)) {
                let at = value(spread.topology).and_then(|value| spread.values.binary_search(&value).ok());
                if let Some(at) = at {
                    spread.running[at] = spread.running[at].saturating_add(*count);
                }
            }
            for gang in left.gangs.iter().filter(|gang| gang.classes.contains(class)) {
                let Some((topology, value)) = gang.within.and_then(|of| Some((of, value(of)?))) else {
                    continue;
                };
                let there = |domains: &[(u32, u32)]| domains.contains(&(topology, value));
                for member in &gang.classes {
                    let member = &mut left.classes[*member as usize];
                    member.candidates.retain(|index| there(&left.candidates[*index as usize].domains));
                    member.existing.retain(|index| there(&left.existing[*index as usize].domains));
                }
            }
        }
    }
}

/// Returns the value left out, by priority.
fn left_out(problem: &Problem, unplaced: &[Unplaced]) -> Vec<u128> {
    let mut by_priority: BTreeMap<std::cmp::Reverse<i32>, u128> = BTreeMap::new();
    let valued = problem.classes.iter().any(|class| class.value > 0);
    for class in &problem.classes {
        by_priority.entry(std::cmp::Reverse(class.priority)).or_default();
    }
    for left in unplaced {
        let class = &problem.classes[left.class as usize];
        let worth = if valued { u128::from(class.value) } else { 1 };
        *by_priority.entry(std::cmp::Reverse(class.priority)).or_default() += worth * u128::from(left.count);
    }
    by_priority.into_values().collect()
}

/// Solves the residual problem when `gone` are removed and `guests` are placed. The error lists the classes of running
/// pods that would not be placed. Bound and proof hold for this choice of nodes.
pub(super) fn solve(
    cluster: &Cluster<'_>,
    gone: Vec<u32>,
    guests: &[Vec<(u32, u32)>],
    rooms: &dyn Fn(usize, u32) -> bool,
    (options, prices): (&Options, &[f64]),
    signal: &mut dyn StopSignal,
) -> Result<Target, Vec<u32>> {
    let mut demand = cluster.homeless(&gone);
    for pods in guests {
        for (class, count) in pods {
            demand[*class as usize] = demand[*class as usize].saturating_sub(u64::from(*count));
        }
    }
    let fixed = kept(cluster, &gone);
    let mut solution = if demand.iter().all(|count| *count == 0) {
        Solution {
            proof: Proof::Exact,
            stopped: Stopped::GapReached,
            commitment_use: vec![UsdPerHour::ZERO; cluster.problem.commitments.len()],
            ..Solution::default()
        }
    } else {
        let (left, exact) = problem(cluster, &demand, &gone, guests, rooms);
        // The gap target applies to the whole cluster.
        let part: u128 =
            demand.iter().zip(prices).map(|(count, price)| (*count as f64 * price.min(1e12)) as u128).sum();
        let whole = part as f64 + (fixed.0 + fixed.1).micros() as f64;
        let gap_target =
            (options.gap_target * whole / (part as f64).max(1.0)).min(0.05).max(options.gap_target);
        let options = &Options { gap_target, ..*options };
        if left.validate().is_err() {
            return Err(Vec::new());
        }
        let mut solution = branch_and_price::solve(&left, options, &mut Part(signal));
        if !exact {
            solution.proof = Proof::Truncated;
        }
        solution
    };
    // Pods of one class can be left out for several reasons.
    let mut missing: BTreeMap<u32, u64> = BTreeMap::new();
    for left in &solution.unplaced {
        *missing.entry(left.class).or_default() += u64::from(left.count);
    }
    let stranded: Vec<u32> = missing
        .into_iter()
        .filter(|(class, count)| *count > cluster.waiting(*class as usize))
        .map(|(class, _)| class)
        .collect();
    if !stranded.is_empty() {
        return Err(stranded);
    }
    let mut uses: BTreeMap<u32, ExistingUse> =
        solution.on_existing.drain(..).map(|used| (used.node, used)).collect();
    for (node, pods) in guests.iter().enumerate().filter(|(_, pods)| !pods.is_empty()) {
        let node = node as u32;
        let gpus = cluster.problem.existing[node as usize].gpus.len();
        // Guests never request a part of a GPU.
        let idle = || ExistingUse { node, pods: Vec::new(), gpus: vec![GpuLayout::Idle; gpus] };
        let used = uses.entry(node).or_insert_with(idle);
        let mut all: BTreeMap<u32, u32> = used.pods.iter().copied().collect();
        for (class, count) in pods {
            *all.entry(*class).or_default() += count;
        }
        used.pods = all.into_iter().collect();
    }
    solution.on_existing = uses.into_values().collect();
    solution.cost += fixed.0;
    solution.charges = Charges { disruption: fixed.1, ..solution.charges };
    solution.bound = solution.bound + fixed.0 + fixed.1;
    solution.removed.clone_from(&gone);
    let left_out = left_out(cluster.problem, &solution.unplaced);
    Ok(Target { gone, solution, left_out })
}

/// Returns the plan of the greedy heuristic for the waiting pods, without removing a node.
pub(crate) fn greedy(given: &Problem) -> Result<Solution, ProblemError> {
    let cluster = Cluster::new(given);
    let (left, _) = problem(&cluster, &cluster.homeless(&[]), &[], &[], &|_, _| true);
    left.validate()?;
    let mut solution = branch_and_price::greedy(&left, &Options::default());
    solution.cost += kept(&cluster, &[]).0;
    Ok(solution)
}

/// Returns the price of the nodes that stay, and the disruption cost of removing the others.
fn kept(cluster: &Cluster<'_>, gone: &[u32]) -> (UsdPerHour, UsdPerHour) {
    let (mut paid, mut disruption) = (0u64, 0u64);
    for (index, node) in cluster.nodes.iter().enumerate() {
        if gone.binary_search(&(index as u32)).is_ok() {
            disruption = disruption.saturating_add(node.drain);
        } else {
            paid = paid.saturating_add(node.price);
        }
    }
    (UsdPerHour::from_micros(paid), UsdPerHour::from_micros(disruption))
}
