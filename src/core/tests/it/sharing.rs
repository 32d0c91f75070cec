//! Tests of shared and partitioned GPUs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use poolwright_catalog::ResourceName;
use poolwright_core::plan::{Plan, PlanOptions, PlannedGpu, Sharing, UnplacedReason, plan};
use poolwright_core::{
    Action, Buffer, Namespaces, Node, Pod, PodAffinityTerm, PodGroup, Pool, PoolLimits, PoolName, Snapshot,
    Subject, Uid, Units, why,
};
use poolwright_solver::NeverStop;
use poolwright_terms::Reason;

use crate::kit::*;

fn planned_with(snapshot: &Snapshot, sharing: Sharing) -> Plan {
    let options = PlanOptions { sharing, ..PlanOptions::default() };
    let plan = plan(snapshot, at(10), &options, &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    plan
}

/// Returns a pod with a share of a GPU, in thousandths.
fn part(name: &str, milli: u32) -> Pod {
    let mut pod = pod(name, requests(1, 1, 0));
    pod.spec.gpu_share = Some(milli);
    pod
}

fn named(name: &str, instance: &str, count: u64) -> Pod {
    pod(name, requests(1, 1, 0).with(format!("nvidia.com/mig-{instance}").as_str(), count))
}

/// Returns one type with eight A100 of 40 GB, and one with an A10G, which cannot be partitioned.
fn cuttable() -> poolwright_catalog::Catalogue {
    catalogue(vec![
        Kind("p4d", capacity(96, 1000, 8), Some("a100"), &[("a", "20")]),
        Kind("a2", capacity(12, 80, 1), Some("a100"), &[("a", "3")]),
        Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1")]),
    ])
}

#[test]
fn parts_of_gpus_count_as_whole_ones_until_they_may_be_shared() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), ["a", "b", "c"].map(|name| part(name, 300)));
    assert_eq!(planned_with(&snapshot, Sharing::Whole).claims.len(), 3);
    let plan = planned_with(&snapshot, Sharing::Shared);
    assert_eq!(bought(&plan).len(), 1);
    let [PlannedGpu::Shared(on)] = &plan.claims[0].gpus[..] else { panic!("{:?}", plan.claims[0].gpus) };
    let shares: BTreeMap<_, _> = on.iter().map(|share| (share.pod.name(), share.milli)).collect();
    assert_eq!(shares, BTreeMap::from([("a".into(), 300), ("b".into(), 300), ("c".into(), 300)]));
}

#[test]
fn a_share_stays_on_one_gpu_and_a_whole_gpu_is_not_shared() {
    let mut pods = ["a", "b", "c"].map(|name| part(name, 600)).to_vec();
    pods.push(pod("whole", requests(1, 1, 1)));
    let plan = planned_with(&with(cluster(aws(), [pool("gpu")]), pods), Sharing::Shared);
    let gpus: Vec<_> = plan.claims.iter().flat_map(|claim| &claim.gpus).collect();
    let whole = gpus.iter().filter(|gpu| matches!(gpu, PlannedGpu::Whole(pod) if pod.name() == "whole"));
    assert_eq!(whole.count(), 1);
    let alone = gpus.iter().filter(|gpu| matches!(gpu, PlannedGpu::Shared(on) if on.len() == 1));
    assert_eq!(alone.count(), 3);
}

#[test]
fn a_part_gets_the_smallest_instance_with_as_much_compute() {
    let pods = [part("small", 100), part("half", 420), part("more", 500)];
    let plan = planned_with(&with(cluster(cuttable(), [pool("gpu")]), pods), Sharing::Mig { mixed: false });
    let mut got: BTreeMap<Cow<'_, str>, &str> = BTreeMap::new();
    for gpu in plan.claims.iter().flat_map(|claim| &claim.gpus) {
        if let PlannedGpu::Mig(instances) = gpu {
            got.extend(instances.iter().map(|one| (one.pod.name(), one.name.as_str())));
        }
    }
    assert_eq!(
        got,
        BTreeMap::from([("small".into(), "1g.5gb"), ("half".into(), "3g.20gb"), ("more".into(), "4g.20gb")])
    );
    assert_eq!(bought(&plan).len(), 2, "4g and 3g fill one GPU, so that the third needs another");
}

