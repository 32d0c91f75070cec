//! The certified lower bound, in integers only, so that it does not rest on the LP's tolerances.
//!
//! Take any non-negative prices `pi` of pods, `nu` of scarce nodes and `mu` of limits. Suppose that no pattern of any bin
//! is worth more than the bin's price, plus its `nu`, plus its use of the limits at `mu`. Then every plan for demand `d`
//! costs at least `pi.d - nu.N - mu.L`, where `N` is the stock of nodes and `L` are the limits. The `nu` of an existing
//! bin is the worth of its best pattern. A pod is worth its price minus its penalty in that bin, and at least zero.
//!
//! Where prices are too high for some bin, only the prices of the classes that this bin admits are lowered (Farley's
//! bound, class by class).

use crate::canonical::{Model, UNLIMITED};
use crate::solution::Proof;
use crate::units::UNITS;

/// The fixed-point bits of the limits' prices.
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
    /// lowered until no such node gives the rows more than it costs.
    pub fn new(model: &Model, pods: &[f64], bins: &[f64], limits: &[f64]) -> Self {
        // `as` saturates, so NaN and infinity cannot pass.
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
        // Without prices on such rows, no charge is negative.
        for bin in &model.bins {
            for (row, _) in bin.limit_use.iter().filter(|(_, amount)| *amount < 0) {
                made.limits[*row as usize] = 0;
            }
        }
        made
    }

    /// Returns price, scarcity and rows of a node, rounded down.
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

    /// Returns the charge of a node of `bin`: price, scarcity and limits, in value units. A node pays if its pods are
    /// worth more.
    pub fn charge(&self, model: &Model, bin: usize) -> u64 {
        let sum = self.sum(model, bin).max(0);
        u64::try_from(sum).unwrap_or(u64::MAX)
    }
}

/// The upper bound on the worth of any pattern of a bin, at the prices of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ceiling {
    /// The bound, in value units.
    pub upper: u64,
    /// Whether a harder search cannot improve the lower bound here: a known pattern is worth as much, or the bound is no
    /// more than the charge.
    pub settled: bool,
}

impl Ceiling {
    /// Creates the bound of a bin with this charge, when the best known pattern is worth `known`. A search that was cut
    /// short, or that ended at a tolerance, leaves a bound above both, so this is all that has to be known of the search.
    pub fn new(upper: u64, charge: u64, known: Option<u64>) -> Self {
        Self { upper, settled: upper <= charge || known == Some(upper) }
    }
}

/// Pod prices that no bin contradicts, and the deduction for scarcity.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pods: Vec<u64>,
    paid: i128,
    /// The prices it was made from.
    given: Prices,
    /// By bin, at those prices.
    ceilings: Vec<Ceiling>,
}

impl Certificate {
    /// Creates a certificate from prices and, for every bin, a proven upper bound on the worth of a pattern at those
    /// prices.
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
                // The value of the pod here is scaled; the penalty is added in full. A pod that is worth no more than its
                // penalty adds nothing here at any price up to it.
                let scaled = (u128::from(value) * charge)
                    .checked_div(upper)
                    .map_or(value, |lowered| u64::try_from(lowered).unwrap_or(u64::MAX));
                let lowered = if value == 0 { price } else { scaled.saturating_add(price - value) };
                // Raising prices would raise the worth of existing bins, which is known only at `prices`.
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

    /// Returns the prices of scarce bins, in value units.
    pub fn scarce(&self) -> &[u64] {
        &self.given.bins
    }

    /// Returns the prices of rows, in value units per unit of the row in fixed point, see [`LIMIT_ONE`].
    pub fn rows(&self) -> &[u128] {
        &self.given.limits
    }

    /// Returns the prices it was made from.
    pub fn given(&self) -> &Prices {
        &self.given
    }

    /// Returns the upper bounds by bin, at [`Self::given`].
    pub fn ceilings(&self) -> &[Ceiling] {
        &self.ceilings
    }

    /// Returns whether the pricing behind it is complete, so that no harder search improves the bound at these prices.
    pub fn is_complete(&self) -> bool {
        self.ceilings.iter().all(|ceiling| ceiling.settled)
    }

    /// Returns the proof of a bound by it.
    pub fn proof(&self) -> Proof {
        if self.is_complete() { Proof::Complete } else { Proof::Truncated }
    }

    /// Returns the price of a class, in value units.
    pub fn price(&self, class: usize) -> u64 {
        self.pods[class]
    }

    /// Returns the prices of all classes in micro-dollars, rounded: for heuristics.
    pub fn rough(&self) -> Vec<f64> {
        self.pods.iter().map(|price| *price as f64 / UNITS as f64).collect()
    }

    /// Returns the prices of scarce bins and of rows in micro-dollars, rounded: for heuristics.
    pub fn rough_scarcity(&self) -> (Vec<f64>, Vec<f64>) {
        let whole = UNITS as f64 * (1u64 << LIMIT_ONE) as f64;
        let bins = self.given.bins.iter().map(|price| *price as f64 / UNITS as f64).collect();
        (bins, self.given.limits.iter().map(|price| *price as f64 / whole).collect())
    }

    /// Returns the deduction for scarcity, in value units.
    pub fn paid(&self) -> i128 {
        self.paid
    }

    /// Returns a bound for `totals` by owner, for any division of choices, like [`Self::bound`].
    pub fn open_bound(&self, model: &Model, totals: &[u64]) -> u64 {
        let mut demand = totals.to_vec();
        for choice in model.choices.iter().filter(|choice| choice.is_open()) {
            for class in choice.cells() {
                demand[class as usize] = 0;
            }
            // The cheapest division at these prices. One exists, since the plan has one.
            if let Some((_, split)) = choice.cheapest(totals, &self.pods, None) {
                for (class, count) in split {
                    demand[class as usize] = count;
                }
            }
        }
        self.bound(model, &demand)
    }

    /// Returns a lower bound in micro-dollars on the cost of every plan that places at least `demand`.
    ///
    /// `demand` may be less than the demand that pricing used, never more.
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
