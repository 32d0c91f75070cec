//! Follows disrupted nodes after the decision: deletes their claims when all replacements are ready, or calls the disruption off.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::UsdPerHour;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::action::{Action, ConditionUpdate, Event, EventType, Subject};
use crate::lifecycle::protection::Facts;
use crate::model::plan::{Moved, MovedTo, Plan, Target};
use crate::model::{Cause, Claim, ClaimName, PodKey, Snapshot};

/// The time until the next check while nodes are disrupted.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// The time to wait for a PodDisruptionBudget that allows no eviction.
const PATIENCE: SignedDuration = SignedDuration::from_mins(15);

/// The next actions for disrupted nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowUp {
    /// The actions.
    pub actions: Vec<Action>,
    /// The claims whose disruption was just called off. If there are any, the plan must be made again.
    pub obsolete: BTreeSet<ClaimName>,
    /// The time to check again; `None` if no node is disrupted.
    pub again_at: Option<Timestamp>,
    /// The saving of consolidated nodes that start to drain now: their prices, minus the part of the prices of new nodes that
    /// falls to their pods.
    pub saved: UsdPerHour,
}

impl FollowUp {
    /// Removes the claims that the plan makes for pods of nodes whose disruption was called off, unless waiting pods share them.
    pub fn drop_obsolete_claims(&self, plan: &mut Plan) {
        let Plan { claims, moved, .. } = plan;
        let is_obsolete = |key: &PodKey| {
            let moved = moved.iter().find(|moved| moved.successor.as_ref() == Some(key));
            moved.is_some_and(|moved| self.obsolete.contains(&moved.from))
        };
        claims.retain(|claim| {
            !claim.planned_pods.iter().any(is_obsolete)
                || claim.planned_pods.iter().any(|pod| pod.existing().is_some())
        });
    }
}

/// Checks every disrupted node that is not draining yet. `plan` is a plan for this snapshot.
pub fn follow(snapshot: &Snapshot, plan: &Plan, now: Timestamp) -> FollowUp {
    let mut followed = FollowUp::default();
    let mut leaving = snapshot.claims.leaving().filter(|claim| claim.deleting_since.is_none()).peekable();
    if leaving.peek().is_none() {
        return followed;
    }
    followed.again_at = now.checked_add(LOOK_AGAIN).ok();
    let facts = Facts::new(snapshot, now);
    for claim in leaving {
        let Some(cause) = claim.leaving() else { continue };
        match progress(&facts, plan, claim, cause) {
            Progress::Ready => {
                let (name, uid) = (claim.name.clone(), claim.uid.clone());
                let message = if claim.ends_soon(now) {
                    "the available room for its pods is on its way; its node is drained and terminated"
                } else if !giving_way(snapshot, plan, &of(plan, claim)).is_empty() {
                    "its pods get the room of others, which have places on other nodes; its node is drained and terminated"
                } else {
                    "its pods have room on other nodes; its node is drained and terminated"
                };
                let message = message.to_owned();
                followed.actions.push(event(&claim.name, EventType::Normal, Reason::Draining, message));
                followed.actions.push(Action::Drain { claim: name, uid });
                if cause == Cause::Underutilized {
                    followed.saved += saved(snapshot, plan, claim);
                }
            }
            Progress::Waits => {}
            Progress::Off(why) => {
                followed.obsolete.insert(claim.name.clone());
                let message = format!("the node stays: {why}");
                followed.actions.push(event(
                    &claim.name,
                    EventType::Normal,
                    Reason::DisruptionCalledOff,
                    message.clone(),
                ));
                followed.actions.push(Action::SetConditions {
                    subject: Subject::Claim(claim.name.clone()),
                    conditions: vec![ConditionUpdate {
                        kind: ConditionType::Disrupting,
                        status: ConditionStatus::False,
                        reason: Reason::CalledOff,
                        message,
                    }],
                });
            }
        }
    }
    followed
}

/// Returns the price of a claim's node, minus the part of the prices of new nodes that falls to its pods.
fn saved(snapshot: &Snapshot, plan: &Plan, claim: &Claim) -> UsdPerHour {
    let price = |claim: &Claim| claim.current_offering().price.unwrap_or_default();
    let own = of(plan, claim);
    let others = giving_way(snapshot, plan, &own);
    let part = |moved: &Moved| {
        let MovedTo::Existing(Target::Claim(name)) = &moved.to else { return 0 };
        let Some(new) = snapshot.claims.get(name) else { return 0 };
        let expected = new.planned_pods.iter().all(|key| key.existing().is_none());
        let pods = new.planned_pods.len() as u64;
        if expected && pods > 0 { price(new).micros() / pods } else { 0 }
    };
    let paid = own.iter().copied().chain(others).map(part).sum();
    price(claim).saturating_sub(UsdPerHour::from_micros(paid))
}

