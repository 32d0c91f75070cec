//! Claims for the missing nodes of static pools.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, Offering, RankedOffering, UsdPerHour};

use crate::demand::NodesWanted;
use crate::model::plan::{LabelChoice, PlannedClaim};
use crate::model::{Claim, Pool, Snapshot};
use crate::model::{MinValuesPolicy, PlanOptions};
use crate::plan::claims::ClaimNames;
use crate::plan::listing::{MOST, in_words};
use crate::rules::new_node::NewNodeLabels;
use crate::supply::interruption_backoff::remembered;
use crate::supply::limits::{ceilings, held, owner_in_words};
use crate::supply::{flexibility, interruption_backoff, offerings, unclaimed};

/// The claims for static pools.
#[derive(Debug, Default)]
pub(crate) struct Ordered {
    /// The claims, in the order of pools.
    pub claims: Vec<PlannedClaim>,
    /// Reached limits by pool, as messages.
    pub limits: Vec<(crate::model::PoolName, String)>,
}

/// Creates claims for these nodes, and adds them to the snapshot as if they existed already.
pub(crate) fn order(
    snapshot: &mut Cow<'_, Snapshot>,
    wanted: &[NodesWanted],
    now: Timestamp,
    options: &PlanOptions,
) -> Ordered {
    let mut ordered = Ordered::default();
    for NodesWanted { pool, there, lacking } in wanted {
        for number in 0..*lacking {
            let Some(Ok(catalogue)) = snapshot.catalogues.get(&pool.node_class).cloned() else { break };
            let mut buyable = buyable(snapshot, &catalogue, pool, now, options);
            let Some((_, first)) = buyable.first() else { break };
            if let Some(limit) = beyond(snapshot, pool, first, options) {
                let sentence = format!("{}; {}, or lower spec.replicas", limit.words, limit.raise);
                ordered.limits.push((pool.name.clone(), sentence));
                break;
            }
            // Each of the offerings may be launched, so each must be within the limits.
            buyable.retain(|(_, one)| beyond(snapshot, pool, one, options).is_none());
            let listed = listed(&buyable, &snapshot.plan_cache.labels(&catalogue), pool, options);
            let (offerings, together, choice) = match listed {
                Ok(listed) => listed,
                Err(sentence) => {
                    ordered.limits.push((pool.name.clone(), sentence));
                    break;
                }
            };
            let Some(first) = offerings.first() else { break };
            let mut names = ClaimNames::new(options, snapshot, now);
            let at = usize::try_from(number).unwrap_or(usize::MAX);
            let among = if choice.is_empty() { String::new() } else { format!("; {}", in_words(&choice)) };
            let price = first.price.map_or("an unknown price".to_owned(), |price| format!("{price:#}"));
            let planned = PlannedClaim {
                name: names.next(&pool.name.0, &[], &first.offering, at),
                pool: pool.name.clone(),
                pool_uid: pool.uid.clone(),
                node_class: pool.node_class.clone(),
                labels: pool.labels.clone(),
                annotations: pool.annotations.clone(),
                taints: pool.taints.clone(),
                startup_taints: pool.startup_taints.clone(),
                readiness_gates: pool.readiness_gates.clone(),
                planned_pods: Vec::new(),
                bought_again: Vec::new(),
                deadlines: pool.deadlines,
                gpus: Vec::new(),
                reason: format!(
                    "pool `{}` has {} of its {} replicas; {} at {price} is the cheapest that meets its requirements{among}",
                    pool.name,
                    there + number,
                    there + lacking,
                    first.offering,
                ),
                offerings,
                together,
                choice,
            };
            let claim = Arc::new(as_made(&planned, now));
            snapshot.to_mut().claims.insert(planned.name.clone(), claim);
            ordered.claims.push(planned);
        }
    }
    ordered
}

/// An offering that may be bought: its index in the catalogue and its counted price, and what a claim says of it.
type Buyable = ((usize, Option<UsdPerHour>), RankedOffering);

