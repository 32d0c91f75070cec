//! Instance types that might have cost less than what a plan buys, if their prices were known.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{Catalogue, InstanceType, ResourceList, UsdPerHour};
use poolwright_terms::CapacityType;
use poolwright_terms::labels::CAPACITY_TYPE;

use crate::model::plan::{Plan, PlannedClaim};
use crate::model::{PlanOptions, PodKey, PodSpec, Pool, Snapshot};
use crate::rules::format::list;
use crate::rules::gpus;
use crate::rules::{self, NewNodeLabels};
use crate::supply::daemonsets::DaemonSets;
use crate::supply::offerings::as_measured;
use crate::supply::unmet::capacity_types;

/// The most instance types that the note names.
const SHOWN: usize = 4;
/// Spot seldom costs less than this part of the on-demand price: clouds give discounts of up to 90 %.
const LEAST_PART_OF_ON_DEMAND: u64 = 10;

/// What a plan could not consider, because prices are unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpriced {
    /// The number of instance types.
    pub types: usize,
    /// A note that names them, without a full stop.
    pub note: String,
}

/// Returns the instance types that would hold pods of the plan's new nodes and might cost less, but that have no known price of a
/// capacity type that the pool may buy; `None` if there are none. Those that the pool allows by name count too, because the plan buys at
/// known prices first. A capacity type without any price was left out on purpose, by the flags or by the catalogue. With `only`, the note
/// is about the node of this pod.
pub fn unpriced(
    snapshot: &Snapshot,
    plan: &Plan,
    options: &PlanOptions,
    only: Option<&PodKey>,
) -> Option<Unpriced> {
    let daemons = DaemonSets::new(snapshot);
    let mut candidates = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let bought: BTreeSet<&str> = plan.claims.iter().map(|claim| claim.instance_type().as_str()).collect();
    // By capacity type: whether the plan does not buy the type itself, and its name.
    let mut found: BTreeMap<CapacityType, BTreeSet<(bool, &str)>> = BTreeMap::new();
    // Those that may be bought at an unknown price.
    let mut allowed: BTreeSet<(bool, &str)> = BTreeSet::new();
    for claim in &plan.claims {
        if only.is_some_and(|only| !claim.planned_pods.contains(only)) {
            continue;
        }
        let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { continue };
        // Nothing costs less than prepaid capacity.
        let price = claim.price().filter(|price| *price > UsdPerHour::ZERO);
        let (Some(pool), Some(price)) = (snapshot.pools.get(&claim.pool), price) else { continue };
        let asked = Asked::of(snapshot, options, claim);
        // Many nodes of a plan are alike.
        let shape = (&claim.pool, claim.instance_type(), price, asked.pods.clone());
        if asked.pods.is_empty() || !seen.insert(shape) {
            continue;
        }
        let candidates = candidates.entry(&claim.node_class).or_insert_with(|| without_price(catalogue));
        let daemons = daemons.tolerating(&pool.taints);
        let sold = capacity_types(pool);
        for candidate in candidates.iter().filter(|one| sold.contains(&one.capacity_type)) {
            let name = candidate.kind.name.as_str();
            let all = if options.may_buy_unpriced(pool, &candidate.kind.name) {
                &mut allowed
            } else {
                found.entry(candidate.capacity_type).or_default()
            };
            let entry = (!bought.contains(name), name);
            if all.contains(&entry) {
                continue;
            }
            let held = candidate.holds(snapshot, pool, &asked, &daemons);
            if held > 0 && candidate.may_cost_less(price, (held, asked.pods.len())) {
                all.insert(entry);
            }
        }
    }
    found.retain(|_, types| !types.is_empty());
    let types: BTreeSet<&str> = found.values().flatten().chain(&allowed).map(|(_, name)| *name).collect();
    (!types.is_empty()).then(|| Unpriced { types: types.len(), note: note(&found, &allowed) })
}

/// Names types without a known price, each with whether the plan does not buy it: those of which a capacity type may not be bought, and
/// those that are `allowed` at an unknown price.
fn note(found: &BTreeMap<CapacityType, BTreeSet<(bool, &str)>>, allowed: &BTreeSet<(bool, &str)>) -> String {
    let named = |types: &BTreeSet<(bool, &str)>| {
        let names: Vec<&str> = types.iter().map(|(_, name)| *name).collect();
        list(&names, SHOWN)
    };
    let of = |(capacity_type, types): (&CapacityType, &BTreeSet<(bool, &str)>)| {
        format!("no {capacity_type} price of {}", named(types))
    };
    let words: Vec<String> = found.iter().map(of).collect();
    let excluded = (!words.is_empty()).then(|| {
        format!(
            "the catalogue has {}, which would hold pods of new nodes and might cost less; the plan knows only the other offerings; \
             --catalogue takes prices (docs/catalogue.md)",
            words.join(", and ")
        )
    });
    let allowed = (!allowed.is_empty()).then(|| {
        format!(
            "types in allowUnknownPrices with an unknown price would hold pods of new nodes and might cost less ({}); the plan buys at \
             known prices first",
            named(allowed)
        )
    });
    let both: Vec<String> = excluded.into_iter().chain(allowed).collect();
    both.join("; ")
}

