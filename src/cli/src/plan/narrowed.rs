//! Flags that leave out the offerings for which pods wait. The message of a pod without a node names the flag and the one to write
//! instead, if a plan with the other flag gives the pod a node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, InstanceType, Offering, ResourceName};
use poolwright_controller::clock::SystemClock;
use poolwright_core::plan::{Plan, PlanOptions};
use poolwright_core::{Operator, Pod, PodKey, PodSpec, Pool, PoolName, Requirement, Snapshot, rules};
use poolwright_terms::{CapacityType, NodeClassRef, Reason, domains, labels};

use super::buyable::meets;
use super::{Input, Offers, plan_with_room, pool};
use crate::catalogue::default_provider;
use crate::node_classes::Known;
use crate::solve_timer::SolveTimer;

/// The most different messages whose pods are looked at.
const MESSAGES: usize = 64;

/// The catalogues of node classes, as in a snapshot.
type Catalogues = BTreeMap<NodeClassRef, Result<Arc<Catalogue>, String>>;

/// What may be bought, before the flags select from it.
#[derive(Clone)]
pub struct Uncut {
    /// The whole catalogue, and the selection.
    pub offers: Offers,
    /// The node classes of the input.
    pub classes: Known,
    /// Whether a class that does not exist sells nothing.
    pub strict: bool,
}

/// Another choice of flags.
struct Change {
    /// What leaves offerings out.
    causes: Vec<String>,
    /// The flags to write instead.
    flags: String,
    offers: Offers,
}

impl Change {
    /// Returns this change and another one together.
    fn and(&self, other: &Self) -> Self {
        let mut offers = self.offers.clone();
        offers.wanted.capacity_types.clone_from(&other.offers.wanted.capacity_types);
        Self {
            causes: [&self.causes[..], &other.causes].concat(),
            flags: format!("{} {}", self.flags, other.flags),
            offers,
        }
    }

    /// Puts what is left out and what to write instead before a message. The advice in the message counts for the flags as they are.
    fn before(&self, message: &str, use_of_offerings: &str, result: &str) -> String {
        let leave = if self.causes.len() == 1 { "leaves" } else { "leave" };
        let (causes, flags) = (self.causes.join(" and "), &self.flags);
        format!(
            "{causes} {leave} out offerings that {use_of_offerings}; with {flags} {result}. With the flags as they are: {message}"
        )
    }
}

impl Uncut {
    /// Returns other choices of flags, first those that change the least.
    fn changes(&self, is_without_pool: bool) -> Vec<Change> {
        let of_provider = self.other_providers(is_without_pool);
        let of_capacity = self.more_capacity_types(is_without_pool);
        let both = of_provider.iter().flat_map(|one| of_capacity.iter().map(|other| one.and(other)));
        let both: Vec<Change> = both.collect();
        of_capacity.into_iter().chain(of_provider).chain(both).collect()
    }

    /// Returns the choices of more capacity types. Pools decide about them themselves if no flag does.
    fn more_capacity_types(&self, is_without_pool: bool) -> Vec<Change> {
        let Offers { wanted, written_capacity, prepaid, .. } = &self.offers;
        let cause = match written_capacity {
            Some(written) => written.clone(),
            None if is_without_pool => "the default of --capacity-type (on-demand)".to_owned(),
            None => return Vec::new(),
        };
        let has = |kind: CapacityType| match wanted.capacity_types.as_slice() {
            [] => kind == CapacityType::OnDemand || (*prepaid && kind == CapacityType::Reserved),
            chosen => chosen.contains(&kind),
        };
        let with_spot = |kind: &CapacityType| *kind != CapacityType::Reserved || has(*kind);
        let mut changes: Vec<Change> = Vec::new();
        for (flags, types) in [
            ("--spot", CapacityType::ALL.into_iter().filter(with_spot).collect::<Vec<_>>()),
            ("--capacity-type any", CapacityType::ALL.to_vec()),
        ] {
            if types.iter().all(|kind| has(*kind)) {
                continue;
            }
            let mut offers = self.offers.clone();
            offers.wanted.capacity_types = types;
            changes.push(Change { causes: vec![cause.clone()], flags: flags.to_owned(), offers });
        }
        changes
    }

    /// Returns the choices of another provider. The node classes of pools decide about it themselves if no flag does.
    fn other_providers(&self, is_without_pool: bool) -> Vec<Change> {
        let catalogue = &self.offers.catalogue;
        let (chosen, cause) = match &self.offers.wanted.provider {
            Some(written) => (written.clone(), format!("--provider {written}")),
            None => match default_provider(catalogue).filter(|_| is_without_pool) {
                Some((usual, _)) => {
                    let cause = format!("the default of --provider ({usual})");
                    (usual, cause)
                }
                None => return Vec::new(),
            },
        };
        let known = catalogue.providers().into_iter().map(|name| name.as_str().to_owned());
        let change = |provider: String| {
            let mut offers = self.offers.clone();
            offers.wanted.provider = Some(provider.clone());
            Change { causes: vec![cause.clone()], flags: format!("--provider {provider}"), offers }
        };
        known.filter(|name| *name != chosen).map(change).collect()
    }

