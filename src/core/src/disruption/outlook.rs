//! The outlook of one node: whether consolidation would empty it now, and if not, why. It asks the same search as the controller.

use std::cell::RefCell;
use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_solver::StopSignal;
use poolwright_terms::ConditionType;

use crate::action::{Action, Subject};
use crate::disruption::kept::Kept;
use crate::disruption::move_history::MoveHistory;
use crate::disruption::proposal::Proposal;
use crate::disruption::propose::targets;
use crate::disruption::search::{Search, places};
use crate::lifecycle::protection::Facts;
use crate::lifecycle::repair;
use crate::model::plan::{MovedTo, Plan};
use crate::model::{Cause, Claim, ClaimName, PlanOptions, Snapshot};
use crate::rules::format::count;
use crate::supply::commitments;

/// The outlook of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// The next search would empty it, for this reason.
    Leaves(String),
    /// It could be emptied for this reason if no other node were, but the next search does not come to it.
    Later {
        /// The claims of the nodes that the next search empties; empty if it only tries others first.
        first: Vec<ClaimName>,
        /// The reason.
        why: String,
    },
    /// It stays.
    Stays {
        /// The first reason.
        why: Kept,
        /// The cost of its pods elsewhere, if the reason hides it and a plan shows it.
        elsewhere: Option<Elsewhere>,
    },
}

/// The cost of a node's pods on other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The cost of the node, per hour.
    pub before: UsdPerHour,
    /// The cost of the nodes that its pods would need instead, per hour.
    pub after: UsdPerHour,
    /// The places that its pods would get.
    pub places: String,
}

/// Returns the outlook of a claim's node; `None` if there is no such claim. `current` is a plan for the same snapshot.
pub fn outlook(
    snapshot: &Snapshot,
    current: &Plan,
    move_history: &MoveHistory,
    now: Timestamp,
    options: &PlanOptions,
    name: &ClaimName,
    stop: &mut dyn StopSignal,
) -> Option<Outlook> {
    let claim = snapshot.claims.get(name)?;
    let mut search = Search {
        facts: Facts::new(snapshot, now),
        current,
        move_history,
        options,
        staying: commitments::staying(snapshot),
        left: BTreeMap::new(),
        over_all: BTreeMap::new(),
        targets: targets(snapshot, current),
        actions: Vec::new(),
        together: Vec::new(),
        alone: Vec::new(),
        more: false,
        with_room: RefCell::default(),
        kept: BTreeMap::new(),
    };
    Some(match search.outlook(claim, stop) {
        Ok(leaves) => leaves,
        Err(why) => {
            let elsewhere = if why.hides_saving() { search.elsewhere(claim, stop) } else { None };
            Outlook::Stays { why, elsewhere }
        }
    })
}

impl<'a> Search<'a> {
    /// Returns the outlook of a claim's node that a search would empty.
    ///
    /// # Errors
    ///
    /// The first reason why it stays.
    fn outlook(&mut self, claim: &'a Claim, stop: &mut dyn StopSignal) -> Result<Outlook, Kept> {
        unsettled(claim).map_or(Ok(()), Err)?;
        let (facts, node) = (&self.facts, self.facts.node(claim));
        let repair = node.and_then(|node| repair::outlook(facts.snapshot, facts.now, claim, node));
        if repair.is_some_and(|repair| repair.is_now(facts.now)) {
            return Err(Kept::Repaired);
        }
        if let Some(message) = self.required(stop).as_ref().and_then(|next| of_claim(next, claim)) {
            return Ok(Outlook::Leaves(message));
        }
        if let Some(blocked) = self.actions.iter().find_map(|action| of_event(action, claim)) {
            return Err(Kept::Blocked(blocked));
        }
        // A reason that lasts is of more interest than one that passes.
        self.why_kept(claim).map_or(Ok(()), Err)?;
        self.busy().map_or(Ok(()), Err)?;
        let next = self.consolidation(stop);
        if let Some(message) = next.as_ref().and_then(|next| of_claim(next, claim)) {
            return Ok(Outlook::Leaves(message));
        }
        // The search may have ended before it came to this node.
        let alone = match self.kept.remove(&claim.name) {
            Some(why) => Err(why),
            None => self.saves(&[claim], stop),
        };
        match alone {
            Ok(alone) => {
                let first = next.into_iter().flat_map(|next| next.nodes_to_empty).map(|leaves| leaves.claim);
                let first = first.collect();
                of_claim(&alone, claim).map(|why| Outlook::Later { first, why }).ok_or(Kept::NoTime)
            }
            Err(_) if stop.should_stop() => Err(Kept::NoTime),
            Err(why) => Err(why),
        }
    }

    /// Returns why the controller would not search for nodes to empty now, if so.
    fn busy(&self) -> Option<Kept> {
        let bought = self.current.claims.len();
        if bought > 0 {
            let are = if bought == 1 { "is" } else { "are" };
            return Some(Kept::NotNow(format!("{} {are} bought now", count(bought, "new node"))));
        }
        let gives_way = self.current.moved.iter().find(|moved| {
            self.facts.snapshot.claims.get(&moved.from).is_some_and(|claim| claim.leaving().is_none())
        })?;
        Some(Kept::NotNow(format!("pod {} gives way to a waiting pod now", gives_way.pod)))
    }

    /// Returns the cost of a node's pods on other nodes; `None` if a plan does not show it.
    fn elsewhere(&self, claim: &Claim, stop: &mut dyn StopSignal) -> Option<Elsewhere> {
        let tried = self.attempt(&[(claim, Cause::Underutilized)], stop).ok()?;
        let mut moved = tried.plan.moved.iter().filter(|moved| moved.from == claim.name).peekable();
        moved.peek()?;
        // A pod that nobody recreates costs nothing elsewhere, which is no saving.
        moved.all(|moved| matches!(moved.to, MovedTo::Existing(_) | MovedTo::New(_))).then(|| Elsewhere {
            before: tried.before,
            after: tried.plan.cost,
            places: places(&tried.plan, &claim.name),
        })
    }
}

/// Returns why a claim is no candidate for a search at all.
fn unsettled(claim: &Claim) -> Option<Kept> {
    if claim.deleting_since.is_some() {
        return Some(Kept::BeingDeleted);
    }
    if claim.since(ConditionType::Disrupting).is_some() {
        let condition = claim.conditions.get(&ConditionType::Disrupting);
        return Some(Kept::Disrupting(condition.map(|one| one.message.clone()).unwrap_or_default()));
    }
    claim.since(ConditionType::Initialized).is_none().then_some(Kept::NotOpen)
}

fn of_claim(proposal: &Proposal, claim: &Claim) -> Option<String> {
    let leaves = proposal.nodes_to_empty.iter().find(|leaves| leaves.claim == claim.name)?;
    Some(leaves.condition.message.clone())
}

fn of_event(action: &Action, claim: &Claim) -> Option<String> {
    match action {
        Action::RecordEvent(event) if event.subject == Subject::Claim(claim.name.clone()) => {
            Some(event.message.clone())
        }
        _ => None,
    }
}
