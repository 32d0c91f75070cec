//! The answer for people.

use std::io::{self, Write};

use comfy_table::CellAlignment;
use poolwright_terms::one_line;

use super::answer::{Answer, NodeChange, RunnerUp, Side};
use super::outcome::Unplanned;
use super::rows::{each, figures, more_of};
use crate::print::{TableLayout, count, counted, plain, text};

/// The most kinds of node that differ, and the most pods, in a table.
const SHOWN: usize = 20;

/// Prints the answer.
pub fn print(answer: &Answer, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", one_line(&answer.verdict))?;
    for exceeded in &answer.exceeded {
        writeln!(out, "Above the limit: {exceeded}")?;
    }
    list("Changes", answer.changes.iter().map(String::as_str), layout, out)?;
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
    nodes(&answer.difference.nodes, layout, out)?;
    let moves = answer.difference.moves.iter();
    let moves: Vec<String> =
        moves.map(|one| format!("{}: from {} to {}", one.pod, one.from, one.to)).collect();
    pods("Pods that move", &moves, layout, out)?;
    pods("Pods that are lost", &answer.difference.lost, layout, out)?;
    pods("Pods that are added", &answer.difference.added, layout, out)?;
    pods("Pods that are removed", &answer.difference.removed, layout, out)?;
    pods("Pods that wait", &waiting(&answer.after), layout, out)?;
    list("Not planned", unplanned(&answer.after).iter().map(String::as_str), layout, out)?;
    if let Some(runner_up) = &answer.runner_up {
        writeln!(out, "\n{}", layout.fit(&one_line(&told(runner_up)), 2))?;
    }
    let assumptions: Vec<String> =
        answer.assumptions.iter().map(super::assumptions::Assumption::told).collect();
    list("Assumptions", assumptions.iter().map(String::as_str), layout, out)?;
    list("Notes", answer.notes.iter().map(String::as_str), layout, out)
}

/// Describes the next best way to buy.
pub fn told(RunnerUp { without, usd_per_hour_more, waits_more, buys }: &RunnerUp) -> String {
    let cost = if usd_per_hour_more.is_zero() {
        "costs the same".to_owned()
    } else {
        let size = usd_per_hour_more.to_string();
        let (sign, word) = if usd_per_hour_more.sign() == "-" { ('-', "less") } else { ('+', "more") };
        format!("costs {} {word}", size.trim_start_matches(sign))
    };
    let waits = match waits_more {
        0 => String::new(),
        more => format!(", and {} more would wait", counted(*more, "pod")),
    };
    let buys = if buys.is_empty() { "nothing".to_owned() } else { buys.join(", ") };
    format!("Runner-up: without {without} it {cost}{waits}; it buys {buys}.")
}

/// Returns the pods that wait, with the reasons.
pub fn waiting(side: &Side) -> Vec<String> {
    side.waiting.iter().map(|left| format!("{}: {}: {}", left.pod, left.reason, left.message)).collect()
}

/// Returns the work that is not planned, with the reasons.
pub fn unplanned(side: &Side) -> Vec<String> {
    let Unplanned { refused, unread, on_unknown_nodes } = &side.unplanned;
    let refused = refused.iter().map(|one| match one.pods {
        0 => format!("{}: its pods are refused", one.object),
        pods => format!("{}: {} refused", one.object, counted(pods, "pod")),
    });
    let unread = unread.iter().map(|object| format!("{object}: not read"));
    let unknown = on_unknown_nodes.iter().map(|object| format!("{object}: on nodes that the input lacks"));
    refused.chain(unread).chain(unknown).collect()
}

fn nodes(all: &[NodeChange], layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    let different: Vec<&NodeChange> = all.iter().filter(|node| node.is_any()).collect();
    if different.is_empty() {
        return Ok(());
    }
    let mut table = plain(layout);
    table.set_header(["BEFORE", "AFTER", "INSTANCE TYPE", "ZONE", "CAPACITY", "$/H EACH"]);
    for node in different.iter().take(SHOWN) {
        table.add_row([
            count(node.before),
            count(node.after),
            one_line(&node.instance_type).into_owned(),
            one_line(&node.zone).into_owned(),
            node.capacity_type.to_string(),
            each(node),
        ]);
    }
    for column in [0, 1] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "\n{}", text(table))?;
    more_of(different.len(), SHOWN, "kind of node").map_or(Ok(()), |more| writeln!(out, "{more}"))
}

