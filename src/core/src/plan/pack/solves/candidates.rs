//! Candidates: the kinds of nodes that can be bought, and the classes of pods that fit each. Offerings that are equal for pods
//! and limits form one candidate.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use poolwright_catalog::{InstanceType, ResourceList, ResourceName, UsdPerHour};
use poolwright_solver::BitSet;
use poolwright_terms::CapacityType;

use crate::model::MinValuesPolicy;
use crate::plan::pack::classes::PodClasses;
use crate::plan::pack::solves::inputs::SolveInputs;
use crate::rules::gpus::{GpuForm, GpuNeed};
use crate::rules::labels::Labels;
use crate::supply::flexibility;
use crate::supply::interruption_risk;
use crate::supply::limits::Limits;
use crate::supply::limits::cut::instances;
use crate::supply::offerings::{Availability, PoolOffering, Supply};
use crate::supply::spot_mix;

/// The candidates that fit a class, for each of its signatures. The last signature is its own.
pub(crate) type Homes = Vec<(usize, Rc<[usize]>)>;

/// A candidate: the cheapest of all offerings that are equal for pods and limits.
#[derive(Clone)]
pub(crate) struct NodeCandidate {
    pub pool: usize,
    pub offer: PoolOffering,
    pub form: GpuForm,
    /// The price that counts in comparisons.
    pub price: UsdPerHour,
    pub interruptions: u32,
    pub weight: u32,
    pub signatures: BitSet,
    pub uses: Vec<(u32, u64)>,
    /// The MIG instances that its GPUs are not cut into, so that it does not count towards limits on them.
    pub uncut: Vec<String>,
    /// Whether the cloud has reclaimed such instances recently. If so, `price` is the raised price, and pools with lower weight
    /// are considered too.
    pub is_reclaimed: bool,
    pub choice: Choice,
    /// The classes of pods that would take the room kept for others, as far as explanations need them.
    pub kept_off: BTreeSet<usize>,
}

/// The choice that a node of a candidate leaves to the cloud.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Choice {
    /// None is asked for.
    Free,
    /// As `minValues` of the pool asks. The values of its keys, in their order.
    Required { pool: usize, capacity_type: CapacityType, values: Vec<Option<String>> },
    /// Less than `minValues` of the pool asks, for pods that cannot have more.
    Relaxed { pool: usize },
}

/// The key of a candidate. Of offerings with equal keys, only the cheapest is used.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CandidateKey {
    weight: std::cmp::Reverse<u32>,
    capacity: usize,
    residents: usize,
    form: GpuForm,
    /// The pool, if it has limits or rules on spot nodes.
    limited: Option<usize>,
    /// Whether it is a spot node of a pool with rules on them.
    counts_as_spot: bool,
    /// The offering, if the number or the share of its instances is limited, or a commitment covers it.
    own_terms: Option<usize>,
    interruptions: u32,
    is_reclaimed: bool,
    choice: Choice,
    uncut: Vec<String>,
    signatures: BitSet,
}

/// The classes that fit on each empty node.
pub(crate) struct Fits {
    /// The index of the requests, by class.
    requests: Vec<usize>,
    /// The requests that fit, by capacity.
    fit: Vec<BitSet>,
}

impl Fits {
    pub fn new(supply: &Supply<'_>, classes: &PodClasses<'_>) -> Self {
        let mut known: BTreeMap<&ResourceList, usize> = BTreeMap::new();
        let mut number = |requests| {
            let next = known.len();
            *known.entry(requests).or_insert(next)
        };
        let requests = classes.classes.iter().map(|class| number(&class.requests)).collect();
        let of = |capacity: &ResourceList| {
            let mut bits = BitSet::new(known.len());
            for (requests, index) in &known {
                if requests.fits(capacity) {
                    bits.insert(*index);
                }
            }
            bits
        };
        Self { requests, fit: supply.capacities.iter().map(of).collect() }
    }

