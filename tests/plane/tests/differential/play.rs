//! Plays a case: Poolwright plans, the test creates the nodes, and the real scheduler binds. Then both results are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_core::Snapshot;
use poolwright_core::plan::{Plan, PlanOptions, PlannedClaim, Target, UnplacedReason, plan};
use poolwright_solver::NeverStop;
use serde_json::{Value, json};

use crate::case::{Case, PROFILES, SERVICES, key, name, profiles};
use crate::extender::Allowed;
use crate::promised::{admit, daemons, node_of, one_of_each, reserve};
use crate::stage::{Stage, Verdict};

/// The properties that must hold in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// The plan passes Poolwright's own check.
    Checked,
    /// Every waiting pod is placed once, or left over with a reason.
    Complete,
    /// Every pod that the plan places is bound to its planned node.
    Bound,
    /// No pod that the plan leaves over fits an existing node.
    NoRoom,
    /// No pod that the plan calls impossible fits a node that Poolwright could have bought.
    Impossible,
    /// Every node bought has a pod.
    Used,
    /// The nodes used cost what the plan said.
    Cost,
}

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The property.
    pub property: Property,
    /// The plan's reason, if it left a pod over.
    pub reason: Option<UnplacedReason>,
    /// A description.
    pub words: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.property, self.words)
    }
}

/// The result of a case.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The properties that did not hold.
    pub failures: Vec<Failure>,
    /// Counts by subject.
    pub tally: BTreeMap<String, u64>,
}

impl Outcome {
    fn fail(&mut self, property: Property, words: String) {
        self.failures.push(Failure { property, reason: None, words });
    }

    fn fail_left_over(&mut self, property: Property, reason: UnplacedReason, words: String) {
        self.failures.push(Failure { property, reason: Some(reason), words });
    }

    fn count(&mut self, what: &str, number: u64) {
        *self.tally.entry(what.to_owned()).or_default() += number;
    }
}

/// Returns Poolwright's plan for a case.
pub fn planned(snapshot: &Snapshot) -> Plan {
    let mut options = PlanOptions { include_waiting: true, baselines: false, ..PlanOptions::default() };
    options.profiles = profiles().expect("the profiles can be read");
    options.schedulers.extend(options.profiles.keys().cloned());
    plan(snapshot, Timestamp::from_second(1_800_000_000).unwrap_or_default(), &options, &mut NeverStop)
}

/// Plays a case as Poolwright plans it.
pub async fn play(stage: &Stage, case: &Case) -> anyhow::Result<Outcome> {
    let snapshot = case.snapshot()?;
    let plan = planned(&snapshot);
    carry_out(stage, case, &snapshot, &plan).await
}

/// Plays a case with the given plan.
pub async fn carry_out(
    stage: &Stage,
    case: &Case,
    snapshot: &Snapshot,
    plan: &Plan,
) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    if !plan.refused.is_empty() {
        outcome.fail(Property::Checked, plan.refused.join("; "));
        return Ok(outcome);
    }
    let homes = homes(case, plan, &mut outcome);
    stage.clear().await?;
    let bought: Vec<Value> = plan.claims.iter().map(|claim| node_of(case, snapshot, claim)).collect();
    let mut nodes: Vec<Value> = case.nodes.iter().chain(&bought).cloned().collect();
    let pods: Vec<Value> = case.running.iter().cloned().chain(daemons(case, snapshot, &nodes)).collect();
    if case.reserved {
        nodes = nodes.into_iter().map(reserve).collect();
    }
    futures::try_join!(stage.create_nodes(&nodes), stage.create_pods(&pods))?;
    stage.fence().await?;

    let bound = bind(stage, case, &homes, &mut outcome).await?;
    outcome.count("pods on nodes that are there", plan.placements.len() as u64);
    outcome.count("nodes bought", plan.claims.len() as u64);
    for claim in &plan.claims {
        outcome.count("pods on nodes that are bought", claim.planned_pods.len() as u64);
        if !bound.values().any(|node| *node == claim.name.0) {
            outcome.fail(
                Property::Used,
                format!("nobody is on {}, bought for {:?}", claim.name, claim.planned_pods),
            );
        }
    }
    let used = plan.claims.iter().filter(|claim| bound.values().any(|node| *node == claim.name.0));
    let cost: UsdPerHour = used.filter_map(PlannedClaim::price).sum();
    if cost != plan.cost {
        outcome
            .fail(Property::Cost, format!("the plan costs {:#}, and what is used of it {cost}", plan.cost));
    }
    left_over(stage, case, snapshot, plan, &mut outcome).await?;
    Ok(outcome)
}