/// Returns the offerings that may be bought for the pool now, cheapest first.
fn buyable(
    snapshot: &Snapshot,
    catalogue: &Arc<Catalogue>,
    pool: &Arc<Pool>,
    now: Timestamp,
    options: &PlanOptions,
) -> Vec<Buyable> {
    let labels = snapshot.plan_cache.labels(catalogue);
    let meeting = snapshot.plan_cache.meeting(catalogue, pool, || offerings::meeting(pool, &labels));
    // The condition of the pool says why it buys nothing.
    if offerings::cut_by_label(options, pool, catalogue, &meeting).is_some() {
        return Vec::new();
    }
    let is_held = |offering: &Offering| {
        let held = remembered(&snapshot.held_back, pool, offering).is_some_and(|until| *until > now);
        // A zero or unknown price cannot be raised, so reclaimed offerings without a price are left out.
        let priced = offering.price.known().is_some_and(|price| price > UsdPerHour::ZERO);
        held || (!priced && interruption_backoff::of(snapshot, pool, offering, now).is_some())
    };
    let mut all: Vec<Buyable> = meeting
        .iter()
        .map(|index| (*index, &catalogue.offerings()[*index]))
        .filter(|(_, offering)| !is_held(offering))
        .filter(|(_, offering)| {
            offering.price.known().is_some() || options.may_buy_unpriced(pool, &offering.id.instance_type)
        })
        .map(|(index, offering)| {
            let price = offering.price.known();
            let reclaims = interruption_backoff::of(snapshot, pool, offering, now);
            let ranked = RankedOffering {
                offering: offering.id.clone(),
                price,
                allocatable: catalogue.types()[&offering.id.instance_type].allocatable.clone(),
            };
            let weigh = |price| reclaims.map_or(price, |of| interruption_backoff::weighed(price, of));
            ((index, price.map(weigh)), ranked)
        })
        .collect();
    all.sort_by(|((_, a), one), ((_, b), other)| {
        (a.is_none(), a, &one.offering).cmp(&(b.is_none(), b, &other.offering))
    });
    // An offering with an unknown price is no alternative to one with a known price.
    let is_priced = all.first().is_some_and(|((_, price), _)| price.is_some());
    all.retain(|((_, price), _)| price.is_some() == is_priced);
    all
}

/// Returns the offerings of a claim: the cheapest, those that are not much more expensive, and those that `minValues` asks for.
/// Returns also how many of them the first launch call names together, and the choice that they leave.
///
/// # Errors
/// A sentence if `minValues` cannot be met.
fn listed(
    buyable: &[Buyable],
    labels: &[BTreeMap<String, String>],
    pool: &Pool,
    options: &PlanOptions,
) -> Result<(Vec<RankedOffering>, usize, Vec<LabelChoice>), String> {
    let Some(((_, cheapest), first)) = buyable.first() else { return Ok((Vec::new(), 0, Vec::new())) };
    let dearest =
        cheapest.map(|price| u128::from(price.micros()) * u128::from(100 + options.max_dearer_percent) / 100);
    let is_near = |price: &Option<UsdPerHour>| {
        price.zip(dearest).is_none_or(|(price, most)| u128::from(price.micros()) <= most)
    };
    let most = options.max_offerings.clamp(1, MOST);
    let mut chosen: BTreeSet<usize> =
        (0..buyable.len()).filter(|at| is_near(&buyable[*at].0.1)).take(most).collect();
    let kind = first.offering.capacity_type;
    let (mut together, mut choice) = (BTreeSet::new(), Vec::new());
    if flexibility::applies(pool, &first.offering) {
        let mut count = flexibility::ValueCount::new(pool, kind);
        for (at, ((index, _), ranked)) in buyable.iter().enumerate() {
            let labels =
                NewNodeLabels { offering: &labels[*index], template: &pool.labels, pool: &pool.name };
            if at == 0 || (together.len() < MOST && count.needs(&ranked.offering, &labels)) {
                count.add(&ranked.offering, &labels);
                together.insert(at);
            }
        }
        if options.min_values == MinValuesPolicy::Strict
            && let Some(short) = count.shortages().next()
        {
            return Err(format!(
                "its minValues asks for {} values of `{}`, but the offerings that meet its requirements and limits have {}; widen \
                 them, lower minValues, or set --min-values-policy BestEffort",
                short.at_least, short.key, short.found
            ));
        }
        choice = count.found().map(LabelChoice::from).collect();
        chosen.extend(&together);
        while chosen.len() > most.max(together.len())
            && let Some(at) = chosen.iter().rev().find(|at| !together.contains(*at)).copied()
        {
            chosen.remove(&at);
        }
    }
    let mut offerings: Vec<(bool, usize)> =
        chosen.into_iter().map(|at| (buyable[at].1.offering.capacity_type != kind, at)).collect();
    if !together.is_empty() {
        // A launch call has one capacity type.
        offerings.sort_unstable();
    }
    let is_called = |(is_other, at): &(bool, usize)| !is_other && together.contains(at);
    let called = offerings.iter().rposition(is_called).map_or(0, |at| at + 1);
    Ok((offerings.into_iter().map(|(_, at)| buyable[at].1.clone()).collect(), called, choice))
}

