//! The labels that a node gets from its offering.

use std::collections::BTreeMap;

use poolwright_terms::labels::{
    ARCH, CAPACITY_TYPE, GPU_COUNT, GPU_MEMORY, GPU_MODEL, INSTANCE_CPU, INSTANCE_FAMILY, INSTANCE_MEMORY,
    INSTANCE_TYPE, OS, PROVIDER, REGION, ZONE,
};

use crate::instance::InstanceType;
use crate::offering::Offering;
use crate::resources::ResourceName;

/// Returns the labels of a node of this type and offering.
pub fn labels_of(kind: &InstanceType, offering: &Offering) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from(
        [
            (INSTANCE_TYPE, kind.name.to_string()),
            (ZONE, offering.id.zone.to_string()),
            (ARCH, kind.arch.as_str().to_owned()),
            (OS, "linux".to_owned()),
            (CAPACITY_TYPE, offering.id.capacity_type.to_string()),
            (PROVIDER, kind.provider.to_string()),
            (INSTANCE_FAMILY, kind.family().to_owned()),
            (INSTANCE_CPU, (kind.allocatable.get(ResourceName::CPU) / 1000).to_string()),
            (INSTANCE_MEMORY, (kind.allocatable.get(ResourceName::MEMORY) >> 20).to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    if let Some(region) = &offering.region {
        labels.insert(REGION.to_owned(), region.clone());
    }
    if let Some(gpu) = &kind.gpu {
        labels.insert(GPU_MODEL.to_owned(), gpu.model.to_string());
        labels.insert(GPU_COUNT.to_owned(), gpu.count.to_string());
        if let Some(memory) = gpu.memory_mib {
            labels.insert(GPU_MEMORY.to_owned(), memory.to_string());
        }
    }
    labels
}
