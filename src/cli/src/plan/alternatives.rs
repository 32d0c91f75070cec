//! `plan --explain POD`: where a pod goes, and what the alternatives would cost.

use poolwright_core::PodKey;
use poolwright_core::plan::Plan;
use poolwright_report::plan::Explained;
use poolwright_solver as solver;

use super::Input;
use crate::args::Explainable;
use crate::exit::Failure;

/// Explains where `pod` goes. Uses the last solve that contained the pod, because pods that one solve leaves out go into the
/// next.
pub fn of_pod(plan: &Plan, pod: &str, namespace: Option<&str>, input: &Input) -> Result<Explained, Failure> {
    let key = input.pod_key(pod, namespace)?;
    if !input.snapshot.pods.contains_key(&key) {
        return Err(Failure::bad_input(format!("--explain: {}", input.no_such(Explainable::Pod, pod))));
    }
    let asked = plan.solves.iter().rev().find_map(|solve| {
        let class = solve.pods.iter().position(|pods| pods.contains(&key))?;
        Some((solve, class))
    });
    let Some((solve, class)) = asked else {
        return Err(Failure::bad_input(format!("--explain {pod}: {}", not_asked(plan, &key))));
    };
    let explained = solve.solution.as_ref().and_then(|solution| {
        let class = u32::try_from(class).ok()?;
        solver::explain(&solve.problem, solution, class)
    });
    let Some(details) = explained else {
        return Err(Failure::Other(anyhow::anyhow!(
            "the plan for {pod} cannot be explained; this is a bug of Poolwright"
        )));
    };
    Ok(Explained { pod: pod.to_owned(), text: details.to_string(), details })
}

/// Says why no solve contained a pod.
fn not_asked(plan: &Plan, key: &PodKey) -> String {
    if let Some(left) = plan.unplaced.iter().find(|left| left.pod == *key) {
        return format!("nothing was weighed for it: {}", left.message);
    }
    match plan.placements.iter().find(|placement| placement.pod == *key) {
        Some(placement) => format!("nothing was weighed for it: it goes to {}", placement.target),
        None => "it does not wait for a node".to_owned(),
    }
}
