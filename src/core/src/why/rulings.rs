//! Rulings, for explanations: whether each offering fits a pod, and the reason if it does not.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use poolwright_catalog::{OfferingId, ResourceList, ResourceName, UsdPerHour};
use poolwright_terms::Taint;
use poolwright_terms::labels::DECIDED_BY_OFFERING;

use crate::demand::{profiles, volumes};
use crate::model::PlanOptions;
use crate::model::{NodeSelectorTerm, Operator, PodKey, PodSpec, PoolName, Requirement, Sharing, Snapshot};
use crate::plan::place::spread_hosts;
use crate::plan::unplaced::label_hint::is_near;
use crate::plan::unplaced::labels::{label_change, translated};
use crate::rules;
use crate::rules::Rejection;
use crate::rules::colocation::Colocation;
use crate::rules::format::{at_most, list, named, quoted, taints};
use crate::rules::gpus::{self, GpuForm, GpuMatch, GpuNeed};
use crate::rules::labels::Labels;
use crate::supply::daemonsets::DaemonSets;
use crate::supply::limits::Limits;
use crate::supply::offerings::{Availability, PoolOffering};
use crate::supply::wider::{Asked, Wider};
use crate::supply::{offerings, rooms};

/// The ruling about an offering of a pool, for one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferingRuling {
    /// The pool.
    pub pool: PoolName,
    /// The offering.
    pub offering: OfferingId,
    /// The ruling.
    pub ruling: Ruling,
}

/// Whether an offering fits a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// A new node could hold the pod, at this price; `None` if the price is unknown and the pool allows that.
    Fits(Option<UsdPerHour>),
    /// It is excluded, with the reasons in the order taints, labels, resources, colocation, availability, limits. There is at least one.
    Excluded(Vec<String>),
}

/// The rulings on every offering, for one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodRulings {
    /// The rulings, in the order of pools and catalogues.
    pub offerings: Vec<OfferingRuling>,
    /// If none fits: the index of the offering that the fewest things keep from fitting, and the change that would make it fit. A limit
    /// on this offering is one of its reasons, too. The change is empty if no change of the pod or the pool would help.
    pub nearest: Option<(usize, String)>,
}

/// Returns, for each pod, the rulings on every offering that meets the requirements of a pool; `None` for pods that do not exist.
/// Equal pods share their rulings.
pub(crate) fn rulings(
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    pods: &[&PodKey],
) -> Vec<Option<Rc<PodRulings>>> {
    let mut ruled = Cow::Borrowed(snapshot);
    profiles::apply(&mut ruled, options);
    let volumes = volumes::resolve(&mut ruled);
    let snapshot = ruled.as_ref();
    let mut colocation = Colocation::new(snapshot);
    let daemons = DaemonSets::new(snapshot);
    let supply = offerings::collect(snapshot, &daemons, &colocation, &volumes.attachable, options, now);
    let rooms = rooms::collect(snapshot, &daemons, &colocation, &volumes.attachable);
    spread_hosts::set_least(&mut colocation, snapshot, &daemons, &rooms, &supply);
    let attachable = &volumes.attachable;
    let wider = Wider { snapshot, supply: &supply, daemons: &daemons, attachable, options };
    let limits = Limits::new(&supply, snapshot, options);
    let mut known: BTreeMap<(&PodSpec, usize), Rc<PodRulings>> = BTreeMap::new();
    let mut of = |key: &PodKey| {
        // This spec includes the requirements of the pod's volumes.
        let (spec, profile) = (&*snapshot.pods.get(key)?.spec, colocation.of(key));
        let fresh =
            || Rc::new(Judge { wider, limits: &limits, colocation: &colocation, spec, profile }.judge());
        Some(known.entry((spec, profile)).or_insert_with(fresh).clone())
    };
    pods.iter().map(|key| of(key)).collect()
}

/// The inputs of the rulings for one pod.
struct Judge<'s, 'a> {
    wider: Wider<'s, 'a>,
    limits: &'s Limits,
    colocation: &'s Colocation<'a>,
    spec: &'s PodSpec,
    profile: usize,
}

