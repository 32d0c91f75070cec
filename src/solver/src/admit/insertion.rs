//! Plans pod by pod: inserts each pod into a node whose type is not decided yet. An open node stands for all node types
//! that hold its pods. The plan buys the cheapest of them.
//!
//! Insertion is quick where many classes have few pods each and the greedy cover has too many options. It also guarantees
//! that no plan costs more than first fit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::canonical::{Bin, Model, Origin, Pattern};
use crate::plan::Plan;

/// The rule that selects the node for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The node with the fewest pods, like [`crate::baseline::first_fit`].
    FewestPods,
    /// The node whose price rises least, where a new node counts with its full price; among equals the node with the
    /// least waste.
    LeastPrice,
}

/// The order of the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// By requests: the first resource first, the largest first.
    Requests,
    /// Pods that exclude each other from a node first, since each needs its own node; then the largest share of a node
    /// first.
    Apart,
    /// The most expensive pods on a node of their own first.
    Worth,
}

/// The number of pods above which insertion takes too long.
const MOST_PODS: u64 = 100_000;

/// Replans the pods that `plan` has on new nodes; pods on existing nodes stay there. Returns `None` if rules other than
/// capacity and conflicts, or penalties, apply to a bin; if there are more than [`MOST_PODS`] pods; if the nodes come to
/// cost as much as those of `plan`; or if `stop`, which gets units of work, returns true.
pub(super) fn planned_anew(
    model: &Model,
    plan: &Plan,
    rule: Rule,
    order: Order,
    stop: &mut dyn FnMut(u64) -> bool,
) -> Option<Plan> {
    if !is_simple(model) {
        return None;
    }
    let mut kept = Plan::default();
    let mut demand = vec![0u64; model.classes.len()];
    for (pattern, count) in &plan.nodes {
        if model.bins[pattern.bin as usize].is_existing() {
            kept.add(pattern.clone(), *count);
            continue;
        }
        for (class, pods) in &pattern.pods {
            let more = u64::from(*pods).saturating_mul(*count);
            demand[*class as usize] = demand[*class as usize].saturating_add(more);
        }
    }
    if demand.iter().fold(0u64, |sum, count| sum.saturating_add(*count)) > MOST_PODS {
        return None;
    }
    // The savings by commitments are only known at the end.
    let ceiling = if model.commitments.is_empty() { plan.cost(model) } else { u64::MAX };
    let mut insertion = Insertion::new(model, rule);
    for class in insertion.order(order, &demand) {
        let nodes = insertion.at.len().min(LOOK) as u64;
        insertion.insert(class, demand[class as usize], stop)?;
        if stop(1 + (nodes + demand[class as usize] % PODS) / NODES_PER_UNIT) {
            return None;
        }
        // The cost of the nodes never falls again.
        if insertion.cost >= ceiling {
            return None;
        }
    }
    insertion.nodes(&mut kept);
    Some(kept)
}

/// Returns whether only capacity and conflicts decide what a node to buy may hold, and pods cost nothing besides it.
pub(super) fn is_simple(model: &Model) -> bool {
    let simple = |bin: &Bin| {
        bin.rules.flexible.is_empty()
            && bin.rules.gpus.is_none()
            && bin.penalties.is_empty()
            && bin.covered.is_none()
    };
    model.bins.iter().filter(|bin| !bin.is_existing()).all(simple)
}

/// A set of bins, by index in [`Insertion::bins`].
pub(super) type Words = Vec<u64>;

