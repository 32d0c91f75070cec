//! Pods of the trace, as Kubernetes objects.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

/// GPU models by `gpu_spec`; no entry where any will do.
pub type Models = BTreeMap<String, Vec<String>>;

/// One pod of the trace.
pub struct TracePod {
    name: String,
    cpu_milli: u64,
    memory_mib: u64,
    gpus: u64,
    models: Vec<String>,
}

/// The mapping of `gpu_spec` to GPU models.
pub fn read_models(path: &Path) -> anyhow::Result<Models> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let rows = text.lines().skip(1).filter_map(|row| row.split_once(','));
    Ok(rows
        .filter(|(_, models)| *models != "any")
        .map(|(spec, models)| (spec.to_owned(), models.split('|').map(str::to_owned).collect()))
        .collect())
}

/// `wanted` pods of the trace, evenly spread over it, so that the mix is the trace's.
pub fn read(path: &Path, models: &Models, wanted: usize) -> anyhow::Result<Vec<TracePod>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let rows: Vec<&str> = text.lines().skip(1).collect();
    ensure!(rows.len() >= wanted, "{} has {} pods, {wanted} are wanted", path.display(), rows.len());
    (0..wanted).map(|number| parse(rows[number * rows.len() / wanted], models)).collect()
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

/// `150 pods of the trace: 1,234 cores, 140 GPUs`.
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
    /// The pod as its user would write it.
    pub fn object(&self) -> serde_json::Value {
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
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": spec,
        })
    }

    /// The same, typed.
    pub fn pod(&self) -> anyhow::Result<Pod> {
        Ok(serde_json::from_value(self.object())?)
    }
}
