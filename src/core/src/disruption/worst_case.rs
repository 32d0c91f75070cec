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
/// count for nothing if it may choose one.
pub(crate) fn cost(plan: &Plan) -> UsdPerHour {
    if plan.claims.iter().any(leaves_choice) { plan.claims.iter().filter_map(price).sum() } else { plan.cost }
}

/// Describes the cost of the new nodes: `$1.00/h`, or `at most $4.00/h` if the cloud may choose a dearer offering.
pub(crate) fn in_words(plan: &Plan) -> String {
    let most = cost(plan);
    if most > plan.cost { format!("at most {most:#}") } else { format!("{most:#}") }
}
