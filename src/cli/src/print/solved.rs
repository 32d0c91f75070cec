//! Prints solutions for people: only the figures.

use std::io::{self, Write};

use poolwright_report::solved::{Figures, Solved};
use poolwright_solver::{Proof, Stopped};
use poolwright_terms::one_line;

use super::TableLayout;
use super::table::{count, counted, indent, percent, plain, pods, text};

/// The most classes that are named among the pods left out.
const CLASSES_SHOWN: usize = 15;

/// Prints the figures of every solution.
pub fn print(solved: &Solved, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    if solved.problems.is_empty() {
        return writeln!(out, "The file has no problem: nothing to solve.");
    }
    for (at, figures) in solved.problems.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let many = solved.problems.len() > 1;
        let which =
            if many { format!("Problem {} of {}: ", at + 1, solved.problems.len()) } else { String::new() };
        writeln!(out, "{which}{}\n", size(figures))?;
        writeln!(out, "{}", table(figures, layout))?;
        if !figures.unplaced.is_empty() {
            writeln!(out, "\nLeft out: {}", pods(figures.unplaced_pods as usize))?;
            writeln!(out, "{}", left_out(figures, layout.indented()))?;
        }
    }
    Ok(())
}

fn size(figures: &Figures) -> String {
    let number = |number: usize, one: &str, many: &str| {
        format!("{} {}", count(number), if number == 1 { one } else { many })
    };
    format!(
        "{} in {}, {} of node to buy, {} existing.",
        pods(figures.pods as usize),
        number(figures.classes, "class", "classes"),
        number(figures.candidates, "kind", "kinds"),
        number(figures.existing, "node is", "nodes are"),
    )
}

fn table(figures: &Figures, layout: TableLayout) -> String {
    let mut table = plain(layout);
    let mut add = |name: &str, text: String| {
        table.add_row([name.to_owned(), text]);
    };
    add("Nodes to buy", count(figures.nodes as usize));
    add("Cost", format!("{:#}", figures.cost_usd_per_hour));
    if figures.charges_usd_per_hour.micros() > 0 {
        let charges = &figures.solution.charges;
        add(
            "Counted besides",
            format!(
                "{:#}: risk {:#}, preferences and later ends of nodes {:#}, disruption {:#}",
                figures.charges_usd_per_hour, charges.risk, charges.preferences, charges.disruption
            ),
        );
    }
    let gap = if figures.gap == 0.0 { "0 %".to_owned() } else { percent(figures.gap) };
    add(
        "Lower bound",
        format!("{:#}, gap {gap}, proof {}", figures.lower_bound_usd_per_hour, proof(figures.proof)),
    );
    add(
        "Stopped",
        match figures.stopped {
            Stopped::GapReached => "good enough",
            Stopped::WorkLimit => "work limit",
            Stopped::Exhausted => "nothing left to try",
            Stopped::Asked => "time limit",
        }
        .to_owned(),
    );
    if figures.removed > 0 {
        add("Nodes to remove", format!("{} in {}", count(figures.removed), counted(figures.steps, "step")));
    }
    add(
        "Time",
        format!("{:.2} s, first plan after {:.2} s", figures.elapsed_seconds, figures.first_plan_seconds),
    );
    text(table)
}

/// Says what the bound rests on.
pub fn proof(proof: Proof) -> &'static str {
    match proof {
        Proof::Exact => "exact",
        Proof::Complete => "complete",
        Proof::Truncated => "truncated (valid, but more work might raise the bound)",
    }
}

fn left_out(figures: &Figures, layout: TableLayout) -> String {
    let mut table = plain(layout);
    for left in figures.unplaced.iter().take(CLASSES_SHOWN) {
        let class = format!("{}: {}", left.class, left.reason);
        table.add_row([count(left.count as usize), one_line(&class).into_owned()]);
    }
    if let Some(rest) = figures.unplaced.get(CLASSES_SHOWN..).filter(|rest| !rest.is_empty()) {
        let pods = rest.iter().map(|left| left.count as usize).sum();
        table.add_row([count(pods), format!("of {} more classes; -o json lists them", rest.len())]);
    }
    indent(&text(table))
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::UsdPerHour;
    use poolwright_solver::{Charges, Problem, Solution};

    use super::*;

    #[test]
    fn what_pods_cost_besides_their_nodes_is_more_than_preferences() {
        let charges = Charges { preferences: UsdPerHour::from_micros(2_000_000), ..Charges::default() };
        let solution = Solution { charges, ..Solution::default() };
        let figures = Figures::of(&Problem::default(), solution, poolwright_report::Times::default());
        let solved = Solved { problems: vec![figures], ..Solved::default() };
        let mut told = Vec::new();
        print(&solved, TableLayout { width: None, wide: false }, &mut told).unwrap();
        let told = String::from_utf8(told).unwrap();
        assert!(told.contains(", preferences and later ends of nodes $2.00/h, "), "{told}");
    }
}
