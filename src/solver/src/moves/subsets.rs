//! Tries every combination when few nodes are removable, so that no other choice is better.

use super::residual;
use super::search::Search;
use crate::options::Options;
use crate::stop::StopSignal;

/// The maximum number of removable nodes.
const NODES: usize = 10;
/// The maximum number of pods, including running ones.
const PODS: u64 = 64;

/// Tries all combinations. Returns `Some(bound)` when each was solved exactly, so that the best one found is optimal.
pub(super) fn all(search: &mut Search<'_>, signal: &mut dyn StopSignal) -> Option<u64> {
    let cluster = search.cluster;
    let removable: Vec<u32> = (0..cluster.nodes.len() as u32)
        .filter(|node| cluster.problem.existing[*node as usize].removal.is_some())
        .collect();
    let pods: u64 = cluster.homeless(&removable).iter().sum();
    if removable.len() > NODES || pods > PODS {
        return None;
    }
    let mut settled = removable.iter().all(|node| cluster.nodes[*node as usize].movable);
    let movable: Vec<u32> =
        removable.into_iter().filter(|node| cluster.nodes[*node as usize].movable).collect();
    let options =
        Options { gap_target: 0.0, work: search.options.work >> movable.len().min(6), ..*search.options };
    let mut least: Option<u64> = None;
    for subset in 0..1u32 << movable.len() {
        let gone: Vec<u32> = movable
            .iter()
            .enumerate()
            .filter(|(at, _)| subset >> at & 1 == 1)
            .map(|(_, node)| *node)
            .collect();
        if !cluster.allows(&gone) {
            continue;
        }
        if signal.should_stop() {
            return None;
        }
        match residual::solve(cluster, gone, &[], &|_, _| true, (&options, &search.prices), signal) {
            Ok(target) => {
                let solution = &target.solution;
                settled &= solution.bound >= solution.objective() && solution.unplaced.is_empty();
                let bound = solution.bound.micros();
                least = Some(least.map_or(bound, |least| least.min(bound)));
                search.offer(target, signal);
            }
            Err(_) => settled = false,
        }
    }
    if settled { least } else { None }
}
