//! Makes room for waiting pods: moves pods off nodes that stay, if that costs less than the nodes that a plan would buy.
//!
//! Consolidation empties whole nodes, so it cannot help if the only node with the right GPUs is full, and some of its pods would run
//! anywhere. Here such pods give way. Their successors get other places first, new nodes if needed. When these are open, the waiting
//! pods are nominated to the room. When they are seen to be nominated, the others are evicted, and the waiting pods take their room.
//!
//! The scheduler binds the successor of an evicted pod to any room that is free, but keeps room for a nominated pod. It also clears
//! the nomination of a pod that it tries and cannot place. So a nomination that was just written may not last, and nobody is evicted
//! for it yet. If the room is lost all the same, no further pods give way to this pod, and its node is bought.
//!
//! The waiting pods may also be the successors of pods on a node that consolidation empties (`exchange`). That node is drained
//! when the pods that give way have open places.
//!
//! The choice is not stored. Every plan that would buy a node repeats the search. It finds the same answer, because the places of the
//! successors are free by then. If the answer changes, for example because a budget closes, the node is bought. Evictions are
//! recorded in the [`MoveHistory`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_solver::StopSignal;
use poolwright_terms::Reason;

use crate::action::{Action, Event, EventType, Subject};
use crate::disruption::follow::is_open;
use crate::disruption::move_history::MoveHistory;
use crate::disruption::room_search::{Choice, GivesWay, RoomSearch, Wanted, is_short};
use crate::lifecycle::protection::Facts;
use crate::model::PlanOptions;
use crate::model::plan::{MovedTo, Plan, Target};
use crate::model::{Cause, Claim, ClaimName, Pod, PodKey, Snapshot, Uid};
use crate::rules;

/// The most nodes to buy that one search tries to save.
const MOST_NODES: usize = 3;

/// A plan in which pods give way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomMade {
    /// The plan. It buys nodes for the successors of pods that give way, and for other waiting pods.
    pub plan: Plan,
    /// Nominations of the pods that take the room, and evictions of the pods that give way. Without either until the successors have
    /// places on open nodes, and without evictions until all pods that take the room are nominated. An eviction comes with all
    /// nominations once more, and may be carried out only after them.
    pub actions: Vec<Action>,
    /// The pods that the actions evict, with their UIDs.
    pub evicted: Vec<(PodKey, Uid)>,
    /// The waiting pods whose room can be made now, each with the pods that the actions evict for it.
    pub nominated: BTreeMap<Uid, Vec<(PodKey, Uid)>>,
    /// A sentence about each pod that gives way, and about each pod that takes its room.
    pub explanations: BTreeMap<PodKey, String>,
    /// The claims of nodes that are emptied and whose pods take the room.
    pub emptied: BTreeSet<ClaimName>,
    /// The controllers of the pods that take the room, or these pods.
    pub takers: Vec<Uid>,
}

impl RoomMade {
    /// Returns whether nominations are written without evictions. These may follow soon.
    pub fn only_nominates(&self) -> bool {
        let nominates = |action: &Action| matches!(action, Action::Nominate { .. });
        self.evicted.is_empty() && self.actions.iter().any(nominates)
    }
}

/// Returns whether [`make_room()`] may find anything for a plan: it buys a node, or leaves out a pod that may take room.
pub fn wants_room(plan: &Plan) -> bool {
    let may_take = plan.unplaced.iter().any(|left| is_short(left.reason))
        || plan.moved.iter().any(|moved| matches!(moved.to, MovedTo::Unplaced(_)));
    plan.refused.is_empty() && (!plan.claims.is_empty() || may_take)
}

/// Searches for pods that give way to waiting pods, if that costs less than a node that `current` buys for these. `current` is a plan
/// for the same snapshot, and `move_history` holds earlier moves.
pub fn make_room(
    snapshot: &Snapshot,
    current: &Plan,
    move_history: &MoveHistory,
    now: Timestamp,
    options: &PlanOptions,
    stop: &mut dyn StopSignal,
) -> Option<RoomMade> {
    if !wants_room(current) {
        return None;
    }
    let mut search = RoomSearch::new(Facts::new(snapshot, now), current, move_history, options);
    let is_emptied = |from: &ClaimName| {
        let leaves =
            |claim: &Arc<Claim>| claim.leaving() == Some(Cause::Underutilized) && !claim.ends_soon(now);
        move_history.makes_room_for(from) && snapshot.claims.get(from).is_some_and(leaves)
    };
    let mut wanted: Vec<Wanted> =
        current.claims.iter().filter_map(|claim| search.wanted(claim, is_emptied)).collect();
    let prepared = search.prepared(is_emptied);
    if (wanted.is_empty() && prepared.is_empty()) || !search.find_hosts() {
        return None;
    }
    wanted.extend(prepared.into_iter().filter_map(|key| search.wanted_again(key)));
    wanted.sort_by(|a, b| (b.price, &a.pods).cmp(&(a.price, &b.pods)));
    wanted.into_iter().take(MOST_NODES).find_map(|wanted| {
        let pays = |plan: &Plan, choice: &Choice<'_>| search.pays(plan, choice, &wanted);
        let (plan, choice) = search.instead_of(&wanted, pays, stop)?;
        Some(search.made(plan, &wanted, &choice))
    })
}

