//! Bundles: pods that must share one new node, planned as if they were one pod.

use std::collections::BTreeMap;

use poolwright_catalog::ResourceList;

use crate::model::{NamespaceLabels, NodeSelectorTerm, Operator, Pod, PodSpec, Requirement};
use crate::plan::place::topology::places::Place;
use crate::rules;
use crate::rules::identity::Identity;
use crate::rules::spread::constraint::may_share;

/// Pods that share one new node.
#[derive(Clone, Debug)]
pub(crate) struct Bundle<'a> {
    /// The place of the node.
    pub place: Place,
    /// The first pod. All others can go wherever it can go.
    pub leader: &'a Pod,
    pub followers: Vec<&'a Pod>,
    /// The sum of their requests.
    pub requests: ResourceList,
}

/// All bundles, and the affinities by which other pods may join them.
#[derive(Debug, Default)]
pub(crate) struct Bundles<'a> {
    pub all: Vec<Bundle<'a>>,
    /// The bundles with a pod that an affinity selects.
    by_affinity: BTreeMap<usize, Vec<usize>>,
}

impl<'a> Bundles<'a> {
    /// Begins a bundle on a new node for one pod. The affinities `chosen` select it.
    pub fn begin(&mut self, pod: &'a Pod, place: Place, requests: ResourceList, chosen: &[usize]) {
        self.all.push(Bundle { place, leader: pod, followers: Vec::new(), requests });
        self.welcome(self.all.len() - 1, chosen);
    }

    /// Adds a pod to a bundle. The affinities `chosen` select it.
    pub fn join(&mut self, at: usize, pod: &'a Pod, requests: &ResourceList, chosen: &[usize]) {
        self.all[at].followers.push(pod);
        self.all[at].requests.add(requests);
        self.welcome(at, chosen);
    }

    fn welcome(&mut self, at: usize, chosen: &[usize]) {
        for affinity in chosen {
            let known = self.by_affinity.entry(*affinity).or_default();
            if !known.contains(&at) {
                known.push(at);
            }
        }
    }

    /// Returns the bundles with a pod that an affinity selects.
    pub fn with(&self, affinity: usize) -> &[usize] {
        self.by_affinity.get(&affinity).map_or(&[], Vec::as_slice)
    }
}

impl<'a> Bundle<'a> {
    fn members(&self) -> impl Iterator<Item = &'a Pod> {
        std::iter::once(self.leader).chain(self.followers.iter().copied())
    }

    /// Returns whether a pod may join a bundle, ignoring resources. Checks host ports, anti-affinity, spread over nodes, priority
    /// and node requirements.
    pub fn welcomes(&self, pod: &Pod, namespaces: &NamespaceLabels) -> bool {
        let of = |pod| Identity::of_pod(pod, namespaces);
        let meets = |member| rules::may_share(of(pod), of(member)).is_ok();
        let together: Vec<Identity<'_>> = self.members().chain(std::iter::once(pod)).map(of).collect();
        let even = |owner: &Identity<'_>| may_share(*owner, &together);
        let (own, theirs) = (&pod.spec, &self.leader.spec);
        // An empty term matches no node.
        let says = |terms: &&Vec<NodeSelectorTerm>| {
            terms.iter().filter(|term| !term.requirements.is_empty()).count()
        };
        let single = own.node_affinity.as_ref().is_none_or(|terms| says(&terms) == 1);
        pod.priority == self.leader.priority
            && own.tolerations == theirs.tolerations
            && (single || own.node_affinity == theirs.node_affinity)
            && self.members().all(meets)
            && together.iter().all(even)
    }
}

/// Returns the node requirements of a follower that must be added to those of the leader.
pub(crate) fn requirements(spec: &PodSpec, leader: &PodSpec) -> Vec<Requirement> {
    let selected = spec
        .node_selector
        .iter()
        .map(|(key, value)| Requirement { key: key.clone(), operator: Operator::In([value.clone()].into()) });
    let terms = spec.node_affinity.iter().filter(|_| spec.node_affinity != leader.node_affinity).flatten();
    selected.chain(terms.flat_map(|term| term.requirements.iter().cloned())).collect()
}
