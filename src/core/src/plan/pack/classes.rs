//! Pod classes: pods that are equal in all that matters to planning.

use crate::rules::pin::{Signature, signature};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{MigModel, ResourceList};

use crate::model::Sharing;
use crate::model::{Pod, PodKey, PodSpec};
use crate::plan::pending::PendingPod;
use crate::plan::place::preferences::kept::Chosen;
use crate::plan::place::topology::Assigned;
use crate::rules::colocation::Colocation;
use crate::rules::gpus;
use crate::rules::gpus::GpuNeed;
use crate::rules::pin::Pin;

/// Pods with equal specs, profiles and priority.
#[derive(Clone, Debug)]
pub(crate) struct PodClass<'a> {
    pub spec: &'a PodSpec,
    /// What one pod takes of a node, besides what `gpu_need` says.
    pub requests: ResourceList,
    /// What it wants of shared or cut GPUs.
    pub gpu_need: Option<GpuNeed>,
    pub priority: i32,
    /// What others say about them, and they about others: see [`Colocation`].
    pub profile: usize,
    /// Index into [`PodClasses::signatures`].
    pub signature: usize,
    /// Those that new nodes should meet besides, the most preferred for first; empty for most.
    pub preferred: Vec<usize>,
    /// The oldest first.
    pub pods: Vec<&'a Pod>,
    /// Pods that share the node of the only one in `pods`; what they take is part of `requests`.
    pub with: &'a [&'a Pod],
}

impl PodClass<'_> {
    /// What one pod takes of a node that is there, where GPUs are given whole; also what to say that it asks for.
    pub fn on_whole(&self) -> &ResourceList {
        if self.gpu_need.is_none() { &self.requests } else { &self.spec.requests }
    }
}

/// Classes, and what distinguishes them besides their requests.
#[derive(Debug, Default)]
pub(crate) struct PodClasses<'a> {
    pub classes: Vec<PodClass<'a>>,
    /// One spec for each combination of node selector, node affinity, tolerations and what pods are pinned to.
    pub signatures: Vec<(&'a PodSpec, &'a Pin)>,
}

/// What pods of one class share: priority, spec, profile, pin, preferences that are kept, and whom they lead, if anybody.
type Like<'a> = (Reverse<i32>, &'a PodSpec, usize, &'a Pin, &'a [Pin], Option<&'a PodKey>);

/// Groups pods, in an order that depends on nothing but the pods.
pub(crate) fn group<'a>(
    pending: &[PendingPod<'a>],
    (assigned, chosen): (&'a Assigned<'_>, &'a Chosen<'_>),
    colocation: &mut Cow<'_, Colocation<'a>>,
    sharing: Sharing,
    models: &[&MigModel],
) -> PodClasses<'a> {
    let follows: BTreeSet<&PodKey> = assigned.bundles.values().flatten().map(|pod| &pod.key).collect();
    let apart = |key: &PodKey| assigned.unplaced.contains_key(key) || follows.contains(key);
    let mut groups: BTreeMap<Like<'a>, Vec<&'a Pod>> = BTreeMap::new();
    for want in pending.iter().filter(|want| !apart(&want.pod.key)) {
        let key = &want.pod.key;
        let leads = (!assigned.with(key).is_empty()).then_some(key);
        let (pin, levels) = (assigned.pin(key), chosen.levels(key));
        let key = (Reverse(want.pod.priority), &want.pod.spec, colocation.of(key), pin, levels, leads);
        groups.entry(key).or_default().push(want.pod);
    }
    let mut known: BTreeMap<Signature<'a>, usize> = BTreeMap::new();
    let mut classes = PodClasses::default();
    for ((_, _, mut profile, pin, levels, leads), mut pods) in groups {
        let spec = &pods[0].spec;
        let mut number = |pin| {
            *known.entry(signature(spec, pin)).or_insert_with(|| {
                classes.signatures.push((spec, pin));
                classes.signatures.len() - 1
            })
        };
        let signature = number(pin);
        let preferred = levels.iter().map(number).collect();
        pods.sort_by(|a, b| (a.created, &a.key).cmp(&(b.created, &b.key)));
        let (mut requests, gpu_need) = gpus::wanted(sharing, models, spec);
        let with = leads.map_or(&[][..], |leader| assigned.with(leader));
        for pod in with {
            requests.add(&gpus::wanted(sharing, models, &pod.spec).0);
        }
        if !with.is_empty() {
            let profiles = with.iter().map(|pod| colocation.of(&pod.key)).chain([profile]).collect();
            profile = colocation.to_mut().together(profiles);
        }
        let priority = pods[0].priority;
        classes.classes.push(PodClass {
            spec,
            requests,
            gpu_need,
            priority,
            profile,
            signature,
            preferred,
            pods,
            with,
        });
    }
    classes
}