/// A plan in progress, whose node types are not decided yet.
pub(super) struct Insertion<'m> {
    pub(super) model: &'m Model,
    rule: Rule,
    pub(super) dims: usize,
    /// The bins to buy, by ascending price.
    pub(super) bins: Vec<u32>,
    /// Their capacity, one bin after the other.
    pub(super) capacity: Vec<u64>,
    pub(super) prices: Vec<u64>,
    /// The requests of one pod of each class, one class after the other.
    pub(super) requests: Vec<u64>,
    /// The share of one unit of each resource in the largest bin.
    scales: Vec<f64>,
    /// The distinct sets of bins: of classes, and intersections of several.
    pub(super) sets: Vec<Words>,
    /// By class: its set.
    pub(super) homes: Vec<u32>,
    /// By two sets: their intersection, once computed.
    common: Vec<Vec<u32>>,
    /// The cost of the nodes so far.
    pub(super) cost: u64,
    /// By node: the sum of its pods' requests.
    pub(super) used: Vec<u64>,
    /// By node: the index into `bins` of the cheapest bin that holds its pods.
    pub(super) at: Vec<usize>,
    /// By node: the set of bins that admit all its classes.
    pub(super) admitted: Vec<u32>,
    /// By node: excluded parties, as bits.
    pub(super) kept_away: Vec<Words>,
    /// By node: its pods, in order of arrival.
    pub(super) pods: Vec<Vec<(u32, u32)>>,
    pub(super) counts: Vec<u64>,
    /// The nodes by number of pods, for [`Rule::FewestPods`].
    by_count: BTreeSet<(u64, usize)>,
    /// The node at which the next examination starts.
    turn: usize,
}

/// The maximum number of nodes examined for the pods of a class; each class examines others. Examining all would take
/// time quadratic in the number of pods.
const LOOK: usize = 1_024;
/// The nodes that are examined in one unit of work, and the pods that get a node in one.
const NODES_PER_UNIT: u64 = 4;
/// The pods of one class between two stop checks.
const PODS: u64 = 1_024;
/// The intersection is not computed yet.
const UNKNOWN: u32 = u32::MAX;

impl<'m> Insertion<'m> {
    pub(super) fn new(model: &'m Model, rule: Rule) -> Self {
        let to_buy = |bin: &u32| matches!(model.bins[*bin as usize].origin, Origin::Candidate(_));
        let mut bins: Vec<u32> = (0..model.bins.len() as u32).filter(to_buy).collect();
        bins.sort_by_key(|bin| (model.bins[*bin as usize].price, *bin));
        let mut position = vec![usize::MAX; model.bins.len()];
        bins.iter().enumerate().for_each(|(at, bin)| position[*bin as usize] = at);
        let words = bins.len().div_ceil(64);
        let mut known = BTreeMap::new();
        let mut sets: Vec<Words> = Vec::new();
        let homes = model
            .classes
            .iter()
            .map(|class| {
                *known.entry(class.bins.as_slice()).or_insert_with(|| {
                    let mut set = vec![0u64; words];
                    let at = |bin: &u32| position[*bin as usize];
                    for at in class.bins.iter().map(at).filter(|at| *at != usize::MAX) {
                        set[at / 64] |= 1 << (at % 64);
                    }
                    sets.push(set);
                    sets.len() as u32 - 1
                })
            })
            .collect();
        let each = |bin: &u32| model.bins[*bin as usize].capacity.iter().copied();
        let capacity: Vec<u64> = bins.iter().flat_map(each).collect();
        let most =
            |dim: usize| capacity.iter().skip(dim).step_by(model.dims.max(1)).max().copied().unwrap_or(0);
        Self {
            model,
            rule,
            dims: model.dims,
            scales: (0..model.dims).map(|dim| 1.0 / most(dim).max(1) as f64).collect(),
            prices: bins.iter().map(|bin| model.bins[*bin as usize].price).collect(),
            requests: model.classes.iter().flat_map(|class| class.requests.iter().copied()).collect(),
            bins,
            capacity,
            common: vec![Vec::new(); sets.len()],
            sets,
            homes,
            cost: 0,
            used: Vec::new(),
            at: Vec::new(),
            admitted: Vec::new(),
            kept_away: Vec::new(),
            pods: Vec::new(),
            counts: Vec::new(),
            by_count: BTreeSet::new(),
            turn: 0,
        }
    }

