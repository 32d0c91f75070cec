//! `make bench-mix`: from objects to a checked plan for Karpenter's benchmark mix.
//!
//! `mix [PODS...]` plans this number of pods, a fifth of each kind: plain pods, pods spread over zones, pods spread over nodes,
//! pods with affinity to equal pods in a zone, and pods with anti-affinity to equal pods on a node. They request 100m to 1500m of
//! CPU and 100Mi to 4Gi of memory. The 400 instance types have 1 to 400 vCPU with 2 GiB and 10 pods per vCPU, in four zones, on
//! demand, at 0.025 $ a vCPU and 0.001 $ a GiB. Time is wall clock from the API's objects in memory to the plan that passed all
//! checks. `CPU s` is the CPU time of the process in that time. First fit places the same pods under the same rules, in the zones
//! that rules about zones gave them, and keeps pods apart that may not share a node. It is computed after the clock has stopped.
//! 10,000 pods have goals for the gap and the time. A missed goal is reported, but it never fails the run.
//!
//! `mix --conflicts [PODS...]` plans pods with host ports and anti-affinity instead. It then looks for PodDisruptionBudgets of
//! these pods that never allow an eviction: see `mix/conflicts.rs`.
//!
//! `mix --incremental` fills an index with 5,000 nodes, half of them with claims, and 50,000 pods on them, a fifth of them of
//! DaemonSets. It then measures one change after the other: see `mix/incremental.rs`.

#![expect(clippy::disallowed_methods, reason = "measuring time is what this program is for")]
#![expect(clippy::print_stdout, reason = "its figures are its output")]

#[path = "mix/conflicts.rs"]
mod conflicts;
#[path = "mix/incremental.rs"]
mod incremental;

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1 as k8s;
use poolwright_catalog::offering::CatalogueOrigin;
use poolwright_catalog::{
    Arch, Catalogue, InstanceType, Offering, OfferingId, Price, PriceSource, Quote, ResourceList,
    ResourceName, UsdPerHour,
};
use poolwright_core::Snapshot;
use poolwright_core::plan::{PlanOptions, StopSignal, plan};
use poolwright_core::rules::budgets::never_met;
use poolwright_terms::{CapacityType, NodeClassRef};
use serde_json::{Value, json};

const SEED: u64 = 42;
const ZONES: [&str; 4] = ["zone-1", "zone-2", "zone-3", "zone-4"];

/// Pseudo-random numbers that are the same on every machine (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[(self.next() % all.len() as u64) as usize]
    }
}

/// Returns a required pod affinity or anti-affinity to pods with these labels.
fn term(key: &str, labels: &Value) -> Value {
    json!({"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": key, "labelSelector": {"matchLabels": labels}}]})
}

/// Returns a pod that waits for a node, with random requests.
fn waiting(numbers: &mut Numbers, at: usize, labels: &Value, mut spec: Value, ports: &Value) -> k8s::Pod {
    let cpu = numbers.one_of(&["100m", "250m", "500m", "1000m", "1500m"]);
    let memory = numbers.one_of(&["100Mi", "256Mi", "512Mi", "1024Mi", "2048Mi", "4096Mi"]);
    spec["containers"] =
        json!([{"name": "main", "ports": ports, "resources": {"requests": {"cpu": cpu, "memory": memory}}}]);
    let status =
        json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    let written = json!({"metadata": {"name": format!("pod-{at:05}"), "namespace": "default", "labels": labels},
        "spec": spec, "status": status});
    serde_json::from_value(written).expect("a pod")
}

fn object(numbers: &mut Numbers, at: usize, kinds: usize) -> k8s::Pod {
    let letter = |numbers: &mut Numbers| numbers.one_of(&["a", "b", "c", "d", "e", "f", "g"]);
    let (mut labels, mut spec) = (json!({"my-label": letter(numbers)}), json!({}));
    let spread = |key: &str, of: &str| {
        json!([{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"my-label": of}}}])
    };
    match at * 5 / kinds {
        0 => {}
        1 => spec["topologySpreadConstraints"] = spread("topology.kubernetes.io/zone", letter(numbers)),
        2 => spec["topologySpreadConstraints"] = spread("kubernetes.io/hostname", letter(numbers)),
        3 => {
            labels = json!({"my-affinity": letter(numbers)});
            spec["affinity"] = json!({"podAffinity": term("topology.kubernetes.io/zone", &labels)});
        }
        _ => {
            labels = json!({"app": "nginx"});
            spec["affinity"] = json!({"podAntiAffinity": term("kubernetes.io/hostname", &labels)});
        }
    }
    waiting(numbers, at, &labels, spec, &json!([]))
}

fn catalogue() -> Catalogue {
    let (mut types, mut offerings) = (Vec::new(), Vec::new());
    for size in 1..=400u64 {
        let name = format!("fake-{size}");
        let price = UsdPerHour::from_micros(size * (25_000 + 2 * 1_000));
        for zone in ZONES {
            let capacity_type = CapacityType::OnDemand;
            offerings.push(Offering {
                id: OfferingId { instance_type: name.as_str().into(), zone: zone.into(), capacity_type },
                region: Some("region-1".into()),
                price: Price::Known(Quote {
                    usd_per_hour: price,
                    source: PriceSource::new("made up"),
                    as_of: None,
                }),
                available: None,
                interruptions: None,
                notice: None,
            });
        }
        types.push(InstanceType {
            name: name.as_str().into(),
            provider: "fake".into(),
            arch: Arch::Amd64,
            gpu: None,
            allocatable: ResourceList::new()
                .with(ResourceName::CPU, size * 1000)
                .with(ResourceName::MEMORY, size * (2 << 30))
                .with(ResourceName::PODS, size * 10),
        });
    }
    Catalogue::new(CatalogueOrigin { source: "made up".into(), as_of: None }, types, offerings)
}

