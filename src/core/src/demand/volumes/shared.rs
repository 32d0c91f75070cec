//! Pods that share a PersistentVolumeClaim which is not bound yet. The node of the first of them decides where its volume is, and the
//! others must reach it there. While a plan is made, that is required pod affinity of these pods to each other.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_terms::labels::{HOSTNAME, ZONE};

use crate::model::{Namespaces, ObjectKey, Operator, Pod, PodAffinityTerm, PodKey, Requirement};

/// The labels by which pods that share volumes select each other. Only the pods of a plan in the making have them.
const ON_NODE: &str = "poolwright.dev/shares-volumes-on-node";
const IN_ZONE: &str = "poolwright.dev/shares-volumes-in-zone";

/// The places that reach the volume of a claim, once it is made for the first pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The node of the first pod.
    Node,
    /// The zone of the first pod.
    Zone,
}

/// The pods that must be near each other.
#[derive(Debug, Default)]
pub(crate) struct SharedVolumes<'p>(BTreeMap<&'p PodKey, Near<'p>>);

/// What the affinity of one pod is about.
#[derive(Debug, Default)]
struct Near<'p> {
    /// The claims that it shares, by name.
    claims: BTreeSet<&'p str>,
    /// A pod that stands for those on its node.
    node: Option<&'p PodKey>,
    /// A pod that stands for those in its zone.
    zone: Option<&'p PodKey>,
    /// A pod that stands for all with which it shares claims, directly or through others.
    group: Option<&'p PodKey>,
}

impl<'p> SharedVolumes<'p> {
    /// Finds the pods that share claims, from the claims that are not bound and that only some places reach, with their users.
    pub fn of(used: impl Iterator<Item = (&'p PodKey, &'p ObjectKey, Reach)>) -> Self {
        let mut users: BTreeMap<&'p ObjectKey, (Reach, BTreeSet<&'p PodKey>)> = BTreeMap::new();
        for (pod, claim, reach) in used {
            users.entry(claim).or_insert((reach, BTreeSet::new())).1.insert(pod);
        }
        users.retain(|_, (_, pods)| pods.len() > 1);
        let mut near: BTreeMap<&'p PodKey, Near<'p>> = BTreeMap::new();
        for (claim, (_, pods)) in &users {
            for pod in pods.iter().copied() {
                near.entry(pod).or_default().claims.insert(claim.name.as_str());
            }
        }
        let of_node = |(reach, _): &&(Reach, BTreeSet<&'p PodKey>)| *reach == Reach::Node;
        let on_nodes = united(users.values().filter(of_node).map(|(_, pods)| pods));
        // Pods on one node are in one zone.
        let in_zones = united(users.values().map(|(_, pods)| pods));
        let zonal = users.values().filter(|(reach, _)| *reach == Reach::Zone);
        let zonal: BTreeSet<&PodKey> =
            zonal.filter_map(|(_, pods)| pods.first().copied()).map(|pod| first_of(&in_zones, pod)).collect();
        for (&pod, near) in &mut near {
            near.node = on_nodes.contains_key(pod).then(|| first_of(&on_nodes, pod));
            near.zone = Some(first_of(&in_zones, pod)).filter(|first| zonal.contains(first));
            near.group = Some(first_of(&in_zones, pod));
        }
        Self(near)
    }

