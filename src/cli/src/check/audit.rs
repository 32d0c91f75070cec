//! The audit: whether claims, nodes, limits and the instances of the clouds agree. It looks at one moment, so it allows for what a
//! controller may still be doing.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as k8s;
use kube::api::ListParams;
use kube::{Api, Client};
use poolwright_api as api;
use poolwright_catalog::UsdPerHour;
use poolwright_controller::causes;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_core::lifecycle::lacks;
use poolwright_core::{Claim, Node, Pool};
use poolwright_provider_contract::preflight::{CheckResult, Verdict};
use poolwright_provider_contract::{ConnectError, Instance, Site};
use poolwright_terms::ConditionType;
use poolwright_terms::keys::{DISRUPTED_TAINT, RESERVED_TAINT, UNREGISTERED_TAINT};

use crate::args::CheckFlags;
use crate::clouds::clouds;
use crate::connect::{self, Patience};
use crate::node_classes::NodeClasses;

/// The group of the checks.
const AUDIT: &str = "Audit";
/// How long the controller and the clouds may take to agree.
const SETTLED: SignedDuration = SignedDuration::from_mins(10);

/// What is compared.
struct Seen {
    claims: Vec<Claim>,
    nodes: Vec<Node>,
    pools: Vec<Pool>,
    /// The money limit of pools that state none.
    default_usd_per_hour: Option<UsdPerHour>,
    /// The instances of the clouds that the flags enable, and the kinds of their node classes.
    instances: Result<(Vec<Instance>, BTreeSet<&'static str>), String>,
    now: Timestamp,
}

/// Reads the cluster and the clouds, and compares them.
pub async fn run(flags: &CheckFlags, classes: &NodeClasses) -> Vec<CheckResult> {
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
    let claims = list::<api::NodeClaim>(&client).await.context("cannot list nodeclaims")?;
    let nodes = list::<k8s::Node>(&client).await.context("cannot list nodes")?;
    let pools = list::<api::NodePool>(&client).await.context("cannot list nodepools")?;
    let site = Site {
        flags: flags.clouds.values.clone(),
        client,
        cluster,
        catalogue: Arc::new(poolwright_catalog::builtin()),
        clock: Arc::new(move || clock.now()),
    };
    Ok(Seen {
        claims: claims.iter().filter_map(|claim| poolwright_intake::node_claim(claim).ok()).collect(),
        nodes: nodes.iter().filter_map(|node| poolwright_intake::node(node).ok()).collect(),
        pools: pools.iter().map(poolwright_intake::node_pool).collect(),
        default_usd_per_hour: flags.default_limit.usd_per_hour(),
        instances: instances(&site, classes).await,
        now,
    })
}

async fn list<K>(client: &Client) -> kube::Result<Vec<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    Ok(Api::<K>::all(client.clone()).list(&ListParams::default()).await?.items)
}

/// Lists the instances of the clouds that node classes use and the flags enable.
async fn instances(
    site: &Site,
    classes: &NodeClasses,
) -> Result<(Vec<Instance>, BTreeSet<&'static str>), String> {
    let (mut all, mut kinds) = (Vec::new(), BTreeSet::new());
    for cloud in clouds() {
        let kind = cloud.node_class.kind.kind;
        if !classes.keys().any(|class| class.kind == kind) {
            continue;
        }
        let connected = cloud.connect.connect(site).await.map_err(|error| match error {
            ConnectError::BadFlag(why) | ConnectError::Cluster(why) => why,
        })?;
        let Some(connected) = connected else { continue };
        all.extend(connected.provider.list().await.map_err(|error| format!("{}: {error}", cloud.short))?);
        kinds.insert(kind);
    }
    Ok((all, kinds))
}

