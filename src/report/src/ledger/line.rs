//! Reads one line of the ledger.
//!
//! A month of a large cluster has millions of lines. For a tagged enum with flattened fields, serde first copies a line twice. So
//! a line is read as one flat struct that has the fields of all kinds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::row::{Alive, Amounts, InstanceSpan, Phase, PodSpan, Row, Span};

/// The highest price in micro-dollars per hour: a million dollars. A price above it is a mistake, and sums stay far from overflow.
const MOST: u64 = 1_000_000_000_000;

/// The largest amount of a node or a pod: a pebibyte of memory. One above it is a mistake, and sums stay far from overflow.
const MOST_OF_A_KIND: u64 = 1 << 50;

/// A line of any kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    cluster: Option<String>,
    seen: Option<Timestamp>,
    writer: Option<String>,
    id: Option<String>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    #[serde(default)]
    continued: bool,
    #[serde(default)]
    estimated: bool,
    uid: Option<String>,
    name: Option<String>,
    instance_id: Option<String>,
    node: Option<String>,
    pool: Option<String>,
    provider: Option<String>,
    region: Option<String>,
    zone: Option<String>,
    instance_type: Option<String>,
    capacity_type: Option<String>,
    phase: Option<Phase>,
    price_micros_per_hour: Option<u64>,
    list_micros_per_hour: Option<u64>,
    price_source: Option<String>,
    price_at: Option<Timestamp>,
    commitment: Option<String>,
    offers: Option<Amounts>,
    instance: Option<String>,
    namespace: Option<String>,
    workload_kind: Option<String>,
    workload: Option<String>,
    #[serde(default)]
    daemon: bool,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    holds: Option<Amounts>,
}

impl Row {
    /// The kinds that this version knows. A newer one may write others.
    pub const KINDS: [&str; 3] = ["instance", "pod", "alive"];
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Line::deserialize(deserializer)?;
        let prices = [line.price_micros_per_hour, line.list_micros_per_hour];
        if prices.into_iter().flatten().any(|price| price > MOST) {
            return Err(D::Error::custom("a price is above a million dollars per hour"));
        }
        let amounts = [line.offers, line.holds].into_iter().flatten();
        let mut amounts = amounts.flat_map(|held| [held.gpu_millis, held.cpu_millis, held.memory_bytes]);
        if amounts.any(|amount| amount > MOST_OF_A_KIND) {
            return Err(D::Error::custom("an amount is larger than that of any node"));
        }
        let row = match &*line.kind {
            "instance" => line.instance(),
            "pod" => line.pod(),
            "alive" => line.alive(),
            other => return Err(D::Error::unknown_variant(other, &Self::KINDS)),
        };
        row.map_err(D::Error::missing_field)
    }
}

/// Returns the value of a field that a kind always has. The error is the field's name.
fn given<T>(value: Option<T>, field: &'static str) -> Result<T, &'static str> {
    value.ok_or(field)
}

impl Line<'_> {
    fn instance(self) -> Result<Row, &'static str> {
        Ok(Row::Instance(InstanceSpan {
            span: Span {
                id: given(self.id, "id")?,
                cluster: given(self.cluster, "cluster")?,
                from: given(self.from, "from")?,
                to: self.to,
                seen: given(self.seen, "seen")?,
                continued: self.continued,
                estimated: self.estimated,
            },
            uid: given(self.uid, "uid")?,
            name: given(self.name, "name")?,
            instance_id: self.instance_id,
            node: self.node,
            pool: self.pool,
            provider: given(self.provider, "provider")?,
            region: given(self.region, "region")?,
            zone: given(self.zone, "zone")?,
            instance_type: given(self.instance_type, "instanceType")?,
            capacity_type: given(self.capacity_type, "capacityType")?,
            phase: given(self.phase, "phase")?,
            price_micros_per_hour: self.price_micros_per_hour,
            list_micros_per_hour: self.list_micros_per_hour,
            price_source: self.price_source,
            price_at: self.price_at,
            commitment: self.commitment,
            offers: given(self.offers, "offers")?,
        }))
    }

    fn pod(self) -> Result<Row, &'static str> {
        Ok(Row::Pod(PodSpan {
            span: Span {
                id: given(self.id, "id")?,
                cluster: given(self.cluster, "cluster")?,
                from: given(self.from, "from")?,
                to: self.to,
                seen: given(self.seen, "seen")?,
                continued: self.continued,
                estimated: self.estimated,
            },
            uid: given(self.uid, "uid")?,
            instance: given(self.instance, "instance")?,
            namespace: given(self.namespace, "namespace")?,
            name: given(self.name, "name")?,
            workload_kind: self.workload_kind,
            workload: self.workload,
            daemon: self.daemon,
            labels: self.labels,
            holds: given(self.holds, "holds")?,
        }))
    }

    fn alive(self) -> Result<Row, &'static str> {
        Ok(Row::Alive(Alive {
            cluster: given(self.cluster, "cluster")?,
            writer: given(self.writer, "writer")?,
            seen: given(self.seen, "seen")?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{alive, instance, pod};
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let mut full = instance("a", "00:00", Some("01:00"));
        full.instance_id = Some("i-1".to_owned());
        full.node = Some("node-a".to_owned());
        full.list_micros_per_hour = Some(2);
        full.price_source = Some("file".to_owned());
        full.price_at = Some(full.span.from);
        full.commitment = Some("plan".to_owned());
        full.span.estimated = true;
        let mut held = pod("p", "a", "00:00", None);
        held.span.continued = true;
        held.daemon = true;
        held.workload_kind = Some("Job".to_owned());
        held.workload = Some("train".to_owned());
        held.labels.insert("team".to_owned(), "a".to_owned());
        for row in [Row::Instance(full), Row::Pod(held), alive("00:01")] {
            let line = serde_json::to_string(&row).unwrap();
            assert_eq!(serde_json::from_str::<Row>(&line).unwrap(), row, "{line}");
        }
    }

    #[test]
    fn an_error_names_what_is_wrong() {
        let mut row = serde_json::to_value(Row::Instance(instance("a", "00:00", None))).unwrap();
        let told =
            |row: &serde_json::Value| serde_json::from_value::<Row>(row.clone()).unwrap_err().to_string();
        row["priceMicrosPerHour"] = (MOST + 1).into();
        assert_eq!(told(&row), "a price is above a million dollars per hour");
        row["priceMicrosPerHour"] = MOST.into();
        row["offers"]["memoryBytes"] = u64::MAX.into();
        assert_eq!(told(&row), "an amount is larger than that of any node");
        row["offers"]["memoryBytes"] = MOST_OF_A_KIND.into();
        row.as_object_mut().unwrap().remove("zone");
        assert_eq!(told(&row), "missing field `zone`");
        row["kind"] = "volume".into();
        assert!(told(&row).starts_with("unknown variant `volume`"), "{}", told(&row));
    }
}
