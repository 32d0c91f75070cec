//! Pod lists of the Alibaba GPU trace 2023 (openb), as pods to plan for.
//!
//! Format: <https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023>.

mod gpu_map;
mod reader;
pub(crate) mod table;

pub use gpu_map::{GpuChoice, GpuMap};
pub use reader::{Times, Trace, TracePod, read, read_timed};

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::{NodeSelectorTerm, Operator, PodSpec, Requirement};
use poolwright_terms::labels;

impl TracePod {
    /// Returns its requirements for a node.
    pub fn spec(&self) -> PodSpec {
        let node_affinity = match &self.models {
            GpuChoice::OneOf(models) if self.gpus > 0 || self.share.is_some() => {
                let values = models.iter().map(ToString::to_string).collect();
                let requirement =
                    Requirement { key: labels::GPU_MODEL.to_owned(), operator: Operator::In(values) };
                Some(vec![NodeSelectorTerm { requirements: vec![requirement] }])
            }
            _ => None,
        };
        let requests = ResourceList::new()
            .with(ResourceName::CPU, self.cpu_milli)
            .with(ResourceName::MEMORY, self.memory_mib << 20)
            .with(ResourceName::NVIDIA_GPU, self.gpus)
            .with(ResourceName::PODS, 1);
        PodSpec { requests, node_affinity, gpu_share: self.share, ..PodSpec::default() }
    }
}
