//! Folds rows into spans, day by day.
//!
//! Of the rows about a span, the one that was seen last counts. Spans are cut at midnight, so a day can be closed once the rows of
//! the day after it are read: an end at midnight may be told there.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::gaps::{Gap, Watch};
use super::latest::{Latest, Spanned};
use super::row::{InstanceSpan, PodSpan, Row, Span};

/// How the end of a span is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A row tells it.
    Told,
    /// A row tells it as a guess, because no controller watched.
    Estimated,
    /// No row tells it: the span counts until the last sign of a controller.
    Open,
}

/// A span within one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<T> {
    /// The row about it that counts.
    pub row: T,
    /// The start, on this day.
    pub from: Timestamp,
    /// The end, on this day or at the midnight after it.
    pub to: Timestamp,
    /// How the end is known.
    pub end: End,
}

impl<T> Known<T> {
    /// Returns its length in milliseconds.
    pub fn millis(&self) -> u64 {
        u64::try_from(self.to.as_millisecond() - self.from.as_millisecond()).unwrap_or(0)
    }
}

/// What the ledger tells of one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day {
    /// The day, in UTC.
    pub date: Date,
    /// The instances, by UID, cluster and start.
    pub instances: Vec<Known<InstanceSpan>>,
    /// The pods, by UID of the instance, cluster, UID and start.
    pub pods: Vec<Known<PodSpan>>,
}

/// What is not certain about the spans of all closed days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Spans whose end is a guess.
    pub estimated: usize,
    /// Spans without an end.
    pub open: usize,
    /// Spans that lasted beyond the start of the next one of the same thing. They count until then.
    pub overlapping: usize,
    /// Spans that end before they start. They count as nothing.
    pub backwards: usize,
    /// Rows that came after their day was closed. They do not count.
    pub late: usize,
}

/// Rows of days that are not closed yet.
#[derive(Debug, Default)]
struct Rows {
    instances: Latest<InstanceSpan>,
    pods: Latest<PodSpan>,
}

/// Folds the rows of a range of days.
#[derive(Debug)]
pub struct Fold {
    first: Date,
    last: Date,
    /// The end of the report: the last midnight, or now.
    until: Timestamp,
    rows: BTreeMap<Date, Rows>,
    closed: Option<Date>,
    watch: Watch,
    doubts: Doubts,
}

impl Fold {
    /// Starts with the first day. The report ends after the last one, or now.
    pub fn new(first: Date, last: Date, now: Timestamp) -> Self {
        Self {
            first,
            last,
            until: midnight(after(last)).min(now),
            rows: BTreeMap::new(),
            closed: None,
            watch: Watch::default(),
            doubts: Doubts::default(),
        }
    }

    /// Adds a row, whichever file it is from.
    pub fn push(&mut self, row: Row) {
        match row {
            Row::Alive(alive) => self.watch.sign(&alive.cluster, alive.seen),
            Row::Instance(span) => {
                self.watch.sign(&span.span.cluster, span.span.seen);
                if let Some(rows) = self.rows_of(&span.span) {
                    rows.instances.keep(span);
                }
            }
            Row::Pod(span) => {
                self.watch.sign(&span.span.cluster, span.span.seen);
                if let Some(rows) = self.rows_of(&span.span) {
                    rows.pods.keep(span);
                }
            }
        }
    }

    /// Returns the rows of the day on which a span starts; `None` if that is no day to close any more.
    fn rows_of(&mut self, span: &Span) -> Option<&mut Rows> {
        let mut day = day_of(span.from);
        if day < self.first {
            // A span of the day before, unless nobody cut it at midnight.
            span.to.filter(|to| *to > midnight(self.first))?;
            day = self.first;
        }
        if day > self.last {
            return None;
        }
        if self.closed.is_some_and(|closed| day <= closed) {
            self.doubts.late += 1;
            return None;
        }
        Some(self.rows.entry(day).or_default())
    }

