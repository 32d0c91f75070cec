//! The offerings that each pool may buy now.

use crate::supply::interruption_backoff::remembered;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels::DECIDED_BY_OFFERING;
use poolwright_terms::{NodeClassRef, Reason};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use poolwright_catalog::{
    Catalogue, InstanceType, InstanceTypeName, MigModel, Offering, ResourceList, ResourceName, UsdPerHour,
};
use poolwright_solver::BitSet;

use crate::demand::volumes::attach::Attachable;
use crate::model::plan::PoolFindings;
use crate::model::plan_cache::OfferingLabels;
use crate::model::{PlanOptions, Reclaims};
use crate::model::{PodSpec, Pool, PoolName, Requirement, Snapshot};
use crate::rules;
use crate::rules::colocation::{Colocation, Present};
use crate::rules::format;
use crate::rules::gpus;
use crate::rules::new_node::NewNodeLabels;
use crate::rules::pin::Pin;
use crate::supply::daemonsets::DaemonSets;
use crate::supply::interruption_backoff;
use crate::supply::monthly_budget::stopped;
use crate::supply::unmet::unmet;

/// The catalogue of a node class, with the labels of its nodes.
#[derive(Debug)]
pub(crate) struct ClassOfferings<'a> {
    pub catalogue: &'a Catalogue,
    /// Labels by offering.
    pub labels: OfferingLabels,
}

/// Whether an offering may be bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// Yes, at this price.
    Priced(UsdPerHour),
    /// Yes, at this price, but a higher price counts, because the cloud has reclaimed instances of it recently.
    Reclaimed(UsdPerHour, Reclaims),
    /// Yes, although the price is unknown: the pool allows this type by name.
    Unpriced,
    /// No: the price is unknown.
    PriceUnknown,
    /// No: it failed recently, and is held back until this time.
    HeldBack(Timestamp),
}

impl Availability {
    /// Returns its price, if it is known and the offering may be bought.
    pub const fn price(self) -> Option<UsdPerHour> {
        match self {
            Self::Priced(price) | Self::Reclaimed(price, _) => Some(price),
            Self::Unpriced | Self::PriceUnknown | Self::HeldBack(_) => None,
        }
    }

    /// Returns the price that counts in comparisons.
    pub fn weighed(self) -> Option<UsdPerHour> {
        match self {
            Self::Reclaimed(price, reclaims) => Some(interruption_backoff::weighed(price, reclaims)),
            _ => self.price(),
        }
    }

    /// Returns until when it is not tried, because it failed recently.
    pub const fn held_back(self) -> Option<Timestamp> {
        match self {
            Self::HeldBack(until) => Some(until),
            _ => None,
        }
    }

    /// Returns whether it may be bought.
    pub const fn is_sold(self) -> bool {
        matches!(self, Self::Priced(_) | Self::Reclaimed(..) | Self::Unpriced)
    }
}

/// An offering that meets a pool's requirements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolOffering {
    /// Index into the catalogue's offerings.
    pub offering: usize,
    pub availability: Availability,
    /// Index into [`Supply::capacities`]: the capacity for pods of such a node.
    pub capacity: usize,
    /// Index into [`Supply::residents`]: the DaemonSet pods on such a node.
    pub residents: usize,
}

/// A usable pool and its offerings.
#[derive(Debug)]
pub(crate) struct PoolSupply<'a> {
    pub pool: &'a Pool,
    /// Index into [`Supply::tables`].
    pub table: usize,
    /// Its offerings, ascending.
    pub offers: Vec<PoolOffering>,
}

/// The offerings of all pools.
#[derive(Debug, Default)]
pub(crate) struct Supply<'a> {
    pub tables: Vec<ClassOfferings<'a>>,
    pub pools: Vec<PoolSupply<'a>>,
    /// Capacities of new nodes, less the requests of DaemonSet pods. There is one for each instance type and set of DaemonSets.
    pub capacities: Vec<ResourceList>,
    /// DaemonSet pods on new nodes that colocation rules count.
    pub residents: Vec<Present>,
    known_capacities: BTreeMap<(usize, &'a str, ResourceList), usize>,
    pub findings: BTreeMap<PoolName, PoolFindings>,
    /// When the first pool buys again whose monthly budget is spent.
    pub stopped_until: Option<Timestamp>,
}