fn verdicts(seen: &Seen) -> Vec<(String, Verdict)> {
    let mut all = Vec::new();
    match &seen.instances {
        Ok((instances, kinds)) if !kinds.is_empty() => {
            all.extend(of_claims(seen, instances, kinds));
            all.extend(of_instances(seen, instances));
        }
        Ok(_) => all.push((
            "instances".to_owned(),
            Verdict::undetermined("no enabled cloud can list instances; add the flags that enable the clouds of your controller"),
        )),
        Err(why) => all.push(("instances".to_owned(), Verdict::undetermined(why.clone()))),
    }
    all.extend(of_nodes(seen));
    all.extend(of_promises(seen));
    all.extend(of_limits(seen));
    all
}

/// Finds claims whose instance no cloud lists.
fn of_claims(seen: &Seen, instances: &[Instance], kinds: &BTreeSet<&str>) -> Vec<(String, Verdict)> {
    let is_there =
        |claim: &Claim, id: &str| instances.iter().any(|one| one.provider_id == id || one.key == claim.uid.0);
    let launched = seen.claims.iter().filter(|claim| kinds.contains(claim.node_class.kind.as_str()));
    let launched = launched.filter_map(|claim| Some((claim, claim.launched.as_ref()?)));
    let mut count = 0;
    let mut all: Vec<_> = launched
        .inspect(|_| count += 1)
        .filter(|(claim, launched)| {
            let since = claim.since(ConditionType::Launched).unwrap_or(claim.created);
            let is_old = seen.now.duration_since(since) > SETTLED;
            is_old
                && claim.since(ConditionType::InstanceTerminating).is_none()
                && !is_there(claim, &launched.provider_id)
        })
        .map(|(claim, launched)| {
            let why = format!("the cloud does not list its instance {}", launched.provider_id);
            let fix = format!(
                "kubectl describe nodeclaim {}; compare the tags of the instance, and the account and region",
                claim.name
            );
            (format!("NodeClaim {}", claim.name), Verdict::wrong(why, fix))
        })
        .collect();
    if all.is_empty() {
        all.push((
            "claims".to_owned(),
            Verdict::fine(format!("the instances of {count} NodeClaims are listed")),
        ));
    }
    all
}

/// Finds instances without a claim.
fn of_instances(seen: &Seen, instances: &[Instance]) -> Vec<(String, Verdict)> {
    let uids: BTreeSet<&str> = seen.claims.iter().map(|claim| claim.uid.0.as_str()).collect();
    let is_lost =
        |one: &&Instance| !uids.contains(one.key.as_str()) && seen.now.duration_since(one.launched) > SETTLED;
    let mut all: Vec<_> = instances
        .iter()
        .filter(is_lost)
        .map(|one| {
            let why = format!("you pay for this {}, and no NodeClaim has it", one.offering);
            let fix =
                "a controller that leads terminates it within minutes; if none does, terminate it yourself";
            (format!("instance {}", one.provider_id), Verdict::wrong(why, fix))
        })
        .collect();
    if all.is_empty() {
        all.push((
            "instances".to_owned(),
            Verdict::fine(format!("each of {} has a NodeClaim", instances.len())),
        ));
    }
    all
}

/// Finds nodes that Poolwright keeps closed without a reason.
fn of_nodes(seen: &Seen) -> Vec<(String, Verdict)> {
    let mut all = Vec::new();
    let mut count = 0;
    for node in &seen.nodes {
        let ours = [RESERVED_TAINT, DISRUPTED_TAINT, UNREGISTERED_TAINT];
        let Some(taint) = node.taints.iter().find(|taint| ours.contains(&taint.key.as_str())) else {
            continue;
        };
        count += 1;
        let why = match claim_of(seen, node) {
            None => Some(format!("it has the taint {}, and no NodeClaim has the node", taint.key)),
            Some(claim) => no_reason(claim, &taint.key, seen.now),
        };
        if let Some(why) = why {
            let fix = format!("poolwright open {}", node.name);
            all.push((format!("Node {}", node.name), Verdict::wrong(why, fix)));
        }
    }
    if all.is_empty() {
        let closed = if count == 0 {
            "none is closed".to_owned()
        } else {
            format!("{count} are closed, each for a reason")
        };
        all.push(("closed nodes".to_owned(), Verdict::fine(closed)));
    }
    all
}

