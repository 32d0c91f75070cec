//! A Lagrangian bound on the worth of a node with equal shared GPUs. The node's other resources get prices, and a dynamic
//! program solves one GPU exactly.
//!
//! For any prices `λ` of the other resources, a pattern is worth at most `Σ λ`, plus the worth of pods without a GPU
//! beyond their share of `λ`, plus, for each GPU, the best filling by units. Sums over the node cannot see that free
//! parts of two GPUs do not add up for one pod. This bound can. It is computed in integers. Floating point only steers
//! the prices.

use crate::knapsack;
use crate::knapsack_lp::{self, LpItem};
use crate::problem::{GPU_UNITS, GpuRequest};

/// The number of subgradient rounds, and of rounds of the linear program over the fillings that they found.
const ROUNDS: usize = 12;
const EXACT_ROUNDS: usize = 16;
/// The most cells of the table of one GPU.
const MOST_CELLS: usize = 1 << 17;

/// One class on the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pod<'a> {
    pub class: u32,
    pub gpu: Option<GpuRequest>,
    pub value: u64,
    /// The most such pods on the node.
    pub most: u64,
    /// Its shares of the node, by dimension, in fixed point, rounded down.
    pub shares: &'a [u64],
}

/// The pods on one GPU: positions, ascending, with counts.
pub(crate) type Filling = Vec<(usize, u64)>;

/// The bound, with its prices and fillings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bound {
    /// The upper bound: no pattern is worth more.
    pub upper: u64,
    /// The resource prices.
    pub prices: Vec<u64>,
    /// The most that one GPU gains at these prices.
    pub each: u64,
    /// Fillings of one GPU that were best at some prices.
    pub fillings: Vec<Filling>,
}

/// One evaluation of the Lagrangian.
struct Value {
    upper: u64,
    each: u64,
    filling: Filling,
    /// The use of each dimension, as a fraction of the node.
    used: Vec<f64>,
}

/// One pod that one GPU may hold.
#[derive(Clone, Copy)]
struct Copy {
    units: usize,
    gain: u64,
    pod: usize,
}

fn share(fixed: u64) -> f64 {
    fixed as f64 / (1u64 << 32) as f64
}

/// Evaluates the Lagrangian at `prices`; `priced` marks the dimensions that have prices.
fn evaluate(pods: &[Pod<'_>], gpus: u64, priced: &[bool], prices: &[u64], unit: usize) -> Option<Value> {
    let mut upper: u64 = prices.iter().fold(0, |sum, price| sum.saturating_add(*price));
    let mut used = vec![0.0; prices.len()];
    let mut add = |pod: &Pod<'_>, count: f64| {
        for (used, fixed) in used.iter_mut().zip(pod.shares) {
            *used += share(*fixed) * count;
        }
    };
    // Gains by units. A pod with several whole GPUs spreads its gain over them.
    let mut gains: Vec<Copy> = Vec::new();
    let mut whole: (u64, Option<usize>, u64) = (0, None, 1);
    for (at, pod) in pods.iter().enumerate() {
        let cost: u64 = pod
            .shares
            .iter()
            .zip(prices)
            .zip(priced)
            .filter(|(_, priced)| **priced)
            .map(|((share, price), _)| knapsack::of(*share, *price))
            .sum();
        let Some(gain) = pod.value.checked_sub(cost).filter(|gain| *gain > 0 && pod.most > 0) else {
            continue;
        };
        match pod.gpu {
            None => {
                upper = upper.saturating_add(gain.saturating_mul(pod.most));
                add(pod, pod.most as f64);
            }
            Some(GpuRequest::Whole(count)) => {
                let each = gain.div_ceil(u64::from(count.max(1)));
                if each > whole.0 {
                    whole = (each, Some(at), u64::from(count.max(1)));
                }
            }
            Some(GpuRequest::Share { units, .. }) => {
                gains.push(Copy { units: units as usize / unit, gain, pod: at });
            }
            Some(GpuRequest::Mig { .. }) => {}
        }
    }
    let cells = GPU_UNITS as usize / unit;
    gains.sort_by_key(|copy| (copy.units, std::cmp::Reverse(copy.gain), copy.pod));
    let mut copies: Vec<Copy> = Vec::new();
    let mut here = (0, 0);
    for copy in gains {
        if here.0 != copy.units {
            here = (copy.units, 0);
        }
        // The best pods of one size fill the GPU before the others of this size.
        let most =
            (cells / copy.units - here.1).min(usize::try_from(pods[copy.pod].most).unwrap_or(usize::MAX));
        here.1 += most;
        copies.extend(std::iter::repeat_n(copy, most));
    }
    if copies.len() * (cells + 1) > MOST_CELLS {
        return None;
    }
    let mut best = vec![0u64; cells + 1];
    let mut taken = vec![false; copies.len() * (cells + 1)];
    for (row, copy) in copies.iter().enumerate() {
        for cell in (copy.units..=cells).rev() {
            let with = best[cell - copy.units].saturating_add(copy.gain);
            if with > best[cell] {
                best[cell] = with;
                taken[row * (cells + 1) + cell] = true;
            }
        }
    }
    let mut filling: Filling = Vec::new();
    if let (true, Some(pod)) = (whole.0 > best[cells], whole.1) {
        add(&pods[pod], gpus as f64 / whole.2 as f64);
        filling.push((pod, 1));
    } else {
        let mut cell = cells;
        for (row, copy) in copies.iter().enumerate().rev() {
            if taken[row * (cells + 1) + cell] {
                cell -= copy.units;
                add(&pods[copy.pod], gpus as f64);
                match filling.iter_mut().find(|(pod, _)| *pod == copy.pod) {
                    Some((_, count)) => *count += 1,
                    None => filling.push((copy.pod, 1)),
                }
            }
        }
        filling.sort_unstable();
    }
    let each = whole.0.max(best[cells]);
    upper = upper.saturating_add(each.saturating_mul(gpus));
    Some(Value { upper, each, filling, used })
}

