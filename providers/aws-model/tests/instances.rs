//! Tests instance types as EC2 describes them against known facts about their nodes.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{Arch, InstanceType, ResourceName, labels_of};
use poolwright_provider_aws_model::bootstrap::Kubelet;
use poolwright_provider_aws_model::instance::{
    Class, Efa, KubeletReserved, LocalDisks, MaxPods, Quantities, ReservedMemoryBasis, Selection, Settings,
    Threshold, ThresholdDefaults, TypeFacts, Unusable, Unusual, UsageClass, VPC_EFA, allocatable, class,
    from_json, instance_type, max_pods,
};
use poolwright_terms::labels;
use proptest::prelude::*;

const TYPES: &str = include_str!("../../../fixtures/aws/instance-types.jsonl");
const ALLOCATABLE: &str = include_str!("../../../fixtures/aws/allocatable-us-east-1.csv");

fn described() -> BTreeMap<String, TypeFacts> {
    let read = |line: &str| {
        let facts = from_json(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        (facts.name.to_string(), facts)
    };
    TYPES.lines().map(read).collect()
}

struct Row {
    name: String,
    cpu_milli: u64,
    memory_mib: u64,
    pods: u64,
    gpus: u64,
}

fn reference() -> Vec<Row> {
    let row = |line: &str| {
        let cells: Vec<_> = line.split(',').collect();
        let number = |at: usize| cells[at].parse().unwrap_or_else(|_| panic!("{line}"));
        Row {
            name: cells[0].to_owned(),
            cpu_milli: number(1),
            memory_mib: number(2),
            pods: number(3),
            gpus: number(4),
        }
    };
    ALLOCATABLE.lines().skip(1).map(row).collect()
}

#[test]
fn every_type_of_the_reference_is_within_one_percent_and_its_gpus_and_pods_are_exact() {
    let described = described();
    let settings = Settings::default();
    // These types have two network cards. The reference counts the interfaces of both. EC2 reports 8 and 12 for the default card,
    // the only one that gives addresses to pods.
    let both_cards = ["i7ie.48xlarge", "i7ie.metal-48xl", "i8ge.48xlarge", "i8ge.metal-48xl"];
    // These families were no longer sold in us-east-1 when its types were described.
    let gone = ["g4ad.", "p3."];
    let (mut compared, mut exact, mut pods_differ) = (0, 0, Vec::new());
    for row in reference() {
        let Some(facts) = described.get(&row.name) else {
            assert!(gone.iter().any(|family| row.name.starts_with(family)), "{} is not described", row.name);
            continue;
        };
        compared += 1;
        let list = allocatable(facts, &settings);
        let memory_mib = list.get(ResourceName::MEMORY) >> 20;
        let off = |ours: u64, theirs: u64| ours.abs_diff(theirs) * 100 > theirs;
        assert!(!off(memory_mib, row.memory_mib), "{}: {memory_mib} and {} MiB", row.name, row.memory_mib);
        assert_eq!(list.get(ResourceName::CPU), row.cpu_milli, "CPU of {}", row.name);
        assert_eq!(list.get(ResourceName::NVIDIA_GPU), row.gpus, "GPUs of {}", row.name);
        exact += usize::from(memory_mib == row.memory_mib);
        if list.get(ResourceName::PODS) != row.pods {
            pods_differ.push(row.name);
        }
    }
    assert_eq!(pods_differ, both_cards);
    assert_eq!((compared, exact), (1340, 1340 - both_cards.len()));
}

#[test]
fn the_types_of_the_catalogue_built_in_come_out_the_same_to_the_byte() {
    let described = described();
    let settings = Settings::default();
    let built_in = poolwright_catalog::builtin();
    let ours = built_in.types().values().filter(|kind| kind.provider.as_str() == "aws");
    let mut compared = 0;
    for kind in ours {
        let made = instance_type(&described[kind.name.as_str()], &settings);
        assert_eq!(made.as_ref(), Ok(kind));
        compared += 1;
    }
    assert_eq!(compared, 224);
}

#[test]
fn every_label_of_every_type_is_one_the_api_server_accepts() {
    let offered = |kind: &InstanceType| poolwright_catalog::Offering {
        id: poolwright_catalog::OfferingId {
            instance_type: kind.name.clone(),
            zone: "us-east-1a".into(),
            capacity_type: poolwright_terms::CapacityType::Spot,
        },
        region: Some("us-east-1".to_owned()),
        price: poolwright_catalog::Price::Unknown(poolwright_catalog::UnknownPrice::Missing),
        available: None,
        interruptions: None,
        notice: None,
    };
    let mut types = 0;
    for kind in described().values().filter_map(|facts| instance_type(facts, &Settings::default()).ok()) {
        types += 1;
        for (key, value) in labels_of(&kind, &offered(&kind)) {
            assert!(labels::is_value(&value), "{}: {key}={value}", kind.name);
        }
    }
    // All types except nine Macs and five with fractions of GPUs.
    assert_eq!(types, 1395 - 9 - 5);
}

#[test]
fn every_type_has_its_class_and_every_type_left_out_its_reason() {
    let mut classes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, facts) in described() {
        let class = class::of(&facts);
        assert_eq!(class.reason().is_none(), class == Class::Virtual, "{name}");
        let word = match class {
            Class::Virtual if facts.gpus.is_empty() => "virtual",
            Class::Virtual => "virtual with GPUs",
            Class::Metal => "metal",
            Class::CapacityBlockOnly => "capacity blocks",
            Class::Fractional(_) => "fractional",
            Class::Unusual(Unusual::Accelerator(_)) => "accelerators",
            Class::Unusual(Unusual::OtherGpu(_)) => "other GPUs",
            Class::Unusual(Unusual::NotNitro) => "xen",
            Class::Unusual(Unusual::Burstable) => "burstable",
            Class::Unusual(Unusual::Hpc) => "hpc",
            Class::Unusable(_) => "unusable",
        };
        classes.entry(word).or_default().push(name);
    }
    let counts: Vec<_> = classes.iter().map(|(word, names)| (*word, names.len())).collect();
    assert_eq!(
        classes["fractional"],
        ["g6f.2xlarge", "g6f.4xlarge", "g6f.large", "g6f.xlarge", "gr6f.4xlarge"]
    );
    assert_eq!(classes["capacity blocks"], ["p5e.48xlarge"]);
    assert!(classes["unusable"].iter().all(|name| name.starts_with("mac")), "{:?}", classes["unusable"]);
    assert_eq!(
        counts,
        [
            ("accelerators", 21),
            ("burstable", 21),
            ("capacity blocks", 1),
            ("fractional", 5),
            ("hpc", 10),
            ("metal", 145),
            ("unusable", 9),
            ("virtual", 1052),
            ("virtual with GPUs", 57),
            ("xen", 74),
        ]
    );
}

