//! The inputs for the choice of places, and the lessons from earlier attempts.

use crate::demand::volumes::Volumes;
use crate::model::plan::PlannedClaim;
use crate::model::relaxed::PreferencePolicy;
use crate::model::{ObjectKey, Operator, PlanOptions, Pod, PodKey, Requirement, Snapshot};
use crate::plan::groups::IncompleteGang;
use crate::plan::left_by::LeftBy;
use crate::plan::pending::PendingPod;
use crate::plan::place::topology::relations::Relations;
use crate::rules::colocation::Colocation;
use crate::rules::gpus::GpuNeed;
use crate::rules::pin::Pin;
use crate::supply::daemonsets::DaemonSets;
use crate::supply::limits::Limits;
use crate::supply::offerings::{PoolOffering, Supply};
use crate::supply::rooms::Rooms;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// The lessons from earlier attempts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lessons {
    /// Pins that failed, by pod, with the reason.
    pub bans: BTreeMap<PodKey, BTreeMap<Pin, LeftBy>>,
    /// Domains in which an earlier attempt had new nodes that it did not expect there, with their topology key. They exist even if no
    /// pod is pinned to them.
    pub opened: BTreeSet<(String, String)>,
    /// Domains that pods were pinned to and in which nothing could be bought, with their topology key. Without nodes, they do not
    /// exist for spread constraints.
    pub closed: BTreeSet<(String, String)>,
    /// How many domains without nodes each spread constraint leaves out, if it can do without so many.
    pub fewer_domains: usize,
    /// The only domains without nodes that count, for spread constraints that leave out all others.
    pub only: BTreeMap<usize, BTreeSet<String>>,
    /// Further domains without nodes that pods without a pin keep out of, by spread constraint. A node there would make them count.
    pub kept_out: BTreeMap<usize, BTreeSet<String>>,
    /// Spread constraints that have fewer domains than their `minDomains`, because of a limit. Their pods keep out of all domains
    /// that do not count yet. Those that then have no place get this reason.
    pub few: BTreeMap<usize, LeftBy>,
    /// Pods that cannot keep their earlier place.
    pub unsettled: BTreeSet<PodKey>,
    /// Pods for which no attempt could keep the rules, with the reason.
    pub given_up: BTreeMap<PodKey, String>,
    /// Pods that a limit leaves out, so that the others can keep their spread, with the reason.
    pub cut: BTreeMap<PodKey, LeftBy>,
    /// Pods that found no place and now choose before others of equal priority.
    pub first: BTreeSet<PodKey>,
    /// Incomplete gangs, by PodGroup.
    pub gangs_left_out: BTreeMap<ObjectKey, IncompleteGang>,
    /// Offerings whose alternatives are beyond a limit, so that a claim would not leave the choice that `minValues` asks for. Each is
    /// an index of a pool in the supply, and an index of an offering.
    pub unlistable: BTreeSet<(usize, usize)>,
    /// Whether room on expensive nodes stays free for pods without a cheaper home.
    pub keeps_room: bool,
    /// Whether an earlier attempt kept pods off nodes. Then lessons may leave out pods because of kept room.
    pub kept_room: bool,
}

impl Lessons {
    /// Adds the domains of a plan's new nodes, except those that were open anyway. Returns whether any domain is new.
    pub fn open(
        &mut self,
        relations: &Relations<'_>,
        snapshot: &Snapshot,
        claims: &[PlannedClaim],
        was_open: impl Fn(&str, &str) -> bool,
    ) -> bool {
        let before = self.opened.len();
        let with_nodes = domains(relations, snapshot, claims);
        self.opened.extend(with_nodes.into_iter().filter(|(key, value)| !was_open(key, value)));
        self.opened.len() > before
    }