/// Lowers the bound by better prices, from `start` on, until it is no more than `threshold` or no longer falls. Returns
/// `None` where the shares are too fine for the table.
pub(crate) fn bound(
    pods: &[Pod<'_>],
    gpus: u64,
    priced: &[bool],
    start: &[u64],
    threshold: u64,
) -> Option<Bound> {
    let unit = pods.iter().fold(u64::from(GPU_UNITS), |unit, pod| match pod.gpu {
        Some(GpuRequest::Share { units, .. }) => gcd(unit, units.into()),
        _ => unit,
    }) as usize;
    let mut prices: Vec<u64> =
        start.iter().zip(priced).map(|(price, priced)| if *priced { *price } else { 0 }).collect();
    let mut bound = Bound { upper: u64::MAX, ..Bound::default() };
    let mut stride = 1.0;
    for _ in 0..ROUNDS {
        let value = evaluate(pods, gpus, priced, &prices, unit)?;
        if !bound.fillings.contains(&value.filling) {
            bound.fillings.push(value.filling);
        }
        if value.upper < bound.upper {
            (bound.upper, bound.each) = (value.upper, value.each);
            bound.prices.clone_from(&prices);
        } else {
            stride *= 0.7;
        }
        if bound.upper <= threshold {
            break;
        }
        // Step towards the threshold, along the over- and underused resources.
        let slope: Vec<f64> = value
            .used
            .iter()
            .zip(priced)
            .zip(&prices)
            .map(
                |((used, priced), price)| {
                    if *priced && (*used > 1.0 || *price > 0) { used - 1.0 } else { 0.0 }
                },
            )
            .collect();
        let norm: f64 = slope.iter().map(|slope| slope * slope).sum();
        if norm < 1e-9 {
            break;
        }
        let step = stride * (value.upper - threshold.min(value.upper)) as f64 / norm;
        for (price, slope) in prices.iter_mut().zip(&slope) {
            *price = (*price as f64 + step * slope).clamp(0.0, 1e17) as u64;
        }
    }
    settle(pods, gpus, priced, threshold, unit, &mut bound)?;
    Some(bound)
}

/// Lowers the bound until the known fillings prove that it falls no further. Their linear program gives the next prices,
/// and these give the next filling.
fn settle(
    pods: &[Pod<'_>],
    gpus: u64,
    priced: &[bool],
    threshold: u64,
    unit: usize,
    bound: &mut Bound,
) -> Option<()> {
    let dims = priced.len() + 1;
    let row = |shares: &[u64], count: f64, slots: f64| -> Vec<f64> {
        let own = shares
            .iter()
            .zip(priced)
            .map(|(fixed, priced)| if *priced { share(*fixed) * count } else { 0.0 });
        own.chain([slots]).collect()
    };
    for _ in 0..EXACT_ROUNDS {
        if bound.upper <= threshold {
            return Some(());
        }
        let mut parts: Vec<(f64, f64, Vec<f64>)> = Vec::new();
        for pod in pods.iter().filter(|pod| pod.gpu.is_none()) {
            parts.push((pod.value as f64, pod.most as f64, row(pod.shares, 1.0, 0.0)));
        }
        for filling in bound.fillings.iter().filter(|_| gpus > 0) {
            let (mut value, mut sum) = (0.0, vec![0.0; dims]);
            for (pod, count) in filling {
                let pod = &pods[*pod];
                // A pod with several GPUs counts only its part on one.
                let part = match pod.gpu {
                    Some(GpuRequest::Whole(whole)) => 1.0 / f64::from(whole.max(1)),
                    _ => *count as f64,
                };
                value += pod.value as f64 * part;
                for (sum, more) in sum.iter_mut().zip(row(pod.shares, part, 0.0)) {
                    *sum += more;
                }
            }
            sum[dims - 1] = 1.0 / gpus as f64;
            parts.push((value, gpus as f64, sum));
        }
        let items: Vec<LpItem<'_>> =
            parts.iter().map(|(value, most, shares)| LpItem { value: *value, most: *most, shares }).collect();
        let mut prices: Vec<u64> =
            knapsack_lp::solve(&items, dims).into_iter().map(|price| price.clamp(0.0, 1e17) as u64).collect();
        prices.pop();
        let value = evaluate(pods, gpus, priced, &prices, unit)?;
        if value.upper < bound.upper {
            (bound.upper, bound.each) = (value.upper, value.each);
            bound.prices = prices;
        }
        if bound.fillings.contains(&value.filling) {
            return Some(());
        }
        bound.fillings.push(value.filling);
    }
    Some(())
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gpu::Room;
    use crate::problem::{GpuMode, Gpus};

    /// Returns the worth of the best pattern, by trying all.
    fn brute(
        room: &Room,
        pods: &[Pod<'_>],
        content: &mut Vec<(GpuRequest, u64)>,
        left: &mut Vec<u64>,
        at: usize,
    ) -> u64 {
        let Some(pod) = pods.get(at) else { return 0 };
        let (mut best, mut count) = (0, 0);
        let (before, whole) = (left.clone(), content.len());
        loop {
            best = best.max(pod.value * count + brute(room, pods, content, left, at + 1));
            count += 1;
            let fits = left.iter().zip(pod.shares).all(|(left, share)| left >= share);
            if count > pod.most || !fits {
                break;
            }
            left.iter_mut().zip(pod.shares).for_each(|(left, share)| *left -= share);
            content.truncate(whole);
            content.extend(pod.gpu.map(|request| (request, count)));
            if !room.holds(content) {
                break;
            }
        }
        content.truncate(whole);
        *left = before;
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_content_is_worth_more_than_the_bound(
            gpus in 1..4u32,
            kinds in proptest::collection::vec((0..11u32, 1..40u64, 1..40u64, 0..1_000_000u64, 0..4u64), 1..5),
            start in 0..3_000_000u64,
            threshold in 0..2_000_000u64,
        ) {
            let shares: Vec<Vec<u64>> = kinds
                .iter()
                .map(|(_, cpu, memory, _, _)| vec![(cpu << 32) / 100, (memory << 32) / 100])
                .collect();
            let pods: Vec<Pod<'_>> = kinds
                .iter()
                .zip(&shares)
                .enumerate()
                .map(|(class, ((units, _, _, value, most), shares))| Pod {
                    class: class as u32,
                    gpu: match units {
                        0 => None,
                        10 => Some(GpuRequest::Whole(1 + gpus / 2)),
                        units => Some(GpuRequest::Share { units: units.min(&9) * 100, memory_mib: 0 }),
                    },
                    value: *value,
                    most: *most,
                    shares,
                })
                .collect();
            let room = Room::of_new(&Gpus { count: gpus, memory_mib: 0, mode: GpuMode::Shared });
            let best = brute(&room, &pods, &mut Vec::new(), &mut vec![1 << 32, 1 << 32], 0);
            let bound = bound(&pods, gpus.into(), &[true, true], &[start, start / 2], threshold);
            prop_assert!(bound.is_some_and(|bound| bound.upper >= best));
        }
    }

    #[test]
    fn holes_on_several_gpus_are_not_one_hole() {
        let share = |units| Some(GpuRequest::Share { units, memory_mib: 0 });
        let shares = [1 << 28];
        let pod = |gpu, value| Pod { class: 0, gpu, value, most: 100, shares: &shares };
        let pods = [pod(share(810), 1000), pod(share(320), 10)];
        let bound = bound(&pods, 4, &[true], &[0], 4000);
        assert_eq!(bound.map(|bound| bound.upper), Some(4000));
    }
}
