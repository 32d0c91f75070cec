//! The audit of GPU layouts: checks shared and partitioned GPUs against pod specs and MIG placement tables.

use std::collections::BTreeMap;

use poolwright_catalog::{InstanceType, MigModel, ResourceList, ResourceName};

use crate::model::plan::{PlannedClaim, PlannedGpu, PlannedInstance};
use crate::model::{Claim, Pod, PodKey, Sharing, Snapshot};

/// The GPUs that one pod was assigned.
#[derive(Default)]
struct GrantedGpus<'c> {
    whole: u64,
    shares: Vec<u32>,
    instances: Vec<&'c PlannedInstance>,
}

/// Checks the layouts of a claim, and subtracts the granted GPUs from `wanted`, the sum of the pods' requests.
pub(crate) fn audit(
    sharing: Sharing,
    claim: &PlannedClaim,
    pods: &[&Pod],
    kind: &InstanceType,
    wanted: &mut ResourceList,
) -> Result<(), String> {
    let shares = pods.iter().filter(|pod| pod.spec.gpu_share.is_some()).count() as u64;
    if claim.gpus.is_empty() {
        if sharing != Sharing::Whole && shares > 0 {
            return Err("pods share GPUs without a layout".to_owned());
        }
        let whole = wanted.get(ResourceName::NVIDIA_GPU);
        wanted.set(ResourceName::NVIDIA_GPU, whole.saturating_add(shares));
        return Ok(());
    }
    let gpu = kind.gpu.as_ref().ok_or("it has a layout of GPUs and no GPUs")?;
    if claim.gpus.len() != gpu.count as usize {
        return Err(format!("{} layouts for {} GPUs", claim.gpus.len(), gpu.count));
    }
    let model = MigModel::of(gpu);
    let mut given: BTreeMap<&PodKey, GrantedGpus<'_>> = BTreeMap::new();
    for (at, layout) in claim.gpus.iter().enumerate() {
        match layout {
            PlannedGpu::Idle => {}
            PlannedGpu::Whole(pod) => {
                if sharing == (Sharing::Mig { mixed: false }) || sharing == Sharing::Whole {
                    return Err(format!("GPU {at} is whole on a node with partitioned GPUs"));
                }
                given.entry(pod).or_default().whole += 1;
            }
            PlannedGpu::Shared(on) => {
                let sum: u64 = on.iter().map(|share| u64::from(share.milli)).sum();
                if sharing != Sharing::Shared || sum > 1000 {
                    return Err(format!("pods share {sum} thousandths of GPU {at}"));
                }
                for share in on {
                    given.entry(&share.pod).or_default().shares.push(share.milli);
                }
            }
            PlannedGpu::Mig(instances) => {
                let model = model.ok_or_else(|| format!("{} cannot be partitioned", gpu.model))?;
                possible(model, instances).map_err(|problem| format!("GPU {at}: {problem}"))?;
                for instance in instances {
                    given.entry(&instance.pod).or_default().instances.push(instance);
                }
            }
        }
    }
    for pod in pods {
        let given = given.remove(&pod.key).unwrap_or_default();
        granted(sharing, pod, &given, model).map_err(|problem| format!("pod {}: {problem}", pod.key))?;
        let whole = wanted.get(ResourceName::NVIDIA_GPU);
        wanted.set(ResourceName::NVIDIA_GPU, whole.saturating_sub(given.whole));
        for (name, _) in
            pod.spec.requests.iter().filter(|(name, _)| name.as_str().starts_with(ResourceName::MIG_PREFIX))
        {
            wanted.set(name.clone(), 0);
        }
    }
    match given.keys().next() {
        Some(stranger) => Err(format!("pod {stranger} has a GPU and is not on the node")),
        None => Ok(()),
    }
}

/// Returns how many MIG instances of a resource a claim's GPUs are cut into.
pub(crate) fn instances(claim: &PlannedClaim, resource: &str) -> u64 {
    let Some(name) = resource.strip_prefix(ResourceName::MIG_PREFIX) else { return 0 };
    let of = |gpu: &PlannedGpu| match gpu {
        PlannedGpu::Mig(instances) => instances.iter().filter(|one| one.name == name).count(),
        _ => 0,
    };
    claim.gpus.iter().map(of).sum::<usize>() as u64
}

/// Returns how many MIG instances of a resource the node of a claim advertises, which its offering need not promise.
pub(crate) fn advertised(snapshot: &Snapshot, claim: &Claim, resource: &str) -> u64 {
    let node = claim.node_name.as_ref().and_then(|name| snapshot.nodes.get(name));
    let is_instance = resource.starts_with(ResourceName::MIG_PREFIX);
    node.filter(|_| is_instance).map_or(0, |node| node.allocatable.get(resource))
}

/// Checks whether MIG instances can be placed like this on one GPU.
fn possible(model: &MigModel, instances: &[PlannedInstance]) -> Result<(), String> {
    let (mut taken, mut compute) = (0u32, 0);
    for instance in instances {
        let placements = model.geometry.placements(instance.profile).ok_or("it has no such instance")?;
        if model.kind(instance.profile).is_none_or(|kind| kind.name != instance.name) {
            return Err(format!("`{}` is not the name of such an instance", instance.name));
        }
        let mask = ((1u32 << placements.size) - 1) << instance.start;
        if !placements.starts.contains(&instance.start) || taken & mask != 0 {
            return Err(format!("no {} can start at {}", instance.name, instance.start));
        }
        taken |= mask;
        compute += placements.compute;
    }
    if compute > model.geometry.compute_slices() {
        return Err(format!("instances use {compute} compute slices"));
    }
    Ok(())
}

fn granted(
    sharing: Sharing,
    pod: &Pod,
    given: &GrantedGpus<'_>,
    model: Option<&'static MigModel>,
) -> Result<(), String> {
    let whole = match sharing {
        Sharing::Mig { mixed: false } => 0,
        _ => pod.spec.requests.get(ResourceName::NVIDIA_GPU),
    };
    if given.whole != whole {
        return Err(format!("wants {whole} whole GPUs and gets {}", given.whole));
    }
    let named: Vec<(&str, u64)> = pod
        .spec
        .requests
        .iter()
        .filter_map(|(name, count)| {
            name.as_str().strip_prefix(ResourceName::MIG_PREFIX).map(|name| (name, count))
        })
        .collect();
    let good = match (pod.spec.gpu_share, sharing) {
        (Some(milli), Sharing::Shared) => given.shares == [milli] && given.instances.is_empty(),
        (Some(milli), _) => {
            given.shares.is_empty()
                && given.instances.len() == 1
                && model.is_some_and(|model| model.geometry.computes(given.instances[0].profile, milli))
        }
        (None, _) => {
            let of = |name: &str| given.instances.iter().filter(|one| one.name == name).count() as u64;
            given.shares.is_empty()
                && named.iter().all(|(name, count)| of(name) == *count)
                && given.instances.len() as u64 == named.iter().map(|(_, count)| count).sum::<u64>()
        }
    };
    if good { Ok(()) } else { Err("does not get the parts of GPUs that it wants".to_owned()) }
}
