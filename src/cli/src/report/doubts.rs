//! What is not certain about a report, in sentences.

use poolwright_report::bill::Micros;
use poolwright_report::ledger::Gap;

use super::read::told;
use super::{Found, Reading};
use crate::print::{count, counted};

/// The most gaps and lines that are named.
const NAMED: usize = 5;

/// Returns everything that is not certain.
pub fn notes(found: &Found) -> Vec<String> {
    let mut notes = Vec::new();
    let totals = found.book.totals();
    for (offering, unpriced) in &totals.unpriced {
        notes.push(format!(
            "{} of {offering} ran {} without a known price. No sum has their cost.",
            counted(unpriced.instances.len(), "instance"),
            hours(unpriced.millis)
        ));
    }
    notes.extend(of_spans(&found.reading));
    if totals.without_instance > 0 {
        notes.push(format!(
            "{} held an instance that the ledger does not know at that time. Nothing is charged to them.",
            counted(totals.without_instance, "pod span")
        ));
    }
    if totals.spot.unlisted != Micros(0) {
        notes.push(format!(
            "Spot instances for {:#} have no known list price. Nothing counts as saved there.",
            totals.spot.unlisted
        ));
    }
    if !totals.unrated.is_empty() {
        let types: Vec<&str> = totals.unrated.iter().map(String::as_str).collect();
        notes.push(format!(
            "--rates has no price for the GPUs of {}. Their cost is in the difference; add their model or type.",
            types.join(", ")
        ));
    }
    notes.extend(unread(&found.reading));
    notes
}

impl Reading {
    /// Returns what is not certain about the spans of all days.
    pub fn notes(&self) -> Vec<String> {
        of_spans(self).into_iter().chain(unread(self)).collect()
    }
}

fn of_spans(reading: &Reading) -> Vec<String> {
    let mut notes = gaps(&reading.gaps);
    let doubts = reading.doubts;
    if doubts.open > 0 {
        let until = reading.signs.map_or_else(String::new, |(_, last)| format!(", {}", minute(last)));
        let (has, counts) = if doubts.open == 1 { ("has", "It counts") } else { ("have", "They count") };
        notes.push(format!(
            "{} {has} no end in the ledger. {counts} until the last sign of a controller{until}, or until midnight.",
            counted(doubts.open, "span")
        ));
    }
    if doubts.estimated > 0 {
        notes.push(format!(
            "The ends of {} are estimates, because no controller watched.",
            counted(doubts.estimated, "span")
        ));
    }
    if doubts.overlapping > 0 {
        notes.push(format!(
            "{} lasted beyond the start of the next span of the same instance or pod. They count until then.",
            counted(doubts.overlapping, "span")
        ));
    }
    if doubts.backwards > 0 {
        notes.push(format!(
            "{} end before they start. They count as nothing.",
            counted(doubts.backwards, "span")
        ));
    }
    if doubts.late > 0 {
        notes.push(format!(
            "{} of earlier days lie in folders of later days. They do not count; move the files to the folder of their day.",
            counted(doubts.late, "row")
        ));
    }
    notes
}

/// Tells the times that nobody watched.
fn gaps(gaps: &[Gap]) -> Vec<String> {
    let told = |gap: &Gap| {
        format!(
            "No controller wrote the ledger of the cluster {} from {} to {}, although it had instances. Costs of that time may be missing.",
            gap.cluster,
            minute(gap.from),
            minute(gap.to)
        )
    };
    let mut notes: Vec<String> = gaps.iter().take(NAMED).map(told).collect();
    if gaps.len() > NAMED {
        notes.push(format!(
            "{} more times without a controller; -o json lists them.",
            count(gaps.len() - NAMED)
        ));
    }
    notes
}

/// Names lines that are no rows.
fn unread(reading: &Reading) -> Vec<String> {
    let mut notes: Vec<String> = reading
        .unread
        .iter()
        .take(NAMED)
        .map(|line| format!("Not read: {}. The other rows count.", told(line)))
        .collect();
    if reading.unread_lines > NAMED {
        notes.push(format!("{} more lines are not read.", count(reading.unread_lines - NAMED)));
    }
    notes
}

/// Formats a time: `2026-11-10T04:05Z`.
fn minute(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%MZ").to_string()
}

/// Formats milliseconds as hours: `3.5 h`.
pub fn hours(millis: u64) -> String {
    let tenths = (millis + 180_000) / 360_000;
    format!("{}.{} h", count(usize::try_from(tenths / 10).unwrap_or(usize::MAX)), tenths % 10)
}
