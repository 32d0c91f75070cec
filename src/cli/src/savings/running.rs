//! The nodes that run, each with its price, what is requested of it, and the pods that need a place.

use poolwright_catalog::{Catalogue, ResourceList, ResourceName, Usd, UsdPerHour};
use poolwright_core::{PodKey, PodRole, Snapshot};
use poolwright_report::money::Ratio;
use poolwright_terms::domains;

use super::price::{self, Priced};

/// The prefix of the resources of NVIDIA's device plugin.
const NVIDIA: &str = "nvidia.com/";

/// A node with a known price.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its name.
    pub name: String,
    /// Its offering and price.
    pub priced: Priced,
    /// The resource of which the largest part is requested, and that part; `None` if it advertises none.
    pub fullest: Option<(ResourceName, Ratio)>,
    /// Whether it is of the control plane, so that it stays whatever runs on it.
    pub is_control_plane: bool,
    /// The pods that need a place, if it goes.
    pub pods: Vec<PodKey>,
}

impl Running {
    /// Returns the part of its price for room that no pod requests.
    pub fn unrequested(&self) -> UsdPerHour {
        let price = self.priced.price;
        let Some((_, Ratio { part, whole })) = &self.fullest else { return price };
        let used = u128::from(price.micros()) * (*part).min(*whole) / (*whole).max(1);
        price.saturating_sub(UsdPerHour::from_micros(u64::try_from(used).unwrap_or(u64::MAX)))
    }

    /// Returns its price in a month.
    pub fn per_month(&self) -> Usd {
        self.priced.price.per_month()
    }
}

/// A node that counts nowhere, because its price is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpriced {
    /// Its name.
    pub name: String,
    /// Why its price is unknown: the end of a sentence.
    pub why: String,
    /// The number of its pods, which count nowhere either.
    pub pods: usize,
}

/// Returns the nodes of a cluster by name, those with a price and the others.
pub fn of(snapshot: &Snapshot, prices: &Catalogue) -> (Vec<Running>, Vec<Unpriced>) {
    let (mut running, mut unpriced) = (Vec::new(), Vec::new());
    for node in snapshot.nodes.values() {
        let there = snapshot.pods.on_node(&node.name);
        let all = there.iter().flat_map(|there| &there.pods);
        // DaemonSets have pods on every node. Pods that end need no place.
        let works = all.filter(|pod| pod.role == PodRole::Workload && pod.deleting_since.is_none());
        let pods: Vec<PodKey> = works.map(|pod| pod.key.clone()).collect();
        let claim = snapshot.claims.of_node(node).map(|claim| &**claim);
        match price::of_node(node, claim, prices) {
            Ok(priced) => {
                let requested = there.map(|there| there.requests.clone()).unwrap_or_default();
                let fullest = fullest(&node.allocatable, &requested);
                let is_control_plane = node.labels.keys().any(|key| domains::is_control_plane(key));
                running.push(Running { name: node.name.clone(), priced, fullest, is_control_plane, pods });
            }
            Err(why) => unpriced.push(Unpriced { name: node.name.clone(), why, pods: pods.len() }),
        }
    }
    (running, unpriced)
}

/// Returns the resource of which the largest part is requested: CPU, memory or GPUs. Of equal ones, the first by name.
fn fullest(room: &ResourceList, requested: &ResourceList) -> Option<(ResourceName, Ratio)> {
    let counts = |name: &ResourceName| {
        let name = name.as_str();
        name == ResourceName::CPU || name == ResourceName::MEMORY || name.starts_with(NVIDIA)
    };
    let mut best: Option<(ResourceName, Ratio)> = None;
    for (name, whole) in room.iter().filter(|(name, _)| counts(name)) {
        let ratio = Ratio { part: requested.get(name.as_str()).into(), whole: whole.into() };
        let is_more = best.as_ref().is_none_or(|(_, so_far)| {
            ratio.part.saturating_mul(so_far.whole) > so_far.part.saturating_mul(ratio.whole)
        });
        if is_more {
            best = Some((name.clone(), ratio));
        }
    }
    best
}

/// Returns the sum of the prices of nodes.
pub fn cost<'r>(nodes: impl IntoIterator<Item = &'r Running>) -> UsdPerHour {
    nodes.into_iter().map(|node| node.priced.price).sum()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{catalogue, cluster, node, pod, usd};
    use super::*;

    #[test]
    fn a_node_costs_what_the_catalogue_says_and_half_of_it_is_unrequested() {
        let mut daemon = pod("daemon", "a", 1);
        daemon.role = PodRole::DaemonSet;
        let all = cluster(
            vec![node("a", "large", 8), node("b", "huge", 8)],
            vec![pod("p", "a", 3), daemon, pod("q", "b", 1)],
        );
        let (running, unpriced) = of(&all, &catalogue());
        assert_eq!(running.len(), 1);
        assert_eq!(cost(&running), usd("1.5"));
        assert_eq!(running[0].pods, [PodKey::new("ml", "p")], "the pod of the DaemonSet needs no place");
        assert_eq!(running[0].unrequested(), usd("0.75"), "4 of 8 cores are requested, with the DaemonSet");
        let why = "the catalogue has no type huge".to_owned();
        assert_eq!(unpriced, [Unpriced { name: "b".to_owned(), why, pods: 1 }]);
    }

    #[test]
    fn the_fullest_resource_tells_the_use_of_a_node() {
        let room = ResourceList::new().with("cpu", 8000).with("memory", 100).with("nvidia.com/gpu", 4);
        let requested = ResourceList::new().with("cpu", 2000).with("memory", 20).with("nvidia.com/gpu", 3);
        let (name, ratio) = fullest(&room, &requested).expect("there is room");
        assert_eq!((name.as_str(), ratio.to_string().as_str()), ("nvidia.com/gpu", "75.0 %"));
    }
}
