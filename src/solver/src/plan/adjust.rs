//! Changes that never make a plan worse.

use std::collections::{BTreeMap, VecDeque};

use super::{Plan, Stock};
use crate::canonical::{Content, Model, Pattern};
use crate::stages::SearchStage;

/// The bins that are compared for a node in one unit of work, and the classes that are tried on one.
const BINS_PER_UNIT: u64 = 16;
const CLASSES_PER_UNIT: u64 = 16;

impl Plan {
    /// Removes pods beyond `demand`, from the most expensive nodes first, and drops nodes that become empty.
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

    /// Adds pods of `left` to the free room of the plan's nodes, classes in the given order. Nodes stay as they are once `stop`, which
    /// gets units of work, returns true.
    pub fn fill(
        &mut self,
        model: &Model,
        left: &mut [u64],
        order: &[u32],
        stop: &mut dyn FnMut(u64) -> bool,
    ) {
        let mut order: Vec<u32> = order.iter().copied().filter(|class| left[*class as usize] > 0).collect();
        if order.is_empty() {
            return;
        }
        let mut work: VecDeque<_> = std::mem::take(&mut self.nodes).into_iter().collect();
        while let Some((pattern, count)) = work.pop_front() {
            if stop(1 + order.len() as u64 / CLASSES_PER_UNIT) {
                work.push_front((pattern, count));
                break;
            }
            let bin = &model.bins[pattern.bin as usize];
            let mut content = Content::of(model, &pattern);
            let mut more = Vec::new();
            for &class in &order {
                if left[class as usize] == 0 || bin.position(class).is_none() {
                    continue;
                }
                let add = content.more(class).min(left[class as usize]).min(u64::from(u32::MAX)) as u32;
                if add > 0 {
                    content.add(class, add);
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

    /// Repairs overdrawn rows. Nodes that use such a row are replaced by others that use less of it, the cheapest change
    /// first. If no replacement exists, a node is dropped and its pods are left out. Rows stay overdrawn if `stop`, which gets
    /// units of work, returns true.
    pub fn repair(&mut self, model: &Model, stop: &mut dyn FnMut(u64) -> bool) {
        let mut stock = Stock::after(model, self);
        // Each step reduces the overdraft of a row or removes a node.
        while let Some(row) = stock.overdrawn() {
            let amount = |bin: u32| {
                let uses = &model.bins[bin as usize].limit_use;
                uses.iter().find(|(at, _)| *at == row).map_or(0, |(_, amount)| *amount)
            };
            let mut best: Option<(f64, Pattern, u32, u64)> = None;
            let mut dropped: Option<(u64, Pattern)> = None;
            for (pattern, count) in self.nodes.iter().filter(|(pattern, _)| amount(pattern.bin) > 0) {
                if stop(1 + model.bins.len() as u64 / BINS_PER_UNIT) {
                    return;
                }
                let pods: u64 = pattern.pods.iter().map(|(_, count)| u64::from(*count)).sum();
                if dropped.as_ref().is_none_or(|(fewest, _)| pods < *fewest) {
                    dropped = Some((pods, pattern.clone()));
                }
                let cost = model.bins[pattern.bin as usize].cost(&pattern.pods) as f64;
                for to in 0..model.bins.len() as u32 {
                    let freed = amount(pattern.bin) - amount(to);
                    if freed <= 0 || model.bins[to as usize].is_existing() {
                        continue;
                    }
                    let most = stock.exchangeable(model, pattern.bin, to).min(*count);
                    let dearer = (model.bins[to as usize].cost(&pattern.pods) as f64 - cost) / freed as f64;
                    if most > 0
                        && best.as_ref().is_none_or(|(least, ..)| dearer < *least)
                        && Content::allows(model, to, &pattern.pods)
                    {
                        let needed = (-stock.limits()[row as usize] + freed - 1) / freed;
                        let moved = most.min(u64::try_from(needed).unwrap_or(u64::MAX));
                        best = Some((dearer, pattern.clone(), to, moved));
                    }
                }
            }
            let (pattern, to, moved) = match (best, dropped) {
                (Some((_, pattern, to, moved)), _) => (pattern, Some(to), moved),
                (None, Some((_, pattern))) => (pattern, None, 1),
                // No bought node uses the row, so this plan cannot have overdrawn it.
                (None, None) => return,
            };
            if let Some(count) = self.nodes.get_mut(&pattern) {
                *count -= moved;
                if *count == 0 {
                    self.nodes.remove(&pattern);
                }
            }
            stock.put_back(model, pattern.bin, moved);
            if let Some(to) = to {
                stock.take(model, to, moved);
                self.add(Pattern { bin: to, pods: pattern.pods }, moved);
            }
        }
    }

    /// Moves each bought node's pods to the bin where they cost least. Ties go to the lowest index. Nodes stay as they are once
    /// `stop`, which gets units of work, returns true.
    pub fn downgrade(&mut self, model: &Model, stop: &mut dyn FnMut(u64) -> bool) {
        if !model.stages.has(SearchStage::Downgrade) {
            return;
        }
        let mut by_price: Vec<u32> =
            (0..model.bins.len() as u32).filter(|bin| !model.bins[*bin as usize].is_existing()).collect();
        by_price.sort_by_key(|bin| (model.bins[*bin as usize].price, *bin));
        let mut stock = Stock::after(model, self);
        let mut stopped = false;
        for (pattern, mut count) in std::mem::take(&mut self.nodes) {
            let from = &model.bins[pattern.bin as usize];
            stopped = stopped || stop(1 + by_price.len() as u64 / BINS_PER_UNIT);
            if !stopped && !from.is_existing() {
                let mut used = vec![0u64; model.dims];
                for (class, pods) in &pattern.pods {
                    for (used, request) in used.iter_mut().zip(&model.classes[*class as usize].requests) {
                        *used += request * u64::from(*pods);
                    }
                }
                let cost = from.cost(&pattern.pods);
                for &to in &by_price {
                    let bin = &model.bins[to as usize];
                    if count == 0 || (bin.price, to) >= (cost, pattern.bin) {
                        break;
                    }
                    let holds = to != pattern.bin
                        && bin.capacity.iter().zip(&used).all(|(room, used)| room >= used)
                        && pattern.pods.iter().all(|(class, _)| bin.classes.binary_search(class).is_ok())
                        && (bin.cost(&pattern.pods), to) < (cost, pattern.bin)
                        && (bin.rules.none() || Content::allows(model, to, &pattern.pods));
                    if !holds {
                        continue;
                    }
                    let moved = stock.exchangeable(model, pattern.bin, to).min(count);
                    stock.put_back(model, pattern.bin, moved);
                    stock.take(model, to, moved);
                    count -= moved;
                    self.add(Pattern { bin: to, pods: pattern.pods.clone() }, moved);
                }
            }
            self.add(pattern, count);
        }
    }
}