/// The limits that one more node of a static pool would exceed.
pub(crate) struct ReplicaLimits {
    pub words: String,
    /// Their remedy, in words.
    pub raise: &'static str,
    pub count: usize,
    /// Whether all are the pool's own, and none is on all pools together.
    pub are_own: bool,
}

/// Returns the limits that one more node of this offering would exceed; `None` if there are none. Raising one of several would not help.
pub(crate) fn beyond(
    snapshot: &Snapshot,
    pool: &Pool,
    offering: &RankedOffering,
    options: &PlanOptions,
) -> Option<ReplicaLimits> {
    let own = ceilings(&options.limits_of(pool)).into_iter().map(|limit| (limit, true));
    let all = ceilings(&options.limits).into_iter().map(|limit| (limit, false));
    let unclaimed = unclaimed::nodes(snapshot);
    let found = own.chain(all).filter_map(|((kind, ceiling), is_own)| {
        let taken = held(snapshot, &unclaimed, &kind, is_own.then_some(&pool.name));
        let more = kind.of(&offering.allocatable, offering.price);
        (more > 0 && taken.saturating_add(more) > ceiling).then(|| {
            let (of, raise) = owner_in_words(is_own.then_some(pool), kind.is_default_of(pool));
            let (name, limit) = (kind.name(), kind.quantity(ceiling));
            let taken = kind.used_in_words(taken, ceiling);
            let words = format!(
                "limit {name} = {limit} {of} allows no more of its replicas (in use or on order: {taken})"
            );
            (words, raise, is_own)
        })
    });
    let found: Vec<(String, &'static str, bool)> = found.collect();
    let (_, first, _) = found.first()?;
    let raise = if found.len() == 1 { *first } else { "raise these limits" };
    let words: Vec<&str> = found.iter().map(|(words, ..)| words.as_str()).collect();
    let are_own = found.iter().all(|(.., is_own)| *is_own);
    Some(ReplicaLimits { words: words.join(", and "), raise, count: found.len(), are_own })
}

/// Returns the claim as the executor will create it.
fn as_made(planned: &PlannedClaim, now: Timestamp) -> Claim {
    Claim {
        name: planned.name.clone(),
        uid: crate::model::Uid(format!("ordered:{}", planned.name)),
        pool: planned.pool.clone(),
        node_class: planned.node_class.clone(),
        offerings: planned.offerings.clone(),
        labels: planned.labels.clone(),
        annotations: planned.annotations.clone(),
        taints: planned.taints.clone(),
        startup_taints: planned.startup_taints.clone(),
        readiness_gates: planned.readiness_gates.clone(),
        planned_pods: Vec::new(),
        reason: planned.reason.clone(),
        do_not_disrupt: false,
        bought_again: false,
        deadlines: planned.deadlines,
        created: now,
        interruption: None,
        deleting_since: None,
        launched: None,
        node_name: None,
        conditions: std::collections::BTreeMap::new(),
    }
}

/// Returns the sum of the known prices of claims.
pub(crate) fn cost(claims: &[PlannedClaim]) -> UsdPerHour {
    claims.iter().filter_map(PlannedClaim::price).sum()
}
