//! Completes a plan: costs, counts, limits and nominations.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::Proof;
use poolwright_terms::ConditionType;

use crate::demand::{Mentions, mentions, wants_buffer};
use crate::model::plan::{Counts, Plan, PlannedClaim, Target, UnplacedReason};
use crate::model::{Claim, ClaimName, PodKey, PoolName, Snapshot, Uid};
use crate::plan::context::PlanContext;
use crate::plan::moved;
use crate::plan::order_replicas::{self, Ordered};
use crate::plan::prepare::Prepared;
use crate::rules::claim_node::node_of;
use crate::rules::{format, gpus};
use crate::supply::offerings::Supply;
use crate::supply::{interruption_backoff, interruption_risk};

/// Adds reached limits to the findings about pools.
pub(crate) fn limits_reached(supply: &mut Supply<'_>, reached: impl IntoIterator<Item = (PoolName, String)>) {
    for (pool, sentence) in reached {
        if let Some(findings) = supply.findings.get_mut(&pool) {
            findings.limit_reached.get_or_insert(sentence);
        }
    }
}

/// Completes a plan: adds claims of static pools, and computes costs, counts and nominations.
pub(crate) fn complete(
    plan: &mut Plan,
    prepared: &Prepared<'_>,
    context: &PlanContext<'_>,
    supply: Supply<'_>,
) {
    plan.again_at =
        [plan.again_at, prepared.believed_until, supply.stopped_until].into_iter().flatten().min();
    plan.deferred.clone_from(&prepared.deferred);
    plan.units_on = units_on(plan);
    // This comes before risk is computed, because an interruption of free capacity costs nothing.
    for claim in &mut plan.claims {
        claim.planned_pods.retain(|key| mentions(key) != Mentions::Nowhere);
    }
    if !plan.refused.is_empty() {
        plan.claims.clear();
        plan.units_on.clear();
        plan.over_time = None;
        plan.covered = UsdPerHour::ZERO;
        plan.commitments.clear();
    }
    add_ordered(plan, context, &prepared.ordered);
    plan.pools = supply.findings;
    tell_of_buffers(plan);
    tell_of_auto(plan, context);
    tell_of_shared_gpus(plan, context.snapshot);
    sum(plan, context);
    plan.nominations = nominations(context.snapshot, plan);
    plan.moved = moved::moved(&prepared.successors, plan);
    count_units(plan);
    mention_existing_pods(plan);
    count(plan);
}

/// Returns the number of units of buffers on each new node that has any.
fn units_on(plan: &Plan) -> BTreeMap<ClaimName, usize> {
    let units = |claim: &PlannedClaim| claim.planned_pods.iter().filter(|key| key.is_buffer()).count();
    let all = plan.claims.iter().map(|claim| (claim.name.clone(), units(claim)));
    all.filter(|(_, units)| *units > 0).collect()
}

/// Counts the units of buffers, while the plan still lists them.
fn count_units(plan: &mut Plan) {
    let on_existing = plan.placements.iter().filter(|placement| placement.pod.is_buffer()).count();
    let on_new: usize = plan.units_on.values().sum();
    plan.counts.units_unplaced = plan.unplaced.iter().filter(|left| left.pod.is_buffer()).count();
    plan.counts.units = on_existing + on_new + plan.counts.units_unplaced;
}

/// Tells pools of the units of their buffers that get no room, with the cause. Those that fit no offering, or only offerings without a
/// known price, come first. Units that wait for a limit or a stock-out may get room later.
fn tell_of_buffers(plan: &mut Plan) {
    let Plan { unplaced, pools, .. } = plan;
    let mut left_out: BTreeMap<(&PoolName, bool, u64, &str), usize> = BTreeMap::new();
    for left in &*unplaced {
        let PodKey::Buffer { pool, entry, .. } = &left.pod else { continue };
        let is_unmet = matches!(left.reason, UnplacedReason::NoOfferingFits | UnplacedReason::PriceUnknown);
        *left_out.entry((pool, !is_unmet, *entry, left.message.as_str())).or_default() += 1;
    }
    for ((pool, may_come, entry, why), units) in left_out {
        let Some(findings) = pools.get_mut(pool) else { continue };
        findings.units_left += units;
        let of = format::count(units, "unit");
        let sentence = format!("spec.buffer[{entry}]: no room is kept for {of}: {why}");
        if may_come || findings.buffer_unmet.is_some() {
            findings.buffer_left.push(sentence);
        } else {
            findings.buffer_unmet = Some(sentence);
        }
    }
}

/// Tells pools how many units `auto` asks for in their buffers, and why.
fn tell_of_auto(plan: &mut Plan, context: &PlanContext<'_>) {
    let PlanContext { snapshot, now, .. } = context;
    for (name, findings) in &mut plan.pools {
        let Some(pool) = snapshot.pools.get(name).filter(|pool| wants_buffer(pool)) else { continue };
        let chosen = pool.buffer.iter().enumerate().filter_map(|(entry, buffer)| {
            let said = buffer.chosen(name, &snapshot.arrivals, *now)?;
            Some(format!("spec.buffer[{entry}]: {said}"))
        });
        findings.units_chosen = chosen.collect();
    }
}

