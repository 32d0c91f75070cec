//! Prints a plan for people, as wide as the terminal and as short as possible.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Row, Table, presets};
use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_report::plan::{Document, LeftOut, NewNode, Purchase};
use poolwright_terms::{CapacityType, one_line};

use super::compared;
use super::terminal::{TableLayout, wrap};

/// The gap between columns. The gap after the last one is trimmed.
const GAP: u16 = 2;
/// The most kinds of node in a table. The rest is summed up.
const KINDS_SHOWN: usize = 30;
/// The most ways to use a GPU in a table.
const LAYOUTS_SHOWN: usize = 12;
/// The most reasons in the table of pods left out.
const REASONS_SHOWN: usize = 15;
/// The most pods that are named for each reason.
const PODS_NAMED: usize = 3;
/// The most unmet preferences in a table.
const RELAXED_SHOWN: usize = 8;

/// Prints `plan`.
pub fn print(plan: &Document, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", headline(plan))?;
    if !plan.nodes.is_empty() {
        writeln!(out, "\n{}", purchases(plan, layout))?;
    }
    if plan.nodes.iter().any(|node| !node.gpus.is_empty()) {
        writeln!(out, "\n{}", layouts(plan, layout))?;
    }
    if layout.wide && !plan.existing_nodes.is_empty() {
        writeln!(out, "\n{}", existing(plan, layout))?;
    }
    if plan.pods.total + plan.pods.expected > 0 {
        writeln!(out, "\n{}", figures(plan, layout))?;
    }
    if !plan.unplaced.is_empty() {
        writeln!(out, "\nLeft out: {}", pods(plan.unplaced.len()))?;
        writeln!(out, "{}", left_out(plan, layout))?;
    }
    if !plan.relaxed_preferences.is_empty() {
        writeln!(out, "\nPreferences not met:")?;
        writeln!(out, "{}", relaxed(plan, layout))?;
    }
    if let Some(explained) = &plan.explanation {
        writeln!(out, "\nWhy {} went there:", one_line(&explained.pod))?;
        writeln!(out, "{}", indent(&poolwright_terms::foreign::each_line(&explained.text)))?;
    }
    if !plan.notes.is_empty() {
        writeln!(out, "\nNotes:")?;
        writeln!(out, "{}", notes(plan, layout))?;
    }
    Ok(())
}

fn headline(plan: &Document) -> String {
    let total = plan.pods.total;
    let on_existing = plan.pods_on_existing();
    let buy = if plan.nodes.is_empty() {
        "nothing to buy".to_owned()
    } else {
        let kinds = if plan.nodes.len() == 1 { "node" } else { "nodes" };
        format!("buy {} {kinds} for {}", count(plan.nodes.len()), plan.cost_usd_per_hour.with_month())
    };
    let nobody = if plan.unread.is_empty() { "No pod" } else { "No pod that was read" };
    // Pods that are still to come, static pools, and pools that keep room free get nodes although no pod waits.
    let mut parts = vec![match (total, besides(plan).join(" and ")) {
        (0, besides) if besides.is_empty() => format!("{nobody} waits for a node: {buy}"),
        (0, besides) => format!("{nobody} waits for a node; {besides}: {buy}"),
        (_, besides) if besides.is_empty() => format!("{} waiting: {buy}", pods(total)),
        (_, besides) => format!("{} waiting and {besides}: {buy}", pods(total)),
    }];
    if on_existing > 0 {
        let fit = if on_existing == 1 { "fits" } else { "fit" };
        parts.push(format!("{} {fit} on existing nodes", count(on_existing)));
    }
    if plan.pods.unplaced > 0 {
        parts.push(format!("{} left out", count(plan.pods.unplaced)));
    }
    let with_room = plan.units.placed.saturating_sub(plan.units_on_new());
    if with_room > 0 {
        let have = if with_room == 1 { "has" } else { "have" };
        parts.push(format!("{} {have} room on existing nodes", counted(with_room, "unit")));
    }
    if plan.units.unplaced > 0 {
        parts.push(format!("{} left without room", counted(plan.units.unplaced, "unit")));
    }
    let refused: usize = plan.refused.iter().map(|refusal| refusal.pods).sum();
    if refused > 0 {
        parts.push(format!("the API server refuses {}", pods(refused)));
    }
    match plan.refused.iter().filter(|refusal| refusal.pods == 0).count() {
        0 => {}
        1 => parts.push("the API server refuses 1 object that makes pods".to_owned()),
        more => parts.push(format!("the API server refuses {} objects that make pods", count(more))),
    }
    match plan.unread.len() {
        0 => {}
        1 => parts.push("1 object that makes pods is not read".to_owned()),
        more => parts.push(format!("{} objects that make pods are not read", count(more))),
    }
    match plan.on_unknown_nodes.len() {
        0 => {}
        1 => parts.push("1 object is bound to a node that was not read".to_owned()),
        more => parts.push(format!("{} objects are bound to nodes that were not read", count(more))),
    }
    parts.join("; ") + "."
}

