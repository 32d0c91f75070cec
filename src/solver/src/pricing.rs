//! Pricing: for every bin, the content that is worth most at given prices of pods, and a proven bound on that worth.
//!
//! Most bins are settled by a linear bound with resource prices remembered from the round before; the rest are cut down
//! by reduced costs and dominance before [`crate::knapsack`] searches them.

use crate::canonical::Model;
use crate::knapsack::{self, Effort, Item};
use crate::multipliers::{self, LpItem};

/// Value units in one micro-dollar: prices of pods are integers in these units.
pub(crate) const UNITS: u64 = 1 << 10;

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
}

/// Prices bins; remembers between rounds what made the bounds tight.
pub(crate) struct Pricer<'m> {
    model: &'m Model,
    shares: Vec<Shares>,
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
                    holds: bin
                        .classes
                        .iter()
                        .map(|class| bin.holds(&model.classes[*class as usize]))
                        .collect(),
                    float: fixed.iter().map(|share| *share as f64 / (1u64 << 32) as f64).collect(),
                    fixed,
                    prices: vec![0; model.dims],
                }
            })
            .collect();
        Self { model, shares }
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
            let value = pi[*class as usize];
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
            .filter(|(_, class)| pi[**class as usize] > 0)
            .map(|(position, class)| LpItem {
                value: pi[*class as usize] as f64,
                most: self.shares[bin].holds[position].min(demand[*class as usize]) as f64,
                shares: &self.shares[bin].float[position * dims..(position + 1) * dims],
            })
            .filter(|item| item.most > 0.0)
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
        let core = self.core(bin, pi, demand, &prices, most, threshold);
        let answer = knapsack::solve(
            &self.model.classes,
            &self.model.bins[bin].capacity,
            core,
            &prices,
            most,
            threshold,
            effort,
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
            let value = pi[*class as usize];
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
                    && self.model.classes[candidate.item.class as usize].per_node == u32::MAX
                    && (other < index
                        || candidate.item.value > mine.item.value
                        || candidate.requests != mine.requests)
            })
        };
        (0..kept.len()).filter(|index| !dominated(*index)).map(|index| kept[index].item.clone()).collect()
    }
}
