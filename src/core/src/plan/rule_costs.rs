//! What rules cost: the plan is compared with a plan that lacks one of them.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_solver::{Proof, StopSignal};
use poolwright_terms::labels::HOSTNAME;

use crate::model::plan::{CostRule, Plan, RuleCost};
use crate::model::relaxed::PreferencePolicy;
use crate::model::{PlanOptions, Pod, PodKey, Pool, Snapshot, SpotRules};
use crate::plan::once::plan_changed;
use crate::plan::prepare::Prepared;

/// Adds the cost of each rule by which the plan may cost more than another one. Rules that provably cost nothing are no longer in
/// force.
pub(crate) fn tell(
    plan: &mut Plan,
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    stop: &mut dyn StopSignal,
) {
    if !plan.refused.is_empty() {
        return;
    }
    // A plan that keeps no room is compared with plans that keep none either: with kept room, these would cost more for another reason.
    let options = &PlanOptions { keeps_room: options.keeps_room && plan.by_kept_room, ..options.clone() };
    let all = [
        (CostRule::Weights, plan.by_weight),
        (CostRule::Preferences, plan.steered_pods > 0),
        (CostRule::Interruptions, plan.by_risk),
        (CostRule::SpotRules, plan.by_spot_rules),
        (CostRule::MinValues, plan.by_min_values),
        (CostRule::NodeSpread, plan.by_node_spread),
        (CostRule::KeptRoom, plan.by_kept_room),
    ];
    let in_force: Vec<CostRule> = all.into_iter().filter(|(_, holds)| *holds).map(|(rule, _)| rule).collect();
    for rule in &in_force {
        if stop.is_abandoned() {
            return;
        }
        let cost = compared(plan, &plan_lacking(*rule, snapshot, now, options, stop), *rule);
        // Each of two rules may cost nothing as long as the other is there.
        let is_free = in_force.len() == 1 && cost.cost == Some(UsdPerHour::ZERO) && !cost.at_least;
        match rule {
            // The bound without weights holds for plans with them too, and it is reached.
            CostRule::Weights if is_free => {
                (plan.by_weight, plan.in_steps) = (false, false);
                (plan.bound, plan.proof) = (plan.cost + plan.risk, Proof::Exact);
            }
            CostRule::Interruptions if is_free => plan.by_risk = false,
            CostRule::SpotRules if is_free => plan.by_spot_rules = false,
            CostRule::MinValues if is_free => plan.by_min_values = false,
            CostRule::NodeSpread if is_free => plan.by_node_spread = false,
            CostRule::KeptRoom if is_free => plan.by_kept_room = false,
            _ => {}
        }
        if !is_free {
            plan.rules.push(cost);
        }
    }
    // Without steps, the pods of all priorities are served together.
    if plan.in_steps && plan.by_priority && !stop.is_abandoned() {
        let rule = CostRule::Priorities;
        let cost = compared(plan, &plan_lacking(rule, snapshot, now, options, stop), rule);
        if cost.cost != Some(UsdPerHour::ZERO) {
            plan.rules.push(cost);
        }
    }
}

/// Makes a plan without a rule.
fn plan_lacking(
    rule: CostRule,
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    stop: &mut dyn StopSignal,
) -> Plan {
    let (snapshot, options) = lacking(rule, snapshot, options);
    plan_changed(&snapshot, now, &options, |prepared| free_pods(rule, prepared), stop)
}

/// Returns the inputs of a plan without a rule.
fn lacking<'s>(
    rule: CostRule,
    snapshot: &'s Snapshot,
    options: &PlanOptions,
) -> (Cow<'s, Snapshot>, PlanOptions) {
    let mut snapshot = Cow::Borrowed(snapshot);
    let mut options = PlanOptions { baselines: false, keep_solves: false, ..options.clone() };
    match rule {
        CostRule::Weights => change_pools(&mut snapshot, |pool| pool.weight = 0),
        CostRule::SpotRules => change_pools(&mut snapshot, |pool| pool.spot = SpotRules::default()),
        CostRule::MinValues => change_pools(&mut snapshot, |pool| pool.min_values.clear()),
        CostRule::Preferences => options.preferences = PreferencePolicy::Ignore,
        CostRule::Interruptions => {
            options.spot_risk = None;
            snapshot.to_mut().reclaims.clear();
        }
        CostRule::KeptRoom => options.keeps_room = false,
        // Expected pods and the rules of schedulers come later.
        CostRule::NodeSpread | CostRule::Priorities => {}
    }
    (snapshot, options)
}

