//! Violations of a plan, with messages.

use poolwright_catalog::{ResourceName, UsdPerHour};

use super::gpu_fault::GpuFault;
use super::step_fault::StepFault;
use super::view::NodeRef;

/// A violation of a plan. No node may be bought by a plan with one. Each is a bug of the solver, except [`Self::Undecided`], which says
/// nothing about the plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The problem is malformed, so no plan can be checked against it.
    #[error("the problem is malformed: {0}")]
    BadProblem(String),
    /// An index does not exist.
    #[error("{list} entry {position} names {what} number {index}, which does not exist")]
    UnknownIndex {
        /// The list of the plan.
        list: &'static str,
        /// The entry.
        position: usize,
        /// What the index should name.
        what: &'static str,
        /// The index.
        index: u32,
    },
    /// A list is not strictly ascending: an entry is out of order or a duplicate.
    #[error("{list} entry {position} is out of order or a duplicate")]
    OutOfOrder {
        /// The list of the plan.
        list: &'static str,
        /// The entry.
        position: usize,
    },
    /// A group of nodes, a node's pod list or a count is empty.
    #[error("{list} entry {position} is empty: nothing may be bought or left out for zero pods")]
    Empty {
        /// The list of the plan.
        list: &'static str,
        /// The entry.
        position: usize,
    },
    /// Pods of a class are on a kind of node they may not use.
    #[error("pods of class `{class}` may not use {node}")]
    NotAdmitted {
        /// The class's name.
        class: String,
        /// The node.
        node: NodeRef,
    },
    /// A node has more pods than it holds.
    #[error(
        "{node} holds {} of {resource}, but its pods take {}",
        resource.quantity(*room),
        match u64::try_from(*used) { Ok(used) => resource.quantity(used), Err(_) => used.to_string() }
    )]
    OverCapacity {
        /// The node.
        node: NodeRef,
        /// The resource.
        resource: ResourceName,
        /// The sum of the pods' requests.
        used: u128,
        /// The room on the node.
        room: u64,
    },
    /// A node has more pods of a class than the class allows.
    #[error("{node} has {count} pods of class `{class}`, which allows {ceiling} on one node")]
    TooManyPerNode {
        /// The node.
        node: NodeRef,
        /// The class's name.
        class: String,
        /// The number of pods.
        count: u32,
        /// The maximum number.
        ceiling: u32,
    },
    /// The plan buys more nodes of a candidate than there are.
    #[error("{count} nodes of `{candidate}` are bought, but at most {available} can be")]
    TooManyNodes {
        /// The candidate's name.
        candidate: String,
        /// The number of bought nodes.
        count: u64,
        /// The number of available nodes.
        available: u32,
    },
    /// The plan exceeds a limit.
    #[error("limit `{limit}` has {bound} left, but the plan takes {used}")]
    OverLimit {
        /// The limit's name.
        limit: String,
        /// The use by the plan.
        used: u128,
        /// The rest of the limit.
        bound: u64,
    },
    /// The placed and the left-out pods do not add up to the demand.
    #[error("class `{class}` has {wanted} pods, but {placed} are placed and {unplaced} left out")]
    WrongCount {
        /// The class's name.
        class: String,
        /// The number of pods: waiting pods and pods of removed nodes.
        wanted: u64,
        /// The number of pods that the plan places.
        placed: u64,
        /// The number of pods that the plan states as left out.
        unplaced: u64,
    },
    /// The cost is not the sum of the prices.
    #[error("the plan says it costs {said} USD/h, but its nodes cost {sum} USD/h")]
    WrongCost {
        /// The stated cost.
        said: UsdPerHour,
        /// The sum of the prices.
        sum: UsdPerHour,
    },
    /// The lower bound is above the cost.
    #[error("the plan's lower bound of {bound} USD/h is above its cost of {cost} USD/h")]
    BoundAboveCost {
        /// The bound.
        bound: UsdPerHour,
        /// The cost and the charges.
        cost: UsdPerHour,
    },
    /// A list has another length than the list of the problem that it belongs to.
    #[error("{list} has {got} entries where the problem has {want}")]
    WrongLength {
        /// The list of the plan.
        list: &'static str,
        /// Its length.
        got: usize,
        /// The length it must have.
        want: usize,
    },
    /// The plan leaves out pods because of a group that they are not in.
    #[error("class `{class}` is said to be left out because of `{group}`, which it is not in")]
    WrongReason {
        /// The class's name.
        class: String,
        /// The gang or spread.
        group: String,
    },
    /// Two classes in conflict share a node.
    #[error("{node} has pods of classes `{first}` and `{second}`, which may not share a node")]
    Conflict {
        /// The node.
        node: NodeRef,
        /// A class.
        first: String,
        /// The other.
        second: String,
    },
    /// Two pods with the same port share a node.
    #[error("{node} has two pods, of classes `{first}` and `{second}`, that use port {port}")]
    SamePort {
        /// The node.
        node: NodeRef,
        /// A class.
        first: String,
        /// The other, or the same.
        second: String,
        /// The port.
        port: u32,
    },
    /// Too many of the nodes are of one kind.
    #[error("node share `{share}`: {part} of {of} nodes are of its part, but at most {most} may be")]
    OverShare {
        /// The share's name.
        share: String,
        /// The number of nodes of the part.
        part: u64,
        /// The number of all nodes.
        of: u64,
        /// The maximum for the part.
        most: u64,
    },
    /// A node is not replaceable by as many other types as it must be.
    #[error(
        "{node} could be of {values} values of `{topology}`, but flexibility `{flexibility}` asks for {at_least}"
    )]
    Inflexible {
        /// The node.
        node: NodeRef,
        /// The rule's name.
        flexibility: String,
        /// The topology's name.
        topology: String,
        /// The number of values.
        values: u32,
        /// The required number.
        at_least: u32,
    },
    /// Nobody knows whether a node is replaceable by as many other types as it must be. The plan may be right.
    #[error(
        "the checker could not decide in its steps whether {node} could be of the {at_least} values of `{topology}` that flexibility \
         `{flexibility}` asks for: {values} are known, and the GPUs of {undecided} more may hold its pods"
    )]
    Undecided {
        /// The node.
        node: NodeRef,
        /// The rule's name.
        flexibility: String,
        /// The topology's name.
        topology: String,
        /// The number of values that are known.
        values: u32,
        /// The number of values that nobody knows about.
        undecided: u32,
        /// The required number.
        at_least: u32,
    },
    /// The stated use of a commitment is wrong.
    #[error(
        "the plan says it uses {said} USD/h of commitment `{commitment}`, but its nodes use {used} USD/h"
    )]
    WrongCommitmentUse {
        /// The commitment's name.
        commitment: String,
        /// The stated use.
        said: UsdPerHour,
        /// The actual use.
        used: UsdPerHour,
    },
    /// A stated charge is wrong.
    #[error("the plan says it is charged {said} USD/h for {what}, but it is {sum} USD/h")]
    WrongCharge {
        /// The charge.
        what: &'static str,
        /// The stated charge.
        said: UsdPerHour,
        /// The actual charge.
        sum: UsdPerHour,
    },
    /// A gang is placed in part.
    #[error(
        "gang `{gang}` runs all or not at all, but {unplaced} of its {waiting} waiting pods are left out"
    )]
    GangInPart {
        /// The gang's name.
        gang: String,
        /// The number of its pods that are left out.
        unplaced: u64,
        /// The number of its waiting pods.
        waiting: u64,
    },
    /// A gang is in two domains.
    #[error("gang `{gang}` must be within one `{topology}`, but has pods in `{first}` and in `{second}`")]
    GangApart {
        /// The gang's name.
        gang: String,
        /// The topology's name.
        topology: String,
        /// A value.
        first: String,
        /// Another.
        second: String,
    },
    /// Pods of a gang or spread are on a node without a value of its topology.
    #[error("{node} has pods of `{group}`, but no value of `{topology}`")]
    NoDomain {
        /// The node.
        node: NodeRef,
        /// The gang or spread.
        group: String,
        /// The topology's name.
        topology: String,
    },
    /// Pods of a spread are in a value that is not eligible.
    #[error("{node} has pods of spread `{spread}`, but `{value}` is not one of its values")]
    NotEligible {
        /// The node.
        node: NodeRef,
        /// The spread's name.
        spread: String,
        /// The node's value.
        value: String,
    },
    /// A spread is uneven.
    #[error(
        "spread `{spread}` has {count} pods in `{value}` where the least is {least}, which is over its skew of {skew}"
    )]
    Skewed {
        /// The spread's name.
        spread: String,
        /// The value with too many.
        value: String,
        /// The number of pods.
        count: u64,
        /// The lowest count that matters.
        least: u64,
        /// The allowed difference.
        skew: u32,
    },
    /// The layout of a node's GPUs is wrong.
    #[error("{node}: {fault}")]
    Gpu {
        /// The node.
        node: NodeRef,
        /// The fault.
        fault: GpuFault,
    },
    /// The plan removes a node that is not removable.
    #[error("existing node `{node}` is removed, but it is not removable")]
    NotRemovable {
        /// The node's name.
        node: String,
    },
    /// The plan removes a node and places pods on it.
    #[error("existing node `{node}` is removed, but pods are placed on it")]
    RemovedAndUsed {
        /// The node's name.
        node: String,
    },
    /// The plan exceeds the disruption budget.
    #[error("the plan takes {used} {what}, but the disruption budget is {budget}")]
    OverBudget {
        /// Evictions or nodes removed.
        what: &'static str,
        /// The number in the plan.
        used: u64,
        /// The allowed number.
        budget: u32,
    },
    /// The plan leaves out running pods.
    #[error(
        "class `{class}` has {unplaced} pods left out, but only {waiting} wait: pods that run would be lost"
    )]
    RunningLeftOut {
        /// The class's name.
        class: String,
        /// The number of pods left out.
        unplaced: u64,
        /// The number of waiting pods.
        waiting: u32,
    },
    /// A step is impossible, or the steps do not lead to the plan.
    #[error("{0}")]
    Step(StepFault),
}
