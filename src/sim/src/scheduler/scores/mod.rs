//! Which of the nodes that take a pod is the best: the score plugins of a kube-scheduler's default profile, each with its
//! weight. One plugin, one file. `ImageLocality` is left out: nobody knows here which images a node has.
//!
//! Everything is an integer. Where the kube-scheduler calculates with floating-point numbers, the exact value is taken here
//! and rounded as it rounds: down, but for the sum of a topology spread, which goes to the nearest. Its own value can be
//! one less where the exact one is an integer and its numbers come out a little below (100 × 29/100 is 28).

mod allocation;
mod logarithm;
mod node_affinity;
mod pod_affinity;
mod spread;
mod taints;

use super::attempt::Attempt;
use super::cluster::{Cluster, NodeInfo};

/// The most that a plugin gives.
const MOST: i64 = 100;

/// The score of each node, in their order.
pub(super) fn scores(cluster: &Cluster, attempt: &Attempt<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    let weighted = [
        (3, taints::scores(attempt, nodes)),
        (2, node_affinity::scores(attempt, nodes)),
        (1, allocation::least(attempt.pod, nodes)),
        (2, spread::scores(cluster, attempt, nodes)),
        (2, pod_affinity::scores(cluster, attempt.pod, nodes)),
        (1, allocation::balanced(attempt.pod, nodes)),
    ];
    let mut sums = vec![0; nodes.len()];
    for (weight, scores) in weighted {
        // A plugin that has nothing to say gives nothing.
        for (sum, score) in sums.iter_mut().zip(scores) {
            *sum += weight * score;
        }
    }
    sums
}

/// Scales scores so that the largest is 100 (`DefaultNormalizeScore`); upside down where less is better.
fn normalize(scores: &mut [i64], less_is_better: bool) {
    let largest = scores.iter().copied().max().unwrap_or(0);
    for score in scores {
        let share = if largest == 0 { 0 } else { MOST * *score / largest };
        *score = if less_is_better { MOST - share } else { share };
    }
}
