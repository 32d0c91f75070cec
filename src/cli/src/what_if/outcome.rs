//! What a plan leads to: nodes, their cost, and the place of each pod.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use poolwright_catalog::{Catalogue, OfferingId, UsdPerHour};
use poolwright_core::{Claim, ClaimName, Node, PodKey, PodPhase, PodRole, Snapshot};
use poolwright_report::Cost;
use poolwright_report::plan::{Document, NewNode, Refusal};
use poolwright_terms::{CapacityType, domains, labels};
use serde::Serialize;

use crate::savings::price;

/// A kind of node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeKind {
    /// Instance type; `unknown` for a node that does not say it.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Capacity type.
    pub capacity_type: CapacityType,
}

impl fmt::Display for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} ({})", self.instance_type, self.zone, self.capacity_type)
    }
}

/// Nodes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// How many.
    pub count: usize,
    /// The price of each; `None` if it is unknown for all.
    pub each: Option<UsdPerHour>,
}

/// The place of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A node that exists or is on its way.
    Node(String),
    /// A node to buy.
    New(NodeKind),
    /// None: it gives way to other pods, and its successor gets a place later.
    GivesWay,
    /// None: it waits.
    Waits,
    /// None: it is lost.
    Lost,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(f, "node {name}"),
            Self::New(kind) => write!(f, "a new {kind}"),
            Self::GivesWay => f.write_str("a place that a later plan chooses"),
            Self::Waits => f.write_str("no place"),
            Self::Lost => f.write_str("nowhere"),
        }
    }
}

/// Work that is not planned, so that nothing is bought for it. The lists are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unplanned {
    /// Pods that an API server refuses to create.
    pub refused: Vec<Refusal>,
    /// Objects that make pods, but are not read.
    pub unread: Vec<String>,
    /// Objects whose pods are on nodes that the input does not have.
    pub on_unknown_nodes: Vec<String>,
}

impl Unplanned {
    fn of(plan: &Document) -> Self {
        let mut all = Self {
            refused: plan.refused.clone(),
            unread: plan.unread.clone(),
            on_unknown_nodes: plan.on_unknown_nodes.clone(),
        };
        // The order is that of the files, and a replaced object comes last.
        all.refused.sort_by(|a, b| (&a.object, a.pods).cmp(&(&b.object, b.pods)));
        all.unread.sort();
        all.on_unknown_nodes.sort();
        all
    }
}

/// What a plan leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The nodes that stay and those to buy, by kind.
    pub nodes: BTreeMap<NodeKind, Nodes>,
    /// Their cost, less the part of new nodes that commitments pay.
    pub cost: Cost,
    /// The expected loss from interruptions of the nodes to buy.
    pub risk: UsdPerHour,
    /// A lower bound for the cost of all nodes and the expected loss of new ones; `None` if the plan was chosen by its cost over time.
    pub bound: Option<UsdPerHour>,
    /// The place of each pod.
    pub places: BTreeMap<String, Place>,
    /// The work that is not planned.
    pub unplanned: Unplanned,
}

impl Outcome {
    /// Returns what a plan leads to. `prices` has the prices of nodes that run.
    pub fn of(snapshot: &Snapshot, plan: &Document, prices: &Catalogue) -> Self {
        let mut outcome = Self {
            risk: plan.risk_usd_per_hour.unwrap_or_default(),
            bound: bound(snapshot, prices, plan.lower_bound_usd_per_hour),
            unplanned: Unplanned::of(plan),
            ..Self::default()
        };
        let used: BTreeSet<&str> = plan.existing_nodes.iter().map(|node| node.name.as_str()).collect();
        for (kind, each) in standing(snapshot, prices, &used) {
            outcome.add(kind, each);
        }
        let standing = outcome.cost.usd_per_hour;
        for node in &plan.nodes {
            outcome.add(kind_of(node), node.usd_per_hour);
        }
        // What commitments pay is not in the cost of the plan.
        outcome.cost.usd_per_hour = standing + plan.cost_usd_per_hour;
        for node in &plan.existing_nodes {
            let place = || Place::Node(node.name.clone());
            outcome.places.extend(node.pods.iter().map(|pod| (pod.clone(), place())));
        }
        for node in &plan.nodes {
            let place = || Place::New(kind_of(node));
            outcome.places.extend(node.pods.iter().map(|pod| (pod.clone(), place())));
        }
        outcome.places.extend(plan.unplaced.iter().map(|left| (left.pod.clone(), Place::Waits)));
        outcome
    }

    /// Adds the places of pods that run, those that give way, and those that are lost. `name` names a pod as the plan does.
    pub fn put_running(
        &mut self,
        snapshot: &Snapshot,
        giving_way: &BTreeSet<PodKey>,
        lost: &BTreeSet<PodKey>,
        name: impl Fn(&PodKey) -> String,
    ) {
        for pod in snapshot.pods.bound().filter(|pod| pod.role == PodRole::Workload) {
            let PodPhase::Bound { node } = &pod.phase else { continue };
            let place =
                if giving_way.contains(&pod.key) { Place::GivesWay } else { Place::Node(node.clone()) };
            self.places.insert(name(&pod.key), place);
        }
        self.places.extend(lost.iter().map(|pod| (name(pod), Place::Lost)));
    }

    fn add(&mut self, kind: NodeKind, each: Option<UsdPerHour>) {
        let nodes = self.nodes.entry(kind).or_default();
        nodes.count += 1;
        nodes.each = each.or(nodes.each);
        self.cost.add(each);
    }

    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.values().map(|nodes| nodes.count).sum()
    }

    /// Returns the number of pods that wait.
    pub fn waiting(&self) -> usize {
        self.places.values().filter(|place| **place == Place::Waits).count()
    }
}

