//! More load: each workload has more pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_core::{Pod, PodKey, PodPhase, PodRole, PodSpec, Snapshot, Uid};

use crate::args::Factor;

/// What makes pods one workload: namespace, controller and spec.
type Workload<'s> = (&'s str, Option<&'s Uid>, &'s PodSpec);

/// Returns a snapshot in which the number of pods of each workload is multiplied, and rounded up. Pods with scheduling gates count as
/// they are, because no node is bought for them.
///
/// # Errors
///
/// There is no workload, or there would be too many pods. The text is the end of a sentence.
pub fn multiplied(snapshot: &Snapshot, times: Factor) -> Result<Snapshot, &'static str> {
    let mut workloads: BTreeMap<Workload<'_>, Vec<&Arc<Pod>>> = BTreeMap::new();
    for pod in snapshot.pods.values().filter(|pod| counts(pod)) {
        workloads.entry((pod.key.namespace(), pod.owner.as_ref(), &*pod.spec)).or_default().push(pod);
    }
    if workloads.is_empty() {
        return Err("matches nothing, because there is no pod");
    }
    let wanted = |pods: &[&Arc<Pod>]| usize::try_from(times.of(pods.len() as u64)).unwrap_or(usize::MAX);
    if workloads.values().fold(0, |sum: usize, pods| sum.saturating_add(wanted(pods))) > MOST {
        return Err("is too much: there would be more than 100,000 pods; write a smaller factor");
    }
    let phase = waiting(snapshot, "more load");
    let mut more = snapshot.clone();
    for pods in workloads.values_mut() {
        // If there are fewer, those without a node go first.
        pods.sort_by_key(|pod| !matches!(pod.phase, PodPhase::Bound { .. }));
        let wanted = wanted(pods);
        for surplus in pods.iter().skip(wanted) {
            more.pods.remove(&surplus.key);
        }
        for number in pods.len()..wanted {
            let pod = another(pods[number % pods.len()], number, &phase, snapshot);
            more.pods.insert(pod.key.clone(), Arc::new(pod));
        }
    }
    Ok(more)
}

/// The most pods, as in files.
const MOST: usize = 100_000;

/// Returns whether a pod is load.
fn counts(pod: &Pod) -> bool {
    let is_there = !matches!(pod.phase, PodPhase::Finished | PodPhase::Gated);
    is_there && pod.role == PodRole::Workload && pod.deleting_since.is_none() && pod.key.existing().is_some()
}

/// Returns another pod like this one, which waits for a node. Its volumes are yet to be made, so they restrict it to no node.
fn another(pod: &Pod, number: usize, phase: &PodPhase, snapshot: &Snapshot) -> Pod {
    let mut name = format!("{}-load-{number}", pod.key.name());
    while snapshot.pods.contains_key(&PodKey::new(pod.key.namespace(), name.as_str())) {
        name.push('x');
    }
    Pod {
        key: PodKey::new(pod.key.namespace(), name.as_str()),
        uid: Uid(name),
        volumes: Vec::new(),
        phase: phase.clone(),
        reserved_for: Vec::new(),
        nominated_node: None,
        ..pod.clone()
    }
}

/// Returns the phase of a pod for which a node is to be bought, also in a cluster, where other pods wait until a scheduler has tried
/// them.
pub fn waiting(snapshot: &Snapshot, why: &str) -> PodPhase {
    let created = snapshot.pods.values().map(|pod| pod.created).max().unwrap_or_default();
    PodPhase::Unschedulable { since: created, message: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns pods of these controllers.
    fn world(owners: &[&str]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (at, owner) in owners.iter().enumerate() {
            let mut pod = Pod::waiting(PodKey::new("ml", format!("p{at}")), PodSpec::default());
            pod.owner = Some(Uid((*owner).to_owned()));
            if at == 0 {
                pod.phase = PodPhase::Bound { node: "n".to_owned() };
            }
            snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
        }
        snapshot
    }

    fn names(snapshot: &Snapshot) -> Vec<String> {
        snapshot.pods.keys().map(|key| key.name().into_owned()).collect()
    }

    #[test]
    fn each_workload_has_half_as_many_pods_again_rounded_up() {
        let more = multiplied(&world(&["a", "a", "b"]), Factor::HALF_MORE).expect("there are pods");
        assert_eq!(names(&more), ["p0", "p0-load-2", "p1", "p2", "p2-load-1"]);
        let added = more.pods.get(&PodKey::new("ml", "p0-load-2")).expect("it was added");
        assert!(matches!(added.phase, PodPhase::Unschedulable { .. }), "it waits, although its model runs");
        assert_eq!(added.owner, Some(Uid("a".to_owned())));
    }

    #[test]
    fn without_pods_there_is_no_load() {
        let refused = multiplied(&world(&[]), Factor::HALF_MORE).expect_err("there is no pod");
        assert!(refused.starts_with("matches nothing"), "{refused}");
    }
}
