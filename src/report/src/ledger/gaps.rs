//! Times in which nobody wrote the ledger although instances existed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::spans::{Day, End};

/// How long a ledger may be silent. A controller writes about once a minute.
pub const LONGEST_SILENCE: SignedDuration = SignedDuration::from_mins(5);

/// A time in which nobody wrote the ledger of a cluster although it had instances.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Gap {
    /// The cluster's id.
    pub cluster: String,
    /// The last sign of a controller, or the start of the first instance.
    pub from: Timestamp,
    /// The next sign, or the end of the report.
    pub to: Timestamp,
}

/// Signs closer together than this are one.
const CLOSE: SignedDuration = SignedDuration::from_secs(10);

/// The signs of controllers.
#[derive(Debug, Default)]
pub(super) struct Watch {
    clusters: BTreeMap<String, Cluster>,
    /// The first sign of all.
    pub first: Option<Timestamp>,
    /// The gaps of all days that are closed.
    pub gaps: Vec<Gap>,
}

#[derive(Debug, Default)]
struct Cluster {
    /// Signs that are not checked yet.
    signs: BTreeSet<Timestamp>,
    /// The latest sign.
    last: Option<Timestamp>,
    /// The time up to which gaps are known.
    checked: Option<Timestamp>,
    /// The end of the instance that lasted longest, in milliseconds.
    existed_until: i64,
}

impl Watch {
    /// Notes that a controller of this cluster lived: it wrote a row.
    pub fn sign(&mut self, cluster: &str, at: Timestamp) {
        if !self.clusters.contains_key(cluster) {
            self.clusters.insert(cluster.to_owned(), Cluster::default());
        }
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        let Some(cluster) = self.clusters.get_mut(cluster) else { return };
        cluster.last = cluster.last.max(Some(at));
        let near = |sign: &Timestamp| *sign <= at && at.duration_since(*sign) < CLOSE;
        if !cluster.signs.last().is_some_and(near) {
            cluster.signs.insert(at);
        }
    }

    /// Returns the latest sign of a controller of this cluster.
    pub fn last(&self, cluster: &str) -> Option<Timestamp> {
        self.clusters.get(cluster)?.last
    }

    /// Returns the latest sign of all.
    pub fn latest(&self) -> Option<Timestamp> {
        self.clusters.values().filter_map(|cluster| cluster.last).max()
    }

    /// Finds the gaps up to the end of a day, and for the last day also the one until `until`.
    pub fn close(&mut self, day: &Day, end: Timestamp, until: Option<Timestamp>) {
        let mut spans: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
        for known in &day.instances {
            // An instance whose end was not told existed when the silence began.
            let to = known.to.as_millisecond() + i64::from(known.end != End::Told);
            let cluster = known.row.span.cluster.as_str();
            spans.entry(cluster).or_default().push((known.from.as_millisecond(), to));
            if !self.clusters.contains_key(cluster) {
                self.clusters.insert(cluster.to_owned(), Cluster::default());
            }
        }
        for (name, cluster) in &mut self.clusters {
            let spans = spans.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            let first = spans.iter().map(|(from, _)| *from).min();
            let first = first.and_then(|from| Timestamp::from_millisecond(from).ok());
            let mut checked = cluster.checked.or(first);
            let later = cluster.signs.split_off(&end);
            for sign in std::mem::replace(&mut cluster.signs, later).into_iter().chain(until) {
                if let Some(from) = checked.filter(|from| sign.duration_since(*from) > LONGEST_SILENCE) {
                    let (begun, over) = (from.as_millisecond(), sign.as_millisecond());
                    let existed = cluster.existed_until > begun
                        || spans.iter().any(|(start, stop)| *start < over && *stop > begun);
                    if existed {
                        self.gaps.push(Gap { cluster: name.clone(), from, to: sign });
                    }
                }
                checked = checked.max(Some(sign));
            }
            cluster.checked = checked;
            let last = spans.iter().map(|(_, stop)| *stop).max();
            cluster.existed_until =
                last.map_or(cluster.existed_until, |last| last.max(cluster.existed_until));
        }
    }
}
