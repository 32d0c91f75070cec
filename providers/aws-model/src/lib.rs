//! The data model of AWS: ids, instance types, prices, events and user data.
//!
//! This crate holds pure functions that convert what AWS returns (API answers, events) and node classes to the types of the rest
//! of Poolwright, and requests to what AWS expects. All of it is tested without a network.
//!
//! It must not make calls (`providers/aws` does, and only that crate depends on the AWS SDK), read a clock, or decide anything
//! about what to buy.

mod account;
pub mod bootstrap;
pub mod events;
mod id;
pub mod instance;
pub mod polled;
pub mod prices;

pub use account::{AccountId, CapacityReservationId, InvalidName, Region};
pub use id::{InstanceId, InvalidId, ProviderId};
