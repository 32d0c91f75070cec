//! The list of instance types with GPUs.

use std::collections::BTreeSet;

use poolwright_catalog::{Gpu, InstanceType, MigModel, ResourceName};
use poolwright_provider_contract::market::{GpuFacts, TypeFacts};
use serde::Serialize;

use super::only::{ANY, some};
use super::read::Believed;

/// The instance types with GPUs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpus {
    /// `poolwright.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Gpus`.
    pub kind: &'static str,
    /// The source of the types.
    pub source: String,
    /// The oldest date of a price in the source; null if no price has a date.
    pub as_of: Option<String>,
    /// The types, by GPU model, number of GPUs and size.
    pub types: Vec<Row>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// An instance type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its name.
    pub instance_type: String,
    /// The provider that sells it.
    pub provider: String,
    /// `amd64` or `arm64`; null if the type does not run Linux.
    pub arch: Option<&'static str>,
    /// The model of its GPUs.
    pub gpu_model: String,
    /// The number of whole GPUs; zero if it has a fraction of a GPU.
    pub gpus: u32,
    /// The number of GPUs that its operating system sees, with a fraction of a GPU as one; null if the source does not say.
    pub logical_gpus: Option<u32>,
    /// The size of each GPU in thousandths of a physical GPU; null for whole GPUs.
    pub gpu_share_thousandths: Option<u32>,
    /// The memory of each GPU in MiB; null if the source does not say.
    pub gpu_memory_mib: Option<u64>,
    /// The MIG instances that each GPU supports, the smallest first; empty without MIG.
    pub mig_profiles: Vec<&'static str>,
    /// The number of EFA network interfaces; null if the source does not say.
    pub efa_interfaces: Option<u32>,
    /// The total size of the local NVMe disks in GB; null if the source does not say.
    pub local_nvme_gb: Option<u64>,
    /// The number of vCPUs; null if the source does not say.
    pub vcpus: Option<u32>,
    /// The memory in MiB; null if the source does not say.
    pub memory_mib: Option<u64>,
    /// The allocatable CPU of its node, in thousandths; null if Poolwright does not buy the type.
    pub allocatable_cpu_milli: Option<u64>,
    /// The allocatable memory of its node in MiB; null if Poolwright does not buy the type.
    pub allocatable_memory_mib: Option<u64>,
    /// The zones that offer it.
    pub zones: Vec<String>,
    /// The reason why Poolwright buys the type only for pools that name it, or not at all; null if Poolwright buys it by default.
    pub left_out: Option<String>,
    /// The same reason in one or two words, for a table.
    #[serde(skip)]
    pub class: &'static str,
}

/// Lists the types with GPUs, or only those with the given models.
///
/// # Errors
///
/// No type has one of the models.
pub fn list(believed: &Believed, models: &[String]) -> Result<Gpus, String> {
    let catalogue = &believed.catalogue;
    let mut rows: Vec<Row> = match &believed.cloud {
        Some(cloud) => cloud
            .types
            .iter()
            .filter_map(|facts| {
                let kind = catalogue.instance_type(&facts.name);
                Some(of_facts(cloud.provider, facts, facts.gpus.as_ref()?, kind))
            })
            .collect(),
        None => catalogue
            .types()
            .values()
            .filter_map(|kind| Some(of_catalogue(believed, kind, kind.gpu.as_ref()?)))
            .collect(),
    };
    let models: Vec<String> = models.iter().map(|model| model.to_lowercase()).collect();
    let has: BTreeSet<&str> = rows.iter().map(|row| row.gpu_model.as_str()).collect();
    if let Some(missing) = models.iter().find(|model| *model != ANY && !has.contains(model.as_str())) {
        return Err(format!("--gpu {missing}: none found; choose from {}", some(&has)));
    }
    rows.retain(|row| {
        models.is_empty() || models.iter().any(|model| model == ANY || *model == row.gpu_model)
    });
    rows.sort_by(|a, b| {
        let size = |row: &Row| row.allocatable_memory_mib.or(row.memory_mib);
        let key = |row: &Row| (row.gpu_model.clone(), row.gpus, row.logical_gpus, size(row));
        key(a).cmp(&key(b)).then_with(|| a.instance_type.cmp(&b.instance_type))
    });
    Ok(Gpus {
        api_version: poolwright_terms::API_VERSION,
        kind: "Gpus",
        source: catalogue.origin().source.clone(),
        as_of: catalogue.origin().as_of.map(|day| day.to_string()),
        types: rows,
        notes: believed.notes.clone(),
    })
}

