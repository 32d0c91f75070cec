//! Tests of messages about unplaced pods.

use std::collections::BTreeMap;

use poolwright_catalog::ResourceName;
use poolwright_core::plan::{PlanOptions, UnplacedReason, plan};
use poolwright_core::{
    DaemonSet, Node, NodeSelectorTerm, Pod, PodSpec, Pool, PoolLimits, RequestOrigin, RequestPart,
};
use poolwright_solver::NeverStop;
use poolwright_terms::{Taint, TaintEffect};

use crate::kit::*;

fn message_for(pools: impl IntoIterator<Item = Pool>, pod: Pod) -> String {
    let plan = planned(&with(cluster(aws(), pools), [pod]));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoOfferingFits);
    plan.unplaced[0].message.clone()
}

fn a10g_and_l4() -> Pool {
    Pool { requirements: vec![is_in("poolwright.dev/gpu-model", &["a10g", "l4"])], ..pool("gpu") }
}

#[test]
fn a_gpu_that_the_pool_does_not_have() {
    let mut wants = pod("a", requests(1, 1, 8));
    wants.spec.node_selector.insert("poolwright.dev/gpu-model".into(), "h100".into());
    assert_eq!(
        message_for([a10g_and_l4()], wants),
        "needs 8 x h100 in one node; pool `gpu` allows only a10g, l4"
    );
}

#[test]
fn more_gpus_than_any_node_has() {
    assert_eq!(
        message_for([a10g_and_l4()], pod("a", requests(1, 1, 8))),
        "needs 8 nvidia.com/gpu in one node; the largest offering of pool `gpu` for it, g5.12xlarge, has 4; no instance type in the catalogue has more than 4, so ask for less"
    );
}

#[test]
fn enough_of_each_but_not_at_once() {
    let kinds = catalogue(vec![
        Kind("wide", capacity(64, 16, 0), None, &[("a", "1.00")]),
        Kind("deep", capacity(4, 256, 0), None, &[("a", "1.00")]),
    ]);
    let plan = planned(&with(cluster(kinds, [pool("cpu")]), [pod("a", requests(32, 128, 0))]));
    assert_eq!(
        plan.unplaced[0].message,
        "no offering of pool `cpu` fits all of 32 cpu, 128Gi memory; the nearest is deep, which has 4 cpu of 32"
    );
}

#[test]
fn a_resource_that_no_node_has() {
    let tpu = requests(1, 1, 0).with("google.com/tpu", 4);
    assert_eq!(
        message_for([pool("gpu")], pod("a", tpu)),
        "needs 4 google.com/tpu, which no offering of pool `gpu` has for it; no instance type in the catalogue has it, so no node can be bought for it; correct its name, or add a node that has it yourself"
    );
}

#[test]
fn a_resource_that_a_setting_of_the_node_class_adds_is_named_with_the_setting() {
    let adds = aws().with_addable("fast.io/net", "spec.net: Auto");
    let snapshot = with(cluster(adds, [pool("gpu")]), [pod("a", requests(1, 1, 0).with("fast.io/net", 4))]);
    assert_eq!(
        planned(&snapshot).unplaced[0].message,
        "needs 4 fast.io/net, which no offering of pool `gpu` has for it; write `spec.net: Auto` in KwokNodeClass `default`, which adds it to \
         nodes of the types that support it"
    );
}

#[test]
fn a_resource_that_only_another_kind_of_node_class_adds_is_named_with_that_kind() {
    let by = "a MistNodeClass with `spec.net: Auto`";
    let told = |resource: &str, amount: u64| {
        let adds = aws().with_addable_elsewhere(resource, by.to_owned());
        let wants = pod("a", requests(1, 1, 0).with(resource, amount));
        planned(&with(cluster(adds, [pool("gpu")]), [wants])).unplaced[0].message.clone()
    };
    let adapter = told("vpc.amazonaws.com/efa", 4);
    assert!(adapter.contains(&format!("; use {by}, which adds it")), "{adapter}");
    let disk = told(ResourceName::EPHEMERAL_STORAGE, 50 << 40);
    assert!(disk.contains(&format!("; use {by}, give types more in the column")), "{disk}");
}

