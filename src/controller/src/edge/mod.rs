//! Process infrastructure: clocks, metrics, HTTP endpoints, the queue of events, and signals between tasks.
//!
//! This module imports no other module of the controller.

pub mod causes;
pub mod clock;
pub mod events;
pub mod http;
pub mod metrics;
pub mod opencost;
pub mod signal;
pub mod stoppable;
