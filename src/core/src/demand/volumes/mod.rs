//! Resolves the volumes of pending pods: finds the pods that must wait for a volume, and the places where all other pods can use
//! their volumes. The rest of a plan sees only the resulting pods.

pub(crate) mod attach;
pub(crate) mod bind;
pub(crate) mod shared;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use crate::demand::volumes::attach::Attachable;
use crate::demand::volumes::bind::{UsableVolume, VolumeWait};
use crate::demand::volumes::shared::SharedVolumes;

use crate::demand::planned_at;
use crate::model::plan::UnplacedReason;
use crate::model::{NodeSelectorTerm, Pod, PodKey, PodPhase, PodRole, PodSpec, Shared, Snapshot};

/// Results about volumes that are not part of pod specs.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    /// The pods that must wait for a volume, with the reason and a message.
    pub waits: BTreeMap<PodKey, (UnplacedReason, String)>,
    /// The volumes of all other pods: the name of each volume in messages, and the places where it can be used.
    pub places: BTreeMap<PodKey, Vec<(String, Vec<NodeSelectorTerm>)>>,
    /// The number of further volumes that nodes can attach.
    pub attachable: Attachable,
    /// The claims because of which pods must be near others, in words.
    pub shared: BTreeMap<PodKey, String>,
}

/// Resolves the volumes of every pending pod, and adds the places where they can be used to its spec. Pods that share the volume of
/// a claim which is not bound get affinity to each other ([`shared`]), or wait for the first of them.
pub(crate) fn resolve(snapshot: &mut Cow<'_, Snapshot>) -> Volumes {
    let mut volumes = Volumes::default();
    let found = bind(snapshot, &mut volumes);
    if found.is_empty() {
        return volumes;
    }
    let reached = found.iter().flat_map(|(pod, bound)| {
        let reached = bound.iter().filter_map(|volume| volume.reached.as_ref());
        reached.map(move |(claim, reach)| (pod, claim, *reach))
    });
    let sharing = SharedVolumes::of(reached);
    let later = sharing.later(&in_order(snapshot));
    let firsts: BTreeSet<&PodKey> = later.values().collect();
    let changed = snapshot.to_mut();
    let mut specs: BTreeSet<Shared<PodSpec>> = BTreeSet::new();
    for (key, bound) in &found {
        if let Some(first) = later.get(key) {
            let claims = sharing.words(key).unwrap_or_default();
            let message = format!(
                "shares {claims}, which is not bound yet, with pod {first}, whose node decides where the volume is; this pod is planned \
                 once it is bound; if that pod gets no node, see `poolwright explain pod {first}`"
            );
            volumes.waits.insert(key.clone(), (UnplacedReason::VolumePending, message));
            continue;
        }
        let requests = volumes.attachable.requests(bound);
        let mut places = Vec::new();
        for volume in bound {
            places.extend(volume.topology.iter().map(|terms| (volume.words.clone(), terms.clone())));
        }
        changed.pods.change(key, |pod| {
            pod.spec.requests.add(&requests);
            pod.spec.volumes.extend(places.iter().map(|(_, terms)| terms.clone()));
            pod.spec.volumes.sort();
            pod.spec.volumes.dedup();
            if !firsts.contains(key) {
                sharing.apply(key, pod);
            }
            pod.spec = shared_spec(&mut specs, &pod.spec);
        });
        if let Some(words) = sharing.words(key).filter(|_| !firsts.contains(key)) {
            volumes.shared.insert(key.clone(), words);
        }
        volumes.places.insert(key.clone(), places);
    }
    volumes
}

/// Returns the spec among these that equals `spec`. If none does, adds `spec`. Thousands of pods may have equal specs with volumes of
/// their own, and share one.
fn shared_spec(known: &mut BTreeSet<Shared<PodSpec>>, spec: &Shared<PodSpec>) -> Shared<PodSpec> {
    if let Some(equal) = known.get(spec) {
        return equal.clone();
    }
    known.insert(spec.clone());
    spec.clone()
}

/// Returns the CSI drivers that attach the volumes of every pending pod that can be planned.
pub(crate) fn drivers(snapshot: &Snapshot) -> BTreeMap<PodKey, BTreeSet<String>> {
    let mut drivers: BTreeMap<PodKey, BTreeSet<String>> = BTreeMap::new();
    for (key, bound) in bind(snapshot, &mut Volumes::default()) {
        for (driver, _) in bound.into_iter().filter_map(|volume| volume.attached) {
            drivers.entry(key.clone()).or_default().insert(driver);
        }
    }
    drivers
}

/// Returns the volumes of every pod that can be planned. Pods that must wait are added to [`Volumes::waits`].
fn bind(snapshot: &Snapshot, volumes: &mut Volumes) -> BTreeMap<PodKey, Vec<UsableVolume>> {
    let waiting = in_order(snapshot);
    let mut found: BTreeMap<PodKey, Vec<UsableVolume>> = BTreeMap::new();
    if waiting.is_empty() {
        return found;
    }
    let mut binder = bind::Binder::new(snapshot, &waiting);
    for pod in waiting {
        match binder.bind(pod) {
            Ok(bound) => {
                found.insert(pod.key.clone(), bound);
            }
            Err(VolumeWait { reason, message }) => {
                volumes.waits.insert(pod.key.clone(), (reason, message));
            }
        }
    }
    let wanted = found.values().flatten().filter_map(|volume| Some(volume.attached.as_ref()?.0.as_str()));
    volumes.attachable = Attachable::new(snapshot, wanted.collect());
    found
}

/// Returns the pending pods with volumes, in the order in which they get their volumes: first pods that already have a place,
/// then by priority.
fn in_order(snapshot: &Snapshot) -> Vec<&Pod> {
    let waits = |pod: &&Pod| {
        !pod.volumes.is_empty()
            && pod.role == PodRole::Workload
            && pod.deleting_since.is_none()
            && matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. })
    };
    let mut waiting: Vec<&Pod> = snapshot.pods.unbound().filter(waits).collect();
    if waiting.len() > 1 {
        waiting.sort_by_key(|pod| (planned_at(snapshot, pod).is_none(), Reverse(pod.priority), &pod.key));
    }
    waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_specs_become_one() {
        let mut known = BTreeSet::new();
        let one = shared_spec(&mut known, &PodSpec::default().into());
        let equal = shared_spec(&mut known, &PodSpec::default().into());
        let other = PodSpec { gpu_share: Some(500), ..PodSpec::default() };
        let other = shared_spec(&mut known, &other.into());
        assert!(one.is_same(&equal) && one != other);
    }
}
