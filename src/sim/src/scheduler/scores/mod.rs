//! The score plugins of the default profile with their weights, one file each. `ImageLocality` is left out, because the model has
//! no images.
//!
//! All scores are integers. Where the kube-scheduler uses floating-point numbers, this computes the exact value and rounds it the
//! same way: down, except for the sum of a topology spread, which is rounded to the nearest. The kube-scheduler's score can be
//! one lower if the exact value is an integer and its own is slightly below (100 × 29/100 is 28).

mod allocation;
mod logarithm;
mod node_affinity;
mod pod_affinity;
mod spread;
mod taints;

use super::attempt::Attempt;
use super::cluster::{Cluster, NodeInfo};

/// The highest score of a plugin.
const MOST: i64 = 100;

/// Returns the score of each node, in order.
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
        // A plugin without an opinion adds nothing.
        for (sum, score) in sums.iter_mut().zip(scores) {
            *sum += weight * score;
        }
    }
    sums
}

/// Scales scores so that the highest is 100 (`DefaultNormalizeScore`). Inverts them if less is better.
fn normalize(scores: &mut [i64], less_is_better: bool) {
    let largest = scores.iter().copied().max().unwrap_or(0);
    for score in scores {
        let share = if largest == 0 { 0 } else { MOST * *score / largest };
        *score = if less_is_better { MOST - share } else { share };
    }
}
