//! What becomes of nodes that leave: their claims are deleted when all is ready, or it is called off.

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::UsdPerHour;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::action::{Action, ConditionUpdate, Event, EventType, Subject};
use crate::lifecycle::protection::Facts;
use crate::model::plan::{Moved, MovedTo, Plan, Target};
use crate::model::{Cause, Claim, ClaimName, Snapshot};

/// While nodes leave, how soon to look again.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// How long a PodDisruptionBudget is waited for that allows no eviction.
const PATIENCE: SignedDuration = SignedDuration::from_mins(15);

/// What is to be done about nodes that leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// What to do.
    pub actions: Vec<Action>,
    /// The plan buys for what was just called off: it is to be made anew before anything is bought.
    pub obsolete: bool,
    /// When to look again; `None` when no node leaves.
    pub again_at: Option<Timestamp>,
    /// What the nodes that are drained now, and that leave because their work costs less elsewhere, cost more than what was bought
    /// for their pods: the price of each new node is shared by the pods that it was bought for.
    pub saved: UsdPerHour,
}

/// Looks at every node that leaves and is not drained yet, in the light of a plan of this snapshot.
pub fn follow(snapshot: &Snapshot, plan: &Plan, now: Timestamp) -> Followed {
    let mut followed = Followed::default();
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
                } else {
                    "its pods have room on other nodes; its node is drained and terminated"
                };
                let message = message.to_owned();
                followed.actions.push(event(&claim.name, EventType::Normal, Reason::Draining, message));
                followed.actions.push(Action::Retire { claim: name, uid });
                if cause == Cause::Underutilized {
                    followed.saved += saved(snapshot, plan, claim);
                }
            }
            Progress::Waits => {}
            Progress::Off { why, bought } => {
                followed.obsolete |= bought;
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

/// What a claim's node costs more than its pods' part of what was bought for them.
fn saved(snapshot: &Snapshot, plan: &Plan, claim: &Claim) -> UsdPerHour {
    let price = |claim: &Claim| claim.current_offering().price.unwrap_or_default();
    let part = |moved: &Moved| {
        let MovedTo::Room(Target::Claim(name)) = &moved.to else { return 0 };
        let Some(new) = snapshot.claims.get(name) else { return 0 };
        let expected = new.planned_pods.iter().all(|key| key.existing().is_none());
        let pods = new.planned_pods.len() as u64;
        if expected && pods > 0 { price(new).micros() / pods } else { 0 }
    };
    let paid = plan.moved.iter().filter(|moved| moved.from == claim.name).map(part).sum();
    price(claim).saturating_sub(UsdPerHour::from_micros(paid))
}

/// How far the replacement of a node that leaves is.
enum Progress {
    /// All successors have room on nodes that are open.
    Ready,
    /// Nodes are on their way.
    Waits,
    /// It is not to be any more; whether the plan buys for it.
    Off { why: String, bought: bool },
}

fn progress(facts: &Facts<'_>, plan: &Plan, claim: &Claim, cause: Cause) -> Progress {
    // Its instance goes whatever becomes of its pods, and every second counts for those that are asked to go.
    if claim.ends_soon(facts.now) {
        return Progress::Ready;
    }
    let moved: Vec<&Moved> = plan.moved.iter().filter(|moved| moved.from == claim.name).collect();
    let buys = moved.iter().any(|moved| matches!(moved.to, MovedTo::New(_)));
    if let Some(why) = facts.obstacle(claim, cause) {
        return Progress::Off { why, bought: buys };
    }
    if let Some((pod, why)) = moved.iter().find_map(|moved| match &moved.to {
        MovedTo::Nowhere(why) => Some((&moved.pod, why)),
        _ => None,
    }) {
        return Progress::Off { why: format!("pod {pod} has no other place: {why}"), bought: buys };
    }
    if buys {
        let why = "the room for its pods on other nodes is gone".to_owned();
        return if cause == Cause::Underutilized {
            Progress::Off { why, bought: true }
        } else {
            Progress::Waits
        };
    }
    if let Some(why) = facts.shut_budget(claim) {
        // Others of its kind may be on their way; who waits for longer pays for two nodes.
        let since = claim.since(ConditionType::Disrupting).unwrap_or(facts.now);
        let patient = since.checked_add(PATIENCE).is_ok_and(|until| facts.now < until);
        return if patient { Progress::Waits } else { Progress::Off { why, bought: false } };
    }
    let ready = |moved: &&Moved| match &moved.to {
        MovedTo::Room(target) => is_open(facts.snapshot, target),
        _ => true,
    };
    if moved.iter().all(ready) { Progress::Ready } else { Progress::Waits }
}

/// Whether pods can go there now.
fn is_open(snapshot: &Snapshot, target: &Target) -> bool {
    let node = match target {
        Target::Claim(name) => {
            let claim =
                snapshot.claims.get(name).filter(|claim| claim.since(ConditionType::Initialized).is_some());
            claim.and_then(|claim| claim.node_name.clone())
        }
        Target::Node(name) => Some(name.clone()),
    };
    node.and_then(|name| snapshot.nodes.get(&name)).is_some_and(|node| node.ready && !node.cordoned)
}

fn event(claim: &ClaimName, kind: EventType, reason: Reason, message: String) -> Action {
    Action::RecordEvent(Event { subject: Subject::Claim(claim.clone()), kind, reason, message })
}
