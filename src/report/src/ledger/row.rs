//! The rows of the ledger: what each instance cost from when to when, and which pods held which share of it.
//!
//! A row tells all that is known about one span when it is written. A later row with the same id replaces it, so a row that is read
//! twice counts once. `docs/money.md` describes the fields for people who query the files.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One line of the ledger. `line.rs` reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Row {
    /// A span of one instance at one price in one phase.
    Instance(InstanceSpan),
    /// A span of one pod on one instance.
    Pod(PodSpan),
    /// The writer was alive at this time: spans without an end last at least until then.
    Alive(Alive),
}

/// The times of a span, and when the writer last saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// The name of the span, the same in each row about it.
    pub id: String,
    /// The cluster's id.
    pub cluster: String,
    /// The start.
    pub from: Timestamp,
    /// The end; absent while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// When this row was written.
    pub seen: Timestamp,
    /// Whether the span continues the one before midnight or before a change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
    /// Whether the end is a guess, because no controller watched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// An instance at one price in one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSpan {
    /// Its times.
    #[serde(flatten)]
    pub span: Span,
    /// The UID of its NodeClaim, or of its Node if it has no claim.
    pub uid: String,
    /// The name of the NodeClaim, or of the Node.
    pub name: String,
    /// The cloud's id of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// The name of its Node, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The cloud.
    pub provider: String,
    /// The region.
    pub region: String,
    /// The zone.
    pub zone: String,
    /// The instance type.
    pub instance_type: String,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: String,
    /// What it did.
    pub phase: Phase,
    /// What it cost, in micro-dollars per hour; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_micros_per_hour: Option<u64>,
    /// The on-demand list price of its type, in micro-dollars per hour; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_micros_per_hour: Option<u64>,
    /// Where the price is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_source: Option<String>,
    /// The time the price is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_at: Option<Timestamp>,
    /// The commitment that pays it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<String>,
    /// What it offers to pods.
    pub offers: Amounts,
}

/// What an instance did during a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// It started, and was not open to pods yet.
    Starting,
    /// It was open to pods.
    Ready,
    /// It was closed, drained or terminated.
    Draining,
}

/// Amounts of an instance or a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Amounts {
    /// Thousandths of whole GPUs. A MIG instance or a share of a GPU is a part of one.
    pub gpu_millis: u64,
    /// Thousandths of vCPUs.
    pub cpu_millis: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// A pod on an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpan {
    /// Its times.
    #[serde(flatten)]
    pub span: Span,
    /// The pod's UID.
    pub uid: String,
    /// The UID of the instance's NodeClaim or Node, as [`InstanceSpan::uid`].
    pub instance: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The kind of its controller, for instance `Job`; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_kind: Option<String>,
    /// The name of its controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Whether a DaemonSet or the node itself runs it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub daemon: bool,
    /// The labels that the ledger keeps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What it held.
    pub holds: Amounts,
}

/// The writer lived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Alive {
    /// The cluster's id.
    pub cluster: String,
    /// Who wrote.
    pub writer: String,
    /// When.
    pub seen: Timestamp,
}