/// Returns the claim of a node.
fn claim_of<'a>(seen: &'a Seen, node: &Node) -> Option<&'a Claim> {
    seen.claims.iter().find(|claim| {
        claim.node_name.as_ref() == Some(&node.name)
            || claim
                .launched
                .as_ref()
                .is_some_and(|launched| node.provider_id.as_ref() == Some(&launched.provider_id))
    })
}

/// Finds open nodes that lack resources which their claims promise, such as a GPU.
fn of_promises(seen: &Seen) -> Vec<(String, Verdict)> {
    let mut all = Vec::new();
    for node in &seen.nodes {
        let is_open = |claim: &&Claim| {
            claim.since(ConditionType::Initialized).is_some() && claim.deleting_since.is_none()
        };
        let Some(claim) = claim_of(seen, node).filter(is_open) else { continue };
        let lacking = lacks(claim, node);
        if !lacking.is_empty() {
            let why = format!("it lacks what its NodeClaim promises: {}", lacking.join("; "));
            let fix = format!(
                "look at its kubelet and its device plugin, or let it go: kubectl delete nodeclaim {}",
                claim.name
            );
            all.push((format!("Node {}", node.name), Verdict::wrong(why, fix)));
        }
    }
    all
}

/// Returns why the claim gives its node no reason for a taint.
fn no_reason(claim: &Claim, taint: &str, now: Timestamp) -> Option<String> {
    let leaves = claim.deleting_since.is_some() || claim.since(ConditionType::Disrupting).is_some();
    let opened = claim.since(ConditionType::Initialized)?;
    let is_late = now.duration_since(opened) > SETTLED;
    let retires = claim.since(ConditionType::Retiring).is_some();
    match taint {
        RESERVED_TAINT if is_late && !retires && !leaves => {
            Some("it is still reserved for the pods of a scale-up that is long over".to_owned())
        }
        DISRUPTED_TAINT if !leaves => {
            Some("it is closed as if it were removed, and its NodeClaim says nothing of that".to_owned())
        }
        UNREGISTERED_TAINT if is_late => {
            Some("it is closed as if it had not joined, and its NodeClaim says that it has".to_owned())
        }
        _ => None,
    }
}

/// Finds pools that cost more, or have more nodes, than their limits.
fn of_limits(seen: &Seen) -> Vec<(String, Verdict)> {
    let mut all = Vec::new();
    for pool in &seen.pools {
        let claims = || seen.claims.iter().filter(|claim| claim.pool == pool.name);
        let cost: UsdPerHour = claims().filter_map(|claim| claim.current_offering().price).sum();
        let nodes = claims().count() as u64;
        let name = format!("NodePool {}", pool.name);
        let fix = "raise the limit if you lowered it on purpose, or remove NodeClaims; the pool buys nothing until then";
        // The limits of an invalid pool may be unread.
        let default = seen.default_usd_per_hour.filter(|_| pool.problem.is_none());
        let limit = pool.limits.or_default(default).usd_per_hour;
        if let Some(limit) = limit.filter(|limit| cost > *limit) {
            let (its, fix) = match pool.limits.usd_per_hour {
                Some(_) => ("its limit", fix),
                None if !pool.allow_unknown_price.is_empty() => (
                    "the default limit",
                    "give the --default-usd-per-hour of your controller here too, raise both, or remove NodeClaims; a limit of \
                     the pool's own would end its allowUnknownPrices",
                ),
                None => (
                    "the default limit",
                    "set limits.usdPerHour of the pool, or remove NodeClaims; if your controller has another \
                     --default-usd-per-hour, give it here too",
                ),
            };
            // A limit that is set to what people read must allow the cost.
            let why = format!("its nodes cost {:#}, more than {its} of ${limit}/h", cost.rounded_up());
            all.push((name.clone(), Verdict::wrong(why, fix)));
        }
        if let Some(limit) = pool.limits.nodes.filter(|limit| nodes > *limit) {
            all.push((
                name,
                Verdict::wrong(format!("it has {nodes} nodes, more than its limit of {limit}"), fix),
            ));
        }
    }
    if all.is_empty() {
        all.push((
            "limits".to_owned(),
            Verdict::fine(format!("{} NodePools are within their limits", seen.pools.len())),
        ));
    }
    all
}

