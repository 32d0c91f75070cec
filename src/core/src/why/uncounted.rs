//! DaemonSets whose pods may run on new nodes although no plan counts them: they select nodes by labels that are found out on the node.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::Catalogue;

use crate::model::plan::Plan;
use crate::model::{DaemonSet, PodSpec, Pool, Snapshot};
use crate::rules::discovery::{Discovered, unforeseen, without_unforeseen};
use crate::rules::format::list;
use crate::rules::{self, NewNodeLabels};
use crate::supply::offerings::meeting;

/// The most DaemonSets and labels that the note names.
const SHOWN: usize = 4;

/// Returns a note on the DaemonSets that select nodes by labels of discovery software whose values only the node itself shows, so
/// that their requests are not counted on new nodes; `None` if there are none, or if the plan concerns no new node.
pub fn uncounted_daemonsets(snapshot: &Snapshot, plan: &Plan) -> Option<String> {
    if plan.claims.is_empty() && plan.unplaced.is_empty() {
        return None;
    }
    let of = |set: &DaemonSet| {
        let labels = unforeseen(&set.spec);
        let is_uncounted = !labels.is_empty() && {
            let relaxed = without_unforeseen(&set.spec);
            let mut pools = snapshot.pools.values().filter(|pool| may_come(set, pool));
            pools.any(|pool| {
                let Some(Ok(catalogue)) = snapshot.catalogues.get(&pool.node_class) else { return false };
                would_come(snapshot, &relaxed, pool, catalogue)
            })
        };
        let labels: Vec<String> = labels.iter().map(|key| format!("`{key}`")).collect();
        is_uncounted.then(|| format!("{} ({})", set.key, list(&labels, SHOWN)))
    };
    // A set that runs on nodes with GPUs by other labels is known well enough.
    let all = snapshot.daemonsets.values().map(Arc::as_ref);
    let sets: Vec<String> = all.filter(|set| !lands_somewhere(snapshot, set)).filter_map(of).collect();
    if sets.is_empty() {
        return None;
    }
    let (named, s, they, their) =
        if sets.len() == 1 { ("DaemonSet", "s", "it", "its") } else { ("DaemonSets", "", "them", "their") };
    Some(format!(
        "{named} {} select{s} nodes by labels that other software sets after a node has joined, so new nodes have no room for {they} in \
         this plan; if {their} pods will run there, add the labels to spec.template.metadata.labels of a NodePool",
        list(&sets, SHOWN)
    ))
}

/// Returns whether the pods of a DaemonSet would tolerate the nodes of a pool that may get new nodes.
fn may_come(set: &DaemonSet, pool: &Pool) -> bool {
    !pool.deleting && rules::check_daemonset_taints(&set.spec.tolerations, &pool.taints).is_ok()
}

/// Returns whether some type that a pool may buy would have pods with this spec.
fn would_come(snapshot: &Snapshot, spec: &PodSpec, pool: &Pool, catalogue: &Arc<Catalogue>) -> bool {
    let all = snapshot.plan_cache.labels(catalogue);
    meeting(pool, &all).into_iter().any(|index| lands(spec, pool, &all[index]))
}

/// Returns whether a DaemonSet runs on any type of the catalogues, whatever the pools buy.
fn lands_somewhere(snapshot: &Snapshot, set: &DaemonSet) -> bool {
    snapshot.pools.values().any(|pool| {
        let Some(Ok(catalogue)) = snapshot.catalogues.get(&pool.node_class) else { return false };
        let all = snapshot.plan_cache.labels(catalogue);
        all.iter().any(|offering| lands(&set.spec, pool, offering))
    })
}

fn lands(spec: &PodSpec, pool: &Pool, offering: &BTreeMap<String, String>) -> bool {
    let labels = NewNodeLabels { offering, template: &pool.labels, pool: &pool.name };
    rules::check_labels(spec, &Discovered(&labels)).is_ok()
}
