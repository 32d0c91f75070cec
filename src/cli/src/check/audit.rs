//! The audit: whether claims, nodes, limits and the instances of the clouds agree. It looks at one moment, so it allows for what a
//! controller may still be doing.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use kube::api::ListParams;
use kube::{Api, Client};
use poolwright_api as api;
use poolwright_catalog::UsdPerHour;
use poolwright_controller::causes;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_core::plan::PlanOptions;
use poolwright_core::why::{Broken, Exceeded, broken, closing_taint};
use poolwright_core::{Claim, Instances, ListedInstance, Node, Pool, Snapshot, Uid};
use poolwright_provider_contract::preflight::{CheckResult, Verdict};
use poolwright_provider_contract::{ConnectError, Instance, Site};

use super::cluster::NOT_CHECKED;
use crate::args::CheckFlags;
use crate::clouds::clouds;
use crate::connect::{self, Patience};
use crate::node_classes::NodeClasses;

/// The group of the checks.
const AUDIT: &str = "Audit";

/// The selector of unfinished pods. Only they use nodes.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// What is compared.
struct Seen {
    /// Claims, nodes and pools, and the pods if a namespace has a limit.
    snapshot: Snapshot,
    /// The money limit of pools that state none.
    default_usd_per_hour: Option<UsdPerHour>,
    listed: Listed,
    now: Timestamp,
}

/// The instances of the clouds that the flags enable.
#[derive(Default)]
struct Listed {
    instances: Vec<Instance>,
    /// The kinds of their node classes.
    kinds: BTreeSet<&'static str>,
    /// Why the instances of other clouds could not be listed.
    failures: Vec<String>,
}

/// Reads the cluster and the clouds, and compares them. `is_reached` says whether the API server can be used.
pub async fn run(flags: &CheckFlags, classes: &NodeClasses, is_reached: bool) -> Vec<CheckResult> {
    if !is_reached {
        return vec![CheckResult::new(AUDIT, "objects", Verdict::undetermined(NOT_CHECKED))];
    }
    match read(flags, classes).await {
        Ok(seen) => verdicts(&seen),
        Err(error) => vec![("objects".to_owned(), Verdict::undetermined(causes(error.as_ref())))],
    }
    .into_iter()
    .map(|(name, verdict)| CheckResult::new(AUDIT, &name, verdict))
    .collect()
}

async fn read(flags: &CheckFlags, classes: &NodeClasses) -> Result<Seen> {
    let (client, cluster) =
        connect::configured(flags.kubeconfig.as_deref(), flags.context.as_deref(), Patience::Retries).await?;
    let clock = SystemClock::new();
    let now = clock.now();
    let all = ListParams::default();
    let claims = list::<api::NodeClaim>(&client, &all).await.context("cannot list nodeclaims")?;
    let nodes = list::<k8s::Node>(&client, &all).await.context("cannot list nodes")?;
    let pools = list::<api::NodePool>(&client, &all).await.context("cannot list nodepools")?;
    let namespaces = list::<k8s::Namespace>(&client, &all).await.context("cannot list namespaces")?;
    let mut snapshot = snapshot(
        claims.iter().filter_map(|claim| poolwright_intake::node_claim(claim).ok()),
        nodes.iter().filter_map(|node| poolwright_intake::node(node).ok()),
        pools.iter().map(poolwright_intake::node_pool),
    );
    for namespace in &namespaces {
        snapshot.put_namespace(poolwright_intake::namespace(namespace));
    }
    // Large clusters have many pods, and nothing else needs them.
    if !snapshot.namespace_limits.is_empty() {
        let running = ListParams::default().fields(UNFINISHED);
        let pods = list::<k8s::Pod>(&client, &running).await.context("cannot list pods")?;
        let pods = pods.iter().filter_map(|pod| poolwright_intake::pod(pod).ok());
        snapshot.pods.extend(pods.map(|pod| (pod.key.clone(), Arc::new(pod))));
    }
    let site = Site {
        flags: flags.clouds.values.clone(),
        client,
        cluster,
        catalogue: Arc::new(poolwright_catalog::builtin()),
        clock: Arc::new(move || clock.now()),
    };
    Ok(Seen {
        snapshot,
        default_usd_per_hour: flags.default_limit.usd_per_hour(),
        listed: instances(&site, classes).await,
        now,
    })
}

