//! Pod classes: groups of pods that are equal for planning.

use crate::rules::pin::{Signature, signature};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{MigModel, ResourceList};

use crate::model::{PlanOptions, Pod, PodKey, PodSpec, Shared};
use crate::plan::pack::horizon::Horizons;
use crate::plan::pending::PendingPod;
use crate::plan::place::preferences::kept::PreferenceChoice;
use crate::plan::place::topology::Assigned;
use crate::rules::colocation::Colocation;
use crate::rules::gpus;
use crate::rules::gpus::GpuNeed;
use crate::rules::pin::Pin;
use crate::supply::interruption_risk::{Loss, Losses};

/// Pods with equal specs, colocation profiles and priority.
#[derive(Clone, Debug)]
pub(crate) struct PodClass<'a> {
    pub spec: &'a PodSpec,
    /// The requests of one pod, without the GPUs in `gpu_need`.
    pub requests: ResourceList,
    /// The request for shared or partitioned GPUs.
    pub gpu_need: Option<GpuNeed>,
    /// The order in which pods are placed if there is no room for all, the highest first: their priority, and within it the pods that
    /// a role of their gang needs.
    pub priority: i32,
    /// The colocation profile, as in [`Colocation`].
    pub profile: usize,
    /// The group of remaining lives, as in [`Horizons`].
    pub horizon: usize,
    /// Index into [`PodClasses::signatures`].
    pub signature: usize,
    /// Further signatures that new nodes should meet, the most preferred first; empty for most classes.
    pub preferred: Vec<usize>,
    /// The pods, oldest first.
    pub pods: Vec<&'a Pod>,
    /// Pods that are bundled with the only one in `pods`. Their requests are included in `requests`.
    pub with: &'a [&'a Pod],
    /// The loss of one interruption for a pod and the pods bundled with it.
    pub loss: Loss,
    /// How many of its pods a new node must hold, if any node holds as many. Usually one.
    pub crowd: u64,
}

impl PodClass<'_> {
    /// Returns the requests of one pod on an existing node, where pods get only whole GPUs. Messages use them too.
    pub fn on_whole(&self) -> &ResourceList {
        if self.gpu_need.is_none() { &self.requests } else { &self.spec.requests }
    }
}

/// All classes, and their signatures.
#[derive(Debug, Default)]
pub(crate) struct PodClasses<'a> {
    pub classes: Vec<PodClass<'a>>,
    /// One spec and pin for each combination of node selector, node affinity, tolerations and pin.
    pub signatures: Vec<(&'a PodSpec, &'a Pin)>,
}

/// The priority of pods, and whether they come before others of it, because a role of their gang needs them.
type Level = (i32, bool);

/// The key of a class: level, spec, profile, pin, preferences, group of lives, loss, the pod itself if it leads a bundle, and
/// the pods that a new node must hold.
type Like<'a> =
    (Reverse<Level>, &'a Shared<PodSpec>, usize, &'a Pin, &'a [Pin], usize, Loss, Option<&'a PodKey>, u64);

/// Groups pods into classes, in an order that depends only on the pods.
pub(crate) fn group<'a>(
    pending: &[PendingPod<'a>],
    (assigned, chosen): (&'a Assigned<'_>, &'a PreferenceChoice<'_>),
    colocation: &mut Cow<'_, Colocation<'a>>,
    (horizons, losses): (&Horizons, &Losses),
    (options, crowds, first): (&PlanOptions, &BTreeMap<String, u64>, &BTreeSet<&PodKey>),
    models: &[&MigModel],
) -> PodClasses<'a> {
    let follows: BTreeSet<&PodKey> = assigned.bundles.values().flatten().map(|pod| &pod.key).collect();
    let apart = |key: &PodKey| assigned.unplaced.contains_key(key) || follows.contains(key);
    let mut groups: BTreeMap<Like<'a>, Vec<&'a Pod>> = BTreeMap::new();
    for want in pending.iter().filter(|want| !apart(&want.pod.key)) {
        let key = &want.pod.key;
        let leads = (!assigned.with(key).is_empty()).then_some(key);
        let (pin, levels) = (assigned.pin(key), chosen.levels(key));
        // A bundle lives as long as its longest pod.
        let with = assigned.with(key).iter().map(|pod| horizons.of(&pod.key));
        let horizon = with.fold(horizons.of(key), usize::max);
        let loss = losses.of(options, want.pod);
        let profile = colocation.of(key);
        let crowd = crowds.get(key.namespace()).copied().unwrap_or(1);
        let needed = first.contains(key) || assigned.with(key).iter().any(|pod| first.contains(&pod.key));
        let level = Reverse((want.pod.priority, needed));
        let key = (level, &want.pod.spec, profile, pin, levels, horizon, loss, leads, crowd);
        groups.entry(key).or_default().push(want.pod);
    }
    let mut known: BTreeMap<Signature<'a>, usize> = BTreeMap::new();
    let mut classes = PodClasses::default();
    let all: BTreeSet<Level> = groups.keys().map(|(Reverse(level), ..)| *level).collect();
    let has_needed = all.iter().any(|(_, needed)| *needed);
    for ((Reverse(level), _, mut profile, pin, levels, horizon, own_loss, leads, crowd), mut pods) in groups {
        let spec: &'a PodSpec = &pods[0].spec;
        let mut number = |pin| {
            *known.entry(signature(spec, pin)).or_insert_with(|| {
                classes.signatures.push((spec, pin));
                classes.signatures.len() - 1
            })
        };
        let signature = number(pin);
        let preferred = levels.iter().map(number).collect();
        pods.sort_by(|a, b| (a.created, &a.key).cmp(&(b.created, &b.key)));
        let (mut requests, gpu_need) = gpus::wanted(options.sharing, models, spec);
        let with = leads.map_or(&[][..], |leader| assigned.with(leader));
        for pod in with {
            requests.add(&gpus::wanted(options.sharing, models, &pod.spec).0);
        }
        if !with.is_empty() {
            let profiles = with.iter().map(|pod| colocation.of(&pod.key)).chain([profile]).collect();
            profile = colocation.to_mut().together(profiles);
        }
        let priority = if has_needed { all.range(..level).count() as i32 } else { level.0 };
        let loss = with.iter().map(|pod| losses.of(options, pod));
        let loss = loss.fold(own_loss, Loss::with);
        classes.classes.push(PodClass {
            spec,
            requests,
            gpu_need,
            priority,
            profile,
            horizon,
            signature,
            preferred,
            pods,
            with,
            loss,
            crowd,
        });
    }
    classes
}