#[test]
fn a_label_that_no_node_will_have() {
    let mut wants = pod("a", requests(1, 1, 0));
    wants.spec.node_selector.insert("team".into(), "vision".into());
    assert_eq!(
        message_for([pool("gpu")], wants),
        "wants label `team` (vision); nodes of pool `gpu` do not have it: add it to spec.template.metadata.labels if its nodes will have it"
    );
    let mut several = pod("a", requests(1, 1, 0));
    for (key, value) in [("team", "vision"), ("tier", "gold"), ("topology.kubernetes.io/zone", "z")] {
        several.spec.node_selector.insert(key.into(), value.into());
    }
    assert_eq!(
        message_for([pool("gpu")], several),
        "wants labels `team` (vision), `tier` (gold); nodes of pool `gpu` do not have them: add them to spec.template.metadata.labels if its nodes will have them; the pool does not meet `topology.kubernetes.io/zone` (z) either"
    );
    let mut zone = pod("a", requests(1, 1, 0));
    zone.spec.node_selector.insert("topology.kubernetes.io/zone".into(), "z".into());
    assert_eq!(
        message_for([pool("gpu")], zone),
        "wants `topology.kubernetes.io/zone` z; KwokNodeClass `default` of pool `gpu` has only a, b; select one of these, or use a node class that has it"
    );
}

#[test]
fn a_zone_is_told_of_the_node_class_or_of_the_pool_whichever_leaves_it_out() {
    let only_a = || Pool { requirements: vec![is_in("topology.kubernetes.io/zone", &["a"])], ..pool("gpu") };
    let wants = |zone: &str| {
        let mut zoned = pod("a", requests(1, 1, 0));
        zoned.spec.node_selector.insert("topology.kubernetes.io/zone".into(), zone.into());
        message_for([only_a()], zoned)
    };
    assert_eq!(
        wants("z"),
        "wants `topology.kubernetes.io/zone` z; KwokNodeClass `default` of pool `gpu` has only a, b; select another, or use a node class that has it"
    );
    let of_pool = "wants `topology.kubernetes.io/zone` b; pool `gpu` has only a; widen the pool's requirements so that it may buy ";
    assert!(wants("b").starts_with(of_pool), "{}", wants("b"));
}

#[test]
fn labels_that_no_one_offering_has_together() {
    let mut wants = pod("a", requests(1, 1, 0));
    wants.spec.node_selector.insert("topology.kubernetes.io/zone".into(), "b".into());
    let terms = vec![NodeSelectorTerm { requirements: vec![is_in("poolwright.dev/gpu-model", &["l4"])] }];
    wants.spec.node_affinity = Some(terms);
    assert_eq!(
        message_for([pool("gpu")], wants),
        "no single offering of pool `gpu` has all of `topology.kubernetes.io/zone b`, `poolwright.dev/gpu-model l4`; relax one of them"
    );
}

#[test]
fn the_pool_where_the_pod_gets_furthest_is_the_one_named() {
    let tainted = Pool { taints: vec![taint("x", "")], ..pool("a-tainted") };
    assert!(message_for([tainted, pool("z-open")], pod("a", requests(1, 1, 8))).contains("pool `z-open`"));
}

#[test]
fn of_a_gpu_pod_the_pool_with_gpus_is_named_whatever_else_keeps_it_off() {
    let cpus = || Pool {
        requirements: vec![is_in("node.kubernetes.io/instance-type", &["cpu"])],
        ..pool("a-plain")
    };
    let gpus = || Pool { taints: vec![taint("gpu", "")], ..pool("z-gpu") };
    let all = catalogue(vec![
        Kind("cpu", capacity(8, 32, 0), None, &[("a", "0.40")]),
        Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.00")]),
    ]);
    let message = |pod: Pod| {
        let plan = planned(&with(cluster(all.clone(), [cpus(), gpus()]), [pod]));
        plan.unplaced[0].message.clone()
    };
    assert_eq!(
        message(pod("a", requests(1, 1, 1))),
        "does not tolerate taint `gpu:NoSchedule` of pool `z-gpu`; add a toleration, or a pool without the taint"
    );
    let mut zoned = pod("a", requests(1, 1, 1));
    zoned.spec.node_selector.insert("topology.kubernetes.io/zone".into(), "z".into());
    assert!(
        message(zoned).contains("pool `z-gpu`"),
        "two things keep it off, and still it is the pool with GPUs"
    );
    assert!(message(pod("a", requests(16, 1, 0))).contains("pool `a-plain`"));
}

