//! The plan that changes nothing, for callers that no longer wait for a better one.

use poolwright_catalog::UsdPerHour;

use crate::problem::Problem;
use crate::solution::{Solution, Stopped, Unplaced, UnplacedReason};

/// Returns the plan that buys no node, removes none, and leaves out all waiting pods. The reason of the pods means nothing.
pub(crate) fn nothing(problem: &Problem) -> Solution {
    let waiting = (0..).zip(&problem.classes).filter(|(_, class)| class.count > 0);
    let unplaced = waiting.map(|(class, of)| Unplaced {
        class,
        count: of.count,
        reason: UnplacedReason::NoMoreAvailable,
    });
    let staying = problem.existing.iter().filter_map(|node| node.removal.as_ref());
    let paid = staying.fold(0, |sum: u64, removal| sum.saturating_add(removal.price.micros()));
    Solution {
        unplaced: unplaced.collect(),
        cost: UsdPerHour::from_micros(paid),
        stopped: Stopped::Asked,
        commitment_use: vec![UsdPerHour::ZERO; problem.commitments.len()],
        ..Solution::default()
    }
}
