//! What a ledger tells of a cluster, for a leader that continues it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_report::ledger::row::Row;

use super::thing::{Key, Thing};

/// The newest row of a span, as far as it matters.
#[derive(Debug)]
struct Last {
    seen: Timestamp,
    to: Option<Timestamp>,
    /// The thing, if the span has not ended.
    open: Option<Thing>,
    node: Option<String>,
}

/// What is known of a thing at the end of a ledger.
#[derive(Debug, Default)]
pub struct LastSpans {
    /// Spans whose ends were never written although a later one began, and when it did.
    pub left_open: Vec<(Thing, Timestamp)>,
    /// The last span, if it has not ended.
    pub open: Option<Thing>,
    /// The end of the last span, if it has.
    pub ended: Option<Timestamp>,
    /// Its node.
    pub node: Option<String>,
}

/// Reads the rows of a ledger's last days, in any order.
#[derive(Debug)]
pub struct Resume {
    cluster: String,
    spans: BTreeMap<Key, BTreeMap<Timestamp, Last>>,
    alive: Option<Timestamp>,
    seen: Option<Timestamp>,
    rows: usize,
}

impl Resume {
    /// Creates a reader of this cluster's rows. A ledger may have those of other clusters, too.
    pub fn new(cluster: &str) -> Self {
        Self { cluster: cluster.into(), spans: BTreeMap::new(), alive: None, seen: None, rows: 0 }
    }

    /// Returns when a writer was last alive.
    pub fn alive(&self) -> Option<Timestamp> {
        self.alive
    }

    /// Returns when the newest row was written.
    pub fn seen(&self) -> Option<Timestamp> {
        self.seen
    }

    /// Returns the number of the cluster's rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a row.
    pub fn add(&mut self, row: Row) {
        if let Row::Alive(alive) = &row {
            if alive.cluster == self.cluster {
                self.alive = self.alive.max(Some(alive.seen));
                self.seen = self.seen.max(Some(alive.seen));
                self.rows += 1;
            }
            return;
        }
        let Some(thing) = Thing::of(row).filter(|thing| thing.span().cluster == self.cluster) else { return };
        let (key, node, span) = (thing.key(), thing.node().cloned(), thing.span());
        let (from, seen, to) = (span.from, span.seen, span.to);
        self.seen = self.seen.max(Some(seen));
        self.rows += 1;
        let spans = self.spans.entry(key).or_default();
        if spans.get(&from).is_none_or(|known| (known.seen, known.to) <= (seen, to)) {
            spans.insert(from, Last { seen, to, open: to.is_none().then_some(thing), node });
        }
    }

    /// Returns what is known of each thing at the end.
    pub fn last_spans(self) -> impl Iterator<Item = (Key, LastSpans)> {
        self.spans.into_iter().map(|(key, mut spans)| {
            let mut known = LastSpans::default();
            if let Some((from, last)) = spans.pop_last() {
                let mut next = from;
                for (from, earlier) in spans.into_iter().rev() {
                    known.left_open.extend(earlier.open.map(|thing| (thing, next)));
                    next = from;
                }
                (known.open, known.ended, known.node) = (last.open, last.to, last.node);
            }
            (key, known)
        })
    }
}
