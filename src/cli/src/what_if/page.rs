//! The answer as a page: the verdict first, then both sides with their costs as bars, the nodes that differ, and folded details.

use std::io::{self, Write};

use super::answer::{Answer, NodeChange};
use super::assumptions::Assumption;
use super::rows::{each, figures, more_of};
use super::table::{told, unplanned, waiting};
use crate::page::{Page, Plot, Quantity, Series, Shape};
use crate::print::count;

/// The most kinds of node in the table.
const KINDS: usize = 500;

/// Prints the page.
pub fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut page = Page::new("What would it cost?");
    page.paragraph("verdict", &answer.verdict);
    for exceeded in &answer.exceeded {
        page.paragraph("warning", &format!("Above the limit: {exceeded}"));
    }
    page.heading("Before and after");
    let rows: Vec<Vec<String>> = figures(answer).into_iter().map(Vec::from).collect();
    page.table("figures", "", &["", "before", "after", "difference"], 1, &rows);
    page.plot("costs", &costs(answer))?;
    nodes(&answer.difference.nodes, &mut page);
    if let Some(runner_up) = &answer.runner_up {
        page.paragraph("", &told(runner_up));
    }
    page.heading("What the figures rest on");
    let assumptions: Vec<Vec<String>> =
        answer.assumptions.iter().map(Assumption::told).map(|text| vec![text]).collect();
    page.table("assumptions", "", &["assumption"], 1, &assumptions);
    page.heading("Details");
    let moves = answer.difference.moves.iter();
    let moves: Vec<String> =
        moves.map(|one| format!("{}: from {} to {}", one.pod, one.from, one.to)).collect();
    page.folded("Changes", &answer.changes);
    page.folded("Pods that move", &moves);
    page.folded("Pods that are lost", &answer.difference.lost);
    page.folded("Pods that are added", &answer.difference.added);
    page.folded("Pods that are removed", &answer.difference.removed);
    page.folded("Pods that wait", &waiting(&answer.after));
    page.folded("Not planned", &unplanned(&answer.after));
    page.folded("Notes", &answer.notes);
    page.write(out)
}

/// Returns the cost of both sides, also at half as many pods again where that is known.
fn costs(answer: &Answer) -> Plot {
    let (before, after) = (&answer.before, &answer.after);
    let bars = [
        ("before", Some(before.usd_per_hour)),
        ("after", Some(after.usd_per_hour)),
        ("before, at load +50 %", before.usd_per_hour_at_half_more_load),
        ("after, at load +50 %", after.usd_per_hour_at_half_more_load),
    ];
    let bars = bars.into_iter().filter_map(|(name, cost)| Some((name, cost?.micros())));
    let series = (0..).zip(bars).map(|(place, (name, cost))| Series {
        name: name.to_owned(),
        shape: Shape::Bar,
        points: vec![(place, cost)],
    });
    Plot {
        title: "Cost per hour before and after the change, and at load +50 %".to_owned(),
        x: Quantity::Count,
        y: Quantity::UsdPerHour,
        series: series.collect(),
    }
}

fn nodes(all: &[NodeChange], page: &mut Page) {
    let different: Vec<&NodeChange> = all.iter().filter(|node| node.is_any()).collect();
    if different.is_empty() {
        return;
    }
    page.heading("Nodes that differ");
    let row = |node: &&NodeChange| {
        vec![
            node.instance_type.clone(),
            node.zone.clone(),
            node.capacity_type.to_string(),
            count(node.before),
            count(node.after),
            each(node),
        ]
    };
    let rows: Vec<Vec<String>> = different.iter().take(KINDS).map(row).collect();
    let header = ["instance type", "zone", "capacity", "before", "after", "$/h each"];
    page.table("nodes", "", &header, 3, &rows);
    if let Some(more) = more_of(different.len(), KINDS, "kind of node") {
        page.paragraph("", &more);
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::tests::answer;
    use super::*;

    #[test]
    fn a_page_begins_with_the_verdict_and_has_both_sides_and_folded_details() {
        let mut answer = answer();
        answer.notes.push("a <b> note".to_owned());
        answer.exceeded.push("the cost rises".to_owned());
        let mut printed = Vec::new();
        print(&answer, &mut printed).expect("memory takes it");
        let text = String::from_utf8(printed).expect("text");
        let (verdict, table) = (text.find("+$0.5000/h (+50.0 %)"), text.find("<table id=\"figures\">"));
        assert!(verdict.is_some() && verdict < table, "{text}");
        assert!(text.contains("<p class=\"warning\">Above the limit: the cost rises</p>"), "{text}");
        let row = "<th scope=\"row\">Cost per hour</th><td class=\"number\">$1.00</td><td class=\"number\">$1.50</td>";
        assert!(text.contains(row), "{text}");
        let bar = "<th scope=\"row\">after, at load +50 %</th><td class=\"number\">$3.00/h</td>";
        assert!(text.contains(bar) && text.contains("<figure>"), "{text}");
        answer.after.usd_per_hour_at_half_more_load = None;
        assert_eq!(costs(&answer).series.len(), 3, "what is unknown has no bar");
        assert!(text.contains("<summary>Pods that move: 1</summary>"), "{text}");
        assert!(text.contains("<li>a &lt;b&gt; note</li>"), "{text}");
    }
}
