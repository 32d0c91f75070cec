//! Tests that advice counts limits and processors: a change is advised only if it helps, or with what else is needed.

use poolwright_catalog::offering::CatalogueOrigin;
use poolwright_catalog::{Arch, Catalogue};
use poolwright_core::*;

use crate::kit::*;
use crate::pod_groups::{nodes, why};

const ARCH: &str = "kubernetes.io/arch";
const TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Returns why the only pod is left out; `None` if it is planned.
fn told(snapshot: &Snapshot) -> Option<String> {
    planned(snapshot).unplaced.into_iter().next().map(|left| left.message)
}

/// Returns a cluster whose pool may cost so much, and this pod.
fn within(most: &str, wanted: Pod) -> Snapshot {
    let limits = PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() };
    with(cluster(aws(), [Pool { limits, ..pool("gpu") }]), [wanted])
}

#[test]
fn a_rule_is_to_be_relaxed_only_if_limits_allow_the_node_that_would_hold_the_pod_then() {
    let wants = |rules: &[(&str, &str)]| {
        let mut wanted = pod("p", requests(1, 1, 1));
        wanted
            .spec
            .node_selector
            .extend(rules.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        wanted
    };
    let (large, zone) = ((TYPE, "g5.12xlarge"), (ZONE, "b"));
    let said = |most: &str| told(&within(most, wants(&[large, zone]))).expect("no offering has both");
    assert!(said("9").ends_with("; relax one of them"), "{}", said("9"));
    let relaxed = format!("; relax `{TYPE} g5.12xlarge`");
    assert!(said("2").ends_with(&relaxed), "{}", said("2"));
    assert!(told(&within("2", wants(&[large]))).is_some(), "without the zone, the limit keeps it out");
    assert_eq!(told(&within("2", wants(&[zone]))), None, "the advice helps");
    let both = format!("{relaxed}; besides, limit usdPerHour = 1.00 of pool `gpu` is below the $1.01/h");
    assert!(said("1").contains(&both), "{}", said("1"));
    assert!(told(&within("1", wants(&[zone]))).is_some(), "both are needed");
}

#[test]
fn a_pod_is_told_to_ask_for_what_a_node_within_the_limits_has() {
    let of = |cpu: u64, most: &str| told(&within(most, pod("p", requests(cpu, 1, 0))));
    let said = |most: &str| of(60, most).expect("no type has so much");
    assert!(said("9").ends_with("so ask for at most 48"), "{}", said("9"));
    assert!(of(48, "2").is_some(), "the limit keeps the large node away");
    let less = "so ask for at most 4, because larger nodes are beyond limits";
    assert!(said("2").ends_with(less), "{}", said("2"));
    assert_eq!(of(4, "2"), None, "the advice helps");
    assert!(
        said("0.1").contains("so ask for at most 48; besides, limit usdPerHour = 0.1"),
        "{}",
        said("0.1")
    );
}

/// Returns a catalogue with a small type, and two with a GPU, the cheaper of which has Arm processors.
fn with_arm(has_other: bool) -> Catalogue {
    let mut kinds = vec![
        Kind("c7.xlarge", capacity(4, 8, 0), None, &[("a", "0.17")]),
        Kind("g5g.xlarge", capacity(4, 8, 1), Some("t4g"), &[("a", "0.42")]),
    ];
    if has_other {
        kinds.push(Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")]));
    }
    let sold = catalogue(kinds);
    let types = sold.types().values().cloned().map(|mut kind| {
        if kind.name.as_str() == "g5g.xlarge" {
            kind.arch = Arch::Arm64;
        }
        kind
    });
    let origin = CatalogueOrigin { source: "test".into(), as_of: None };
    Catalogue::new(origin, types.collect(), sold.offerings().to_vec())
}

#[test]
fn a_type_with_arm_processors_is_advised_only_to_pods_that_ask_for_them() {
    let of = |has_other: bool, types: &[&str], wanted: Pod| {
        let narrow = Pool { requirements: vec![is_in(TYPE, types)], ..pool("cpu") };
        told(&with(cluster(with_arm(has_other), [narrow]), [wanted]))
    };
    let silent = || pod("p", requests(1, 1, 1));
    let mut asks = silent();
    asks.spec.node_selector.insert(ARCH.into(), "arm64".into());
    let narrow: &[&str] = &["c7.xlarge"];
    let said = of(true, narrow, silent()).expect("the pool has no GPUs");
    assert!(said.contains("may buy g5.xlarge") && !said.contains("g5g"), "{said}");
    let said = of(false, narrow, silent()).expect("the pool has no GPUs");
    assert!(said.contains("if its images run on Arm, select `kubernetes.io/arch: arm64`"), "{said}");
    assert!(!said.contains("g5g"), "{said}");
    let said = of(true, narrow, asks.clone()).expect("the pool has no Arm");
    assert!(said.contains("may buy g5g.xlarge"), "{said}");
    assert_eq!(of(true, &["c7.xlarge", "g5g.xlarge"], asks), None, "the advice helps");
}

#[test]
fn a_gang_is_told_of_the_limits_that_keep_it_out_besides_a_rule_about_other_pods() {
    let of = |most: u64, is_apart: bool| {
        let group = PodGroup {
            key: object_key("train"),
            uid: Uid("train".into()),
            min_count: Some(3),
            roles: vec![],
            unmodelled: vec![],
            stands_for: None,
            held: None,
        };
        let pods = ["p", "q", "r"].map(|name| {
            let labels = [("app".to_owned(), "web".to_owned())].into();
            let mut one = Pod { labels, group: Some("train".into()), ..pod(name, requests(3, 12, 1)) };
            one.spec.anti_affinity.extend(is_apart.then(|| PodAffinityTerm {
                topology_key: ZONE.into(),
                namespaces: Namespaces::Named(["default".to_owned()].into()),
                selector: Some(vec![is_in("app", &["web"])]),
            }));
            one
        });
        planned(&with(with(nodes(most), [group]), pods))
    };
    let short = of(2, true);
    assert_eq!(short.claims, []);
    let (_, said) = why(&short, "p");
    let limit = "; besides, limit nodes = 2 of pool `gpu` is too low for its gang (it would take up to 3 at once); raise spec.limits (3 is \
                 enough)";
    assert!(said.contains("anti-affinity") && said.ends_with(limit), "{said}");
    let (_, said) = why(&of(3, true), "p");
    assert!(!said.contains("limit"), "the rule alone keeps it out: {said}");
    assert_eq!(of(2, false).claims, [], "the limit alone keeps it out");
    assert_eq!(names(&of(3, false)).len(), 3, "both together help");
}

#[test]
fn a_pod_that_must_be_with_others_is_told_of_the_limit_that_keeps_it_from_them_besides_its_selector() {
    let of = |most: &str, zone: &str| {
        let kinds = vec![Kind("m7.large", capacity(4, 16, 0), None, &[("a", "0.20"), ("b", "0.20")])];
        let limits = PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() };
        let mut full = node("n", capacity(1, 1, 0));
        full.labels.insert(ZONE.into(), "a".into());
        let labels = [("app".to_owned(), "db".to_owned())].into();
        let db = bound(Pod { labels, ..pod("db", requests(1, 1, 0)) }, "n");
        let mut near = pod("p", requests(1, 1, 0));
        near.spec.affinity.push(PodAffinityTerm {
            topology_key: ZONE.into(),
            namespaces: Namespaces::Named(["default".to_owned()].into()),
            selector: Some(vec![is_in("app", &["db"])]),
        });
        near.spec.node_selector.insert(ZONE.into(), zone.into());
        told(&with(with(cluster(catalogue(kinds), [Pool { limits, ..pool("cpu") }]), [full]), [db, near]))
    };
    let drop = format!("drop `{ZONE}` from its nodeSelector");
    let alone = of("9", "b").expect("the database is in zone a");
    assert!(alone.contains(&format!("{drop}, or change the rule")), "{alone}");
    let both = of("0.15", "b").expect("the database is in zone a");
    assert!(both.contains(&format!("{drop}, and raise limit usdPerHour = 0.15")), "{both}");
    assert!(of("0.15", "a").is_some() && of("9", "a").is_none(), "both together help");
}
