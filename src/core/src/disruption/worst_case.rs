//! What the new nodes of a move cost at worst. With `minValues`, a launch names several offerings together, and the cloud may launch
//! the dearest of them. If a move counted on the cheapest, the new node could be as dear as the old one, and be replaced again.

use poolwright_catalog::UsdPerHour;

use crate::model::plan::{Plan, PlannedClaim};

/// Returns whether a new node is for successors of pods, and the cloud may choose its offering.
fn leaves_choice(claim: &PlannedClaim) -> bool {
    let is_for_successors = || claim.planned_pods.iter().any(|key| key.existing().is_none());
    claim.together > 1 && is_for_successors()
}

/// Returns the most that a new node may cost; `None` if its price is unknown.
pub(crate) fn price(claim: &PlannedClaim) -> Option<UsdPerHour> {
    if !leaves_choice(claim) {
        return claim.price();
    }
    claim.offerings.iter().take(claim.together).filter_map(|ranked| ranked.price).max()
}

/// Returns the most that the new nodes of a plan may cost. Commitments may not cover the offerings that the cloud chooses, so they
/// count only for the other nodes. These cost no more than the whole plan, nor than their prices.
pub(crate) fn cost(plan: &Plan) -> UsdPerHour {
    let (open, fixed): (Vec<&PlannedClaim>, Vec<&PlannedClaim>) =
        plan.claims.iter().partition(|claim| leaves_choice(claim));
    if open.is_empty() {
        return plan.cost;
    }
    let fixed: UsdPerHour = fixed.into_iter().filter_map(PlannedClaim::price).sum();
    let open: UsdPerHour = open.into_iter().filter_map(price).sum();
    open + fixed.min(plan.cost)
}

/// Describes the cost of the new nodes: `$1.00/h`, or `at most $4.00/h` if the cloud may choose a dearer offering.
pub(crate) fn in_words(plan: &Plan) -> String {
    let most = cost(plan);
    if most > plan.cost { format!("at most {most:#}") } else { format!("{most:#}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use poolwright_catalog::{OfferingId, RankedOffering, ResourceList};
    use poolwright_terms::{CapacityType, NodeClassRef};

    use super::*;
    use crate::model::{ClaimName, Deadlines, PodKey, PoolName, Uid};

    fn usd(dollars: u64) -> UsdPerHour {
        UsdPerHour::from_micros(dollars * UsdPerHour::MICROS_PER_USD)
    }

    /// Returns a node for a successor, with offerings at these prices that are launched together.
    fn node(dollars: &[u64]) -> PlannedClaim {
        let offering = |price: &u64| RankedOffering {
            offering: OfferingId {
                instance_type: format!("at-{price}").as_str().into(),
                zone: "a".into(),
                capacity_type: CapacityType::OnDemand,
            },
            price: Some(usd(*price)),
            allocatable: ResourceList::new(),
        };
        let successor: PodKey = "ml/Job:train#0".parse().unwrap();
        PlannedClaim {
            name: ClaimName("c".to_owned()),
            pool: PoolName("gpu".to_owned()),
            pool_uid: Uid("gpu".to_owned()),
            node_class: NodeClassRef { group: "g".to_owned(), kind: "k".to_owned(), name: "n".to_owned() },
            offerings: dollars.iter().map(offering).collect(),
            together: dollars.len(),
            choice: Vec::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            readiness_gates: Vec::new(),
            planned_pods: vec![successor],
            bought_again: Vec::new(),
            deadlines: Deadlines::default(),
            gpus: Vec::new(),
            reason: String::new(),
        }
    }

    #[test]
    fn commitments_still_pay_for_the_nodes_of_a_move_that_leave_the_cloud_no_choice() {
        let open = || node(&[1, 4]);
        let plan = |claims: Vec<PlannedClaim>, cost| Plan { claims, cost: usd(cost), ..Plan::default() };
        assert_eq!(cost(&plan(vec![node(&[10])], 2)), usd(2));
        assert_eq!(cost(&plan(vec![open()], 0)), usd(4), "the dearer one may not be covered");
        // Of $11/h, commitments pay $9/h. At most $1/h of that is for the node with a choice.
        assert_eq!(cost(&plan(vec![open(), node(&[10])], 2)), usd(6));
        assert_eq!(cost(&plan(vec![open(), node(&[10])], 11)), usd(14), "nothing is covered");
    }
}
