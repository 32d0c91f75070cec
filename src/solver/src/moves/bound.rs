//! The lower bound of a consolidation, for all choices of nodes.
//!
//! Take prices `pi` of pods that no new node contradicts. A removable node that stays costs its price, and saves the
//! price of its own pods and of the best pattern of its free room. A removed node costs its disruption, plus `w` for each
//! eviction, for any `w >= 0`, where `E` evictions are allowed. So every plan costs at least `pi . all pods + sum over
//! nodes min(disruption + w evictions, price - worth) - w E`, minus the worth of free room elsewhere. Prices may be
//! scaled down by any factor, which helps where there is more free room than pods for it.

use super::cluster::Cluster;
use crate::canonical::{Model, Origin};
use crate::dual_bound::{Ceiling, Certificate, Prices};
use crate::knapsack::Effort;
use crate::meter::Meter;
use crate::pricing::{Priced, Pricer};
use crate::problem::{DisruptionBudget, Problem};
use crate::stages::{SearchStage, Stages};
use crate::units::UNITS;

/// The number of price scales.
const SCALE: i128 = 64;

/// A removable node: its price, its removal cost, its evictions, and its worth, in value units.
struct Term {
    price: i128,
    drain: i128,
    evictions: i128,
    worth: i128,
}

/// Returns a lower bound for plans that place all running pods and `placed` of the waiting ones, in micro-dollars.
/// `prices` are any prices by class.
pub(super) fn bound(
    cluster: &Cluster<'_>,
    placed: &[u64],
    prices: &[f64],
    stages: Stages,
    meter: &mut Meter<'_>,
) -> u64 {
    let problem = relaxed(cluster, placed);
    let Some(model) = Model::until(&problem, stages, &mut |units| meter.tick(units)) else { return 0 };
    let demand = model.demand();
    let pods: Vec<f64> = model
        .classes
        .iter()
        .map(|class| {
            let price = class.members.first().map_or(0.0, |(member, _)| prices[*member as usize]);
            if price.is_finite() { price } else { 0.0 }
        })
        .collect();
    let given = Prices::new(&model, &pods, &vec![0.0; model.bins.len()], &vec![0.0; model.limits.len()]);
    let Some(mut pricer) = Pricer::until(&model, 0, &mut |units| meter.tick(units)) else { return 0 };
    let tasks: Vec<(u64, Effort)> = model
        .bins
        .iter()
        .enumerate()
        .map(|(index, bin)| {
            if bin.is_existing() {
                (0, Effort { bits: 6, nodes: 100 })
            } else {
                (given.charge(&model, index), Effort { bits: 9, nodes: 4_000 })
            }
        })
        .collect();
    let all = pricer.price_all(&given.pods, &demand, &tasks, meter);
    if meter.spend(all.iter().map(|priced| priced.work).sum()) {
        return 0;
    }
    let uppers: Vec<u64> = all.iter().map(|priced| priced.upper).collect();
    let ceiling = |(priced, (charge, _)): (&Priced, &(u64, Effort))| {
        Ceiling::new(priced.upper, *charge, priced.known())
    };
    let mut certified: Vec<Ceiling> = all.iter().zip(&tasks).map(ceiling).collect();
    for (ceiling, bin) in certified.iter_mut().zip(&model.bins) {
        if bin.is_existing() {
            ceiling.upper = 0;
        }
    }
    let certificate = Certificate::new(&model, &given, &certified);
    let mut by_class = vec![0i128; problem.classes.len()];
    let mut worth = 0i128;
    for (index, class) in model.classes.iter().enumerate() {
        let price = i128::from(certificate.price(index));
        worth += price * i128::from(class.demand);
        class.members.iter().for_each(|(member, _)| by_class[*member as usize] = price);
    }
    let mut extra = vec![0i128; cluster.nodes.len()];
    for (bin, upper) in model.bins.iter().zip(&uppers) {
        if let Origin::Existing(nodes) = &bin.origin {
            for node in nodes {
                extra[*node as usize] = i128::from(*upper);
            }
        }
    }
    let mut terms = Vec::new();
    for (index, node) in cluster.nodes.iter().enumerate() {
        if cluster.problem.existing[index].removal.is_none() {
            worth -= extra[index];
            continue;
        }
        let own: i128 =
            node.pods.iter().map(|(class, count)| by_class[*class as usize] * i128::from(*count)).sum();
        terms.push(Term {
            price: i128::from(node.price) * i128::from(UNITS),
            drain: i128::from(node.drain) * i128::from(UNITS),
            evictions: i128::from(node.evictions),
            worth: own + extra[index],
        });
    }
    let budget = &cluster.problem.disruption;
    let (most_pods, most_nodes) = (budget.evictions.map(i128::from), budget.nodes.map(i128::from));
    let total: i128 = terms.iter().map(|term| term.price).sum();
    let mut best = 0;
    let first = if stages.has(SearchStage::MoveScales) { 0 } else { SCALE };
    for scale in first..=SCALE {
        // In fractions of a value unit, so that only the end result is rounded.
        let at = |per_pod: i128, per_node: i128| -> i128 {
            let nodes: i128 = terms
                .iter()
                .map(|term| {
                    let goes = term.drain + per_pod * term.evictions + per_node;
                    (goes * SCALE).min(term.price * SCALE - term.worth * scale)
                })
                .sum();
            let budget = per_pod * most_pods.unwrap_or(0) + per_node * most_nodes.unwrap_or(0);
            worth * scale + nodes - budget * SCALE
        };
        best = best.max(at(0, 0));
        if most_pods.is_some() && stages.has(SearchStage::MoveWeights) {
            best = best.max(climb(total, |weight| at(weight, 0)));
        }
        if most_nodes.is_some() && stages.has(SearchStage::MoveWeights) {
            best = best.max(climb(total, |weight| at(0, weight)));
        }
        if meter.spend(terms.len() as u64) {
            break;
        }
    }
    let paid = certificate.paid().saturating_mul(SCALE);
    // An objective is a whole number of micro-dollars.
    let units = u128::try_from(best.saturating_sub(paid)).unwrap_or(0);
    u64::try_from(units.div_ceil(u128::from(UNITS) * SCALE as u128)).unwrap_or(u64::MAX)
}