    /// Forgets the domains that an earlier attempt opened, except those in which the plan has new nodes: the scheduler would not count
    /// them. A domain is forgotten only once, so that attempts end. Returns whether any was.
    pub fn close_unused(
        &mut self,
        relations: &Relations<'_>,
        snapshot: &Snapshot,
        claims: &[PlannedClaim],
    ) -> bool {
        let with_nodes = domains(relations, snapshot, claims);
        let (closed, before) = (&mut self.closed, self.opened.len());
        self.opened.retain(|domain| with_nodes.contains(domain) || !closed.insert(domain.clone()));
        self.opened.len() < before
    }

    /// Closes the domains that pods were pinned to in vain, except those in which the plan has new nodes.
    pub fn close<'p>(
        &mut self,
        relations: &Relations<'_>,
        snapshot: &Snapshot,
        claims: &[PlannedClaim],
        pins: impl Iterator<Item = &'p Pin>,
    ) {
        let with_nodes = domains(relations, snapshot, claims);
        for domain in pins.filter_map(domain_of).filter(|domain| !with_nodes.contains(domain)) {
            if self.closed.insert(domain.clone()) {
                self.opened.remove(&domain);
            }
        }
    }
}

/// Returns the domain that a pin is to, with its topology key. A pin to several keys says nothing about one of them.
pub(crate) fn domain_of(pin: &Pin) -> Option<(String, String)> {
    match pin.as_slice() {
        [Requirement { key, operator: Operator::In(values) }] => Some((key.clone(), values.first()?.clone())),
        _ => None,
    }
}

/// Returns the domains of a plan's new nodes, with their topology keys.
fn domains(
    relations: &Relations<'_>,
    snapshot: &Snapshot,
    claims: &[PlannedClaim],
) -> BTreeSet<(String, String)> {
    let mut domains = BTreeSet::new();
    for claim in claims {
        let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { continue };
        let Some(offering) = catalogue.offering(claim.offering()) else { continue };
        let decided = catalogue.node_labels(offering);
        for key in &relations.keys {
            let value = decided.get(*key).or_else(|| claim.labels.get(*key));
            domains.extend(value.map(|value| ((*key).to_owned(), value.clone())));
        }
    }
    domains
}

/// The inputs for the choice of places.
pub(crate) struct TopologyInputs<'s, 'a> {
    pub snapshot: &'a Snapshot,
    pub relations: &'s Relations<'a>,
    pub rooms: &'s Rooms<'a>,
    pub daemons: &'s DaemonSets<'a>,
    pub colocation: &'s Colocation<'a>,
    /// Pods with a place on an existing node.
    pub settled: &'s [(usize, &'a Pod)],
    pub open: &'s [PendingPod<'a>],
    pub supply: &'s Supply<'a>,
    pub options: &'s PlanOptions,
    /// Whether preferences decide among the places that rules leave.
    pub policy: PreferencePolicy,
    pub lessons: &'s Lessons,
    /// The volumes of the pods.
    pub volumes: &'s Volumes,
    /// What the limits have left before the plan, once somebody asks.
    pub limits: OnceCell<Limits>,
}

impl TopologyInputs<'_, '_> {
    /// Returns the limits that one more node of an offering would break if it served this request for GPUs, in words; `None` if there
    /// are none.
    pub fn beyond(&self, at: usize, offer: &PoolOffering, need: Option<&GpuNeed>) -> Option<String> {
        let (limits, price) = (self.limits(), offer.availability.price());
        let uses = limits.uses_for(self.supply, at, offer.offering, price, need.as_slice());
        let named = limits.beyond(&uses).into_iter().map(|(limit, _)| limits.named(limit, self.supply));
        named.reduce(|all, one| format!("{all} and {one}"))
    }

    /// Returns whether there are such limits. Each pod without a place asks this of many offerings.
    pub fn is_beyond(&self, at: usize, offer: &PoolOffering, need: Option<&GpuNeed>) -> bool {
        let (limits, price) = (self.limits(), offer.availability.price());
        let uses = limits.uses_for(self.supply, at, offer.offering, price, need.as_slice());
        limits.first_beyond(&uses).is_some()
    }

    fn limits(&self) -> &Limits {
        self.limits.get_or_init(|| Limits::new(self.supply, self.snapshot, self.options))
    }
}
