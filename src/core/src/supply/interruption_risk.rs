//! Interruption risk: the expected cost of spot interruptions.

use std::collections::BTreeMap;

use poolwright_catalog::{InstanceType, Offering, OfferingId, ResourceList, UsdPerHour};
use poolwright_solver::problem;
use poolwright_terms::CapacityType;

use crate::demand::group_state;
use crate::model::PlanOptions;
use crate::model::plan::PlannedClaim;
use crate::model::{ObjectKey, Pod, PodRole, PodSpec, Snapshot};
use crate::rules::gpus::gpu_milli;

/// The loss of a pod on one interruption, as the solver counts it. An interruption stops a whole gang once, however many of its pods
/// are on the node, but the solver adds up the losses of pods. So a pod of a gang counts with a share. The shares on one node never
/// exceed its loss, so a bound with them holds. [`Losses::together`] is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loss {
    /// The loss of the pod alone, in micro-dollars.
    own: u64,
    /// The loss of its gang.
    gang: GangLoss,
    /// The GPUs that the pod uses, in thousandths.
    gpu_milli: u64,
}

/// The loss of a gang, and its waiting pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct GangLoss {
    /// The loss of all its pods, in micro-dollars; zero without a gang.
    lost: u64,
    /// The number of its waiting pods without GPUs.
    without_gpus: u64,
    /// The fewest GPUs that one of its waiting pods with GPUs uses, in thousandths.
    fewest_gpus: u64,
    /// Whether its waiting pods with GPUs request different amounts.
    is_mixed: bool,
}

impl Loss {
    pub fn is_zero(self) -> bool {
        self.own == 0 && self.gang.lost == 0
    }

    /// Returns whether the pod is one of a gang that loses all its work.
    pub fn is_of_gang(self) -> bool {
        self.gang.lost > 0
    }

    /// Returns the loss of the whole gang, at least that of the pod alone, in micro-dollars.
    pub fn whole(self) -> u64 {
        self.own.max(self.gang.lost)
    }

    /// Returns the loss of the pod alone, in micro-dollars.
    pub fn own(self) -> u64 {
        self.own
    }

    /// Returns the share of the loss that counts for the pod on a node of this type, in micro-dollars. A node holds `fit` such pods.
    pub fn on(self, instance_type: &InstanceType, fit: u64) -> u64 {
        let GangLoss { lost, without_gpus, fewest_gpus, is_mixed } = self.gang;
        let gpus = instance_type.gpu.as_ref().map_or(0, |gpu| u64::from(gpu.count) * 1000);
        if self.gpu_milli == 0 {
            // Where a pod with GPUs may be, the gang counts with that one.
            let is_apart = fewest_gpus == 0 || fewest_gpus > gpus;
            return if is_apart { lost / without_gpus.max(1) } else { 0 };
        }
        let share = if is_mixed {
            let part = u128::from(lost) * u128::from(self.gpu_milli);
            part.checked_div(gpus.into()).map_or(lost, |share| u64::try_from(share).unwrap_or(u64::MAX))
        } else {
            lost / fit.min(gpus / self.gpu_milli).max(1)
        };
        self.own.max(share.min(lost))
    }

    /// Returns the loss of pods that share a node in any case.
    pub fn with(self, other: Self) -> Self {
        let mut gang = if other.gang.lost > self.gang.lost { other.gang } else { self.gang };
        // Further pods of the gang may request more or less.
        gang.is_mixed = true;
        Self {
            own: self.own.saturating_add(other.own),
            gang,
            gpu_milli: self.gpu_milli.saturating_add(other.gpu_milli),
        }
    }
}

/// The losses of pods on one interruption. The pods of a gang work together, so all of them lose their work when the cloud takes
/// the node of one.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// The loss of each gang with pods that wait.
    gangs: BTreeMap<ObjectKey, GangLoss>,
}

impl Losses {
    /// Collects the losses of gangs. `waiting` are the pods that the plan is for.
    pub fn new<'p>(
        snapshot: &Snapshot,
        options: &PlanOptions,
        waiting: impl Iterator<Item = &'p Pod>,
    ) -> Self {
        let mut gangs: BTreeMap<ObjectKey, GangLoss> = BTreeMap::new();
        if options.spot_risk.is_none() {
            return Self { gangs };
        }
        for key in snapshot.pods.unbound().filter_map(Pod::group_key) {
            gangs.entry(key).or_insert_with_key(|key| {
                if group_state(snapshot, key).least().is_none() {
                    // Its pods do not start together.
                    return GangLoss::default();
                }
                let pods = snapshot.pods.of_group(key).filter(|pod| pod.role == PodRole::Workload);
                let lost = pods.map(|pod| at_risk(options, &pod.spec)).fold(0, u64::saturating_add);
                GangLoss { lost, ..GangLoss::default() }
            });
        }
        let mut first: BTreeMap<ObjectKey, &ResourceList> = BTreeMap::new();
        for pod in waiting {
            let Some(key) = pod.group_key() else { continue };
            let Some(gang) = gangs.get_mut(&key) else { continue };
            let gpus = gpu_milli(&pod.spec);
            if gpus == 0 {
                gang.without_gpus += 1;
                continue;
            }
            let known = first.entry(key).or_insert(&pod.spec.requests);
            let fewest = if gang.fewest_gpus == 0 { gpus } else { gang.fewest_gpus };
            gang.is_mixed |= **known != pod.spec.requests || fewest != gpus;
            gang.fewest_gpus = fewest.min(gpus);
        }
        Self { gangs }
    }

    /// Returns the loss of a pod.
    pub fn of(&self, options: &PlanOptions, pod: &Pod) -> Loss {
        let gang = self.gang(pod).map(|(_, gang)| gang).unwrap_or_default();
        Loss { own: at_risk(options, &pod.spec), gang, gpu_milli: gpu_milli(&pod.spec) }
    }

    /// Returns the loss of one interruption of a node with these pods, in micro-dollars. Each gang loses the work of all its pods,
    /// once.
    pub fn together<'p>(&self, options: &PlanOptions, pods: impl IntoIterator<Item = &'p Pod>) -> u64 {
        let (mut lost, mut of_gangs): (u64, BTreeMap<ObjectKey, (u64, u64)>) = (0, BTreeMap::new());
        for pod in pods {
            let own = at_risk(options, &pod.spec);
            match self.gang(pod) {
                Some((key, gang)) => {
                    // Pods of it that do not exist yet are not in its own sum.
                    let (_, there) = of_gangs.entry(key).or_insert((gang.lost, 0));
                    *there = there.saturating_add(own);
                }
                None => lost = lost.saturating_add(own),
            }
        }
        of_gangs.into_values().fold(lost, |sum, (gang, there)| sum.saturating_add(gang.max(there)))
    }

    /// Returns the gang of a pod, if that loses all its work.
    fn gang(&self, pod: &Pod) -> Option<(ObjectKey, GangLoss)> {
        let key = pod.group_key()?;
        let gang = *self.gangs.get(&key).filter(|gang| gang.lost > 0)?;
        Some((key, gang))
    }
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

/// Returns the expected cost of interruptions of a node of this offering, per hour, if one loses so many micro-dollars.
pub(crate) fn of_node(options: &PlanOptions, offering: &Offering, lost: u64) -> UsdPerHour {
    problem::risk(lost, interruptions(options, offering))
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
    let pods = claim.planned_pods.iter().filter_map(|key| snapshot.pods.get(key));
    of_node(options, offering, losses.together(options, pods.map(AsRef::as_ref)))
}
