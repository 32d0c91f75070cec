//! The ways to run a job, for people.

use std::io::{self, Write};

use comfy_table::CellAlignment;
use poolwright_terms::one_line;

use super::Answer;
use super::rows::{Row, more};
use crate::print::{TableLayout, money, plain, text};

/// The most rows in a table.
const SHOWN: usize = 30;

/// What stands for a figure that is unknown.
const UNKNOWN: &str = "-";

/// Prints the answer.
pub fn print(answer: &Answer, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}\n", layout.fit(&one_line(&answer.verdict), 2))?;
    let mut table = plain(layout);
    table.set_header([
        "CAPACITY",
        "NODES",
        "INSTANCE TYPE",
        "ZONE",
        "$/H",
        "$/JOB",
        "INTERRUPTIONS",
        "HOURS",
        "WHY NOT",
    ]);
    for row in answer.rows.iter().take(layout.rows(SHOWN)) {
        table.add_row(cells(row).iter().map(|cell| one_line(cell)));
    }
    for column in [1, 4, 5, 6, 7] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "{}", text(table))?;
    match answer.rows.len().saturating_sub(layout.rows(SHOWN)) {
        0 => {}
        rows => writeln!(out, "{}", more(rows))?,
    }
    list("Not sold", &answer.not_sold, layout, out)?;
    list("Assumptions", &answer.assumptions, layout, out)?;
    list("Notes", &answer.notes, layout, out)
}

/// Returns the cells of a row.
pub fn cells(row: &Row) -> [String; 9] {
    let unknown = || UNKNOWN.to_owned();
    [
        row.capacity_type.to_string(),
        row.nodes.map_or_else(unknown, |nodes| nodes.to_string()),
        row.instance_type.clone(),
        row.place(),
        row.usd_per_hour.map_or_else(unknown, money),
        row.usd_per_job.map_or_else(unknown, |usd| format!("{usd:#}")),
        row.interruptions.map_or_else(unknown, |number| format!("{number:.2}")),
        row.finish_hours.map_or_else(unknown, |hours| format!("{hours:.1}")),
        row.reason.clone().unwrap_or_else(|| "cheapest".to_owned()),
    ]
}

fn list(title: &str, lines: &[String], layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut table = plain(layout);
    for line in lines {
        table.add_row(["-", &*one_line(line)]);
    }
    writeln!(out, "\n{title}:\n{}", text(table))
}
