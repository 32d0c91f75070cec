//! Disruption stays within the budgets of each pool.

use poolwright_api::NodeClaim;
use poolwright_core::{Cause, CountOrPercent, DisruptionBudget};
use poolwright_terms::Reason;
use poolwright_terms::keys::NODEPOOL_LABEL;

use super::{Memory, Scene};

pub(super) const RULE: &str =
    "no more healthy nodes are disrupted at a time than a budget of their pool allows";

pub(super) fn check(scene: &Scene<'_>, _: &mut Memory) -> Option<String> {
    scene.cluster.view().pools.values().find_map(|pool| {
        let of_pool = |claim: &&NodeClaim| {
            let labels = claim.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(NODEPOOL_LABEL)) == Some(&pool.name.0)
        };
        let causes: Vec<Cause> = scene.cluster.claims.values().filter(of_pool).filter_map(cause).collect();
        pool.disruption.budgets.iter().find_map(|budget| beyond(&causes, budget)).map(|(leave, most)| {
            format!("{leave} nodes of pool {} are emptied at a time, and {most} may be", pool.name)
        })
    })
}

/// Returns the number of nodes disrupted and the limit, if it is exceeded. It checks budgets with a fixed number and no schedule.
fn beyond(causes: &[Cause], budget: &DisruptionBudget) -> Option<(u64, u64)> {
    let (CountOrPercent::Count(most), None) = (budget.nodes, &budget.window) else { return None };
    let concerned = |cause: &&Cause| budget.causes.is_empty() || budget.causes.contains(cause);
    let leave = causes.iter().filter(concerned).count() as u64;
    (leave > most).then_some((leave, most))
}

/// Returns the cause for which a healthy node with pods is disrupted.
pub(super) fn leaves(claim: &NodeClaim) -> Option<Cause> {
    cause(claim).filter(|cause| *cause != Cause::Empty)
}

/// Returns the cause for which a healthy node is disrupted, with or without pods.
fn cause(claim: &NodeClaim) -> Option<Cause> {
    let mut conditions = claim.status.iter().flat_map(|status| &status.conditions);
    let disrupting = conditions.find(|one| one.type_ == "Disrupting" && one.status == "True")?;
    // A node that the cloud interrupts is not healthy.
    Reason::named(&disrupting.reason).and_then(Cause::of).filter(|cause| *cause != Cause::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_beyond_a_budget_are_seen_if_it_is_about_their_cause() {
        let budget = |causes: &[Cause]| DisruptionBudget {
            nodes: CountOrPercent::Count(1),
            causes: causes.iter().copied().collect(),
            window: None,
        };
        let two = [Cause::Drifted, Cause::Expired];
        assert_eq!(beyond(&two, &budget(&[])), Some((2, 1)));
        assert_eq!(beyond(&two, &budget(&[Cause::Drifted])), None);
        assert_eq!(beyond(&two[..1], &budget(&[])), None);
    }
}
