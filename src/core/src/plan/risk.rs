//! What interruptions of spot nodes are counted to cost.

use poolwright_catalog::{CapacityType, MigGeometry, Offering, ResourceName, UsdPerHour};
use poolwright_solver::problem;

use super::gpus::{MIG_PREFIX, profile_of};
use super::{PlanOptions, PlannedClaim};
use crate::model::{PodSpec, Snapshot};

/// What an interruption loses, and how often one comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpotRisk {
    /// What one interruption of a pod loses for each of its GPUs, in micro-dollars: work since the last checkpoint and the time to come back.
    /// A part of a GPU counts as that part.
    pub per_gpu_micros: u64,
    /// Interruptions in a million node-hours of spot offerings whose catalogue does not say.
    pub prior: u32,
}

/// Interruptions in a million node-hours, as far as they are counted.
pub(super) fn interruptions(options: &PlanOptions, offering: &Offering) -> u32 {
    match options.spot_risk {
        Some(risk) if offering.id.capacity_type == CapacityType::Spot => {
            offering.interruptions.unwrap_or(risk.prior)
        }
        _ => 0,
    }
}

/// What one interruption of such a pod loses, in micro-dollars.
pub(super) fn at_risk(options: &PlanOptions, spec: &PodSpec) -> u64 {
    let Some(risk) = options.spot_risk else { return 0 };
    let lost = u128::from(risk.per_gpu_micros) * u128::from(gpu_milli(spec)) / 1000;
    u64::try_from(lost).unwrap_or(u64::MAX)
}

/// Thousandths of GPUs that a pod has.
fn gpu_milli(spec: &PodSpec) -> u64 {
    let whole = spec.requests.get(ResourceName::NVIDIA_GPU).saturating_mul(1000);
    let instances = spec.requests.iter().filter(|(name, _)| name.as_str().starts_with(MIG_PREFIX));
    let cut = instances.map(|(name, count)| {
        let slices = profile_of(name).and_then(|profile| MigGeometry::Seven.placements(profile));
        slices.map_or(0, |slices| count.saturating_mul(1000) * u64::from(slices.compute) / 7)
    });
    whole.saturating_add(cut.sum()).saturating_add(spec.gpu_share.unwrap_or(0).into())
}

/// What the interruptions of a node to buy are counted to cost per hour.
pub(super) fn of_claim(snapshot: &Snapshot, options: &PlanOptions, claim: &PlannedClaim) -> UsdPerHour {
    let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { return UsdPerHour::ZERO };
    let Some(offering) = catalogue.offering(claim.offering()) else { return UsdPerHour::ZERO };
    let rate = interruptions(options, offering);
    let pods = claim.planned_pods.iter().filter_map(|key| snapshot.pods.get(key));
    pods.map(|pod| problem::risk(at_risk(options, &pod.spec), rate)).sum()
}
