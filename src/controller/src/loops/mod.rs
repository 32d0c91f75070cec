//! The loops that the leader runs. Each looks at the world, asks `core` what to do, and hands the actions to the executor.

pub mod budgets;
pub mod consolidation;
pub mod deadlines;
pub mod interruptions;
pub mod lifecycle;
pub mod node_classes;
pub mod planner;
pub mod pool_status;
