//! The exact best pattern of one node: a bounded knapsack over several resources, by branch and bound. Tables over (slots
//! x weighted mix of the other resources) bound the completions.
//!
//! All arithmetic is in integers, so every upper bound is valid.

mod table;

use std::collections::BTreeSet;

use self::table::{CELLS_PER_UNIT, MIX_BITS, Table, table};
pub(crate) use self::table::{Item, Scratch};
use crate::canonical::{Class, Content};
use crate::gpu::Fit;
use crate::meter::Pulse;

/// The fixed-point one: the whole capacity of a resource.
const ONE: u64 = 1 << 32;
/// The maximum number of slots (GPUs) of a table.
const MOST_SLOTS: u64 = 16;

/// Tables hold integers as `f32`, which processors add and compare four at a time. Below this value they are exact. A sum
/// that reaches it never rounds to less, and gives no bound.
const EXACT: f32 = (1u32 << 24) as f32;
/// The binary logarithm to which the worth of a whole node is scaled. The rest up to `EXACT` is for tables that
/// overshoot, because they round sizes down.
const VALUE_BITS: u32 = 22;

/// The highest worth of a node, in value units, that a search accepts: a billion dollars an hour, more than any real
/// node.
const LARGEST: u64 = 1 << 60;
/// The maximum number of cells of a table above the lowest resolution.
const MOST_CELLS: u64 = 1 << 22;
/// The binary logarithm of the lowest resolution.
const LEAST_BITS: u32 = 7;
/// The search nodes visited in one unit of work.
const NODES_PER_UNIT: u64 = 8;
/// The search nodes between two stop checks.
const TICK: u64 = 1 << 10;
/// The maximum factor by which a search node takes longer with a guard.
const RULED: u64 = 8;

/// Rules beyond capacity, checked item by item. Every subset of an allowed content must be allowed. Patterns hold only what is known
/// to be allowed, and the upper bound counts what is undecided.
pub(crate) trait Guard {
    /// Returns what is known about how many more of `class` may be added; `u64::MAX` for no limit.
    fn fit(&self, class: u32) -> Fit;
    /// Adds some, at most as many as are known to fit.
    fn add(&mut self, class: u32, count: u32);
    /// Removes some.
    fn remove(&mut self, class: u32, count: u32);
}

impl Guard for Content<'_> {
    fn fit(&self, class: u32) -> Fit {
        Content::fit(self, class)
    }

    fn add(&mut self, class: u32, count: u32) {
        Content::add(self, class, count);
    }

    fn remove(&mut self, class: u32, count: u32) {
        Content::remove(self, class, count);
    }
}

/// The effort of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The binary logarithm of the tables' resolution.
    pub bits: u32,
    /// The maximum number of search nodes.
    pub nodes: u64,
}

impl Effort {
    /// Returns the maximum work units for the search nodes, without the tables.
    pub fn units(&self) -> u64 {
        self.nodes / NODES_PER_UNIT
    }
}

/// The result of a search.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The upper bound: no pattern is worth more than this or the threshold, whichever is larger.
    pub upper: u64,
    /// Patterns worth more than the threshold, in ascending order of worth.
    pub found: Vec<(u64, Vec<(u32, u32)>)>,
    /// Patterns that each hold a class that no other holds; their worth is not computed.
    pub others: Vec<Vec<(u32, u32)>>,
    /// The work units spent.
    pub work: u64,
}

struct Search<'a, 'g, 'm, 'p, 'w> {
    /// The rules, where capacity alone does not decide.
    guard: Option<&'g mut dyn Guard>,
    pulse: &'m mut Pulse<'p, 'w>,
    items: &'a [Item],
    /// The requests, item-major.
    requests: Vec<&'a [u64]>,
    slot_weights: Vec<u64>,
    tables: Vec<Table>,
    shift: u32,
    /// The worth of a node at the resource prices, and the gain that items `j..` can add to it.
    whole: u64,
    gains: Vec<u64>,
    best: u64,
    open: u64,
    nodes: u64,
    /// The work units that [`TICK`] nodes count between two polls of the signal.
    tick: u64,
    limit: u64,
    room: Vec<u64>,
    counts: Vec<u32>,
    /// The head in the current pattern, by class.
    head: Option<u32>,
    found: Vec<(u64, Vec<(u32, u32)>)>,
}

