//! Improves a whole plan, node by node: empties a few nodes whose pods are worth less than the node costs, and inserts
//! these pods again where the price rises least. Each change is kept if the plan does not become dearer.
//!
//! It pays where many classes have few pods each, so that the relaxation takes too long, and for what is left after the
//! values of a relaxation were rounded.

use super::insertion::{Insertion, Rule, Words, is_simple};
use crate::canonical::Model;
use crate::large_neighbourhood::mixed;
use crate::meter::Meter;
use crate::plan::Plan;

/// The maximum number of pods of a plan to improve.
const MOST_PODS: u64 = 100_000;
/// The most nodes that one change empties.
const MOST_NODES: u64 = 3;
/// The nodes that are drawn for each node to empty: the one with the largest waste is chosen.
const DRAWN: u64 = 4;
/// The nodes that are asked, for one pod, how much their price would rise; and fewer, where changes are small and many.
const ASKED: usize = 192;
const ASKED_OFTEN: usize = 64;
/// The most pods that a node with more than [`WHOLE`] of them gives up.
const TAKEN: u64 = 12;
/// The number of pods up to which a node gives up all.
const WHOLE: u64 = 16;
/// In a fine refinement, such nodes give up at most so many pods, except in one change of this many.
const FEW: u64 = 2;
const EMPTIED: u64 = 10;
/// The nodes whose free room is compared with a pod in one unit of work.
const ROOMS_PER_UNIT: u64 = 128;
/// The nodes that are asked in one unit of work.
const ASKED_PER_UNIT: u64 = 4;

/// How to improve a plan, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refinement {
    /// The work units to spend.
    pub budget: u64,
    /// The number of changes in a row without a gain after which the search gives up.
    pub patience: u32,
    /// Whether most changes take only a few pods off a node. That finds more where prices rise in small steps, so that most nodes nearly
    /// fit their pods.
    pub is_fine: bool,
}

/// The state of a node before a change.
struct Saved {
    node: usize,
    used: Vec<u64>,
    at: usize,
    admitted: u32,
    kept_away: Words,
    pods: Vec<(u32, u32)>,
    count: u64,
    worth: f64,
}

/// A plan whose nodes change.
struct Reinsertion<'m, 'p> {
    nodes: Insertion<'m>,
    /// What a pod of each class is worth, to find nodes that hold less than they cost.
    prices: &'p [f64],
    /// The size of a pod of each class: large pods are inserted first.
    sizes: &'p [f64],
    /// By node: the sum of its pods' prices.
    worth: Vec<f64>,
    /// By node: the room left in the bin that it would be bought as; zero for empty nodes.
    room: Vec<u64>,
    /// Nodes without pods.
    empty: Vec<usize>,
    saved: Vec<Saved>,
    /// Whether most changes take only a few pods off a node.
    is_fine: bool,
    /// The source of random numbers.
    seed: u64,
    turn: u64,
    /// The work units not reported yet.
    work: u64,
}

impl Reinsertion<'_, '_> {
    fn random(&mut self, below: u64) -> u64 {
        self.turn += 1;
        mixed(self.seed ^ mixed(self.turn)) % below.max(1)
    }

    /// Remembers a node before its first change.
    fn save(&mut self, node: usize) {
        if self.saved.iter().any(|saved| saved.node == node) {
            return;
        }
        let dims = self.nodes.dims;
        self.saved.push(Saved {
            node,
            used: self.nodes.used[node * dims..(node + 1) * dims].to_vec(),
            at: self.nodes.at[node],
            admitted: self.nodes.admitted[node],
            kept_away: self.nodes.kept_away[node].clone(),
            pods: self.nodes.pods[node].clone(),
            count: self.nodes.counts[node],
            worth: self.worth[node],
        });
    }

    /// Updates the room of a node after a change.
    fn measure(&mut self, node: usize) {
        let dims = self.nodes.dims;
        let at = self.nodes.at[node];
        for dim in 0..dims {
            self.room[node * dims + dim] = if self.nodes.pods[node].is_empty() {
                0
            } else {
                self.nodes.capacity[at * dims + dim] - self.nodes.used[node * dims + dim]
            };
        }
    }

