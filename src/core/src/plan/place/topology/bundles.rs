//! Pods that must share a node that is yet to be bought: planned as if they were one.

use std::collections::BTreeMap;

use poolwright_catalog::ResourceList;

use crate::model::{NamespaceLabels, NodeTerm, Operator, Pod, PodSpec, Requirement};
use crate::plan::place::topology::places::Place;
use crate::rules;
use crate::rules::identity::Identity;
use crate::rules::spread::constraint::may_share;

/// Pods that go to one new node together.
#[derive(Clone, Debug)]
pub(crate) struct Bundle<'a> {
    /// Where that node is.
    pub place: Place,
    /// The first of them; the others must be able to go wherever it can.
    pub leader: &'a Pod,
    pub followers: Vec<&'a Pod>,
    /// What they take together.
    pub requests: ResourceList,
}

/// Bundles that others may join, and by which affinity.
#[derive(Debug, Default)]
pub(crate) struct Bundles<'a> {
    pub all: Vec<Bundle<'a>>,
    /// By affinity: the bundles with a pod that it is about.
    by_affinity: BTreeMap<usize, Vec<usize>>,
}

impl<'a> Bundles<'a> {
    /// A new node at a place for one pod, which these affinities are about.
    pub fn begin(&mut self, pod: &'a Pod, place: Place, requests: ResourceList, chosen: &[usize]) {
        self.all.push(Bundle { place, leader: pod, followers: Vec::new(), requests });
        self.welcome(self.all.len() - 1, chosen);
    }

    /// A pod joins; these affinities are about it.
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

    /// Bundles with a pod that an affinity is about.
    pub fn with(&self, affinity: usize) -> &[usize] {
        self.by_affinity.get(&affinity).map_or(&[], Vec::as_slice)
    }
}

impl<'a> Bundle<'a> {
    fn members(&self) -> impl Iterator<Item = &'a Pod> {
        std::iter::once(self.leader).chain(self.followers.iter().copied())
    }

    /// Whether a pod may share the node, room aside: ports, anti-affinity, spread over nodes, and what it asks of nodes.
    pub fn welcomes(&self, pod: &Pod, namespaces: &NamespaceLabels) -> bool {
        let of = |pod| Identity::of_pod(pod, namespaces);
        let meets = |member| rules::may_share(of(pod), of(member)).is_ok();
        let together: Vec<Identity<'_>> = self.members().chain(std::iter::once(pod)).map(of).collect();
        let even = |owner: &Identity<'_>| may_share(*owner, &together);
        let (own, theirs) = (&pod.spec, &self.leader.spec);
        // An empty term admits no node.
        let says = |terms: &&Vec<NodeTerm>| terms.iter().filter(|term| !term.requirements.is_empty()).count();
        let single = own.node_affinity.as_ref().is_none_or(|terms| says(&terms) == 1);
        pod.priority == self.leader.priority
            && own.tolerations == theirs.tolerations
            && (single || own.node_affinity == theirs.node_affinity)
            && self.members().all(meets)
            && together.iter().all(even)
    }
}

/// What a follower asks of its node, as requirements on the leader's.
pub(crate) fn requirements(spec: &PodSpec, leader: &PodSpec) -> Vec<Requirement> {
    let selected = spec
        .node_selector
        .iter()
        .map(|(key, value)| Requirement { key: key.clone(), operator: Operator::In([value.clone()].into()) });
    let terms = spec.node_affinity.iter().filter(|_| spec.node_affinity != leader.node_affinity).flatten();
    selected.chain(terms.flat_map(|term| term.requirements.iter().cloned())).collect()
}
