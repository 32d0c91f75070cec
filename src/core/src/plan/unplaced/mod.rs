//! Unplaced (unschedulable) pods: finds the rule that blocks them at the closest pool, and the remedy.

pub(crate) mod advised;
pub(crate) mod allowed;
pub(crate) mod beyond;
pub(crate) mod choice;
pub(crate) mod cordoned;
pub(crate) mod few_nodes;
pub(crate) mod fixed;
pub(crate) mod gangs;
pub(crate) mod held_back;
pub(crate) mod inputs;
pub(crate) mod label_hint;
pub(crate) mod labels;
pub(crate) mod left_over;
pub(crate) mod nearest;
pub(crate) mod pools;
pub(crate) mod relaxed;
pub(crate) mod room;
pub(crate) mod unusable;
pub(crate) mod volumes;
pub(crate) mod wants;

use crate::plan::unplaced::fixed::fixed;
pub(crate) use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::plan::unplaced::nearest::nearest;
use crate::plan::unplaced::pools::{may_be_in, unusable};
use crate::plan::unplaced::unusable::{Unusable, closest_unusable};

use poolwright_catalog::{ResourceName, UsdPerHour};

use crate::model::plan::UnplacedReason;
use crate::model::{DaemonSet, Pod, PoolInWords, PoolName};
use crate::plan::gang_takes::HoldingNode;
use crate::plan::left_by::LeftBy;
use crate::plan::pack::classes::PodClass;
use crate::rules;
use crate::rules::Rejection;
use crate::rules::colocation::Colocation;
use crate::rules::gpus::{GpuForm, GpuNeed};
use crate::rules::identity::Identity;
use crate::rules::pin::Pin;
use crate::rules::requests;
use crate::supply::offerings::{Availability, PoolOffering};
use crate::supply::rooms::Rooms;

impl UnplacedInputs<'_, '_> {
    /// Returns the reason why the unplaced pods of a class get no node. `limit` is the limit that left them out, if one did.
    pub fn explain(&self, class: &PodClass<'_>, limit: Option<u32>) -> (UnplacedReason, LeftBy) {
        if let Some(limit) = limit {
            let left_by = if let Some(message) = self.choice_beyond_limits(class) {
                LeftBy::other(message)
            } else {
                let barred = self.barred_unpriced(class).unwrap_or_default();
                self.left_by_limits(class, limit).with(&barred)
            };
            let Some(held) = self.held_back_within_limits(class) else {
                return (UnplacedReason::LimitReached, left_by);
            };
            // Without other pods of the plan, the limits might allow what can be bought now.
            let reason = if self.is_beyond_without_others(class) {
                UnplacedReason::OfferingsHeldBack
            } else {
                UnplacedReason::LimitReached
            };
            return (reason, left_by.after(held));
        }
        let (reason, words) = explain(self, class);
        (reason, LeftBy::other(words))
    }

    /// Returns the nodes that would hold the pods once the advice about their rules on taints and labels is followed. Empty if that is
    /// not all that they are told.
    pub(crate) fn once_rules_change(&self, class: &PodClass<'_>) -> Vec<HoldingNode> {
        pools_meant(self, class).map_or_else(|_| Vec::new(), |wanted| self.after_advice(class, wanted))
    }

    fn may_share(&self, pod: &Pod, set: &DaemonSet) -> Result<(), Rejection> {
        let namespaces = &self.snapshot.namespaces;
        rules::may_share(Identity::of_pod(pod, namespaces), Identity::of_daemonset(set, namespaces))
    }

    /// Returns the price and the uses of limits of each offering that fits the pods and is not sold out.
    fn uses_of_fitting(
        &self,
        class: &PodClass<'_>,
    ) -> impl Iterator<Item = (Option<UsdPerHour>, Vec<(u32, u64)>)> {
        let limits = self.limits;
        self.uses_of_holding(class).filter(move |(_, uses)| limits.has_stock(uses))
    }

    /// Returns the price and the uses of limits of each offering that would hold the pods, also of those that this plan has bought up.
    fn uses_of_holding(
        &self,
        class: &PodClass<'_>,
    ) -> impl Iterator<Item = (Option<UsdPerHour>, Vec<(u32, u64)>)> {
        let supply = self.supply;
        let uses = move |(at, offer): (usize, &PoolOffering)| {
            let price = offer.availability.price();
            self.holds(at, offer, class).then(|| (price, self.uses_of(at, offer.offering, price, class)))
        };
        let pools = supply.pools.iter().enumerate();
        pools.flat_map(|(at, pool)| pool.offers.iter().map(move |offer| (at, offer))).filter_map(uses)
    }