/// A reason why an offering is excluded, with the change that would remove it; the change is empty if there is none.
struct Miss {
    words: String,
    change: Change,
}

/// The offering that comes closest so far.
struct Nearest {
    /// The GPUs that the pod asks for, then the fewest things, the latest stage, the most labels of which a value is only written in
    /// another way, the smallest shortage, and the first offering.
    rank: (GpuMatch, usize, Reverse<usize>, Reverse<usize>, u16, OfferingId),
    /// Index into [`Supply::pools`](crate::supply::offerings::Supply::pools).
    pool: usize,
    offer: PoolOffering,
    /// Index into [`PodRulings::offerings`].
    index: usize,
    misses: Vec<Miss>,
}

/// A change that would remove a reason.
enum Change {
    /// Words for the user; empty if nothing helps.
    Words(String),
    /// The pod asks for more of a resource than the offering has for it.
    Less(ResourceName, u64),
    /// The offering does not have this label.
    Label(Requirement),
    /// One node of the offering is beyond a limit; the words for the user.
    Limit(String),
}

impl Judge<'_, '_> {
    fn judge(&self) -> PodRulings {
        let Wider { supply, options, .. } = self.wider;
        let (requests, need) = gpus::wanted(options.sharing, &supply.mig_models(), self.spec);
        let mut offerings = Vec::new();
        let mut nearest: Option<Nearest> = None;
        for (at, offered) in supply.pools.iter().enumerate() {
            let foreign = requests.iter().filter(|(name, wanted)| *wanted > 0 && supply.lacks(at, name));
            let foreign = foreign.count();
            let daemons = self.wider.daemons.tolerating(&offered.pool.taints);
            let instead = self.instead(at);
            for offer in &offered.offers {
                let offering = supply.offering(at, offer.offering).id.clone();
                let (stage, misses) = self.misses(at, offer, (&requests, need.as_ref()), &daemons);
                let ruling = if misses.is_empty() {
                    Ruling::Fits(offer.availability.price())
                } else {
                    Ruling::Excluded(misses.iter().map(|miss| miss.words.clone()).collect())
                };
                if !misses.is_empty() {
                    let shortage = shortage(&requests, &supply.capacities[offer.capacity]);
                    let labels = supply.labels(at, offer.offering);
                    let near = misses.iter().filter(|miss| is_near_miss(miss, &labels)).count();
                    let price = offer.availability.price();
                    let is_beyond = self.beyond(at, offer.offering, price, need.as_ref()).is_some();
                    let against = self.against(at, offer, &misses, &instead);
                    let things = misses.len() + 2 * foreign + against + usize::from(is_beyond);
                    let gpus = GpuMatch::of(supply.instance_type(at, offer.offering), self.spec);
                    let rank = (gpus, things, Reverse(stage), Reverse(near), shortage, offering.clone());
                    if nearest.as_ref().is_none_or(|nearest| rank < nearest.rank) {
                        let index = offerings.len();
                        nearest = Some(Nearest { rank, pool: at, offer: *offer, index, misses });
                    }
                }
                offerings.push(OfferingRuling { pool: offered.pool.name.clone(), offering, ruling });
            }
        }
        let fits = offerings.iter().any(|one| matches!(one.ruling, Ruling::Fits(_)));
        let asked = Asked { spec: self.spec, requests: &requests, gpus: need.as_ref() };
        let nearest = nearest.filter(|_| !fits).map(|mut nearest| {
            let (offering, price) = (nearest.offer.offering, nearest.offer.availability.price());
            if let Some(limit) = self.beyond(nearest.pool, offering, price, need.as_ref()) {
                let words = format!("beyond {limit}");
                if let Ruling::Excluded(reasons) = &mut offerings[nearest.index].ruling {
                    reasons.push(words.clone());
                }
                nearest.misses.push(Miss { words, change: Change::Limit(format!("raise {limit}")) });
            }
            (nearest.index, self.change(nearest.pool, asked, nearest.misses))
        });
        PodRulings { offerings, nearest }
    }