#[test]
fn a_limit_is_told_with_what_a_node_uses_whose_gpus_serve_the_pods() {
    let told = |kinds, most: &str, pods: Vec<Pod>, sharing| {
        let limits = PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() };
        let plan = planned_with(&with(cluster(kinds, [Pool { limits, ..pool("gpu") }]), pods), sharing);
        let left: Vec<String> = plan.unplaced.into_iter().map(|left| left.message).collect();
        left.join("; ")
    };
    let instances = (0..15).map(|at| named(&format!("p{at}"), "1g.5gb", 1)).collect();
    let said = told(cuttable(), "7", instances, Sharing::Mig { mixed: false });
    assert!(said.contains("in use or on order: $6.00/h; one more node uses at least $3.00/h"), "{said}");
    let shares = ["a", "b", "c"].map(|name| part(name, 600)).to_vec();
    let said = told(aws(), "2.50", shares, Sharing::Shared);
    assert!(said.contains("in use or on order: $2.02/h; one more node uses at least $1.01/h"), "{said}");
}

/// Returns the pool with a limit on the smallest instances.
fn limited(most: u64) -> Pool {
    let resources = [(ResourceName::new("nvidia.com/mig-1g.5gb"), most)].into();
    Pool { limits: PoolLimits { resources, ..PoolLimits::default() }, ..pool("gpu") }
}

#[test]
fn a_limit_on_instances_counts_a_new_node_as_all_that_its_gpus_could_be_cut_into() {
    let planned = |most: u64, pods: Vec<Pod>| {
        planned_with(&with(cluster(cuttable(), [limited(most)]), pods), Sharing::Mig { mixed: false })
    };
    let instances = |count: u32| (0..count).map(|at| named(&format!("p{at}"), "1g.5gb", 1)).collect();
    let plan = planned(7, instances(8));
    assert_eq!((plan.claims.len(), plan.counts.unplaced), (1, 1));
    let said = &plan.unplaced[0].message;
    let reached = "limit nvidia.com/mig-1g.5gb = 7 of pool `gpu` is reached (in use or on order: 7); raise spec.limits (a new node \
                   with such instances counts as all of them that its GPUs could be cut into)";
    assert!(said.contains(reached), "{said}");
    assert!(plan.baselines.one_pod_per_node.unplaced > 0, "a node for each pod would be beyond the limit");
    let plan = planned(14, instances(8));
    assert_eq!((plan.claims.len(), plan.counts.unplaced), (2, 0));
    // Nodes without such instances do not count.
    let plan = planned(6, vec![named("other", "2g.10gb", 1), named("small", "1g.5gb", 1)]);
    assert_eq!(bought(&plan), ["a2: other"]);
    let said = &plan.unplaced[0].message;
    let below = "limit nvidia.com/mig-1g.5gb = 6 of pool `gpu` is below the 7 that the smallest node which fits it uses";
    assert!(said.contains(below), "{said}");
}

#[test]
fn a_node_counts_towards_a_limit_on_instances_only_if_its_gpus_are_cut_into_some_of_them() {
    let first = Pod { priority: 10, ..named("first", "2g.10gb", 3) };
    let pods = [first, named("second", "1g.5gb", 7)];
    let plan = planned_with(&with(cluster(cuttable(), [limited(7)]), pods), Sharing::Mig { mixed: false });
    assert_eq!((plan.claims.len(), plan.counts.unplaced), (2, 0), "{:?}", plan.unplaced);
}

