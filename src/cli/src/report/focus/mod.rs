//! The report in the format of FOCUS, the FinOps Open Cost and Usage Specification (<https://focus.finops.org>).
//!
//! Each line is a part of what one instance cost on one day: an allocated charge. The instance is the resource, and the pod is the
//! allocated resource. The costs of the lines of an instance add up to its cost exactly.

mod columns;
pub mod commitments;
mod line;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use poolwright_report::bill::{Charge, Method};

use crate::args::FocusVersion;

use columns::{COLUMNS, is_in};
use line::Line;

pub use line::commitment;

/// Writes lines of the dataset Cost and Usage.
pub struct Lines<W: Write> {
    version: FocusVersion,
    method: Method,
    csv: csv::Writer<W>,
    is_begun: bool,
    /// The first error of writing. After it, nothing is written.
    written: csv::Result<()>,
}

impl<W: Write> Lines<W> {
    /// Begins a file. Nothing is written before the first line, so a report that fails has no file.
    pub fn new(version: FocusVersion, method: Method, out: W) -> Self {
        Self { version, method, csv: csv::Writer::from_writer(out), is_begun: false, written: Ok(()) }
    }

    /// Writes the names of the columns, once.
    fn begin(&mut self) {
        if !self.is_begun {
            let shown = COLUMNS.iter().filter(|(name, _)| is_in(self.version, name));
            self.written = self.csv.write_record(shown.map(|(name, _)| name));
            self.is_begun = true;
        }
    }

    /// Writes a charge, unless its price is unknown: the format has no place for an unknown cost, and zero would be wrong.
    pub fn write(&mut self, charge: &Charge<'_>) {
        self.begin();
        if self.written.is_err() {
            return;
        }
        if let Some(line) = Line::of(charge, self.method) {
            let shown = COLUMNS.iter().filter(|(name, _)| is_in(self.version, name));
            self.written = self.csv.write_record(shown.map(|(_, value)| value(&line)));
        }
    }

    /// Writes what is still held back.
    pub fn finish(mut self) -> io::Result<()> {
        self.begin();
        self.written?;
        self.csv.flush()
    }
}
