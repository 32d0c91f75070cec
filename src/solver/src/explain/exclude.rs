//! The rule that excludes a candidate for a class: first for one pod alone on an empty node, then in the state of the
//! plan.

use poolwright_catalog::ResourceName;
use serde::{Deserialize, Serialize};

use crate::check::{packs, value};
use crate::problem::{Candidate, GpuMode, GpuRequest, PodClass, Problem};
use crate::solution::Solution;

/// The first rule that excludes a candidate for a class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// A rule of the pods or of the pool: a selector, an affinity or a taint.
    NotAllowed,
    /// Such nodes are kept free for pods without a cheaper home. A problem does not say this: whoever made it without these candidates
    /// knows it.
    KeptFree,
    /// One pod does not fit an empty node.
    #[serde(rename_all = "camelCase")]
    DoesNotFit {
        /// The scarcest resource.
        resource: ResourceName,
        /// The request of one pod.
        wants: u64,
        /// The capacity of an empty node.
        has: u64,
    },
    /// Its GPUs do not suit the pod.
    Gpus(GpuWhy),
    /// The class allows no pod on any node.
    Ceiling,
    /// The node has no eligible value of the topology by this name.
    Domain(String),
    /// One such node alone would exceed this limit.
    OverLimit(String),
    /// A node with one such pod is not replaceable by as many other types as this flexibility asks.
    Inflexible(String),
    /// No such node is available.
    NoStock,
    /// Only this many are available, and the plan has them all.
    AllBought(u32),
    /// The plan leaves less of this limit than one more node takes.
    LimitReached(String),
    /// This other candidate holds the same pods for no more money.
    DominatedBy(String),
}

/// The reason why the GPUs of a node do not suit a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuWhy {
    /// The node has no shared or partitioned GPUs.
    None,
    /// The GPUs are partitioned, and the pod wants a share.
    NotShared,
    /// The GPUs are shared, and the pod wants an instance.
    NotCut,
    /// All GPUs are partitioned, and the pod wants a whole one.
    NotWhole,
    /// The GPU family has no such profile.
    NoProfile,
    /// One GPU has too little memory.
    TooLittleMemory,
    /// There are too few GPUs, or too few places on them.
    TooFew,
}

/// Returns, for every candidate, the rule that excludes it for the class, if any.
pub(super) fn exclusions(problem: &Problem, solution: &Solution, class: u32) -> Vec<Option<Why>> {
    let mut bought = vec![0u64; problem.candidates.len()];
    for group in &solution.new_nodes {
        bought[group.candidate as usize] += u64::from(group.count);
    }
    let mut spent = vec![0u128; problem.limits.len()];
    for (candidate, count) in problem.candidates.iter().zip(&bought) {
        for (limit, amount) in &candidate.limit_use {
            spent[*limit as usize] += u128::from(*amount) * u128::from(*count);
        }
    }
    let mut whys: Vec<Option<Why>> = (0..problem.candidates.len() as u32)
        .map(|candidate| {
            alone(problem, class, candidate)
                .or_else(|| in_plan(problem, candidate, bought[candidate as usize], &spent))
        })
        .collect();
    let open: Vec<u32> = (0..whys.len() as u32).filter(|index| whys[*index as usize].is_none()).collect();
    let mut dominance = Dominance::new(problem);
    for candidate in &open {
        if let Some(better) = dominance.better(*candidate, &open) {
            let name = problem.candidates[better as usize].name.clone();
            whys[*candidate as usize] = Some(Why::DominatedBy(name));
        }
    }
    whys
}

