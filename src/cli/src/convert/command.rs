//! `poolwright convert`.

use std::io::{self, Write};

use super::{convert, notes_table, yaml};
use crate::args::ConvertFlags;
use crate::exit::{ExitStatus, Failure};
use crate::print::{TableLayout, printable};
use crate::problems::Problems;
use crate::source;

/// Prints the manifests to standard output, and the outcome of each field to standard error. Documents with a problem are left
/// out and named.
pub fn run(flags: &ConvertFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let converted = convert(&source::manifests(&flags.filename)?);
    let mut text = yaml(&converted.manifests).map_err(anyhow::Error::msg)?;
    text.push_str(&yaml(&converted.node_classes).map_err(anyhow::Error::msg)?);
    text.push_str(&yaml(&converted.workloads).map_err(anyhow::Error::msg)?);
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::writing)?;
    let table = notes_table(&converted.notes, flags.all, TableLayout::page(false));
    // If standard error cannot be written, the manifests are still printed.
    let _ = io::stderr().lock().write_all(printable(&table).as_bytes());
    let mut problems = Problems::new();
    for problem in &converted.problems {
        problems.push(problem.to_string());
    }
    problems
        .or(ExitStatus::Done)
        .map_err(|problems| Failure::bad_input(format!("some objects are not converted: {problems}")))
}