/// Returns a snapshot of these objects.
fn snapshot(
    claims: impl IntoIterator<Item = Claim>,
    nodes: impl IntoIterator<Item = Node>,
    pools: impl IntoIterator<Item = Pool>,
) -> Snapshot {
    Snapshot {
        claims: claims.into_iter().map(|claim| (claim.name.clone(), Arc::new(claim))).collect(),
        nodes: nodes.into_iter().map(|node| (node.name.clone(), Arc::new(node))).collect(),
        pools: pools.into_iter().map(|pool| (pool.name.clone(), Arc::new(pool))).collect(),
        ..Snapshot::default()
    }
}

async fn list<K>(client: &Client, which: &ListParams) -> kube::Result<Vec<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    Ok(Api::<K>::all(client.clone()).list(which).await?.items)
}

/// Lists the instances of the clouds that node classes use and the flags enable, each cloud by itself.
async fn instances(site: &Site, classes: &NodeClasses) -> Listed {
    let mut all = Listed::default();
    for cloud in clouds() {
        let kind = cloud.node_class.kind.kind;
        if !classes.keys().any(|class| class.kind == kind) {
            continue;
        }
        let found = match cloud.connect.connect(site).await {
            Ok(None) => continue,
            Ok(Some(connected)) => {
                connected.provider.list().await.map_err(|error| format!("{}: {error}", cloud.short))
            }
            Err(ConnectError::BadFlag(why) | ConnectError::Cluster(why)) => Err(why),
        };
        match found {
            Ok(found) => {
                all.instances.extend(found);
                all.kinds.insert(kind);
            }
            Err(why) => all.failures.push(why),
        }
    }
    all
}

fn verdicts(seen: &Seen) -> Vec<(String, Verdict)> {
    let mut all = Vec::new();
    let mut snapshot = seen.snapshot.clone();
    let Listed { instances, kinds, failures } = &seen.listed;
    let mut unknown = |why: &str| all.push(("instances".to_owned(), Verdict::undetermined(why)));
    for why in failures {
        unknown(why);
    }
    if !kinds.is_empty() {
        let of: Vec<&str> = kinds.iter().copied().collect();
        snapshot.instances = Some(Instances::new(&of, seen.now, instances.iter().map(listed)));
    } else if failures.is_empty() {
        unknown(
            "no enabled cloud can list instances; add the flags that enable the clouds of your controller",
        );
    }
    let options = PlanOptions { default_usd_per_hour: seen.default_usd_per_hour, ..PlanOptions::default() };
    let found = broken(&snapshot, &options, kinds, seen.now);
    let holds = |names: &[&str]| !found.iter().any(|one| names.contains(&one.name()));
    let mut fine = |what: &str, told: String| all.push((what.to_owned(), Verdict::fine(told)));
    if snapshot.instances.is_some() {
        let launched =
            |claim: &Claim| claim.launched.is_some() && kinds.contains(claim.node_class.kind.as_str());
        if holds(&["claim-without-instance"]) {
            let count = snapshot.claims.values().filter(|claim| launched(claim)).count();
            fine("claims", format!("the instances of {count} NodeClaims are listed"));
        }
        if holds(&["instance-without-claim"]) {
            fine("instances", format!("each of {} has a NodeClaim", instances.len()));
        }
    }
    if holds(&["closed-node"]) {
        let told = match snapshot.nodes.values().filter(|node| closing_taint(node).is_some()).count() {
            0 => "none is closed".to_owned(),
            count => format!("{count} are closed, each for a reason"),
        };
        fine("closed nodes", told);
    }
    if holds(&["namespace-limit", "pool-limit"]) {
        fine("limits", format!("{} NodePools are within their limits", snapshot.pools.len()));
    }
    all.extend(found.iter().map(|one| wrong(one, instances)));
    all
}

fn listed(instance: &Instance) -> ListedInstance {
    ListedInstance {
        provider_id: instance.provider_id.clone(),
        claim_uid: Uid(instance.key.clone()),
        node_class: instance.node_class.clone(),
        launched: instance.launched,
    }
}

