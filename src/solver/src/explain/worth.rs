//! The extra cost of a node of another candidate.

use crate::check::{packs, paid};
use crate::problem::{Candidate, PodClass, Problem};
use crate::solution::{Placement, ShadowPrices, Solution};

/// Returns the extra cost of each of `open` compared with the used candidates, in micro-dollars per hour.
pub(super) fn more(
    problem: &Problem,
    solution: &Solution,
    class: u32,
    open: &[u32],
    used: &[u32],
) -> Vec<(u32, i64)> {
    if let Some(prices) = &solution.prices {
        let market = Market::new(problem, solution, prices);
        return open.iter().map(|candidate| (*candidate, market.more(class, *candidate))).collect();
    }
    let costs = |candidate: u32| alone(problem, class, candidate);
    let least = used.iter().map(|candidate| costs(*candidate)).min().unwrap_or(0);
    open.iter().map(|candidate| (*candidate, costs(*candidate).saturating_sub(least))).collect()
}

fn clamp(micros: i128) -> i64 {
    i64::try_from(micros).unwrap_or(if micros < 0 { i64::MIN } else { i64::MAX })
}

/// Returns the risk and preference cost of one pod on a candidate.
fn penalty(class: &PodClass, index: u32, candidate: &Candidate) -> i128 {
    let risk = crate::problem::risk(class.loss_on(index), candidate.interruptions).micros();
    let at = class.preferences.binary_search_by_key(&index, |(of, _)| *of);
    i128::from(risk) + i128::from(at.map_or(0, |at| class.preferences[at].1.micros()))
}

/// Returns the cost of one pod if its node holds only pods of its class.
fn alone(problem: &Problem, class: u32, index: u32) -> i64 {
    let candidate = &problem.candidates[index as usize];
    let of = &problem.classes[class as usize];
    let mut node = Node::new(problem, candidate);
    let pods = node.add(class, of.count.max(1)).max(1);
    let each = i128::from(candidate.price.micros().div_ceil(u64::from(pods)));
    clamp(each + penalty(of, index, candidate))
}

/// The cost of nodes and the worth of pods at the shadow prices.
struct Market<'a> {
    problem: &'a Problem,
    solution: &'a Solution,
    prices: &'a ShadowPrices,
    bought: Vec<u64>,
    paid: u128,
    partners: Vec<Vec<u32>>,
}

impl<'a> Market<'a> {
    fn new(problem: &'a Problem, solution: &'a Solution, prices: &'a ShadowPrices) -> Self {
        let mut bought = vec![0u64; problem.candidates.len()];
        for group in &solution.new_nodes {
            bought[group.candidate as usize] += u64::from(group.count);
        }
        let (paid, _) = paid(problem, &bought);
        let mut partners = vec![Vec::new(); problem.classes.len()];
        for (i, j) in &problem.conflicts {
            partners[*i as usize].push(*j);
            partners[*j as usize].push(*i);
        }
        Self { problem, solution, prices, bought, paid, partners }
    }

    /// Returns the cost of a node without its pods: its price after commitments, and the value of the scarce limits and
    /// stock that it uses.
    fn node_cost(&self, index: u32) -> i128 {
        let candidate = &self.problem.candidates[index as usize];
        let covered = self
            .problem
            .commitments
            .iter()
            .any(|commitment| commitment.rates.binary_search_by_key(&index, |(of, _)| *of).is_ok());
        let price = if covered {
            let mut bought = self.bought.clone();
            bought[index as usize] += 1;
            let (with, _) = paid(self.problem, &bought);
            with as i128 - self.paid as i128
        } else {
            i128::from(candidate.price.micros())
        };
        let limits: i128 = candidate
            .limit_use
            .iter()
            .map(|(limit, amount)| i128::from(self.prices.limits[*limit as usize]) * i128::from(*amount))
            .sum();
        price + limits / 1_000_000 + i128::from(self.prices.candidates[index as usize])
    }

    /// Returns the saving by one pod on such a node.
    fn worth(&self, class: u32, index: u32) -> i128 {
        let candidate = &self.problem.candidates[index as usize];
        let price = i128::from(self.prices.classes[class as usize]);
        price - penalty(&self.problem.classes[class as usize], index, candidate)
    }

