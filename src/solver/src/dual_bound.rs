//! The certified lower bound, in integers only, so that it does not rest on the LP's tolerances.
//!
//! Take any non-negative prices `pi` of pods, `nu` of scarce nodes and `mu` of limits. Suppose that no content of any
//! bin is worth more than the bin's price, plus its `nu`, plus what it takes of the limits at `mu`. Then every plan
//! for demand `d` costs at least `pi.d - nu.N - mu.L`, where `N` is the stock of nodes and `L` is what the limits
//! allow. An existing bin pays the worth of its best content as `nu`. A pod is worth its price less its penalty in
//! that bin, and at least zero.
//!
//! Where prices are too high for some bin, they are lowered for the classes that this bin admits and for no others
//! (Farley's bound, class by class).

use crate::canonical::{Model, UNLIMITED};
use crate::solution::Proof;
use crate::units::UNITS;

/// Fixed-point one of the limits' prices.
pub(crate) const LIMIT_ONE: u32 = 32;

/// Integer prices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices {
    /// By class, in value units.
    pub pods: Vec<u64>,
    /// By bin, in value units.
    pub bins: Vec<u64>,
    /// By limit, value units per unit of the limit in fixed point.
    pub limits: Vec<u128>,
}

impl Prices {
    /// Rounds prices in micro-dollars down to integers. Where nodes make room in a row for others, the row's price is
    /// lowered until no such node is worth more to the rows than it costs.
    pub fn new(model: &Model, pods: &[f64], bins: &[f64], limits: &[f64]) -> Self {
        // `as` saturates: neither NaN nor infinity can come through.
        let units = |price: &f64| (price.max(0.0) * UNITS as f64).min(1e17) as u64;
        let fixed =
            |price: &f64| (price.max(0.0) * UNITS as f64 * (1u64 << LIMIT_ONE) as f64).min(1e27) as u128;
        let mut made = Self {
            pods: pods.iter().map(units).collect(),
            bins: bins.iter().map(units).collect(),
            limits: limits.iter().map(fixed).collect(),
        };
        for _ in 0..4 {
            let mut lowered = false;
            for (index, bin) in model.bins.iter().enumerate() {
                if made.sum(model, index) >= 0 {
                    continue;
                }
                for (row, _) in bin.limit_use.iter().filter(|(_, amount)| *amount < 0) {
                    made.limits[*row as usize] /= 2;
                    lowered = true;
                }
            }
            if !lowered {
                return made;
            }
        }
        // Without prices for such rows nothing is below zero.
        for bin in &model.bins {
            for (row, _) in bin.limit_use.iter().filter(|(_, amount)| *amount < 0) {
                made.limits[*row as usize] = 0;
            }
        }
        made
    }

    /// Price, scarcity and rows, rounded down.
    fn sum(&self, model: &Model, bin: usize) -> i128 {
        let rows = model.bins[bin]
            .limit_use
            .iter()
            .map(|(row, amount)| {
                let price = i128::try_from(self.limits[*row as usize]).unwrap_or(i128::MAX);
                // The shift rounds down below zero too.
                price.saturating_mul(*amount) >> LIMIT_ONE
            })
            .fold(0, i128::saturating_add);
        let own = u128::from(model.bins[bin].price) * u128::from(UNITS) + u128::from(self.bins[bin]);
        rows.saturating_add(i128::try_from(own).unwrap_or(i128::MAX))
    }

    /// What a node of `bin` must be worth to pay: price, scarcity and limits, in value units.
    pub fn charge(&self, model: &Model, bin: usize) -> u64 {
        let sum = self.sum(model, bin).max(0);
        u64::try_from(sum).unwrap_or(u64::MAX)
    }
}

/// What no content of a bin is worth more than, at the prices of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ceiling {
    /// In value units.
    pub upper: u64,
    /// Whether a harder search could not lower the bound's loss here: a content is known that is worth as much, or it is
    /// no more than what a node must be worth to pay.
    pub settled: bool,
}

impl Ceiling {
    /// Of a bin with this charge, when the best content known is worth `known`. A search that was cut short, or that ended
    /// at a tolerance, leaves a ceiling above both: nothing else is believed about how the search went.
    pub fn new(upper: u64, charge: u64, known: Option<u64>) -> Self {
        Self { upper, settled: upper <= charge || known == Some(upper) }
    }
}

/// Prices of pods that no bin contradicts, and what scarcity takes off again.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pods: Vec<u64>,
    paid: i128,
    /// The prices it was made of.
    given: Prices,
    /// By bin, at those prices.
    ceilings: Vec<Ceiling>,
}

