//! More load: each workload has more pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_core::{
    GangScheduler, ObjectKey, Pod, PodGroup, PodKey, PodPhase, PodRole, PodSpec, Snapshot, Uid,
};

use crate::args::Factor;

/// What load multiplies: a pod, or all pods of a gang.
type Unit<'s> = Vec<&'s Arc<Pod>>;

/// What makes units one workload: namespace, controller, and the specs of their pods. Gangs that are alike are one, whatever made them.
type Workload<'s> = (&'s str, Option<&'s Uid>, Vec<&'s PodSpec>);

/// Returns a snapshot in which the number of pods of each workload is multiplied, and rounded up. A gang is whole or not there, so whole
/// gangs are added. Pods with scheduling gates count as they are, because no node is bought for them.
///
/// # Errors
///
/// There is no workload, or there would be too many pods. The text is the end of a sentence.
pub fn multiplied(snapshot: &Snapshot, times: Factor) -> Result<Snapshot, &'static str> {
    let mut workloads = workloads(snapshot);
    if workloads.is_empty() {
        return Err("matches nothing, because there is no pod");
    }
    let wanted = |units: usize| usize::try_from(times.of(units as u64)).unwrap_or(usize::MAX);
    let pods = workloads.iter().map(|((_, _, specs), units)| wanted(units.len()).saturating_mul(specs.len()));
    if pods.fold(0, usize::saturating_add) > MOST {
        return Err("is too much: there would be more than 100,000 pods; write a smaller factor");
    }
    let phase = waiting(snapshot, "more load");
    let mut more = snapshot.clone();
    for units in workloads.values_mut() {
        // If there are fewer, those without a node go first.
        units.sort_by_key(|unit| !runs(unit));
        let wanted = wanted(units.len());
        for surplus in units.iter().skip(wanted).flatten() {
            more.pods.remove(&surplus.key);
        }
        for number in units.len()..wanted {
            add(&mut more, &units[number % units.len()], number, &phase);
        }
    }
    Ok(more)
}

/// The most pods, as in files.
const MOST: usize = 100_000;

/// Returns the units of each workload.
fn workloads(snapshot: &Snapshot) -> BTreeMap<Workload<'_>, Vec<Unit<'_>>> {
    let mut all: BTreeMap<Workload<'_>, Vec<Unit<'_>>> = BTreeMap::new();
    let mut gangs: BTreeMap<&ObjectKey, Unit<'_>> = BTreeMap::new();
    for pod in snapshot.pods.values().filter(|pod| counts(pod)) {
        if let Some(group) = gang(snapshot, pod) {
            gangs.entry(&group.key).or_default().push(pod);
        } else {
            let workload = (pod.key.namespace(), pod.owner.as_ref(), vec![&*pod.spec]);
            all.entry(workload).or_default().push(vec![pod]);
        }
    }
    for (key, pods) in gangs {
        let mut specs: Vec<&PodSpec> = pods.iter().map(|&pod| &*pod.spec).collect();
        specs.sort_unstable();
        all.entry((key.namespace.as_str(), None, specs)).or_default().push(pods);
    }
    all
}

/// Returns whether a pod is load.
fn counts(pod: &Pod) -> bool {
    let is_there = !matches!(pod.phase, PodPhase::Finished | PodPhase::Gated);
    is_there && pod.role == PodRole::Workload && pod.deleting_since.is_none() && pod.key.existing().is_some()
}

/// Returns the gang of a pod, if it starts together with others.
fn gang<'s>(snapshot: &'s Snapshot, pod: &Pod) -> Option<&'s PodGroup> {
    let group = snapshot.pod_group(&pod.group_key()?)?;
    group.min_count.is_some_and(|least| least > 1).then_some(group)
}

/// Adds another unit like this one, which waits for nodes.
fn add(more: &mut Snapshot, unit: &[&Arc<Pod>], number: usize, phase: &PodPhase) {
    let group = unit.first().and_then(|pod| gang(more, pod)).map(|group| another_gang(group, unit, number));
    for pod in unit {
        let mut pod = another(pod, number, phase, more);
        if let Some(group) = &group {
            pod.group = Some(group.key.name.clone());
        }
        more.pods.insert(pod.key.clone(), Arc::new(pod));
    }
    // Pods with marks are a gang without an object.
    if let Some(group) = group.filter(|_| unit.iter().all(|pod| pod.gang.is_none())) {
        more.pod_groups.insert(group.key.clone(), Arc::new(group));
    }
}

/// Returns whether a unit runs, at least in part.
fn runs(unit: &[&Arc<Pod>]) -> bool {
    unit.iter().any(|pod| matches!(pod.phase, PodPhase::Bound { .. }))
}

