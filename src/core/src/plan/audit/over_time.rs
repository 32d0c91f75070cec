//! The audit of the cost over time: bounds that every plan keeps, from its claims, their pods, and the lives of these. It shares no code
//! with [`crate::plan::pack::horizon`], which the plan was chosen by.
//!
//! The cost itself does not follow from a plan. It counts the typical lives of groups of pods, with those that got no place. And it
//! counts room on existing nodes in the order of the solver calls. A plan records neither.

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::Usd;

use crate::model::idle::START;
use crate::model::plan::{OverTime, Plan, PlannedClaim};
use crate::model::{PlanOptions, PodKey, Snapshot};

/// Pods that are expected to end within this time may count as pods that end at once, because others of their group do.
const SOON: SignedDuration = SignedDuration::from_mins(15);
/// A pod counts with at least this part of its own expected life: within a group, lives differ by a factor of 64 at most.
const PART: i32 = 65;
/// The most that rounding makes of a node's cost, in micro-dollars.
const ROUNDING: u128 = 1_000;

/// Returns what is wrong with the cost over time of a plan; `None` if nothing is.
pub(crate) fn audit(
    snapshot: &Snapshot,
    options: &PlanOptions,
    now: Timestamp,
    plan: &Plan,
) -> Option<String> {
    let OverTime { cost, bound } = plan.over_time?;
    if bound > cost {
        return Some(format!("the cost over time is {cost:#}, and its lower bound is {bound:#}"));
    }
    // Commitments pay a part of the prices.
    if !options.commitments.is_empty() {
        return None;
    }
    let of_new = plan.claims.iter().filter_map(|claim| least(snapshot, now, claim)).sum::<u128>();
    let rounding = ROUNDING * plan.claims.len() as u128;
    (cost.0 + rounding < of_new)
        .then(|| format!("the cost over time is {cost:#}, but the new nodes alone cost {:#}", Usd(of_new)))
}

/// Returns the least cost of a new node until its pods have ended, in micro-dollars: the lowest price that it may have, until its pods
/// can start and the shortest of them has ended. `None` if it is bought for no pods.
fn least(snapshot: &Snapshot, now: Timestamp, claim: &PlannedClaim) -> Option<u128> {
    let shortest = claim.planned_pods.iter().map(|key| lasts(snapshot, now, key)).min()?;
    let price = claim.offerings.iter().filter_map(|ranked| ranked.price).min();
    Some(Usd::of(price, (START + shortest).unsigned_abs()).0)
}

/// Returns the least time for which a pod counts.
fn lasts(snapshot: &Snapshot, now: Timestamp, key: &PodKey) -> SignedDuration {
    // The successor of a pod that gives way counts for an hour at most.
    let pod = snapshot.pods.get(key).filter(|pod| pod.replaces.is_none());
    pod.map_or(SignedDuration::ZERO, |pod| part(snapshot.lives.of(pod, now).life.mean()))
}

/// Returns the least time for which a pod with this expected life counts.
fn part(mean: SignedDuration) -> SignedDuration {
    // Groups differ by whole seconds.
    if mean.as_secs() > SOON.as_secs() { mean / PART } else { SignedDuration::ZERO }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use poolwright_catalog::{OfferingId, RankedOffering, ResourceList, UsdPerHour};
    use poolwright_terms::{CapacityType, NodeClassRef};

    use super::*;
    use crate::model::{ClaimName, Deadlines, Lives, Pod, PodDuration, PodSpec, PoolName, Uid};

    /// Returns a node for $1/h for one pod.
    fn bought(pod: &Pod) -> PlannedClaim {
        let offering = OfferingId {
            instance_type: "g5.xlarge".into(),
            zone: "a".into(),
            capacity_type: CapacityType::OnDemand,
        };
        let price = Some(UsdPerHour::from_micros(1_000_000));
        PlannedClaim {
            name: ClaimName("gpu-1".into()),
            pool: PoolName("gpu".into()),
            pool_uid: Uid("pool-gpu".into()),
            node_class: NodeClassRef { group: "g".into(), kind: "k".into(), name: "n".into() },
            offerings: vec![RankedOffering { offering, price, allocatable: ResourceList::new() }],
            together: 0,
            choice: Vec::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            readiness_gates: Vec::new(),
            planned_pods: vec![pod.key.clone()],
            bought_again: Vec::new(),
            deadlines: Deadlines::default(),
            gpus: Vec::new(),
            reason: String::new(),
        }
    }

    /// Returns what is wrong with these costs, in micro-dollars, of a node for $1/h for a pod that is expected to run for so long.
    fn said(hours: i64, cost: u128, bound: u128) -> Option<String> {
        let expected = Some(SignedDuration::from_hours(hours));
        let duration = PodDuration { expected, ..PodDuration::default() };
        let pod = Pod { duration, ..Pod::waiting(PodKey::new("default", "a"), PodSpec::default()) };
        let over_time = Some(OverTime { cost: Usd(cost), bound: Usd(bound) });
        let plan = Plan { claims: vec![bought(&pod)], over_time, ..Plan::default() };
        let mut snapshot = Snapshot { lives: Arc::new(Lives::prior()), ..Snapshot::default() };
        snapshot.pods.insert(pod.key.clone(), pod.into());
        audit(&snapshot, &PlanOptions::default(), Timestamp::UNIX_EPOCH, &plan)
    }

    #[test]
    fn a_plan_whose_cost_over_time_is_less_than_its_nodes_cost_at_least_is_refused() {
        assert_eq!(said(100, 110_000_000, 110_000_000), None);
        let one_and_a_half = said(100, 1_500_000, 0).expect("a hundred hours cost more");
        assert!(one_and_a_half.contains("but the new nodes alone cost $"), "{one_and_a_half}");
        let start = said(0, 10_000, 0).expect("a start costs three cents");
        assert!(
            start.starts_with("the cost over time is $0.0100, but the new nodes alone cost $0.03"),
            "{start}"
        );
    }

    #[test]
    fn a_plan_whose_lower_bound_is_above_its_cost_over_time_is_refused() {
        let why = said(100, 110_000_000, 120_000_000);
        assert_eq!(why.as_deref(), Some("the cost over time is $110.00, and its lower bound is $120.00"));
    }

    #[test]
    fn a_life_within_the_last_second_of_the_shortest_group_may_count_as_none() {
        assert_eq!(part(SignedDuration::from_millis(900_500)), SignedDuration::ZERO);
        assert!(part(SignedDuration::from_secs(901)) > SignedDuration::from_secs(13));
    }
}
