//! Pricing: for every bin, the content that is worth most at given prices of pods, and a proven bound on that worth.
//!
//! Most bins are settled by a linear bound with resource prices remembered from the round before; the rest are cut down
//! by reduced costs and dominance before [`crate::knapsack`] searches them.

use crate::canonical::Model;
use crate::content::Content;
use crate::gpu::lagrange;
use crate::knapsack::{self, Effort, Item, Scratch};
use crate::meter::Meter;
use crate::multipliers::{self, LpItem};

/// Value units in one micro-dollar: prices of pods are integers in these units.
pub(crate) const UNITS: u64 = 1 << 10;

/// Below so many kinds of small pods the search needs no help.
const SPLIT: usize = 4;

/// What is known of one bin at one vector of prices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Priced {
    /// No content is worth more than this.
    pub upper: u64,
    /// Contents worth more than the threshold, each worth more than the one before.
    pub found: Vec<(u64, Vec<(u32, u32)>)>,
    /// Work units spent.
    pub work: u64,
}

/// Facts of a bin that no price changes.
struct Shares {
    /// How many of each class one empty node holds, in the order of the bin's classes.
    holds: Vec<u64>,
    /// Requests as fixed-point shares of the node, class-major, rounded down.
    fixed: Vec<u64>,
    /// The same as floating point.
    float: Vec<f64>,
    /// The resource prices that served best last time.
    prices: Vec<u64>,
    /// The same where GPUs are shared, beside what fits one GPU.
    beside: Vec<u64>,
}

/// Prices bins; remembers between rounds what made the bounds tight.
pub(crate) struct Pricer<'m> {
    model: &'m Model,
    shares: Vec<Shares>,
    scratch: Scratch,
    /// How hard each bin's search had to be; the caller's memory from one relaxation to the next.
    pub levels: Vec<usize>,
}

impl<'m> Pricer<'m> {
    /// For all bins of `model`.
    pub fn new(model: &'m Model) -> Self {
        let shares = model
            .bins
            .iter()
            .map(|bin| {
                let mut fixed = Vec::with_capacity(bin.classes.len() * model.dims);
                for class in &bin.classes {
                    let requests = &model.classes[*class as usize].requests;
                    fixed.extend(requests.iter().zip(&bin.capacity).map(|(r, c)| knapsack::share(*r, *c)));
                }
                Shares {
                    holds: bin.holds.clone(),
                    float: fixed.iter().map(|share| *share as f64 / (1u64 << 32) as f64).collect(),
                    fixed,
                    prices: vec![0; model.dims],
                    beside: Vec::new(),
                }
            })
            .collect();
        Self { model, shares, scratch: Scratch::default(), levels: vec![0; model.bins.len()] }
    }

    /// The problem it prices for.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// The linear bound of `bin` at resource prices `prices`.
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

