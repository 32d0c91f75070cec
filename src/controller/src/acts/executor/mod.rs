//! Carrying out actions. Nothing is decided here; everything here may be repeated.
//!
//! Actions about one claim, its node and its pods form a lane and are done in the order they were decided in; lanes run
//! beside each other. A lane that is busy is left alone: what is still due then is decided again when it is free. After
//! a failure the rest of the lane is dropped, so that a node is never opened before its pods were nominated.

mod claims;
mod evictions;
mod interruption;
mod lanes;
mod launch;
mod nodes;
mod outcome;
mod pods;
mod removal;
mod stages;
pub mod status;
mod taints;
#[cfg(test)]
pub(crate) mod tests;
mod turns;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use poolwright_core::{Action, Notice, NoticeKind, Snapshot, Subject};
use poolwright_terms::Reason;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

pub use claims::Created;
pub use interruption::Recorded;
use lanes::{InLane, Lanes};
use outcome::Outcome;
use turns::Turns;

use crate::acts::unrecorded::Rush;
use crate::edge::clock::SharedClock;
use crate::edge::events::{Events, Saying};
use crate::edge::metrics::Metrics;
use crate::edge::signal::Receiver;
use crate::edge::stoppable::Gates;
use crate::leader::writer::Writer;
use crate::sees::providers::Providers;
use crate::sees::world::World;

/// The executor's tools.
pub struct Executor {
    /// The API server.
    pub client: Client,
    /// The gate.
    pub writer: Writer,
    /// What is known, where our own writes go at once.
    pub world: Arc<World>,
    /// The clouds.
    pub providers: Providers,
    /// What users are told.
    pub events: Events,
    /// Counts.
    pub metrics: Metrics,
    /// Time.
    pub clock: SharedClock,
    /// What was heard of clouds and is not recorded.
    pub rush: Rush,
    lanes: Lanes,
    tasks: TaskTracker,
    gates: Gates,
    turns: Turns,
}

