//! Learns how long pods run, from the pods that end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_terms::ConditionType;

use crate::index::ClusterIndex;
use crate::index::learning::End;
use crate::model::{Claim, LifeTable, Lives, Node, ObjectKey, PodKey, PodPhase, Uid};

/// The time after which expectations are worked out again.
const REFRESH: SignedDuration = SignedDuration::from_mins(1);
/// The longest time by which two replicas see the same end apart, with clocks that differ.
const RECENT: SignedDuration = SignedDuration::from_mins(2);
/// The most recent ends that a record names. A UID has 36 characters, so they take 40 kB.
const MOST_RECENT: usize = 1_000;

impl ClusterIndex {
    /// Sets what is known about the durations of pods.
    pub fn set_lives(&mut self, lives: Lives) {
        self.state.lives = Arc::new(lives);
        self.learning.worked_out = None;
    }

    /// Sets what was learned until a time, by an earlier leader. Pods that this index saw end after that time are added.
    ///
    /// Two replicas see the same end at different times, by clocks that differ. So `recent` names the pods that ended shortly
    /// before that time and count already. Other pods that this index saw end then are added too. Returns how many kinds are too many
    /// and forgotten.
    pub fn remember_lives(
        &mut self,
        kinds: BTreeMap<String, LifeTable>,
        until: Timestamp,
        recent: BTreeSet<Uid>,
        now: Timestamp,
    ) -> usize {
        // A time in the future was written before the clock was set back.
        let until = until.min(now);
        let from = until.checked_sub(RECENT).unwrap_or(Timestamp::MIN);
        let lives = Arc::make_mut(&mut self.state.lives);
        let forgotten = lives.set_tables(kinds);
        let ends = self.learning.ends.iter();
        for end in ends.filter(|end| end.at > from && !recent.contains(&end.uid)) {
            lives.observe(&end.kinds, end.age, end.finished, end.at);
        }
        self.learning.recorded = recent;
        self.learning.worked_out = None;
        forgotten
    }

    /// Returns the UIDs of pods that this index saw end shortly before a time, the last ones first, for
    /// [`Self::remember_lives`].
    pub fn recent_ends(&self, until: Timestamp) -> Vec<Uid> {
        let ends = self.learning.ends.iter().rev();
        let recent = ends.filter(|end| until.duration_since(end.at).abs() <= RECENT * 2);
        recent.take(MOST_RECENT).map(|end| end.uid.clone()).collect()
    }

    /// Learns from a pod that is about to be removed. `finished` says that nobody deleted it. A pod of a service ends when
    /// somebody deletes it.
    pub fn learn_end(&mut self, key: &ObjectKey, finished: bool, now: Timestamp) {
        let Some(pod) = self.state.pods.get(&PodKey::Existing(key.clone())).cloned() else { return };
        let PodPhase::Bound { node } = &pod.phase else { return };
        if self.state.lives.is_blank() || !pod.has_started_work() {
            return;
        }
        let stays = |claim: &Claim| {
            claim.interruption.is_none()
                && (!pod.duration.is_service
                    || claim.deleting_since.is_none() && claim.since(ConditionType::Disrupting).is_none())
        };
        let works = |node: &Node| {
            let is_drained = pod.duration.is_service && node.cordoned;
            !is_drained && self.state.claims.of_node(node).is_none_or(|claim| stays(claim))
        };
        // A pod that is evicted, or lost with its node, would have run longer; also a job that is deleted.
        let is_deleted = !finished || pod.deleting_since.is_some();
        let finished = is_deleted == pod.duration.is_service
            && !pod.duration.is_evicted
            && self.state.nodes.get(node).is_some_and(|node| works(node.as_ref()));
        let age = pod.duration.age(now);
        let kinds = pod.duration.kinds.clone();
        if self.learning.add(End { uid: pod.uid.clone(), kinds, age, finished, at: now }) {
            Arc::make_mut(&mut self.state.lives).observe(&pod.duration.kinds, age, finished, now);
        }
    }

