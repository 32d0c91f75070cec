//! The world: `core`'s index, the batch window and the setbacks, shared by all tasks.
//!
//! It is behind one lock, which is never held across an await.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use kube::Resource;
use poolwright_api::NodeClaim;
use poolwright_catalog::Catalogue;
use poolwright_core::batch::BatchWindow;
use poolwright_core::index::{Change, ClusterIndex};
use poolwright_core::outcome::{Outcome, respond};
use poolwright_core::plan::Plan;
use poolwright_core::setbacks::Setbacks;
use poolwright_core::{
    Action, Arrivals, Cause, Claim, ClaimName, Gaps, LifeTable, ListedInstance, Lives, ObjectKey, PodPhase,
    Retirements, Snapshot, SpentBudgets, Uid,
};
use poolwright_terms::{ConditionType, NodeClassRef};

use crate::edge::clock::{Moment, SharedClock};
use crate::edge::signal::{self, Receiver, Sender};
use crate::observed::fence::Fence;
use crate::observed::last_seen::{self, LastSeen};
use crate::observed::templates::Templates;

/// The shared world.
pub struct World {
    state: Mutex<State>,
    changes: Sender<()>,
    classes: Sender<()>,
    clock: SharedClock,
}

/// The state behind the lock.
pub struct State {
    /// The index of the cluster.
    pub index: ClusterIndex,
    /// Our writes that no watch has shown yet.
    pub fence: Fence,
    /// Claims as last seen.
    pub claims: LastSeen<NodeClaim>,
    /// Nodes as last seen.
    pub nodes: LastSeen<k8s::Node>,
    /// Pod templates as last seen.
    pub templates: Templates,
    window: BatchWindow,
    setbacks: Setbacks,
    doubtful: bool,
    again_at: Option<Moment>,
}

impl State {
    /// Applies the setbacks to the index.
    fn apply_setbacks(&mut self, now: Timestamp) -> Change {
        let held = self.index.set_held_back(self.setbacks.held_back(now));
        let taken = self.index.set_reclaims(self.setbacks.reclaims(now));
        held.max(taken).max(self.index.set_unpatchable(self.setbacks.unpatchable(now)))
    }
}

/// Returns whether a watch has shown what this response says, or a later change.
fn is_known<K: Resource<DynamicType = ()>>(fence: &Fence, object: &K) -> bool {
    fence.has_shown(&K::kind(&()), object.meta().resource_version.as_deref())
}

