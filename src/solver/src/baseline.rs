//! Other methods, for comparison. They ignore existing nodes, and leave out pods that fit no candidate. They respect conflicts.
//!
//! [`one_pod_per_node`] and [`first_fit`] ignore limits, stock and commitments. [`Simple`] respects them.

use std::collections::BTreeMap;

use poolwright_catalog::{ResourceName, UsdPerHour};

use crate::bits::BitSet;
use crate::canonical::{Conflicts, Parties};
use crate::check::{commitments, leave_choice};
use crate::gpu::{Room, dims::Rows};
use crate::problem::{GpuRequest, PodClass, Problem, risk};
use crate::solution::{NewNodes, Placement};

/// Returns whether one pod fits one empty node.
fn fits(requests: &[u64], capacity: &[u64]) -> bool {
    requests.iter().zip(capacity).all(|(request, room)| request <= room)
}

/// The requests of pods and the capacities of nodes, including shared and partitioned GPUs.
struct Sizes<'a> {
    problem: &'a Problem,
    /// By class.
    requests: Vec<Vec<u64>>,
    /// By candidate.
    capacity: Vec<Vec<u64>>,
    rooms: Vec<Option<Room>>,
    /// The conflicts between classes.
    parties: Parties,
    /// By class: whether its pods exclude each other from a node.
    alone: Vec<bool>,
}

impl<'a> Sizes<'a> {
    fn new(problem: &'a Problem) -> Self {
        let rooms: Vec<Option<Room>> =
            problem.candidates.iter().map(|candidate| candidate.gpus.as_ref().map(Room::of_new)).collect();
        let wishes: Vec<(GpuRequest, u64)> =
            problem.classes.iter().filter_map(|class| Some((class.gpu?, class.count.into()))).collect();
        let rows = Rows::new(&wishes, &rooms.iter().flatten().collect::<Vec<_>>());
        let conflicts = Conflicts::of_waiting(problem);
        let with = |vector: &[u64], more: Vec<u64>| vector.iter().copied().chain(more).collect();
        Self {
            problem,
            requests: problem
                .classes
                .iter()
                .map(|class| with(&class.requests, rows.request(class.gpu)))
                .collect(),
            capacity: problem
                .candidates
                .iter()
                .zip(&rooms)
                .map(|(candidate, room)| with(&candidate.capacity, rows.capacity(room.as_ref())))
                .collect(),
            rooms,
            parties: conflicts.parties(),
            alone: (0..problem.classes.len() as u32).map(|class| conflicts.is_alone(class)).collect(),
        }
    }

    /// Returns whether the node's pods, or its count of `class`, exclude one more pod of `class`.
    fn keeps_away(&self, node: &Open, class: u32) -> bool {
        let last = node.by_class.last().copied().filter(|(last, _)| *last == class);
        let at = class as usize;
        let most = if self.alone[at] { Some(1) } else { self.problem.classes[at].max_per_node };
        match last {
            // Pods of the same class arrived last, so no other class came since.
            Some((_, count)) => most.is_some_and(|most| count >= most),
            None => node.kept_away.contains(self.parties.of[at] as usize),
        }
    }

    /// Returns whether one pod fits one empty node.
    fn holds(&self, candidate: u32, class: usize) -> bool {
        let at = candidate as usize;
        fits(&self.requests[class], &self.capacity[at]) && self.serves(at, &[], class)
    }

    /// Returns whether the GPUs hold one more pod beside `pods`.
    fn serves(&self, candidate: usize, pods: &[(u32, u32)], class: usize) -> bool {
        let wish = |class: usize| self.problem.classes[class].gpu;
        let Some(wanted) = wish(class) else { return true };
        let Some(room) = &self.rooms[candidate] else { return false };
        // With linear rows the sums decide, except whether such a pod is served at all.
        if !pods.is_empty() && room.is_linear() {
            return true;
        }
        let others = pods
            .iter()
            .filter_map(|(other, count)| wish(*other as usize).map(|request| (request, u64::from(*count))));
        room.holds(&others.chain([(wanted, 1)]).collect::<Vec<_>>())
    }
}

/// Returns the cost of one node per pod, each the cheapest that holds its pod.
pub fn one_pod_per_node(problem: &Problem) -> UsdPerHour {
    let sizes = Sizes::new(problem);
    problem
        .classes
        .iter()
        .enumerate()
        .filter_map(|(index, class)| {
            let cheapest = class
                .candidates
                .iter()
                .filter(|candidate| sizes.holds(**candidate, index))
                .map(|candidate| problem.candidates[*candidate as usize].price)
                .min()?;
            Some(cheapest.times(u64::from(class.count)))
        })
        .sum()
}

