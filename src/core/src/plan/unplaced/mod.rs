//! Unplaced (unschedulable) pods: finds the rule that blocks them at the closest pool, and the remedy.

pub(crate) mod choice;
pub(crate) mod inputs;
pub(crate) mod left_over;
pub(crate) mod volumes;

pub(crate) use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::plan::unplaced::inputs::list;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::ResourceName;

use crate::model::Sharing;
use crate::model::plan::UnplacedReason;
use crate::model::{DaemonSet, NodeSelectorTerm, Operator, Pod, PodSpec, PoolName, Requirement, Snapshot};
use crate::plan::pack::classes::PodClass;
use crate::rules;
use crate::rules::colocation::Colocation;
use crate::rules::gpus::{GpuForm, GpuNeed, MIG_PREFIX};
use crate::rules::identity::Identity;
use crate::rules::labels::Labels;
use crate::rules::pin::Pin;
use crate::rules::{Rejection, format};
use crate::supply::offerings::{Admissions, Availability, PoolOffering, PoolSupply, Supply};
use crate::supply::rooms::Rooms;

impl UnplacedInputs<'_, '_> {
    /// Returns the reason why the unplaced pods of a class get no node, with a message.
    pub fn explain(&self, class: &PodClass<'_>, limit: Option<u32>) -> (UnplacedReason, String) {
        explain(self, class, limit)
    }

    fn may_share(&self, pod: &Pod, set: &DaemonSet) -> Result<(), Rejection> {
        let namespaces = &self.snapshot.namespaces;
        rules::may_share(Identity::of_pod(pod, namespaces), Identity::of_daemonset(set, namespaces))
    }

    /// Returns the DaemonSet that excludes the pods from every node that would fit, at the first pool with such nodes.
    fn unwelcome(&self, class: &PodClass<'_>) -> Option<String> {
        let pod = class.pods.first()?;
        for (at, pool) in self.supply.pools.iter().enumerate() {
            let daemons = self.daemons.tolerating(&pool.pool.taints);
            for offer in &pool.offers {
                if !offer.availability.is_sold()
                    || !self.admissions.admits(at, class.signature, offer.offering)
                    || !class.requests.fits(&self.supply.capacities[offer.capacity])
                {
                    continue;
                }
                let landing = daemons.landing(&self.supply.labels(at, offer.offering));
                for set in daemons.sets(&landing) {
                    if let Err(rejection) = self.may_share(pod, set) {
                        return Some(unwelcome(&rejection, &set.key.to_string(), &pool.pool.name));
                    }
                }
            }
        }
        None
    }
}

/// Describes the first node that would fit pods of a class without rules about other pods, and the rule.
pub(crate) fn kept_off(
    class: &PodClass<'_>,
    pin: &Pin,
    rooms: &Rooms<'_>,
    colocation: &Colocation<'_>,
) -> Option<String> {
    if class.profile == 0 && pin.is_empty() {
        return None;
    }
    rooms.all.iter().find_map(|room| {
        if !class.on_whole().fits(&room.free)
            || rules::admits(class.spec, &room.labels, &room.taints).is_err()
        {
            return None;
        }
        let why = if pin.iter().all(|wanted| rules::matches(wanted, &room.labels)) {
            colocation.keeps_off(class.profile, &room.present)?
        } else {
            "topology spread or pod affinity, its own or another pod's, keeps it away"
        };
        Some(format!("{} has room for it, but {why}", room.target))
    })
}

fn unwelcome(rejection: &Rejection, set: &str, pool: &PoolName) -> String {
    match rejection {
        Rejection::Port(port) => format!(
            "needs host port {port}, which DaemonSet {set} uses on every node of pool `{pool}` that fits it; use another port, or keep the DaemonSet off some nodes"
        ),
        _ => format!(
            "required pod anti-affinity keeps it apart from DaemonSet {set}, which runs on every node of pool `{pool}` that fits it; change the rule, or keep the DaemonSet off some nodes"
        ),
    }
}