    /// Returns the pods that wait until another one has its volumes, each with that one. The kube-scheduler counts only pods that all
    /// terms of an affinity select, so terms for volumes cannot join a pod's own terms, nor those for other volumes. `in_order` are the
    /// pods with volumes, in the order in which they get them.
    pub fn later(&self, in_order: &[&Pod]) -> BTreeMap<PodKey, PodKey> {
        let mut groups: BTreeMap<&PodKey, Vec<(&Pod, &Near<'p>)>> = BTreeMap::new();
        for pod in in_order.iter().copied() {
            let Some(near) = self.0.get(&pod.key) else { continue };
            if let Some(group) = near.group {
                groups.entry(group).or_default().push((pod, near));
            }
        }
        let mut later = BTreeMap::new();
        for pods in groups.into_values() {
            let Some((first, of_first)) = pods.first().copied() else { continue };
            let is_apart =
                |(pod, near): &(&Pod, &Near<'p>)| !pod.spec.affinity.is_empty() || near.node != of_first.node;
            if pods.iter().any(is_apart) {
                later.extend(pods[1..].iter().map(|(pod, _)| (pod.key.clone(), first.key.clone())));
            }
        }
        later
    }

    /// Returns the claims that a pod shares, in words; `None` if it shares none.
    pub fn words(&self, pod: &PodKey) -> Option<String> {
        let claims: Vec<String> = self.0.get(pod)?.claims.iter().map(|name| format!("`{name}`")).collect();
        Some(format!("PersistentVolumeClaim {}", claims.join(" and ")))
    }

    /// Lets a pod be near those with which it shares claims.
    pub fn apply(&self, key: &PodKey, pod: &mut Pod) {
        let Some(near) = self.0.get(key) else { return };
        for (label, topology_key, first) in [(ON_NODE, HOSTNAME, near.node), (IN_ZONE, ZONE, near.zone)] {
            let Some(first) = first.map(ToString::to_string) else { continue };
            let operator = Operator::In([first.clone()].into());
            pod.labels.insert(label.to_owned(), first);
            pod.spec.affinity.push(PodAffinityTerm {
                topology_key: topology_key.to_owned(),
                namespaces: Namespaces::Named([key.namespace().to_owned()].into()),
                selector: Some(vec![Requirement { key: label.to_owned(), operator }]),
            });
        }
    }
}

/// Unites sets of pods that have pods in common. Returns, for each pod, one that leads to the first of its set.
fn united<'s, 'p: 's>(
    sets: impl Iterator<Item = &'s BTreeSet<&'p PodKey>>,
) -> BTreeMap<&'p PodKey, &'p PodKey> {
    let mut leads: BTreeMap<&'p PodKey, &'p PodKey> = BTreeMap::new();
    for set in sets {
        let Some(one) = set.first().copied() else { continue };
        for pod in set.iter().copied() {
            let (one, other) = (first_of(&leads, one), first_of(&leads, pod));
            leads.insert(one.max(other), one.min(other));
            leads.entry(pod).or_insert(one.min(other));
        }
    }
    leads
}

/// Follows a pod to the first one of its set.
fn first_of<'p>(leads: &BTreeMap<&'p PodKey, &'p PodKey>, pod: &'p PodKey) -> &'p PodKey {
    let mut first = pod;
    while let Some(next) = leads.get(first).copied().filter(|next| *next != first) {
        first = next;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns, for each pod, the pods that stand for its node and its zone.
    fn near(used: &[(&str, &str, Reach)]) -> Vec<String> {
        let used: Vec<(PodKey, ObjectKey, Reach)> = used
            .iter()
            .map(|(pod, claim, reach)| (PodKey::new("ml", *pod), ObjectKey::new("ml", *claim), *reach))
            .collect();
        let sharing = SharedVolumes::of(used.iter().map(|(pod, claim, reach)| (pod, claim, *reach)));
        let name = |pod: Option<&PodKey>| pod.map_or("-".to_owned(), |pod| pod.name().into_owned());
        let all = sharing.0.iter();
        all.map(|(pod, near)| format!("{}: {} {}", pod.name(), name(near.node), name(near.zone))).collect()
    }

    #[test]
    fn pods_that_share_a_volume_directly_or_through_others_are_one_group() {
        let alone = [("a", "x", Reach::Node), ("b", "y", Reach::Node)];
        assert_eq!(near(&alone), [""; 0]);
        let chain = [
            ("c", "x", Reach::Node),
            ("d", "x", Reach::Node),
            ("d", "y", Reach::Node),
            ("a", "y", Reach::Node),
            ("e", "z", Reach::Node),
            ("b", "z", Reach::Node),
        ];
        assert_eq!(near(&chain), ["a: a -", "b: b -", "c: a -", "d: a -", "e: b -"]);
    }

    #[test]
    fn pods_on_one_node_are_in_the_zone_of_those_with_which_one_of_them_shares_a_zone() {
        let mixed = [
            ("a", "disk", Reach::Node),
            ("b", "disk", Reach::Node),
            ("b", "files", Reach::Zone),
            ("c", "files", Reach::Zone),
        ];
        assert_eq!(near(&mixed), ["a: a a", "b: a a", "c: - a"]);
    }
}
