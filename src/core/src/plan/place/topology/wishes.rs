//! Preferences over the topology keys of rules about other pods. Places of pods with such rules are chosen here, so their preferences
//! must count here, among the places that the rules leave.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use poolwright_terms::labels::HOSTNAME;

use crate::model::relaxed::PreferencePolicy;
use crate::model::{NodeSelectorTerm, Pod, Requirement, Weighted};
use crate::plan::place::preferences::neighbours::{About, Neighbours};
use crate::plan::place::topology::inputs::TopologyInputs;
use crate::rules;

/// The labels of a place, without the host name.
pub(crate) type PlaceLabels = BTreeMap<String, String>;

/// A preference of a pod.
enum Wish<'a> {
    /// A node that meets this term.
    Node(&'a NodeSelectorTerm),
    /// A domain with such pods.
    Near(About<'a>),
    /// A domain without such pods.
    Apart(About<'a>),
    /// A domain that keeps this maximum skew.
    Even(About<'a>, u32),
}

impl<'a> Wish<'a> {
    fn about(&self) -> Option<About<'a>> {
        match self {
            Self::Node(_) => None,
            Self::Near(about) | Self::Apart(about) | Self::Even(about, _) => Some(*about),
        }
    }
}

/// Returns the preferences of a pod in the order in which they are kept, the strongest first.
fn of<'a>(pod: &'a Pod) -> Vec<Wish<'a>> {
    let Some(preferences) = pod.spec.preferences.as_deref() else { return Vec::new() };
    let added = preferences.added.iter().map(|(preference, _)| preference);
    let mut nodes: Vec<&'a Weighted<NodeSelectorTerm>> = preferences.nodes.iter().chain(added).collect();
    nodes.sort_by_key(|preference| Reverse(preference.weight));
    let near = preferences.affinity.iter().map(|one| (one.weight, Wish::Near(About::Term(&one.term))));
    let apart = preferences.anti_affinity.iter().map(|one| (one.weight, Wish::Apart(About::Term(&one.term))));
    let mut pods: Vec<(u32, Wish<'a>)> = near.chain(apart).collect();
    pods.sort_by_key(|(weight, _)| Reverse(*weight));
    let spreads = preferences.spreads.iter();
    let spreads = spreads.map(|rule| Wish::Even(About::Spread(pod.key.namespace(), rule), rule.max_skew));
    let nodes = nodes.into_iter().map(|preference| Wish::Node(&preference.term));
    nodes.chain(pods.into_iter().map(|(_, wish)| wish)).chain(spreads).collect()
}

/// The preferences of pods whose places are chosen, and the pods that they are about.
#[derive(Debug)]
pub(crate) struct Wishes<'a> {
    neighbours: Neighbours<'a>,
    /// Whether any preference is about other pods, over keys of rules.
    are_about_pods: bool,
    policy: PreferencePolicy,
}

/// Returns whether a place decides about preferences over a topology key, given the keys of rules about other pods.
fn is_decided(key: &str, keys: &[&str]) -> bool {
    key != HOSTNAME && keys.contains(&key)
}

/// Returns what the preferences of pods are about, if a place decides about them.
fn counted<'a>(pods: impl IntoIterator<Item = &'a Pod>, keys: &[&str]) -> Vec<About<'a>> {
    let all = pods.into_iter().flat_map(of).filter_map(|wish| wish.about());
    all.filter(|about| is_decided(about.key(), keys)).collect()
}

impl<'a> Wishes<'a> {
    pub fn new(inputs: &TopologyInputs<'_, 'a>, pods: &[&'a Pod]) -> Self {
        let policy = inputs.policy;
        let counts = policy != PreferencePolicy::Ignore;
        let wishing = pods.iter().copied().filter(|_| counts);
        let wanted = counted(wishing, &inputs.relations.keys);
        let are_about_pods = !wanted.is_empty();
        let mut neighbours = Neighbours::new(&inputs.snapshot.namespaces, wanted);
        if are_about_pods {
            neighbours.put_known(inputs.snapshot, inputs.rooms, inputs.settled);
        }
        Self { neighbours, are_about_pods, policy }
    }

    /// Returns whether preferences decide among places for a pod.
    pub fn has(&self, pod: &Pod) -> bool {
        self.policy != PreferencePolicy::Ignore && pod.spec.preferences.is_some()
    }

    /// Returns whether places of pods must be counted with [`Wishes::put`].
    pub fn count_pods(&self) -> bool {
        self.are_about_pods
    }

    /// Counts a pod at a place.
    pub fn put(&mut self, pod: &'a Pod, place: &PlaceLabels) {
        self.neighbours.put(pod, |key| place.get(key).cloned());
    }

    /// Returns, for each place, which preferences of a pod it does not meet, the strongest first. Only requirements on these keys
    /// count, because nothing else is decided with a place.
    pub fn unmet(&self, pod: &'a Pod, keys: &[&str], places: &[PlaceLabels]) -> Vec<Vec<bool>> {
        let mut all: Vec<Vec<bool>> = vec![Vec::new(); places.len()];
        for wish in of(pod) {
            for (unmet, one) in all.iter_mut().zip(self.unmet_by(&wish, keys, places)) {
                unmet.push(one);
            }
        }
        all
    }

    fn unmet_by(&self, wish: &Wish<'a>, keys: &[&str], places: &[PlaceLabels]) -> Vec<bool> {
        let Some(about) = wish.about() else {
            let Wish::Node(term) = wish else { return vec![false; places.len()] };
            let asked: Vec<&Requirement> =
                term.requirements.iter().filter(|one| is_decided(&one.key, keys)).collect();
            let fails = |place: &PlaceLabels| asked.iter().any(|one| !rules::matches(one, place));
            return places.iter().map(fails).collect();
        };
        if !is_decided(about.key(), keys) {
            return vec![false; places.len()];
        }
        let rule = self.neighbours.of(about);
        let count = |place: &PlaceLabels| {
            place.get(about.key()).map_or(0, |value| self.neighbours.count(rule, value))
        };
        let least = places.iter().map(count).min().unwrap_or(0);
        let fails = |place: &PlaceLabels| match wish {
            Wish::Node(_) => false,
            Wish::Near(_) => self.neighbours.are_anywhere(rule) && count(place) == 0,
            Wish::Apart(_) => count(place) > 0,
            Wish::Even(_, skew) => count(place) + 1 > least + u64::from(*skew),
        };
        places.iter().map(fails).collect()
    }
}

#[cfg(test)]
mod tests {
    use poolwright_terms::labels::ZONE;

    use super::*;
    use crate::model::{Namespaces, PodAffinityTerm, PodKey, PodSpec, Preferences};

    #[test]
    fn only_preferences_over_the_keys_of_rules_are_counted_and_never_those_over_nodes() {
        let over = |key: &str| Weighted {
            weight: 1,
            term: PodAffinityTerm {
                topology_key: key.to_owned(),
                namespaces: Namespaces::All,
                selector: Some(Vec::new()),
            },
        };
        let affinity = vec![over(HOSTNAME), over(ZONE), over("rack")];
        let preferences = Some(Box::new(Preferences { affinity, ..Preferences::default() }));
        let pod = Pod::waiting(PodKey::new("default", "a"), PodSpec { preferences, ..PodSpec::default() });
        let keys = |of_rules: &[&str]| {
            counted([&pod], of_rules).into_iter().map(|about| about.key().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(keys(&[HOSTNAME, ZONE]), [ZONE]);
        assert!(keys(&[HOSTNAME]).is_empty(), "spreading over nodes alone counts no pod");
    }
}
