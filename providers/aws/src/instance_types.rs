//! Converts instance types of the EC2 SDK to the type of the model.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::{EphemeralNvmeSupport, GpuDeviceInfo, InstanceTypeInfo, NetworkInfo};
use poolwright_catalog::InstanceTypeName;
use poolwright_provider_aws_model::instance::{
    Accelerator, AcceleratorKind, Architecture, GpuFacts, Hypervisor, NetworkFacts, TypeFacts, UsageClass,
};

/// Converts an instance type. It returns `None` if the name, vCPUs or memory are missing. Any other missing field counts as zero.
pub(crate) fn type_facts(info: &InstanceTypeInfo) -> Option<TypeFacts> {
    let storage = info.instance_storage_info();
    let nvme = storage.and_then(|storage| storage.nvme_support());
    let has_nvme = nvme.is_some_and(|support| *support != EphemeralNvmeSupport::Unsupported);
    Some(TypeFacts {
        name: InstanceTypeName::new(info.instance_type()?.as_str()),
        architectures: info
            .processor_info()
            .into_iter()
            .flat_map(aws_sdk_ec2::types::ProcessorInfo::supported_architectures)
            .map(|one| Architecture::of(one.as_str()))
            .collect(),
        vcpus: natural(info.v_cpu_info()?.default_v_cpus()).filter(|count| *count > 0)?,
        memory_mib: info.memory_info()?.size_in_mib().and_then(|mib| u64::try_from(mib).ok())?,
        hypervisor: Hypervisor::of(info.hypervisor().map(aws_sdk_ec2::types::InstanceTypeHypervisor::as_str)),
        bare_metal: info.bare_metal().unwrap_or_default(),
        current_generation: info.current_generation().unwrap_or_default(),
        burstable: info.burstable_performance_supported().unwrap_or_default(),
        usage_classes: info
            .supported_usage_classes()
            .iter()
            .map(|one| UsageClass::of(one.as_str()))
            .collect::<BTreeSet<_>>(),
        gpus: info.gpu_info().map(|gpus| gpus.gpus().iter().map(gpu).collect()).unwrap_or_default(),
        accelerators: accelerators(info),
        network: info.network_info().map_or(
            NetworkFacts { cards: 0, interfaces: 0, ipv4_per_interface: 0, efa_interfaces: 0 },
            network,
        ),
        local_nvme_gb: storage
            .filter(|_| has_nvme)
            .and_then(aws_sdk_ec2::types::InstanceStorageInfo::total_size_in_gb)
            .and_then(|gb| u64::try_from(gb).ok())
            .unwrap_or(0),
    })
}

fn natural(number: Option<i32>) -> Option<u32> {
    u32::try_from(number?).ok()
}

fn gpu(device: &GpuDeviceInfo) -> GpuFacts {
    let count = natural(device.count()).unwrap_or(0);
    GpuFacts {
        name: device.name().unwrap_or_default().to_owned(),
        manufacturer: device.manufacturer().unwrap_or_default().to_owned(),
        count,
        logical_count: natural(device.logical_gpu_count()).unwrap_or(count),
        partition_thousandths: device.gpu_partition_size().map_or(GpuFacts::WHOLE, GpuFacts::thousandths),
        memory_mib: device
            .memory_info()
            .and_then(aws_sdk_ec2::types::GpuDeviceMemoryInfo::size_in_mib)
            .map_or(0, |mib| u64::try_from(mib).unwrap_or(0)),
    }
}

fn accelerators(info: &InstanceTypeInfo) -> Vec<Accelerator> {
    let one = |kind, name: Option<&str>, count: Option<i32>| Accelerator {
        kind,
        name: name.unwrap_or_default().to_owned(),
        count: natural(count).unwrap_or(0),
    };
    let mut all = Vec::new();
    let neuron = info.neuron_info().map(aws_sdk_ec2::types::NeuronInfo::neuron_devices).unwrap_or_default();
    all.extend(neuron.iter().map(|device| one(AcceleratorKind::Neuron, device.name(), device.count())));
    let inference = info
        .inference_accelerator_info()
        .map(aws_sdk_ec2::types::InferenceAcceleratorInfo::accelerators)
        .unwrap_or_default();
    all.extend(inference.iter().map(|device| one(AcceleratorKind::Inference, device.name(), device.count())));
    let fpgas = info.fpga_info().map(aws_sdk_ec2::types::FpgaInfo::fpgas).unwrap_or_default();
    all.extend(fpgas.iter().map(|device| one(AcceleratorKind::Fpga, device.name(), device.count())));
    let media = info
        .media_accelerator_info()
        .map(aws_sdk_ec2::types::MediaAcceleratorInfo::accelerators)
        .unwrap_or_default();
    all.extend(media.iter().map(|device| one(AcceleratorKind::Media, device.name(), device.count())));
    all
}

fn network(info: &NetworkInfo) -> NetworkFacts {
    let default = info.default_network_card_index().unwrap_or(0);
    let card = info.network_cards().iter().find(|card| card.network_card_index().unwrap_or(0) == default);
    let interfaces = card
        .and_then(aws_sdk_ec2::types::NetworkCardInfo::maximum_network_interfaces)
        .or(info.maximum_network_interfaces());
    let efa = info.efa_info().and_then(|efa| natural(efa.maximum_efa_interfaces())).unwrap_or(0);
    NetworkFacts {
        cards: natural(info.maximum_network_cards()).unwrap_or(0),
        interfaces: natural(interfaces).unwrap_or(0),
        ipv4_per_interface: natural(info.ipv4_addresses_per_interface()).unwrap_or(0),
        efa_interfaces: if info.efa_supported().unwrap_or_default() { efa.max(1) } else { 0 },
    }
}