/// The number of pods that has goals.
const WITH_GOALS: usize = 10_000;
/// Its goals: the largest gap in percent, and the most seconds from objects to a plan.
const GOALS: (f64, f64) = (3.0, 2.0);

/// The solving time that each pod adds, in microseconds: 10,000 pods get three quarters of the time of their goal.
const SOLVING: u64 = 150;

/// Returns a goal with its result in words.
fn goal(what: &str, figure: f64, most: f64) -> String {
    let word = if figure <= most { "goal reached" } else { "goal MISSED" };
    format!("  {word}: {what} is {figure:.4}, at most {most}")
}

/// Stops the solver at this time.
struct Until(Instant);

impl StopSignal for Until {
    fn should_stop(&mut self) -> bool {
        Instant::now() >= self.0
    }
}

/// Returns the peak resident memory of this process in MiB, from Linux.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Returns the CPU time of this process so far in seconds, from Linux, in hundredths.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // `fields` begins after the name, with field 3. User and system time are the fields 14 and 15.
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn main() {
    let has = |flag: &str| std::env::args().any(|text| text == flag);
    let (only_incremental, with_conflicts) = (has("--incremental"), has("--conflicts"));
    let mut counts: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    if counts.is_empty() && !only_incremental {
        counts = if with_conflicts { vec![10_000] } else { vec![1_000, 5_000, 10_000, 20_000] };
    }
    // The allowed solving time for each pod, in microseconds.
    let given = std::env::args().find_map(|text| text.strip_prefix("--solving=")?.parse::<u64>().ok());
    let micros = given.unwrap_or(SOLVING);
    let class =
        NodeClassRef { group: "poolwright.dev".into(), kind: "KwokNodeClass".into(), name: "default".into() };
    let pool: poolwright_api::NodePool = serde_json::from_value(json!({
        "apiVersion": poolwright_terms::API_VERSION, "kind": "NodePool", "metadata": {"name": "default", "uid": "1"},
        "spec": {"template": {"spec": {"nodeClassRef": {"group": class.group, "kind": class.kind, "name": class.name}}}},
    }))
    .expect("a pool");
    let pool = poolwright_intake::node_pool(&pool);
    let catalogue = Arc::new(catalogue());
    if only_incremental {
        incremental::run(&class, &pool, &catalogue);
        return;
    }
    println!(
        "First fit: the same pods under the same rules, in the zones that the plan gives them. The bound holds for these zones,"
    );
    println!("and counts what nodes hold of each resource where there is no time for more.");
    println!(
        "{:>6} {:>8} {:>8} {:>7} {:>8} {:>8} {:>7} {:>9} {:>9} {:>9} {:>6}",
        "pods",
        "intake s",
        "plan s",
        "CPU s",
        "pods/s",
        "placed",
        "nodes",
        "$/h",
        "first-fit",
        "bound",
        "gap %"
    );
    for count in counts {
        let mut numbers = Numbers(SEED);
        let object = |at| {
            if with_conflicts { conflicts::object(&mut numbers, at) } else { object(&mut numbers, at, count) }
        };
        let objects: Vec<k8s::Pod> = (0..count).map(object).collect();
        let used = processor_time();
        let began = Instant::now();
        let mut snapshot = Snapshot::default();
        snapshot.catalogues.insert(class.clone(), Ok(catalogue.clone()));
        snapshot.pools.insert(pool.name.clone(), Arc::new(pool.clone()));
        for object in &objects {
            let pod = poolwright_intake::pod(object).expect("it converts");
            snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
        }
        let read = began.elapsed();
        let solving = Duration::from_micros(count as u64 * micros);
        let options = PlanOptions { baselines: false, ..PlanOptions::default() };
        let mut until = Until(Instant::now() + solving);
        let plan_of = plan(&snapshot, jiff::Timestamp::UNIX_EPOCH, &options, &mut until);
        let all = began.elapsed();
        let used = processor_time() - used;
        assert_eq!(plan_of.refused, Vec::<String>::new(), "the plan passes the checks");
        // Not part of the measured time.
        let baselines = PlanOptions::default();
        let mut now = Until(Instant::now());
        let naive =
            plan(&snapshot, jiff::Timestamp::UNIX_EPOCH, &baselines, &mut now).baselines.first_fit.cost;
        println!(
            "{:>6} {:>8.3} {:>8.3} {:>7.2} {:>8.0} {:>8} {:>7} {:>9.2} {:>9.2} {:>9.2} {:>6.2}",
            count,
            read.as_secs_f64(),
            all.saturating_sub(read).as_secs_f64(),
            used,
            count as f64 / all.as_secs_f64(),
            plan_of.counts.on_new,
            plan_of.claims.len(),
            plan_of.cost.as_f64(),
            naive.as_f64(),
            plan_of.bound.as_f64(),
            plan_of.gap() * 100.0
        );
        if count == WITH_GOALS && !with_conflicts {
            println!("{}", goal("gap in %", plan_of.gap() * 100.0, GOALS.0));
            println!("{}", goal("seconds from objects to a plan", all.as_secs_f64(), GOALS.1));
        }
        if with_conflicts {
            conflicts::add_budgets(&mut snapshot, count);
            let began = Instant::now();
            let found = never_met(&snapshot).len();
            let took = began.elapsed().as_secs_f64();
            println!(
                "{found} of {} budgets never allow an eviction; found in {took:.3} s",
                snapshot.budgets.len()
            );
        }
    }
}
