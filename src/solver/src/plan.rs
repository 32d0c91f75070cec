//! Plans over the canonical problem: nodes with their pods, repairs that never make a plan worse, and the way back to the
//! problem's own classes, candidates and nodes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use poolwright_catalog::UsdPerHour;

use crate::canonical::{Model, Origin, UNLIMITED, fit_count};
use crate::solution::{ExistingUse, NewNodes, Placement, Solution, Stopped, Unplaced, UnplacedReason};

/// One node's content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    /// Index into [`Model::bins`].
    pub bin: u32,
    /// Pods by class, ascending; no zero counts.
    pub pods: Vec<(u32, u32)>,
}

/// Nodes with their pods. Pods of the demand that are on no node are unplaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How many nodes of each content.
    pub nodes: BTreeMap<Pattern, u64>,
}

/// What can still be bought or used.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    bins: Vec<u64>,
    limits: Vec<u64>,
}

impl Stock {
    /// Everything is still there.
    pub fn full(model: &Model) -> Self {
        Self { bins: model.bins.iter().map(|bin| bin.available).collect(), limits: model.limits.clone() }
    }

    /// What `plan` leaves.
    pub fn after(model: &Model, plan: &Plan) -> Self {
        let mut stock = Self::full(model);
        for (pattern, count) in &plan.nodes {
            stock.take(model, pattern.bin, *count);
        }
        stock
    }

    /// Nodes left by bin, limits aside.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// What is left of each limit.
    pub fn limits(&self) -> &[u64] {
        &self.limits
    }

    /// How many nodes of `bin` can still be had.
    pub fn left(&self, model: &Model, bin: u32) -> u64 {
        let uses = &model.bins[bin as usize].limit_use;
        uses.iter()
            .map(|(limit, amount)| self.limits[*limit as usize] / amount)
            .fold(self.bins[bin as usize], u64::min)
    }

    /// The first limit that keeps one more node of `bin` from being bought.
    pub fn blocking_limit(&self, model: &Model, bin: u32) -> Option<u32> {
        let uses = &model.bins[bin as usize].limit_use;
        uses.iter().find(|(limit, amount)| self.limits[*limit as usize] < *amount).map(|(limit, _)| *limit)
    }

    /// Takes `count` nodes of `bin`, which must be there.
    pub fn take(&mut self, model: &Model, bin: u32, count: u64) {
        if self.bins[bin as usize] != UNLIMITED {
            self.bins[bin as usize] -= count;
        }
        for (limit, amount) in &model.bins[bin as usize].limit_use {
            self.limits[*limit as usize] -= amount * count;
        }
    }

    /// Puts `count` nodes of `bin` back.
    pub fn put_back(&mut self, model: &Model, bin: u32, count: u64) {
        if self.bins[bin as usize] != UNLIMITED {
            self.bins[bin as usize] += count;
        }
        for (limit, amount) in &model.bins[bin as usize].limit_use {
            self.limits[*limit as usize] += amount * count;
        }
    }
}

impl Pattern {
    /// What is left free on the node.
    pub fn room(&self, model: &Model) -> Vec<u64> {
        let mut room = model.bins[self.bin as usize].capacity.clone();
        for (class, count) in &self.pods {
            for (left, request) in room.iter_mut().zip(&model.classes[*class as usize].requests) {
                *left -= request * u64::from(*count);
            }
        }
        room
    }

    /// How many pods of `class` it holds.
    pub fn count(&self, class: u32) -> u32 {
        self.pods.binary_search_by_key(&class, |(class, _)| *class).map_or(0, |at| self.pods[at].1)
    }

    /// How many such nodes `left` pods fill.
    pub fn copies(&self, left: &[u64]) -> u64 {
        self.pods.iter().map(|(class, count)| left[*class as usize] / u64::from(*count)).min().unwrap_or(0)
    }
}

impl Plan {
    /// Adds `count` nodes.
    pub fn add(&mut self, pattern: Pattern, count: u64) {
        if count > 0 && !pattern.pods.is_empty() {
            *self.nodes.entry(pattern).or_default() += count;
        }
    }

