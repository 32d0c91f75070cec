//! The use to pay for: node-hours on demand of each hour, from a file or from a replay. `recorded` reads those of a ledger.

use std::collections::BTreeMap;

use poolwright_catalog::money::MoneyError;
use poolwright_catalog::{Catalogue, UsdPerHour};
use poolwright_report::replay::History;
use poolwright_solver::purchase::MILLION;
use poolwright_terms::CapacityType;

use super::prices::{self, on_demand};
use crate::print::counted;
use crate::problems::Problems;
use crate::source::Source;
use crate::trace::table::{Column, Row, read};

const HOUR: &str = "hour";
const TYPE: &str = "instance_type";
const NODE_HOURS: &str = "node_hours";
const PRICE: &str = "usd_per_hour";

const COLUMNS: [Column; 4] = [
    Column { name: HOUR, required: true },
    Column { name: TYPE, required: true },
    Column { name: NODE_HOURS, required: true },
    Column { name: PRICE, required: false },
];

/// The most hours: ten years. A larger number has another unit, such as seconds.
const MOST_HOURS: u64 = 87_600;

/// The most nodes of a type in an hour.
const MOST_NODES: u64 = 1_000_000;

/// Milliseconds of an hour.
pub const HOUR_MILLIS: u128 = 3_600_000;

/// Node-hours on demand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of hours.
    pub hours: u64,
    /// The on-demand price of each instance type.
    pub prices: BTreeMap<String, UsdPerHour>,
    /// The node-hours in millionths, by hour and instance type. Hours without any are left out.
    pub nodes: BTreeMap<u64, BTreeMap<String, u64>>,
    /// Notes on how the input was understood.
    pub notes: Vec<String>,
}

impl Usage {
    /// Returns all node-hours in millionths.
    pub fn total(&self) -> u128 {
        self.nodes.values().flat_map(BTreeMap::values).map(|nodes| u128::from(*nodes)).sum()
    }

    /// Adds a node that ran between these milliseconds.
    pub fn add(&mut self, kind: &str, begin: u128, end: u128) {
        let mut at = begin;
        while at < end {
            let hour = at / HOUR_MILLIS;
            let until = ((hour + 1) * HOUR_MILLIS).min(end);
            let of_hour = self.nodes.entry(u64::try_from(hour).unwrap_or(u64::MAX)).or_default();
            // Rounded so that spans one after the other add up to one span.
            let millionths = |time: u128| time * u128::from(MILLION) / HOUR_MILLIS;
            let part = millionths(until) - millionths(at);
            *of_hour.entry(kind.to_owned()).or_default() += u64::try_from(part).unwrap_or(u64::MAX);
            at = until;
        }
    }
}

/// Reads a file of node-hours. All problems are told together.
pub fn of_file(file: &Source, catalogue: &Catalogue) -> Result<Usage, Problems> {
    let mut problems = Problems::new();
    let mut usage = Usage::default();
    let mut hours: Option<(u64, u64)> = None;
    read(&file.name, &file.text, &COLUMNS, &mut problems, |row, problems| {
        let hour = row.number(problems, HOUR, u64::MAX);
        let kind = kind(row, problems, catalogue);
        let nodes = decimal(row, problems, NODE_HOURS, "write the node-hours as 12 or 12.5");
        let price = match row.cell(PRICE) {
            None | Some("") => None,
            Some(_) => decimal(row, problems, PRICE, "write US dollars per hour as 1.006")
                .filter(|price| is_paid(row, problems, *price)),
        };
        let (Some(hour), Some(kind), Some(nodes)) = (hour, kind, nodes) else { return };
        if nodes > MOST_NODES * MILLION {
            let cause = format!("\"{}\" is too large", row.cell(NODE_HOURS).unwrap_or_default());
            row.problem(problems, NODE_HOURS, cause, format!("write {MOST_NODES} or less"));
            return;
        }
        let (first, last) = hours.unwrap_or((hour, hour));
        if hour < last {
            let cause = format!("{hour} is after {last}, so the clock goes back");
            row.problem(problems, HOUR, cause, "sort the lines by their hours");
            return;
        }
        if hour - first >= MOST_HOURS {
            let cause = format!("{hour} is {MOST_HOURS} hours or more after the first, which is {first}");
            row.problem(problems, HOUR, cause, "count in hours, and give ten years or less");
            return;
        }
        hours = Some((first, hour));
        if let Some(price) = price.map(UsdPerHour::from_micros) {
            let known = *usage.prices.entry(kind.to_owned()).or_insert(price);
            if known != price {
                let cause = format!("{kind} costs {price}, and {known} before");
                row.problem(problems, PRICE, cause, "give a type one price, that of now");
            }
        }
        let of_hour = usage.nodes.entry(hour - first).or_default();
        if of_hour.insert(kind.to_owned(), nodes).is_some() {
            let cause = format!("hour {hour} has {kind} already");
            row.problem(problems, TYPE, cause, "add the node-hours up to one line");
        }
    });
    for kind in usage.nodes.values().flat_map(BTreeMap::keys) {
        if !usage.prices.contains_key(kind) {
            match on_demand(catalogue, kind) {
                Ok(price) => {
                    usage.prices.insert(kind.clone(), price);
                }
                Err(why) => {
                    // Told once: it stands in the way of nothing else.
                    usage.prices.insert(kind.clone(), UsdPerHour::ZERO);
                    problems.push(format!("{}: {why}", file.name));
                }
            }
        }
    }
    usage.hours = hours.map_or(0, |(first, last)| last - first + 1);
    let silent = usage.hours - usage.nodes.len() as u64;
    if silent > 0 {
        usage.notes.push(format!(
            "{}: {} between the first and the last {} no line and count as no use",
            file.name,
            counted(silent as usize, "hour"),
            if silent == 1 { "has" } else { "have" }
        ));
    }
    if problems.is_empty() && usage.total() == 0 {
        problems.push(format!("{}: it has no node-hours; give at least one line with some", file.name));
    }
    problems.or(usage)
}

