//! Tests of the spans, of what a leader writes, and of ledgers that cannot be written.

mod leader;
mod look;
mod spans;

use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_report::ledger::row::{Amounts, InstanceSpan, Phase, PodSpan, Row, Span};

use super::recorder::{Recorder, Sighting};
use super::resume::Resume;
use super::thing::{Key, Thing, midnight_after, unknown_times};

const CLUSTER: &str = "cluster";

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn after(time: Timestamp, minutes: i64) -> Timestamp {
    time + jiff::SignedDuration::from_mins(minutes)
}

/// An instance that was launched at a time and has been starting ever since.
fn instance(uid: &str, price: Option<u64>, launched: Timestamp) -> Sighting {
    let row = InstanceSpan {
        span: unknown_times(CLUSTER),
        uid: uid.into(),
        name: format!("claim-{uid}"),
        instance_id: None,
        node: Some(format!("node-{uid}")),
        pool: None,
        provider: "cloud".into(),
        region: "r".into(),
        zone: "z".into(),
        instance_type: "gpu.large".into(),
        capacity_type: "spot".into(),
        phase: Phase::Starting,
        price_micros_per_hour: price,
        list_micros_per_hour: None,
        price_source: None,
        price_at: None,
        commitment: None,
        offers: Amounts { gpu_millis: 8000, cpu_millis: 0, memory_bytes: 0 },
    };
    let phases = vec![(launched, Phase::Starting)];
    let thing = Thing::Instance(Box::new(row));
    Sighting { thing, since: Some(launched), phases, keeps_price: false }
}

/// The same instance, which has reached another phase.
fn reached(mut sighting: Sighting, at: Timestamp, phase: Phase) -> Sighting {
    sighting.phases.push((at, phase));
    sighting.thing.set_phase(phase);
    sighting
}

fn pod(uid: &str, instance: &str, gpu_millis: u64, since: Option<Timestamp>) -> Sighting {
    let row = PodSpan {
        span: unknown_times(CLUSTER),
        uid: uid.into(),
        instance: instance.into(),
        namespace: "ml".into(),
        name: uid.into(),
        workload_kind: None,
        workload: None,
        daemon: false,
        labels: BTreeMap::new(),
        holds: Amounts { gpu_millis, cpu_millis: 0, memory_bytes: 0 },
    };
    Sighting { thing: Thing::Pod(Box::new(row)), since, phases: Vec::new(), keeps_price: false }
}

fn span(row: &Row) -> Option<&Span> {
    match row {
        Row::Instance(row) => Some(&row.span),
        Row::Pod(row) => Some(&row.span),
        Row::Alive(_) => None,
    }
}

/// A ledger in memory, read as `docs/money.md` says.
#[derive(Default)]
struct Ledger(Vec<Row>);

impl Ledger {
    /// Writes what waits.
    fn write(&mut self, recorder: &mut Recorder) {
        let batch = recorder.batch("me");
        recorder.written(&batch);
        self.0.extend(batch.rows);
    }

    /// Lets another leader continue.
    fn resumed(&self, now: Timestamp) -> Recorder {
        let mut resume = Resume::new(CLUSTER);
        for row in &self.0 {
            resume.add(row.clone());
        }
        Recorder::new(CLUSTER.into(), resume, usize::MAX, now)
    }

    /// Returns the newest row of each span, by name.
    fn spans(&self) -> BTreeMap<&str, &Row> {
        let mut newest: BTreeMap<&str, &Row> = BTreeMap::new();
        for row in &self.0 {
            let Some(one) = span(row) else { continue };
            let known = newest.get(one.id.as_str()).and_then(|known| span(known));
            if known.is_none_or(|known| (known.seen, known.to) <= (one.seen, one.to)) {
                newest.insert(&one.id, row);
            }
        }
        newest
    }

    fn alive(&self) -> Timestamp {
        let alive = self.0.iter().filter_map(|row| match row {
            Row::Alive(row) => Some(row.seen),
            _ => None,
        });
        alive.max().expect("a sign of life")
    }

    /// Returns the milliseconds of a span.
    fn lasted(&self, span: &Span) -> u128 {
        let open = self.alive().min(midnight_after(span.from)).max(span.from);
        let lasted = span.to.unwrap_or(open).duration_since(span.from).as_millis();
        u128::try_from(lasted).expect("no span ends before it starts")
    }

    /// Returns the sum of prices times milliseconds.
    fn money(&self) -> u128 {
        let paid = |row: &Row| match row {
            Row::Instance(row) => u128::from(row.price_micros_per_hour.unwrap_or(0)) * self.lasted(&row.span),
            _ => 0,
        };
        self.spans().into_values().map(paid).sum()
    }

    /// Returns the sum of thousandths of GPUs times milliseconds that pods held.
    fn held(&self) -> u128 {
        let held = |row: &Row| match row {
            Row::Pod(row) => u128::from(row.holds.gpu_millis) * self.lasted(&row.span),
            _ => 0,
        };
        self.spans().into_values().map(held).sum()
    }

    /// Returns when each span begins and ends, as texts, in order.
    fn times(&self) -> Vec<String> {
        let spans = self.spans();
        let spans = spans.values().filter_map(|row| span(row));
        spans
            .map(|span| format!("{}..{}", span.from, span.to.map_or_else(String::new, |to| to.to_string())))
            .collect()
    }
}

/// Returns a recorder of an empty ledger.
fn new(now: Timestamp) -> Recorder {
    Ledger::default().resumed(now)
}
