//! Rulings, for explanations: whether each offering fits a pod, and the reason if it does not.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use poolwright_catalog::{OfferingId, ResourceList, UsdPerHour};

use crate::demand::{profiles, volumes};
use crate::model::PlanOptions;
use crate::model::{PodKey, PodSpec, PoolName, Snapshot};
use crate::plan::place::spread_hosts;
use crate::rules;
use crate::rules::colocation::Colocation;
use crate::rules::{Rejection, gpus};
use crate::supply::daemonsets::DaemonSets;
use crate::supply::offerings::{Availability, Supply};
use crate::supply::{offerings, rooms};

/// The ruling about an offering of a pool, for one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferingRuling {
    /// The pool.
    pub pool: PoolName,
    /// The offering.
    pub offering: OfferingId,
    /// The number of kinds of rules that it meets, in the order taints, labels, resources, colocation, availability.
    pub rules_passed: u8,
    /// The largest shortage of a resource, in thousandths of the request.
    pub shortage: u16,
    /// The change that would make the rule pass; empty if no change of the pod or the pool would help.
    pub remedy: String,
    /// The ruling.
    pub ruling: Ruling,
}

/// Whether an offering fits a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// A new node could hold the pod, at this price; `None` if the price is unknown and the pool allows that.
    Fits(Option<UsdPerHour>),
    /// It is excluded, with the reason.
    Excluded(String),
}

/// Returns, for each pod, the rulings on every offering that meets the requirements of a pool, in the order of pools and
/// catalogues; `None` for pods that do not exist. Equal pods share their rulings.
pub fn rulings(
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    pods: &[&PodKey],
) -> Vec<Option<Rc<[OfferingRuling]>>> {
    let mut ruled = Cow::Borrowed(snapshot);
    profiles::apply(&mut ruled, options);
    let volumes = volumes::resolve(&mut ruled);
    let snapshot = ruled.as_ref();
    let mut colocation = Colocation::new(snapshot);
    let daemons = DaemonSets::new(snapshot);
    let supply = offerings::collect(snapshot, &daemons, &colocation, &volumes.attachable, options, now);
    let rooms = rooms::collect(snapshot, &daemons, &colocation, &volumes.attachable);
    spread_hosts::set_least(&mut colocation, snapshot, &daemons, &rooms, &supply);
    let mut known: BTreeMap<(&PodSpec, usize), Rc<[OfferingRuling]>> = BTreeMap::new();
    let mut of = |key: &PodKey| {
        // This spec includes the requirements of the pod's volumes.
        let (spec, profile) = (&snapshot.pods.get(key)?.spec, colocation.of(key));
        let fresh = || judge(&supply, &colocation, options, spec, profile).into();
        Some(known.entry((spec, profile)).or_insert_with(fresh).clone())
    };
    pods.iter().map(|key| of(key)).collect()
}

