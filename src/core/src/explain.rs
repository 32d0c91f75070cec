//! What to tell the users of a plan.

use crate::action::Action;
use crate::plan::Plan;

/// Events on pods and claims and conditions of pools that follow from a plan. They repeat as long as the plan says the
/// same: whoever sends them leaves out what was already said.
pub fn notices(plan: &Plan) -> Vec<Action> {
    let _ = plan;
    Vec::new()
}
