//! A bug of the planner: plans fail while certain pods wait. They panic, or the independent check refuses them. The controller must set
//! these pods aside.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::Method;
use jiff::Timestamp;
use poolwright_controller::{PlanFunction, Spawner};
use poolwright_core::plan::{Plan, PlanOptions, StopSignal, plan};
use poolwright_core::{PodPhase, Snapshot};
use poolwright_terms::labels;
use serde_json::{Value, json};

use crate::api::ApiServer;
use crate::cluster::{JobPlan, NAMESPACE};
use crate::dice::Dice;
use crate::run::Sabotage;
use crate::time::Time;
use crate::work::pod_spec;

/// How a plan fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Panics,
    Refused,
}

/// The names of the Jobs with whose pods plans fail.
const JOBS: [(&str, Failure); 2] = [("panics", Failure::Panics), ("refused", Failure::Refused)];

/// The message of a panic that is a fault of the world, and no bug of the planner.
struct PoisonedPlan;

/// Draws a Job with whose pods plans fail. They fit no node, so they wait until a user deletes the Job.
pub(crate) fn job(dice: &mut Dice) -> JobPlan {
    let (name, _) = JOBS[dice.below(JOBS.len())];
    let arrives = dice.between(Duration::from_secs(1), Duration::from_mins(25));
    let pods = 1 + u32::try_from(dice.below(3)).unwrap_or(0);
    let kept = dice.between(Duration::from_mins(10), Duration::from_mins(50));
    let mut spec = pod_spec("1", "2Gi", 0);
    spec["nodeSelector"] = json!({(labels::ZONE): "nowhere"});
    let plan = JobPlan::new(name, arrives, pods, spec);
    JobPlan { never: true, kept: Some(kept), is_withdrawn: true, ..plan }
}

fn failure_of(job: &str) -> Option<Failure> {
    JOBS.iter().find(|(name, _)| *name == job).map(|(_, failure)| *failure)
}

/// The planner of a world's controllers, with the bug.
#[derive(Clone)]
pub(crate) struct Planning {
    server: ApiServer,
    time: Time,
    sabotage: Option<Sabotage>,
    failed: Arc<Mutex<Vec<Duration>>>,
}

impl Planning {
    /// Makes the planner of a world.
    pub fn new(server: ApiServer, time: Time, sabotage: Option<Sabotage>) -> Self {
        Self { server, time, sabotage, failed: Arc::default() }
    }

    /// Returns what a controller calls.
    pub fn function(&self) -> PlanFunction {
        let own = self.clone();
        Arc::new(
            move |snapshot: &Snapshot, now: Timestamp, options: &PlanOptions, stop: &mut dyn StopSignal| {
                own.plan(snapshot, now, options, stop)
            },
        )
    }

    /// Returns when plans failed by the bug, in order.
    pub fn failed(&self) -> Vec<Duration> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn plan(
        &self,
        snapshot: &Snapshot,
        now: Timestamp,
        options: &PlanOptions,
        stop: &mut dyn StopSignal,
    ) -> Plan {
        let Some(failure) = self.failure(snapshot) else {
            let plan = plan(snapshot, now, options, stop);
            // This is a bug of the real planner. The panic ends the controller, which is a violation.
            assert!(plan.refused.is_empty(), "the independent check refused a plan: {:?}", plan.refused);
            return plan;
        };
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(self.time.elapsed());
        match failure {
            Failure::Panics => resume_unwind(Box::new(PoisonedPlan)),
            Failure::Refused => {
                Plan { refused: vec!["a bug of the simulated planner".to_owned()], ..Plan::default() }
            }
        }
    }

    /// Returns how a plan for this snapshot fails, if it does.
    fn failure(&self, snapshot: &Snapshot) -> Option<Failure> {
        if self.sabotage == Some(Sabotage::NothingIsSetAside) {
            return self.failure_in_cluster();
        }
        let waits = |phase: &PodPhase| matches!(phase, PodPhase::Waiting | PodPhase::Unschedulable { .. });
        let mut waiting = snapshot.pods.unbound().filter(|pod| waits(&pod.phase));
        waiting.find_map(|pod| failure_of(pod.labels.get("job")?))
    }

    /// Returns how a plan fails that does not leave out any pod of the cluster.
    fn failure_in_cluster(&self) -> Option<Failure> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
        let (_, list) = self.server.ask(&Method::GET, &path, "", &Value::Null);
        let pods = list["items"].as_array()?;
        pods.iter().find_map(|pod| failure_of(pod["metadata"]["labels"]["job"].as_str()?))
    }
}

/// Runs computations on this thread, because virtual time stands still meanwhile. Like a thread of its own, it ends the panic of a
/// poisoned plan. Any other panic is a bug, and goes on.
pub(crate) fn in_line() -> Spawner {
    Arc::new(|work: Box<dyn FnOnce() + Send>| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work))
            && !panic.is::<PoisonedPlan>()
        {
            resume_unwind(panic);
        }
    })
}
