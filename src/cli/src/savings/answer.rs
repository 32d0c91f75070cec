//! The answer as a document. All forms of it are printed from this.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{OfferingId, Usd, UsdPerHour};
use poolwright_report::money::{Ratio, amount, maybe_usd, usd};
use poolwright_report::plan::NewNode;
use poolwright_terms::{API_VERSION, CapacityType};
use serde::Serialize;

use super::best::Best;
use super::converted::Summary;
use super::reasons::reasons;
use super::running::{Running, Unpriced, cost};
use super::verdict::verdict;
use crate::print::counted;

/// The most nodes that are shown with what they cost.
const DEAREST: usize = 10;

/// The most kinds of node to which the pods of a node go, that are named.
const HOMES: usize = 2;

/// The answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `poolwright.dev/v1alpha1`.
    api_version: &'static str,
    /// `Savings`.
    kind: &'static str,
    /// The answer in one line.
    pub verdict: String,
    /// The nodes that run.
    pub now: Side,
    /// The best plan.
    pub best: Side,
    /// What every plan costs at least; null if it is unknown.
    #[serde(rename = "lowerLimitUsdPerHour", serialize_with = "maybe_usd")]
    pub limit: Option<UsdPerHour>,
    /// How much less the best plan costs in a month of 730 hours.
    #[serde(rename = "savedUsdPerMonth", serialize_with = "amount")]
    pub saved: Usd,
    /// What the best plan may buy.
    pub may_buy: String,
    /// Why the costs differ.
    pub reasons: Vec<String>,
    /// The kinds of node of both sides.
    pub kinds: Vec<KindRow>,
    /// The nodes that cost most.
    pub dearest: Vec<DearNode>,
    /// The number of pods that move in the best plan.
    pub moves: usize,
    /// The number of nodes that stay in the best plan.
    pub stays: usize,
    /// Pods that cannot move.
    pub fixed: Vec<FixedPod>,
    /// Nodes without a known price. They and their pods are in neither side.
    pub left_out: Vec<LeftOutNode>,
    /// What `convert` makes of Karpenter's pools; absent without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convert: Option<Summary>,
    /// What the figures rest on.
    pub assumptions: Vec<String>,
    /// Notes on how the input was understood.
    pub notes: Vec<String>,
}

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The number of nodes.
    pub nodes: usize,
    /// Their cost.
    #[serde(serialize_with = "usd")]
    pub usd_per_hour: UsdPerHour,
    /// Their cost in a month of 730 hours.
    #[serde(serialize_with = "amount")]
    pub usd_per_month: Usd,
}

impl Side {
    fn new(nodes: usize, cost: UsdPerHour) -> Self {
        Self { nodes, usd_per_hour: cost, usd_per_month: cost.per_month() }
    }
}

/// Nodes of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KindRow {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Capacity type.
    pub capacity_type: CapacityType,
    /// The number that runs.
    pub now: usize,
    /// The number in the best plan.
    pub best: usize,
    /// The price of each.
    #[serde(serialize_with = "usd")]
    pub usd_per_hour: UsdPerHour,
}

/// A node that costs much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DearNode {
    /// Its name.
    pub name: String,
    /// Its instance type.
    pub instance_type: String,
    /// How it was bought.
    pub capacity_type: CapacityType,
    /// Its price in a month of 730 hours.
    #[serde(serialize_with = "amount")]
    pub usd_per_month: Usd,
    /// The resource of which the largest part is requested, and that part: `cpu 50.0 %`; null if it advertises none.
    pub fullest: Option<String>,
    /// The number of its pods, without those of DaemonSets.
    pub pods: usize,
    /// What becomes of it in the best plan, and why.
    pub why: String,
}

/// A pod that cannot move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FixedPod {
    /// The pod.
    pub pod: String,
    /// Its node.
    pub node: String,
    /// Why it cannot move: the end of a sentence.
    pub why: String,
}

/// A node without a known price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOutNode {
    /// Its name.
    pub node: String,
    /// Why its price is unknown: the end of a sentence.
    pub why: String,
    /// The number of its pods.
    pub pods: usize,
}

