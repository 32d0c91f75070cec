//! The plan that is always there within milliseconds: a cover greedy on the pods' reservation prices.
//!
//! A pod's value is the least it can cost on a node of its own kind. Each step opens the bin whose filling is worth most
//! per dollar, as often as the demand allows. Free room on existing nodes comes first, since it costs nothing.

use crate::canonical::{Model, Row};
use crate::content::Content;
use crate::plan::{Pattern, Plan, Stock};

/// How pods are valued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// The cheapest node that holds the pod.
    Alone,
    /// The pod's share of the node that holds many such pods at the least price each.
    Share,
}

/// The better of several cover greedies. Places every pod if any of them does.
pub(crate) fn plan(model: &Model, demand: &[u64]) -> Plan {
    let mut best: Option<Plan> = None;
    for value in [Value::Alone, Value::Share] {
        let values = values(model, demand, value);
        for penalty in [0, 1, 4] {
            if penalty > 0 && model.rows.iter().all(|row| !matches!(row, Row::Limit(_))) {
                break;
            }
            let mut plan = cover(model, demand, &values, penalty);
            if plan.missing(model, demand).iter().any(|left| *left > 0) {
                plan = by_priority(model, demand, &values, penalty);
            }
            if best.as_ref().is_none_or(|best| plan.compare(best, model).is_lt()) {
                best = Some(plan);
            }
        }
    }
    best.unwrap_or_default()
}

/// Highest priority first; each level may use the room that the levels above left.
fn by_priority(model: &Model, demand: &[u64], values: &[f64], penalty: u64) -> Plan {
    let mut levels: Vec<i32> = model.classes.iter().map(|class| class.priority).collect();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    let mut plan = Plan::default();
    for level in levels {
        let mut left: Vec<u64> = model
            .classes
            .iter()
            .zip(demand)
            .map(|(class, count)| if class.priority == level { *count } else { 0 })
            .collect();
        plan.fill(model, &mut left, &by_value(values));
        let stock = Stock::after(model, &plan);
        extend(model, &mut plan, left, stock, values, penalty);
    }
    plan.downgrade(model);
    plan
}

/// One cover of the whole demand.
fn cover(model: &Model, demand: &[u64], values: &[f64], penalty: u64) -> Plan {
    let mut plan = Plan::default();
    extend(model, &mut plan, demand.to_vec(), Stock::full(model), values, penalty);
    plan.downgrade(model);
    plan
}

/// Places as many pods of `left` as `stock` allows by values given from outside, such as the duals of a relaxation.
/// Returns what could not be placed.
pub(crate) fn complete(model: &Model, plan: &mut Plan, left: Vec<u64>, values: &[f64]) -> Vec<u64> {
    let stock = Stock::after(model, plan);
    extend(model, plan, left, stock, values, 0)
}