    /// Returns the candidates that fit each class, for each of its signatures. The class's own signature comes last. Equal
    /// classes share the result.
    pub fn holding(&self, candidates: &[NodeCandidate], inputs: &SolveInputs<'_, '_>) -> Vec<Homes> {
        let meets_anybody = inputs.supply.residents.iter().any(|residents| !residents.is_empty());
        let mut known: BTreeMap<_, Rc<[usize]>> = BTreeMap::new();
        let mut all = Vec::with_capacity(inputs.classes.classes.len());
        for (index, class) in inputs.classes.classes.iter().enumerate() {
            let profile = if meets_anybody { class.profile } else { 0 };
            let alone = class.gpu_need.is_some().then_some(index);
            let asked = class.preferred.iter().copied().chain([class.signature]).map(|signature| {
                let key = (signature, self.requests[index], profile, alone, class.crowd);
                let homes = known.entry(key).or_insert_with(|| {
                    let is_home = |at: &usize| self.holds(&candidates[*at], index, signature, inputs);
                    let homes = (0..candidates.len()).filter(is_home).collect();
                    with_choice(roomy(homes, candidates, index, inputs), candidates, inputs).into()
                });
                (signature, homes.clone())
            });
            all.push(asked.collect());
        }
        all
    }

    /// Returns whether a class with this signature fits a candidate.
    fn holds(
        &self,
        candidate: &NodeCandidate,
        class: usize,
        signature: usize,
        inputs: &SolveInputs<'_, '_>,
    ) -> bool {
        let wanted = &inputs.classes.classes[class];
        candidate.signatures.contains(signature)
            && self.fit[candidate.offer.capacity].contains(self.requests[class])
            && inputs.colocation.admits(wanted.profile, &inputs.supply.residents[candidate.offer.residents])
            && (candidate.form == GpuForm::Whole || wanted.requests.get(ResourceName::NVIDIA_GPU) == 0)
            && wanted.gpu_need.as_ref().is_none_or(|gpu_need| {
                let kind = inputs.supply.instance_type(candidate.pool, candidate.offer.offering);
                let is_cut = |(resource, _): (String, u64)| !candidate.uncut.contains(&resource);
                candidate.form.grants(inputs.options.sharing, kind, Some(gpu_need))
                    && (candidate.uncut.is_empty() || instances(gpu_need, kind).is_none_or(is_cut))
            })
    }
}

/// Returns the choices that a node of an offering may leave to the cloud.
fn choices(inputs: &SolveInputs<'_, '_>, pool: usize, offer: &PoolOffering) -> Vec<Choice> {
    let supply = inputs.supply;
    let (of, id) = (supply.pools[pool].pool, &supply.offering(pool, offer.offering).id);
    if !flexibility::applies(of, id) {
        return vec![Choice::Free];
    }
    let labels = supply.labels(pool, offer.offering);
    let values = of.min_values.keys().map(|key| labels.label(key).map(str::to_owned)).collect();
    let required = Choice::Required { pool, capacity_type: id.capacity_type, values };
    match inputs.options.min_values {
        MinValuesPolicy::Strict => vec![required],
        MinValuesPolicy::BestEffort => vec![required, Choice::Relaxed { pool }],
    }
}

/// Returns the MIG instances that nodes of a type do without, each time with the requests that they may be cut for. Nodes with and without
/// instances of a kind count differently towards limits, so they are different candidates.
fn needs_by_cut<'s>(
    inputs: &SolveInputs<'s, '_>,
    limits: &Limits,
    pool: usize,
    kind: &InstanceType,
    form: GpuForm,
) -> Vec<(Vec<String>, Vec<&'s GpuNeed>)> {
    let limited = limits.on_instances(pool);
    if limited.is_empty() || matches!(form, GpuForm::Whole | GpuForm::Shared) {
        return vec![(Vec::new(), Vec::new())];
    }
    let mut by_instance: BTreeMap<String, &'s GpuNeed> = BTreeMap::new();
    let needs = inputs.classes.classes.iter().filter_map(|class| class.gpu_need.as_ref());
    for need in needs.filter(|need| form.grants(inputs.options.sharing, kind, Some(*need))) {
        if let Some((resource, _)) = instances(need, kind).filter(|(name, _)| limited.contains(name.as_str()))
        {
            by_instance.insert(resource, need);
        }
    }
    // All of them, none, and each alone.
    let without = |kept: Option<&String>| -> Vec<String> {
        by_instance.keys().filter(|name| kept.is_none_or(|kept| kept != *name)).cloned().collect()
    };
    let mut sets = BTreeSet::from([Vec::new(), without(None)]);
    sets.extend(by_instance.keys().map(|kept| without(Some(kept))));
    let with_needs = |uncut: Vec<String>| {
        let cut = by_instance.iter().filter(|(name, _)| !uncut.contains(name));
        let needs: Vec<&'s GpuNeed> = cut.map(|(_, need)| *need).collect();
        (uncut, needs)
    };
    sets.into_iter().map(with_needs).collect()
}

