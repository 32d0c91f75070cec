//! The steps from the current nodes to the planned ones.
//!
//! Pods move only to new nodes and to nodes that stay. So no step waits for another to free its room, and at any time
//! every node holds a subset of its final pods. Nodes with the highest estimated saving per moved pod are emptied first.
//! Pods of a class are interchangeable, so a node's pods first take places on nodes that an earlier step launched.

use std::collections::BTreeMap;

use poolwright_catalog::UsdPerHour;

use super::cluster::Cluster;
use crate::problem::Problem;
use crate::solution::{Move, MoveTarget, Solution, Step};

/// A step with its saving, which may be negative.
#[derive(Clone, Debug)]
pub(super) struct Priced {
    pub step: Step,
    pub saving: i128,
}

/// Returns the cost of new nodes: `counts` by candidate.
pub(super) fn paid(problem: &Problem, counts: &[u64]) -> u128 {
    let mut micros: u128 = counts
        .iter()
        .zip(&problem.candidates)
        .map(|(count, candidate)| u128::from(*count) * u128::from(candidate.price.micros()))
        .sum();
    for commitment in &problem.commitments {
        // The best discount first; the last node may be covered in part.
        let mut rates: Vec<(u64, u64, u64)> = commitment
            .rates
            .iter()
            .map(|(candidate, rate)| {
                let price = problem.candidates[*candidate as usize].price.micros();
                (price, rate.micros(), counts[*candidate as usize])
            })
            .filter(|(_, _, count)| *count > 0)
            .collect();
        rates.sort_by(|a, b| (u128::from(b.0) * u128::from(a.1)).cmp(&(u128::from(a.0) * u128::from(b.1))));
        let mut left = u128::from(commitment.left.micros());
        for (price, rate, count) in rates {
            let (price, rate) = (u128::from(price), u128::from(rate));
            let used = left.min(rate * u128::from(count));
            left -= used;
            micros = micros.saturating_sub(price * used / rate);
        }
    }
    micros
}

/// The places that pods can take now, by class.
type Open = Vec<Vec<(MoveTarget, u32)>>;

struct Planner<'a> {
    cluster: &'a Cluster<'a>,
    solution: &'a Solution,
    prices: &'a [f64],
    open: Open,
    /// By class: the number of open places.
    places: Vec<u64>,
    /// By group of new nodes: the number of launched nodes.
    launched: Vec<u32>,
    /// By class: the groups that hold it.
    groups: Vec<Vec<u32>>,
}

/// The emptying of one node.
struct Unit {
    /// The new nodes that are launched for it: (group, number).
    launch: Vec<(u32, u32)>,
    /// The moves with their counts; the count in the key is zero.
    moves: BTreeMap<Move, u32>,
    node: u32,
}

impl Planner<'_> {
    /// Returns the saving per moved pod of emptying `node` now. Open places are free.
    fn ratio(&self, node: u32) -> f64 {
        let known = &self.cluster.nodes[node as usize];
        let missing: f64 = known
            .pods
            .iter()
            .map(|(class, count)| {
                let missing = u64::from(*count).saturating_sub(self.places[*class as usize]);
                if missing == 0 { 0.0 } else { self.prices[*class as usize] * missing as f64 }
            })
            .sum();
        (known.price as f64 - known.drain as f64 - missing) / (known.evictions as f64 + 0.01)
    }

    /// Returns the group whose next node serves `missing` best.
    fn best_group(&self, class: u32, missing: &BTreeMap<u32, u64>) -> Option<u32> {
        let mut best: Option<(f64, u32)> = None;
        for &group in &self.groups[class as usize] {
            let nodes = &self.solution.new_nodes[group as usize];
            if self.launched[group as usize] >= nodes.count {
                continue;
            }
            let mut served = 0.0;
            let mut whole = 0.0;
            for (other, count) in &nodes.pods {
                let price = self.prices[*other as usize].min(1e15);
                whole += price * f64::from(*count);
                let wanted = missing.get(other).copied().unwrap_or(0);
                served += price * u64::from(*count).min(wanted) as f64;
            }
            let share = served / f64::max(whole, 1.0);
            if best.is_none_or(|(most, _)| share > most) {
                best = Some((share, group));
            }
        }
        best.map(|(_, group)| group)
    }

    fn launch(&mut self, group: u32) -> (u32, u32) {
        let nodes = &self.solution.new_nodes[group as usize];
        let instance = self.launched[group as usize];
        self.launched[group as usize] += 1;
        for (class, count) in &nodes.pods {
            self.open[*class as usize].push((MoveTarget::New(group, instance), *count));
            self.places[*class as usize] += u64::from(*count);
        }
        (group, instance)
    }

    /// Empties `node`.
    fn unit(&mut self, node: u32) -> Unit {
        let cluster = self.cluster;
        let pods = &cluster.nodes[node as usize].pods;
        let mut unit = Unit { launch: Vec::new(), moves: BTreeMap::new(), node };
        let mut missing: BTreeMap<u32, u64> = BTreeMap::new();
        for (class, count) in pods {
            let lacking = u64::from(*count).saturating_sub(self.places[*class as usize]);
            if lacking > 0 {
                missing.insert(*class, lacking);
            }
        }
        while let Some((&class, _)) = missing.first_key_value() {
            let Some(group) = self.best_group(class, &missing) else {
                missing.remove(&class);
                continue;
            };
            let launched = self.launch(group);
            unit.launch.push(launched);
            for (class, count) in &self.solution.new_nodes[group as usize].pods {
                if let Some(lacking) = missing.get_mut(class) {
                    *lacking = lacking.saturating_sub(u64::from(*count));
                    if *lacking == 0 {
                        missing.remove(class);
                    }
                }
            }
        }
        for (class, count) in pods {
            let mut left = *count;
            let open = &mut self.open[*class as usize];
            while left > 0
                && let Some((to, free)) = open.last_mut()
            {
                let taken = left.min(*free);
                let key = Move { from: node, to: *to, class: *class, count: 0 };
                *unit.moves.entry(key).or_default() += taken;
                left -= taken;
                *free -= taken;
                self.places[*class as usize] -= u64::from(taken);
                if *free == 0 {
                    open.pop();
                }
            }
        }
        unit
    }
}

