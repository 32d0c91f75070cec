//! Pod classes: pods that are equal in all that matters to planning.

use std::collections::BTreeMap;

use poolwright_catalog::{MigModel, ResourceList};

use super::company::Company;
use super::demand::Wanting;
use super::gpus::{self, Sharing, Wish};
use crate::model::NodeTerm;
use crate::model::{Pod, PodSpec, Toleration};

/// Pods with equal specs, profiles and priority.
#[derive(Clone, Debug)]
pub(super) struct Class<'a> {
    pub spec: &'a PodSpec,
    /// What one pod takes of a node, besides what `wish` says.
    pub requests: ResourceList,
    /// What it wants of shared or cut GPUs.
    pub wish: Option<Wish>,
    pub priority: i32,
    /// What others say about them, and they about others: see [`Company`].
    pub profile: usize,
    /// Index into [`Classes::signatures`].
    pub signature: usize,
    /// The oldest first.
    pub pods: Vec<&'a Pod>,
}

impl Class<'_> {
    /// What one pod takes of a node that is there, where GPUs are given whole; also what to say that it asks for.
    pub fn on_whole(&self) -> &ResourceList {
        if self.wish.is_none() { &self.requests } else { &self.spec.requests }
    }
}

/// Classes, and what distinguishes them besides their requests.
#[derive(Debug, Default)]
pub(super) struct Classes<'a> {
    pub classes: Vec<Class<'a>>,
    /// One spec for each combination of node selector, node affinity and tolerations.
    pub signatures: Vec<&'a PodSpec>,
}

type Signature<'a> =
    (&'a BTreeMap<String, String>, &'a Option<Vec<NodeTerm>>, &'a Vec<Toleration>, &'a Vec<Vec<NodeTerm>>);

/// Groups pods, in an order that depends on nothing but the pods.
pub(super) fn group<'a>(
    wanting: &[Wanting<'a>],
    company: &Company<'_>,
    sharing: Sharing,
    models: &[&MigModel],
) -> Classes<'a> {
    let mut groups: BTreeMap<(std::cmp::Reverse<i32>, &PodSpec, usize), Vec<&'a Pod>> = BTreeMap::new();
    for want in wanting {
        let key = (std::cmp::Reverse(want.pod.priority), &want.pod.spec, company.of(&want.pod.key));
        groups.entry(key).or_default().push(want.pod);
    }
    let mut known: BTreeMap<Signature<'a>, usize> = BTreeMap::new();
    let mut classes = Classes::default();
    for ((_, _, profile), mut pods) in groups {
        let spec = &pods[0].spec;
        let signature = (&spec.node_selector, &spec.node_affinity, &spec.tolerations, &spec.volumes);
        let signature = *known.entry(signature).or_insert_with(|| {
            classes.signatures.push(spec);
            classes.signatures.len() - 1
        });
        pods.sort_by(|a, b| (a.created, &a.key).cmp(&(b.created, &b.key)));
        let (requests, wish) = gpus::wanted(sharing, models, spec);
        let priority = pods[0].priority;
        classes.classes.push(Class { spec, requests, wish, priority, profile, signature, pods });
    }
    classes
}