fn explain(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    limit: Option<u32>,
) -> (UnplacedReason, String) {
    let UnplacedInputs { snapshot, supply, admissions, limits, colocation, sharing, .. } = *inputs;
    if let Some(limit) = limit {
        return (UnplacedReason::LimitReached, limits.sentence(limit, supply));
    }
    if supply.pools.is_empty() {
        return (UnplacedReason::NoUsablePool, no_pool(supply, snapshot));
    }
    if let Some(GpuNeed::Impossible(cause)) = &class.gpu_need {
        return (UnplacedReason::NoOfferingFits, cause.clone());
    }
    if let Some(cause) = class.gpu_need.as_ref().and_then(|_| no_gpu(class, supply, admissions, sharing)) {
        return (UnplacedReason::NoOfferingFits, cause);
    }
    let holding = |availability: fn(&Availability) -> bool| {
        supply.pools.iter().enumerate().find_map(|(at, pool)| {
            let holds = |offer: &&PoolOffering| {
                availability(&offer.availability)
                    && admissions.admits(at, class.signature, offer.offering)
                    && class.requests.fits(&supply.capacities[offer.capacity])
                    && colocation.admits(class.profile, &supply.residents[offer.residents])
            };
            pool.offers.iter().find(holds).map(|offer| (at, pool, *offer))
        })
    };
    if let Some(message) = inputs.lacks_choice(class) {
        return (UnplacedReason::NoOfferingFits, message);
    }
    if holding(|availability| availability.is_sold()).is_some() {
        // The solver left the pod unplaced without naming a limit, so nothing more can be bought.
        let message = "offerings fit it, but no more of them can be bought now; it is planned again after the next change";
        return (UnplacedReason::LimitReached, message.to_owned());
    }
    if let Some((at, pool, _)) = holding(|availability| matches!(availability, Availability::HeldBack(_))) {
        return (UnplacedReason::OfferingsHeldBack, held_back(class, at, pool, supply, admissions));
    }
    if let Some((at, pool, offer)) = holding(|availability| *availability == Availability::PriceUnknown) {
        let id = &supply.offering(at, offer.offering).id;
        let message = if limits.on_money(at) {
            format!(
                "only {} of pool `{}` fits it, and its price is unknown, so Poolwright could not keep the limit usdPerHour; remove the limit and list the type under allowUnknownPrices, or, if prices come from --catalogue, add its price there",
                id.instance_type, pool.pool.name
            )
        } else {
            format!(
                "only offerings with unknown prices fit it; list {} under allowUnknownPrices of pool `{}`, or, if prices come from --catalogue, add its price there",
                id.instance_type, pool.pool.name
            )
        };
        return (UnplacedReason::PriceUnknown, message);
    }
    if let Some(message) = inputs.unwelcome(class) {
        return (UnplacedReason::NoOfferingFits, message);
    }
    let wanted: Vec<usize> =
        (0..supply.pools.len()).filter(|at| may_be_in(class.spec, &supply.pools[*at].pool.name)).collect();
    if wanted.is_empty()
        && let Some(problem) = unusable(supply, |name| may_be_in(class.spec, name))
    {
        return (UnplacedReason::NoUsablePool, problem);
    }
    (UnplacedReason::NoOfferingFits, nearest(inputs, class, wanted))
}

/// Returns the message if no GPU can be shared or partitioned as requested; `None` if one can.
fn no_gpu(
    class: &PodClass<'_>,
    supply: &Supply<'_>,
    admissions: &Admissions,
    sharing: Sharing,
) -> Option<String> {
    let gpu_need = class.gpu_need.as_ref()?;
    for (at, pool) in supply.pools.iter().enumerate() {
        for offer in pool.offers.iter().filter(|offer| admissions.admits(at, class.signature, offer.offering))
        {
            let kind = supply.instance_type(at, offer.offering);
            if GpuForm::all(sharing, kind).iter().any(|form| form.grants(sharing, kind, Some(gpu_need))) {
                return None;
            }
        }
    }
    Some(match gpu_need {
        GpuNeed::Whole(count) => {
            format!("needs {count} whole GPUs in one node, but no offering that it may use has that many")
        }
        GpuNeed::Share(milli) => {
            format!("needs {milli} thousandths of a GPU, but no offering that it may use has GPUs to share")
        }
        GpuNeed::Part { milli, .. } => format!(
            "needs {milli} thousandths of a GPU, but no GPU that it may use can be cut into instances of that size"
        ),
        GpuNeed::Named { resource, count, .. } => format!(
            "needs {count} x {resource} on one node, but no node that it may use can be cut into that many"
        ),
        GpuNeed::Impossible(cause) => cause.clone(),
    })
}

fn no_pool(supply: &Supply<'_>, snapshot: &Snapshot) -> String {
    unusable(supply, |_| true).unwrap_or_else(|| {
        if snapshot.pools.is_empty() {
            "no NodePool exists; create one".to_owned()
        } else {
            "every NodePool is being deleted; create another".to_owned()
        }
    })
}

