//! Measures one attempt of the simulated scheduler on 200 nodes in four zones with 1,000 pods.
//!
//! `cargo run --release -p poolwright-sim --example attempts`

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::{
    Namespaces, Node, Operator, Pod, PodAffinityTerm, PodKey, PodSpec, Preferences, Requirement,
    TopologySpreadConstraint, Weighted,
};
use poolwright_sim::scheduler::{Cluster, MayPreempt, Scheduler};
use poolwright_terms::labels::{HOSTNAME, ZONE};

const NODES: usize = 200;
const PODS: usize = 1000;
const ATTEMPTS: usize = 1000;

fn main() {
    let mut cluster = Cluster::default();
    for at in 0..NODES {
        cluster.set_node(Arc::new(node(at)));
    }
    for at in 0..PODS {
        let mut there = pod(&format!("there{at}"), at % 20);
        if at % 10 == 0 {
            there.spec.anti_affinity = vec![term(at % 20, HOSTNAME)];
        }
        cluster.assume(&there, &format!("n{:03}", at % NODES));
    }
    let with = |change: fn(&mut PodSpec)| {
        let mut pod = pod("new", 3);
        change(&mut pod.spec);
        pod
    };
    tell("without rules", &cluster, &with(|_| {}));
    tell("spread over zones", &cluster, &with(|spec| spec.spreads = vec![spread()]));
    tell("with affinity", &cluster, &with(|spec| spec.affinity = vec![term(4, ZONE)]));
    tell("with anti-affinity", &cluster, &with(|spec| spec.anti_affinity = vec![term(3, HOSTNAME)]));
    let all = with(|spec| {
        spec.spreads = vec![spread()];
        spec.affinity = vec![term(4, ZONE)];
        spec.anti_affinity = vec![term(3, HOSTNAME)];
        let preference = Weighted { weight: 10, term: term(5, ZONE) };
        let preferences =
            Preferences { affinity: vec![preference], spreads: vec![spread()], ..Preferences::default() };
        spec.preferences = preferences.some();
    });
    tell("with all of these, and preferences", &cluster, &all);
    let huge = with(|spec| spec.requests.set(ResourceName::CPU, 1 << 30));
    tell("that fits nowhere", &cluster, &huge);
    let mut important = with(|spec| spec.requests.set(ResourceName::CPU, 63_000));
    important.priority = 9;
    tell("that must evict others", &cluster, &important);
}

fn tell(what: &str, cluster: &Cluster, pod: &Pod) {
    let scheduler = Scheduler::default();
    let mut took: Vec<Duration> = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "it measures")]
    let now = Instant::now;
    for _ in 0..ATTEMPTS {
        let began = now();
        let outcome = scheduler.schedule(black_box(cluster), pod, MayPreempt::LessImportant, &mut |_| 0);
        black_box(outcome.expect("nothing in it is unknown"));
        took.push(began.elapsed());
    }
    took.sort();
    let of_a_hundred = |at: usize| took[took.len() * at / 100].as_micros();
    println!("a pod {what}: {} µs (90 of 100 at most {} µs)", of_a_hundred(50), of_a_hundred(90));
}

fn node(at: usize) -> Node {
    let zone = ["a", "b", "c", "d"][at % 4];
    let name = format!("n{at:03}");
    let labels = [
        (HOSTNAME, name.as_str()),
        (ZONE, zone),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/os", "linux"),
        ("node.kubernetes.io/instance-type", "c1.large"),
        ("poolwright.dev/nodepool", "pool"),
    ];
    let allocatable =
        [(ResourceName::CPU, 64_000), (ResourceName::MEMORY, 256 << 30), (ResourceName::PODS, 110)];
    Node {
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        name,
        provider_id: None,
        taints: Vec::new(),
        allocatable: allocatable.into_iter().collect(),
        ready: true,
        cordoned: false,
        cordoned_until_initialized: false,
        do_not_disrupt: false,
        deleting_since: None,
        unhealthy_conditions: Vec::new(),
    }
}

fn pod(name: &str, app: usize) -> Pod {
    let requests = ResourceList::new()
        .with(ResourceName::CPU, 2000)
        .with(ResourceName::MEMORY, 4 << 30)
        .with(ResourceName::PODS, 1);
    let labels =
        BTreeMap::from([("app".to_owned(), format!("app{app}")), ("tier".to_owned(), "web".to_owned())]);
    let spec = PodSpec { requests, ..PodSpec::default() };
    Pod { labels: labels.into(), ..Pod::waiting(PodKey::new("default", name), spec) }
}

fn selector(app: usize) -> Vec<Requirement> {
    vec![Requirement { key: "app".to_owned(), operator: Operator::In([format!("app{app}")].into()) }]
}

fn term(app: usize, key: &str) -> PodAffinityTerm {
    let namespaces = Namespaces::Named(["default".to_owned()].into());
    PodAffinityTerm { topology_key: key.to_owned(), namespaces, selector: Some(selector(app)) }
}

fn spread() -> TopologySpreadConstraint {
    let selector = Some(selector(3));
    TopologySpreadConstraint {
        topology_key: ZONE.to_owned(),
        max_skew: 5,
        selector,
        ..TopologySpreadConstraint::default()
    }
}
