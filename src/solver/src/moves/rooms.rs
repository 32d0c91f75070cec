//! Fills free room on the nodes that stay, pod by pod, and chooses the nodes to empty by the saving per moved pod.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::cluster::Cluster;

/// A choice of nodes to empty, with the pods that found free room.
#[derive(Clone, Debug)]
pub(super) struct Rooms<'c> {
    cluster: &'c Cluster<'c>,
    dims: usize,
    /// The free room, node-major.
    free: Vec<u64>,
    /// The value of an unused unit of each resource, for choosing the tightest room.
    weights: Vec<f64>,
    /// By node: the pods placed there, by class, unordered.
    guests: Vec<Vec<(u32, u32)>>,
    /// The nodes that always stay.
    fixed: Vec<bool>,
    /// The nodes that are emptied.
    gone: Vec<bool>,
    /// The nodes that get no guests.
    shut: Vec<bool>,
    /// By class: the pods that found no room.
    outside: Vec<u64>,
    evictions: u64,
    removed: u64,
    /// The classes by descending price.
    order: Vec<u32>,
}

/// The nodes that are looked at for one pod in one unit of work.
const NODES_PER_UNIT: u64 = 100;

/// A pod placed on a node, for undoing.
type Placed = (u32, u32);

/// An entry in the queue of nodes to empty.
struct Entry {
    ratio: f64,
    node: u32,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ratio.total_cmp(&other.ratio).then(other.node.cmp(&self.node))
    }
}

/// The limits on disruption, and the minimum saving per eviction, in micro-dollars.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    pub evictions: u64,
    pub nodes: u64,
    pub least: f64,
}

impl Want {
    /// Returns the limits that `cluster` allows.
    pub fn all(cluster: &Cluster<'_>) -> Self {
        let budget = &cluster.problem.disruption;
        Self {
            evictions: budget.evictions.map_or(u64::MAX, u64::from),
            nodes: budget.nodes.map_or(u64::MAX, u64::from),
            least: 0.0,
        }
    }

    /// Returns how much of the budget emptying a node takes, in pods. If the number of nodes is limited, each node counts
    /// as its share of the pods.
    fn effort(&self, evictions: u64) -> f64 {
        let node = if self.nodes == u64::MAX {
            0.0
        } else if self.evictions == u64::MAX {
            8.0
        } else {
            self.evictions as f64 / self.nodes.max(1) as f64
        };
        evictions as f64 + node + 0.01
    }
}

impl<'c> Rooms<'c> {
    /// Places waiting pods where there is room, until `stop`, which gets units of work, returns true. Moves nothing. `prices` are the
    /// cost of a pod of each class on new nodes.
    pub fn new(cluster: &'c Cluster<'c>, prices: &[f64], stop: &mut dyn FnMut(u64) -> bool) -> Self {
        let dims = cluster.problem.resources.len();
        let free: Vec<u64> =
            cluster.problem.existing.iter().flat_map(|node| node.free.iter().copied()).collect();
        let mut total = vec![0.0; dims];
        for (at, free) in free.iter().enumerate() {
            total[at % dims] += *free as f64;
        }
        let mut order: Vec<u32> = (0..prices.len() as u32).collect();
        order.sort_by(|a, b| prices[*b as usize].total_cmp(&prices[*a as usize]).then(a.cmp(b)));
        let nodes = cluster.nodes.len();
        let mut rooms = Self {
            cluster,
            dims,
            free,
            weights: total.iter().map(|total| 1.0 / total.max(1.0)).collect(),
            guests: vec![Vec::new(); nodes],
            fixed: cluster.nodes.iter().map(|node| !node.movable).collect(),
            gone: vec![false; nodes],
            shut: vec![false; nodes],
            outside: vec![0; prices.len()],
            evictions: 0,
            removed: 0,
            order,
        };
        for at in 0..rooms.order.len() {
            let class = rooms.order[at];
            rooms.outside[class as usize] += cluster.waiting(class as usize);
        }
        rooms.fill(stop);
        rooms
    }

