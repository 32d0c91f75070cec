//! Required disruption: nodes with upcoming maintenance, drifted nodes and expired nodes.

use jiff::Timestamp;
use poolwright_solver::StopSignal;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::action::{Action, ConditionUpdate, Subject};
use crate::disruption::proposal::{Proposal, leave};
use crate::disruption::search::{Search, places};
use crate::disruption::{drift, worst_case};
use crate::model::{Cause, Claim};

impl Search<'_> {
    /// Returns a proposal to empty the next nodes with upcoming maintenance, drift or expiry, if any.
    pub(crate) fn required(&mut self, stop: &mut dyn StopSignal) -> Option<Proposal> {
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
                wanted.push((Cause::Drifted, claim.created, claim, format!("it has drifted: {what}")));
            } else if let Some(at) = expiry.filter(|at| *at <= self.facts.now) {
                wanted.push((
                    Cause::Expired,
                    claim.created,
                    claim,
                    format!("it expired at {at} (expireAfter)"),
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
        while !chosen.is_empty() && !stop.should_stop() {
            let set: Vec<(&Claim, Cause)> = chosen.iter().map(|(cause, claim, _)| (*claim, *cause)).collect();
            let tried = self.attempt(&set, stop).ok()?;
            if tried.stuck.is_empty() {
                let saving = tried.before.saturating_sub(worst_case::cost(&tried.plan));
                let leave = chosen.iter().map(|(cause, claim, what)| {
                    leave(
                        claim,
                        *cause,
                        format!("{what}; its pods go to {}", places(&tried.plan, &claim.name)),
                    )
                });
                return Some(Proposal {
                    nodes_to_empty: leave.collect(),
                    plan: tried.plan,
                    saving,
                    makes_room: false,
                });
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
}

/// Returns an action that writes the condition `Drifted`, if it differs from the recorded one.
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
            message: "it matches what its pool would create now".to_owned(),
        },
    };
    let same = match recorded {
        Some(recorded) => recorded.status == update.status && recorded.message == update.message,
        None => drifted.is_none(),
    };
    let subject = Subject::Claim(claim.name.clone());
    (!same).then(|| Action::SetConditions { subject, conditions: vec![update] })
}
