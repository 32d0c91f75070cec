//! The report as Markdown: the verdict, two tables, and lists.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::answer::Answer;
use super::table::{cells, headings, savings};
use crate::what_if::cell;

/// The most rows of a table.
const SHOWN: usize = 100;

/// Prints the report.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    out.write_all(page(answer).as_bytes())
}

fn page(answer: &Answer) -> String {
    let line = |cells: &[String]| {
        format!("| {} |", cells.iter().map(|one| cell(one)).collect::<Vec<_>>().join(" | "))
    };
    let mut text = format!("**{}**\n\n{}\n", cell(&answer.verdict), line(&headings(answer)));
    // A string takes everything.
    let _ = writeln!(text, "{}|---|---:|---:|---:|---:|", "|---".repeat(answer.by.len()));
    for row in answer.rows.iter().take(SHOWN) {
        let _ = writeln!(text, "{}", line(&cells(answer, row)));
    }
    if answer.rows.len() > SHOWN {
        let _ = writeln!(text, "\n{} more rows; `-o csv` lists them.", answer.rows.len() - SHOWN);
    }
    text.push_str("\n| idle | cost | what it is |\n|---|---:|---|\n");
    for idle in &answer.idle {
        let usd = idle.usd.map_or_else(|| "not measured".to_owned(), |usd| cell(&format!("{usd:#}")));
        let _ = writeln!(text, "| {} | {usd} | {} |", idle.class, idle.what);
    }
    for (title, lines) in [("Savings", savings(answer)), ("Notes", answer.notes.clone())] {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n**{title}**\n");
        }
        for line in &lines {
            let _ = writeln!(text, "- {}", cell(line));
        }
    }
    text
}
