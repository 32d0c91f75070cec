//! The executor: carries out the actions that `core` decides. It decides nothing, and every action may be repeated.
//!
//! Actions on one claim and its node form a lane and run in order. Lanes run concurrently. Actions for a busy lane are dropped,
//! because `core` decides them again when the lane is free. After a failure, the rest of the lane is dropped, so a node never
//! opens before its pods are nominated. Only a write that may be denied for ever holds up nothing else (`denied`).
//!
//! Results that matter for decisions go back to `core` as an [`Outcome`](core::Outcome), and `core` returns further actions.

mod claims;
pub mod context;
mod denied;
pub mod event_writer;
mod evictions;
mod give_back;
mod interruption;
mod lanes;
mod launch;
pub mod launch_batches;
mod nodes;
mod pods;
mod progress;
mod removal;
mod slots;
mod stage_durations;
pub mod status;
mod taints;
#[cfg(test)]
pub(crate) mod tests;
pub mod unrecorded;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::ObjectReference;
use poolwright_core::{self as core, Action, Event, EventType, Snapshot, Subject};
use poolwright_terms::Reason;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, warn};

pub use claims::CreateResult;
pub use interruption::RecordResult;
use lanes::{InLane, Lanes, Step, Turn, lane_of_claim};
use progress::Progress;
use slots::Slots;

use crate::edge::events::QueuedEvent;
use crate::edge::stoppable::{Stoppable, message};
use crate::executor::context::Context;
use crate::executor::unrecorded::Unrecorded;

/// The number of last actions that are carried out at once.
const AT_ONCE: usize = 16;

/// Carries out actions.
pub struct Executor {
    context: Context,
    /// Interruptions that are not recorded yet.
    unrecorded: Unrecorded,
    lanes: Lanes,
    tasks: TaskTracker,
    stoppable: Stoppable,
    slots: Slots,
}

impl Executor {
    /// Creates an executor that works on this many lanes concurrently, in addition to lanes that wait for a cloud or close a
    /// node.
    pub fn new(context: Context, concurrency: usize, stoppable: Stoppable) -> Arc<Self> {
        Arc::new(Self {
            unrecorded: Unrecorded::new(context.clock.clone()),
            context,
            lanes: Lanes::default(),
            tasks: TaskTracker::new(),
            stoppable,
            slots: Slots::new(concurrency),
        })
    }

    /// Interruptions that were received from clouds and are not recorded yet.
    pub fn unrecorded(&self) -> &Unrecorded {
        &self.unrecorded
    }

    /// Starts actions and returns at once.
    pub fn submit(self: &Arc<Self>, actions: Vec<Action>, snapshot: &Snapshot) {
        let mut lanes: BTreeMap<String, Vec<Action>> = BTreeMap::new();
        for action in actions {
            match action {
                Action::RecordEvent(event) => self.record(event),
                action => lanes.entry(lane(&action, snapshot)).or_default().push(action),
            }
        }
        let now = self.context.clock.monotonic();
        for (lane, mut actions) in lanes {
            let turn = |action: &Action| self.lanes.turn(&lane, step(action), now);
            actions.retain(|action| turn(action) != Turn::Passed);
            if actions.first().map(turn) != Some(Turn::Now) {
                continue;
            }
            let Some(in_lane) = self.lanes.enter(&lane) else { continue };
            let executor = self.clone();
            let work = async move { executor.work(in_lane, &lane, actions).await };
            self.tasks.spawn(self.stoppable.clone().run(work));
        }
    }

    /// Nominates pods, and then starts the other actions. Without an answer to each nomination, it starts no evictions: the scheduler
    /// could bind the successor of an evicted pod before it knows for whom the room is kept. All it learns of pods comes in one watch,
    /// in the order of the writes.
    pub async fn submit_after_nominations(self: &Arc<Self>, actions: Vec<Action>, snapshot: &Snapshot) {
        let (nominations, mut others): (Vec<Action>, Vec<Action>) =
            actions.into_iter().partition(|action| matches!(action, Action::Nominate { .. }));
        for action in nominations {
            let outcome = Box::pin(self.attempt(&action)).await;
            if let Progress::Retry(_, why) | Progress::Passed(_, why) = &outcome {
                warn!(why, "a pod could not be nominated, so no pod is evicted for it yet");
            }
            if !matches!(outcome, Progress::Done) {
                others.retain(|action| !matches!(action, Action::Evict { .. }));
                break;
            }
        }
        self.submit(others, snapshot);
    }

