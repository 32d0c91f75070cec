//! The problem as the algorithms see it. Equal classes are merged, dominated candidates are dropped, and equal existing
//! nodes are counted together. [`crate::plan`] maps plans back.
//!
//! Every rule of the problem becomes one of these:
//! - **capacity**: `dims` linear resources, [`Class::requests`] against [`Bin::capacity`];
//! - **content**: other rules about pods on one node, [`Rules`]. Only [`content`] reads them. Every subset of an allowed
//!   content is allowed. Bounds may ignore these rules, since that relaxes the problem;
//! - **penalties**: a cost of a pod on some bins besides the node's price, [`Bin::penalties`];
//! - **rows**: sums over nodes with a ceiling, [`Bin::limit_use`] against [`Model::limits`]. Amounts have a sign: a node
//!   may also make room for others, as on-demand nodes do where only a part may be spot. [`Model::rows`] holds the meaning
//!   of each row;
//! - **twins**: a node that a commitment can cover is two bins, one at its price and a free one that uses the
//!   commitment's row. A mixture of both is a node covered in part;
//! - **choices**: pods that are divided over the values of a topology are one class for each value, and
//!   [`Model::choices`] holds the counts that are allowed together ([`crate::choice`]).

mod admission;
mod build;
mod conflicts;
mod content;
mod flexible;
mod groups;
mod meetings;
mod pattern;
mod rows;
mod sets;
#[cfg(test)]
mod tests;

use crate::choice::Choice;
use crate::gpu::{self, Room};
use crate::problem::GpuRequest;
use crate::solution::UnplacedReason;
use crate::stages::Stages;
use crate::units::UNITS;

pub(crate) use conflicts::Conflicts;
pub(crate) use content::Content;
pub(crate) use flexible::{Alternative, Flexible};
pub(crate) use pattern::Pattern;
pub(crate) use rows::{Covering, Row};
pub(crate) use sets::Parties;

/// The value of a count without a ceiling.
pub(crate) const UNLIMITED: u64 = u64::MAX;

/// Pods that are interchangeable for the solver, from one or more classes of the problem.
#[derive(Clone, Debug, Default)]
pub(crate) struct Class {
    /// The requests of one pod.
    pub requests: Vec<u64>,
    /// The number of pods; for a class that a choice divides, the most pods it can have.
    pub demand: u64,
    /// The most such pods on one node; `u32::MAX` when only capacity limits it.
    pub per_node: u32,
    /// The priority. Higher priorities are placed first when not all pods can be placed.
    pub priority: i32,
    /// The value of running one pod, when not all pods of one priority can be placed.
    pub value: u64,
    /// The choice that the class is part of.
    pub choice: Option<u32>,
    /// The class that keeps the count of the pods: itself, unless they are divided over several classes.
    pub owner: u32,
    /// The problem's classes, ascending, with their counts.
    pub members: Vec<(u32, u64)>,
    /// Bins that hold at least one such pod, ascending.
    pub bins: Vec<u32>,
    /// Whether another class may not share a node with it. Pods that exclude each other from a node have `per_node` 1 instead.
    pub keeps_apart: bool,
    /// The party: classes with the same conflicts. Index into [`Model::apart`].
    pub party: u32,
    /// The [`Model::alternatives`] that hold such a pod, as ascending indices.
    pub alternatives: Vec<u32>,
    /// The request for shared or partitioned GPUs.
    pub gpu: Option<GpuRequest>,
}

/// The origin of a bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A candidate of the problem.
    Candidate(u32),
    /// Existing nodes with the same free room and the same admitted classes, ascending.
    Existing(Vec<u32>),
}

/// The rules about pods on one node beyond capacity and `per_node`. Most bins have none: then [`fit_count`] decides
/// alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Whether some of its classes conflict.
    pub conflicts: bool,
    /// The flexibility rules, as indices into [`Model::flexible`]: the pods must fit other nodes too.
    pub flexible: Vec<u32>,
    /// Shared or partitioned GPUs, where `dims` alone do not decide what fits.
    pub gpus: Option<Room>,
}