    /// Price in micro-dollars per hour.
    pub fn cost(&self, model: &Model) -> u64 {
        self.nodes
            .iter()
            .map(|(pattern, count)| model.bins[pattern.bin as usize].price.saturating_mul(*count))
            .fold(0, u64::saturating_add)
    }

    /// Pods placed, by class.
    pub fn placed(&self, model: &Model) -> Vec<u64> {
        let mut placed = vec![0; model.classes.len()];
        for (pattern, nodes) in &self.nodes {
            for (class, count) in &pattern.pods {
                placed[*class as usize] += u64::from(*count) * nodes;
            }
        }
        placed
    }

    /// Pods of `demand` not placed, by class.
    pub fn missing(&self, model: &Model, demand: &[u64]) -> Vec<u64> {
        self.placed(model).iter().zip(demand).map(|(placed, wanted)| wanted.saturating_sub(*placed)).collect()
    }

    /// Takes pods beyond `demand` off the dearest nodes first, and drops nodes that are left empty.
    pub fn trim(&mut self, model: &Model, demand: &[u64]) {
        let mut surplus: Vec<u64> = self
            .placed(model)
            .iter()
            .zip(demand)
            .map(|(placed, wanted)| placed.saturating_sub(*wanted))
            .collect();
        if surplus.iter().all(|count| *count == 0) {
            return;
        }
        let mut groups: Vec<(Pattern, u64)> = std::mem::take(&mut self.nodes).into_iter().collect();
        groups.sort_by_key(|(pattern, _)| std::cmp::Reverse(model.bins[pattern.bin as usize].price));
        let mut work: VecDeque<_> = groups.into();
        while let Some((pattern, count)) = work.pop_front() {
            let takes: Vec<(u32, u32)> = pattern
                .pods
                .iter()
                .map(|(class, pods)| (*class, u64::from(*pods).min(surplus[*class as usize]) as u32))
                .filter(|(_, take)| *take > 0)
                .collect();
            if takes.is_empty() {
                self.add(pattern, count);
                continue;
            }
            let copies = takes
                .iter()
                .map(|(class, take)| surplus[*class as usize] / u64::from(*take))
                .min()
                .unwrap_or(0)
                .min(count);
            let mut trimmed = pattern.clone();
            for (class, take) in takes {
                surplus[class as usize] -= u64::from(take) * copies;
                for slot in &mut trimmed.pods {
                    if slot.0 == class {
                        slot.1 -= take;
                    }
                }
            }
            trimmed.pods.retain(|(_, count)| *count > 0);
            self.add(trimmed, copies);
            if count > copies {
                work.push_front((pattern, count - copies));
            }
        }
    }

    /// Puts pods of `left` into free room of the plan's nodes, classes in the given order.
    pub fn fill(&mut self, model: &Model, left: &mut [u64], order: &[u32]) {
        let mut order: Vec<u32> = order.iter().copied().filter(|class| left[*class as usize] > 0).collect();
        if order.is_empty() {
            return;
        }
        let mut work: VecDeque<_> = std::mem::take(&mut self.nodes).into_iter().collect();
        while let Some((pattern, count)) = work.pop_front() {
            let bin = &model.bins[pattern.bin as usize];
            let mut room = pattern.room(model);
            let mut more = Vec::new();
            for &class in &order {
                let wanted = &model.classes[class as usize];
                if left[class as usize] == 0 || bin.classes.binary_search(&class).is_err() {
                    continue;
                }
                let ceiling = u64::from(wanted.per_node - pattern.count(class).min(wanted.per_node));
                let add = fit_count(&room, &wanted.requests).min(ceiling).min(left[class as usize]);
                let add = add.min(u64::from(u32::MAX)) as u32;
                if add > 0 {
                    for (room, request) in room.iter_mut().zip(&wanted.requests) {
                        *room -= request * u64::from(add);
                    }
                    more.push((class, add));
                }
            }
            if more.is_empty() {
                self.add(pattern, count);
                continue;
            }
            let copies = more
                .iter()
                .map(|(class, add)| left[*class as usize] / u64::from(*add))
                .min()
                .unwrap_or(0)
                .min(count);
            let mut filled: BTreeMap<u32, u32> = pattern.pods.iter().copied().collect();
            for (class, add) in more {
                left[class as usize] -= u64::from(add) * copies;
                *filled.entry(class).or_default() += add;
            }
            self.add(Pattern { bin: pattern.bin, pods: filled.into_iter().collect() }, copies);
            if count > copies {
                work.push_front((pattern, count - copies));
            }
            order.retain(|class| left[*class as usize] > 0);
            if order.is_empty() {
                break;
            }
        }
        for (pattern, count) in work {
            self.add(pattern, count);
        }
    }

