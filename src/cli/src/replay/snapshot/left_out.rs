//! What a replay leaves out of a snapshot, with a note for each reason.

use std::collections::BTreeMap;

use poolwright_core::{Pod, PodPhase, PodRole};
use serde_json::Value;

/// The scheduler of the simulated cluster.
const SCHEDULER: &str = "default-scheduler";
/// The most names in a note.
const NAMED: usize = 3;

/// Why something is not played.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// A pod has scheduling gates.
    Gated,
    /// A pod is being deleted.
    Ending,
    /// An object of this kind is being deleted.
    Deleted(String),
    /// Another scheduler places a pod.
    OtherScheduler(String),
    /// A static pod, which belongs to a node.
    Static,
    /// A node.
    Node,
    /// A pool, node class or claim of nodes.
    Ours,
}

/// Returns why a pod is not played; `None` if it is. A plan leaves out the same pods.
pub(super) fn why_left_out(pod: &Pod) -> Option<Why> {
    if pod.role == PodRole::Mirror {
        Some(Why::Static)
    } else if pod.deleting_since.is_some() {
        Some(Why::Ending)
    } else if pod.phase == PodPhase::Gated {
        Some(Why::Gated)
    } else if pod.scheduler != SCHEDULER {
        Some(Why::OtherScheduler(pod.scheduler.clone()))
    } else {
        None
    }
}

/// Returns whether an object is being deleted.
pub(super) fn is_ending(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The names of what is left out.
#[derive(Debug, Default)]
pub(super) struct LeftOut(BTreeMap<Why, Vec<String>>);

impl LeftOut {
    pub fn add(&mut self, why: Why, name: String) {
        self.0.entry(why).or_default().push(name);
    }

    /// Returns whether there are pods among it.
    pub fn has_pods(&self) -> bool {
        let is_pod =
            |why: &Why| matches!(why, Why::Gated | Why::Ending | Why::OtherScheduler(_) | Why::Static);
        self.0.keys().any(is_pod)
    }

    /// Adds a note for each reason.
    pub fn tell(&self, notes: &mut Vec<String>) {
        for (why, names) in &self.0 {
            let count = names.len();
            let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
            let named = format!("{}{more}", names[..count.min(NAMED)].join(", "));
            notes.push(match why {
                Why::Gated => format!("left out pods with scheduling gates: {count} ({named})"),
                Why::Ending => format!("left out pods that are being deleted: {count} ({named})"),
                Why::Deleted(kind) => {
                    format!("left out objects of kind {kind} that are being deleted: {count} ({named})")
                }
                Why::OtherScheduler(scheduler) => {
                    format!("left out pods that scheduler `{scheduler}` places: {count} ({named})")
                }
                Why::Static => {
                    format!("left out static pods, which belong to their nodes: {count} ({named})")
                }
                Why::Node => format!("ignored Nodes of the snapshot: {count}; all nodes are bought anew"),
                Why::Ours => format!(
                    "ignored pools, node classes and claims of the snapshot: {count}; pass pools with --pools"
                ),
            });
        }
    }
}
