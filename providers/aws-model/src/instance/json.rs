//! Parses [`TypeFacts`] from EC2's JSON, the output of `aws ec2 describe-instance-types` for one type.

use poolwright_catalog::InstanceTypeName;
use serde::Deserialize;

use super::facts::{
    Accelerator, AcceleratorKind, Architecture, GpuFacts, Hypervisor, NetworkFacts, TypeFacts, UsageClass,
};

/// The error of parsing an instance type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an instance type as EC2 describes one: {cause}; expected is one element of InstanceTypes")]
pub struct InvalidFacts {
    /// The cause.
    pub cause: String,
}

/// Parses one element of `InstanceTypes`. An absent number counts as zero.
///
/// # Errors
///
/// The text is not JSON, or the name, vCPUs or memory are missing.
pub fn from_json(text: &str) -> Result<TypeFacts, InvalidFacts> {
    let info: Described =
        serde_json::from_str(text).map_err(|error| InvalidFacts { cause: error.to_string() })?;
    if info.instance_type.is_empty() {
        return Err(InvalidFacts { cause: "InstanceType is empty".to_owned() });
    }
    Ok(info.facts())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Described {
    instance_type: String,
    #[serde(default)]
    bare_metal: bool,
    #[serde(default)]
    burstable_performance_supported: bool,
    #[serde(default)]
    current_generation: bool,
    hypervisor: Option<String>,
    #[serde(default)]
    supported_usage_classes: Vec<String>,
    #[serde(default)]
    processor_info: Processor,
    #[serde(rename = "VCpuInfo")]
    vcpu_info: Vcpu,
    memory_info: Memory,
    #[serde(default)]
    gpu_info: Gpus,
    #[serde(default)]
    inference_accelerator_info: Accelerators,
    #[serde(default)]
    neuron_info: Neurons,
    #[serde(default)]
    fpga_info: Fpgas,
    #[serde(default)]
    media_accelerator_info: Accelerators,
    #[serde(default)]
    instance_storage_info: Storage,
    #[serde(default)]
    network_info: Wiring,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Processor {
    #[serde(default)]
    supported_architectures: Vec<String>,
}

#[derive(Deserialize)]
struct Vcpu {
    #[serde(rename = "DefaultVCpus")]
    default: u32,
}

#[derive(Default, Deserialize)]
struct Memory {
    #[serde(rename = "SizeInMiB")]
    mib: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Gpus {
    #[serde(default)]
    gpus: Vec<Board>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Board {
    #[serde(default)]
    name: String,
    #[serde(default)]
    manufacturer: String,
    #[serde(default)]
    count: u32,
    logical_gpu_count: Option<u32>,
    gpu_partition_size: Option<f64>,
    #[serde(default)]
    memory_info: Memory,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Accelerators {
    #[serde(default)]
    accelerators: Vec<Device>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Neurons {
    #[serde(default)]
    neuron_devices: Vec<Device>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Fpgas {
    #[serde(default)]
    fpgas: Vec<Device>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Device {
    #[serde(default)]
    name: String,
    #[serde(default)]
    count: u32,
}

#[derive(Default, Deserialize)]
struct Storage {
    #[serde(default, rename = "TotalSizeInGB")]
    gb: u64,
    #[serde(default, rename = "NvmeSupport")]
    nvme: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Wiring {
    #[serde(default)]
    default_network_card_index: u32,
    #[serde(default)]
    maximum_network_cards: u32,
    #[serde(default)]
    maximum_network_interfaces: u32,
    #[serde(default)]
    ipv4_addresses_per_interface: u32,
    #[serde(default)]
    efa_supported: bool,
    #[serde(default)]
    efa_info: Efa,
    #[serde(default)]
    network_cards: Vec<Card>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Efa {
    #[serde(default)]
    maximum_efa_interfaces: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Card {
    #[serde(default)]
    network_card_index: u32,
    #[serde(default)]
    maximum_network_interfaces: u32,
}

impl Described {
    fn facts(self) -> TypeFacts {
        let of = |kind, devices: Vec<Device>| {
            devices.into_iter().map(move |Device { name, count }| Accelerator { kind, name, count })
        };
        let accelerators = of(AcceleratorKind::Neuron, self.neuron_info.neuron_devices)
            .chain(of(AcceleratorKind::Inference, self.inference_accelerator_info.accelerators))
            .chain(of(AcceleratorKind::Fpga, self.fpga_info.fpgas))
            .chain(of(AcceleratorKind::Media, self.media_accelerator_info.accelerators))
            .collect();
        let storage = self.instance_storage_info;
        TypeFacts {
            name: InstanceTypeName::new(self.instance_type),
            architectures: words(&self.processor_info.supported_architectures, Architecture::of),
            vcpus: self.vcpu_info.default,
            memory_mib: self.memory_info.mib,
            hypervisor: Hypervisor::of(self.hypervisor.as_deref()),
            bare_metal: self.bare_metal,
            current_generation: self.current_generation,
            burstable: self.burstable_performance_supported,
            usage_classes: words(&self.supported_usage_classes, UsageClass::of),
            gpus: self.gpu_info.gpus.into_iter().map(Board::facts).collect(),
            accelerators,
            network: self.network_info.facts(),
            local_nvme_gb: if matches!(storage.nvme.as_str(), "" | "unsupported") { 0 } else { storage.gb },
        }
    }
}

fn words<T: Ord, C: FromIterator<T>>(words: &[String], of: impl Fn(&str) -> T) -> C {
    words.iter().map(|word| of(word)).collect()
}

impl Board {
    fn facts(self) -> GpuFacts {
        GpuFacts {
            name: self.name,
            manufacturer: self.manufacturer,
            count: self.count,
            logical_count: self.logical_gpu_count.unwrap_or(self.count),
            partition_thousandths: self.gpu_partition_size.map_or(GpuFacts::WHOLE, GpuFacts::thousandths),
            memory_mib: self.memory_info.mib,
        }
    }
}

impl Wiring {
    fn facts(self) -> NetworkFacts {
        let default =
            self.network_cards.iter().find(|card| card.network_card_index == self.default_network_card_index);
        NetworkFacts {
            cards: self.maximum_network_cards,
            interfaces: default
                .map_or(self.maximum_network_interfaces, |card| card.maximum_network_interfaces),
            ipv4_per_interface: self.ipv4_addresses_per_interface,
            efa_interfaces: if self.efa_supported { self.efa_info.maximum_efa_interfaces.max(1) } else { 0 },
        }
    }
}