/// Names what the plan buys nodes for besides waiting pods.
fn besides(plan: &Document) -> Vec<String> {
    let coming = match plan.pods.expected {
        0 => None,
        1 => Some("1 pod that is still to come".to_owned()),
        more => Some(format!("{} that are still to come", pods(more))),
    };
    let nodes = match plan.static_nodes {
        0 => None,
        1 => Some("1 node of a static pool to add".to_owned()),
        more => Some(format!("{} nodes of static pools to add", count(more))),
    };
    let units = (plan.units.total > 0).then(|| units(plan.units.total));
    [coming, nodes, units].into_iter().flatten().collect()
}

/// Formats a number of units of buffers: `2 units of room to keep free`.
fn units(number: usize) -> String {
    format!("{} of room to keep free", counted(number, "unit"))
}

/// Formats numbers of pods and of units of buffers, of which at least one is above zero.
pub(super) fn pods_and_units(number: usize, of_units: usize) -> String {
    match (number, of_units) {
        (_, 0) => pods(number),
        (0, _) => units(of_units),
        _ => format!("{} and {}", pods(number), units(of_units)),
    }
}

fn purchases(plan: &Document, layout: TableLayout) -> String {
    let with_pool =
        plan.has_several_pools() || (layout.wide && plan.nodes.iter().any(|node| node.pool.is_some()));
    let shown = layout.rows(KINDS_SHOWN);
    let kinds = plan.purchases();
    let paid = plan.paid_by_commitments();
    let rest = kinds.get(shown..).unwrap_or_default();

    let mut table = plain(layout);
    let with_units = plan.units_on_new() > 0;
    let mut header = vec!["NODES", "INSTANCE TYPE", "ZONE", "CAPACITY", "$/H EACH", "$/H", "PODS"];
    if with_units {
        header.push("UNITS");
    }
    if with_pool {
        header.push("POOL");
    }
    if layout.wide {
        header.push("NAMES OF PODS");
    }
    table.set_header(header);
    for kind in kinds.iter().take(shown) {
        let unknown = || "unknown".to_owned();
        let each = kind.each.map_or_else(unknown, money);
        let total = if kind.each.is_some() { money(kind.cost.usd_per_hour) } else { unknown() };
        let mut row = vec![
            count(kind.nodes),
            one_line(kind.instance_type).into_owned(),
            one_line(kind.zone).into_owned(),
            kind.capacity_type.as_str().to_owned(),
            each,
            total,
            count(kind.pods),
        ];
        if with_units {
            row.push(count(kind.units));
        }
        if with_pool {
            row.push(pools(plan, kind));
        }
        if layout.wide {
            row.push(names_of_pods(nodes_of(plan, kind).flat_map(|node| &node.pods)));
        }
        table.add_row(row);
    }
    let blank = String::new;
    if !rest.is_empty() {
        let sum = Purchase::sum(rest);
        let name = format!("of {} more types", rest.len());
        let total = money(sum.cost.usd_per_hour);
        let mut row = vec![count(sum.nodes), name, blank(), blank(), blank(), total, count(sum.pods)];
        row.extend(with_units.then(|| count(sum.units)));
        table.add_row(row);
    }
    if paid > UsdPerHour::ZERO {
        let less = format!("-{}", money(paid));
        let by = "paid by commitments".to_owned();
        table.add_row([blank(), by, blank(), blank(), blank(), less, blank()]);
    }
    if kinds.len() > 1 || paid > UsdPerHour::ZERO {
        let (nodes, pods) = (count(plan.nodes.len()), count(plan.pods_on_new()));
        let more = if kinds.iter().any(|kind| kind.each.is_none()) { "+" } else { "" };
        let total = format!("{}{more}", money(plan.cost_usd_per_hour));
        let mut row = vec![nodes, "in all".to_owned(), blank(), blank(), blank(), total, pods];
        row.extend(with_units.then(|| count(plan.units_on_new())));
        table.add_row(row);
    }
    for right in [0, 4, 5, 6].into_iter().chain(with_units.then_some(7)) {
        if let Some(column) = table.column_mut(right) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text(table)
}

/// Returns the nodes of a kind.
fn nodes_of<'a>(plan: &'a Document, kind: &'a Purchase<'a>) -> impl Iterator<Item = &'a NewNode> {
    plan.nodes.iter().filter(|node| {
        let offering = (node.instance_type.as_str(), node.zone.as_str(), node.capacity_type);
        offering == (kind.instance_type, kind.zone, kind.capacity_type)
            && (kind.pool.is_none() || kind.pool == node.pool.as_deref())
    })
}