#[test]
fn a_gang_whose_pods_ask_for_instances_is_told_what_all_of_it_takes_of_a_limit_on_them() {
    let of = |most: u64| {
        let group = PodGroup {
            key: object_key("train"),
            uid: Uid("train".into()),
            min_count: Some(2),
            roles: vec![],
            unmodelled: vec![],
            stands_for: None,
            held: None,
        };
        let member = |name: &str| Pod { group: Some("train".into()), ..named(name, "1g.5gb", 7) };
        let pods = [member("p"), member("q")];
        let snapshot = with(with(cluster(cuttable(), [limited(most)]), [group]), pods);
        planned_with(&snapshot, Sharing::Mig { mixed: false })
    };
    // With 13, one of the pods would have a node.
    for most in [6, 13] {
        let plan = of(most);
        let words = format!(
            "limit nvidia.com/mig-1g.5gb = {most} of pool `gpu` is too low for its gang (it would take up to 14 at once); raise \
             spec.limits (14 is enough) (a new node with such instances counts as all of them that its GPUs could be cut into)"
        );
        assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 2));
        for left in &plan.unplaced {
            assert!(left.message.ends_with(&words), "{}", left.message);
        }
    }
    let enough = of(14);
    assert_eq!((enough.claims.len(), enough.unplaced.len()), (2, 0), "the advice helps");
}

#[test]
fn a_pod_with_instances_that_must_be_with_others_is_told_of_the_limit_on_them_besides_its_selector() {
    let of = |most: u64| {
        let zone = "topology.kubernetes.io/zone";
        let kinds = vec![
            Kind("a2", capacity(12, 80, 1), Some("a100"), &[("a", "3"), ("b", "3")]),
            Kind("m7.large", capacity(4, 16, 0), None, &[("a", "0.20"), ("b", "0.20")]),
        ];
        let mut full = node("n", capacity(1, 1, 0));
        full.labels.insert(zone.into(), "a".into());
        let labels = [("app".to_owned(), "db".to_owned())].into();
        let db = bound(Pod { labels, ..pod("db", requests(1, 1, 0)) }, "n");
        let mut near = named("p", "1g.5gb", 1);
        near.spec.affinity.push(PodAffinityTerm {
            topology_key: zone.into(),
            namespaces: Namespaces::Named(["default".to_owned()].into()),
            selector: Some(vec![is_in("app", &["db"])]),
        });
        near.spec.node_selector.insert(zone.into(), "b".into());
        let snapshot = with(with(cluster(catalogue(kinds), [limited(most)]), [full]), [db, near]);
        planned_with(&snapshot, Sharing::Mig { mixed: false }).unplaced.remove(0).message
    };
    let drop = "drop `topology.kubernetes.io/zone` from its nodeSelector";
    let (alone, both) = (of(7), of(6));
    assert!(alone.contains(&format!("{drop}, or change the rule")), "{alone}");
    assert!(both.contains(&format!("{drop}, and raise limit nvidia.com/mig-1g.5gb = 6")), "{both}");
}

#[test]
fn instances_that_a_node_advertises_count_towards_a_limit_on_them() {
    let told = |most: u64| {
        let allocatable = capacity(4, 16, 0).with("nvidia.com/mig-1g.5gb", 7);
        let snapshot = with(cluster(cuttable(), [limited(most)]), [initialized()]);
        let snapshot = with(snapshot, [Node { allocatable, ..claimed_node() }]);
        let pods = [bound(named("there", "1g.5gb", 7), "n"), named("waits", "1g.5gb", 1)];
        planned_with(&with(snapshot, pods), Sharing::Mig { mixed: false }).unplaced
    };
    let said = &told(7)[0].message;
    assert!(said.contains("is reached (in use or on order: 7); raise spec.limits or free nodes"), "{said}");
    assert_eq!(told(14), []);
}