#[test]
fn the_daemonsets_that_take_the_room_are_named() {
    let agent = |name: &str, cpu: u64| DaemonSet {
        key: object_key(name),
        labels: BTreeMap::new(),
        spec: PodSpec { requests: requests(cpu, 1, 0), ..PodSpec::default() },
    };
    let message = |sets: Vec<DaemonSet>, cpu: u64| {
        let snapshot = with(with(cluster(aws(), [pool("gpu")]), sets), [pod("a", requests(cpu, 1, 4))]);
        planned(&snapshot).unplaced[0].message.clone()
    };
    let two = message(vec![agent("big", 6), agent("small", 1)], 44);
    assert!(two.contains("has 41, because DaemonSets take 7 (default/big 6, default/small 1)"), "{two}");
    let one = message(vec![agent("big", 6)], 44);
    assert!(one.contains("has 42, because DaemonSet default/big takes 6;"), "{one}");
    let none = message(vec![agent("big", 6)], 60);
    assert!(
        none.contains("has 42 beside DaemonSets; ") && !none.contains("DaemonSet default/"),
        "it would not fit without them: {none}"
    );
}

#[test]
fn a_label_of_another_autoscaler_is_not_put_on_a_template() {
    let message = |key: &str, value: &str| {
        let mut wants = pod("a", requests(1, 1, 0));
        wants.spec.node_selector.insert(key.into(), value.into());
        message_for([pool("gpu")], wants)
    };
    for (key, ours) in [
        ("karpenter.sh/capacity-type", "select by `poolwright.dev/capacity-type` instead"),
        ("eks.amazonaws.com/nodegroup", "select by `poolwright.dev/nodepool` instead"),
        ("nvidia.com/gpu.product", "select by `poolwright.dev/gpu-model` instead"),
        ("karpenter.k8s.aws/instance-hypervisor", "select by the labels of docs/nodepool.md instead"),
        ("kubernetes.azure.com/mode", "select by the labels of docs/nodepool.md instead"),
    ] {
        let told = message(key, "x");
        assert!(told.contains(ours) && !told.contains("template.metadata.labels"), "{key}: {told}");
    }
    let a10g = message("nvidia.com/gpu.product", "NVIDIA-A10G");
    assert!(a10g.contains("select by `poolwright.dev/gpu-model=a10g` instead"), "{a10g}");
    let h100 = message("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3");
    assert!(h100.ends_with("instead; nodes of pool `gpu` have a10g, l4"), "{h100}");
}

#[test]
fn labels_that_kubelets_repeat_under_their_beta_keys_choose_nodes() {
    let mut wants = pod("a", requests(1, 1, 0));
    wants.spec.node_selector.insert("beta.kubernetes.io/instance-type".into(), "g6.xlarge".into());
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [wants]));
    assert_eq!(bought(&plan), ["g6.xlarge: a"]);
}

#[test]
fn a_pool_that_could_buy_a_larger_node_is_told_which_and_that_node_then_holds_the_pod() {
    let small = |wide: bool| Pool {
        requirements: if wide {
            vec![is_in("node.kubernetes.io/instance-type", &["g5.xlarge", "g5.12xlarge"])]
        } else {
            vec![is_in("node.kubernetes.io/instance-type", &["g5.xlarge"])]
        },
        ..pool("gpu")
    };
    let advice = "widen the pool's requirements so that it may buy g5.12xlarge ($5.67/h), which \
                  `node.kubernetes.io/instance-type In [g5.xlarge]` excludes";
    let big = || pod("a", requests(1, 1, 2));
    assert!(message_for([small(false)], big()).ends_with(advice));
    let mut zoned = big();
    zoned.spec.node_selector.insert("node.kubernetes.io/instance-type".into(), "g5.12xlarge".into());
    assert!(message_for([small(false)], zoned.clone()).ends_with(advice));
    for pod in [big(), zoned] {
        assert!(planned(&with(cluster(aws(), [small(true)]), [pod])).unplaced.is_empty());
    }
}

#[test]
fn no_advice_names_a_larger_node_that_the_default_limit_or_that_of_all_pools_excludes() {
    let small =
        Pool { requirements: vec![is_in("node.kubernetes.io/instance-type", &["g5.xlarge"])], ..pool("gpu") };
    let snapshot = with(cluster(aws(), [small]), [pod("a", requests(1, 1, 2))]);
    let told =
        |options: PlanOptions| plan(&snapshot, at(10), &options, &mut NeverStop).unplaced.remove(0).message;
    let default = |most| PlanOptions { default_usd_per_hour: Some(usd(most)), ..PlanOptions::default() };
    let over_all = |most| {
        let limits = PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() };
        PlanOptions { limits, ..PlanOptions::default() }
    };
    for options in [default("5.68"), over_all("5.68")] {
        let told = told(options);
        assert!(told.contains("so that it may buy g5.12xlarge ($5.67/h)"), "{told}");
    }
    for (options, limits) in [(default("5.67"), "of the pool"), (over_all("5.67"), "over all pools")] {
        let told = told(options);
        assert!(told.ends_with(&format!("holds all that it asks for within the limits {limits}")), "{told}");
    }
}

