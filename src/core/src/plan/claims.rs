//! Creates claims for planned nodes, with alternatives, names and reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::{InstanceTypeName, OfferingId, RankedOffering, ResourceList, UsdPerHour};

use crate::model::Reclaims;
use crate::model::plan::{LabelChoice, PlannedClaim};
use crate::model::{ClaimName, CountOrPercent, OwnerKey, PodKey, Pool, PoolInWords, Snapshot, SpotRules};
use crate::plan::PlanOptions;
use crate::plan::listing::{Listed, in_words};
use crate::plan::pack::classes::PodClasses;
use crate::plan::pack::solves::packing::NewNode;
use crate::rules::colocation::Colocation;
use crate::rules::format;
use crate::rules::gpus::{GpuForm, GpuNeed};
use crate::supply::interruption_risk::Losses;
use crate::supply::limits::Limits;
use crate::supply::offerings::{Admissions, Availability, PoolOffering, Supply};
use crate::supply::spot_mix::{SpotMix, is_spot};
use crate::supply::{flexibility, interruption_backoff, interruption_risk};

/// Builds claims.
pub(crate) struct ClaimBuilder<'s, 'a> {
    pub snapshot: &'s Snapshot,
    pub supply: &'s Supply<'a>,
    pub admissions: &'s Admissions,
    pub classes: &'s PodClasses<'a>,
    pub colocation: &'s Colocation<'a>,
    pub limits: &'s Limits,
    pub losses: &'s Losses,
    /// The nodes of each pool with rules on spot nodes, by index of the pool.
    pub spot_mixes: &'s BTreeMap<usize, SpotMix>,
    pub options: &'s PlanOptions,
    /// Pods that lost their place on a node that still exists.
    pub displaced: BTreeSet<&'s PodKey>,
    pub now: Timestamp,
}

/// The pool, offering, form and content of a node, and its loss by an interruption. Equal nodes get equal lists of offerings.
type Like<'n> = (usize, usize, GpuForm, &'n BTreeMap<usize, u32>, u64);

/// A cheaper offering for the same pods that was avoided because the cloud reclaims its instances.
struct Avoided<'s> {
    id: &'s OfferingId,
    price: UsdPerHour,
    reclaims: Reclaims,
}

/// An offering for the same pods at no higher price that was avoided because it is interrupted more often.
struct Riskier<'s> {
    id: &'s OfferingId,
    price: UsdPerHour,
    risk: UsdPerHour,
}

/// The cheapest alternative of another instance type.
struct Second<'s> {
    counted: UsdPerHour,
    price: UsdPerHour,
    name: &'s InstanceTypeName,
}

/// The offerings and the reason (the sentence of [`PlannedClaim::reason`]), shared by equal nodes.
#[derive(Clone)]
struct Order {
    offerings: Vec<RankedOffering>,
    together: usize,
    choice: Vec<LabelChoice>,
    reason: String,
    /// The amount of each limit that an alternative uses beyond the planned node.
    more: BTreeMap<u32, u64>,
}

/// The claims for planned nodes, and the nodes that are not bought.
#[derive(Debug, Default)]
pub(crate) struct MadeClaims {
    /// Sorted by name.
    pub claims: Vec<PlannedClaim>,
    pub refused: Vec<RefusedNode>,
    /// The amount of each limit that the choice of launches uses beyond what the planned nodes count with.
    pub more: BTreeMap<u32, u64>,
}

/// A node that is not bought, because its claim would not leave the choice that `minValues` asks for, or because too few on-demand
/// nodes of its pool are left without such nodes.
#[derive(Debug)]
pub(crate) struct RefusedNode {
    pub pods: Vec<PodKey>,
    /// The reason.
    pub message: String,
    /// The index of its pool in the supply, and of its offering.
    pub offering: (usize, usize),
    /// The amount of each limit that it would have used.
    pub uses: BTreeMap<u32, u64>,
}

