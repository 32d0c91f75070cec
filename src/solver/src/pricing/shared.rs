//! Pricing of nodes with equal shared GPUs: patterns made of fillings of single GPUs.

use super::{Priced, Pricer, QUICK, fillings, lagrange};
use crate::canonical::{Content, fit_count};
use crate::gpu::Room;
use crate::knapsack::{self, Answer, Effort, Scratch};
use crate::meter::Pulse;
use crate::problem::GpuRequest;
use crate::stages::SearchStage;

/// The number of patterns made of fillings for one bin in one round.
const FILLED: usize = 6;

/// The number of large pods that are tried one by one.
const MOST_LARGE: usize = 24;

/// The pricing task of one bin.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub bin: usize,
    /// The worth of a pod of each class, and the number of pods.
    pub pi: &'a [u64],
    pub demand: &'a [u64],
    pub threshold: u64,
    pub effort: Effort,
}

impl Pricer<'_> {
    /// Prices a bin like [`Pricer::price`], by [`lagrange`] and [`fillings`]. Returns `None` unless the node's equal GPUs
    /// are shared, no other rule binds, and the shares are coarse enough for the table. `given` are the initial resource
    /// prices where none are remembered.
    pub(super) fn shared(
        &self,
        Wanted { bin, pi, demand, threshold, effort }: Wanted<'_>,
        given: &[u64],
        (scratch, pulse): (&mut Scratch, &mut Pulse<'_, '_>),
    ) -> Option<Priced> {
        let dims = self.model.dims;
        let offer = &self.model.bins[bin];
        let gpus = offer.sharing?;
        if !self.model.stages.has(SearchStage::SharedGpus)
            || offer.rules.conflicts
            || !offer.rules.flexible.is_empty()
        {
            return None;
        }
        let shares = &self.shares[bin];
        let mut pods: Vec<lagrange::Pod<'_>> = Vec::new();
        let mut abundant = Vec::new();
        for (position, class) in offer.classes.iter().enumerate() {
            let value = offer.value(position, pi[*class as usize]);
            let most = shares.holds[position].min(demand[*class as usize]);
            if value > 0 && most > 0 {
                abundant.push(
                    most == shares.holds[position]
                        && self.model.classes[*class as usize].per_node == u32::MAX,
                );
                pods.push(lagrange::Pod {
                    class: *class,
                    gpu: self.model.classes[*class as usize].gpu,
                    value,
                    most,
                    shares: &shares.fixed[position * dims..(position + 1) * dims],
                });
            }
        }
        let free: Vec<bool> = self.model.packed.iter().map(|packed| !packed).collect();
        let start = if shares.beside.is_empty() { given } else { &shares.beside };
        let bound = lagrange::bound(&pods, gpus, &free, start, threshold)?;
        let beside = Some(bound.prices.clone());
        let mut priced = Priced { upper: bound.upper, beside, work: 100, ..Priced::default() };
        if bound.upper <= threshold {
            return Some(priced);
        }
        let mut filled = self.filled(bin, &pods, gpus, &bound);
        let (value, content) = filled.swap_remove(0);
        if value > threshold && self.model.stages.has(SearchStage::TwoFillings) {
            priced.found.push((value, content));
            priced.others = filled.into_iter().map(|(_, content)| content).collect();
            if value - threshold > (bound.upper - threshold) / 3 {
                return Some(priced);
            }
        }
        if effort.nodes <= QUICK {
            return Some(priced);
        }
        let unpacked = |row: &[u64]| -> Vec<u64> {
            row.iter().zip(&free).filter(|(_, free)| **free).map(|(value, _)| *value).collect()
        };
        let node = Whole {
            requests: pods
                .iter()
                .map(|pod| unpacked(&self.model.classes[pod.class as usize].requests))
                .collect(),
            abundant,
            apart: if self.model.stages.has(SearchStage::LargeShared) { MOST_LARGE } else { 0 },
            memory: offer.rules.gpus.as_ref().map_or(u64::MAX, Room::memory_of_one),
            pods,
        };
        let room = unpacked(&offer.capacity);
        let prices = unpacked(&bound.prices);
        let answer =
            node.search((&room, gpus), (&bound, &prices), threshold.max(value), effort, (scratch, pulse));
        let named = |content: Vec<(u32, u32)>| -> Vec<(u32, u32)> {
            content.into_iter().map(|(pod, count)| (node.pods[pod as usize].class, count)).collect()
        };
        priced.upper = priced.upper.min(answer.upper);
        priced.found.extend(answer.found.into_iter().map(|(value, content)| (value, named(content))));
        priced.others.extend(answer.others.into_iter().map(named));
        priced.work += answer.work;
        Some(priced)
    }

    /// Combines two of the fillings into patterns, as many of each as are worth most together, and adds pods that fit
    /// beside. The best pattern comes first.
    fn filled(
        &self,
        bin: usize,
        pods: &[lagrange::Pod<'_>],
        gpus: u64,
        bound: &lagrange::Bound,
    ) -> Vec<(u64, Vec<(u32, u32)>)> {
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
        let mut pairs = Vec::new();
        for (a, (value, used)) in sums.iter().enumerate() {
            for (b, (other, others)) in sums.iter().enumerate().filter(|(b, _)| *b != a) {
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
                    pairs.push((worth, a, b, count));
                }
            }
        }
        pairs.sort_unstable_by_key(|(worth, a, b, _)| (std::cmp::Reverse(*worth), *a, *b));
        let mut made: Vec<(u64, Vec<(u32, u32)>)> = Vec::new();
        for (_, a, b, count) in pairs.into_iter().take(FILLED) {
            let content =
                self.topped(bin, pods, &bound.prices, [(fillings[a], count), (fillings[b], gpus - count)]);
            if !made.contains(&content) {
                made.push(content);
            }
        }
        made.sort_by(|a, b| b.cmp(a));
        if made.is_empty() {
            made.push((0, Vec::new()));
        }
        made
    }

    /// Fills the GPUs with these fillings, and adds pods that fit beside, by worth at `prices`.
    fn topped(
        &self,
        bin: usize,
        pods: &[lagrange::Pod<'_>],
        prices: &[u64],
        fillings: [(&lagrange::Filling, u64); 2],
    ) -> (u64, Vec<(u32, u32)>) {
        let mut content = Content::empty(self.model, bin as u32);
        let mut left: Vec<u64> = pods.iter().map(|pod| pod.most).collect();
        let mut value = 0u64;
        let mut put = |pod: usize, count: u64| {
            let add = content.more(pods[pod].class).min(left[pod]).min(count).min(u64::from(u32::MAX));
            content.add(pods[pod].class, add as u32);
            left[pod] -= add;
            value = value.saturating_add(pods[pod].value.saturating_mul(add));
        };
        for (filling, times) in fillings {
            for (pod, each) in filling {
                put(*pod, each * times);
            }
        }
        let mut order: Vec<(f64, usize)> = pods
            .iter()
            .enumerate()
            .map(|(at, pod)| {
                let cost: u64 =
                    pod.shares.iter().zip(prices).map(|(share, price)| knapsack::of(*share, *price)).sum();
                (pod.value as f64 / cost.max(1) as f64, at)
            })
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, pod) in order {
            put(pod, u64::MAX);
        }
        (value, content.into_pods())
    }
}

