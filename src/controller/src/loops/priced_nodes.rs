//! The nodes that the metrics of OpenCost show: those of claims with a known price.

use poolwright_catalog::resources::ResourceName;
use poolwright_core::{Claim, Snapshot};
use poolwright_terms::CapacityType;

use crate::edge::metrics::Metrics;
use crate::edge::opencost::PricedNode;

/// Updates the gauges.
pub fn measure(snapshot: &Snapshot, metrics: &Metrics) {
    let nodes: Vec<PricedNode<'_>> =
        snapshot.claims.values().filter_map(|claim| priced(claim, snapshot)).collect();
    metrics.opencost.show(&nodes);
}

fn priced<'a>(claim: &'a Claim, snapshot: &Snapshot) -> Option<PricedNode<'a>> {
    let current = claim.current_offering();
    let instance_type = &current.offering.instance_type;
    // The type has the whole GPUs. A node that is cut into MIG instances advertises none of them, and one that shares GPUs
    // advertises each several times.
    let catalogue = snapshot.catalogues.get(&claim.node_class).and_then(|found| found.as_ref().ok());
    let gpu = catalogue.and_then(|catalogue| catalogue.types().get(instance_type)?.gpu.as_ref());
    let advertised = || u32::try_from(current.allocatable.get(ResourceName::NVIDIA_GPU)).unwrap_or(u32::MAX);
    Some(PricedNode {
        instance_type: instance_type.as_str(),
        node: claim.node_name.as_deref()?,
        provider_id: &claim.launched.as_ref()?.provider_id,
        usd_per_hour: current.price?.as_f64(),
        gpus: gpu.map_or_else(advertised, |gpu| gpu.count),
        cpus: current.allocatable.get(ResourceName::CPU) as f64 / 1_000.0,
        memory_gib: current.allocatable.get(ResourceName::MEMORY) as f64 / f64::from(1 << 30),
        is_spot: current.offering.capacity_type == CapacityType::Spot,
    })
}