/// Returns the problem of the first unusable pool.
fn unusable(supply: &Supply<'_>, is_meant: impl Fn(&PoolName) -> bool) -> Option<String> {
    supply.findings.iter().filter(|(name, _)| is_meant(name)).find_map(|(name, findings)| {
        let (_, message) = findings.node_class.as_ref().or(findings.invalid.as_ref())?;
        Some(format!("pool `{name}` cannot be used: {message}"))
    })
}

/// Returns whether the pod's rules on the pool label allow this pool. Users of several pools name the pool that they mean, and a
/// message about another pool would mislead them.
fn may_be_in(spec: &PodSpec, pool: &PoolName) -> bool {
    let meets = |requirement: &Requirement| match &requirement.operator {
        Operator::In(names) => names.contains(&pool.0),
        Operator::NotIn(names) => !names.contains(&pool.0),
        Operator::DoesNotExist => false,
        _ => true,
    };
    let in_term = |term: &NodeSelectorTerm| {
        term.requirements.iter().filter(|requirement| requirement.key == NODEPOOL_LABEL).all(meets)
    };
    spec.node_selector.get(NODEPOOL_LABEL).is_none_or(|name| *name == pool.0)
        && spec.node_affinity.as_ref().is_none_or(|terms| terms.iter().any(in_term))
}

fn held_back(
    class: &PodClass<'_>,
    at: usize,
    pool: &PoolSupply<'_>,
    supply: &Supply<'_>,
    admissions: &Admissions,
) -> String {
    let mut held = BTreeMap::new();
    for offer in &pool.offers {
        if let Availability::HeldBack(until) = offer.availability
            && admissions.admits(at, class.signature, offer.offering)
            && class.requests.fits(&supply.capacities[offer.capacity])
        {
            held.insert(&supply.offering(at, offer.offering).id, until);
        }
    }
    let soonest = held
        .values()
        .min()
        .map_or_else(String::new, |until| format!("; the first is tried again at {until}"));
    format!(
        "the offerings of pool `{}` that fit it failed recently ({}){soonest}",
        pool.pool.name,
        list(held.keys().map(ToString::to_string))
    )
}

/// Describes the closest pool and the rule that blocks the pods there. Only the wanted pools count, or all pools if none is
/// wanted.
fn nearest(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, mut wanted: Vec<usize>) -> String {
    let UnplacedInputs { supply, admissions, .. } = *inputs;
    if wanted.is_empty() {
        wanted.extend(0..supply.pools.len());
    }
    // The first stage at which each pool fails: taints, labels or capacity.
    let stage = |at: usize| {
        if !admissions.tolerated(at, class.signature) {
            0
        } else if supply.pools[at].offers.iter().all(|o| !admissions.admits(at, class.signature, o.offering))
        {
            1
        } else {
            2
        }
    };
    // The pool that the fewest things keep from fitting is the closest. Of equal ones, it is the one that fails last, then the one
    // with the highest weight, then the first.
    let furthest = wanted.into_iter().max_by_key(|at| {
        (Reverse(misses(inputs, class, *at)), stage(*at), supply.pools[*at].pool.weight, Reverse(*at))
    });
    let Some(at) = furthest else { return "no NodePool exists; create one".to_owned() };
    let pool = &supply.pools[at];
    match stage(at) {
        0 => match rules::check_taints(&class.spec.tolerations, &pool.pool.taints) {
            Err(Rejection::Taint(taint)) => format!(
                "does not tolerate taint `{taint}` of pool `{}`; add a toleration, or a pool without the taint",
                pool.pool.name
            ),
            _ => format!("pool `{}` does not admit it", pool.pool.name),
        },
        1 => volumes::miss(inputs, class, at)
            .or_else(|| enforced_miss(class.spec, at, supply))
            .unwrap_or_else(|| labels_miss(class.spec, at, supply)),
        _ => room_miss(inputs, class, at),
    }
}

/// Returns how much keeps the pods off a pool: taints, labels and capacity count one each, and a resource that none of its offerings
/// has counts two, because such a pool is made for other pods.
fn misses(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, at: usize) -> usize {
    let UnplacedInputs { supply, admissions, .. } = *inputs;
    let pool = &supply.pools[at];
    let taints = usize::from(!admissions.tolerated(at, class.signature));
    let matches = |offer: &PoolOffering| admissions.admits(at, class.signature, offer.offering);
    let labels = usize::from(!pool.offers.iter().any(matches));
    let room = |offer: &PoolOffering| &supply.capacities[offer.capacity];
    let capacity = usize::from(!pool.offers.iter().any(|offer| class.requests.fits(room(offer))));
    let lacks = |name: &ResourceName| pool.offers.iter().all(|offer| room(offer).get(name.as_str()) == 0);
    let foreign = class.requests.iter().filter(|(name, wanted)| *wanted > 0 && lacks(name)).count();
    taints + labels + capacity + 2 * foreign
}