impl<'a> Supply<'a> {
    /// Returns the catalogue of a pool's node class.
    pub fn catalogue(&self, pool: usize) -> &'a Catalogue {
        self.tables[self.pools[pool].table].catalogue
    }

    pub fn offering(&self, pool: usize, offering: usize) -> &'a Offering {
        &self.catalogue(pool).offerings()[offering]
    }

    pub fn instance_type(&self, pool: usize, offering: usize) -> &'a InstanceType {
        let catalogue = self.catalogue(pool);
        &catalogue.types()[&catalogue.offerings()[offering].id.instance_type]
    }

    /// Returns whether another pool has offerings that admit a pod.
    pub fn others_sell(&self, pool: usize, spec: &PodSpec) -> bool {
        let buyable = |offer: &&PoolOffering| offer.availability.is_sold();
        let admits = |at: usize| {
            rules::check_taints(&spec.tolerations, &self.pools[at].pool.taints).is_ok()
                && self.pools[at]
                    .offers
                    .iter()
                    .filter(buyable)
                    .any(|offer| rules::check_labels(spec, &self.labels(at, offer.offering)).is_ok())
        };
        (0..self.pools.len()).any(|at| at != pool && admits(at))
    }

    /// Returns the GPU models that support MIG: first those that pools may buy, then others of their node classes. Each part begins
    /// with the GPUs with the most memory, so the first model that has a name has the smallest instance of that name.
    pub fn mig_models(&self) -> Vec<&'static MigModel> {
        let offered = self.pools.iter().enumerate().flat_map(|(at, pool)| {
            pool.offers.iter().map(move |offer| self.instance_type(at, offer.offering))
        });
        let others = self.tables.iter().flat_map(|table| table.catalogue.types().values());
        let mut models = models_of(offered);
        for model in models_of(others) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        models
    }

    /// Returns the node class of a pool, if no offering of it meets a rule, so that wider requirements of the pool would not help.
    /// `None` for the pool that stands for the whole catalogue.
    pub fn class_without(
        &self,
        pool: usize,
        meets: impl Fn(&NewNodeLabels<'_>) -> bool,
    ) -> Option<&'a NodeClassRef> {
        let of = self.pools[pool].pool;
        let mut all = 0..self.catalogue(pool).offerings().len();
        (!of.is_implicit && !all.any(|offering| meets(&self.labels(pool, offering))))
            .then_some(&of.node_class)
    }

    /// Returns the change of a pool's node class that gives its nodes a larger disk or room for more pods; `None` for other resources,
    /// or if the class has no such setting.
    pub fn enlarging(&self, pool: usize, resource: &ResourceName) -> Option<String> {
        let is_size = [ResourceName::EPHEMERAL_STORAGE, ResourceName::PODS].contains(&resource.as_str());
        let change = self.catalogue(pool).addable(resource.as_str()).filter(|_| is_size)?;
        Some(format!("{change} of {}", self.pools[pool].pool.node_class))
    }

    /// Returns whether no offering of a pool has a resource. GPUs that can be cut into the wanted MIG instances count as having them.
    pub fn lacks(&self, pool: usize, resource: &ResourceName) -> bool {
        self.pools[pool].offers.iter().all(|offer| {
            self.capacities[offer.capacity].get(resource.as_str()) == 0
                && !gpus::can_be_cut_into(self.instance_type(pool, offer.offering), resource)
        })
    }

    /// Returns whether the user wrote no pool, so that the whole catalogue may be bought.
    pub fn is_catalogue(&self) -> bool {
        self.pools.iter().any(|offered| offered.pool.is_implicit)
    }

    /// Returns the labels of a new node.
    pub fn labels(&self, pool: usize, offering: usize) -> NewNodeLabels<'_> {
        let supply = &self.pools[pool];
        NewNodeLabels {
            offering: &self.tables[supply.table].labels[offering],
            template: &supply.pool.labels,
            pool: &supply.pool.name,
        }
    }
}

/// Returns the GPU models of these types that support MIG, those with the most memory first.
fn models_of<'k>(kinds: impl Iterator<Item = &'k InstanceType>) -> Vec<&'static MigModel> {
    let mut models: Vec<&'static MigModel> = Vec::new();
    for model in kinds.filter_map(|kind| kind.gpu.as_ref()).filter_map(MigModel::of) {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    models.sort_by_key(|model| Reverse(model.kinds.last().map(|kind| kind.memory_mib)));
    models
}