impl Executor {
    /// Waits for `pause`, then until something has changed or we begin to lead; false when it is time to end.
    pub async fn wait_for_change(
        &self,
        changes: &mut Receiver<()>,
        pause: Duration,
        shutdown: &CancellationToken,
    ) -> bool {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return false,
            () = sleep(pause) => {}
        }
        let claims = self.writer.claims();
        tokio::select! {
            biased;
            () = shutdown.cancelled() => false,
            _ = changes.changed() => true,
            _ = claims.gained(), if claims.current().is_none() => true,
        }
    }

    /// An executor that works on this many lanes at a time, besides those that wait for a cloud or press.
    #[expect(clippy::too_many_arguments, reason = "this is the one place where its tools are put together")]
    pub fn new(
        client: Client,
        writer: Writer,
        world: Arc<World>,
        providers: Providers,
        events: Events,
        metrics: Metrics,
        clock: SharedClock,
        concurrency: usize,
        gates: Gates,
    ) -> Arc<Self> {
        Arc::new(Self {
            client,
            writer,
            world,
            providers,
            events,
            metrics,
            rush: Rush::new(clock.clone()),
            clock,
            lanes: Lanes::default(),
            tasks: TaskTracker::new(),
            gates,
            turns: Turns::new(concurrency),
        })
    }

    /// Starts what is to be done. Returns at once.
    pub fn submit(self: &Arc<Self>, actions: Vec<Action>, snapshot: &Snapshot) {
        let mut lanes: BTreeMap<String, Vec<Action>> = BTreeMap::new();
        for action in actions {
            match action {
                Action::Tell(notice) => self.tell(notice),
                action => lanes.entry(lane(&action, snapshot)).or_default().push(action),
            }
        }
        let now = self.clock.monotonic();
        for (lane, actions) in lanes {
            if self.lanes.must_wait(&lane, kind(&actions[0]), now) {
                continue;
            }
            let Some(in_lane) = self.lanes.enter(&lane) else { continue };
            let executor = self.clone();
            let work = async move { executor.work(in_lane, &lane, actions).await };
            self.tasks.spawn(self.gates.clone().pass(work));
        }
    }

    /// When something that failed may be tried again, on the monotonic clock.
    pub fn next_retry(&self) -> Option<Duration> {
        self.lanes.next_end(self.clock.monotonic())
    }

    /// Returns when all work has ended, at the latest after `limit`. No work is taken on any more.
    pub async fn drain(&self, limit: Duration) {
        self.turns.close();
        self.tasks.close();
        if tokio::time::timeout(limit, self.tasks.wait()).await.is_err() {
            warn!(
                lanes = self.lanes.busy(),
                "calls on their way are abandoned; they are repeated by who leads next"
            );
        }
    }

    async fn work(self: Arc<Self>, in_lane: InLane, lane: &str, actions: Vec<Action>) {
        let Some(_turn) = self.turns.next(&actions).await else { return };
        let mut changed = false;
        for action in actions {
            let kind = kind(&action);
            if self.lanes.must_wait(lane, kind, self.clock.monotonic()) {
                break;
            }
            let outcome = self.carry_out(&action).await;
            self.metrics.actions.with_label_values(&[kind, outcome.label()]).inc();
            let now = self.clock.monotonic();
            match outcome {
                Outcome::Done => {
                    changed = true;
                    in_lane.worked(kind);
                    debug!(lane, kind, "done");
                }
                Outcome::NothingToDo => in_lane.worked(kind),
                Outcome::Again(pause) => {
                    in_lane.again(kind, pause, now);
                    changed = true;
                    break;
                }
                Outcome::Retry(at_least, why) => {
                    let wait = in_lane.failed(kind, at_least, now);
                    warn!(lane, action = kind, why, retry_in = ?wait, "an action failed");
                    changed = true;
                    break;
                }
                Outcome::NotLeading => break,
            }
        }
        // What was decided while the lane was busy was left alone, so it is decided again now, also when nothing was changed
        // here: what it was decided for may be the last that the watches say for a long time.
        let was_asked = in_lane.leave();
        if changed || was_asked {
            self.world.poke();
        }
    }

    async fn carry_out(&self, action: &Action) -> Outcome {
        match action {
            Action::Launch { claim } => match self.world.claim(claim) {
                Some(claim) => self.launch(&claim).await,
                None => Outcome::NothingToDo,
            },
            Action::Register { claim, node, labels, annotations, taints } => match self.world.claim(claim) {
                Some(claim) => self.register(&claim, node, labels, annotations, taints).await,
                None => Outcome::NothingToDo,
            },
            Action::Nominate { pod, uid, node } => self.nominate(pod, uid, node).await,
            Action::Tolerate { pod, uid, claim } => self.tolerate(pod, uid, claim).await,
            Action::Open { node, reserve_for } => self.open(node, reserve_for.as_ref()).await,
            Action::SetTaints { node, taints } => self.set_taints(node, taints).await,
            Action::DeleteClaim { claim, uid, only_if_empty } => {
                match self.world.claim(claim).filter(|known| known.uid == *uid) {
                    Some(known) if *only_if_empty => self.delete_empty_claim(&known).await,
                    Some(known) => self.delete_failed_claim(&known).await,
                    None => self.delete_claim(claim, uid).await,
                }
            }
            Action::Retire { claim, uid } => self.delete_claim(claim, uid).await,
            Action::Evict { pod, uid } => self.evict(pod, uid).await,
            Action::EndPod { pod, uid, grace } => self.end_pod(pod, uid, *grace).await,
            Action::Terminate { claim, forced } => match self.world.claim(claim) {
                Some(claim) => self.terminate(&claim, *forced).await,
                None => Outcome::NothingToDo,
            },
            Action::Reap { provider_id, claim_uid, node_class } => {
                self.reap(provider_id, claim_uid, node_class).await
            }
            Action::SetConditions { subject, conditions } => self.set_conditions(subject, conditions).await,
            Action::HoldBack { claim, message } => match self.world.claim(claim) {
                Some(known) => match self.kept_by_news(&known).await {
                    Some(outcome) => outcome,
                    None => self.hold_back(claim, message),
                },
                None => Outcome::NothingToDo,
            },
            Action::Tell(notice) => {
                self.tell(notice.clone());
                Outcome::Done
            }
        }
    }

    /// Tells users something about an object.
    pub fn say(&self, subject: &Subject, kind: NoticeKind, reason: Reason, message: &str) {
        let notice = Notice { subject: subject.clone(), kind, reason, message: message.to_owned() };
        self.tell(notice);
    }

    fn tell(&self, notice: Notice) {
        if let Some(saying) = self.saying(notice) {
            self.events.say(saying);
        }
    }

    /// A notice as an event; `None` where its object is gone: that helps nobody.
    pub fn saying(&self, notice: Notice) -> Option<Saying> {
        let about = self.world.view(|all| reference(&notice.subject, all))?;
        let Notice { kind, reason, message, .. } = notice;
        Some(Saying { about, kind, reason: reason.to_string(), message, story: None })
    }
}

