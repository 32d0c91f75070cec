//! The best pattern of a node with equal shared GPUs, from the fillings of single GPUs.
//!
//! The search has two levels. At the prices of [`super::lagrange`] every filling of one GPU has a gain. In a pattern
//! worth more than the threshold, no GPU has a filling that gains much less than the best one. The few fillings that
//! remain are the items of a knapsack with one slot for each GPU, beside pods that request whole GPUs or none.

use std::collections::BTreeSet;

use super::lagrange::{self, Filling, Pod};
use crate::canonical::{Class, fit_count};
use crate::gpu::Fit;
use crate::knapsack::{self, Answer, Effort, Guard, Item, Scratch};
use crate::meter::Pulse;
use crate::problem::{GPU_UNITS, GpuRequest};

/// The maximum number of fillings that a search of several GPUs starts from.
const MOST_FILLINGS: usize = 4_000;
/// The same for a single GPU.
const MOST_HEADS: usize = 20_000;
/// The highest worth of a node, in value units, that a search accepts: millions of dollars an hour.
const LARGEST: u64 = 1 << 52;
/// The steps of the enumeration in one unit of work.
const STEPS_PER_UNIT: u64 = 32;

/// A node's equal GPUs, all unused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Equal {
    /// The number of GPUs.
    pub gpus: u64,
    /// The memory of one in MiB.
    pub memory: u64,
}

/// An item of the knapsack: a filling of one GPU, or a pod with whole GPUs or none.
#[derive(Clone, Debug)]
struct Part {
    /// Pods by position, with counts.
    pods: Filling,
    /// The number of GPUs it takes.
    slots: u64,
    value: u64,
    /// The worth of the resources it takes, minus its value.
    loss: i64,
    requests: Vec<u64>,
}

/// An enumeration of all fillings of one GPU that gain at least `least`.
struct Enumeration<'a> {
    pods: &'a [Pod<'a>],
    /// The pods that take shares: position, gain, units and memory.
    order: Vec<(usize, i64, usize, u64)>,
    /// The most that can still be gained, by position in the order and units left.
    tail: Vec<Vec<i64>>,
    least: i64,
    most: usize,
    steps: u64,
    taken: Filling,
    out: Vec<(i64, Filling)>,
}

impl Enumeration<'_> {
    /// Enumerates the fillings from `at` on. Returns `false` when there are too many.
    fn walk(&mut self, at: usize, units: usize, memory: u64, gain: i64) -> bool {
        self.steps += 1;
        if gain + self.tail[at][units] < self.least {
            return true;
        }
        let Some(&(pod, each, size, takes)) = self.order.get(at) else {
            self.out.push((gain, self.taken.clone()));
            return self.out.len() <= self.most;
        };
        let most = (units / size) as u64;
        let most = most.min(memory.checked_div(takes).unwrap_or(u64::MAX)).min(self.pods[pod].most);
        for count in (0..=most).rev() {
            if count > 0 {
                self.taken.push((pod, count));
            }
            let good = self.walk(
                at + 1,
                units - size * count as usize,
                memory - takes * count,
                gain + each * count as i64,
            );
            if count > 0 {
                self.taken.pop();
            }
            if !good {
                return false;
            }
        }
        true
    }
}

/// The pods left for further parts.
struct Left<'a> {
    parts: &'a [Part],
    left: Vec<u64>,
}

impl Guard for Left<'_> {
    fn fit(&self, part: u32) -> Fit {
        let pods = &self.parts[part as usize].pods;
        Fit::exact(pods.iter().map(|(pod, count)| self.left[*pod] / count).min().unwrap_or(u64::MAX))
    }

    fn add(&mut self, part: u32, count: u32) {
        for (pod, each) in &self.parts[part as usize].pods {
            self.left[*pod] -= each * u64::from(count);
        }
    }

    fn remove(&mut self, part: u32, count: u32) {
        for (pod, each) in &self.parts[part as usize].pods {
            self.left[*pod] += each * u64::from(count);
        }
    }
}

/// A node to search: its pods and requests, in the dimensions for which [`lagrange::bound`] had prices.
pub(crate) struct Node<'a> {
    pub pods: &'a [Pod<'a>],
    /// By pod.
    pub requests: &'a [Vec<u64>],
    /// By pod: whether no pattern can use all pods of the class.
    pub abundant: &'a [bool],
    pub capacity: &'a [u64],
    pub equal: Equal,
}