    /// Returns what is known of a day. All rows of that day and of the day after it must be pushed before. Close each day once, in
    /// order.
    pub fn close(&mut self, date: Date) -> Day {
        let rows = self.rows.remove(&date).unwrap_or_default();
        let edges = (midnight(date), midnight(after(date)));
        let mut known = Closing { edges, watch: &self.watch, doubts: &mut self.doubts };
        let (instances, uncut_instances) = known.spans(rows.instances);
        let (pods, uncut_pods) = known.spans(rows.pods);
        self.closed = Some(date);
        if date < self.last {
            let next = self.rows.entry(after(date)).or_default();
            for span in uncut_instances {
                next.instances.keep(span);
            }
            for span in uncut_pods {
                next.pods.keep(span);
            }
        }
        let day = Day { date, instances, pods };
        self.watch.close(&day, edges.1, (date == self.last).then_some(self.until));
        day
    }

    /// Returns what is not certain about the closed days.
    pub fn doubts(&self) -> Doubts {
        self.doubts
    }

    /// Returns the first sign of a controller of any cluster.
    pub fn first_sign(&self) -> Option<Timestamp> {
        self.watch.first
    }

    /// Returns the last sign of a controller of any cluster.
    pub fn last_sign(&self) -> Option<Timestamp> {
        self.watch.latest()
    }

    /// Returns the gaps of the closed days.
    pub fn gaps(&self) -> &[Gap] {
        &self.watch.gaps
    }
}

/// Closes the spans of one day.
struct Closing<'a> {
    /// The midnights before and after the day.
    edges: (Timestamp, Timestamp),
    watch: &'a Watch,
    doubts: &'a mut Doubts,
}

impl Closing<'_> {
    /// Returns the spans of a day, and what nobody cut at midnight, for the next day.
    fn spans<T: Spanned>(&mut self, rows: Latest<T>) -> (Vec<Known<T>>, Vec<T>) {
        let rows = rows.sorted();
        let mut nexts = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let next = rows.get(at + 1).filter(|next| next.subject() == row.subject());
            nexts.push(next.map(|next| next.span().from));
        }
        let mut uncut = Vec::new();
        let known = rows.into_iter().zip(nexts).map(|(row, next)| self.span(row, next, &mut uncut)).collect();
        (known, uncut)
    }

    fn span<T: Spanned>(&mut self, row: T, next: Option<Timestamp>, uncut: &mut Vec<T>) -> Known<T> {
        let (start, midnight) = self.edges;
        let span = row.span();
        let from = span.from.max(start);
        let (told, mut end) = match span.to {
            Some(to) if span.estimated => (to, End::Estimated),
            Some(to) => (to, End::Told),
            None => (self.watch.last(&span.cluster).unwrap_or(span.seen), End::Open),
        };
        if told < span.from {
            self.doubts.backwards += 1;
        }
        let mut to = told.min(midnight);
        match next {
            Some(next) if next <= told => {
                self.doubts.overlapping += usize::from(span.to.is_some() && next < told);
                // A span that was not told to end was replaced by the next one.
                to = to.min(next);
                end = if end == End::Open { End::Told } else { end };
            }
            None if span.to.is_some() && told > midnight => {
                let mut rest = row.clone();
                rest.span_mut().from = midnight;
                uncut.push(rest);
            }
            _ => {}
        }
        self.doubts.estimated += usize::from(end == End::Estimated);
        self.doubts.open += usize::from(end == End::Open);
        Known { from, to: to.max(from), end, row }
    }
}

/// Returns the day of a time, in UTC.
pub fn day_of(time: Timestamp) -> Date {
    TimeZone::UTC.to_datetime(time).date()
}

/// Returns the start of a day, in UTC.
pub fn midnight(day: Date) -> Timestamp {
    day.to_zoned(TimeZone::UTC).map_or(Timestamp::MAX, |zoned| zoned.timestamp())
}

/// Returns the day after.
fn after(day: Date) -> Date {
    day.tomorrow().unwrap_or(Date::MAX)
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