/// A node with its pods, in the dimensions that have prices in [`lagrange::bound`].
struct Whole<'a> {
    pods: Vec<lagrange::Pod<'a>>,
    /// By pod.
    requests: Vec<Vec<u64>>,
    /// By pod: whether no pattern can use all pods of the class.
    abundant: Vec<bool>,
    /// The memory of one GPU, in MiB.
    memory: u64,
    /// The number of large pods that are tried one by one.
    apart: usize,
}

impl Whole<'_> {
    /// Searches patterns worth more than `threshold`, pods by position, given a bound at `prices`.
    ///
    /// A pod that takes more than half of the GPUs, or of another resource, is on the node or not, which linear prices
    /// cannot express. So the search splits into one part for each such pod, and one without any, each with its own
    /// prices.
    fn search(
        &self,
        (room, gpus): (&[u64], u64),
        (bound, prices): (&lagrange::Bound, &[u64]),
        threshold: u64,
        effort: Effort,
        (scratch, pulse): (&mut Scratch, &mut Pulse<'_, '_>),
    ) -> Answer {
        let slack = bound.upper - threshold;
        let mut large: Vec<(u64, usize, u64)> = Vec::new();
        for (at, pod) in self.pods.iter().enumerate() {
            let slots = match pod.gpu {
                None => 0,
                Some(GpuRequest::Whole(count)) => u64::from(count),
                Some(_) => continue,
            };
            let request = &self.requests[at];
            if 2 * slots <= gpus && request.iter().zip(room).all(|(request, room)| *request <= room / 2) {
                continue;
            }
            let shares = request.iter().zip(room).map(|(request, room)| knapsack::share(*request, *room));
            let cost: u64 = shares.zip(prices).map(|(share, price)| knapsack::of(share, *price)).sum();
            let loss = bound.each.saturating_mul(slots).saturating_add(cost).saturating_sub(pod.value);
            // A pod that loses more is in no pattern worth more than the threshold.
            if loss < slack {
                large.push((loss, at, slots));
            }
        }
        large.sort_unstable();
        large.truncate(self.apart);
        let mut all: Vec<(usize, u64)> =
            self.pods.iter().enumerate().map(|(at, pod)| (at, pod.most)).collect();
        if large.is_empty() {
            return self.part((room, gpus), &all, prices, threshold, effort, (scratch, pulse));
        }
        let mut answer = Answer::default();
        let mut best = threshold;
        for (_, at, slots) in large {
            let value = self.pods[at].value;
            let mut left = room.to_vec();
            left.iter_mut().zip(&self.requests[at]).for_each(|(left, request)| *left -= request);
            if let Some(pod) = all.iter_mut().find(|(pod, _)| *pod == at) {
                pod.1 -= 1;
            }
            let beside = (left.as_slice(), gpus - slots);
            let wanted = best.saturating_sub(value);
            let mut part = self.part(beside, &all, prices, wanted, effort, (&mut *scratch, &mut *pulse));
            let with = |content: &mut Vec<(u32, u32)>| {
                match content.iter_mut().find(|(pod, _)| *pod as usize == at) {
                    Some((_, count)) => *count += 1,
                    None => content.push((at as u32, 1)),
                }
                content.sort_unstable();
            };
            if part.found.is_empty() && value > best {
                part.found.push((0, Vec::new()));
            }
            part.others.iter_mut().for_each(with);
            for (worth, mut content) in part.found {
                if value + worth > best {
                    with(&mut content);
                    best = value + worth;
                    answer.found.push((best, content));
                }
            }
            answer.others.append(&mut part.others);
            answer.upper = answer.upper.max(value.saturating_add(part.upper));
            answer.work += part.work;
            all.retain(|(pod, _)| *pod != at);
        }
        let mut part = self.part((room, gpus), &all, prices, best, effort, (scratch, pulse));
        answer.found.append(&mut part.found);
        answer.others.append(&mut part.others);
        answer.upper = answer.upper.max(part.upper);
        answer.work += part.work;
        answer
    }

    /// Searches patterns of `members` (positions with maximum counts) in `room`.
    fn part(
        &self,
        (room, gpus): (&[u64], u64),
        members: &[(usize, u64)],
        prices: &[u64],
        threshold: u64,
        effort: Effort,
        (scratch, pulse): (&mut Scratch, &mut Pulse<'_, '_>),
    ) -> Answer {
        let mut kept = Vec::new();
        for (at, most) in members {
            let fits = fit_count(room, &self.requests[*at]).min(*most);
            let slots = match self.pods[*at].gpu {
                None => 0,
                Some(GpuRequest::Whole(count)) => u64::from(count),
                Some(_) => 1,
            };
            if fits > 0 && slots <= gpus {
                kept.push((*at, fits));
            }
        }
        let requests: Vec<Vec<u64>> = kept.iter().map(|(at, _)| self.requests[*at].clone()).collect();
        let shares: Vec<Vec<u64>> = requests
            .iter()
            .map(|row| row.iter().zip(room).map(|(request, room)| knapsack::share(*request, *room)).collect())
            .collect();
        let pods: Vec<lagrange::Pod<'_>> = kept
            .iter()
            .zip(&shares)
            .map(|((at, most), shares)| lagrange::Pod { most: *most, shares, ..self.pods[*at] })
            .collect();
        // After one pod is taken, the rest is only known to be enough where no pattern can use all.
        let abundant: Vec<bool> = kept
            .iter()
            .map(|(at, _)| self.abundant[*at] && is_all(members, *at, self.pods[*at].most))
            .collect();
        let free = vec![true; room.len()];
        let Some(bound) = lagrange::bound(&pods, gpus, &free, prices, threshold) else {
            return Answer { upper: u64::MAX, ..Answer::default() };
        };
        if bound.upper <= threshold {
            return Answer { upper: bound.upper, work: 100, ..Answer::default() };
        }
        let node = fillings::Node {
            pods: &pods,
            requests: &requests,
            abundant: &abundant,
            capacity: room,
            equal: fillings::Equal { gpus, memory: self.memory },
        };
        let mut answer = fillings::search(&node, &bound, &bound.prices, threshold, effort, (scratch, pulse));
        let back = |content: &mut Vec<(u32, u32)>| {
            for (pod, _) in content {
                *pod = kept[*pod as usize].0 as u32;
            }
        };
        answer.found.iter_mut().for_each(|(_, content)| back(content));
        answer.others.iter_mut().for_each(back);
        answer.work += 100;
        answer
    }
}