    /// Takes all pods off a node.
    fn clear(&mut self, node: usize, pods: &mut Vec<u32>) {
        self.save(node);
        let dims = self.nodes.dims;
        self.nodes.cost -= self.nodes.prices[self.nodes.at[node]];
        for (class, count) in std::mem::take(&mut self.nodes.pods[node]) {
            pods.extend(std::iter::repeat_n(class, count as usize));
        }
        self.nodes.used[node * dims..(node + 1) * dims].fill(0);
        self.nodes.at[node] = 0;
        self.nodes.kept_away[node].fill(0);
        self.nodes.counts[node] = 0;
        self.worth[node] = 0.0;
        self.measure(node);
        self.empty.push(node);
    }

    /// Takes `count` pods off a node, which must hold more.
    fn thin(&mut self, node: usize, count: u64, pods: &mut Vec<u32>) {
        self.save(node);
        let before = self.nodes.prices[self.nodes.at[node]];
        for _ in 0..count {
            let at = self.random(self.nodes.pods[node].len() as u64) as usize;
            let (class, count) = &mut self.nodes.pods[node][at];
            pods.push(*class);
            *count -= 1;
            let (class, count) = (*class, *count);
            if count == 0 {
                self.nodes.pods[node].swap_remove(at);
            }
            self.nodes.leave(node, class);
            self.worth[node] -= self.prices[class as usize];
        }
        self.nodes.settle(node);
        self.nodes.cost -= before - self.nodes.prices[self.nodes.at[node]];
        self.measure(node);
    }

    /// Opens a node for a pod.
    fn open(&mut self, class: u32) {
        if let Some(node) = self.empty.pop() {
            self.save(node);
            self.nodes.admitted[node] = self.nodes.homes[class as usize];
            self.nodes.at[node] = 0;
            self.join(node, class);
            return;
        }
        let node = self.nodes.open(class);
        self.worth.push(self.prices[class as usize]);
        self.room.extend(std::iter::repeat_n(0, self.nodes.dims));
        self.measure(node);
        let dims = self.nodes.dims;
        let kept_away = vec![0; self.nodes.kept_away[node].len()];
        self.saved.push(Saved {
            node,
            used: vec![0; dims],
            at: 0,
            admitted: self.nodes.admitted[node],
            kept_away,
            pods: Vec::new(),
            count: 0,
            worth: 0.0,
        });
    }

    fn join(&mut self, node: usize, class: u32) {
        self.save(node);
        self.nodes.join(node, class);
        self.worth[node] += self.prices[class as usize];
        self.measure(node);
    }

    /// Puts back all nodes as they were.
    fn undo(&mut self, cost: u64) {
        let dims = self.nodes.dims;
        for saved in std::mem::take(&mut self.saved) {
            let node = saved.node;
            self.nodes.used[node * dims..(node + 1) * dims].copy_from_slice(&saved.used);
            self.nodes.at[node] = saved.at;
            self.nodes.admitted[node] = saved.admitted;
            self.nodes.kept_away[node] = saved.kept_away;
            self.nodes.pods[node] = saved.pods;
            self.nodes.counts[node] = saved.count;
            self.worth[node] = saved.worth;
            self.measure(node);
        }
        self.nodes.cost = cost;
        self.empty.clear();
        self.empty.extend((0..self.nodes.at.len()).filter(|node| self.nodes.pods[*node].is_empty()));
    }