impl Certificate {
    /// From prices and, for every bin, a proven upper bound on the worth of a content at those prices.
    pub fn new(model: &Model, prices: &Prices, ceilings: &[Ceiling]) -> Self {
        let mut pods: Vec<Option<u64>> = vec![None; model.classes.len()];
        let mut paid: i128 = 0;
        let scarce = model.bins.iter().any(crate::canonical::Bin::is_existing);
        for (index, bin) in model.bins.iter().enumerate() {
            if bin.is_existing() {
                paid += i128::from(ceilings[index].upper) * i128::from(bin.available);
                continue;
            }
            if bin.available != UNLIMITED {
                paid += i128::from(prices.bins[index]) * i128::from(bin.available);
            }
            let charge = u128::from(prices.charge(model, index));
            let upper = u128::from(ceilings[index].upper);
            for (position, class) in bin.classes.iter().enumerate() {
                let price = prices.pods[*class as usize];
                let value = bin.value(position, price);
                // What the pod is worth here is scaled, the penalty is paid in any case. A pod that is worth no more than
                // its penalty adds nothing here at any price up to it.
                let scaled = (u128::from(value) * charge)
                    .checked_div(upper)
                    .map_or(value, |lowered| u64::try_from(lowered).unwrap_or(u64::MAX));
                let lowered = if value == 0 { price } else { scaled.saturating_add(price - value) };
                // Raising prices would raise what existing bins are worth, which is known at `prices` only.
                let lowered = if scarce { lowered.min(price) } else { lowered };
                let slot = &mut pods[*class as usize];
                *slot = Some(slot.map_or(lowered, |known| known.min(lowered)));
            }
        }
        for (limit, price) in prices.limits.iter().enumerate() {
            let price = i128::try_from(*price).unwrap_or(i128::MAX);
            let whole = price.saturating_mul(model.limits[limit]);
            paid = paid.saturating_add((whole >> LIMIT_ONE) + 1);
        }
        let pods = pods.iter().zip(&prices.pods).map(|(slot, price)| slot.unwrap_or(*price)).collect();
        Self { pods, paid, given: prices.clone(), ceilings: ceilings.to_vec() }
    }

    /// The prices of scarce bins, in value units.
    pub fn scarce(&self) -> &[u64] {
        &self.given.bins
    }

    /// The prices of rows, value units per unit of the row in fixed point, see [`LIMIT_ONE`].
    pub fn rows(&self) -> &[u128] {
        &self.given.limits
    }

    /// The prices it was made of.
    pub fn given(&self) -> &Prices {
        &self.given
    }

    /// By bin, at [`Self::given`].
    pub fn ceilings(&self) -> &[Ceiling] {
        &self.ceilings
    }

    /// Whether the pricing behind it is complete: no harder search makes these prices prove more.
    pub fn is_complete(&self) -> bool {
        self.ceilings.iter().all(|ceiling| ceiling.settled)
    }

    /// What a bound by it rests on.
    pub fn proof(&self) -> Proof {
        if self.is_complete() { Proof::Complete } else { Proof::Truncated }
    }

    /// The price of a class, in value units.
    pub fn price(&self, class: usize) -> u64 {
        self.pods[class]
    }

    /// What scarcity takes off, in value units.
    pub fn paid(&self) -> i128 {
        self.paid
    }

    /// The same for `totals` by owner, however choices are made.
    pub fn open_bound(&self, model: &Model, totals: &[u64]) -> u64 {
        let mut demand = totals.to_vec();
        for choice in model.choices.iter().filter(|choice| choice.is_open()) {
            for class in choice.cells() {
                demand[class as usize] = 0;
            }
            // The division that is cheapest at these prices; the plan in question shows that there is one.
            if let Some((_, split)) = choice.cheapest(totals, &self.pods, None) {
                for (class, count) in split {
                    demand[class as usize] = count;
                }
            }
        }
        self.bound(model, &demand)
    }

    /// No plan that places at least `demand` costs less than this many micro-dollars.
    ///
    /// `demand` may be less than what the contents were bounded with, never more.
    pub fn bound(&self, model: &Model, demand: &[u64]) -> u64 {
        let worth: i128 =
            self.pods.iter().zip(demand).map(|(price, count)| i128::from(*price) * i128::from(*count)).sum();
        let units = u128::try_from(worth.saturating_sub(self.paid)).unwrap_or(0);
        let micros = u64::try_from(units.div_ceil(u128::from(UNITS))).unwrap_or(u64::MAX);
        match model.step() {
            0 => 0,
            step => micros.div_ceil(step).saturating_mul(step),
        }
    }
}
