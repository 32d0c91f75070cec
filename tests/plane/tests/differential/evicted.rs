//! Preemption: compares which pods the simulated and the real scheduler evict, and where preempting pods go. Every pod has a
//! priority of its own, so that nothing is random.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use poolwright_core::{Pod, PodDisruptionBudget, PodKey, PodPhase, Snapshot};
use poolwright_plane::wait_for;
use poolwright_sim::scheduler::{Cluster, MayPreempt, Outcome, Preemption, Scheduler};
use serde_json::{Value, json};

use crate::case::{Case, EVICTING, IMPORTANCES, key, priority_class};
use crate::dice::Dice;
use crate::extender::Allowed;
use crate::play::anew;
use crate::promised::daemons;
use crate::simulated::Compared;
use crate::stage::{Stage, Verdict};

/// The time limit of an eviction.
const WITHIN: Duration = Duration::from_secs(20);

/// How to continue with a case.
enum Next {
    /// Nothing has changed but the pod just tried.
    GoOn,
    /// Pods are being deleted, and one pod is nominated to their node.
    LookAgain,
    /// More changes may follow than the test expects. The case ends.
    Stop,
}

/// Tries the waiting pods of a case with both schedulers, one after the other. Evicted pods never disappear.
pub async fn compare(stage: &Stage, case: &Case) -> anyhow::Result<Compared> {
    let mut compared = Compared::default();
    let mut dice = Dice::new(!case.seed.unwrap_or_default());
    let mut importances: Vec<u32> = (0..IMPORTANCES).collect();
    let mut important = |pod: Value| {
        let mut pod = pod;
        let drawn = dice.number(0, importances.len() as u64 - 1) as usize;
        pod["spec"]["priorityClassName"] = json!(priority_class(importances.swap_remove(drawn)));
        pod
    };
    stage.clear().await?;
    let there = case.running.iter().cloned().chain(daemons(case, &case.snapshot()?, &case.nodes));
    let there: Vec<Value> = there.map(&mut important).collect();
    futures::try_join!(stage.create_nodes(&case.nodes), stage.create_pods(&there))?;
    stage.fence().await?;
    let mut snapshot = stage.snapshot().await?;
    let mut evicted: BTreeSet<String> = BTreeSet::new();
    for object in &case.waiting {
        let mut object = important(anew(object));
        object["spec"]["schedulerName"] = json!(EVICTING);
        match ask(stage, &snapshot, &object, &mut evicted, &mut compared).await? {
            Next::Stop => break,
            Next::GoOn => snapshot = stage.snapshot().await?,
            Next::LookAgain => {
                stage.fence().await?;
                snapshot = stage.snapshot().await?;
            }
        }
    }
    Ok(compared)
}