#[test]
fn instances_are_asked_for_by_name() {
    let snapshot = with(cluster(cuttable(), [pool("gpu")]), [named("three", "2g.10gb", 3)]);
    let plan = planned_with(&snapshot, Sharing::Mig { mixed: false });
    assert_eq!(plan.claims.len(), 1);
    let [PlannedGpu::Mig(instances)] = &plan.claims[0].gpus[..] else { panic!("{:?}", plan.claims[0].gpus) };
    assert_eq!(instances.iter().map(|one| one.start).collect::<Vec<_>>(), [0, 2, 4]);
    assert!(instances.iter().all(|one| one.pod.name() == "three" && one.name == "2g.10gb"));
}

#[test]
fn a_name_means_the_instance_of_the_gpus_that_the_pool_may_buy() {
    let kinds = catalogue(vec![
        Kind("p4d", capacity(96, 1000, 8), Some("a100-40gb"), &[("a", "20")]),
        Kind("p4de", capacity(96, 1000, 8), Some("a100-80gb"), &[("a", "30")]),
    ]);
    let only = |kind: &str| Pool {
        requirements: vec![is_in("node.kubernetes.io/instance-type", &[kind])],
        ..pool("gpu")
    };
    let plan_of = |kind: &str, instance: &str| {
        let snapshot = with(cluster(kinds.clone(), [only(kind)]), [named("one", instance, 1)]);
        planned_with(&snapshot, Sharing::Mig { mixed: false })
    };
    for kind in ["p4d", "p4de"] {
        let plan = plan_of(kind, "1g.10gb");
        assert_eq!(bought(&plan), [format!("{kind}: one")]);
        let [PlannedGpu::Mig(instances), ..] = &plan.claims[0].gpus[..] else {
            panic!("{:?}", plan.claims[0].gpus)
        };
        assert_eq!(instances[0].name, "1g.10gb");
    }
    assert_eq!(
        plan_of("p4d", "1g.20gb").unplaced[0].message,
        "needs 1 x nvidia.com/mig-1g.20gb on one node, but no node that it may use can be cut into that many; widen the requirements of pool \
         `gpu` so that it may buy p4de ($30.00/h), which `node.kubernetes.io/instance-type In [p4d]` excludes"
    );
}

#[test]
fn a_limit_that_other_pods_use_up_is_named_with_the_gpus_that_a_pool_is_advised_to_buy() {
    let kind = "node.kubernetes.io/instance-type";
    let planned = |types: &[&str], money: &str| {
        let kinds = catalogue(vec![
            Kind("p4d", capacity(96, 1000, 8), Some("a100-40gb"), &[("a", "20")]),
            Kind("p4de", capacity(96, 1000, 8), Some("a100-80gb"), &[("a", "30")]),
        ]);
        let limits = PoolLimits { usd_per_hour: Some(usd(money)), ..PoolLimits::default() };
        let gpu = Pool { requirements: vec![is_in(kind, types)], limits, ..pool("gpu") };
        let mut other = Pod { priority: 1, ..named("other", "1g.10gb", 1) };
        other.spec.node_selector.insert(kind.into(), "p4d".into());
        let snapshot = with(cluster(kinds, [gpu]), [other, named("one", "1g.20gb", 1)]);
        planned_with(&snapshot, Sharing::Mig { mixed: false }).unplaced
    };
    let said = &planned(&["p4d"], "40")[0].message;
    let limit =
        "; besides, limit usdPerHour = 40.00 of pool `gpu` leaves too little (in use or on order: $20.00/h; ";
    assert!(said.contains("so that it may buy p4de ($30.00/h)") && said.contains(limit), "{said}");
    let enough = &planned(&["p4d"], "50")[0].message;
    assert!(!enough.contains("limit"), "{enough}");
    assert!(!planned(&["p4d", "p4de"], "40").is_empty(), "the limit keeps it off");
    assert!(planned(&["p4d", "p4de"], "50").is_empty(), "both together help");
}