/// A node in progress: its pods, and the candidates that still hold them.
struct Open {
    used: Vec<u64>,
    /// The candidates, as bits.
    possible: Vec<u64>,
    /// The component-wise maximum capacity of the possible candidates.
    most: Vec<u64>,
    pods: u32,
    /// Pods by class, in order of arrival.
    by_class: Vec<(u32, u32)>,
    /// The parties that its pods exclude.
    kept_away: BitSet,
}

/// A node that first fit buys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bought {
    /// Index into [`Problem::candidates`].
    pub candidate: u32,
    /// Its pods, ascending by class.
    pub pods: Vec<Placement>,
}

/// Returns the cost of first fit: an autoscaler that packs without regard to prices.
///
/// It takes pods in descending order of CPU, then memory. Each pod goes to the open node with the fewest pods for which
/// some candidate still holds everything. An open node stands for all candidates that hold its pods, and becomes the
/// cheapest of them at the end. Karpenter's provisioner uses the same order and rule.
pub fn first_fit(problem: &Problem) -> UsdPerHour {
    let bought = first_fit_nodes(problem);
    bought.iter().map(|node| problem.candidates[node.candidate as usize].price).sum()
}

/// Returns the nodes of [`first_fit`] with their pods, in the order they were opened.
pub fn first_fit_nodes(problem: &Problem) -> Vec<Bought> {
    let opened = open(&Sizes::new(problem), &counts(problem), u32::MAX, |_| true);
    let cheapest = |node: Open| {
        let candidate = members(&node.possible).min_by_key(|at| (problem.candidates[*at].price, *at))?;
        Some(node.bought(candidate))
    };
    opened.into_iter().filter_map(cheapest).collect()
}

/// Opens nodes for this many pods of each class, with at most `most` pods on a node, from the candidates that are `allowed`.
fn open(sizes: &Sizes<'_>, counts: &[u32], most: u32, allowed: impl Fn(usize) -> bool) -> Vec<Open> {
    let problem = sizes.problem;
    let dim = |name: &str| problem.resources.iter().position(|resource| resource.as_str() == name);
    let (cpu, memory) = (dim(ResourceName::CPU), dim(ResourceName::MEMORY));
    let amount =
        |class: u32, dim: Option<usize>| dim.map_or(0, |dim| problem.classes[class as usize].requests[dim]);
    let mut order: Vec<u32> = (0..problem.classes.len() as u32).collect();
    order.sort_by_key(|class| {
        (std::cmp::Reverse(amount(*class, cpu)), std::cmp::Reverse(amount(*class, memory)), *class)
    });
    let words = problem.candidates.len().div_ceil(64);
    // The nodes by number of pods, oldest first among equals. A node moves up one level with each pod.
    let mut levels: Vec<Vec<usize>> = vec![Vec::new()];
    let mut nodes: Vec<Open> = Vec::new();
    for class in order {
        let wanted = &problem.classes[class as usize];
        if wanted.max_per_node == Some(0) || counts[class as usize] == 0 {
            continue;
        }
        let mut admitted = vec![0u64; words];
        for &candidate in &wanted.candidates {
            if allowed(candidate as usize) && sizes.holds(candidate, class as usize) {
                admitted[candidate as usize / 64] |= 1 << (candidate % 64);
            }
        }
        if admitted.iter().all(|word| *word == 0) {
            continue;
        }
        // A node that refused a pod of this class refuses the next one too, since its room only shrinks.
        let mut refused = vec![false; nodes.len()];
        for _ in 0..counts[class as usize] {
            let mut home = None;
            'levels: for (level, members) in
                levels.iter().enumerate().take_while(|(level, _)| *level < most as usize)
            {
                for (position, &node) in members.iter().enumerate() {
                    if refused[node] {
                        continue;
                    }
                    if let Some(joined) = join(sizes, &nodes[node], class, &admitted) {
                        home = Some((level, position, node, joined));
                        break 'levels;
                    }
                    refused[node] = true;
                }
            }
            let (node, (possible, most_room)) = if let Some((level, position, node, joined)) = home {
                levels[level].remove(position);
                (node, joined)
            } else {
                nodes.push(Open {
                    used: vec![0; sizes.requests[class as usize].len()],
                    possible: admitted.clone(),
                    most: Vec::new(),
                    pods: 0,
                    by_class: Vec::new(),
                    kept_away: BitSet::new(sizes.parties.apart.len()),
                });
                refused.push(false);
                let node = nodes.len() - 1;
                match join(sizes, &nodes[node], class, &admitted) {
                    Some(joined) => (node, joined),
                    None => continue,
                }
            };
            let open = &mut nodes[node];
            for (used, request) in open.used.iter_mut().zip(&sizes.requests[class as usize]) {
                *used += request;
            }
            (open.possible, open.most) = (possible, most_room);
            open.pods += 1;
            match open.by_class.last_mut() {
                Some((last, count)) if *last == class => *count += 1,
                _ => {
                    open.by_class.push((class, 1));
                    let party = sizes.parties.of[class as usize];
                    for other in &sizes.parties.apart[party as usize] {
                        open.kept_away.insert(*other as usize);
                    }
                }
            }
            let level = open.pods as usize;
            if levels.len() <= level {
                levels.resize(level + 1, Vec::new());
            }
            let at = levels[level].partition_point(|other| *other < node);
            levels[level].insert(at, node);
        }
    }
    nodes
}

