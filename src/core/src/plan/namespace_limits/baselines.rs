//! Baselines under limits of namespaces. They are computed without these limits, so those that may exceed one are marked.

use poolwright_catalog::UsdPerHour;

use crate::demand::Successor;
use crate::model::NamespaceLimit;
use crate::model::baseline::Baseline;
use crate::model::plan::Plan;
use crate::plan::context::PlanContext;
use crate::plan::namespace_limits::Ceilings;
use crate::supply::namespace_use::NamespaceUse;

impl PlanContext<'_> {
    /// Marks the baselines of a plan that may exceed a limit of a namespace for which the plan buys nodes.
    pub(super) fn judge_baselines(&self, ceilings: &Ceilings<'_>, successors: &[Successor], plan: &mut Plan) {
        let accounts = self.accounts(successors, Some(&*plan));
        // A share may be the whole price, also of what commitments pay.
        let committed: UsdPerHour = plan.commitments.iter().map(|of| of.left).sum();
        let is_beyond = |baseline: &Baseline| {
            ceilings.iter().any(|(namespace, ceilings)| {
                let standing = accounts.standing(namespace);
                accounts.bought(namespace) != NamespaceUse::default()
                    && ceilings.iter().any(|ceiling| {
                        let most_added = match ceiling.kind {
                            NamespaceLimit::Nodes => baseline.nodes,
                            NamespaceLimit::UsdPerHour => (baseline.cost + committed).micros(),
                            // The same pods have the same GPUs on any nodes.
                            NamespaceLimit::Gpus => return false,
                        };
                        standing.of(ceiling.kind).saturating_add(most_added) > ceiling.most
                    })
            })
        };
        let beyond = [&plan.baselines.one_pod_per_node, &plan.baselines.first_fit].map(is_beyond);
        drop(accounts);
        let all = [&mut plan.baselines.one_pod_per_node, &mut plan.baselines.first_fit];
        for (baseline, is_beyond) in all.into_iter().zip(beyond) {
            baseline.ignores_namespace_limits |= is_beyond;
        }
    }
}