#[test]
fn usage_classes_or_the_family_identify_types_of_capacity_blocks() {
    let described = described();
    let mut facts = described["p5.48xlarge"].clone();
    assert!(!class::is_sold_in_blocks_only(&facts), "p5 is sold by the hour and in blocks");
    facts.name = "p6e-gb200.36xlarge".into();
    assert_eq!(class::of(&facts), Class::CapacityBlockOnly);
    facts.name = "p9.48xlarge".into();
    assert_eq!(class::of(&facts), Class::Virtual);
    facts.usage_classes.retain(|class| *class == UsageClass::CapacityBlock);
    assert_eq!(class::of(&facts), Class::CapacityBlockOnly);
    assert_eq!(Selection::default().leaves_out(&facts), None, "its blocks are sold from");
}

#[test]
fn a_part_of_a_gpu_is_never_taken_for_a_whole_one() {
    let described = described();
    let part = &described["g6f.large"];
    assert_eq!(allocatable(part, &Settings::default()).get(ResourceName::NVIDIA_GPU), 0);
    let class = instance_type(part, &Settings::default()).expect_err("it has an eighth of a GPU");
    let why = class.reason().expect("it is not sold");
    assert!(why.starts_with("it has 1/8 of an L4 (2861 MiB)"), "{why}");
    let named = Selection { also: BTreeSet::from(["g6f".to_owned()]), ..Selection::default() };
    assert_eq!(named.leaves_out(part), Some(why));
    // If EC2 does not report the size of the fraction, a type without whole GPUs still has only a fraction.
    let mut unsaid = part.clone();
    unsaid.gpus[0].partition_thousandths = 1000;
    assert!(matches!(class::of(&unsaid), Class::Fractional(_)));
}