    /// Returns the cost of a node beyond the worth of its pods: one pod of the class and the best others found.
    fn more(&self, class: u32, index: u32) -> i64 {
        let candidate = &self.problem.candidates[index as usize];
        // One pod of the class must be on the node; others follow in descending order of worth per room.
        let mut others: Vec<(u128, u32)> = (0..self.problem.classes.len() as u32)
            .filter(|other| self.problem.classes[*other as usize].candidates.binary_search(&index).is_ok())
            .filter_map(|other| {
                let worth = self.worth(other, index);
                let room = room(&self.problem.classes[other as usize], candidate)?;
                (worth > 0).then(|| ((worth as u128) * (1 << 20) / (room + 1), other))
            })
            .collect();
        others.sort_unstable_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
        let filled = self.fill(class, index, others.iter().map(|(_, other)| (*other, u32::MAX)));
        // The pods beside the class in the plan are a good guess too.
        let in_plan =
            self.solution.new_nodes.iter().filter(|group| group.pods.iter().any(|(of, _)| *of == class));
        let copied = in_plan.map(|group| self.fill(class, index, group.pods.iter().copied()));
        let best = copied.chain([filled]).max().unwrap_or(filled);
        clamp(self.node_cost(index) - best)
    }

    /// Returns the worth of one pod of the class, and of as many of the others, in their order, as fit beside it.
    fn fill(&self, class: u32, index: u32, others: impl Iterator<Item = Placement>) -> i128 {
        let mut node = Node::new(self.problem, &self.problem.candidates[index as usize]);
        node.add(class, 1);
        let mut total = self.worth(class, index);
        for (other, most) in others {
            let worth = self.worth(other, index);
            let allowed = self.problem.classes[other as usize].candidates.binary_search(&index).is_ok();
            let meets = self.partners[other as usize].iter().any(|partner| node.count(*partner) > 0);
            if worth <= 0 || !allowed || meets {
                continue;
            }
            // No more pods than exist; the node already has one of the class itself.
            let there = self.problem.classes[other as usize].count.saturating_sub(node.count(other));
            total += worth * i128::from(node.add(other, most.min(there)));
        }
        total
    }
}

/// Returns the sum over all resources of the fractions of an empty node that one pod takes, in 2^20ths; `None` where it
/// does not fit.
fn room(class: &PodClass, candidate: &Candidate) -> Option<u128> {
    let mut sum = 0;
    for (wants, has) in class.requests.iter().zip(&candidate.capacity) {
        if wants > has {
            return None;
        }
        if *has > 0 {
            sum += (u128::from(*wants) << 20) / u128::from(*has);
        }
    }
    Some(sum)
}

/// A node while it is filled.
struct Node<'a> {
    problem: &'a Problem,
    candidate: &'a Candidate,
    left: Vec<u64>,
    pods: Vec<Placement>,
    ports: Vec<u32>,
}

impl<'a> Node<'a> {
    fn new(problem: &'a Problem, candidate: &'a Candidate) -> Self {
        Self { problem, candidate, left: candidate.capacity.clone(), pods: Vec::new(), ports: Vec::new() }
    }

    fn count(&self, class: u32) -> u32 {
        self.pods.iter().find(|(of, _)| *of == class).map_or(0, |(_, count)| *count)
    }

    /// Adds at most `most` pods, and returns how many.
    fn add(&mut self, class: u32, most: u32) -> u32 {
        let of = &self.problem.classes[class as usize];
        let held = self.count(class);
        let mut most = u64::from(most.min(of.max_per_node.unwrap_or(u32::MAX).saturating_sub(held)));
        for (wants, left) in of.requests.iter().zip(&self.left) {
            if let Some(fit) = left.checked_div(*wants) {
                most = most.min(fit);
            }
        }
        if !of.ports.is_empty() {
            most = if of.ports.iter().any(|port| self.ports.contains(port)) { 0 } else { most.min(1) };
        }
        let mut count = most as u32;
        // On GPUs, halve the number until they fit: this gives a possible node, which suffices for an estimate.
        while count > 0 && of.gpu.is_some() && !self.lays_out(class, held + count) {
            count /= 2;
        }
        if count > 0 {
            for (wants, left) in of.requests.iter().zip(&mut self.left) {
                *left -= wants * u64::from(count);
            }
            self.ports.extend(&of.ports);
            self.pods.retain(|(of, _)| *of != class);
            self.pods.push((class, held + count));
        }
        count
    }

    fn lays_out(&self, class: u32, count: u32) -> bool {
        let mut pods: Vec<Placement> = self.pods.iter().copied().filter(|(of, _)| *of != class).collect();
        pods.push((class, count));
        packs(self.problem, &pods, self.candidate.gpus.as_ref())
    }
}
