//! Measures single changes in a large cluster: from the object to the index, and to the decision that follows.
//!
//! After changes of capacity or demand the decision is a plan, as in the controller; after other changes it is the lifecycle of
//! claims. The table shows wall time and CPU time; other processes do not increase CPU time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1 as k8s;
use poolwright_catalog::{Catalogue, RankedOffering};
use poolwright_core::index::{Change, ClusterIndex};
use poolwright_core::lifecycle::{PlacementMode, decide};
use poolwright_core::plan::{PlanOptions, plan};
use poolwright_core::{
    Claim, ClaimName, Condition, DaemonSet, Launched, ObjectKey, Pod, PodKey, PodRole, PodSpec, Pool, Uid,
};
use poolwright_terms::{ConditionStatus, ConditionType, NodeClassRef};
use serde_json::json;

use super::{Numbers, SEED, Until, ZONES, object, peak_mib};

const NODES: usize = 5_000;
const WORK_ON_EACH: usize = 8;
const DAEMONSETS: usize = 2;
const ROUNDS: usize = 120;
const NOW: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

/// Returns a node. Its number determines its zone.
fn node(at: usize, ready: bool) -> poolwright_core::Node {
    let name = format!("node-{at:05}");
    let ready = if ready { "True" } else { "False" };
    let labels = json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": ZONES[at % ZONES.len()],
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "fake-16",
        "topology.kubernetes.io/region": "region-1", "karpenter.sh/capacity-type": "on-demand"});
    let quantities = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
    let node: k8s::Node = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels},
        "spec": {"providerID": format!("fake://{name}")},
        "status": {"allocatable": quantities, "conditions": [{"type": "Ready", "status": ready}]}}))
    .expect("a node");
    poolwright_intake::node(&node).expect("it converts")
}

/// Returns the claim of a node.
fn claim(at: usize, class: &NodeClassRef, pool: &Pool, catalogue: &Catalogue) -> Claim {
    let is_it = |id: &poolwright_catalog::OfferingId| {
        id.instance_type.as_str() == "fake-16" && id.zone.as_str() == ZONES[at % ZONES.len()]
    };
    let offering = catalogue.offerings().iter().find(|offering| is_it(&offering.id)).expect("it is sold");
    let kind = &catalogue.types()[&offering.id.instance_type];
    let condition =
        |_| Condition { status: ConditionStatus::True, since: NOW, reason: None, message: String::new() };
    let done = [ConditionType::Launched, ConditionType::Registered, ConditionType::Initialized];
    let ranked = RankedOffering {
        offering: offering.id.clone(),
        price: offering.price.known(),
        allocatable: kind.allocatable.clone(),
    };
    Claim {
        name: ClaimName(format!("claim-{at:05}")),
        uid: Uid(format!("claim-{at:05}")),
        pool: pool.name.clone(),
        node_class: class.clone(),
        offerings: vec![ranked],
        labels: [].into(),
        annotations: [].into(),
        taints: vec![],
        startup_taints: vec![],
        readiness_gates: vec![],
        planned_pods: (0..WORK_ON_EACH)
            .map(|pod| PodKey::new("default", format!("pod-{:05}", at + pod * NODES)))
            .collect(),
        reason: String::new(),
        do_not_disrupt: false,
        bought_again: false,
        deadlines: poolwright_core::Deadlines::default(),
        created: NOW,
        interruption: None,
        deleting_since: None,
        launched: Some(Launched {
            provider_id: format!("fake://node-{at:05}"),
            offering: offering.id.clone(),
        }),
        node_name: Some(format!("node-{at:05}")),
        conditions: done.map(|kind| (kind, condition(kind))).into(),
    }
}

fn pod(object: &k8s::Pod) -> Pod {
    poolwright_intake::pod(object).expect("it converts")
}

fn on_node(mut object: k8s::Pod, node: usize) -> k8s::Pod {
    object.spec.get_or_insert_default().node_name = Some(format!("node-{node:05}"));
    object
}

fn fill(
    index: &mut ClusterIndex,
    numbers: &mut Numbers,
    class: &NodeClassRef,
    pool: &Pool,
    sold: &Catalogue,
) {
    for set in 0..DAEMONSETS {
        let spec = PodSpec {
            requests: poolwright_catalog::ResourceList::new().with("cpu", 100).with("memory", 128 << 20),
            ..PodSpec::default()
        };
        index.apply_daemonset(DaemonSet {
            key: ObjectKey::new("kube-system", format!("agent-{set}")),
            labels: [("agent".to_owned(), set.to_string())].into(),
            spec,
        });
    }
    for at in 0..NODES {
        index.apply_node(node(at, true));
        if at % 2 == 0 {
            index.apply_claim(claim(at, class, pool, sold));
        }
    }
    let running = NODES * WORK_ON_EACH;
    for at in 0..running {
        index.apply_pod(self::pod(&on_node(object(numbers, at, running), at % NODES)));
    }
    for at in 0..NODES * DAEMONSETS {
        let mut object = on_node(object(numbers, 0, 5), at % NODES);
        let set = at / NODES;
        object.metadata.namespace = Some("kube-system".to_owned());
        object.metadata.name = Some(format!("agent-{set}-{:05}", at % NODES));
        object.metadata.labels = Some([("agent".to_owned(), set.to_string())].into());
        index.apply_pod(Pod { role: PodRole::DaemonSet, ..self::pod(&object) });
    }
}

