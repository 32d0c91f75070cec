//! Reports about simulations: the history of machines and pods, and the figures.

mod bound;
mod figures;
mod history;
mod steps;

pub use bound::over_time as bound_over_time;
pub use figures::{Bought, Pending, Pods, Point, Report};
pub use history::{End, History, Machine, Pod};
pub use steps::Steps;