impl Open {
    /// Returns the node as this candidate.
    fn bought(mut self, candidate: usize) -> Bought {
        self.by_class.sort_unstable();
        Bought { candidate: candidate as u32, pods: self.by_class }
    }
}

/// What a simple method buys under the limits, the stock and the commitments of a problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// Its nodes, in the order they were bought.
    pub nodes: Vec<Bought>,
    /// The number of pods of each class that it cannot place.
    pub left: Vec<u32>,
}

impl Simple {
    /// Buys the cheapest node for each pod.
    pub fn one_pod_per_node(problem: &Problem) -> Self {
        Self::buy(&Sizes::new(problem), 1, counts(problem))
    }

    /// Buys the nodes of [`first_fit`].
    pub fn first_fit(problem: &Problem) -> Self {
        Self::buy(&Sizes::new(problem), u32::MAX, counts(problem))
    }

    /// Returns first fit and one pod per node for `counts` pods of each class, without a way that cannot cost less than `most`.
    pub(crate) fn ways_below(problem: &Problem, counts: &[u32], most: UsdPerHour) -> Vec<Self> {
        let sizes = Sizes::new(problem);
        let mut ways = vec![Self::buy(&sizes, u32::MAX, counts.to_vec())];
        // A node costs at least as much as the cheapest one of its pod, unless a commitment pays.
        let price = |candidate: &u32| problem.candidates[*candidate as usize].price;
        let least = |(class, count): (&PodClass, &u32)| {
            Some(class.candidates.iter().map(price).min()?.times(u64::from(*count)))
        };
        let each = problem.classes.iter().zip(counts).filter_map(least);
        if !problem.commitments.is_empty() || each.sum::<UsdPerHour>() < most {
            ways.push(Self::buy(&sizes, 1, counts.to_vec()));
        }
        ways
    }

    /// Opens nodes for `left` pods of each class, with at most `most` pods on a node, and buys each as the candidate that costs least
    /// and is still to be had. Pods for which none is left try again with what is.
    fn buy(sizes: &Sizes<'_>, most: u32, left: Vec<u32>) -> Self {
        let mut rest = Rest::new(sizes.problem);
        let mut simple = Self { nodes: Vec::new(), left };
        loop {
            let opened = open(sizes, &simple.left, most, |candidate| rest.allows(candidate));
            let before = simple.nodes.len();
            for node in opened {
                let possible = members(&node.possible).filter(|at| rest.allows(*at));
                let Some(best) = possible.min_by_key(|at| (rest.counted(*at, &node.by_class), *at)) else {
                    continue;
                };
                rest.take(best);
                for (class, count) in &node.by_class {
                    simple.left[*class as usize] -= count;
                }
                simple.nodes.push(node.bought(best));
            }
            if simple.nodes.len() == before {
                return simple;
            }
        }
    }

    /// Returns its nodes in groups of equal pods, sorted, without the layouts of GPUs.
    pub(crate) fn new_nodes(&self) -> Vec<NewNodes> {
        let mut groups: BTreeMap<(u32, &[Placement]), u32> = BTreeMap::new();
        for node in &self.nodes {
            *groups.entry((node.candidate, node.pods.as_slice())).or_default() += 1;
        }
        let group = |((candidate, pods), count): ((u32, &[Placement]), u32)| NewNodes {
            candidate,
            pods: pods.to_vec(),
            count,
            gpus: Vec::new(),
        };
        groups.into_iter().map(group).collect()
    }

    /// Returns whether each node could be of as many other types as [`Problem::flexibility`] requires.
    pub fn is_flexible(&self, problem: &Problem) -> bool {
        problem.flexibility.is_empty() || leave_choice(problem, &self.new_nodes())
    }

