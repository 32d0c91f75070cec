//! How many lanes work at a time, by what they wait for.
//!
//! What waits for a cloud waits for seconds, and hundreds do after a burst: nobody else waits for these. And closing a node that is taken
//! back, or telling its pods to end, waits for neither them nor the hundreds of evictions before it.

use std::sync::Arc;

use poolwright_core::Action;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Launches wait for a cloud, and for others of their batch: they cost us next to nothing meanwhile.
const LAUNCHES: usize = 256;
/// Ends wait for a cloud too, between a few calls to the API server.
const ENDS: usize = 128;
/// Those that others' time depends on.
const PRESSING: usize = 16;

/// What lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The API server.
    Api,
    /// The same, before all others.
    Pressing,
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
        } else if any(|action| {
            matches!(action, Action::SetTaints { .. } | Action::Retire { .. } | Action::EndPod { .. })
        }) {
            Self::Pressing
        } else {
            Self::Api
        }
    }
}

/// The turns there are.
#[derive(Debug)]
pub struct Turns {
    api: Arc<Semaphore>,
    pressing: Arc<Semaphore>,
    launches: Arc<Semaphore>,
    ends: Arc<Semaphore>,
}

impl Turns {
    /// So many lanes at a time that wait for the API server alone, and press nobody.
    pub fn new(api: usize) -> Self {
        let turns = |count| Arc::new(Semaphore::new(count));
        Self { api: turns(api), pressing: turns(PRESSING), launches: turns(LAUNCHES), ends: turns(ENDS) }
    }

    /// Waits for a turn to do this; `None` when there are no more.
    pub async fn next(&self, actions: &[Action]) -> Option<OwnedSemaphorePermit> {
        self.of(Kind::of(actions)).clone().acquire_owned().await.ok()
    }

    /// There are no more.
    pub fn close(&self) {
        for kind in [Kind::Api, Kind::Pressing, Kind::Launch, Kind::End] {
            self.of(kind).close();
        }
    }

    const fn of(&self, kind: Kind) -> &Arc<Semaphore> {
        match kind {
            Kind::Api => &self.api,
            Kind::Pressing => &self.pressing,
            Kind::Launch => &self.launches,
            Kind::End => &self.ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use poolwright_core::{ClaimName, PodKey, Uid};

    use super::*;

    fn terminate(claim: &str) -> Vec<Action> {
        vec![Action::Terminate { claim: ClaimName(claim.into()), forced: false }]
    }

    fn evict(pod: &str) -> Vec<Action> {
        vec![Action::Evict { pod: PodKey::new("default", pod), uid: Uid(pod.into()) }]
    }

    fn close_node() -> Vec<Action> {
        vec![Action::SetTaints { node: "n".into(), taints: vec![] }]
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
