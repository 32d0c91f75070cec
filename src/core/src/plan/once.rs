//! One plan, without a comparison with others.

use jiff::Timestamp;
use poolwright_solver::StopSignal;

use crate::model::plan::Plan;
use crate::model::{PlanOptions, Snapshot};
use crate::plan::attempt::Attempt;
use crate::plan::context::PlanContext;
use crate::plan::prepare::Prepared;
use crate::plan::{prepare, report};

/// Makes a plan, without the costs of rules.
pub(crate) fn plan_once(
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    stop: &mut dyn StopSignal,
) -> Plan {
    plan_changed(snapshot, now, options, |_| {}, stop)
}

/// Makes such a plan after a change of its inputs, to which preparation has added what it adds.
pub(crate) fn plan_changed(
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    change: impl FnOnce(&mut Prepared<'_>),
    stop: &mut dyn StopSignal,
) -> Plan {
    let mut prepared = prepare::prepare(snapshot, now, options);
    change(&mut prepared);
    let (mut context, mut supply) = PlanContext::new(&prepared);
    // Each attempt places pods, packs the rest onto new nodes, and creates claims for these nodes.
    let Attempt { mut plan, limits_reached, violations, .. } =
        context.weigh_within_namespaces(&prepared.successors, &supply, stop);
    context.audit(&mut plan, &violations);
    context.audit_namespaces(&prepared.successors, &mut plan);
    report::limits_reached(&mut supply, limits_reached.into_iter().chain(prepared.ordered.limits.clone()));
    plan.retirements = context.retirements(&supply, &plan.unplaced);
    plan.again_at = [plan.again_at, context.retirements_expire()].into_iter().flatten().min();
    report::complete(&mut plan, &prepared, &context, supply);
    plan
}