/// Collects the offerings of every pool.
pub(crate) fn collect<'a>(
    snapshot: &'a Snapshot,
    daemons: &DaemonSets<'_>,
    colocation: &Colocation<'_>,
    attachable: &Attachable,
    options: &PlanOptions,
    now: Timestamp,
) -> Supply<'a> {
    let mut supply = Supply::default();
    let mut tables: BTreeMap<&NodeClassRef, usize> = BTreeMap::new();
    for pool in snapshot.pools.values() {
        let mut findings = PoolFindings { invalid: invalid(pool), ..PoolFindings::default() };
        let catalogue = match snapshot.catalogues.get(&pool.node_class) {
            Some(Ok(catalogue)) => Some(catalogue),
            Some(Err(problem)) => {
                findings.node_class = Some((Reason::NodeClassNotReady, problem.clone()));
                None
            }
            None => {
                let message = format!(
                    "{} does not exist; create it, or correct spec.template.spec.nodeClassRef",
                    pool.node_class
                );
                findings.node_class = Some((Reason::NodeClassNotFound, message));
                None
            }
        };
        if let Some(catalogue) = catalogue.filter(|_| findings.invalid.is_none() && !pool.deleting) {
            let table = *tables.entry(&pool.node_class).or_insert_with(|| {
                supply
                    .tables
                    .push(ClassOfferings { catalogue, labels: snapshot.plan_cache.labels(catalogue) });
                supply.tables.len() - 1
            });
            let terms = OfferContext { snapshot, daemons, colocation, attachable, options, now };
            let meeting =
                snapshot.plan_cache.meeting(catalogue, pool, || meeting(pool, &supply.tables[table].labels));
            let offers = offers(&terms, &mut supply, pool, table, &meeting);
            let cut = cut_by_label(options, pool, catalogue, &meeting);
            let buyable = |offer: &&PoolOffering| offer.availability.is_sold();
            findings.offerings = offers.iter().filter(buyable).count();
            findings.unsold = unsold(pool, &offers, options);
            if offers.is_empty() {
                let class = &pool.node_class;
                let message = match catalogue.offerings().len() {
                    0 => format!("{class} has no offering"),
                    all => {
                        let unmet = unmet(pool, &supply.tables[table].labels);
                        format!("none of the {all} offerings of {class} {unmet}")
                    }
                };
                findings.invalid = Some((Reason::NoOfferingMatches, message));
            } else if let Some(message) = cut {
                findings.invalid = Some((Reason::GpusCut, message));
            } else if let Some(spent) = stopped(pool, snapshot, now) {
                findings.offerings = 0;
                findings.unsold = Some((spent.reason(), spent.to_string()));
                supply.stopped_until = supply.stopped_until.into_iter().chain([spent.month.end]).min();
            } else if pool.replicas.is_none() {
                // A static pool buys no nodes for pods.
                supply.pools.push(PoolSupply { pool, table, offers });
            }
        }
        supply.findings.insert(pool.name.clone(), findings);
    }
    supply
}

/// Returns why none of a pool's offerings can be bought now; `None` if one can, or if there is none.
fn unsold(pool: &Pool, offers: &[PoolOffering], options: &PlanOptions) -> Option<(Reason, String)> {
    if offers.iter().any(|offer| offer.availability.is_sold()) {
        return None;
    }
    let all = format::count(offers.len(), "offering");
    let until: Vec<Timestamp> = offers.iter().filter_map(|offer| offer.availability.held_back()).collect();
    let unpriced = if until.len() < offers.len() { ", or have no known price" } else { "" };
    match until.into_iter().min() {
        Some(first) => Some((
            Reason::OfferingsHeldBack,
            format!("its {all} failed recently{unpriced}; one is tried again at {first}"),
        )),
        None if offers.is_empty() => None,
        None => Some((
            Reason::PriceUnknown,
            format!(
                "no price of its {all} is known; add prices (docs/catalogue.md), or {}list the instance types under \
                 allowUnknownPrices of pool {}",
                options.lift_limit_and(pool),
                pool.name
            ),
        )),
    }
}

/// Returns why the nodes of a pool would never open, if the GPUs of one of these offerings would be cut.
pub(crate) fn cut_by_label(
    options: &PlanOptions,
    pool: &Pool,
    catalogue: &Catalogue,
    meeting: &[usize],
) -> Option<String> {
    let kinds =
        meeting.iter().map(|index| &catalogue.types()[&catalogue.offerings()[*index].id.instance_type]);
    gpus::cut_by_label(options.sharing, pool, kinds)
}

fn invalid(pool: &Pool) -> Option<(Reason, String)> {
    if let Some(problem) = &pool.problem {
        return Some((problem.reason, problem.message.clone()));
    }
    let message = rules::contradiction(&pool.requirements).or_else(|| contradicting_label(pool))?;
    Some((Reason::ContradictingRequirements, message))
}

