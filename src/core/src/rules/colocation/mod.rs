//! Colocation: the rules that decide which pods may share a node. These are host ports, required pod anti-affinity, and topology
//! spread over nodes.
//!
//! Pods are grouped into colocation profiles. Pods of one profile have the same rules about other pods and are matched by the
//! same rules of other pods. So a few sets of small numbers suffice for thousands of pods. Most pods have profile 0, which means
//! that no such rule concerns them.

pub(crate) mod conflicts;
pub(crate) mod present;

pub(crate) use crate::rules::colocation::present::{Present, join};

use std::collections::{BTreeMap, BTreeSet};

use poolwright_terms::labels::HOSTNAME;

use crate::model::{
    HostPort, NamespaceLabels, ObjectKey, PodAffinityTerm, PodKey, PodPhase, Snapshot,
    TopologySpreadConstraint,
};
use crate::rules::colocation::present::UNLIMITED;
use crate::rules::identity::Identity;
use crate::rules::selector_index::SelectorIndex;
use crate::rules::spread::hosts::HostSpread;
use crate::rules::{identity, ports};

/// All colocation profiles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Colocation<'a> {
    /// Profiles of pods without a node, except profile 0.
    pods: BTreeMap<&'a PodKey, usize>,
    /// Profiles of bound pods: one for staying and one for terminating pods, in the order of [`crate::model::Pods::alike`].
    alike: Vec<(usize, usize)>,
    /// Profiles of DaemonSets.
    daemonsets: BTreeMap<&'a ObjectKey, usize>,
    profiles: Vec<ColocationProfile<'a>>,
    /// Joint profiles of bundled pods, by the profiles of their members.
    joint: BTreeMap<Vec<usize>, usize>,
    pub(crate) spreads: Vec<HostSpread<'a>>,
    /// A number for every host port in use.
    numbers: BTreeMap<&'a HostPort, u32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ColocationProfile<'a> {
    ports: Vec<&'a BTreeSet<HostPort>>,
    /// Anti-affinity terms over nodes that its pods have and that select them. A node holds one of all pods with such a term. A
    /// term stands for many pairs of profiles, which are not in `apart`.
    exclusive: BTreeSet<usize>,
    /// Other profiles that may not share a node with this one because of anti-affinity. It contains this profile too if its pods
    /// exclude each other.
    apart: BTreeSet<usize>,
    /// Profiles that must not share a node with this one within one solve, because of a topology spread constraint of either. It
    /// may contain this profile too.
    counted: BTreeSet<usize>,
    /// Its own topology spread constraints: indices into [`Colocation::spreads`].
    spreads: Vec<usize>,
}

/// The key of a profile: host ports, its own anti-affinity terms, terms that select it, its own spread constraints, and
/// constraints that count it.
pub(crate) type Shape<'a> = (&'a BTreeSet<HostPort>, Vec<usize>, Vec<usize>, Vec<usize>, Vec<usize>);

/// The namespace and labels of a pod, which are all that selectors of other pods use.
type Named<'a> = (&'a str, &'a BTreeMap<String, String>);

/// The rules of other pods that match pods with one set of labels in one namespace.
pub(crate) struct MatchingRules {
    /// Anti-affinity terms that select them, ascending.
    about: Vec<usize>,
    /// Spread constraints that count them, ascending.
    counted: Vec<usize>,
}

/// The rules about other pods, by the labels that they look for.
struct RuleIndex<'a> {
    /// The anti-affinity terms.
    by_number: Vec<&'a PodAffinityTerm>,
    terms: SelectorIndex<'a>,
    spreads: SelectorIndex<'a>,
}

impl<'a> RuleIndex<'a> {
    fn new(terms: &BTreeMap<&'a PodAffinityTerm, usize>, spreads: &[HostSpread<'a>]) -> Self {
        let mut by_number: Vec<(usize, &'a PodAffinityTerm)> =
            terms.iter().map(|(term, at)| (*at, *term)).collect();
        by_number.sort_by_key(|(at, _)| *at);
        let by_number: Vec<&'a PodAffinityTerm> = by_number.into_iter().map(|(_, term)| term).collect();
        Self {
            terms: SelectorIndex::new(by_number.iter().map(|term| term.selector.as_deref())),
            spreads: SelectorIndex::new(spreads.iter().map(HostSpread::selector)),
            by_number,
        }
    }
}

