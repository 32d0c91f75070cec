//! The ledger: its rows, and what they tell of instances and pods day by day.

mod gaps;
mod latest;
mod line;
pub mod row;
mod spans;

pub use gaps::{Gap, LONGEST_SILENCE};
pub use spans::{Day, Doubts, End, Fold, Known, day_of, midnight};

#[cfg(test)]
pub(crate) use spans::testing;