/// The name of an action in logs and metrics.
fn kind(action: &Action) -> &'static str {
    match action {
        Action::Launch { .. } => "launch",
        Action::Register { .. } => "register",
        Action::Nominate { .. } => "nominate",
        Action::Tolerate { .. } => "tolerate",
        Action::Open { .. } => "open",
        Action::SetTaints { .. } => "set-taints",
        Action::DeleteClaim { .. } => "delete-claim",
        Action::Retire { .. } => "retire",
        Action::Evict { .. } => "evict",
        Action::EndPod { .. } => "end-pod",
        Action::Terminate { .. } => "terminate",
        Action::Reap { .. } => "reap",
        Action::SetConditions { .. } => "set-conditions",
        Action::HoldBack { .. } => "hold-back",
        Action::Tell(_) => "tell",
    }
}

/// The lane of an action: that of its claim, also where it names the claim's node.
fn lane(action: &Action, snapshot: &Snapshot) -> String {
    let of_node = |name: &str| {
        let by_label =
            || snapshot.nodes.get(name)?.labels.get(poolwright_terms::keys::NODECLAIM_LABEL).cloned();
        let claim = by_label().or_else(|| Some(snapshot.claims.named_node(name)?.name.0.clone()));
        claim.map_or_else(|| format!("node/{name}"), |claim| format!("nodeclaim/{claim}"))
    };
    match action {
        Action::Launch { claim }
        | Action::Register { claim, .. }
        | Action::DeleteClaim { claim, .. }
        | Action::Retire { claim, .. }
        | Action::Terminate { claim, .. }
        | Action::HoldBack { claim, .. } => format!("nodeclaim/{claim}"),
        Action::Nominate { node, .. } | Action::Open { node, .. } | Action::SetTaints { node, .. } => {
            of_node(node)
        }
        // Many at a time, and one that is refused holds no node up: the order against the opening of nodes is free.
        Action::Tolerate { pod, .. } | Action::Evict { pod, .. } | Action::EndPod { pod, .. } => {
            format!("pod/{pod}")
        }
        Action::Reap { provider_id, .. } => format!("instance/{provider_id}"),
        Action::SetConditions { subject, .. } => match subject {
            Subject::Claim(claim) => format!("nodeclaim/{claim}"),
            Subject::Pool(pool) => format!("nodepool/{pool}"),
            Subject::Pod(pod) => format!("pod/{pod}"),
            Subject::Node(node) => of_node(node),
            Subject::Budget(budget) => format!("poddisruptionbudget/{budget}"),
        },
        Action::Tell(_) => "tell".to_owned(),
    }
}

/// The object that an event is about; `None` when it is not known (any more).
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
            let pod = all.pods.get(key)?;
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
        Subject::Budget(key) => ObjectReference {
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
                // The kubelet and the node controller put a node's name here, and `kubectl describe` looks for it.
                uid: Some(name.clone()),
                ..Default::default()
            }
        }
    })
}