impl Rules {
    /// Returns whether there are no rules.
    pub fn none(&self) -> bool {
        !self.conflicts && self.flexible.is_empty() && self.gpus.is_none()
    }
}

/// A node type to buy, or a group of equal existing nodes.
#[derive(Clone, Debug)]
pub(crate) struct Bin {
    /// The capacity of one node.
    pub capacity: Vec<u64>,
    /// Price of one node in micro-dollars; 0 for existing nodes and for nodes that a commitment covers.
    pub price: u64,
    /// The price without regard to commitments.
    pub list_price: u64,
    /// The maximum number of nodes.
    pub available: u64,
    /// The amount that one node takes of each row, or gives to it: (row, amount), ascending, no zeros.
    pub limit_use: Vec<(u32, i128)>,
    /// The classes of which at least one pod fits, ascending.
    pub classes: Vec<u32>,
    /// The number of pods of each of `classes` that one empty node holds, regardless of demand.
    pub holds: Vec<u64>,
    /// The hourly cost of one pod of each of `classes` besides the node, in micro-dollars; empty if all are zero.
    pub penalties: Vec<u64>,
    /// The number of its GPUs, when all are shared and unused.
    pub sharing: Option<u64>,
    /// The other rules about its pods.
    pub rules: Rules,
    /// The commitment that covers it, for a twin.
    pub covered: Option<u32>,
    /// The candidate or the existing nodes it stands for.
    pub origin: Origin,
}

/// The canonical problem.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// The number of resources that some pod requests, and of the rows that shared and partitioned GPUs add.
    pub dims: usize,
    /// By dimension: whether it is a row that sums up what fits shared GPUs.
    pub packed: Vec<bool>,
    /// Whether the GPUs of every node are of one kind.
    pub uniform: bool,
    /// The merged classes that fit some bin.
    pub classes: Vec<Class>,
    /// By party: the parties whose classes may not share a node with one of its own, ascending. It contains itself where
    /// two of its classes conflict, or its only class with itself; conflicts within one class are in `per_node`, too.
    pub apart: Vec<Vec<u32>>,
    /// Existing bins first, then those to buy: candidates in the problem's order, each followed by its twin.
    pub bins: Vec<Bin>,
    /// The ceiling of each row: the problem's limits first, then node shares, commitments, and stock that twins share.
    pub limits: Vec<i128>,
    /// The meaning of each row.
    pub rows: Vec<Row>,
    /// The flexibility that some bins require.
    pub flexible: Vec<Flexible>,
    /// The candidates that nodes of flexible bins could also be, including dropped ones.
    pub alternatives: Vec<Alternative>,
    /// The coverage of each commitment, by the problem's index.
    pub commitments: Vec<Covering>,
    /// Pods that are placed together: gangs and spreads.
    pub choices: Vec<Choice>,
    /// The problem's classes that no bin holds, with their counts and the reason.
    pub homeless: Vec<(u32, u64, UnplacedReason)>,
    /// The enabled stages of the search.
    pub stages: Stages,
}

impl Bin {
    /// Returns whether it stands for existing nodes, which cost nothing.
    pub fn is_existing(&self) -> bool {
        matches!(self.origin, Origin::Existing(_))
    }

    /// Returns the position of `class` among its classes.
    pub fn position(&self, class: u32) -> Option<usize> {
        self.classes.binary_search(&class).ok()
    }

    /// Returns the number of pods of `class` that one empty node holds, regardless of demand.
    pub fn holds(&self, class: u32) -> u64 {
        self.position(class).map_or(0, |position| self.holds[position])
    }

    /// Returns the cost of one pod of `class` besides the node, in micro-dollars.
    pub fn penalty(&self, class: u32) -> u64 {
        if self.penalties.is_empty() {
            return 0;
        }
        self.position(class).map_or(0, |position| self.penalties[position])
    }

    /// Returns the value of a pod of the class at `position` here when it is worth `price`: the price minus the penalty.
    /// Both are in value units.
    pub fn value(&self, position: usize, price: u64) -> u64 {
        self.penalties
            .get(position)
            .map_or(price, |penalty| price.saturating_sub(penalty.saturating_mul(UNITS)))
    }

