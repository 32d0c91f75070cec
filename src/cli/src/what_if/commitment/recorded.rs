//! The use that a ledger tells: the on-demand instances of some days.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_ledger::Location;
use poolwright_report::ledger::row::InstanceSpan;
use poolwright_report::ledger::{Day, Known, midnight};
use poolwright_terms::CapacityType;

use super::usage::{HOUR_MILLIS, Usage};
use crate::args::When;
use crate::exit::Failure;
use crate::price_age;
use crate::print::counted;
use crate::report::period::{self, Period};
use crate::report::read::Ledger;
use crate::report::{self, Reading};

/// Reads the use of these days. With a region, only that of its instances.
pub fn of_ledger(
    place: &Location,
    (from, to): (When, Option<When>),
    region: Option<&str>,
) -> Result<Usage, Failure> {
    let today = price_age::today();
    let (period, now) = (Period::of(from, to, today)?, period::now(today));
    let ledger = Ledger::open(place)?;
    let mut recorded = Recorded::of(region);
    let reading = report::days(&ledger, period, now, &mut |day: &Day| recorded.add(day))?;
    let end = period.last.tomorrow().map_or(now, |day| midnight(day).min(now));
    let usage = recorded.usage(&reading, (midnight(period.first), end));
    usage.map_err(|why| Failure::bad_input(format!("--ledger: in {period}, {why}")))
}

/// What some days tell.
#[derive(Default)]
struct Recorded<'a> {
    /// The only region that counts, if there is one.
    region: Option<&'a str>,
    /// The node-hours, with hours since 1970.
    usage: Usage,
    /// By type: the last price with its time, and all prices.
    prices: BTreeMap<String, (Timestamp, UsdPerHour, BTreeSet<UsdPerHour>)>,
    /// By type: where it ran.
    regions: BTreeMap<String, BTreeSet<String>>,
    /// When the first instance of any kind ran.
    first: Option<Timestamp>,
    unpriced: Instances,
    committed: Instances,
    elsewhere: Instances,
    others: Instances,
}

/// Clusters and UIDs.
type Instances = BTreeSet<(String, String)>;

impl<'a> Recorded<'a> {
    fn of(region: Option<&'a str>) -> Self {
        Self { region, ..Self::default() }
    }

    fn add(&mut self, day: &Day) {
        day.instances.iter().for_each(|known| self.instance(known));
    }

    fn instance(&mut self, known: &Known<InstanceSpan>) {
        let row = &known.row;
        self.first = Some(self.first.map_or(known.from, |first| first.min(known.from)));
        let is_elsewhere = self.region.is_some_and(|region| region != row.region);
        let price = row.price_micros_per_hour.or(row.list_micros_per_hour).filter(|price| *price > 0);
        let left_out = if row.capacity_type != CapacityType::OnDemand.as_str() {
            Some(&mut self.others)
        } else if row.commitment.is_some() {
            Some(&mut self.committed)
        } else if is_elsewhere {
            Some(&mut self.elsewhere)
        } else if price.is_none() {
            Some(&mut self.unpriced)
        } else {
            None
        };
        if let Some(left_out) = left_out {
            left_out.insert((row.span.cluster.clone(), row.uid.clone()));
            return;
        }
        let (kind, price) = (&row.instance_type, UsdPerHour::from_micros(price.unwrap_or_default()));
        let known_price = self.prices.entry(kind.clone()).or_insert((known.from, price, BTreeSet::new()));
        if (known.from, price) >= (known_price.0, known_price.1) {
            (known_price.0, known_price.1) = (known.from, price);
        }
        known_price.2.insert(price);
        self.regions.entry(kind.clone()).or_default().insert(row.region.clone());
        self.usage.add(kind, millis(known.from), millis(known.to));
    }

    /// Returns the use from the first hour between these times that a controller watched whole, to the last.
    ///
    /// # Errors
    ///
    /// There is none, or a type ran in several regions. The error is a sentence.
    fn usage(mut self, reading: &Reading, (begin, end): (Timestamp, Timestamp)) -> Result<Usage, String> {
        if let Some((kind, regions)) = self.regions.iter().find(|(_, regions)| regions.len() > 1) {
            let regions: Vec<&str> = regions.iter().map(String::as_str).collect();
            return Err(format!(
                "{kind} ran in {}, and an offer is for one region; choose it with --region",
                regions.join(" and ")
            ));
        }
        let (first, last) = reading.signs.unwrap_or((begin, begin));
        let begin = self.first.map_or(first, |ran| ran.min(first)).max(begin);
        let hour = |hour: u128| u64::try_from(hour).unwrap_or(u64::MAX);
        // Nothing is known of the rest of an hour that was not watched whole.
        let from = hour(millis(begin).div_ceil(HOUR_MILLIS));
        let until = hour(millis(last.min(end)) / HOUR_MILLIS);
        let mut usage = std::mem::take(&mut self.usage);
        usage.hours = until.saturating_sub(from);
        let watched = usage.nodes.into_iter().filter(|(hour, _)| (from..until).contains(hour));
        usage.nodes = watched.map(|(hour, nodes)| (hour - from, nodes)).collect();
        if usage.total() == 0 {
            let left_out = self.left_out().join("; ");
            let left_out = if left_out.is_empty() { left_out } else { format!(" ({left_out})") };
            let region = if self.region.is_some() { ", or another --region" } else { "" };
            return Err(format!(
                "no instance on demand ran in an hour that a controller watched whole{left_out}; choose other days with --from and \
                 --to{region}"
            ));
        }
        let start = i64::try_from(u128::from(from) * HOUR_MILLIS).unwrap_or(i64::MAX);
        let start = Timestamp::from_millisecond(start).unwrap_or(begin);
        usage.notes.push(format!(
            "the use is that of {} of the ledger, and hour 0 begins at {}",
            counted(usize::try_from(usage.hours).unwrap_or(usize::MAX), "hour"),
            start.strftime("%Y-%m-%dT%H:%MZ")
        ));
        for (kind, (_, price, all)) in &self.prices {
            if let (Some(least), Some(most), true) = (all.first(), all.last(), all.len() > 1) {
                usage.notes.push(format!(
                    "{kind} cost {least:#} to {most:#} on demand; all its node-hours count at the last price, {price:#}"
                ));
            }
        }
        usage.notes.extend(self.left_out());
        usage.notes.extend(reading.notes());
        usage.prices = self.prices.into_iter().map(|(kind, (_, price, _))| (kind, price)).collect();
        Ok(usage)
    }

    /// Says which instances count nowhere.
    fn left_out(&self) -> Vec<String> {
        let all = [
            (&self.others, "that did not run on demand, or of which the ledger does not tell it"),
            (&self.committed, "that a commitment pays already"),
            (&self.elsewhere, "of other regions"),
            (&self.unpriced, "of unknown price"),
        ];
        let some = all.into_iter().filter(|(instances, _)| !instances.is_empty());
        some.map(|(instances, which)| {
            format!("not counted: {} {which}", counted(instances.len(), "instance"))
        })
        .collect()
    }
}

/// Returns the milliseconds since 1970.
fn millis(time: Timestamp) -> u128 {
    u128::try_from(time.as_millisecond()).unwrap_or(0)
}
