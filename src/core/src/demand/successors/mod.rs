//! Successors as a demand source: the pods that controllers will create to replace pods on disrupted nodes.
//!
//! They are demand before any pod is evicted, so the nodes that they need are bought first, and free capacity is kept for them.
//! In a plan, they are expected pods ([`PodKey::Expected`]). Claims list them, and the new pods take their places.

pub(crate) mod moving;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::demand::forecast::{ForecastBuilder, ForecastInput};
use crate::demand::source::{DemandSource, Mentions};
use crate::demand::successors::moving::{LeavingPod, Successor};
use crate::demand::units::Unit;
use crate::model::{Pod, PodDuration, PodKey, PodPhase, Uid, Workload};

pub(super) struct Successors;

impl DemandSource for Successors {
    fn name(&self) -> &'static str {
        "successors of pods on nodes that are emptied"
    }

    fn foresee<'a>(&self, known: &ForecastInput<'a>, ahead: &mut ForecastBuilder<'a>) -> Option<Timestamp> {
        if known.going.is_empty() {
            return None;
        }
        for unit in &known.units {
            let mut wanted = still_wanted(known, unit);
            for one in known.going.iter().filter(|one| one.owner().as_ref() == Some(&unit.owner)) {
                let ordinal = (wanted > 0).then(|| ahead.places_of(unit).next_ordinal());
                wanted = wanted.saturating_sub(1);
                replace(ahead, one, ordinal, known.outlook.now);
            }
        }
        // A pod without a known controller has no successor.
        let done: BTreeSet<PodKey> = ahead.successors.iter().map(|successor| successor.pod.clone()).collect();
        for one in known.going.iter().filter(|one| !done.contains(&one.pod.key)) {
            replace(ahead, one, None, known.outlook.now);
        }
        None
    }

    fn mentions(&self) -> Mentions {
        Mentions::InClaims
    }
}

/// Returns the number of pods that a unit needs in addition to the pods that stay.
fn still_wanted(known: &ForecastInput<'_>, unit: &Unit<'_>) -> u64 {
    let goes = |pod: &Pod| known.going.iter().any(|one| one.pod.key == pod.key);
    let of = |workload: &&Workload| {
        let owned = known.owned.get(&workload.uid);
        let stay = owned.map_or(0, |pods| pods.iter().filter(|pod| !goes(pod)).count());
        // A Job needs no more pods than must still succeed. A StatefulSet that creates its pods one by one needs all of them in
        // the end.
        let all = if workload.kind == "Job" { workload.wanted } else { workload.total };
        all.saturating_sub(stay as u64)
    };
    unit.controllers.iter().map(of).sum()
}

/// Replaces a pod by its successor, as a pending pod. If there will be no successor, only removes the pod.
fn replace(ahead: &mut ForecastBuilder<'_>, moving: &LeavingPod<'_>, ordinal: Option<u64>, now: Timestamp) {
    let pod = moving.pod;
    let snapshot = ahead.snapshot.to_mut();
    snapshot.pods.remove(&pod.key);
    let key = ordinal.zip(moving.owner()).map(|(ordinal, owner)| {
        let key = PodKey::Expected { owner, ordinal };
        let next = Pod {
            uid: Uid(format!("successor:{key}")),
            key: key.clone(),
            replaces: Some(Box::new(pod.key.clone())),
            phase: PodPhase::Unschedulable { since: now, message: String::new() },
            reserved_for: Vec::new(),
            nominated_node: None,
            deleting_since: None,
            // It begins anew.
            duration: PodDuration { started: None, ..pod.duration.clone() },
            ..pod.clone()
        };
        snapshot.pods.insert(key.clone(), Arc::new(next));
        key
    });
    ahead.successors.push(Successor { pod: pod.key.clone(), from: moving.from.clone(), key });
}
