//! The nodes that every plan for some pods must buy.
//!
//! A relaxation of whole nodes counts a quarter of a large node if a pod needs only a quarter of it. But if this pod fits
//! nowhere else, a whole one must be there. Such nodes are paid in full, and the solver proves a bound for the rest of the
//! cost, with their room as free. No node counts twice: every plan buys them, and without them it is a plan for the rest.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use poolwright_solver::{ExistingNode, PodClass, Problem};

/// More nodes of one kind than this gain little: the relaxation counts most of them anyway.
const MOST: u64 = 64;

/// Pays the indispensable nodes of `problem`, and returns their price in micro-dollars per hour. Afterwards they are existing
/// nodes.
///
/// A bound of the changed problem, plus the price, is a bound of the original one. For a plan of the original problem has the
/// nodes that are paid, or nodes in their place that cost no less, hold no more and admit no other pods. Move the pods of these
/// to the existing nodes, and give up the nodes. What remains is a plan of the changed problem.
///
/// A plan of the changed problem, with the paid nodes bought, is also a plan of the original one.
pub(super) fn pay(problem: &mut Problem) -> u64 {
    // With commitments, the price of a node depends on the others; the room of shared GPUs is more than a sum.
    if !problem.commitments.is_empty() || problem.candidates.iter().any(|candidate| candidate.gpus.is_some())
    {
        return 0;
    }
    let homes: Vec<Vec<u32>> = problem.classes.iter().map(|class| homes(problem, class)).collect();
    let kinds: BTreeSet<(usize, &Vec<u32>)> = homes.iter().map(|homes| (homes.len(), homes)).collect();
    let mut paid: BTreeSet<u32> = BTreeSet::new();
    let mut price = 0;
    for (_, kind) in kinds {
        // Nodes of a kind that shares a candidate with another could be the same nodes.
        if kind.iter().any(|candidate| paid.contains(candidate)) {
            continue;
        }
        let Some(best) = best(problem, kind) else { continue };
        let within = |homes: &[u32]| !homes.is_empty() && homes.iter().all(|home| kind.contains(home));
        let bound: Vec<&PodClass> = problem
            .classes
            .iter()
            .zip(&homes)
            .filter(|(_, homes)| within(homes))
            .map(|(class, _)| class)
            .collect();
        let candidate = &problem.candidates[best as usize];
        let count = least(&candidate.capacity, &bound);
        let Some(sum) = candidate.price.micros().checked_mul(count).filter(|_| count <= MOST) else {
            continue;
        };
        paid.extend(kind);
        price += sum;
        let node = ExistingNode { free: candidate.capacity.clone(), ..ExistingNode::default() };
        let first = problem.existing.len() as u32;
        let last = first + count as u32;
        problem.existing.extend((first..last).map(|_| node.clone()));
        for class in problem.classes.iter_mut().filter(|class| admits(class, best)) {
            class.existing.extend(first..last);
        }
    }
    price
}

/// Returns whether the pods of the class may use the candidate.
fn admits(class: &PodClass, candidate: u32) -> bool {
    class.candidates.binary_search(&candidate).is_ok()
}

/// Returns the candidates that hold a pod of the class; none if there are nodes already that its pods may use. They need no new ones
/// then.
fn homes(problem: &Problem, class: &PodClass) -> Vec<u32> {
    if !class.existing.is_empty() {
        return Vec::new();
    }
    let holds = |candidate: &u32| {
        let capacity = &problem.candidates[*candidate as usize].capacity;
        capacity.iter().zip(&class.requests).all(|(room, request)| room >= request)
    };
    class.candidates.iter().copied().filter(holds).collect()
}

/// Returns the candidate among these that can stand for each of them: none costs less, has more room, or admits other pods. So it
/// is with one type in several zones, or on-demand and as spot. Returns `None` if there is no such candidate.
fn best(problem: &Problem, kind: &[u32]) -> Option<u32> {
    let candidate = |at: u32| &problem.candidates[at as usize];
    let total = |at: u32| candidate(at).capacity.iter().map(|room| u128::from(*room)).sum::<u128>();
    let admitted = |at: u32| problem.classes.iter().filter(|class| admits(class, at)).count();
    let cheapest = kind.iter().map(|at| candidate(*at).price).min()?;
    let equal = kind.iter().copied().filter(|at| candidate(*at).price == cheapest);
    // If one of them stands for all, it has the most room and admits the most classes.
    let best = equal.max_by_key(|at| (total(*at), admitted(*at), Reverse(*at)))?;
    let has_more_room = |other: u32| {
        candidate(other).capacity.iter().zip(&candidate(best).capacity).any(|(other, best)| other > best)
    };
    let admits_others =
        |other: u32| problem.classes.iter().any(|class| admits(class, other) && !admits(class, best));
    let stands_for_all = kind.iter().all(|other| !has_more_room(*other) && !admits_others(*other));
    stands_for_all.then_some(best)
}

/// Returns how many nodes of this room the pods of these classes need at least, if each fits one alone.
///
/// Three proofs count, and the highest is the result. The nodes have at least the room that all pods request together. If `k + 1`
/// pods exceed the room of one resource even if each is like the smallest of them, a node has at most `k` of them. And pods of
/// which no two fit together need a node each.
fn least(room: &[u64], classes: &[&PodClass]) -> u64 {
    let of_resource = |(at, room): (usize, &u64)| {
        let each = || classes.iter().map(move |class| (class.requests[at], u64::from(class.count)));
        let sum: u128 = each().map(|(request, count)| u128::from(request) * u128::from(count)).sum();
        // A resource without room is requested by none of these pods.
        let by_sum = u64::try_from(sum.div_ceil(u128::from((*room).max(1)))).unwrap_or(u64::MAX);
        // Of each pod and of all that are no smaller, a node has at most so many.
        let fit = |request: u64| room.checked_div(request).map(|most| most.max(1));
        let by_number = each().filter_map(|(request, _)| fit(request)).map(|most| {
            let as_large = each().filter(|(request, _)| fit(*request).is_some_and(|fit| fit <= most));
            as_large.map(|(_, count)| count).sum::<u64>().div_ceil(most)
        });
        by_number.max().unwrap_or(0).max(by_sum)
    };
    room.iter().enumerate().map(of_resource).max().unwrap_or(0).max(apart(room, classes))
}

/// Returns the number of some pods of which no two fit a node of this room together.
fn apart(room: &[u64], classes: &[&PodClass]) -> u64 {
    let mut all = classes.to_vec();
    // Of classes that are apart from themselves, every pod counts.
    all.sort_by_key(|class| (meet(room, class, class), Reverse(class.count)));
    let mut chosen: Vec<&PodClass> = Vec::new();
    for class in all {
        if chosen.iter().all(|other| !meet(room, class, other)) {
            chosen.push(class);
        }
    }
    let pods = |class: &&PodClass| if meet(room, class, class) { 1 } else { u64::from(class.count) };
    chosen.iter().map(pods).sum()
}

/// Returns whether a pod of each of two classes fit a node of this room together.
fn meet(room: &[u64], one: &PodClass, other: &PodClass) -> bool {
    let together = one.requests.iter().zip(&other.requests).map(|(one, other)| one.saturating_add(*other));
    together.zip(room).all(|(sum, room)| sum <= *room)
}
