//! Interruption risk: the expected cost of spot interruptions.

use std::collections::BTreeMap;

use poolwright_catalog::{InstanceType, Offering, OfferingId, UsdPerHour};
use poolwright_solver::problem;
use poolwright_terms::CapacityType;

use crate::demand::group_state;
use crate::model::PlanOptions;
use crate::model::plan::PlannedClaim;
use crate::model::{ObjectKey, Pod, PodRole, PodSpec, Snapshot};
use crate::rules::gpus::gpu_milli;

/// The loss of a pod on one interruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loss {
    /// The loss of the pod alone, in micro-dollars.
    own: u64,
    /// The loss of its whole gang, in micro-dollars; zero without a gang.
    gang: u64,
    /// The GPUs that the pod uses, in thousandths.
    gpu_milli: u64,
}

impl Loss {
    pub fn is_zero(self) -> bool {
        self.own == 0 && self.gang == 0
    }

    /// Returns the loss of the whole gang, in micro-dollars; zero without a gang.
    pub fn gang(self) -> u64 {
        self.gang
    }

    /// Returns the loss of the pod alone, in micro-dollars.
    pub fn own(self) -> u64 {
        self.own
    }

    /// Returns the loss that counts for the pod on a node of this type, in micro-dollars. An interruption stops the whole gang
    /// once, so the pods that share the node share its loss. As many share it as its GPUs hold.
    pub fn on(self, instance_type: &InstanceType) -> u64 {
        let gpus = instance_type.gpu.as_ref().map_or(0, |gpu| u64::from(gpu.count) * 1000);
        let sharing = gpus.checked_div(self.gpu_milli).unwrap_or(1).max(1);
        self.own.max(self.gang.div_ceil(sharing))
    }

    /// Returns the loss of pods that share a node in any case.
    pub fn with(self, other: Self) -> Self {
        Self {
            own: self.own.saturating_add(other.own),
            gang: self.gang.max(other.gang),
            gpu_milli: self.gpu_milli.saturating_add(other.gpu_milli),
        }
    }
}

/// The losses of pods on one interruption. The pods of a gang work together, so all of them lose their work when the cloud takes
/// the node of one.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// The loss of each gang with pods that wait, in micro-dollars.
    gangs: BTreeMap<ObjectKey, u64>,
}

impl Losses {
    pub fn new(snapshot: &Snapshot, options: &PlanOptions) -> Self {
        let mut gangs = BTreeMap::new();
        if options.spot_risk.is_some() {
            for key in snapshot.pods.unbound().filter_map(Pod::group_key) {
                gangs.entry(key).or_insert_with_key(|key| {
                    if group_state(snapshot, key).least().is_none() {
                        // Its pods do not start together.
                        return 0;
                    }
                    let pods = snapshot.pods.of_group(key).filter(|pod| pod.role == PodRole::Workload);
                    pods.map(|pod| at_risk(options, &pod.spec)).fold(0, u64::saturating_add)
                });
            }
        }
        Self { gangs }
    }

    /// Returns the loss of a pod.
    pub fn of(&self, options: &PlanOptions, pod: &Pod) -> Loss {
        let gang = pod.group_key().and_then(|key| self.gangs.get(&key).copied());
        Loss { own: at_risk(options, &pod.spec), gang: gang.unwrap_or(0), gpu_milli: gpu_milli(&pod.spec) }
    }
}

/// Pods of one node with the same loss on an interruption.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodLoss {
    pub each: Loss,
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
fn at_risk(options: &PlanOptions, spec: &PodSpec) -> u64 {
    let Some(risk) = options.spot_risk else { return 0 };
    let lost = u128::from(risk.per_gpu_micros) * u128::from(gpu_milli(spec)) / 1000;
    u64::try_from(lost).unwrap_or(u64::MAX)
}

/// Returns the expected cost of interruptions of a node of this offering, per hour.
pub(crate) fn of_node(
    options: &PlanOptions,
    (offering, instance_type): (&Offering, &InstanceType),
    pods: &[PodLoss],
) -> UsdPerHour {
    let rate = interruptions(options, offering);
    pods.iter().map(|losing| problem::risk(losing.each.on(instance_type), rate).times(losing.pods)).sum()
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
pub(crate) fn of_claim(
    snapshot: &Snapshot,
    options: &PlanOptions,
    losses: &Losses,
    claim: &PlannedClaim,
) -> UsdPerHour {
    let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { return UsdPerHour::ZERO };
    let Some(offering) = catalogue.offering(claim.offering()) else { return UsdPerHour::ZERO };
    let Some(instance_type) = catalogue.instance_type(&offering.id.instance_type) else {
        return UsdPerHour::ZERO;
    };
    let rate = interruptions(options, offering);
    let pods = claim.planned_pods.iter().filter_map(|key| snapshot.pods.get(key));
    pods.map(|pod| problem::risk(losses.of(options, pod).on(instance_type), rate)).sum()
}