    /// Returns the classes with demand, in insertion order.
    fn order(&self, order: Order, demand: &[u64]) -> Vec<u32> {
        let classes = (0..self.model.classes.len() as u32).filter(|class| demand[*class as usize] > 0);
        let size = |class: u32| self.model.classes[class as usize].requests.as_slice();
        let mut sorted: Vec<_> = classes
            .map(|class| {
                let empty = self.requests(class);
                let alone = self.cheapest(self.homes[class as usize], 0, |dim| Some(empty[dim]));
                let alone = alone.map_or(0, |at| self.prices[at]);
                let spread = self.model.classes[class as usize].per_node == 1;
                let share: f64 =
                    empty.iter().zip(&self.scales).map(|(request, scale)| *request as f64 * scale).sum();
                let share = (share * 1e9) as u64;
                let (first, then) = match order {
                    Order::Requests => (0, 0),
                    Order::Apart => (u64::from(spread), share),
                    Order::Worth => (alone, share),
                };
                (Reverse(first), Reverse(then), Reverse(size(class)), class)
            })
            .collect();
        sorted.sort_unstable();
        sorted.into_iter().map(|(.., class)| class).collect()
    }

    pub(super) fn requests(&self, class: u32) -> &[u64] {
        &self.requests[class as usize * self.dims..][..self.dims]
    }

