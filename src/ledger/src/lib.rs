//! The ledger's files: rows of [`poolwright_report::ledger::row`], one JSON object per line, in a local directory or a bucket.
//!
//! This crate writes rows, lists the days that have some, and reads the rows of a period. A file is written whole and never changed.
//! `docs/money.md` describes the layout.
//!
//! It must not decide what a row says, know Kubernetes, or use a clock.

mod appender;
mod buckets;
mod days;
mod lines;
mod location;
mod store;
#[cfg(test)]
mod tests;

pub use appender::{Appender, WriteError};
pub use days::{Event, FileError, days_in, read_days};
pub use location::Location;
pub use store::{BadLine, OpenError, Read, ReadError, Store};