    /// Returns the cost of its nodes after commitments, and the use of each commitment.
    pub fn paid(&self, problem: &Problem) -> (UsdPerHour, Vec<UsdPerHour>) {
        let mut bought = vec![0; problem.candidates.len()];
        for node in &self.nodes {
            bought[node.candidate as usize] += 1;
        }
        let (paid, used) = commitments::paid(problem, &bought);
        let paid = UsdPerHour::from_micros(u64::try_from(paid).unwrap_or(u64::MAX));
        (paid, used.into_iter().map(UsdPerHour::from_micros).collect())
    }
}

/// Returns the number of pods of each class.
fn counts(problem: &Problem) -> Vec<u32> {
    problem.classes.iter().map(|class| class.count).collect()
}

/// What is left of limits, stock and commitments.
struct Rest<'a> {
    problem: &'a Problem,
    limits: Vec<u64>,
    /// By candidate; `None` without a limit.
    stock: Vec<Option<u32>>,
    commitments: Vec<u64>,
    /// By candidate: the commitment that covers it, and its rate.
    covered: Vec<Option<(usize, u64)>>,
}

impl<'a> Rest<'a> {
    fn new(problem: &'a Problem) -> Self {
        let mut covered = vec![None; problem.candidates.len()];
        for (at, commitment) in problem.commitments.iter().enumerate() {
            for (candidate, rate) in &commitment.rates {
                covered[*candidate as usize] = Some((at, rate.micros()));
            }
        }
        Self {
            problem,
            limits: problem.limits.iter().map(|limit| limit.bound).collect(),
            stock: problem.candidates.iter().map(|candidate| candidate.max_nodes).collect(),
            commitments: problem.commitments.iter().map(|of| of.left.micros()).collect(),
            covered,
        }
    }

    fn allows(&self, candidate: usize) -> bool {
        let uses = &self.problem.candidates[candidate].limit_use;
        self.stock[candidate] != Some(0)
            && uses.iter().all(|(limit, amount)| *amount <= self.limits[*limit as usize])
    }

    fn take(&mut self, candidate: usize) {
        for (limit, amount) in &self.problem.candidates[candidate].limit_use {
            self.limits[*limit as usize] -= amount;
        }
        if let Some(stock) = &mut self.stock[candidate] {
            *stock -= 1;
        }
        if let Some((commitment, rate)) = self.covered[candidate] {
            let left = &mut self.commitments[commitment];
            *left = left.saturating_sub(rate);
        }
    }

    /// Returns the price of one more node with these pods, less the part that its commitment pays, plus the expected loss and what else
    /// the pods cost there.
    fn counted(&self, candidate: usize, pods: &[(u32, u32)]) -> u128 {
        let of = &self.problem.candidates[candidate];
        let price = u128::from(of.price.micros());
        let covered = self.covered[candidate].map_or(0, |(commitment, rate)| {
            price * u128::from(self.commitments[commitment].min(rate)) / u128::from(rate.max(1))
        });
        let index = candidate as u32;
        let besides = |(class, count): &(u32, u32)| {
            let class = &self.problem.classes[*class as usize];
            let own = class.preferences.binary_search_by_key(&index, |(of, _)| *of);
            let own = own.map_or(0, |at| class.preferences[at].1.micros());
            let loss =
                if of.interruptions == 0 { 0 } else { risk(class.loss_on(index), of.interruptions).micros() };
            (u128::from(loss) + u128::from(own)) * u128::from(*count)
        };
        price - covered + pods.iter().map(besides).sum::<u128>()
    }
}

/// Iterates over the set bits.
fn members(set: &[u64]) -> impl Iterator<Item = usize> + '_ {
    set.iter().enumerate().flat_map(|(word, bits)| {
        let mut left = *bits;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            left &= left.checked_sub(1)?;
            Some(word * 64 + bit)
        })
    })
}