/// Returns the rule that excludes one pod on an empty node, regardless of the plan.
fn alone(problem: &Problem, class: u32, index: u32) -> Option<Why> {
    let of = &problem.classes[class as usize];
    let candidate = &problem.candidates[index as usize];
    if of.candidates.binary_search(&index).is_err() {
        return Some(Why::NotAllowed);
    }
    if let Some((dim, (wants, has))) = shortest(of, candidate) {
        return Some(Why::DoesNotFit { resource: problem.resources[dim].clone(), wants, has });
    }
    if let Some(why) = gpus(problem, class, candidate) {
        return Some(Why::Gpus(why));
    }
    if of.max_per_node == Some(0) {
        return Some(Why::Ceiling);
    }
    let topology = |topology: u32| problem.topologies[topology as usize].name.clone();
    for spread in problem.spreads.iter().filter(|spread| spread.classes.binary_search(&class).is_ok()) {
        let met = value(&candidate.domains, spread.topology);
        if met.is_none_or(|met| spread.values.binary_search(&met).is_err()) {
            return Some(Why::Domain(topology(spread.topology)));
        }
    }
    for gang in problem.gangs.iter().filter(|gang| gang.classes.binary_search(&class).is_ok()) {
        if let Some(within) = gang.within
            && value(&candidate.domains, within).is_none()
        {
            return Some(Why::Domain(topology(within)));
        }
    }
    if candidate.max_nodes == Some(0) {
        return Some(Why::NoStock);
    }
    let over =
        candidate.limit_use.iter().find(|(limit, amount)| *amount > problem.limits[*limit as usize].bound);
    if let Some((limit, _)) = over {
        return Some(Why::OverLimit(problem.limits[*limit as usize].name.clone()));
    }
    let rules = problem.flexibility.iter().filter(|rule| rule.candidates.binary_search(&index).is_ok());
    for rule in rules {
        let mut values: Vec<u32> = rule
            .candidates
            .iter()
            .filter(|other| of.candidates.binary_search(other).is_ok())
            .map(|other| &problem.candidates[*other as usize])
            .filter(|other| other.max_nodes != Some(0) && shortest(of, other).is_none())
            .filter(|other| gpus(problem, class, other).is_none())
            .filter_map(|other| value(&other.domains, rule.topology))
            .collect();
        values.sort_unstable();
        values.dedup();
        if values.len() < rule.at_least as usize {
            return Some(Why::Inflexible(rule.name.clone()));
        }
    }
    None
}

/// Returns the resource that a pod exceeds most on an empty node, in proportion.
fn shortest(class: &PodClass, candidate: &Candidate) -> Option<(usize, (u64, u64))> {
    let pairs = class.requests.iter().copied().zip(candidate.capacity.iter().copied()).enumerate();
    pairs.filter(|(_, (wants, has))| wants > has).max_by(|(_, a), (_, b)| {
        let parts = |(wants, _): (u64, u64), (_, has): (u64, u64)| u128::from(wants) * u128::from(has);
        // Compares a.wants / a.has with b.wants / b.has; a capacity of zero is the worst.
        (parts(*a, *b), b.1).cmp(&(parts(*b, *a), a.1))
    })
}

fn gpus(problem: &Problem, class: u32, candidate: &Candidate) -> Option<GpuWhy> {
    let request = problem.classes[class as usize].gpu?;
    let Some(gpus) = &candidate.gpus else { return Some(GpuWhy::None) };
    match (request, gpus.mode) {
        (GpuRequest::Whole(_), GpuMode::Mig { mixed: false, .. }) => return Some(GpuWhy::NotWhole),
        (GpuRequest::Share { .. }, GpuMode::Mig { .. }) => return Some(GpuWhy::NotShared),
        (GpuRequest::Share { memory_mib, .. }, GpuMode::Shared) if memory_mib > gpus.memory_mib => {
            return Some(GpuWhy::TooLittleMemory);
        }
        (GpuRequest::Mig { .. }, GpuMode::Shared) => return Some(GpuWhy::NotCut),
        (GpuRequest::Mig { profile, .. }, GpuMode::Mig { geometry, .. })
            if geometry.placements(profile).is_none() =>
        {
            return Some(GpuWhy::NoProfile);
        }
        _ => {}
    }
    (!packs(problem, &[(class, 1)], Some(gpus))).then_some(GpuWhy::TooFew)
}

/// Returns the rule that excludes one more node beside the plan's nodes.
fn in_plan(problem: &Problem, index: u32, bought: u64, spent: &[u128]) -> Option<Why> {
    let candidate = &problem.candidates[index as usize];
    if let Some(most) = candidate.max_nodes
        && bought >= u64::from(most)
    {
        return Some(Why::AllBought(most));
    }
    let reached = candidate.limit_use.iter().find(|(limit, amount)| {
        let of = *limit as usize;
        *amount > 0 && spent[of] + u128::from(*amount) > u128::from(problem.limits[of].bound)
    });
    reached.map(|(limit, _)| Why::LimitReached(problem.limits[*limit as usize].name.clone()))
}