    /// Moves each bought node's pods to the cheapest bin that holds them; ties go to the lowest index.
    pub fn downgrade(&mut self, model: &Model) {
        let mut by_price: Vec<u32> =
            (0..model.bins.len() as u32).filter(|bin| !model.bins[*bin as usize].is_existing()).collect();
        by_price.sort_by_key(|bin| (model.bins[*bin as usize].price, *bin));
        let mut stock = Stock::after(model, self);
        for (pattern, mut count) in std::mem::take(&mut self.nodes) {
            let from = &model.bins[pattern.bin as usize];
            if !from.is_existing() {
                let mut used = vec![0u64; model.dims];
                for (class, pods) in &pattern.pods {
                    for (used, request) in used.iter_mut().zip(&model.classes[*class as usize].requests) {
                        *used += request * u64::from(*pods);
                    }
                }
                for &to in &by_price {
                    let bin = &model.bins[to as usize];
                    if count == 0 || (bin.price, to) >= (from.price, pattern.bin) {
                        break;
                    }
                    let holds = bin.capacity.iter().zip(&used).all(|(room, used)| room >= used)
                        && pattern.pods.iter().all(|(class, _)| bin.classes.binary_search(class).is_ok());
                    if !holds {
                        continue;
                    }
                    stock.put_back(model, pattern.bin, count);
                    let moved = stock.left(model, to).min(count);
                    stock.take(model, to, moved);
                    // The rest may no longer fit under a limit the cheaper nodes take more of.
                    if stock.left(model, pattern.bin) < count - moved {
                        stock.put_back(model, to, moved);
                        stock.take(model, pattern.bin, count);
                        continue;
                    }
                    stock.take(model, pattern.bin, count - moved);
                    count -= moved;
                    self.add(Pattern { bin: to, pods: pattern.pods.clone() }, moved);
                }
            }
            self.add(pattern, count);
        }
    }

    /// Fewer pods of high priority left out comes first, then cost.
    pub fn compare(&self, other: &Self, model: &Model) -> Ordering {
        self.left_out(model)
            .cmp(&other.left_out(model))
            .then_with(|| self.cost(model).cmp(&other.cost(model)))
    }

    /// Pods left out by priority, the highest first.
    fn left_out(&self, model: &Model) -> Vec<u64> {
        let mut by_priority: BTreeMap<std::cmp::Reverse<i32>, u64> = BTreeMap::new();
        for (class, missing) in model.classes.iter().zip(self.missing(model, &model.demand())) {
            *by_priority.entry(std::cmp::Reverse(class.priority)).or_default() += missing;
        }
        by_priority.into_values().collect()
    }

