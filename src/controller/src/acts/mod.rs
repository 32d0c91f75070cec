//! How the controller acts: the executor, which carries out the actions that `core` decided on.

pub mod context;
pub mod event_writer;
pub mod executor;
pub mod launch_batches;
pub mod unrecorded;