/// Returns the pool of a kind of node. If the plan buys for one pool, the kinds do not name it.
fn pools(plan: &Document, kind: &Purchase<'_>) -> String {
    let pool = nodes_of(plan, kind).find_map(|node| node.pool.clone());
    one_line(&pool.unwrap_or_default()).into_owned()
}

fn names_of_pods<'a>(names: impl Iterator<Item = &'a String>) -> String {
    one_line(&names.map(String::as_str).collect::<Vec<_>>().join(",")).into_owned()
}

/// Formats the pods that go to nodes that exist or are on their way.
fn existing(plan: &Document, layout: TableLayout) -> String {
    let mut table = plain(layout);
    table.set_header(["PODS", "EXISTING NODE", "NAMES OF PODS"]);
    for node in &plan.existing_nodes {
        let name = one_line(&node.name).into_owned();
        table.add_row([count(node.pods.len()), name, names_of_pods(node.pods.iter())]);
    }
    first_column_right(&mut table);
    text(table)
}

/// Formats the uses of GPUs, with one line for equal GPUs of one instance type.
fn layouts(plan: &Document, layout: TableLayout) -> String {
    let kinds = plan.layouts();
    let mut table = plain(layout);
    table.set_header(["GPUS", "INSTANCE TYPE", "USE OF EACH"]);
    for kind in kinds.iter().take(layout.rows(LAYOUTS_SHOWN)) {
        table.add_row([count(kind.gpus), kind.instance_type.to_owned(), kind.words.clone()]);
    }
    if let Some(rest) = kinds.get(layout.rows(LAYOUTS_SHOWN)..).filter(|rest| !rest.is_empty()) {
        let gpus = rest.iter().map(|kind| kind.gpus).sum();
        table.add_row([count(gpus), format!("in {} more ways", rest.len()), "-o json lists them".to_owned()]);
    }
    first_column_right(&mut table);
    text(table)
}

fn figures(plan: &Document, layout: TableLayout) -> String {
    let mut table = plain(layout);
    let mut add = |name: &str, text: String| {
        table.add_row([name.to_owned(), one_line(&text).into_owned()]);
    };
    if let Some(over_time) = &plan.over_time {
        let what = "new nodes until they are empty, old ones while they are kept longer for these pods";
        add("Cost over time", format!("{:#} expected: {what}", over_time.usd));
        let bound = over_time.lower_bound_usd;
        add("Lower bound", compared::bound(plan, &format!("{bound:#}"), bound == Usd::default()));
    }
    if !plan.nodes.is_empty() {
        let loses = plan.nodes.iter().any(|node| node.capacity_type == CapacityType::Spot);
        if let Some(risk) = plan.risk_usd_per_hour.filter(|risk| loses || *risk > UsdPerHour::ZERO) {
            add("Interruptions", format!("{risk:#} expected loss, in addition to the cost"));
        }
        if let Some(bound) = plan.lower_bound_usd_per_hour {
            add("Lower bound", compared::bound(plan, &format!("{bound:#}"), bound == UsdPerHour::ZERO));
        }
        for (name, text) in compared::rules(plan).into_iter().chain(compared::baselines(plan)) {
            add(name, text);
        }
        for of in &plan.commitments {
            add(
                "Commitment",
                match of.existing_usd_per_hour {
                    None => format!("{}: {:#} of {:#} used", of.name, of.used_usd_per_hour, of.usd_per_hour),
                    Some(existing) => format!(
                        "{}: {:#} of {:#} used by these nodes; existing nodes use {existing:#}",
                        of.name, of.used_usd_per_hour, of.usd_per_hour
                    ),
                },
            );
        }
    }
    add("Time", format!("{:.2} s, first plan after {:.2} s", plan.elapsed_seconds, plan.first_plan_seconds));
    let catalogue = &plan.catalogue;
    let mut chosen_from = vec![catalogue.source.clone(), counted(catalogue.offerings, "offering")];
    chosen_from.push(match &catalogue.as_of {
        Some(day) => format!("its oldest price of {day}"),
        None => "prices undated".to_owned(),
    });
    if catalogue.unknown_prices > 0 {
        chosen_from.push(format!("{} without a known price", count(catalogue.unknown_prices)));
    }
    add("Catalogue", chosen_from.join(", "));
    text(table)
}

