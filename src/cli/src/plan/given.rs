//! Objects that are read once, for several plans.

use jiff::Timestamp;

use super::cluster;
use crate::args::InputFlags;
use crate::exit::Failure;
use crate::scheduler;
use crate::snapshot::SavedCluster;
use crate::source::Source;

/// Objects that were read before the plan, and that may have been changed since.
#[derive(Clone)]
pub enum Given {
    /// Manifests.
    Files {
        /// Their texts.
        sources: Vec<Source>,
        /// The time of plans for them.
        at: Timestamp,
    },
    /// A cluster.
    Cluster(Box<cluster::Objects>),
    /// A snapshot of a cluster.
    Saved(Box<SavedCluster>),
}

impl Given {
    /// Reads the cluster that the flags name. `instead` is the flag to plan for manifests.
    pub fn cluster(flags: &InputFlags, instead: &str) -> Result<Self, Failure> {
        let scheduler = scheduler::read(flags.scheduler_config.as_deref())?;
        Ok(Self::Cluster(Box::new(cluster::read_all(flags, None, &scheduler.profiles, instead)?)))
    }
}

/// Returns the notes on how a snapshot was read.
///
/// # Errors
///
/// It lacks what no plan can do without, because its list was forbidden.
pub fn notes_on(saved: &SavedCluster, flags: &InputFlags) -> Result<Vec<String>, Failure> {
    let scheduler = scheduler::read(flags.scheduler_config.as_deref())?;
    Ok(cluster::read_all(flags, Some(saved), &scheduler.profiles, "-f")?.notes)
}
