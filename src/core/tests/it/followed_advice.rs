//! Tests that follow the advice of reasons and explanations, and plan again: each change helps, and none of those that belong together
//! helps alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::{Catalogue, ResourceName};
use poolwright_core::plan::{Plan, PlanOptions, Sharing, UnplacedReason, plan};
use poolwright_core::{
    DaemonSet, Namespaces, Pod, PodAffinityTerm, PodSpec, Pool, PoolLimits, Snapshot,
    TopologySpreadConstraint, why,
};
use poolwright_solver::NeverStop;

use crate::kit::*;

const ZONE: &str = "topology.kubernetes.io/zone";
const TYPE: &str = "node.kubernetes.io/instance-type";

/// Returns the reason and the message of the only pod that is left out.
fn left(plan: &Plan) -> (UnplacedReason, &str) {
    assert_eq!(plan.unplaced.len(), 1, "{:?}", plan.unplaced);
    (plan.unplaced[0].reason, &plan.unplaced[0].message)
}

/// Returns the nearest miss in the explanation of pod `p`.
fn nearest(snapshot: &Snapshot) -> String {
    let plan = planned(snapshot);
    let lines = why::pod(snapshot, at(10), &PlanOptions::default(), &plan, &key("p"));
    let nearest = lines.expect("the pod exists").into_iter().find(|line| line.starts_with("Nearest"));
    nearest.expect("nothing fits")
}

fn is_planned(snapshot: &Snapshot) -> bool {
    planned(snapshot).unplaced.is_empty()
}

/// Returns one type in two zones.
fn two_zones() -> Catalogue {
    catalogue(vec![Kind("m7.large", capacity(4, 16, 0), None, &[("a", "0.20"), ("b", "0.20")])])
}

fn db() -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: ZONE.into(),
        namespaces: Namespaces::Named(["default".to_owned()].into()),
        selector: Some(vec![is_in("app", &["db"])]),
    }
}

fn in_zone(mut pod: Pod, zone: &str) -> Pod {
    pod.spec.node_selector.insert(ZONE.into(), zone.into());
    pod
}

/// Returns a cluster with a waiting database in zone a, and another pod.
fn beside_db(other: Pod) -> Snapshot {
    let labels = [("app".to_owned(), "db".to_owned())].into();
    let db = in_zone(Pod { labels, ..pod("db", requests(1, 1, 0)) }, "a");
    with(cluster(two_zones(), [pool("cpu")]), [db, other])
}

#[test]
fn a_selector_that_keeps_a_pod_from_those_to_be_with_is_named_and_without_it_the_pod_is_planned() {
    let mut near = pod("p", requests(1, 1, 0));
    near.spec.affinity = vec![db()];
    let plan = planned(&beside_db(in_zone(near.clone(), "b")));
    assert_eq!(
        left(&plan),
        (
            UnplacedReason::TopologyRule,
            "must be with other pods over `topology.kubernetes.io/zone` (required pod affinity), which are in a, but its nodeSelector \
             `topology.kubernetes.io/zone: b` excludes the nodes there; drop `topology.kubernetes.io/zone` from its nodeSelector, or \
             change the rule"
        )
    );
    assert!(is_planned(&beside_db(near.clone())));
    near.spec.affinity.clear();
    assert!(is_planned(&beside_db(in_zone(near, "b"))));
}

#[test]
fn a_selector_that_keeps_a_pod_in_the_zone_of_those_to_avoid_is_named_and_without_it_the_pod_is_planned() {
    let mut apart = pod("p", requests(1, 1, 0));
    apart.spec.anti_affinity = vec![db()];
    let plan = planned(&beside_db(in_zone(apart.clone(), "a")));
    let (_, said) = left(&plan);
    assert!(
        said.ends_with(
            "every place that fits it: a; elsewhere, its nodeSelector `topology.kubernetes.io/zone: a` excludes the nodes there; drop \
             `topology.kubernetes.io/zone` from its nodeSelector, or change the rule"
        ),
        "{said}"
    );
    assert!(is_planned(&beside_db(apart)));
}