    /// Returns the limits that one more node of an offering would break if it served the request, in words.
    fn beyond(
        &self,
        at: usize,
        offering: usize,
        price: Option<UsdPerHour>,
        need: Option<&GpuNeed>,
    ) -> Option<String> {
        let supply = self.wider.supply;
        let uses = self.limits.uses_for(supply, at, offering, price, need.as_slice());
        let beyond = self.limits.beyond(&uses);
        let named = beyond.iter().map(|(limit, _)| self.limits.named(*limit, supply));
        named.reduce(|all, one| format!("{all} and {one}"))
    }

    /// Returns the pod's rules on labels of other programs, each with the rule of ours that is advised at the pool instead.
    fn instead(&self, at: usize) -> Vec<(Requirement, Requirement)> {
        let selected = self.spec.node_selector.iter().map(|(key, value)| selected_as(key, value));
        let required = self.spec.node_affinity.iter().flatten().flat_map(|term| &term.requirements).cloned();
        let both = |theirs: Requirement| {
            let ours = translated(&theirs, at, self.wider.supply)?;
            Some((theirs, ours))
        };
        selected.chain(required).filter_map(both).collect()
    }

    /// Returns the number of rules that an offering would break if the advice about its labels were followed.
    fn against(
        &self,
        at: usize,
        offer: &PoolOffering,
        misses: &[Miss],
        instead: &[(Requirement, Requirement)],
    ) -> usize {
        let labels = self.wider.supply.labels(at, offer.offering);
        let breaks = |wanted: &Requirement| {
            instead.iter().any(|(theirs, ours)| theirs == wanted && !rules::matches(ours, &labels))
        };
        misses.iter().filter(|miss| matches!(&miss.change, Change::Label(wanted) if breaks(wanted))).count()
    }

    /// Returns everything that keeps the pod off an offering, and the first stage that fails.
    fn misses(
        &self,
        at: usize,
        offer: &PoolOffering,
        (requests, need): (&ResourceList, Option<&GpuNeed>),
        daemons: &DaemonSets<'_>,
    ) -> (usize, Vec<Miss>) {
        let supply = self.wider.supply;
        let (pool, labels) = (supply.pools[at].pool, supply.labels(at, offer.offering));
        let room = &supply.capacities[offer.capacity];
        let mut stage = usize::MAX;
        let mut all = Vec::new();
        let mut add = |of: usize, words: String, change: Change| {
            stage = stage.min(of);
            all.push(Miss { words, change });
        };
        let untolerated: Vec<&Taint> = rules::untolerated(&self.spec.tolerations, &pool.taints).collect();
        if !untolerated.is_empty() {
            let words = format!("{}{}", taints(&untolerated), pool.in_words().of());
            add(0, words, Change::Words(toleration(&untolerated)));
        }
        let broken = label_misses(self.spec, &labels);
        if broken.is_empty()
            && let Err(rejection) = rules::check_labels(self.spec, &labels)
        {
            add(1, short(&rejection), change(&rejection));
        }
        for miss in broken {
            add(1, miss.words, miss.change);
        }
        let mut landing = None;
        for (resource, wanted) in requests.iter() {
            let available = room.get(resource.as_str());
            if wanted > available {
                let landing = landing.get_or_insert_with(|| daemons.landing(&labels));
                let taken = daemons.in_the_way(landing, resource, wanted - available);
                let taken = taken.map_or_else(String::new, |words| format!(", because {words}"));
                let words = format!("less than {}{taken}", named(resource, wanted));
                add(2, words, Change::Less(resource.clone(), available));
            }
        }
        let kind = supply.instance_type(at, offer.offering);
        let sharing = self.wider.options.sharing;
        let grants = |form: &GpuForm| form.grants(sharing, kind, need);
        if let Some(need) = need
            && !GpuForm::all(sharing, kind).iter().any(grants)
        {
            // Only another type has such GPUs.
            let none = Change::Less(ResourceName::new(ResourceName::NVIDIA_GPU), 0);
            add(2, need.lacking(), none);
        }
        if !self.colocation.admits(self.profile, &supply.residents[offer.residents]) {
            let change = "change that rule, or keep the DaemonSet off some nodes".to_owned();
            let words = "a DaemonSet pod that it may not share a node with".to_owned();
            add(3, words, Change::Words(change));
        }
        match offer.availability {
            Availability::PriceUnknown => {
                let list = if pool.is_implicit {
                    "write a NodePool that lists it under allowUnknownPrices".to_owned()
                } else {
                    format!("list it under allowUnknownPrices of pool {}", pool.name)
                };
                let lift = self.wider.options.lift_limit_and(pool);
                let change =
                    format!("{lift}{list}, or, if prices come from --catalogue, add its price there");
                add(4, "its price is unknown".to_owned(), Change::Words(change));
            }
            Availability::HeldBack(until) => {
                let words = format!("failed recently, tried again at {until}");
                add(4, words, Change::Words(String::new()));
            }
            Availability::Priced(_) | Availability::Reclaimed(..) | Availability::Unpriced => {}
        }
        (stage, all)
    }