#[test]
fn everything_that_keeps_a_pod_off_the_pool_is_said() {
    let tainted = Pool { taints: vec![taint("x", "")], ..pool("gpu") };
    let mut wants = pod("a", requests(60, 1, 1));
    wants.spec.node_selector.insert("team".into(), "vision".into());
    let told = message_for([tainted], wants);
    for part in ["does not tolerate taint `x:NoSchedule`", "wants label `team`", "needs 60 cpu in one node"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn more_disk_is_told_where_it_is_set_and_devices_of_others_are_not_promised() {
    let disk = |gib: u64| capacity(4, 16, 0).with(ResourceName::EPHEMERAL_STORAGE, gib << 30);
    let kinds = catalogue(vec![Kind("small", disk(17), None, &[("a", "0.10")])]);
    let message = |resource: &str, amount: u64| {
        let wants = pod("a", requests(1, 1, 0).with(resource, amount));
        planned(&with(cluster(kinds.clone(), [pool("cpu")]), [wants])).unplaced[0].message.clone()
    };
    let told = message(ResourceName::EPHEMERAL_STORAGE, 50 << 30);
    let advice = "at most 17Gi; give types more in the column `ephemeral_storage_mib` of a file of --catalogue, or ask for less";
    assert!(told.contains(advice), "{told}");
    // A larger type would do, and so would a larger disk, which costs less.
    let both = vec![
        Kind("small", disk(17), None, &[("a", "0.10")]),
        Kind("large", disk(99), None, &[("a", "9.00")]),
    ];
    let sold = catalogue(both).with_addable(ResourceName::EPHEMERAL_STORAGE, "write a larger spec.disk");
    let only =
        Pool { requirements: vec![is_in("node.kubernetes.io/instance-type", &["small"])], ..pool("cpu") };
    let wants = pod("a", requests(1, 1, 0).with(ResourceName::EPHEMERAL_STORAGE, 50 << 30));
    let snapshot = with(cluster(sold, [only]), [wants]);
    let plan = planned(&snapshot);
    let told = &plan.unplaced[0].message;
    assert!(
        told.ends_with("has 17Gi; write a larger spec.disk of KwokNodeClass `default`, or ask for less"),
        "{told}"
    );
    let lines = poolwright_core::why::pod(
        &snapshot,
        at(10),
        &poolwright_core::plan::PlanOptions::default(),
        &plan,
        &plan.unplaced[0].pod,
    );
    let lines = lines.expect("the pod is known").join("\n");
    assert!(
        lines.contains(
            "To change that: write a larger spec.disk of KwokNodeClass `default`, or ask for at most 17Gi"
        ),
        "{lines}"
    );
    let adapter = message("vpc.amazonaws.com/efa", 1);
    let none = "and no setting of KwokNodeClass `default` adds it, so no node can be bought for it";
    assert!(adapter.contains(none), "{adapter}");
    for device in ["amd.com/gpu", "example.com/gpu", "nvidia.com/gpus"] {
        let told = message(device, 1);
        assert!(told.contains("so no node can be bought for it") && !told.contains("--catalogue"), "{told}");
    }
}

#[test]
fn huge_pages_say_what_offers_them() {
    let pages = requests(1, 1, 0).with("hugepages-2Mi", 1 << 30);
    let told = message_for([pool("gpu")], pod("a", pages));
    assert!(told.contains("needs 1Gi hugepages-2Mi") && told.contains("boot parameters"), "{told}");
    assert!(!told.contains("--catalogue"), "no column of a catalogue has them: {told}");
}

#[test]
fn a_mig_instance_is_told_how_to_be_planned_where_a_gpu_can_be_cut_into_it() {
    let kinds = || catalogue(vec![Kind("p4d", capacity(96, 1152, 8), Some("a100-40gb"), &[("a", "21.95")])]);
    let told = |profile: &str| {
        let mig = requests(1, 1, 0).with(format!("nvidia.com/mig-{profile}").as_str(), 1);
        planned(&with(cluster(kinds(), [pool("gpu")]), [pod("a", mig)])).unplaced[0].message.clone()
    };
    assert!(
        told("3g.20gb")
            .ends_with("`poolwright plan --sharing mig` plans GPUs that are cut into such instances"),
        "{}",
        told("3g.20gb")
    );
    for (profile, cause) in [
        ("7g.80gb", "it asks for nvidia.com/mig-7g.80gb, and no GPU on offer can be cut into such instances"),
        (
            "1g.5gb.me",
            "it asks for nvidia.com/mig-1g.5gb.me, and Poolwright plans no MIG instances with media extensions",
        ),
    ] {
        assert!(told(profile).ends_with(cause), "{}", told(profile));
    }
}

#[test]
fn a_pod_that_mixes_whole_gpus_and_instances_is_told_that_the_planner_does_not() {
    let kinds = catalogue(vec![Kind("p4d", capacity(96, 1152, 8), Some("a100-40gb"), &[("a", "21.95")])]);
    let both = requests(1, 1, 0).with("nvidia.com/mig-1g.5gb", 1).with("nvidia.com/mig-3g.20gb", 1);
    let told = planned(&with(cluster(kinds, [pool("gpu")]), [pod("a", both)])).unplaced[0].message.clone();
    assert!(told.ends_with("and Poolwright plans only one of these for a pod"), "{told}");
}

#[test]
fn a_pool_that_lacks_room_and_a_label_is_told_the_type_that_has_the_room() {
    let small =
        Pool { requirements: vec![is_in("node.kubernetes.io/instance-type", &["small"])], ..pool("cpu") };
    let kinds = catalogue(vec![
        Kind("small", capacity(4, 16, 0), None, &[("a", "0.10")]),
        Kind("large", capacity(8, 32, 0), None, &[("a", "0.20")]),
    ]);
    let mut wants = pod("a", requests(6, 1, 0));
    wants.spec.node_selector.insert("kata".into(), "true".into());
    let told =
        planned(&with(cluster(kinds.clone(), [small.clone()]), [wants.clone()])).unplaced[0].message.clone();
    assert!(told.contains("wants label `kata`") && told.contains("so that it may buy large"), "{told}");
    // No type has so much memory.
    wants.spec.requests = requests(6, 1000, 0);
    let nothing = planned(&with(cluster(kinds, [small]), [wants])).unplaced[0].message.clone();
    assert!(!nothing.contains("DaemonSets") && !nothing.contains("may buy large"), "{nothing}");
}

#[test]
fn a_limit_below_the_smallest_node_is_not_told_to_free_nodes() {
    let gpus = |most: u64| Pool {
        limits: PoolLimits {
            resources: [(ResourceName::new(ResourceName::NVIDIA_GPU), most)].into(),
            ..PoolLimits::default()
        },
        ..pool("gpu")
    };
    let left =
        |most: u64, pods: Vec<Pod>| planned(&with(cluster(aws(), [gpus(most)]), pods)).unplaced[0].clone();
    let big = left(2, vec![pod("a", requests(1, 1, 4))]);
    assert_eq!(big.reason, UnplacedReason::LimitReached);
    assert_eq!(
        big.message,
        "limit nvidia.com/gpu = 2 of pool `gpu` is below the 4 that the smallest node which fits it uses; raise spec.limits"
    );
    let second = left(1, vec![pod("a", requests(1, 1, 1)), pod("b", requests(1, 1, 1))]);
    assert_eq!(
        second.message,
        "limit nvidia.com/gpu = 1 of pool `gpu` is reached (in use or on order: 1); raise spec.limits",
        "no node exists that could be freed"
    );
}

#[test]
fn a_pool_that_cannot_be_used_is_named_where_it_is_the_nearest() {
    let cpus = Pool {
        requirements: vec![is_in("node.kubernetes.io/instance-type", &["c7.xlarge"])],
        ..pool("a-cpu")
    };
    let mut broken = Pool { taints: vec![taint("gpu", "")], ..pool("z-gpu") };
    broken.node_class.name = "gone".into();
    let mut wants = pod("a", requests(1, 1, 1));
    wants.spec.tolerations = vec![tolerate("gpu")];
    let told = message_for([cpus.clone(), broken.clone()], wants);
    assert!(told.starts_with("pool `z-gpu` cannot be used: "), "{told}");
    let told = message_for([cpus.clone(), broken.clone()], pod("a", requests(1, 1, 1)));
    let taint = "; besides, does not tolerate taint `gpu:NoSchedule` of pool `z-gpu`; add a toleration, or a pool without the taint";
    assert!(told.starts_with("pool `z-gpu` cannot be used: ") && told.ends_with(taint), "{told}");
    let told = message_for([cpus, broken], pod("a", requests(60, 1, 0)));
    assert!(told.contains("pool `a-cpu`"), "{told}");
}

#[test]
fn a_pool_that_cannot_be_used_and_is_made_for_other_pods_does_not_hide_the_reason() {
    let of = |name: &str| Pool {
        requirements: vec![is_in("node.kubernetes.io/instance-type", &["c7.xlarge"])],
        ..pool(name)
    };
    let mut second = of("second");
    second.node_class.name = "gone".into();
    let mut resources = vec![requests(1, 1, 1), requests(60, 1, 0)];
    for name in
        ["hugepages-2Mi", "amd.com/gpu", "aws.amazon.com/neuron", "nvidia.com/mig-1g.5gb", "fast.io/net"]
    {
        resources.push(requests(1, 1, 0).with(name, 1));
    }
    for wanted in resources {
        let told = message_for([of("a-cpu"), second.clone()], pod("a", wanted));
        assert!(told.contains("pool `a-cpu`") && !told.contains("second"), "{told}");
    }
    // A pod that names the pool is told of both.
    let mut wants = pod("a", requests(1, 1, 1));
    wants.spec.node_selector.insert("poolwright.dev/nodepool".into(), "second".into());
    let told = planned(&with(cluster(aws(), [of("a-cpu"), second]), [wants])).unplaced[0].message.clone();
    assert!(told.starts_with("pool `second` cannot be used: "), "{told}");
    let lacks = "; besides, no instance type in the catalogue that the pool allows has nvidia.com/gpu";
    assert!(told.ends_with(lacks), "{told}");
}

#[test]
fn a_pool_that_cannot_be_used_and_whose_class_may_add_the_resource_is_named_besides() {
    let resource = "vpc.amazonaws.com/efa";
    let told = |kind: &str| {
        let adds = aws().with_addable_elsewhere(resource, "a MistNodeClass with `spec.net: Auto`".to_owned());
        let mut second = pool("second");
        (second.node_class.kind, second.node_class.name) = (kind.into(), "gone".into());
        let wants = pod("a", requests(1, 1, 0).with(resource, 1));
        planned(&with(cluster(adds, [pool("gpu"), second]), [wants])).unplaced[0].message.clone()
    };
    let mist = told("MistNodeClass");
    assert!(mist.starts_with("needs 1 vpc.amazonaws.com/efa"), "{mist}");
    assert!(mist.contains("; besides, pool `second` cannot be used: "), "{mist}");
    let other = told("KwokNodeClass");
    assert!(!other.contains("second"), "another class of this kind cannot add it: {other}");
}

fn broken(name: &str) -> Pool {
    let mut broken = pool(name);
    broken.node_class.name = "gone".into();
    broken
}

#[test]
fn a_zone_that_nobody_sells_comes_before_a_pool_that_cannot_be_used() {
    let in_zone = |zone: &str, named: Option<&str>| {
        let mut wants = pod("a", requests(1, 1, 1));
        wants.spec.node_selector.insert("topology.kubernetes.io/zone".into(), zone.into());
        if let Some(name) = named {
            wants.spec.node_selector.insert("poolwright.dev/nodepool".into(), name.into());
        }
        wants
    };
    let told = message_for([without_nodes(), broken("lost")], in_zone("z", None));
    let (limit, lost) =
        (told.find("limit nodes = 0 of pool `gpu`"), told.find("pool `lost` cannot be used: "));
    assert!(told.starts_with("wants `topology.kubernetes.io/zone` z; "), "{told}");
    assert!(limit.is_some() && limit < lost, "{told}");
    let left =
        |pools: [Pool; 2], wants: Pod| planned(&with(cluster(aws(), pools), [wants])).unplaced[0].clone();
    let nowhere =
        "; besides, no offering of a node class that is ready has `topology.kubernetes.io/zone` (z)";
    let named = left([pool("gpu"), broken("lost")], in_zone("z", Some("lost")));
    assert!(named.message.starts_with("pool `lost` cannot be used: "), "{named:?}");
    assert!(named.message.ends_with(nowhere), "{named:?}");
    let sold = left([pool("gpu"), broken("lost")], in_zone("b", Some("lost")));
    assert!(!sold.message.contains("besides"), "{sold:?}");
    // The node class of this pool is known, so its zones are too.
    let invalid = Pool { requirements: vec![is_in("a", &["x"]), is_in("a", &["y"])], ..pool("odd") };
    let known = left([pool("gpu"), invalid], in_zone("z", Some("odd")));
    let lacks = "wants `topology.kubernetes.io/zone` (z), which nodes of the pool would not have";
    assert!(known.message.ends_with(lacks), "{known:?}");
}

#[test]
fn a_pod_that_selects_the_label_of_a_pool_that_cannot_be_used_is_told_of_that_pool() {
    let of_team = Pool { labels: [("team".to_owned(), "x".to_owned())].into(), ..broken("lost") };
    let mut wants = pod("a", requests(1, 1, 1));
    wants.spec.node_selector.insert("team".into(), "x".into());
    let told = message_for([pool("gpu"), of_team], wants.clone());
    assert!(told.starts_with("pool `lost` cannot be used: ") && !told.contains("`gpu`"), "{told}");
    let told = message_for([pool("gpu"), broken("lost")], wants);
    assert!(told.starts_with("wants label `team` (x); "), "no pool has the label: {told}");
}

#[test]
fn a_stock_out_says_what_failed_and_when_it_is_tried_again() {
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [pod("a", requests(40, 1, 4))]);
    snapshot.held_back.insert((node_class(), id("g5.12xlarge", "a")), at(60));
    let plan = planned(&snapshot);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::OfferingsHeldBack);
    assert_eq!(
        plan.unplaced[0].message,
        "the offerings of pool `gpu` that fit it failed recently (g5.12xlarge/a/on-demand); the first is tried again at 2027-01-15T08:01:00Z"
    );
}