/// Frees the pods to plan from a rule, if it is one of theirs.
fn free_pods(rule: CostRule, prepared: &mut Prepared<'_>) {
    match rule {
        CostRule::NodeSpread => {
            let is_spread = |pod: &Pod| pod.spec.spreads.iter().any(|rule| rule.topology_key == HOSTNAME);
            change_pods(prepared, is_spread, |pod| {
                pod.spec.spreads.retain(|rule| rule.topology_key != HOSTNAME);
            });
        }
        CostRule::Priorities => {
            // Nothing is bought for pods of lower priorities, and units of buffers come last in any case.
            let least = prepared.options.min_priority.unwrap_or(i32::MIN);
            let is_equal = move |pod: &Pod| pod.priority >= least && !pod.key.is_buffer();
            let equal = prepared.snapshot.pods.unbound().filter(|pod| is_equal(pod));
            if let Some(highest) = equal.map(|pod| pod.priority).max() {
                change_pods(prepared, is_equal, |pod| pod.priority = highest);
            }
        }
        _ => {}
    }
}

/// Changes the pods without a node that meet a condition.
fn change_pods(prepared: &mut Prepared<'_>, is_met: impl Fn(&Pod) -> bool, change: impl Fn(&mut Pod)) {
    let unbound = prepared.snapshot.pods.unbound();
    let keys: Vec<PodKey> = unbound.filter(|pod| is_met(pod)).map(|pod| pod.key.clone()).collect();
    for key in keys {
        prepared.snapshot.to_mut().pods.change(&key, &change);
    }
}

fn change_pools(snapshot: &mut Cow<'_, Snapshot>, change: impl Fn(&mut Pool)) {
    let pools: Vec<Arc<Pool>> = snapshot.pools.values().cloned().collect();
    for pool in pools {
        let mut changed = Pool::clone(&pool);
        change(&mut changed);
        snapshot.to_mut().pools.insert(changed.name.clone(), Arc::new(changed));
    }
}

/// Compares a plan with a plan that lacks a rule.
fn compared(plan: &Plan, without: &Plan, rule: CostRule) -> RuleCost {
    let counted = |plan: &Plan| {
        if rule == CostRule::Interruptions { plan.cost } else { plan.cost + plan.risk }
    };
    let left = |plan: &Plan| plan.unplaced.iter().map(|left| left.pod.clone()).collect::<Vec<_>>();
    let is_comparable = without.refused.is_empty()
        && plan.over_time.is_none()
        && without.over_time.is_none()
        && plan.unknown_price_claims + without.unknown_price_claims == 0
        && left(plan) == left(without);
    // A bound for certain places or steps says nothing about all plans. With some rules, the bound is below the cost of a plan although
    // the search behind it went to its end.
    let is_lowest = |plan: &Plan, cost: UsdPerHour| {
        let is_reached = plan.over_time.is_some() || cost <= plan.bound;
        plan.proof == Proof::Exact && is_reached && !plan.in_steps && plan.pinned_pods == 0
    };
    let cost = is_comparable.then(|| counted(plan).saturating_sub(counted(without)));
    // Nor does a bound for certain preferences.
    let at_least = !is_lowest(without, counted(without)) || without.steered_pods > 0;
    RuleCost {
        rule,
        cost,
        at_least,
        at_most: !is_lowest(plan, plan.cost + plan.risk),
        risk: counted(without).saturating_sub(without.cost),
    }
}
