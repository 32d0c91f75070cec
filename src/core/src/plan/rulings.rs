//! What each offering has against a pod: for explanations, one pod at a time.

use jiff::Timestamp;
use poolwright_catalog::{OfferingId, UsdPerHour};

use super::company::Company;
use super::daemons::Daemons;
use super::supply::{self, Standing};
use super::{PlanOptions, gpus, room, volumes};
use crate::model::{Pod, PoolName, Snapshot};
use crate::rules::{self, Rejection};

/// An offering of a pool, and what was found about it for one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidacy {
    /// The pool.
    pub pool: PoolName,
    /// The offering.
    pub offering: OfferingId,
    /// How far it came: the number of rules that did not rule it out.
    pub stage: u8,
    /// What was found.
    pub ruling: Ruling,
}

/// What was found about an offering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// A new node of it could hold the pod alone, at this price; `None` where the price is unknown and the pool allows that.
    Fits(Option<UsdPerHour>),
    /// It is ruled out, and by what.
    Out(String),
}

/// Every offering that meets the requirements of a pool, in the order of pools and catalogues.
pub fn rulings(snapshot: &Snapshot, now: Timestamp, options: &PlanOptions, pod: &Pod) -> Vec<Candidacy> {
    let resolved = volumes::resolve(snapshot);
    let snapshot = resolved.snapshot.as_ref();
    // With what its volumes ask.
    let pod = snapshot.pods.get(&pod.key).map_or(pod, AsRef::as_ref);
    let mut company = Company::new(snapshot);
    let daemons = Daemons::new(snapshot);
    let supply = supply::collect(snapshot, &daemons, &company, &resolved.attachable, options, now);
    let rooms = room::collect(snapshot, &daemons, &company, &resolved.attachable);
    company.set_least(snapshot, &daemons, &rooms, &supply);
    let (requests, _) = gpus::wanted(options.sharing, &supply.mig_models(), &pod.spec);
    let profile = company.of(&pod.key);
    let mut all = Vec::new();
    for (at, offered) in supply.pools.iter().enumerate() {
        let taints = rules::check_taints(&pod.spec.tolerations, &offered.pool.taints);
        for offer in &offered.offers {
            let labels = supply.labels(at, offer.offering);
            let room = &supply.capacities[offer.capacity];
            let out = |words: &dyn ToString| Ruling::Out(words.to_string());
            let (stage, ruling) = if let Err(rejection) = &taints {
                (0, out(&format!("{} of pool {}", short(rejection), offered.pool.name)))
            } else if let Err(rejection) = rules::check_labels(&pod.spec, &labels) {
                (1, out(&short(&rejection)))
            } else if let Err(rejection) = rules::check_resources(&requests, room) {
                (2, out(&short(&rejection)))
            } else if !company.admits(profile, &supply.residents[offer.residents]) {
                (3, out(&"a DaemonSet there that it may not meet"))
            } else {
                match offer.standing {
                    Standing::Priced(price) => (5, Ruling::Fits(Some(price))),
                    Standing::Unpriced => (5, Ruling::Fits(None)),
                    Standing::PriceUnknown => (4, out(&"its price is unknown")),
                    Standing::HeldBack(until) => (4, out(&format!("failed lately, tried again at {until}"))),
                }
            };
            let offering = supply.offering(at, offer.offering).id.clone();
            all.push(Candidacy { pool: offered.pool.name.clone(), offering, stage, ruling });
        }
    }
    all
}

/// A rejection without what differs from offering to offering, so that equal ones can be counted.
fn short(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Taint(taint) => format!("taint `{taint}`"),
        Rejection::Selector { key, wanted, .. } => format!("not `{key}={wanted}`"),
        Rejection::Affinity { requirement: Some(requirement), .. } => format!("not `{requirement}`"),
        Rejection::Resource(shortage) => {
            let wanted = super::words::quantity(&shortage.resource, shortage.wanted);
            format!("less than {wanted} {}", shortage.resource)
        }
        other => other.to_string(),
    }
}