impl RoomSearch<'_> {
    /// Returns the result for a plan that pays.
    fn made(&self, mut plan: Plan, wanted: &Wanted, choice: &Choice<'_>) -> RoomMade {
        let snapshot = self.facts.snapshot;
        let to = |pod: &Pod| plan.moved.iter().find(|moved| moved.pod == pod.key).map(|moved| &moved.to);
        let stays: Vec<&GivesWay<'_>> =
            choice.pods.iter().filter(|gives| gives.pod.deleting_since.is_none()).collect();
        let is_ready = stays.iter().all(|gives| match to(gives.pod) {
            Some(MovedTo::Existing(target)) => is_open(snapshot, target),
            Some(MovedTo::NoSuccessor) => true,
            _ => false,
        });
        let Wanted { offering, price, .. } = wanted;
        let instead = format!("instead of a new {offering} at {price:#}");
        let waiting = choice.takers.iter().filter_map(|key| Some(self.asks(key)?.key.to_string()));
        let waiting: Vec<String> = waiting.collect();
        let waiting = rules::format::list(&waiting, 3);
        let mut explanations = BTreeMap::new();
        let leaving: Vec<String> = choice.pods.iter().map(|gives| gives.pod.key.to_string()).collect();
        let leaving = rules::format::list(&leaving, 3);
        let until = if is_ready { "" } else { " It waits until the successors have places on open nodes." };
        let mut actions = Vec::new();
        let mut nominations = Vec::new();
        let mut nominated: BTreeMap<Uid, Vec<(PodKey, Uid)>> = BTreeMap::new();
        let mut are_nominated = true;
        for key in &choice.takers {
            let Some((pod, object)) = snapshot.pods.get(key).zip(key.existing()) else { continue };
            let target =
                plan.placements.iter().find(|placed| placed.pod == *key).map(|placed| &placed.target);
            let Some(Target::Claim(host)) = target else { continue };
            let node = snapshot.claims.get(host).and_then(|claim| claim.node_name.clone());
            let Some(node) = node else { continue };
            if choice.pods.iter().any(|gives| gives.from.name == *host) {
                // The room is not free yet. The next plan places it there.
                plan.nominations.remove(key);
            }
            explanations.insert(
                key.clone(),
                format!("It gets the room of {leaving} on node {node}, {instead}.{until}"),
            );
            let message = format!("it gets the room of other pods on node {node}, {instead}");
            actions.push(Action::RecordEvent(Event {
                subject: Subject::Pod(object.clone()),
                kind: EventType::Normal,
                reason: Reason::RoomMade,
                message,
            }));
            if is_ready {
                let is_nominated = pod.nominated_node.as_ref() == Some(&node);
                are_nominated &= is_nominated;
                nominated.insert(pod.uid.clone(), Vec::new());
                let nominate = Action::Nominate { pod: object.clone(), uid: pod.uid.clone(), node };
                nominations.push((is_nominated, nominate));
            }
        }
        for GivesWay { from, pod, .. } in stays.iter().copied() {
            let node = from.node_name.as_deref().unwrap_or_default();
            let place = match to(pod) {
                Some(MovedTo::Existing(target)) => format!("Its successor has room on {}", target.name()),
                Some(MovedTo::New(_)) => "Its successor gets a new node".to_owned(),
                _ => "It has no successor".to_owned(),
            };
            let text = format!("{place}. Its room on node {node} is for {waiting}, {instead}.");
            explanations.insert(pod.key.clone(), text);
        }
        let (mut evicted, mut evictions) = (Vec::new(), Vec::new());
        for GivesWay { from, pod, to: taker } in stays.into_iter().filter(|_| is_ready && are_nominated) {
            let Some(object) = pod.key.existing() else { continue };
            // Pods on a node that is emptied wait only after it drains. Until then, other pods would take the room.
            let Some(taker) = snapshot.pods.get(taker) else { continue };
            let Some(given) = nominated.get_mut(&taker.uid) else { continue };
            let place = match to(pod) {
                Some(MovedTo::Existing(target)) => format!("has room on {}", target.name()),
                _ => "needs no other place".to_owned(),
            };
            let node = from.node_name.as_deref().unwrap_or_default();
            let why =
                format!("its successor {place}, and its room on node {node} is for {waiting}, {instead}");
            evictions.push(Action::Evict { pod: object.clone(), uid: pod.uid.clone(), why });
            evicted.push((pod.key.clone(), pod.uid.clone()));
            given.push((pod.key.clone(), pod.uid.clone()));
        }
        // The scheduler may have cleared a nomination since.
        nominations.retain(|(is_nominated, _)| !is_nominated || !evictions.is_empty());
        actions.extend(nominations.into_iter().map(|(_, nominate)| nominate));
        actions.extend(evictions);
        let emptied = wanted.pods.iter().filter_map(|key| Some(self.moved(key)?.from.clone())).collect();
        let takers =
            choice.takers.iter().filter_map(|key| self.asks(key)).map(MoveHistory::identity).collect();
        RoomMade { plan, actions, evicted, nominated, explanations, emptied, takers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::{UnplacedPod, UnplacedReason};

    #[test]
    fn no_room_is_wanted_for_a_plan_that_buys_nothing_unless_a_pod_waits_for_a_node_that_cannot_be_bought() {
        let leaving = |reason| {
            let pod = PodKey::new("ml", "a");
            let unplaced = vec![UnplacedPod { pod, reason, message: String::new() }];
            Plan { unplaced, ..Plan::default() }
        };
        assert!(!wants_room(&Plan::default()));
        assert!(!wants_room(&leaving(UnplacedReason::TopologyRule)));
        assert!(wants_room(&leaving(UnplacedReason::LimitReached)));
        let refused = Plan { refused: vec!["a bug".to_owned()], ..leaving(UnplacedReason::LimitReached) };
        assert!(!wants_room(&refused));
    }
}
