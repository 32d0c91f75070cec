//! What spans are about: an instance, or a pod on an instance.

use jiff::{SignedDuration, Timestamp};
use poolwright_report::ledger::row::{InstanceSpan, Phase, PodSpan, Row, Span};

/// The seconds of a day in UTC.
const DAY: i64 = 86_400;

/// The identity of a thing, whatever happens to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// An instance, by the UID of its NodeClaim, or of its Node if it has no claim.
    Instance(String),
    /// A pod, by its UID.
    Pod(String),
}

/// Returns which thing a row is about, and the end of its span if the row tells it; `None` for a sign of life.
pub fn end_of(row: &Row) -> Option<(Key, Option<Timestamp>)> {
    match row {
        Row::Instance(row) => Some((Key::Instance(row.uid.clone()), row.span.to)),
        Row::Pod(row) => Some((Key::Pod(row.uid.clone()), row.span.to)),
        Row::Alive(_) => None,
    }
}

/// A thing during one span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thing {
    /// An instance.
    Instance(Box<InstanceSpan>),
    /// A pod.
    Pod(Box<PodSpan>),
}

/// Returns a span without times, of a thing that has only been seen.
pub fn unknown_times(cluster: &str) -> Span {
    let (from, seen) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    Span {
        id: String::new(),
        cluster: cluster.into(),
        from,
        to: None,
        seen,
        continued: false,
        estimated: false,
    }
}

impl Thing {
    /// Returns the thing of a row; `None` for a sign of life.
    pub fn of(row: Row) -> Option<Self> {
        match row {
            Row::Instance(row) => Some(Self::Instance(Box::new(row))),
            Row::Pod(row) => Some(Self::Pod(Box::new(row))),
            Row::Alive(_) => None,
        }
    }

    /// Returns the row about it.
    pub fn row(self) -> Row {
        match self {
            Self::Instance(row) => Row::Instance(*row),
            Self::Pod(row) => Row::Pod(*row),
        }
    }

    /// Returns its identity.
    pub fn key(&self) -> Key {
        match self {
            Self::Instance(row) => Key::Instance(row.uid.clone()),
            Self::Pod(row) => Key::Pod(row.uid.clone()),
        }
    }

    /// Returns its times.
    pub fn span(&self) -> &Span {
        match self {
            Self::Instance(row) => &row.span,
            Self::Pod(row) => &row.span,
        }
    }

    /// Returns its times, to change them.
    pub fn span_mut(&mut self) -> &mut Span {
        match self {
            Self::Instance(row) => &mut row.span,
            Self::Pod(row) => &mut row.span,
        }
    }

    /// Starts another span of it.
    pub fn start(&mut self, from: Timestamp, continued: bool) {
        let start = from.as_millisecond();
        let id = match self {
            Self::Instance(row) => format!("{}/{start}", row.uid),
            Self::Pod(row) => format!("{}/{}/{start}", row.uid, row.instance),
        };
        let span = self.span_mut();
        let cluster = std::mem::take(&mut span.cluster);
        *span = Span { id, from, continued, ..unknown_times(&cluster) };
    }

    /// Returns the phase of an instance.
    pub fn phase(&self) -> Option<Phase> {
        match self {
            Self::Instance(row) => Some(row.phase),
            Self::Pod(_) => None,
        }
    }

    /// Changes the phase of an instance.
    pub fn set_phase(&mut self, phase: Phase) {
        if let Self::Instance(row) = self {
            row.phase = phase;
        }
    }

    /// Returns the node of an instance.
    pub fn node(&self) -> Option<&String> {
        match self {
            Self::Instance(row) => row.node.as_ref(),
            Self::Pod(_) => None,
        }
    }

    /// Returns whether money or shares differ from those of another span of it, so that one row cannot tell both.
    pub fn differs(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Instance(one), Self::Instance(other)) => {
                let money = |row: &InstanceSpan| {
                    (row.phase, row.price_micros_per_hour, row.list_micros_per_hour, row.offers)
                };
                money(one) != money(other) || one.commitment != other.commitment
            }
            (Self::Pod(one), Self::Pod(other)) => one.holds != other.holds || one.instance != other.instance,
            _ => true,
        }
    }

    /// Fills in what an earlier look knew of it and this one does not: its node or its controller may be gone before it.
    pub fn complete(&mut self, earlier: &Self, keeps_price: bool) {
        match (self, earlier) {
            (Self::Instance(one), Self::Instance(earlier)) => {
                one.node = one.node.take().or_else(|| earlier.node.clone());
                if keeps_price {
                    one.price_micros_per_hour = earlier.price_micros_per_hour;
                    one.list_micros_per_hour = earlier.list_micros_per_hour;
                    one.price_source.clone_from(&earlier.price_source);
                    one.price_at = earlier.price_at;
                    one.offers = earlier.offers;
                    one.region.clone_from(&earlier.region);
                    one.provider.clone_from(&earlier.provider);
                }
            }
            (Self::Pod(one), Self::Pod(earlier)) if one.workload.is_none() => {
                one.workload_kind.clone_from(&earlier.workload_kind);
                one.workload.clone_from(&earlier.workload);
            }
            _ => {}
        }
    }
}

/// Returns a time without what is smaller than a millisecond, as the names of spans have it.
pub fn to_millisecond(time: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time)
}

/// Returns the midnight in UTC at or before a time.
pub fn midnight_before(time: Timestamp) -> Timestamp {
    let second = time.as_second();
    Timestamp::from_second(second - second.rem_euclid(DAY)).unwrap_or(time)
}

/// Returns the midnight in UTC after a time.
pub fn midnight_after(time: Timestamp) -> Timestamp {
    midnight_before(time).checked_add(SignedDuration::from_secs(DAY)).unwrap_or(Timestamp::MAX)
}