fn of_catalogue(believed: &Believed, kind: &InstanceType, gpu: &Gpu) -> Row {
    let offerings = believed.catalogue.offerings().iter();
    let zones: BTreeSet<String> = offerings
        .filter(|offering| offering.id.instance_type == kind.name)
        .map(|offering| offering.id.zone.to_string())
        .collect();
    // Catalogues have no whole GPUs for types with a fraction of a GPU or with GPUs that are not NVIDIA's.
    let left_out = (gpu.count == 0).then(|| "it has no whole GPU that Poolwright counts".to_owned());
    Row {
        instance_type: kind.name.to_string(),
        provider: kind.provider.to_string(),
        arch: Some(kind.arch.as_str()),
        gpu_model: gpu.model.to_string(),
        gpus: gpu.count,
        logical_gpus: None,
        gpu_share_thousandths: None,
        gpu_memory_mib: gpu.memory_mib,
        mig_profiles: if gpu.count > 0 { mig(gpu) } else { Vec::new() },
        efa_interfaces: None,
        local_nvme_gb: None,
        vcpus: None,
        memory_mib: None,
        allocatable_cpu_milli: Some(kind.allocatable.get(ResourceName::CPU)),
        allocatable_memory_mib: Some(kind.allocatable.get(ResourceName::MEMORY) >> 20),
        zones: zones.into_iter().collect(),
        class: if left_out.is_some() { "no whole GPU" } else { "" },
        left_out,
    }
}

fn of_facts(provider: &str, facts: &TypeFacts, gpus: &GpuFacts, kind: Option<&InstanceType>) -> Row {
    Row {
        instance_type: facts.name.to_string(),
        provider: provider.to_owned(),
        arch: facts.arch.map(poolwright_catalog::Arch::as_str),
        gpu_model: gpus.gpu.model.to_string(),
        gpus: gpus.gpu.count,
        logical_gpus: Some(gpus.logical_count),
        gpu_share_thousandths: gpus.share_thousandths,
        gpu_memory_mib: gpus.gpu.memory_mib,
        mig_profiles: if gpus.can_be_cut { mig(&gpus.gpu) } else { Vec::new() },
        efa_interfaces: Some(facts.fabric_interfaces),
        local_nvme_gb: Some(facts.local_nvme_gb),
        vcpus: Some(facts.vcpus),
        memory_mib: Some(facts.memory_mib),
        allocatable_cpu_milli: kind.map(|kind| kind.allocatable.get(ResourceName::CPU)),
        allocatable_memory_mib: kind.map(|kind| kind.allocatable.get(ResourceName::MEMORY) >> 20),
        zones: facts.zones.iter().map(ToString::to_string).collect(),
        left_out: facts.left_out.clone(),
        class: facts.note,
    }
}

