//! The best plan: the pods that can move, on new nodes. Nodes with pods that cannot move stay, and their free room is used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_catalog::UsdPerHour;
use poolwright_core::{ClaimName, PodKey, PodPhase, Snapshot};
use poolwright_report::plan::{Document, NewNode};

use super::planner::{Planner, change_pools, unbind};
use super::running::{Running, cost};
use crate::exit::Failure;

/// How often a plan is made again without the nodes of pods that it found no place for. Then every node stays.
const ROUNDS: usize = 5;

/// Nodes that stay, by name, each with the reason: the end of a sentence.
pub type Stays = BTreeMap<String, String>;

/// The best plan.
pub struct Best {
    /// The nodes that stay.
    pub stays: Stays,
    /// The nodes to buy.
    pub nodes: Vec<NewNode>,
    /// The cost of both.
    pub cost: UsdPerHour,
    /// The number of pods that move.
    pub moves: usize,
    /// For each pod that moves to a node to buy, the place of that node in `nodes`.
    pub homes: BTreeMap<PodKey, usize>,
    /// Notes on how the input was understood.
    pub notes: Vec<String>,
}

/// Makes the best plan. `stays` are the nodes with pods that cannot move.
///
/// A pod without a place in the plan keeps its node, so that the cost is that of a cluster in which all pods run.
pub fn best(planner: &mut Planner<'_>, running: &[Running], mut stays: Stays) -> Result<Best, Failure> {
    let options = planner.options.clone();
    let mut round = 0;
    loop {
        round += 1;
        if round == ROUNDS {
            let why = || "plan after plan left pods without a place".to_owned();
            for node in running {
                stays.entry(node.name.clone()).or_insert_with(why);
            }
        }
        let going = running.iter().filter(|node| !stays.contains_key(&node.name));
        let moving: BTreeSet<PodKey> = going.flat_map(|node| node.pods.iter().cloned()).collect();
        let next = emptied(&planner.input.snapshot, &stays, &moving);
        let document = planner.document(next, &options)?;
        let without = without_place(planner, &document, &moving);
        if without.is_empty() || round == ROUNDS {
            return Ok(found(planner, running, stays, &moving, document));
        }
        for node in running {
            let left = node.pods.iter().find_map(|pod| Some((pod, without.get(pod)?)));
            if let Some((pod, why)) = left {
                stays
                    .entry(node.name.clone())
                    .or_insert_with(|| format!("pod {pod} has no other place: {why}"));
            }
        }
    }
}

/// Returns the cluster with the nodes that stay, on which the moving pods wait. All pods have one priority, so that none gives way.
fn emptied(cluster: &Snapshot, stays: &Stays, moving: &BTreeSet<PodKey>) -> Snapshot {
    let mut next = cluster.clone();
    next.pods.retain(|key, pod| match &pod.phase {
        PodPhase::Bound { node } => stays.contains_key(node) || moving.contains(key),
        _ => false,
    });
    let all: Vec<PodKey> = next.pods.keys().cloned().collect();
    for key in all {
        next.pods.change(&key, |pod| {
            pod.priority = 0;
            if moving.contains(&key) {
                unbind(pod);
            }
        });
    }
    next.nodes.retain(|name, _| stays.contains_key(name));
    let claims: BTreeSet<ClaimName> =
        next.nodes.values().filter_map(|node| Some(next.claims.of_node(node)?.name.clone())).collect();
    next.claims.retain(|name, _| claims.contains(name));
    next.lives = Arc::default();
    change_pools(&mut next, |pool| pool.allow_unknown_price.clear());
    next
}

/// Returns the moving pods without a place, with the reasons.
fn without_place(
    planner: &Planner<'_>,
    plan: &Document,
    moving: &BTreeSet<PodKey>,
) -> BTreeMap<PodKey, String> {
    let new = plan.nodes.iter().flat_map(|node| &node.pods);
    let there = plan.existing_nodes.iter().flat_map(|node| &node.pods);
    let placed: BTreeSet<&str> = new.chain(there).map(String::as_str).collect();
    let told: BTreeMap<&str, &str> =
        plan.unplaced.iter().map(|left| (left.pod.as_str(), left.message.as_str())).collect();
    let why = |pod: &PodKey| {
        let name = planner.input.name_of(pod);
        let why = told.get(name.as_str()).copied().unwrap_or("plans do not count it");
        (!placed.contains(name.as_str())).then(|| (pod.clone(), why.trim_end_matches('.').to_owned()))
    };
    moving.iter().filter_map(why).collect()
}

fn found(
    planner: &Planner<'_>,
    running: &[Running],
    stays: Stays,
    moving: &BTreeSet<PodKey>,
    plan: Document,
) -> Best {
    let at: BTreeMap<&str, usize> = plan
        .nodes
        .iter()
        .enumerate()
        .flat_map(|(at, node)| node.pods.iter().map(move |pod| (pod.as_str(), at)))
        .collect();
    let home = |pod: &PodKey| Some((pod.clone(), *at.get(planner.input.name_of(pod).as_str())?));
    let homes = moving.iter().filter_map(home).collect();
    let standing = cost(running.iter().filter(|node| stays.contains_key(&node.name)));
    Best {
        cost: standing + plan.cost_usd_per_hour,
        moves: moving.len(),
        homes,
        nodes: plan.nodes,
        notes: plan.notes,
        stays,
    }
}

impl Best {
    /// Returns the plan in which every node stays, because no cheaper one was found.
    pub fn as_it_is(running: &[Running], notes: Vec<String>) -> Self {
        let why = || "no cheaper plan was found".to_owned();
        Self {
            stays: running.iter().map(|node| (node.name.clone(), why())).collect(),
            nodes: Vec::new(),
            cost: cost(running),
            moves: 0,
            homes: BTreeMap::new(),
            notes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, node, pod};
    use super::*;

    #[test]
    fn pods_that_move_wait_and_nodes_with_other_pods_stay() {
        let nodes = vec![node("a", "large", 8), node("b", "large", 8), node("unknown", "huge", 8)];
        let mut important = pod("stays", "b", 1);
        important.priority = 7;
        let all = cluster(nodes, vec![pod("moves", "a", 1), important, pod("left-out", "unknown", 1)]);
        let stays = Stays::from([("b".to_owned(), "it is so".to_owned())]);
        let next = emptied(&all, &stays, &BTreeSet::from([PodKey::new("ml", "moves")]));
        assert_eq!(next.nodes.keys().collect::<Vec<_>>(), ["b"]);
        let waiting: Vec<_> = next.pods.unbound().map(|pod| pod.key.to_string()).collect();
        assert_eq!(waiting, ["ml/moves"], "the pod of a node without a price counts nowhere");
        let bound: Vec<_> = next.pods.bound().map(|pod| (pod.key.to_string(), pod.priority)).collect();
        assert_eq!(bound, [("ml/stays".to_owned(), 0)]);
    }
}
