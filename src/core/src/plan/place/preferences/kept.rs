//! Kept preferences: the preferences that new nodes should meet.

use crate::model::relaxed::{PreferencePolicy, WhyRelaxed};
use crate::model::{PlanOptions, Pod, PodKey, PodSpec, Requirement, Snapshot};
use crate::plan::pending::PendingPod;
use crate::plan::place::topology::Assigned;
use crate::rules::pin::Pin;
use crate::supply::offerings::Supply;
use crate::supply::rooms::Rooms;
use poolwright_catalog::ResourceList;
use std::collections::{BTreeMap, BTreeSet};

/// The inputs for the choice of preferences.
pub(crate) struct PreferenceInputs<'s, 'a> {
    pub snapshot: &'a Snapshot,
    pub supply: &'s Supply<'a>,
    pub options: &'s PlanOptions,
    pub policy: PreferencePolicy,
    pub rooms: &'s Rooms<'a>,
    /// Pods with a place on an existing node.
    pub settled: &'s [(usize, &'a Pod)],
    pub open: &'s [PendingPod<'a>],
    pub assigned: &'a Assigned<'a>,
}

/// Preferences that are met by the same nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeptPreferences {
    pub(crate) requirements: Vec<Requirement>,
    /// The descriptions of the preferences.
    pub(crate) preferences: Vec<String>,
}

/// The kept preferences of each open pod.
#[derive(Debug, Default)]
pub(crate) struct PreferenceChoice<'a> {
    pub(crate) by_pod: BTreeMap<&'a PodKey, usize>,
    pub(crate) sets: Vec<Set>,
    pub(crate) dropped: BTreeMap<(String, WhyRelaxed), BTreeSet<&'a PodKey>>,
    /// Whether preferences decided between places, so that the requirements of pods include them.
    pub(crate) is_wished: bool,
}

/// A list of kept preferences.
#[derive(Debug)]
pub(crate) struct Set {
    /// The preferences, strongest first.
    pub(crate) kept: Vec<KeptPreferences>,
    /// The requirements on nodes with all preferences, then without the weakest one, and so on. At least one preference is left.
    pub(crate) levels: Vec<Pin>,
}

impl<'a> PreferenceChoice<'a> {
    /// Returns the requirements on a new node for a pod, by level, with all preferences first. Empty for most pods.
    pub fn levels(&self, pod: &PodKey) -> &[Pin] {
        self.by_pod.get(pod).map_or(&[], |set| &self.sets[*set].levels)
    }

    /// Returns whether any pod has a kept preference.
    pub fn narrows(&self) -> bool {
        !self.by_pod.is_empty()
    }

    /// Returns the record for the report of relaxed preferences.
    pub fn record(&self) -> Record {
        let own = |pods: &BTreeSet<&'a PodKey>| pods.iter().map(|key| (*key).clone()).collect();
        Record {
            kept: self
                .by_pod
                .iter()
                .map(|(key, set)| ((*key).clone(), self.sets[*set].kept.clone()))
                .collect(),
            dropped: self.dropped.iter().map(|(what, pods)| (what.clone(), own(pods))).collect(),
        }
    }

    pub(crate) fn drop_for(&mut self, preference: &str, why: WhyRelaxed, pods: &[&'a Pod]) {
        let known = self.dropped.entry((preference.to_owned(), why)).or_default();
        known.extend(pods.iter().map(|pod| &pod.key));
    }
}

/// Pods with equal preferences and requirements.
pub(crate) struct Group<'a> {
    pub(crate) pods: Vec<&'a Pod>,
    pub(crate) pin: &'a Pin,
    pub(crate) signature: usize,
    /// The requests of one pod on a new node.
    pub(crate) one: ResourceList,
    pub(crate) kept: Vec<KeptPreferences>,
}

impl Group<'_> {
    pub(crate) fn spec(&self) -> &PodSpec {
        &self.pods[0].spec
    }

    /// Returns whether preferences decided between the places of its pods.
    pub(crate) fn is_wished(&self, assigned: &Assigned<'_>) -> bool {
        self.pods.iter().any(|pod| assigned.wished.contains(&pod.key))
    }

    /// Returns whether its pods have node requirements.
    pub(crate) fn requires(&self) -> bool {
        let spec = self.spec();
        let own = !spec.node_selector.is_empty() || spec.node_affinity.is_some();
        own || spec.enforced.is_some() || !spec.volumes.is_empty() || !self.pin.is_empty()
    }

    pub(crate) fn total(&self, count: u64) -> ResourceList {
        times(&self.one, count)
    }

    /// Returns the requirements of all preferences kept so far.
    pub(crate) fn wanted(&self) -> Vec<Requirement> {
        self.kept.iter().flat_map(|kept| kept.requirements.iter().cloned()).collect()
    }
}

pub(crate) fn times(one: &ResourceList, count: u64) -> ResourceList {
    let mut all = ResourceList::new();
    for (name, amount) in one.iter() {
        all.set(name.clone(), amount.saturating_mul(count));
    }
    all
}

/// The preferences that were decided before packing: kept or relaxed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) kept: BTreeMap<PodKey, Vec<KeptPreferences>>,
    pub(crate) dropped: BTreeMap<(String, WhyRelaxed), BTreeSet<PodKey>>,
}
