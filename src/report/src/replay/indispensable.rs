//! The nodes that every plan for some pods must buy.
//!
//! A relaxation of whole nodes counts a quarter of a large node if a pod needs only a quarter of it. But if this pod fits
//! nowhere else, a whole one must be there. Such nodes are paid in full, and the solver proves a bound for the rest of the
//! cost, with their room as free. No node counts twice: every plan buys them, and without them it is a plan for the rest.

use std::collections::BTreeSet;

use poolwright_solver::{ExistingNode, PodClass, Problem};

/// More nodes of one kind than this gain little: the relaxation counts most of them anyway.
const MOST: u64 = 64;

/// Pays the indispensable nodes of `problem`, and returns their price in micro-dollars per hour. Afterwards they are existing
/// nodes.
///
/// Plans for the changed problem, together with these nodes, are plans for the original one. A bound of the changed problem,
/// plus the price, is a bound of the original one.
pub(super) fn pay(problem: &mut Problem) -> u64 {
    // With commitments, the price of a node depends on the others; the room of shared GPUs is more than a sum.
    if !problem.commitments.is_empty() || problem.candidates.iter().any(|candidate| candidate.gpus.is_some())
    {
        return 0;
    }
    let homes: Vec<Vec<u32>> = (0..problem.classes.len()).map(|class| homes(problem, class)).collect();
    let mut kinds: Vec<&Vec<u32>> = homes.iter().filter(|homes| is_one_kind(problem, homes)).collect();
    kinds.sort_unstable_by_key(|kind| (kind.len(), *kind));
    kinds.dedup();
    let mut paid: BTreeSet<u32> = BTreeSet::new();
    let mut price = 0;
    for kind in kinds {
        let count = least(problem, &homes, kind);
        let candidate = &problem.candidates[kind[0] as usize];
        let Some(sum) = candidate.price.micros().checked_mul(count).filter(|_| count <= MOST) else {
            continue;
        };
        // Nodes of a kind that shares a candidate with another could be the same nodes.
        if kind.iter().any(|candidate| paid.contains(candidate)) {
            continue;
        }
        paid.extend(kind);
        price += sum;
        let node = ExistingNode { free: candidate.capacity.clone(), ..ExistingNode::default() };
        let first = problem.existing.len() as u32;
        let last = first + count as u32;
        problem.existing.extend((first..last).map(|_| node.clone()));
        for class in problem.classes.iter_mut().filter(|class| class.candidates.contains(&kind[0])) {
            class.existing.extend(first..last);
        }
    }
    price
}

/// Returns the candidates that hold a pod of the class.
fn homes(problem: &Problem, class: usize) -> Vec<u32> {
    let class = &problem.classes[class];
    let holds = |candidate: &u32| {
        let capacity = &problem.candidates[*candidate as usize].capacity;
        capacity.iter().zip(&class.requests).all(|(room, request)| room >= request)
    };
    class.candidates.iter().copied().filter(holds).collect()
}

/// Returns whether these candidates have the same price and the same room and admit the same pods, such as one type in several
/// zones.
fn is_one_kind(problem: &Problem, candidates: &[u32]) -> bool {
    let admits_none_or_all = |class: &PodClass| {
        let admitted = candidates.iter().filter(|candidate| class.candidates.contains(candidate)).count();
        admitted == 0 || admitted == candidates.len()
    };
    let equal = |one: u32, other: u32| {
        let (one, other) = (&problem.candidates[one as usize], &problem.candidates[other as usize]);
        one.price == other.price && one.capacity == other.capacity
    };
    candidates.first().is_some_and(|first| candidates.iter().all(|other| equal(*first, *other)))
        && problem.classes.iter().all(admits_none_or_all)
}

/// Returns how many nodes of `kind` every plan has: enough for the pods that fit nowhere else.
fn least(problem: &Problem, homes: &[Vec<u32>], kind: &[u32]) -> u64 {
    let capacity = &problem.candidates[kind[0] as usize].capacity;
    let bound_to_it = || {
        let within = |homes: &[u32]| !homes.is_empty() && homes.iter().all(|home| kind.contains(home));
        problem.classes.iter().zip(homes).filter(move |(_, homes)| within(homes)).map(|(class, _)| class)
    };
    let for_resource = |(at, room): (usize, &u64)| {
        let sum: u128 =
            bound_to_it().map(|class| u128::from(class.requests[at]) * u128::from(class.count)).sum();
        // A resource without room is requested by none of these pods.
        u64::try_from(sum.div_ceil(u128::from((*room).max(1)))).unwrap_or(u64::MAX)
    };
    capacity.iter().enumerate().map(for_resource).max().unwrap_or(0)
}