/// Returns all candidates, which are the cheapest of equal offerings.
pub(crate) fn candidates(
    inputs: &SolveInputs<'_, '_>,
    limits: &Limits,
    price: impl Fn(Availability) -> Option<UsdPerHour>,
) -> Vec<NodeCandidate> {
    let SolveInputs { supply, admissions, classes, options, .. } = *inputs;
    // If no pod requests a part of a GPU, no GPU is partitioned or shared.
    let gpu_needs = classes.classes.iter().any(|class| class.gpu_need.is_some());
    let forms =
        |kind: &InstanceType| if gpu_needs { GpuForm::all(options.sharing, kind) } else { &[GpuForm::Whole] };
    let mut best: BTreeMap<CandidateKey, NodeCandidate> = BTreeMap::new();
    for (index, offered) in supply.pools.iter().enumerate() {
        let tolerated: Vec<usize> =
            (0..classes.signatures.len()).filter(|s| admissions.tolerated(index, *s)).collect();
        if tolerated.is_empty() {
            continue;
        }
        let spot_rules = &offered.pool.spot;
        let limited = (limits.has_own(index) || !spot_rules.is_empty()).then_some(index);
        for offer in &offered.offers {
            let Some(price) = price(offer.availability) else { continue };
            let mut signatures = BitSet::new(classes.signatures.len());
            for signature in &tolerated {
                if admissions.admits(index, *signature, offer.offering) {
                    signatures.insert(*signature);
                }
            }
            if signatures.is_empty() {
                continue;
            }
            let weight = offered.pool.weight;
            let kind = supply.instance_type(index, offer.offering);
            let offering = supply.offering(index, offer.offering);
            let counts_as_spot = !spot_rules.is_empty() && spot_mix::is_spot(&offering.id);
            let own_terms = limits.is_scarce(offered.table, offer.offering)
                || options.commitments.iter().any(|one| one.pays_for(&offering.id))
                || (counts_as_spot && spot_rules.max_share.is_some());
            let interruptions = interruption_risk::interruptions(options, offering);
            let is_reclaimed = matches!(offer.availability, Availability::Reclaimed(..));
            let choices = choices(inputs, index, offer);
            let forms = forms(kind).iter().flat_map(|form| choices.iter().map(move |choice| (*form, choice)));
            // The layout of a GPU is for one instance type, so it leaves no choice.
            let leaves_choice = !inputs.unlistable.contains(&(index, offer.offering));
            let possible = |(form, choice): &(GpuForm, &Choice)| {
                (*form == GpuForm::Whole && leaves_choice) || !matches!(choice, Choice::Required { .. })
            };
            let cut = |(form, choice): (GpuForm, _)| {
                let all = needs_by_cut(inputs, limits, index, kind, form);
                all.into_iter().map(move |(uncut, needs)| (form, choice, uncut, needs))
            };
            for (form, choice, uncut, needs) in forms.filter(possible).flat_map(cut) {
                let key = CandidateKey {
                    weight: std::cmp::Reverse(weight),
                    capacity: offer.capacity,
                    residents: offer.residents,
                    form,
                    limited,
                    counts_as_spot,
                    own_terms: own_terms.then_some(offer.offering),
                    interruptions,
                    is_reclaimed,
                    choice: choice.clone(),
                    uncut: uncut.clone(),
                    signatures: signatures.clone(),
                };
                if best.get(&key).is_some_and(|known| known.price <= price) {
                    continue;
                }
                let own_price = offer.availability.price();
                let uses = limits.uses_for(supply, index, offer.offering, own_price, &needs);
                let signatures = signatures.clone();
                best.insert(
                    key,
                    NodeCandidate {
                        pool: index,
                        offer: *offer,
                        form,
                        price,
                        interruptions,
                        weight,
                        signatures,
                        uses,
                        uncut,
                        is_reclaimed,
                        choice: choice.clone(),
                        kept_off: BTreeSet::new(),
                    },
                );
            }
        }
    }
    best.into_values().collect()
}