/// The state of the replacement of a disrupted node.
enum Progress {
    /// All successors have places on open nodes.
    Ready,
    /// New nodes are still starting.
    Waits,
    /// The disruption is called off, for this reason.
    Off(String),
}

fn progress(facts: &Facts<'_>, plan: &Plan, claim: &Claim, cause: Cause) -> Progress {
    // The instance will end in any case, so its pods are evicted as early as possible.
    if claim.ends_soon(facts.now) {
        return Progress::Ready;
    }
    let moved = of(plan, claim);
    let buys = moved.iter().any(|moved| matches!(moved.to, MovedTo::New(_)));
    if let Some(why) = facts.obstacle(claim, cause) {
        return Progress::Off(why);
    }
    if let Some((pod, why)) = moved.iter().find_map(|moved| match &moved.to {
        MovedTo::Unplaced(why) => Some((&moved.pod, why)),
        _ => None,
    }) {
        return Progress::Off(format!("pod {pod} has no other place: {why}"));
    }
    if buys {
        let why = "the room for its pods on other nodes is gone".to_owned();
        return if cause == Cause::Underutilized { Progress::Off(why) } else { Progress::Waits };
    }
    let since = claim.since(ConditionType::Disrupting).unwrap_or(facts.now);
    let patient = since.checked_add(PATIENCE).is_ok_and(|until| facts.now < until);
    if let Some(why) = facts.shut_budget(claim) {
        // Other evictions may be in progress, so it is worth some wait. Waiting longer means paying for two nodes.
        return if patient { Progress::Waits } else { Progress::Off(why) };
    }
    let ready = |moved: &&Moved| match &moved.to {
        MovedTo::Existing(target) => is_open(facts.snapshot, target),
        MovedTo::New(_) => false,
        MovedTo::Unplaced(_) | MovedTo::NoSuccessor => true,
    };
    // Pods of other nodes that give way to them need places too.
    let others = giving_way(facts.snapshot, plan, &moved);
    if moved.iter().chain(&others).all(ready) {
        return Progress::Ready;
    }
    if !patient && others.iter().any(|moved| matches!(moved.to, MovedTo::New(_))) {
        return Progress::Off("the room for pods that give way to its pods is gone".to_owned());
    }
    Progress::Waits
}

/// Returns the moves of the pods of a claim's node.
fn of<'a>(plan: &'a Plan, claim: &Claim) -> Vec<&'a Moved> {
    plan.moved.iter().filter(|moved| moved.from == claim.name).collect()
}

/// Returns the moves of pods that leave nodes that stay, where some of these pods go.
fn giving_way<'a>(snapshot: &Snapshot, plan: &'a Plan, moved: &[&Moved]) -> Vec<&'a Moved> {
    let gives_way = |other: &&Moved| {
        let stays = snapshot.claims.get(&other.from).is_some_and(|claim| claim.leaving().is_none());
        stays && moved.iter().any(|moved| moved.goes_to(&other.from.0))
    };
    plan.moved.iter().filter(gives_way).collect()
}

/// Returns whether the pods that a plan puts on this node or claim can be scheduled there now. A plan puts on a cordoned node only
/// pods that tolerate the cordon, but waits for the end of our own.
pub(crate) fn is_open(snapshot: &Snapshot, target: &Target) -> bool {
    let node = match target {
        Target::Claim(name) => {
            let claim =
                snapshot.claims.get(name).filter(|claim| claim.since(ConditionType::Initialized).is_some());
            claim.and_then(|claim| claim.node_name.clone())
        }
        Target::Node(name) => Some(name.clone()),
    };
    node.and_then(|name| snapshot.nodes.get(&name))
        .is_some_and(|node| node.ready && !node.cordoned_until_initialized)
}

fn event(claim: &ClaimName, kind: EventType, reason: Reason, message: String) -> Action {
    Action::RecordEvent(Event { subject: Subject::Claim(claim.clone()), kind, reason, message })
}
