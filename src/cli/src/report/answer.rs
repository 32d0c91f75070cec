//! The report as a document.

use std::fmt::Write as _;

use jiff::civil::Date;
use poolwright_report::bill::{Class, Key, Method, Micros, PARTS, Saved, Sums};
use poolwright_report::ledger::Gap;
use poolwright_report::money::{Ratio, six_decimals};
use serde::Serialize;

use super::period::Period;
use super::{Found, doubts};
use crate::print::counted;

/// Milliseconds of an hour.
const HOUR: f64 = 3_600_000.0;

/// The name of the class that needs figures of use.
const UNUSED: &str = "allocated and unused";

/// What nodes cost, and who held them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `poolwright.dev/v1alpha1`.
    api_version: &'static str,
    /// `CostReport`.
    kind: &'static str,
    /// The report in one line.
    pub verdict: String,
    /// The first day, in UTC.
    from: Date,
    /// The last day.
    to: Date,
    /// How the costs of nodes are split.
    method: &'static str,
    /// What costs are grouped by.
    pub by: Vec<String>,
    /// How many instances ran.
    instances: usize,
    /// What they cost, known prices only.
    pub usd: Micros,
    /// What idle time cost.
    pub idle_usd: Micros,
    /// What the period before cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Change>,
    /// The groups, the most expensive first. Their costs add up to the whole.
    pub rows: Vec<Row>,
    /// The classes of idle time.
    pub idle: Vec<Idle>,
    /// What spot instances and commitments save.
    pub savings: Vec<Saving>,
    /// Times in which nobody wrote the ledger although instances existed.
    gaps: Vec<Gap>,
    /// What is not certain.
    pub notes: Vec<String>,
}

/// The period before.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    from: Date,
    to: Date,
    usd: Micros,
    #[serde(rename = "changeUsd")]
    difference: Micros,
}

/// A group.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The values of what costs are grouped by; null if the pod or the node has none.
    pub values: Vec<Option<String>>,
    /// Who pays: pods, a class of idle time, or the difference to a rate card.
    pub class: Class,
    /// The cost.
    pub usd: Micros,
    /// The part of the whole; null if one of them is not above zero.
    pub share: Option<f64>,
    /// GPU-hours.
    pub gpu_hours: f64,
    /// How much the cost is below the on-demand list price.
    pub saved_usd: Micros,
    /// The hours of nodes without a known price, of which the group held a part.
    pub unpriced_node_hours: f64,
}

/// A class of idle time.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Idle {
    /// Its name.
    pub class: &'static str,
    /// Its cost; null if it is not measured.
    pub usd: Option<Micros>,
    /// Its GPU-hours; null if they are not measured.
    pub gpu_hours: Option<f64>,
    /// What it is.
    pub what: &'static str,
}

/// What something saves against the on-demand list price.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Saving {
    /// `spot`, or the name of a commitment.
    pub of: String,
    /// What its instances cost, known prices only.
    pub usd: Micros,
    /// What those with a list price would cost by it.
    pub list_usd: Micros,
    /// The difference, of those with a list price.
    pub saved_usd: Micros,
    /// The hours of these instances.
    pub hours: f64,
}

/// What was read of the period before.
pub struct Before {
    /// The period.
    period: Period,
    /// What it cost.
    bill: Micros,
    /// Whether no instance ran.
    is_empty: bool,
    /// How many instances have no known price.
    unpriced: usize,
    /// Whether there were times without a controller.
    has_gaps: bool,
}

impl Before {
    /// Keeps what a change needs.
    pub fn of(found: &Found) -> Self {
        let totals = found.book.totals();
        Self {
            period: found.period,
            bill: totals.bill,
            is_empty: totals.instances.is_empty(),
            unpriced: unpriced(found),
            has_gaps: !found.reading.gaps.is_empty(),
        }
    }

    /// Says what is not certain about the change.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unpriced > 0 {
            let (have, them) = if self.unpriced == 1 { ("has", "it") } else { ("have", "them") };
            notes.push(format!(
                "{} of {} {have} no known price. The change does not count {them}.",
                counted(self.unpriced, "instance"),
                self.period
            ));
        }
        if self.has_gaps {
            let period = self.period;
            notes.push(format!(
                "In {period}, there were times without a controller. Costs may be missing, and so the change may be smaller."
            ));
        }
        notes
    }
}

/// Returns how many instances have no known price.
fn unpriced(found: &Found) -> usize {
    found.book.totals().unpriced.values().map(|unpriced| unpriced.instances.len()).sum()
}

impl Answer {
    /// Returns its days.
    pub fn period(&self) -> Period {
        Period { first: self.from, last: self.to }
    }