impl ClaimBuilder<'_, '_> {
    /// Returns one claim for each node.
    pub fn claims(&self, nodes: &[NewNode<'_>]) -> MadeClaims {
        let mut orders: BTreeMap<Like<'_>, Order> = BTreeMap::new();
        let mut names = ClaimNames::new(self.options, self.snapshot, self.now);
        let mut claims = Vec::with_capacity(nodes.len());
        let mut refused = Vec::new();
        let mut beyond: BTreeMap<u32, u64> = BTreeMap::new();
        // What the planned nodes leave of each limit.
        let mut spare: Vec<u64> = self.limits.all.iter().map(|limit| limit.left).collect();
        // Nodes that must leave the cloud a choice come first, because without it they are not bought.
        let must_leave_choice = |node: &NewNode<'_>| {
            flexibility::applies(self.supply.pools[node.pool].pool, self.id(node, &node.offer))
        };
        let mut in_turn: Vec<(usize, &NewNode<'_>)> = nodes.iter().enumerate().collect();
        // On-demand nodes come before the spot nodes that a floor allows only with them.
        in_turn.sort_by_key(|(_, node)| (self.floor_of(node).is_some(), !must_leave_choice(node)));
        let mut mixes = self.spot_mixes.clone();
        for (index, node) in in_turn {
            let lost = self.losses.together(self.options, node.pods.iter().copied());
            let key = (node.pool, node.offer.offering, node.form, &node.content, lost);
            // The node itself may use what was kept for its choice.
            let uses = self.uses(node, &node.offer);
            let kept = node.uses.iter().map(|(limit, counted)| {
                (*limit, counted.saturating_sub(uses.get(limit).copied().unwrap_or(0)))
            });
            let kept: BTreeMap<u32, u64> = kept.collect();
            for (limit, amount) in &kept {
                let left = &mut spare[*limit as usize];
                *left = left.saturating_add(*amount);
            }
            let is_within =
                |order: &&Order| order.more.iter().all(|(limit, more)| *more <= spare[*limit as usize]);
            let order = match orders.get(&key).filter(is_within) {
                Some(order) => Ok(order.clone()),
                None => self.order(node, lost, &spare),
            };
            let pool = self.supply.pools[node.pool].pool;
            let lacks = |floor| mixes.get(&node.pool).is_some_and(|mix| mix.lacks(floor) > 0);
            let order = match self.floor_of(node).filter(|floor| lacks(*floor)) {
                Some(floor) => Err(below_floor(pool, floor)),
                None => order,
            };
            let mut planned_pods: Vec<PodKey> = node.pods.iter().map(|pod| pod.key.clone()).collect();
            planned_pods.sort();
            let order = match order {
                Ok(order) => order,
                Err(why) => {
                    let offering = (node.pool, node.offer.offering);
                    let uses = node.uses.iter().copied().collect();
                    refused.push(RefusedNode { pods: planned_pods, message: why, offering, uses });
                    continue;
                }
            };
            if let Some(mix) = mixes.get_mut(&node.pool) {
                mix.add(self.id(node, &node.offer), 1);
            }
            for (limit, more) in &order.more {
                spare[*limit as usize] -= more;
                if must_leave_choice(node) {
                    let kept = kept.get(limit).copied().unwrap_or(0);
                    *beyond.entry(*limit).or_default() += more.saturating_sub(kept);
                }
            }
            orders.insert(key, order.clone());
            let name = names.next(&pool.name.0, &planned_pods, &order.offerings[0].offering, index);
            let expects = kept_in_words(&planned_pods);
            let expects = expects.map(|words| format!("it keeps room for {words}"));
            let buffered = buffered_in_words(&planned_pods);
            let reason: Vec<String> = [Some(order.reason), expects, buffered].into_iter().flatten().collect();
            claims.push(PlannedClaim {
                name,
                pool: pool.name.clone(),
                pool_uid: pool.uid.clone(),
                node_class: pool.node_class.clone(),
                offerings: order.offerings,
                together: order.together,
                choice: order.choice,
                labels: pool.labels.clone(),
                annotations: pool.annotations.clone(),
                taints: pool.taints.clone(),
                startup_taints: pool.startup_taints.clone(),
                readiness_gates: pool.readiness_gates.clone(),
                bought_again: planned_pods
                    .iter()
                    .filter(|pod| self.displaced.contains(pod))
                    .cloned()
                    .collect(),
                planned_pods,
                deadlines: pool.deadlines,
                gpus: node.gpus.clone(),
                reason: reason.join("; "),
            });
        }
        claims.sort_by(|a, b| a.name.cmp(&b.name));
        MadeClaims { claims, refused, more: beyond }
    }

    /// Returns the offerings for a node, and the reason for the choice. Alternatives fit the same pods, cost little more, and use no
    /// more of a limit than the node and what the limit has to `spare`. They are sorted by price. More of them are listed if
    /// `minValues` of the pool asks for it. The node would have `lost` so many micro-dollars by an interruption.
    ///
    /// # Errors
    /// A sentence if `minValues` cannot be met.
    fn order(&self, node: &NewNode<'_>, lost: u64, spare: &[u64]) -> Result<Order, String> {
        // The requests for messages, and the requests without shared and partitioned GPUs.
        let mut stated = ResourceList::new();
        let mut requests = ResourceList::new();
        let mut pods = 0;
        for (class, count) in &node.content {
            let class = &self.classes.classes[*class];
            for (sum, one) in [(&mut stated, class.on_whole()), (&mut requests, &class.requests)] {
                for (name, amount) in one.iter() {
                    let all = amount.saturating_mul(u64::from(*count));
                    sum.set(name.clone(), sum.get(name.as_str()).saturating_add(all));
                }
            }
            pods += *count as usize * (1 + class.with.len());
        }
        let risk = |offer: &PoolOffering| {
            interruption_risk::of_node(self.options, self.supply.offering(node.pool, offer.offering), lost)
        };
        // The price for comparisons. Limits use the real price.
        let counted = |offer: &PoolOffering| offer.availability.weighed().map(|price| price + risk(offer));
        let planned_counts = counted(&node.offer);
        let planned_id = self.id(node, &node.offer);
        let planned_type = &planned_id.instance_type;
        // With `minValues`, the solver chose the capacity type, because another one may leave too little choice.
        let is_for_any_type = !flexibility::applies(self.supply.pools[node.pool].pool, planned_id);
        let may_lead = |id: &OfferingId| is_for_any_type || id.capacity_type == planned_id.capacity_type;
        let ceiling = self.uses(node, &node.offer);
        // The sort key is (less preferred, counted price, other type, id), so the planned type comes first among equals.
        let mut others: Vec<(bool, Option<UsdPerHour>, bool, &OfferingId, &PoolOffering)> = Vec::new();
        let preferred = self.preferred(node);
        let mut second: Option<Second<'_>> = None;
        let mut avoided: Option<Avoided<'_>> = None;
        let mut riskier: Option<Riskier<'_>> = None;
        // The solver left cheaper spot offerings their share.
        let spreads = is_spot(planned_id) && self.supply.pools[node.pool].pool.spot.max_share.is_some();
        let mut passes_over = false;
        for offer in &self.supply.pools[node.pool].offers {
            let counts = counted(offer);
            let same_kind = match (planned_counts, counts) {
                (Some(_), Some(_)) => true,
                _ => {
                    (node.offer.availability, offer.availability)
                        == (Availability::Unpriced, Availability::Unpriced)
                }
            };
            if !same_kind || offer.offering == node.offer.offering {
                continue;
            }
            let id = self.id(node, offer);
            if spreads && is_spot(id) && counts < planned_counts {
                passes_over |= self.holds(node, offer, &requests);
                continue;
            }
            let is_reclaimed = matches!(offer.availability, Availability::Reclaimed(..));
            let better_second = counts.filter(|counted| {
                id.instance_type != *planned_type
                    && !is_reclaimed
                    && may_lead(id)
                    && second.as_ref().is_none_or(|best| *counted < best.counted)
            });
            if let Availability::Reclaimed(price, reclaims) = offer.availability
                && node.offer.availability.price().is_some_and(|planned| price < planned)
                && avoided.as_ref().is_none_or(|known| price < known.price)
                && self.holds(node, offer, &requests)
            {
                avoided = Some(Avoided { id, price, reclaims });
            }
            if let (Availability::Priced(price), Some(planned)) =
                (offer.availability, node.offer.availability.price())
                && price <= planned
                && counts > planned_counts
                && riskier.as_ref().is_none_or(|known| price < known.price)
                && self.holds(node, offer, &requests)
            {
                riskier = Some(Riskier { id, price, risk: risk(offer) });
            }
            let affordable = match (planned_counts, counts) {
                (Some(planned), Some(counted)) => {
                    u128::from(counted.micros()) * 100
                        <= u128::from(planned.micros()) * u128::from(100 + self.options.max_dearer_percent)
                }
                _ => true,
            };
            // Most offerings are too expensive. The fit of the pods is checked only for the others.
            if !(affordable || better_second.is_some()) || !self.holds(node, offer, &requests) {
                continue;
            }
            let less = !preferred
                .iter()
                .all(|preference| self.admissions.admits(node.pool, *preference, offer.offering));
            if let (Some(counted), Some(price), false) = (better_second, offer.availability.price(), less) {
                second = Some(Second { counted, price, name: &id.instance_type });
            }
            // A claim counts as the most that it may become, so a limit must have room for the largest alternative of each claim.
            // The stock of an offering is left to the nodes that are planned with it.
            let is_within = |limit: u32, amount: u64| {
                let most = ceiling.get(&limit).copied().unwrap_or(0);
                let may_grow = is_for_any_type && !self.limits.is_stock(limit);
                amount <= most || (may_grow && amount - most <= spare[limit as usize])
            };
            let within = || self.uses(node, offer).iter().all(|(limit, amount)| is_within(*limit, *amount));
            if affordable && within() && self.same_terms(node, offer) {
                others.push((less, counts, id.instance_type != *planned_type, id, offer));
            }
        }
        others.sort_by(|a, b| (a.0, a.1, a.2, a.3).cmp(&(b.0, b.1, b.2, b.3)));
        let mut offers: Vec<&PoolOffering> = vec![&node.offer];
        offers.extend(others.iter().map(|other| other.4));
        // A cheaper offering fits as well, so the solver's solution was not optimal.
        let cheaper = others
            .iter()
            .position(|(less, counts, _, id, _)| !less && *counts < planned_counts && may_lead(id));
        if let Some(at) = cheaper {
            offers.swap(0, 1 + at);
            let preferred = 1 + others.iter().filter(|other| !other.0).count();
            offers[1..preferred].sort_by_key(|offer| {
                let id = self.id(node, offer);
                let other_type = id.instance_type != self.id(node, others[at].4).instance_type;
                (counted(offer), other_type, id)
            });
        }
        let chosen_type = &self.id(node, offers[0]).instance_type;
        let rank = |offer: &PoolOffering| {
            let id = self.id(node, offer);
            let meets = |preference: &usize| self.admissions.admits(node.pool, *preference, offer.offering);
            (!preferred.iter().all(meets), counted(offer), id.instance_type != *chosen_type, id)
        };
        let holding = |offer: &PoolOffering| self.holds(node, offer, &requests);
        let Listed { offers, together, choice, more } = self.listed(node, offers, rank, holding, spare)?;
        let offerings: Vec<RankedOffering> = offers
            .iter()
            .map(|offer| RankedOffering {
                offering: self.id(node, offer).clone(),
                price: offer.availability.price(),
                allocatable: self.supply.instance_type(node.pool, offer.offering).allocatable.clone(),
            })
            .collect();
        let chosen = &offerings[0];
        let chosen_counts = counted(offers[0]);
        let second = second.filter(|second| *second.name != chosen.offering.instance_type);
        let avoided = avoided.filter(|avoided| *avoided.id != chosen.offering);
        let riskier = riskier.filter(|riskier| chosen.price.is_some_and(|price| riskier.price <= price));
        let pool = self.supply.pools[node.pool].pool.in_words();
        let mut reasons = vec![holds(chosen, pods, &stated, pool, || self.has_known_home(node))];
        let spot_too =
            || self.supply.pools[node.pool].offers.iter().any(|offer| is_spot(self.id(node, offer)));
        let without_spot = self.stays_on_demand(node) && spot_too();
        // Other types are not compared for a node whose GPUs are shared or cut.
        let compares = node.gpus.is_empty() && !without_spot && !passes_over;
        if let (Some(_), None, None, true) = (chosen.price, &second, &avoided, compares) {
            reasons.push(format!("no other type of {pool} does"));
        }
        // Offerings at no higher price but with more interruptions are mentioned below.
        let second = second
            .filter(|second| Some(second.price) > chosen.price || Some(second.counted) <= chosen_counts);
        reasons.extend(
            chosen.price.zip(second).map(|(price, second)| next_best(price, second.price, second.name)),
        );
        if let Availability::Reclaimed(_, reclaims) = offers[0].availability {
            reasons.push(interruption_backoff::chosen_all_the_same(reclaims));
        }
        reasons.extend(avoided.map(|one| interruption_backoff::avoided(one.id, one.price, one.reclaims)));
        reasons.extend(chosen.price.zip(riskier).map(|(price, one)| {
            interruption_risk::avoided(one.id, (one.price, one.risk), (price, risk(offers[0])))
        }));
        if without_spot {
            reasons.push("no spot node may take its place (spec.spot)".to_owned());
        }
        if passes_over {
            reasons.push("cheaper spot offerings keep to their share (spec.spot.maxShare)".to_owned());
        }
        if !choice.is_empty() {
            reasons.push(in_words(&choice));
        }
        Ok(Order { offerings, together, choice, reason: reasons.join("; "), more })
    }

    /// Returns the preferences of its pods that the node meets, as signatures that alternatives should meet too.
    fn preferred(&self, node: &NewNode<'_>) -> BTreeSet<usize> {
        let met = |preference: &&usize| self.admissions.admits(node.pool, **preference, node.offer.offering);
        let classes = node.content.keys().map(|class| &self.classes.classes[*class]);
        classes.filter_map(|class| class.preferred.iter().find(met).copied()).collect()
    }

    pub(crate) fn id(&self, node: &NewNode<'_>, offer: &PoolOffering) -> &OfferingId {
        &self.supply.offering(node.pool, offer.offering).id
    }

    pub(crate) fn uses(&self, node: &NewNode<'_>, offer: &PoolOffering) -> BTreeMap<u32, u64> {
        let classes = node.content.keys().map(|class| &self.classes.classes[*class]);
        let needs: Vec<&GpuNeed> = classes.filter_map(|class| class.gpu_need.as_ref()).collect();
        let price = offer.availability.price();
        self.limits.uses_for(self.supply, node.pool, offer.offering, price, &needs).into_iter().collect()
    }

    /// Returns the amount of each limit that a node of this offering uses beyond the planned one.
    pub(crate) fn beyond(
        &self,
        node: &NewNode<'_>,
        offer: &PoolOffering,
        planned: &BTreeMap<u32, u64>,
    ) -> BTreeMap<u32, u64> {
        let more = |limit: &u32, uses: u64| uses.saturating_sub(planned.get(limit).copied().unwrap_or(0));
        self.uses(node, offer).into_iter().map(|(limit, uses)| (limit, more(&limit, uses))).collect()
    }

    /// Returns whether commitments cover another offering as much as the planned one.
    fn same_terms(&self, node: &NewNode<'_>, offer: &PoolOffering) -> bool {
        let (planned, other) = (self.id(node, &node.offer), self.id(node, offer));
        self.options.commitments.iter().filter(|one| !one.is_used_up()).all(|commitment| {
            let (planned, other) = (commitment.rates.get(planned), commitment.rates.get(other));
            planned == other
                && (planned.is_none() || node.offer.availability.price() == offer.availability.price())
        })
    }

    /// Returns the floor of on-demand nodes that a spot node must not break; `None` for other nodes.
    fn floor_of(&self, node: &NewNode<'_>) -> Option<CountOrPercent> {
        let floor = self.supply.pools[node.pool].pool.spot.on_demand_floor?;
        is_spot(self.id(node, &node.offer)).then_some(floor)
    }

    /// Returns whether no spot offering may stand in for the node, because rules on spot nodes count it as on demand.
    pub(crate) fn stays_on_demand(&self, node: &NewNode<'_>) -> bool {
        !self.supply.pools[node.pool].pool.spot.is_empty() && !is_spot(self.id(node, &node.offer))
    }

    /// Returns whether an offering with a known price would hold a pod of the node.
    fn has_known_home(&self, node: &NewNode<'_>) -> bool {
        node.content.keys().any(|class| {
            let class = &self.classes.classes[*class];
            let holds = |pool: usize, offer: &PoolOffering| {
                offer.availability.price().is_some()
                    && self.admissions.admits(pool, class.signature, offer.offering)
                    && class.requests.fits(&self.supply.capacities[offer.capacity])
                    && self.colocation.admits(class.profile, &self.supply.residents[offer.residents])
            };
            let mut pools = self.supply.pools.iter().enumerate();
            pools.any(|(at, pool)| pool.offers.iter().any(|offer| holds(at, offer)))
        })
    }

    fn holds(&self, node: &NewNode<'_>, offer: &PoolOffering, requests: &ResourceList) -> bool {
        if self.stays_on_demand(node) && is_spot(self.id(node, offer)) {
            return false;
        }
        // A GPU layout is valid for one instance type only.
        let type_of = |offer: &PoolOffering| &self.id(node, offer).instance_type;
        let same_gpus = node.gpus.is_empty() || type_of(offer) == type_of(&node.offer);
        same_gpus
            && requests.fits(&node.form.room(&self.supply.capacities[offer.capacity]))
            && node.content.keys().all(|class| {
                let class = &self.classes.classes[*class];
                self.admissions.admits(node.pool, class.signature, offer.offering)
                    && self.colocation.admits(class.profile, &self.supply.residents[offer.residents])
                    && self.colocation.takes_as_many(
                        class.profile,
                        &self.supply.residents[offer.residents],
                        &self.supply.residents[node.offer.residents],
                    )
            })
    }
}

fn below_floor(pool: &Pool, floor: CountOrPercent) -> String {
    format!(
        "pool `{}` must have at least {} on demand (spec.spot.onDemandFloor), and some of the on-demand nodes of this plan cannot be \
         bought; see the pods planned for them",
        pool.name,
        SpotRules::floor_in_words(floor)
    )
}

/// Gives names to claims.
pub(crate) struct ClaimNames<'a> {
    options: &'a PlanOptions,
    snapshot: &'a Snapshot,
    now: Timestamp,
    taken: BTreeSet<ClaimName>,
}

