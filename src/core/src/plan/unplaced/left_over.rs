//! Pods that packing leaves unplaced: explains them, and finds the pods that may fit elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::demand::Members;
use crate::model::plan::{UnplacedPod, UnplacedReason};
use crate::model::{ObjectKey, Pod, PodKey, RequestOrigin};
use crate::plan::gang_limits::all_in_words;
use crate::plan::gang_nodes::Takes;
use crate::plan::left_by::LeftBy;
use crate::plan::pack::classes;
use crate::plan::pack::solves::packing::Packing;
use crate::plan::place::topology;
use crate::plan::unplaced;
use crate::plan::unplaced::cordoned::{self, CordonedNodes};
use crate::plan::unplaced::few_nodes::too_few_nodes;
use crate::rules;
use crate::rules::pin::Pin;
use crate::supply::rooms;

/// The inputs and the result of packing.
pub(crate) struct LeftOver<'s, 'a> {
    pub inputs: unplaced::UnplacedInputs<'s, 'a>,
    pub classes: &'s classes::PodClasses<'a>,
    pub outcome: &'s Packing<'a>,
    pub assigned: &'s topology::Assigned<'a>,
    pub rooms: &'s rooms::Rooms<'a>,
    /// How many more pods of each PodGroup must have a place before any of them is placed.
    pub missing: &'s BTreeMap<ObjectKey, Members>,
}

/// What later attempts learn from pods that packing left out.
#[derive(Debug, Default)]
pub(crate) struct LeftPods {
    /// Pods that were pinned to a place and may fit elsewhere, with the reason why they did not fit there.
    pub pinned: Vec<(PodKey, Pin, LeftBy)>,
    /// Pods that a limit left out, with their pin.
    pub by_limit: BTreeMap<PodKey, (Pin, LeftBy)>,
    /// The reasons of pods of gangs.
    pub of_gangs: BTreeMap<PodKey, LeftBy>,
    /// The limits that keep gangs out besides rules, with what their pods without a place take of each.
    pub beside_rules: BTreeMap<ObjectKey, Takes>,
    /// The limits that left pods out.
    pub limits: BTreeSet<u32>,
    /// What pools are told of limits that only pods met whose offerings within the limits are held back.
    pub after_held_back: BTreeMap<u32, String>,
}

/// A pod of a gang that starts only with others, and what decides about its node.
type Member<'s, 'a> = (&'s Pod, &'s classes::PodClass<'a>, &'s Pin);

/// A reason, and its sentence.
type Told = (UnplacedReason, LeftBy, String);