/// Returns the planned node of each waiting pod, by the pod's key.
fn homes(case: &Case, plan: &Plan, outcome: &mut Outcome) -> BTreeMap<String, String> {
    let mut homes = BTreeMap::new();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for placement in &plan.placements {
        let (Target::Node(node) | Target::Claim(poolwright_core::ClaimName(node))) = &placement.target;
        homes.insert(placement.pod.to_string(), node.clone());
        *seen.entry(placement.pod.to_string()).or_default() += 1;
    }
    for claim in &plan.claims {
        for pod in &claim.planned_pods {
            homes.insert(pod.to_string(), claim.name.0.clone());
            *seen.entry(pod.to_string()).or_default() += 1;
        }
    }
    for left in &plan.unplaced {
        *seen.entry(left.pod.to_string()).or_default() += 1;
    }
    let waiting: BTreeMap<String, u32> = case.waiting.iter().map(|pod| (key(pod), 1)).collect();
    if seen != waiting {
        outcome.fail(Property::Complete, format!("there are {waiting:?}, and the plan speaks of {seen:?}"));
    }
    homes
}

/// Returns the pod under a new name, so that no status of an earlier pod is taken for its own.
pub fn anew(pod: &Value) -> Value {
    static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
    let mut pod = pod.clone();
    pod["metadata"]["name"] = json!(format!("{}.{}", name(&pod), ATTEMPTS.fetch_add(1, Ordering::Relaxed)));
    pod
}

/// Lets the scheduler bind the planned pods. Returns the node of each bound pod, by the pod's key in the case.
///
/// A pod without a place may get one later, when others are bound. So the pods left over are created again, in rounds, until a
/// round binds none of them. Then no order of events helps.
async fn bind(
    stage: &Stage,
    case: &Case,
    homes: &BTreeMap<String, String>,
    outcome: &mut Outcome,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut bound = BTreeMap::new();
    let mut open: Vec<&Value> = case.waiting.iter().filter(|pod| homes.contains_key(&key(pod))).collect();
    while !open.is_empty() {
        let tried: Vec<Value> = open
            .iter()
            .map(|pod| {
                let home = &homes[&key(pod)];
                if case.reserved { admit(anew(pod), Some(home)) } else { anew(pod) }
            })
            .collect();
        let names: Vec<String> = tried.iter().map(key).collect();
        for (name, pod) in names.iter().zip(&open) {
            let held = case.reserved && !tolerates_everything(pod);
            let allowed = if held { Allowed::All } else { Allowed::Only(homes[&key(pod)].clone()) };
            stage.extender().allow(name.clone(), allowed);
        }
        stage.create_pods(&tried).await?;
        let verdicts = stage.verdicts(&names, |_| true).await?;
        outcome.count("rounds of binding", 1);
        let mut waiting = Vec::new();
        for ((pod, name), verdict) in open.iter().zip(&names).zip(verdicts) {
            let home = &homes[&key(pod)];
            match verdict {
                Verdict::Bound(node) => {
                    if node != *home {
                        let words = format!("pod {} was planned on {home} and is on {node}", key(pod));
                        outcome.fail(Property::Bound, words);
                    }
                    bound.insert(key(pod), node);
                }
                Verdict::Unschedulable(why) => waiting.push((*pod, name.clone(), why)),
            }
        }
        if waiting.len() == open.len() {
            for (pod, name, why) in &waiting {
                let feasible = stage.extender().feasible(name);
                let home = &homes[&key(pod)];
                outcome.fail(
                    Property::Bound,
                    format!(
                        "pod {} was planned on {home}, and the scheduler says: {why} (its own rules allow {feasible:?}; bound are {bound:?})",
                        key(pod)
                    ),
                );
            }
            break;
        }
        let names: Vec<String> = waiting.iter().map(|(_, name, _)| name.clone()).collect();
        stage.delete_pods(&names).await?;
        // A pod bound between the verdict and its deletion does not matter: it is created again like the others.
        open = waiting.into_iter().map(|(pod, ..)| pod).collect();
        if !open.is_empty() {
            stage.fence().await?;
        }
    }
    Ok(bound)
}