fn judge(
    supply: &Supply<'_>,
    colocation: &Colocation<'_>,
    options: &PlanOptions,
    spec: &PodSpec,
    profile: usize,
) -> Vec<OfferingRuling> {
    let (requests, _) = gpus::wanted(options.sharing, &supply.mig_models(), spec);
    let mut all = Vec::new();
    for (at, offered) in supply.pools.iter().enumerate() {
        let pool = &offered.pool.name;
        let taints = rules::check_taints(&spec.tolerations, &offered.pool.taints);
        for offer in &offered.offers {
            let labels = supply.labels(at, offer.offering);
            let room = &supply.capacities[offer.capacity];
            let offering = supply.offering(at, offer.offering).id.clone();
            let mut one = OfferingRuling {
                pool: pool.clone(),
                offering,
                rules_passed: 5,
                shortage: 0,
                remedy: String::new(),
                ruling: Ruling::Fits(None),
            };
            let mut out = |rules_passed: u8, words: String, remedy: String| {
                (one.rules_passed, one.ruling, one.remedy) = (rules_passed, Ruling::Excluded(words), remedy);
            };
            if let Err(rejection) = &taints {
                out(0, format!("{} of pool {pool}", short(rejection)), remedy(rejection));
            } else if let Err(rejection) = rules::check_labels(spec, &labels) {
                out(1, short(&rejection), remedy(&rejection));
            } else if let Err(rejection) = rules::check_resources(&requests, room) {
                out(2, short(&rejection), remedy(&rejection));
                one.shortage = shortage(&requests, room);
            } else if !colocation.admits(profile, &supply.residents[offer.residents]) {
                let words = "a DaemonSet pod that it may not share a node with".to_owned();
                out(3, words, "change that rule, or keep the DaemonSet off some nodes".to_owned());
            } else {
                match offer.availability {
                    Availability::Priced(price) | Availability::Reclaimed(price, _) => {
                        one.ruling = Ruling::Fits(Some(price));
                    }
                    Availability::Unpriced => {}
                    Availability::PriceUnknown => out(
                        4,
                        "its price is unknown".to_owned(),
                        format!(
                            "list it under allowUnknownPrices of pool {pool}, or, if prices come from --catalogue, add its price there"
                        ),
                    ),
                    Availability::HeldBack(until) => {
                        out(4, format!("failed recently, tried again at {until}"), String::new());
                    }
                }
            }
            all.push(one);
        }
    }
    all
}

fn shortage(requests: &ResourceList, room: &ResourceList) -> u16 {
    let of = |wanted: u64, room: u64| {
        let lacking = u128::from(wanted.saturating_sub(room)) * 1000 / u128::from(wanted.max(1));
        u16::try_from(lacking).unwrap_or(1000)
    };
    requests.iter().map(|(name, wanted)| of(wanted, room.get(name.as_str()))).max().unwrap_or(0)
}

/// Returns the change by the user that would make the rule pass.
fn remedy(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Taint(taint) if rules::is_of_agent(taint) => {
            format!(
                "list `{taint}` under startupTaints of the pool instead of taints, because an agent removes it"
            )
        }
        Rejection::Taint(taint) => format!("add a toleration of `{taint}`"),
        Rejection::Selector { key, .. } => {
            format!("remove `{key}` from nodeSelector, or let a pool buy nodes with it")
        }
        Rejection::Affinity { requirement: Some(requirement), .. } => {
            format!("relax nodeAffinity on `{}`, or let a pool buy nodes that meet it", requirement.key)
        }
        Rejection::Affinity { requirement: None, .. } => "remove the required nodeAffinity".to_owned(),
        Rejection::Enforced { source, .. } => {
            format!("let a pool buy nodes that meet the scheduler's addedAffinity, or relax that in {source}")
        }
        Rejection::Resource(shortage) if shortage.available == 0 => {
            format!("let a pool buy nodes with {}", shortage.resource)
        }
        Rejection::Resource(shortage) => {
            let most = crate::rules::format::quantity(&shortage.resource, shortage.available);
            format!("ask for at most {most} {}, or let a pool buy larger nodes", shortage.resource)
        }
        _ => String::new(),
    }
}

/// Returns a rejection without details of the offering, so that equal rejections can be counted.
fn short(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Taint(taint) => format!("taint `{taint}`"),
        Rejection::Selector { key, wanted, .. } => format!("not `{key}={wanted}`"),
        Rejection::Affinity { requirement: Some(requirement), .. } => format!("not `{requirement}`"),
        Rejection::Enforced { requirement: Some(requirement), source, .. } => {
            format!("not `{requirement}`, the scheduler's addedAffinity from {source}")
        }
        Rejection::Resource(shortage) => {
            let wanted = crate::rules::format::quantity(&shortage.resource, shortage.wanted);
            format!("less than {wanted} {}", shortage.resource)
        }
        other => other.to_string(),
    }
}
