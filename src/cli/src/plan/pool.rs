//! The offerings that may be bought: those that the node classes of the pools sell or, without a pool, those that the flags
//! select.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_api::meant;
use poolwright_catalog::{Catalogue, InstanceType, InstanceTypeName, ProviderName};
use poolwright_core::{
    Deadlines, Disruption, Pool, PoolLimits, PoolName, ScaleToZero, Snapshot, SpotRules, Uid,
};
use poolwright_terms::{CapacityType, NodeClassRef};

use super::Offers;
use crate::catalogue::{Selection, default_provider};
use crate::clouds::{clouds, find, not_built, of_kind, with_other_kinds};
use crate::exit::Failure;
use crate::node_classes::Known;
use crate::not_sold::{self, LeftOut, Range};

/// The name of the pool that Poolwright invents if the user gives none.
const IMPLICIT: &str = "any";

/// The catalogue of each node class, and the part of the whole catalogue that they sell together.
type Sold = (BTreeMap<NodeClassRef, Result<Arc<Catalogue>, String>>, Catalogue);

/// Gives `snapshot` the catalogues of its pools, or the whole catalogue if it has no pool. Returns all offerings that
/// may be bought.
pub fn set_catalogues(
    snapshot: &mut Snapshot,
    known: &Known,
    strict: bool,
    offers: &Offers,
    notes: &mut Vec<String>,
) -> Result<Catalogue, Failure> {
    if snapshot.pools.is_empty() {
        let none = if strict { "the cluster has no NodePool" } else { "no NodePool is given" };
        let at = notes.len();
        let WithoutPool { catalogue, left_out } = without_pool(snapshot, offers, notes)?;
        let left_out: Vec<&str> = left_out.iter().map(InstanceTypeName::as_str).collect();
        let except = match not_sold::first_of(&left_out) {
            none if none.is_empty() => String::new(),
            some => format!(" except {some}, which node classes do not sell by default"),
        };
        notes.insert(at, format!("{none}; the plan may use the whole catalogue{except}"));
        return Ok(catalogue);
    }
    let (catalogues, all) = sold(snapshot, known, strict, offers, notes);
    snapshot.catalogues = catalogues;
    Ok(all)
}

/// What a plan without a pool may buy.
pub struct WithoutPool {
    /// The offerings.
    pub catalogue: Catalogue,
    /// The types that are not among them, because node classes do not sell them by default.
    left_out: Vec<InstanceTypeName>,
}

/// Lets `snapshot` buy all offerings that the flags select and that node classes of the usual settings sell: by default the on-demand
/// offerings of one provider. A plan must not count on types that the node class of its reader would not sell.
pub fn without_pool(
    snapshot: &mut Snapshot,
    offers: &Offers,
    notes: &mut Vec<String>,
) -> Result<WithoutPool, Failure> {
    let mut wanted = offers.wanted.clone();
    wanted.provider = provider(offers, notes);
    if wanted.capacity_types.is_empty() {
        wanted.capacity_types.push(CapacityType::OnDemand);
        if offers.prepaid {
            wanted.capacity_types.push(CapacityType::Reserved);
        }
    }
    let whole = wanted.of(&offers.catalogue)?;
    let pool = implicit();
    let (sold, mut unsold) = by_usual_class(&whole);
    let range = Range { class: &pool.node_class, sold: &sold, left_out: Some(&unsold) };
    let (asked, note) = not_sold::without_pool(range, &whole, snapshot.pods.unbound());
    notes.extend(note);
    unsold.retain(|name, _| !asked.contains(name));
    let catalogue = whole.filtered(|kind, _| !unsold.contains_key(&kind.name));
    let catalogue = with_other_kinds(catalogue, None);
    snapshot.catalogues.insert(pool.node_class.clone(), Ok(Arc::new(catalogue.clone())));
    snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    Ok(WithoutPool { catalogue, left_out: unsold.into_keys().collect() })
}

/// Returns what node classes of the usual settings sell of a catalogue, and why they do not sell the other types.
fn by_usual_class(catalogue: &Catalogue) -> (Catalogue, BTreeMap<InstanceTypeName, String>) {
    let why = |kind: &InstanceType| (find(kind.provider.as_str())?.node_class.leaves_out)(kind);
    let kinds = catalogue.types().values();
    let unsold: BTreeMap<_, _> = kinds.filter_map(|kind| Some((kind.name.clone(), why(kind)?))).collect();
    (catalogue.filtered(|kind, _| !unsold.contains_key(&kind.name)), unsold)
}