/// Tries one pod with both schedulers.
async fn ask(
    stage: &Stage,
    snapshot: &Snapshot,
    object: &Value,
    evicted: &mut BTreeSet<String>,
    compared: &mut Compared,
) -> anyhow::Result<Next> {
    let name = key(object);
    stage.extender().allow(name.clone(), Allowed::All);
    stage.create_pods(std::slice::from_ref(object)).await?;
    let verdicts = stage.verdicts(std::slice::from_ref(&name), |_| true).await?;
    let verdict = verdicts.into_iter().next().context("one pod, one verdict")?;
    let seen = stage.pod(&name).await?;
    let after = stage.snapshot().await?;
    if places(&after, &seen.key) != places(snapshot, &seen.key) {
        // A nominated pod was placed on another node meanwhile.
        compared.count("not compared: another pod moved at the same time");
        return Ok(Next::Stop);
    }
    let pod = Pod { phase: PodPhase::Waiting, nominated_node: None, ..seen.clone() };
    let cluster = Cluster::of(snapshot);
    let outcome = Scheduler::default().schedule(&cluster, &pod, MayPreempt::LessImportant, &mut |_| 0);
    let outcome = outcome.map_err(|error| anyhow!("{error}"))?;
    let mut differ = |words: String| compared.differences.push(format!("pod {name}: {words}"));
    let (said, message, preemption) = match (verdict, outcome) {
        (Verdict::Bound(_), Outcome::Bind { .. }) => {
            let allowed = stage.extender().feasible(&name);
            let ours = Scheduler::default().feasible(&cluster, &pod).map_err(|error| anyhow!("{error}"))?;
            if ours.nodes.iter().cloned().collect::<BTreeSet<String>>() != allowed {
                differ(format!(
                    "the scheduler's rules allow {allowed:?}, the simulated one's {:?}",
                    ours.nodes
                ));
                return Ok(Next::Stop);
            }
            compared.count(if evicted.is_empty() { "bound" } else { "bound beside those that leave" });
            return Ok(Next::GoOn);
        }
        (Verdict::Unschedulable(said), Outcome::Unschedulable { message, preemption }) => {
            (said, message, preemption)
        }
        (verdict, outcome) => {
            differ(format!("the scheduler: {verdict:?}; the simulated one: {outcome:?}"));
            return Ok(Next::Stop);
        }
    };
    if stage.has_these_words() && said.trim_end() != message {
        differ(format!("the scheduler says {said:?}, the simulated one {message:?}"));
    }
    let Preemption::Evict { node, victims, set_back } = preemption else {
        if let Some(node) = seen.nominated_node {
            differ(format!("it is to evict others on {node}, says the scheduler"));
            return Ok(Next::Stop);
        }
        compared.count("left without a node, nobody evicted");
        stage.delete_pods(&[name]).await?;
        return Ok(Next::GoOn);
    };
    if seen.nominated_node.as_ref() != Some(&node) {
        let theirs = seen.nominated_node;
        differ(format!("it is to evict others on {theirs:?}; the simulated one takes {node}: {victims:?}"));
        return Ok(Next::Stop);
    }
    let stays = |victim: &&PodKey| snapshot.pods.get(*victim).is_none_or(|pod| pod.deleting_since.is_none());
    let leave: Vec<String> = victims.iter().filter(stays).map(ToString::to_string).collect();
    compared.count("pods that evict others");
    for victim in &leave {
        compared.count("evicted");
        if snapshot.budgets.values().any(|budget| protects(budget, snapshot, victim)) {
            compared.count("evicted although a budget protects them");
        }
    }
    evicted.extend(leave);
    let waited = wait_for("the eviction", WITHIN, async || {
        let gone = stage.preempted().await?;
        ensure!(gone == *evicted, "evicted are {gone:?}, the simulated scheduler evicts {evicted:?}");
        Ok(())
    });
    if let Err(error) = waited.await {
        compared.differences.push(format!("pod {name} on {node}: {error:#}"));
        return Ok(Next::Stop);
    }
    // A pod that has lost its nomination is tried again at once.
    Ok(if set_back.is_empty() { Next::LookAgain } else { Next::Stop })
}

/// Checks whether a budget of the stage selects a pod.
fn protects(budget: &PodDisruptionBudget, snapshot: &Snapshot, pod: &str) -> bool {
    let Some((namespace, name)) = pod.split_once('/') else { return false };
    let known = snapshot.pods.get(&PodKey::new(namespace, name));
    budget.key.namespace == namespace
        && known.is_some_and(|pod| pod.labels.get("app") == Some(&budget.key.name))
}

/// Returns the node or the nomination of all other pods.
fn places<'a>(
    snapshot: &'a Snapshot,
    but: &PodKey,
) -> BTreeMap<&'a PodKey, (&'a PodPhase, &'a Option<String>)> {
    let others = snapshot.pods.values().filter(|pod| pod.key != *but);
    let unplaced = |pod: &&std::sync::Arc<Pod>| {
        matches!(pod.phase, PodPhase::Bound { .. }) || pod.nominated_node.is_some()
    };
    let place = |pod: &'a std::sync::Arc<Pod>| {
        // The status of a pod without a node may change in between.
        let phase = if matches!(pod.phase, PodPhase::Bound { .. }) { &pod.phase } else { &PodPhase::Waiting };
        (&pod.key, (phase, &pod.nominated_node))
    };
    others.filter(unplaced).map(place).collect()
}
