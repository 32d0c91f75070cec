//! Printers of a plan: one for people, two for machines.

mod table;

use std::io::{self, Write};

use crate::args::OutputFormat;
use crate::document::Document;

/// Prints `plan` as asked.
pub fn plan(plan: &Document, format: OutputFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        OutputFormat::Table => table::print(plan, out),
        OutputFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, plan)?;
            writeln!(out)
        }
        OutputFormat::Yaml => {
            let text = serde_saphyr::to_string(plan).map_err(io::Error::other)?;
            out.write_all(text.as_bytes())
        }
    }
}
