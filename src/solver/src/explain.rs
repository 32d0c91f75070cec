//! Explains where pods are and why: the nodes of a class, the extra cost of other nodes, the scarce limits and stocks, and the
//! rule that excludes every other candidate. It reads only the problem and the solution, so you can explain a saved case later.
//!
//! **What the numbers mean.** With [`ShadowPrices`](crate::ShadowPrices) in the solution, each pod has a price, as if nodes
//! could be bought in parts. The `more` of an alternative compares one node of it with the prices of its pods. The node holds one
//! pod of the class and the best others that we find for it. Its cost is the price after commitments, the value of the limits and
//! stock that it uses, and the risk and preferences of its pods. So the plan would cost at most `more` more per such node.
//! Without shadow prices, `more` compares one pod alone: a node's cost divided by the number of such pods it holds, against the
//! cheapest used node.

mod exclude;
mod text;
mod worth;

use poolwright_catalog::UsdPerHour;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::solution::{Solution, UnplacedReason};

pub use exclude::{GpuWhy, Why};

/// Where the pods of one class are, and why they are not elsewhere. Its [`std::fmt::Display`] is a short text for any
/// number of candidates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Index into [`Problem::classes`].
    pub class: u32,
    /// Its name.
    pub name: String,
    /// The number of pods to place, including those of removed nodes.
    pub pods: u64,
    /// Their places: new nodes by candidate, then existing ones.
    pub placed: Vec<Placed>,
    /// The pods that are left out, with the reason in words.
    pub left_out: Vec<LeftOut>,
    /// The comparison behind the `more` of the alternatives.
    pub basis: Basis,
    /// The shadow price of a pod of the class: its share of the cost of nodes that can be bought in parts. One more pod may cost
    /// nothing, or a whole node. `None` without shadow prices.
    pub pod_price: Option<UsdPerHour>,
    /// Candidates that the plan could use but does not, the least `more` first.
    pub alternatives: Vec<Alternative>,
    /// The limits and stocks whose increase would save money, the largest saving first.
    pub scarce: Vec<Scarce>,
    /// Excluded candidates by index, each with the first rule that excludes it.
    pub excluded: Vec<Excluded>,
}

/// Pods of the class on nodes of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placed {
    /// Index into [`Problem::candidates`]; `None` for an existing node.
    pub candidate: Option<u32>,
    /// The candidate's or the node's name.
    pub name: String,
    /// The number of such nodes with pods of the class.
    pub nodes: u64,
    /// The number of pods of the class on them.
    pub pods: u64,
    /// The price of one such node, zero for an existing one. `None` if whoever made the problem does not know it.
    pub price: Option<UsdPerHour>,
}

/// Pods of the class that the plan leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The number of pods.
    pub pods: u64,
    /// The solution's reason.
    pub reason: UnplacedReason,
    /// The reason in words.
    pub because: String,
}

/// The comparison behind [`Alternative::more`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Basis {
    /// It compares nodes at the solution's shadow prices.
    ShadowPrices,
    /// It compares single pods, each alone on its node, because the solution has no prices.
    Standalone,
}

/// A candidate that the plan could use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Alternative {
    /// Index into [`Problem::candidates`].
    pub candidate: u32,
    /// Its name.
    pub name: String,
    /// The extra cost in micro-dollars per hour, see [`Basis`]. Negative if the candidate looks cheaper by this measure.
    pub more: i64,
}

/// A limit or a stock whose increase would save money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scarce {
    /// The limit's or the candidate's name.
    pub name: String,
    /// Whether it is a limit (of any unit) or the stock of a candidate.
    pub limit: bool,
    /// The saving from `units` more of it.
    pub saves: UsdPerHour,
    /// One, or a million if a single unit is worth almost nothing (bytes, micro-dollars).
    pub units: u32,
}

/// A candidate that the plan cannot use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Excluded {
    /// Index into [`Problem::candidates`].
    pub candidate: u32,
    /// Its name.
    pub name: String,
    /// The rule.
    pub why: Why,
}

