//! The context of lifecycle decisions: indexed views of the snapshot, and the decision so far.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_terms::{ConditionStatus, ConditionType, Reason};
use serde::{Deserialize, Serialize};

use crate::action::{Action, ConditionUpdate, Event, EventType, Subject};
use crate::demand::{self, ExpectedPods, Lack, LeavingPod};
use crate::model::{
    Claim, ClaimName, Node, ObjectKey, OwnerKey, Pod, PodKey, PodPhase, PodRole, PoolName, Snapshot,
};

/// The time after which an action without a recorded effect is repeated.
pub(crate) const REPEAT: SignedDuration = SignedDuration::from_secs(5);

/// The way in which pods are directed to the nodes that they were planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementMode {
    /// New nodes are reserved for their pods. If pods may not be changed ([`crate::model::Snapshot::unpatchable`]), pods are
    /// nominated.
    #[default]
    Reserve,
    /// Pods are nominated to their nodes, which open in groups.
    Nominate,
}

/// The actions to take, and the time to decide again even if nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The actions, in order.
    pub actions: Vec<Action>,
    /// The time at which the next deadline or timer ends; `None` if there is none.
    pub wake_at: Option<Timestamp>,
}

/// Indexed views of the snapshot, and the decision so far.
pub(crate) struct LifecycleContext<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) now: Timestamp,
    pub(crate) placement: PlacementMode,
    /// The last lookup of a claim's node, cached because the same claim is looked up several times in succession. The address of
    /// a claim identifies it, because claims do not move within a snapshot.
    pub(crate) last: Cell<(*const Claim, Option<&'a Node>)>,
    /// Waiting workload pods, by the claim that they are planned for.
    pub(crate) expected: BTreeMap<&'a str, Vec<&'a Pod>>,
    /// For each gang, the time since which all nodes that its waiting pods are planned for are open; `None` while one is not
    /// open.
    pub(crate) gangs: BTreeMap<ObjectKey, Option<Timestamp>>,
    /// The claims that pods of incomplete gangs are planned for, each with its gang.
    pub(crate) lacking: BTreeMap<&'a str, ObjectKey>,
    /// Waiting workload pods without a planned place.
    pub(crate) unplanned: Vec<&'a Pod>,
    /// Expected pods.
    pub(crate) coming: Vec<ExpectedPods<'a>>,
    /// The owners of successors of pods on disrupted nodes.
    pub(crate) successors: BTreeSet<Arc<OwnerKey>>,
    /// Claims whose nodes are kept for buffers.
    pub(crate) buffered: BTreeSet<ClaimName>,
    /// The kinds of node classes of which the listing has none of the instances that must be there.
    pub(crate) unproven: BTreeSet<&'a str>,
    /// The number of empty nodes of each pool that this decision closes.
    pub(crate) closing: BTreeMap<PoolName, u64>,
    /// The number of unhealthy nodes and of all nodes, by pool; filled on demand.
    pub(crate) sick: BTreeMap<PoolName, (u64, u64)>,
    /// Why PodDisruptionBudgets never allow an eviction, `None` for those that may; filled on demand.
    pub(crate) never_met: BTreeMap<ObjectKey, Option<String>>,
    pub(crate) decision: Decision,
}