#[test]
fn gpus_of_other_makes_are_no_nvidia_gpus_even_where_their_type_is_asked_for() {
    let text = r#"{"InstanceType":"g4ad.xlarge","CurrentGeneration":true,"Hypervisor":"nitro",
        "ProcessorInfo":{"SupportedArchitectures":["x86_64"]},"VCpuInfo":{"DefaultVCpus":4},
        "MemoryInfo":{"SizeInMiB":16384},"SupportedUsageClasses":["on-demand","spot"],
        "GpuInfo":{"Gpus":[{"Name":"Radeon Pro V520","Manufacturer":"AMD","Count":1,"MemoryInfo":{"SizeInMiB":8192}}]},
        "NetworkInfo":{"MaximumNetworkInterfaces":2,"Ipv4AddressesPerInterface":4}}"#;
    let facts = from_json(text).expect("an instance type");
    assert_eq!(class::of(&facts), Class::Unusual(Unusual::OtherGpu("AMD Radeon Pro V520".to_owned())));
    assert!(Selection::default().leaves_out(&facts).expect("left out").contains("not from NVIDIA"));
    let named = Selection { also: BTreeSet::from(["g4ad".to_owned()]), ..Selection::default() };
    assert_eq!(named.leaves_out(&facts), None);
    let kind = instance_type(&facts, &Settings::default()).expect("a node of sixteen GiB");
    assert_eq!((kind.gpu, kind.allocatable.get(ResourceName::NVIDIA_GPU)), (None, 0));
    // The type has two interfaces with four addresses each.
    assert_eq!(kind.allocatable.get(ResourceName::PODS), 8);
}

#[test]
fn gpus_of_two_models_a_mac_and_a_name_that_is_no_label_are_no_nodes() {
    let described = described();
    let mut mixed = described["g5.xlarge"].clone();
    mixed.gpus.extend(described["g6.xlarge"].gpus.clone());
    assert_eq!(class::of(&mixed), Class::Unusable(Unusable::MixedGpus));
    assert_eq!(class::of(&described["mac2.metal"]), Class::Unusable(Unusable::NoLinux));
    let mut named = described["g5.xlarge"].clone();
    named.name = "g5.xlarge+".into();
    assert_eq!(instance_type(&named, &Settings::default()), Err(Class::Unusable(Unusable::Name)));
    let mut tiny = described["t3.nano"].clone();
    tiny.memory_mib = 256;
    assert_eq!(instance_type(&tiny, &Settings::default()), Err(Class::Unusable(Unusable::TooSmall)));
}

