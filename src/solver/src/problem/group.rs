//! Rules over several pods or several nodes.

use poolwright_catalog::UsdPerHour;
use serde::{Deserialize, Serialize};

/// A way to divide nodes: zone, placement group, NVLink domain, instance type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Topology {
    /// For messages: `topology.kubernetes.io/zone`.
    pub name: String,
    /// For messages: the values a node can have.
    pub values: Vec<String>,
}

/// Pods that run all or not at all: every waiting pod ([`super::PodClass::count`]) of every class named is placed, or
/// none is. Pods that run on removable nodes run in any case and are always placed. A class is in at most one gang.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gang {
    /// For messages.
    pub name: String,
    /// Indices into [`super::Problem::classes`], ascending.
    pub classes: Vec<u32>,
    /// Index into [`super::Problem::topologies`]: all pods on nodes with one and the same value of it, and on no node
    /// without one. If the plan places any, those that stay on removable nodes count too: a gang joins its members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<u32>,
}

/// Pods spread evenly over the values of a topology (`topologySpreadConstraints` with `DoNotSchedule`): after placing,
/// no value that was given a pod has more than `max_skew` pods more than the value with fewest. As in Kubernetes, a value
/// that has too many already and is given none is no fault: running `[5, 0]`, two pods may both go to the second. A class
/// is in at most one spread, and in none if it is in a gang.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spread {
    /// For messages.
    pub name: String,
    /// Indices into [`super::Problem::classes`], ascending: the pods counted, together.
    pub classes: Vec<u32>,
    /// Index into [`super::Problem::topologies`].
    pub topology: u32,
    /// At least 1.
    pub max_skew: u32,
    /// With fewer eligible values (`values`, used or not) than this, the least count is taken for zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<u32>,
    /// The eligible values, ascending; the pods may use no node with another value, or with none.
    pub values: Vec<u32>,
    /// Pods that run already and count, one entry per entry of `values`; without those in [`Removal::pods`], which count
    /// where they stay or move to.
    pub running: Vec<u32>,
}

/// Money paid beforehand per hour that pays for whatever is used of it (savings plans, flexible commitments): nodes it
/// covers cost nothing more until it is used up, the rest is paid at their own price. The cost is
/// `max(commitment, use)`; the commitment itself is paid in any case and is not part of a plan's cost.
///
/// Which nodes are covered follows from what is bought: in the order of the discount, price / rate, highest first (equal
/// ones by index), each node uses its rate and costs nothing, until what is left is less than the next node's rate. Of
/// that node the part `left / rate` is covered, nothing is left, and what is paid for it is `price x (rate - left) /
/// rate`, rounded up to the micro-dollar. All nodes after it cost their price. Nodes whose price is below their rate are
/// covered too, in the same order: what is left would be lost otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Commitment {
    /// For messages.
    pub name: String,
    /// What is left of it.
    pub left: UsdPerHour,
    /// What one node uses of it: (index into [`super::Problem::candidates`], discounted rate above zero), ascending. A
    /// candidate is covered by at most one commitment. A node may be covered in part.
    pub rates: Vec<(u32, UsdPerHour)>,
}

/// At most a part of some nodes may be of one kind: `nodes(part) <= at_most_permille / 1000 x nodes(of)`, rounded.
/// Diversification (spot of one type and zone) rounds up, a floor of on-demand (all but so much may be spot) down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeShare {
    /// For messages.
    pub name: String,
    /// Indices into [`super::Problem::candidates`], ascending; each is in `of` too.
    pub part: Vec<u32>,
    /// Indices into [`super::Problem::candidates`], ascending.
    pub of: Vec<u32>,
    /// Thousandths, below 1000.
    pub at_most_permille: u32,
    /// Whether a fraction of a node counts as a whole one.
    pub round_up: bool,
}

/// Every node bought of these candidates could also be another of them: its pods, all together, fit and may use those of at
/// least so many values of a topology, itself included (`minValues`). One that cannot be bought at all (`max_nodes` of
/// zero) or that has no value of the topology does not count; prices, stock beyond zero and limits do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Flexibility {
    /// For messages.
    pub name: String,
    /// Indices into [`super::Problem::candidates`], ascending.
    pub candidates: Vec<u32>,
    /// Index into [`super::Problem::topologies`], such as the instance type.
    pub topology: u32,
    /// How many values.
    pub at_least: u32,
}

/// What may be disturbed at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DisruptionBudget {
    /// Pods moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evictions: Option<u32>,
    /// Nodes removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
}

/// What makes an existing node removable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Removal {
    /// What it costs while it is there; saved when it goes.
    pub price: UsdPerHour,
    /// What removing it costs besides moving its pods, spread over the hours the saving is counted for.
    pub disruption: UsdPerHour,
    /// The pods on it that would have to move: (index into [`super::Problem::classes`], how many), ascending. They are
    /// not part of [`super::PodClass::count`], and what they take is not part of [`super::ExistingNode::free`].
    pub pods: Vec<(u32, u32)>,
}