/// Returns the CPU time of this thread, from Linux.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// The times of one sort of change.
struct Row {
    what: &'static str,
    planned: usize,
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl Row {
    fn print(&self) {
        let stats = |times: &[Duration]| {
            let mut times = times.to_vec();
            times.sort();
            let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
            let mean = times.iter().sum::<Duration>().as_secs_f64() * 1e3 / times.len() as f64;
            format!("{mean:8.2} {:8.2} {:8.2} {:8.2}", at(50), at(99), at(100))
        };
        println!(
            "{:<28} {:>5} {:>7} {} {}",
            self.what,
            self.wall.len(),
            self.planned,
            stats(&self.wall),
            stats(&self.cpu)
        );
    }
}

/// Runs the measurement.
pub fn run(class: &NodeClassRef, pool: &Pool, catalogue: &Arc<Catalogue>) {
    let began = Instant::now();
    let mut index = ClusterIndex::new();
    index.set_catalogue(class.clone(), Ok(catalogue.clone()));
    index.apply_pool(pool.clone());
    let mut numbers = Numbers(SEED);
    fill(&mut index, &mut numbers, class, pool, catalogue);
    println!(
        "\n{NODES} nodes and {} pods in the index after {:.2} s, peak {} MiB",
        index.view().pods.len(),
        began.elapsed().as_secs_f64(),
        peak_mib()
    );
    let options = PlanOptions { baselines: false, ..PlanOptions::default() };
    let kinds = [
        "a pod waits",
        "it is bound",
        "a bound pod goes",
        "a node is not ready",
        "it is ready again",
        "a claim changes",
        "a node goes",
    ];
    let mut rows = kinds.map(|what| Row { what, planned: 0, wall: Vec::new(), cpu: Vec::new() });
    let mut measure =
        |row: usize, index: &mut ClusterIndex, change: &mut dyn FnMut(&mut ClusterIndex) -> Change| {
            let (began, cpu) = (Instant::now(), on_processor());
            if change(index) >= Change::Room {
                let mut until = Until(Instant::now() + Duration::from_secs(1));
                let made = plan(&index.snapshot(), NOW, &options, &mut until);
                assert_eq!(made.refused, Vec::<String>::new(), "the plan passes the checks");
                rows[row].planned += 1;
            } else {
                decide(&index.snapshot(), NOW, PlacementMode::Reserve);
            }
            rows[row].cpu.push(on_processor().saturating_sub(cpu));
            rows[row].wall.push(began.elapsed());
        };
    // Runs once before the measurement, so that caches are filled.
    plan(&index.snapshot(), NOW, &options, &mut Until(Instant::now() + Duration::from_mins(1)));
    for at in 0..ROUNDS {
        let mut waiting = object(&mut numbers, at, ROUNDS);
        waiting.metadata.name = Some(format!("new-{at}"));
        let home = at * 37 % NODES;
        measure(0, &mut index, &mut |index| index.apply_pod(self::pod(&waiting)));
        let bound = on_node(waiting, home);
        measure(1, &mut index, &mut |index| index.apply_pod(self::pod(&bound)));
        let key = ObjectKey::new("default", format!("pod-{:05}", at * 11));
        measure(2, &mut index, &mut |index| index.delete_pod(&key));
        measure(3, &mut index, &mut |index| index.apply_node(node(home, false)));
        measure(4, &mut index, &mut |index| index.apply_node(node(home, true)));
        let changed = Claim { reason: format!("change {at}"), ..claim(home / 2 * 2, class, pool, catalogue) };
        measure(5, &mut index, &mut |index| index.apply_claim(changed.clone()));
        measure(6, &mut index, &mut |index| index.delete_node(&format!("node-{:05}", NODES - 1 - at)));
    }
    let mut all = Row { what: "all", planned: 0, wall: Vec::new(), cpu: Vec::new() };
    println!(
        "{:<28} {:>5} {:>7} {:^35} {:^35}",
        "from the object, ms", "count", "planned", "wall: mean p50 p99 max", "processor: mean p50 p99 max"
    );
    for row in &rows {
        row.print();
        all.planned += row.planned;
        all.wall.extend(&row.wall);
        all.cpu.extend(&row.cpu);
    }
    all.print();
    println!("peak resident memory {} MiB", peak_mib());
}