/// Returns the catalogues of the node classes of the pools. Adds notes about what is asked for by name but not sold.
///
/// A missing class sells nothing if `strict` is set, as in a cluster. Otherwise, for manifests, it sells what a plan without a
/// pool could buy, and a note says so, unless the manifests have other classes of its kind.
pub(super) fn sold(
    snapshot: &Snapshot,
    known: &Known,
    strict: bool,
    offers: &Offers,
    notes: &mut Vec<String>,
) -> Sold {
    let pools = || snapshot.pools.values().map(|pool| &**pool);
    let used: BTreeSet<&NodeClassRef> = pools().map(|pool| &pool.node_class).collect();
    // The reason of pods that are left out names a broken class that a pool uses.
    let unused = known.broken.iter().filter(|(class, _)| !used.contains(class));
    notes.extend(unused.map(|(_, why)| format!("left out: {why}")));
    let (mut catalogues, mut left_out) = (BTreeMap::new(), LeftOut::new());
    for class in used {
        let sells = of_class(class, known, strict, offers, notes, &mut left_out);
        catalogues.insert(class.clone(), sells.map(Arc::new));
    }
    // A class that sells nothing has a problem of its own.
    let ranges: Vec<Range<'_>> = catalogues
        .iter()
        .filter_map(|(class, sells): (_, &Result<Arc<Catalogue>, String>)| {
            Some(Range { class, sold: sells.as_ref().ok()?, left_out: left_out.get(class) })
        })
        .collect();
    notes.extend(not_sold::notes(&ranges, &offers.catalogue, pools(), snapshot.pods.unbound()));
    let sellers: Vec<_> = catalogues.values().filter_map(|sells| sells.as_ref().ok()).collect();
    let all = offers
        .catalogue
        .filtered(|_, offering| sellers.iter().any(|sells| sells.offering(&offering.id).is_some()));
    (catalogues, all)
}

/// Returns what a node class sells, or why it sells nothing.
fn of_class(
    class: &NodeClassRef,
    known: &Known,
    strict: bool,
    offers: &Offers,
    notes: &mut Vec<String>,
    left_out: &mut LeftOut,
) -> Result<Catalogue, String> {
    if let Some(why) = known.broken.get(class) {
        return Err(why.clone());
    }
    let Some(found) = known.classes.get(class) else {
        let sells = of_missing(class, known, strict, offers, notes, left_out)?;
        return Ok(with_other_kinds(sells, None));
    };
    let own = found.facts.provider.as_deref();
    keeps_provider(class, own, offers)?;
    let provider = own.or(offers.wanted.provider.as_deref());
    let sells = found.sells(class, &part(offers, provider), notes, left_out)?;
    not_empty(class, sells, own, offers)
}

/// Returns the reason why a class whose nodes are of one provider sells nothing, if the flags select another provider.
fn keeps_provider(class: &NodeClassRef, own: Option<&str>, offers: &Offers) -> Result<(), String> {
    match (own, offers.wanted.provider.as_deref()) {
        (Some(own), Some(wanted)) if own != wanted => Err(format!(
            "{class} sells nothing: its nodes are of provider `{own}`, and --provider {wanted} leaves them out; remove the flag, or \
             write --provider {own}"
        )),
        _ => Ok(()),
    }
}

/// Returns what a class that files do not have sells, as in a plan for files without flags.
///
/// # Errors
///
/// It sells nothing, with the reason and the next step.
pub fn sold_by_missing(
    class: &NodeClassRef,
    known: &Known,
    prices: &Catalogue,
    notes: &mut Vec<String>,
) -> Result<Catalogue, String> {
    let wanted = Selection::default();
    let offers = Offers { catalogue: prices.clone(), wanted, written_capacity: None, prepaid: false };
    let mut told = Vec::new();
    let sells = of_missing(class, known, false, &offers, &mut told, &mut LeftOut::new())?;
    let sells = with_other_kinds(sells, None);
    if told.len() > 1 {
        // The note on the choice of a provider names a flag of plans.
        told.truncate(1);
        let providers: Vec<_> = sells.providers().into_iter().map(ToString::to_string).collect();
        told.push(format!(
            "{class} counts as one that sells only types of {}; add it to choose",
            providers.join(", ")
        ));
    }
    notes.extend(told);
    Ok(sells)
}