impl World {
    /// Creates an empty world.
    pub fn new(window: BatchWindow, setbacks: Setbacks, clock: SharedClock) -> Arc<Self> {
        let mut index = ClusterIndex::new();
        index.set_lives(Lives::prior());
        let state = State {
            index,
            fence: Fence::default(),
            claims: LastSeen::default(),
            nodes: LastSeen::default(),
            templates: Templates::default(),
            window,
            setbacks,
            doubtful: false,
            again_at: None,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            changes: signal::sender(()),
            classes: signal::sender(()),
            clock,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the loops.
    pub fn change(&self, change: impl FnOnce(&mut State) -> Change) {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        let change = change(&mut state);
        state.window.on(change, now);
        drop(state);
        if change > Change::None {
            self.poke();
        }
    }

    /// Reads the state without copying.
    pub fn view<T>(&self, look: impl FnOnce(&Snapshot) -> T) -> T {
        look(self.lock().index.view())
    }

    /// Returns a snapshot of the current state.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().index.snapshot()
    }

    /// Returns the claim with this name.
    pub fn claim(&self, name: &ClaimName) -> Option<Arc<Claim>> {
        self.view(|all| all.claims.get(name).cloned())
    }

    /// Returns the claim with this name as last seen.
    pub fn last_seen_claim(&self, name: &ClaimName) -> Option<NodeClaim> {
        self.lock().claims.get(&name.0)
    }

    /// Returns the node with this name as last seen, without its status.
    pub fn last_seen_node(&self, name: &str) -> Option<k8s::Node> {
        self.lock().nodes.get(name)
    }

    /// Returns the UID and the creation time of the node with this name.
    pub fn birth_of_node(&self, name: &str) -> Option<(String, Timestamp)> {
        let birth = |node: &k8s::Node| {
            node.metadata.uid.clone().zip(node.metadata.creation_timestamp.as_ref().map(|time| time.0))
        };
        self.lock().nodes.view(name, birth).flatten()
    }

    /// Returns the catalogue of this node class, if known.
    pub fn catalogue(&self, class: &NodeClassRef) -> Option<Arc<Catalogue>> {
        self.view(|all| all.catalogues.get(class)?.as_ref().ok().cloned())
    }

    /// Returns the name of the node with this provider id.
    pub fn node_by_provider_id(&self, id: &str) -> Option<String> {
        self.view(|all| all.nodes.with_provider_id(id).map(|node| node.name.clone()))
    }

    // === Our own writes, applied at once ===

    /// Adds a claim from the API server's response to its creation, or from a list. Not if the watch has shown that version or a later
    /// change: a late list must not bring back a deleted claim.
    pub fn claim_created(&self, object: &NodeClaim) -> Result<(), String> {
        let claim = poolwright_intake::node_claim(object).map_err(|error| error.to_string())?;
        let now = self.clock.now();
        self.change(|state| {
            // An older list may still contain a deleted claim. A claim that exists and that the watch has shown is in the index.
            if state.fence.is_buried(&claim.uid.0) || is_known(&state.fence, object) {
                return Change::None;
            }
            state.fence.wrote(&claim.uid.0, object.metadata.resource_version.as_deref());
            state.claims.keep(last_seen::of_claim(object.clone()));
            state.index.expect_claim(claim, now)
        });
        Ok(())
    }

    /// Updates a claim from the API server's response to a read or an update. Never adds one, because a late response must not
    /// bring back a deleted claim.
    pub fn claim_seen(&self, object: &NodeClaim) {
        let Ok(claim) = poolwright_intake::node_claim(object) else { return };
        self.change(|state| {
            let is_other =
                state.index.view().claims.get(&claim.name).is_none_or(|known| known.uid != claim.uid);
            if is_other || is_known(&state.fence, object) {
                return Change::None;
            }
            state.fence.wrote(&claim.uid.0, object.metadata.resource_version.as_deref());
            state.claims.keep(last_seen::of_claim(object.clone()));
            state.index.apply_claim(claim)
        });
    }

    /// Removes a claim that the API server says does not exist.
    pub fn claim_gone(&self, claim: &Claim) {
        self.change(|state| {
            if state.index.view().claims.get(&claim.name).is_none_or(|known| known.uid != claim.uid) {
                return Change::None;
            }
            state.fence.bury(&claim.uid.0);
            state.claims.forget(&claim.name.0);
            state.index.delete_claim(&claim.name)
        });
    }

    /// Returns whether the API server has said that an object is deleted.
    pub fn is_buried(&self, uid: &str) -> bool {
        self.lock().fence.is_buried(uid)
    }

    /// Updates a node from the API server's response to an update.
    pub fn node_seen(&self, object: &k8s::Node) {
        let Ok(node) = poolwright_intake::node(object) else { return };
        let meta = object.meta();
        self.change(|state| {
            if !state.index.view().nodes.contains_key(&node.name) || is_known(&state.fence, object) {
                return Change::None;
            }
            state.fence.wrote(meta.uid.as_deref().unwrap_or_default(), meta.resource_version.as_deref());
            state.nodes.keep(last_seen::of_node(object.clone()));
            state.index.apply_node(node)
        });
    }

    /// Updates a pod from the API server's response to an update.
    pub fn pod_seen(&self, object: &k8s::Pod) {
        let Ok(pod) = poolwright_intake::pod(object) else { return };
        let now = self.clock.now();
        self.change(|state| {
            let is_other = state.index.view().pods.get(&pod.key).is_none_or(|known| known.uid != pod.uid);
            if is_other || is_known(&state.fence, object) {
                return Change::None;
            }
            state.fence.wrote(&pod.uid.0, object.metadata.resource_version.as_deref());
            state.index.learn_arrival(&pod, now);
            state.index.apply_pod(pod)
        });
    }

    /// Sets whether claims must be read from the API server before the next plan, because a creation has an unknown result.
    pub fn claims_doubtful(&self, doubtful: bool) {
        self.lock().doubtful = doubtful;
    }

    /// Returns whether claims must be read from the API server before the next plan.
    pub fn are_claims_doubtful(&self) -> bool {
        self.lock().doubtful
    }

    // === Setbacks ===

    /// Reports an outcome to `core`. Returns the actions that follow.
    pub fn learn(&self, outcome: &Outcome<'_>) -> Vec<Action> {
        let now = self.clock.now();
        let (mut actions, mut is_news) = (Vec::new(), false);
        self.change(|state| {
            let before = state.setbacks.launch_problems().clone();
            actions = respond(outcome, &mut state.setbacks, now);
            is_news = before != *state.setbacks.launch_problems();
            state.apply_setbacks(now)
        });
        if is_news {
            self.poke();
        }
        actions
    }

    /// Holds back the offering of a claim whose node never became usable. Returns until when.
    pub fn hold_back(&self, claim: &Claim) -> Timestamp {
        let now = self.clock.now();
        let mut until = now;
        self.change(|state| {
            until = state.setbacks.failed(claim, &claim.current_offering().offering, now);
            state.apply_setbacks(now)
        });
        until
    }

    /// Ends setbacks that have expired.
    pub fn expire_setbacks(&self) {
        let now = self.clock.now();
        self.change(|state| state.apply_setbacks(now));
    }

    /// Returns when the next setback ends.
    pub fn next_release(&self) -> Option<Timestamp> {
        let now = self.clock.now();
        self.lock().setbacks.next_release(now)
    }

    /// Returns why launches with a node class cannot succeed, by class.
    pub fn launch_problems(&self) -> BTreeMap<NodeClassRef, String> {
        self.lock().setbacks.launch_problems().clone()
    }

    // === When to plan ===

    /// Makes a plan due at once, for pods that have waited already.
    pub fn urgent(&self) {
        let now = self.clock.monotonic();
        self.lock().window.urgent(now);
        self.poke();
    }

    /// Makes a plan due after the batch window, as if pods had been created.
    pub fn plan_again(&self) {
        self.change(|_| Change::Demand);
    }

    /// Sets when to plan again even if nothing changes.
    pub fn plan_again_at(&self, at: Option<Timestamp>) {
        let now = self.clock.moment();
        let then =
            |at: Timestamp| now.after(Duration::try_from(at.duration_since(now.wall)).unwrap_or_default());
        self.lock().again_at = at.map(then);
    }

    /// Returns how long until the time set by [`Self::plan_again_at`], by the clock on which it comes first.
    pub fn again_in(&self) -> Option<Duration> {
        let then = self.lock().again_at?;
        Some(self.clock.moment().until(then))
    }

    /// Makes a plan due if the time set by [`Self::plan_again_at`] has come.
    pub fn plan_if_again(&self) {
        let now = self.clock.moment();
        let mut state = self.lock();
        let due = state.again_at.is_some_and(|at| now.until(at).is_zero());
        if due {
            state.again_at = None;
        }
        drop(state);
        if due {
            self.urgent();
        }
    }

    /// Returns when the next plan is due, on the monotonic clock.
    pub fn plan_at(&self) -> Option<Duration> {
        self.lock().window.next_deadline()
    }

    /// Takes a snapshot for a plan, and closes the batch window.
    pub fn begin_plan(&self) -> Snapshot {
        let now = self.clock.now();
        let mut state = self.lock();
        state.window.close();
        let claims: Vec<Arc<Claim>> = state.index.view().claims.interrupted().cloned().collect();
        if state.setbacks.note_interruptions(claims.iter(), now) {
            state.apply_setbacks(now);
        }
        state.index.refresh_lives(now);
        state.index.snapshot()
    }

    /// Sets what an earlier leader learned about the durations of pods until a time, and adds what was seen after it.
    /// Returns how many kinds are too many and forgotten.
    pub fn remember_lives(
        &self,
        kinds: BTreeMap<String, LifeTable>,
        until: Timestamp,
        recent: BTreeSet<Uid>,
    ) -> usize {
        let now = self.clock.now();
        self.lock().index.remember_lives(kinds, until, recent, now)
    }

    /// Returns what is known about the durations of pods, the time until which pods count there, and the last pods that do.
    pub fn known_lives(&self) -> (Arc<Lives>, Timestamp, Vec<Uid>) {
        let state = self.lock();
        let now = self.clock.now();
        (state.index.view().lives.clone(), now, state.index.recent_ends(now))
    }

    /// Sets what an earlier leader learned about nodes without work.
    pub fn remember_gaps(&self, gaps: Gaps) {
        self.lock().index.set_gaps(gaps);
    }

    /// Sets the namespaces whose monthly budget is spent.
    pub fn set_spent_namespaces(&self, spent: SpentBudgets) {
        self.change(|state| state.index.set_spent_namespaces(spent));
    }

    /// Sets what an earlier leader learned about the pods that come.
    pub fn remember_arrivals(&self, arrivals: Arrivals) {
        self.lock().index.set_arrivals(arrivals);
    }

    /// Stores the places of pending pods in a plan.
    pub fn nominate(&self, plan: &Plan) {
        self.change(|state| {
            let retired = state.index.set_retirements(plan.retirements.clone());
            let retired = retired.max(state.index.set_making_way(plan));
            state.index.set_held_by_limits(plan);
            retired.max(state.index.set_nominations(plan.nominations.clone(), plan.is_short_of_capacity()))
        });
    }

    /// Keeps the last leader's decisions which nodes retire, until this one makes its own.
    pub fn inherit_retirements(&self) {
        let decided = Some(self.clock.now());
        let retirements = Retirements { decided, inherited: true, ..Retirements::default() };
        self.change(|state| state.index.set_retirements(Arc::new(retirements)));
    }

    /// Returns why a pod is evicted, as a label for metrics: the reason why its node is removed, or `MakesRoom` if the node stays.
    pub fn why_it_leaves(&self, pod: &ObjectKey) -> &'static str {
        self.view(|all| {
            let phase = all.pods.existing(pod).map(|pod| &pod.phase);
            let Some(PodPhase::Bound { node }) = phase else { return "Deleted" };
            let Some(claim) = all.claims.named_node(node) else { return "Deleted" };
            let unhealthy = || claim.since(ConditionType::Unhealthy).map(|_| "Unhealthy");
            let stays = || claim.deleting_since.is_none().then_some("MakesRoom");
            claim.leaving().map(Cause::as_str).or_else(unhealthy).or_else(stays).unwrap_or("Deleted")
        })
    }

