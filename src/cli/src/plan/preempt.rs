//! Pods of files have not met the scheduler. One that fits no node without preemption, and that preempts pods of lower priority on
//! a node of the files, gets its place there: nothing is bought for it, but for the pods that it preempts.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_core::{Pod, PodKey, PodPhase, PodRole, Profiles, Snapshot};
use poolwright_intake::manifest::NOT_SUBMITTED;
use poolwright_sim::scheduler::{Cluster, MayPreempt, Outcome, Preemption, Queued, Scheduler};

/// A pod of a file that gets its place by preemption.
#[derive(Clone)]
pub struct Preempting {
    pub pod: PodKey,
    /// The pods that lose theirs.
    pub victims: Vec<PodKey>,
    node: String,
}

impl fmt::Display for Preempting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, node, victims } = self;
        let victims: Vec<String> = victims.iter().map(ToString::to_string).collect();
        write!(
            f,
            "Pod {pod}: the scheduler gives it room on node {node}, where it preempts {}; nothing is bought for it",
            victims.join(", ")
        )
    }
}

/// Puts pods onto nodes where they preempt others, as the scheduler would. `polite` are the pods that may not.
pub fn place(snapshot: &mut Snapshot, profiles: &Profiles, polite: &BTreeSet<PodKey>) -> Vec<Preempting> {
    let workloads = snapshot.pods.bound().filter(|pod| pod.role == PodRole::Workload);
    let Some(least) = workloads.map(|pod| pod.priority).min() else { return Vec::new() };
    let is_new = |pod: &&Pod| matches!(&pod.phase, PodPhase::Unschedulable { message, .. } if message == NOT_SUBMITTED);
    let waiting = snapshot.pods.unbound().filter(is_new).filter(|pod| pod.priority > least);
    let mut queue: Vec<Queued> = waiting.map(Queued::new).collect();
    queue.sort_by_key(|one| (Reverse(one.priority), one.since, one.pod.clone()));
    let mut placed = Vec::new();
    if queue.is_empty() {
        return placed;
    }
    let scheduler = Scheduler { profiles: profiles.clone() };
    // What the scheduler sees: pods that fit take their room before less important ones. The plan chooses these places itself.
    let mut seen = snapshot.clone();
    let mut cluster = Cluster::of(&seen);
    for queued in queue {
        let Some(pod) = seen.pods.get(&queued.pod).cloned() else { continue };
        let may = if polite.contains(&pod.key) { MayPreempt::Never } else { MayPreempt::LessImportant };
        match scheduler.schedule(&cluster, &pod, may, &mut |_| 0) {
            Ok(Outcome::Bind { node }) => {
                cluster.assume(&pod, &node);
                bind(&mut seen, &pod.key, &node);
            }
            Ok(Outcome::Unschedulable { preemption: Preemption::Evict { node, victims, .. }, .. }) => {
                for of in [&mut *snapshot, &mut seen] {
                    bind(of, &pod.key, &node);
                    for victim in &victims {
                        evict(of, victim);
                    }
                }
                cluster = Cluster::of(&seen);
                placed.push(Preempting { pod: pod.key.clone(), victims, node });
            }
            // A pod that fits nowhere, and one with rules that this scheduler does not know, get what the plan finds.
            Ok(Outcome::Unschedulable { .. }) | Err(_) => {}
        }
    }
    placed
}

fn bind(snapshot: &mut Snapshot, pod: &PodKey, node: &str) {
    change(snapshot, pod, |pod| pod.phase = PodPhase::Bound { node: node.to_owned() });
}

/// A pod with a controller comes back without a node, and another pod does not.
fn evict(snapshot: &mut Snapshot, pod: &PodKey) {
    change(snapshot, pod, |pod| {
        pod.phase = match (&pod.owner, pod.role) {
            (Some(_), PodRole::Workload) => {
                PodPhase::Unschedulable { since: Timestamp::UNIX_EPOCH, message: "preempted".to_owned() }
            }
            _ => PodPhase::Finished,
        };
    });
}

fn change(snapshot: &mut Snapshot, key: &PodKey, change: impl FnOnce(&mut Pod)) {
    if let Some(pod) = snapshot.pods.get(key) {
        let mut pod = (**pod).clone();
        change(&mut pod);
        snapshot.pods.insert(key.clone(), Arc::new(pod));
    }
}