    /// Inserts a pod where the price rises least, and with the least waste among equals.
    fn insert(&mut self, class: u32) -> Option<()> {
        let (dims, all) = (self.nodes.dims, self.nodes.at.len());
        let request = self.nodes.requests(class).to_vec();
        let alone = self.nodes.prices
            [self.nodes.cheapest(self.nodes.homes[class as usize], 0, |dim| Some(request[dim]))?];
        let mut best: Option<((u64, u64), usize)> = None;
        let mut asked = 0;
        for node in 0..all {
            let room = &self.room[node * dims..(node + 1) * dims];
            if room.iter().zip(&request).any(|(room, request)| room < request)
                || self.nodes.pods[node].is_empty()
            {
                continue;
            }
            asked += 1;
            if let Some(rank) = self.nodes.rank(node, class)
                && best.is_none_or(|(known, _)| rank < known)
            {
                best = Some((rank, node));
            }
        }
        if best.is_none_or(|((rise, _), _)| rise > 0) {
            let first = self.random(all as u64) as usize;
            let most = if self.is_fine { ASKED_OFTEN } else { ASKED };
            for node in (first..all).chain(0..first).take(most) {
                if self.nodes.pods[node].is_empty() {
                    continue;
                }
                asked += 1;
                if let Some(rank) = self.nodes.rank(node, class)
                    && best.is_none_or(|(known, _)| rank < known)
                {
                    best = Some((rank, node));
                }
            }
        }
        self.work += 1 + all as u64 / ROOMS_PER_UNIT + asked / ASKED_PER_UNIT;
        match best {
            Some(((rise, _), node)) if rise <= alone => self.join(node, class),
            _ => self.open(class),
        }
        Some(())
    }

    /// Returns the part of a node's price that its pods are not worth.
    fn waste(&self, node: usize) -> f64 {
        self.nodes.prices[self.nodes.at[node]] as f64 - self.worth[node]
    }

    /// Draws a node, one with much waste; with `beside`, one that shares a bin with that node.
    fn draw(&mut self, beside: Option<usize>) -> Option<usize> {
        let all = self.nodes.at.len() as u64;
        let mut chosen: Option<(f64, usize)> = None;
        for _ in 0..DRAWN {
            let node = self.random(all) as usize;
            let related = |other: usize| {
                let set = |node: usize| &self.nodes.sets[self.nodes.admitted[node] as usize];
                set(node).iter().zip(set(other)).any(|(one, other)| one & other != 0)
            };
            if self.nodes.pods[node].is_empty()
                || beside.is_some_and(|other| node == other || !related(other))
            {
                continue;
            }
            let waste = self.waste(node);
            if chosen.is_none_or(|(most, _)| waste > most) {
                chosen = Some((waste, node));
            }
        }
        chosen.map(|(_, node)| node)
    }

    /// Tries one change. Returns whether the plan became cheaper.
    fn change(&mut self) -> bool {
        let before = self.nodes.cost;
        self.saved.clear();
        let Some(first) = self.draw(None) else { return false };
        let others = 1 + self.random(MOST_NODES);
        let mut chosen = vec![first];
        for _ in 1..others {
            chosen.extend(self.draw(Some(first)).filter(|node| !chosen.contains(node)));
        }
        let is_small = self.is_fine && self.random(EMPTIED) > 0;
        let mut pods = Vec::new();
        for node in chosen {
            let count = self.nodes.counts[node];
            let taken = if count > WHOLE {
                1 + self.random(TAKEN)
            } else if is_small {
                1 + self.random(FEW)
            } else {
                count
            };
            if taken < count {
                self.thin(node, taken, &mut pods);
                self.work += 20;
            } else {
                self.clear(node, &mut pods);
            }
        }
        self.work += 8;
        // Expensive pods first, with some chance.
        let mut order: Vec<(u64, u32)> = Vec::with_capacity(pods.len());
        for class in pods {
            let chance = 768 + self.random(512);
            order.push(((self.sizes[class as usize] * chance as f64) as u64, class));
        }
        order.sort_unstable_by(|a, b| b.cmp(a));
        for (_, class) in order {
            if self.insert(class).is_none() || self.nodes.cost > before {
                self.undo(before);
                return false;
            }
        }
        self.nodes.cost < before
    }
}

