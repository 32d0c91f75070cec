//! Leader election, and leader gating of every write: one Lease, one holder, a term that expires, and the one writer that
//! checks it.
//!
//! A holder's term ends, on the holder's own clocks, one margin before the Lease could end: at the time when its last
//! successful write was sent, plus the Lease's duration, minus the margin. Another process takes the Lease only after it has
//! seen it unchanged for its whole duration, on its own clock. That interval starts later and is longer. So two processes never
//! both hold a current term, even if their wall clocks differ.
//!
//! No crate for leader election is used, because such crates (for example kubert) read the clocks themselves. Here the term must
//! end on the monotonic clock or the wall clock, whichever comes first, because machines sleep and wall clocks are set. And the
//! simulator must run it in virtual time, to test two leaders on one cluster.
//!
//! - `evaluate`: decides what to do about the Lease, as a pure function.
//! - `elector`: the task that reads and writes the Lease. Its writes are the only ones outside `writer`.
//! - `term`: the current term, and access to it.
//! - `writer`: every other write, each with a [`writer::Permit`] that only the writer can issue.

mod elector;
mod evaluate;
mod term;
pub mod writer;

pub use elector::{Elector, LeaseSettings};
#[cfg(test)]
pub use term::testing;
pub use term::{LeaderTerm, LeaderTerms};