/// Returns how many pods with these requests a capacity holds.
pub(crate) fn most_of(requests: &ResourceList, capacity: &ResourceList) -> u64 {
    let each = requests.iter().filter_map(|(name, amount)| capacity.get(name.as_str()).checked_div(amount));
    each.min().unwrap_or(u64::MAX)
}

/// Returns the candidates that hold a crowd of the pods of a class, or as many as any of these candidates holds.
fn roomy(
    mut homes: Vec<usize>,
    candidates: &[NodeCandidate],
    class: usize,
    inputs: &SolveInputs<'_, '_>,
) -> Vec<usize> {
    let wanted = &inputs.classes.classes[class];
    if wanted.crowd <= 1 {
        return homes;
    }
    let holds =
        |at: &usize| most_of(&wanted.requests, &inputs.supply.capacities[candidates[*at].offer.capacity]);
    let least = homes.iter().map(holds).max().unwrap_or(0).min(wanted.crowd);
    homes.retain(|at| holds(at) >= least);
    homes
}

/// Returns the candidates that leave the cloud the choice that their pool asks for, of those that hold one pod. If a pool has none,
/// these are its relaxed candidates. If it has none on demand, and must have on-demand nodes before its spot nodes, these are also its
/// relaxed on-demand candidates.
fn with_choice(
    mut homes: Vec<usize>,
    candidates: &[NodeCandidate],
    inputs: &SolveInputs<'_, '_>,
) -> Vec<usize> {
    let required = |at: &usize| match &candidates[*at].choice {
        Choice::Required { pool, capacity_type, .. } => Some((*pool, *capacity_type)),
        Choice::Free | Choice::Relaxed { .. } => None,
    };
    let groups: BTreeSet<(usize, CapacityType)> = homes.iter().filter_map(required).collect();
    if groups.is_empty() && homes.iter().all(|at| candidates[*at].choice == Choice::Free) {
        return homes;
    }
    let supply = inputs.supply;
    let is_met = |(pool, capacity_type): &(usize, CapacityType)| {
        let mut count = flexibility::ValueCount::new(supply.pools[*pool].pool, *capacity_type);
        for at in homes.iter().filter(|at| required(at).is_some_and(|(of, _)| of == *pool)) {
            let offering = candidates[*at].offer.offering;
            count.add(&supply.offering(*pool, offering).id, &supply.labels(*pool, offering));
        }
        count.shortages().next().is_none()
    };
    let met: BTreeSet<(usize, CapacityType)> = groups.into_iter().filter(is_met).collect();
    let lacks_on_demand = |of: usize| {
        let pool = supply.pools[of].pool;
        let is_met = met.contains(&(of, CapacityType::OnDemand));
        pool.spot.on_demand_floor.is_some() && (!is_met || flexibility::bars_on_demand(pool).is_some())
    };
    let is_on_demand = |at: usize| {
        let NodeCandidate { pool, offer, .. } = &candidates[at];
        supply.offering(*pool, offer.offering).id.capacity_type == CapacityType::OnDemand
    };
    homes.retain(|at| match &candidates[*at].choice {
        Choice::Free => true,
        Choice::Required { pool, capacity_type, .. } => met.contains(&(*pool, *capacity_type)),
        Choice::Relaxed { pool } => {
            !met.iter().any(|(of, _)| of == pool) || (is_on_demand(*at) && lacks_on_demand(*pool))
        }
    });
    homes
}
