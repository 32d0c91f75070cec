//! How the controller acts: the executor, which carries out the actions that `core` decided on.

pub mod batches;
pub mod executor;
pub mod unrecorded;