#[cfg(test)]
mod tests {
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

    fn seen() -> Seen {
        Seen {
            claims: vec![claim("a", &OPEN), claim("b", &OPEN)],
            nodes: vec![node("a", None), node("b", None), node("foreign", None)],
            pools: vec![pool(&json!({}))],
            default_usd_per_hour: None,
            instances: Ok((vec![instance("a"), instance("b")], ["KwokNodeClass"].into())),
            now: "2026-03-01T12:00:00Z".parse().unwrap(),
        }
    }

    /// Returns the names of what is wrong.
    fn wrong(seen: &Seen) -> Vec<String> {
        verdicts(seen).into_iter().filter(|(_, verdict)| verdict.is_wrong()).map(|(name, _)| name).collect()
    }

    #[test]
    fn a_cluster_whose_parts_agree_is_fine() {
        assert_eq!(wrong(&seen()), [""; 0]);
    }

    #[test]
    fn claims_without_instances_and_instances_without_claims_are_named() {
        let mut seen = seen();
        seen.instances = Ok((vec![instance("a"), instance("lost")], ["KwokNodeClass"].into()));
        assert_eq!(wrong(&seen), ["NodeClaim b", "instance kwok://lost"]);
        seen.now = "2026-03-01T11:05:00Z".parse().unwrap();
        assert_eq!(wrong(&seen), [""; 0], "it may still be under way");
    }

    #[test]
    fn a_node_that_is_closed_without_a_reason_is_named_with_the_command_that_opens_it() {
        let mut seen = seen();
        seen.nodes = vec![
            node("a", Some(RESERVED_TAINT)),
            node("b", Some(DISRUPTED_TAINT)),
            node("gone", Some(RESERVED_TAINT)),
        ];
        assert_eq!(wrong(&seen), ["Node a", "Node b", "Node gone"]);
        seen.claims = vec![
            claim("a", &["Initialized", "Retiring"]),
            claim("b", &["Initialized", "Disrupting"]),
            claim("gone", &[]),
        ];
        seen.instances = Err("not asked".to_owned());
        assert_eq!(wrong(&seen), [""; 0]);
    }

    #[test]
    fn an_open_node_without_a_promised_resource_is_named_and_one_that_starts_is_not() {
        let mut seen = seen();
        seen.nodes[0].allocatable = poolwright_catalog::ResourceList::default();
        assert_eq!(wrong(&seen), ["Node a"]);
        seen.claims[0] = claim("a", &["Launched", "Registered"]);
        assert_eq!(wrong(&seen), [""; 0]);
    }

    #[test]
    fn a_pool_beyond_its_limits_is_named_for_each() {
        let mut seen = seen();
        seen.pools = vec![pool(&json!({"usdPerHour": "2", "nodes": "1"}))];
        assert_eq!(wrong(&seen), ["NodePool gpu", "NodePool gpu"]);
        seen.pools = vec![pool(&json!({"usdPerHour": "2.012", "nodes": "2"}))];
        assert_eq!(wrong(&seen), [""; 0]);
    }

    #[test]
    fn a_pool_that_states_no_money_limit_has_the_default_one_which_is_named_as_such() {
        let with = |limits: &Value, default: Option<&str>| {
            let default_usd_per_hour = default.map(|amount| amount.parse().unwrap());
            let seen = Seen { pools: vec![pool(limits)], default_usd_per_hour, ..seen() };
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
        let seen = Seen { pools: vec![allowing], default_usd_per_hour, ..seen() };
        let Verdict::Wrong { fix, .. } = verdicts(&seen).pop().unwrap().1 else { panic!("they cost 2.012") };
        assert!(fix.contains("would end its allowUnknownPrices"), "{fix}");
    }
}
