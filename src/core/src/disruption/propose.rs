//! Which nodes are emptied next.

use crate::disruption::look::{Look, Tried};
use crate::disruption::proposal::leave;
use crate::disruption::proposal::{Outlook, Proposal};
use poolwright_terms::{ConditionStatus, ConditionType, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_solver::StopSignal;

use crate::action::{Action, ConditionUpdate, Event, EventType, Subject};
use crate::disruption::past_moves::Moves;
use crate::disruption::{drift, payback, repack};
use crate::lifecycle::allowance;
use crate::lifecycle::protection::Facts;
use crate::model::PlanOptions;
use crate::model::plan::{MovedTo, Plan, PlannedClaim};
use crate::model::{Cause, Claim, ClaimName, Condition, PodKey, PoolName, Snapshot, Window};
use crate::plan::plan;
use crate::supply::commitments;

/// How many sets of nodes are tried in one look.
const TRIES: usize = 12;

/// Chooses nodes to empty: those that must go first, by cause and age; then those whose work costs less elsewhere. `current` is a
/// plan of the same snapshot that buys nothing, `moves` what was moved before.
pub fn propose(
    snapshot: &Snapshot,
    current: &Plan,
    moves: &Moves,
    now: Timestamp,
    options: &PlanOptions,
    watch: &mut dyn StopSignal,
) -> Outlook {
    let mut look = Look {
        facts: Facts::new(snapshot, now),
        current,
        moves,
        options,
        staying: commitments::staying(snapshot),
        left: BTreeMap::new(),
        over_all: BTreeMap::new(),
        targets: targets(snapshot, current),
        actions: Vec::new(),
        together: Vec::new(),
        alone: Vec::new(),
        more: false,
    };
    look.unreadable_budgets();
    let mut proposal = look.required(watch);
    if proposal.is_none() && !watch.should_stop() {
        proposal = look.cheaper(watch);
    }
    let Look { actions, together, alone, more, .. } = look;
    Outlook { proposal, actions, together, alone, more }
}

/// Claims that others count on: their nodes stay.
fn targets(snapshot: &Snapshot, current: &Plan) -> BTreeSet<ClaimName> {
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

impl<'a> Look<'a> {
    /// Claims that may be looked at: open nodes that stay so far and that nobody is about to come to.
    fn settled(&self) -> impl Iterator<Item = &'a Claim> + use<'a> {
        let claims = self.facts.snapshot.claims.values().map(AsRef::as_ref);
        claims.filter(|claim| {
            claim.deleting_since.is_none()
                && claim.since(ConditionType::Initialized).is_some()
                && claim.since(ConditionType::Disrupting).is_none()
        })
    }

    /// How many more nodes of the pool may be disturbed for this.
    fn left(&mut self, pool: &PoolName, cause: Cause) -> u64 {
        let facts = &self.facts;
        let entry = self.left.entry((pool.clone(), cause)).or_insert_with(|| {
            let pool = facts.snapshot.pools.get(pool);
            let nothing = allowance::Allowance { left: 0, why: String::new() };
            pool.map_or(nothing, |pool| {
                crate::lifecycle::allowance::allowance(facts.snapshot, pool, cause, facts.now)
            })
        });
        entry.left
    }

    /// How many more nodes of all pools may be disturbed for this.
    fn left_over_all(&mut self, cause: Cause) -> u64 {
        let facts = &self.facts;
        let work_out = || crate::lifecycle::allowance::allowance_over_all(facts.snapshot, cause, facts.now);
        self.over_all.entry(cause).or_insert_with(work_out).left
    }

    fn blocked(&mut self, claim: &Claim, cause: Cause, why: &str) {
        let what = match cause {
            Cause::Drifted => "it has drifted and is not replaced yet",
            Cause::Interrupted => "its machine is about to be serviced and it is not replaced yet",
            _ => "it is older than its pool allows and is not replaced yet",
        };
        let event = Event {
            subject: Subject::Claim(claim.name.clone()),
            kind: EventType::Normal,
            reason: Reason::DisruptionBlocked,
            message: format!("{what}: {why}"),
        };
        self.actions.push(Action::RecordEvent(event));
    }

    /// Says which budgets make no sense, and so allow nothing.
    fn unreadable_budgets(&mut self) {
        for pool in self.facts.snapshot.pools.values() {
            for window in pool.disruption.budgets.iter().filter_map(|budget| budget.window.as_ref()) {
                if let Window::Unreadable(why) = window {
                    self.actions.push(Action::RecordEvent(Event {
                        subject: Subject::Pool(pool.name.clone()),
                        kind: EventType::Warning,
                        reason: Reason::DisruptionBudgetUnreadable,
                        message: format!("{why}; until it is corrected, nothing it is about is disrupted"),
                    }));
                }
            }
        }
    }

    /// Nodes whose machines are about to be serviced, that have drifted or are too old.
    fn required(&mut self, watch: &mut dyn StopSignal) -> Option<Proposal> {
        let mut wanted: Vec<(Cause, Timestamp, &Claim, String)> = Vec::new();
        for claim in self.settled() {
            let Some(pool) = self.facts.pool(claim).filter(|pool| !pool.deleting && pool.problem.is_none())
            else {
                continue;
            };
            let drifted = drift(self.facts.snapshot, pool, claim);
            self.actions.extend(drifted_condition(claim, drifted.as_deref()));
            let expiry =
                pool.disruption.expire_after.and_then(|length| claim.created.checked_add(length).ok());
            if let Some(interruption) = claim.interruption.as_ref().filter(|one| one.kind.is_certain()) {
                wanted.push((Cause::Interrupted, claim.created, claim, interruption.words()));
            } else if let Some(what) = drifted {
                wanted.push((
                    Cause::Drifted,
                    claim.created,
                    claim,
                    format!("it is not as its pool says any more: {what}"),
                ));
            } else if let Some(at) = expiry.filter(|at| *at <= self.facts.now) {
                wanted.push((
                    Cause::Expired,
                    claim.created,
                    claim,
                    format!("its time ended at {at} (expireAfter)"),
                ));
            }
        }
        wanted.sort_by(|a, b| (a.0, a.1, &a.2.name).cmp(&(b.0, b.1, &b.2.name)));
        let mut chosen: Vec<(Cause, &Claim, String)> = Vec::new();
        for (cause, _, claim, what) in wanted {
            let obstacle = self.facts.obstacle(claim, cause);
            if let Some(why) = obstacle.or_else(|| self.facts.shut_budget(claim)) {
                self.blocked(claim, cause, &why);
                continue;
            }
            if self.targets.contains(&claim.name) {
                continue;
            }
            let taken = chosen.iter().filter(|(_, other, _)| other.pool == claim.pool).count() as u64;
            if self.left(&claim.pool, cause) <= taken {
                let why = self.left[&(claim.pool.clone(), cause)].why.clone();
                self.blocked(claim, cause, &why);
                continue;
            }
            if self.left_over_all(cause) <= chosen.len() as u64 {
                let why = self.over_all[&cause].why.clone();
                self.blocked(claim, cause, &why);
                continue;
            }
            chosen.push((cause, claim, what));
        }
        while !chosen.is_empty() && !watch.should_stop() {
            let set: Vec<(&Claim, Cause)> = chosen.iter().map(|(cause, claim, _)| (*claim, *cause)).collect();
            let tried = self.attempt(&set, watch)?;
            if tried.stuck.is_empty() {
                let saving = tried.before.saturating_sub(tried.plan.cost);
                let leave = chosen.iter().map(|(cause, claim, what)| {
                    leave(
                        claim,
                        *cause,
                        format!("{what}; its pods go to {}", places(&tried.plan, &claim.name)),
                    )
                });
                return Some(Proposal { leave: leave.collect(), plan: tried.plan, saving });
            }
            for (cause, claim, _) in &chosen {
                if let Some(why) = tried.stuck.get(&claim.name) {
                    let (claim, cause) = (*claim, *cause);
                    self.blocked(claim, cause, why);
                }
            }
            chosen.retain(|(_, claim, _)| !tried.stuck.contains_key(&claim.name));
        }
        None
    }

    /// Nodes whose work costs less elsewhere.
    fn cheaper(&mut self, watch: &mut dyn StopSignal) -> Option<Proposal> {
        let mut candidates: Vec<&'a Claim> = Vec::new();
        for claim in self.settled() {
            if self.may_save(claim)
                && self.left(&claim.pool, Cause::Underutilized) > 0
                && self.left_over_all(Cause::Underutilized) > 0
            {
                candidates.push(claim);
            }
        }
        if candidates.is_empty() {
            return None;
        }
        let groups = repack::steps(self, &candidates, watch);
        let seen: BTreeSet<&ClaimName> = self.together.iter().collect();
        self.more = candidates
            .iter()
            .any(|claim| !seen.contains(&claim.name) && !self.moves.saw_together(&claim.name));
        let mut sets: Vec<Vec<&Claim>> = Vec::new();
        let mut all: Vec<&Claim> = Vec::new();
        for group in &groups {
            let mut more = all.clone();
            more.extend(group);
            if self.within(&more) {
                all = more;
            }
        }
        if groups.len() > 1 && !all.is_empty() {
            sets.push(all);
        }
        sets.extend(groups.into_iter().filter(|group| self.within(group)));
        // What a rough model of the whole did not see: single nodes, those first that cost most for what they lose.
        let mut single = candidates.clone();
        let price = |claim: &Claim| claim.current_offering().price.unwrap_or_default();
        single.sort_by_key(|claim| {
            let lost = payback::lost(&self.facts, claim, price(claim));
            (
                self.moves.saw_alone(&claim.name),
                u128::from(lost) * 1000 / u128::from(price(claim).micros().max(1)),
                std::cmp::Reverse(price(claim)),
                &claim.name,
            )
        });
        sets.extend(single.into_iter().map(|claim| vec![claim]));
        for set in sets.into_iter().take(TRIES) {
            if watch.should_stop() {
                break;
            }
            if let [only] = set.as_slice()
                && !self.moves.saw_alone(&only.name)
            {
                self.alone.push(only.name.clone());
            }
            if let Some(proposal) = self.saves(&set, watch) {
                return Some(proposal);
            }
        }
        None
    }

    /// Whether a node may be emptied to save money.
    fn may_save(&self, claim: &Claim) -> bool {
        let Some(pool) = self.facts.pool(claim) else { return false };
        let moves = pool.disruption.moves_work && pool.replicas.is_none() && !pool.deleting;
        let Some(quiet) = pool.disruption.quiet_for.filter(|_| moves) else {
            return false;
        };
        let opened = claim.since(ConditionType::Initialized);
        let newest = self.facts.work(claim).map(|pod| pod.created).max();
        let Some(newest) = newest else { return false };
        let since = opened.map_or(newest, |opened| opened.max(newest));
        let is_quiet = since.checked_add(quiet).is_ok_and(|until| until <= self.facts.now);
        is_quiet
            && !self.targets.contains(&claim.name)
            && claim.current_offering().price.is_some()
            && self.facts.obstacle(claim, Cause::Underutilized).is_none()
            && self.facts.shut_budget(claim).is_none()
            && self.moves.allow(&self.facts, &[claim])
    }

    /// Whether budgets allow that these leave together.
    fn within(&mut self, set: &[&Claim]) -> bool {
        let mut counts: BTreeMap<&PoolName, u64> = BTreeMap::new();
        for claim in set {
            *counts.entry(&claim.pool).or_default() += 1;
        }
        set.len() as u64 <= self.left_over_all(Cause::Underutilized)
            && counts.into_iter().all(|(pool, count)| count <= self.left(pool, Cause::Underutilized))
    }

    /// The proposal that these leave, if that saves enough.
    fn saves(&self, set: &[&Claim], watch: &mut dyn StopSignal) -> Option<Proposal> {
        let caused: Vec<(&Claim, Cause)> = set.iter().map(|claim| (*claim, Cause::Underutilized)).collect();
        if !self.moves.allow(&self.facts, set) {
            return None;
        }
        let tried = self.attempt(&caused, watch)?;
        if !tried.stuck.is_empty() || self.goes_down(&tried.plan) {
            return None;
        }
        let price = |claim: &Claim| claim.current_offering().price.unwrap_or_default();
        let lost = set
            .iter()
            .map(|claim| payback::lost(&self.facts, claim, price(claim)))
            .fold(0, u64::saturating_add);
        let payback =
            set.iter().filter_map(|claim| Some(self.facts.pool(claim)?.disruption.payback)).min()?;
        // Work that is well is not moved to what is about to be lost for what that seems to save.
        let counted = tried.plan.cost + tried.plan.risk;
        if !payback::pays(tried.before, counted, lost, payback) {
            return None;
        }
        let saving = tried.before.saturating_sub(tried.plan.cost);
        let leave = set.iter().map(|claim| {
            let others =
                if set.len() > 1 { format!(" with {} others", set.len() - 1) } else { String::new() };
            let what = format!(
                "its work{others} costs {} $/h where it is and {} $/h elsewhere: its pods go to {}",
                tried.before,
                tried.plan.cost,
                places(&tried.plan, &claim.name)
            );
            leave(claim, Cause::Underutilized, what)
        });
        Some(Proposal { leave: leave.collect(), plan: tried.plan, saving })
    }

    /// Whether a pod would move to a new node of a pool that is less wanted than its own, by weight: it would be planned for the
    /// wanted one again as soon as it is made anew.
    fn goes_down(&self, plan: &Plan) -> bool {
        let weight = |pool: &PoolName| self.facts.snapshot.pools.get(pool).map_or(0, |pool| pool.weight);
        let bought: BTreeMap<&ClaimName, u32> =
            plan.claims.iter().map(|claim| (&claim.name, weight(&claim.pool))).collect();
        plan.moved.iter().any(|moved| {
            let MovedTo::New(name) = &moved.to else { return false };
            let from = self.facts.snapshot.claims.get(&moved.from).map_or(0, |claim| weight(&claim.pool));
            bought.get(name).is_some_and(|to| *to < from)
        })
    }

    /// The cluster in which these leave.
    pub fn without(&self, set: &[(&Claim, Cause)]) -> Snapshot {
        let mut snapshot = self.facts.snapshot.clone();
        for (claim, cause) in set {
            let mut claim = (*claim).clone();
            let condition = Condition {
                status: ConditionStatus::True,
                since: self.facts.now,
                reason: cause.as_str().to_owned(),
                message: String::new(),
            };
            claim.conditions.insert(ConditionType::Disrupting, condition);
            snapshot.claims.insert(claim.name.clone(), Arc::new(claim));
        }
        snapshot
    }

    /// What is paid less when these are gone: where a commitment pays them and nothing else could use it, that is nothing.
    fn worth(&self, gone: &[&Claim]) -> UsdPerHour {
        commitments::worth(&self.options.commitments, &self.staying, gone)
    }

    /// Plans for the cluster in which these leave; `None` where somebody else would be worse off for it.
    fn attempt(&self, set: &[(&Claim, Cause)], watch: &mut dyn StopSignal) -> Option<Tried> {
        let plan = plan(&self.without(set), self.facts.now, self.options, watch);
        let names: BTreeSet<&ClaimName> = set.iter().map(|(claim, _)| &claim.name).collect();
        let unmet =
            |plan: &Plan| -> BTreeSet<PodKey> { plan.unplaced.iter().map(|left| left.pod.clone()).collect() };
        let strands = || !unmet(&plan).is_subset(&unmet(self.current));
        let mut stuck: BTreeMap<ClaimName, String> = BTreeMap::new();
        for moved in &plan.moved {
            match &moved.to {
                MovedTo::Nowhere(why) if names.contains(&moved.from) => {
                    let why = format!("there is no other place for pod {}: {why}", moved.pod);
                    stuck.entry(moved.from.clone()).or_insert(why);
                }
                MovedTo::Nowhere(_) | MovedTo::New(_) if !names.contains(&moved.from) => return None,
                _ => {}
            }
        }
        let only_theirs =
            |claim: &PlannedClaim| claim.planned_pods.iter().all(|key| key.existing().is_none());
        let sound = plan.refused.is_empty()
            && plan.unknown_price_claims == 0
            && plan.claims.iter().all(only_theirs)
            && !strands();
        let gone: Vec<&Claim> = set.iter().map(|(claim, _)| *claim).collect();
        let before = self.worth(&gone);
        sound.then_some(Tried { plan, before, stuck })
    }
}

/// The condition `Drifted`, where it is not recorded so.
fn drifted_condition(claim: &Claim, drifted: Option<&str>) -> Option<Action> {
    let recorded = claim.conditions.get(&ConditionType::Drifted);
    let update = match drifted {
        Some(what) => ConditionUpdate {
            kind: ConditionType::Drifted,
            status: ConditionStatus::True,
            reason: Reason::PoolChanged,
            message: what.to_owned(),
        },
        None => ConditionUpdate {
            kind: ConditionType::Drifted,
            status: ConditionStatus::False,
            reason: Reason::AsPoolSays,
            message: "it is what its pool would make now".to_owned(),
        },
    };
    let same = match recorded {
        Some(recorded) => recorded.status == update.status && recorded.message == update.message,
        None => drifted.is_none(),
    };
    let subject = Subject::Claim(claim.name.clone());
    (!same).then(|| Action::SetConditions { subject, conditions: vec![update] })
}

/// Where the pods of a claim go, in words.
fn places(plan: &Plan, from: &ClaimName) -> String {
    let (mut rooms, mut new): (BTreeSet<&str>, BTreeSet<&ClaimName>) = (BTreeSet::new(), BTreeSet::new());
    for moved in plan.moved.iter().filter(|moved| moved.from == *from) {
        match &moved.to {
            MovedTo::Room(target) => {
                rooms.insert(target.name());
            }
            MovedTo::New(name) => {
                new.insert(name);
            }
            MovedTo::Nowhere(_) | MovedTo::NotMade => {}
        }
    }
    let mut words: Vec<String> = Vec::new();
    for name in new {
        if let Some(claim) = plan.claims.iter().find(|claim| claim.name == *name) {
            let price = claim.price().map_or("unknown".to_owned(), |price| price.to_string());
            words.push(format!("new {name} ({} at {price} $/h)", claim.offering()));
        }
    }
    let more = rooms.len().saturating_sub(3);
    words.extend(rooms.into_iter().take(3).map(ToOwned::to_owned));
    if more > 0 {
        words.push(format!("{more} more"));
    }
    if words.is_empty() { "nowhere: none is left that comes back".to_owned() } else { words.join(", ") }
}
