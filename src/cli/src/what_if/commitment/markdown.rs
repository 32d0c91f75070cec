//! The answer as Markdown: the verdict, tables, and lists.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::answer::Answer;
use super::lists::{OFFERS, about_curve, costs, curve, offers};
use crate::what_if::cell;

/// Prints the answer.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    out.write_all(page(answer).as_bytes())
}

fn page(answer: &Answer) -> String {
    let mut page = format!("**{}**\n", cell(&answer.verdict));
    let less = format!("at {} % less load", answer.at_less_load.percent);
    table(&OFFERS.map(str::to_lowercase), &offers(answer), &mut page);
    table(&["cost per month".to_owned(), "now".to_owned(), less], &costs(answer), &mut page);
    if let Some(about) = about_curve(answer) {
        // A string takes everything.
        let _ = writeln!(page, "\n{}:", cell(&about));
        table(&["buy", "cost per month", ""].map(str::to_owned), &curve(answer), &mut page);
    }
    for (title, lines) in [("Assumptions", &answer.assumptions), ("Notes", &answer.notes)] {
        if !lines.is_empty() {
            let _ = writeln!(page, "\n**{title}**\n");
        }
        for line in lines {
            let _ = writeln!(page, "- {}", cell(line));
        }
    }
    page
}

fn table<const N: usize>(titles: &[String; N], rows: &[[String; N]], page: &mut String) {
    let line =
        |cells: &[String; N]| format!("| {} |", cells.each_ref().map(|one| cell(one.trim())).join(" | "));
    let _ = writeln!(page, "\n{}\n|{}", line(titles), "---|".repeat(N));
    for row in rows {
        let _ = writeln!(page, "{}", line(row));
    }
}