#[test]
fn without_a_pool_the_message_says_to_create_one() {
    let plan = planned(&with(cluster(aws(), []), [pod("a", requests(1, 1, 1))]));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoUsablePool);
    assert_eq!(plan.unplaced[0].message, "no NodePool exists; create one");
}

#[test]
fn a_pod_that_names_its_pool_is_told_about_that_pool() {
    let mut wants = pod("a", requests(1, 1, 1));
    wants.spec.node_selector.insert("poolwright.dev/nodepool".into(), "research".into());
    let heavy = Pool { weight: 100, ..pool("gpu") };
    let tainted = Pool { taints: vec![taint("dedicated", "")], ..pool("research") };
    assert_eq!(
        message_for([heavy.clone(), tainted], wants.clone()),
        "does not tolerate taint `dedicated:NoSchedule` of pool `research`; add a toleration, or a pool without the taint"
    );
    let mut lost = Pool { ..pool("research") };
    lost.node_class.name = "gone".into();
    let plan = planned(&with(cluster(aws(), [heavy, lost]), [wants]));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoUsablePool);
    let message = &plan.unplaced[0].message;
    assert!(
        message.starts_with("pool `research` cannot be used: ") && message.contains("`gone`"),
        "{message}"
    );
}

#[test]
fn a_taint_that_an_agent_removes_belongs_to_the_startup_taints_of_its_pool() {
    let cilium = Taint {
        key: "node.cilium.io/agent-not-ready".into(),
        value: "true".into(),
        effect: TaintEffect::NoExecute,
    };
    let waiting = |pool: Pool| {
        let plan = planned(&with(cluster(aws(), [pool]), [pod("p", requests(1, 1, 1))]));
        plan.unplaced.first().map(|left| left.message.clone())
    };
    assert_eq!(
        waiting(Pool { taints: vec![cilium.clone()], ..pool("gpu") }).as_deref(),
        Some(
            "does not tolerate taint `node.cilium.io/agent-not-ready=true:NoExecute` of pool `gpu`, which an agent removes; list it under startupTaints of the pool instead of taints"
        )
    );
    assert_eq!(waiting(Pool { startup_taints: vec![cilium], ..pool("gpu") }), None, "the advice helps");
}

