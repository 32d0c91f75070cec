//! The problem as the algorithms see it. Equal classes are merged, candidates that cannot matter are dropped, and equal
//! existing nodes are counted together. [`crate::plan`] maps plans back.
//!
//! Every rule of the problem becomes one of these:
//! - **capacity**: `dims` linear resources, [`Class::requests`] against [`Bin::capacity`];
//! - **content**: other rules about pods on one node, [`Rules`]. Only [`content`] reads them. Every subset of an allowed
//!   content is allowed. Bounds may ignore these rules, since that relaxes the problem;
//! - **penalties**: a cost of a pod on some bins besides the node's price, [`Bin::penalties`];
//! - **rows**: sums over nodes with a ceiling, [`Bin::limit_use`] against [`Model::limits`]. Amounts have a sign: a node
//!   may also make room for others, as on-demand nodes do where only a part may be spot. [`Model::rows`] says what a
//!   row stands for;
//! - **twins**: a node that a commitment can cover is two bins, one at its price and a free one that takes of the
//!   commitment's row. A mixture of both is a node covered in part;
//! - **choices**: pods that are divided over the values of a topology are one class for each value, and
//!   [`Model::choices`] says which counts go together ([`crate::choice`]).

mod admission;
mod build;
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

pub(crate) use build::conflicts;
pub(crate) use content::Content;
pub(crate) use flexible::{Alternative, Flexible};
pub(crate) use pattern::Pattern;
pub(crate) use rows::{Covering, Row};
pub(crate) use sets::Parties;

/// No ceiling on a count.
pub(crate) const UNLIMITED: u64 = u64::MAX;

/// Pods that are interchangeable to the solver; one or more classes of the problem.
#[derive(Clone, Debug, Default)]
pub(crate) struct Class {
    /// What one pod takes.
    pub requests: Vec<u64>,
    /// How many pods there are; of a class that a choice divides, how many there can be at most.
    pub demand: u64,
    /// At most this many on one node; `u32::MAX` when only capacity bounds it.
    pub per_node: u32,
    /// Higher is placed first when not all can be placed.
    pub priority: i32,
    /// What running one pod is worth, when not all of one priority can be placed.
    pub value: u64,
    /// The choice it is part of.
    pub choice: Option<u32>,
    /// The class that keeps the count of the pods: itself, unless they are divided over several classes.
    pub owner: u32,
    /// The problem's classes, ascending, with their counts.
    pub members: Vec<(u32, u64)>,
    /// Bins that hold at least one such pod, ascending.
    pub bins: Vec<u32>,
    /// Classes whose pods may not share a node with one of these, ascending. Pods that may not meet their like have
    /// `per_node` 1 instead.
    pub conflicts: Vec<u32>,
    /// Those that keep away from the same others: index into [`Model::apart`].
    pub party: u32,
    /// Indices into [`Model::alternatives`] that hold such a pod, ascending.
    pub alternatives: Vec<u32>,
    /// What one pod wants of shared or cut GPUs.
    pub gpu: Option<GpuRequest>,
}

/// Where a bin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A candidate of the problem.
    Candidate(u32),
    /// Existing nodes with the same free room and the same admitted classes, ascending.
    Existing(Vec<u32>),
}

/// What binds the content of a node beyond capacity and ceilings of single classes. Nothing, for most bins: then
/// [`fit_count`] is all there is to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Some of its classes may not meet.
    pub conflicts: bool,
    /// Indices into [`Model::flexible`]: the content must fit other nodes too.
    pub flexible: Vec<u32>,
    /// GPUs that are shared or cut, where `dims` do not tell what fits them.
    pub gpus: Option<Room>,
}

impl Rules {
    /// Whether there are none.
    pub fn none(&self) -> bool {
        !self.conflicts && self.flexible.is_empty() && self.gpus.is_none()
    }
}

/// A kind of node: to buy, or there already.
#[derive(Clone, Debug)]
pub(crate) struct Bin {
    /// Room on one node.
    pub capacity: Vec<u64>,
    /// Price of one node in micro-dollars; 0 for existing nodes and for nodes that a commitment covers.
    pub price: u64,
    /// The same whether or not a commitment covers it.
    pub list_price: u64,
    /// How many there can be.
    pub available: u64,
    /// What one node takes of each row, or gives to it: (row, amount), ascending, no zeros.
    pub limit_use: Vec<(u32, i128)>,
    /// Classes of which at least one pod fits, ascending.
    pub classes: Vec<u32>,
    /// How many pods of each of `classes` one empty node holds, demand aside.
    pub holds: Vec<u64>,
    /// What one pod of each of `classes` is counted to cost per hour besides the node, in micro-dollars; empty where
    /// nothing is.
    pub penalties: Vec<u64>,
    /// How many GPUs it has, when all are shared and untouched.
    pub sharing: Option<u64>,
    /// What else binds its content.
    pub rules: Rules,
    /// The commitment that covers it, for a twin.
    pub covered: Option<u32>,
    /// What it stands for.
    pub origin: Origin,
}

