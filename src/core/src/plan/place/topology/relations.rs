//! Relations between pods: rules about other pods over zones and other domains, indexed by small numbers.
//!
//! Rules about single nodes (`kubernetes.io/hostname`) are in [`crate::rules::colocation`], except for affinity, which is
//! handled here for nodes too.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_terms::labels::HOSTNAME;

use crate::model::{ObjectKey, Pod, PodAffinityTerm, PodKey, PodPhase, PodRole, PodSpec, Snapshot};
use crate::rules;
use crate::rules::identity::Identity;
use crate::rules::selector_index::SelectorIndex;
use crate::rules::spread::constraint::CountsAlike;
use crate::rules::spread::domains::DomainSpread;

/// The required pod affinity of a pod: all its terms.
#[derive(Debug)]
pub(crate) struct Affinity<'a> {
    pub terms: &'a [PodAffinityTerm],
    /// The topology keys of the terms.
    pub keys: Vec<usize>,
    /// Whether a term is about single nodes.
    pub on_node: bool,
}

/// A required anti-affinity term.
#[derive(Debug)]
pub(crate) struct Anti<'a> {
    pub term: &'a PodAffinityTerm,
    pub key: usize,
}

/// The rules of a pod about other pods, and the rules of other pods about it, as ascending indices into the lists of
/// [`Relations`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodRelations {
    pub spreads: Vec<usize>,
    pub affinity: Option<usize>,
    pub antis: Vec<usize>,
    /// Spread constraints that count it.
    pub counted: Vec<usize>,
    /// Affinities whose terms all select it.
    pub chosen: Vec<usize>,
    /// Anti-affinity terms that select it.
    pub subject: Vec<usize>,
    /// The topology keys of all these.
    pub keys: Vec<usize>,
}

impl PodRelations {
    /// Returns whether it has rules of its own.
    pub fn is_bound(&self) -> bool {
        !self.spreads.is_empty() || self.affinity.is_some() || !self.antis.is_empty()
    }

    /// Returns whether its affinity selects the pod itself. If so, the first pod of its group may go anywhere.
    pub fn is_seed(&self) -> bool {
        self.affinity.is_some_and(|own| self.chosen.contains(&own))
    }
}

/// All rules, and the pods that they affect.
#[derive(Debug, Default)]
pub(crate) struct Relations<'a> {
    pub(crate) keys: Vec<&'a str>,
    pub(crate) spreads: Vec<DomainSpread<'a>>,
    pub(crate) affinities: Vec<Affinity<'a>>,
    pub(crate) antis: Vec<Anti<'a>>,
    pub(crate) kinds: Vec<PodRelations>,
    of: BTreeMap<&'a PodKey, usize>,
    /// The relations of bound pods, in the order of [`crate::model::Pods::alike`].
    of_alike: Vec<usize>,
    of_daemonset: BTreeMap<&'a ObjectKey, usize>,
}

/// Returns whether a pod waits for a node.
fn waits(pod: &Pod) -> bool {
    matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. })
        && pod.role == PodRole::Workload
        && pod.deleting_since.is_none()
}

