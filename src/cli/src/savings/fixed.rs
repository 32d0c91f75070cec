//! Pods that cannot move: their nodes stay in every plan.

use jiff::Timestamp;
use poolwright_core::rules::NODE_NAME_FIELD;
use poolwright_core::{Node, ObjectKey, Pod, PodVolume, Snapshot};
use poolwright_terms::labels;

/// Returns why a pod cannot leave its node: the end of a sentence; `None` if it can.
pub fn why(pod: &Pod, node: &Node, snapshot: &Snapshot, now: Timestamp) -> Option<String> {
    if pod.owner.is_none() {
        return Some("no controller would make it anew".to_owned());
    }
    let protection = pod.ending.protection.as_ref();
    if let Some(one) = protection.filter(|one| one.until.is_none_or(|until| until > now)) {
        let until = one.until.map_or_else(String::new, |until| format!(" until {until}"));
        return Some(format!("its annotation {} forbids it{until}", one.annotation));
    }
    if node.do_not_disrupt {
        return Some("an annotation of its node forbids it".to_owned());
    }
    let volume = pod.volumes.iter().find_map(|volume| local(pod, volume, snapshot))?;
    Some(format!("its volume {volume} is on this node"))
}

/// Returns the name of a volume that is on one node only, such as a local disk.
fn local<'s>(pod: &Pod, volume: &PodVolume, snapshot: &'s Snapshot) -> Option<&'s str> {
    let PodVolume::Claim { name, .. } = volume else { return None };
    let claim = snapshot.volume_claims.get(&ObjectKey::new(pod.key.namespace(), name.as_str()))?;
    let volume = snapshot.volumes.get(claim.volume.as_ref()?)?;
    let names_nodes = |key: &str| key == labels::HOSTNAME || key == NODE_NAME_FIELD;
    let is_on_nodes = volume.topology.iter().any(|terms| {
        let mut all = terms.iter();
        !terms.is_empty() && all.all(|term| term.requirements.iter().any(|one| names_nodes(&one.key)))
    });
    is_on_nodes.then_some(volume.name.as_str())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use poolwright_core::{
        NodeSelectorTerm, Operator, Protection, Requirement, Volume, VolumeClaim, VolumeShape,
    };

    use super::super::testing::{cluster, node, pod};
    use super::*;

    fn told(pod: &Pod, snapshot: &Snapshot) -> Option<String> {
        why(pod, &node("a", "small", 4), snapshot, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn pods_without_a_controller_and_protected_pods_cannot_move() {
        let all = cluster(Vec::new(), Vec::new());
        let mut one = pod("p", "a", 1);
        assert_eq!(told(&one, &all), None);
        let annotation = "cluster-autoscaler.kubernetes.io/safe-to-evict=false".to_owned();
        one.ending.protection = Some(Protection { annotation, until: None });
        let said = told(&one, &all).expect("it is protected");
        assert!(said.contains("safe-to-evict=false forbids it"), "{said}");
        let annotation = "poolwright.dev/do-not-disrupt=4h".to_owned();
        one.ending.protection = Some(Protection { annotation, until: Some(Timestamp::UNIX_EPOCH) });
        assert_eq!(told(&one, &all), None, "the protection has ended");
        one.owner = None;
        assert_eq!(told(&one, &all).as_deref(), Some("no controller would make it anew"));
    }

    #[test]
    fn a_pod_with_a_local_volume_cannot_move() {
        let mut all = cluster(Vec::new(), Vec::new());
        let operator = Operator::In(["a".to_owned()].into());
        let requirements = vec![Requirement { key: labels::HOSTNAME.to_owned(), operator }];
        let volume = Volume {
            name: "disk".to_owned(),
            class: String::new(),
            shape: VolumeShape::default(),
            labels: BTreeMap::new(),
            claim: None,
            available: true,
            deleting: false,
            topology: vec![vec![NodeSelectorTerm { requirements }]],
            attached: None,
        };
        let claim = VolumeClaim {
            key: ObjectKey::new("ml", "data"),
            class: None,
            volume: Some("disk".to_owned()),
            bound: true,
            lost: false,
            selected_node: None,
            shape: VolumeShape::default(),
            selector: Vec::new(),
            ephemeral_for: None,
            deleting: false,
            over_quota: None,
        };
        all.volumes.insert(volume.name.clone(), Arc::new(volume));
        all.volume_claims.insert(claim.key.clone(), Arc::new(claim));
        let mut one = pod("p", "a", 1);
        one.volumes = vec![PodVolume::Claim { name: "data".to_owned(), ephemeral: false }];
        assert_eq!(told(&one, &all).as_deref(), Some("its volume disk is on this node"));
    }
}