/// Returns what a class that does not exist sells.
fn of_missing(
    class: &NodeClassRef,
    known: &Known,
    strict: bool,
    offers: &Offers,
    notes: &mut Vec<String>,
    left_out: &mut LeftOut,
) -> Result<Catalogue, String> {
    let is_of_ours = class.group == poolwright_terms::GROUP;
    let Some(cloud) = of_kind(&class.kind).filter(|_| is_of_ours) else {
        if let Some(why) = not_built(|cloud| is_of_ours && cloud.node_class == class.kind) {
            return Err(format!("nothing can be bought for {class}: {why}"));
        }
        let kinds: Vec<_> = clouds().iter().map(|cloud| cloud.node_class.kind.kind).collect();
        return Err(format!(
            "no provider launches with {class} of {}; write group {} and one of the kinds {} in nodeClassRef of the pool",
            class.group,
            poolwright_terms::GROUP,
            kinds.join(", ")
        ));
    };
    let names = known.classes.keys().chain(known.broken.keys());
    let others: Vec<_> =
        names.filter(|other| other.kind == class.kind).map(|other| format!("`{}`", other.name)).collect();
    let others = (!others.is_empty()).then(|| format!("{} {}", class.kind, others.join(", ")));
    match (strict, others) {
        (true, Some(others)) => Err(format!(
            "{class} does not exist; there is {others}; create it, or correct nodeClassRef of the pool"
        )),
        (true, None) => Err(format!(
            "{class} does not exist, nor does any other {}; create it, or correct nodeClassRef of the pool",
            class.kind
        )),
        (false, Some(others)) => Err(format!(
            "{class} is not in the files, which have {others}; add it, or correct nodeClassRef of the pool"
        )),
        (false, None) => {
            let has = |name: &str| offers.catalogue.providers().iter().any(|known| known.as_str() == name);
            let own = Some(cloud.name).filter(|name| has(name));
            keeps_provider(class, own, offers)?;
            let what = own.map_or_else(
                || "in the catalogue".to_owned(),
                |_| {
                    format!(
                        "that the catalogue has of {} and that such a class sells by default, with the usual disks and kubelet settings",
                        cloud.short
                    )
                },
            );
            notes.push(format!("{class} is not in the files; its pools may buy everything {what}"));
            let provider = own.map(str::to_owned).or_else(|| provider(offers, notes));
            let mut sells = part(offers, provider.as_deref());
            if own.is_some() {
                let (usual, unsold) = by_usual_class(&sells);
                left_out.insert(class.clone(), unsold);
                sells = usual;
            }
            not_empty(class, sells, own, offers)
        }
    }
}

/// Returns what a class sells, or why that is nothing. `own` is the provider that the class itself names.
fn not_empty(
    class: &NodeClassRef,
    sells: Catalogue,
    own: Option<&str>,
    offers: &Offers,
) -> Result<Catalogue, String> {
    if !sells.offerings().is_empty() {
        return Ok(sells);
    }
    let Some(provider) = own.or(offers.wanted.provider.as_deref()) else {
        return Err(format!("{class} sells nothing: the catalogue has no offering{}", allowed(offers)));
    };
    let known: Vec<&str> = offers.catalogue.providers().into_iter().map(ProviderName::as_str).collect();
    if known.contains(&provider) {
        let allowed = allowed(offers);
        return Err(format!(
            "{class} sells nothing: the catalogue has no offering of provider `{provider}`{allowed}"
        ));
    }
    let correct = match own {
        None => "correct --provider",
        Some(_) if of_kind(&class.kind).is_some_and(|cloud| cloud.name == provider) => {
            "use a catalogue that has it"
        }
        Some(_) => "correct spec.provider of the class",
    };
    let meant = meant(provider, known.iter().copied());
    let meant = meant.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
    Err(format!(
        "{class} sells nothing: the catalogue has no provider `{provider}`; {meant}{correct} (the catalogue has {})",
        known.join(", ")
    ))
}

/// Names the flags that leave out capacity types, and the next step; empty if there are none.
fn allowed(offers: &Offers) -> String {
    offers
        .written_capacity
        .as_ref()
        .map_or_else(String::new, |written| format!(" that {written} allows; allow more, or remove the flag"))
}

/// Returns the offerings of a provider, or of all, and of the capacity types that the flags select.
fn part(offers: &Offers, provider: Option<&str>) -> Catalogue {
    let capacity_types = &offers.wanted.capacity_types;
    offers.catalogue.filtered(|kind, offering| {
        provider.is_none_or(|wanted| wanted == kind.provider.as_str())
            && (capacity_types.is_empty() || capacity_types.contains(&offering.id.capacity_type))
    })
}

/// Returns the provider that the flags name, or the default one. Adds a note if there was a choice.
fn provider(offers: &Offers, notes: &mut Vec<String>) -> Option<String> {
    if offers.wanted.provider.is_some() {
        return offers.wanted.provider.clone();
    }
    let (provider, is_choice) = default_provider(&offers.catalogue)?;
    let note = format!(
        "the catalogue has several providers; this plan buys from {provider} (--provider chooses another)"
    );
    if is_choice && !notes.contains(&note) {
        notes.push(note);
    }
    Some(provider)
}

/// Returns the pool of an input without pools.
pub fn implicit() -> Pool {
    Pool {
        name: PoolName(IMPLICIT.to_owned()),
        uid: Uid(IMPLICIT.to_owned()),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        readiness_gates: Vec::new(),
        requirements: Vec::new(),
        node_class: NodeClassRef {
            group: poolwright_terms::GROUP.to_owned(),
            kind: "NodeClass".to_owned(),
            name: IMPLICIT.to_owned(),
        },
        weight: 1,
        limits: PoolLimits::default(),
        monthly_budget: None,
        min_values: std::collections::BTreeMap::new(),
        spot: SpotRules::default(),
        allow_unknown_price: BTreeSet::new(),
        scale_to_zero: ScaleToZero::Never,
        replicas: None,
        buffer: Vec::new(),
        disruption: Disruption::default(),
        deadlines: Deadlines::default(),
        deleting: false,
        problem: None,
        is_implicit: true,
    }
}