/// Tries the pods that Poolwright left over with the scheduler: on the existing nodes, and on empty nodes of every kind that
/// Poolwright could have bought. Nothing is bound.
async fn left_over(
    stage: &Stage,
    case: &Case,
    snapshot: &Snapshot,
    plan: &Plan,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let mut left = Vec::new();
    for unplaced in &plan.unplaced {
        outcome.count(&format!("left over: {}", unplaced.reason.as_str()), 1);
        if let Some(pod) = case.waiting.iter().find(|pod| key(pod) == unplaced.pod.to_string()) {
            left.push((pod, unplaced));
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    let extras = one_of_each(snapshot);
    // For pods with spread rules, an empty node in one zone can rule out another.
    let spread = left.iter().any(|(pod, unplaced)| {
        let spec = &pod["spec"];
        let spread = spec["topologySpreadConstraints"].is_array() || spec["schedulerName"].is_string();
        spread && is_impossible(unplaced.reason)
    });
    let zones: BTreeSet<&String> = extras.iter().map(|(zone, _)| zone).filter(|_| spread).collect();
    let mut stages: Vec<Option<&String>> = vec![None];
    stages.extend(zones.into_iter().map(Some));
    let mut told: BTreeSet<String> = BTreeSet::new();
    let mut standing: Vec<String> = Vec::new();
    for zone in stages {
        let of_zone = extras.iter().filter(|(of, _)| zone.is_none_or(|zone| zone == of));
        let nodes: Vec<Value> = of_zone.map(|(_, node)| node.clone()).collect();
        let pods = daemons(case, snapshot, &nodes);
        // The names of earlier DaemonSet pods are taken.
        let pods: Vec<Value> = pods.iter().map(anew).collect();
        stage.delete_nodes(&standing).await?;
        futures::try_join!(stage.create_nodes(&nodes), stage.create_pods(&pods))?;
        standing = nodes.iter().map(|node| name(node).to_owned()).collect();
        stage.fence().await?;
        let tried: Vec<Value> = left.iter().map(|(pod, _)| admit(anew(pod), None)).collect();
        let names: Vec<String> = tried.iter().map(key).collect();
        for name in &names {
            stage.extender().allow(name.clone(), Allowed::Nothing);
        }
        stage.create_pods(&tried).await?;
        stage.verdicts(&names, |_| true).await?;
        for ((pod, unplaced), name) in left.iter().zip(&names) {
            // Nodes that are not ready run nothing. Here no controller taints them, so they are left out.
            let idle = |node: &String| case.nodes.iter().any(|one| name_of(one) == node && !is_ready(one));
            let mut feasible = stage.extender().feasible(name);
            feasible.retain(|node| !idle(node));
            let (new, there): (BTreeSet<&String>, BTreeSet<&String>) =
                feasible.iter().partition(|node| node.starts_with("extra"));
            let said = format!(
                "pod {} was left over ({}: {})",
                key(pod),
                unplaced.reason.as_str(),
                unplaced.message
            );
            if unplaced.reason == UnplacedReason::UnmodelledRule {
                if !feasible.is_empty() && told.insert(key(pod)) {
                    outcome.count(
                        "left over for a rule that is not modelled, and the scheduler would place it",
                        1,
                    );
                }
                continue;
            }
            let nodes = || case.nodes.iter().chain(extras.iter().map(|(_, node)| node));
            let known = known_of_pod(case, pod).or_else(|| {
                nodes()
                    .filter(|node| feasible.contains(name_of(node)))
                    .find_map(|node| known_of_node(case, pod, node))
            });
            let (property, words) = if !there.is_empty() {
                (Property::NoRoom, format!("{said}, and there is room on {there:?}"))
            } else if !new.is_empty() && is_impossible(unplaced.reason) {
                let node = nodes().find(|node| new.iter().any(|one| *one == name_of(node)));
                let labels = node.map(|node| node["metadata"]["labels"].to_string()).unwrap_or_default();
                (Property::Impossible, format!("{said}, and an empty node with {labels} would do"))
            } else {
                continue;
            };
            if !told.insert(key(pod)) {
                continue;
            }
            match known {
                Some(why) => outcome.count(why, 1),
                None => outcome.fail_left_over(property, unplaced.reason, words),
            }
        }
        stage.delete_pods(&names.iter().cloned().chain(pods.iter().map(key)).collect::<Vec<_>>()).await?;
    }
    Ok(())
}

const HOST: &str = "kubernetes.io/hostname";

/// Returns why Poolwright is stricter than the scheduler for this pod, as docs/design/topology.md documents. Such pods are
/// counted and are no failure.
fn known_of_pod(case: &Case, pod: &Value) -> Option<&'static str> {
    if rule_counts_daemonset(case, pod) {
        return Some("known: left over because a rule of its own counts pods of a DaemonSet");
    }
    let hosts: Vec<&Value> = case.nodes.iter().map(|node| &node["metadata"]["labels"][HOST]).collect();
    let unique: BTreeSet<&str> = hosts.iter().filter_map(|host| host.as_str()).collect();
    (unique.len() < hosts.len() && pod["spec"].to_string().contains(HOST))
        .then_some("known: left over because of nodes with one host name, or with none")
}

/// Returns the same, if one of the nodes that the scheduler would take is the reason.
fn known_of_node(case: &Case, pod: &Value, node: &Value) -> Option<&'static str> {
    let antis = &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let lacks = |term: &Value| {
        term["topologyKey"].as_str().is_some_and(|key| node["metadata"]["labels"][key].is_null())
    };
    if !case.daemonsets.is_empty() && antis.as_array().is_some_and(|all| all.iter().any(lacks)) {
        return Some(
            "known: left over because it keeps away from a DaemonSet's pods over a label that the node lacks",
        );
    }
    node["metadata"]["labels"][HOST]
        .is_null()
        .then_some("known: left over because of nodes with one host name, or with none")
}

