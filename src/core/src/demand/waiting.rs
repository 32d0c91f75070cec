//! Pending pods as a demand source. They are in the cluster already, so this source only assigns new pods to the places that
//! claims keep.
//!
//! A new pod takes a place that a claim keeps for its controller's pods. If none is free and another pod of the controller is
//! unschedulable, the new pod counts as unschedulable too, before the scheduler has tried it.

use jiff::Timestamp;

use crate::demand::forecast::{ForecastBuilder, ForecastInput};
use crate::demand::planned_at::planned_at;
use crate::demand::source::{DemandSource, Mentions};
use crate::demand::units::Unit;
use crate::model::{ClaimName, Pod, PodPhase, Snapshot};

pub(super) struct Waiting;

impl DemandSource for Waiting {
    fn name(&self) -> &'static str {
        "waiting pods"
    }

    fn foresee<'a>(&self, known: &ForecastInput<'a>, ahead: &mut ForecastBuilder<'a>) -> Option<Timestamp> {
        for unit in &known.units {
            for pod in without_place(known, ahead, unit) {
                if let Some((_, claim)) = ahead.places_of(unit).free.pop_front() {
                    let planned = (pod.uid.clone(), claim.0.clone());
                    ahead.snapshot.to_mut().nominations.insert(pod.key.clone(), planned);
                } else if known.coming_of(unit).is_some() && pod.phase == PodPhase::Waiting {
                    find_no_node(ahead.snapshot.to_mut(), pod);
                }
            }
        }
        None
    }

    fn mentions(&self) -> Mentions {
        Mentions::Everywhere
    }
}

/// Returns the pods of a unit that have no place yet, oldest first. Pods that took a place earlier keep it, so their places are
/// removed from the free ones.
fn without_place<'a>(
    known: &ForecastInput<'a>,
    ahead: &mut ForecastBuilder<'a>,
    unit: &Unit<'a>,
) -> Vec<&'a Pod> {
    let free = &mut ahead.places_of(unit).free;
    let mut unplanned: Vec<&Pod> = Vec::new();
    for pod in known.pods_of(unit) {
        match home(known.snapshot, pod) {
            Some(claim) if known.snapshot.claims.planned_for(&pod.key) != Some(claim) => {
                if let Some(at) = free.iter().position(|(_, place)| *place == claim) {
                    free.remove(at);
                }
            }
            None if !matches!(pod.phase, PodPhase::Bound { .. } | PodPhase::Gated) => unplanned.push(pod),
            _ => {}
        }
    }
    unplanned.sort_by_key(|pod| (pod.created, &pod.key));
    unplanned
}

/// Returns the claim that the pod runs on or is planned for.
fn home<'a>(snapshot: &'a Snapshot, pod: &Pod) -> Option<&'a ClaimName> {
    let claim = match &pod.phase {
        PodPhase::Bound { node } => snapshot.claims.named_node(node),
        _ => snapshot.claims.get(&ClaimName(planned_at(snapshot, pod)?.to_owned())),
    };
    claim.map(|claim| &claim.name)
}

/// Marks a pod as unschedulable before the scheduler reports it.
fn find_no_node(snapshot: &mut Snapshot, pod: &Pod) {
    snapshot.pods.change(&pod.key, |pod| {
        pod.phase = PodPhase::Unschedulable { since: pod.created, message: String::new() };
    });
}