/// Returns the instance type of a row. The catalogue must have it, unless the row says its price.
fn kind<'r>(row: &'r Row<'_>, problems: &mut Problems, catalogue: &Catalogue) -> Option<&'r str> {
    let name = row.cell(TYPE)?;
    let has_price = row.cell(PRICE).is_some_and(|price| !price.is_empty());
    if name.is_empty() {
        row.problem(problems, TYPE, "the cell is empty".to_owned(), "name the instance type");
        return None;
    }
    if !has_price && let Some(instead) = prices::unknown(catalogue, name) {
        let remedy = format!("give its price in the column {PRICE}; {instead}");
        row.problem(problems, TYPE, format!("`{name}` is not an instance type of the catalogue"), remedy);
        return None;
    }
    Some(name)
}

/// Reads a decimal in millionths.
fn decimal(row: &Row<'_>, problems: &mut Problems, column: &str, remedy: &str) -> Option<u64> {
    let text = row.cell(column)?;
    let cause = match text.parse::<UsdPerHour>() {
        Ok(amount) => return Some(amount.micros()),
        Err(MoneyError::Negative(_)) => format!("\"{text}\" is negative"),
        Err(MoneyError::TooLarge(_)) => format!("\"{text}\" is too large"),
        Err(MoneyError::NotANumber(_)) => format!("\"{text}\" is not a decimal number"),
    };
    row.problem(problems, column, cause, remedy);
    None
}

fn is_paid(row: &Row<'_>, problems: &mut Problems, price: u64) -> bool {
    if price == 0 {
        row.problem(
            problems,
            PRICE,
            "it is zero, and nothing is free".to_owned(),
            "leave it empty for the price of the catalogue",
        );
    }
    price > 0
}

/// Takes the on-demand nodes of a replay.
///
/// # Errors
///
/// There are none, or the nodes of a type differ in price. The error is a sentence.
pub fn of_history(history: &History) -> Result<Usage, String> {
    let mut usage = Usage::default();
    let (mut unpriced, mut others) = (0, 0);
    for machine in &history.machines {
        if machine.offering.capacity_type != CapacityType::OnDemand {
            others += 1;
            continue;
        }
        let Some(price) = machine.price.filter(|price| *price > UsdPerHour::ZERO) else {
            unpriced += 1;
            continue;
        };
        let kind = machine.offering.instance_type.as_str();
        let known = *usage.prices.entry(kind.to_owned()).or_insert(price);
        if known != price {
            return Err(format!(
                "the replay buys {kind} at {known:#} and at {price:#}; use pools or a catalogue of one region, because an offer is for one"
            ));
        }
        let begin = machine.launched.as_millis();
        usage.add(kind, begin, begin + machine.lasted(history.played).as_millis());
    }
    if usage.nodes.is_empty() {
        return Err(
            "the replay buys no node on demand at a known price, so there is nothing to commit to".to_owned()
        );
    }
    let played = history.played.as_millis();
    usage.hours = u64::try_from(played.div_ceil(HOUR_MILLIS)).unwrap_or(u64::MAX);
    if !played.is_multiple_of(HOUR_MILLIS) {
        usage
            .notes
            .push("the last hour is not played whole, and commitments are paid for all of it".to_owned());
    }
    if others > 0 {
        let told = counted(others, "spot or reserved node");
        usage
            .notes
            .push(format!("{told} of the replay count nowhere: commitments pay only for nodes on demand"));
    }
    if unpriced > 0 {
        usage.notes.push(format!("{} without a known price count nowhere", counted(unpriced, "node")));
    }
    Ok(usage)
}