/// What an answer is made of.
pub struct Found {
    /// The nodes that run.
    pub running: Vec<Running>,
    /// Nodes without a known price.
    pub unpriced: Vec<Unpriced>,
    /// Pods that cannot move.
    pub fixed: Vec<FixedPod>,
    /// The best plan.
    pub best: Best,
    /// What every plan costs at least.
    pub limit: Option<UsdPerHour>,
    /// What the best plan may buy.
    pub may_buy: String,
    /// What `convert` makes of Karpenter's pools.
    pub convert: Option<Summary>,
}

impl Answer {
    /// Tells what was found. Assumptions and notes are put in later.
    pub fn of(found: Found) -> Self {
        let Found { running, unpriced, fixed, best, limit, may_buy, convert } = found;
        let now = Side::new(running.len(), cost(&running));
        let best_side = Side::new(best.stays.len() + best.nodes.len(), best.cost);
        let saved = Usd(now.usd_per_month.0.saturating_sub(best_side.usd_per_month.0));
        let left_out =
            unpriced.into_iter().map(|Unpriced { name, why, pods }| LeftOutNode { node: name, why, pods });
        let left_out: Vec<LeftOutNode> = left_out.collect();
        Self {
            api_version: API_VERSION,
            kind: "Savings",
            verdict: verdict(now, best_side, limit, left_out.len()),
            now,
            best: best_side,
            limit,
            saved,
            may_buy,
            reasons: reasons(&running, &best),
            kinds: kinds(&running, &best),
            dearest: dearest(&running, &best),
            moves: best.moves,
            stays: best.stays.len(),
            fixed,
            left_out,
            convert,
            assumptions: Vec::new(),
            notes: best.notes,
        }
    }
}

/// Returns the part by which one side costs less than the other; `None` if that costs nothing.
pub fn part_saved(now: Side, best: Side) -> Option<Ratio> {
    let whole = now.usd_per_month.0;
    (whole > 0).then_some(Ratio { part: whole.saturating_sub(best.usd_per_month.0), whole })
}

/// Returns how many nodes of each kind there are on both sides.
fn kinds(running: &[Running], best: &Best) -> Vec<KindRow> {
    let mut rows: BTreeMap<OfferingId, (usize, usize, UsdPerHour)> = BTreeMap::new();
    for node in running {
        let row = rows.entry(node.priced.offering.clone()).or_default();
        row.0 += 1;
        row.1 += usize::from(best.stays.contains_key(&node.name));
        row.2 = node.priced.price;
    }
    for node in &best.nodes {
        let row = rows.entry(offering(node)).or_default();
        row.1 += 1;
        row.2 = node.usd_per_hour.unwrap_or(row.2);
    }
    let row = |(id, (now, best, each)): (OfferingId, (usize, usize, UsdPerHour))| KindRow {
        instance_type: id.instance_type.to_string(),
        zone: id.zone.to_string(),
        capacity_type: id.capacity_type,
        now,
        best,
        usd_per_hour: each,
    };
    rows.into_iter().map(row).collect()
}

fn offering(node: &NewNode) -> OfferingId {
    OfferingId {
        instance_type: node.instance_type.as_str().into(),
        zone: node.zone.as_str().into(),
        capacity_type: node.capacity_type,
    }
}

/// Returns the nodes that cost most, by name if they cost the same.
fn dearest(running: &[Running], best: &Best) -> Vec<DearNode> {
    let mut all: Vec<&Running> = running.iter().collect();
    all.sort_by_cached_key(|node| (Reverse(node.priced.price), node.name.clone()));
    let row = |node: &Running| DearNode {
        name: node.name.clone(),
        instance_type: node.priced.offering.instance_type.to_string(),
        capacity_type: node.priced.offering.capacity_type,
        usd_per_month: node.per_month(),
        fullest: node.fullest.as_ref().map(|(name, ratio)| format!("{name} {ratio}")),
        pods: node.pods.len(),
        why: why(node, best),
    };
    all.into_iter().take(DEAREST).map(row).collect()
}

