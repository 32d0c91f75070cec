//! Solutions of saved problems, with their figures.

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
    /// Creates a document without problems.
    fn default() -> Self {
        Self { api_version: poolwright_terms::API_VERSION, kind: "Solutions", problems: Vec::new() }
    }
}

/// One problem and its solution. Only the two times differ from run to run, unless time cut the search short.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The number of pod classes.
    pub classes: usize,
    /// The number of pods.
    pub pods: u64,
    /// The number of candidates: kinds of node to buy.
    pub candidates: usize,
    /// The number of existing nodes.
    pub existing: usize,
    /// The cost.
    #[serde(serialize_with = "usd")]
    pub cost_usd_per_hour: UsdPerHour,
    /// The charges, which count besides the cost: interruptions, preferences and later ends of nodes, disruption.
    #[serde(serialize_with = "usd")]
    pub charges_usd_per_hour: UsdPerHour,
    /// A lower bound on cost plus charges, over all plans that place the same pods.
    #[serde(serialize_with = "usd")]
    pub lower_bound_usd_per_hour: UsdPerHour,
    /// The excess of cost plus charges over the bound.
    pub gap: f64,
    /// The strength of the bound's proof.
    pub proof: Proof,
    /// The reason why the search ended.
    pub stopped: Stopped,
    /// The number of nodes to buy.
    pub nodes: u64,
    /// The number of nodes to remove.
    pub removed: usize,
    /// The number of steps.
    pub steps: usize,
    /// The number of pods left out.
    pub unplaced_pods: u64,
    /// The pods left out, with the reasons.
    pub unplaced: Vec<LeftOut>,
    /// The duration of the solve.
    pub elapsed_seconds: f64,
    /// The time until the first plan.
    pub first_plan_seconds: f64,
    /// The whole solution, by indices into the problem.
    pub solution: Solution,
}

/// Pods of one class that the solution leaves out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LeftOut {
    /// The class.
    pub class: String,
    /// The number of its pods.
    pub count: u32,
    /// The reason, in a sentence.
    pub reason: String,
}

impl Figures {
    /// Computes the figures of this solution.
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

/// Returns the reason why pods are left out, with the names of the problem. The indices come from a solution that passed the
/// check.
fn reason(problem: &Problem, reason: UnplacedReason) -> String {
    let name = |at: u32, names: &mut dyn Iterator<Item = &String>| {
        names.nth(at as usize).map_or_else(|| at.to_string(), Clone::clone)
    };
    match reason {
        UnplacedReason::NothingFits => "it fits no candidate and no node, even if these are empty".to_owned(),
        UnplacedReason::LimitReached(at) => {
            format!("limit `{}` is used up", name(at, &mut problem.limits.iter().map(|limit| &limit.name)))
        }
        UnplacedReason::NoMoreAvailable => "no more nodes are available to buy".to_owned(),
        UnplacedReason::GangIncomplete(at) => format!(
            "gang `{}` cannot be placed whole",
            name(at, &mut problem.gangs.iter().map(|gang| &gang.name))
        ),
        UnplacedReason::Unspreadable(at) => format!(
            "the spread `{}` leaves no place for it",
            name(at, &mut problem.spreads.iter().map(|spread| &spread.name))
        ),
        UnplacedReason::Inflexible(at) => format!(
            "no node for it has as many alternatives as `{}` requires",
            name(at, &mut problem.flexibility.iter().map(|flexibility| &flexibility.name))
        ),
        UnplacedReason::ShareReached(at) => format!(
            "it would need more nodes of one kind than `{}` allows",
            name(at, &mut problem.node_shares.iter().map(|share| &share.name))
        ),
        UnplacedReason::NoLayout => {
            "the search for the layout of the GPUs ended without a place for it on its node; another node may hold it"
                .to_owned()
        }
    }
}
