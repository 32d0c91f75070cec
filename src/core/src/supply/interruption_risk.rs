//! Interruption risk: the expected cost of spot interruptions.

use poolwright_catalog::{MigGeometry, Offering, OfferingId, ResourceName, UsdPerHour};
use poolwright_solver::problem;
use poolwright_terms::CapacityType;

use crate::model::PlanOptions;
use crate::model::plan::PlannedClaim;
use crate::model::{PodSpec, Snapshot};
use crate::rules::gpus::{MIG_PREFIX, profile_of};

/// Pods of one node with the same loss on an interruption.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodLoss {
    /// The loss of each pod, in micro-dollars.
    pub each: u64,
    pub pods: u64,
}

/// Returns the interruptions per million node-hours; zero if they are not counted.
pub(crate) fn interruptions(options: &PlanOptions, offering: &Offering) -> u32 {
    match options.spot_risk {
        Some(risk) if offering.id.capacity_type == CapacityType::Spot => {
            offering.interruptions.as_ref().map_or(risk.prior, |said| said.per_million_hours)
        }
        _ => 0,
    }
}

/// Returns the loss of a pod with this spec on one interruption, in micro-dollars.
pub(crate) fn at_risk(options: &PlanOptions, spec: &PodSpec) -> u64 {
    let Some(risk) = options.spot_risk else { return 0 };
    let lost = u128::from(risk.per_gpu_micros) * u128::from(gpu_milli(spec)) / 1000;
    u64::try_from(lost).unwrap_or(u64::MAX)
}

/// Returns the expected cost of interruptions of a node of this offering, per hour.
pub(crate) fn of_node(options: &PlanOptions, offering: &Offering, pods: &[PodLoss]) -> UsdPerHour {
    let rate = interruptions(options, offering);
    pods.iter().map(|losing| problem::risk(losing.each, rate).times(losing.pods)).sum()
}

/// Returns the number of GPUs that a pod requests, in thousandths.
fn gpu_milli(spec: &PodSpec) -> u64 {
    let whole = spec.requests.get(ResourceName::NVIDIA_GPU).saturating_mul(1000);
    let instances = spec.requests.iter().filter(|(name, _)| name.as_str().starts_with(MIG_PREFIX));
    let cut = instances.map(|(name, count)| {
        let slices = profile_of(name).and_then(|profile| MigGeometry::Seven.placements(profile));
        slices.map_or(0, |slices| count.saturating_mul(1000) * u64::from(slices.compute) / 7)
    });
    whole.saturating_add(cut.sum()).saturating_add(spec.gpu_share.unwrap_or(0).into())
}

/// Returns the message for an avoided offering, which compares its price and risk to the chosen offering.
pub(crate) fn avoided(
    id: &OfferingId,
    of: (UsdPerHour, UsdPerHour),
    chosen: (UsdPerHour, UsdPerHour),
) -> String {
    let (price, risk) = of;
    let compared = if price < chosen.0 { "cheaper" } else { "no dearer" };
    let here = if chosen.1 > UsdPerHour::ZERO { format!("{:#}", chosen.1) } else { "nothing".to_owned() };
    format!(
        "{id} at {price:#} is {compared}, but the cloud takes it back more often: its expected loss counts as {risk:#}, that of the chosen offering as {here}"
    )
}

/// Returns the expected cost of interruptions of a new node, per hour.
pub(crate) fn of_claim(snapshot: &Snapshot, options: &PlanOptions, claim: &PlannedClaim) -> UsdPerHour {
    let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { return UsdPerHour::ZERO };
    let Some(offering) = catalogue.offering(claim.offering()) else { return UsdPerHour::ZERO };
    let rate = interruptions(options, offering);
    let pods = claim.planned_pods.iter().filter_map(|key| snapshot.pods.get(key));
    pods.map(|pod| problem::risk(at_risk(options, &pod.spec), rate)).sum()
}
