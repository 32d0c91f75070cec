//! Compares the simulated scheduler (`poolwright_sim::scheduler`) with the real one, pod by pod, on the same clusters. Both must
//! find the same nodes, and write the same message for a pod without one.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, anyhow};
use poolwright_core::{PodPhase, Snapshot};
use poolwright_sim::scheduler::{Cluster, MayPreempt, Outcome, Preemption, Scheduler};
use serde_json::{Value, json};

use crate::case::{Case, key, profiles};
use crate::dice::Dice;
use crate::extender::Allowed;
use crate::play::anew;
use crate::promised::daemons;
use crate::stage::{Stage, Verdict};

/// The result of a case.
#[derive(Debug, Default)]
pub struct Compared {
    /// The differences between both schedulers, in sentences.
    pub differences: Vec<String>,
    /// Counts by subject.
    pub tally: BTreeMap<String, u64>,
}

impl Compared {
    /// Adds one to a count.
    pub fn count(&mut self, what: &str) {
        *self.tally.entry(what.to_owned()).or_default() += 1;
    }
}

/// Tries each waiting pod of a case with both schedulers, one after the other. Bound pods stay where the real scheduler put them.
pub async fn compare(stage: &Stage, case: &Case) -> anyhow::Result<Compared> {
    let mut compared = Compared::default();
    let seed = case.seed.unwrap_or_default();
    stage.clear().await?;
    let pods: Vec<Value> =
        case.running.iter().cloned().chain(daemons(case, &case.snapshot()?, &case.nodes)).collect();
    futures::try_join!(stage.create_nodes(&case.nodes), stage.create_pods(&pods))?;
    stage.fence().await?;
    let snapshot: Snapshot = stage.snapshot().await?;
    let mut cluster = Cluster::of(&snapshot);
    let mut dice = Dice::new(!seed);
    let scheduler = Scheduler { profiles: profiles()? };
    for object in &case.waiting {
        let object = naming_nodes(anew(object), &mut dice);
        let name = key(&object);
        stage.extender().allow(name.clone(), Allowed::All);
        stage.create_pods(std::slice::from_ref(&object)).await?;
        let verdicts = stage.verdicts(std::slice::from_ref(&name), |_| true).await?;
        let verdict = verdicts.into_iter().next().context("one pod, one verdict")?;
        let mut pod = stage.pod(&name).await?;
        pod.phase = PodPhase::Waiting;
        compared.count("pods");

        let allowed = stage.extender().feasible(&name);
        let ours = scheduler.feasible(&cluster, &pod).map_err(|error| anyhow!("{error}"))?;
        let nodes: BTreeSet<String> = ours.nodes.iter().cloned().collect();
        if nodes != allowed {
            compared.differences.push(format!(
                "pod {name}: the scheduler's rules allow {allowed:?}, the simulated one's {nodes:?}: {:?}",
                ours.unfit
            ));
        }
        let mut first = |_| 0;
        let outcome = scheduler.schedule(&cluster, &pod, MayPreempt::Disabled, &mut first);
        let outcome = outcome.map_err(|error| anyhow!("{error}"))?;
        match verdict {
            Verdict::Bound(node) => {
                if ours.nodes.len() < 2 {
                    compared.count("bound where one node was left");
                } else if ours.best.contains(&node) {
                    compared.count("bound to a node with the best simulated score, of several nodes");
                } else {
                    compared.count("bound to a node with a lower simulated score");
                    println!(
                        "seed {seed}: {name} is bound to {node}, the best by score are {:?} of {nodes:?}",
                        ours.best
                    );
                }
                cluster.assume(&pod, &node);
            }
            Verdict::Unschedulable(said) => {
                compared.count("left without a node");
                let expected = Outcome::Unschedulable {
                    message: said.trim_end().to_owned(),
                    preemption: Preemption::NotTried,
                };
                if stage.has_these_words() && outcome != expected {
                    compared.differences.push(format!(
                        "pod {name}: the scheduler says {said:?}, the simulated one: {outcome:?}"
                    ));
                }
                stage.delete_pods(&[name]).await?;
            }
        }
    }
    Ok(compared)
}

/// Makes one pod in ten require a node by name.
fn naming_nodes(mut pod: Value, dice: &mut Dice) -> Value {
    if dice.chance(90) {
        return pod;
    }
    let names = dice.some(&["n0", "n1", "n2", "nowhere"]);
    let field = json!([{"key": "metadata.name", "operator": "In", "values": [names[0]]}]);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    if !pod["spec"]["affinity"]["nodeAffinity"][required].is_object() {
        pod["spec"]["affinity"]["nodeAffinity"][required] = json!({"nodeSelectorTerms": [{}]});
    }
    let terms = pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"].as_array_mut();
    for term in terms.into_iter().flatten() {
        term["matchFields"] = field.clone();
    }
    pod
}
