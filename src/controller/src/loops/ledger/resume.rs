//! What a ledger tells of a cluster, for a leader that continues it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_report::ledger::row::Row;

use super::thing::{Key, Thing};

/// The newest row of a span, as far as it matters.
#[derive(Debug)]
struct Last {
    from: Timestamp,
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
    /// Most things are pods with one span: a map for each would take five times the memory.
    spans: BTreeMap<Key, Vec<Last>>,
    /// When each writer was last alive.
    writers: BTreeMap<String, Timestamp>,
    seen: Option<Timestamp>,
    rows: usize,
}

impl Resume {
    /// Creates a reader of this cluster's rows. A ledger may have those of other clusters, too.
    pub fn new(cluster: &str) -> Self {
        let (spans, writers) = (BTreeMap::new(), BTreeMap::new());
        Self { cluster: cluster.into(), spans, writers, seen: None, rows: 0 }
    }

    /// Returns when a writer was last alive.
    pub fn alive(&self) -> Option<Timestamp> {
        self.writers.values().max().copied()
    }

    /// Returns whether this writer was alive after all others.
    pub fn is_last(&self, writer: &str) -> bool {
        let own = self.writers.get(writer);
        own.is_some() && self.writers.iter().all(|(name, seen)| name == writer || Some(seen) < own)
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
        if let Row::Alive(alive) = row {
            if alive.cluster == self.cluster {
                self.seen = self.seen.max(Some(alive.seen));
                self.rows += 1;
                let last = self.writers.entry(alive.writer).or_insert(alive.seen);
                *last = alive.seen.max(*last);
            }
            return;
        }
        let Some(thing) = Thing::of(row).filter(|thing| thing.span().cluster == self.cluster) else { return };
        let (key, node, span) = (thing.key(), thing.node().cloned(), thing.span());
        let (from, seen, to) = (span.from, span.seen, span.to);
        self.seen = self.seen.max(Some(seen));
        self.rows += 1;
        let last = Last { from, seen, to, open: to.is_none().then_some(thing), node };
        let spans = self.spans.entry(key).or_insert_with(|| Vec::with_capacity(1));
        match spans.iter_mut().rev().find(|known| known.from == from) {
            Some(known) if (known.seen, known.to) <= (seen, to) => *known = last,
            Some(_) => {}
            None => spans.push(last),
        }
    }

    /// Returns what is known of each thing at the end.
    pub fn last_spans(self) -> impl Iterator<Item = (Key, LastSpans)> {
        self.spans.into_iter().map(|(key, mut spans)| {
            let mut known = LastSpans::default();
            spans.sort_by_key(|span| span.from);
            if let Some(last) = spans.pop() {
                let mut next = last.from;
                for earlier in spans.into_iter().rev() {
                    known.left_open.extend(earlier.open.map(|thing| (thing, next)));
                    next = earlier.from;
                }
                (known.open, known.ended, known.node) = (last.open, last.to, last.node);
            }
            (key, known)
        })
    }
}