impl LeftOver<'_, '_> {
    /// Explains each unplaced pod, and returns what later attempts learn from them.
    pub fn explain(&self, unplaced: &mut Vec<UnplacedPod>) -> LeftPods {
        let mut found = LeftPods::default();
        let mut cordoned = CordonedNodes::new(self.inputs.snapshot, self.rooms);
        let mut gangs: BTreeMap<ObjectKey, Vec<Member<'_, '_>>> = BTreeMap::new();
        let short = self.limits_of_gangs();
        for (index, class) in self.classes.classes.iter().enumerate() {
            let Some(left) = self.outcome.left.get(index).filter(|left| !left.is_empty()) else { continue };
            let limit = self.outcome.limit[index];
            let pin = self.assigned.pin(&left[0].key);
            let few = too_few_nodes(&self.inputs, class, pin, self.rooms, &self.outcome.new);
            let kept = || unplaced::kept_off(class, pin, self.rooms, self.inputs.colocation);
            let kept = few.clone().or_else(kept);
            let by_rules = (kept.as_deref(), few.as_deref());
            let may_go_elsewhere = self.may_go_elsewhere(class, left, limit);
            let is_bundle = !class.with.is_empty();
            // Room for one of its pods does not help a gang.
            let alone = left.iter().filter(|pod| self.is_placed_alone(pod)).count();
            let most = if is_bundle { alone.min(1) } else { alone };
            let nodes = cordoned.take(class, pin, self.inputs.colocation, most);
            let mut next_node = 0;
            let mut told: BTreeMap<(&[RequestOrigin], bool), Told> = BTreeMap::new();
            for pod in left {
                // The requests of a bundle are those of several pods.
                let origins: &[RequestOrigin] = if is_bundle { &[] } else { &pod.request_origins };
                let takes = pod.group_key().and_then(|gang| short.get(&gang)).map(|short| &short.takes);
                let tell = || self.tell(index, by_rules, origins, takes.is_some());
                let (reason, left_by, words) = told.entry((origins, takes.is_some())).or_insert_with(tell);
                let mut message = words.clone();
                if let Some(takes) = takes.filter(|takes| !takes.is_empty()) {
                    let (limits, supply) = (self.inputs.limits, self.inputs.supply);
                    if is_by_rules(*reason) {
                        message.push_str("; besides, ");
                        message.push_str(&all_in_words(takes, limits, supply));
                    } else if *reason == UnplacedReason::LimitReached && left_by.reached().is_some() {
                        // One more node is not enough for a gang.
                        message = left_by.sentence_of_whole_gang(limits, supply, takes);
                    }
                }
                if let Some(limit) = left_by.reached() {
                    let pin = self.assigned.pin(&pod.key).clone();
                    let of_pool = |of: u32| left_by.of_pool(of, self.inputs.limits, self.inputs.supply);
                    if of_pool(limit).is_none() {
                        found.limits.insert(limit);
                    }
                    // The solver may have named another limit.
                    let reached = [Some(limit), self.outcome.limit[index]].into_iter().flatten();
                    let sentences = reached.filter_map(|of| Some((of, of_pool(of)?)));
                    found.after_held_back.extend(sentences);
                    found.by_limit.insert(pod.key.clone(), (pin, left_by.clone()));
                }
                if pod.group.is_some() {
                    found.of_gangs.insert(pod.key.clone(), left_by.clone());
                }
                if self.is_placed_alone(pod) {
                    let node = nodes.get(next_node);
                    message.push_str(&node.map_or_else(String::new, |node| cordoned::for_pod(node)));
                    next_node += usize::from(!is_bundle);
                } else if let Some(gang) = pod.group_key().filter(|_| !is_bundle) {
                    let pin = self.assigned.pin(&pod.key);
                    gangs.entry(gang).or_default().push((*pod, class, pin));
                }
                unplaced.push(UnplacedPod { pod: pod.key.clone(), reason: *reason, message });
                let pin = self.assigned.pin(&pod.key);
                if may_go_elsewhere && !pin.is_empty() {
                    found.pinned.push((pod.key.clone(), pin.clone(), left_by.clone()));
                }
            }
        }
        for (gang, pods) in gangs {
            let Some(offer) = self.offer(&gang, &pods, &mut cordoned) else { continue };
            let pods: BTreeSet<&PodKey> = pods.iter().map(|(pod, ..)| &pod.key).collect();
            for left in unplaced.iter_mut().filter(|left| pods.contains(&left.pod)) {
                left.message.push_str(&offer);
            }
        }
        let beside = short.into_iter().filter(|(_, short)| short.by_rules && !short.takes.is_empty());
        found.beside_rules = beside.map(|(gang, short)| (gang, short.takes)).collect();
        found
    }

    /// Returns whether a pod is placed by itself: it is of no gang, or of one that has places for the pods that start together.
    fn is_placed_alone(&self, pod: &Pod) -> bool {
        pod.group_key().is_none_or(|gang| self.missing.get(&gang).is_some_and(|missing| missing.all == 0))
    }

