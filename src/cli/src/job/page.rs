//! The answer as a page: the verdict, the ways to run the job, and folded lists.

use std::io::{self, Write};

use super::Answer;
use super::rows::more;
use super::table::cells;
use crate::page::Page;

/// The most rows.
const ROWS: usize = 500;

/// Prints the page.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut page = Page::new("What does a job cost?");
    page.paragraph("verdict", &answer.verdict);
    page.paragraph("", &format!("The job: {}, for {} h without interruptions", answer.job, answer.hours));
    page.heading("Ways to run it");
    // Words come first.
    let row = |row| {
        let [capacity, nodes, kind, zone, per_hour, per_job, interruptions, hours, why] = cells(row);
        vec![kind, zone, capacity, why, nodes, per_hour, per_job, interruptions, hours]
    };
    let rows: Vec<Vec<String>> = answer.rows.iter().take(ROWS).map(row).collect();
    let header =
        ["instance type", "zone", "capacity", "why not", "nodes", "$/h", "$/job", "interruptions", "hours"];
    page.table("rows", "", &header, 4, &rows);
    if answer.rows.len() > ROWS {
        page.paragraph("", &more(answer.rows.len() - ROWS));
    }
    page.heading("Details");
    page.folded("Not sold", &answer.not_sold);
    page.folded("Assumptions", &answer.assumptions);
    page.folded("Notes", &answer.notes);
    page.write(out)
}
