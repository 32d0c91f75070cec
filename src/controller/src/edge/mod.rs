//! The edge of the process: the clocks, metrics, health over HTTP, the queue of events, and signals between tasks.
//!
//! Nothing here knows the cluster, leadership or any loop: this room imports no other room of the controller.

pub mod causes;
pub mod clock;
pub mod events;
pub mod http;
pub mod metrics;
pub mod signal;
pub mod stoppable;