    /// Returns when the next failed action may be retried, on the monotonic clock.
    pub fn next_retry(&self) -> Option<Duration> {
        self.lanes.next_end(self.context.clock.monotonic())
    }

    /// Carries out actions at once, beside all other work, for at most `limit`.
    pub async fn carry_out_now(&self, actions: Vec<Action>, limit: Duration) {
        let all = stream::iter(&actions).for_each_concurrent(AT_ONCE, async |action| {
            self.attempt(action).await;
        });
        if tokio::time::timeout(limit, all).await.is_err() {
            warn!(actions = actions.len(), "not all last actions were carried out in time");
        }
    }

    /// Stops accepting work, and waits until all work has ended, for at most `limit`.
    pub async fn drain(&self, limit: Duration) {
        self.slots.close();
        self.tasks.close();
        if tokio::time::timeout(limit, self.tasks.wait()).await.is_err() {
            warn!(lanes = self.lanes.busy(), "running calls are abandoned; the next leader repeats them");
        }
    }

    async fn work(self: Arc<Self>, in_lane: InLane, lane: &str, actions: Vec<Action>) {
        let Some(_slot) = self.slots.next(&actions).await else { return };
        let mut changed = false;
        for action in actions {
            let (kind, step) = (kind(&action), step(&action));
            match self.lanes.turn(lane, step.clone(), self.context.clock.monotonic()) {
                Turn::Now => {}
                Turn::Passed => continue,
                Turn::Waits => break,
            }
            let outcome = self.attempt(&action).await;
            let now = self.context.clock.monotonic();
            match outcome {
                Progress::Done => {
                    changed = true;
                    in_lane.worked(step);
                    debug!(lane, kind, "done");
                }
                Progress::NothingToDo => in_lane.worked(step),
                Progress::Again(pause) => {
                    in_lane.again(step, pause, now);
                    changed = true;
                    break;
                }
                Progress::Retry(at_least, why) => {
                    let wait = in_lane.failed(step, at_least, now);
                    warn!(lane, action = kind, why, retry_in = ?wait, "an action failed");
                    changed = true;
                    break;
                }
                Progress::Passed(at_least, why) => {
                    let wait = in_lane.passed(step, at_least, now);
                    warn!(lane, action = kind, why, retry_in = ?wait, "an action failed; the next ones go on without it");
                    changed = true;
                }
                Progress::NotLeading => break,
            }
        }
        // Actions that were dropped while the lane was busy must be decided again now, even if nothing changed: there may be no
        // further change for a long time.
        let was_asked = in_lane.leave();
        if changed || was_asked {
            self.context.world.poke();
        }
    }

    /// Carries out an action, and counts it. A panic is a failure like any other, and is retried with back-off.
    async fn attempt(&self, action: &Action) -> Progress {
        let attempt = AssertUnwindSafe(self.carry_out(action)).catch_unwind().await;
        let outcome = attempt.unwrap_or_else(|panic| {
            let panic = message(&*panic);
            error!(?action, panic, "an action panicked; this is a bug, please report it");
            self.context.metrics.task_failures.with_label_values(&["action"]).inc();
            Progress::retry(format!("it panicked, which is a bug: {panic}"))
        });
        self.context.metrics.actions.with_label_values(&[kind(action), outcome.label()]).inc();
        outcome
    }

