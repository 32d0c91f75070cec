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

/// Writes lines of the dataset Cost and Usage.
pub struct Lines<W: Write> {
    version: FocusVersion,
    method: Method,
    csv: csv::Writer<W>,
    /// The first error of writing. After it, nothing is written.
    written: csv::Result<()>,
}

impl<W: Write> Lines<W> {
    /// Writes the names of the columns.
    pub fn new(version: FocusVersion, method: Method, out: W) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(COLUMNS.iter().filter(|(name, _)| is_in(version, name)).map(|(name, _)| name))?;
        Ok(Self { version, method, csv, written: Ok(()) })
    }

    /// Writes a charge, unless its price is unknown: the format has no place for an unknown cost, and zero would be wrong.
    pub fn write(&mut self, charge: &Charge<'_>) {
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
        self.written?;
        self.csv.flush()
    }
}
