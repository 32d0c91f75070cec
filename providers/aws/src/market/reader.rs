//! The market reader for the commands `gpus` and `prices`. It launches nothing.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use poolwright_catalog::{Gpu, InstanceTypeName, Zone};
use poolwright_provider_aws_model::instance::{
    Class, GpuFacts, Selection, Settings, TypeFacts, Unusual, UsageClass, class, gpu_model,
};
use poolwright_provider_aws_model::prices::{self, InterruptionRates, MarketCatalogue};
use poolwright_provider_contract::{FlagValues, ProviderError, market as contract};

use super::Market;
use crate::clients::{Access, Clients};
use crate::connect;

/// Reads the market of an AWS region.
pub(crate) struct Reader;

#[async_trait]
impl contract::MarketReader for Reader {
    async fn read(&self, flags: &FlagValues, now: Timestamp) -> Result<contract::Market, ProviderError> {
        let Survey { types, zones, sold } = survey(&connect::access(flags), now).await?;
        let mut left_out: BTreeMap<InstanceTypeName, String> =
            sold.left_out.into_iter().map(|one| (one.instance_type, one.reason)).collect();
        let types = types.iter().map(|facts| {
            let zones = zones.get(&facts.name).cloned().unwrap_or_default();
            described(facts, zones, left_out.remove(&facts.name))
        });
        Ok(contract::Market { types: types.collect(), catalogue: sold.catalogue, notes: sold.notes })
    }
}

/// Converts an instance type to the contract's description.
fn described(facts: &TypeFacts, zones: BTreeSet<Zone>, left_out: Option<String>) -> contract::TypeFacts {
    contract::TypeFacts {
        name: facts.name.clone(),
        arch: facts.arch(),
        gpus: gpus(facts),
        fabric_interfaces: facts.network.efa_interfaces,
        local_nvme_gb: facts.local_nvme_gb,
        vcpus: facts.vcpus,
        memory_mib: facts.memory_mib,
        is_spot: facts.usage_classes.contains(&UsageClass::Spot),
        zones,
        left_out,
        note: note(&class::of(facts)),
    }
}

fn gpus(facts: &TypeFacts) -> Option<contract::GpuFacts> {
    let first = facts.gpus.first()?;
    let sum = |of: fn(&GpuFacts) -> u32| facts.gpus.iter().fold(0u32, |sum, gpu| sum.saturating_add(of(gpu)));
    let memory_mib = Some(first.memory_mib).filter(|memory| *memory > 0);
    Some(contract::GpuFacts {
        gpu: Gpu { model: gpu_model(&first.name), count: sum(|gpu| gpu.count), memory_mib },
        logical_count: sum(|gpu| gpu.logical_count),
        share_thousandths: Some(first.partition_thousandths).filter(|part| *part < GpuFacts::WHOLE),
        can_be_cut: first.is_nvidia() && !first.is_fraction(),
    })
}

/// Returns in one or two words why Poolwright does not buy a type by default.
fn note(class: &Class) -> &'static str {
    match class {
        Class::Virtual => "",
        Class::Metal => "metal",
        Class::CapacityBlockOnly => "blocks only",
        Class::Unusual(Unusual::OtherGpu(_)) => "not NVIDIA",
        Class::Unusual(Unusual::NotNitro) => "Xen",
        Class::Unusual(_) => "unusual",
        Class::Fractional(_) => "part of a GPU",
        Class::Unusable(_) => "no node",
    }
}

/// The answer of AWS about a region.
struct Survey {
    /// All instance types.
    types: Vec<TypeFacts>,
    /// The zones of each instance type.
    zones: BTreeMap<InstanceTypeName, BTreeSet<Zone>>,
    /// The catalogue of a node class without restrictions.
    sold: MarketCatalogue,
}

/// Asks for the instance types, zones and prices of the region.
///
/// # Errors
///
/// The region or the credentials are missing, or a call is not allowed. Each error says what to do. If only the on-demand prices
/// are missing, the notes of [`MarketCatalogue`] say what replaces them.
async fn survey(access: &Access, now: Timestamp) -> Result<Survey, ProviderError> {
    let clients = Clients::connect(access).await?;
    let region = clients.region.clone();
    let asked = Market::new(clients);
    let (types, on_demand, spot) =
        futures::try_join!(asked.types(now), asked.on_demand(now), asked.spot(now))?;
    let market = prices::Market {
        region: &region,
        zones: &types.zones,
        on_demand: &on_demand,
        spot: &spot,
        interruptions: &InterruptionRates::builtin(&region),
        reservations: &[],
        now,
    };
    let sold = prices::catalogue(&types.facts, &Selection::default(), &Settings::default(), market);
    Ok(Survey { types: types.facts.clone(), zones: types.zones.clone(), sold })
}

#[cfg(test)]
mod tests {
    use poolwright_provider_aws_model::instance::from_json;

    use super::*;

    /// Returns a recorded instance type.
    fn recorded(name: &str) -> contract::TypeFacts {
        let lines = include_str!("../../../../fixtures/aws/instance-types.jsonl").lines();
        let mut all = lines.map(|line| from_json(line).expect("a type"));
        let facts = all.find(|facts| facts.name.as_str() == name).expect("it was recorded");
        described(&facts, BTreeSet::new(), Selection::default().leaves_out(&facts))
    }

    #[test]
    fn a_type_with_whole_gpus_is_described_with_its_network_and_disks() {
        let p5 = recorded("p5.48xlarge");
        let gpus = p5.gpus.expect("it has GPUs");
        assert_eq!((gpus.gpu.model.as_str(), gpus.gpu.count, p5.vcpus), ("h100", 8, 192));
        assert!(gpus.can_be_cut && gpus.share_thousandths.is_none(), "{gpus:?}");
        assert!(p5.fabric_interfaces > 1 && p5.local_nvme_gb > 1000);
        assert_eq!((p5.left_out, p5.note), (None, ""));
    }

    #[test]
    fn a_part_of_a_gpu_is_told_from_a_whole_one_and_why_a_type_is_left_out_in_a_word() {
        let part = recorded("g6f.large");
        let gpus = part.gpus.expect("it has a part of a GPU");
        assert_eq!((gpus.gpu.count, gpus.logical_count, gpus.share_thousandths), (0, 1, Some(125)));
        assert!(!gpus.can_be_cut && part.note == "part of a GPU", "{gpus:?}");
        assert!(part.left_out.is_some_and(|why| why.contains("1/8")));
        assert_eq!(recorded("p5e.48xlarge").note, "blocks only");
    }
}
