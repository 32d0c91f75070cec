//! Limits that leave a gang out: each that is enough if it alone is raised, or else those that must be raised together. Also those that
//! leave it out besides rules about other pods.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::UsdPerHour;

use crate::demand::{GroupState, is_there};
use crate::model::{ObjectKey, Pod, PodKey, PodPhase, PodSpec, Sharing, Snapshot};
use crate::plan::gang_nodes::{Alike, Takes, nodes_for, times};
use crate::plan::gang_takes::{self, HoldingNode, Kind};
use crate::rules::{self, gpus};
use crate::supply::limits::Limits;
use crate::supply::offerings::Supply;

/// Returns the pods without a node that must have places before any pod of the gang starts. If they differ, those with a place on nodes
/// that are there are left out: other pods of the gang may need other limits than these.
pub(crate) fn needed(
    snapshot: &Snapshot,
    gang: &ObjectKey,
    state: &GroupState<'_>,
    placed: &BTreeSet<&PodKey>,
) -> Vec<PodSpec> {
    let mut open = state.shortage(&state.room(None));
    let is_bound = |pod: &Pod| matches!(pod.phase, PodPhase::Bound { .. });
    let of_gang = snapshot.pods.of_group(gang).filter(|pod| is_there(pod) && !is_bound(pod));
    let mut needed: Vec<&Pod> = of_gang.filter(|pod| open.meet(state.group, pod)).collect();
    let differs = needed.iter().any(|pod| pod.spec != needed[0].spec);
    needed.retain(|pod| !differs || !placed.contains(&pod.key));
    needed.into_iter().map(|pod| PodSpec::clone(&pod.spec)).collect()
}

/// Returns the limits that are enough for these pods if they are raised by what the pods take: each alone, if one is. Otherwise, it
/// returns the limits that must be raised together. Each change was tried: nodes of one offering then hold all of the pods, or of one for
/// each kind of pods. Empty if no change is known to help.
pub(crate) fn helping(limits: &Limits, supply: &Supply<'_>, pods: &[PodSpec]) -> Vec<Takes> {
    let mut counts: BTreeMap<&PodSpec, u64> = BTreeMap::new();
    for pod in pods {
        *counts.entry(pod).or_default() += 1;
    }
    // Where the planner lets these pods be depends on other pods.
    if counts.is_empty() || counts.keys().any(|spec| has_rules_on_others(spec)) {
        return Vec::new();
    }
    let alike: Vec<Alike<'_>> = counts
        .into_iter()
        .map(|(spec, count)| (spec, gpus::wanted(Sharing::Whole, &[], spec).0, count))
        .collect();
    let all = holding(limits, supply, &alike);
    if all.is_empty() {
        return apart(limits, supply, alike).into_iter().filter(|takes| !takes.is_empty()).collect();
    }
    let mut alone: BTreeMap<u32, u64> = BTreeMap::new();
    let mut together: Option<(usize, u64, Takes)> = None;
    for Holding { price, of_one, nodes } in all {
        let beyond = limits.beyond(&times(&of_one, nodes));
        match beyond.as_slice() {
            // Something else than a limit keeps the gang out.
            [] => return Vec::new(),
            [(limit, takes)] => {
                let least = alone.entry(*limit).or_insert(*takes);
                *least = (*least).min(*takes);
            }
            _ => {
                let next = (beyond.len(), price.micros().saturating_mul(nodes), beyond);
                if together.as_ref().is_none_or(|best| next < *best) {
                    together = Some(next);
                }
            }
        }
    }
    if alone.is_empty() {
        return together.into_iter().map(|(.., takes)| takes).collect();
    }
    alone.into_iter().map(|one| vec![one]).collect()
}

/// Returns the limits that must be raised together for pods that no offering holds all of, such as those of two pools.
fn apart(limits: &Limits, supply: &Supply<'_>, alike: Vec<Alike<'_>>) -> Option<Takes> {
    let mut kinds = Vec::new();
    for (spec, requests, count) in alike {
        let mut nodes = Vec::new();
        for (at, pool) in supply.pools.iter().enumerate() {
            for offer in pool.offers.iter().filter(|offer| offer.availability.is_sold()) {
                let labels = supply.labels(at, offer.offering);
                if requests.fits(&supply.capacities[offer.capacity])
                    && rules::admits(spec, &labels, &pool.pool.taints).is_ok()
                {
                    nodes.extend(HoldingNode::of(supply, at, offer));
                }
            }
        }
        kinds.push(Kind { spec, requests, need: None, count, least: count, is_apart: false, nodes });
    }
    gang_takes::short(limits, supply, &kinds)
}

