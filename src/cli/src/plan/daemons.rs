//! DaemonSets of a plan: new nodes have room for the largest pods of each.

use std::sync::Arc;

use poolwright_core::{DaemonSet, ObjectKey, Snapshot};

/// Lets each DaemonSet ask for as much as its largest pods. Returns a note for each whose pods ask for more than its template.
pub fn size(snapshot: &mut Snapshot) -> Vec<String> {
    let sized = snapshot.daemonsets.values().map(|set| (set, set.sized_as(&snapshot.pods)));
    let larger = sized.filter(|(template, set)| template.spec.requests != set.spec.requests);
    let larger: Vec<DaemonSet> = larger.map(|(_, set)| set).collect();
    let notes = larger.iter().map(|set| note(&set.key)).collect();
    for set in larger {
        snapshot.daemonsets.insert(set.key.clone(), Arc::new(set));
    }
    notes
}

/// Says that the pods of this DaemonSet ask for more than its template.
pub fn note(set: &ObjectKey) -> String {
    format!("DaemonSet {set}: its pods ask for more than its template; new nodes have room for such pods")
}
