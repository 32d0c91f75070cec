//! Who may act: one Lease, one holder, and a claim that expires by itself.
//!
//! The holder's claim ends on the holder's own clocks at *the time before the last successful write of the Lease was
//! sent + the Lease's duration - a margin*. Another process takes the Lease only after it has seen it unchanged for its
//! whole duration on its own clock. The second interval starts after the first one and is longer, so two processes never
//! both hold a current claim, whatever their calendars say.

mod elector;
mod evaluate;
mod term;
pub mod writer;

pub use elector::{Elector, LeaseSettings};
#[cfg(test)]
pub use term::testing;
pub use term::{ClaimWatch, LeaderClaim};
