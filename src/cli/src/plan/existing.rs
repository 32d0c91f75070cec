//! `--existing`: existing nodes with their pods.

use std::path::PathBuf;
use std::sync::Arc;

use poolwright_core::{PodPhase, Snapshot};

use super::files::read;
use crate::exit::Failure;

/// Adds the nodes of the files and the pods on them to `snapshot`. Plans use their free room before they buy nodes.
pub fn add(paths: &[PathBuf], snapshot: &mut Snapshot, notes: &mut Vec<String>) -> Result<(), Failure> {
    if paths.is_empty() {
        return Ok(());
    }
    let (manifest, mut problems) = read(paths, None)?;
    for node in &manifest.nodes {
        if snapshot.nodes.contains_key(&node.name) {
            problems.push(format!("Node {}: is also in the manifests of -f; keep one", node.name));
        }
    }
    for pod in &manifest.pods {
        if snapshot.pods.contains_key(&pod.key) {
            problems.push(format!("Pod {}: is also in the pods to plan for; keep one", pod.key));
        }
    }
    if problems.is_empty() && manifest.nodes.is_empty() && manifest.claims.is_empty() {
        problems.push("the files have no Node; write them with `kubectl get nodes,pods -A -o yaml`");
    }
    let ours = |what: &str, count: usize| {
        (count > 0).then(|| format!("--existing: ignored {what}: {count}; pass them with -f"))
    };
    notes.extend(ours("NodePools", manifest.pools.len()));
    let mut waiting = 0;
    for pod in manifest.pods {
        if matches!(pod.phase, PodPhase::Bound { .. }) {
            snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
        } else if !matches!(pod.phase, PodPhase::Finished) {
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
    problems.or(()).map_err(|problems| Failure::bad_input(format!("--existing cannot be used: {problems}")))
}