    /// Contents of `bin` worth more than `threshold` when a pod of class `k` is worth `pi[k]` and there are `demand[k]`.
    pub fn price(
        &mut self,
        bin: usize,
        pi: &[u64],
        demand: &[u64],
        threshold: u64,
        effort: Effort,
        meter: &mut Meter<'_>,
    ) -> Priced {
        let dims = self.model.dims;
        let classes = &self.model.bins[bin].classes;
        let mut work = classes.len() as u64 / 200;
        let remembered = self.linear(bin, pi, demand, &self.shares[bin].prices);
        if remembered <= threshold {
            return Priced { upper: remembered, work, ..Priced::default() };
        }
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
        work += items.len() as u64 / 10;
        let prices: Vec<u64> =
            multipliers::solve(&items, dims).into_iter().map(|price| price.round() as u64).collect();
        let mut most = self.linear(bin, pi, demand, &prices);
        if most <= remembered {
            self.shares[bin].prices.clone_from(&prices);
        } else {
            most = remembered;
        }
        if most <= threshold {
            return Priced { upper: most, work, ..Priced::default() };
        }
        let prices = self.shares[bin].prices.clone();
        let shared = self.shared(bin, pi, demand, threshold);
        if let Some(shared) = &shared {
            work += 100;
            if shared.upper <= threshold || !shared.found.is_empty() {
                return Priced { upper: shared.upper.min(most), found: shared.found.clone(), work };
            }
        }
        let core = self.core(bin, pi, demand, &prices, most, threshold);
        let most = shared.map_or(most, |shared| shared.upper.min(most));
        let capacity = &self.model.bins[bin].capacity;
        let content = Content::ruled(self.model, bin as u32);
        let (large, small): (Vec<Item>, Vec<Item>) = core.iter().cloned().partition(|item| {
            let requests = &self.model.classes[item.class as usize].requests;
            requests.iter().zip(capacity).any(|(request, room)| *request > room / 2)
        });
        if large.is_empty() || small.len() < SPLIT {
            let answer = knapsack::solve(
                &self.model.classes,
                (capacity, content),
                core,
                &prices,
                (threshold, most),
                effort,
                (&mut self.scratch, meter),
            );
            return Priced { upper: answer.upper.min(most), found: answer.found, work: work + answer.work };
        }
        // A pod that takes more than half of something changes which resource is scarce for the rest: each such pod, and
        // none of them, has resource prices of its own.
        let mut priced = Priced { upper: 0, found: Vec::new(), work };
        for first in (0..=large.len()).rev() {
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
                content.iter_mut().for_each(|content| content.add(chosen.class, 1));
            }
            let value = chosen.map_or(0, |chosen| chosen.value);
            let mut items: Vec<Item> = rest.iter().chain(&small).cloned().collect();
            if let Some(chosen) = chosen.filter(|chosen| chosen.most > 1) {
                items.push(Item { most: chosen.most - 1, ..chosen.clone() });
            }
            let part = self.part((&room, content), items, best.saturating_sub(value), effort, meter);
            priced.work += part.work;
            priced.upper = priced.upper.max(value + part.upper);
            for (worth, mut content) in part.found {
                if let Some(chosen) = chosen {
                    match content.iter_mut().find(|(class, _)| *class == chosen.class) {
                        Some((_, count)) => *count += 1,
                        None => content.push((chosen.class, 1)),
                    }
                    content.sort_unstable();
                }
                if value + worth > best {
                    priced.found.push((value + worth, content));
                }
            }
        }
        priced.upper = priced.upper.min(most);
        priced
    }

    /// For nodes whose GPUs are shared: the bound of [`lagrange`] and a content worth more than `threshold`, if the fillings
    /// that led to it make one.
    fn shared(&mut self, bin: usize, pi: &[u64], demand: &[u64], threshold: u64) -> Option<Priced> {
        let dims = self.model.dims;
        let offer = &self.model.bins[bin];
        let gpus = offer.sharing?;
        let shares = &self.shares[bin];
        let pods: Vec<lagrange::Pod<'_>> = offer
            .classes
            .iter()
            .enumerate()
            .map(|(position, class)| lagrange::Pod {
                class: *class,
                gpu: self.model.classes[*class as usize].gpu,
                value: offer.value(position, pi[*class as usize]),
                most: shares.holds[position].min(demand[*class as usize]),
                shares: &shares.fixed[position * dims..(position + 1) * dims],
            })
            .filter(|pod| pod.value > 0 && pod.most > 0)
            .collect();
        let priced: Vec<bool> = self.model.packed.iter().map(|packed| !packed).collect();
        let start = if shares.beside.is_empty() { &shares.prices } else { &shares.beside };
        let bound = lagrange::bound(&pods, gpus, &priced, start, threshold)?;
        let found = if bound.upper > threshold {
            self.filled(bin, &pods, gpus, &bound).filter(|(value, _)| *value > threshold)
        } else {
            None
        };
        self.shares[bin].beside = bound.prices;
        Some(Priced { upper: bound.upper, found: found.into_iter().collect(), work: 0 })
    }

    /// A content of two of the fillings, as many of each as are worth most together, and of what fits beside.
    fn filled(
        &self,
        bin: usize,
        pods: &[lagrange::Pod<'_>],
        gpus: u64,
        bound: &lagrange::Bound,
    ) -> Option<(u64, Vec<(u32, u32)>)> {
        let classes = &self.model.classes;
        let capacity = &self.model.bins[bin].capacity;
        let sum = |filling: &lagrange::Filling| {
            let mut used = vec![0u64; capacity.len()];
            let mut value = 0u64;
            for (pod, count) in filling {
                for (used, request) in used.iter_mut().zip(&classes[pods[*pod].class as usize].requests) {
                    *used = used.saturating_add(request.saturating_mul(*count));
                }
                value = value.saturating_add(pods[*pod].value.saturating_mul(*count));
            }
            (value, used)
        };
        let empty = Vec::new();
        let fillings: Vec<&lagrange::Filling> = bound.fillings.iter().chain([&empty]).collect();
        let sums: Vec<(u64, Vec<u64>)> = fillings.iter().map(|filling| sum(filling)).collect();
        let mut best = (0, 0, 0, 0);
        for (a, (value, used)) in sums.iter().enumerate() {
            for (b, (other, others)) in sums.iter().enumerate() {
                let fits = |count: u64| {
                    used.iter().zip(others).zip(capacity).all(|((used, others), room)| {
                        let sum = u128::from(*used) * u128::from(count)
                            + u128::from(*others) * u128::from(gpus - count);
                        sum <= u128::from(*room)
                    })
                };
                if let Some(count) = (0..=gpus).rev().find(|count| fits(*count)) {
                    let worth =
                        value.saturating_mul(count).saturating_add(other.saturating_mul(gpus - count));
                    if worth > best.0 {
                        best = (worth, a, b, count);
                    }
                }
            }
        }
        let mut content = Content::empty(self.model, bin as u32);
        let mut left: Vec<u64> = pods.iter().map(|pod| pod.most).collect();
        let mut value = 0u64;
        let mut put = |pod: usize, count: u64| {
            let add = content.more(pods[pod].class).min(left[pod]).min(count).min(u64::from(u32::MAX));
            content.add(pods[pod].class, add as u32);
            left[pod] -= add;
            value = value.saturating_add(pods[pod].value.saturating_mul(add));
        };
        let (_, a, b, count) = best;
        for (filling, times) in [(fillings[a], count), (fillings[b], gpus - count)] {
            filling.iter().for_each(|(pod, each)| put(*pod, each * times));
        }
        let mut order: Vec<(f64, usize)> = pods
            .iter()
            .enumerate()
            .map(|(at, pod)| {
                let cost: u64 = pod
                    .shares
                    .iter()
                    .zip(&bound.prices)
                    .map(|(share, price)| knapsack::of(*share, *price))
                    .sum();
                (pod.value as f64 / cost.max(1) as f64, at)
            })
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        order.into_iter().for_each(|(_, pod)| put(pod, u64::MAX));
        Some((value, content.into_pods()))
    }

    /// The best content of `room`, as [`Self::price`] but without memory.
    fn part(
        &mut self,
        (room, content): (&[u64], Option<Content<'_>>),
        mut items: Vec<Item>,
        threshold: u64,
        effort: Effort,
        meter: &mut Meter<'_>,
    ) -> Priced {
        let dims = self.model.dims;
        let classes = &self.model.classes;
        items.retain_mut(|item| {
            let fits = match &content {
                Some(content) => content.more(item.class),
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
            multipliers::solve(&lp, dims).into_iter().map(|price| price.round() as u64).collect();
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
            (room, content),
            items,
            &prices,
            (threshold, most),
            effort,
            (&mut self.scratch, meter),
        );
        Priced { upper: answer.upper.min(most), found: answer.found, work: work + answer.work }
    }

    /// The items that a content worth more than `threshold` can have.
    fn core(
        &self,
        bin: usize,
        pi: &[u64],
        demand: &[u64],
        prices: &[u64],
        most: u64,
        threshold: u64,
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
                // Each such pod lowers the bound by what it lacks.
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
        // An item is not needed where another, of which there are always enough, takes no more and is worth no less.
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
        (0..kept.len()).filter(|index| !dominated(*index)).map(|index| kept[index].item.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{candidate, class, problem};

    /// The most valuable content, by trying all.
    fn brute(model: &Model, pi: &[u64], demand: &[u64], room: &mut [u64], at: usize) -> u64 {
        let Some(class) = model.classes.get(at) else { return 0 };
        let mut best = brute(model, pi, demand, room, at + 1);
        let mut taken = 0;
        while taken < demand[at]
            && class.requests.iter().zip(room.iter()).all(|(request, room)| request <= room)
        {
            room.iter_mut().zip(&class.requests).for_each(|(room, request)| *room -= request);
            taken += 1;
            best = best.max(pi[at] * taken + brute(model, pi, demand, room, at + 1));
        }
        room.iter_mut().zip(&class.requests).for_each(|(room, request)| *room += request * taken);
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_a_node_can_be_worth_is_never_below_the_best_content(
            capacity in [20..60u64, 20..60u64, 2..8u64],
            kinds in proptest::collection::vec(([1..30u64, 1..30u64, 0..5u64], 1..3u32, 1..1_000_000u64), 5..9),
            part in 0..12u64,
            nodes in prop_oneof![Just(2), Just(1_000_000)],
        ) {
            let classes = kinds.iter().map(|(requests, count, _)| class("class", *requests, *count, &[0])).collect();
            let model = Model::new(&problem(classes, vec![candidate("node", 10, capacity)]));
            prop_assume!(!model.classes.is_empty());
            let pi: Vec<u64> = model.classes.iter().map(|class| kinds[class.members[0].0 as usize].2).collect();
            let demand = model.demand();
            let best = brute(&model, &pi, &demand, &mut model.bins[0].capacity.clone(), 0);
            let threshold = best * part / 10;
            let mut watch = crate::NeverStop;
            let mut meter = Meter::new(&mut watch, 1);
            let priced =
                Pricer::new(&model).price(0, &pi, &demand, threshold, Effort { bits: 6, nodes }, &mut meter);
            prop_assert!(priced.upper >= best || priced.upper <= threshold && best <= threshold);
            prop_assert!(threshold < best || priced.found.is_empty());
            if nodes > 2 && threshold < best {
                prop_assert_eq!(priced.upper, best);
                prop_assert_eq!(priced.found.last().map(|(value, _)| *value), Some(best));
            }
            for (value, content) in &priced.found {
                prop_assert_eq!(*value, content.iter().map(|(class, count)| pi[*class as usize] * u64::from(*count)).sum::<u64>());
                for (dim, room) in model.bins[0].capacity.iter().enumerate() {
                    let used: u64 =
                        content.iter().map(|(class, count)| model.classes[*class as usize].requests[dim] * u64::from(*count)).sum();
                    prop_assert!(used <= *room);
                }
                prop_assert!(content.iter().all(|(class, count)| u64::from(*count) <= demand[*class as usize]));
            }
        }
    }
}