/// Checks whether a spread or an affinity of the pod may select pods of a DaemonSet. Ignores expressions.
fn rule_counts_daemonset(case: &Case, pod: &Value) -> bool {
    let spec = &pod["spec"];
    let required = &spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let spreads = spec["topologySpreadConstraints"].as_array();
    // Spread over hosts is exact, because the number of such pods on a host is known.
    let spreads = spreads.into_iter().flatten().filter(|rule| rule["topologyKey"] != HOST);
    let rules: Vec<&Value> = spreads.chain(required.as_array().into_iter().flatten()).collect();
    let by_default = spec["topologySpreadConstraints"].is_null()
        && spec["schedulerName"].as_str().is_some_and(|name| PROFILES.contains(&name));
    let app = &pod["metadata"]["labels"]["app"];
    if by_default && app.as_str().is_some_and(|app| SERVICES.contains(&app)) {
        let same = |set: &Value| {
            set["spec"]["template"]["metadata"]["labels"]["app"] == *app
                && set["metadata"]["namespace"] == pod["metadata"]["namespace"]
        };
        let over_hosts = spec["schedulerName"] == "apart";
        if !over_hosts && case.daemonsets.iter().any(same) {
            return true;
        }
    }
    let about = |rule: &Value, set: &Value| {
        let labels = &set["spec"]["template"]["metadata"]["labels"];
        let wanted = rule["labelSelector"]["matchLabels"].as_object();
        rule["labelSelector"].is_object()
            && wanted.is_none_or(|wanted| wanted.iter().all(|(key, value)| labels[key] == *value))
    };
    rules.into_iter().any(|rule| case.daemonsets.iter().any(|set| about(rule, set)))
}

/// Checks whether the reason says that nothing on offer would do.
fn is_impossible(reason: UnplacedReason) -> bool {
    matches!(reason, UnplacedReason::NoOfferingFits | UnplacedReason::TopologyRule)
}

/// Checks whether the pod tolerates every `NoSchedule` taint.
fn tolerates_everything(pod: &Value) -> bool {
    let everything = |one: &Value| {
        one["operator"] == "Exists"
            && one["key"].is_null()
            && (one["effect"].is_null() || one["effect"] == "NoSchedule")
    };
    pod["spec"]["tolerations"].as_array().is_some_and(|all| all.iter().any(everything))
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.is_none_or(|all| !all.iter().any(|one| one["type"] == "Ready" && one["status"] != "True"))
}

fn name_of(node: &Value) -> &str {
    name(node)
}