#[test]
fn settings_of_a_node_class_change_what_its_nodes_advertise() {
    let described = described();
    let (small, large) = (&described["m5.large"], &described["m5.24xlarge"]);
    let memory =
        |facts: &TypeFacts, settings: &Settings| allocatable(facts, settings).get(ResourceName::MEMORY) >> 20;
    let with = |change: &dyn Fn(&mut Settings)| {
        let mut settings = Settings::default();
        change(&mut settings);
        settings
    };
    // With prefixes, the pod limit is capped by the number of cores, as AWS recommends.
    let prefixes = with(&|settings| settings.max_pods = MaxPods::Prefixes);
    assert_eq!((max_pods(small, &prefixes), max_pods(large, &prefixes)), (110, 250));
    // AL2023 reserves memory by the number of pod addresses, whatever the pod limit is. Bottlerocket reserves it by the pod
    // limit.
    let fixed = with(&|settings| settings.max_pods = MaxPods::Fixed(110));
    assert_eq!(max_pods(large, &fixed), 110);
    assert_eq!(memory(large, &fixed), memory(large, &Settings::default()));
    let bottlerocket = with(&|settings| {
        settings.max_pods = MaxPods::Fixed(110);
        settings.reserve = ReservedMemoryBasis::MaxPods;
    });
    assert_eq!(memory(large, &bottlerocket), memory(large, &fixed) + 11 * (737 - 110));
    // With custom networking, one interface less has addresses for pods.
    let custom = with(&|settings| settings.reserved_interfaces = 1);
    assert_eq!((max_pods(small, &Settings::default()), max_pods(small, &custom)), (29, 20));
    // The memory that nodes have reported, less 255 and 100 MiB, and 11 MiB for each of 29 pods.
    let measured = with(&|settings| {
        settings.measured_memory_mib.insert("m5.large".into(), 7633);
    });
    assert_eq!(memory(small, &measured), 7633 - 255 - 100 - 11 * 29);
    assert_eq!(memory(large, &measured), memory(large, &Settings::default()));
}

/// Returns the settings of a class with these kubelet settings.
fn with_kubelet(tell: impl FnOnce(&mut Kubelet)) -> Settings {
    let mut kubelet = Kubelet::default();
    tell(&mut kubelet);
    Settings {
        kept: KubeletReserved::of(&kubelet, ThresholdDefaults::AsTheImage).expect("fine"),
        ..Settings::default()
    }
}

