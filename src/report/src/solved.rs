//! Reports about solutions of saved problems.

use poolwright_catalog::UsdPerHour;
use poolwright_solver::{Problem, Proof, Solution, Stopped, UnplacedReason};
use serde::Serialize;

use crate::Times;
use crate::money::{six_decimals, usd};

/// The solutions of a file of problems.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Solved {
    /// `poolwright.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Solutions`.
    pub kind: &'static str,
    /// One entry per problem, in the order of the file.
    pub problems: Vec<Figures>,
}

impl Default for Solved {
    /// No problem yet.
    fn default() -> Self {
        Self { api_version: poolwright_terms::API_VERSION, kind: "Solutions", problems: Vec::new() }
    }
}

/// One problem and its solution. Only the two times differ from run to run, unless time cut the search short.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// How many classes of pods there are.
    pub classes: usize,
    /// How many pods.
    pub pods: u64,
    /// How many kinds of node can be bought.
    pub candidates: usize,
    /// How many nodes are there.
    pub existing: usize,
    /// The cost of the solution.
    #[serde(serialize_with = "usd")]
    pub cost_usd_per_hour: UsdPerHour,
    /// Amounts that are counted but not paid: interruptions, preferences, disruption.
    #[serde(serialize_with = "usd")]
    pub charges_usd_per_hour: UsdPerHour,
    /// A lower bound for cost and charges of any solution that places the same pods.
    #[serde(serialize_with = "usd")]
    pub lower_bound_usd_per_hour: UsdPerHour,
    /// How far cost and charges are above the bound.
    pub gap: f64,
    /// The strength of the proof of the bound.
    pub proof: Proof,
    /// Why the search ended.
    pub stopped: Stopped,
    /// How many nodes are bought.
    pub nodes: u64,
    /// How many nodes are removed.
    pub removed: usize,
    /// In how many steps.
    pub steps: usize,
    /// How many pods are unplaced.
    pub unplaced_pods: u64,
    /// The unplaced pods, and why.
    pub unplaced: Vec<LeftOut>,
    /// How long it took.
    pub elapsed_seconds: f64,
    /// When the first solution was found.
    pub first_plan_seconds: f64,
    /// The solution, by indices into the problem.
    pub solution: Solution,
}

/// Unplaced pods of one class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LeftOut {
    /// The class.
    pub class: String,
    /// How many of its pods.
    pub count: u32,
    /// Why, in a sentence.
    pub reason: String,
}

impl Figures {
    /// The figures of a solution.
    pub fn of(problem: &Problem, solution: Solution, times: Times) -> Self {
        let unplaced = solution.unplaced.iter().map(|left| LeftOut {
            class: problem.classes[left.class as usize].name.clone(),
            count: left.count,
            reason: reason(problem, left.reason),
        });
        let objective = solution.objective();
        Self {
            classes: problem.classes.len(),
            pods: problem.classes.iter().map(|class| u64::from(class.count)).sum(),
            candidates: problem.candidates.len(),
            existing: problem.existing.len(),
            cost_usd_per_hour: solution.cost,
            charges_usd_per_hour: UsdPerHour::from_micros(objective.micros() - solution.cost.micros()),
            lower_bound_usd_per_hour: solution.bound,
            gap: six_decimals(solution.gap()),
            proof: solution.proof,
            stopped: solution.stopped,
            nodes: solution.nodes(),
            removed: solution.removed.len(),
            steps: solution.steps.len(),
            unplaced_pods: solution.unplaced_pods(),
            unplaced: unplaced.collect(),
            elapsed_seconds: times.elapsed_seconds(),
            first_plan_seconds: times.first_plan_seconds(),
            solution,
        }
    }
}

/// Why pods are unplaced, with names from the problem. The solution must have passed the check.
fn reason(problem: &Problem, reason: UnplacedReason) -> String {
    let name = |at: u32, names: &mut dyn Iterator<Item = &String>| {
        names.nth(at as usize).map_or_else(|| at.to_string(), Clone::clone)
    };
    match reason {
        UnplacedReason::NothingFits => "no candidate and no node holds it, even empty".to_owned(),
        UnplacedReason::LimitReached(at) => {
            format!("limit `{}` is used up", name(at, &mut problem.limits.iter().map(|limit| &limit.name)))
        }
        UnplacedReason::NoMoreAvailable => "as many nodes as can be bought are bought".to_owned(),
        UnplacedReason::GangIncomplete(at) => format!(
            "gang `{}` cannot be placed whole",
            name(at, &mut problem.gangs.iter().map(|gang| &gang.name))
        ),
        UnplacedReason::Unspreadable(at) => format!(
            "it cannot be spread as `{}` asks",
            name(at, &mut problem.spreads.iter().map(|spread| &spread.name))
        ),
        UnplacedReason::Inflexible(at) => format!(
            "no node for it could also be as many others as `{}` asks",
            name(at, &mut problem.flexibility.iter().map(|flexibility| &flexibility.name))
        ),
        UnplacedReason::ShareReached(at) => format!(
            "more nodes of one kind than `{}` allows would be needed",
            name(at, &mut problem.node_shares.iter().map(|share| &share.name))
        ),
    }
}
