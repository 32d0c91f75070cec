//! `NodeResourcesFit` (`LeastAllocated`) and `NodeResourcesBalancedAllocation`, for CPU and memory only. They prefer nodes with
//! much free room, and nodes where the pod balances the use of CPU and memory.

use poolwright_catalog::ResourceName;
use poolwright_core::Pod;

use super::super::cluster::{NodeInfo, Scored};
use super::MOST;

/// Amounts are cut to this, so that their products fit. No real node has as much.
const LARGEST: u64 = 1 << 60;

const RESOURCES: [&str; 2] = [ResourceName::CPU, ResourceName::MEMORY];

pub(super) fn least(pod: &Pod, nodes: &[&NodeInfo]) -> Vec<i64> {
    let own = Scored::of(pod);
    nodes.iter().map(|at| least_of(at, at.scored.plus(own))).collect()
}

fn least_of(at: &NodeInfo, after: Scored) -> i64 {
    let (mut sum, mut weights) = (0, 0);
    for (name, used) in RESOURCES.into_iter().zip([after.cpu, after.memory]) {
        let room = u128::from(at.node.allocatable.get(name));
        if room > 0 {
            let free = room.saturating_sub(u128::from(used));
            sum += (free * MOST as u128 / room) as i64;
            weights += 1;
        }
    }
    if weights == 0 { 0 } else { sum / weights }
}

/// Gives nothing to a pod that requests neither, so that such pods do not all go to one node.
pub(super) fn balanced(pod: &Pod, nodes: &[&NodeInfo]) -> Vec<i64> {
    let own = RESOURCES.map(|name| pod.spec.requests.get(name));
    if own == [0, 0] {
        return Vec::new();
    }
    let score = |at: &&NodeInfo| {
        let room = RESOURCES.map(|name| at.node.allocatable.get(name));
        let before = RESOURCES.map(|name| at.used.get(name));
        let after = [before[0].saturating_add(own[0]), before[1].saturating_add(own[1])];
        MOST / 2 + (MOST / 2 + balance(after, room) - balance(before, room)) / 2
    };
    nodes.iter().map(score).collect()
}

/// Returns `(1 - deviation) * 100`, rounded down. The deviation of two shares is half their difference. A share is at most 1.
fn balance(used: [u64; 2], room: [u64; 2]) -> i64 {
    if room.contains(&0) {
        return MOST;
    }
    let [cpu, memory] = [0, 1].map(|at| u128::from(used[at].min(room[at]).min(LARGEST)));
    let [cpus, memories] = room.map(|amount| u128::from(amount.min(LARGEST)));
    // Half the difference of cpu/cpus and memory/memories, in hundredths.
    let apart = (cpu * memories).abs_diff(memory * cpus) * (MOST as u128);
    MOST - apart.div_ceil(2 * cpus * memories) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_and_memory_used_alike_are_balanced_and_the_deviation_is_half_of_the_difference() {
        assert_eq!(balance([500, 4], [1000, 8]), 100);
        assert_eq!(balance([1000, 0], [1000, 8]), 50);
        // Shares of 1/2 and 1/4: a deviation of 1/8, so 87.5, rounded down.
        assert_eq!(balance([500, 2], [1000, 8]), 87);
        // Requests beyond the capacity count as all of it. A resource with no capacity does not count.
        assert_eq!(balance([2000, 8], [1000, 8]), 100);
        assert_eq!(balance([500, 0], [1000, 0]), 100);
        assert_eq!(balance([u64::MAX, 0], [u64::MAX, u64::MAX]), 50);
    }
}