/// A head in the search.
struct Head<'a> {
    item: &'a Item,
    request: &'a [u64],
    /// The rest of each mix beside it.
    mixes: [u64; 3],
    /// The upper bound on patterns with it.
    bound: u64,
}

impl Search<'_, '_, '_, '_, '_> {
    fn bound(&self, item: usize, slots: u64, mixes: &[u64; 3]) -> u64 {
        let least = self
            .tables
            .iter()
            .zip(mixes)
            .map(|(table, mix)| table.at(item, slots, *mix))
            .fold(EXACT, f32::min);
        if least < EXACT { (least as u64) << self.shift } else { u64::MAX >> 2 }
    }

    /// Returns what is known about how many of an item may be added.
    fn fit(&self, item: usize) -> Fit {
        let mut most = u64::from(self.items[item].most);
        for (room, request) in self.room.iter().zip(self.requests[item]) {
            if *request > 0 {
                if most.saturating_mul(*request) <= *room {
                    continue;
                }
                most = room / request;
                if most == 0 {
                    return Fit::exact(0);
                }
            }
        }
        let fit = Fit::exact(most);
        self.guard.as_ref().map_or(fit, |guard| fit.min(guard.fit(self.items[item].class)))
    }

    fn take(&mut self, item: usize, count: u32) {
        for (room, request) in self.room.iter_mut().zip(self.requests[item]) {
            *room -= request * u64::from(count);
        }
        if let Some(guard) = &mut self.guard {
            guard.add(self.items[item].class, count);
        }
        self.counts[item] += count;
    }

    fn give_back(&mut self, item: usize) {
        let count = u64::from(self.counts[item]);
        for (room, request) in self.room.iter_mut().zip(self.requests[item]) {
            *room += request * count;
        }
        if let Some(guard) = &mut self.guard {
            guard.remove(self.items[item].class, self.counts[item]);
        }
        self.counts[item] = 0;
    }

    fn left(&self, item: usize, count: u32, slots: u64, mixes: &[u64; 3]) -> (u64, [u64; 3]) {
        let count = u64::from(count);
        let mut after = *mixes;
        for (after, table) in after.iter_mut().zip(&self.tables) {
            *after -= table.weights[item] * count;
        }
        (slots - self.slot_weights[item] * count, after)
    }

    fn note(&mut self, value: u64) {
        if value > self.best {
            self.best = value;
            self.found.push((value, self.content()));
        }
    }

    fn content(&self) -> Vec<(u32, u32)> {
        let mut content: Vec<(u32, u32)> = (0..self.items.len())
            .filter(|&item| self.counts[item] > 0)
            .map(|item| (self.items[item].class, self.counts[item]))
            .chain(self.head.map(|head| (head, 1)))
            .collect();
        content.sort_unstable();
        content
    }

    /// Makes one descent along the tables from the current pods, and returns the value that it adds.
    fn follow(&mut self, slots: u64, mixes: [u64; 3]) -> u64 {
        let (mut slots, mut mixes, mut value) = (slots, mixes, 0);
        for item in 0..self.items.len() {
            let mut choice = (0, 0);
            let most = (self.fit(item).least as u32).min(self.items[item].most - self.counts[item]);
            for count in (0..=most).rev() {
                let (slots, mixes) = self.left(item, count, slots, &mixes);
                let promise = self.items[item].value * u64::from(count) + self.bound(item + 1, slots, &mixes);
                if promise > choice.0 {
                    choice = (promise, count);
                }
            }
            if choice.1 > 0 {
                (slots, mixes) = self.left(item, choice.1, slots, &mixes);
                self.take(item, choice.1);
                value += self.items[item].value * u64::from(choice.1);
            }
        }
        value
    }

    fn clear(&mut self) {
        for item in 0..self.items.len() {
            self.give_back(item);
        }
    }

    /// Finds a good pattern to start with.
    fn dive(&mut self, slots: u64, mixes: [u64; 3]) {
        let value = self.follow(slots, mixes);
        self.note(value);
        self.clear();
    }

    /// Returns a pattern for every class that no pattern holds yet.
    fn spread(&mut self, slots: u64, mixes: [u64; 3], held: &mut BTreeSet<u32>) -> Vec<Vec<(u32, u32)>> {
        held.extend(self.found.iter().flat_map(|(_, content)| content.iter().map(|(class, _)| *class)));
        let mut others = Vec::new();
        for item in 0..self.items.len() {
            if held.contains(&self.items[item].class) || self.fit(item).least == 0 {
                continue;
            }
            if self.pulse.tick(self.tick) {
                break;
            }
            self.take(item, 1);
            let (slots, mixes) = self.left(item, 1, slots, &mixes);
            self.follow(slots, mixes);
            let content = self.content();
            self.clear();
            held.extend(content.iter().map(|(class, _)| *class));
            others.push(content);
        }
        others
    }

    /// Searches all patterns with one of `heads`, the most promising first.
    fn begin(&mut self, heads: &[Head<'_>], slots: u64) {
        for head in heads {
            if head.bound <= self.best {
                return;
            }
            self.nodes += 1;
            if self.nodes.is_multiple_of(TICK) && self.pulse.tick(self.tick) {
                self.limit = self.nodes - 1;
            }
            if self.nodes > self.limit {
                self.open = self.open.max(head.bound);
                return;
            }
            let fit = self.guard.as_ref().map_or(Fit::exact(1), |guard| guard.fit(head.item.class));
            if fit.least == 0 {
                if fit.most > 0 {
                    self.open = self.open.max(head.bound);
                }
                continue;
            }
            for (room, request) in self.room.iter_mut().zip(head.request) {
                *room -= request;
            }
            if let Some(guard) = &mut self.guard {
                guard.add(head.item.class, 1);
            }
            self.head = Some(head.item.class);
            self.descend(0, (head.item.value, head.item.loss), slots, head.mixes);
            self.head = None;
            if let Some(guard) = &mut self.guard {
                guard.remove(head.item.class, 1);
            }
            for (room, request) in self.room.iter_mut().zip(head.request) {
                *room += request;
            }
        }
    }

    /// Searches from item `from` on. `lost` is the worth of the resources that the pods take so far, minus their own.
    fn descend(&mut self, from: usize, (value, lost): (u64, i64), slots: u64, mixes: [u64; 3]) {
        self.note(value);
        for item in from..self.items.len() {
            let linear = self.whole.saturating_add(self.gains[item]).saturating_add_signed(-lost);
            if linear <= self.best {
                return;
            }
            let bound = linear.min(value + self.bound(item, slots, &mixes));
            if bound <= self.best {
                return;
            }
            self.nodes += 1;
            if self.nodes.is_multiple_of(TICK) && self.pulse.tick(self.tick) {
                self.limit = self.nodes - 1;
            }
            if self.nodes > self.limit {
                self.open = self.open.max(bound);
                return;
            }
            let Item { value: each, loss, .. } = self.items[item];
            let fit = self.fit(item);
            if !fit.is_decided() {
                // Patterns with more of the item are not searched, and may be allowed.
                self.open = self.open.max(bound);
            }
            for count in (1..=fit.least as u32).rev() {
                let (slots, mixes) = self.left(item, count, slots, &mixes);
                let sum = (value + each * u64::from(count), lost + loss * i64::from(count));
                self.take(item, count);
                self.descend(item + 1, sum, slots, mixes);
                self.give_back(item);
            }
        }
    }
}

