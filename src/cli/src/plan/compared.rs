//! Plans for a caller that compares several.

use std::collections::BTreeSet;

use jiff::Timestamp;
use poolwright_controller::clock::SystemClock;
use poolwright_core::plan::PlanOptions;
use poolwright_core::{PodKey, PodPhase, PodRole, Snapshot};
use poolwright_report::plan::{Document, DocumentContext, Refusal, document};

use super::{Input, PlanWithRoom, joined, lost, plan_with_room};
use crate::args::SearchFlags;
use crate::exit::Failure;
use crate::solve_timer::SolveTimer;

/// A plan, with what it means for pods that run.
pub struct Planned {
    /// The plan.
    pub document: Document,
    /// The running pods that give way to others.
    pub giving_way: BTreeSet<PodKey>,
}

impl Input {
    /// Returns the same input with another snapshot.
    pub fn with_snapshot(&self, snapshot: Snapshot) -> Self {
        Self { snapshot, ..self.clone() }
    }

    /// Returns the name of a pod, as plans show it.
    pub fn name_of(&self, pod: &PodKey) -> String {
        self.names.name(pod)
    }

    /// Returns the pods that others preempt, and that no controller makes anew.
    pub fn preempted_for_good(&self) -> impl Iterator<Item = &PodKey> {
        self.preempting.iter().flat_map(|one| &one.victims).filter(move |victim| {
            let victim = self.snapshot.pods.get(*victim);
            victim.is_some_and(|pod| pod.role == PodRole::Workload && pod.phase == PodPhase::Finished)
        })
    }

    /// Plans as the controller does.
    pub fn planned(
        &self,
        now: Timestamp,
        options: &PlanOptions,
        search: &SearchFlags,
    ) -> Result<Planned, Failure> {
        let clock = SystemClock::new();
        let mut timer = SolveTimer::new(&clock, search.time_limit());
        let PlanWithRoom { mut plan, explanations } =
            plan_with_room(&self.snapshot, now, options, &mut timer);
        lost::tell(&mut plan, self);
        let runs = |pod: &&PodKey| {
            let pod = self.snapshot.pods.get(*pod);
            pod.is_some_and(|pod| matches!(pod.phase, PodPhase::Bound { .. }))
        };
        let giving_way = explanations.keys().filter(runs).cloned().collect();
        let refused = self.refused.iter();
        let refused = refused.map(|one| Refusal { object: one.object.clone(), pods: one.pods });
        let context = DocumentContext {
            snapshot: &self.snapshot,
            catalogue: self.catalogue.clone(),
            unread: self.unread.clone(),
            on_unknown_nodes: self.on_unknown_nodes.clone(),
            refused: refused.collect(),
            notes: joined::joined(self.notes.clone()),
            names: self.names,
            counts_risk: options.spot_risk.is_some(),
        };
        let document =
            document(plan, context, timer.times()).map_err(|refused| Failure::Other(refused.into()))?;
        Ok(Planned { document, giving_way })
    }
}