#[test]
fn a_limit_that_would_keep_the_pod_off_after_its_taint_is_named_with_the_taint() {
    let gpus = |most: u64| PoolLimits {
        resources: [(ResourceName::new(ResourceName::NVIDIA_GPU), most)].into(),
        ..PoolLimits::default()
    };
    let nodes = |most: u64| PoolLimits { nodes: Some(most), ..PoolLimits::default() };
    for (none, enough, named) in
        [(nodes(0), nodes(1), "limit nodes = 0"), (gpus(0), gpus(1), "limit nvidia.com/gpu = 0")]
    {
        let of = |limits: &PoolLimits, tolerates: bool| {
            let tainted = Pool { taints: vec![taint("team", "a")], limits: limits.clone(), ..pool("gpu") };
            let mut wants = pod("p", requests(1, 1, 1));
            wants.spec.tolerations.extend(tolerates.then(|| tolerate("team")));
            with(cluster(aws(), [tainted]), [wants])
        };
        let plan = planned(&of(&none, false));
        let expected = format!(
            "does not tolerate taint `team=a:NoSchedule` of pool `gpu`; add a toleration, or a pool without the taint; besides, {named} \
             of pool `gpu` is below the 1 that the smallest node which fits it uses; raise spec.limits"
        );
        assert_eq!(left(&plan), (UnplacedReason::NoOfferingFits, expected.as_str()));
        let change = format!("add a toleration of `team=a:NoSchedule`; and raise {named} of pool `gpu`.");
        assert!(nearest(&of(&none, false)).ends_with(&change), "{}", nearest(&of(&none, false)));
        assert!(!is_planned(&of(&none, true)) && !is_planned(&of(&enough, false)), "both are needed");
        assert!(is_planned(&of(&enough, true)), "both together help");
        let within = planned(&of(&enough, false));
        assert!(!left(&within).1.contains("limit"), "{}", left(&within).1);
    }
}

/// Returns a cluster whose pool buys these types, and a pod that asks for this.
fn of_types(types: &[&str], cpu: u64, memory: u64, gpus: u64) -> Snapshot {
    let cpus = Pool { requirements: vec![is_in(TYPE, types)], ..pool("cpu") };
    with(cluster(aws(), [cpus]), [pod("p", requests(cpu, memory, gpus))])
}

#[test]
fn only_changes_that_help_alone_are_offered_as_alternatives() {
    let (narrow, wide): (&[&str], &[&str]) = (&["c7.xlarge"], &["c7.xlarge", "g5.12xlarge"]);
    let widen = "widen the requirements of pool cpu so that it may buy g5.12xlarge ($5.67/h), which \
                 `node.kubernetes.io/instance-type In [c7.xlarge]` excludes.";
    let memory = nearest(&of_types(narrow, 1, 100, 0));
    assert!(memory.ends_with(&format!("To change that: ask for at most 8Gi memory, or {widen}")), "{memory}");
    assert!(is_planned(&of_types(narrow, 1, 8, 0)) && is_planned(&of_types(wide, 1, 100, 0)));
    // The pool has no GPUs, so less memory is no alternative.
    let both = nearest(&of_types(narrow, 1, 100, 1));
    assert!(both.ends_with(&format!("To change that: {widen}")), "{both}");
    assert!(!is_planned(&of_types(narrow, 1, 8, 1)), "less memory does not help");
    assert!(is_planned(&of_types(wide, 1, 100, 1)), "the advice helps");
}

#[test]
fn less_memory_is_no_alternative_where_the_pool_does_not_buy_in_the_zone_of_the_pod() {
    let of = |types: &[&str], memory: u64| {
        let cpus = Pool { requirements: vec![is_in(TYPE, types)], ..pool("cpu") };
        with(cluster(aws(), [cpus]), [in_zone(pod("p", requests(1, memory, 0)), "b")])
    };
    let said = nearest(&of(&["c7.xlarge"], 12));
    assert!(said.contains("may buy g5.xlarge") && !said.contains("ask for at most"), "{said}");
    assert!(!is_planned(&of(&["c7.xlarge"], 8)), "less memory does not help");
    assert!(is_planned(&of(&["c7.xlarge", "g5.xlarge"], 12)), "the advice helps");
}

#[test]
fn more_gpus_than_any_type_has_in_a_pool_without_gpus_need_both_fewer_gpus_and_a_wider_pool() {
    let (narrow, wide): (&[&str], &[&str]) = (&["c7.xlarge"], &["c7.xlarge", "g5.12xlarge"]);
    assert_eq!(
        left(&planned(&of_types(narrow, 1, 1, 8))).1,
        "needs 8 nvidia.com/gpu, which no offering of pool `cpu` has for it; no instance type in the catalogue has more than 4, so ask for \
         at most 4, and widen the pool's requirements so that it may buy g5.12xlarge ($5.67/h), which \
         `node.kubernetes.io/instance-type In [c7.xlarge]` excludes"
    );
    assert!(!is_planned(&of_types(narrow, 1, 1, 4)) && !is_planned(&of_types(wide, 1, 1, 8)));
    assert!(is_planned(&of_types(wide, 1, 1, 4)), "both together help");
}

