//! Demand: the pods and nodes that the cluster will need, and the places that earlier plans chose.
//!
//! Lives here: each source of demand, one a file, and the facts about it that `plan` and `lifecycle` share.
//!
//! May not live here: offers, prices, limits, and the choice of a node. Those rooms stand above this one.
//!
//! To add a source (a queue, a new kind of gang), write its file, implement [`DemandSource`] there, and name it in [`SOURCES`].

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
pub use expected::{ExpectedPods, expected};
pub use forecast::NodesWanted;
pub use forecast::{Forecast, ForecastBuilder, ForecastInput, ForecastOptions};
pub(crate) use planned_at::planned_at;
pub(crate) use pod_groups::{
    GroupState, Lack, incomplete as incomplete_gangs, is_there, state as group_state,
};
pub(crate) use replicas::is_replica;
pub use source::{DemandSource, Mentions};
pub(crate) use successors::moving::{LeavingPod, Successor, moving};

use crate::model::{PodKey, Snapshot};

/// Where a plan that is done may mention a pod: the answer of the source that it comes from.
pub fn mentions(key: &PodKey) -> Mentions {
    match key {
        PodKey::Existing(_) => waiting::Waiting.mentions(),
        // Gangs, controllers and successors share the numbers of one owner, so one answer holds for all three.
        PodKey::Expected { .. } => controllers::Controllers.mentions(),
        PodKey::Buffer { .. } => buffers::Buffers.mentions(),
    }
}

/// All sources, in the order in which they are asked.
///
/// The first four share the places that claims keep for an owner's pods, so their order matters:
///
/// 1. Pods that came take the places that were kept for them. The rest stays free.
/// 2. Pods that gangs and controllers are about to make take free places, then new numbers.
/// 3. Successors take what is left: their pods still run, so their places are the last that are needed.
///
/// Buffers and replicas look at nothing that other sources added: their place in the list is free.
pub const SOURCES: [&dyn DemandSource; 6] = [
    &waiting::Waiting,
    &gangs::Gangs,
    &controllers::Controllers,
    &successors::Successors,
    &buffers::Buffers,
    &replicas::Replicas,
];

/// Asks all sources.
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