    /// Returns what the pools may buy of these offers.
    fn sold(&self, snapshot: &Snapshot, offers: &Offers) -> Catalogues {
        // The plan has its notes already.
        let mut notes = Vec::new();
        if !snapshot.has_implicit_pool() {
            return pool::sold(snapshot, &self.classes, self.strict, offers, &mut notes).0;
        }
        let mut other = snapshot.clone();
        // A choice without offerings helps nobody.
        let sells = pool::without_pool(&mut other, offers, &mut notes).is_ok();
        if sells { other.catalogues } else { Catalogues::new() }
    }
}

/// Adds to the messages of pods without a node which flags leave out the offerings that would hold them. `limit` is the time for each
/// plan with other flags.
pub fn tell(plan: &mut Plan, input: &Input, now: Timestamp, options: &PlanOptions, limit: Option<Duration>) {
    tell_of_pools(plan, input);
    tell_of_pods(plan, input, &input.snapshot, &AS_THEY_ARE, (now, options, limit));
    // A pod that selects by a label of another program needs another label and another flag.
    let mut translated = input.snapshot.clone();
    let mut others = BTreeSet::new();
    for left in &plan.unplaced {
        let Some(spec) = input.snapshot.pods.get(&left.pod).and_then(|pod| in_our_labels(&pod.spec)) else {
            continue;
        };
        translated.pods.change(&left.pod, |pod| pod.spec = spec.into());
        others.insert(left.pod.clone());
    }
    if !others.is_empty() {
        let words = Words { only: Some(&others), ..WITH_OUR_LABEL };
        tell_of_pods(plan, input, &translated, &words, (now, options, limit));
    }
}

/// The pods that are told of flags, and the sentence about the flags.
struct Words<'s> {
    /// Other pods are not asked; `None` asks all.
    only: Option<&'s BTreeSet<PodKey>>,
    use_of_offerings: &'static str,
    result: &'static str,
}

const AS_THEY_ARE: Words<'static> =
    Words { only: None, use_of_offerings: "hold it", result: "it gets a node" };
const WITH_OUR_LABEL: Words<'static> = Words {
    only: None,
    use_of_offerings: "would hold it with the label of Poolwright",
    result: "and that label it gets a node",
};

/// Returns the pod's rules with Poolwright's label for the capacity type in place of labels of other programs; `None` if it has none
/// of them. The reason of the pod without a node advises the same label.
fn in_our_labels(spec: &PodSpec) -> Option<PodSpec> {
    let mut ours = spec.clone();
    for (key, value) in &spec.node_selector {
        if let Some(kind) = domains::capacity_type(key, value) {
            ours.node_selector.remove(key);
            ours.node_selector.insert(labels::CAPACITY_TYPE.to_owned(), kind.to_string());
        }
    }
    let terms = ours.node_affinity.iter_mut().flatten();
    for wanted in terms.flat_map(|term| &mut term.requirements) {
        let Operator::In(theirs) = &wanted.operator else { continue };
        let kinds = theirs.iter().filter_map(|value| domains::capacity_type(&wanted.key, value));
        let kinds: BTreeSet<String> = kinds.map(|kind| kind.to_string()).collect();
        if !kinds.is_empty() {
            *wanted = Requirement { key: labels::CAPACITY_TYPE.to_owned(), operator: Operator::In(kinds) };
        }
    }
    (ours != *spec).then_some(ours)
}

