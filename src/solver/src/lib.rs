//! The optimisation. It chooses the nodes to buy for the pods at the lowest cost, and proves how far the plan can be from
//! the optimum.
//!
//! This crate holds [`Problem`] and [`Solution`], the greedy plan, column generation over patterns with its lower bound,
//! the integer plan, the baselines for comparison, and the independent [`mod@check`]er. [`purchase`] chooses commitments.
//!
//! It must not contain Kubernetes objects, scheduling rules (they arrive as lists of allowed candidates), clouds,
//! clocks (time arrives through [`StopSignal`]), or threads whose order affects the result. `f64` appears only inside the
//! LP, and never decides feasibility or a published cost. Capacities, costs and the certified bound are integers. Only the bound of a
//! purchase is HiGHS's own. The tables of the knapsack keep integers as `f32` below 2^24, where it is exact.

pub mod baseline;
pub mod check;
pub mod explain;
pub mod problem;
pub mod purchase;
pub mod solution;

mod admit;
mod bits;
mod branch;
mod branch_and_price;
mod canonical;
mod choice;
mod column_generation;
mod dive;
mod diverse_columns;
mod dual_bound;
mod exact;
mod flow;
mod gpu;
mod greedy;
mod knapsack;
mod knapsack_lp;
mod large_neighbourhood;
mod lp;
mod master;
mod meter;
mod moves;
mod nothing;
mod open;
mod options;
mod plan;
mod pricing;
mod resource_bound;
mod shadow_prices;
mod simpler;
mod small_exact;
mod solve;
mod stages;
mod stop;
#[cfg(test)]
mod testing;
mod units;
mod verify;
mod warm;

pub use bits::BitSet;
pub use check::{GpuFault, StepFault, Violation, check};
pub use explain::{Explanation, Why, explain};

pub use lp::Backend;
pub use moves::{FrontierPoint, frontier};
pub use options::Options;
pub use problem::{Candidate, ExistingNode, Limit, PodClass, Problem, ProblemError};
pub use solution::{
    Charges, ExistingUse, GpuLayout, MigInstance, Move, MoveTarget, NewNodes, Placement, Proof, ShadowPrices,
    Solution, Step, Stopped, Unplaced, UnplacedReason, gap,
};
pub use solve::{greedy, solve, solve_from};
pub use stages::{SearchStage, Stages};
pub use stop::{FirstHalf, NeverStop, Progress, StopSignal};
pub use warm::Warm;