fn map(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn kubelet_reservations_reduce_allocatable_resources() {
    let described = described();
    let g5 = &described["g5.xlarge"];
    let of = |settings: &Settings| {
        let list = allocatable(g5, settings);
        let get = |name| list.get(name);
        let (memory, disk) = (get(ResourceName::MEMORY), get(ResourceName::EPHEMERAL_STORAGE));
        (get(ResourceName::CPU), memory, disk, get(ResourceName::PODS))
    };
    let (mib, gib) = (1u64 << 20, 1u64 << 30);
    // 16,384 MiB less 7.5 % are 15,155 MiB. From that go 255 MiB, 11 MiB for each of 58 pods, and 100 MiB.
    assert_eq!(of(&Settings::default()), (3920, 14_162 * mib, 17 * gib, 58));
    // Only memory is set: CPU and disk are reserved as the image computes them, and so are the 100 MiB.
    let memory = with_kubelet(|kubelet| kubelet.kube_reserved = map(&[("memory", "1Gi")]));
    assert_eq!(of(&memory), (3920, (15_155 - 1024 - 100) * mib, 17 * gib, 58));
    let none = with_kubelet(|kubelet| kubelet.kube_reserved = map(&[("memory", "0"), ("cpu", "0")]));
    assert_eq!(of(&none), (4000, (15_155 - 100) * mib, 17 * gib, 58));
    let all = with_kubelet(|kubelet| {
        kubelet.kube_reserved =
            map(&[("cpu", "0.5"), ("memory", "2G"), ("ephemeral-storage", "2Gi"), ("pid", "1k")]);
        kubelet.system_reserved = map(&[("cpu", "250m"), ("memory", "512Mi"), ("ephemeral-storage", "1Gi")]);
        kubelet.eviction_hard =
            map(&[("memory.available", "5%"), ("nodefs.available", "3Gi"), ("pid.available", "5%")]);
        kubelet.pods_per_core = Some(10);
    });
    let evicted_at = (15_155 * mib).div_ceil(20);
    let memory = 15_155 * mib - 2_000_000_000 - 512 * mib - evicted_at;
    assert_eq!(of(&all), (3250, memory, (20 - 2 - 1 - 3) * gib, 40));
    // `podsPerCore` cannot exceed the pod limit.
    let many = with_kubelet(|kubelet| kubelet.pods_per_core = Some(100));
    assert_eq!(of(&many).3, 58);
    // Five percent of a large machine: 1,179,648 MiB less 7.5 % are 1,091,174 MiB.
    let large = &described["p4d.24xlarge"];
    let share = with_kubelet(|kubelet| kubelet.eviction_hard = map(&[("memory.available", "5%")]));
    let left = |settings| allocatable(large, settings).get(ResourceName::MEMORY);
    assert_eq!(left(&Settings::default()) - left(&share), (1_091_174 * mib).div_ceil(20) - 100 * mib);
}

#[test]
fn thresholds_are_read_as_kubelet_reads_them() {
    let left = |text: &str| {
        let kubelet = Kubelet { eviction_hard: map(&[("memory.available", text)]), ..Kubelet::default() };
        KubeletReserved::of(&kubelet, ThresholdDefaults::AsTheImage).map(|kept| kept.memory_left)
    };
    for (text, threshold) in [
        ("500Mi", Threshold::Bytes(500 << 20)),
        ("0%", Threshold::Bytes(0)),
        ("100%", Threshold::Bytes(0)),
        ("5%", Threshold::Share(5_000)),
        ("7.5%", Threshold::Share(7_500)),
        ("0.0001%", Threshold::Share(1)),
    ] {
        assert_eq!(left(text), Ok(threshold), "{text}");
    }
    for text in ["", "%", "0", "-1Gi", "-5%", "100.1%", "5Mi%", "1e1%", "ten", "99999999999999999999%"] {
        let error = left(text).expect_err(text);
        assert_eq!(error.field, "evictionHard[memory.available]");
        assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
    }
    assert_eq!(Threshold::Share(5_000).of(101), 6, "rounded up");
    assert_eq!(Threshold::Share(100_000).of(u64::MAX), u64::MAX);
}

#[test]
fn a_type_that_kubelet_would_keep_whole_is_not_sold_and_the_others_are() {
    let described = described();
    let too_small = Err(Class::Unusable(Unusable::TooSmall));
    for (resource, amount) in [("memory", "16G"), ("cpu", "3920m")] {
        let settings = with_kubelet(|kubelet| kubelet.system_reserved = map(&[(resource, amount)]));
        assert_eq!(instance_type(&described["g4dn.xlarge"], &settings), too_small, "{resource}");
        assert!(instance_type(&described["g4dn.12xlarge"], &settings).is_ok(), "{resource}");
    }
    let disk = with_kubelet(|kubelet| kubelet.kube_reserved = map(&[("ephemeral-storage", "18Gi")]));
    assert_eq!(instance_type(&described["g5.xlarge"], &disk), too_small);
    assert!(instance_type(&described["g5.xlarge"], &Settings { root_disk_gib: 21, ..disk }).is_ok());
}

#[test]
fn local_disks_and_efa_are_advertised_where_the_node_class_uses_them() {
    let described = described();
    let p5 = &described["p5.48xlarge"];
    let unused = allocatable(p5, &Settings::default());
    assert_eq!((unused.get(ResourceName::EPHEMERAL_STORAGE), unused.get(VPC_EFA)), (17 << 30, 0));
    let settings = Settings { local_disks: LocalDisks::Raid0, efa: Efa::All, ..Settings::default() };
    let used = allocatable(p5, &settings);
    assert_eq!(used.get(ResourceName::EPHEMERAL_STORAGE), 30_400_000_000_000 / 10 * 9 - (1 << 30));
    assert_eq!((used.get(VPC_EFA), used.get(ResourceName::NVIDIA_GPU)), (32, 8));
    // A type without local disks uses the root disk.
    let m5 = allocatable(&described["m5.large"], &settings);
    assert_eq!((m5.get(ResourceName::EPHEMERAL_STORAGE), m5.get(VPC_EFA)), (17 << 30, 0));
}

#[test]
fn metal_and_unusual_types_are_had_by_name_only() {
    let described = described();
    let (metal, burstable) = (&described["c6i.metal"], &described["t3.large"]);
    let default = Selection::default();
    assert!(default.leaves_out(metal).expect("left out").contains("bare metal"));
    assert!(default.leaves_out(burstable).expect("left out").contains("name the type or its family"));
    let asked = Selection { metal: true, also: BTreeSet::from(["t3.large".to_owned()]) };
    assert_eq!((asked.leaves_out(metal), asked.leaves_out(burstable)), (None, None));
    assert!(asked.leaves_out(&described["t3.small"]).is_some());
}

#[test]
fn an_invalid_type_description_is_rejected_with_the_reason() {
    for (text, part) in [
        ("", "EOF"),
        ("{}", "InstanceType"),
        (r#"{"InstanceType":"a.b"}"#, "VCpuInfo"),
        (r#"{"InstanceType":"","VCpuInfo":{"DefaultVCpus":1},"MemoryInfo":{"SizeInMiB":1}}"#, "is empty"),
        (r#"{"InstanceType":"a.b","VCpuInfo":{"DefaultVCpus":-1},"MemoryInfo":{"SizeInMiB":1}}"#, "-1"),
        (
            &format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000)),
            "missing field `InstanceType`",
        ),
    ] {
        let error = from_json(text).expect_err("no instance type").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_type_that_runs_both_64_and_32_bits_is_amd64() {
    let described = described();
    assert_eq!(described["m1.small"].arch(), Some(Arch::Amd64));
    assert_eq!(described["c6g.large"].arch(), Some(Arch::Arm64));
    assert_eq!(described["mac1.metal"].arch(), None);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*") {
        let _ = from_json(&text);
    }

    #[test]
    fn no_figures_make_the_computation_panic_and_more_memory_is_never_less(
        (vcpus, memory, interfaces, addresses) in (any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>()),
        (gpus, nvme, disk, overhead, fixed) in
            (any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>(), proptest::option::of(any::<u32>())),
        prefixes in any::<bool>(),
        (kube, system, share, per_core) in
            (proptest::option::of(any::<u64>()), any::<u64>(), 0u32..=100_000, proptest::option::of(any::<u32>())),
    ) {
        let mut facts = from_json(TYPES.lines().find(|line| line.contains("\"g5.xlarge\"")).unwrap()).unwrap();
        (facts.vcpus, facts.memory_mib, facts.local_nvme_gb) = (vcpus, memory, nvme);
        (facts.network.interfaces, facts.network.ipv4_per_interface) = (interfaces, addresses);
        facts.gpus[0].count = gpus;
        let settings = Settings {
            max_pods: match (fixed, prefixes) {
                (Some(pods), _) => MaxPods::Fixed(pods),
                (None, true) => MaxPods::Prefixes,
                (None, false) => MaxPods::Addresses,
            },
            memory_overhead_thousandths: overhead,
            root_disk_gib: disk,
            local_disks: LocalDisks::Raid0,
            kept: KubeletReserved {
                kube: Quantities { cpu_milli: kube, memory: kube, ephemeral_storage: kube },
                system: Quantities { memory: Some(system), ..Quantities::default() },
                memory_left: Threshold::Share(share),
                disk_left: Threshold::Bytes(system),
                pods_per_core: per_core,
            },
            ..Settings::default()
        };
        let list = allocatable(&facts, &settings);
        for (name, amount) in list.iter() {
            prop_assert!(i64::try_from(amount).is_ok(), "{name}: {amount}");
        }
        let _ = instance_type(&facts, &settings);
        facts.memory_mib = memory.saturating_add(1024);
        prop_assert!(allocatable(&facts, &settings).get(ResourceName::MEMORY) >= list.get(ResourceName::MEMORY));
    }
}