impl<'a> Relations<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        // Bound pods with equal traits are treated as one pod. Of their rules, only anti-affinity still matters.
        let bound = || snapshot.pods.alike().map(|(look, _)| look.example());
        let others = || snapshot.pods.unbound().filter(|pod| pod.phase != PodPhase::Gated);
        let mut found = Found::default();
        for pod in bound() {
            found.antis_of(&pod.spec);
        }
        for pod in others() {
            found.rules_of(pod);
        }
        for set in snapshot.daemonsets.values() {
            found.antis_of(&set.spec);
        }
        let mut relations = found.relations();
        if relations.keys.is_empty() {
            return relations;
        }
        let index = RuleIndex::new(&relations);
        let mut said: BTreeMap<(&str, &BTreeMap<String, String>), MatchingRules> = BTreeMap::new();
        let mut kinds: BTreeMap<PodRelations, usize> = BTreeMap::from([(PodRelations::default(), 0)]);
        let owned = bound().map(|pod| (pod, None)).chain(others().map(|pod| (pod, Some(&pod.key))));
        for (pod, key) in owned {
            let identity = Identity::of_pod(pod, &snapshot.namespaces);
            let about = said
                .entry((identity.namespace, identity.labels))
                .or_insert_with(|| relations.said_about(&index, identity));
            let mut kind = match key {
                Some(_) => found.own(pod),
                None => PodRelations { antis: found.own_antis(&pod.spec), ..PodRelations::default() },
            };
            kind.counted.clone_from(&about.counted);
            kind.chosen.clone_from(&about.chosen);
            kind.subject.clone_from(&about.subject);
            kind.keys = relations.keys_of(&kind);
            let next = kinds.len();
            let at = *kinds.entry(kind).or_insert(next);
            match key {
                None => relations.of_alike.push(at),
                Some(key) if at > 0 => {
                    relations.of.insert(key, at);
                }
                Some(_) => {}
            }
        }
        for set in snapshot.daemonsets.values() {
            let identity = Identity::of_daemonset(set, &snapshot.namespaces);
            let about = relations.said_about(&index, identity);
            let antis = found.own_antis(&set.spec);
            let MatchingRules { counted, chosen, subject } = about;
            let mut kind = PodRelations { antis, counted, chosen, subject, ..PodRelations::default() };
            kind.keys = relations.keys_of(&kind);
            let next = kinds.len();
            let at = *kinds.entry(kind).or_insert(next);
            if at > 0 {
                relations.of_daemonset.insert(&set.key, at);
            }
        }
        let mut ordered: Vec<(PodRelations, usize)> = kinds.into_iter().collect();
        ordered.sort_by_key(|(_, at)| *at);
        relations.kinds = ordered.into_iter().map(|(kind, _)| kind).collect();
        relations
    }

    /// The relations of bound pods, in the order of [`crate::model::Pods::alike`].
    pub fn of_alike(&self) -> impl Iterator<Item = usize> {
        self.of_alike.iter().copied()
    }

    /// Returns the index of the relations of a pod without a node; 0 if it has none.
    pub fn of(&self, pod: &PodKey) -> usize {
        self.of.get(pod).copied().unwrap_or(0)
    }

    /// Returns whether rules affect the pods of any DaemonSet.
    pub fn concern_daemonsets(&self) -> bool {
        !self.of_daemonset.is_empty()
    }

    /// Returns the index of the relations of a DaemonSet's pods.
    pub fn of_daemonset(&self, set: &ObjectKey) -> usize {
        self.of_daemonset.get(set).copied().unwrap_or(0)
    }

    fn said_about(&self, index: &RuleIndex<'a>, pod: Identity<'_>) -> MatchingRules {
        let counted = index.spreads.candidates(pod.labels).into_iter();
        let chosen = index.affinities.candidates(pod.labels).into_iter();
        let subject = index.antis.candidates(pod.labels).into_iter();
        let chooses = |at: &usize| self.affinities[*at].terms.iter().all(|term| rules::selects(term, pod));
        MatchingRules {
            counted: counted.filter(|at| self.spreads[*at].counts(pod)).collect(),
            chosen: chosen.filter(chooses).collect(),
            subject: subject.filter(|at| rules::selects(self.antis[*at].term, pod)).collect(),
        }
    }

    fn keys_of(&self, kind: &PodRelations) -> Vec<usize> {
        let spreads = kind.spreads.iter().chain(&kind.counted).map(|at| self.spreads[*at].key);
        let sets = kind.affinity.iter().chain(&kind.chosen);
        let affinities = sets.flat_map(|at| self.affinities[*at].keys.iter().copied());
        let antis = kind.antis.iter().chain(&kind.subject).map(|at| self.antis[*at].key);
        let keys: BTreeSet<usize> = spreads.chain(affinities).chain(antis).collect();
        keys.into_iter().collect()
    }
}

fn sorted(mut all: Vec<usize>) -> Vec<usize> {
    all.sort_unstable();
    all.dedup();
    all
}

/// The rules that match pods with one set of labels in one namespace.
struct MatchingRules {
    counted: Vec<usize>,
    chosen: Vec<usize>,
    subject: Vec<usize>,
}

/// The rules of all lists, by the labels that they look for.
struct RuleIndex<'a> {
    spreads: SelectorIndex<'a>,
    affinities: SelectorIndex<'a>,
    antis: SelectorIndex<'a>,
}

impl<'a> RuleIndex<'a> {
    fn new(relations: &Relations<'a>) -> Self {
        let spreads = relations.spreads.iter().map(|spread| spread.rule.selector.as_deref());
        // An affinity has at least one term, and the first must select a pod as all others must.
        let first = |set: &Affinity<'a>| set.terms.first().and_then(|term| term.selector.as_deref());
        let antis = relations.antis.iter().map(|anti| anti.term.selector.as_deref());
        Self {
            spreads: SelectorIndex::new(spreads),
            affinities: SelectorIndex::new(relations.affinities.iter().map(first)),
            antis: SelectorIndex::new(antis),
        }
    }
}

/// Collects rules, each once.
#[derive(Default)]
struct Found<'a> {
    spreads: BTreeMap<CountsAlike<'a>, (usize, &'a PodSpec)>,
    affinities: BTreeMap<&'a [PodAffinityTerm], usize>,
    antis: BTreeMap<&'a PodAffinityTerm, usize>,
}

impl<'a> Found<'a> {
    fn rules_of(&mut self, pod: &'a Pod) {
        let spec: &'a PodSpec = &pod.spec;
        // Spread constraints and affinity of bound pods do not restrict newcomers.
        if waits(pod) {
            for rule in spec.spreads.iter().filter(|rule| rule.topology_key != HOSTNAME) {
                let next = self.spreads.len();
                let alike = CountsAlike::new(pod.key.namespace(), spec, rule);
                self.spreads.entry(alike).or_insert((next, spec));
            }
            if !spec.affinity.is_empty() {
                let next = self.affinities.len();
                self.affinities.entry(&spec.affinity).or_insert(next);
            }
        }
        if waits(pod) {
            self.antis_of(spec);
        }
    }

