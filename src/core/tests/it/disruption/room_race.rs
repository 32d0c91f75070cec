//! Tests of pods that give way while the scheduler binds their successors at once: they do not give way in vain.

use poolwright_core::disruption::make_room;

use super::room::{evicted, full, made_at, nominated, with_node};
use super::*;

/// What the scheduler does with a nomination of the waiting pod.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheduler {
    /// It keeps the room for the pod.
    Keeps,
    /// It clears the nomination, as often as it is written.
    Clears,
    /// It gives the room to another pod.
    Ignores,
}

/// A cluster in which `v` waits for the room of another pod, and whose successors have an open place.
struct Race {
    snapshot: Snapshot,
    history: MoveHistory,
    scheduler: Scheduler,
    gone: usize,
}

impl Race {
    fn new(scheduler: Scheduler) -> Self {
        let snapshot = with_node(full(|pod| pod), small("free"));
        Self { snapshot, history: MoveHistory::default(), scheduler, gone: 0 }
    }

    /// Makes and carries out one plan. Returns what is bought. The evictions come first, and evicted pods end at once. So the scheduler
    /// knows the nominations of earlier plans only when it binds the successors.
    fn plan(&mut self, seconds: i64) -> Vec<String> {
        let current = planned_at(&self.snapshot, seconds);
        let (now, options) = (at(seconds), PlanOptions::default());
        let made = make_room(&self.snapshot, &current, &self.history, now, &options, &mut NeverStop);
        let Some(made) = made else { return bought(&current) };
        self.history.record_evictions(&self.snapshot, &made.evicted, now);
        self.history.record_nominations(made.nominated.clone(), now);
        for (pod, _) in &made.evicted {
            self.snapshot.pods.remove(pod);
            self.gone += 1;
            let next = Pod { created: now, ..replica(&format!("next-{}", self.gone)) };
            let waiting = self.snapshot.pods.get(&key("v")).unwrap();
            let is_kept = self.scheduler == Scheduler::Keeps && waiting.nominated_node.is_some();
            let bound_now = if is_kept {
                let waiting = (**waiting).clone();
                vec![bound(next, "free"), bound(waiting, "big")]
            } else {
                vec![bound(next, "big")]
            };
            self.snapshot = with(self.snapshot.clone(), bound_now);
        }
        let nominates = made.actions.iter().any(|action| matches!(action, Action::Nominate { .. }));
        if nominates && made.evicted.is_empty() && self.scheduler != Scheduler::Clears {
            self.snapshot = nominated(self.snapshot.clone());
        }
        bought(&made.plan)
    }
}

#[test]
fn a_pod_that_gives_way_leaves_its_room_to_the_pod_that_needs_it_although_its_successor_is_bound_first() {
    let mut race = Race::new(Scheduler::Keeps);
    for seconds in [0, 2, 4] {
        assert_eq!(race.plan(NOW + seconds), Vec::<String>::new());
    }
    let home = &race.snapshot.pods.get(&key("v")).unwrap().phase;
    assert_eq!((home, race.gone), (&PodPhase::Bound { node: "big".to_owned() }, 1));
}

#[test]
fn after_a_pod_gave_way_in_vain_no_other_does_and_the_node_is_bought() {
    let mut race = Race::new(Scheduler::Ignores);
    let nodes: Vec<Vec<String>> = [0, 2, 4, 6, 600].map(|seconds| race.plan(NOW + seconds)).into();
    assert!(nodes[..2].iter().all(Vec::is_empty), "{nodes:?}");
    assert!(nodes[2..].iter().all(|nodes| *nodes == ["g5.12xlarge: v"]), "{nodes:?}");
    assert_eq!(race.gone, 1);
}

#[test]
fn the_node_is_bought_if_the_scheduler_clears_each_nomination_for_two_minutes() {
    let mut race = Race::new(Scheduler::Clears);
    for seconds in [0, 60, 119] {
        assert_eq!(race.plan(NOW + seconds), Vec::<String>::new());
    }
    for seconds in [120, 899] {
        assert_eq!(race.plan(NOW + seconds), ["g5.12xlarge: v"]);
    }
    assert_eq!(race.gone, 0);
    let later = made_at(&race.snapshot, &race.history, NOW + 900).unwrap();
    assert_eq!((bought(&later.plan), evicted(&later)), (vec![], vec![]), "it is tried again");
}
