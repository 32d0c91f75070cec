//! Plans for a cluster whose pods are taken off their nodes.

use std::mem;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_core::plan::PlanOptions;
use poolwright_core::{Pod, PodDuration, PodPhase, Pool, PoolName, Snapshot};
use poolwright_report::plan::Document;

use crate::args::SearchFlags;
use crate::exit::Failure;
use crate::plan::Input;

/// The cluster, and how to plan for it.
pub struct Planner<'a> {
    /// The cluster.
    pub input: Input,
    /// The options of plans.
    pub options: PlanOptions,
    /// How far to search.
    pub search: &'a SearchFlags,
    /// The time of all plans.
    pub now: Timestamp,
}

impl Planner<'_> {
    /// Plans for another snapshot than that of the cluster.
    pub fn document(&mut self, snapshot: Snapshot, options: &PlanOptions) -> Result<Document, Failure> {
        let kept = mem::replace(&mut self.input.snapshot, snapshot);
        let planned = self.input.planned(self.now, options, self.search);
        self.input.snapshot = kept;
        Ok(planned?.document)
    }
}

/// Lets a pod that runs wait for a node, as its successor will. How long it still runs does not count, because the answer is about
/// what the cluster costs while it runs.
pub fn unbind(pod: &mut Pod) {
    pod.phase = PodPhase::Unschedulable { since: pod.created, message: "its node goes".to_owned() };
    pod.nominated_node = None;
    pod.reserved_for.clear();
    pod.duration = PodDuration::default();
}

/// Changes every pool.
pub fn change_pools(snapshot: &mut Snapshot, change: impl Fn(&mut Pool)) {
    let names: Vec<PoolName> = snapshot.pools.keys().cloned().collect();
    for name in names {
        if let Some(pool) = snapshot.pools.get_mut(&name) {
            change(Arc::make_mut(pool));
        }
    }
}

/// Returns the lower bound of a plan; `None` if it has none, or one that holds only for the choices that the plan made first.
pub fn bound(plan: &Document) -> Option<UsdPerHour> {
    let is_of_all = plan.pinned_pods == 0 && !plan.in_steps && plan.over_time.is_none();
    plan.lower_bound_usd_per_hour.filter(|_| is_of_all)
}
