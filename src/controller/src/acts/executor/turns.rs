//! How many lanes work at a time, by what they wait for.
//!
//! What waits for a cloud waits for seconds, and hundreds do after a burst: nobody else waits for these. Nor does anything wait for the
//! pods of whole nodes that are asked to go, and closing a node that is taken back waits for nothing but other nodes that are closed.

use std::sync::Arc;

use poolwright_core::{Action, DISRUPTED_TAINT};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Launches wait for a cloud, and for others of their batch: they cost us next to nothing meanwhile.
const LAUNCHES: usize = 256;
/// Ends wait for a cloud too, between a few calls to the API server.
const ENDS: usize = 128;
/// Nodes that are closed, and claims that go thereafter.
const CLOSING: usize = 16;

/// What lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The API server.
    Api,
    /// The same, to close a node.
    Closing,
    /// The same, to have a pod go.
    Eviction,
    /// A launch.
    Launch,
    /// The end of an instance.
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
            Action::Retire { .. } => true,
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

/// The turns there are.
#[derive(Debug)]
pub struct Turns {
    api: Arc<Semaphore>,
    closing: Arc<Semaphore>,
    evictions: Arc<Semaphore>,
    launches: Arc<Semaphore>,
    ends: Arc<Semaphore>,
}

impl Turns {
    /// So many lanes at a time that wait for the API server alone, and as many that have pods go.
    pub fn new(api: usize) -> Self {
        let turns = |count| Arc::new(Semaphore::new(count));
        Self {
            api: turns(api),
            closing: turns(CLOSING),
            evictions: turns(api),
            launches: turns(LAUNCHES),
            ends: turns(ENDS),
        }
    }

    /// Waits for a turn to do this; `None` when there are no more.
    pub async fn next(&self, actions: &[Action]) -> Option<OwnedSemaphorePermit> {
        self.of(Kind::of(actions)).clone().acquire_owned().await.ok()
    }

    /// There are no more.
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
    use poolwright_core::{ClaimName, Effect, ObjectKey, Taint, Uid};

    use super::*;

    fn terminate(claim: &str) -> Vec<Action> {
        vec![Action::Terminate { claim: ClaimName(claim.into()), forced: false }]
    }

    fn evict(pod: &str) -> Vec<Action> {
        vec![Action::Evict { pod: ObjectKey::new("default", pod), uid: Uid(pod.into()) }]
    }

    fn taint(taints: Vec<Taint>) -> Vec<Action> {
        vec![Action::SetTaints { node: "n".into(), taints }]
    }

    fn close_node() -> Vec<Action> {
        let effect = Effect::NoSchedule;
        taint(vec![Taint { key: DISRUPTED_TAINT.into(), value: String::new(), effect }])
    }

    #[test]
    fn a_node_is_closed_however_many_ends_are_waited_for_and_pods_evicted() {
        let turns = Turns::new(4);
        let take = |actions: Vec<Action>| {
            let turn = turns.next(&actions).now_or_never();
            turn.map(|turn| turn.expect("not closed"))
        };
        let ends: Vec<_> = (0..300).map_while(|at| take(terminate(&format!("c-{at}")))).collect();
        assert_eq!(ends.len(), ENDS);
        let evictions: Vec<_> = (0..300).map_while(|at| take(evict(&format!("p-{at}")))).collect();
        assert_eq!(evictions.len(), 4, "who waits for a cloud takes no turn of theirs");
        let launch = vec![Action::Launch { claim: ClaimName("new".into()) }];
        assert!(take(launch).is_some(), "nor of a launch");
        let opened: Vec<_> = (0..300).map_while(|_| take(taint(vec![]))).collect();
        assert_eq!(opened.len(), 4, "reservations that are lifted are work like any");
        assert!(take(close_node()).is_some());
        drop(evictions);
        assert!(take(evict("another")).is_some());
    }

    #[test]
    fn after_the_end_nobody_gets_a_turn() {
        let turns = Turns::new(4);
        turns.close();
        for actions in [terminate("c"), evict("p"), close_node(), vec![]] {
            assert!(matches!(turns.next(&actions).now_or_never(), Some(None)));
        }
    }
}