/// Searches patterns worth more than `threshold`, given a bound at its prices (`prices` by dimension of the node). The
/// patterns found list pods by position.
pub(crate) fn search(
    node: &Node<'_>,
    bound: &lagrange::Bound,
    prices: &[u64],
    threshold: u64,
    effort: Effort,
    (scratch, pulse): (&mut Scratch, &mut Pulse<'_, '_>),
) -> Answer {
    // A thousand times this value, for as many pods as one GPU has units, must not overflow.
    if bound.upper >= LARGEST {
        return Answer { upper: bound.upper, ..Answer::default() };
    }
    let Node { pods, requests, abundant, capacity, equal } = node;
    let slack = bound.upper.saturating_sub(threshold);
    let cost = |pod: usize| -> u64 {
        let shares = requests[pod].iter().zip(*capacity).map(|(r, c)| knapsack::share(*r, *c));
        shares.zip(prices).map(|(share, price)| knapsack::of(share, *price)).sum()
    };
    let costs: Vec<u64> = (0..pods.len()).map(cost).collect();
    let gain = |pod: usize| pods[pod].value as i64 - costs[pod] as i64;
    let mut parts: Vec<Part> = Vec::new();
    for (at, pod) in pods.iter().enumerate() {
        let slots = match pod.gpu {
            None => 0,
            Some(GpuRequest::Whole(count)) => u64::from(count),
            Some(_) => continue,
        };
        let loss = (slots * bound.each) as i64 - gain(at);
        if loss < slack as i64 {
            let requests = requests[at].clone();
            parts.push(Part { pods: vec![(at, 1)], slots, value: pod.value, loss, requests });
        }
    }
    let (fillings, cut, mut work) = fillings(node, &gain, bound, slack, pulse);
    for (gain, pods) in fillings {
        let mut sum = vec![0u64; capacity.len()];
        let mut value = 0u64;
        for (pod, count) in &pods {
            for (sum, request) in sum.iter_mut().zip(&requests[*pod]) {
                *sum = sum.saturating_add(request.saturating_mul(*count));
            }
            value += node.pods[*pod].value * count;
        }
        let loss = bound.each as i64 - gain;
        parts.push(Part { pods, slots: 1, value, loss, requests: sum });
    }
    if equal.gpus > 1 {
        undominated(&mut parts, abundant);
    }
    let capacity: Vec<u64> = capacity.iter().copied().chain([equal.gpus]).collect();
    let prices: Vec<u64> = prices.iter().copied().chain([bound.each.saturating_mul(equal.gpus)]).collect();
    let classes: Vec<Class> = parts
        .iter()
        .map(|part| Class {
            requests: part.requests.iter().copied().chain([part.slots]).collect(),
            ..Class::default()
        })
        .collect();
    let mut left = Left { parts: &parts, left: pods.iter().map(|pod| pod.most).collect() };
    let (mut heads, mut items) = (Vec::new(), Vec::new());
    for (at, part) in parts.iter().enumerate() {
        let mut most = fit_count(&capacity, &classes[at].requests).min(left.fit(at as u32).least);
        if let Some(ceiling) = u64::try_from(part.loss).ok().and_then(|loss| (slack - 1).checked_div(loss)) {
            most = most.min(ceiling);
        }
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        if most > 0 {
            let item = Item { class: at as u32, value: part.value, most, loss: part.loss };
            // With a single GPU, one filling combines only with pods without a GPU.
            if equal.gpus == 1 && part.slots > 0 { heads.push(item) } else { items.push(item) }
        }
    }
    // Ask for one pattern for each pod that the best ones lack.
    let mut held: BTreeSet<u32> = (0..parts.len() as u32).collect();
    let mut seen = vec![false; pods.len()];
    for item in heads.iter().chain(&items) {
        for (pod, _) in &parts[item.class as usize].pods {
            if !std::mem::replace(&mut seen[*pod], true) {
                held.remove(&item.class);
            }
        }
    }
    let mut answer = knapsack::solve_with(
        &classes,
        (&capacity, Some(&mut left)),
        (&heads, items),
        &prices,
        (threshold, bound.upper),
        effort,
        (scratch, &mut held, pulse),
    );
    work += answer.work;
    let expand = |content: &[(u32, u32)]| {
        let mut pods: std::collections::BTreeMap<u32, u32> = std::collections::BTreeMap::new();
        for (part, times) in content {
            for (pod, count) in &parts[*part as usize].pods {
                *pods.entry(*pod as u32).or_default() += *count as u32 * times;
            }
        }
        pods.into_iter().collect::<Vec<_>>()
    };
    for (_, content) in &mut answer.found {
        *content = expand(content);
    }
    for content in &mut answer.others {
        *content = expand(content);
    }
    Answer { upper: answer.upper.max(cut).min(bound.upper), work, ..answer }
}