#[test]
fn a_pool_that_nobody_wrote_is_not_named_and_nobody_is_told_to_change_it() {
    let message = |pod: Pod| {
        let told = message_for([Pool { is_implicit: true, ..pool("any") }], pod);
        assert!(!told.contains("any") && !told.contains("the pool"), "{told}");
        told
    };
    let labelled = |key: &str, value: &str| {
        let mut wants = pod("a", requests(1, 1, 0));
        wants.spec.node_selector.insert(key.into(), value.into());
        wants
    };
    assert_eq!(
        message(pod("a", requests(1, 1, 8))),
        "needs 8 nvidia.com/gpu in one node; the largest offering of the catalogue for it, g5.12xlarge, has 4; no instance type that this plan may buy has more than 4, so ask for less"
    );
    assert_eq!(
        message(pod("a", requests(1, 1, 0).with("google.com/tpu", 4))),
        "needs 4 google.com/tpu, which no offering of the catalogue has for it; no instance type in the catalogue has it, so no node can be bought for it; correct its name, or add a node that has it yourself"
    );
    assert_eq!(
        message(labelled("team", "vision")),
        "wants label `team` (vision); no NodePool is given; write one whose spec.template.metadata.labels has it"
    );
    assert_eq!(
        message(labelled("poolwright.dev/nodepool", "research")),
        "wants label `poolwright.dev/nodepool` (research); nodes of the catalogue do not have it: write a NodePool of that name"
    );
    assert_eq!(
        message(labelled("topology.kubernetes.io/zone", "z")),
        "wants `topology.kubernetes.io/zone` z; this plan may buy only a, b; select one of these"
    );
}

