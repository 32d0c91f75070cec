//! `--existing`: existing nodes with their pods.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use poolwright_core::{Pod, PodKey, PodPhase, Snapshot};
use poolwright_intake::IntakeError;
use poolwright_intake::manifest::{self, Manifest};
use serde_json::Value;

use super::joined::joined;
use crate::exit::Failure;
use crate::problems::Problems;
use crate::source::{self, Source};

/// The files of the flag.
#[derive(Default)]
pub struct Existing {
    sources: Vec<Source>,
    manifest: Manifest,
    /// What is wrong with them.
    pub errors: Vec<IntakeError>,
}

/// Reads the files. Their problems are told with those of the other input.
pub fn read(paths: &[PathBuf]) -> Existing {
    if paths.is_empty() {
        return Existing::default();
    }
    let (sources, unreadable) = source::readable(paths, &[]);
    let (manifest, errors) = source::parsed(&sources, &[]);
    Existing { sources, manifest, errors: unreadable.into_iter().chain(errors).collect() }
}

impl Existing {
    /// Returns the files.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Returns the names of the objects that cannot be read: `Namespace ml`.
    pub fn left_out(&self) -> &BTreeSet<String> {
        &self.manifest.left_out
    }

    /// Returns all objects as written.
    pub fn objects(&self) -> Vec<Value> {
        let of = |source: &Source| manifest::objects(&source.name, &source.text).unwrap_or_default();
        self.sources.iter().flat_map(of).collect()
    }

    /// Names the nodes, and the pods on nodes, that the other input has, too. A pod without a node is only planned from there.
    pub fn clashes(&self, has_node: impl Fn(&str) -> bool, has_pod: impl Fn(&PodKey) -> bool) -> Problems {
        let mut problems = Problems::new();
        for node in self.manifest.nodes.iter().filter(|node| has_node(&node.name)) {
            problems.push(format!("Node {}: is also in the manifests of -f; keep one", node.name));
        }
        let is_bound = |pod: &&Pod| matches!(pod.phase, PodPhase::Bound { .. });
        for pod in self.manifest.pods.iter().filter(is_bound).filter(|pod| has_pod(&pod.key)) {
            problems.push(format!("Pod {}: is also in the pods to plan for; keep one", pod.key));
        }
        problems
    }
}

/// Adds the nodes of the files and the pods on them to `snapshot`. Plans use their free room before they buy nodes.
pub fn add(existing: Existing, snapshot: &mut Snapshot, notes: &mut Vec<String>) -> Result<(), Failure> {
    if existing.sources.is_empty() && existing.errors.is_empty() {
        return Ok(());
    }
    let mut problems = Problems::all(&existing.errors);
    let has_node = |name: &str| snapshot.nodes.contains_key(name);
    problems.extend(existing.clashes(has_node, |pod| snapshot.pods.contains_key(pod)));
    let manifest = existing.manifest;
    if problems.is_empty() && manifest.nodes.is_empty() && manifest.claims.is_empty() {
        if manifest.left_out.iter().any(|object| object.starts_with("Node ")) {
            problems.push(
                "no Node in the files can be read; write them with `kubectl get nodes,pods -A -o yaml`",
            );
            problems.extend(Problems::all(manifest.notes_on_left_out()));
        } else {
            problems.push("the files have no Node; write them with `kubectl get nodes,pods -A -o yaml`");
        }
        problems.extend(Problems::all(&manifest.mistaken));
    }
    if !problems.is_empty() {
        return Err(Failure::bad_input(format!("--existing cannot be used: {problems}")));
    }
    let lost = joined(manifest.notes_on_left_out().cloned().collect());
    notes.extend(lost.into_iter().map(|note| format!("--existing: {note}")));
    let ours = |what: &str, count: usize| {
        (count > 0).then(|| format!("--existing: ignored {what}: {count}; pass them with -f"))
    };
    notes.extend(ours("NodePools", manifest.pools.len()));
    let mut waiting = 0;
    for mut pod in manifest.pods {
        if matches!(pod.phase, PodPhase::Bound { .. }) {
            // If the other input has the object of its gang, that gang counts only the pods that it lacks.
            let key = pod.group_key().filter(|_| pod.gang.is_some());
            if key.is_some_and(|key| snapshot.pod_groups.contains_key(&key)) {
                (pod.group, pod.gang) = (None, None);
            }
            snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
        } else if !matches!(pod.phase, PodPhase::Finished) && !snapshot.pods.contains_key(&pod.key) {
            waiting += 1;
        }
    }
    notes.extend(ours("pods without a node", waiting));
    snapshot.nodes.extend(manifest.nodes.into_iter().map(|node| (node.name.clone(), Arc::new(node))));
    snapshot.claims.extend(manifest.claims.into_iter().map(|claim| (claim.name.clone(), Arc::new(claim))));
    for namespace in manifest.namespaces {
        snapshot.put_namespace(namespace);
    }
    for claim in manifest.volume_claims {
        snapshot.volume_claims.insert(claim.key.clone(), Arc::new(claim));
    }
    for volume in manifest.volumes {
        snapshot.volumes.insert(volume.name.clone(), Arc::new(volume));
    }
    for class in manifest.storage_classes {
        snapshot.storage_classes.insert(class.name.clone(), Arc::new(class));
    }
    for drivers in manifest.node_drivers {
        snapshot.node_drivers.insert(drivers.node.clone(), Arc::new(drivers));
    }
    for budget in manifest.budgets {
        snapshot.budgets.insert(budget.key.clone(), Arc::new(budget));
    }
    for group in manifest.pod_groups {
        snapshot.pod_groups.insert(group.key.clone(), Arc::new(group));
    }
    for service in manifest.services {
        snapshot.services.insert(service.key.clone(), Arc::new(service));
    }
    for workload in manifest.workloads {
        snapshot.workloads.insert((workload.kind.clone(), workload.key.clone()), Arc::new(workload));
    }
    for set in manifest.daemonsets {
        snapshot.daemonsets.insert(set.key.clone(), Arc::new(set));
    }
    Ok(())
}
