//! Asks the solver for sets of nodes to consolidate, with a model of the whole cluster that leaves out some scheduling rules.
//!
//! The model is the solver problem of a plan in which all these nodes are disrupted. The nodes are added to it as existing nodes
//! that the solver may empty, each with its price, its pods and the loss of moving them. The solver's answers are only
//! candidates, and each is then planned with every rule.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_solver::problem::{DisruptionBudget, Removal};
use poolwright_solver::{ExistingNode, FirstHalf, Problem, StopSignal, solve};

use crate::disruption::payback;
use crate::disruption::search::Search;
use crate::model::PlanOptions;
use crate::model::{Cause, Claim, Pod, PodKey, Snapshot};
use crate::plan::plan;
use crate::rules;
use crate::supply::commitments;

/// The most nodes in one model.
const MOST: usize = 400;

/// Returns candidate sets of nodes to empty, ordered by the saving for each moved pod.
pub(crate) fn candidate_sets<'a>(
    search: &mut Search<'a>,
    candidates: &[&'a Claim],
    stop: &mut dyn StopSignal,
) -> Vec<Vec<&'a Claim>> {
    let mut nodes: Vec<&Claim> = candidates.to_vec();
    nodes.sort_by_key(|claim| {
        (search.move_history.tried_together(&claim.name), search.loss_permille(claim), &claim.name)
    });
    nodes.truncate(MOST);
    search.together = nodes.iter().map(|claim| claim.name.clone()).collect();
    let search = &*search;
    if nodes.len() < 2 {
        return Vec::new();
    }
    let set: Vec<(&Claim, Cause)> = nodes.iter().map(|claim| (*claim, Cause::Underutilized)).collect();
    // Only the problem is needed, not a good solution.
    let quick = poolwright_solver::Options { work: 1, ..search.options.solver };
    let options =
        PlanOptions { keep_solves: true, baselines: false, solver: quick, ..search.options.clone() };
    // The model adds up prices per hour.
    let by_the_hour = Snapshot { lives: Arc::default(), ..search.without(&set) };
    let asked = plan(&by_the_hour, search.facts.now, &options, stop);
    let stands_for: BTreeMap<&PodKey, (&PodKey, &crate::model::ClaimName)> = asked
        .moved
        .iter()
        .filter_map(|moved| Some((moved.successor.as_ref()?, (&moved.pod, &moved.from))))
        .collect();
    let largest = asked.solves.iter().max_by_key(|solve| solve.pods.iter().map(Vec::len).sum::<usize>());
    let Some(largest) = largest else { return Vec::new() };
    let mut problem = largest.problem.clone();
    if problem.classes.iter().any(|class| class.gpu.is_some()) {
        return Vec::new();
    }
    let classes: Vec<Vec<(&Pod, &crate::model::ClaimName)>> = largest
        .pods
        .iter()
        .map(|keys| {
            let of = |key| {
                let (pod, from) = stands_for.get(key)?;
                Some((search.facts.snapshot.pods.get(*pod)?.as_ref(), *from))
            };
            keys.iter().filter_map(of).collect()
        })
        .collect();
    // The model adds up the prices of nodes, so each node needs its own part of the commitments.
    let paid = commitments::shares(&search.options.commitments, &search.staying);
    let first = problem.existing.len();
    let mut there: Vec<&Claim> = Vec::new();
    for claim in nodes {
        // Nodes with pods that are not in the problem cannot be emptied.
        let of_class = |pods: &Vec<(&Pod, &crate::model::ClaimName)>| {
            pods.iter().filter(|(_, from)| **from == claim.name).count()
        };
        let pods: Vec<(u32, u32)> = (0..)
            .zip(&classes)
            .map(|(at, pods)| (at, of_class(pods) as u32))
            .filter(|(_, count)| *count > 0)
            .collect();
        let asked: u32 = pods.iter().map(|(_, count)| count).sum();
        if asked == 0 || asked as usize != search.facts.work(claim).count() {
            continue;
        }
        let paid = paid.get(&claim.name).copied().unwrap_or_default();
        if let Some(node) = existing_node(search, claim, paid, &problem, pods) {
            problem.existing.push(node);
            there.push(claim);
        }
    }
    if there.len() < 2 {
        return Vec::new();
    }
    put_back(search, &mut problem, &classes, first, &there);
    // Staying nodes keep using commitments, which the problem does not contain.
    let left = commitments::left(&search.options.commitments, &search.staying);
    for (commitment, left) in problem.commitments.iter_mut().zip(left) {
        commitment.left = commitment.left.min(left);
    }
    problem.disruption = DisruptionBudget::default();
    // The other half is for plans of the candidate sets.
    let solution = solve(&problem, &search.options.solver, &mut FirstHalf(stop));
    let Ok(solution) = solution else { return Vec::new() };
    let of = |at: &u32| there.get((*at as usize).checked_sub(first)?).copied();
    let steps = solution.steps.iter().map(|step| step.remove.iter().filter_map(of).collect::<Vec<&Claim>>());
    steps.filter(|set| !set.is_empty()).collect()
}

/// Returns a claim's node in the solver's form. Commitments pay the part `paid` of its price.
fn existing_node(
    search: &Search<'_>,
    claim: &Claim,
    paid: UsdPerHour,
    problem: &Problem,
    pods: Vec<(u32, u32)>,
) -> Option<ExistingNode> {
    let node = search.facts.node(claim)?;
    let price = claim.current_offering().price?;
    let on_node = search.facts.snapshot.pods.on_node(&node.name)?;
    let mut free = node.allocatable.clone();
    free.saturating_sub(&on_node.requests);
    let lasts = u128::try_from(search.lasts(claim).as_secs()).unwrap_or(0).max(1);
    let lost = u128::from(payback::lost(&search.facts, claim, price)) * 3600 / lasts;
    let most = price.micros().saturating_mul(1000);
    let disruption = UsdPerHour::from_micros(u64::try_from(lost).unwrap_or(u64::MAX).min(most));
    let amount = |name: &ResourceName| free.get(name.as_str());
    Some(ExistingNode {
        name: claim.name.0.clone(),
        free: problem.resources.iter().map(amount).collect(),
        removal: Some(Removal { price: price.saturating_sub(paid), disruption, pods }),
        ..ExistingNode::default()
    })
}

/// Places the pods of the added nodes on these nodes, and lets other pods move to them.
fn put_back(
    search: &Search<'_>,
    problem: &mut Problem,
    classes: &[Vec<(&Pod, &crate::model::ClaimName)>],
    first: usize,
    there: &[&Claim],
) {
    let Problem { classes: all, existing, .. } = problem;
    for (at, (class, pods)) in all.iter_mut().zip(classes).enumerate() {
        let here: u32 = existing[first..]
            .iter()
            .filter_map(|node| node.removal.as_ref())
            .flat_map(|removal| &removal.pods)
            .filter(|(class, _)| *class as usize == at)
            .map(|(_, count)| count)
            .sum();
        class.count = class.count.saturating_sub(here);
        let Some((example, _)) = pods.first() else { continue };
        for (index, claim) in there.iter().enumerate() {
            let Some(node) = search.facts.node(claim) else { continue };
            let is_there = existing[first + index]
                .removal
                .as_ref()
                .is_some_and(|removal| removal.pods.iter().any(|(class, _)| *class as usize == at));
            if is_there || rules::admits(&example.spec, &node.labels, &node.taints).is_ok() {
                class.existing.push((first + index) as u32);
            }
        }
    }
}
