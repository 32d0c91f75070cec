//! Formats the view as plain text for scripts, tickets and terminals without a cursor.

use super::columns::{self, Column, lay_out, plain, wrapped};
use super::view::{ObjectKind, View};
use super::{tables, words};
use crate::print::TableLayout;

/// The most events that are printed. JSON has more.
const EVENTS_SHOWN: usize = 20;
/// The column at which a sentence goes on after a break.
const NOTE: usize = 2;

/// Formats the view as plain text. Equal views give equal text in the same layout.
pub fn text(view: &View, layout: TableLayout) -> String {
    let now = view.read_at;
    let mut lines: Vec<String> = Vec::new();
    let mut headlines = vec![("Cluster", format!("{}, read at {now:.0}", view.cluster))];
    headlines.extend(words::headlines(view, now));
    let wide = headlines.iter().map(|(name, _)| columns::width(name)).max().unwrap_or(0);
    for (name, text) in headlines {
        lines.push(format!("{name:wide$}  {}", plain(&text)));
    }
    let pools: Vec<_> = view.pools.iter().map(tables::pool).collect();
    part(
        &mut lines,
        view,
        &[ObjectKind::NodePools],
        "No NodePools: Poolwright buys nothing.",
        &tables::POOLS,
        &pools,
        layout,
    );
    let mut node_columns = tables::NODES.to_vec();
    let mut nodes: Vec<_> = view.nodes.iter().map(|row| tables::node(row, now)).collect();
    if layout.wide {
        let doing = node_columns.len() - 1;
        node_columns.splice(doing..doing, tables::MORE_OF_NODES);
        for (cells, row) in nodes.iter_mut().zip(&view.nodes) {
            cells.splice(doing..doing, tables::more_of_node(row));
        }
    }
    let kinds = [ObjectKind::NodeClaims, ObjectKind::Nodes];
    part(&mut lines, view, &kinds, "Poolwright has no nodes.", &node_columns, &nodes, layout);
    let events = view.events.iter().take(EVENTS_SHOWN);
    let events: Vec<_> = events.map(|row| tables::event(row, now)).collect();
    part(&mut lines, view, &[ObjectKind::Events], "No recent events.", &tables::EVENTS, &events, layout);
    if !view.notes.is_empty() {
        lines.push(String::new());
        lines.extend(view.notes.iter().map(|note| layout.fit(&plain(note), NOTE)));
    }
    lines.join("\n") + "\n"
}

/// Formats one table, and the errors of its kinds.
fn part(
    lines: &mut Vec<String>,
    view: &View,
    kinds: &[ObjectKind],
    nothing: &str,
    columns: &[Column],
    rows: &[Vec<String>],
    layout: TableLayout,
) {
    lines.push(String::new());
    let unreadable = kinds.iter().filter_map(|kind| view.unreadable.get(kind));
    let unreadable: Vec<String> = unreadable.map(|why| layout.fit(&plain(why), NOTE)).collect();
    if rows.is_empty() && unreadable.is_empty() {
        lines.push(nothing.to_owned());
    }
    lines.extend(unreadable);
    if !rows.is_empty() {
        let grid = match layout.width {
            Some(most) => lay_out(columns, &wrapped(columns, rows, most), None),
            None => lay_out(columns, rows, None),
        };
        lines.push(grid.header);
        lines.extend(grid.rows);
    }
}