/// Returns the message if the pods' own rules match, but the affinity that their scheduler adds does not.
fn enforced_miss(spec: &PodSpec, at: usize, supply: &Supply<'_>) -> Option<String> {
    let enforced = spec.enforced.as_deref()?;
    let pool = &supply.pools[at];
    let own =
        |offer: &&PoolOffering| rules::check_own_labels(spec, &supply.labels(at, offer.offering)).is_ok();
    let mut rejections = pool
        .offers
        .iter()
        .filter(own)
        .map(|offer| rules::check_enforced(Some(enforced), &supply.labels(at, offer.offering)).err());
    let first = rejections.next()??;
    if rejections.any(|rejection| rejection.is_none()) {
        return None;
    }
    let (name, source) = (&pool.pool.name, &enforced.source);
    let Rejection::Enforced { requirement: Some(wanted), .. } = first else {
        return Some(format!(
            "the scheduler's addedAffinity ({source}) matches no node at all; correct it there"
        ));
    };
    Some(format!(
        "the scheduler's addedAffinity ({source}) allows only nodes with `{wanted}`, but no offering of pool `{name}` that it may use has that; widen the pool's requirements, or add the label to spec.template.metadata.labels if its nodes will have it"
    ))
}

/// The requirements of a pod on one label.
struct Want<'a> {
    key: &'a str,
    words: String,
    requirement: Requirement,
}

fn wants(spec: &PodSpec) -> Vec<Vec<Want<'_>>> {
    let selected = |key: &str, value: &String| Requirement {
        key: key.to_owned(),
        operator: Operator::In([value.clone()].into()),
    };
    let selector = || {
        spec.node_selector.iter().map(|(key, value)| Want {
            key: key.as_str(),
            words: value.clone(),
            requirement: selected(key, value),
        })
    };
    match &spec.node_affinity {
        None => vec![selector().collect()],
        Some(terms) => terms
            .iter()
            .filter(|term| !term.requirements.is_empty())
            .map(|term| {
                let own = term.requirements.iter().map(|requirement| Want {
                    key: &requirement.key,
                    words: match &requirement.operator {
                        Operator::In(values) => list(values.iter().cloned()),
                        operator => operator.to_string(),
                    },
                    requirement: requirement.clone(),
                });
                selector().chain(own).collect()
            })
            .collect(),
    }
}

fn labels_miss(spec: &PodSpec, at: usize, supply: &Supply<'_>) -> String {
    let pool = &supply.pools[at];
    let name = &pool.pool.name;
    let alternatives = wants(spec);
    let Some(first) = alternatives.first() else {
        return "has a required node affinity without terms, which matches no node; remove it".to_owned();
    };
    let met = |want: &Want<'_>| {
        pool.offers.iter().any(|offer| rules::matches(&want.requirement, &supply.labels(at, offer.offering)))
    };
    let Some(want) = first.iter().find(|want| !met(want)) else {
        return none_has(name, first);
    };
    if want.key == rules::NODE_NAME_FIELD || want.key == labels::HOSTNAME {
        return format!(
            "selects a node by its name ({}), but nobody knows the name of a new node in advance; select nodes by another label",
            want.words
        );
    }
    let has: BTreeSet<String> = pool
        .offers
        .iter()
        .filter_map(|offer| supply.labels(at, offer.offering).label(want.key).map(str::to_owned))
        .collect();
    let gpus = spec.requests.get(ResourceName::NVIDIA_GPU) + u64::from(spec.gpu_share.is_some());
    if want.key == labels::GPU_MODEL && gpus > 0 {
        let allowed = if has.is_empty() { "no GPUs".to_owned() } else { format!("only {}", list(has)) };
        return format!("needs {gpus} x {} in one node; pool `{name}` allows {allowed}", want.words);
    }
    if has.is_empty() {
        let hint = if labels::DECIDED_BY_OFFERING.contains(&want.key) {
            "widen the pool's requirements"
        } else {
            "add it to spec.template.metadata.labels if its nodes will have it"
        };
        return format!(
            "wants label `{}` ({}); nodes of pool `{name}` do not have it: {hint}",
            want.key, want.words
        );
    }
    format!("wants `{}` {}; pool `{name}` has only {}", want.key, want.words, list(has))
}