/// Names the object of a broken invariant, and says what is wrong and what to do.
fn wrong(broken: &Broken<'_>, instances: &[Instance]) -> (String, Verdict) {
    match broken {
        Broken::ClaimWithoutInstance { claim, provider_id } => {
            let why = format!("the cloud does not list its instance {provider_id}");
            let fix = format!(
                "kubectl describe nodeclaim {}; compare the tags of the instance, and the account and region",
                claim.name
            );
            (format!("NodeClaim {}", claim.name), Verdict::wrong(why, fix))
        }
        Broken::InstanceWithoutClaim(one) => {
            let instance = instances.iter().find(|instance| instance.provider_id == one.provider_id);
            let what =
                instance.map_or_else(|| "instance".to_owned(), |instance| instance.offering.to_string());
            let why = format!("you pay for this {what}, and no NodeClaim has it");
            let fix =
                "a controller that leads terminates it within minutes; if none does, terminate it yourself";
            (format!("instance {}", one.provider_id), Verdict::wrong(why, fix))
        }
        Broken::ClosedNode { node, why } => {
            let fix = format!("poolwright open {}", node.name);
            (format!("Node {}", node.name), Verdict::wrong(why.clone(), fix))
        }
        Broken::LackingNode { node, claim, lacks } => {
            let why = format!("it lacks what its NodeClaim promises: {}", lacks.join("; "));
            let fix = format!(
                "look at its kubelet and its device plugin, or let it go: kubectl delete nodeclaim {}",
                claim.name
            );
            (format!("Node {}", node.name), Verdict::wrong(why, fix))
        }
        Broken::NamespaceLimit { namespace, exceeded } => {
            let Exceeded { name, used, most, .. } = exceeded;
            let why = format!("its pods use {used} of the limit {name} = {most}");
            let fix = "raise the limit if you lowered it on purpose, or remove pods; Poolwright buys nothing for its pods until then, but \
                       they may use free room";
            (format!("Namespace {namespace}"), Verdict::wrong(why, fix))
        }
        Broken::PoolLimit { pool, exceeded } => {
            let name = pool.map_or_else(|| "NodePools".to_owned(), |pool| format!("NodePool {}", pool.name));
            (name, over_limit(*pool, exceeded))
        }
    }
}

/// Says how a pool exceeds a limit, and what to do.
fn over_limit(pool: Option<&Pool>, exceeded: &Exceeded) -> Verdict {
    let Exceeded { name, used, most, is_default } = exceeded;
    let fix = match pool {
        Some(pool) if *is_default && !pool.allow_unknown_price.is_empty() => {
            "give the --default-usd-per-hour of your controller here too, raise both, or remove NodeClaims; a limit of \
             the pool's own would end its allowUnknownPrices"
        }
        Some(_) if *is_default => {
            "set limits.usdPerHour of the pool, or remove NodeClaims; if your controller has another \
             --default-usd-per-hour, give it here too"
        }
        _ => {
            "raise the limit if you lowered it on purpose, or remove NodeClaims; the pool buys nothing until then"
        }
    };
    let its = if *is_default { "the default limit" } else { "its limit" };
    let why = match name.as_str() {
        "usdPerHour" => format!("its nodes cost {used}, more than {its} of ${most}/h"),
        "nodes" if used == "1" => format!("it has 1 node, more than {its} of {most}"),
        "nodes" => format!("it has {used} nodes, more than {its} of {most}"),
        resource => format!("its nodes have {used} of {resource}, more than {its} of {most}"),
    };
    Verdict::wrong(why, fix)
}

#[cfg(test)]
mod tests {
    use poolwright_terms::keys::{DISRUPTED_TAINT, RESERVED_TAINT};
    use serde_json::{Value, json};

    use super::*;

