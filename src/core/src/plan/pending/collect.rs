//! Collects the pending pods that need a node, and gives the reason why the others do not.

use crate::demand::planned_at;
use crate::demand::volumes::Volumes;
use crate::model::PlanOptions;
use crate::model::plan::{UnplacedPod, UnplacedReason};
use crate::model::{PodPhase, PodRole, Snapshot};
use crate::plan::groups::Groups;
use crate::plan::pending::{Demand, PendingPod};

pub(crate) fn collect<'a>(
    snapshot: &'a Snapshot,
    options: &PlanOptions,
    volumes: &Volumes,
    groups: &Groups<'a>,
) -> Demand<'a> {
    let mut demand = Demand::default();
    for pod in snapshot.pods.unbound() {
        if pod.role != PodRole::Workload || pod.deleting_since.is_some() {
            continue;
        }
        let mut out = |reason, message: String| {
            demand.unplaced.push(UnplacedPod { pod: pod.key.clone(), reason, message });
        };
        let tried = match &pod.phase {
            PodPhase::Bound { .. } | PodPhase::Finished => continue,
            PodPhase::Gated => {
                out(
                    UnplacedReason::SchedulingGated,
                    "has scheduling gates; it is planned once they are removed".to_owned(),
                );
                continue;
            }
            PodPhase::Unschedulable { .. } => true,
            PodPhase::Waiting => options.include_waiting,
        };
        if !options.schedulers.contains(&pod.scheduler) {
            out(
                UnplacedReason::OtherScheduler,
                format!(
                    "scheduler `{}` places it, and Poolwright plans for {}",
                    pod.scheduler,
                    quoted(options)
                ),
            );
            continue;
        }
        if let Some((reason, message)) = groups.hold(pod) {
            out(reason, message);
            continue;
        }
        let planned_at = planned_at(snapshot, pod);
        if !tried && planned_at.is_none() {
            out(UnplacedReason::NotYetTried, not_yet_tried());
            continue;
        }
        if let Some(least) = options.min_priority.filter(|least| pod.priority < *least) {
            out(
                UnplacedReason::LowPriority,
                format!(
                    "its priority {} is below {least}, the lowest for which Poolwright buys nodes (--min-priority); it runs where room is left",
                    pod.priority
                ),
            );
            continue;
        }
        if let Some((reason, message)) = volumes.waits.get(&pod.key) {
            out(*reason, message.clone());
            continue;
        }
        if let Some(rule) = pod.spec.unmodelled.first() {
            let more = pod.spec.unmodelled.len() - 1;
            let others = if more == 0 { String::new() } else { format!(" (and {more} more)") };
            out(
                UnplacedReason::UnmodelledRule,
                format!(
                    "uses {} (`{}`){others}, which Poolwright does not model, so it buys no node for the pod; correct or remove the rule, or add a node by hand",
                    rule.rule, rule.field
                ),
            );
            continue;
        }
        demand.pending.push(PendingPod { pod, planned_at, sticky_only: !tried });
    }
    groups.retain_startable(snapshot, &mut demand);
    demand
}

/// Removes buffer units if an existing pod needs a new place, because pods come first. A plan from files plans pods and units
/// together.
pub(crate) fn give_way(open: &mut Vec<PendingPod<'_>>, options: &PlanOptions) {
    let exists = |want: &PendingPod<'_>| want.pod.key.existing().is_some();
    if !options.include_waiting && open.iter().any(exists) {
        open.retain(|want| !want.pod.key.is_buffer());
    }
}

pub(crate) fn not_yet_tried() -> String {
    "the scheduler has not tried it yet".to_owned()
}

fn quoted(options: &PlanOptions) -> String {
    options.schedulers.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