/// Describes the requirement that a label of the template does not meet.
fn contradicting_label(pool: &Pool) -> Option<String> {
    let is_own = |one: &&Requirement| !DECIDED_BY_OFFERING.contains(&one.key.as_str());
    let breaks = |one: &Requirement| {
        let value = pool.labels.get(&one.key).filter(|_| !rules::matches(one, &pool.labels))?;
        Some(format!(
            "label `{}: {value}` of spec.template.metadata.labels does not meet `{one}` of spec.template.spec.requirements; correct one of them",
            one.key
        ))
    };
    pool.requirements.iter().filter(is_own).find_map(breaks)
}

/// The inputs of offerings besides their pool.
struct OfferContext<'t, 'a> {
    snapshot: &'a Snapshot,
    daemons: &'t DaemonSets<'t>,
    colocation: &'t Colocation<'t>,
    attachable: &'t Attachable,
    options: &'t PlanOptions,
    now: Timestamp,
}

/// Returns the offerings that meet the requirements of a pool.
pub(crate) fn meeting(pool: &Pool, labels: &[BTreeMap<String, String>]) -> Vec<usize> {
    let meets = |index: &usize| {
        let labels = NewNodeLabels { offering: &labels[*index], template: &pool.labels, pool: &pool.name };
        pool.requirements.iter().all(|requirement| rules::matches(requirement, &labels))
    };
    (0..labels.len()).filter(meets).collect()
}

/// Returns the allocatable resources of new nodes of a type: the promised amounts, minus the amounts that earlier nodes of the
/// type lacked.
pub(crate) fn as_measured(
    snapshot: &Snapshot,
    node_class: &NodeClassRef,
    promised: &ResourceList,
    name: &InstanceTypeName,
) -> ResourceList {
    let mut room = promised.clone();
    if let Some(short) = snapshot.measured(node_class, name) {
        room.saturating_sub(short);
    }
    room
}

/// Builds the pool's offerings from the indices of those that meet its requirements (`meeting`).
fn offers<'a>(
    terms: &OfferContext<'_, 'a>,
    supply: &mut Supply<'a>,
    pool: &Pool,
    table: usize,
    meeting: &[usize],
) -> Vec<PoolOffering> {
    let OfferContext { snapshot, colocation, attachable, options, now, .. } = *terms;
    let daemons = terms.daemons.tolerating(&pool.taints);
    let (tables, capacities, known) = (&supply.tables, &mut supply.capacities, &mut supply.known_capacities);
    let residents = &mut supply.residents;
    let catalogue = tables[table].catalogue;
    let mut offers = Vec::new();
    for index in meeting.iter().copied() {
        let offering = &catalogue.offerings()[index];
        let labels = NewNodeLabels {
            offering: &tables[table].labels[index],
            template: &pool.labels,
            pool: &pool.name,
        };
        let held = remembered(&snapshot.held_back, pool, offering).copied().filter(|until| *until > now);
        let reclaims = interruption_backoff::of(snapshot, pool, offering, now);
        let may_guess = options.may_buy_unpriced(pool, &offering.id.instance_type);
        let availability = match (held, offering.price.known(), reclaims) {
            (Some(until), ..) => Availability::HeldBack(until),
            (None, Some(price), Some(reclaims)) if price > UsdPerHour::ZERO => {
                Availability::Reclaimed(price, reclaims)
            }
            // A zero or unknown price cannot be raised, so the offering is held back instead.
            (None, Some(_), Some(reclaims)) => Availability::HeldBack(reclaims.until),
            (None, None, Some(reclaims)) if may_guess => Availability::HeldBack(reclaims.until),
            (None, Some(price), None) => Availability::Priced(price),
            (None, None, None) if may_guess => Availability::Unpriced,
            (None, None, _) => Availability::PriceUnknown,
        };
        let landing = daemons.landing(&labels);
        let present = daemons.present(&landing, colocation);
        let residents = residents.iter().position(|known| *known == present).unwrap_or_else(|| {
            residents.push(present);
            residents.len() - 1
        });
        let overhead = daemons.requests(&landing);
        let name = &offering.id.instance_type;
        let capacity = *known.entry((table, name.as_str(), overhead)).or_insert_with_key(|(.., overhead)| {
            let mut room =
                as_measured(snapshot, &pool.node_class, &catalogue.types()[name].allocatable, name);
            room.add(&attachable.of(None, &labels));
            room.saturating_sub(overhead);
            capacities.push(room);
            capacities.len() - 1
        });
        offers.push(PoolOffering { offering: index, availability, capacity, residents });
    }
    offers
}

/// The offerings of each pool that admit pods of each signature, ignoring capacity.
#[derive(Debug)]
pub(crate) struct Admissions {
    /// Index into `sets` by pool and signature; `None` if the pods do not tolerate the pool's taints.
    matrix: Vec<Vec<Option<usize>>>,
    /// Bit sets of offerings.
    sets: Vec<BitSet>,
}

