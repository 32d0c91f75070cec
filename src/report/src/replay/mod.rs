//! The history of machines and pods in a simulation, and its figures.

pub mod baselines;
mod bound;
mod figures;
mod gap;
mod history;
mod idle;
mod indispensable;
mod solves;
mod steps;
#[cfg(test)]
mod tests;

pub use bound::{Bounds, ignored as ignored_by_limit, over_time as bounds_over_time};
pub use figures::{Bought, Gpus, Pending, Pods, Point, Report};
pub use gap::{Cause, Gap};
pub use history::{End, History, Machine, Pod, Told};
pub use idle::Idle;
pub use steps::Steps;
