//! Concurrency limits of lanes, by what they wait for.
//!
//! Calls to a cloud take seconds, and after a burst there are hundreds of them, so they have their own slots. Evictions have
//! their own slots too. Closing an interrupted node waits only for other nodes that are being closed.

use std::sync::Arc;

use poolwright_core::Action;
use poolwright_terms::keys::DISRUPTED_TAINT;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots for launches, which wait for a cloud and for their batch, and use few resources meanwhile.
const LAUNCHES: usize = 256;
/// The slots for terminations, which wait for a cloud too, between a few calls to the API server.
const ENDS: usize = 128;
/// The slots for closing nodes and deleting their claims: as many as interruptions are recorded at a time, because the nodes of a
/// burst are closed as soon as it is recorded.
const CLOSING: usize = 32;

/// What lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The API server.
    Api,
    /// The API server, to close a node.
    Closing,
    /// The API server, to evict a pod.
    Eviction,
    /// A cloud, to launch an instance.
    Launch,
    /// A cloud, to terminate an instance.
    End,
}

impl Kind {
    fn of(actions: &[Action]) -> Self {
        let any = |is: fn(&Action) -> bool| actions.iter().any(is);
        if any(|action| matches!(action, Action::Launch { .. })) {
            Self::Launch
        } else if any(|action| matches!(action, Action::Terminate { .. } | Action::Reap { .. })) {
            Self::End
        } else if any(|action| match action {
            Action::SetTaints { taints, .. } => taints.iter().any(|taint| taint.key == DISRUPTED_TAINT),
            Action::Drain { .. } => true,
            _ => false,
        }) {
            Self::Closing
        } else if any(|action| matches!(action, Action::Evict { .. } | Action::EndPod { .. })) {
            Self::Eviction
        } else {
            Self::Api
        }
    }
}

/// The slots.
#[derive(Debug)]
pub struct Slots {
    api: Arc<Semaphore>,
    closing: Arc<Semaphore>,
    evictions: Arc<Semaphore>,
    launches: Arc<Semaphore>,
    ends: Arc<Semaphore>,
}

impl Slots {
    /// Creates `api` slots for lanes that wait only for the API server, and as many for evictions.
    pub fn new(api: usize) -> Self {
        let slots = |count| Arc::new(Semaphore::new(count));
        Self {
            api: slots(api),
            closing: slots(CLOSING),
            evictions: slots(api),
            launches: slots(LAUNCHES),
            ends: slots(ENDS),
        }
    }

    /// Waits for a slot for these actions; `None` if the slots are closed.
    pub async fn next(&self, actions: &[Action]) -> Option<OwnedSemaphorePermit> {
        self.of(Kind::of(actions)).clone().acquire_owned().await.ok()
    }

    /// Closes the slots, so that [`Self::next`] returns `None`.
    pub fn close(&self) {
        for kind in [Kind::Api, Kind::Closing, Kind::Eviction, Kind::Launch, Kind::End] {
            self.of(kind).close();
        }
    }

    const fn of(&self, kind: Kind) -> &Arc<Semaphore> {
        match kind {
            Kind::Api => &self.api,
            Kind::Closing => &self.closing,
            Kind::Eviction => &self.evictions,
            Kind::Launch => &self.launches,
            Kind::End => &self.ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use poolwright_core::{ClaimName, ObjectKey, Uid};
    use poolwright_terms::{Taint, TaintEffect};

    use super::*;

    fn terminate(claim: &str) -> Vec<Action> {
        vec![Action::Terminate { claim: ClaimName(claim.into()), forced: false }]
    }

    fn evict(pod: &str) -> Vec<Action> {
        vec![Action::Evict { pod: ObjectKey::new("default", pod), uid: Uid(pod.into()), why: String::new() }]
    }

    fn taint(taints: Vec<Taint>) -> Vec<Action> {
        vec![Action::SetTaints { node: "n".into(), taints }]
    }

    fn close_node() -> Vec<Action> {
        let effect = TaintEffect::NoSchedule;
        taint(vec![Taint { key: DISRUPTED_TAINT.into(), value: String::new(), effect }])
    }

    #[test]
    fn a_node_is_closed_however_many_ends_are_waited_for_and_pods_evicted() {
        let slots = Slots::new(4);
        let take = |actions: Vec<Action>| {
            let slot = slots.next(&actions).now_or_never();
            slot.map(|slot| slot.expect("not closed"))
        };
        let ends: Vec<_> = (0..300).map_while(|at| take(terminate(&format!("c-{at}")))).collect();
        assert_eq!(ends.len(), ENDS);
        let evictions: Vec<_> = (0..300).map_while(|at| take(evict(&format!("p-{at}")))).collect();
        assert_eq!(evictions.len(), 4, "who waits for a cloud takes no slot of theirs");
        let launch = vec![Action::Launch { claim: ClaimName("new".into()) }];
        assert!(take(launch).is_some(), "nor of a launch");
        let opened: Vec<_> = (0..300).map_while(|_| take(taint(vec![]))).collect();
        assert_eq!(opened.len(), 4, "reservations that are lifted are work like any");
        assert!(take(close_node()).is_some());
        drop(evictions);
        assert!(take(evict("another")).is_some());
    }

    #[test]
    fn closed_slots_grant_nothing() {
        let slots = Slots::new(4);
        slots.close();
        for actions in [terminate("c"), evict("p"), close_node(), vec![]] {
            assert!(matches!(slots.next(&actions).now_or_never(), Some(None)));
        }
    }
}