impl Admissions {
    pub fn new(supply: &Supply<'_>, signatures: &[(&PodSpec, &Pin)]) -> Self {
        let mut sets = Vec::new();
        // Most pods do not select on template labels. For them, all pools of a node class share one answer.
        let mut shared: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let keys: Vec<BTreeSet<&str>> = signatures.iter().map(|(spec, pin)| keys(spec, pin)).collect();
        let mut matrix = Vec::with_capacity(supply.pools.len());
        // The offerings that any pool buys, by node class.
        let mut bought: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); supply.tables.len()];
        for offered in &supply.pools {
            bought[offered.table].extend(offered.offers.iter().map(|offer| offer.offering));
        }
        for (pool, offered) in supply.pools.iter().enumerate() {
            let mut row = Vec::with_capacity(signatures.len());
            for (signature, (spec, pin)) in signatures.iter().enumerate() {
                if rules::check_taints(&spec.tolerations, &offered.pool.taints).is_err() {
                    row.push(None);
                    continue;
                }
                let own = are_asked_of_pool(&keys[signature], offered.pool);
                if !own && let Some(set) = shared.get(&(offered.table, signature)) {
                    row.push(Some(*set));
                    continue;
                }
                let mut bits = BitSet::new(supply.tables[offered.table].labels.len());
                let mut look = |offering: usize| {
                    let labels = supply.labels(pool, offering);
                    if rules::check_labels(spec, &labels).is_ok()
                        && pin.iter().all(|requirement| rules::matches(requirement, &labels))
                    {
                        bits.insert(offering);
                    }
                };
                if !own {
                    bought[offered.table].iter().copied().for_each(&mut look);
                } else if !selects_another(spec, offered.pool) {
                    offered.offers.iter().for_each(|offer| look(offer.offering));
                }
                sets.push(bits);
                if !own {
                    shared.insert((offered.table, signature), sets.len() - 1);
                }
                row.push(Some(sets.len() - 1));
            }
            matrix.push(row);
        }
        Self { matrix, sets }
    }

    pub fn admits(&self, pool: usize, signature: usize, offering: usize) -> bool {
        self.matrix[pool][signature].is_some_and(|set| self.sets[set].contains(offering))
    }

    /// Returns whether the pods tolerate the pool's taints.
    pub fn tolerated(&self, pool: usize, signature: usize) -> bool {
        self.matrix[pool][signature].is_some()
    }

    /// Keeps pods of a signature off some offerings of a pool. Returns whether any of these admitted them.
    pub fn withdraw(&mut self, pool: usize, signature: usize, offerings: &BTreeSet<usize>) -> bool {
        let Some(set) = self.matrix[pool][signature] else { return false };
        let all = &self.sets[set];
        if !offerings.iter().any(|offering| all.contains(*offering)) {
            return false;
        }
        // Other pools may share the set.
        let mut rest = all.clone();
        for offering in offerings {
            rest.remove(*offering);
        }
        self.sets.push(rest);
        self.matrix[pool][signature] = Some(self.sets.len() - 1);
        true
    }
}

/// Returns whether the node selector excludes all nodes of the pool by template labels.
pub(crate) fn selects_another(spec: &PodSpec, pool: &Pool) -> bool {
    spec.node_selector.iter().any(|(key, value)| match key.as_str() {
        NODEPOOL_LABEL => *value != pool.name.0,
        key => !DECIDED_BY_OFFERING.contains(&key) && pool.labels.get(key).is_some_and(|has| has != value),
    })
}

/// Returns whether the pool itself, or a label of its template, answers to one of these label keys. If none does, all pools of a node
/// class give the same answer.
pub(crate) fn are_asked_of_pool(keys: &BTreeSet<&str>, pool: &Pool) -> bool {
    keys.iter().any(|key| *key == NODEPOOL_LABEL || pool.labels.contains_key(*key))
}

/// Returns the label keys that a spec and its pin refer to.
pub(crate) fn keys<'s>(spec: &'s PodSpec, pin: &'s Pin) -> BTreeSet<&'s str> {
    let enforced = spec.enforced.iter().flat_map(|enforced| &enforced.terms);
    let terms = spec.node_affinity.iter().flatten().chain(enforced).chain(spec.volumes.iter().flatten());
    let required = terms.flat_map(|term| &term.requirements).map(|requirement| requirement.key.as_str());
    let pinned = pin.iter().map(|requirement| requirement.key.as_str());
    spec.node_selector.keys().map(String::as_str).chain(required).chain(pinned).collect()
}