/// Dominance between candidates, regardless of the pods on them.
struct Dominance<'a> {
    problem: &'a Problem,
    /// By candidate: the classes that may use it, 64 to a word.
    users: Vec<Vec<u64>>,
    /// By candidate: whether it is in a commitment or a node share, where its node count matters to other nodes.
    entangled: Vec<bool>,
    /// Whether pods cost different amounts on different candidates.
    penalties: bool,
    domains: bool,
}

impl<'a> Dominance<'a> {
    fn new(problem: &'a Problem) -> Self {
        let words = problem.classes.len().div_ceil(64);
        let mut users = vec![vec![0u64; words]; problem.candidates.len()];
        for (index, class) in problem.classes.iter().enumerate() {
            for candidate in &class.candidates {
                users[*candidate as usize][index / 64] |= 1 << (index % 64);
            }
        }
        let mut entangled = vec![false; problem.candidates.len()];
        let covered = problem.commitments.iter().flat_map(|commitment| &commitment.rates).map(|(of, _)| of);
        for candidate in problem.node_shares.iter().flat_map(|share| &share.of).chain(covered) {
            entangled[*candidate as usize] = true;
        }
        Self {
            problem,
            users,
            entangled,
            penalties: problem
                .classes
                .iter()
                .any(|class| !class.preferences.is_empty() || !class.at_risk_on.is_empty()),
            domains: !(problem.gangs.is_empty()
                && problem.spreads.is_empty()
                && problem.flexibility.is_empty()),
        }
    }

    /// Returns the cheapest candidate among `open` that dominates `index`.
    fn better(&mut self, index: u32, open: &[u32]) -> Option<u32> {
        let dominates = open.iter().copied().filter(|other| self.dominates(*other, index));
        dominates.min_by_key(|other| (self.problem.candidates[*other as usize].price, *other))
    }

    fn dominates(&self, by: u32, index: u32) -> bool {
        let (better, worse) =
            (&self.problem.candidates[by as usize], &self.problem.candidates[index as usize]);
        if by == index || better.price > worse.price || better.max_nodes.is_some() {
            return false;
        }
        let use_of = |candidate: &Candidate, limit: u32| {
            let at = candidate.limit_use.binary_search_by_key(&limit, |(of, _)| *of);
            at.map_or(0, |at| candidate.limit_use[at].1)
        };
        let at_least = better.capacity.iter().zip(&worse.capacity).all(|(a, b)| a >= b)
            && better.interruptions <= worse.interruptions
            && (worse.gpus.is_none() || better.gpus == worse.gpus)
            && (!self.domains || better.domains == worse.domains)
            && !self.entangled[by as usize]
            && !self.entangled[index as usize]
            && better.limit_use.iter().all(|(limit, amount)| *amount <= use_of(worse, *limit))
            && self.users[index as usize].iter().zip(&self.users[by as usize]).all(|(a, b)| a & !b == 0)
            && (!self.penalties || self.charged_less(by, index));
        // Of two equal candidates, the first stays.
        let equal = |a: u32, b: u32| {
            let (x, y) = (&self.problem.candidates[a as usize], &self.problem.candidates[b as usize]);
            x.price == y.price
                && x.capacity == y.capacity
                && x.limit_use == y.limit_use
                && x.interruptions == y.interruptions
                && x.gpus == y.gpus
                && y.max_nodes.is_none()
                && self.users[a as usize] == self.users[b as usize]
        };
        at_least && (by < index || !equal(by, index))
    }

    /// Returns whether the risk and the preferences of every user of `index` cost no more on `by`.
    fn charged_less(&self, by: u32, index: u32) -> bool {
        let cost = |class: &PodClass, candidate: u32| {
            let at = class.preferences.binary_search_by_key(&candidate, |(of, _)| *of);
            (class.loss_on(candidate), at.map_or(0, |at| class.preferences[at].1.micros()))
        };
        let users =
            self.problem.classes.iter().filter(|class| class.candidates.binary_search(&index).is_ok());
        users.into_iter().all(|class| {
            let ((risk, preferences), (worse_risk, worse_preferences)) =
                (cost(class, by), cost(class, index));
            risk <= worse_risk && preferences <= worse_preferences
        })
    }
}