/// Returns whether no pod at a position is taken yet.
fn is_all(members: &[(usize, u64)], at: usize, most: u64) -> bool {
    members.iter().any(|(pod, left)| *pod == at && *left == most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::Model;
    use crate::meter::Meter;
    use crate::problem::{GpuMode, Gpus};
    use crate::testing::{candidate, class, problem};

    /// Returns the worth of the best pattern beside `content`, by trying all.
    fn brute(pi: &[u64], demand: &[u64], content: &Content<'_>, at: usize) -> u64 {
        let Some(count) = demand.get(at) else { return 0 };
        let mut best = brute(pi, demand, content, at + 1);
        let mut content = content.clone();
        for taken in 1..=*count {
            if content.more(at as u32) == 0 {
                break;
            }
            content.add(at as u32, 1);
            best = best.max(pi[at] * taken + brute(pi, demand, &content, at + 1));
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nodes_that_share_gpus_are_worth_what_trying_all_contents_finds(
            gpus in 1..5u32,
            kinds in proptest::collection::vec((0..14u32, [1..60u64, 1..60u64], 1..4u32, 1..1_000_000u64), 1..6),
            part in 0..12u64,
            nodes in prop_oneof![1 => Just(300), 4 => Just(1_000_000)],
        ) {
            let classes = kinds
                .iter()
                .map(|(units, [cpu, memory], count, _)| {
                    let mut made = class("class", [*cpu, *memory, 0], *count, &[0]);
                    made.gpu = match units {
                        0 => None,
                        10.. => Some(GpuRequest::Whole(units - 9)),
                        units => Some(GpuRequest::Share { units: units * 100, memory_mib: 0 }),
                    };
                    made
                })
                .collect();
            let mut node = candidate("node", 10, [100, 100, 0]);
            node.gpus = Some(Gpus { count: gpus, memory_mib: 16, mode: GpuMode::Shared });
            let model = Model::new(&problem(classes, vec![node]));
            prop_assume!(!model.classes.is_empty());
            let pi: Vec<u64> = model.classes.iter().map(|class| kinds[class.members[0].0 as usize].3).collect();
            let demand = model.demand();
            let best = brute(&pi, &demand, &Content::empty(&model, 0), 0);
            let threshold = best * part / 10;
            let mut signal = crate::NeverStop;
            let mut meter = Meter::new(&mut signal, 1);
            let tasks = [(threshold, Effort { bits: 8, nodes })];
            let priced = Pricer::new(&model, 1).price_all(&pi, &demand, &tasks, &mut meter).remove(0);
            prop_assert!(priced.upper >= best || priced.upper <= threshold && best <= threshold);
            prop_assert!(threshold < best || priced.found.is_empty());
            for (value, content) in &priced.found {
                prop_assert!(Content::allows(&model, 0, content), "{content:?}");
                prop_assert!(content.iter().all(|(class, count)| u64::from(*count) <= demand[*class as usize]));
                let worth: u64 = content.iter().map(|(class, count)| pi[*class as usize] * u64::from(*count)).sum();
                prop_assert_eq!(worth, *value);
            }
            // A sufficiently good pattern ends the search of a round. A higher threshold continues it.
            let mut found = priced;
            for _ in 0..20 {
                let Some((value, _)) = found.found.last() else { break };
                let tasks = [(*value, Effort { bits: 8, nodes })];
                let more = Pricer::new(&model, 1).price_all(&pi, &demand, &tasks, &mut meter).remove(0);
                prop_assert!(more.upper >= best);
                if more.found.is_empty() {
                    break;
                }
                found = more;
            }
            if nodes > 300 && threshold < best {
                prop_assert_eq!(found.found.last().map(|(value, _)| *value), Some(best));
            }
        }
    }
}