    /// Returns the changes that together make an offering of the pool fit; empty if no change is known to. Only changes of which each
    /// helps alone are alternatives.
    fn change(&self, at: usize, asked: Asked<'_>, misses: Vec<Miss>) -> String {
        let pool = self.wider.supply.pools[at].pool.in_words();
        let widen = self.wider.holds(at, asked).map(|kind| {
            // What runs and is ordered may leave too little of a limit that allows one such node.
            let limit = self.beyond(at, kind.offering, Some(kind.price), asked.gpus);
            let raise = limit.map_or_else(String::new, |limit| format!(" and raise {limit}"));
            format!("widen the requirements{} so that it may buy {kind}{raise}", pool.of())
        });
        let is_instance = |miss: &Miss| matches!(&miss.change, Change::Less(resource, 0) if resource.as_str().starts_with(ResourceName::MIG_PREFIX));
        let is_cut = matches!(self.wider.options.sharing, Sharing::Mig { .. });
        if !is_cut && misses.iter().any(is_instance) && self.wider.holds_if_cut(asked.spec) {
            return "plan with `--sharing mig`".to_owned();
        }
        if !is_cut
            && misses.iter().any(is_instance)
            && let Some((limit, raise)) = self.wider.limit_if_cut(asked.spec)
        {
            return format!("plan with `--sharing mig`, and {raise}, because {limit}");
        }
        let larger = |resource: &ResourceName| self.wider.supply.enlarging(at, resource);
        let (mut less, mut others, mut limit) = (Vec::new(), Vec::new(), None);
        // Whether a wider pool helps, and whether the pool must be wider: less of what it lacks is no way out then.
        let (mut widens, mut must_widen) = (false, false);
        for miss in misses {
            match miss.change {
                Change::Words(words) => others.push(words),
                Change::Limit(words) => limit = Some(words),
                Change::Less(resource, available) if larger(&resource).is_some() => {
                    let ask = (available > 0).then(|| {
                        format!(", or ask for at most {} {resource}", at_most(&resource, available))
                    });
                    others.extend(larger(&resource).map(|change| change + &ask.unwrap_or_default()));
                }
                Change::Less(_, 0) if widen.is_none() => return String::new(),
                Change::Less(resource, available) => {
                    widens = true;
                    must_widen |= available == 0;
                    less.push(format!("{} {resource}", at_most(&resource, available)));
                }
                Change::Label(wanted)
                    if widen.is_none() || !DECIDED_BY_OFFERING.contains(&wanted.key.as_str()) =>
                {
                    others.push(label_change(&wanted, at, self.wider.supply));
                }
                Change::Label(_) => (widens, must_widen) = (true, true),
            }
        }
        if others.iter().any(String::is_empty) {
            return String::new();
        }
        // What lets the pod onto this offering.
        let ask = (!less.is_empty()).then(|| format!("ask for at most {}", list(&less, SHOWN)));
        let here: Vec<String> = ask.into_iter().chain(limit).collect();
        let here = (!must_widen && !here.is_empty()).then(|| here.join(" and "));
        let room = match (here, widen.filter(|_| widens)) {
            (Some(here), Some(widen)) => Some(format!("{here}, or {widen}")),
            (here, widen) => here.or(widen),
        };
        others.into_iter().chain(room).collect::<Vec<_>>().join("; and ")
    }
}

