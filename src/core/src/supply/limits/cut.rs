//! The MIG instances of a new node, as limits count them.
//!
//! The solver cuts the GPUs of each node for its pods, but each kind of node counts with one amount towards a limit. So a node with
//! instances of a kind counts as all such instances that its GPUs could be cut into. This is exact if they are cut into nothing else, and
//! never too little.

use poolwright_catalog::{InstanceType, MigModel};

use crate::rules::gpus::GpuNeed;

/// Returns the resource of the instances that serve a request on GPUs of this type, and the most of them that the GPUs of one node can be
/// cut into; `None` if no instance serves it.
pub(crate) fn instances(need: &GpuNeed, kind: &InstanceType) -> Option<(String, u64)> {
    let gpu = kind.gpu.as_ref()?;
    let model = MigModel::of(gpu)?;
    let (GpuNeed::Part { profile, .. } | GpuNeed::Named { profile, .. }) = need.on_type(kind) else {
        return None;
    };
    let each = model.geometry.placements(profile)?.most;
    Some((model.resource(profile)?, u64::from(gpu.count).saturating_mul(u64::from(each))))
}
