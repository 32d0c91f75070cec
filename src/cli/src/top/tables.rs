//! The columns of each part, and their cells.

use jiff::Timestamp;
use poolwright_catalog::{Usd, UsdPerHour};

use super::columns::Column;
use super::view::{Budget, EventRow, NodeRow, PoolRow};
use super::words;

const fn left(title: &'static str, rank: u8) -> Column {
    Column { title, right: false, rank }
}

const fn right(title: &'static str, rank: u8) -> Column {
    Column { title, right: true, rank }
}

/// The columns of pools.
pub const POOLS: [Column; 10] = [
    left("POOL", 0),
    right("WEIGHT", 9),
    right("READY", 0),
    right("NOT READY", 3),
    right("STARTING", 3),
    right("LEAVING", 4),
    right("GPUS", 1),
    right("$/H", 2),
    left("LIMITS", 5),
    left("STATE", 0),
];

/// The columns of nodes.
pub const NODES: [Column; 11] = [
    left("NODE", 0),
    left("POOL", 5),
    left("INSTANCE TYPE", 4),
    left("ZONE", 9),
    left("CAPACITY", 8),
    left("STAGE", 0),
    right("AGE", 3),
    right("GPUS", 1),
    right("PODS", 6),
    right("$/H", 2),
    left("DOING", 0),
];

/// The columns of nodes that only `-o wide` shows, before the last one.
pub const MORE_OF_NODES: [Column; 2] = [left("NODE NAME", 0), left("CREATED", 0)];

/// The columns of events.
pub const EVENTS: [Column; 5] =
    [right("AGO", 0), left("SEVERITY", 3), left("ABOUT", 1), left("REASON", 2), left("WHAT", 0)];

/// Returns the cells of a pool.
pub fn pool(row: &PoolRow) -> Vec<String> {
    vec![
        row.name.clone(),
        row.weight.map_or_else(|| "-".to_owned(), |weight| weight.to_string()),
        row.nodes.nodes_ready.to_string(),
        row.nodes.nodes_not_ready.to_string(),
        row.nodes.nodes_starting.to_string(),
        row.nodes.nodes_leaving.to_string(),
        words::gpus(row.gpus),
        words::cost(row.cost),
        limits(row),
        state(row),
    ]
}

fn limits(row: &PoolRow) -> String {
    if row.limits.is_empty() && row.monthly_budget.is_none() {
        return "none".to_owned();
    }
    let limit = |(key, amount): (&String, &String)| match key.as_str() {
        "usdPerHour" => {
            amount.parse::<UsdPerHour>().map_or_else(|_| format!("${amount}/h"), |usd| format!("{usd:#}"))
        }
        "nodes" if amount == "1" => "1 node".to_owned(),
        "nodes" => format!("{amount} nodes"),
        _ => format!("{amount} {key}"),
    };
    let limits = row.limits.iter().map(limit);
    limits.chain(row.monthly_budget.as_ref().map(budget)).collect::<Vec<_>>().join(", ")
}

fn budget(budget: &Budget) -> String {
    let money = |text: &String| Usd::read(text).map_or_else(|| format!("${text}"), |usd| format!("{usd:#}"));
    let all = money(&budget.usd);
    match (&budget.spent_usd, &budget.forecast_usd) {
        (Some(spent), Some(forecast)) => {
            format!("{} of {all} this month (forecast {})", money(spent), money(forecast))
        }
        _ => format!("{all} a month"),
    }
}

fn state(row: &PoolRow) -> String {
    match (&row.problem, row.ready) {
        (None, _) => "ready".to_owned(),
        (Some(problem), Some(true)) => problem.clone(),
        (Some(problem), _) => format!("not ready: {problem}"),
    }
}

/// Returns the cells of a node.
pub fn node(row: &NodeRow, now: Timestamp) -> Vec<String> {
    vec![
        row.name.clone(),
        row.pool.clone(),
        row.instance_type.clone(),
        row.zone.clone(),
        row.capacity_type.to_owned(),
        row.stage.as_str().to_owned(),
        words::age(row.created_at, now),
        words::gpus(row.gpus),
        row.pods.map_or_else(|| "?".to_owned(), |pods| pods.to_string()),
        words::price(row.usd_per_hour),
        sentence(row),
    ]
}

/// Returns the cells of a node that only `-o wide` shows.
pub fn more_of_node(row: &NodeRow) -> [String; 2] {
    [row.node.clone().unwrap_or_else(|| "-".to_owned()), format!("{:.0}", row.created_at)]
}

/// Returns what is being done about a node, and why.
pub fn sentence(row: &NodeRow) -> String {
    match &row.why {
        Some(why) => format!("{}; {why}", row.doing),
        None => row.doing.clone(),
    }
}

/// Returns the cells of an event, with only the first line of a long message.
pub fn event(row: &EventRow, now: Timestamp) -> Vec<String> {
    vec![
        words::age(row.at, now),
        row.severity.clone(),
        format!("{} {}", row.about, row.object),
        row.reason.clone(),
        row.message.lines().next().unwrap_or_default().to_owned(),
    ]
}