/// Adds which flags leave out the offerings that would hold pods of a snapshot.
fn tell_of_pods(
    plan: &mut Plan,
    input: &Input,
    snapshot: &Snapshot,
    words: &Words<'_>,
    (now, options, limit): (Timestamp, &PlanOptions, Option<Duration>),
) {
    let mut asked: BTreeMap<String, &Pod> = BTreeMap::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let is_asked = |key: &PodKey| words.only.is_none_or(|only| only.contains(key));
    for left in plan.unplaced.iter().filter(|left| is_asked(&left.pod)) {
        if seen.len() == MESSAGES {
            break;
        }
        // Pods with the same message lack the same.
        let is_new = seen.insert(&left.message);
        let Some(pod) = snapshot.pods.get(&left.pod).filter(|_| is_new) else { continue };
        if !is_held(pod, &snapshot.catalogues, snapshot)
            || lacks_on_demand(pod, &snapshot.catalogues, snapshot)
        {
            asked.insert(left.message.clone(), pod);
        }
    }
    if asked.is_empty() {
        return;
    }
    let options = PlanOptions { baselines: false, keep_solves: false, ..options.clone() };
    let clock = SystemClock::new();
    for change in input.uncut.changes(snapshot.has_implicit_pool()) {
        let catalogues = input.uncut.sold(snapshot, &change.offers);
        let mut open = asked.clone();
        open.retain(|_, pod| {
            is_held(pod, &catalogues, snapshot) && !lacks_on_demand(pod, &catalogues, snapshot)
        });
        if open.is_empty() {
            continue;
        }
        let other = Snapshot { catalogues, ..snapshot.clone() };
        let tried = plan_with_room(&other, now, &options, &mut SolveTimer::new(&clock, limit)).plan;
        if !tried.refused.is_empty() {
            continue;
        }
        let still: BTreeSet<&PodKey> = tried.unplaced.iter().map(|left| &left.pod).collect();
        for left in &mut plan.unplaced {
            if is_asked(&left.pod) && open.contains_key(&left.message) && !still.contains(&left.pod) {
                asked.remove(&left.message);
                left.message = change.before(&left.message, words.use_of_offerings, words.result);
            }
        }
    }
}

/// Adds to the problems of pools that may buy nothing which flags leave out the offerings that they may buy.
fn tell_of_pools(plan: &mut Plan, input: &Input) {
    let snapshot = &input.snapshot;
    let mut open: BTreeSet<PoolName> = BTreeSet::new();
    for (name, findings) in &plan.pools {
        if matches!(findings.invalid, Some((Reason::NoOfferingMatches, _))) {
            open.insert(name.clone());
        }
    }
    if open.is_empty() {
        return;
    }
    for change in input.uncut.changes(snapshot.has_implicit_pool()) {
        let catalogues = input.uncut.sold(snapshot, &change.offers);
        let may_buy = |name: &PoolName| {
            let Some(pool) = snapshot.pools.get(name) else { return false };
            let Some(Ok(catalogue)) = catalogues.get(&pool.node_class) else { return false };
            catalogue.offerings().iter().any(|offering| meets(catalogue, pool, offering, |_| true))
        };
        for (name, findings) in &mut plan.pools {
            if let Some((_, message)) = &mut findings.invalid
                && open.contains(name)
                && may_buy(name)
            {
                *message = change.before(message, "it may buy", "it buys them");
                open.remove(name);
            }
        }
    }
}

/// Returns whether an offering of a pool holds a pod by its labels and resources.
fn is_held(pod: &Pod, catalogues: &Catalogues, snapshot: &Snapshot) -> bool {
    let sold = |pool: &Pool| match catalogues.get(&pool.node_class) {
        Some(Ok(catalogue)) => holds(catalogue, pool, pod, |_| true),
        _ => false,
    };
    snapshot.pools.values().any(|pool| sold(pool))
}

/// Returns whether only spot offerings hold a pod in a pool that has to have on-demand nodes first.
fn lacks_on_demand(pod: &Pod, catalogues: &Catalogues, snapshot: &Snapshot) -> bool {
    let is_spot = |offering: &Offering| offering.id.capacity_type == CapacityType::Spot;
    snapshot.pools.values().filter(|pool| pool.spot.on_demand_floor.is_some()).any(|pool| {
        let Some(Ok(catalogue)) = catalogues.get(&pool.node_class) else { return false };
        holds(catalogue, pool, pod, is_spot) && !holds(catalogue, pool, pod, |one| !is_spot(one))
    })
}

/// Returns whether an offering of this kind holds a pod.
fn holds(catalogue: &Catalogue, pool: &Pool, pod: &Pod, kind: impl Fn(&Offering) -> bool) -> bool {
    catalogue.offerings().iter().filter(|offering| kind(offering)).any(|offering| {
        let Some(kind) = catalogue.instance_type(&offering.id.instance_type) else { return false };
        if offering.price.known().is_none() || !has_room(kind, pod) {
            return false;
        }
        meets(catalogue, pool, offering, |labels| rules::check_labels(&pod.spec, labels).is_ok())
    })
}

/// Returns whether a node of a type has room for a pod. Parts of GPUs fit if the node has GPUs.
fn has_room(kind: &InstanceType, pod: &Pod) -> bool {
    let fits = |(name, wanted): (&ResourceName, u64)| {
        let is_part = name.as_str().starts_with(ResourceName::MIG_PREFIX) && kind.gpu.is_some();
        is_part || wanted <= kind.allocatable.get(name.as_str())
    };
    pod.spec.requests.iter().all(fits) && (pod.spec.gpu_share.is_none() || kind.gpu.is_some())
}
