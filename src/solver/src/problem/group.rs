//! Rules over several pods or several nodes.

use poolwright_catalog::UsdPerHour;
use serde::{Deserialize, Serialize};

/// A way to divide nodes: zone, placement group, NVLink domain, instance type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Topology {
    /// Its name for messages, such as `topology.kubernetes.io/zone`.
    pub name: String,
    /// The values of nodes, for messages.
    pub values: Vec<String>,
}

/// Pods that run together or not at all. The plan places every waiting pod ([`super::PodClass::count`]) of every
/// class of the gang, or none of them. Pods that already run on removable nodes are always placed. A class is in at
/// most one gang.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gang {
    /// Its name, for messages.
    pub name: String,
    /// Indices into [`super::Problem::classes`], ascending.
    pub classes: Vec<u32>,
    /// Index into [`super::Problem::topologies`]. All pods of the gang are on nodes with the same value of this
    /// topology, and on no node without one. If the plan places any pod, the members that stay on removable nodes
    /// count too: a gang joins its members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<u32>,
}

/// Pods that are spread evenly over the values of a topology (`topologySpreadConstraints` with `DoNotSchedule`). No
/// value that gets a pod may have more than `max_skew` pods more than the value with the fewest pods. As in
/// Kubernetes, a value that already has too many pods and gets none is no fault: with `[5, 0]` running, two more pods
/// may both go to the second value. A class is in at most one spread, and in none if it is in a gang.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spread {
    /// Its name, for messages.
    pub name: String,
    /// Indices into [`super::Problem::classes`], ascending. Their pods count together.
    pub classes: Vec<u32>,
    /// Index into [`super::Problem::topologies`].
    pub topology: u32,
    /// The largest allowed difference, at least 1.
    pub max_skew: u32,
    /// With fewer eligible values (`values`, used or not) than this, the least count is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<u32>,
    /// The eligible values, ascending. The pods may use no node with another value or without one.
    pub values: Vec<u32>,
    /// The number of running pods that count, one entry per entry of `values`. The pods in [`Removal::pods`] are not
    /// included, since they count where they stay or where they move.
    pub running: Vec<u32>,
}

/// Money per hour that is paid beforehand (savings plans, flexible commitments). Covered nodes cost nothing more until it
/// is used up. Other nodes cost their own price. The total is `max(commitment, use)`. The commitment itself is paid in
/// any case and is not part of a plan's cost.
///
/// The bought nodes decide which nodes are covered. They are ordered by their discount, price / rate, the highest
/// first and equal ones by index. Each node in turn uses its rate and costs nothing, until less is left than the next
/// node's rate. The part `left / rate` of that node is covered. It costs `price x (rate - left) / rate`, rounded up
/// to the micro-dollar, and nothing is left. All nodes after it cost their price. Nodes whose price is below their
/// rate are covered too, in the same order, since the rest of the commitment would be lost otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Commitment {
    /// Its name, for messages.
    pub name: String,
    /// The part that is left.
    pub left: UsdPerHour,
    /// The use by one node, as ascending pairs (index into [`super::Problem::candidates`], discounted rate above zero).
    /// At most one commitment covers a candidate. It may cover a node in part.
    pub rates: Vec<(u32, UsdPerHour)>,
}

/// A ceiling on the part of some nodes that may be of one kind: `nodes(part) <= at_most_permille / 1000 x nodes(of)`,
/// rounded. Bought and running nodes count together. Diversification (spot of one type and zone) rounds up. A floor of
/// on-demand (a ceiling on spot) rounds down.
///
/// As with a [`Spread`], an excess of the running nodes is no fault. But no plan enlarges it: then
/// `bought(part) <= at_most_permille / 1000 x bought(of)`, rounded down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeShare {
    /// Its name, for messages.
    pub name: String,
    /// The candidates of this kind: indices into [`super::Problem::candidates`], ascending. Each is in `of` too.
    pub part: Vec<u32>,
    /// Indices into [`super::Problem::candidates`], ascending.
    pub of: Vec<u32>,
    /// The largest part in thousandths, below 1000.
    pub at_most_permille: u32,
    /// Whether a fraction of a node counts as a whole one.
    pub round_up: bool,
    /// The number of running nodes of this kind, whatever the plan removes.
    #[serde(default)]
    pub running_part: u32,
    /// The number of all running nodes that count, at least `running_part`.
    #[serde(default)]
    pub running_of: u32,
}

impl NodeShare {
    /// Returns by how much the running nodes leave the part below its ceiling, in thousandths of a node and with the
    /// rounding. It is zero if they exceed the ceiling.
    pub(crate) fn spare(&self) -> i128 {
        let rounding = if self.round_up { 999 } else { 0 };
        let most = i128::from(self.at_most_permille) * i128::from(self.running_of) + rounding;
        (most - 1000 * i128::from(self.running_part)).max(0)
    }
}

/// Bought nodes of these candidates must be replaceable by others of them (`minValues`). All pods of the node
/// together must fit, and be allowed on, candidates with at least `at_least` different values of a topology,
/// including its own. A candidate with `max_nodes` of zero or without a value of the topology does not count. Prices,
/// other stock and limits do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Flexibility {
    /// Its name, for messages.
    pub name: String,
    /// Indices into [`super::Problem::candidates`], ascending.
    pub candidates: Vec<u32>,
    /// Index into [`super::Problem::topologies`], such as that of the instance type.
    pub topology: u32,
    /// The minimum number of values.
    pub at_least: u32,
}

/// Limits on disruption by a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DisruptionBudget {
    /// The most pods that it may move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evictions: Option<u32>,
    /// The most nodes that it may remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
}

/// The savings and costs of removing an existing node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Removal {
    /// The node's price, which its removal saves.
    pub price: UsdPerHour,
    /// The cost of removing it besides moving its pods, spread over the hours for which the saving counts.
    pub disruption: UsdPerHour,
    /// The pods on it that would have to move, as ascending pairs (index into [`super::Problem::classes`], count).
    /// They are not part of [`super::PodClass::count`], and their requests are not part of
    /// [`super::ExistingNode::free`].
    pub pods: Vec<(u32, u32)>,
}