    /// The plan in the problem's own terms. It must not place more than the demand.
    pub fn solution(&self, model: &Model, bound: u64, stopped: Stopped) -> Solution {
        let mut members: Vec<VecDeque<(u32, u64)>> =
            model.classes.iter().map(|class| class.members.iter().copied().collect()).collect();
        let mut new_nodes: BTreeMap<(u32, Vec<Placement>), u32> = BTreeMap::new();
        let mut on_existing = Vec::new();
        for (pattern, count) in &self.nodes {
            let mut nodes = match &model.bins[pattern.bin as usize].origin {
                Origin::Existing(nodes) => nodes.as_slice(),
                Origin::Candidate(_) => &[],
            };
            let used = self
                .nodes
                .range(..pattern)
                .filter(|(earlier, _)| earlier.bin == pattern.bin)
                .map(|(_, count)| *count as usize)
                .sum::<usize>();
            nodes = nodes.get(used..).unwrap_or(&[]);
            let mut left = *count;
            while left > 0 {
                // As many equal nodes at once as the current members of every class fill.
                let whole = pattern
                    .pods
                    .iter()
                    .map(|(class, pods)| {
                        members[*class as usize].front().map_or(0, |(_, have)| have / u64::from(*pods))
                    })
                    .min()
                    .unwrap_or(0)
                    .min(left);
                let copies = whole.max(1);
                let mut pods = Vec::new();
                for (class, need) in &pattern.pods {
                    let mut need = u64::from(*need) * copies;
                    let queue = &mut members[*class as usize];
                    while let Some((member, have)) = queue.front_mut() {
                        let take = need.min(*have);
                        if take > 0 {
                            pods.push((*member, (take / copies) as u32));
                        }
                        *have -= take;
                        need -= take;
                        if *have > 0 || need == 0 {
                            break;
                        }
                        queue.pop_front();
                    }
                }
                // Members used up to the last pod are left at zero.
                for (class, _) in &pattern.pods {
                    let queue = &mut members[*class as usize];
                    while queue.front().is_some_and(|(_, have)| *have == 0) {
                        queue.pop_front();
                    }
                }
                pods.sort_unstable();
                match &model.bins[pattern.bin as usize].origin {
                    Origin::Candidate(candidate) => {
                        *new_nodes.entry((*candidate, pods)).or_default() += copies as u32;
                    }
                    Origin::Existing(_) => {
                        let (now, later) = nodes.split_at(copies as usize);
                        on_existing.extend(now.iter().map(|&node| ExistingUse {
                            node,
                            pods: pods.clone(),
                            gpus: Vec::new(),
                        }));
                        nodes = later;
                    }
                }
                left -= copies;
            }
        }
        on_existing.sort();
        let mut unplaced: Vec<Unplaced> = model
            .homeless
            .iter()
            .map(|(class, count)| Unplaced {
                class: *class,
                count: *count as u32,
                reason: UnplacedReason::NothingFits,
            })
            .collect();
        let stock = Stock::after(model, self);
        for (index, queue) in members.iter().enumerate() {
            let reason = why_unplaced(model, &stock, index);
            unplaced.extend(queue.iter().map(|(class, count)| Unplaced {
                class: *class,
                count: *count as u32,
                reason,
            }));
        }
        unplaced.sort();
        let cost = UsdPerHour::from_micros(self.cost(model));
        Solution {
            new_nodes: new_nodes
                .into_iter()
                .map(|((candidate, pods), count)| NewNodes { candidate, pods, count, gpus: Vec::new() })
                .collect(),
            on_existing,
            unplaced,
            cost,
            bound: UsdPerHour::from_micros(bound).min(cost),
            stopped,
            ..Solution::default()
        }
    }
}

/// What keeps one more pod of the class out, the cheapest candidate's obstacle first.
fn why_unplaced(model: &Model, stock: &Stock, class: usize) -> UnplacedReason {
    let mut bins: Vec<u32> = model.classes[class]
        .bins
        .iter()
        .copied()
        .filter(|bin| !model.bins[*bin as usize].is_existing())
        .collect();
    bins.sort_by_key(|bin| (model.bins[*bin as usize].price, *bin));
    if bins.is_empty() {
        return UnplacedReason::NothingFits;
    }
    bins.iter()
        .find_map(|bin| stock.blocking_limit(model, *bin))
        .map_or(UnplacedReason::NoMoreAvailable, UnplacedReason::LimitReached)
}