fn pods(title: &str, lines: &[String], layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    let title = format!("{title}: {}", count(lines.len()));
    let more = more_of(lines.len(), SHOWN, "pod");
    let shown = lines.iter().take(SHOWN).chain(&more).map(String::as_str);
    if lines.is_empty() { Ok(()) } else { list(&title, shown, layout, out) }
}

fn list<'a>(
    title: &str,
    lines: impl Iterator<Item = &'a str>,
    layout: TableLayout,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut table = plain(layout);
    for line in lines {
        table.add_row(["-", &*one_line(line)]);
    }
    if table.is_empty() {
        return Ok(());
    }
    let colon = if title.contains(": ") { "" } else { ":" };
    writeln!(out, "\n{title}{colon}\n{}", text(table))
}

#[cfg(test)]
mod tests {
    use poolwright_report::plan::Refusal;

    use super::super::answer::tests::answer;
    use super::super::delta::Delta;
    use super::*;

    #[test]
    fn the_verdict_comes_first_and_the_figures_follow() {
        let mut printed = Vec::new();
        print(&answer(), TableLayout { width: None, wide: false }, &mut printed).expect("a list takes it");
        let printed = String::from_utf8(printed).expect("text");
        let mut lines = printed.lines();
        assert_eq!(
            lines.next(),
            Some(
                "+$0.5000/h (+50.0 %), +$365.00/month; 1 fewer g5.xlarge, 1 more g6.xlarge; 1 pod moves; nothing waits"
            )
        );
        let cells = |name: &str| {
            let line = printed.lines().find(|line| line.starts_with(name)).expect(name);
            line[name.len()..].split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(cells("Cost per hour"), "$1.00 $1.50 +$0.5000");
        assert_eq!(cells("Cost at load +50 %"), "$3.00 $3.00 $0.00");
        assert!(printed.contains("\nPods that move: 1\n"), "{printed}");
        assert!(
            printed.contains("ml/a: from node gpu-1 to a new g6.xlarge in us-east-1a (on-demand)"),
            "{printed}"
        );
    }

    #[test]
    fn removed_pods_and_work_that_is_not_planned_are_listed() {
        let mut answer = answer();
        answer.difference.removed.push("ml/gone".to_owned());
        answer.after.unplanned = Unplanned {
            refused: vec![Refusal { object: "Job ml/a".to_owned(), pods: 2 }],
            unread: vec!["Trainer ml/b".to_owned()],
            on_unknown_nodes: vec!["Pod ml/c".to_owned()],
        };
        let mut printed = Vec::new();
        print(&answer, TableLayout { width: None, wide: false }, &mut printed).expect("a list takes it");
        let printed = String::from_utf8(printed).expect("text");
        for said in [
            "\nPods that are removed: 1\n",
            "ml/gone",
            "\nNot planned:\n",
            "Job ml/a: 2 pods refused",
            "Trainer ml/b: not read",
            "Pod ml/c: on nodes that the input lacks",
        ] {
            assert!(printed.contains(said), "{said}: {printed}");
        }
    }

    #[test]
    fn the_runner_up_says_what_it_costs_and_buys() {
        let usd = |text: &str| text.parse().expect("an amount");
        let mut runner_up = RunnerUp {
            without: "g5.xlarge".to_owned(),
            usd_per_hour_more: Delta::between(usd("1"), usd("3")),
            waits_more: 0,
            buys: vec!["1 x g6.xlarge in a (spot)".to_owned()],
        };
        assert_eq!(
            told(&runner_up),
            "Runner-up: without g5.xlarge it costs $2.00/h more; it buys 1 x g6.xlarge in a (spot)."
        );
        (runner_up.waits_more, runner_up.buys) = (2, Vec::new());
        assert_eq!(
            told(&runner_up),
            "Runner-up: without g5.xlarge it costs $2.00/h more, and 2 pods more would wait; it buys nothing."
        );
    }
}
