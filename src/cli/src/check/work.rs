//! Checks of the work: pods that no node is on the way for, nodes that Poolwright bought and that are not ready, and drains that a
//! PodDisruptionBudget blocks for good.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};
use std::sync::Arc;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_controller::causes;
use poolwright_core::{Claim, PodKey, PodPhase, PodRole, Snapshot, Stage, why};
use poolwright_provider_contract::preflight::{CheckResult, Verdict};
use poolwright_terms::ConditionType;
use serde::de::DeserializeOwned;

use crate::args::CheckFlags;
use crate::connect::{self, Patience};
use crate::top::words::age;

/// The group of the checks.
const WORK: &str = "Work";

/// The selector of unfinished pods.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The time in which the controller plans for a pod, and in which the scheduler binds it to a node that has opened.
const SOON: SignedDuration = SignedDuration::from_mins(1);

/// The most objects that are named, unless all are.
const NAMED: usize = 3;

/// What is checked.
struct Seen {
    /// Claims, nodes, pods and budgets.
    snapshot: Snapshot,
    has_pools: bool,
    /// Why kinds could not be read, by their plural.
    unread: BTreeMap<String, String>,
    /// Objects that make no sense.
    left_out: Vec<String>,
    now: Timestamp,
    names_all: bool,
}

/// Reads the cluster and checks its work; without pools and claims, there is nothing to check.
pub async fn run(flags: &CheckFlags, now: Timestamp) -> Vec<CheckResult> {
    let verdicts = match read(flags, now).await {
        Ok(seen) => verdicts(&seen),
        Err(error) => vec![("objects", Verdict::undetermined(causes(error.as_ref())))],
    };
    verdicts.into_iter().map(|(name, verdict)| CheckResult::new(WORK, name, verdict)).collect()
}

async fn read(flags: &CheckFlags, now: Timestamp) -> Result<Seen> {
    let client =
        connect::client(flags.kubeconfig.as_deref(), flags.context.as_deref(), Patience::Retries).await?;
    // Any version is enough, so the API server answers from memory.
    let all = ListParams::default().match_any();
    let mut unread = BTreeMap::new();
    let pools: Vec<NodePool> = list(&client, &all, &mut unread).await;
    let claims: Vec<NodeClaim> = list(&client, &all, &mut unread).await;
    let nodes: Vec<k8s::Node> = list(&client, &all, &mut unread).await;
    let pods: Vec<k8s::Pod> = list(&client, &all.clone().fields(UNFINISHED), &mut unread).await;
    let budgets: Vec<PodDisruptionBudget> = list(&client, &all, &mut unread).await;
    let mut left_out = Vec::new();
    let claims = converted(&claims, poolwright_intake::node_claim, &mut left_out);
    let nodes = converted(&nodes, poolwright_intake::node, &mut left_out);
    let pods = converted(&pods, poolwright_intake::pod, &mut left_out);
    let budgets = converted(&budgets, poolwright_intake::budget, &mut left_out);
    let snapshot = Snapshot {
        claims: claims.into_iter().map(|claim| (claim.name.clone(), Arc::new(claim))).collect(),
        nodes: nodes.into_iter().map(|node| (node.name.clone(), Arc::new(node))).collect(),
        pods: pods.into_iter().map(|pod| (pod.key.clone(), Arc::new(pod))).collect(),
        budgets: budgets.into_iter().map(|budget| (budget.key.clone(), Arc::new(budget))).collect(),
        ..Snapshot::default()
    };
    let has_pools = !pools.is_empty();
    Ok(Seen { snapshot, has_pools, unread, left_out, now, names_all: flags.names_all() })
}

/// Lists all objects of a kind; none if the kind is not installed, or if they may not be read.
async fn list<K>(client: &Client, which: &ListParams, unread: &mut BTreeMap<String, String>) -> Vec<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    match Api::<K>::all(client.clone()).list(which).await {
        Ok(listed) => listed.items,
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => {
            let plural = K::plural(&()).into_owned();
            let why = format!("cannot list {plural}: {}", causes(&error));
            unread.insert(plural, why);
            Vec::new()
        }
    }
}

fn converted<T, M, E: Display>(
    objects: &[T],
    convert: fn(&T) -> Result<M, E>,
    left_out: &mut Vec<String>,
) -> Vec<M> {
    let mut models = Vec::new();
    for object in objects {
        match convert(object) {
            Ok(model) => models.push(model),
            Err(error) => left_out.push(error.to_string()),
        }
    }
    models
}

