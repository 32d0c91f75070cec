//! The answer for people.

use std::io::{self, Write};

use comfy_table::CellAlignment;
use poolwright_terms::one_line;

use super::answer::Answer;
use super::lists::{OFFERS, about_curve, costs, curve, offers};
use crate::print::{TableLayout, plain, text};

/// Prints the answer.
pub fn print(answer: &Answer, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", layout.fit(&one_line(&answer.verdict), 2))?;
    writeln!(out, "\n{}", rows(&OFFERS, offers(answer), &[3, 4], layout))?;
    let less = format!("AT {} % LESS LOAD", answer.at_less_load.percent);
    writeln!(out, "\n{}", rows(&["COST PER MONTH", "NOW", &less], costs(answer), &[1, 2], layout))?;
    if let Some(about) = about_curve(answer) {
        writeln!(out, "\n{}:", layout.fit(&one_line(&about), 2))?;
        writeln!(out, "{}", rows(&["BUY", "COST PER MONTH", ""], curve(answer), &[0, 1], layout))?;
    }
    for (title, lines) in [("Assumptions", &answer.assumptions), ("Notes", &answer.notes)] {
        if lines.is_empty() {
            continue;
        }
        let lines = lines.iter().map(|line| ["-".to_owned(), line.clone()]).collect();
        writeln!(out, "\n{title}:\n{}", rows(&[], lines, &[], layout))?;
    }
    Ok(())
}

/// Returns a table, with some columns aligned to the right.
fn rows<const N: usize>(
    titles: &[&str],
    rows: Vec<[String; N]>,
    right: &[usize],
    layout: TableLayout,
) -> String {
    let mut table = plain(layout);
    if !titles.is_empty() {
        table.set_header(titles);
    }
    for row in rows {
        table.add_row(row.map(|cell| one_line(&cell).into_owned()));
    }
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text(table)
}
