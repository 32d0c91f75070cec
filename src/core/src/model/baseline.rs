//! Simpler ways to buy than a plan, for comparison.

use poolwright_catalog::{Usd, UsdPerHour};
use serde::{Deserialize, Serialize};

/// Simpler ways to buy for the pods on new nodes, with the prices, limits, commitments and weights that the plan has. Zero if
/// nothing is bought or baselines are not requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baselines {
    /// Each pod on the cheapest node that fits it, without any other pod.
    pub one_pod_per_node: Baseline,
    /// First-fit decreasing, with each new node the cheapest that fits its pods.
    pub first_fit: Baseline,
}

/// What a simpler way to buy costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The prices of its nodes, minus the part that commitments pay.
    pub cost: UsdPerHour,
    /// The counted cost of interruptions, as that of a plan.
    pub risk: UsdPerHour,
    /// The cost over time, if the plan was chosen by it.
    pub over_time: Option<Usd>,
    /// The pods on new nodes of the plan that it cannot place. If there are any, its costs are not those of the same pods.
    pub unplaced: usize,
    /// The units of buffers on new nodes of the plan that it cannot place. Its costs are then not those of the same room.
    #[serde(default)]
    pub units_unplaced: usize,
    /// Whether its nodes leave the cloud less choice than `minValues` of a pool asks for, which the plan keeps.
    pub breaks_min_values: bool,
    /// Whether its nodes break a rule of a pool on spot nodes, which the plan keeps.
    #[serde(default)]
    pub breaks_spot_rules: bool,
    /// Whether it leaves more pods to their further choices, such as pools of a lower weight, than the plan does. The highest priority
    /// in which the two differ decides.
    #[serde(default)]
    pub serves_later: bool,
    /// Whether this holds only for pods of a higher priority: it leaves no more pods in all to their further choices.
    #[serde(default)]
    pub defers_priorities: bool,
    /// The number of its nodes.
    #[serde(default)]
    pub nodes: u64,
    /// Whether its nodes may exceed a limit of a namespace, which the plan keeps. Then its costs are no measure of the plan.
    #[serde(default)]
    pub ignores_namespace_limits: bool,
}