/// A check: its name, the kinds that it needs, and what it finds.
type Check = (&'static str, &'static [&'static str], fn(&Seen) -> Verdict);

const CHECKS: [Check; 3] = [
    ("waiting pods", &["nodeclaims", "pods"], waiting_pods),
    ("nodes", &["nodeclaims", "nodes"], nodes),
    ("drains", &["nodeclaims", "pods", "poddisruptionbudgets"], drains),
];

/// Evaluates what was read.
fn verdicts(seen: &Seen) -> Vec<(&'static str, Verdict)> {
    let cannot_know = ["nodepools", "nodeclaims"].iter().any(|kind| seen.unread.contains_key(*kind));
    if !seen.has_pools && seen.snapshot.claims.is_empty() && !cannot_know {
        return Vec::new();
    }
    let verdict = |(name, needs, check): &Check| {
        let unread = needs.iter().find_map(|kind| seen.unread.get(*kind));
        (*name, unread.map_or_else(|| check(seen), |why| Verdict::undetermined(why.clone())))
    };
    let mut all: Vec<(&'static str, Verdict)> = CHECKS.iter().map(verdict).collect();
    if !seen.left_out.is_empty() {
        let named = named(&seen.left_out, "; ", seen);
        all.push(("objects", Verdict::undetermined(format!("left out: {named}"))));
    }
    all
}

/// Names the first of these, or all if that is asked for.
fn named(all: &[String], between: &str, seen: &Seen) -> String {
    let most = if seen.names_all { all.len() } else { NAMED.min(all.len()) };
    let more = if all.len() > most { format!("; and {} more", all.len() - most) } else { String::new() };
    format!("{}{more}", all[..most].join(between))
}

/// Checks the pods for which the scheduler found no node.
fn waiting_pods(seen: &Seen) -> Verdict {
    let is_coming = |claim: &&Claim| {
        let opened = claim.since(ConditionType::Initialized);
        !claim.stage().is_leaving() && opened.is_none_or(|opened| is_recent(opened, seen.now))
    };
    let claims = seen.snapshot.claims.values().map(|claim| &**claim);
    let planned: BTreeSet<&PodKey> = claims.filter(is_coming).flat_map(|claim| &claim.planned_pods).collect();
    // A claim may list pods that did not exist yet. Pods of their namespace take these places.
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for key in planned.iter().filter(|key| key.owner().is_some()) {
        *places.entry(key.namespace()).or_default() += 1;
    }
    let mut without: Vec<(Timestamp, &PodKey)> = Vec::new();
    let mut coming = 0;
    for pod in seen.snapshot.pods.unbound().filter(|pod| pod.role == PodRole::Workload) {
        let PodPhase::Unschedulable { since, .. } = &pod.phase else { continue };
        let place = places.get_mut(pod.key.namespace()).filter(|left| **left > 0);
        if planned.contains(&pod.key) {
            coming += 1;
        } else if let Some(place) = place {
            *place -= 1;
            coming += 1;
        } else {
            without.push((*since, &pod.key));
        }
    }
    let on_the_way = match coming {
        0 => String::new(),
        1 => "; a node is on the way for 1 more pod".to_owned(),
        more => format!("; nodes are on the way for {more} more pods"),
    };
    let Some((since, oldest)) = without.iter().min() else {
        return Verdict::fine(match coming {
            0 => "no pod is unschedulable".to_owned(),
            1 => "1 pod is unschedulable, and a node is on the way for it".to_owned(),
            all => format!("{all} pods are unschedulable, and nodes are on the way for all of them"),
        });
    };
    let pods = match without.len() {
        1 => format!("1 pod is unschedulable, {oldest} for {}", age(*since, seen.now)),
        all => format!("{all} pods are unschedulable, the oldest {oldest} for {}", age(*since, seen.now)),
    };
    if is_recent(*since, seen.now) {
        return Verdict::fine(format!("{pods}{on_the_way}"));
    }
    let them = if without.len() == 1 { "it" } else { "them" };
    Verdict::wrong(
        format!("{pods}, and no node is on the way for {them}{on_the_way}"),
        format!("poolwright explain pod {oldest} says why, and what to change"),
    )
}

/// Returns whether the next step may still be under way since this time.
fn is_recent(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) <= SOON
}

/// Checks the nodes that have opened. A node that starts or ends need not be ready.
fn nodes(seen: &Seen) -> Verdict {
    let claims = seen.snapshot.claims.values();
    let open = claims.filter(|claim| matches!(claim.stage(), Stage::Initialized | Stage::Disrupting));
    let (mut all, mut down, mut first) = (0_usize, Vec::new(), None);
    for claim in open {
        let Some(name) = claim.node_name.as_ref() else { continue };
        all += 1;
        let state = match seen.snapshot.nodes.get(name) {
            Some(node) if node.ready => continue,
            Some(node) => node.condition("Ready").map_or_else(
                || "reports no condition Ready".to_owned(),
                |ready| {
                    let cause = ready.cause.trim_end_matches('.');
                    let why = if cause.is_empty() { String::new() } else { format!(" ({cause})") };
                    format!("has not been ready for {}{why}", age(ready.since, seen.now))
                },
            ),
            None => "does not exist".to_owned(),
        };
        first.get_or_insert(&claim.name);
        down.push(format!("{name} {state}"));
    }
    match first {
        None if all == 0 => Verdict::fine("none is open"),
        None if all == 1 => Verdict::fine("1 is open, and ready"),
        None => Verdict::fine(format!("{all} are open, all of them ready")),
        Some(claim) => Verdict::wrong(
            format!("{} of {all} open nodes: {}", down.len(), named(&down, "; ", seen)),
            format!("poolwright explain claim {claim} says what becomes of the node and its pods"),
        ),
    }
}

/// Checks the drains. One that has a deadline ends in any case.
fn drains(seen: &Seen) -> Verdict {
    let (mut all, mut blocked, mut first) = (0_usize, Vec::new(), None);
    for claim in seen.snapshot.claims.values().filter(|claim| claim.stage() == Stage::Draining) {
        if claim.since(ConditionType::Drained).is_some() {
            continue;
        }
        all += 1;
        let endless = claim.node_name.as_ref().filter(|_| claim.ends_at().is_none());
        let Some((name, why)) =
            endless.and_then(|name| Some((name, why::undrainable(&seen.snapshot, name)?)))
        else {
            continue;
        };
        let since = claim.deleting_since.unwrap_or(seen.now);
        first.get_or_insert(&claim.name);
        let why = why.trim_end_matches('.');
        blocked.push(format!("node {name} has to drain for {} now. {why}", age(since, seen.now)));
    }
    match first {
        None if all == 0 => Verdict::fine("none is under way"),
        None => Verdict::fine(format!("{all} under way, and no budget blocks one for good")),
        Some(claim) => Verdict::wrong(
            named(&blocked, "; ", seen),
            format!(
                "change the budget, or delete the pods; poolwright explain claim {claim} says what the drain waits for"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::top::testing::{claim, deleted, node, now, objects, pod, unschedulable, up};

    fn seen(claims: Vec<Value>, nodes: Vec<Value>, pods: Vec<Value>) -> Seen {
        let mut left_out = Vec::new();
        let claims = converted(&objects::<NodeClaim>(claims), poolwright_intake::node_claim, &mut left_out);
        let nodes = converted(&objects::<k8s::Node>(nodes), poolwright_intake::node, &mut left_out);
        let pods = converted(&objects::<k8s::Pod>(pods), poolwright_intake::pod, &mut left_out);
        let snapshot = Snapshot {
            claims: claims.into_iter().map(|claim| (claim.name.clone(), Arc::new(claim))).collect(),
            nodes: nodes.into_iter().map(|node| (node.name.clone(), Arc::new(node))).collect(),
            pods: pods.into_iter().map(|pod| (pod.key.clone(), Arc::new(pod))).collect(),
            ..Snapshot::default()
        };
        Seen { snapshot, has_pools: true, unread: BTreeMap::new(), left_out, now: now(), names_all: false }
    }

    fn later(mut seen: Seen, seconds: i64) -> Seen {
        seen.now += SignedDuration::from_secs(seconds);
        seen
    }

    fn wrong(verdict: Verdict) -> String {
        match verdict {
            Verdict::Wrong { why, .. } => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pods_that_no_node_comes_for_are_wrong_after_a_minute_and_the_oldest_is_named() {
        let waiting = |claims| seen(claims, vec![], vec![unschedulable("a"), unschedulable("b")]);
        let fresh = Verdict::fine("2 pods are unschedulable, the oldest ml/a for 10s");
        assert_eq!(waiting_pods(&waiting(vec![])), fresh);
        let old = later(waiting(vec![]), 300);
        let told = "2 pods are unschedulable, the oldest ml/a for 5m10s, and no node is on the way for them";
        assert_eq!(wrong(waiting_pods(&old)), told);
        let mut coming = claim("gpu-a", "gpu", &[]);
        coming["spec"]["pods"] = json!(["ml/a"]);
        let told = "1 pod is unschedulable, ml/b for 5m10s, and no node is on the way for it; a node is on the way for 1 more pod";
        assert_eq!(wrong(waiting_pods(&later(waiting(vec![coming.clone()]), 300))), told);
        let one = |claim: &Value| later(seen(vec![claim.clone()], vec![], vec![unschedulable("a")]), 300);
        let fine = Verdict::fine("1 pod is unschedulable, and a node is on the way for it");
        assert_eq!(waiting_pods(&one(&coming)), fine);
        coming["spec"]["pods"] = json!(["ml/Job:train#0"]);
        assert_eq!(waiting_pods(&one(&coming)), fine, "it came after the plan");
        let mut gone = coming.clone();
        gone["spec"]["pods"] = json!(["ml/a"]);
        wrong(waiting_pods(&one(&deleted(gone))));
        assert_eq!(waiting_pods(&seen(vec![], vec![], vec![])), Verdict::fine("no pod is unschedulable"));
    }

    #[test]
    fn an_open_node_that_is_not_ready_or_gone_is_wrong_and_a_starting_one_is_not() {
        let claims = || ["a", "b", "c"].map(|name| claim(name, "gpu", &up(&[]))).to_vec();
        let mut down = node("b");
        down["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown",
            "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": "2026-03-01T11:55:00Z"}]);
        let found = wrong(nodes(&seen(claims(), vec![node("a"), down.clone()], vec![])));
        assert!(
            found.starts_with("2 of 3 open nodes: b has not been ready for 5m00s (NodeStatusUnknown"),
            "{found}"
        );
        assert!(found.ends_with("; c does not exist"), "{found}");
        let all = seen(claims(), ["a", "b", "c"].map(node).to_vec(), vec![]);
        assert_eq!(nodes(&all), Verdict::fine("3 are open, all of them ready"));
        let joined = [("Launched", "True", ""), ("Registered", "True", "")];
        let starting = seen(vec![claim("b", "gpu", &joined)], vec![down], vec![]);
        assert_eq!(nodes(&starting), Verdict::fine("none is open"));
    }

    #[test]
    fn a_drain_that_a_budget_blocks_for_good_is_wrong_unless_a_deadline_ends_it() {
        let mut running = pod("x", Some("a"));
        running["metadata"]["labels"] = json!({"app": "x"});
        running["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        let budget = json!({"metadata": {"name": "keep", "namespace": "ml", "uid": "keep"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "x"}}}});
        let drain = |claim: Value| seen(vec![deleted(claim)], vec![node("a")], vec![running.clone()]);
        let open = || claim("a", "gpu", &up(&[]));
        assert_eq!(drains(&drain(open())), Verdict::fine("1 under way, and no budget blocks one for good"));
        let blocked = |claim: Value| {
            let mut seen = drain(claim);
            let budgets: Vec<PodDisruptionBudget> = objects(vec![budget.clone()]);
            let budgets = converted(&budgets, poolwright_intake::budget, &mut seen.left_out);
            seen.snapshot.budgets =
                budgets.into_iter().map(|budget| (budget.key.clone(), Arc::new(budget))).collect();
            assert!(seen.left_out.is_empty(), "{:?}", seen.left_out);
            seen
        };
        let found = wrong(drains(&blocked(open())));
        let start =
            "node a has to drain for 30s now. It cannot be drained: PodDisruptionBudget ml/keep never";
        assert!(found.starts_with(start), "{found}");
        let mut ends = open();
        ends["spec"]["deadlines"] = json!({"termination": "1h"});
        assert!(!drains(&blocked(ends)).is_wrong());
        assert_eq!(drains(&seen(vec![open()], vec![], vec![])), Verdict::fine("none is under way"));
    }

    #[test]
    fn what_may_not_be_read_is_undetermined_and_a_cluster_without_pools_has_no_work_to_check() {
        let mut blind = seen(vec![], vec![], vec![]);
        blind.unread.insert("pods".to_owned(), "cannot list pods: forbidden".to_owned());
        let found = verdicts(&blind);
        let why = Verdict::undetermined("cannot list pods: forbidden");
        assert_eq!(found[0], ("waiting pods", why.clone()));
        assert_eq!(found[1], ("nodes", Verdict::fine("none is open")));
        assert_eq!(found[2], ("drains", why));
        let empty = Seen { has_pools: false, ..seen(vec![], vec![], vec![]) };
        assert!(verdicts(&empty).is_empty());
    }
}
