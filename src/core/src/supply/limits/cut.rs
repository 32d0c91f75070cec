//! The MIG instances of a new node, as limits count them.
//!
//! The solver cuts the GPUs of each node for its pods, but each kind of node counts with one amount towards a limit. So a node with
//! instances of a kind counts as all such instances that its GPUs could be cut into. This is exact if they are cut into nothing else, and
//! never too little.

use poolwright_catalog::{InstanceType, MigModel, ResourceName};

use crate::rules::gpus::GpuNeed;

/// Returns the resource of the instances that serve a request on GPUs of this type, and the most of them that the GPUs of one node can be
/// cut into; `None` if no instance serves it.
pub(crate) fn instances(need: &GpuNeed, kind: &InstanceType) -> Option<(String, u64)> {
    let gpu = kind.gpu.as_ref()?;
    let model = MigModel::of(gpu)?;
    let (GpuNeed::Part { profile, .. } | GpuNeed::Named { profile, .. }) = need.on_type(kind) else {
        return None;
    };
    let resource = model.resource(profile)?;
    let all = most(kind, &resource);
    (all > 0).then_some((resource, all))
}

/// Returns the most MIG instances of a resource that the GPUs of one node of a type can be cut into.
pub(crate) fn most(kind: &InstanceType, resource: &str) -> u64 {
    let each = |model: &MigModel| {
        let profile = model.profile(resource.strip_prefix(ResourceName::MIG_PREFIX)?)?;
        Some(u64::from(model.geometry.placements(profile)?.most))
    };
    let of_node = kind.gpu.as_ref().and_then(|gpu| {
        let each = MigModel::of(gpu).and_then(each)?;
        Some(u64::from(gpu.count).saturating_mul(each))
    });
    of_node.unwrap_or(0)
}