#[test]
fn a_name_that_two_boards_have_is_served_by_either_at_its_own_placements() {
    let kinds = catalogue(vec![
        Kind("a2", capacity(16, 80, 1), Some("a100-40gb"), &[("a", "3")]),
        Kind("a2-ultra", capacity(16, 160, 1), Some("a100-80gb"), &[("a", "5")]),
    ]);
    // The smaller board has four such instances of two slices each, the larger one seven of one slice.
    for (number, expected) in [(4, vec!["a2"]), (7, vec!["a2-ultra"]), (11, vec!["a2", "a2-ultra"])] {
        let pods = (0..number).map(|number| named(&format!("p{number}"), "1g.10gb", 1));
        let snapshot = with(cluster(kinds.clone(), [pool("gpu")]), pods);
        let plan = planned_with(&snapshot, Sharing::Mig { mixed: false });
        assert_eq!(plan.unplaced, []);
        let mut types: Vec<String> =
            plan.claims.iter().map(|claim| claim.instance_type().to_string()).collect();
        types.sort();
        assert_eq!(types, expected, "{number} pods");
        for claim in &plan.claims {
            let [PlannedGpu::Mig(instances)] = &claim.gpus[..] else { panic!("{:?}", claim.gpus) };
            assert!(instances.iter().all(|one| one.name == "1g.10gb"), "{instances:?}");
            let starts: Vec<u8> = instances.iter().map(|one| one.start).collect();
            let is_small = claim.instance_type().to_string() == "a2";
            assert_eq!(starts, if is_small { vec![0, 2, 4, 6] } else { vec![0, 1, 2, 3, 4, 5, 6] });
        }
    }
}

#[test]
fn smaller_and_larger_instances_of_a_board_are_planned_beside_those_that_another_board_names_too() {
    let kinds = catalogue(vec![
        Kind("a2", capacity(16, 80, 1), Some("a100-40gb"), &[("a", "3")]),
        Kind("a2-ultra", capacity(16, 160, 1), Some("a100-80gb"), &[("a", "50")]),
    ]);
    let pods = [named("pair", "1g.10gb", 1), named("small", "1g.5gb", 1), named("half", "3g.20gb", 1)];
    let plan = planned_with(&with(cluster(kinds, [pool("gpu")]), pods), Sharing::Mig { mixed: false });
    assert_eq!(plan.unplaced, []);
    let mut names: Vec<&str> = Vec::new();
    for gpu in plan.claims.iter().flat_map(|claim| &claim.gpus) {
        if let PlannedGpu::Mig(instances) = gpu {
            names.extend(instances.iter().map(|one| one.name.as_str()));
        }
    }
    names.sort_unstable();
    assert_eq!(names, ["1g.10gb", "1g.5gb", "3g.20gb"]);
}

#[test]
fn an_instance_that_nothing_on_offer_has_is_told_and_the_rest_is_planned() {
    let pods = [named("odd", "1g.99gb", 1), named("good", "1g.5gb", 1)];
    let plan = planned_with(&with(cluster(cuttable(), [pool("gpu")]), pods), Sharing::Mig { mixed: false });
    assert_eq!(plan.claims.len(), 1);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoOfferingFits);
    assert_eq!(
        plan.unplaced[0].message,
        "asks for nvidia.com/mig-1g.99gb, and no GPU on offer can be cut into such instances"
    );
}

#[test]
fn cut_and_whole_gpus_share_a_node_only_where_that_is_allowed() {
    let catalogue = catalogue(vec![Kind("p4d", capacity(96, 1000, 8), Some("a100"), &[("a", "20")])]);
    let pods = || [pod("whole", requests(1, 1, 2)), part("part", 100)];
    let snapshot = with(cluster(catalogue, [pool("gpu")]), pods());
    assert_eq!(planned_with(&snapshot, Sharing::Mig { mixed: false }).claims.len(), 2);
    let plan = planned_with(&snapshot, Sharing::Mig { mixed: true });
    assert_eq!(plan.claims.len(), 1);
    let whole = plan.claims[0].gpus.iter().filter(|gpu| matches!(gpu, PlannedGpu::Whole(_)));
    assert_eq!(whole.count(), 2);
}