/// Returns the candidates that still hold the node with one more pod of `class`, with their maximum capacity; `None` if there are none.
fn join(sizes: &Sizes<'_>, node: &Open, class: u32, admitted: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
    if sizes.keeps_away(node, class) {
        return None;
    }
    // Most pods do not fit, and this check needs no allocation.
    let requests = &sizes.requests[class as usize];
    let too_much = node
        .used
        .iter()
        .zip(requests)
        .zip(&node.most)
        .any(|((used, more), most)| used.checked_add(*more).is_none_or(|sum| sum > *most));
    if too_much || node.possible.iter().zip(admitted).all(|(mine, theirs)| mine & theirs == 0) {
        return None;
    }
    let after: Vec<u64> = node.used.iter().zip(requests).map(|(used, request)| used + request).collect();
    let both: Vec<u64> = node.possible.iter().zip(admitted).map(|(mine, theirs)| mine & theirs).collect();
    let mut possible = vec![0u64; both.len()];
    let mut most = vec![0u64; after.len()];
    for candidate in members(&both) {
        let room = &sizes.capacity[candidate];
        if fits(&after, room) && sizes.serves(candidate, &node.by_class, class as usize) {
            possible[candidate / 64] |= 1 << (candidate % 64);
            most.iter_mut().zip(room).for_each(|(most, room)| *most = (*most).max(*room));
        }
    }
    possible.iter().any(|word| *word > 0).then_some((possible, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Commitment, Flexibility, Limit, Topology};
    use crate::testing::{candidate, class, problem};

    /// Returns four pods of two CPUs, and nodes of four CPUs at 3, of eight at 5.
    fn four() -> Problem {
        let candidates = vec![candidate("small", 3, [4, 4, 0]), candidate("large", 5, [8, 8, 0])];
        problem(vec![class("pod", [2, 2, 0], 4, &[0, 1])], candidates)
    }

    fn costs(problem: &Problem) -> [(u64, u32); 2] {
        [Simple::one_pod_per_node(problem), Simple::first_fit(problem)]
            .map(|simple| (simple.paid(problem).0.micros(), simple.left[0]))
    }

    #[test]
    fn limits_and_stock_hold_and_pods_beyond_them_try_what_is_left() {
        assert_eq!(costs(&four()), [(12, 0), (5, 0)]);
        let mut limited = four();
        limited.candidates[0].limit_use = vec![(0, 1)];
        limited.candidates[1].limit_use = vec![(0, 2)];
        limited.limits = vec![Limit { name: "units".into(), bound: 2 }];
        assert_eq!(costs(&limited), [(6, 2), (5, 0)]);
        limited.limits[0].bound = 1;
        assert_eq!(costs(&limited), [(3, 3), (3, 2)], "first fit takes the smaller node instead");
        let mut short = four();
        short.candidates[0].max_nodes = Some(1);
        assert_eq!(costs(&short), [(18, 0), (5, 0)]);
    }

    #[test]
    fn commitments_pay_and_interruptions_and_preferences_count() {
        let mut committed = four();
        let rates = vec![(1, UsdPerHour::from_micros(4))];
        committed.commitments =
            vec![Commitment { name: "plan".into(), left: UsdPerHour::from_micros(8), rates }];
        assert_eq!(costs(&committed), [(6, 0), (0, 0)], "two large nodes are paid for");
        let mut risky = four();
        (risky.candidates[0].interruptions, risky.classes[0].at_risk) = (1_000_000, 3);
        assert_eq!(costs(&risky)[0], (20, 0), "a small node costs 3 and loses 3");
        let mut disliked = four();
        disliked.classes[0].preferences = vec![(0, UsdPerHour::from_micros(3))];
        assert_eq!(costs(&disliked)[0], (20, 0), "a pod on a small node costs 3 more");
    }

    #[test]
    fn one_pod_per_node_is_not_tried_where_the_cheapest_nodes_cost_too_much() {
        let ways = |problem: &Problem, most| {
            Simple::ways_below(problem, &counts(problem), UsdPerHour::from_micros(most)).len()
        };
        let mut problem = four();
        assert_eq!([ways(&problem, 12), ways(&problem, 13)], [1, 2]);
        let left = UsdPerHour::from_micros(8);
        problem.commitments = vec![Commitment { name: "plan".into(), left, rates: Vec::new() }];
        assert_eq!(ways(&problem, 12), 2, "a commitment may pay");
    }

    #[test]
    fn only_a_node_that_no_other_type_could_replace_is_inflexible() {
        let mut choosy = four();
        for (value, candidate) in (0..).zip(&mut choosy.candidates) {
            candidate.domains = vec![(0, value)];
        }
        choosy.topologies =
            vec![Topology { name: "type".into(), values: vec!["small".into(), "large".into()] }];
        let rule = Flexibility { name: "two types".into(), candidates: vec![0, 1], topology: 0, at_least: 2 };
        choosy.flexibility = vec![rule];
        assert!(Simple::one_pod_per_node(&choosy).is_flexible(&choosy), "a large node holds a pod, too");
        assert!(!Simple::first_fit(&choosy).is_flexible(&choosy), "no small node holds four pods");
        choosy.flexibility.clear();
        assert!(Simple::first_fit(&choosy).is_flexible(&choosy));
    }
}