    /// Works expectations out again if they are old.
    pub fn refresh_lives(&mut self, now: Timestamp) {
        let fresh = |at: Timestamp| now.duration_since(at).abs() < REFRESH;
        if self.state.lives.is_blank() || self.learning.worked_out.is_some_and(fresh) {
            return;
        }
        let running = self.state.pods.bound().filter(|pod| pod.has_started_work());
        Arc::make_mut(&mut self.state.lives).refresh(running, now);
        self.learning.worked_out = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::ResourceList;

    use super::*;
    use crate::index::learning::REMEMBERED;
    use crate::model::{LifeSource, Pod, PodRole, PodSpec};

    const KIND: &str = "1 GPUs";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("default", name)
    }

    fn running(name: &str) -> Pod {
        let mut pod = Pod::waiting(PodKey::Existing(key(name)), PodSpec::default());
        pod.phase = PodPhase::Bound { node: "n".to_owned() };
        pod.duration.started = Some(at(0));
        pod.duration.kinds = vec![KIND.to_owned()];
        pod
    }

    fn index() -> ClusterIndex {
        let mut index = ClusterIndex::new();
        index.set_lives(Lives::prior());
        index.apply_node(Node {
            name: "n".to_owned(),
            provider_id: None,
            labels: BTreeMap::new(),
            taints: Vec::new(),
            allocatable: ResourceList::new(),
            ready: true,
            cordoned: false,
            cordoned_until_initialized: false,
            do_not_disrupt: false,
            deleting_since: None,
            unhealthy_conditions: Vec::new(),
        });
        index
    }

    fn end(index: &mut ClusterIndex, pod: Pod, finished: bool, now: Timestamp) {
        let Some(key) = pod.key.existing().cloned() else { return };
        index.apply_pod(pod);
        index.learn_end(&key, finished, now);
        index.delete_pod(&key);
    }

    /// How many pods ended, and how many counted at all.
    fn counted(index: &mut ClusterIndex) -> (u32, usize) {
        index.learning.worked_out = None;
        index.refresh_lives(at(1_000_000));
        let ended = match index.view().lives.of(&running("next"), at(0)).source {
            LifeSource::Learned { ended, .. } => ended,
            _ => 0,
        };
        (ended, index.learning.ends.len())
    }

    #[test]
    fn each_pod_counts_once_also_if_a_stale_list_shows_it_again() {
        let mut index = index();
        end(&mut index, running("a"), true, at(600));
        index.learn_end(&key("a"), true, at(601));
        assert_eq!(counted(&mut index), (1, 1));
        end(&mut index, running("a"), true, at(700));
        index.reset_pods([running("a")]);
        index.reset_pods([]);
        assert_eq!(counted(&mut index), (1, 1));
        let next = Pod { uid: Uid("another".into()), ..running("a") };
        end(&mut index, next, true, at(900));
        assert_eq!(counted(&mut index), (2, 2), "another pod of this name");
    }

    #[test]
    fn a_pod_that_was_deleted_or_lost_with_its_node_has_not_ended() {
        let mut index = index();
        end(&mut index, running("deleted"), false, at(600));
        end(&mut index, Pod { deleting_since: Some(at(590)), ..running("evicted") }, true, at(600));
        let elsewhere = PodPhase::Bound { node: "gone".to_owned() };
        end(&mut index, Pod { phase: elsewhere, ..running("lost") }, true, at(600));
        assert_eq!(counted(&mut index), (0, 3));
    }

    #[test]
    fn a_pod_of_a_service_ends_when_somebody_deletes_it_and_not_when_it_is_evicted_or_drained() {
        let service = |name: &str| {
            let mut pod = running(name);
            pod.duration.make_service();
            pod
        };
        let counted = |pod: Pod, finished: bool, prepare: &dyn Fn(&mut ClusterIndex)| {
            let mut index = index();
            let kinds = pod.duration.kinds.clone();
            prepare(&mut index);
            end(&mut index, pod, finished, at(600));
            let ended = index.view().lives.ended();
            assert!(kinds.iter().all(|kind| index.view().lives.tables().contains_key(kind)), "{kinds:?}");
            ended
        };
        assert_eq!(counted(service("scaled-down"), false, &|_| {}), 1);
        let deleting = Pod { deleting_since: Some(at(590)), ..service("rolled-out") };
        assert_eq!(counted(deleting.clone(), true, &|_| {}), 1);
        assert_eq!(counted(service("failed"), true, &|_| {}), 0);
        let mut evicted = service("evicted");
        evicted.duration.is_evicted = true;
        assert_eq!(counted(evicted, false, &|_| {}), 0);
        let cordon = |index: &mut ClusterIndex| {
            let node = Node::clone(&index.view().nodes["n"]);
            index.apply_node(Node { cordoned: true, ..node });
        };
        assert_eq!(counted(deleting, false, &cordon), 0, "drained by hand");
    }

