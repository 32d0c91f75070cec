//! Fills one node, class after class. The greedy heuristic spends most of its time here.

use crate::canonical::{Content, Model, UNLIMITED};
use crate::stages::SearchStage;

/// The fill orders of each bin, with data about the classes in them.
pub(super) struct Filler<'m> {
    model: &'m Model,
    /// The requests of one pod of each class, one class after the other.
    requests: Vec<u64>,
    /// By bin.
    orders: Vec<Vec<Vec<u32>>>,
    /// By bin: the lowest request of any of its classes for each resource.
    leasts: Vec<Vec<u64>>,
    room: Vec<u64>,
    /// By party: the last node from which a placed pod excludes it.
    kept_away: Vec<u64>,
    /// The number of nodes filled so far.
    nodes: u64,
}

/// The classes of a bin that are sorted in one unit of work.
const SORTED_PER_UNIT: u64 = 4;

impl<'m> Filler<'m> {
    /// Creates a filler for pods of `left`, worth `values`. Returns `None` when `stop` returns true.
    pub fn new(
        model: &'m Model,
        values: &[f64],
        left: &[u64],
        stop: &mut dyn FnMut(u64) -> bool,
    ) -> Option<Self> {
        let requests: Vec<u64> =
            model.classes.iter().flat_map(|class| class.requests.iter().copied()).collect();
        let mut all: Vec<Vec<Vec<u32>>> = Vec::with_capacity(model.bins.len());
        for (index, bin) in model.bins.iter().enumerate() {
            all.push(orders(model, index as u32, values, left, &requests));
            if stop(1 + bin.classes.len() as u64 / SORTED_PER_UNIT) {
                return None;
            }
        }
        // The first order of a bin has all its classes.
        let leasts: Vec<Vec<u64>> =
            all.iter().map(|orders| least(model.dims, &orders[0], &requests)).collect();
        let kept_away = vec![0; model.apart.len()];
        Some(Self { model, requests, orders: all, leasts, room: Vec::new(), kept_away, nodes: 0 })
    }

    /// Returns the fillings of an empty node with pods of `left`, one for each order of the bin.
    pub fn fillings(&mut self, bin: u32, left: &[u64]) -> Vec<Vec<(u32, u32)>> {
        let mut orders = std::mem::take(&mut self.orders[bin as usize]);
        let most = if self.model.stages.has(SearchStage::GreedyOrders) { orders.len() } else { 1 };
        let fillings = orders.iter_mut().take(most).map(|order| self.fill(bin, order, left)).collect();
        self.orders[bin as usize] = orders;
        fillings
    }

    /// Takes as many pods of each class as fit, in this order.
    fn fill(&mut self, bin: u32, order: &mut Vec<u32>, left: &[u64]) -> Vec<(u32, u32)> {
        let node = &self.model.bins[bin as usize];
        if !node.rules.flexible.is_empty() || node.rules.gpus.is_some() {
            return self.fill_by_rules(bin, order, left);
        }
        let dims = self.model.dims;
        self.nodes += 1;
        self.room.clear();
        self.room.extend(&node.capacity);
        let mut pods: Vec<(u32, u32)> = Vec::new();
        let mut gone = 0;
        for &class in order.iter() {
            let have = left[class as usize];
            if have == 0 {
                gone += 1;
                continue;
            }
            let requests = &self.requests[class as usize * dims..][..dims];
            if self.room.iter().zip(requests).any(|(room, request)| room < request) {
                continue;
            }
            let wanted = &self.model.classes[class as usize];
            if node.rules.conflicts && self.kept_away[wanted.party as usize] == self.nodes {
                continue;
            }
            let fit = self.room.iter().zip(requests).filter_map(|(room, request)| room.checked_div(*request));
            let most = fit.min().unwrap_or(UNLIMITED).min(u64::from(wanted.per_node)).min(have);
            if most == 0 {
                continue;
            }
            for (room, request) in self.room.iter_mut().zip(requests) {
                *room -= request * most;
            }
            for other in &self.model.apart[wanted.party as usize] {
                self.kept_away[*other as usize] = self.nodes;
            }
            pods.push((class, most as u32));
            // Most classes come after the node is full.
            if self.room.iter().zip(&self.leasts[bin as usize]).any(|(room, least)| room < least) {
                break;
            }
        }
        // Drop classes that have no pods left.
        if gone * 4 > order.len() {
            order.retain(|class| left[*class as usize] > 0);
        }
        pods.sort_unstable();
        pods
    }

    /// Fills a node that has rules beyond capacity and conflicts.
    fn fill_by_rules(&self, bin: u32, order: &[u32], left: &[u64]) -> Vec<(u32, u32)> {
        let mut content = Content::empty(self.model, bin);
        for &class in order.iter().filter(|class| left[**class as usize] > 0) {
            let add = content.more(class).min(left[class as usize]).min(u64::from(u32::MAX)) as u32;
            content.add(class, add);
            if add > 0 && content.has_less_than(&self.leasts[bin as usize]) {
                break;
            }
        }
        content.into_pods()
    }
}

/// Returns the orders in which to fill a bin: by value per share of the node, and by value per share of the scarcest
/// resource. If penalties exceed the value of some pods here, a third order has only the other pods.
fn orders(model: &Model, bin: u32, values: &[f64], left: &[u64], requests: &[u64]) -> Vec<Vec<u32>> {
    let node = &model.bins[bin as usize];
    let penalty = |position: usize| node.penalties.get(position).copied().unwrap_or(0) as f64;
    let scales: Vec<f64> = node.capacity.iter().map(|room| 1.0 / (*room).max(1) as f64).collect();
    let mut worth = 0;
    let mut keyed: Vec<(f64, f64, u32)> = Vec::with_capacity(node.classes.len());
    for (position, &class) in node.classes.iter().enumerate() {
        if left[class as usize] == 0 {
            continue;
        }
        let requests = &requests[class as usize * model.dims..][..model.dims];
        let (mut sum, mut most) = (0.0f64, 0.0f64);
        for (request, scale) in requests.iter().zip(&scales) {
            let share = *request as f64 * scale;
            (sum, most) = (sum + share, most.max(share));
        }
        let value = values[class as usize] - penalty(position);
        worth += usize::from(value > 0.0);
        keyed.push((value / sum.max(1e-9), value / most.max(1e-9), class));
    }
    keyed.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
    let by_sum: Vec<u32> = keyed.iter().map(|key| key.2).collect();
    let some = worth < by_sum.len();
    let worth: Vec<u32> = if some {
        let worth = |key: &&(f64, f64, u32)| key.0 > 0.0;
        keyed.iter().filter(worth).map(|key| key.2).collect()
    } else {
        Vec::new()
    };
    keyed.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.2.cmp(&b.2)));
    let mut orders = vec![by_sum, keyed.iter().map(|key| key.2).collect()];
    if some {
        orders.push(worth);
    }
    orders
}

/// Returns the lowest request of any class of an order for each resource.
fn least(dims: usize, order: &[u32], requests: &[u64]) -> Vec<u64> {
    let mut least = vec![u64::MAX; dims];
    for class in order {
        for (least, request) in least.iter_mut().zip(&requests[*class as usize * dims..]) {
            *least = (*least).min(*request);
        }
    }
    least
}
