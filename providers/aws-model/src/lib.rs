//! What AWS's words mean to Poolwright: ids, instance types, prices, events, user data.
//!
//! Lives here: pure functions from what AWS says (its API's answers, its events, a node class) to what the rest of Poolwright
//! understands, and back to what AWS wants to be told. Everything here is tested without a network.
//!
//! May not live here: calls (those are `providers/aws`, the one crate that compiles AWS's SDK), clocks, decisions about what to
//! buy.

mod account;
pub mod bootstrap;
pub mod events;
mod id;
pub mod instance;
pub mod polled;
pub mod prices;
mod text;

pub use account::{AccountId, CapacityReservationId, InvalidName, Region};
pub use id::{InstanceId, InvalidId, ProviderId};
