//! Who may act: one Lease, one holder, a term that ends by itself, and the one writer that asks for it.
//!
//! A holder's term ends, on the holder's own clocks, one margin before the Lease could end: at the time before the last
//! successful write of the Lease was sent, plus the Lease's duration, minus the margin. Another process takes the Lease
//! only after it has seen it unchanged for its whole duration on its own clock. That interval starts later and is longer.
//! So two processes never both hold a current term, whatever their calendars say.
//!
//! This is our own code and not a crate for leader election. Such crates (kubert is the one that linkerd uses) read the
//! clocks themselves. We need a term that ends on the monotonic clock and on the calendar, whichever comes first, because
//! machines sleep and calendars are set. And the simulator must run it in virtual time, to find what two leaders would
//! do to one cluster.
//!
//! - `evaluate`: what to do about the Lease, as a pure function.
//! - `elector`: the task that reads and writes the Lease. Its writes are the only ones outside `writer`.
//! - `term`: the term, and where everybody looks it up.
//! - `writer`: every other write, each with a [`writer::Permit`] that only the writer can issue.

mod elector;
mod evaluate;
mod term;
pub mod writer;

pub use elector::{Elector, LeaseSettings};
#[cfg(test)]
pub use term::testing;
pub use term::{Term, Terms};