impl<'a> ClaimNames<'a> {
    pub fn new(options: &'a PlanOptions, snapshot: &'a Snapshot, now: Timestamp) -> Self {
        Self { options, snapshot, now, taken: BTreeSet::new() }
    }

    /// Returns an unused name that starts with the pool's name. It is the same for the same snapshot and time.
    pub fn next(&mut self, pool: &str, pods: &[PodKey], offering: &OfferingId, index: usize) -> ClaimName {
        let mut hash = Fnv::new();
        hash.add(&self.options.salt);
        hash.add(&self.now.to_string());
        hash.add(&offering.to_string());
        hash.add(&index.to_string());
        for pod in pods {
            hash.add(&pod.to_string());
        }
        let prefix: String =
            pool.chars().map(|c| if c == '.' { '-' } else { c }).take(63 - 1 - SUFFIX).collect();
        let prefix = prefix.trim_end_matches('-');
        loop {
            let name = ClaimName(format!("{prefix}-{}", hash.letters()));
            if !self.taken.contains(&name) && !self.snapshot.claims.contains_key(&name) {
                self.taken.insert(name.clone());
                return name;
            }
            hash.add("again");
        }
    }
}

/// Describes a node and its pods. `has_known_home` returns whether an offering with a known price would hold one of them.
fn holds(
    chosen: &RankedOffering,
    pods: usize,
    requests: &ResourceList,
    pool: PoolInWords<'_>,
    has_known_home: impl Fn() -> bool,
) -> String {
    let OfferingId { instance_type, zone, capacity_type } = &chosen.offering;
    let pods = format!("{} ({})", format::count(pods, "pod"), format::gist(requests));
    let Some(price) = chosen.price else {
        let why = if has_known_home() {
            "within all limits and rules, known prices alone would serve fewer pods or lower priorities"
        } else {
            "no offering with a known price does"
        };
        return format!(
            "{instance_type} {capacity_type} in {zone} at an unknown price, which {pool} allows, holds {pods}, because {why}"
        );
    };
    format!("{instance_type} {capacity_type} in {zone} at {price:#} holds {pods}")
}