    /// Offers to uncordon the nodes that have room for as many pods of a gang as it lacks; `None` if they have too little.
    fn offer(
        &self,
        gang: &ObjectKey,
        pods: &[Member<'_, '_>],
        cordoned: &mut CordonedNodes<'_>,
    ) -> Option<String> {
        let missing = self.missing.get(gang)?;
        let group = self.inputs.snapshot.pod_group(gang)?;
        let (mut left, mut nodes, mut open) = (cordoned.clone(), BTreeSet::new(), missing.clone());
        for (pod, class, pin) in pods {
            let mut after = open.clone();
            if !after.meet(Some(group), pod) {
                continue;
            }
            let taken = left.take(class, pin, self.inputs.colocation, 1);
            if taken.is_empty() {
                continue;
            }
            open = after;
            nodes.extend(taken);
            if open.all == 0 {
                *cordoned = left;
                return Some(cordoned::for_gang(&nodes, missing.all, &group.name()));
            }
        }
        None
    }

    /// Returns the reason why pods of a class are left out: a limit or a rule on spot nodes, if one did. `kept` describes a node that
    /// only rules about other pods keep them off, and `few` one that only `minDomains` does. The limits of a gang that rules keep out are
    /// told for all of its pods together.
    fn tell(
        &self,
        index: usize,
        (kept, few): (Option<&str>, Option<&str>),
        origins: &[RequestOrigin],
        is_of_gang: bool,
    ) -> Told {
        let class = &self.classes.classes[index];
        let (limit, spot) = (self.outcome.limit[index], self.outcome.spot_rule[index]);
        let inputs = unplaced::UnplacedInputs { origins, is_of_gang, ..self.inputs };
        let (mut reason, mut left_by) = match spot.filter(|_| limit.is_none()) {
            Some(rule) => {
                let words = rule.sentence(inputs.supply, inputs.limits);
                (UnplacedReason::LimitReached, LeftBy::other(words))
            }
            None => inputs.explain(class, limit),
        };
        // In another place, the limits might allow what can be bought now.
        let is_pinned = || class.pods.iter().any(|pod| !self.assigned.pin(&pod.key).is_empty());
        if limit.is_some() && reason == UnplacedReason::OfferingsHeldBack && is_pinned() {
            reason = UnplacedReason::LimitReached;
        }
        if let Some(kept) = kept.filter(|_| reason == UnplacedReason::NoOfferingFits) {
            let words = left_by.sentence(inputs.limits, inputs.supply);
            reason = UnplacedReason::TopologyRule;
            left_by = LeftBy::other(format!("{kept}; elsewhere: {words}"));
        } else if let Some(few) = few {
            left_by = left_by.with(&format!("; {few}"));
        }
        if self.outcome.without_layout.contains(&index) {
            left_by = left_by.without_layout();
        }
        let words = left_by.sentence(inputs.limits, inputs.supply);
        (reason, left_by, words)
    }

    /// Returns whether pods of a class were pinned to a place and may fit elsewhere. The same limit applies elsewhere, unless it is
    /// the stock of an offering, another pool has offerings, or there is room.
    fn may_go_elsewhere(&self, class: &classes::PodClass<'_>, left: &[&Pod], limit: Option<u32>) -> bool {
        let has_room = || {
            self.rooms.all.iter().any(|room| {
                class.on_whole().fits(&room.free)
                    && rules::admits(class.spec, &room.labels, &room.taints).is_ok()
            })
        };
        let elsewhere = |limit: u32| {
            let of = self.inputs.limits.all[limit as usize].pool;
            self.inputs.limits.is_stock(limit)
                || of.is_some_and(|of| self.inputs.supply.others_sell(of, class.spec))
        };
        left.iter().any(|pod| !self.assigned.pin(&pod.key).is_empty())
            && (limit.is_none_or(elsewhere) || has_room())
    }
}

/// Returns whether rules keep a pod off all nodes, and not only limits.
fn is_by_rules(reason: UnplacedReason) -> bool {
    matches!(reason, UnplacedReason::NoOfferingFits | UnplacedReason::TopologyRule)
}
