//! Prints the difference of two replays.

use std::fmt::Write as _;
use std::io::{self, Write};

use comfy_table::CellAlignment;
use poolwright_report::money::six_decimals;
use poolwright_terms::one_line;

use super::answer::{Answer, Figures};
use super::page;
use super::rows::{figures, plots};
use crate::args::WhatIfFormat;
use crate::print::{TableLayout, plain, text};
use crate::replay::chart::Marks;
use crate::what_if::{MARK, cell};

/// Prints the answer in this format.
pub fn print(answer: &Answer, format: WhatIfFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        WhatIfFormat::Table => table(answer, TableLayout::page(false), out),
        WhatIfFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, answer)?;
            writeln!(out)
        }
        WhatIfFormat::Yaml => {
            let text = serde_saphyr::to_string(answer).map_err(io::Error::other)?;
            out.write_all(text.as_bytes())
        }
        WhatIfFormat::Csv => csv(answer, out),
        WhatIfFormat::Markdown => out.write_all(markdown(answer).as_bytes()),
        WhatIfFormat::Html => page::print(answer, out),
    }
}

fn table(answer: &Answer, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", layout.fit(&one_line(&answer.verdict), 2))?;
    for exceeded in &answer.exceeded {
        writeln!(out, "Above the limit: {exceeded}")?;
    }
    let mut table = plain(layout);
    table.set_header(["", "BEFORE", "AFTER", "DIFFERENCE"]);
    for row in figures(answer) {
        table.add_row(row);
    }
    for column in 1..=3 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "\n{}", text(table))?;
    for (title, [before, after]) in plots(answer, Marks::of_locale()) {
        writeln!(out, "\n{title}\n  before  {before}\n  after   {after}")?;
    }
    for (title, lines) in [("Changes", &answer.changes), ("Notes", &answer.notes)] {
        if !lines.is_empty() {
            writeln!(out, "\n{title}:")?;
        }
        for line in lines {
            writeln!(out, "{}", layout.fit(&format!("- {}", one_line(line)), 2))?;
        }
    }
    Ok(())
}

fn csv(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut lines = csv::Writer::from_writer(out);
    let figures = ["usd_per_hour", "pods_waiting", "node_starts", "interruptions", "lost_gpu_hours"];
    let named = |side: &'static str| figures.map(move |figure| format!("{figure}_{side}"));
    let header = ["from_seconds".to_owned()].into_iter().chain(named("before")).chain(named("after"));
    lines.write_record(header)?;
    for line in &answer.series {
        let cells = |of: &Figures| {
            [
                of.usd_per_hour.to_string(),
                of.pods_waiting.to_string(),
                of.node_starts.to_string(),
                of.interruptions.to_string(),
                six_decimals(of.lost_gpu_millis as f64 / 3_600_000.0).to_string(),
            ]
        };
        let from = [line.from.as_secs().to_string()];
        lines.write_record(from.into_iter().chain(cells(&line.before)).chain(cells(&line.after)))?;
    }
    lines.flush()
}

fn markdown(answer: &Answer) -> String {
    let mut page = format!("{MARK}\n**{}**\n", cell(&answer.verdict));
    for exceeded in &answer.exceeded {
        // A string takes everything.
        let _ = writeln!(page, "\n**Above the limit:** {}", cell(exceeded));
    }
    page.push_str("\n| | before | after | difference |\n|---|---:|---:|---:|\n");
    for row in figures(answer) {
        let _ = writeln!(page, "| {} |", row.each_ref().map(|one| cell(one)).join(" | "));
    }
    for (title, [before, after]) in plots(answer, Marks::UNICODE) {
        let _ = writeln!(page, "\n{}\n\n```text\nbefore  {before}\nafter   {after}\n```", cell(&title));
    }
    for (title, lines) in [("Changes", &answer.changes), ("Notes", &answer.notes)] {
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(page, "\n<details><summary>{title}: {}</summary>\n", lines.len());
        for line in lines {
            let _ = writeln!(page, "- {}", cell(line));
        }
        page.push_str("\n</details>\n");
    }
    page
}
