//! `poolwright convert`.

use std::io::{self, Write};

use poolwright_terms::foreign::each_line;

use super::{Conversion, convert, notes_table, yaml};
use crate::args::ConvertFlags;
use crate::clouds::not_built;
use crate::exit::{ExitStatus, Failure};
use crate::print::TableLayout;
use crate::problems::Problems;
use crate::source::{self, Source};

/// Prints the manifests to standard output, and the outcome of each field to standard error. Documents with a problem are left
/// out and named, and so are files that cannot be read.
pub fn run(flags: &ConvertFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let (sources, unreadable) = source::readable(&flags.filename, &[]);
    if sources.is_empty() && !unreadable.is_empty() {
        return Err(source::cannot_read(&unreadable));
    }
    for Source { name, text } in &sources {
        // Without the cloud, its labels and node classes would be left out as unknown.
        let why = not_built(|cloud| cloud.karpenter_groups.iter().any(|group| text.contains(*group)));
        if let Some(why) = why {
            return Err(Failure::bad_input(format!("{name}: {why}")));
        }
    }
    let converted = convert(&sources);
    if converted == Conversion::default() {
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        return Err(Failure::bad_input(format!(
            "{}: no object to convert; name files with Karpenter's objects, or check the command that writes them",
            names.join(", ")
        )));
    }
    let mut text = yaml(&converted.manifests).map_err(anyhow::Error::msg)?;
    text.push_str(&yaml(&converted.node_classes).map_err(anyhow::Error::msg)?);
    text.push_str(&yaml(&converted.workloads).map_err(anyhow::Error::msg)?);
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::writing)?;
    let table = notes_table(&converted.notes, flags.all, TableLayout::page(false));
    // If standard error cannot be written, the manifests are still printed.
    let _ = io::stderr().lock().write_all(each_line(&table).as_bytes());
    let mut problems = Problems::all(&unreadable);
    for problem in &converted.problems {
        problems.push(problem.to_string());
    }
    problems
        .or(ExitStatus::Done)
        .map_err(|problems| Failure::bad_input(format!("some objects are not converted: {problems}")))
}
