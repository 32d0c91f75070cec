//! Claims for the missing nodes of static pools.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, Offering, RankedOffering, UsdPerHour};

use crate::demand::NodesWanted;
use crate::model::PlanOptions;
use crate::model::plan::PlannedClaim;
use crate::model::{Claim, Pool, PoolLimits, Snapshot};
use crate::plan::claims::ClaimNames;
use crate::supply::interruption_backoff::remembered;
use crate::supply::limits::{ceilings, used};
use crate::supply::{interruption_backoff, offerings};

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
            let mut offerings = offerings(snapshot, &catalogue, pool, now, options);
            let Some(first) = offerings.first() else { break };
            if let Some(sentence) = beyond(snapshot, pool, first, &options.limits) {
                ordered.limits.push((pool.name.clone(), sentence));
                break;
            }
            // Each of the offerings may be launched, so each must be within the limits.
            offerings.retain(|one| beyond(snapshot, pool, one, &options.limits).is_none());
            let Some(first) = offerings.first() else { break };
            let mut names = ClaimNames::new(options, snapshot, now);
            let at = usize::try_from(number).unwrap_or(usize::MAX);
            let price = first.price.map_or("an unknown price".to_owned(), |price| format!("{price} $/h"));
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
                    "pool `{}` has {} of its {} replicas; {} at {price} is the cheapest that meets its requirements",
                    pool.name,
                    there + number,
                    there + lacking,
                    first.offering,
                ),
                offerings,
            };
            let claim = Arc::new(as_made(&planned, now));
            snapshot.to_mut().claims.insert(planned.name.clone(), claim);
            ordered.claims.push(planned);
        }
    }
    ordered
}

/// Returns the offerings that may be bought for the pool now, cheapest first, without those that are much more expensive.
fn offerings(
    snapshot: &Snapshot,
    catalogue: &Arc<Catalogue>,
    pool: &Arc<Pool>,
    now: Timestamp,
    options: &PlanOptions,
) -> Vec<RankedOffering> {
    let labels = snapshot.plan_cache.labels(catalogue);
    let meeting = snapshot.plan_cache.meeting(catalogue, pool, || offerings::meeting(pool, &labels));
    let is_held = |offering: &Offering| {
        let held = remembered(&snapshot.held_back, pool, offering).is_some_and(|until| *until > now);
        // A zero or unknown price cannot be raised, so reclaimed offerings without a price are left out.
        let priced = offering.price.known().is_some_and(|price| price > UsdPerHour::ZERO);
        held || (!priced && interruption_backoff::of(snapshot, pool, offering, now).is_some())
    };
    let money = pool.limits.usd_per_hour.or(options.limits.usd_per_hour).is_some();
    // Each entry is the counted price and the offering.
    let mut all: Vec<(Option<UsdPerHour>, RankedOffering)> = meeting
        .iter()
        .map(|index| &catalogue.offerings()[*index])
        .filter(|offering| !is_held(offering))
        .filter(|offering| {
            let may_guess = !money && pool.allow_unknown_price.contains(&offering.id.instance_type);
            offering.price.known().is_some() || may_guess
        })
        .map(|offering| {
            let price = offering.price.known();
            let reclaims = interruption_backoff::of(snapshot, pool, offering, now);
            let ranked = RankedOffering {
                offering: offering.id.clone(),
                price,
                allocatable: catalogue.types()[&offering.id.instance_type].allocatable.clone(),
            };
            (price.map(|price| reclaims.map_or(price, |of| interruption_backoff::weighed(price, of))), ranked)
        })
        .collect();
    all.sort_by(|(a, one), (b, other)| {
        (a.is_none(), a, &one.offering).cmp(&(b.is_none(), b, &other.offering))
    });
    let most = all
        .first()
        .and_then(|(first, _)| *first)
        .map(|cheapest| u128::from(cheapest.micros()) * u128::from(100 + options.max_dearer_percent) / 100);
    // An offering with an unknown price is no alternative to one with a known price.
    all.retain(|(price, _)| match (price, most) {
        (Some(price), Some(most)) => u128::from(price.micros()) <= most,
        (price, most) => price.is_none() && most.is_none(),
    });
    all.into_iter().map(|(_, ranked)| ranked).take(options.max_offerings.max(1)).collect()
}

/// Returns a message about the limit that one more node of this offering would exceed, if there is one.
fn beyond(
    snapshot: &Snapshot,
    pool: &Pool,
    offering: &RankedOffering,
    over_all: &PoolLimits,
) -> Option<String> {
    let own = ceilings(&pool.limits).into_iter().map(|limit| (limit, true));
    let all = ceilings(over_all).into_iter().map(|limit| (limit, false));
    own.chain(all).find_map(|((kind, ceiling), is_own)| {
        let claims = snapshot.claims.values().filter(|claim| !is_own || claim.pool == pool.name);
        let taken = claims.map(|claim| used(&kind, claim)).fold(0, u64::saturating_add);
        let more = kind.of(&offering.allocatable, offering.price);
        (more > 0 && taken.saturating_add(more) > ceiling).then(|| {
            let of = if is_own { format!("of pool `{}`", pool.name) } else { "over all pools".to_owned() };
            let (name, limit, taken) = (kind.name(), kind.quantity(ceiling), kind.quantity(taken));
            format!(
                "limit {name} = {limit} {of} allows no more of its replicas (in use or on order: {taken}); raise it, or \
                 lower spec.replicas"
            )
        })
    })
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
