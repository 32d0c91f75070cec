//! The optimisation: which nodes to buy for which pods, at least cost, with a proof of how far from least it can be.
//!
//! Lives here: [`Problem`] and [`Solution`], the greedy plan, column generation over patterns with its lower bound,
//! the integer plan, the baselines it is compared with, and the independent [`mod@check`]er.
//!
//! May not live here: Kubernetes objects, scheduling rules (they arrive as lists of allowed candidates), clouds, clocks
//! (time arrives through [`Watch`]), threads whose order could show. `f64` appears only inside the LP and never decides
//! feasibility or a published cost: capacities, costs and the certified bound are integers (those in the tables of the
//! knapsack are kept as `f32` below 2^24, where it is exact).

pub mod baseline;
pub mod check;
pub mod explain;
pub mod problem;
pub mod solution;

mod admit;
mod bits;
mod bound;
mod branch;
mod canonical;
mod choice;
mod content;
mod dive;
mod exact;
mod flow;
mod gpu;
mod greedy;
mod improve;
mod knapsack;
mod lp;
mod master;
mod meter;
mod moves;
mod multipliers;
mod open;
mod plan;
mod pricing;
mod rates;
mod relax;
mod shadow;
mod small;
mod solve;
#[cfg(test)]
mod testing;
mod variety;
mod verify;
mod warm;

use poolwright_catalog::UsdPerHour;

pub use check::{GpuFault, StepFault, Violation, check};
pub use explain::{Explanation, explain};

pub use lp::Backend;
pub use moves::{FrontierPoint, frontier};
pub use problem::{Candidate, ExistingNode, Limit, PodClass, Problem, ProblemError};
pub use solution::{
    Charges, ExistingUse, GpuLayout, MigInstance, Move, MoveTarget, NewNodes, Placement, Proof, ShadowPrices,
    Solution, Step, Stopped, Unplaced, UnplacedReason, gap,
};
pub use solve::{Options, greedy, solve, solve_from};
pub use warm::Warm;

/// What the solver asks its caller while it works: the clock lives with the caller.
pub trait Watch {
    /// Asked between units of work, at least every few milliseconds; `true` makes the solver return its best plan.
    fn should_stop(&mut self) -> bool;
    /// Told of every better feasible plan.
    fn improved(&mut self, _plan: &Solution) {}
    /// Told when the objective falls, when the bound rises, and after every round of pricing.
    fn progress(&mut self, _progress: &Progress) {}
}

/// How far a solve has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Objective of the best plan so far.
    pub objective: UsdPerHour,
    /// The certified bound so far.
    pub bound: UsdPerHour,
    /// Rounds of pricing so far, all stages and dives together.
    pub rounds: u64,
    /// Pod classes after equal ones were merged.
    pub classes: usize,
    /// Kinds of nodes to buy after those that cannot matter were dropped.
    pub candidates: usize,
    /// Work units spent so far.
    pub work: u64,
}

/// A [`Watch`] that never stops: the solve ends by convergence or by its work budget alone, which is deterministic.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverStop;

impl Watch for NeverStop {
    fn should_stop(&mut self) -> bool {
        false
    }
}
