//! Demand: the pods that need nodes, the nodes that the cluster will need, and the places that earlier plans chose.
//!
//! Each demand source has its own file. Other files hold facts about demand that `plan` and `lifecycle` share.
//!
//! This module must not contain offerings, prices, limits, or the choice of a node. The modules for these depend on this one.
//!
//! To add a source (a queue, a new kind of gang), write a file, implement [`DemandSource`] there, and list it in [`SOURCES`].

mod buffers;
mod controllers;
mod copied_volumes;
mod expected;
mod forecast;
mod gangs;
mod planned_at;
mod pod_groups;
pub(crate) mod profiles;
mod replicas;
mod source;
mod successors;
mod units;
pub(crate) mod volumes;
mod waiting;

pub(crate) use buffers::{is_used as uses_buffers, wants_buffer};
pub(crate) use expected::kept_until;
pub use expected::{ExpectedPods, MOST_OF_OWNER, expected};
pub use forecast::NodesWanted;
pub use forecast::{Forecast, ForecastBuilder, ForecastInput, ForecastOptions};
pub(crate) use planned_at::planned_at;
pub(crate) use pod_groups::{
    GroupState, Lack, Members, group as pod_group, incomplete as incomplete_gangs, is_there,
    state as group_state,
};
pub(crate) use replicas::is_replica;
pub use source::{DemandSource, Mentions};
pub(crate) use successors::moving::{LeavingPod, Successor, moving};

use crate::model::{PodKey, Snapshot};

/// Returns the places where a finished plan may mention a pod, according to its source.
pub fn mentions(key: &PodKey) -> Mentions {
    match key {
        PodKey::Existing(_) => waiting::Waiting.mentions(),
        // Gangs, controllers and successors share the ordinals of an owner, so all three have the same answer.
        PodKey::Expected { .. } => controllers::Controllers.mentions(),
        PodKey::Buffer { .. } => buffers::Buffers.mentions(),
    }
}

/// All sources, in the order in which they run.
///
/// The first four share the places that claims keep for an owner's pods, so their order matters:
///
/// 1. Existing pods take the places that were kept for them. All other places stay free.
/// 2. Pods that gangs and controllers are about to create take free places, then new ordinals.
/// 3. Successors take what is left, because their predecessors still run.
///
/// Buffers and replicas do not depend on other sources, so they may be anywhere in the list.
pub const SOURCES: [&dyn DemandSource; 6] = [
    &waiting::Waiting,
    &gangs::Gangs,
    &controllers::Controllers,
    &successors::Successors,
    &buffers::Buffers,
    &replicas::Replicas,
];

/// Runs all sources.
pub fn foresee<'a>(snapshot: &'a Snapshot, outlook: &ForecastOptions<'a>) -> Forecast<'a> {
    let (known, mut ahead) = ForecastBuilder::begin(snapshot, outlook);
    let believed_until = SOURCES.iter().filter_map(|source| source.foresee(&known, &mut ahead)).min();
    ahead.foreseen(believed_until)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_sources_share_a_name() {
        let names: BTreeSet<&str> = SOURCES.iter().map(|source| source.name()).collect();
        assert_eq!(names.len(), SOURCES.len());
    }
}
