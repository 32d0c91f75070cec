//! `poolwright debug replan`: plans again with an input that the controller saved because its plan failed.

use std::io::Write;
use std::time::Duration;

use jiff::Timestamp;
use poolwright_controller::PlanFailure;
use poolwright_controller::clock::SystemClock;
use poolwright_core::Snapshot;
use poolwright_core::plan::{Plan, PlanOptions, StopSignal, plan};
use poolwright_terms::one_line;

use crate::args::ReplanFlags;
use crate::exit::{ExitStatus, Failure};
use crate::solve_timer::SolveTimer;
use crate::source;

/// The time limit of the search.
const LIMIT: Duration = Duration::from_secs(5);

/// Plans again, and prints the outcome.
pub fn run(flags: &ReplanFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    run_with(plan, flags, out)
}

/// Plans again with this planner.
fn run_with(
    plan: impl FnOnce(&Snapshot, Timestamp, &PlanOptions, &mut dyn StopSignal) -> Plan,
    flags: &ReplanFlags,
    out: &mut impl Write,
) -> Result<ExitStatus, Failure> {
    let source = source::file(&flags.file).map_err(Failure::bad_input)?;
    let mut saved = PlanFailure::read(&source.text).map_err(|cause| {
        Failure::bad_input(format!(
            "{}: {cause}; pass a file that `poolwright controller --save-failures` saved",
            source.name
        ))
    })?;
    let left_out = saved.snapshot.leave_out_unsound();
    tell(&saved, &left_out, out).map_err(Failure::writing)?;
    let clock = SystemClock::new();
    let mut timer = SolveTimer::new(&clock, Some(LIMIT));
    let plan = plan(&saved.snapshot.into(), saved.now, &saved.options, &mut timer);
    if !plan.refused.is_empty() {
        return Err(Failure::Other(anyhow::anyhow!(
            "the plan did not pass the independent check; this is a bug of Poolwright, please report it with the file: {}",
            plan.refused.join("; ")
        )));
    }
    let (nodes, left_out) = (plan.claims.len(), plan.unplaced.len());
    writeln!(
        out,
        "This version plans them. Nodes: {nodes}, for ${}/h. Pods left out: {left_out}.",
        plan.cost
    )
    .map_err(Failure::writing)?;
    for left in &plan.unplaced {
        writeln!(out, "Pod {}: {}", left.pod, left.message).map_err(Failure::writing)?;
    }
    Ok(ExitStatus::Done)
}

/// Says what the file has, and what of it is left out. It is written before the plan, which may panic.
fn tell(saved: &PlanFailure, left_out: &[String], out: &mut impl Write) -> std::io::Result<()> {
    let pods: Vec<String> = saved.pods.iter().map(ToString::to_string).collect();
    writeln!(
        out,
        "Poolwright {} set these pods aside at {}, because a plan with them failed: {}.",
        saved.version,
        saved.now,
        pods.join(", ")
    )?;
    if !saved.repeats {
        writeln!(
            out,
            "There, a plan of this file did not fail: the bug needs something that the file does not have."
        )?;
    }
    if !left_out.is_empty() {
        writeln!(
            out,
            "Left out, because no cluster can have taught it: {}. Usual values count instead, so this plan may differ from that one.",
            one_line(&left_out.join("; "))
        )?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::PathBuf;
    use std::sync::Arc;

    use poolwright_core::{Pod, PodKey, PodSpec};
    use serde_json::{Value, json};

    use super::*;

    /// Saves an input with one pod, changes its snapshot, and plans it again with this planner. Returns what was printed, and the outcome
    /// unless it panicked.
    fn replan(
        name: &str,
        change: fn(&mut Value),
        planner: fn(&Snapshot, Timestamp, &PlanOptions, &mut dyn StopSignal) -> Plan,
    ) -> (String, Option<Result<ExitStatus, Failure>>) {
        let pod = Pod::waiting(PodKey::new("ml", "bad"), PodSpec::default());
        let pods = [pod.key.clone()];
        let snapshot = Snapshot {
            pods: [(pod.key.clone(), Arc::new(pod))].into_iter().collect(),
            ..Snapshot::default()
        };
        let options = PlanOptions { include_waiting: true, ..PlanOptions::default() };
        let failure = PlanFailure::new(&pods, &snapshot, &options, Timestamp::UNIX_EPOCH);
        let directory: PathBuf =
            std::env::temp_dir().join(format!("poolwright-replan-{name}-{}", std::process::id()));
        let file = failure.write(&directory).unwrap();
        let mut content: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        change(&mut content["snapshot"]);
        std::fs::write(&file, content.to_string()).unwrap();
        let mut out = Vec::new();
        let outcome =
            catch_unwind(AssertUnwindSafe(|| run_with(planner, &ReplanFlags { file }, &mut out))).ok();
        std::fs::remove_dir_all(&directory).unwrap();
        (String::from_utf8(out).unwrap(), outcome)
    }

    #[test]
    fn an_input_that_the_controller_saved_is_planned_again() {
        let (said, outcome) = replan("planned", |_| (), plan);
        assert!(matches!(outcome, Some(Ok(ExitStatus::Done))), "{outcome:?}");
        assert!(said.contains("because a plan with them failed: ml/bad.\n"), "{said}");
        assert!(said.contains("Nodes: 0, for $0.00/h. Pods left out: 1.\nPod ml/bad: "), "{said}");
        assert!(!said.contains("Left out, because"), "{said}");
    }

    #[test]
    fn learned_counts_that_are_impossible_are_named_and_left_out() {
        let forge = |snapshot: &mut Value| {
            snapshot["gaps"] =
                json!({"g5.xlarge/gpu": {"ended": [4_000_000_000_u32, 1], "lost": [], "used": 0}});
        };
        let (said, outcome) = replan("forged", forge, plan);
        assert!(matches!(outcome, Some(Ok(ExitStatus::Done))), "{outcome:?}");
        let wanted = "\nLeft out, because no cluster can have taught it: idle times of nodes of kind `g5.xlarge/gpu`. Usual values count";
        assert!(said.contains(wanted), "{said}");
    }

    #[test]
    fn a_plan_that_panicked_panics_again_after_its_pods_are_named() {
        fn poisoned(snapshot: &Snapshot, _: Timestamp, _: &PlanOptions, _: &mut dyn StopSignal) -> Plan {
            assert!(snapshot.pods.get(&PodKey::new("ml", "bad")).is_none(), "a bug");
            Plan::default()
        }
        let (said, outcome) = replan("panicked", |_| (), poisoned);
        assert!(outcome.is_none(), "{outcome:?}");
        assert!(said.contains("because a plan with them failed: ml/bad.\n"), "{said}");
    }
}
