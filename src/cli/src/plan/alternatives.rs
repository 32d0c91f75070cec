//! `plan --explain POD`: where a pod goes, and what the alternatives would cost.

use std::collections::BTreeSet;

use poolwright_core::PodKey;
use poolwright_core::plan::{Plan, Solve};
use poolwright_report::plan::Explained;
use poolwright_solver::Explanation;

use super::Input;
use crate::args::Explainable;
use crate::exit::Failure;

/// One call of the solver for pods like the asked one.
struct Step<'p> {
    /// The pods of their class.
    pods: &'p [PodKey],
    /// Where they went.
    details: Explanation,
    /// Whether costs count how long nodes are paid for.
    is_over_time: bool,
}

impl Step<'_> {
    fn words(&self) -> String {
        let mut words = self.details.to_string();
        if self.is_over_time && !(self.details.alternatives.is_empty() && self.details.scarce.is_empty()) {
            words.push_str(
                "what others would cost and save counts how long nodes are paid for: half the time counts half\n",
            );
        }
        words
    }
}

/// Explains where `pod` and the pods like it go. A solve may leave some of them out, which go into the next. The details are those of
/// the last solve that contained the pod.
pub fn of_pod(plan: &Plan, pod: &str, namespace: Option<&str>, input: &Input) -> Result<Explained, Failure> {
    let key = input.pod_key(pod, namespace)?;
    if !input.snapshot.pods.contains_key(&key) {
        return Err(Failure::bad_input(format!("--explain: {}", input.no_such(Explainable::Pod, pod))));
    }
    let classes = plan.solves.iter().flat_map(|solve| &solve.pods);
    let alike: BTreeSet<&PodKey> = classes.filter(|pods| pods.contains(&key)).flatten().collect();
    if alike.is_empty() {
        return Err(Failure::bad_input(format!("--explain {pod}: {}", not_asked(plan, &key))));
    }
    let steps: Vec<Step<'_>> = plan.solves.iter().filter_map(|solve| step(solve, &alike)).collect();
    let Some(own) = steps.iter().rposition(|step| step.pods.contains(&key)) else {
        return Err(Failure::Other(anyhow::anyhow!(
            "the plan for {pod} cannot be explained; this is a bug of Poolwright"
        )));
    };
    Ok(Explained { pod: pod.to_owned(), text: text(pod, &steps, own), details: steps[own].details.clone() })
}

/// Explains what a solve did with the pods of a class; `None` if it had none of them.
fn step<'p>(solve: &'p Solve, alike: &BTreeSet<&PodKey>) -> Option<Step<'p>> {
    let class = solve.pods.iter().position(|pods| pods.iter().any(|pod| alike.contains(pod)))?;
    let details = solve.explain(class)?;
    Some(Step { pods: &solve.pods[class], details, is_over_time: solve.is_over_time })
}

/// Returns the explanation of all steps in words. Steps between that placed no pod are left out.
fn text(pod: &str, steps: &[Step<'_>], own: usize) -> String {
    if let [only] = steps {
        return only.words();
    }
    let all = steps.len();
    let mut lines = vec![format!(
        "chosen in {all} steps: each plans the pods that the one before it left out, and pools of a higher weight come first"
    )];
    for (at, step) in steps.iter().enumerate() {
        if at != own && at + 1 != all && step.details.placed.is_empty() {
            continue;
        }
        let number = at + 1;
        let whose = match step.pods.len() {
            _ if at == 0 => String::new(),
            1 => format!(", for the 1 pod that step {at} left out"),
            many => format!(", for the {many} pods that step {at} left out"),
        };
        let place = if at == own { format!(", the last with {pod}") } else { String::new() };
        lines.push(format!("step {number} of {all}{whose}{place}:"));
        lines.extend(step.words().lines().map(|line| format!("  {line}")));
        if number < all {
            lines.push(format!("  step {} of {all} plans the pods that this step leaves out", number + 1));
        }
    }
    lines.join("\n")
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