    /// Places pods that found no room before, where there is some now, until `stop`, which gets units of work, returns true.
    pub fn fill(&mut self, stop: &mut dyn FnMut(u64) -> bool) {
        for at in 0..self.order.len() {
            let class = self.order[at];
            let work =
                1 + self.cluster.problem.classes[class as usize].existing.len() as u64 / NODES_PER_UNIT;
            while self.outside[class as usize] > 0 {
                if stop(work) {
                    return;
                }
                let Some(node) = self.host(class, None) else { break };
                self.put(node, class);
                self.outside[class as usize] -= 1;
            }
        }
    }

    /// Keeps nodes with pods of `classes`.
    pub fn keep(&mut self, classes: &[u32]) {
        for (fixed, node) in self.fixed.iter_mut().zip(&self.cluster.nodes) {
            *fixed |= node.pods.iter().any(|(class, _)| classes.contains(class));
        }
    }

    /// Returns the nodes that are emptied, ascending.
    pub fn gone(&self) -> Vec<u32> {
        (0..self.gone.len() as u32).filter(|node| self.gone[*node as usize]).collect()
    }

    /// Returns the pods placed on each node.
    pub fn guests(&self) -> &[Vec<(u32, u32)>] {
        &self.guests
    }

    fn count(list: &[(u32, u32)], class: u32) -> u32 {
        list.iter().filter(|(other, _)| *other == class).map(|(_, count)| count).sum()
    }

    fn welcome(&self, node: usize, class: u32) -> bool {
        let ceiling = self.cluster.ceiling[class as usize];
        let (own, guests) = (&self.cluster.nodes[node].pods, &self.guests[node]);
        (ceiling == u32::MAX || Self::count(own, class) + Self::count(guests, class) < ceiling)
            && self.cluster.meets(class, own.iter().chain(guests))
    }

    /// Returns the staying node with the least spare room once it holds one more pod of `class`.
    fn host(&self, class: u32, except: Option<u32>) -> Option<u32> {
        if !self.cluster.plain[class as usize] {
            return None;
        }
        let requests = &self.cluster.problem.classes[class as usize].requests;
        let mut best: Option<(f64, u32)> = None;
        for &node in &self.cluster.problem.classes[class as usize].existing {
            let at = node as usize;
            if self.gone[at] || self.shut[at] || except == Some(node) {
                continue;
            }
            let free = &self.free[at * self.dims..(at + 1) * self.dims];
            if free.iter().zip(requests).any(|(free, request)| free < request) {
                continue;
            }
            let spare: f64 = free
                .iter()
                .zip(requests)
                .zip(&self.weights)
                .map(|((free, request), weight)| (free - request) as f64 * weight)
                .sum();
            if best.is_none_or(|(least, _)| spare < least) && self.welcome(at, class) {
                best = Some((spare, node));
            }
        }
        best.map(|(_, node)| node)
    }

    fn put(&mut self, node: u32, class: u32) {
        let at = node as usize;
        let requests = &self.cluster.problem.classes[class as usize].requests;
        for (free, request) in self.free[at * self.dims..].iter_mut().zip(requests) {
            *free -= request;
        }
        match self.guests[at].iter_mut().find(|(other, _)| *other == class) {
            Some((_, count)) => *count += 1,
            None => self.guests[at].push((class, 1)),
        }
    }

    fn take_back(&mut self, (node, class): Placed) {
        let at = node as usize;
        let requests = &self.cluster.problem.classes[class as usize].requests;
        for (free, request) in self.free[at * self.dims..].iter_mut().zip(requests) {
            *free += request;
        }
        if let Some(position) = self.guests[at].iter().position(|(other, _)| *other == class) {
            self.guests[at][position].1 -= 1;
            if self.guests[at][position].1 == 0 {
                self.guests[at].remove(position);
            }
        }
    }

