//! Gangs that are left out in a namespace with limits: each is told of all limits that have too little for it, those of its namespace
//! and those of pools, because raising some of them would not help.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{ResourceList, UsdPerHour};
use poolwright_terms::keys::NODEPOOL_LABEL;

use crate::demand::{Members, Successor};
use crate::model::plan::{Plan, PlannedClaim, UnplacedPod, UnplacedReason};
use crate::model::{CeilingOrigin, NamespaceCeiling, NamespaceLimit, ObjectKey, Pod, PodSpec};
use crate::plan::context::PlanContext;
use crate::plan::gang_limits::all_in_words;
use crate::plan::gang_takes::{HoldingNode, Kind, Needs};
use crate::plan::namespace_limits::{
    Ceilings, Excess, Held, in_words, needed_in_words, quantity, used_in_words,
};
use crate::plan::unplaced::allowed::AllowedTypes;
use crate::plan::unplaced::gangs::{fill, kind};
use crate::rules;
use crate::rules::labels::Labels;
use crate::supply::limits::Limits;
use crate::supply::namespace_use::{NamespaceUse, counts, prices_of_standing};
use crate::supply::offerings::Supply;
use crate::supply::rooms::{Room, Rooms};

/// What a gang takes that is left out.
#[derive(Clone)]
struct Wanted {
    needs: Needs,
    /// The number of its pods without a place.
    pods: u64,
    /// The nodes with room for some of its pods that count for its namespace only with these.
    nodes_there: u64,
    /// What the nodes with room for some of its pods cost, in micro-dollars.
    cost_there: u64,
}

/// What a gang is told.
struct Told {
    /// Whether nodes that are there have room for some of its pods.
    uses_nodes_there: bool,
    /// What its namespace uses without it.
    used: NamespaceUse,
    /// The limits of its namespace that have too little for it, in words.
    beyond: Vec<(NamespaceLimit, String)>,
    /// The limits of pools that have too little for it, in words; empty without any.
    pools: String,
}

/// The nodes that are there or planned.
struct There<'s> {
    /// The free room of nodes that are there, after the plan.
    rooms: Rooms<'s>,
    /// The prices of those that count for the namespaces of their pods.
    prices: BTreeMap<String, UsdPerHour>,
    plan: &'s Plan,
}