impl<'a> Colocation<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        // Bound pods with equal traits are treated as one pod.
        let bound = || snapshot.pods.alike().map(|(look, _)| look.example());
        let waiting = || snapshot.pods.unbound().filter(|pod| pod.phase != PodPhase::Gated);
        let namespaces: &'a NamespaceLabels = &snapshot.namespaces;
        let mut colocation = Self::default();
        let mut terms: BTreeMap<&'a PodAffinityTerm, usize> = BTreeMap::new();
        for pod in bound().chain(waiting()) {
            // A term over a larger domain also excludes pods from each node of the domain. Colocation enforces that part only for
            // DaemonSet pods.
            for term in &pod.spec.anti_affinity {
                let next = terms.len();
                terms.entry(term).or_insert(next);
            }
        }
        for set in snapshot.daemonsets.values() {
            for term in &set.spec.anti_affinity {
                let next = terms.len();
                terms.entry(term).or_insert(next);
            }
        }
        let mut spreads: BTreeMap<(&'a str, &'a TopologySpreadConstraint), usize> = BTreeMap::new();
        // Constraints of bound pods do not restrict newcomers.
        for pod in waiting() {
            for rule in pod.spec.spreads.iter().filter(|rule| rule.topology_key == HOSTNAME) {
                let namespace = pod.key.namespace();
                let at = *spreads.entry((namespace, rule)).or_insert_with(|| {
                    colocation.spreads.push(HostSpread::new(namespace, rule));
                    colocation.spreads.len() - 1
                });
                colocation.spreads[at].add_owner(&pod.spec);
            }
        }
        let rules = RuleIndex::new(&terms, &colocation.spreads);
        let mut shapes: BTreeMap<Shape<'a>, usize> = BTreeMap::new();
        let mut said: BTreeMap<Named<'a>, MatchingRules> = BTreeMap::new();
        colocation.profiles.push(ColocationProfile::default());
        for pod in bound() {
            let identity = Identity::of_pod(pod, namespaces);
            let about = said
                .entry((identity.namespace, identity.labels))
                .or_insert_with(|| colocation.said_about(&rules, identity));
            let staying = colocation.profile(&terms, &mut shapes, identity, Vec::new(), about);
            // A terminating pod excludes others until it has ended, but no longer counts for spread (`countPodsMatchSelector`).
            let gone = MatchingRules { about: about.about.clone(), counted: Vec::new() };
            let leaving = colocation.profile(&terms, &mut shapes, identity, Vec::new(), &gone);
            colocation.alike.push((staying, leaving));
        }
        for pod in waiting() {
            let own = pod.spec.spreads.iter();
            let own = own.filter_map(|rule| spreads.get(&(pod.key.namespace(), rule)).copied());
            let identity = Identity::of_pod(pod, namespaces);
            let about = said
                .entry((identity.namespace, identity.labels))
                .or_insert_with(|| colocation.said_about(&rules, identity));
            let leaving = pod.deleting_since.is_some() && !about.counted.is_empty();
            let gone = leaving.then(|| MatchingRules { about: about.about.clone(), counted: Vec::new() });
            let about = gone.as_ref().unwrap_or(about);
            let profile = colocation.profile(&terms, &mut shapes, identity, own.collect(), about);
            if profile > 0 {
                colocation.pods.insert(&pod.key, profile);
            }
        }
        for set in snapshot.daemonsets.values() {
            let set_identity = Identity::of_daemonset(set, namespaces);
            let about = colocation.said_about(&rules, set_identity);
            let profile = colocation.profile(&terms, &mut shapes, set_identity, Vec::new(), &about);
            if profile > 0 {
                colocation.daemonsets.insert(&set.key, profile);
            }
        }
        let wide: Vec<bool> = {
            let mut wide = vec![false; terms.len()];
            for (term, at) in &terms {
                wide[*at] = term.topology_key != HOSTNAME;
            }
            wide
        };
        colocation.set_apart(&wide, &shapes);
        colocation.set_counts(&shapes);
        let ports = colocation.profiles.iter().flat_map(|profile| &profile.ports).copied().flatten();
        let ports: BTreeSet<&'a HostPort> = ports.collect();
        colocation.numbers = ports.into_iter().zip(0..).collect();
        colocation
    }

    fn said_about(&self, rules: &RuleIndex<'a>, pod: Identity<'_>) -> MatchingRules {
        let about = rules.terms.candidates(pod.labels).into_iter();
        let about = about.filter(|at| identity::selects(rules.by_number[*at], pod)).collect();
        let counted = rules.spreads.candidates(pod.labels).into_iter();
        MatchingRules { about, counted: counted.filter(|at| self.spreads[*at].counts(pod)).collect() }
    }

    fn profile(
        &mut self,
        terms: &BTreeMap<&'a PodAffinityTerm, usize>,
        shapes: &mut BTreeMap<Shape<'a>, usize>,
        pod: Identity<'a>,
        mut spreads: Vec<usize>,
        said: &MatchingRules,
    ) -> usize {
        let mut own: Vec<usize> =
            pod.spec.anti_affinity.iter().filter_map(|term| terms.get(term).copied()).collect();
        own.sort_unstable();
        own.dedup();
        spreads.sort_unstable();
        spreads.dedup();
        let MatchingRules { about, counted } = said;
        let alone = own.is_empty() && about.is_empty() && spreads.is_empty() && counted.is_empty();
        if pod.spec.host_ports.is_empty() && alone {
            return 0;
        }
        let shape = (&pod.spec.host_ports, own, about.clone(), spreads, counted.clone());
        *shapes.entry(shape).or_insert_with_key(|shape| {
            let ports = Some(&pod.spec.host_ports).filter(|ports| !ports.is_empty()).into_iter().collect();
            self.profiles.push(ColocationProfile {
                ports,
                spreads: shape.3.clone(),
                ..ColocationProfile::default()
            });
            self.profiles.len() - 1
        })
    }

    /// Separates pods with an anti-affinity term from the pods that it selects. Terms over domains larger than a node (`wide`)
    /// are enforced here only for DaemonSet pods.
    fn set_apart(&mut self, wide: &[bool], shapes: &BTreeMap<Shape<'a>, usize>) {
        let none = || vec![BTreeSet::new(); wide.len()];
        let (mut owners, mut subjects): (Vec<BTreeSet<usize>>, Vec<BTreeSet<usize>>) = (none(), none());
        for ((_, own, about, ..), profile) in shapes {
            for term in own {
                owners[*term].insert(*profile);
            }
            for term in about {
                subjects[*term].insert(*profile);
            }
        }
        let of_daemonsets: BTreeSet<usize> = self.daemonsets.values().copied().collect();
        for (term, wide) in wide.iter().enumerate() {
            let (owners, subjects) = (&owners[term], &subjects[term]);
            let exclusive = if *wide { BTreeSet::new() } else { owners & subjects };
            for profile in &exclusive {
                self.profiles[*profile].exclusive.insert(term);
            }
            let (others, daemons) = (subjects - &exclusive, subjects & &of_daemonsets);
            for owner in owners {
                let apart = if exclusive.contains(owner) {
                    &others
                } else if *wide && !of_daemonsets.contains(owner) {
                    &daemons
                } else {
                    subjects
                };
                for subject in apart {
                    self.profiles[*owner].apart.insert(*subject);
                    self.profiles[*subject].apart.insert(*owner);
                }
            }
        }
    }

    /// Registers the profiles that own each spread constraint, and the profiles that it counts.
    fn set_counts(&mut self, shapes: &BTreeMap<Shape<'a>, usize>) {
        for ((.., own, counted), profile) in shapes {
            for spread in counted {
                self.spreads[*spread].weights.insert(*profile, 1);
            }
            for spread in own {
                self.spreads[*spread].owned_by.insert(*profile);
            }
        }
        self.set_counted();
    }

    /// Sets which profiles must not share a node within one solve because of a spread constraint. Owners of a constraint that it
    /// also counts may share a node up to its ceiling ([`Self::tallies`]). Owners and other counted pods must not share a node,
    /// because the solver has no common ceiling for both.
    fn set_counted(&mut self) {
        let mut pairs = Vec::new();
        let mut there: BTreeMap<usize, u64> = BTreeMap::new();
        for profile in self.pods.values() {
            *there.entry(*profile).or_default() += 1;
        }
        let never_bound: BTreeSet<usize> = self.never_bound();
        let few = |spread: &HostSpread<'_>| {
            let all = spread.weights.iter().map(|(profile, weight)| {
                let count = if never_bound.contains(profile) {
                    there.get(profile).copied().unwrap_or(0)
                } else {
                    UNLIMITED
                };
                u64::from(*weight) * count
            });
            all.sum::<u64>() <= spread.ceiling()
        };
        for spread in self.spreads.iter().filter(|spread| !few(spread)) {
            for owner in &spread.owned_by {
                let limited = spread.is_shared() && spread.weights.contains_key(owner);
                let others =
                    spread.weights.keys().filter(|other| !limited || !spread.owned_by.contains(other));
                pairs.extend(others.map(|other| (*owner, *other)));
            }
        }
        for profile in &mut self.profiles {
            profile.counted.clear();
        }
        for (owner, other) in pairs {
            self.profiles[owner].counted.insert(other);
            self.profiles[other].counted.insert(owner);
        }
    }

    /// Sets the least count of each spread constraint.
    pub fn set_least(&mut self, least: Vec<u64>) {
        let all_zero = least.iter().all(|least| *least == 0);
        for (spread, least) in self.spreads.iter_mut().zip(least) {
            spread.least = least;
        }
        if !all_zero {
            self.set_counted();
        }
    }

    /// Returns the spread constraints over nodes of a profile, as indices into [`Colocation::spreads`].
    pub fn spreads_of(&self, profile: usize) -> &[usize] {
        &self.profiles[profile].spreads
    }

    /// Returns the profiles that only pending pods have, and no bound or DaemonSet pod.
    fn never_bound(&self) -> BTreeSet<usize> {
        let bound = self.alike.iter().flat_map(|(staying, leaving)| [*staying, *leaving]);
        let bound: BTreeSet<usize> = bound.chain(self.daemonsets.values().copied()).collect();
        (0..self.profiles.len()).filter(|profile| !bound.contains(profile)).collect()
    }

    /// Returns the joint profile of pods that share a node, by the profiles of the members.
    pub fn together(&mut self, mut members: Vec<usize>) -> usize {
        members.sort_unstable();
        let profiles: BTreeSet<usize> = members.iter().copied().collect();
        let parts: Vec<usize> = profiles.iter().copied().filter(|profile| *profile > 0).collect();
        match parts.as_slice() {
            [] => return 0,
            [one] if profiles.len() == 1 && self.spreads.iter().all(|spread| spread.weight(*one) == 0) => {
                return *one;
            }
            _ => {}
        }
        if let Some(known) = self.joint.get(&members) {
            return *known;
        }
        let new = self.profiles.len();
        let mut joint = ColocationProfile::default();
        for part in &parts {
            let part = &self.profiles[*part];
            joint.ports.extend(&part.ports);
            joint.exclusive.extend(&part.exclusive);
            joint.apart.extend(&part.apart);
            joint.counted.extend(&part.counted);
            joint.spreads.extend(&part.spreads);
        }
        joint.spreads.sort_unstable();
        joint.spreads.dedup();
        // A profile that one member excludes is excluded by the whole bundle, and so is a second bundle of the same kind.
        if parts.iter().any(|part| joint.apart.contains(part)) {
            joint.apart.insert(new);
        }
        if parts.iter().any(|part| joint.counted.contains(part)) {
            joint.counted.insert(new);
        }
        for other in joint.apart.iter().copied().filter(|other| *other < new) {
            self.profiles[other].apart.insert(new);
        }
        for other in joint.counted.iter().copied().filter(|other| *other < new) {
            self.profiles[other].counted.insert(new);
        }
        for spread in &mut self.spreads {
            spread.add_joint(new, &members);
        }
        self.profiles.push(joint);
        self.joint.insert(members, new);
        new
    }

    /// Returns the profiles of bound pods, for staying and for terminating pods, in the order of [`crate::model::Pods::alike`].
    pub fn of_alike(&self) -> impl Iterator<Item = (usize, usize)> {
        self.alike.iter().copied()
    }

    /// Returns the profile of a pod that is not bound.
    pub fn of(&self, pod: &PodKey) -> usize {
        self.pods.get(pod).copied().unwrap_or(0)
    }

    /// Returns the profile of a DaemonSet's pods.
    pub fn of_daemonset(&self, set: &ObjectKey) -> usize {
        self.daemonsets.get(set).copied().unwrap_or(0)
    }

    /// Returns whether one more pod of a profile may join these pods on their node.
    pub fn admits_one(&self, profile: usize, present: &Present) -> bool {
        if profile == 0 {
            return true;
        }
        let own = &self.profiles[profile].spreads;
        let of_others = present.keys().flat_map(|other| &self.profiles[*other].spreads);
        let mut spreads = own.iter().chain(of_others);
        self.may_meet(profile, present)
            && spreads.all(|at| {
                let spread = &self.spreads[*at];
                let weight = spread.weight(profile);
                // A pod does not affect a constraint of another pod that does not count it.
                weight == 0 && !own.contains(at) || spread.count(present) + weight <= spread.ceiling()
            })
    }

    /// Returns the reason why a pod may not join these pods on their node; `None` if it may.
    pub fn keeps_off(&self, profile: usize, present: &Present) -> Option<&'static str> {
        if self.admits_one(profile, present) {
            None
        } else if present.keys().any(|other| self.are_apart(profile, *other)) {
            Some("its own pod anti-affinity, or that of a pod there, keeps it away")
        } else if self.may_meet(profile, present) {
            Some("its own topology spread over nodes, or that of a pod there, would be violated")
        } else {
            Some("a host port that it needs is taken there")
        }
    }

    /// Returns whether pods of a profile may join these pods on their node. If so, one may join, and further ones as
    /// [`Self::most`] and [`Self::tallies`] allow.
    pub fn admits(&self, profile: usize, present: &Present) -> bool {
        present.is_empty() || self.admits_one(profile, present)
    }

    /// Returns the most pods of a profile on one node.
    pub fn most(&self, profile: usize) -> Option<u32> {
        let of = &self.profiles[profile];
        let spreads = of.spreads.iter().map(|rule| &self.spreads[*rule]);
        let own = spreads.filter(|spread| spread.weight(profile) > 0);
        let own =
            own.map(|spread| u32::try_from(spread.ceiling() / spread.weight(profile)).unwrap_or(u32::MAX));
        own.chain(self.are_apart(profile, profile).then_some(1)).min()
    }

    /// Returns whether the residents `present` leave room for at least as many pods of a profile as the residents `other`.
    pub fn takes_as_many(&self, profile: usize, present: &Present, other: &Present) -> bool {
        let mut own = self.profiles[profile].spreads.iter().map(|at| &self.spreads[*at]);
        own.all(|spread| spread.count(present) <= spread.count(other))
    }

    /// Returns whether anti-affinity keeps pods of two profiles, or two pods of one profile, from sharing a node.
    fn are_apart(&self, one: usize, other: usize) -> bool {
        let (first, second) = (&self.profiles[one], &self.profiles[other]);
        first.apart.contains(&other) || !first.exclusive.is_disjoint(&second.exclusive)
    }

    /// Checks host ports and anti-affinity.
    pub fn may_meet(&self, profile: usize, present: &Present) -> bool {
        let newcomer = &self.profiles[profile];
        let ports: Vec<&HostPort> =
            present.keys().flat_map(|other| &self.profiles[*other].ports).copied().flatten().collect();
        !present.keys().any(|other| self.are_apart(profile, *other))
            && newcomer.ports.iter().all(|wanted| ports::check(wanted, ports.iter().copied()).is_ok())
    }
}
