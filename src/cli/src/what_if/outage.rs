//! A zone that fails: its offerings, its nodes, and what becomes of the pods there.

use std::collections::BTreeSet;

use poolwright_core::{ClaimName, PodKey, PodRole, Snapshot};
use poolwright_terms::labels;

use super::load::waiting;
use super::{market, pattern};
use crate::exit::Failure;

/// Takes away a zone. Returns the pods that are lost, because no controller makes them anew.
///
/// # Errors
///
/// Nothing is in this zone, and nothing may be bought there.
pub fn outage(snapshot: &mut Snapshot, zone: &str) -> Result<BTreeSet<PodKey>, Failure> {
    let there =
        snapshot.nodes.values().filter(|node| node.labels.get(labels::ZONE).is_some_and(|of| of == zone));
    let nodes: BTreeSet<String> = there.map(|node| node.name.clone()).collect();
    let claims: BTreeSet<ClaimName> = snapshot
        .claims
        .values()
        .filter(|claim| claim.current_offering().offering.zone.as_str() == zone)
        .map(|claim| claim.name.clone())
        .collect();
    let mut known: BTreeSet<String> = market::zones(snapshot).into_iter().map(str::to_owned).collect();
    known.extend(snapshot.nodes.values().filter_map(|node| node.labels.get(labels::ZONE).cloned()));
    let sold = market::without_zone(snapshot, zone);
    if !sold && nodes.is_empty() && claims.is_empty() {
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        return Err(Failure::bad_input(format!(
            "--outage zone={zone}: matches nothing, because nothing runs or may be bought in this zone; {}",
            pattern::instead(zone, &known)
        )));
    }
    let mut lost = BTreeSet::new();
    let phase = waiting(snapshot, "its zone is out");
    for node in &nodes {
        let pods = snapshot.pods.on_node(node).map(|there| there.pods.clone()).unwrap_or_default();
        for pod in pods {
            let is_work = pod.role == PodRole::Workload;
            if is_work && pod.owner.is_some() {
                snapshot.pods.change(&pod.key, |pod| {
                    pod.phase = phase.clone();
                    pod.reserved_for.clear();
                    pod.nominated_node = None;
                });
            } else {
                snapshot.pods.remove(&pod.key);
                lost.extend(is_work.then(|| pod.key.clone()));
            }
        }
    }
    snapshot.nodes.retain(|name, _| !nodes.contains(name));
    snapshot.claims.retain(|name, _| !claims.contains(name));
    Ok(lost)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use poolwright_core::{Pod, PodPhase, PodSpec, Uid};
    use poolwright_intake::manifest;

    use super::*;

    #[test]
    fn pods_of_a_zone_that_fails_wait_and_those_without_a_controller_are_lost() {
        let node = |name: &str, zone: &str| {
            let text = format!(
                "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{}: {zone}}}}}\nstatus: {{allocatable: {{cpu: \"4\"}}}}\n",
                labels::ZONE
            );
            manifest::parse("n.yaml", &text).expect("a node").nodes.remove(0)
        };
        let mut snapshot = Snapshot::default();
        for node in [node("a", "za"), node("b", "zb")] {
            snapshot.nodes.insert(node.name.clone(), Arc::new(node));
        }
        for (name, node, owner) in [("made", "a", true), ("alone", "a", false), ("other", "b", false)] {
            let mut pod = Pod::waiting(PodKey::new("ml", name), PodSpec::default());
            pod.owner = owner.then(|| Uid("o".to_owned()));
            pod.phase = PodPhase::Bound { node: node.to_owned() };
            snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
        }
        let lost = outage(&mut snapshot, "za").expect("a node is there");
        assert_eq!(lost, BTreeSet::from([PodKey::new("ml", "alone")]));
        assert_eq!(snapshot.nodes.keys().collect::<Vec<_>>(), ["b"]);
        let waiting: Vec<_> = snapshot.pods.unbound().map(|pod| pod.key.to_string()).collect();
        assert_eq!(waiting, ["ml/made"]);
        assert!(snapshot.pods.get(&PodKey::new("ml", "other")).is_some());
        let Err(Failure::BadInput(told)) = outage(&mut snapshot, "zz") else { panic!("there is none") };
        assert!(told.ends_with("; choose from zb"), "{told}");
    }
}