/// Says what becomes of a node.
fn why(node: &Running, best: &Best) -> String {
    if let Some(why) = best.stays.get(&node.name) {
        return format!("it stays: {why}");
    }
    if node.pods.is_empty() {
        return "it goes: no pod needs it".to_owned();
    }
    let new: BTreeSet<usize> = node.pods.iter().filter_map(|pod| best.homes.get(pod).copied()).collect();
    let elsewhere = node.pods.iter().any(|pod| !best.homes.contains_key(pod));
    let mut kinds: BTreeMap<OfferingId, (usize, Option<UsdPerHour>)> = BTreeMap::new();
    for node in new.iter().filter_map(|at| best.nodes.get(*at)) {
        let kind = kinds.entry(offering(node)).or_insert((0, node.usd_per_hour));
        kind.0 += 1;
    }
    let named = |(id, (count, each)): (&OfferingId, &(usize, Option<UsdPerHour>))| {
        let OfferingId { instance_type, zone, capacity_type } = id;
        let each = each.map_or_else(String::new, |each| format!(", {:#}/month each", each.per_month()));
        format!("{count} x {instance_type} in {zone} ({capacity_type}{each})")
    };
    let mut homes: Vec<String> = kinds.iter().take(HOMES).map(named).collect();
    let more = kinds.len().saturating_sub(HOMES);
    homes.extend((more > 0).then(|| format!("{} of other new nodes", counted(more, "kind"))));
    homes.extend(elsewhere.then(|| "free room of nodes that stay".to_owned()));
    format!("it goes: its pods go to {}", homes.join("; "))
}

#[cfg(test)]
pub mod tests {
    use poolwright_core::PodKey;

    use super::super::running;
    use super::super::testing::{catalogue, cluster, node, pod, usd};
    use super::*;

    /// Returns a new node of a type of the catalogue.
    pub fn new_node(instance_type: &str, price: &str, pods: &[&str]) -> NewNode {
        NewNode {
            instance_type: instance_type.to_owned(),
            zone: "za".to_owned(),
            capacity_type: CapacityType::OnDemand,
            usd_per_hour: Some(usd(price)),
            pool: None,
            pods: pods.iter().map(|pod| (*pod).to_owned()).collect(),
            units: 0,
            gpus: Vec::new(),
        }
    }

    /// Returns what is found for three large nodes: one is without work, one half full, and one stays.
    pub fn found() -> Found {
        let nodes = vec![node("empty", "large", 8), node("half", "large", 8), node("stays", "large", 8)];
        let all = cluster(nodes, vec![pod("p", "half", 4), pod("q", "stays", 8)]);
        let (running, _) = running::of(&all, &catalogue());
        let stays = [(
            "stays".to_owned(),
            "pod ml/q cannot move, because no controller would make it anew".to_owned(),
        )];
        let best = Best {
            stays: stays.into(),
            nodes: vec![new_node("small", "1", &["ml/p"])],
            cost: usd("2.5"),
            moves: 1,
            homes: [(PodKey::new("ml", "p"), 0)].into(),
            notes: Vec::new(),
        };
        let fixed = FixedPod {
            pod: "ml/q".to_owned(),
            node: "stays".to_owned(),
            why: "no controller would make it anew".to_owned(),
        };
        Found {
            running,
            unpriced: Vec::new(),
            fixed: vec![fixed],
            best,
            limit: Some(usd("2")),
            may_buy: "The best plan buys small.".to_owned(),
            convert: None,
        }
    }

    #[test]
    fn the_answer_has_both_sides_and_what_becomes_of_each_node() {
        let answer = Answer::of(found());
        let json = serde_json::to_value(&answer).expect("JSON");
        assert_eq!(json["now"]["usdPerMonth"], 3285.0, "3 x $1.50 x 730");
        assert_eq!(json["best"]["usdPerMonth"], 1825.0, "($1.50 + $1.00) x 730");
        assert_eq!(json["savedUsdPerMonth"], 1460.0);
        assert_eq!(json["lowerLimitUsdPerHour"], 2.0);
        let whys: Vec<&str> = answer.dearest.iter().map(|node| node.why.as_str()).collect();
        assert_eq!(
            whys,
            [
                "it goes: no pod needs it",
                "it goes: its pods go to 1 x small in za (on-demand, $730.00/month each)",
                "it stays: pod ml/q cannot move, because no controller would make it anew",
            ]
        );
        let rows: Vec<_> =
            answer.kinds.iter().map(|kind| (kind.instance_type.as_str(), kind.now, kind.best)).collect();
        assert_eq!(rows, [("large", 3, 1), ("small", 0, 1)]);
    }
}
