//! The report for people.

use std::io::{self, Write};

use comfy_table::CellAlignment;
use poolwright_report::bill::Micros;
use poolwright_report::money::Ratio;
use poolwright_terms::one_line;

use super::answer::{Answer, Row, share};
use crate::print::{TableLayout, counted, plain, text};

/// The most rows of a table.
const SHOWN: usize = 40;

/// What stands for a value that a pod or a node does not have.
const NONE: &str = "-";

/// Prints the report.
pub fn print(answer: &Answer, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}\n", layout.fit(&one_line(&answer.verdict), 2))?;
    let mut table = plain(layout);
    table.set_header(headings(answer).iter().map(|heading| heading.to_uppercase()));
    let shown = answer.rows.len().min(layout.rows(SHOWN));
    for row in &answer.rows[..shown] {
        table.add_row(cells(answer, row).iter().map(|cell| one_line(cell).into_owned()));
    }
    let mut sum = vec![String::new(); answer.by.len()];
    sum.extend(["in all".to_owned(), format!("{:#}", answer.usd)]);
    table.add_row(sum);
    right(&mut table, answer.by.len() + 1..answer.by.len() + 5);
    writeln!(out, "{}", text(table))?;
    if answer.rows.len() > shown {
        let more = counted(answer.rows.len() - shown, "more row");
        writeln!(out, "{more}; -o csv and -o json list them")?;
    }
    writeln!(out, "\nIdle:")?;
    let mut table = plain(layout);
    for idle in &answer.idle {
        let usd = idle.usd.map_or_else(|| "not measured".to_owned(), |usd| format!("{usd:#}"));
        table.add_row([idle.class.to_owned(), usd, idle.what.to_owned()]);
    }
    right(&mut table, 1..2);
    writeln!(out, "{}", text(table))?;
    list("Savings against the on-demand list price", &savings(answer), layout, out)?;
    list("Notes", &answer.notes, layout, out)
}

/// Returns the columns.
pub fn headings(answer: &Answer) -> Vec<String> {
    let rest = ["what", "cost", "share", "gpu-hours", "saved"].map(str::to_owned);
    answer.by.iter().cloned().chain(rest).collect()
}

/// Returns the cells of a group.
pub fn cells(answer: &Answer, row: &Row) -> Vec<String> {
    let mut cells: Vec<String> =
        row.values.iter().map(|value| value.clone().unwrap_or_else(|| NONE.to_owned())).collect();
    let plus = if row.unpriced_node_hours > 0.0 { "+" } else { "" };
    cells.extend([
        row.class.name().to_owned(),
        format!("{:#}{plus}", row.usd),
        share(row.usd, answer.usd).map_or_else(|| NONE.to_owned(), |ratio: Ratio| ratio.to_string()),
        format!("{:.2}", row.gpu_hours),
        format!("{:#}", row.saved_usd),
    ]);
    cells
}

/// Tells what spot instances and commitments save.
pub fn savings(answer: &Answer) -> Vec<String> {
    let told = |saving: &super::answer::Saving| {
        let compared = if saving.saved_usd < Micros(0) { "more than" } else { "less than" };
        let saved = saving.saved_usd.absolute();
        format!("{}: {:#} for {:.1} h, {saved:#} {compared} by the list", saving.of, saving.usd, saving.hours)
    };
    answer.savings.iter().map(told).collect()
}

fn right(table: &mut comfy_table::Table, columns: std::ops::Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
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