/// Returns the limits that have too little for pods of a gang that rules about other pods keep out too. `counts` has the number of equal
/// pods. A limit counts if it has too little even for pods that share nodes as if they had no such rules. What the pods take of it is
/// enough in any case, because each may need a node of its own.
pub(crate) fn beside_rules(
    limits: &Limits,
    supply: &Supply<'_>,
    sharing: Sharing,
    counts: &BTreeMap<&PodSpec, u64>,
) -> Takes {
    let mut left = limits.clone();
    let (mut short, mut takes): (BTreeSet<u32>, BTreeMap<u32, u64>) = (BTreeSet::new(), BTreeMap::new());
    for (spec, count) in counts {
        let requests = gpus::wanted(sharing, &supply.mig_models(), spec).0;
        let nearest = holding(&left, supply, &[(*spec, requests, *count)]).into_iter().min_by_key(|one| {
            (left.beyond(&times(&one.of_one, one.nodes)).len(), one.price.micros().saturating_mul(one.nodes))
        });
        let Some(Holding { of_one, nodes, .. }) = nearest else { continue };
        let uses = times(&of_one, nodes);
        short.extend(left.beyond(&uses).into_iter().map(|(limit, _)| limit));
        left.take(&uses);
        for (limit, amount) in times(&of_one, *count) {
            let all = takes.entry(limit).or_default();
            *all = all.saturating_add(amount);
        }
    }
    takes.into_iter().filter(|(limit, _)| short.contains(limit)).collect()
}

/// An offering whose nodes hold all pods that are asked for.
struct Holding {
    price: UsdPerHour,
    /// What one node uses of each limit.
    of_one: Takes,
    /// The number of nodes.
    nodes: u64,
}

/// Returns the offerings that hold all of these pods and have as many nodes in stock.
fn holding(limits: &Limits, supply: &Supply<'_>, alike: &[Alike<'_>]) -> Vec<Holding> {
    let mut all = Vec::new();
    for (at, pool) in supply.pools.iter().enumerate() {
        for offer in pool.offers.iter().filter(|offer| offer.availability.is_sold()) {
            let labels = supply.labels(at, offer.offering);
            let admits = |(spec, ..): &Alike<'_>| rules::admits(spec, &labels, &pool.pool.taints).is_ok();
            let Some(price) = offer.availability.price().filter(|_| alike.iter().all(admits)) else {
                continue;
            };
            let Some(nodes) = nodes_for(alike, &supply.capacities[offer.capacity]) else { continue };
            let of_one = limits.uses(supply, at, offer.offering, Some(price));
            if limits.has_stock(&times(&of_one, nodes)) {
                all.push(Holding { price, of_one, nodes });
            }
        }
    }
    all
}

/// Describes the limits that [`helping`] returned, each with an amount that is enough.
pub(crate) fn sentence(helping: &[Takes], limits: &Limits, supply: &Supply<'_>) -> String {
    let one = |takes: &Takes| all_in_words(takes, limits, supply);
    helping.iter().map(one).collect::<Vec<_>>().join("; or, instead, ")
}

/// Describes limits that must be raised together, each with an amount that is enough.
pub(crate) fn all_in_words(takes: &[(u32, u64)], limits: &Limits, supply: &Supply<'_>) -> String {
    let all = takes.iter().map(|(limit, takes)| limits.sentence_of_gang(*limit, supply, *takes));
    all.collect::<Vec<_>>().join("; and ")
}

/// Returns whether rules of a pod about other pods decide where it may be.
pub(crate) fn has_rules_on_others(spec: &PodSpec) -> bool {
    !(spec.affinity.is_empty()
        && spec.anti_affinity.is_empty()
        && spec.spreads.is_empty()
        && spec.host_ports.is_empty())
}
