//! Invariants that a cluster breaks: claims, nodes, instances and limits that do not agree, although there was time to make them agree.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::UsdPerHour;
use poolwright_terms::ConditionType;
use poolwright_terms::keys::{DISRUPTED_TAINT, RESERVED_TAINT, UNREGISTERED_TAINT};

use crate::lifecycle::advertised::lacks;
use crate::model::{Claim, ListedInstance, Node, PlanOptions, Pool, PoolLimits, PoolName, Snapshot, Uid};
use crate::plan::namespace_limits as of_namespaces;
use crate::supply::limits::{LimitKind, ceilings, held};
use crate::supply::namespace_use::of_standing;
use crate::supply::unclaimed::{self, UnclaimedNode};

/// How long the controller and the clouds may take to agree.
const SETTLED: SignedDuration = SignedDuration::from_mins(10);

/// The taints with which Poolwright closes a node.
const CLOSING: [&str; 3] = [RESERVED_TAINT, DISRUPTED_TAINT, UNREGISTERED_TAINT];

/// An invariant that is broken.
#[derive(Clone, Debug, PartialEq)]
pub enum Broken<'a> {
    /// The cloud does not list the instance of a claim.
    ClaimWithoutInstance {
        /// The claim.
        claim: &'a Claim,
        /// The cloud's id of the instance.
        provider_id: &'a str,
    },
    /// No claim has an instance.
    InstanceWithoutClaim(&'a ListedInstance),
    /// A node is kept closed without a reason.
    ClosedNode {
        /// The node.
        node: &'a Node,
        /// What is wrong, as a sentence about the node.
        why: String,
    },
    /// An open node lacks resources that its claim promises.
    LackingNode {
        /// The node.
        node: &'a Node,
        /// Its claim.
        claim: &'a Claim,
        /// What it lacks.
        lacks: Vec<String>,
    },
    /// The pods of a namespace use more than its limit. The kube-scheduler may have bound them where there was room.
    NamespaceLimit {
        /// The namespace.
        namespace: &'a str,
        /// The limit.
        exceeded: Exceeded,
    },
    /// A pool uses more than its limit, or all pools together do.
    PoolLimit {
        /// The pool; `None` for all pools together.
        pool: Option<&'a Pool>,
        /// The limit.
        exceeded: Exceeded,
    },
}

/// A limit that is exceeded, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Its name: `usdPerHour`, `nodes`, `nvidia.com/gpu`.
    pub name: String,
    /// The amount that is used. A limit that is set to it allows it.
    pub used: String,
    /// The limit.
    pub most: String,
    /// Whether it is the default of pools that state none.
    pub is_default: bool,
}

impl Broken<'_> {
    /// The names of all invariants in metrics.
    pub const ALL: [&'static str; 6] = [
        "claim-without-instance",
        "instance-without-claim",
        "closed-node",
        "lacking-node",
        "namespace-limit",
        "pool-limit",
    ];

    /// Returns the name of the invariant in metrics.
    pub fn name(&self) -> &'static str {
        let [claim, instance, closed, lacking, namespace, pool] = Self::ALL;
        match self {
            Self::ClaimWithoutInstance { .. } => claim,
            Self::InstanceWithoutClaim(_) => instance,
            Self::ClosedNode { .. } => closed,
            Self::LackingNode { .. } => lacking,
            Self::NamespaceLimit { .. } => namespace,
            Self::PoolLimit { .. } => pool,
        }
    }
}

/// Returns the broken invariants, in the order of [`Broken::ALL`]. `kinds` are the kinds of node class whose instances are listed.
pub fn broken<'a>(
    snapshot: &'a Snapshot,
    options: &PlanOptions,
    kinds: &BTreeSet<&str>,
    now: Timestamp,
) -> Vec<Broken<'a>> {
    let mut all = Vec::new();
    all.extend(of_claims(snapshot, kinds));
    all.extend(of_instances(snapshot, now));
    all.extend(snapshot.nodes.values().filter_map(|node| closed(snapshot, node, now)));
    all.extend(snapshot.nodes.values().filter_map(|node| lacking(snapshot, node)));
    all.extend(of_namespace_limits(snapshot, options));
    all.extend(of_pool_limits(snapshot, options));
    all
}

/// A claim is judged at the time of the listing, because an old listing lacks all later instances.
fn of_claims<'a>(snapshot: &'a Snapshot, kinds: &BTreeSet<&str>) -> Vec<Broken<'a>> {
    let Some(instances) = &snapshot.instances else { return Vec::new() };
    let uids: BTreeSet<&Uid> = instances.iter().map(|one| &one.claim_uid).collect();
    let lost = |claim: &'a Claim| {
        let provider_id = claim.launched.as_ref()?.provider_id.as_str();
        let since = claim.since(ConditionType::Launched).unwrap_or(claim.created);
        let at = instances.listed_at(&claim.node_class.kind)?;
        let is_lost = kinds.contains(claim.node_class.kind.as_str())
            && at.duration_since(since) > SETTLED
            && claim.since(ConditionType::InstanceTerminating).is_none()
            && instances.get(provider_id).is_none()
            && !uids.contains(&claim.uid);
        is_lost.then_some(Broken::ClaimWithoutInstance { claim, provider_id })
    };
    snapshot.claims.values().filter_map(|claim| lost(claim)).collect()
}

