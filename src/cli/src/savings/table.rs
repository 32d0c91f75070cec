//! The answer for people.

use std::io::{self, Write};

use comfy_table::CellAlignment;
use poolwright_terms::one_line;

use super::answer::Answer;
use super::sections::sections;
use crate::print::{TableLayout, count, money, plain, text};

/// The most kinds of node in a table.
const KINDS: usize = 20;

/// Prints the answer.
pub fn print(answer: &Answer, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", one_line(&answer.verdict))?;
    writeln!(out, "\n{}", layout.fit(&one_line(&answer.may_buy), 0))?;
    kinds(answer, layout, out)?;
    dearest(answer, layout, out)?;
    for (title, lines) in sections(answer) {
        let mut table = plain(layout);
        for line in &lines {
            table.add_row(["-", &*one_line(line)]);
        }
        writeln!(out, "\n{title}:\n{}", text(table))?;
    }
    Ok(())
}

fn kinds(answer: &Answer, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    let mut table = plain(layout);
    table.set_header(["NOW", "BEST", "$/H EACH", "CAPACITY", "ZONE", "INSTANCE TYPE"]);
    for kind in answer.kinds.iter().take(KINDS) {
        table.add_row([
            count(kind.now),
            count(kind.best),
            money(kind.usd_per_hour),
            kind.capacity_type.to_string(),
            one_line(&kind.zone).into_owned(),
            one_line(&kind.instance_type).into_owned(),
        ]);
    }
    for column in 0..=2 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "\n{}", text(table))?;
    let more = answer.kinds.len().saturating_sub(KINDS);
    if more > 0 {
        writeln!(out, "{} more; -o json lists them", count(more))?;
    }
    Ok(())
}

fn dearest(answer: &Answer, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    let mut table = plain(layout);
    table.set_header(["$/MONTH", "PODS", "FULLEST", "NODE THAT COSTS MUCH"]);
    for node in &answer.dearest {
        let described = format!(
            "{} ({}, {})\n{}",
            one_line(&node.name),
            one_line(&node.instance_type),
            node.capacity_type,
            one_line(&node.why)
        );
        table.add_row([
            format!("{:#}", node.usd_per_month),
            count(node.pods),
            node.fullest.as_deref().map_or_else(|| "-".to_owned(), |said| one_line(said).into_owned()),
            described,
        ]);
    }
    for column in 0..=1 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "\n{}", text(table))
}

#[cfg(test)]
mod tests {
    use super::super::answer::tests::found;
    use super::*;

    #[test]
    fn the_verdict_comes_first_and_the_dearest_nodes_follow() {
        let mut printed = Vec::new();
        let layout = TableLayout { width: None, wide: false };
        print(&Answer::of(found()), layout, &mut printed).expect("a list takes it");
        let printed = String::from_utf8(printed).expect("text");
        assert!(printed.starts_with("Now $3,285.00/month on 3 nodes; "), "{printed}");
        let row = printed.lines().find(|line| line.contains("empty (large")).expect("the node");
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["$1,095.00", "0", "cpu", "0.0", "%", "empty", "(large,", "on-demand)"]);
        assert!(printed.contains("\nPods that cannot move:\n"), "{printed}");
    }
}