fn left_out(plan: &Document, layout: TableLayout) -> String {
    let reasons = plan.left_out();
    let mut table = plain(layout.indented());
    for LeftOut { reason, message, pods } in reasons.iter().take(layout.rows(REASONS_SHOWN)) {
        let named = pods.iter().take(layout.rows(PODS_NAMED)).copied().collect::<Vec<_>>().join(", ");
        let more = match pods.len().saturating_sub(layout.rows(PODS_NAMED)) {
            0 => String::new(),
            more => format!(" and {} more", count(more)),
        };
        let text = format!("{reason}: {}\n{}{more}", one_line(message), one_line(&named));
        table.add_row([count(pods.len()), text]);
    }
    if let Some(rest) = reasons.get(layout.rows(REASONS_SHOWN)..).filter(|rest| !rest.is_empty()) {
        let pods = rest.iter().map(|left| left.pods.len()).sum();
        table.add_row([count(pods), format!("for {} more reasons; -o json lists them", rest.len())]);
    }
    first_column_right(&mut table);
    indent(&text(table))
}

/// Formats the unmet preferences, those with the most pods first.
fn relaxed(plan: &Document, layout: TableLayout) -> String {
    let all = plan.relaxed_by_pods();
    let mut table = plain(layout.indented());
    for one in all.iter().take(layout.rows(RELAXED_SHOWN)) {
        let named =
            one.pods.iter().take(layout.rows(PODS_NAMED)).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match one.pods.len().saturating_sub(layout.rows(PODS_NAMED)) {
            0 => String::new(),
            more => format!(" and {} more", count(more)),
        };
        let unmet = format!("{}: {}", one.preference, one.message);
        let text = format!("{}\n{}{more}", one_line(&unmet), one_line(&named));
        table.add_row([count(one.pods.len()), text]);
    }
    if let Some(rest) = all.get(layout.rows(RELAXED_SHOWN)..).filter(|rest| !rest.is_empty()) {
        table.add_row([String::new(), format!("{} more; -o json lists them", rest.len())]);
    }
    first_column_right(&mut table);
    indent(&text(table))
}

fn notes(plan: &Document, layout: TableLayout) -> String {
    let mut table = plain(layout);
    for note in &plan.notes {
        table.add_row(["-", &*one_line(note)]);
    }
    text(table)
}

fn first_column_right(table: &mut Table) {
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

pub(super) fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Returns a table without lines.
pub(crate) fn plain(layout: TableLayout) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(width) = layout.width {
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    table
}

/// Formats a table with its columns two spaces apart. If it has a width, the text of the last column is wrapped to it. Nothing
/// else is: the other columns are names and numbers.
pub(crate) fn text(mut table: Table) -> String {
    if let Some(width) = table.width() {
        let widths = table.column_max_content_widths();
        let before: usize =
            widths.iter().rev().skip(1).map(|wide| usize::from(*wide) + usize::from(GAP)).sum();
        let room = usize::from(width).saturating_sub(before);
        for row in table.row_iter_mut() {
            let mut cells: Vec<String> = row.cell_iter().map(comfy_table::Cell::content).collect();
            if let Some(last) = cells.last_mut().filter(|_| row.cell_count() == widths.len()) {
                *last = wrap(last, room);
            }
            *row = Row::from(cells);
        }
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    table.trim_fmt()
}

pub(super) fn pods(number: usize) -> String {
    counted(number, "pod")
}

/// Formats a count with its noun: `1 type`, `12,345 types`.
pub(crate) fn counted(number: usize, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Formats a number: `12,345`.
pub(crate) fn count(number: usize) -> String {
    thousands(&number.to_string())
}

fn thousands(digits: &str) -> String {
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats dollars per hour for a column, as sentences do but without `/h`: `$8,110.30`, `$0.1920`.
pub(crate) fn money(amount: UsdPerHour) -> String {
    format!("{amount:#}").trim_end_matches("/h").to_owned()
}

/// Formats a percentage: `0.05 %`, `12 %`.
pub(crate) fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent >= 10.0 {
        format!("{percent:.0} %")
    } else if percent >= 0.01 {
        format!("{percent:.2} %")
    } else {
        "under 0.01 %".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_shows_money_as_sentences_do() {
        let of = |amount: &str| money(amount.parse().unwrap());
        assert_eq!(
            ["8110.295", "0.706832", "1.006", "0"].map(of),
            ["$8,110.30", "$0.7068", "$1.01", "$0.00"]
        );
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn a_narrow_table_wraps_sentences_and_breaks_no_name() {
        let printed = |width| {
            let mut table = plain(TableLayout { width, wide: false });
            table.add_row([
                "a-pool-with-a-very-long-name",
                "no offering has room for pod ml/a-pod-with-a-very-long-name",
            ]);
            table.add_row(["b", "12 pods"]);
            first_column_right(&mut table);
            text(table)
        };
        let narrow = "\
a-pool-with-a-very-long-name  no offering has room for
                              pod
                              ml/a-pod-with-a-very-long-name
                           b  12 pods";
        assert_eq!(printed(Some(40)), narrow);
        assert_eq!(printed(None).lines().count(), 2, "each row is one line");
    }
}