/// The pods of a planned node, and what they ask for.
struct Asked<'a> {
    pods: Vec<&'a PodSpec>,
    /// The requests of each pod, without GPUs that it may share.
    requests: Vec<ResourceList>,
}

impl<'a> Asked<'a> {
    fn of(snapshot: &'a Snapshot, options: &PlanOptions, claim: &PlannedClaim) -> Self {
        let known = claim.planned_pods.iter().filter_map(|key| Some(&*snapshot.pods.get(key)?.spec));
        let pods: Vec<&PodSpec> = known.collect();
        let requests = pods.iter().map(|spec| gpus::wanted(options.sharing, &[], spec).0).collect();
        Self { pods, requests }
    }
}

/// An instance type without a known price of a capacity type.
struct Candidate<'a> {
    kind: &'a InstanceType,
    capacity_type: CapacityType,
    /// The labels that its nodes would have, by zone.
    labels: Vec<BTreeMap<String, String>>,
    /// Its lowest known price, which is of the other capacity type.
    other: Option<UsdPerHour>,
}

impl Candidate<'_> {
    /// Returns how many of the pods one node would hold.
    fn holds(&self, snapshot: &Snapshot, pool: &Pool, asked: &Asked<'_>, daemons: &DaemonSets<'_>) -> usize {
        let gpus = self.kind.gpu.as_ref().map_or(0, |gpu| u64::from(gpu.count) * 1000);
        if asked.pods.iter().any(|spec| gpus::gpu_milli(spec) > gpus) {
            return 0;
        }
        let on_node_with = |offering: &BTreeMap<String, String>| {
            let labels = NewNodeLabels { offering, template: &pool.labels, pool: &pool.name };
            let is_allowed = pool.requirements.iter().all(|one| rules::matches(one, &labels))
                && asked.pods.iter().all(|spec| rules::check_labels(spec, &labels).is_ok());
            if !is_allowed {
                return 0;
            }
            let mut room = as_measured(snapshot, &pool.node_class, &self.kind.allocatable, &self.kind.name);
            room.saturating_sub(&daemons.requests(&daemons.landing(&labels)));
            let mut held = 0;
            for requests in &asked.requests {
                if requests.fits(&room) {
                    room.saturating_sub(requests);
                    held += 1;
                }
            }
            held
        };
        self.labels.iter().map(on_node_with).max().unwrap_or(0)
    }

    /// Returns whether it might hold this part of the pods for less than this part of the price.
    fn may_cost_less(&self, price: UsdPerHour, (held, of): (usize, usize)) -> bool {
        let Some(other) = self.other.map(UsdPerHour::micros) else { return true };
        let least = match self.capacity_type {
            CapacityType::Spot => other / LEAST_PART_OF_ON_DEMAND,
            // Clouds sell spot for less than on demand.
            CapacityType::OnDemand | CapacityType::Reserved => other,
        };
        least.saturating_mul(of as u64) < price.micros().saturating_mul(held as u64)
    }
}

/// Returns the types of a catalogue without a known price of a capacity type that it has prices of. Reservations are prepaid.
fn without_price(catalogue: &Catalogue) -> Vec<Candidate<'_>> {
    let mut candidates = Vec::new();
    for capacity_type in [CapacityType::Spot, CapacityType::OnDemand] {
        let offerings = catalogue.offerings().iter();
        let priced = offerings.filter(|one| one.id.capacity_type == capacity_type);
        let priced: BTreeSet<_> =
            priced.filter(|one| one.price.known().is_some()).map(|one| &one.id.instance_type).collect();
        if priced.is_empty() {
            continue;
        }
        let mut unpriced: BTreeMap<_, Candidate<'_>> = BTreeMap::new();
        for offering in catalogue.offerings().iter().filter(|one| !priced.contains(&one.id.instance_type)) {
            let candidate = unpriced.entry(&offering.id.instance_type).or_insert_with(|| Candidate {
                kind: &catalogue.types()[&offering.id.instance_type],
                capacity_type,
                labels: Vec::new(),
                other: None,
            });
            let mut labels = catalogue.node_labels(offering);
            labels.insert(CAPACITY_TYPE.to_owned(), capacity_type.as_str().to_owned());
            if !candidate.labels.contains(&labels) {
                candidate.labels.push(labels);
            }
            if let Some(price) =
                offering.price.known().filter(|_| offering.id.capacity_type != CapacityType::Reserved)
            {
                candidate.other = Some(candidate.other.map_or(price, |least| least.min(price)));
            }
        }
        candidates.extend(unpriced.into_values());
    }
    candidates
}
