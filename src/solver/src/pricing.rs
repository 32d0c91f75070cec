//! Pricing: for every bin, the pattern that is worth most at given prices of pods, and a proven upper bound on that
//! worth.
//!
//! A linear bound at resource prices settles most bins. Reduced costs and dominance remove items of the others before
//! [`crate::knapsack`] searches them.

mod fillings;
mod lagrange;
mod shared;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::canonical::{Content, Model};
use crate::knapsack::{self, Effort, Guard, Item, Scratch};
use crate::knapsack_lp::{self, LpItem};
use crate::meter::{Meter, Pulse};
use crate::stages::SearchStage;

/// The work units of a round below which no further threads start.
const WORTH_A_THREAD: u64 = 2_000;
/// The work units that one wait for other threads counts between two polls of the signal.
const POLL_WAITING: u64 = 100;

/// The search nodes up to which only a quick search is wanted.
pub(crate) const QUICK: u64 = 200;

/// The work units that a bin counts between two polls, beyond its reported work: quickly settled bins do not report all
/// of it.
const BIN: u64 = 250;
/// The same for one part of a bin.
const PART: u64 = 100;
/// The shares of a node that are computed in one unit of work, and the pairs of pods that are compared in one.
const SHARES_PER_UNIT: u64 = 16;
const PAIRS_PER_UNIT: u64 = 32;
/// The threshold of a bin that is not to be priced.
pub(crate) const NOT_ASKED: u64 = u64::MAX;

/// The number of small items below which large pods get no resource prices of their own.
const SPLIT: usize = 4;

/// The pricing result of one bin at one price vector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Priced {
    /// The upper bound: no pattern is worth more.
    pub upper: u64,
    /// Patterns worth more than the threshold, in ascending order of worth.
    pub found: Vec<(u64, Vec<(u32, u32)>)>,
    /// Patterns that each hold a class that no other holds.
    pub others: Vec<Vec<(u32, u32)>>,
    /// New prices of the node's other resources where GPUs are shared.
    beside: Option<Vec<u64>>,
    /// Work units spent.
    pub work: u64,
}

impl Priced {
    /// Returns the value of the best known pattern, in value units.
    pub fn known(&self) -> Option<u64> {
        self.found.last().map(|(value, _)| *value)
    }
}

/// Data of a bin that do not depend on prices.
struct Shares {
    /// The number of pods of each class that one empty node holds, in the order of the bin's classes.
    holds: Vec<u64>,
    /// The requests as fixed-point shares of the node, class-major, rounded down.
    fixed: Vec<u64>,
    /// The same in floating point.
    float: Vec<f64>,
    /// The best prices of the node's other resources in the last round, where GPUs are shared.
    beside: Vec<u64>,
}

/// Prices bins, and remembers the prices that made the bounds tight.
pub(crate) struct Pricer<'m> {
    model: &'m Model,
    shares: Vec<Shares>,
    /// One per thread.
    scratches: Vec<Scratch>,
    /// The work of the last round: small rounds do not justify a thread.
    last: u64,
    /// The effort level that each bin's search needed; the caller keeps it from one relaxation to the next.
    pub levels: Vec<usize>,
}

impl<'m> Pricer<'m> {
    /// Creates a pricer that nothing stops.
    #[cfg(test)]
    pub fn new(model: &'m Model, threads: usize) -> Self {
        Self::until(model, threads, &mut |_| false).expect("nothing stops it")
    }