#[test]
fn the_part_of_a_pod_that_asks_for_too_much_is_named_to_each_pod() {
    let gpus = |parts: Vec<RequestPart>| {
        vec![RequestOrigin { resource: ResourceName::new(ResourceName::NVIDIA_GPU), parts }]
    };
    let load = RequestPart::Init { container: "load".into(), amount: 8 };
    let loading = Pod { request_origins: gpus(vec![load]), ..pod("loading", requests(1, 1, 8)) };
    let plain = pod("plain", requests(1, 1, 8));
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [loading, plain]));
    let told: Vec<&str> = plan.unplaced.iter().map(|left| left.message.as_str()).collect();
    assert_eq!(
        told[0],
        "needs 8 nvidia.com/gpu (init container `load` asks for 8 nvidia.com/gpu) in one node; the largest offering of pool `gpu` for it, g5.12xlarge, has 4; no instance type in the catalogue has more than 4, so ask for less"
    );
    assert!(told[1].starts_with("needs 8 nvidia.com/gpu in one node; "), "{}", told[1]);
    let kata = RequestPart::Overhead { runtime_class: Some("kata".into()), amount: 1000 };
    let cpu = RequestOrigin { resource: ResourceName::new(ResourceName::CPU), parts: vec![kata] };
    let heavy = Pod { request_origins: vec![cpu], ..pod("a", requests(49, 1, 0)) };
    let told = message_for([pool("gpu")], heavy);
    assert!(
        told.starts_with("needs 49 cpu (the overhead of RuntimeClass `kata` is 1 cpu) in one node"),
        "{told}"
    );
}

