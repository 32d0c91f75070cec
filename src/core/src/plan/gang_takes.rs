//! What whole gangs take of limits if their pods need nodes of several kinds, or if rules keep them off the nodes that would hold them.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{ResourceList, UsdPerHour};

use crate::model::PodSpec;
use crate::plan::gang_nodes::{Alike, Takes, most, nodes_for, times};
use crate::rules::gpus::GpuNeed;
use crate::supply::limits::Limits;
use crate::supply::offerings::{PoolOffering, Supply};

/// A node that would hold a pod.
pub(crate) struct HoldingNode {
    /// The index of its pool.
    pub at: usize,
    /// Its offering, as an index into the catalogue of the pool.
    pub offering: usize,
    pub price: UsdPerHour,
    /// The room for pods on it.
    pub room: ResourceList,
}

impl HoldingNode {
    /// Returns a node of an offering; `None` if its price is unknown.
    pub fn of(supply: &Supply<'_>, at: usize, offer: &PoolOffering) -> Option<Self> {
        let room = supply.capacities[offer.capacity].clone();
        Some(Self { at, offering: offer.offering, price: offer.availability.price()?, room })
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.at, self.offering) == (other.at, other.offering)
    }
}

/// Equal pods of a gang.
pub(crate) struct Kind<'p> {
    pub spec: &'p PodSpec,
    /// What one of them asks for, with the MIG instances that it names.
    pub requests: ResourceList,
    /// Its request for MIG instances, if it has one. GPUs are cut for no other kind of pods of the gang.
    pub need: Option<&'p GpuNeed>,
    /// How many of them need a place.
    pub count: u64,
    /// How many of these need a new node, because nodes that are there have no room for them.
    pub least: u64,
    /// Whether each of them may need a node of its own, because of rules about other pods.
    pub is_apart: bool,
    /// The nodes that would hold one.
    pub nodes: Vec<HoldingNode>,
}

/// What a gang would take.
#[derive(Clone, Debug)]
pub(crate) struct Needs {
    /// The limits that have too little for it, each with what it takes of the limit at once.
    pub takes: Takes,
    /// The fewest new nodes that it needs, whatever they cost.
    pub nodes: u64,
    /// The least that these cost in all, in micro-dollars, however many they are.
    pub cost: u64,
    /// The most that its nodes cost in all, on the nodes that the limits are told of.
    pub most_cost: u64,
}

impl Needs {
    /// Returns what the pods of a gang would take; `None` if no change is known to help.
    pub fn of(limits: &Limits, supply: &Supply<'_>, kinds: &[Kind<'_>]) -> Option<Self> {
        let takes = short(limits, supply, kinds)?;
        let all: Vec<&Kind<'_>> = kinds.iter().collect();
        let least = |amount: fn(&Uses) -> u64| {
            let of = |kinds: &[&Kind<'_>]| options(limits, supply, kinds).iter().map(amount).min();
            let apart = all.iter().map(|kind| of(&[*kind]).unwrap_or(0)).fold(0, u64::saturating_add);
            of(&all).map_or(apart, |together| together.min(apart))
        };
        let most = |kinds: &[&Kind<'_>]| nearest(limits, supply, kinds).map_or(0, |uses| uses.most_cost);
        let apart = all.iter().map(|kind| most(&[*kind])).fold(0, u64::saturating_add);
        let most_cost = most(&all).max(apart);
        Some(Self { takes, nodes: least(|uses| uses.nodes), cost: least(|uses| uses.cost), most_cost })
    }
}

/// Returns the limits that have too little for all of these pods, each with what the pods take of it at once if each needs a new node.
/// All of them must be raised. Empty if the limits have enough; `None` if no change is known to help.
pub(crate) fn short(limits: &Limits, supply: &Supply<'_>, kinds: &[Kind<'_>]) -> Option<Takes> {
    let all: Vec<&Kind<'_>> = kinds.iter().collect();
    let together = nearest(limits, supply, &all).map(|uses| uses.short(limits));
    let apart = one_by_one(limits, supply, all);
    let best = together.into_iter().chain(apart).min_by_key(Vec::len)?;
    let is_mixed = !best.is_empty()
        && matches!(kinds, [only] if !only.is_apart && have_enough_mixed(limits, supply, only));
    Some(if is_mixed { Vec::new() } else { best })
}