/// Improves the nodes to buy of `plan`. Returns `None` where it found nothing better, or where rules other than capacity and
/// conflicts decide.
pub(crate) fn refine(
    model: &Model,
    plan: &Plan,
    (prices, sizes): (&[f64], &[f64]),
    seed: u64,
    Refinement { budget, patience, is_fine }: Refinement,
    meter: &mut Meter<'_>,
) -> Option<Plan> {
    if !is_simple(model) || !model.commitments.is_empty() {
        return None;
    }
    let pods = |(pattern, count): (&crate::canonical::Pattern, &u64)| {
        pattern.pods.iter().map(|(_, pods)| u64::from(*pods)).sum::<u64>().saturating_mul(*count)
    };
    if plan.nodes.iter().map(pods).fold(0, u64::saturating_add) > MOST_PODS {
        return None;
    }
    let mut kept = Plan::default();
    let mut this = Reinsertion {
        nodes: Insertion::new(model, Rule::LeastPrice),
        prices,
        sizes,
        worth: Vec::new(),
        room: Vec::new(),
        empty: Vec::new(),
        saved: Vec::new(),
        is_fine,
        seed,
        turn: 0,
        work: 0,
    };
    for (pattern, count) in &plan.nodes {
        if model.bins[pattern.bin as usize].is_existing() {
            kept.add(pattern.clone(), *count);
            continue;
        }
        for _ in 0..*count {
            let mut node = None;
            for (class, pods) in &pattern.pods {
                for _ in 0..*pods {
                    match node {
                        None => {
                            this.open(*class);
                            node = Some(this.nodes.at.len() - 1);
                        }
                        Some(node) => this.join(node, *class),
                    }
                }
            }
            this.saved.clear();
        }
    }
    let before = this.nodes.cost;
    let (mut spent, mut failures) = (0, 0);
    while spent < budget && failures < patience {
        failures = if this.change() { 0 } else { failures + 1 };
        spent += this.work;
        if meter.spend(std::mem::take(&mut this.work)) {
            // A half-done change cannot be here: each is kept or undone.
            break;
        }
    }
    if this.nodes.cost >= before {
        return None;
    }
    this.nodes.nodes(&mut kept);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::Pattern;
    use crate::testing::{candidate, class, problem};
    use crate::{NeverStop, check};

    /// Returns a problem whose nodes hold a pod of each of the first two classes, and the plan with each pod on a node of its own.
    fn wasteful() -> (crate::Problem, Model, Plan) {
        let mut made = problem(
            vec![
                class("broad", [3, 1, 0], 40, &[0, 1]),
                class("tall", [1, 5, 0], 40, &[0, 1]),
                class("shy", [1, 1, 0], 15, &[0, 1]),
                class("loud", [1, 1, 0], 15, &[0, 1]),
            ],
            vec![candidate("small", 40_000, [4, 6, 0]), candidate("large", 80_000, [8, 12, 0])],
        );
        made.conflicts = vec![(2, 3)];
        let model = Model::new(&made);
        let mut plan = Plan::default();
        for (class, count) in (0u32..).zip(model.demand()) {
            plan.add(Pattern { bin: 1, pods: vec![(class, 1)] }, count);
        }
        (made, model, plan)
    }

    #[test]
    fn a_refined_plan_costs_less_keeps_all_rules_and_places_the_same_pods() {
        let (made, model, plan) = wasteful();
        let prices = crate::greedy::share(&model, &model.demand());
        let refined = |is_fine| {
            let mut signal = NeverStop;
            let mut meter = Meter::new(&mut signal, u64::MAX);
            let how = Refinement { budget: 1_000_000, patience: 500, is_fine };
            refine(&model, &plan, (&prices, &prices), 0, how, &mut meter).expect("a cheaper plan")
        };
        // Forty nodes hold a broad and a tall pod each; the rest takes at most eight more. Small changes come close to that.
        for (is_fine, nodes) in [(false, 48), (true, 52)] {
            let better = refined(is_fine);
            assert_eq!(better.placed(&model), plan.placed(&model));
            assert_eq!(check(&made, &better.solution(&made, &model, 0, crate::Stopped::WorkLimit)), Ok(()));
            assert!(better.cost(&model) <= nodes * 40_000, "{}", better.cost(&model));
            assert_eq!(better, refined(is_fine), "the same seed gives the same plan");
        }
    }

    #[test]
    fn a_plan_is_not_changed_without_work_to_spend() {
        let (_, model, plan) = wasteful();
        let prices = crate::greedy::share(&model, &model.demand());
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, 0);
        // A node per pod in the larger type costs less in the smaller one, without any change of its pods.
        let mut least = plan.clone();
        least.downgrade(&model, &mut |_| false);
        let how = Refinement { budget: 0, patience: 500, is_fine: false };
        assert!(refine(&model, &least, (&prices, &prices), 0, how, &mut meter).is_none());
    }
}
