//! What interruptions of spot nodes are counted to cost.

use poolwright_catalog::{MigGeometry, Offering, OfferingId, ResourceName, UsdPerHour};
use poolwright_solver::problem;
use poolwright_terms::CapacityType;

use crate::model::PlanOptions;
use crate::model::plan::PlannedClaim;
use crate::model::{PodSpec, Snapshot};
use crate::rules::gpus::{MIG_PREFIX, profile_of};

/// Pods of one node that lose the same when it is taken back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodLoss {
    /// What each loses, in micro-dollars.
    pub each: u64,
    pub pods: u64,
}

/// Interruptions in a million node-hours, as far as they are counted.
pub(crate) fn interruptions(options: &PlanOptions, offering: &Offering) -> u32 {
    match options.spot_risk {
        Some(risk) if offering.id.capacity_type == CapacityType::Spot => {
            offering.interruptions.as_ref().map_or(risk.prior, |said| said.per_million_hours)
        }
        _ => 0,
    }
}

/// What one interruption of such a pod loses, in micro-dollars.
pub(crate) fn at_risk(options: &PlanOptions, spec: &PodSpec) -> u64 {
    let Some(risk) = options.spot_risk else { return 0 };
    let lost = u128::from(risk.per_gpu_micros) * u128::from(gpu_milli(spec)) / 1000;
    u64::try_from(lost).unwrap_or(u64::MAX)
}

/// What the interruptions of a node of this offering are counted to cost its pods per hour.
pub(crate) fn of_node(options: &PlanOptions, offering: &Offering, pods: &[PodLoss]) -> UsdPerHour {
    let rate = interruptions(options, offering);
    pods.iter().map(|losing| problem::risk(losing.each, rate).times(losing.pods)).sum()
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

/// Why something else was chosen: its price and what its interruptions are counted to cost, and those of what was chosen.
pub(crate) fn avoided(
    id: &OfferingId,
    of: (UsdPerHour, UsdPerHour),
    chosen: (UsdPerHour, UsdPerHour),
) -> String {
    let (price, risk) = of;
    let compared = if price < chosen.0 { "cheaper" } else { "no dearer" };
    let here = if chosen.1 > UsdPerHour::ZERO { format!("{} $/h", chosen.1) } else { "nothing".to_owned() };
    format!(
        "{id} at {price} $/h is {compared}, but the cloud takes it back more often: its expected loss counts as {risk} $/h, that of the chosen offering as {here}"
    )
}

/// What the interruptions of a node to buy are counted to cost per hour.
pub(crate) fn of_claim(snapshot: &Snapshot, options: &PlanOptions, claim: &PlannedClaim) -> UsdPerHour {
    let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { return UsdPerHour::ZERO };
    let Some(offering) = catalogue.offering(claim.offering()) else { return UsdPerHour::ZERO };
    let rate = interruptions(options, offering);
    let pods = claim.planned_pods.iter().filter_map(|key| snapshot.pods.get(key));
    pods.map(|pod| problem::risk(at_risk(options, &pod.spec), rate)).sum()
}