/// Returns whether the limits have enough for equal pods on full nodes of one offering, with one node of another for the rest.
fn have_enough_mixed(limits: &Limits, supply: &Supply<'_>, kind: &Kind<'_>) -> bool {
    let one = |node: &HoldingNode| {
        let price = Some(node.price);
        let of_one = limits.uses_for(supply, node.at, node.offering, price, kind.need.as_slice());
        (of_one, most(&kind.requests, &node.room).max(1))
    };
    let nodes = kind.nodes.iter().map(one);
    let all: BTreeSet<(Takes, u64)> = nodes.filter(|(of_one, _)| limits.allow(of_one)).collect();
    all.iter().any(|(of_one, holds)| {
        let (full, rest) = (times(of_one, kind.least / holds), kind.least % holds);
        limits.allow(&full)
            && all.iter().filter(|(_, holds)| *holds >= rest).any(|(last, _)| {
                let mut uses: BTreeMap<u32, u64> = full.iter().copied().collect();
                for (limit, amount) in last {
                    let sum = uses.entry(*limit).or_default();
                    *sum = sum.saturating_add(*amount);
                }
                limits.allow(&uses.into_iter().collect::<Takes>())
            })
    })
}

/// Returns the same as [`short`] if the pods of each kind have nodes of their own.
fn one_by_one(limits: &Limits, supply: &Supply<'_>, mut kinds: Vec<&Kind<'_>>) -> Option<Takes> {
    kinds.sort_by_key(|kind| kind.nodes.len());
    let mut left = limits.clone();
    let (mut short, mut takes): (BTreeSet<u32>, BTreeMap<u32, u64>) = (BTreeSet::new(), BTreeMap::new());
    for kind in kinds {
        let uses = nearest(&left, supply, &[kind])?;
        short.extend(left.beyond(&uses.least).into_iter().map(|(limit, _)| limit));
        left.take(&uses.least);
        for (limit, amount) in uses.most {
            let all = takes.entry(limit).or_default();
            *all = all.saturating_add(amount);
        }
    }
    Some(takes.into_iter().filter(|(limit, _)| short.contains(limit)).collect())
}

/// What pods use on nodes of one offering.
struct Uses {
    /// What they use of each limit with the room on nodes that are there.
    least: Takes,
    /// What they use of each limit without it.
    most: Takes,
    /// The number of new nodes with that room.
    nodes: u64,
    /// What these cost, in micro-dollars.
    cost: u64,
    /// What all nodes cost without that room, in micro-dollars.
    most_cost: u64,
}

impl Uses {
    /// Returns the limits that have too little, each with the most that the pods use of it.
    fn short(self, limits: &Limits) -> Takes {
        let beyond: BTreeSet<u32> = limits.beyond(&self.least).into_iter().map(|(limit, _)| limit).collect();
        self.most.into_iter().filter(|(limit, _)| beyond.contains(limit)).collect()
    }
}

/// Returns what the pods use on nodes of one offering: the one that is beyond the fewest limits, and of several the cheapest. `None` if
/// no offering would hold all of them.
fn nearest(limits: &Limits, supply: &Supply<'_>, kinds: &[&Kind<'_>]) -> Option<Uses> {
    let all = options(limits, supply, kinds).into_iter();
    all.min_by_key(|uses| (limits.beyond(&uses.least).len(), uses.cost))
}

/// Returns what the pods use on the nodes of each offering that would hold all of them and has as many in stock.
fn options(limits: &Limits, supply: &Supply<'_>, kinds: &[&Kind<'_>]) -> Vec<Uses> {
    let Some((first, others)) = kinds.split_first() else { return Vec::new() };
    let needs: Vec<&GpuNeed> = kinds.iter().filter_map(|kind| kind.need).collect();
    let is_common =
        |node: &&HoldingNode| others.iter().all(|kind| kind.nodes.iter().any(|other| other.is_like(node)));
    let uses = |node: &HoldingNode| {
        let number = |count: fn(&Kind<'_>) -> u64| {
            let alike: Vec<Alike<'_>> =
                kinds.iter().map(|kind| (kind.spec, kind.requests.clone(), count(kind))).collect();
            nodes_for(&alike, &node.room)
        };
        let (nodes, mut all) = (number(|kind| kind.least)?, number(|kind| kind.count)?);
        if kinds.iter().any(|kind| kind.is_apart) {
            all = kinds.iter().map(|kind| kind.count).fold(0, u64::saturating_add);
        }
        let of_one = limits.uses_for(supply, node.at, node.offering, Some(node.price), &needs);
        let (least, most) = (times(&of_one, nodes), times(&of_one, all));
        let [cost, most_cost] = [nodes, all].map(|count| node.price.micros().saturating_mul(count));
        limits.has_stock(&most).then_some(Uses { least, most, nodes, cost, most_cost })
    };
    first.nodes.iter().filter(is_common).filter_map(uses).collect()
}
