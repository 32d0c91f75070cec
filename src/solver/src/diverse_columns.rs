//! Additional patterns for the bins that hold the bound down.
//!
//! The best patterns of one bin at given prices resemble each other, and the master needs variety. So the prices of the
//! pods in the best pattern are lowered and the bin is priced again. A pattern that is worth more than it costs at
//! lowered prices is also worth more at the true ones.

use std::collections::BTreeSet;

use crate::canonical::Model;
use crate::knapsack::Effort;
use crate::meter::Meter;
use crate::pricing::{NOT_ASKED, Priced, Pricer, QUICK};

/// The number of times that prices are lowered.
const PASSES: usize = 2;
/// Prices are lowered by one part in this many.
const PART: u64 = 25;
/// Bins take part if their excess is at least this fraction of the largest.
const NEAR: f64 = 0.3;
/// The work of the master, relative to that of pricing, above which rounds are expensive and each should add more.
const DEAR: f64 = 0.3;
/// A quick search: one descent along coarse tables.
const GLANCE: Effort = Effort { bits: 8, nodes: QUICK };

/// Adds patterns to those that a round of pricing at `prices` found, if rounds are expensive: the master took `solving`
/// units of work.
pub(crate) fn add(
    pricer: &mut Pricer<'_>,
    (prices, charges): (&[u64], &[u64]),
    demand: &[u64],
    solving: u64,
    all: &mut [Priced],
    meter: &mut Meter<'_>,
) {
    let model: &Model = pricer.model();
    let excess = |bin: usize| -> f64 {
        all[bin].known().map_or(0.0, |value| value as f64 / charges[bin].max(1) as f64 - 1.0)
    };
    let most = (0..all.len()).map(excess).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let chosen: Vec<usize> = (0..all.len()).filter(|bin| excess(*bin) > most * NEAR).collect();
    let pricing: u64 = all.iter().map(|priced| priced.work).sum();
    // A quick search of shared GPUs costs almost nothing compared with a full one.
    let cheap = chosen.iter().any(|bin| model.bins[*bin].sharing.is_some());
    if !cheap && (solving as f64) < DEAR * pricing as f64 {
        return;
    }
    let mut tasks = vec![(NOT_ASKED, GLANCE); all.len()];
    for bin in &chosen {
        tasks[*bin].0 = charges[*bin];
    }
    let best = |priced: &Priced| priced.found.last().map(|(_, pods)| pods.clone());
    let mut last: Vec<Vec<(u32, u32)>> = chosen.iter().filter_map(|bin| best(&all[*bin])).collect();
    let mut lowered = prices.to_vec();
    for _ in 0..PASSES {
        let held: BTreeSet<u32> = last.iter().flatten().map(|(class, _)| *class).collect();
        for class in held {
            lowered[class as usize] -= lowered[class as usize] / PART;
        }
        let more = pricer.price_all(&lowered, demand, &tasks, meter);
        if meter.spend(more.iter().map(|priced| priced.work).sum()) {
            return;
        }
        last = more.iter().filter_map(best).collect();
        for (priced, more) in all.iter_mut().zip(&more) {
            priced.others.extend(best(more));
        }
        if last.is_empty() {
            return;
        }
    }
}