#[test]
fn a_type_beyond_the_default_money_limit_is_not_advised_and_within_it_the_advice_helps() {
    let told = |types: &[&str], most: &str| {
        let options = PlanOptions { default_usd_per_hour: Some(usd(most)), ..PlanOptions::default() };
        let snapshot = of_types(types, 1, 1, 2);
        let plan = plan(&snapshot, at(10), &options, &mut NeverStop);
        let lines = why::pod(&snapshot, at(10), &options, &plan, &key("p")).expect("the pod exists");
        (plan.unplaced.is_empty(), lines.join("\n"))
    };
    let (narrow, wide): (&[&str], &[&str]) = (&["g5.xlarge"], &["g5.xlarge", "g5.12xlarge"]);
    let (is_planned, said) = told(narrow, "5.68");
    assert!(!is_planned && said.contains("so that it may buy g5.12xlarge ($5.67/h)"), "{said}");
    assert!(told(wide, "5.68").0, "the advice helps");
    let (is_planned, said) = told(narrow, "5.67");
    assert!(!is_planned && !said.contains("g5.12xlarge"), "{said}");
    assert!(!told(wide, "5.67").0, "it would not help");
}

#[test]
fn a_limit_that_keeps_a_pod_out_besides_a_rule_about_other_pods_is_named_and_only_both_changes_help() {
    let web = || Some(vec![is_in("app", &["web"])]);
    let waiting = |change: &dyn Fn(&mut PodSpec), nodes: u64| {
        let pods = ["p", "q", "r"].map(|name| {
            let labels = [("app".to_owned(), "web".to_owned())].into();
            let mut pod = Pod { labels, ..pod(name, requests(3, 1, 0)) };
            change(&mut pod.spec);
            pod
        });
        let limits = PoolLimits { nodes: Some(nodes), ..PoolLimits::default() };
        with(cluster(two_zones(), [Pool { limits, ..pool("cpu") }]), pods)
    };
    let spread = |spec: &mut PodSpec, min_domains: Option<u32>| {
        spec.spreads = vec![TopologySpreadConstraint {
            topology_key: ZONE.into(),
            max_skew: 1,
            min_domains,
            selector: web(),
            ..TopologySpreadConstraint::default()
        }];
    };
    let apart = |spec: &mut PodSpec| spec.anti_affinity = vec![PodAffinityTerm { selector: web(), ..db() }];
    let (over_three, over_all) =
        (|spec: &mut PodSpec| spread(spec, Some(3)), |spec: &mut PodSpec| spread(spec, None));
    let free = |_: &mut PodSpec| {};
    type Rule<'a> = &'a dyn Fn(&mut PodSpec);
    let rules: [[Rule<'_>; 2]; 2] = [[&apart, &free], [&over_three, &over_all]];
    for [rule, changed] in rules {
        let plan = planned(&waiting(rule, 2));
        let (reason, said) = left(&plan);
        assert_eq!(reason, UnplacedReason::TopologyRule, "{said}");
        let limit =
            "; besides, limit nodes = 2 of pool `cpu` is reached (in use or on order: 2); raise spec.limits";
        assert!(said.ends_with(limit), "{said}");
        let higher = planned(&waiting(rule, 3));
        assert!(!left(&higher).1.contains("besides"), "the rule alone keeps it out");
        assert!(!is_planned(&waiting(changed, 2)), "the limit alone keeps it out");
        assert!(is_planned(&waiting(changed, 3)));
    }
}

/// Returns a cluster with a static pool of g5.xlarge nodes within a limit, and three pods that fill one each.
fn of_static(replicas: u64, limit: &str) -> Snapshot {
    let limits = PoolLimits { usd_per_hour: Some(usd(limit)), ..PoolLimits::default() };
    let requirements = vec![is_in(TYPE, &["g5.xlarge"])];
    let fixed = Pool { replicas: Some(replicas), limits, requirements, ..pool("fixed") };
    with(cluster(aws(), [fixed]), ["p", "q", "r"].map(|name| pod(name, requests(1, 1, 1))))
}

#[test]
fn a_limit_that_keeps_a_static_pool_from_its_replicas_is_the_reason_of_pods_that_wait_for_them() {
    let told = |replicas: u64, limit: &str| left(&planned(&of_static(replicas, limit))).1.to_owned();
    let limit = "`replicas` sets how many nodes pool `fixed` has, and limit usdPerHour = 2.10 of pool `fixed` allows no more of its \
                 replicas (in use or on order: $2.02/h); raise that limit";
    for replicas in [4, 5] {
        let said = told(replicas, "2.10");
        assert!(said.ends_with(&format!("{limit}, or create a NodePool without `replicas`")), "{said}");
    }
    assert!(is_planned(&of_static(4, "3.10")), "a higher limit helps");
    let said = told(2, "2.10");
    assert!(said.contains(&format!("{limit} and `replicas`, or create")), "{said}");
    assert!(!is_planned(&of_static(3, "2.10")) && !is_planned(&of_static(2, "3.10")), "both are needed");
    assert!(is_planned(&of_static(3, "3.10")), "both together help");
    let said = told(2, "9.00");
    assert!(!said.contains("limit") && said.contains("has; raise it, or create a NodePool"), "{said}");
}

#[test]
fn a_static_pool_whose_offerings_failed_is_not_told_to_have_more_replicas() {
    let mut snapshot = of_static(4, "9.00");
    for zone in ["a", "b"] {
        snapshot.held_back.insert((node_class(), id("g5.xlarge", zone)), at(60));
    }
    let plan = planned(&snapshot);
    let said = &plan.unplaced[0].message;
    assert!(said.contains("and it cannot buy all of them now: its 2 offerings failed recently"), "{said}");
    assert!(!said.contains("raise"), "{said}");
}

#[test]
fn daemonsets_that_take_all_pods_of_a_node_are_told_with_the_field_that_allows_more() {
    let of = |pods: u64| {
        let small = capacity(8, 32, 0).with(ResourceName::PODS, pods);
        let sold = catalogue(vec![Kind("small", small, None, &[("a", "0.10")])]);
        let sold = sold.with_addable(ResourceName::PODS, "raise spec.kubelet.maxPods");
        let agents = ["d1", "d2"].map(|name| DaemonSet {
            key: object_key(name),
            labels: BTreeMap::new(),
            spec: PodSpec { requests: requests(1, 1, 0), ..PodSpec::default() },
        });
        with(with(cluster(sold, [pool("cpu")]), agents), [pod("p", requests(1, 1, 0))])
    };
    let plan = planned(&of(2));
    let (_, said) = left(&plan);
    assert!(
        said.ends_with(
            "because DaemonSets take 2 (default/d1 1, default/d2 1); raise spec.kubelet.maxPods of KwokNodeClass `default`"
        ),
        "{said}"
    );
    let said = nearest(&of(2));
    let change = "To change that: raise spec.kubelet.maxPods of KwokNodeClass `default`.";
    assert!(said.ends_with(change), "{said}");
    assert!(is_planned(&of(3)), "the advice helps");
}

#[test]
fn an_instance_that_only_a_limit_keeps_from_being_cut_is_told_the_limit_with_the_flag() {
    let of = |most: u64| {
        let kinds = catalogue(vec![
            Kind("m7.large", capacity(4, 16, 0), None, &[("a", "0.20")]),
            Kind("p4d", capacity(96, 1152, 8), Some("a100-40gb"), &[("a", "21.95")]),
        ]);
        let gpus = [(ResourceName::new(ResourceName::NVIDIA_GPU), most)].into();
        let limits = PoolLimits { resources: gpus, ..PoolLimits::default() };
        let wants = pod("p", requests(1, 1, 0).with("nvidia.com/mig-3g.20gb", 1));
        with(cluster(kinds, [Pool { limits, ..pool("gpu") }]), [wants])
    };
    let whole = planned(&of(4));
    let (_, said) = left(&whole);
    assert!(
        said.ends_with(
            "`poolwright plan --sharing mig` plans GPUs that are cut into such instances, but limit nvidia.com/gpu = 4 of pool `gpu` is \
             below the 8 that such a node uses; raise spec.limits too"
        ),
        "{said}"
    );
    let options = PlanOptions { sharing: Sharing::Mig { mixed: false }, ..PlanOptions::default() };
    let cut = |most: u64| plan(&of(most), at(10), &options, &mut NeverStop).unplaced.len();
    assert_eq!((cut(4), planned(&of(8)).unplaced.len(), cut(8)), (1, 1, 0), "both together help");
    let cheap = PoolLimits { usd_per_hour: Some(usd("5")), ..PoolLimits::default() };
    let short =
        plan(&of(4), at(10), &PlanOptions { limits: cheap, ..PlanOptions::default() }, &mut NeverStop);
    let limits = "but limit nvidia.com/gpu = 4 of pool `gpu` is below the 8 that such a node uses and limit usdPerHour = 5.00 over all \
                  pools is below the $21.95/h that such a node uses; raise these limits too";
    assert!(left(&short).1.ends_with(limits), "{}", left(&short).1);
}

#[test]
fn a_pool_that_cannot_be_used_is_the_whole_reason_only_if_mending_its_class_helps() {
    let of = |types: &[&str], wanted: &Pod, is_mended: bool| {
        let cpus = Pool { requirements: vec![is_in(TYPE, &["c7.xlarge"])], ..pool("cpu") };
        let mut second = Pool { requirements: vec![is_in(TYPE, types)], ..pool("second") };
        second.node_class.name = "second".into();
        let class = second.node_class.clone();
        let mut snapshot = with(cluster(aws(), [cpus, second]), [wanted.clone()]);
        let sold = if is_mended { Ok(Arc::new(aws())) } else { Err("no subnet matches".to_owned()) };
        snapshot.catalogues.insert(class, sold);
        snapshot
    };
    let mut of_model = pod("p", requests(1, 1, 1));
    of_model.spec.node_selector.insert("poolwright.dev/gpu-model".into(), "l4".into());
    let arm = {
        let mut arm = pod("p", requests(1, 1, 0));
        arm.spec.node_selector.insert("kubernetes.io/arch".into(), "arm64".into());
        arm
    };
    let pods = [
        pod("p", requests(1, 1, 1)),
        pod("p", requests(1, 1, 4)),
        pod("p", requests(1, 1, 8)),
        pod("p", requests(20, 1, 0)),
        pod("p", requests(1, 1, 0).with("amd.com/gpu", 1)),
        of_model,
        arm,
    ];
    for types in [["c7.xlarge"].as_slice(), &["g5.xlarge"], &["g5.12xlarge"], &["g6.xlarge"]] {
        for wanted in &pods {
            let plan = planned(&of(types, wanted, false));
            let (_, said) = left(&plan);
            let is_reason = said.ends_with("pool `second` cannot be used: no subnet matches");
            assert_eq!(is_reason, is_planned(&of(types, wanted, true)), "{types:?}: {said}");
        }
    }
}

#[test]
fn the_pool_whose_gpus_can_be_cut_is_named_to_a_pod_that_asks_for_an_instance_of_one() {
    let kinds = catalogue(vec![
        Kind("m7.large", capacity(4, 16, 0), None, &[("a", "0.20")]),
        Kind("p4d", capacity(96, 1152, 8), Some("a100-40gb"), &[("a", "21.95")]),
    ]);
    let of_type = |name: &str, kind: &str| Pool { requirements: vec![is_in(TYPE, &[kind])], ..pool(name) };
    let wants = pod("p", requests(1, 1, 0).with("nvidia.com/mig-3g.20gb", 1));
    let pools = [of_type("cpu", "m7.large"), of_type("gpu", "p4d")];
    let snapshot = with(cluster(kinds, pools), [wants]);
    let whole = planned(&snapshot);
    let (_, said) = left(&whole);
    assert!(
        said.starts_with("needs 1 nvidia.com/mig-3g.20gb, which no offering of pool `gpu` has"),
        "{said}"
    );
    assert!(nearest(&snapshot).contains("of pool gpu"), "{}", nearest(&snapshot));
    let options = PlanOptions { sharing: Sharing::Mig { mixed: false }, ..PlanOptions::default() };
    assert!(plan(&snapshot, at(10), &options, &mut NeverStop).unplaced.is_empty(), "the advice helps");
}

#[test]
fn a_limit_that_would_keep_the_pod_off_after_the_advised_label_is_named_with_it() {
    let of = |key: &str, value: &str, most: u64| {
        let kinds = catalogue(vec![
            Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")]),
            Kind("p4d", capacity(96, 1152, 8), Some("a100"), &[("a", "21.95")]),
        ]);
        let gpus = [(ResourceName::new(ResourceName::NVIDIA_GPU), most)].into();
        let limits = PoolLimits { resources: gpus, ..PoolLimits::default() };
        let mut wants = pod("p", requests(1, 1, 1));
        wants.spec.node_selector.insert(key.into(), value.into());
        with(cluster(kinds, [Pool { limits, ..pool("gpu") }]), [wants])
    };
    let (theirs, ours) =
        (("cloud.google.com/gke-accelerator", "nvidia-tesla-a100"), ("poolwright.dev/gpu-model", "a100"));
    let limit = "besides, limit nvidia.com/gpu = 4 of pool `gpu` is below the 8 that the smallest node which fits it uses; raise spec.limits";
    for (key, value) in [theirs, ("poolwright.dev/gpu-model", "A100")] {
        let plan = planned(&of(key, value, 4));
        let (_, said) = left(&plan);
        assert!(said.contains("a100`") && said.ends_with(limit), "{said}");
        let higher = planned(&of(key, value, 8));
        assert!(!left(&higher).1.contains("limit"), "{}", left(&higher).1);
    }
    assert!(!is_planned(&of(ours.0, ours.1, 4)), "the limit keeps it off");
    assert!(is_planned(&of(ours.0, ours.1, 8)), "both together help");
}

#[test]
fn a_limit_that_would_keep_the_pod_off_after_the_advised_setting_is_named_with_it() {
    const EFA: &str = "vpc.amazonaws.com/efa";
    let of = |most: u64, is_set: bool, types: &[&str]| {
        let large = capacity(96, 1152, 8).with(EFA, if is_set { 4 } else { 0 });
        let kinds = catalogue(vec![
            Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")]),
            Kind("p4d", large, Some("a100"), &[("a", "21.95")]),
        ]);
        let adapters = BTreeMap::from([("p4d".into(), 4), ("g5.xlarge".into(), 0)]);
        let kinds = kinds.with_addable(EFA, "spec.efa: Auto").with_added(EFA, adapters);
        let gpus = [(ResourceName::new(ResourceName::NVIDIA_GPU), most)].into();
        let limits = PoolLimits { resources: gpus, ..PoolLimits::default() };
        let gpu = Pool { limits, requirements: vec![is_in(TYPE, types)], ..pool("gpu") };
        with(cluster(kinds, [gpu]), [pod("p", requests(1, 1, 1).with(EFA, 1))])
    };
    let both: &[&str] = &["g5.xlarge", "p4d"];
    let setting = "write `spec.efa: Auto` in KwokNodeClass `default`, which adds it to nodes of the types that support it";
    let short = planned(&of(4, false, both));
    let limit = "limit nvidia.com/gpu = 4 of pool `gpu` is below the 8 that the smallest node which fits it uses; raise spec.limits";
    assert!(left(&short).1.ends_with(&format!("{setting}; besides, {limit}")), "{}", left(&short).1);
    let enough = planned(&of(8, false, both));
    assert!(left(&enough).1.ends_with(setting), "{}", left(&enough).1);
    assert!(!is_planned(&of(4, true, both)), "the limit keeps it off");
    assert!(is_planned(&of(8, true, both)), "both together help");
    let narrow = planned(&of(8, false, &["g5.xlarge"]));
    assert!(
        left(&narrow).1.contains(&format!("{setting}; besides, no type that the pool may buy")),
        "{}",
        left(&narrow).1
    );
    assert!(!is_planned(&of(8, true, &["g5.xlarge"])), "the setting alone does not help");
}

#[test]
fn a_limit_that_other_pods_use_up_is_named_with_the_type_that_a_pool_is_advised_to_buy() {
    let of = |types: &[&str], money: &str| {
        let limits = PoolLimits { usd_per_hour: Some(usd(money)), ..PoolLimits::default() };
        let cpus = Pool { requirements: vec![is_in(TYPE, types)], limits, ..pool("cpu") };
        let mut other = Pod { priority: 1, ..pod("other", requests(3, 1, 0)) };
        other.spec.node_selector.insert(TYPE.into(), "c7.xlarge".into());
        with(cluster(aws(), [cpus]), [other, pod("p", requests(1, 1, 4))])
    };
    let (narrow, wide): (&[&str], &[&str]) = (&["c7.xlarge"], &["c7.xlarge", "g5.12xlarge"]);
    let plan = planned(&of(narrow, "5.7"));
    let (_, said) = left(&plan);
    let limit = "; besides, limit usdPerHour = 5.70 of pool `cpu` leaves too little (in use or on order: ";
    assert!(said.contains("may buy g5.12xlarge ($5.67/h)") && said.contains(limit), "{said}");
    let enough = planned(&of(narrow, "5.9"));
    assert!(!left(&enough).1.contains("limit"), "{}", left(&enough).1);
    assert!(!is_planned(&of(wide, "5.7")), "the limit keeps it off");
    assert!(is_planned(&of(wide, "5.9")), "both together help");
}
