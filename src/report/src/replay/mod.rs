//! The history of machines and pods in a simulation, and its figures.

pub mod baselines;
mod bound;
mod figures;
mod history;
mod steps;

pub use bound::over_time as bound_over_time;
pub use figures::{Bought, Pending, Pods, Point, Report};
pub use history::{End, History, Machine, Pod};
pub use steps::Steps;