fn kind_of(node: &NewNode) -> NodeKind {
    NodeKind {
        instance_type: node.instance_type.clone(),
        zone: node.zone.clone(),
        capacity_type: node.capacity_type,
    }
}

/// Returns the lower bound for all nodes. Another plan may use other nodes, so those that stay only for this plan are not in it.
fn bound(snapshot: &Snapshot, prices: &Catalogue, of_plan: Option<UsdPerHour>) -> Option<UsdPerHour> {
    let mut certain = Cost::default();
    for (_, each) in standing(snapshot, prices, &BTreeSet::new()) {
        certain.add(each);
    }
    of_plan.map(|of_plan| certain.usd_per_hour + of_plan)
}

/// Returns the nodes that stay, and claims whose nodes are on their way, with their prices. `used` names those for which the plan has
/// pods.
fn standing(
    snapshot: &Snapshot,
    prices: &Catalogue,
    used: &BTreeSet<&str>,
) -> Vec<(NodeKind, Option<UsdPerHour>)> {
    let mut all = Vec::new();
    let mut joined: BTreeSet<&ClaimName> = BTreeSet::new();
    for node in snapshot.nodes.values() {
        let claim = snapshot.claims.of_node(node);
        joined.extend(claim.map(|claim| &claim.name));
        let is_ending =
            node.deleting_since.is_some() || claim.is_some_and(|claim| claim.deleting_since.is_some());
        if !is_ending && !claim.is_some_and(|claim| is_left(snapshot, claim, Some(node), used)) {
            all.push(match claim {
                Some(claim) => of_claim(claim, prices),
                None => of_labels(node, prices),
            });
        }
    }
    let coming = snapshot.claims.values().filter(|claim| !joined.contains(&claim.name));
    let coming =
        coming.filter(|claim| claim.deleting_since.is_none() && !is_left(snapshot, claim, None, used));
    all.extend(coming.map(|claim| of_claim(claim, prices)));
    all
}

/// Returns whether the controller will terminate the node of a claim, because it has no work.
fn is_left(snapshot: &Snapshot, claim: &Claim, node: Option<&Node>, used: &BTreeSet<&str>) -> bool {
    let there = node.and_then(|node| snapshot.pods.on_node(&node.name));
    let works = there.is_some_and(|there| there.pods.iter().any(|pod| pod.role == PodRole::Workload));
    let stands = snapshot
        .pools
        .get(&claim.pool)
        .is_some_and(|pool| pool.replicas.is_some() || !pool.buffer.is_empty());
    !works && !stands && !used.contains(claim.name.0.as_str()) && snapshot.keeps(claim).is_some()
}

fn of_claim(claim: &Claim, prices: &Catalogue) -> (NodeKind, Option<UsdPerHour>) {
    let current = claim.current_offering();
    let OfferingId { instance_type, zone, capacity_type } = &current.offering;
    let price = prices.offering(&current.offering).and_then(|offering| offering.price.known());
    let kind = NodeKind {
        instance_type: instance_type.to_string(),
        zone: zone.to_string(),
        capacity_type: *capacity_type,
    };
    (kind, price.or(current.price))
}

/// Returns the kind and the price of a node without a claim. One that does not say how it was bought counts as on demand.
fn of_labels(node: &Node, prices: &Catalogue) -> (NodeKind, Option<UsdPerHour>) {
    let label = |key: &str| node.labels.get(key).cloned().unwrap_or_else(|| "unknown".to_owned());
    let capacity = node.labels.iter().find_map(|(key, value)| match key.as_str() {
        labels::CAPACITY_TYPE => value.parse().ok(),
        _ => domains::capacity_type(key, value),
    });
    let kind = NodeKind {
        instance_type: label(labels::INSTANCE_TYPE),
        zone: label(labels::ZONE),
        capacity_type: capacity.unwrap_or(CapacityType::OnDemand),
    };
    let price = price::of_node(node, None, prices).ok().map(|priced| priced.price);
    (kind, price)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use poolwright_catalog::builtin;
    use poolwright_core::{Pool, PoolName, ScaleToZero};
    use serde_json::json;

    use super::*;
    use crate::plan::implicit;

    #[test]
    fn an_idle_node_that_only_this_plan_uses_is_not_in_the_bound() {
        let claim = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": "gpu-a", "uid": "u", "labels": {"poolwright.dev/nodepool": "gpu"}},
            "spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"},
                "offerings": [{"instanceType": "g4dn.xlarge", "zone": "us-east-1a", "capacityType": "on-demand",
                    "usdPerHour": "0.526", "allocatable": {"cpu": "4"}}]}});
        let claim = serde_json::from_value(claim).expect("a NodeClaim");
        let claim = poolwright_intake::node_claim(&claim).expect("it can be used");
        let name = PoolName("gpu".to_owned());
        let pool = Pool { name: name.clone(), scale_to_zero: ScaleToZero::Auto, ..implicit() };
        let mut snapshot = Snapshot::default();
        snapshot.pools.insert(name, Arc::new(pool));
        snapshot.claims.insert(claim.name.clone(), Arc::new(claim));
        let prices = builtin();
        assert_eq!(standing(&snapshot, &prices, &BTreeSet::from(["gpu-a"])).len(), 1);
        let of_plan = Some(UsdPerHour::from_micros(7));
        assert_eq!(bound(&snapshot, &prices, of_plan), of_plan);
    }
}
