//! Chooses the nodes of a plan to remove and plan again: nodes whose pods are worth less than the node costs, and others
//! at random, so that their pods can be combined differently.

use crate::canonical::Model;
use crate::plan::Plan;

/// Returns a well-mixed number (splitmix64).
pub(crate) fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the part of `plan` that stays when nodes of about `share` of its cost are removed, at pods' `prices`. Nodes
/// that cost nothing stay. `turn` varies the choice.
pub(crate) fn kept(model: &Model, plan: &Plan, prices: &[f64], share: f64, turn: u64) -> Plan {
    let mut ranked: Vec<(f64, usize)> = Vec::new();
    let mut total = 0.0;
    for (index, (pattern, count)) in plan.nodes.iter().enumerate() {
        let cost = model.bins[pattern.bin as usize].cost(&pattern.pods) as f64;
        total += cost * *count as f64;
        let worth: f64 =
            pattern.pods.iter().map(|(class, pods)| prices[*class as usize] * f64::from(*pods)).sum();
        let waste = (cost - worth).max(0.0) / cost.max(1.0);
        let noise = mixed(turn ^ mixed(index as u64)) as f64 / u64::MAX as f64;
        // The waste decides first; among nodes with little waste, chance decides.
        ranked.push((waste * (0.5 + noise) + noise * 0.02, index));
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let nodes: Vec<_> = plan.nodes.iter().collect();
    let mut budget = total * share;
    let mut kept = plan.clone();
    for (_, index) in ranked {
        let (pattern, count) = nodes[index];
        let cost = model.bins[pattern.bin as usize].cost(&pattern.pods) as f64;
        if cost <= 0.0 || budget <= 0.0 {
            continue;
        }
        let gone = ((budget / cost).ceil() as u64).clamp(1, *count);
        budget -= cost * gone as f64;
        kept.remove(pattern, gone);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::Pattern;
    use crate::testing::{candidate, class, problem};

    #[test]
    fn the_node_that_holds_least_of_its_price_is_given_up_first() {
        let model = Model::new(&problem(
            vec![class("a", [1000, 1, 0], 20, &[0])],
            vec![candidate("node", 10_000_000, [8000, 64, 0])],
        ));
        let mut plan = Plan::default();
        plan.add(Pattern { bin: 0, pods: vec![(0, 8)] }, 2);
        plan.add(Pattern { bin: 0, pods: vec![(0, 4)] }, 1);
        let kept = kept(&model, &plan, &[1_250_000.0], 0.2, 7);
        assert_eq!(kept.nodes.into_iter().collect::<Vec<_>>(), [(Pattern { bin: 0, pods: vec![(0, 8)] }, 2)]);
    }
}