    /// Returns whether GPUs of an offering can be shared or cut as the pods ask for, if they do.
    pub(crate) fn grants(&self, at: usize, offer: &PoolOffering, class: &PodClass<'_>) -> bool {
        let (kind, sharing) = (self.supply.instance_type(at, offer.offering), self.options.sharing);
        class.gpu_need.as_ref().is_none_or(|need| {
            GpuForm::all(sharing, kind).iter().any(|form| form.grants(sharing, kind, Some(need)))
        })
    }

    /// Returns the DaemonSet that excludes the pods from every node that would fit, at the first pool with such nodes.
    fn unwelcome(&self, class: &PodClass<'_>) -> Option<String> {
        let pod = class.pods.first()?;
        for (at, pool) in self.supply.pools.iter().enumerate() {
            let daemons = self.daemons.tolerating(&pool.pool.taints);
            for offer in &pool.offers {
                if !offer.availability.is_sold_in_time()
                    || !self.admissions.admits(at, class.signature, offer.offering)
                    || !class.requests.fits(&self.supply.capacities[offer.capacity])
                {
                    continue;
                }
                let landing = daemons.landing(&self.supply.labels(at, offer.offering));
                for set in daemons.sets(&landing) {
                    if let Err(rejection) = self.may_share(pod, set) {
                        return Some(unwelcome(&rejection, &set.key.to_string(), pool.pool.in_words()));
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

fn unwelcome(rejection: &Rejection, set: &str, pool: PoolInWords<'_>) -> String {
    let of = if pool.is_catalogue() { String::new() } else { format!(" of {pool}") };
    match rejection {
        Rejection::Port(port) => format!(
            "needs host port {port}, which DaemonSet {set} uses on every node{of} that fits it; use another port, or keep the DaemonSet off some nodes"
        ),
        _ => format!(
            "required pod anti-affinity keeps it apart from DaemonSet {set}, which runs on every node{of} that fits it; change the rule, or keep the DaemonSet off some nodes"
        ),
    }
}

fn explain(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>) -> (UnplacedReason, String) {
    match pools_meant(inputs, class) {
        Ok(wanted) => (UnplacedReason::NoOfferingFits, nearest(inputs, class, wanted)),
        Err(told) => told,
    }
}

/// Returns the pools that the pods may be in by their rules on its name, if rules or their size keep them off all pools. Otherwise, the
/// error says what does.
fn pools_meant(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
) -> Result<Vec<usize>, (UnplacedReason, String)> {
    let UnplacedInputs { supply, admissions, colocation, options, .. } = *inputs;
    if supply.pools.is_empty() {
        return Err((UnplacedReason::NoUsablePool, no_pool(inputs, class)));
    }
    if let Some(GpuNeed::Impossible(cause)) = &class.gpu_need {
        let is_gpu =
            |name: &ResourceName| *name == gpu() || name.as_str().starts_with(ResourceName::MIG_PREFIX);
        let origin = requests::in_words(inputs.origins, is_gpu);
        return Err((UnplacedReason::NoOfferingFits, format!("{cause}{origin}")));
    }
    if let Some(cause) = class.gpu_need.as_ref().and_then(|gpu_need| no_gpu(inputs, class, gpu_need)) {
        // If mending a pool helps, nothing else need change.
        let mended = closest_unusable(inputs, class).filter(|pool| pool.would_help() && !pool.is_uncertain);
        return Err((UnplacedReason::NoOfferingFits, mended.map_or(cause, |pool| pool.sentence())));
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
    let lacks_choice = inputs.lacks_choice(class, Availability::is_sold);
    if lacks_choice.is_none() && holding(|availability| availability.is_sold()).is_some() {
        // The solver left the pod unplaced without naming a limit, so nothing more can be bought.
        let message = "offerings fit it, but no more of them can be bought now; it is planned again after the next change";
        return Err((UnplacedReason::LimitReached, message.to_owned()));
    }
    // More choice helps now. Offerings that limits keep away would not give it.
    let held = inputs.held_back(class).filter(|held| lacks_choice.is_none() || held.limits.is_empty());
    if let Some(held) = held {
        let beyond = held.limits.iter().map(|(limit, least)| inputs.limits.sentence(*limit, supply, *least));
        let all: Vec<String> = [held.words("it")].into_iter().chain(beyond).chain(lacks_choice).collect();
        return Err((UnplacedReason::OfferingsHeldBack, all.join("; besides, ")));
    }
    if let Some(message) = inputs.lacks_choice(class, Availability::is_sold_in_time).or(lacks_choice) {
        return Err((UnplacedReason::NoOfferingFits, message));
    }
    if let Some((at, pool, offer)) = holding(|availability| *availability == Availability::PriceUnknown) {
        let (named, kind) = (pool.pool.in_words(), &supply.offering(at, offer.offering).id.instance_type);
        let message = if options.has_set_money_limit(pool.pool) {
            format!(
                "only {kind} of {named} fits it, and its price is unknown, so Poolwright could not keep the limit usdPerHour; remove the limit and list the type under allowUnknownPrices{}, or, if prices come from --catalogue, add its price there",
                if named.is_catalogue() { " of a NodePool" } else { "" }
            )
        } else if named.is_catalogue() {
            format!(
                "only offerings with unknown prices fit it; write a NodePool that lists {kind} under allowUnknownPrices, or, if prices come from --catalogue, add its price there"
            )
        } else {
            format!(
                "only offerings with unknown prices fit it; list {kind} under allowUnknownPrices of {named}, or, if prices come from --catalogue, add its price there"
            )
        };
        return Err((UnplacedReason::PriceUnknown, message));
    }
    if let Some(message) = inputs.unwelcome(class) {
        return Err((UnplacedReason::NoOfferingFits, message));
    }
    let wanted: Vec<usize> =
        (0..supply.pools.len()).filter(|at| may_be_in(class.spec, &supply.pools[*at].pool.name)).collect();
    if wanted.is_empty()
        && let Some(problem) = unusable_for(inputs, class, |name| may_be_in(class.spec, name))
    {
        return Err((UnplacedReason::NoUsablePool, problem));
    }
    Ok(wanted)
}

fn gpu() -> ResourceName {
    ResourceName::new(ResourceName::NVIDIA_GPU)
}

/// Returns the message if no GPU can be shared or partitioned as requested; `None` if one can.
fn no_gpu(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, gpu_need: &GpuNeed) -> Option<String> {
    let UnplacedInputs { supply, admissions, .. } = *inputs;
    for (at, pool) in supply.pools.iter().enumerate() {
        let mut offers = pool.offers.iter();
        if offers.any(|offer| {
            admissions.admits(at, class.signature, offer.offering) && inputs.grants(at, offer, class)
        }) {
            return None;
        }
    }
    let lack = match gpu_need {
        GpuNeed::Whole(count) => {
            let origin = inputs.origin(&gpu());
            format!(
                "needs {count} whole GPUs{origin} in one node, but no offering that it may use has that many"
            )
        }
        GpuNeed::Share(milli) => {
            format!("needs {milli} thousandths of a GPU, but no offering that it may use has GPUs to share")
        }
        GpuNeed::Part { milli, .. } => format!(
            "needs {milli} thousandths of a GPU, but no GPU that it may use can be cut into instances of that size"
        ),
        GpuNeed::Named { resource, count, .. } => format!(
            "needs {count} x {resource}{} on one node, but no node that it may use can be cut into that many",
            inputs.origin(resource)
        ),
        GpuNeed::Impossible(cause) => cause.clone(),
    };
    Some(lack + &widening(inputs, class))
}

/// Names the instance type that would hold the pods if the requirements of a pool allowed it, and the limits that would keep it away;
/// empty if there is none.
fn widening(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>) -> String {
    let mut pools = inputs.supply.pools.iter().enumerate();
    let wider = pools.find_map(|(at, pool)| Some((at, pool.pool, inputs.wider_with_labels(at, class)?)));
    wider.map_or_else(String::new, |(at, pool, kind)| {
        let change = format!("; widen the requirements of pool `{}` so that it may buy {kind}", pool.name);
        let beyond = inputs.beyond_of(at, kind, class).into_iter();
        let limits = beyond.map(|(limit, least)| inputs.limits.sentence(limit, inputs.supply, least));
        [change].into_iter().chain(limits).collect::<Vec<_>>().join("; besides, ")
    })
}

fn no_pool(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>) -> String {
    unusable_for(inputs, class, |_| true).or_else(|| fixed(inputs, class)).unwrap_or_else(|| {
        if inputs.snapshot.pools.is_empty() {
            "no NodePool exists; create one".to_owned()
        } else {
            "every NodePool is being deleted; create another".to_owned()
        }
    })
}

/// Describes the pool that cannot be used now and comes closest to holding the pods, or else the first that is meant.
fn unusable_for(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    is_meant: impl Fn(&PoolName) -> bool,
) -> Option<String> {
    let closest = closest_unusable(inputs, class).as_ref().map(Unusable::sentence);
    closest.or_else(|| unusable(inputs.supply, is_meant))
}