fn room_miss(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, at: usize) -> String {
    let UnplacedInputs { snapshot, supply, admissions, sharing, .. } = *inputs;
    let pool = &supply.pools[at];
    let name = &pool.pool.name;
    let admitted: Vec<&PoolOffering> =
        pool.offers.iter().filter(|offer| admissions.admits(at, class.signature, offer.offering)).collect();
    let requests = &class.requests;
    let most = |resource: &ResourceName| {
        admitted
            .iter()
            .max_by_key(|offer| {
                (supply.capacities[offer.capacity].get(resource.as_str()), Reverse(offer.offering))
            })
            .map(|offer| {
                let room = supply.capacities[offer.capacity].get(resource.as_str());
                (room, &supply.offering(at, offer.offering).id.instance_type)
            })
    };
    // Extended resources come first, because people think of them first.
    let mut names: Vec<(&ResourceName, u64)> = requests.iter().collect();
    names.sort_by_key(|(name, _)| !format::is_extended(name));
    for (resource, wanted) in names {
        let Some((room, kind)) = most(resource) else { continue };
        if wanted <= room {
            continue;
        }
        let wanted = format::quantity(resource, wanted);
        if room == 0 {
            let is_sold = snapshot.catalogues.values().flatten().any(|catalogue| {
                catalogue.types().values().any(|kind| kind.allocatable.get(resource.as_str()) > 0)
            });
            let remedy = if resource.as_str().starts_with(MIG_PREFIX) && sharing == Sharing::Whole {
                "GPUs are bought whole here; `poolwright plan --sharing mig` plans GPUs that are cut into such instances"
            } else if is_sold {
                "widen the pool's requirements"
            } else {
                "no instance type in the catalogue has it, so no node can be bought for it"
            };
            return format!(
                "needs {wanted} {resource}, which no offering of pool `{name}` has for it; {remedy}"
            );
        }
        return format!(
            "needs {wanted} {resource} in one node; the largest offering of pool `{name}` for it, {kind}, has {}",
            format::quantity(resource, room)
        );
    }
    // Each resource alone fits some offering. The message names the offering with the fewest missing resources.
    let short = |offer: &PoolOffering| {
        let room = &supply.capacities[offer.capacity];
        requests.iter().filter(|(name, wanted)| *wanted > room.get(name.as_str())).count()
    };
    let closest = admitted.iter().min_by_key(|offer| (short(offer), offer.offering));
    let Some(offer) = closest else { return format!("pool `{name}` has no offering for it") };
    let kind = &supply.offering(at, offer.offering).id.instance_type;
    match requests.first_shortage(&supply.capacities[offer.capacity]) {
        Some(shortage) => format!(
            "no offering of pool `{name}` fits all of {}; the nearest is {kind}, which has {} {} of {}",
            format::gist(requests),
            format::quantity(&shortage.resource, shortage.available),
            shortage.resource,
            format::quantity(&shortage.resource, shortage.wanted)
        ),
        None => format!("offerings of pool `{name}` fit it, but none may be bought now"),
    }
}

/// Returns the message for a pool that has offerings for each requirement, but no offering for all of them.
fn none_has(pool: &PoolName, wanted: &[Want<'_>]) -> String {
    if wanted.is_empty() {
        // The pod has no requirements itself, so rules about other pods are the reason.
        return format!(
            "its rules about other pods leave it places, but no offering of pool `{pool}` that it may use is in one of them; let the pool buy there, or change those rules"
        );
    }
    let all: Vec<String> = wanted.iter().map(|want| format!("`{} {}`", want.key, want.words)).collect();
    format!("no single offering of pool `{pool}` has all of {}; relax one of them", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_asks_for_no_label_is_not_told_to_relax_one() {
        let pool = PoolName("gpu".to_owned());
        let nothing = none_has(&pool, &[]);
        assert!(nothing.contains("rules about other pods") && !nothing.contains("has all of"), "{nothing}");
        let spec =
            PodSpec { node_selector: [("team".to_owned(), "ml".to_owned())].into(), ..PodSpec::default() };
        let one = none_has(&pool, &wants(&spec)[0]);
        assert!(one.contains("has all of `team ml`"), "{one}");
    }
}