impl<'a> LifecycleContext<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, now: Timestamp, placement: PlacementMode) -> Self {
        let mut expected: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
        let (mut unplanned, mut lacking) = (Vec::new(), BTreeMap::new());
        // Pods of an incomplete gang may wait forever.
        let held = demand::incomplete_gangs(snapshot);
        let held_of = |pod: &Pod| pod.group_key().and_then(|key| Some((*held.get(&key)?, key)));
        for pod in snapshot.pods.unbound().filter(|pod| pod.role == PodRole::Workload) {
            match &pod.phase {
                PodPhase::Waiting | PodPhase::Unschedulable { .. } if pod.deleting_since.is_none() => {
                    match (demand::planned_at(snapshot, pod), held_of(pod)) {
                        (Some(target), None) => expected.entry(target).or_default().push(pod),
                        (target, held) => {
                            unplanned.push(pod);
                            if let (Some(target), Some((Lack::Room, gang))) = (target, held) {
                                lacking.insert(target, gang);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        let gangs = open_since(snapshot, &expected);
        let coming = demand::expected(snapshot, now);
        let leaving = demand::moving(snapshot);
        let successors = leaving.iter().filter_map(LeavingPod::owner);
        let successors = successors.chain(snapshot.making_way.iter().cloned()).collect();
        let decision = Decision::default();
        Self {
            snapshot,
            now,
            placement,
            last: Cell::new((std::ptr::null(), None)),
            expected,
            gangs,
            lacking,
            unplanned,
            coming,
            successors,
            buffered: BTreeSet::new(),
            unproven: BTreeSet::new(),
            closing: BTreeMap::new(),
            sick: BTreeMap::new(),
            never_met: BTreeMap::new(),
            decision,
        }
    }

    /// Returns the claim's node, if it exists.
    pub(crate) fn node(&self, claim: &Claim) -> Option<&'a Node> {
        let (last, node) = self.last.get();
        if std::ptr::eq(last, claim) {
            return node;
        }
        let nodes = &self.snapshot.nodes;
        let by_id =
            claim.launched.as_ref().and_then(|launched| nodes.with_provider_id(&launched.provider_id));
        let node = by_id.or_else(|| nodes.get(claim.node_name.as_ref()?)).map(Arc::as_ref);
        self.last.set((claim, node));
        node
    }

    /// Returns whether a claim is kept for successors of pods on disrupted nodes.
    pub(crate) fn awaits_successors(&self, claim: &Claim) -> bool {
        let mut owners = claim.planned_pods.iter().filter_map(PodKey::owner);
        !self.successors.is_empty() && owners.any(|owner| self.successors.contains(owner))
    }

    /// Returns the workload pods on the claim's node that have not ended. If the node does not exist, returns the pods bound to
    /// its name.
    pub(crate) fn work(&self, claim: &Claim) -> Vec<&'a Pod> {
        let name = self.node(claim).map(|node| node.name.as_str()).or(claim.node_name.as_deref());
        let there = name.and_then(|name| self.snapshot.pods.on_node(name));
        let pods = there.into_iter().flat_map(|there| &there.pods).map(AsRef::as_ref);
        pods.filter(|pod| pod.role == PodRole::Workload).collect()
    }

    /// Returns whether the claim's node retires: whether it admits only planned pods because others would run cheaper elsewhere.
    pub(crate) fn retires(&self, claim: &Claim) -> bool {
        let retirements = &self.snapshot.retirements;
        retirements.of(&claim.name, self.now).is_some()
            || retirements.are_inherited(self.now) && claim.since(ConditionType::Retiring).is_some()
    }

    /// Returns the waiting pods that are planned for the claim.
    pub(crate) fn expected(&self, claim: &Claim) -> &[&'a Pod] {
        self.expected.get(claim.name.0.as_str()).map_or(&[], Vec::as_slice)
    }

    /// Returns the time since which the pods planned for the claim can be scheduled. That is the time since which its node is
    /// open or, for pods of a gang, since which all nodes of the gang are open.
    pub(crate) fn ready_since(&self, claim: &Claim) -> Option<Timestamp> {
        let own = claim.since(ConditionType::Initialized);
        let gangs = self.expected(claim).iter().filter_map(|pod| self.gangs.get(&pod.group_key()?));
        gangs.fold(own, |since, gang| Some(since?.max((*gang)?)))
    }

    /// Returns whether the claim's instance is gone: a listing lacks it, and no ready node proves that it is there. A listing can be
    /// wrong, such as with the credentials of another account. Of an instance that Poolwright terminates, a node proves nothing.
    pub(crate) fn instance_is_gone(&self, claim: &Claim) -> bool {
        self.is_missing(claim) && !self.is_proven(claim)
    }

    /// Returns whether a ready node proves that the claim's instance is there, although a listing lacks it.
    pub(crate) fn runs_unlisted(&self, claim: &Claim) -> bool {
        self.is_missing(claim) && self.is_proven(claim)
    }

    /// Returns whether the listing contains the claim's instance.
    pub(crate) fn is_listed(&self, claim: &Claim) -> bool {
        let (listed, launched) = (self.snapshot.instances.as_ref(), claim.launched.as_ref());
        listed.zip(launched).is_some_and(|(all, launched)| all.get(&launched.provider_id).is_some())
    }

    /// Returns whether the claim's node is ready, and Poolwright does not terminate its instance.
    fn is_proven(&self, claim: &Claim) -> bool {
        claim.since(ConditionType::InstanceTerminating).is_none()
            && self.node(claim).is_some_and(|node| node.ready)
    }

    /// Returns whether the claim's instance is missing in a listing that should contain it. A listing with a time in the future
    /// was made before the wall clock was set back, so it proves nothing.
    fn is_missing(&self, claim: &Claim) -> bool {
        let Some(launched) = &claim.launched else { return false };
        let Some(instances) = &self.snapshot.instances else { return false };
        let Some(at) = instances.listed_at(&claim.node_class.kind) else { return false };
        let since = claim.since(ConditionType::Launched).unwrap_or(claim.created);
        at <= self.now
            && at >= after(since, SignedDuration::from_secs(30))
            && instances.get(&launched.provider_id).is_none()
            && !instances.iter().any(|instance| instance.claim_uid == claim.uid)
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.decision.actions.push(action);
    }

    pub(crate) fn wake(&mut self, at: Timestamp) {
        let wake_at = &mut self.decision.wake_at;
        *wake_at = Some(wake_at.map_or(at, |before| before.min(at)));
    }

    /// Returns whether a timer that ends at `at` has ended. If not, schedules the next decision for then.
    pub(crate) fn ended(&mut self, at: Timestamp) -> bool {
        if at <= self.now {
            return true;
        }
        self.wake(at);
        false
    }

    /// Writes the conditions of a claim that differ from the recorded ones.
    pub(crate) fn conditions(&mut self, claim: &Claim, updates: impl IntoIterator<Item = ConditionUpdate>) {
        let differs = |update: &ConditionUpdate| {
            claim.conditions.get(&update.kind).is_none_or(|recorded| {
                recorded.status != update.status
                    || recorded.reason != Some(update.reason)
                    || recorded.message != update.message
            })
        };
        let conditions: Vec<ConditionUpdate> = updates.into_iter().filter(differs).collect();
        if !conditions.is_empty() {
            self.act(Action::SetConditions { subject: Subject::Claim(claim.name.clone()), conditions });
        }
    }

    pub(crate) fn record_event(
        &mut self,
        claim: &ClaimName,
        kind: EventType,
        reason: Reason,
        message: String,
    ) {
        let subject = Subject::Claim(claim.clone());
        self.act(Action::RecordEvent(Event { subject, kind, reason, message }));
    }

    pub(crate) fn delete(&mut self, claim: &Claim, only_if_empty: bool) {
        let (name, uid) = (claim.name.clone(), claim.uid.clone());
        self.act(Action::DeleteClaim { claim: name, uid, only_if_empty });
    }
}

/// Returns, for each gang, the time since which all nodes that its waiting pods are planned for are open.
fn open_since(
    snapshot: &Snapshot,
    expected: &BTreeMap<&str, Vec<&Pod>>,
) -> BTreeMap<ObjectKey, Option<Timestamp>> {
    let mut gangs: BTreeMap<ObjectKey, Option<Timestamp>> = BTreeMap::new();
    for (target, pods) in expected {
        for key in pods.iter().filter_map(|pod| pod.group_key()) {
            if snapshot.pod_group(&key).is_none_or(|group| group.min_count.is_none()) {
                continue;
            }
            let Some(claim) = snapshot.claims.get(&ClaimName((*target).to_owned())) else { continue };
            let since = claim.since(ConditionType::Initialized);
            let known = gangs.entry(key).or_insert(since);
            *known = known.and_then(|known| Some(known.max(since?)));
        }
    }
    gangs
}

pub(crate) fn is(kind: ConditionType, reason: Reason, message: impl Into<String>) -> ConditionUpdate {
    ConditionUpdate { kind, status: ConditionStatus::True, reason, message: message.into() }
}

pub(crate) fn is_not(kind: ConditionType, reason: Reason, message: impl Into<String>) -> ConditionUpdate {
    ConditionUpdate { status: ConditionStatus::False, ..is(kind, reason, message) }
}

pub(crate) fn after(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// Lists pods for a message: `3 pods (a/b, a/c, ...)`.
pub(crate) fn some_pods(pods: &[&Pod]) -> String {
    let shown: Vec<String> = pods.iter().take(3).map(|pod| pod.key.to_string()).collect();
    let more = if pods.len() > 3 { ", ..." } else { "" };
    let noun = if pods.len() == 1 { "pod" } else { "pods" };
    format!("{} {noun} ({}{more})", pods.len(), shown.join(", "))
}

/// Formats a duration, such as `5 min` or `90 s`.
pub(crate) fn words(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    if seconds % 60 == 0 && seconds > 0 { format!("{} min", seconds / 60) } else { format!("{seconds} s") }
}