/// Tells pools of a new node that stays closed because its GPUs seem to be shared. The next node would not open either.
fn tell_of_shared_gpus(plan: &mut Plan, snapshot: &Snapshot) {
    let is_new = |claim: &&Claim| {
        claim.deleting_since.is_none()
            && claim.launched.is_some()
            && claim.since(ConditionType::Initialized).is_none()
    };
    for claim in snapshot.claims.values().map(Arc::as_ref).filter(is_new) {
        let Some(node) = node_of(snapshot, claim) else { continue };
        if gpus::are_shared(&claim.current_offering().allocatable, &node.allocatable)
            && let Some(findings) = plan.pools.get_mut(&claim.pool)
        {
            findings.shares_gpus.get_or_insert_with(|| {
                format!(
                    "node {} stays closed, because it does not advertise the GPUs that its claim {} promises. {}",
                    node.name,
                    claim.name,
                    gpus::SHARES_GPUS
                )
            });
        }
    }
}

/// Adds the claims of static pools. They are bought even if the plan is refused.
fn add_ordered(plan: &mut Plan, context: &PlanContext<'_>, ordered: &Ordered) {
    let cost = order_replicas::cost(&ordered.claims);
    let caution = |claim| interruption_backoff::of_claim(context.snapshot, context.now, claim);
    let caution: UsdPerHour = ordered.claims.iter().map(caution).sum();
    if plan.over_time.is_none() {
        plan.bound += cost + caution;
    }
    if context.options.baselines && plan.refused.is_empty() {
        for baseline in [&mut plan.baselines.one_pod_per_node, &mut plan.baselines.first_fit] {
            baseline.cost += cost;
            baseline.risk += caution;
        }
    }
    plan.claims.extend(ordered.claims.iter().cloned());
    plan.claims.sort_by(|a, b| a.name.cmp(&b.name));
}

/// Adds up costs and risks, and sets the bound and its proof.
fn sum(plan: &mut Plan, context: &PlanContext<'_>) {
    let prices: UsdPerHour = plan.claims.iter().filter_map(PlannedClaim::price).sum();
    plan.cost = UsdPerHour::from_micros(prices.micros().saturating_sub(plan.covered.micros()));
    let beside = |claim| {
        interruption_risk::of_claim(context.snapshot, context.options, &context.losses, claim)
            + interruption_backoff::of_claim(context.snapshot, context.now, claim)
    };
    plan.risk = plan.claims.iter().map(beside).sum();
    let pods = |claim: &PlannedClaim| claim.planned_pods.len() as u64;
    let proven = if let Some(over_time) = &plan.over_time {
        over_time.cost == over_time.bound
    } else {
        let counted = plan.cost + plan.risk;
        // The solver rounds the loss of each pod, and the plan that of each node.
        let rounded: u64 = if plan.risk > UsdPerHour::ZERO { plan.claims.iter().map(pods).sum() } else { 0 };
        if plan.bound + UsdPerHour::from_micros(rounded) >= counted {
            plan.bound = counted;
        }
        plan.bound == counted
    };
    plan.proof = if proven {
        Proof::Exact
    } else {
        // Costs outside of solver calls need no proof.
        plan.proof.max(Proof::Complete)
    };
    plan.unknown_price_claims = plan.claims.iter().filter(|claim| claim.price().is_none()).count();
}

/// Removes pods that do not exist from the plan, except for expected pods that claims list.
fn mention_existing_pods(plan: &mut Plan) {
    let is_mentioned = |key: &PodKey| mentions(key) == Mentions::Everywhere;
    plan.placements.retain(|placement| is_mentioned(&placement.pod));
    plan.unplaced.retain(|left| is_mentioned(&left.pod));
    plan.nominations.retain(|key, _| is_mentioned(key));
}

fn count(plan: &mut Plan) {
    let existing = |claim: &PlannedClaim| claim.planned_pods.iter().filter_map(PodKey::existing).count();
    let expected = |claim: &PlannedClaim| claim.planned_pods.iter().filter_map(PodKey::owner).count();
    // Pods in the room of a static pool's new node are on a new node too.
    let on_replicas = plan.placements.iter().filter(|one| plan.buys(&one.target)).count();
    let on_new = plan.claims.iter().map(existing).sum::<usize>() + on_replicas;
    let on_existing = plan.placements.len() - on_replicas;
    plan.counts = Counts {
        total: on_existing + on_new + plan.unplaced.len(),
        on_existing,
        on_new,
        unplaced: plan.unplaced.len(),
        expected: plan.claims.iter().map(expected).sum(),
        ..plan.counts
    };
}

fn nominations(snapshot: &Snapshot, plan: &Plan) -> BTreeMap<PodKey, (Uid, String)> {
    let on_rooms = plan.placements.iter().map(|placement| {
        let (Target::Claim(ClaimName(name)) | Target::Node(name)) = &placement.target;
        (&placement.pod, name)
    });
    let on_new =
        plan.claims.iter().flat_map(|claim| claim.planned_pods.iter().map(move |pod| (pod, &claim.name.0)));
    on_rooms
        .chain(on_new)
        .filter_map(|(key, target)| {
            let pod = snapshot.pods.get(key)?;
            Some((key.clone(), (pod.uid.clone(), target.clone())))
        })
        .collect()
}