    /// Places all pods of `node`, including guests, elsewhere. Returns the price of those that find no room, the placed
    /// pods, and the others.
    fn empty(&mut self, node: u32, prices: &[f64]) -> (f64, Vec<Placed>, Vec<u32>) {
        let mut pods = self.cluster.nodes[node as usize].pods.clone();
        pods.extend(&self.guests[node as usize]);
        pods.sort_by(|a, b| prices[b.0 as usize].total_cmp(&prices[a.0 as usize]).then(a.0.cmp(&b.0)));
        let (mut price, mut placed, mut outside) = (0.0, Vec::new(), Vec::new());
        for (class, count) in pods {
            let mut full = false;
            for _ in 0..count {
                let host = if full { None } else { self.host(class, Some(node)) };
                if let Some(host) = host {
                    self.put(host, class);
                    placed.push((host, class));
                } else {
                    full = true;
                    price += prices[class as usize];
                    outside.push(class);
                }
            }
        }
        (price, placed, outside)
    }

    /// Returns the saving per moved pod of emptying `node`.
    fn ratio(&mut self, node: u32, prices: &[f64], want: &Want) -> f64 {
        let (price, placed, _) = self.empty(node, prices);
        placed.into_iter().rev().for_each(|placed| self.take_back(placed));
        let node = &self.cluster.nodes[node as usize];
        (node.price as f64 - node.drain as f64 - price) / want.effort(node.evictions)
    }

    /// Shuts nodes that are unlikely to stay: those with the highest saving per eviction when their pods go to new nodes.
    /// They get no guests.
    pub fn shut_likely(&mut self, prices: &[f64], want: &Want) {
        let worth = |node: &super::cluster::Node| {
            let pods: f64 =
                node.pods.iter().map(|(class, count)| prices[*class as usize] * f64::from(*count)).sum();
            (node.price as f64 - node.drain as f64 - pods) / want.effort(node.evictions)
        };
        let nodes = &self.cluster.nodes;
        let mut order: Vec<(f64, u32)> = (0..nodes.len() as u32)
            .filter(|node| !self.fixed[*node as usize])
            .map(|node| (worth(&nodes[node as usize]), node))
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let (mut evictions, mut removed) = (0, 0);
        for (ratio, node) in order {
            evictions += nodes[node as usize].evictions;
            removed += 1;
            if ratio <= want.least || evictions > want.evictions || removed > want.nodes {
                break;
            }
            if self.guests[node as usize].is_empty() {
                self.shut[node as usize] = true;
            }
        }
    }

    /// Lets all staying nodes get guests again.
    pub fn open(&mut self) {
        self.shut.fill(false);
    }

    /// Empties nodes, the highest saving per eviction first, while `want` allows and `stop` returns false.
    pub fn drain(&mut self, prices: &[f64], want: &Want, stop: &mut dyn FnMut(u64) -> bool) {
        let mut queue = BinaryHeap::new();
        for node in 0..self.cluster.nodes.len() as u32 {
            let known = &self.cluster.nodes[node as usize];
            if self.fixed[node as usize] || known.evictions > want.evictions {
                continue;
            }
            let ratio = self.ratio(node, prices, want);
            if ratio > want.least {
                queue.push(Entry { ratio, node });
            }
            if stop(known.evictions * self.cluster.nodes.len() as u64 / NODES_PER_UNIT + 1) {
                return;
            }
        }
        while let Some(entry) = queue.pop() {
            let known = &self.cluster.nodes[entry.node as usize];
            let evictions = known.evictions;
            if self.evictions + evictions > want.evictions || self.removed + 1 > want.nodes {
                continue;
            }
            if stop(evictions * self.cluster.nodes.len() as u64 / NODES_PER_UNIT + 1) {
                return;
            }
            // Room was used since then, so the saving may be lower.
            let ratio = self.ratio(entry.node, prices, want);
            if ratio <= want.least {
                continue;
            }
            if queue.peek().is_some_and(|next| ratio < next.ratio) {
                queue.push(Entry { ratio, node: entry.node });
                continue;
            }
            let (_, _, outside) = self.empty(entry.node, prices);
            for class in outside {
                self.outside[class as usize] += 1;
            }
            self.guests[entry.node as usize].clear();
            self.gone[entry.node as usize] = true;
            self.evictions += evictions;
            self.removed += 1;
        }
    }
}