    /// Makes the document.
    pub fn of(found: &Found, before: Option<Before>, method: Method) -> Self {
        let (book, totals) = (&found.book, found.book.totals());
        let bill = totals.bill;
        let mut rows: Vec<Row> = book.groups().iter().map(|(key, sums)| Row::of(key, sums, bill)).collect();
        // The sort is stable, and the groups are in the order of their keys.
        rows.sort_by_key(|row| std::cmp::Reverse(row.usd));
        let mut notes = Vec::new();
        let change = before.and_then(|before| {
            if before.is_empty {
                notes.push(format!("No instance ran in {}, so there is no change to tell.", before.period));
                return None;
            }
            notes.extend(before.notes());
            let difference = Micros(bill.0 - before.bill.0);
            Some(Change { from: before.period.first, to: before.period.last, usd: before.bill, difference })
        });
        notes.extend(doubts::notes(found));
        let spot = (totals.spot.millis > 0).then(|| Saving::of("spot".to_owned(), &totals.spot));
        let paid =
            totals.commitments.iter().map(|(name, saved)| Saving::of(format!("commitment {name}"), saved));
        Self {
            api_version: poolwright_terms::API_VERSION,
            kind: "CostReport",
            verdict: verdict(found, change.as_ref()),
            from: found.period.first,
            to: found.period.last,
            method: method.name(),
            by: book.by().iter().map(ToString::to_string).collect(),
            instances: totals.instances.len(),
            usd: bill,
            idle_usd: book.idle(),
            before: change,
            rows,
            idle: idle(found),
            savings: spot.into_iter().chain(paid).collect(),
            gaps: found.reading.gaps.clone(),
            notes,
        }
    }
}

impl Row {
    fn of((class, values): &Key, sums: &Sums, bill: Micros) -> Self {
        Self {
            values: values.clone(),
            class: *class,
            usd: sums.cost,
            share: share(sums.cost, bill).map(Ratio::as_f64),
            gpu_hours: gpu_hours(sums),
            saved_usd: sums.saved,
            unpriced_node_hours: six_decimals((sums.unpriced / PARTS) as f64 / HOUR),
        }
    }
}

impl Saving {
    fn of(of: String, saved: &Saved) -> Self {
        Self {
            of,
            usd: Micros(saved.cost.0 + saved.unlisted.0),
            list_usd: saved.list,
            saved_usd: saved.saved(),
            hours: six_decimals(saved.millis as f64 / HOUR),
        }
    }
}

/// Returns the part of a whole, if both are above zero.
pub fn share(part: Micros, whole: Micros) -> Option<Ratio> {
    let ratio = Ratio { part: u128::try_from(part.0).ok()?, whole: u128::try_from(whole.0).ok()? };
    (ratio.whole > 0).then_some(ratio)
}

fn gpu_hours(sums: &Sums) -> f64 {
    six_decimals(sums.gpu_millis as f64 / 1000.0 / HOUR)
}

/// Returns the four classes of idle time.
fn idle(found: &Found) -> Vec<Idle> {
    let of = |class: Class, what| {
        let sums = found.book.class(class);
        Idle { class: class.name(), usd: Some(sums.cost), gpu_hours: Some(gpu_hours(&sums)), what }
    };
    vec![
        of(Class::Unallocated, "open nodes that no pod held"),
        Idle {
            class: UNUSED,
            usd: None,
            gpu_hours: None,
            what: "the ledger has no figures of use, so its cost is with the pods that held it",
        },
        of(Class::System, "held by pods of DaemonSets and of the nodes"),
        of(Class::StartingOrDraining, "free room of nodes that were not open to pods"),
    ]
}

/// Says what everything cost, in one line.
fn verdict(found: &Found, change: Option<&Change>) -> String {
    let (book, totals) = (&found.book, found.book.totals());
    let (bill, idle) = (totals.bill, book.idle());
    let pods = book.class(Class::Pods).cost;
    let part = share(idle, bill).map_or_else(String::new, |part| format!(" ({part})"));
    let mut said = format!(
        "{bill:#} for {} on {}: pods held {pods:#}, and {idle:#}{part} was idle.",
        found.period,
        counted(totals.instances.len(), "instance")
    );
    let difference = book.class(Class::Difference).cost;
    if difference != Micros(0) {
        let _ = write!(said, " The rate card differs from the bill by {difference:#}.");
    }
    if let Some(Change { from, to, usd, difference }) = change {
        let (amount, than) = (difference.absolute(), if difference.0 < 0 { "less" } else { "more" });
        let part =
            share(Micros(difference.0.abs()), *usd).map_or_else(String::new, |part| format!(" ({part})"));
        let _ = write!(said, " That is {amount:#}{part} {than} than from {from} to {to}.");
    }
    let unknown = unpriced(found);
    if unknown > 0 {
        let are = if unknown == 1 { "is" } else { "are" };
        let _ = write!(said, " {} without a known price {are} not in it.", counted(unknown, "instance"));
    }
    said
}