    #[test]
    fn daemons_and_pods_that_never_ran_teach_nothing() {
        let mut index = index();
        let mut pulling = running("pulling");
        pulling.duration.started = None;
        let daemon = Pod { role: PodRole::DaemonSet, ..running("daemon") };
        let waiting = Pod { phase: PodPhase::Waiting, ..running("waiting") };
        for pod in [pulling, daemon, waiting] {
            end(&mut index, pod, true, at(600));
        }
        assert_eq!(counted(&mut index), (0, 0));
        let mut blank = ClusterIndex::new();
        end(&mut blank, running("a"), true, at(600));
        assert!(blank.view().lives.is_blank());
    }

    #[test]
    fn a_new_leader_adds_what_it_saw_after_the_last_record_and_nothing_twice() {
        let mut old = index();
        let mut new = index();
        for (name, time) in [("a", 100), ("b", 200)] {
            end(&mut old, running(name), true, at(time));
            end(&mut new, running(name), true, at(time));
        }
        let record = old.view().lives.tables().clone();
        let recent = || old.recent_ends(at(300)).into_iter().collect();
        end(&mut new, running("c"), true, at(400));
        new.remember_lives(record.clone(), at(300), recent(), at(400));
        assert_eq!(counted(&mut new).0, 3);
        new.remember_lives(record, at(300), recent(), at(400));
        assert_eq!(counted(&mut new).0, 3, "reading it again changes nothing");
        let mut restarted = index();
        restarted.remember_lives(new.view().lives.tables().clone(), at(500), BTreeSet::new(), at(500));
        assert_eq!(counted(&mut restarted).0, 3);
    }

    #[test]
    fn replicas_whose_watches_and_clocks_differ_count_each_pod_once() {
        let (mut old, mut new) = (index(), index());
        // The old leader saw `a` before its record and the new one after it. `b` was the other way around.
        end(&mut old, running("a"), true, at(299));
        end(&mut new, running("a"), true, at(330));
        end(&mut new, running("b"), true, at(270));
        let (record, recent) = (old.view().lives.tables().clone(), old.recent_ends(at(300)));
        new.remember_lives(record.clone(), at(300), recent.iter().cloned().collect(), at(400));
        assert_eq!(counted(&mut new).0, 2);
        // A replica that starts reads an old list, in which `a` still runs.
        let mut restarted = index();
        restarted.remember_lives(record, at(300), recent.into_iter().collect(), at(310));
        end(&mut restarted, running("a"), true, at(320));
        assert_eq!(counted(&mut restarted).0, 1);
    }

    #[test]
    fn a_record_from_the_future_does_not_hide_what_was_seen_since() {
        let mut new = index();
        end(&mut new, running("a"), true, at(400));
        new.remember_lives(BTreeMap::new(), Timestamp::MAX, BTreeSet::new(), at(410));
        assert_eq!(counted(&mut new).0, 1);
    }

    #[test]
    fn a_clock_set_back_works_expectations_out_again() {
        let mut index = index();
        index.refresh_lives(at(1_000));
        end(&mut index, running("a"), true, at(-500));
        index.refresh_lives(at(-500));
        assert_eq!(index.learning.worked_out, Some(at(-500)));
        index.refresh_lives(at(-470));
        assert_eq!(index.learning.worked_out, Some(at(-500)), "not sooner than a minute later");
    }

    #[test]
    fn the_memory_of_single_pods_is_bounded() {
        let mut index = index();
        for number in 0..REMEMBERED + 10 {
            end(&mut index, running(&format!("p{number}")), true, at(60));
        }
        assert_eq!((index.learning.ends.len(), index.learning.counted.len()), (REMEMBERED, REMEMBERED));
    }
}