/// Explains where the pods of `class` are. `None` for a class that does not exist, and for a malformed problem or
/// solution.
pub fn explain(problem: &Problem, solution: &Solution, class: u32) -> Option<Explanation> {
    let of = problem.classes.get(class as usize)?;
    crate::check::well_shaped(problem, solution).then_some(())?;
    let placed = placed(problem, solution, class);
    let exclusions = exclude::exclusions(problem, solution, class);
    let mut excluded = Vec::new();
    let mut open = Vec::new();
    for (index, why) in exclusions.into_iter().enumerate() {
        let candidate = index as u32;
        if placed.iter().any(|placed| placed.candidate == Some(candidate)) {
            continue;
        }
        match why {
            Some(why) => {
                excluded.push(Excluded { candidate, name: problem.candidates[index].name.clone(), why });
            }
            None => open.push(candidate),
        }
    }
    let used: Vec<u32> = placed.iter().filter_map(|placed| placed.candidate).collect();
    let mut alternatives: Vec<Alternative> = worth::more(problem, solution, class, &open, &used)
        .into_iter()
        .map(|(candidate, more)| Alternative {
            candidate,
            name: problem.candidates[candidate as usize].name.clone(),
            more,
        })
        .collect();
    alternatives.sort_by_key(|alternative| (alternative.more, alternative.candidate));
    let moved: u64 = solution
        .removed
        .iter()
        .filter_map(|node| problem.existing[*node as usize].removal.as_ref())
        .flat_map(|removal| &removal.pods)
        .filter(|(of, _)| *of == class)
        .map(|(_, count)| u64::from(*count))
        .sum();
    Some(Explanation {
        class,
        name: of.name.clone(),
        pods: u64::from(of.count) + moved,
        placed,
        left_out: left_out(problem, solution, class),
        basis: if solution.prices.is_some() { Basis::ShadowPrices } else { Basis::Standalone },
        pod_price: solution
            .prices
            .as_ref()
            .map(|prices| UsdPerHour::from_micros(prices.classes[class as usize])),
        alternatives,
        scarce: scarce(problem, solution, class),
        excluded,
    })
}

fn placed(problem: &Problem, solution: &Solution, class: u32) -> Vec<Placed> {
    let mut placed: Vec<Placed> = Vec::new();
    for group in &solution.new_nodes {
        let Some((_, each)) = group.pods.iter().find(|(of, _)| *of == class) else { continue };
        let (nodes, pods) = (u64::from(group.count), u64::from(*each) * u64::from(group.count));
        // Groups are sorted by candidate.
        if let Some(last) = placed.last_mut().filter(|last| last.candidate == Some(group.candidate)) {
            last.nodes += nodes;
            last.pods += pods;
            continue;
        }
        let candidate = &problem.candidates[group.candidate as usize];
        let (name, price) = (candidate.name.clone(), Some(candidate.price));
        placed.push(Placed { candidate: Some(group.candidate), name, nodes, pods, price });
    }
    for used in &solution.on_existing {
        if let Some((_, pods)) = used.pods.iter().find(|(of, _)| *of == class) {
            let name = problem.existing[used.node as usize].name.clone();
            let pods = u64::from(*pods);
            let price = Some(UsdPerHour::ZERO);
            placed.push(Placed { candidate: None, name, nodes: 1, pods, price });
        }
    }
    placed
}

fn left_out(problem: &Problem, solution: &Solution, class: u32) -> Vec<LeftOut> {
    let of = solution.unplaced.iter().filter(|left| left.class == class);
    of.map(|left| LeftOut {
        pods: u64::from(left.count),
        reason: left.reason,
        because: text::reason(problem, left.reason),
    })
    .collect()
}

/// Returns the scarce limits and stocks that the class's candidates use.
fn scarce(problem: &Problem, solution: &Solution, class: u32) -> Vec<Scarce> {
    let Some(prices) = &solution.prices else { return Vec::new() };
    let candidates = &problem.classes[class as usize].candidates;
    let mut touched = vec![false; problem.limits.len()];
    for candidate in candidates {
        for (limit, amount) in &problem.candidates[*candidate as usize].limit_use {
            touched[*limit as usize] |= *amount > 0;
        }
    }
    let of_limits = problem.limits.iter().zip(&prices.limits).zip(touched);
    let limits =
        of_limits.filter(|((_, price), touched)| **price > 0 && *touched).map(|((limit, price), _)| {
            // Below a hundredth of a cent per unit, the saving from a million units is more readable.
            let (saves, units) =
                if *price >= 100 * 1_000_000 { (*price / 1_000_000, 1) } else { (*price, 1_000_000) };
            Scarce { name: limit.name.clone(), limit: true, saves: UsdPerHour::from_micros(saves), units }
        });
    let stock = candidates.iter().filter_map(|candidate| {
        let saves = UsdPerHour::from_micros(prices.candidates[*candidate as usize]);
        let name = problem.candidates[*candidate as usize].name.clone();
        (saves > UsdPerHour::ZERO).then_some(Scarce { name, limit: false, saves, units: 1 })
    });
    let mut scarce: Vec<Scarce> = limits.chain(stock).collect();
    scarce.sort_by(|a, b| (a.units, b.saves, &a.name).cmp(&(b.units, a.saves, &b.name)));
    scarce
}

#[cfg(test)]
mod tests;
