//! Proposes nodes to empty: required disruptions first, then consolidation.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use poolwright_solver::StopSignal;
use poolwright_terms::Reason;

use crate::action::{Action, Event, EventType, Subject};
use crate::disruption::move_history::MoveHistory;
use crate::disruption::proposal::SearchResult;
use crate::disruption::search::Search;
use crate::lifecycle::protection::Facts;
use crate::model::plan::Plan;
use crate::model::{ClaimName, PlanOptions, Snapshot, Window};
use crate::supply::commitments;

/// Proposes nodes to empty: required disruptions by cause and age, then consolidation. `current` is a plan for the same snapshot
/// that buys nothing. `move_history` holds the moves of earlier consolidations.
pub fn propose(
    snapshot: &Snapshot,
    current: &Plan,
    move_history: &MoveHistory,
    now: Timestamp,
    options: &PlanOptions,
    stop: &mut dyn StopSignal,
) -> SearchResult {
    let mut search = Search {
        facts: Facts::new(snapshot, now),
        current,
        move_history,
        options,
        staying: commitments::staying(snapshot),
        left: BTreeMap::new(),
        over_all: BTreeMap::new(),
        targets: targets(snapshot, current),
        actions: unreadable_budgets(snapshot),
        together: Vec::new(),
        alone: Vec::new(),
        more: false,
        with_room: RefCell::default(),
        kept: BTreeMap::new(),
    };
    let mut proposal = search.required(stop);
    if proposal.is_none() && !stop.should_stop() {
        proposal = search.consolidation(stop);
    }
    let Search { actions, together: tried_together, alone: tried_alone, more: has_untried, kept, .. } =
        search;
    let tried_with_room = search.with_room.into_inner();
    SearchResult { proposal, actions, tried_together, tried_alone, tried_with_room, has_untried, kept }
}

/// Returns the claims that pods are planned for. Their nodes stay.
pub(crate) fn targets(snapshot: &Snapshot, current: &Plan) -> BTreeSet<ClaimName> {
    let moves = snapshot
        .claims
        .values()
        .filter(|claim| current.moved.iter().any(|moved| moved.goes_to(&claim.name.0)));
    let rooms = current.placements.iter().map(|placement| ClaimName(placement.target.name().to_owned()));
    if current.moved.is_empty() {
        return rooms.collect();
    }
    moves.map(|claim| claim.name.clone()).chain(rooms).collect()
}

/// Returns events about invalid budgets, which allow nothing.
fn unreadable_budgets(snapshot: &Snapshot) -> Vec<Action> {
    let mut actions = Vec::new();
    for pool in snapshot.pools.values() {
        for window in pool.disruption.budgets.iter().filter_map(|budget| budget.window.as_ref()) {
            if let Window::Unreadable(why) = window {
                actions.push(Action::RecordEvent(Event {
                    subject: Subject::Pool(pool.name.clone()),
                    kind: EventType::Warning,
                    reason: Reason::DisruptionBudgetUnreadable,
                    message: format!(
                        "{why}; until you correct the budget, it allows no disruption for its reasons"
                    ),
                }));
            }
        }
    }
    actions
}
