//! A problem from a pod list of the Alibaba GPU trace and a catalogue of instance types, for tests and measurements.
//! Fractions of a GPU are rounded up. Pods with a GPU may use the models their `gpu_spec` maps to; pods without one may
//! use every node.

#![allow(dead_code, reason = "each test and measurement uses its part")]

pub mod gpus;
pub mod random_problem;
pub mod zones;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_solver::problem::{DisruptionBudget, Removal};
use poolwright_solver::{Candidate, ExistingNode, PodClass, Problem, baseline};

const MIB: u64 = 1 << 20;

/// Returns the path of a fixture.
pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}

/// Returns the path of a pod list of the trace.
pub fn trace(name: &str) -> PathBuf {
    fixture(&format!("traces/openb_pod_list_{name}.csv"))
}

/// Returns the path of the catalogue that measurements use.
pub fn types() -> PathBuf {
    fixture("catalogue/solver-bench-79-types.csv")
}

/// Returns the problem of a pod list of the trace with at most this many pods.
pub fn openb(name: &str, most: usize) -> Problem {
    problem(&trace(name), &types(), most)
}

/// Returns the GPU models for one word of the trace's `gpu_spec`.
fn models(word: &str) -> &'static [&'static str] {
    match word {
        "T4" => &["t4"],
        "V100M16" | "V100M32" => &["v100"],
        "P100" => &["v100", "a10g", "l4"],
        "A10" => &["a10g"],
        "G2" => &["a10g", "l4", "l40s"],
        "G3" => &["a100", "h100", "rtx-pro-server-6000"],
        _ => panic!("unknown gpu_spec {word}"),
    }
}

/// Returns the rows of a CSV file by column name.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header line").split(',').collect();
    lines
        .map(|line| {
            header.iter().map(|name| (*name).to_owned()).zip(line.split(',').map(str::to_owned)).collect()
        })
        .collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> u64 {
    match row.get(column).map_or("", String::as_str) {
        "" => 0,
        text => text.parse().unwrap_or_else(|_| panic!("{column}: {text} is no number")),
    }
}

/// Returns the types of a catalogue with a price, without Arm types.
pub fn types_of(catalogue: &Path) -> Vec<BTreeMap<String, String>> {
    let mut types = rows(catalogue);
    types.retain(|row| row["arch"] == "amd64" && !row["on_demand_usd_per_hour"].is_empty());
    types
}

/// Reads both files, with at most `most` pods, evenly spread over the list.
pub fn problem(pods: &Path, catalogue: &Path, most: usize) -> Problem {
    problem_of(pods, &types_of(catalogue), most)
}

/// Like [`problem`], over these types.
pub fn problem_of(pods: &Path, types: &[BTreeMap<String, String>], most: usize) -> Problem {
    let candidates: Vec<Candidate> = types
        .iter()
        .map(|row| Candidate {
            name: row["instance_type"].clone(),
            price: row["on_demand_usd_per_hour"].parse::<UsdPerHour>().expect("a price"),
            capacity: vec![
                number(row, "allocatable_cpu_milli"),
                number(row, "allocatable_memory_mib") * MIB,
                number(row, "allocatable_pods"),
                number(row, "gpu_count"),
            ],
            max_nodes: None,
            ..Candidate::default()
        })
        .collect();
    let mut counts: BTreeMap<(Vec<u64>, String), u32> = BTreeMap::new();
    let listed = rows(pods);
    let wanted = most.min(listed.len());
    for row in (0..wanted).map(|index| &listed[index * listed.len() / wanted]) {
        let requests =
            vec![number(row, "cpu_milli"), number(row, "memory_mib") * MIB, 1, number(row, "num_gpu")];
        let spec = row.get("gpu_spec").cloned().unwrap_or_default();
        *counts.entry((requests, spec)).or_default() += 1;
    }
    let classes = counts
        .into_iter()
        .map(|((requests, spec), count)| {
            let wanted: Vec<&str> =
                spec.split('|').filter(|word| !word.is_empty()).flat_map(models).copied().collect();
            let admitted = |row: &BTreeMap<String, String>| {
                requests[3] == 0
                    || number(row, "gpu_count") > 0
                        && (wanted.is_empty() || wanted.contains(&row["gpu_model"].as_str()))
            };
            PodClass {
                name: format!("{}m/{}Mi/{}gpu/{spec}", requests[0], requests[1] / MIB, requests[3]),
                candidates: (0..types.len() as u32)
                    .filter(|index| admitted(&types[*index as usize]))
                    .collect(),
                requests,
                count,
                priority: 0,
                max_per_node: None,
                ..PodClass::default()
            }
        })
        .collect();
    Problem {
        resources: ["cpu", "memory", "pods", "nvidia.com/gpu"].map(ResourceName::new).to_vec(),
        classes,
        candidates,
        ..Problem::default()
    }
}

/// Returns the cluster that a price-blind first fit leaves: its nodes with their pods, all of which may be replaced.
/// Moving has no cost; `evictions` pods may be moved.
#[allow(dead_code, reason = "each test and example uses a part of this module")]
pub fn first_fit_cluster(problem: &Problem, evictions: Option<u32>) -> Problem {
    let bought = baseline::first_fit_nodes(problem);
    let mut cluster = problem.clone();
    for class in &mut cluster.classes {
        class.count = 0;
        class.existing = (0..bought.len() as u32)
            .filter(|node| class.candidates.binary_search(&bought[*node as usize].candidate).is_ok())
            .collect();
    }
    cluster.existing = bought
        .into_iter()
        .enumerate()
        .map(|(index, node)| {
            let candidate = &problem.candidates[node.candidate as usize];
            let mut free = candidate.capacity.clone();
            for (class, count) in &node.pods {
                for (free, request) in free.iter_mut().zip(&problem.classes[*class as usize].requests) {
                    *free -= request * u64::from(*count);
                }
            }
            let removal = Removal { price: candidate.price, disruption: UsdPerHour::ZERO, pods: node.pods };
            ExistingNode {
                name: format!("{} {index}", candidate.name),
                free,
                removal: Some(removal),
                ..ExistingNode::default()
            }
        })
        .collect();
    cluster.disruption = DisruptionBudget { evictions, nodes: None };
    cluster
}