#[test]
fn free_instances_of_nodes_that_are_there_come_first() {
    let mut advertised = capacity(8, 64, 0);
    advertised.set(ResourceName::new("nvidia.com/mig-1g.5gb"), 1);
    let snapshot =
        with(cluster(cuttable(), [pool("gpu")]), [named("a", "1g.5gb", 1), named("b", "1g.5gb", 1)]);
    let snapshot = with(snapshot, [node("there", advertised)]);
    let plan = planned_with(&snapshot, Sharing::Mig { mixed: false });
    assert_eq!((plan.placements.len(), plan.claims.len()), (1, 1));
}

fn buffered_instances(instance: &str) -> Snapshot {
    let requests = requests(1, 1, 0).with(format!("nvidia.com/mig-{instance}").as_str(), 1);
    let pool =
        Pool { buffer: vec![Buffer { units: Units::Fixed(3), requests, window: None }], ..pool("gpu") };
    cluster(cuttable(), [pool])
}

#[test]
fn a_buffer_of_instances_is_kept_where_gpus_may_be_cut() {
    let plan = planned_with(&buffered_instances("1g.5gb"), Sharing::Mig { mixed: false });
    assert_eq!(bought(&plan), ["a2: "]);
    let [PlannedGpu::Mig(instances)] = &plan.claims[0].gpus[..] else { panic!("{:?}", plan.claims[0].gpus) };
    assert!(instances.len() == 3 && instances.iter().all(|one| one.name == "1g.5gb"), "{instances:?}");
    assert_eq!(plan.pools[&PoolName("gpu".into())].buffer_unmet, None);
}

#[test]
fn a_pool_says_that_nothing_is_kept_for_units_that_ask_for_instances_of_whole_gpus() {
    let name = PoolName("gpu".into());
    for (instance, sharing) in
        [("1g.5gb", Sharing::Whole), ("1g.5gb", Sharing::Shared), ("1g.99gb", Sharing::Mig { mixed: false })]
    {
        let snapshot = buffered_instances(instance);
        let plan = planned_with(&snapshot, sharing);
        assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 0), "no pod waits");
        let said = plan.pools[&name].buffer_unmet.clone().unwrap();
        assert!(said.starts_with("spec.buffer[0]: no room is kept for 3 units: "), "{said}");
        assert!(said.contains(&format!("nvidia.com/mig-{instance}")), "{said}");
        let events = why::events::of_plan(&plan).into_iter().filter_map(|action| match action {
            Action::RecordEvent(event) => Some((event.subject, event.reason, event.message)),
            _ => None,
        });
        let told = (Subject::Pool(name.clone()), Reason::BufferUnmet, said.clone());
        assert_eq!(events.collect::<Vec<_>>(), [told]);
        let explained = why::pool(&snapshot, &plan, &name).unwrap();
        assert!(explained.iter().any(|line| line.contains(&said)), "{explained:?}");
    }
}

#[test]
fn a_pod_that_asks_for_an_instance_is_told_to_cut_gpus_only_where_that_places_it() {
    let snapshot = |pod: Pod| with(cluster(cuttable(), [pool("gpu")]), [pod]);
    let told = |pod: Pod, sharing| planned_with(&snapshot(pod), sharing).unplaced[0].message.clone();
    let advice = "`poolwright plan --sharing mig` plans GPUs that are cut into such instances";
    let small = || named("a", "1g.5gb", 1);
    for sharing in [Sharing::Whole, Sharing::Shared] {
        assert!(told(small(), sharing).ends_with(advice), "{}", told(small(), sharing));
        let mut large = small();
        large.spec.requests.set(ResourceName::CPU, 200_000);
        assert!(!told(large.clone(), sharing).contains("--sharing mig"), "{}", told(large, sharing));
        assert!(!told(named("a", "1g.99gb", 1), sharing).contains("--sharing mig"));
    }
    assert_eq!(planned_with(&snapshot(small()), Sharing::Mig { mixed: false }).unplaced, []);
}