fn without_nodes() -> Pool {
    Pool { limits: PoolLimits { nodes: Some(0), ..PoolLimits::default() }, ..pool("gpu") }
}

#[test]
fn a_cordoned_node_is_offered_to_the_pods_that_it_would_hold_and_then_holds_them() {
    let node = |cordoned: bool| Node { cordoned, ..node("n1", capacity(4, 16, 1)) };
    let pods = || ["a", "b"].map(|name| pod(name, requests(1, 1, 1)));
    let closed = planned(&with(with(cluster(aws(), [without_nodes()]), [node(true)]), pods()));
    let told: Vec<&str> = closed.unplaced.iter().map(|left| left.message.as_str()).collect();
    let offer = "; or run `kubectl uncordon n1`: that node has room for it";
    assert_eq!(told.len(), 2);
    assert!(told[0].starts_with("limit nodes = 0 of pool `gpu`") && told[0].ends_with(offer), "{told:?}");
    assert!(!told[1].contains("uncordon"), "it has one GPU: {told:?}");
    let open = planned(&with(with(cluster(aws(), [without_nodes()]), [node(false)]), pods()));
    assert_eq!((open.placements.len(), open.placements[0].pod.clone()), (1, key("a")));
}

#[test]
fn a_cordoned_node_that_would_not_hold_the_pod_is_not_offered() {
    let cordoned = Node { cordoned: true, ..node("n1", capacity(4, 16, 1)) };
    let small = Node { allocatable: capacity(4, 16, 0), ..cordoned.clone() };
    let tainted = Node { taints: vec![taint("team", "x")], ..cordoned.clone() };
    let broken = Node { ready: false, ..cordoned };
    for node in [small, tainted, broken] {
        let snapshot = with(with(cluster(aws(), [without_nodes()]), [node]), [pod("a", requests(1, 1, 1))]);
        let told = &planned(&snapshot).unplaced[0].message;
        assert!(!told.contains("uncordon"), "{told}");
    }
}