    async fn carry_out(&self, action: &Action) -> Progress {
        match action {
            Action::Launch { claim } => match self.context.world.claim(claim) {
                Some(claim) => self.launch(&claim).await,
                None => Progress::NothingToDo,
            },
            Action::Register { claim, node, labels, annotations, taints } => {
                match self.context.world.claim(claim) {
                    Some(claim) => self.register(&claim, node, labels, annotations, taints).await,
                    None => Progress::NothingToDo,
                }
            }
            Action::Nominate { pod, uid, node } => self.nominate(pod, uid, node).await,
            Action::Tolerate { pod, uid, claim } => self.tolerate(pod, uid, claim).await,
            Action::Open { node, reserve_for } => self.open(node, reserve_for.as_ref()).await,
            Action::SetTaints { node, taints } => self.set_taints(node, taints).await,
            Action::DeleteClaim { claim, uid, only_if_empty } => {
                match self.context.world.claim(claim).filter(|known| known.uid == *uid) {
                    Some(known) if *only_if_empty => self.delete_empty_claim(&known).await,
                    Some(known) => self.delete_failed_claim(&known).await,
                    None => self.delete_claim(claim, uid).await,
                }
            }
            Action::Drain { claim, uid } => self.delete_claim(claim, uid).await,
            Action::Evict { pod, uid, why } => self.evict(pod, uid, why).await,
            Action::EndPod { pod, uid, grace } => self.end_pod(pod, uid, *grace).await,
            Action::Terminate { claim, forced } => match self.context.world.claim(claim) {
                Some(claim) => self.terminate(&claim, *forced).await,
                None => Progress::NothingToDo,
            },
            Action::Reap { provider_id, claim_uid, node_class } => {
                self.reap(provider_id, claim_uid, node_class).await
            }
            Action::SetConditions { subject, conditions } => self.set_conditions(subject, conditions).await,
            Action::HoldBack { claim, message } => match self.context.world.claim(claim) {
                Some(known) => match self.kept_by_news(&known).await {
                    Some(outcome) => outcome,
                    None => self.hold_back(claim, message),
                },
                None => Progress::NothingToDo,
            },
            Action::PlanNow => {
                self.context.world.urgent();
                Progress::Done
            }
            Action::RefreshCatalogues => {
                self.context.world.classes_changed();
                Progress::Done
            }
            Action::RecordEvent(event) => {
                self.record(event.clone());
                Progress::Done
            }
        }
    }

    /// Reports an outcome to `core`, and carries out the actions that it returns.
    async fn learn(&self, outcome: &core::Outcome<'_>) -> Progress {
        let actions = self.context.world.learn(outcome);
        self.follow_up(actions).await
    }

    /// Carries out actions in order. After a failure, only `PlanNow` is still done. Boxed, because actions may lead to further
    /// actions.
    fn follow_up(&self, actions: Vec<Action>) -> BoxFuture<'_, Progress> {
        async move {
            let mut progress = Progress::NothingToDo;
            for action in actions {
                let has_failed =
                    matches!(progress, Progress::NotLeading | Progress::Retry(..) | Progress::Again(_));
                if has_failed && action != Action::PlanNow {
                    continue;
                }
                match self.carry_out(&action).await {
                    _ if has_failed => {}
                    Progress::NothingToDo if matches!(progress, Progress::Done) => {}
                    next => progress = next,
                }
            }
            progress
        }
        .boxed()
    }

    /// Records an event on an object.
    pub fn record_event(&self, subject: &Subject, kind: EventType, reason: Reason, message: &str) {
        self.record(Event { subject: subject.clone(), kind, reason, message: message.to_owned() });
    }

    fn record(&self, event: Event) {
        if let Some(event) = self.to_queue(event) {
            self.context.events.record(event);
        }
    }

    /// Returns the queued form of an event; `None` if its object no longer exists.
    pub fn to_queue(&self, event: Event) -> Option<QueuedEvent> {
        let about = self.context.world.view(|all| reference(&event.subject, all))?;
        let Event { kind, reason, message, .. } = event;
        Some(QueuedEvent { about, kind, reason: reason.into(), message, story: None })
    }
}

/// Returns what of a lane waits for a retry if this action fails: a nomination that is denied, such as by a policy of a namespace, does
/// not hold up those of other pods.
fn step(action: &Action) -> Step {
    let pod = match action {
        Action::Nominate { pod, .. } => Some(pod.clone()),
        _ => None,
    };
    Step::new(kind(action), pod)
}