    /// Returns the cheapest bin of a set, from index `from` on, that holds `used` of each resource. `None` from `used`
    /// means an amount that exceeds every bin.
    pub(super) fn cheapest(
        &self,
        set: u32,
        from: usize,
        used: impl Fn(usize) -> Option<u64>,
    ) -> Option<usize> {
        let set = &self.sets[set as usize];
        let (mut word, mut mask) = (from / 64, u64::MAX << (from % 64));
        while let Some(bits) = set.get(word) {
            let mut bits = bits & mask;
            while bits != 0 {
                let at = word * 64 + bits.trailing_zeros() as usize;
                let room = &self.capacity[at * self.dims..][..self.dims];
                if room.iter().enumerate().all(|(dim, room)| used(dim).is_some_and(|used| used <= *room)) {
                    return Some(at);
                }
                bits &= bits - 1;
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        None
    }

    /// Returns the intersection of two sets of bins.
    pub(super) fn both(&mut self, one: u32, other: u32) -> u32 {
        if one == other {
            return one;
        }
        let row = &mut self.common[one as usize];
        if row.len() <= other as usize {
            row.resize(other as usize + 1, UNKNOWN);
        }
        if row[other as usize] == UNKNOWN {
            let (mine, theirs) = (&self.sets[one as usize], &self.sets[other as usize]);
            let both: Words = mine.iter().zip(theirs).map(|(mine, theirs)| mine & theirs).collect();
            let at = self.sets.iter().position(|set| *set == both).unwrap_or_else(|| {
                self.sets.push(both);
                self.common.push(Vec::new());
                self.sets.len() - 1
            });
            self.common[one as usize][other as usize] = at as u32;
        }
        self.common[one as usize][other as usize]
    }

    /// Returns the node's set of bins and the cheapest of them after one more pod of a class; `None` if the pod may not
    /// join.
    fn joined(&mut self, node: usize, class: u32) -> Option<(u32, usize)> {
        let wanted = &self.model.classes[class as usize];
        let party = wanted.party as usize;
        let is_full = match self.pods[node].iter().rev().find(|(known, _)| *known == class) {
            Some((_, count)) => *count >= wanted.per_node,
            None => self.kept_away[node][party / 64] >> (party % 64) & 1 == 1,
        };
        if is_full {
            return None;
        }
        let set = self.both(self.homes[class as usize], self.admitted[node]);
        let used = &self.used[node * self.dims..][..self.dims];
        let requests = self.requests(class);
        Some((set, self.cheapest(set, self.at[node], |dim| used[dim].checked_add(requests[dim]))?))
    }

    /// Returns how much a node leaves unused as the bin at `at`, with one more pod of `class`.
    fn waste(&self, node: usize, class: u32, at: usize) -> f64 {
        let used = &self.used[node * self.dims..][..self.dims];
        let room = &self.capacity[at * self.dims..][..self.dims];
        let each = room.iter().zip(used).zip(self.requests(class)).zip(&self.scales);
        each.map(|(((room, used), request), scale)| (room - used - request) as f64 * scale).sum()
    }

    /// Returns the increase in a node's price by one more pod of a class, and the node's waste then: less is better.
    /// Returns `None` if the pod may not join.
    pub(super) fn rank(&mut self, node: usize, class: u32) -> Option<(u64, u64)> {
        let (_, at) = self.joined(node, class)?;
        let waste = (self.waste(node, class, at) * 1e12) as u64;
        Some((self.prices[at] - self.prices[self.at[node]], waste))
    }

    pub(super) fn join(&mut self, node: usize, class: u32) {
        let Some((set, at)) = self.joined(node, class) else { return };
        let before = if self.pods[node].is_empty() { 0 } else { self.prices[self.at[node]] };
        self.cost = self.cost.saturating_add(self.prices[at] - before);
        let (from, dims) = (class as usize * self.dims, self.dims);
        for dim in 0..dims {
            self.used[node * dims + dim] += self.requests[from + dim];
        }
        (self.admitted[node], self.at[node]) = (set, at);
        if self.rule == Rule::FewestPods {
            self.by_count.remove(&(self.counts[node], node));
            self.by_count.insert((self.counts[node] + 1, node));
        }
        self.counts[node] += 1;
        if let Some((_, count)) = self.pods[node].iter_mut().rev().find(|(known, _)| *known == class) {
            *count += 1;
        } else {
            self.pods[node].push((class, 1));
            let party = self.model.classes[class as usize].party;
            for other in &self.model.apart[party as usize] {
                self.kept_away[node][*other as usize / 64] |= 1 << (other % 64);
            }
        }
    }

    /// Gives back the room of a pod that left a node. [`Self::settle`] follows.
    pub(super) fn leave(&mut self, node: usize, class: u32) {
        for dim in 0..self.dims {
            self.used[node * self.dims + dim] -= self.requests[class as usize * self.dims + dim];
        }
        self.counts[node] -= 1;
    }

    /// Finds out again what a node with pods may hold, and the cheapest bin for it, after some pods left it.
    pub(super) fn settle(&mut self, node: usize) {
        let classes: Vec<u32> = self.pods[node].iter().map(|(class, _)| *class).collect();
        self.kept_away[node].fill(0);
        let mut set = None;
        for class in classes {
            let home = self.homes[class as usize];
            set = Some(set.map_or(home, |set| self.both(set, home)));
            for other in &self.model.apart[self.model.classes[class as usize].party as usize] {
                self.kept_away[node][*other as usize / 64] |= 1 << (other % 64);
            }
        }
        let Some(set) = set else { return };
        self.admitted[node] = set;
        let used = &self.used[node * self.dims..][..self.dims];
        if let Some(at) = self.cheapest(set, 0, |dim| Some(used[dim])) {
            self.at[node] = at;
        }
    }

    pub(super) fn open(&mut self, class: u32) -> usize {
        let node = self.at.len();
        let words = self.model.apart.len().div_ceil(64);
        self.used.extend(std::iter::repeat_n(0, self.dims));
        self.at.push(0);
        self.admitted.push(self.homes[class as usize]);
        self.kept_away.push(vec![0; words]);
        self.pods.push(Vec::new());
        self.counts.push(0);
        self.join(node, class);
        node
    }

    /// Finds a node for each of `count` pods of a class. Returns `None` where no bin to buy holds one, or when `stop` returns true.
    fn insert(&mut self, class: u32, count: u64, stop: &mut dyn FnMut(u64) -> bool) -> Option<()> {
        let requests = self.requests(class);
        let alone = self.prices[self.cheapest(self.homes[class as usize], 0, |dim| Some(requests[dim]))?];
        match self.rule {
            Rule::FewestPods => self.insert_where_fewest_are(class, count, stop),
            Rule::LeastPrice => self.insert_where_it_costs_least(class, count, alone, stop),
        }
    }

    fn insert_where_fewest_are(
        &mut self,
        class: u32,
        count: u64,
        stop: &mut dyn FnMut(u64) -> bool,
    ) -> Option<()> {
        // A node that refused one pod of a class refuses the next. So all nodes before `from` refuse, except those opened
        // since then.
        let mut from = (0, 0);
        let mut opened: BTreeSet<(u64, usize)> = BTreeSet::new();
        for number in 1..=count {
            if number.is_multiple_of(PODS) && stop(PODS / NODES_PER_UNIT) {
                return None;
            }
            let of_others = loop {
                let Some(next) = self.by_count.range(from..).next().copied() else { break None };
                if self.joined(next.1, class).is_some() {
                    break Some(next);
                }
                from = (next.0, next.1 + 1);
            };
            let own = loop {
                let Some(next) = opened.first().copied() else { break None };
                if self.joined(next.1, class).is_some() {
                    break Some(next);
                }
                opened.remove(&next);
            };
            if let Some((pods, node)) = of_others.into_iter().chain(own).min() {
                self.join(node, class);
                if opened.remove(&(pods, node)) {
                    opened.insert((pods + 1, node));
                }
            } else {
                opened.insert((1, self.open(class)));
            }
        }
        Some(())
    }

    fn insert_where_it_costs_least(
        &mut self,
        class: u32,
        count: u64,
        alone: u64,
        stop: &mut dyn FnMut(u64) -> bool,
    ) -> Option<()> {
        let (nodes, first) = (self.at.len(), self.turn);
        let looked_at = nodes.min(LOOK);
        self.turn += looked_at;
        let mut heap: BinaryHeap<Reverse<((u64, u64), usize)>> = (first..first + looked_at)
            .map(|at| at % nodes)
            .filter_map(|node| Some(Reverse((self.rank(node, class)?, node))))
            .collect();
        for number in 1..=count {
            if number.is_multiple_of(PODS) && stop(PODS / NODES_PER_UNIT) {
                return None;
            }
            let node = match heap.pop() {
                Some(Reverse(((price, _), node))) if price <= alone => {
                    self.join(node, class);
                    node
                }
                other => {
                    heap.extend(other);
                    self.open(class)
                }
            };
            if let Some(rank) = self.rank(node, class) {
                heap.push(Reverse((rank, node)));
            }
        }
        Some(())
    }

    /// Adds the nodes to a plan.
    pub(super) fn nodes(self, plan: &mut Plan) {
        for (mut pods, at) in self.pods.into_iter().zip(self.at) {
            pods.sort_unstable();
            plan.add(Pattern { bin: self.bins[at], pods }, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{candidate, class, problem};
    use crate::{admit, baseline, check};

    fn mixed(apart: bool) -> crate::Problem {
        let all = [0, 1, 2];
        let mut made = problem(
            vec![
                class("large", [5, 2, 0], 7, &all),
                class("tall", [1, 6, 0], 9, &all),
                class("small", [2, 1, 0], 11, &all),
                class("tiny", [1, 1, 0], 30, &all),
            ],
            vec![
                candidate("4", 40_000, [4, 8, 0]),
                candidate("8", 80_000, [8, 16, 0]),
                candidate("16", 160_000, [16, 32, 0]),
            ],
        );
        made.classes[1].max_per_node = Some(1);
        if apart {
            made.conflicts = vec![(0, 1), (2, 3)];
        }
        made
    }

    fn alone(model: &Model, plan: &Plan) -> Plan {
        let mut alone = Plan::default();
        for (class, count) in (0..).zip(plan.placed(model)) {
            alone.add(Pattern { bin: 2, pods: vec![(class, 1)] }, count);
        }
        alone
    }

    #[test]
    fn a_plan_by_insertion_keeps_all_rules_and_places_what_it_was_given() {
        for made in [mixed(false), mixed(true)] {
            let model = Model::new(&made);
            let first = admit::plan(&model);
            // With each pod alone, every other plan is cheaper.
            let alone = alone(&model, &first);
            for rule in [Rule::FewestPods, Rule::LeastPrice] {
                for order in [Order::Requests, Order::Apart, Order::Worth] {
                    let plan = planned_anew(&model, &alone, rule, order, &mut |_| false)
                        .expect("nothing but capacity and conflicts");
                    assert_eq!(plan.placed(&model), first.placed(&model));
                    let solution = plan.solution(&made, &model, 0, crate::Stopped::WorkLimit);
                    assert_eq!(check(&made, &solution), Ok(()));
                }
            }
        }
    }

    #[test]
    fn no_first_plan_is_dearer_than_first_fit() {
        for made in [mixed(false), mixed(true)] {
            let model = Model::new(&made);
            assert!(admit::plan(&model).cost(&model) <= baseline::first_fit(&made).micros());
        }
    }
}