fn next_best(price: UsdPerHour, other: UsdPerHour, name: &InstanceTypeName) -> String {
    if price == UsdPerHour::ZERO && other > price {
        format!("next best: {name} at {other:#}")
    } else if other > price {
        format!("next best: {name} at {other:#}, {} dearer", percent_above(price, other))
    } else {
        format!("as good: {name} at {other:#}")
    }
}

/// Says by how much `other` is above `price`, rounded to a percent: `9 %`, `under 1 %`.
fn percent_above(price: UsdPerHour, other: UsdPerHour) -> String {
    let (price, more) = (u128::from(price.micros().max(1)), u128::from(other.saturating_sub(price).micros()));
    if more * 100 < price {
        return "under 1 %".to_owned();
    }
    format!("{} %", (more * 200 + price) / (price * 2))
}

/// The length of the suffix of a claim's name.
const SUFFIX: usize = 8;

/// A hash (FNV-1a, 64 bits) that is the same across releases and machines.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, text: &str) {
        // A byte that occurs in no UTF-8 text ends each part.
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Returns letters and digits that do not form words.
    fn letters(&self) -> String {
        const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut rest = self.0 ^ (self.0 >> 29);
        let mut name = String::with_capacity(SUFFIX);
        for _ in 0..SUFFIX {
            name.push(char::from(LETTERS[(rest % 27) as usize]));
            rest /= 27;
        }
        name
    }
}

/// Describes the expected pods: `7 pods of Job ml/train that are still to come`.
fn kept_in_words(pods: &[PodKey]) -> Option<String> {
    let coming: Vec<&Arc<OwnerKey>> = pods.iter().filter_map(PodKey::owner).collect();
    let owners: BTreeSet<String> = coming.iter().map(ToString::to_string).collect();
    let owners = owners.into_iter().collect::<Vec<_>>().join(", ");
    let (pods, verb) = (format::count(coming.len(), "pod"), if coming.len() == 1 { "is" } else { "are" });
    (!coming.is_empty()).then(|| format!("{pods} of {owners} that {verb} still to come"))
}

/// Describes the number of buffer units.
fn buffered_in_words(pods: &[PodKey]) -> Option<String> {
    let units = pods.iter().filter(|key| key.is_buffer()).count();
    let verb = if units == 1 { "is" } else { "are" };
    (units > 0).then(|| format!("{units} of these {verb} free room for the pool's buffer"))
}