fn of_instances(snapshot: &Snapshot, now: Timestamp) -> Vec<Broken<'_>> {
    let Some(instances) = &snapshot.instances else { return Vec::new() };
    let uids: BTreeSet<&Uid> = snapshot.claims.values().map(|claim| &claim.uid).collect();
    let is_lost =
        |one: &&ListedInstance| !uids.contains(&one.claim_uid) && now.duration_since(one.launched) > SETTLED;
    instances.iter().filter(is_lost).map(Broken::InstanceWithoutClaim).collect()
}

/// Returns the taint with which Poolwright keeps a node closed, if it does.
pub fn closing_taint(node: &Node) -> Option<&str> {
    node.taints.iter().map(|taint| taint.key.as_str()).find(|key| CLOSING.contains(key))
}

fn closed<'a>(snapshot: &'a Snapshot, node: &'a Node, now: Timestamp) -> Option<Broken<'a>> {
    let taint = closing_taint(node)?;
    let why = match snapshot.claims.of_node(node) {
        None => format!("it has the taint {taint}, and no NodeClaim has the node"),
        Some(claim) => no_reason(claim, taint, now)?.to_owned(),
    };
    Some(Broken::ClosedNode { node, why })
}

/// Returns why the claim gives its node no reason for a taint.
fn no_reason(claim: &Claim, taint: &str, now: Timestamp) -> Option<&'static str> {
    let leaves = claim.deleting_since.is_some() || claim.since(ConditionType::Disrupting).is_some();
    let opened = claim.since(ConditionType::Initialized)?;
    let is_late = now.duration_since(opened) > SETTLED;
    let retires = claim.since(ConditionType::Retiring).is_some();
    match taint {
        RESERVED_TAINT if is_late && !retires && !leaves => {
            Some("it is still reserved for the pods of a scale-up that is long over")
        }
        DISRUPTED_TAINT if !leaves => {
            Some("it is closed as if it were removed, and its NodeClaim says nothing of that")
        }
        UNREGISTERED_TAINT if is_late => {
            Some("it is closed as if it had not joined, and its NodeClaim says that it has")
        }
        _ => None,
    }
}

fn lacking<'a>(snapshot: &'a Snapshot, node: &'a Node) -> Option<Broken<'a>> {
    let claim = snapshot.claims.of_node(node)?;
    let is_open = claim.since(ConditionType::Initialized).is_some() && claim.deleting_since.is_none();
    let lacks = if is_open { lacks(claim, node) } else { Vec::new() };
    (!lacks.is_empty()).then_some(Broken::LackingNode { node, claim, lacks })
}

fn of_namespace_limits<'a>(snapshot: &'a Snapshot, options: &PlanOptions) -> Vec<Broken<'a>> {
    if options.namespace_limits.is_empty() && snapshot.namespace_limits.is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (namespace, uses) in of_standing(snapshot, &BTreeMap::new()) {
        for ceiling in options.limits_of_namespace(snapshot.namespace_limits.get(namespace)) {
            let (kind, most) = (ceiling.kind, ceiling.most);
            let used = uses.of(kind);
            if used > most {
                let exceeded = Exceeded {
                    name: kind.name().to_owned(),
                    used: of_namespaces::used_in_words(kind, used, most),
                    most: of_namespaces::quantity(kind, most),
                    is_default: false,
                };
                all.push(Broken::NamespaceLimit { namespace, exceeded });
            }
        }
    }
    all
}

fn of_pool_limits<'a>(snapshot: &'a Snapshot, options: &PlanOptions) -> Vec<Broken<'a>> {
    let unclaimed = unclaimed::nodes(snapshot);
    let mut all = Vec::new();
    for pool in snapshot.pools.values() {
        let pool: &Pool = pool;
        // The limits of an invalid pool may be unread.
        let default = options.default_usd_per_hour.filter(|_| pool.problem.is_none());
        let limits = pool.limits.or_default(default);
        for (kind, exceeded) in exceeded(snapshot, &unclaimed, &limits, Some(&pool.name)) {
            let exceeded = Exceeded { is_default: kind.is_default_of(pool), ..exceeded };
            all.push(Broken::PoolLimit { pool: Some(pool), exceeded });
        }
    }
    let over_all = exceeded(snapshot, &unclaimed, &options.limits, None);
    all.extend(over_all.into_iter().map(|(_, exceeded)| Broken::PoolLimit { pool: None, exceeded }));
    all
}

/// Returns the limits that a pool exceeds, or all pools together.
fn exceeded(
    snapshot: &Snapshot,
    unclaimed: &[UnclaimedNode],
    limits: &PoolLimits,
    pool: Option<&PoolName>,
) -> Vec<(LimitKind, Exceeded)> {
    let of = |(kind, most): (LimitKind, u64)| {
        let used = held(snapshot, unclaimed, &kind, pool);
        let in_words = match kind {
            LimitKind::UsdPerHour => format!("{:#}", UsdPerHour::from_micros(used).rounded_up()),
            _ => kind.used_in_words(used, most),
        };
        let exceeded =
            Exceeded { name: kind.name(), used: in_words, most: kind.quantity(most), is_default: false };
        (used > most).then_some((kind, exceeded))
    };
    ceilings(limits).into_iter().filter_map(of).collect()
}
