//! Pods of the real GPU trace in `fixtures/traces`, as Kubernetes objects.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// GPU models by `gpu_spec`. Pods without one may use any model.
type Models = BTreeMap<String, Vec<String>>;

/// One pod of the trace.
#[derive(Clone, Debug)]
pub struct TracePod {
    name: String,
    cpu_milli: u64,
    memory_mib: u64,
    gpus: u64,
    models: Vec<String>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces")
}

/// Reads all pods of the trace, in its order.
pub fn read_all() -> anyhow::Result<Vec<TracePod>> {
    let models = read_models(&fixtures().join("gpu-spec-map.csv"))?;
    let path = fixtures().join("openb_pod_list_gpuspec33.csv");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    text.lines().skip(1).map(|row| parse(row, &models)).collect()
}

/// Reads `wanted` pods, evenly spread over the trace, so that the mix is the trace's.
pub fn read(wanted: usize) -> anyhow::Result<Vec<TracePod>> {
    let all = read_all()?;
    ensure!(all.len() >= wanted, "the trace has {} pods, {wanted} are wanted", all.len());
    Ok((0..wanted).map(|number| all[number * all.len() / wanted].clone()).collect())
}

/// Reads the mapping of `gpu_spec` to GPU models.
fn read_models(path: &Path) -> anyhow::Result<Models> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let rows = text.lines().skip(1).filter_map(|row| row.split_once(','));
    Ok(rows
        .filter(|(_, models)| *models != "any")
        .map(|(spec, models)| (spec.to_owned(), models.split('|').map(str::to_owned).collect()))
        .collect())
}

fn parse(row: &str, models: &Models) -> anyhow::Result<TracePod> {
    let cells: Vec<&str> = row.split(',').collect();
    let [name, cpu_milli, memory_mib, num_gpu, _gpu_milli, gpu_spec, ..] = cells[..] else {
        anyhow::bail!("the trace's row `{row}` has fewer than 6 cells");
    };
    let number =
        |cell: &str| cell.parse::<u64>().with_context(|| format!("`{cell}` in the trace's row `{row}`"));
    let mut allowed: Vec<String> =
        gpu_spec.split('|').filter_map(|spec| models.get(spec)).flatten().cloned().collect();
    allowed.sort();
    allowed.dedup();
    let gpus = number(num_gpu)?;
    Ok(TracePod {
        name: name.to_owned(),
        cpu_milli: number(cpu_milli)?,
        memory_mib: number(memory_mib)?,
        gpus,
        models: if gpus == 0 { Vec::new() } else { allowed },
    })
}

/// Describes pods: `150 pods of the trace: 1,234 cores, 140 GPUs`.
pub fn describe(pods: &[TracePod]) -> String {
    let cores: u64 = pods.iter().map(|pod| pod.cpu_milli).sum::<u64>() / 1000;
    let gpus: u64 = pods.iter().map(|pod| pod.gpus).sum();
    let picky = pods.iter().filter(|pod| !pod.models.is_empty()).count();
    format!(
        "{} pods of the trace: {cores} cores, {gpus} GPUs; {picky} name the GPU models they can use",
        pods.len()
    )
}

impl TracePod {
    /// Returns the pod as its user would write it.
    pub fn object(&self, namespace: &str) -> Value {
        let mut requests =
            json!({"cpu": format!("{}m", self.cpu_milli), "memory": format!("{}Mi", self.memory_mib)});
        let mut limits = json!({});
        if self.gpus > 0 {
            requests["nvidia.com/gpu"] = json!(self.gpus.to_string());
            limits["nvidia.com/gpu"] = json!(self.gpus.to_string());
        }
        let mut spec = json!({
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "trace", "resources": {"requests": requests, "limits": limits}}],
        });
        if !self.models.is_empty() {
            let term = json!({"matchExpressions": [
                {"key": "poolwright.dev/gpu-model", "operator": "In", "values": self.models}
            ]});
            spec["affinity"] = json!({"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
            }});
        }
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": self.name, "namespace": namespace},
            "spec": spec,
        })
    }

    /// Returns the same as a typed object.
    pub fn pod(&self, namespace: &str) -> anyhow::Result<Pod> {
        Ok(serde_json::from_value(self.object(namespace))?)
    }
}