    fn antis_of(&mut self, spec: &'a PodSpec) {
        for term in spec.anti_affinity.iter().filter(|term| term.topology_key != HOSTNAME) {
            let next = self.antis.len();
            self.antis.entry(term).or_insert(next);
        }
    }

    fn own_antis(&self, spec: &PodSpec) -> Vec<usize> {
        let own = spec.anti_affinity.iter().filter_map(|term| self.antis.get(term).copied());
        sorted(own.collect())
    }

    /// Returns a pod's own rules.
    fn own(&self, pod: &Pod) -> PodRelations {
        let spec = &pod.spec;
        let mut kind = PodRelations::default();
        if waits(pod) {
            let alike = |rule| CountsAlike::new(pod.key.namespace(), spec, rule);
            let spreads = spec.spreads.iter().filter_map(|rule| self.spreads.get(&alike(rule)));
            kind.spreads = sorted(spreads.map(|(at, _)| *at).collect());
            kind.affinity = self.affinities.get(spec.affinity.as_slice()).copied();
        }
        kind.antis = self.own_antis(spec);
        kind
    }

    fn relations(&self) -> Relations<'a> {
        let of_spreads =
            self.spreads.keys().flat_map(|alike| alike.all).map(|rule| rule.topology_key.as_str());
        let of_spreads = of_spreads.filter(|key| *key != HOSTNAME);
        let of_terms = self.affinities.keys().copied().flatten().chain(self.antis.keys().copied());
        let keys: BTreeSet<&'a str> =
            of_spreads.chain(of_terms.map(|term| term.topology_key.as_str())).collect();
        let keys: Vec<&'a str> = keys.into_iter().collect();
        let key = |name: &str| keys.binary_search(&name).unwrap_or_default();
        let mut spreads: Vec<_> = self.spreads.iter().collect();
        spreads.sort_by_key(|(_, (at, _))| *at);
        let mut affinities: Vec<_> = self.affinities.iter().collect();
        affinities.sort_by_key(|(_, at)| **at);
        let mut antis: Vec<_> = self.antis.iter().collect();
        antis.sort_by_key(|(_, at)| **at);
        Relations {
            spreads: spreads
                .into_iter()
                .map(|(alike, (_, owner))| {
                    let CountsAlike { namespace, rule, all, .. } = *alike;
                    let over = all.iter().map(|rule| rule.topology_key.as_str());
                    let needs: BTreeSet<usize> = over.filter(|name| *name != HOSTNAME).map(key).collect();
                    let needs = needs.into_iter().collect();
                    DomainSpread { rule, namespace, owner, key: key(&rule.topology_key), needs }
                })
                .collect(),
            affinities: affinities
                .into_iter()
                .map(|(terms, _)| Affinity {
                    terms,
                    keys: terms.iter().map(|term| key(&term.topology_key)).collect(),
                    on_node: terms.iter().any(|term| term.topology_key == HOSTNAME),
                })
                .collect(),
            antis: antis.into_iter().map(|(term, _)| Anti { term, key: key(&term.topology_key) }).collect(),
            kinds: vec![PodRelations::default()],
            of: BTreeMap::new(),
            of_alike: Vec::new(),
            of_daemonset: BTreeMap::new(),
            keys,
        }
    }
}

#[cfg(test)]
mod tests {
    use poolwright_terms::labels::ZONE;
    use proptest::prelude::*;

    use super::*;
    use crate::rules::generated;

    proptest! {
        #[test]
        fn the_rules_about_a_pod_are_those_that_a_look_at_each_rule_finds(pods in generated::pods(ZONE)) {
            let snapshot = generated::snapshot(&pods);
            let relations = Relations::new(&snapshot);
            for pod in &pods {
                let identity = Identity::of_pod(pod, &snapshot.namespaces);
                let mut plain = PodRelations::default();
                for (at, spread) in relations.spreads.iter().enumerate() {
                    plain.counted.extend(spread.counts(identity).then_some(at));
                }
                for (at, set) in relations.affinities.iter().enumerate() {
                    let chosen = set.terms.iter().all(|term| rules::selects(term, identity));
                    plain.chosen.extend(chosen.then_some(at));
                }
                for (at, anti) in relations.antis.iter().enumerate() {
                    plain.subject.extend(rules::selects(anti.term, identity).then_some(at));
                }
                let PodRelations { counted, chosen, subject, .. } = &relations.kinds[relations.of(&pod.key)];
                prop_assert_eq!(
                    (counted, chosen, subject),
                    (&plain.counted, &plain.chosen, &plain.subject)
                );
            }
        }
    }
}