    // === Providers ===

    /// Returns the node classes that pools and claims refer to.
    pub fn node_classes(&self) -> BTreeSet<NodeClassRef> {
        self.view(|all| {
            let pools = all.pools.values().map(|pool| pool.node_class.clone());
            pools.chain(all.claims.values().map(|claim| claim.node_class.clone())).collect()
        })
    }

    /// Sets the catalogues by node class.
    pub fn set_catalogues(&self, catalogues: BTreeMap<NodeClassRef, Result<Arc<Catalogue>, String>>) {
        self.change(|state| state.index.reset_catalogues(catalogues));
    }

    /// Sets the instances of these kinds of node classes, which are those of one cloud, to a listing that began at `at`.
    pub fn set_instances(&self, kinds: &[&str], at: Timestamp, instances: Vec<ListedInstance>) {
        self.change(|state| state.index.set_instances(kinds, at, instances));
    }

    /// Registers that an instance has terminated, even if an older listing contains it.
    pub fn instance_gone(&self, provider_id: &str) {
        let now = self.clock.now();
        self.change(|state| state.index.instance_gone(provider_id, now));
    }

    /// Notifies that node classes may have changed.
    pub fn classes_changed(&self) {
        self.classes.replace(());
    }

    /// Returns notifications of changed node classes.
    pub fn class_changes(&self) -> Receiver<()> {
        self.classes.subscribe()
    }