/// Returns the name of an action in logs and metrics.
fn kind(action: &Action) -> &'static str {
    match action {
        Action::Launch { .. } => "launch",
        Action::Register { .. } => "register",
        Action::Nominate { .. } => "nominate",
        Action::Tolerate { .. } => "tolerate",
        Action::Open { .. } => "open",
        Action::SetTaints { .. } => "set-taints",
        Action::DeleteClaim { .. } => "delete-claim",
        Action::Drain { .. } => "drain",
        Action::Evict { .. } => "evict",
        Action::EndPod { .. } => "end-pod",
        Action::Terminate { .. } => "terminate",
        Action::Reap { .. } => "reap",
        Action::SetConditions { .. } => "set-conditions",
        Action::HoldBack { .. } => "hold-back",
        Action::PlanNow => "plan-now",
        Action::RefreshCatalogues => "refresh-catalogues",
        Action::RecordEvent(_) => "tell",
    }
}

/// Returns the lane of an action: the lane of its claim, even if the action names only the claim's node.
fn lane(action: &Action, snapshot: &Snapshot) -> String {
    let of_node = |name: &str| {
        let by_label =
            || snapshot.nodes.get(name)?.labels.get(poolwright_terms::keys::NODECLAIM_LABEL).cloned();
        let claim = by_label().or_else(|| Some(snapshot.claims.named_node(name)?.name.0.clone()));
        claim.map_or_else(|| format!("node/{name}"), |claim| lane_of_claim(&claim))
    };
    match action {
        Action::Launch { claim }
        | Action::Register { claim, .. }
        | Action::DeleteClaim { claim, .. }
        | Action::Drain { claim, .. }
        | Action::Terminate { claim, .. }
        | Action::HoldBack { claim, .. } => lane_of_claim(&claim.0),
        Action::Nominate { node, .. } | Action::Open { node, .. } | Action::SetTaints { node, .. } => {
            of_node(node)
        }
        // Pods have their own lanes: many run concurrently, and a refused one does not delay its node.
        Action::Tolerate { pod, .. } | Action::Evict { pod, .. } | Action::EndPod { pod, .. } => {
            format!("pod/{pod}")
        }
        Action::Reap { provider_id, .. } => format!("instance/{provider_id}"),
        Action::SetConditions { subject, .. } => match subject {
            Subject::Claim(claim) => lane_of_claim(&claim.0),
            Subject::Pool(pool) => format!("nodepool/{pool}"),
            Subject::Pod(pod) => format!("pod/{pod}"),
            Subject::Node(node) => of_node(node),
            Subject::PodDisruptionBudget(budget) => format!("poddisruptionbudget/{budget}"),
        },
        Action::PlanNow => "plan".to_owned(),
        Action::RefreshCatalogues => "catalogues".to_owned(),
        Action::RecordEvent(_) => "tell".to_owned(),
    }
}

/// Returns the object of an event; `None` if unknown.
fn reference(subject: &Subject, all: &Snapshot) -> Option<ObjectReference> {
    let ours = |kind: &str, name: &str, uid: &str| ObjectReference {
        api_version: Some(poolwright_terms::API_VERSION.to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..Default::default()
    };
    Some(match subject {
        Subject::Pod(key) => {
            let pod = all.pods.existing(key)?;
            ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                namespace: Some(key.namespace.clone()),
                name: Some(key.name.clone()),
                uid: Some(pod.uid.0.clone()),
                ..Default::default()
            }
        }
        Subject::Claim(name) => ours("NodeClaim", &name.0, &all.claims.get(name)?.uid.0),
        Subject::Pool(name) => ours("NodePool", &name.0, &all.pools.get(name)?.uid.0),
        Subject::PodDisruptionBudget(key) => ObjectReference {
            api_version: Some("policy/v1".to_owned()),
            kind: Some("PodDisruptionBudget".to_owned()),
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            uid: Some(all.budgets.get(key)?.uid.0.clone()),
            ..Default::default()
        },
        Subject::Node(name) => {
            all.nodes.get(name)?;
            ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(name.clone()),
                // The kubelet and the node controller use the node's name here, and `kubectl describe` looks for it.
                uid: Some(name.clone()),
                ..Default::default()
            }
        }
    })
}
