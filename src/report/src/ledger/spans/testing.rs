//! Rows for tests. Times are those of 2026-11-10, or have a day of that month before them: `11T00:00`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::{Date, date};

use crate::ledger::row::{Alive, Amounts, InstanceSpan, Phase, PodSpan, Row, Span};

/// Returns a day of November 2026.
pub fn day(number: i8) -> Date {
    date(2026, 11, number)
}

/// Returns a time: `12:30`, `11T12:30`.
pub fn at(time: &str) -> Timestamp {
    let (day, time) = time.split_once('T').unwrap_or(("10", time));
    format!("2026-11-{day}T{time}:00Z").parse().expect("a time")
}

fn span(id: String, from: &str, to: Option<&str>) -> Span {
    let from = at(from);
    let to = to.map(at);
    Span {
        id,
        cluster: "c".to_owned(),
        from,
        to,
        seen: to.unwrap_or(from),
        continued: false,
        estimated: false,
    }
}

/// Returns an instance with 4 GPUs, 8 vCPUs and 64 GiB, for 4 dollars per hour.
pub fn instance(uid: &str, from: &str, to: Option<&str>) -> InstanceSpan {
    InstanceSpan {
        span: span(format!("{uid}/{}", at(from).as_millisecond()), from, to),
        uid: uid.to_owned(),
        name: format!("claim-{uid}"),
        instance_id: None,
        node: Some(format!("node-{uid}")),
        pool: Some("gpu".to_owned()),
        provider: "aws".to_owned(),
        region: "us-east-1".to_owned(),
        zone: "us-east-1a".to_owned(),
        instance_type: "g5.12xlarge".to_owned(),
        capacity_type: "on-demand".to_owned(),
        phase: Phase::Ready,
        price_micros_per_hour: Some(4_000_000),
        list_micros_per_hour: Some(4_000_000),
        price_source: None,
        price_at: None,
        commitment: None,
        offers: Amounts { gpu_millis: 4_000, cpu_millis: 8_000, memory_bytes: 64 << 30 },
    }
}

/// Returns a pod with one GPU, 2 vCPUs and 16 GiB.
pub fn pod(uid: &str, instance: &str, from: &str, to: Option<&str>) -> PodSpan {
    PodSpan {
        span: span(format!("{uid}/{instance}/{}", at(from).as_millisecond()), from, to),
        uid: uid.to_owned(),
        instance: instance.to_owned(),
        namespace: "ml".to_owned(),
        name: uid.to_owned(),
        workload_kind: None,
        workload: None,
        daemon: false,
        labels: BTreeMap::new(),
        holds: Amounts { gpu_millis: 1_000, cpu_millis: 2_000, memory_bytes: 16 << 30 },
    }
}

/// Returns a sign of a controller.
pub fn alive(seen: &str) -> Row {
    Row::Alive(Alive { cluster: "c".to_owned(), writer: "w".to_owned(), seen: at(seen) })
}