/// Returns the pod's own rules on labels that a node with these labels breaks. Of several terms of its node affinity, it takes the
/// term that the node breaks least.
fn label_misses(spec: &PodSpec, labels: &impl Labels) -> Vec<Miss> {
    let miss = |wanted: Requirement, words: String| Miss {
        words: format!("not `{words}`"),
        change: Change::Label(wanted),
    };
    let selected = spec.node_selector.iter().filter(|(key, value)| labels.label(key) != Some(value.as_str()));
    let selected = selected.map(|(key, value)| miss(selected_as(key, value), format!("{key}={value}")));
    let broken = |term: &NodeSelectorTerm| {
        let broken = term.requirements.iter().filter(|one| !rules::matches(one, labels));
        broken.map(|one| miss(one.clone(), one.to_string())).collect::<Vec<_>>()
    };
    let terms = spec.node_affinity.iter().flat_map(|terms| terms.iter());
    let least = terms.filter(|term| !term.requirements.is_empty()).map(broken).min_by_key(Vec::len);
    selected.chain(least.into_iter().flatten()).collect()
}

/// Returns whether the offering has the wanted value of a label, written in another way.
fn is_near_miss(miss: &Miss, labels: &impl Labels) -> bool {
    let Change::Label(Requirement { key, operator: Operator::In(values) }) = &miss.change else {
        return false;
    };
    labels.label(key).is_some_and(|has| values.iter().any(|value| is_near(value, has)))
}

/// Returns the change that lets a pod onto nodes with these taints.
fn toleration(taints: &[&Taint]) -> String {
    let (of_agents, lasting): (Vec<&Taint>, Vec<&Taint>) =
        taints.iter().copied().partition(|taint| rules::is_of_agent(taint));
    let tolerate = match lasting.as_slice() {
        [] => None,
        [taint] => Some(format!("add a toleration of `{taint}`")),
        several => Some(format!("add tolerations of {}", quoted(several))),
    };
    let list = (!of_agents.is_empty()).then(|| {
        let because = if of_agents.len() == 1 { "an agent removes it" } else { "agents remove them" };
        format!(
            "list {} under startupTaints of the pool instead of taints, because {because}",
            quoted(&of_agents)
        )
    });
    tolerate.into_iter().chain(list).collect::<Vec<_>>().join("; and ")
}

/// Returns the requirement of an entry of a node selector.
fn selected_as(key: &str, value: &str) -> Requirement {
    Requirement { key: key.to_owned(), operator: Operator::In([value.to_owned()].into()) }
}

/// The most resources that a change names.
const SHOWN: usize = 4;

fn shortage(requests: &ResourceList, room: &ResourceList) -> u16 {
    let of = |wanted: u64, room: u64| {
        let lacking = u128::from(wanted.saturating_sub(room)) * 1000 / u128::from(wanted.max(1));
        u16::try_from(lacking).unwrap_or(1000)
    };
    requests.iter().map(|(name, wanted)| of(wanted, room.get(name.as_str()))).max().unwrap_or(0)
}

/// Returns the change by the user that would make the rule pass.
fn change(rejection: &Rejection) -> Change {
    Change::Words(match rejection {
        Rejection::Selector { key, wanted, .. } => return Change::Label(selected_as(key, wanted)),
        Rejection::Affinity { requirement: Some(wanted), .. } => return Change::Label(wanted.clone()),
        Rejection::Affinity { requirement: None, .. } => "remove the required nodeAffinity".to_owned(),
        Rejection::Enforced { source, .. } => {
            format!("let a pool buy nodes that meet the scheduler's addedAffinity, or relax that in {source}")
        }
        _ => String::new(),
    })
}

/// Returns a rejection without details of the offering, so that equal rejections can be counted.
fn short(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Selector { key, wanted, .. } => format!("not `{key}={wanted}`"),
        Rejection::Affinity { requirement: Some(requirement), .. } => format!("not `{requirement}`"),
        Rejection::Enforced { requirement: Some(requirement), source, .. } => {
            format!("not `{requirement}`, the scheduler's addedAffinity from {source}")
        }
        other => other.to_string(),
    }
}