    // === Waking ===

    /// Wakes the loops.
    pub fn poke(&self) {
        self.changes.replace(());
    }

    /// Returns notifications of changes.
    pub fn changes(&self) -> Receiver<()> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::edge::clock::Clock;
    use crate::edge::clock::testing::TestClock;

    #[test]
    fn a_late_list_does_not_bring_back_a_claim_whose_deletion_the_watch_has_shown() {
        let world = World::new(BatchWindow::default(), Setbacks::default(), Arc::new(TestClock::new()));
        let object = |name: &str, version: &str| -> NodeClaim {
            let object = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
                "metadata": {"name": name, "uid": name, "resourceVersion": version,
                    "labels": {"poolwright.dev/nodepool": "gpu"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"},
                    "offerings": [{"instanceType": "g5.xlarge", "zone": "us-east-1a", "capacityType": "on-demand",
                        "usdPerHour": "1.006", "allocatable": {"cpu": "3920m"}}]}});
            serde_json::from_value(object).unwrap()
        };
        let name = ClaimName("a".to_owned());
        world.claim_created(&object("a", "100")).unwrap();
        assert!(world.claim(&name).is_some());
        world.change(|state| {
            state.fence.shows("NodeClaim", Some("110"));
            state.fence.gone("a");
            state.index.delete_claim(&name)
        });
        world.claim_created(&object("a", "100")).unwrap();
        assert!(world.claim(&name).is_none());
        // The watch starts again, and its list no longer has the claim.
        world.change(|state| {
            state.fence.starts_again("NodeClaim");
            state.fence.lists("NodeClaim", Some("120"));
            state.fence.listed("NodeClaim");
            Change::None
        });
        world.claim_created(&object("a", "100")).unwrap();
        assert!(world.claim(&name).is_none());
        world.claim_created(&object("b", "130")).unwrap();
        assert!(world.claim(&ClaimName("b".to_owned())).is_some(), "the watch has not shown that one yet");
    }

    #[test]
    fn a_calendar_that_is_set_back_holds_up_no_plan() {
        let clock = Arc::new(TestClock::new());
        let world = World::new(BatchWindow::default(), Setbacks::default(), clock.clone());
        let begin = clock.moment();
        world.plan_again();
        world.plan_again_at(Some(begin.after(Duration::from_secs(30)).wall));
        clock.set_back(Duration::from_mins(10));
        assert_eq!(world.plan_at(), Some(begin.monotonic + Duration::from_secs(1)));
        assert_eq!(world.again_in(), Some(Duration::from_secs(30)));
        drop(world.begin_plan());
        clock.advance(Duration::from_secs(30));
        world.plan_if_again();
        assert_eq!(
            world.plan_at(),
            Some(clock.moment().monotonic),
            "by the clock, ten minutes before that time of the calendar"
        );
    }
}