/// Returns `floor(request / capacity)` in fixed point. Capacity 0 means that the item requests none.
pub(crate) fn share(request: u64, capacity: u64) -> u64 {
    if capacity == 0 { 0 } else { (u128::from(request) * u128::from(ONE) / u128::from(capacity)) as u64 }
}

/// Returns `floor(share * whole)`.
pub(crate) fn of(share: u64, whole: u64) -> u64 {
    ((u128::from(share) * u128::from(whole)) >> 32) as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Searches patterns worth more than `threshold`.
///
/// `prices` are the worth of the whole of each resource. They shape the tables, and the items' losses use them. `most` is
/// an upper bound on the value of any pattern.
pub(crate) fn solve(
    classes: &[Class],
    room: (&[u64], Option<&mut dyn Guard>),
    items: Vec<Item>,
    prices: &[u64],
    bounds: (u64, u64),
    effort: Effort,
    tools: (&mut Scratch, &mut BTreeSet<u32>, &mut Pulse<'_, '_>),
) -> Answer {
    solve_with(classes, room, (&[], items), prices, bounds, effort, tools)
}

/// Like [`solve`], where a pattern has at most one of `heads` beside its items. Heads can be many, since they are not in
/// the tables. A head must fit the empty node.
pub(crate) fn solve_with(
    classes: &[Class],
    (capacity, guard): (&[u64], Option<&mut dyn Guard>),
    (heads, mut items): (&[Item], Vec<Item>),
    prices: &[u64],
    (threshold, most): (u64, u64),
    effort: Effort,
    (scratch, held, pulse): (&mut Scratch, &mut BTreeSet<u32>, &mut Pulse<'_, '_>),
) -> Answer {
    // No pattern is worth more than `most`, so below this limit no sum of values overflows.
    if most >= LARGEST {
        return Answer { upper: most, ..Answer::default() };
    }
    let dims = capacity.len();
    let request = |item: &Item| classes[item.class as usize].requests.as_slice();
    // Slots: the most valuable resource that comes in few pieces.
    let slot = (0..dims)
        .filter_map(|dim| {
            let unit = items.iter().fold(0, |unit, item| gcd(request(item)[dim], unit));
            (unit > 0 && capacity[dim] / unit <= MOST_SLOTS).then_some((prices[dim], dim, unit))
        })
        .max_by_key(|(price, dim, _)| (*price, std::cmp::Reverse(*dim)));
    // Pods that take a slot decide most; among them, those with the least loss come first.
    items.sort_by_key(|item| {
        (slot.is_some_and(|(_, dim, _)| request(item)[dim] == 0), item.loss.max(0), item.class)
    });
    let items = items.as_slice();
    let requests: Vec<&[u64]> = items.iter().map(request).collect();
    let slots = slot.map_or(0, |(_, dim, unit)| capacity[dim] / unit);
    let slot_weights: Vec<u64> =
        requests.iter().map(|request| slot.map_or(0, |(_, dim, unit)| request[dim] / unit)).collect();

    let others: Vec<usize> = (0..dims).filter(|dim| slot.is_none_or(|(_, slot, _)| slot != *dim)).collect();
    let total: u128 = others.iter().map(|dim| u128::from(prices[*dim])).sum();
    let mut ranked = others.clone();
    ranked.sort_by_key(|dim| (std::cmp::Reverse(prices[*dim]), *dim));
    let mut mixes: Vec<Vec<(usize, u64)>> = Vec::new();
    if total > 0 {
        let mut mix: Vec<(usize, u64)> = ranked
            .iter()
            .map(|dim| (*dim, ((u128::from(prices[*dim]) << MIX_BITS) / total) as u64))
            .filter(|(_, share)| *share > 0)
            .collect();
        let sum: u64 = mix.iter().map(|(_, share)| share).sum();
        if let Some(first) = mix.first_mut() {
            first.1 += (1 << MIX_BITS) - sum;
        }
        mixes.push(mix);
    }
    for dim in ranked.iter().take(2) {
        let alone = vec![(*dim, 1 << MIX_BITS)];
        if mixes.len() < 3 && !mixes.contains(&alone) {
            mixes.push(alone);
        }
    }
    if mixes.is_empty() {
        // Only the slots matter.
        mixes.push(Vec::new());
    }

    let shift = (64 - most.leading_zeros()).saturating_sub(VALUE_BITS);
    let scaled: Vec<f32> = items.iter().map(|item| item.value.div_ceil(1 << shift) as f32).collect();
    // Many items get coarser tables, which the search must compensate for.
    let rows = (items.len() as u64 + 1) * (slots + 1);
    let bits = (LEAST_BITS..effort.bits)
        .rev()
        .fold(effort.bits, |bits, fewer| if rows << bits > MOST_CELLS { fewer } else { bits });
    let mut work = 0;
    let tables: Vec<Table> = mixes
        .iter()
        .map(|mix| {
            let weights: Vec<u64> = requests
                .iter()
                .map(|request| {
                    mix.iter().map(|(dim, part)| of(share(request[*dim], capacity[*dim]), *part)).sum()
                })
                .collect();
            let cells = scratch.0.pop().unwrap_or_default();
            let slots = (slot_weights.as_slice(), slots);
            let table = table(items, &scaled, slots, weights, bits, (cells, &mut *pulse));
            work += (rows << bits) / CELLS_PER_UNIT;
            table
        })
        .collect();

    if pulse.asked() {
        // The tables may be unfinished.
        return Answer { upper: most, work, ..Answer::default() };
    }
    let mut gains: Vec<u64> = items
        .iter()
        .rev()
        .scan(0u64, |sum, item| {
            *sum = (*sum).saturating_add(item.loss.min(0).unsigned_abs().saturating_mul(item.most.into()));
            Some(*sum)
        })
        .collect();
    gains.reverse();
    let ruled = guard.is_some();
    let mut search = Search {
        guard,
        pulse,
        items,
        requests,
        slot_weights,
        tables,
        shift,
        whole: prices.iter().fold(0, |sum, price| sum.saturating_add(*price)),
        gains,
        best: threshold,
        open: 0,
        nodes: 0,
        tick: TICK / NODES_PER_UNIT * if ruled { RULED } else { 1 },
        limit: effort.nodes,
        room: capacity.to_vec(),
        counts: vec![0; items.len()],
        head: None,
        found: Vec::new(),
    };
    let full = [1 << MIX_BITS; 3];
    let mut others = Vec::new();
    if !heads.is_empty() {
        let all = search.whole.saturating_add(search.gains.first().copied().unwrap_or(0));
        let mut ranked: Vec<Head<'_>> = heads
            .iter()
            .map(|item| {
                let request = request(item);
                let mut left = full;
                for (left, mix) in left.iter_mut().zip(&mixes) {
                    let weight: u64 =
                        mix.iter().map(|(dim, part)| of(share(request[*dim], capacity[*dim]), *part)).sum();
                    *left -= weight;
                }
                let linear = all.saturating_add_signed(-item.loss);
                let bound = linear.min(item.value + search.bound(0, slots, &left));
                Head { item, request, mixes: left, bound }
            })
            .collect();
        ranked.sort_by_key(|head| (std::cmp::Reverse(head.bound), head.item.class));
        search.begin(&ranked, slots);
        work += heads.len() as u64 / 20;
    }
    if search.bound(0, slots, &full) > threshold {
        search.dive(slots, full);
        search.descend(0, (0, 0), slots, full);
        others = search.spread(slots, full, held);
        work += others.len() as u64 * (1 + items.len() as u64 / 10);
    }
    work += search.nodes / NODES_PER_UNIT + 1;
    // Table values are rounded up and may exceed the caller's bound. The smaller of both is a bound.
    let upper = search.best.max(search.open.min(most));
    let found = std::mem::take(&mut search.found);
    scratch.0.extend(search.tables.into_iter().map(|table| table.cells));
    Answer { upper, found, others, work }
}

#[cfg(test)]
mod tests;