    /// Returns the price of a node with `pods`, including penalties, in micro-dollars.
    pub fn cost(&self, pods: &[(u32, u32)]) -> u64 {
        if self.penalties.is_empty() {
            return self.price;
        }
        pods.iter()
            .map(|(class, count)| self.penalty(*class).saturating_mul(u64::from(*count)))
            .fold(self.price, u64::saturating_add)
    }
}

impl Class {
    /// Returns whether such a pod can replace a larger one regardless of the other pods on the node.
    pub fn is_plain(&self) -> bool {
        self.per_node == u32::MAX && !self.keeps_apart
    }
}

/// Returns how often `requests` fits into `room`; `UNLIMITED` for a pod without requests.
pub(crate) fn fit_count(room: &[u64], requests: &[u64]) -> u64 {
    room.iter()
        .zip(requests)
        .filter_map(|(room, request)| room.checked_div(*request))
        .min()
        .unwrap_or(UNLIMITED)
}

/// Returns whether `requests` fits into `room` at least once.
pub(crate) fn fits(room: &[u64], requests: &[u64]) -> bool {
    room.iter().zip(requests).all(|(room, request)| request <= room)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Model {
    /// Returns whether pods of two different classes may not share a node.
    pub fn keep_apart(&self, one: u32, other: u32) -> bool {
        let (one, other) = (&self.classes[one as usize], &self.classes[other as usize]);
        self.apart[one.party as usize].binary_search(&other.party).is_ok()
    }

    /// Returns the demand of every class.
    pub fn demand(&self) -> Vec<u64> {
        self.classes.iter().map(|class| class.demand).collect()
    }

    /// Returns the number of all pods, by the class that keeps their count.
    pub fn totals(&self) -> Vec<u64> {
        let count = |(index, class): (usize, &Class)| {
            if class.owner as usize == index { class.members.iter().map(|(_, count)| count).sum() } else { 0 }
        };
        self.classes.iter().enumerate().map(count).collect()
    }

    /// Sums pods by class into the classes that keep their count.
    pub fn gathered(&self, placed: &[u64]) -> Vec<u64> {
        let mut totals = vec![0; placed.len()];
        for (class, count) in self.classes.iter().zip(placed) {
            totals[class.owner as usize] += count;
        }
        totals
    }

    /// Returns the most pods that a plan for `totals` has of each class, in any division.
    pub fn most(&self, totals: &[u64]) -> Vec<u64> {
        let mut most = totals.to_vec();
        for choice in self.choices.iter().filter(|choice| choice.is_open()) {
            for (class, count) in choice.ceilings(totals) {
                most[class as usize] = count;
            }
        }
        most
    }

    /// Returns whether a plan for `totals` has open choices.
    pub fn is_open(&self, totals: &[u64]) -> bool {
        let any = |choice: &Choice| choice.parts.iter().any(|part| totals[part.owner as usize] > 0);
        self.choices.iter().any(|choice| choice.is_open() && any(choice))
    }

    /// Returns the common divisor of all prices and penalties, in micro-dollars, of which every cost is a multiple. It is
    /// 1 with commitments, which can cover any part of a price.
    pub fn step(&self) -> u64 {
        if !self.commitments.is_empty() {
            return 1;
        }
        let amounts = self.bins.iter().flat_map(|bin| std::iter::once(&bin.price).chain(&bin.penalties));
        amounts.fold(0, |step, amount| gcd(*amount, step))
    }

    /// Returns whether a pod of `small` may replace one of `large` in `bin` by the rules, regardless of requests.
    pub fn replaces(&self, small: u32, large: u32, bin: &Bin) -> bool {
        let (small, large) = (&self.classes[small as usize], &self.classes[large as usize]);
        small.is_plain()
            && gpu::replaces(small.gpu, large.gpu, self.uniform)
            && (bin.rules.flexible.is_empty()
                || large.alternatives.iter().all(|one| small.alternatives.binary_search(one).is_ok()))
    }
}
