//! Gangs: the pods of a PodGroup are placed in one cycle, enough of them to start or none.
//!
//! Facts: `podGroupSchedulingDefaultAlgorithm` and `submitPodGroupAlgorithmResult` (schedule_one_podgroup.go),
//! plugins/gangscheduling, Kubernetes 1.36. Difference: no pod of a gang preempts others.

use std::sync::Arc;

use poolwright_core::Pod;

use super::{Cluster, MayPreempt, Outcome, Pick, Preemption, Scheduler, Unmodelled};

/// The message of a pod that fits, while too few others of its gang do (the plugin's `Permit`).
const WAITS: &str = "waiting for minCount pods from a gang to be scheduled";

impl Scheduler {
    /// Tries to schedule the waiting pods of a gang, and returns the outcome of each. `least` of them must fit at the same time;
    /// otherwise none is bound. Pods that are not bound lose their nominations.
    ///
    /// The caller checks that the gang has its minimum number of pods, passes pods in the order of the queue, and subtracts bound
    /// pods from the minimum.
    pub fn schedule_gang(
        &self,
        cluster: &Cluster,
        pods: &[Arc<Pod>],
        least: usize,
        pick: Pick<'_>,
    ) -> Result<Vec<Outcome>, Unmodelled> {
        // Each pod sees those before it on their nodes.
        let mut after = cluster.clone();
        let mut outcomes = Vec::with_capacity(pods.len());
        for pod in pods {
            let outcome = self.place(&after, pod, MayPreempt::Disabled, &mut *pick)?;
            if let Outcome::Bind { node } = &outcome {
                after.assume(pod, node);
            }
            outcomes.push(outcome);
        }
        let is_placed = |outcome: &&Outcome| matches!(outcome, Outcome::Bind { .. });
        let starts = outcomes.iter().filter(is_placed).count() >= least;
        let refused = |message| Outcome::Unschedulable { message, preemption: Preemption::InVain };
        let decided = outcomes.into_iter().map(|outcome| match outcome {
            Outcome::Bind { node } if starts => Outcome::Bind { node },
            Outcome::Bind { .. } => refused(WAITS.to_owned()),
            Outcome::Unschedulable { message, .. } => refused(message),
        });
        Ok(decided.collect())
    }
}
