//! Counts of pods by domain, for preferences about other pods.

use std::collections::BTreeMap;

use crate::model::{NamespaceLabels, Pod, PodAffinityTerm, PodPhase, Snapshot, TopologySpreadConstraint};
use crate::rules;
use crate::rules::identity::Identity;
use crate::supply::rooms::Rooms;

/// The pods that a preference selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About<'a> {
    /// Pods that a pod affinity or anti-affinity term selects.
    Term(&'a PodAffinityTerm),
    /// Pods that a spread constraint of a pod in this namespace counts.
    Spread(&'a str, &'a TopologySpreadConstraint),
}

impl<'a> About<'a> {
    pub fn key(self) -> &'a str {
        match self {
            Self::Term(term) => &term.topology_key,
            Self::Spread(_, rule) => &rule.topology_key,
        }
    }

    fn counts(self, pod: Identity<'_>) -> bool {
        match self {
            Self::Term(term) => rules::selects(term, pod),
            Self::Spread(namespace, rule) => rules::counts(rule, namespace, pod),
        }
    }
}

/// The namespace and labels of a pod, which are all that selectors use.
type PodLabels<'a> = (&'a str, &'a BTreeMap<String, String>);

/// The number of pods by preference and domain.
#[derive(Debug)]
pub(crate) struct Neighbours<'a> {
    namespaces: &'a NamespaceLabels,
    all: Vec<(About<'a>, BTreeMap<String, u64>)>,
    known: BTreeMap<About<'a>, usize>,
    /// The preferences that select a pod, by namespace and labels.
    about: BTreeMap<PodLabels<'a>, Vec<usize>>,
}

impl<'a> Neighbours<'a> {
    /// Creates counts for these preferences. Callers may ask for no other preferences.
    pub fn new(namespaces: &'a NamespaceLabels, wanted: impl IntoIterator<Item = About<'a>>) -> Self {
        let mut neighbours =
            Self { namespaces, all: Vec::new(), known: BTreeMap::new(), about: BTreeMap::new() };
        for about in wanted {
            let next = neighbours.all.len();
            if *neighbours.known.entry(about).or_insert(next) == next {
                neighbours.all.push((about, BTreeMap::new()));
            }
        }
        neighbours
    }

    /// Returns the index of a preference.
    pub fn of(&self, about: About<'a>) -> usize {
        self.known[&about]
    }

    /// Returns the preferences that select a pod.
    pub fn about(&mut self, pod: &'a Pod) -> Vec<usize> {
        let who = (pod.key.namespace(), &*pod.labels);
        let (all, namespaces) = (&self.all, self.namespaces);
        let found = self.about.entry(who).or_insert_with(|| {
            let identity = Identity::of_pod(pod, namespaces);
            (0..all.len()).filter(|at| all[*at].0.counts(identity)).collect()
        });
        found.clone()
    }

    /// Adds a pod on a node with these labels.
    pub fn put(&mut self, pod: &'a Pod, label: impl Fn(&str) -> Option<String>) {
        for at in self.about(pod) {
            let (about, places) = &mut self.all[at];
            if let Some(value) = label(about.key()) {
                *places.entry(value).or_default() += 1;
            }
        }
    }

    /// Adds the pods with known places: those that run, and those that are settled in a room.
    pub fn put_known(&mut self, snapshot: &'a Snapshot, rooms: &Rooms<'_>, settled: &[(usize, &'a Pod)]) {
        for pod in snapshot.pods.values().filter(|pod| pod.deleting_since.is_none()) {
            if let PodPhase::Bound { node } = &pod.phase
                && let Some(node) = snapshot.nodes.get(node)
            {
                self.put(pod, |key| node.labels.get(key).cloned());
            }
        }
        for (room, pod) in settled {
            let labels = &rooms.all[*room].labels;
            self.put(pod, |key| labels.get(key).cloned());
        }
    }

    /// Removes a pod.
    pub fn take(&mut self, pod: &'a Pod, key: &str, value: &str) {
        for at in self.about(pod) {
            let (about, places) = &mut self.all[at];
            if about.key() == key
                && let Some(count) = places.get_mut(value)
            {
                *count = count.saturating_sub(1);
            }
        }
    }

    /// Returns the number of selected pods in a domain.
    pub fn count(&self, at: usize, value: &str) -> u64 {
        self.all[at].1.get(value).copied().unwrap_or(0)
    }

    /// Returns whether any selected pod has a place.
    pub fn are_anywhere(&self, at: usize) -> bool {
        self.all[at].1.values().any(|count| *count > 0)
    }
}