    /// Creates a pricer for all bins of `model` on `threads` threads; 0 for one per processor, at most 8. Returns `None` when
    /// `stop`, which gets units of work, returns true.
    pub fn until(model: &'m Model, threads: usize, stop: &mut dyn FnMut(u64) -> bool) -> Option<Self> {
        let mut shares = Vec::with_capacity(model.bins.len());
        for bin in &model.bins {
            let size = bin.classes.len() * model.dims;
            if stop(1 + size as u64 / SHARES_PER_UNIT) {
                return None;
            }
            let mut fixed = Vec::with_capacity(size);
            for class in &bin.classes {
                let requests = &model.classes[*class as usize].requests;
                fixed.extend(requests.iter().zip(&bin.capacity).map(|(r, c)| knapsack::share(*r, *c)));
            }
            shares.push(Shares {
                holds: bin.holds.clone(),
                float: fixed.iter().map(|share| *share as f64 / (1u64 << 32) as f64).collect(),
                fixed,
                beside: Vec::new(),
            });
        }
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from).min(8),
            threads => threads,
        };
        let scratches = (0..threads).map(|_| Scratch::default()).collect();
        Some(Self { model, shares, scratches, last: 0, levels: vec![0; model.bins.len()] })
    }

    /// Returns the problem it prices for.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Prices every bin. `tasks` holds threshold and effort by bin. The result does not depend on the number of threads.
    pub fn price_all(
        &mut self,
        pi: &[u64],
        demand: &[u64],
        tasks: &[(u64, Effort)],
        meter: &mut Meter<'_>,
    ) -> Vec<Priced> {
        let mut scratches = std::mem::take(&mut self.scratches);
        let flag = AtomicBool::new(false);
        let next = AtomicUsize::new(0);
        let this = &*self;
        let work = |scratch: &mut Scratch, pulse: &mut Pulse<'_, '_>| {
            let mut done = Vec::new();
            loop {
                let bin = next.fetch_add(1, Ordering::Relaxed);
                let Some((threshold, effort)) = tasks.get(bin) else { return done };
                if pulse.asked() {
                    // The solve stops, so the remaining bins get the trivial bound.
                    done.push((bin, Priced { upper: u64::MAX, ..Priced::default() }));
                    continue;
                }
                done.push((
                    bin,
                    this.price(bin, pi, demand, *threshold, *effort, (&mut *scratch, &mut *pulse)),
                ));
                pulse.tick(BIN + done.last().map_or(0, |(_, priced)| priced.work));
            }
        };
        let mut all: Vec<Priced> = Vec::new();
        all.resize_with(tasks.len(), Priced::default);
        let helpers = if self.last > WORTH_A_THREAD { scratches.len() - 1 } else { 0 };
        if let Some((own, others)) = scratches.split_first_mut() {
            std::thread::scope(|scope| {
                let handles: Vec<_> = others
                    .iter_mut()
                    .take(helpers)
                    .map(|scratch| scope.spawn(|| work(scratch, &mut Pulse::Helper(&flag))))
                    .collect();
                for (bin, priced) in work(own, &mut Pulse::Owner(&mut *meter, &flag)) {
                    all[bin] = priced;
                }
                for handle in handles {
                    while !handle.is_finished() {
                        std::thread::sleep(Duration::from_micros(50));
                        if meter.tick(POLL_WAITING) {
                            flag.store(true, Ordering::Relaxed);
                        }
                    }
                    match handle.join() {
                        Ok(done) => done.into_iter().for_each(|(bin, priced)| all[bin] = priced),
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
            });
        }
        self.scratches = scratches;
        self.last = all.iter().map(|priced| priced.work).sum();
        for (shares, priced) in self.shares.iter_mut().zip(&mut all) {
            if let Some(beside) = priced.beside.take() {
                shares.beside = beside;
            }
        }
        all
    }

    /// Returns the linear bound of `bin` at resource prices `prices`.
    fn linear(&self, bin: usize, pi: &[u64], demand: &[u64], prices: &[u64]) -> u64 {
        let (shares, dims) = (&self.shares[bin], self.model.dims);
        let mut bound: u128 = prices.iter().map(|price| u128::from(*price)).sum();
        for (position, class) in self.model.bins[bin].classes.iter().enumerate() {
            let value = self.model.bins[bin].value(position, pi[*class as usize]);
            let cost: u64 = shares.fixed[position * dims..(position + 1) * dims]
                .iter()
                .zip(prices)
                .map(|(share, price)| knapsack::of(*share, *price))
                .sum();
            if value > cost {
                let most = shares.holds[position].min(demand[*class as usize]);
                bound += u128::from(value - cost) * u128::from(most);
            }
        }
        u64::try_from(bound).unwrap_or(u64::MAX)
    }

    /// Finds patterns of `bin` worth more than `threshold` when a pod of class `k` is worth `pi[k]` and at most
    /// `demand[k]` exist.
    fn price(
        &self,
        bin: usize,
        pi: &[u64],
        demand: &[u64],
        threshold: u64,
        effort: Effort,
        (scratch, pulse): (&mut Scratch, &mut Pulse<'_, '_>),
    ) -> Priced {
        if threshold == NOT_ASKED {
            return Priced { upper: u64::MAX, ..Priced::default() };
        }
        let dims = self.model.dims;
        let classes = &self.model.bins[bin].classes;
        let items: Vec<LpItem<'_>> = classes
            .iter()
            .enumerate()
            .map(|(position, class)| LpItem {
                value: self.model.bins[bin].value(position, pi[*class as usize]) as f64,
                most: self.shares[bin].holds[position].min(demand[*class as usize]) as f64,
                shares: &self.shares[bin].float[position * dims..(position + 1) * dims],
            })
            .filter(|item| item.most > 0.0 && item.value > 0.0)
            .collect();
        let work = classes.len() as u64 / 200 + items.len() as u64 / 10;
        let prices: Vec<u64> =
            knapsack_lp::solve(&items, dims).into_iter().map(|price| price.round() as u64).collect();
        let most = self.linear(bin, pi, demand, &prices);
        if most <= threshold {
            return Priced { upper: most, work, ..Priced::default() };
        }
        let wanted = shared::Wanted { bin, pi, demand, threshold, effort };
        if let Some(mut shared) = self.shared(wanted, &prices, (&mut *scratch, &mut *pulse)) {
            shared.upper = shared.upper.min(most);
            shared.work += work;
            return shared;
        }
        let core = self.core(bin, pi, demand, &prices, (most, threshold), pulse);
        let capacity = &self.model.bins[bin].capacity;
        let mut content = Content::ruled(self.model, bin as u32);
        let mut held = self.held(bin);
        let (large, small): (Vec<Item>, Vec<Item>) = core.iter().cloned().partition(|item| {
            let requests = &self.model.classes[item.class as usize].requests;
            requests.iter().zip(capacity).any(|(request, room)| *request > room / 2)
        });
        if large.is_empty() || small.len() < SPLIT || !self.model.stages.has(SearchStage::LargePods) {
            let answer = knapsack::solve(
                &self.model.classes,
                (capacity, content.as_mut().map(|content| content as &mut dyn Guard)),
                core,
                &prices,
                (threshold, most),
                effort,
                (scratch, &mut held, pulse),
            );
            return Priced {
                upper: answer.upper.min(most),
                found: answer.found,
                others: answer.others,
                beside: None,
                work: work + answer.work,
            };
        }
        // A pod that takes more than half of a resource changes which resource is scarce for the rest. So the search
        // splits into one part for each such pod, and one without any, each with its own resource prices.
        let mut priced = Priced { upper: 0, work, ..Priced::default() };
        for first in (0..=large.len()).rev() {
            if pulse.tick(PART) {
                priced.upper = most;
                break;
            }
            let best = priced.found.last().map_or(threshold, |(value, _)| *value);
            let (chosen, rest) = match large.split_at(first) {
                (_, [chosen, rest @ ..]) => (Some(chosen), rest),
                (_, []) => (None, &[][..]),
            };
            let mut room = capacity.clone();
            let mut content = content.clone();
            if let Some(chosen) = chosen {
                let requests = &self.model.classes[chosen.class as usize].requests;
                room.iter_mut().zip(requests).for_each(|(room, request)| *room -= request);
                if let Some(content) = &mut content {
                    content.add(chosen.class, 1);
                }
            }
            let value = chosen.map_or(0, |chosen| chosen.value);
            let mut items: Vec<Item> = rest.iter().chain(&small).cloned().collect();
            if let Some(chosen) = chosen.filter(|chosen| chosen.most > 1) {
                items.push(Item { most: chosen.most - 1, ..chosen.clone() });
            }
            let part = self.part(
                (&room, content),
                items,
                best.saturating_sub(value),
                effort,
                (&mut *scratch, &mut held, &mut *pulse),
            );
            priced.work += part.work;
            priced.upper = priced.upper.max(value + part.upper);
            let with = |mut content: Vec<(u32, u32)>| {
                if let Some(chosen) = chosen {
                    match content.iter_mut().find(|(class, _)| *class == chosen.class) {
                        Some((_, count)) => *count += 1,
                        None => content.push((chosen.class, 1)),
                    }
                    content.sort_unstable();
                }
                content
            };
            held.extend(
                chosen
                    .filter(|_| !part.found.is_empty() || !part.others.is_empty())
                    .map(|chosen| chosen.class),
            );
            priced.others.extend(part.others.into_iter().map(with));
            // Where no worthwhile pattern fits beside the pod, it may stand alone.
            let alone = (part.found.is_empty() && value > best).then(|| (0, Vec::new()));
            for (worth, content) in alone.into_iter().chain(part.found) {
                let content = with(content);
                if value + worth > best {
                    priced.found.push((value + worth, content));
                }
            }
        }
        priced.upper = priced.upper.min(most);
        priced
    }

    /// Returns the classes that need no pattern of their own: none, unless that stage is disabled.
    fn held(&self, bin: usize) -> BTreeSet<u32> {
        if self.model.stages.has(SearchStage::OtherContents) {
            return BTreeSet::new();
        }
        self.model.bins[bin].classes.iter().copied().collect()
    }

    /// Finds the best pattern of `room`, like [`Self::price`] but without memory.
    fn part(
        &self,
        (room, mut content): (&[u64], Option<Content<'_>>),
        mut items: Vec<Item>,
        threshold: u64,
        effort: Effort,
        (scratch, held, pulse): (&mut Scratch, &mut BTreeSet<u32>, &mut Pulse<'_, '_>),
    ) -> Priced {
        let dims = self.model.dims;
        let classes = &self.model.classes;
        items.retain_mut(|item| {
            let fits = match &content {
                // The search leaves open what is undecided.
                Some(content) => content.fit(item.class).most,
                None => crate::canonical::fit_count(room, &classes[item.class as usize].requests),
            };
            item.most = u64::from(item.most).min(fits) as u32;
            item.most > 0
        });
        let fixed: Vec<u64> = items
            .iter()
            .flat_map(|item| classes[item.class as usize].requests.iter().zip(room))
            .map(|(request, room)| knapsack::share(*request, *room))
            .collect();
        let float: Vec<f64> = fixed.iter().map(|share| *share as f64 / (1u64 << 32) as f64).collect();
        let lp: Vec<LpItem<'_>> = items
            .iter()
            .zip(float.chunks(dims))
            .map(|(item, shares)| LpItem { value: item.value as f64, most: f64::from(item.most), shares })
            .collect();
        let prices: Vec<u64> =
            knapsack_lp::solve(&lp, dims).into_iter().map(|price| price.round() as u64).collect();
        let mut most: u128 = prices.iter().map(|price| u128::from(*price)).sum();
        for (item, shares) in items.iter_mut().zip(fixed.chunks(dims)) {
            let size: u64 =
                shares.iter().zip(&prices).map(|(share, price)| knapsack::of(*share, *price)).sum();
            item.loss = size as i64 - item.value as i64;
            most += u128::from(item.value.saturating_sub(size)) * u128::from(item.most);
        }
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let work = items.len() as u64 / 5 + 1;
        if most <= threshold {
            return Priced { upper: most, work, ..Priced::default() };
        }
        let slack = most - threshold;
        items.retain_mut(|item| {
            if let Some(ceiling) =
                u64::try_from(item.loss).ok().and_then(|loss| (slack - 1).checked_div(loss))
            {
                item.most = u64::from(item.most).min(ceiling) as u32;
            }
            item.most > 0
        });
        let answer = knapsack::solve(
            classes,
            (room, content.as_mut().map(|content| content as &mut dyn Guard)),
            items,
            &prices,
            (threshold, most),
            effort,
            (scratch, held, pulse),
        );
        Priced {
            upper: answer.upper.min(most),
            found: answer.found,
            others: answer.others,
            beside: None,
            work: work + answer.work,
        }
    }

    /// Returns the items that a pattern worth more than `threshold` can have.
    fn core(
        &self,
        bin: usize,
        pi: &[u64],
        demand: &[u64],
        prices: &[u64],
        (most, threshold): (u64, u64),
        pulse: &mut Pulse<'_, '_>,
    ) -> Vec<Item> {
        struct Candidate<'a> {
            item: Item,
            requests: &'a [u64],
            holds: u64,
        }
        let (shares, dims) = (&self.shares[bin], self.model.dims);
        let slack = most - threshold;
        let mut kept: Vec<Candidate<'_>> = Vec::new();
        for (position, class) in self.model.bins[bin].classes.iter().enumerate() {
            let value = self.model.bins[bin].value(position, pi[*class as usize]);
            let holds = shares.holds[position];
            let mut count = holds.min(demand[*class as usize]).min(u64::from(u32::MAX));
            if value == 0 || count == 0 {
                continue;
            }
            let size: u64 = shares.fixed[position * dims..(position + 1) * dims]
                .iter()
                .zip(prices)
                .map(|(share, price)| knapsack::of(*share, *price))
                .sum();
            if value < size {
                // Each such pod lowers the bound by its reduced cost.
                count = count.min((slack - 1) / (size - value));
                if count == 0 {
                    continue;
                }
            }
            kept.push(Candidate {
                item: Item { class: *class, value, most: count as u32, loss: size as i64 - value as i64 },
                requests: &self.model.classes[*class as usize].requests,
                holds,
            });
        }
        // An item is dominated by another that never runs out, takes no more and is worth no less.
        let dominated = |index: usize| {
            let mine = &kept[index];
            kept.iter().enumerate().any(|(other, candidate)| {
                other != index
                    && candidate.item.value >= mine.item.value
                    && u64::from(candidate.item.most) == candidate.holds
                    && candidate.requests.iter().zip(mine.requests).all(|(theirs, mine)| theirs <= mine)
                    && self.model.replaces(candidate.item.class, mine.item.class, &self.model.bins[bin])
                    && (other < index
                        || candidate.item.value > mine.item.value
                        || candidate.requests != mine.requests)
            })
        };
        let asked = self.model.stages.has(SearchStage::ItemDominance);
        let work = kept.len() as u64 / PAIRS_PER_UNIT;
        (0..kept.len())
            .filter(|index| !asked || pulse.tick(work) || !dominated(*index))
            .map(|index| kept[index].item.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests;
