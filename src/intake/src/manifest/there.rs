//! The pods that a stored object has by its status, whether they are in the files or not. A quota that says what is in use counts them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::objects::{Object, meta};
use crate::owned::Maker;
use crate::template::{MAX_PODS, Made};

/// The pods that an object has by its status.
pub(super) enum There {
    /// So many, the first ones.
    First(usize),
    /// All of so many groups of a LeaderWorkerSet, the first ones.
    Groups(usize),
    /// All of these Jobs.
    Jobs(BTreeSet<String>),
}

impl There {
    /// Reads the status of an object. If a written object counts instead of a stored one, the stored one has the status.
    pub fn of(object: &Object) -> Self {
        let stored = object.replaced.as_ref().or_else(|| object.is_stored().then_some(&object.value));
        let Some(status) = stored.map(|stored| &stored["status"]) else { return Self::First(0) };
        let size = &object.value["spec"]["leaderWorkerTemplate"]["size"];
        match object.kind.as_str() {
            "LeaderWorkerSet" if size.as_u64().is_some_and(|size| size > 1) => {
                Self::Groups(count(&status["replicas"]))
            }
            "JobSet" => Self::Jobs(jobs(object, &status["replicatedJobsStatus"])),
            "TrainJob" => Self::Jobs(jobs(object, &status["jobsStatus"])),
            _ => Self::First(count(&status["replicas"]).max(count(&status["active"]))),
        }
    }

    /// Returns those that are not in the files, of which the files have so many.
    pub fn without(self, had: usize) -> Self {
        match self {
            Self::First(count) => Self::First(count.saturating_sub(had)),
            // The files show which pods of a group or a Job there are.
            Self::Groups(_) | Self::Jobs(_) if had > 0 => Self::First(0),
            all => all,
        }
    }

    /// Returns whether a pod is one of them. It is called once for each pod, in their order.
    pub fn has(&mut self, made: &Made) -> bool {
        match self {
            Self::First(0) => false,
            Self::First(left) => {
                *left -= 1;
                true
            }
            Self::Groups(count) => made.origin.gang.is_some_and(|group| group < *count),
            Self::Jobs(names) => {
                matches!(&made.origin.maker, Maker::Other("Job", name) if names.contains(name))
            }
        }
    }
}

/// Returns the names of the Jobs with pods that run or wait, by the status of each replicated job.
fn jobs(object: &Object, statuses: &Value) -> BTreeSet<String> {
    let set = meta(&object.value, "name").unwrap_or_default();
    let of = |job: &Value| {
        let name = job["name"].as_str().unwrap_or_default().to_owned();
        (0..count(&job["active"])).map(move |replica| format!("{set}-{name}-{replica}"))
    };
    statuses.as_array().into_iter().flatten().flat_map(of).collect()
}

/// Reads a number of a status.
fn count(number: &Value) -> usize {
    let most = u64::try_from(MAX_PODS).unwrap_or(u64::MAX);
    usize::try_from(number.as_u64().unwrap_or(0).min(most)).unwrap_or(0)
}