fn mig(gpu: &Gpu) -> Vec<&'static str> {
    MigModel::of(gpu).map(|model| model.kinds.iter().map(|kind| kind.name).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use poolwright_catalog::{Arch, Catalogue, CatalogueOrigin, GpuModel, builtin};

    use super::*;
    use crate::market::read::FromCloud;

    fn today(catalogue: Catalogue, cloud: Option<FromCloud>) -> Believed {
        Believed { catalogue, today: date(2026, 11, 23), cloud, notes: Vec::new() }
    }

    /// Returns the market of a cloud with two types: one with whole GPUs, and one with an eighth of a GPU, which Poolwright does
    /// not buy.
    fn asked() -> Believed {
        let type_of = |name: &str, gpus: GpuFacts, left_out: Option<&str>| TypeFacts {
            name: name.into(),
            arch: Some(Arch::Amd64),
            gpus: Some(gpus),
            fabric_interfaces: 32,
            local_nvme_gb: 30_400,
            vcpus: 192,
            memory_mib: 2 << 20,
            is_spot: true,
            zones: BTreeSet::from(["sky-1a".into()]),
            left_out: left_out.map(str::to_owned),
            note: if left_out.is_some() { "part of a GPU" } else { "" },
        };
        let gpu =
            |model: &str, count, memory| Gpu { model: GpuModel::new(model), count, memory_mib: Some(memory) };
        let whole = GpuFacts {
            gpu: gpu("h100", 8, 81_920),
            logical_count: 8,
            share_thousandths: None,
            can_be_cut: true,
        };
        let part = GpuFacts {
            gpu: gpu("l4", 0, 2_861),
            logical_count: 1,
            share_thousandths: Some(125),
            can_be_cut: false,
        };
        let types = vec![
            type_of("p5.48xlarge", whole, None),
            type_of("g6f.large", part, Some("it has 1/8 of an L4")),
        ];
        let origin = CatalogueOrigin { source: "sky".to_owned(), as_of: None };
        today(Catalogue::new(origin, Vec::new(), Vec::new()), Some(FromCloud { provider: "sky", types }))
    }

    fn row<'a>(list: &'a Gpus, name: &str) -> &'a Row {
        list.types
            .iter()
            .find(|row| row.instance_type == name)
            .unwrap_or_else(|| panic!("{name} is not listed"))
    }

    #[test]
    fn gpus_lists_every_gpu_type_of_the_builtin_catalogue() {
        let believed = today(builtin(), None);
        let list = list(&believed, &[]).expect("a list");
        let with_gpus = believed.catalogue.types().values().filter(|kind| kind.gpu.is_some()).count();
        assert_eq!(list.types.len(), with_gpus);
        let g5 = row(&list, "g5.xlarge");
        assert_eq!((g5.gpu_model.as_str(), g5.gpus, g5.gpu_memory_mib), ("a10g", 1, Some(22_888)));
        assert!(g5.mig_profiles.is_empty() && g5.zones.contains(&"us-east-1a".to_owned()), "{g5:?}");
        assert_eq!(g5.efa_interfaces, None, "a catalogue does not say");
    }

    #[test]
    fn a_cloud_says_more_of_its_types_and_parts_of_gpus_are_told_from_whole_ones() {
        let list = list(&asked(), &[]).expect("a list");
        let p5 = row(&list, "p5.48xlarge");
        assert_eq!((p5.gpu_model.as_str(), p5.gpus, p5.vcpus), ("h100", 8, Some(192)));
        assert_eq!(p5.mig_profiles.first(), Some(&"1g.10gb"));
        assert!(p5.efa_interfaces > Some(1) && p5.local_nvme_gb > Some(1000), "{p5:?}");
        assert_eq!(p5.left_out, None);
        let part = row(&list, "g6f.large");
        assert_eq!((part.gpus, part.logical_gpus, part.gpu_share_thousandths), (0, Some(1), Some(125)));
        assert!(part.mig_profiles.is_empty() && part.class == "part of a GPU", "{part:?}");
        assert!(part.left_out.as_deref().is_some_and(|why| why.contains("1/8")), "{part:?}");
        assert_eq!(
            (part.provider.as_str(), part.zones.as_slice()),
            ("sky", ["sky-1a".to_owned()].as_slice())
        );
    }

    #[test]
    fn a_model_that_none_has_is_told_with_those_there_are() {
        let error = list(&today(builtin(), None), &["H1000".to_owned()]).expect_err("there is no such GPU");
        assert!(error.starts_with("--gpu h1000: none found; choose from a10"), "{error}");
        let only = list(&today(builtin(), None), &["H100".to_owned()]).expect("a list");
        assert!(only.types.iter().all(|row| row.gpu_model == "h100") && !only.types.is_empty());
    }
}
