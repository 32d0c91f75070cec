//! What the scheduler does, rule by rule. That it is what a real one does is asked elsewhere.

mod cluster;
mod filters;
mod near;
mod preemption;
mod scores;
mod volumes;