/// Returns fillings of one GPU with their gains, an upper bound on patterns with any other filling, and the work.
fn fillings(
    node: &Node<'_>,
    gain: &dyn Fn(usize) -> i64,
    bound: &lagrange::Bound,
    slack: u64,
    pulse: &mut Pulse<'_, '_>,
) -> (Vec<(i64, Filling)>, u64, u64) {
    let mut order = Vec::new();
    for (at, pod) in node.pods.iter().enumerate() {
        if node.equal.gpus > 0
            && let (Some(GpuRequest::Share { units, memory_mib }), false) = (pod.gpu, replaced(node, at))
        {
            order.push((at, gain(at), units as usize, memory_mib));
        }
    }
    order.sort_by_key(|(at, gain, units, _)| (std::cmp::Reverse(*units), -gain, *at));
    let cells = GPU_UNITS as usize;
    let mut tail = vec![vec![0i64; cells + 1]];
    for (_, gain, units, _) in order.iter().rev() {
        let mut row = tail[tail.len() - 1].clone();
        if *gain > 0 && *units > 0 {
            for cell in *units..=cells {
                row[cell] = row[cell].max(row[cell - units] + gain);
            }
        }
        tail.push(row);
    }
    tail.reverse();
    let mut walk = Enumeration {
        pods: node.pods,
        taken: Vec::new(),
        order,
        tail,
        least: 0,
        most: if node.equal.gpus > 1 { MOST_FILLINGS } else { MOST_HEADS },
        steps: 0,
        out: Vec::new(),
    };
    let mut reach = slack;
    loop {
        walk.out.clear();
        walk.least = bound.each as i64 - reach as i64 + 1;
        let before = walk.steps;
        let complete = walk.walk(0, cells, node.equal.memory, 0);
        if complete {
            break;
        }
        reach = reach / 4 * 3;
        if pulse.tick((walk.steps - before) / STEPS_PER_UNIT) {
            walk.out.clear();
            reach = 0;
            break;
        }
    }
    // A pattern with any other filling is worth at most the bound minus the reach.
    let cut = if reach < slack { bound.upper - reach } else { 0 };
    let steps = walk.steps / STEPS_PER_UNIT;
    let mut found = walk.out;
    found.retain(|(_, pods)| !pods.is_empty());
    for (_, pods) in &mut found {
        pods.sort_unstable();
    }
    (found, cut, steps)
}

/// Returns whether another pod, of which there are always enough, can replace this one anywhere.
fn replaced(node: &Node<'_>, at: usize) -> bool {
    let wish = |pod: usize| match node.pods[pod].gpu {
        Some(GpuRequest::Share { units, memory_mib }) => Some((units, memory_mib)),
        _ => None,
    };
    let Some((units, memory)) = wish(at) else { return false };
    (0..node.pods.len()).any(|other| {
        let (theirs, mine) = (&node.pods[other], &node.pods[at]);
        other != at
            && node.abundant[other]
            && theirs.value >= mine.value
            && wish(other).is_some_and(|(less, little)| less <= units && little <= memory)
            && node.requests[other].iter().zip(&node.requests[at]).all(|(theirs, mine)| theirs <= mine)
            && (other < at
                || theirs.value > mine.value
                || wish(other) != wish(at)
                || node.requests[other] != node.requests[at])
    })
}