/// Returns the maximum of a concave function of one weight from zero to `most`.
fn climb(most: i128, value: impl Fn(i128) -> i128) -> i128 {
    let (mut low, mut high) = (0, most);
    let mut best = 0;
    for _ in 0..40 {
        if high - low < 3 {
            break;
        }
        let (left, right) = (low + (high - low) / 3, high - (high - low) / 3);
        let (at_left, at_right) = (value(left), value(right));
        best = best.max(at_left).max(at_right);
        if at_left < at_right { low = left } else { high = right }
    }
    best
}

/// Returns a problem with all pods and all nodes, and with the rules that the bound needs. Leaving out rules only lowers
/// the bound.
fn relaxed(cluster: &Cluster<'_>, placed: &[u64]) -> Problem {
    let given = cluster.problem;
    let mut relaxed = Problem {
        resources: given.resources.clone(),
        classes: given.classes.clone(),
        candidates: given.candidates.clone(),
        existing: given.existing.clone(),
        limits: given.limits.clone(),
        commitments: given.commitments.clone(),
        disruption: DisruptionBudget::default(),
        ..Problem::default()
    };
    for (class, waiting) in relaxed.classes.iter_mut().zip(placed) {
        class.count = u32::try_from(*waiting).unwrap_or(u32::MAX);
        class.ports.clear();
    }
    for candidate in &mut relaxed.candidates {
        candidate.domains.clear();
    }
    for node in &mut relaxed.existing {
        node.domains.clear();
        if let Some(removal) = node.removal.take() {
            for (class, count) in removal.pods {
                let class = &mut relaxed.classes[class as usize];
                class.count = class.count.saturating_add(count);
            }
        }
    }
    relaxed
}