    fn claim(name: &str, conditions: &[&str]) -> Claim {
        let condition = |kind: &&str| json!({"type": kind, "status": "True", "reason": "Launched", "message": "m", "lastTransitionTime": "2026-03-01T11:00:00Z"});
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        let claim = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": name, "uid": format!("u-{name}"), "labels": {"poolwright.dev/nodepool": "gpu"},
                "creationTimestamp": "2026-03-01T11:00:00Z"},
            "spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"},
                "offerings": [{"instanceType": "g5.xlarge", "zone": "a", "capacityType": "on-demand",
                    "usdPerHour": "1.006", "allocatable": {"cpu": "4"}}]},
            "status": {"providerID": format!("kwok://{name}"), "nodeName": name, "conditions": conditions}});
        poolwright_intake::node_claim(&serde_json::from_value(claim).unwrap()).unwrap()
    }

    fn node(name: &str, taint: Option<&str>) -> Node {
        let taints: Vec<Value> =
            taint.iter().map(|key| json!({"key": key, "value": name, "effect": "NoSchedule"})).collect();
        let node = json!({"metadata": {"name": name}, "spec": {"providerID": format!("kwok://{name}"), "taints": taints},
            "status": {"allocatable": {"cpu": "4"}}});
        poolwright_intake::node(&serde_json::from_value(node).unwrap()).unwrap()
    }

    fn instance(name: &str) -> Instance {
        let claim = claim(name, &[]);
        Instance {
            provider_id: format!("kwok://{name}"),
            key: claim.uid.0.clone(),
            claim: name.to_owned(),
            offering: claim.current_offering().offering.clone(),
            node_class: claim.node_class,
            launched: "2026-03-01T11:00:00Z".parse().unwrap(),
            state: poolwright_provider_contract::InstanceState::Running,
        }
    }

    fn pool(limits: &Value) -> Pool {
        let pool = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "gpu", "uid": "p"},
            "spec": {"limits": limits, "template": {"spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"}}}}});
        poolwright_intake::node_pool(&serde_json::from_value(pool).unwrap())
    }

    const OPEN: [&str; 3] = ["Launched", "Registered", "Initialized"];

    fn listing(instances: Vec<Instance>) -> Listed {
        Listed { instances, kinds: ["KwokNodeClass"].into(), failures: Vec::new() }
    }

    fn seen() -> Seen {
        Seen {
            snapshot: snapshot(
                [claim("a", &OPEN), claim("b", &OPEN)],
                [node("a", None), node("b", None), node("foreign", None)],
                [pool(&json!({}))],
            ),
            default_usd_per_hour: None,
            listed: listing(vec![instance("a"), instance("b")]),
            now: "2026-03-01T12:00:00Z".parse().unwrap(),
        }
    }

    impl Seen {
        fn with_pool(mut self, pool: Pool) -> Self {
            self.snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
            self
        }
    }

    /// Returns the names of what is wrong.
    fn names_of_wrong(seen: &Seen) -> Vec<String> {
        verdicts(seen).into_iter().filter(|(_, verdict)| verdict.is_wrong()).map(|(name, _)| name).collect()
    }

    #[test]
    fn a_cluster_whose_parts_agree_is_fine() {
        assert_eq!(names_of_wrong(&seen()), [""; 0]);
    }

    #[test]
    fn claims_without_instances_and_instances_without_claims_are_named() {
        let mut seen = seen();
        seen.listed = listing(vec![instance("a"), instance("lost")]);
        assert_eq!(names_of_wrong(&seen), ["NodeClaim b", "instance kwok://lost"]);
        seen.listed.failures.push("AWS: throttled".to_owned());
        assert_eq!(
            names_of_wrong(&seen),
            ["NodeClaim b", "instance kwok://lost"],
            "whatever another cloud says"
        );
        let (name, said) = verdicts(&seen).remove(0);
        assert!(matches!(said, Verdict::Undetermined(_)), "{name}: {said:?}");
        seen.now = "2026-03-01T11:05:00Z".parse().unwrap();
        assert_eq!(names_of_wrong(&seen), [""; 0], "it may still be under way");
    }

    #[test]
    fn a_node_that_is_closed_without_a_reason_is_named_with_the_command_that_opens_it() {
        let mut seen = seen();
        let nodes = || {
            [
                node("a", Some(RESERVED_TAINT)),
                node("b", Some(DISRUPTED_TAINT)),
                node("gone", Some(RESERVED_TAINT)),
            ]
        };
        seen.snapshot = snapshot([claim("a", &OPEN), claim("b", &OPEN)], nodes(), []);
        assert_eq!(names_of_wrong(&seen), ["Node a", "Node b", "Node gone"]);
        let claims = [
            claim("a", &["Initialized", "Retiring"]),
            claim("b", &["Initialized", "Disrupting"]),
            claim("gone", &[]),
        ];
        seen.snapshot = snapshot(claims, nodes(), []);
        seen.listed = Listed { failures: vec!["not asked".to_owned()], ..Listed::default() };
        assert_eq!(names_of_wrong(&seen), [""; 0]);
    }

    #[test]
    fn an_open_node_without_a_promised_resource_is_named_and_one_that_starts_is_not() {
        let mut seen = seen();
        let lacking = || Node { allocatable: poolwright_catalog::ResourceList::default(), ..node("a", None) };
        seen.snapshot = snapshot([claim("a", &OPEN), claim("b", &OPEN)], [lacking()], []);
        assert_eq!(names_of_wrong(&seen), ["Node a"]);
        let starting = claim("a", &["Launched", "Registered"]);
        seen.snapshot = snapshot([starting, claim("b", &OPEN)], [lacking()], []);
        assert_eq!(names_of_wrong(&seen), [""; 0]);
    }

    #[test]
    fn a_pool_beyond_its_limits_is_named_for_each() {
        let of = |limits: &Value| names_of_wrong(&seen().with_pool(pool(limits)));
        assert_eq!(of(&json!({"usdPerHour": "2", "nodes": "1", "cpu": "7"})), ["NodePool gpu"; 3]);
        assert_eq!(of(&json!({"usdPerHour": "2.012", "nodes": "2", "cpu": "8"})), [""; 0]);
    }

    #[test]
    fn a_namespace_beyond_its_limit_is_named() {
        let mut seen = seen();
        let namespace =
            json!({"metadata": {"name": "ml", "annotations": {"poolwright.dev/limit-nodes": "1"}}});
        let namespace: k8s::Namespace = serde_json::from_value(namespace).unwrap();
        seen.snapshot.put_namespace(poolwright_intake::namespace(&namespace));
        let mut add = |name: &str| {
            let pod = json!({"metadata": {"name": name, "namespace": "ml", "uid": name},
                "spec": {"nodeName": name, "containers": [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]}});
            let pod = poolwright_intake::pod(&serde_json::from_value(pod).unwrap()).unwrap();
            seen.snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
            names_of_wrong(&seen)
        };
        assert_eq!(add("a"), [""; 0]);
        assert_eq!(add("b"), ["Namespace ml"]);
    }

    #[test]
    fn a_pool_that_states_no_money_limit_has_the_default_one_which_is_named_as_such() {
        let with = |limits: &Value, default: Option<&str>| {
            let default_usd_per_hour = default.map(|amount| amount.parse().unwrap());
            let seen = Seen { default_usd_per_hour, ..seen().with_pool(pool(limits)) };
            verdicts(&seen).pop().unwrap().1
        };
        let none = json!({});
        let Verdict::Wrong { why, fix } = with(&none, Some("2")) else { panic!("they cost 2.012") };
        assert_eq!(why, "its nodes cost $2.02/h, more than the default limit of $2.00/h");
        assert!(fix.contains("--default-usd-per-hour"), "{fix}");
        for (limits, default) in [
            (&none, Some("2.012")),
            (&none, None),
            (&json!({"usdPerHour": "2.012"}), Some("2")),
            (&json!({"usdPerHour": "much"}), Some("2")),
        ] {
            assert!(matches!(with(limits, default), Verdict::Fine(_)), "{limits} {default:?}");
        }
        let allowing = Pool { allow_unknown_price: ["p6-b200.48xlarge".into()].into(), ..pool(&none) };
        let default_usd_per_hour = Some("2".parse().unwrap());
        let seen = Seen { default_usd_per_hour, ..seen().with_pool(allowing) };
        let Verdict::Wrong { fix, .. } = verdicts(&seen).pop().unwrap().1 else { panic!("they cost 2.012") };
        assert!(fix.contains("would end its allowUnknownPrices"), "{fix}");
    }
}
