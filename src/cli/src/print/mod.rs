//! Prints plans and solutions for people and for programs.

mod compared;
mod printable;
mod progress;
mod solved;
mod table;
mod terminal;

use std::io::{self, Write};

pub(crate) use printable::Printable;
pub(crate) use progress::Progress;
pub(crate) use table::{count, counted, money, percent, plain, text};
pub(crate) use terminal::{TableLayout, has_colours, has_unicode, text_width, wrap};

use poolwright_report::plan::Document;
use poolwright_report::solved::Solved;

use crate::args::{OutputFormat, SolveFormat};

/// Prints `plan` in this format.
pub fn plan(plan: &Document, format: OutputFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        OutputFormat::Table => table::print(plan, TableLayout::page(false), out),
        OutputFormat::Wide => table::print(plan, TableLayout::page(true), out),
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

/// Prints solutions in this format.
pub(crate) fn solved(solved: &Solved, format: SolveFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        SolveFormat::Table => solved::print(solved, TableLayout::page(false), out),
        SolveFormat::Json => {
            serde_json::to_writer(&mut *out, solved)?;
            writeln!(out)
        }
    }
}
