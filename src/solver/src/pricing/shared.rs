//! Pricing of nodes whose equal GPUs are shared: contents made of what single GPUs hold.

use super::{Priced, Pricer, QUICK};
use crate::content::Content;
use crate::gpu::{Room, fillings, lagrange};
use crate::knapsack::{self, Effort, Scratch};
use crate::meter::Pulse;

/// Contents made of fillings for one bin in one round.
const FILLED: usize = 6;

/// What is asked of one bin.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub bin: usize,
    /// What a pod of each class is worth, and how many there are.
    pub pi: &'a [u64],
    pub demand: &'a [u64],
    pub threshold: u64,
    pub effort: Effort,
}

impl Pricer<'_> {
    /// For nodes whose equal GPUs are shared and where nothing else binds a content: as [`Pricer::price`], by
    /// [`lagrange`] and [`fillings`]. `given` are the resource prices to start with where none are remembered.
    pub(super) fn shared(
        &self,
        Wanted { bin, pi, demand, threshold, effort }: Wanted<'_>,
        given: &[u64],
        (scratch, pulse): (&mut Scratch, &mut Pulse<'_, '_>),
    ) -> Option<Priced> {
        let dims = self.model.dims;
        let offer = &self.model.bins[bin];
        let gpus = offer.sharing?;
        if offer.rules.conflicts || !offer.rules.flexible.is_empty() {
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
        if value > threshold {
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
        let requests: Vec<Vec<u64>> =
            pods.iter().map(|pod| unpacked(&self.model.classes[pod.class as usize].requests)).collect();
        let memory = offer.rules.gpus.as_ref().map_or(u64::MAX, Room::memory_of_one);
        let node = fillings::Node {
            pods: &pods,
            requests: &requests,
            abundant: &abundant,
            capacity: &unpacked(&offer.capacity),
            equal: fillings::Equal { gpus, memory },
        };
        let answer = fillings::search(
            &node,
            &bound,
            &unpacked(&bound.prices),
            threshold.max(value),
            effort,
            (scratch, pulse),
        );
        let named = |content: Vec<(u32, u32)>| -> Vec<(u32, u32)> {
            content.into_iter().map(|(pod, count)| (pods[pod as usize].class, count)).collect()
        };
        priced.upper = answer.upper;
        priced.found.extend(answer.found.into_iter().map(|(value, content)| (value, named(content))));
        priced.others.extend(answer.others.into_iter().map(named));
        priced.work += answer.work;
        Some(priced)
    }

    /// Contents of two of the fillings, as many of each as are worth most together, and of what fits beside: the best one
    /// first.
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

    /// So many GPUs with these fillings, and what fits beside, by worth at `prices`.
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