/// Returns the steps that lead to `solution`. `prices` by class guide the order.
pub(super) fn steps(cluster: &Cluster<'_>, solution: &Solution, prices: &[f64]) -> Vec<Priced> {
    let classes = cluster.problem.classes.len();
    let mut planner = Planner {
        cluster,
        solution,
        prices,
        open: vec![Vec::new(); classes],
        places: vec![0; classes],
        launched: vec![0; solution.new_nodes.len()],
        groups: vec![Vec::new(); classes],
    };
    for used in &solution.on_existing {
        for (class, count) in &used.pods {
            planner.open[*class as usize].push((MoveTarget::Existing(used.node), *count));
            planner.places[*class as usize] += u64::from(*count);
        }
    }
    for (group, nodes) in solution.new_nodes.iter().enumerate() {
        for (class, _) in &nodes.pods {
            planner.groups[*class as usize].push(group as u32);
        }
    }
    let mut left = solution.removed.clone();
    let mut units = Vec::with_capacity(left.len());
    while let Some(at) = left
        .iter()
        .enumerate()
        .max_by(|(_, a), (_, b)| planner.ratio(**a).total_cmp(&planner.ratio(**b)).then(b.cmp(a)))
        .map(|(at, _)| at)
    {
        let node = left.remove(at);
        units.push(planner.unit(node));
    }
    merge(cluster, solution, &units, &planner.launched)
}

/// Merges units that save nothing alone with the ones that they make room for.
fn merge(cluster: &Cluster<'_>, solution: &Solution, units: &[Unit], launched: &[u32]) -> Vec<Priced> {
    let problem = cluster.problem;
    let mut counts = vec![0u64; problem.candidates.len()];
    for (group, nodes) in solution.new_nodes.iter().enumerate() {
        counts[nodes.candidate as usize] += u64::from(nodes.count - launched[group]);
    }
    let mut before = paid(problem, &counts);
    let mut steps: Vec<Priced> = Vec::new();
    let mut open: Option<Priced> = None;
    for unit in units {
        let mut launch: BTreeMap<u32, u32> = BTreeMap::new();
        for (group, _) in &unit.launch {
            *launch.entry(*group).or_default() += 1;
            counts[solution.new_nodes[*group as usize].candidate as usize] += 1;
        }
        let after = paid(problem, &counts);
        let saved = i128::from(cluster.nodes[unit.node as usize].price) + before as i128 - after as i128;
        before = after;
        let mine = Priced {
            step: Step {
                launch: launch.into_iter().collect(),
                moves: unit.moves.iter().map(|(key, count)| Move { count: *count, ..*key }).collect(),
                remove: vec![unit.node],
                saving: None,
                evictions: cluster.nodes[unit.node as usize].evictions as u32,
            },
            saving: saved,
        };
        let step = match open.take() {
            Some(first) => join(first, mine),
            None => mine,
        };
        // A node share may be exceeded on the way if the nodes that balance it launch later.
        if step.saving > 0 && shares_hold(problem, &counts) {
            steps.push(step);
        } else {
            open = Some(step);
        }
    }
    if let Some(rest) = open {
        let last = match steps.pop() {
            Some(last) => join(last, rest),
            None => rest,
        };
        steps.push(last);
    }
    for Priced { step, saving } in &mut steps {
        step.saving = u64::try_from(*saving).ok().filter(|saving| *saving > 0).map(UsdPerHour::from_micros);
    }
    steps
}

fn join(first: Priced, second: Priced) -> Priced {
    let mut launch: BTreeMap<u32, u32> = first.step.launch.into_iter().collect();
    for (group, count) in second.step.launch {
        *launch.entry(group).or_default() += count;
    }
    let mut moves = first.step.moves;
    moves.extend(second.step.moves);
    moves.sort();
    let mut remove = first.step.remove;
    remove.extend(second.step.remove);
    remove.sort_unstable();
    Priced {
        step: Step {
            launch: launch.into_iter().collect(),
            moves,
            remove,
            saving: None,
            evictions: first.step.evictions + second.step.evictions,
        },
        saving: first.saving + second.saving,
    }
}

/// Returns whether the node shares hold.
fn shares_hold(problem: &Problem, counts: &[u64]) -> bool {
    problem.node_shares.iter().all(|share| {
        let sum =
            |list: &[u32]| list.iter().map(|candidate| i128::from(counts[*candidate as usize])).sum::<i128>();
        1000 * sum(&share.part) - i128::from(share.at_most_permille) * sum(&share.of) <= share.spare()
    })
}