impl PlanContext<'_> {
    /// Tells gangs without enough places of all limits that have too little for them, and returns those for which these are known. Those
    /// that `held` has are told of their limits anew, because a gang whose namespace has no money or no node left counts with one node.
    pub(super) fn tell_gangs(
        &self,
        ceilings: &Ceilings<'_>,
        inputs: (&[Successor], &Supply<'_>),
        held: &Held,
        plan: &mut Plan,
    ) -> BTreeSet<ObjectKey> {
        let told = self.told(ceilings, inputs, plan);
        for left in plan.unplaced.iter_mut().filter(|left| left.reason.is_unmet_demand()) {
            let gang = self.snapshot.pods.get(&left.pod).and_then(|pod| pod.group_key());
            let Some(of) = gang.and_then(|gang| told.get(&gang)) else { continue };
            let is_held = left.reason == UnplacedReason::NamespaceLimitReached;
            if let Some(excess) = held.get(&left.pod).filter(|_| is_held) {
                left.message = of.sentence_of_held(excess, left.pod.namespace());
            } else {
                for (_, words) in &of.beyond {
                    left.message.push_str("; besides, ");
                    left.message.push_str(words);
                }
            }
        }
        told.into_keys().collect()
    }

    /// Returns what gangs are told that lack places in namespaces with limits.
    fn told(
        &self,
        ceilings: &Ceilings<'_>,
        (successors, supply): (&[Successor], &Supply<'_>),
        plan: &Plan,
    ) -> BTreeMap<ObjectKey, Told> {
        let lacking = self.lacking(ceilings, plan);
        let mut told = BTreeMap::new();
        if lacking.is_empty() {
            return told;
        }
        let mut limits = Limits::new(supply, self.snapshot, self.options);
        limits.take_claims(supply, &plan.claims);
        let there = self.there(plan);
        let accounts = self.accounts(successors, Some(plan));
        // Many gangs are alike.
        let mut known: BTreeMap<(&str, BTreeMap<&PodSpec, u64>), Option<Wanted>> = BTreeMap::new();
        for (gang, pods) in &lacking {
            let namespace = gang.namespace.as_str();
            let mut alike: BTreeMap<&PodSpec, u64> = BTreeMap::new();
            for pod in pods {
                *alike.entry(&pod.spec).or_default() += 1;
            }
            let wanted = || self.wanted(supply, (&limits, &there), namespace, pods);
            let wanted = known.entry((namespace, alike)).or_insert_with(wanted);
            let Some(wanted) = wanted.clone() else { continue };
            let used = accounts.standing(namespace).plus(accounts.bought(namespace));
            let ceilings = ceilings.get(namespace).map_or(&[][..], Vec::as_slice);
            let beyond = wanted.beyond(namespace, ceilings, used);
            let pools = all_in_words(&wanted.needs.takes, &limits, supply);
            let uses_nodes_there = wanted.cost_there > 0 || wanted.nodes_there > 0;
            told.insert(gang.clone(), Told { uses_nodes_there, used, beyond, pools });
        }
        told
    }

    /// Returns by gang the pods without a place that must have one before any of it starts.
    fn lacking(&self, ceilings: &Ceilings<'_>, plan: &Plan) -> BTreeMap<ObjectKey, Vec<&Pod>> {
        let missing = self.groups.missing(self.snapshot, plan);
        let mut gangs: BTreeMap<ObjectKey, (Members, Vec<&Pod>)> = BTreeMap::new();
        let is_meant = |left: &&UnplacedPod| left.pod.existing().is_some() && left.reason.is_unmet_demand();
        for left in plan.unplaced.iter().filter(is_meant) {
            let Some(pod) = self.snapshot.pods.get(&left.pod) else { continue };
            let Some(gang) = pod.group_key() else { continue };
            let is_limited = ceilings.contains_key(gang.namespace.as_str());
            let lacks = missing.get(&gang).filter(|missing| is_limited && missing.all > 0);
            let Some(lacks) = lacks else { continue };
            let group = self.snapshot.pod_group(&gang);
            let (open, pods) = gangs.entry(gang).or_insert_with(|| (lacks.clone(), Vec::new()));
            if open.meet(group, pod) {
                pods.push(pod.as_ref());
            }
        }
        gangs.retain(|_, (open, _)| open.all == 0);
        gangs.into_iter().map(|(gang, (_, pods))| (gang, pods)).collect()
    }

    /// Returns the nodes that are there or planned.
    fn there<'s>(&'s self, plan: &'s Plan) -> There<'s> {
        let mut rooms: Rooms<'s> = self.rooms.clone();
        for placement in &plan.placements {
            let at = rooms.of_target(placement.target.name());
            if let Some((at, pod)) = at.zip(self.snapshot.pods.get(&placement.pod)) {
                rooms.take(at, &pod.spec.requests, self.colocation.of(&pod.key));
            }
        }
        There { rooms, prices: prices_of_standing(self.snapshot), plan }
    }

    /// Returns what these pods of a gang take, once the advice about rules on taints and labels is followed that keep them out; `None` if
    /// that is not known.
    fn wanted(
        &self,
        supply: &Supply<'_>,
        (limits, there): (&Limits, &There<'_>),
        namespace: &str,
        pods: &[&Pod],
    ) -> Option<Wanted> {
        let allowed = AllowedTypes::default();
        let mut alike: BTreeMap<&PodSpec, (&Pod, u64)> = BTreeMap::new();
        for &pod in pods {
            alike.entry(&pod.spec).or_insert((pod, 0)).1 += 1;
        }
        let mut kinds: Vec<Kind<'_>> = Vec::new();
        for (spec, (pod, count)) in alike {
            let found = self.ask(supply, (limits, &allowed), pod, |inputs, class| {
                // How pods share GPUs is chosen with the nodes.
                if class.gpu_need.is_some() {
                    return None;
                }
                let holding = inputs.holding(class);
                let nodes = if holding.is_empty() { inputs.once_rules_change(class) } else { holding };
                Some((class.requests.clone(), nodes))
            });
            let (requests, nodes) = found?;
            kinds.push(kind(supply, spec, requests, (count, nodes))?);
        }
        let (nodes_there, cost_there) = self.fill_there(supply, there, namespace, &mut kinds);
        let needs = Needs::of(limits, supply, &kinds)?;
        Some(Wanted { needs, pods: pods.len() as u64, nodes_there, cost_there })
    }

    /// Counts the pods off that nodes which are there or planned may hold. Returns how many of these nodes count for the namespace only
    /// with these pods, and what the nodes cost that hold some, in micro-dollars.
    fn fill_there(
        &self,
        supply: &Supply<'_>,
        there: &There<'_>,
        namespace: &str,
        kinds: &mut [Kind<'_>],
    ) -> (u64, u64) {
        let is_of = |kind: &Kind<'_>, pool: &str| {
            let names = |node: &HoldingNode| supply.pools[node.at].pool.name.0 == pool;
            kind.nodes.iter().any(names)
        };
        let (mut nodes, mut cost) = (0_u64, 0_u64);
        for room in &there.rooms.all {
            let pool = room.labels.label(NODEPOOL_LABEL);
            let holds_some = fill(kinds, &room.free, |kind| {
                !room.is_cordoned()
                    && (rules::admits(kind.spec, &room.labels, &room.taints).is_ok()
                        || pool.is_some_and(|pool| is_of(kind, pool)))
            });
            if let Some(price) = there.prices.get(room.target.name()).filter(|_| holds_some) {
                nodes += u64::from(!self.has_pods_of(namespace, room, there.plan));
                cost = cost.saturating_add(price.micros());
            }
        }
        for claim in &there.plan.claims {
            let is_static = self.snapshot.pools.get(&claim.pool).is_some_and(|pool| pool.replicas.is_some());
            let holds_some = claim.gpus.is_empty()
                && fill(kinds, &self.free_on(claim), |kind| is_of(kind, claim.pool.0.as_str()));
            if holds_some && !is_static {
                nodes += u64::from(claim.planned_pods.iter().all(|pod| pod.namespace() != namespace));
                let prices = claim.offerings.iter().filter_map(|one| one.price);
                cost = cost.saturating_add(prices.max().unwrap_or_default().micros());
            }
        }
        (nodes, cost)
    }

    /// Returns the room that the pods of a planned node leave, without that of DaemonSets.
    fn free_on(&self, claim: &PlannedClaim) -> ResourceList {
        let planned = claim.offerings.first().map(|one| one.allocatable.clone());
        let mut free = planned.unwrap_or_default();
        for pod in claim.planned_pods.iter().filter_map(|key| self.snapshot.pods.get(key)) {
            free.saturating_sub(&pod.spec.requests);
        }
        free
    }

    /// Returns whether a node counts for a namespace after a plan.
    fn has_pods_of(&self, namespace: &str, room: &Room<'_>, plan: &Plan) -> bool {
        let on_node = room.node.and_then(|node| self.snapshot.pods.on_node(node));
        let mut bound = on_node.into_iter().flat_map(|on| &on.pods);
        let mut placed = plan.placements.iter().filter(|placement| placement.target == room.target);
        bound.any(|pod| pod.key.namespace() == namespace && counts(pod))
            || placed.any(|placement| placement.pod.namespace() == namespace)
    }
}

impl Wanted {
    /// Returns the least that the gang takes of a limit, and an amount that is enough; `None` if pods that need more are held back before
    /// nodes are chosen.
    fn amounts(&self, kind: NamespaceLimit) -> Option<(u64, u64)> {
        let (least, enough) = match kind {
            // Each pod needs one node at most.
            NamespaceLimit::Nodes => (self.needs.nodes.saturating_add(self.nodes_there), self.pods),
            NamespaceLimit::UsdPerHour => {
                (self.needs.cost, self.needs.most_cost.saturating_add(self.cost_there))
            }
            NamespaceLimit::Gpus => return None,
        };
        Some((least, enough.max(least)))
    }

    /// Describes the limits of its namespace that have too little for it besides what is used, each with an amount that is enough.
    fn beyond(
        &self,
        namespace: &str,
        ceilings: &[NamespaceCeiling],
        used: NamespaceUse,
    ) -> Vec<(NamespaceLimit, String)> {
        let mut all = Vec::new();
        // No amount is enough where a budget is spent.
        for ceiling in ceilings.iter().filter(|one| !matches!(one.origin, CeilingOrigin::Spent(_))) {
            let NamespaceCeiling { kind, most, .. } = *ceiling;
            let (Some((least, enough)), used) = (self.amounts(kind), used.of(kind)) else { continue };
            if used.saturating_add(least) <= most {
                continue;
            }
            let (limit, remedy) = in_words(*ceiling, namespace);
            let besides = if used == 0 {
                String::new()
            } else {
                format!(" (in use or on order besides: {})", used_in_words(kind, used, most))
            };
            let (least, enough) = (needed_in_words(kind, least), quantity(kind, used.saturating_add(enough)));
            let words = format!(
                "{limit} has too little for its gang, which would take at least {least}{besides}; {remedy} ({enough} is enough)"
            );
            all.push((kind, words));
        }
        all
    }
}

impl Told {
    /// Returns the message of a gang that is held back.
    fn sentence_of_held(&self, excess: &Excess, namespace: &str) -> String {
        let (mut kinds, mut said) = (Vec::new(), Vec::new());
        for one in excess.each(Some(self.used)) {
            let kind = one.ceiling.kind;
            // Before nodes are chosen, a gang counts with one node at some price. Afterwards, it counts with new nodes only.
            let is_spent = matches!(one.ceiling.origin, CeilingOrigin::Spent(_));
            let is_part = !is_spent && (self.uses_nodes_there || one.asked == Some(1));
            let better = self.beyond.iter().find(|(of, _)| *of == kind).filter(|_| is_part);
            let words = better.map(|(_, words)| words.clone());
            said.push(words.unwrap_or_else(|| one.sentence_of_first(namespace, Some(self.used))));
            kinds.push(kind);
        }
        let others = self.beyond.iter().filter(|(kind, _)| !kinds.contains(kind));
        said.extend(others.map(|(_, words)| words.clone()));
        said.extend(Some(self.pools.clone()).filter(|pools| !pools.is_empty()));
        said.join("; besides, ")
    }
}