/// Drops parts that another can always replace.
fn undominated(parts: &mut Vec<Part>, abundant: &[bool]) {
    parts.sort_by(|a, b| a.loss.cmp(&b.loss).then_with(|| a.pods.cmp(&b.pods)));
    let mut kept: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts.drain(..) {
        let dominated = part.slots > 0
            && kept.iter().any(|other| {
                other.slots <= part.slots
                    && other.value >= part.value
                    && other.pods.iter().all(|(pod, _)| abundant[*pod])
                    && other.requests.iter().zip(&part.requests).all(|(theirs, mine)| theirs <= mine)
            });
        if !dominated {
            kept.push(part);
        }
    }
    *parts = kept;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;
    use crate::gpu::Room;
    use crate::meter::Meter;
    use crate::problem::{GpuMode, Gpus};

    /// Returns the worth of the best pattern, by trying all.
    fn brute(
        room: &Room,
        node: &Node<'_>,
        content: &mut Vec<(GpuRequest, u64)>,
        left: &[u64],
        at: usize,
    ) -> u64 {
        let Some(pod) = node.pods.get(at) else { return 0 };
        let mut left = left.to_vec();
        let mut best = brute(room, node, content, &left, at + 1);
        let length = content.len();
        for count in 1..=pod.most {
            let enough = left.iter().zip(&node.requests[at]).all(|(left, request)| left >= request);
            if !enough {
                break;
            }
            left.iter_mut().zip(&node.requests[at]).for_each(|(left, request)| *left -= request);
            content.truncate(length);
            content.extend(pod.gpu.map(|request| (request, count)));
            if !room.holds(content) {
                break;
            }
            best = best.max(pod.value * count + brute(room, node, content, &left, at + 1));
        }
        content.truncate(length);
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fillings_find_what_trying_all_contents_finds(
            gpus in 1..4u32,
            kinds in proptest::collection::vec((0..11u32, 0..9u64, 1..40u64, 1..40u64, 1..1_000_000u64, 1..4u64), 1..5),
            start in 0..3_000_000u64,
            part in 0..11u64,
            nodes in prop_oneof![1 => Just(2), 4 => Just(1_000_000)],
        ) {
            let capacity = [100u64, 100];
            let requests: Vec<Vec<u64>> = kinds.iter().map(|(_, _, cpu, memory, ..)| vec![*cpu, *memory]).collect();
            let shares: Vec<Vec<u64>> =
                requests.iter().map(|row| row.iter().map(|request| knapsack::share(*request, 100)).collect()).collect();
            let pods: Vec<Pod<'_>> = kinds
                .iter()
                .zip(&shares)
                .enumerate()
                .map(|(class, ((units, memory, _, _, value, most), shares))| Pod {
                    class: class as u32,
                    gpu: match units {
                        0 => None,
                        10 => Some(GpuRequest::Whole(1 + gpus / 2)),
                        units => Some(GpuRequest::Share { units: units * 100, memory_mib: *memory }),
                    },
                    value: *value,
                    most: *most,
                    shares,
                })
                .collect();
            let room = Room::of_new(&Gpus { count: gpus, memory_mib: 16, mode: GpuMode::Shared });
            let abundant = vec![false; pods.len()];
            let equal = Equal { gpus: gpus.into(), memory: 16 };
            let node = Node { pods: &pods, requests: &requests, abundant: &abundant, capacity: &capacity, equal };
            let best = brute(&room, &node, &mut Vec::new(), &capacity, 0);
            let threshold = best * part / 10;
            let bound = lagrange::bound(&pods, gpus.into(), &[true, true], &[start, start / 2], threshold);
            let bound = bound.expect("coarse units");
            prop_assume!(bound.upper > threshold);
            let mut signal = crate::NeverStop;
            let mut meter = Meter::new(&mut signal, 1);
            let flag = AtomicBool::new(false);
            let mut pulse = Pulse::Owner(&mut meter, &flag);
            let effort = Effort { bits: 6, nodes };
            let tools = (&mut Scratch::default(), &mut pulse);
            let answer = search(&node, &bound, &bound.prices, threshold, effort, tools);
            prop_assert!(answer.upper >= best.min(bound.upper), "bound {} below {best}", answer.upper);
            if nodes > 2 {
                prop_assert!(answer.upper <= best.max(threshold), "bound {} above {best}", answer.upper);
                let found = answer.found.last().map(|(value, _)| *value);
                prop_assert_eq!(found, (best > threshold).then_some(best));
            }
            for (value, content) in &answer.found {
                let worth: u64 = content.iter().map(|(pod, count)| pods[*pod as usize].value * u64::from(*count)).sum();
                prop_assert_eq!(worth, *value);
                prop_assert!(content.iter().all(|(pod, count)| u64::from(*count) <= pods[*pod as usize].most));
                let wishes: Vec<(GpuRequest, u64)> = content
                    .iter()
                    .filter_map(|(pod, count)| pods[*pod as usize].gpu.map(|request| (request, u64::from(*count))))
                    .collect();
                prop_assert!(room.holds(&wishes));
                for (dim, room) in capacity.iter().enumerate() {
                    let used: u64 = content.iter().map(|(pod, count)| requests[*pod as usize][dim] * u64::from(*count)).sum();
                    prop_assert!(used <= *room);
                }
            }
        }
    }
}