/// The canonical problem.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// Number of resources that some pod requests, and of the rows that shared and cut GPUs add to them.
    pub dims: usize,
    /// By dimension: whether it is a row that sums up what fits shared GPUs.
    pub packed: Vec<bool>,
    /// Whether the GPUs of every node are of one kind.
    pub uniform: bool,
    /// Merged classes that fit somewhere.
    pub classes: Vec<Class>,
    /// By party: the parties whose classes may not share a node with one of its own, ascending. Its own is among them where
    /// two of its classes may not meet; each class with itself is what `per_node` says.
    pub apart: Vec<Vec<u32>>,
    /// Existing bins first, then those to buy; candidates in the problem's order, each followed by its twin.
    pub bins: Vec<Bin>,
    /// What each row has: the problem's limits first, then shares, commitments, and stock that twins have in common.
    pub limits: Vec<i128>,
    /// What each row stands for.
    pub rows: Vec<Row>,
    /// The flexibility that some bins must have.
    pub flexible: Vec<Flexible>,
    /// Candidates that the nodes of flexible bins could also be, dropped ones included.
    pub alternatives: Vec<Alternative>,
    /// What commitments cover, by index of the problem's.
    pub commitments: Vec<Covering>,
    /// Pods that are placed together: gangs and spreads.
    pub choices: Vec<Choice>,
    /// The problem's classes that no bin holds, with their counts and why.
    pub homeless: Vec<(u32, u64, UnplacedReason)>,
    /// The parts of the search that are on.
    pub stages: Stages,
}

impl Bin {
    /// Whether using it is free.
    pub fn is_existing(&self) -> bool {
        matches!(self.origin, Origin::Existing(_))
    }

    /// Where `class` is among its classes.
    pub fn position(&self, class: u32) -> Option<usize> {
        self.classes.binary_search(&class).ok()
    }

    /// How many pods of `class` one empty node holds, demand aside.
    pub fn holds(&self, class: u32) -> u64 {
        self.position(class).map_or(0, |position| self.holds[position])
    }

    /// What one pod of `class` costs besides, in micro-dollars.
    pub fn penalty(&self, class: u32) -> u64 {
        if self.penalties.is_empty() {
            return 0;
        }
        self.position(class).map_or(0, |position| self.penalties[position])
    }

    /// What a pod of the class at `position` adds to a node here when it is worth `price`: its penalty is taken off.
    /// Both in value units.
    pub fn value(&self, position: usize, price: u64) -> u64 {
        self.penalties
            .get(position)
            .map_or(price, |penalty| price.saturating_sub(penalty.saturating_mul(UNITS)))
    }

    /// What a node with `pods` costs by `price` and penalties, in micro-dollars.
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
    /// Whether such a pod can take the place of a larger one whatever else is on the node.
    pub fn is_plain(&self) -> bool {
        self.per_node == u32::MAX && self.conflicts.is_empty()
    }
}

/// How often `requests` fits into `room`; `UNLIMITED` for a pod that requests nothing.
pub(crate) fn fit_count(room: &[u64], requests: &[u64]) -> u64 {
    room.iter()
        .zip(requests)
        .filter_map(|(room, request)| room.checked_div(*request))
        .min()
        .unwrap_or(UNLIMITED)
}

/// Whether `requests` fits into `room` at least once.
pub(crate) fn fits(room: &[u64], requests: &[u64]) -> bool {
    room.iter().zip(requests).all(|(room, request)| request <= room)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Model {
    /// Whether pods of two different classes may not share a node.
    pub fn keep_apart(&self, one: u32, other: u32) -> bool {
        let (one, other) = (&self.classes[one as usize], &self.classes[other as usize]);
        self.apart[one.party as usize].binary_search(&other.party).is_ok()
    }

    /// Demand of every class.
    pub fn demand(&self) -> Vec<u64> {
        self.classes.iter().map(|class| class.demand).collect()
    }

    /// All pods, by the class that keeps their count.
    pub fn totals(&self) -> Vec<u64> {
        let count = |(index, class): (usize, &Class)| {
            if class.owner as usize == index { class.members.iter().map(|(_, count)| count).sum() } else { 0 }
        };
        self.classes.iter().enumerate().map(count).collect()
    }

    /// Pods by class, counted where their count is kept.
    pub fn gathered(&self, placed: &[u64]) -> Vec<u64> {
        let mut totals = vec![0; placed.len()];
        for (class, count) in self.classes.iter().zip(placed) {
            totals[class.owner as usize] += count;
        }
        totals
    }

    /// The most pods that a plan for `totals` has of each class, however choices are made.
    pub fn most(&self, totals: &[u64]) -> Vec<u64> {
        let mut most = totals.to_vec();
        for choice in self.choices.iter().filter(|choice| choice.is_open()) {
            for (class, count) in choice.ceilings(totals) {
                most[class as usize] = count;
            }
        }
        most
    }

    /// Whether a plan for `totals` leaves anything to choose.
    pub fn is_open(&self, totals: &[u64]) -> bool {
        let any = |choice: &Choice| choice.parts.iter().any(|part| totals[part.owner as usize] > 0);
        self.choices.iter().any(|choice| choice.is_open() && any(choice))
    }

    /// What every cost is a multiple of, in micro-dollars: the common divisor of prices and penalties. A commitment can
    /// cover any part of a price.
    pub fn step(&self) -> u64 {
        if !self.commitments.is_empty() {
            return 1;
        }
        let amounts = self.bins.iter().flat_map(|bin| std::iter::once(&bin.price).chain(&bin.penalties));
        amounts.fold(0, |step, amount| gcd(*amount, step))
    }

    /// Whether a pod of `small` may stand in the place of one of `large` in `bin`, as far as rules go: requests aside.
    pub fn replaces(&self, small: u32, large: u32, bin: &Bin) -> bool {
        let (small, large) = (&self.classes[small as usize], &self.classes[large as usize]);
        small.is_plain()
            && gpu::replaces(small.gpu, large.gpu, self.uniform)
            && (bin.rules.flexible.is_empty()
                || large.alternatives.iter().all(|one| small.alternatives.binary_search(one).is_ok()))
    }
}