/// Classes by falling value.
pub(crate) fn by_value(values: &[f64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_by(|a, b| values[*b as usize].total_cmp(&values[*a as usize]).then(a.cmp(b)));
    order
}

/// What a pod of each class costs on the cheapest node that holds it.
pub(crate) fn alone(model: &Model, demand: &[u64]) -> Vec<f64> {
    values(model, demand, Value::Alone)
}

/// What a pod of each class costs on the cheapest node that is filled with its like.
pub(crate) fn share(model: &Model, demand: &[u64]) -> Vec<f64> {
    values(model, demand, Value::Share)
}

/// What each class is worth, in micro-dollars.
fn values(model: &Model, demand: &[u64], value: Value) -> Vec<f64> {
    model
        .classes
        .iter()
        .zip(demand)
        .enumerate()
        .map(|(index, (class, count))| {
            let least = class
                .bins
                .iter()
                .map(|bin| &model.bins[*bin as usize])
                .filter(|bin| !bin.is_existing() && bin.covered.is_none())
                .map(|bin| {
                    let share = match value {
                        Value::Alone => 1,
                        Value::Share => bin.holds(index as u32).min(*count).max(1),
                    };
                    bin.price as f64 / share as f64 + bin.penalty(index as u32) as f64
                })
                .fold(f64::INFINITY, f64::min);
            // A class that only existing nodes hold, or that is free, still wants its place.
            if least.is_finite() { least.max(1.0) } else { 1.0 }
        })
        .collect()
}

/// The bin's best filling so far.
struct Fill {
    pattern: Pattern,
    ratio: f64,
}

/// Opens bins for `left` until nothing more can be placed; returns what is left.
fn extend(
    model: &Model,
    plan: &mut Plan,
    mut left: Vec<u64>,
    mut stock: Stock,
    values: &[f64],
    penalty: u64,
) -> Vec<u64> {
    let orders: Vec<[Vec<u32>; 2]> =
        (0..model.bins.len()).map(|bin| orders(model, bin as u32, values, &left)).collect();
    let price = |bin: u32| {
        let bin = &model.bins[bin as usize];
        // The scarcer a limit, the dearer a node that takes much of it.
        let shares: f64 = bin
            .limit_use
            .iter()
            .map(|(limit, amount)| (*amount).max(0) as f64 / model.limits[*limit as usize].max(1) as f64)
            .sum();
        let scale = model.bins.iter().map(|bin| bin.price).max().unwrap_or(0) as f64;
        bin.price as f64 + penalty as f64 * shares * scale * 10.0
    };
    let prices: Vec<f64> = (0..model.bins.len() as u32).map(price).collect();
    let fill = |bin: u32, left: &[u64]| -> Option<Fill> {
        let mut best: Option<(f64, Pattern)> = None;
        for order in &orders[bin as usize] {
            let pattern = fill_one(model, bin, order, left);
            let worth: f64 =
                pattern.pods.iter().map(|(class, count)| values[*class as usize] * f64::from(*count)).sum();
            if !pattern.pods.is_empty() && best.as_ref().is_none_or(|(most, _)| worth > *most) {
                best = Some((worth, pattern));
            }
        }
        best.map(|(worth, pattern)| {
            let node = &model.bins[bin as usize];
            let penalties = (node.cost(&pattern.pods) - node.price) as f64;
            Fill { pattern, ratio: worth / (prices[bin as usize] + penalties).max(1e-3) }
        })
    };
    let mut fills: Vec<Option<Fill>> = (0..model.bins.len() as u32)
        .map(|bin| if stock.left(model, bin) > 0 { fill(bin, &left) } else { None })
        .collect();
    loop {
        let mut best: Option<usize> = None;
        for (index, candidate) in fills.iter().enumerate() {
            if let Some(candidate) = candidate
                && best
                    .is_none_or(|best| fills[best].as_ref().is_none_or(|best| candidate.ratio > best.ratio))
            {
                best = Some(index);
            }
        }
        let Some(index) = best else { return left };
        let bin = index as u32;
        let Some(chosen) = &fills[index] else { return left };
        let copies = chosen.pattern.copies(&left).min(stock.left(model, bin));
        if copies > 0 {
            for (class, count) in &chosen.pattern.pods {
                left[*class as usize] -= u64::from(*count) * copies;
            }
            stock.take(model, bin, copies);
            plan.add(chosen.pattern.clone(), copies);
        }
        for (index, slot) in fills.iter_mut().enumerate() {
            let Some(known) = slot else { continue };
            if stock.left(model, index as u32) == 0 {
                *slot = None;
            } else if known.pattern.copies(&left) == 0 {
                *slot = fill(index as u32, &left);
            }
        }
    }
}

/// Two orders in which to fill a bin: by value per share of the node, and by value per share of the scarcest resource.
fn orders(model: &Model, bin: u32, values: &[f64], left: &[u64]) -> [Vec<u32>; 2] {
    let capacity = &model.bins[bin as usize].capacity;
    let mut keyed: Vec<(f64, f64, u32)> = model.bins[bin as usize]
        .classes
        .iter()
        .filter(|class| left[**class as usize] > 0)
        .map(|&class| {
            let shares = model.classes[class as usize]
                .requests
                .iter()
                .zip(capacity)
                .map(|(request, room)| *request as f64 / (*room).max(1) as f64);
            let (sum, most) = shares.fold((0.0, 0.0f64), |(sum, most), share| (sum + share, most.max(share)));
            let value = values[class as usize];
            (value / sum.max(1e-9), value / most.max(1e-9), class)
        })
        .collect();
    keyed.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
    let by_sum = keyed.iter().map(|key| key.2).collect();
    keyed.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.2.cmp(&b.2)));
    [by_sum, keyed.iter().map(|key| key.2).collect()]
}

/// Fills one node, taking as many as fit of each class in turn.
fn fill_one(model: &Model, bin: u32, order: &[u32], left: &[u64]) -> Pattern {
    let mut content = Content::empty(model, bin);
    for &class in order {
        if left[class as usize] == 0 {
            continue;
        }
        let add = content.more(class).min(left[class as usize]).min(u64::from(u32::MAX)) as u32;
        content.add(class, add);
    }
    Pattern { bin, pods: content.into_pods() }
}