/// Returns another gang like this one, which has as many pods as the unit. If the unit runs, they are enough to start, although the
/// gang may have started with more: those that have ended are not copied.
fn another_gang(group: &PodGroup, unit: &[&Arc<Pod>], number: usize) -> PodGroup {
    // The end of the name says whose PodGroup it is.
    let name = match (GangScheduler::of(&group.key.name), group.key.name.rsplit_once(" of ")) {
        (Some(scheduler), Some((name, _))) => scheduler.model_name(&format!("{name}-load-{number}")),
        _ => format!("{}-load-{number}", group.key.name),
    };
    let key = ObjectKey::new(&group.key.namespace, &name);
    let mut other = PodGroup { key, uid: Uid(name), ..group.clone() };
    if runs(unit) {
        let at_most = |least: u32, pods: usize| least.min(u32::try_from(pods).unwrap_or(u32::MAX));
        other.min_count = other.min_count.map(|least| at_most(least, unit.len()));
        for role in &mut other.roles {
            let there = unit.iter().filter(|pod| role.has(pod)).count();
            role.least = at_most(role.least, there);
        }
        other.roles.retain(|role| role.least > 0);
    }
    other
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
    use poolwright_core::GroupRole;

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
    fn a_gang_is_multiplied_as_a_whole_and_its_pods_start_without_the_others() {
        for (name, other) in
            [("g", "g-load-1"), ("g of scheduling.x-k8s.io", "g-load-1 of scheduling.x-k8s.io")]
        {
            let mut snapshot = world(&["a", "a", "a", "b"]);
            for pod in ["p0", "p1", "p2"] {
                snapshot.pods.change(&PodKey::new("ml", pod), |pod| pod.group = Some(name.to_owned()));
            }
            let key = ObjectKey::new("ml", name);
            let (uid, min_count) = (Uid("g".to_owned()), Some(3));
            let (roles, unmodelled) = (Vec::new(), Vec::new());
            let group = PodGroup { key, uid, min_count, roles, unmodelled, stands_for: None, held: None };
            snapshot.pod_groups.insert(group.key.clone(), Arc::new(group));
            let more = multiplied(&snapshot, Factor::HALF_MORE).expect("there are pods");
            let added = ["p0", "p0-load-1", "p1", "p1-load-1", "p2", "p2-load-1", "p3", "p3-load-1"];
            assert_eq!(names(&more), added, "half a gang would never start");
            let pod = more.pods.get(&PodKey::new("ml", "p1-load-1")).expect("it was added");
            assert_eq!(pod.group.as_deref(), Some(other));
            let group = more.pod_group(&pod.group_key().expect("it has a group")).expect("it is there");
            assert_eq!((group.key.name.as_str(), group.min_count), (other, Some(3)));
        }
    }

    #[test]
    fn the_copy_of_a_gang_that_runs_can_start_without_members_that_have_ended() {
        for (runs, min_count, roles) in [(true, 2, 0), (false, 3, 1)] {
            let mut snapshot = world(&["a", "a", "a"]);
            for pod in ["p0", "p1", "p2"] {
                snapshot.pods.change(&PodKey::new("ml", pod), |pod| {
                    pod.group = Some("g".to_owned());
                    if pod.key.name() == "p2" {
                        pod.phase = PodPhase::Finished;
                    } else if !runs {
                        pod.phase = PodPhase::Waiting;
                    }
                });
            }
            let group = PodGroup {
                key: ObjectKey::new("ml", "g"),
                uid: Uid("g".to_owned()),
                min_count: Some(3),
                roles: vec![GroupRole {
                    name: "master".to_owned(),
                    label: ("role".to_owned(), "master".to_owned()),
                    least: 1,
                }],
                unmodelled: Vec::new(),
                stands_for: None,
                held: None,
            };
            snapshot.pod_groups.insert(group.key.clone(), Arc::new(group));
            let more = multiplied(&snapshot, Factor::HALF_MORE).expect("there are pods");
            assert_eq!(names(&more), ["p0", "p0-load-1", "p1", "p1-load-1", "p2"]);
            let copy = more.pod_group(&ObjectKey::new("ml", "g-load-1")).expect("it was added");
            assert_eq!((copy.min_count, copy.roles.len()), (Some(min_count), roles), "it runs: {runs}");
        }
    }

    #[test]
    fn without_pods_there_is_no_load() {
        let refused = multiplied(&world(&[]), Factor::HALF_MORE).expect_err("there is no pod");
        assert!(refused.starts_with("matches nothing"), "{refused}");
    }
}
