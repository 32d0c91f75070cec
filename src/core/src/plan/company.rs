//! Which pods may be on one node together: host ports and required pod anti-affinity.
//!
//! Pods are reduced to profiles, one for each combination of what a pod says about others and what others say about it, so
//! that a few sets of small numbers answer for thousands of pods. Most pods have profile 0: nothing to do with anybody.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::labels::HOSTNAME;

use crate::model::{HostPort, Pod, PodKey, PodPhase, PodTerm, Snapshot};
use crate::rules::{self, Identity};

/// Profiles of the pods on one node; profile 0 is never among them.
pub(super) type Present = BTreeSet<usize>;

/// All profiles.
#[derive(Debug, Default)]
pub(super) struct Company<'a> {
    /// Pods with another profile than 0.
    pods: BTreeMap<&'a PodKey, usize>,
    /// The same of DaemonSets.
    daemonsets: BTreeMap<&'a PodKey, usize>,
    profiles: Vec<Profile<'a>>,
    /// Terms of pods that run, about larger parts of the cluster than one node.
    wide: Vec<(&'a Pod, &'a PodTerm)>,
    /// A number for every address that some pod takes a port of.
    numbers: BTreeMap<&'a HostPort, u32>,
}

#[derive(Debug, Default)]
struct Profile<'a> {
    ports: Option<&'a BTreeSet<HostPort>>,
    /// Profiles that may not be on its node; its own too, where its pods keep away from each other.
    apart: BTreeSet<usize>,
}

/// What makes a profile: ports, terms of its own, terms that are about it.
type Shape<'a> = (&'a BTreeSet<HostPort>, Vec<usize>, Vec<usize>);

impl<'a> Company<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let counts = |pod: &&Pod| !matches!(pod.phase, PodPhase::Finished | PodPhase::Gated);
        let pods = || snapshot.pods.values().map(AsRef::as_ref).filter(counts);
        let mut company = Self::default();
        let mut terms: BTreeMap<&'a PodTerm, usize> = BTreeMap::new();
        for pod in pods() {
            for term in &pod.spec.anti_affinity {
                if term.topology_key == HOSTNAME {
                    let next = terms.len();
                    terms.entry(term).or_insert(next);
                } else if matches!(pod.phase, PodPhase::Bound { .. }) {
                    company.wide.push((pod, term));
                }
            }
        }
        for set in snapshot.daemonsets.values() {
            for term in set.spec.anti_affinity.iter().filter(|term| term.topology_key == HOSTNAME) {
                let next = terms.len();
                terms.entry(term).or_insert(next);
            }
        }
        let mut shapes: BTreeMap<Shape<'a>, usize> = BTreeMap::new();
        company.profiles.push(Profile::default());
        for pod in pods() {
            let profile = company.profile(&terms, &mut shapes, pod.into());
            if profile > 0 {
                company.pods.insert(&pod.key, profile);
            }
        }
        for set in snapshot.daemonsets.values() {
            let profile = company.profile(&terms, &mut shapes, set.as_ref().into());
            if profile > 0 {
                company.daemonsets.insert(&set.key, profile);
            }
        }
        company.set_apart(terms.len(), &shapes);
        let ports = company.profiles.iter().filter_map(|profile| profile.ports).flatten();
        let ports: BTreeSet<&'a HostPort> = ports.collect();
        company.numbers = ports.into_iter().zip(0..).collect();
        company
    }

    fn profile(
        &mut self,
        terms: &BTreeMap<&'a PodTerm, usize>,
        shapes: &mut BTreeMap<Shape<'a>, usize>,
        pod: Identity<'a>,
    ) -> usize {
        let mut own: Vec<usize> =
            pod.spec.anti_affinity.iter().filter_map(|term| terms.get(term).copied()).collect();
        own.sort_unstable();
        own.dedup();
        let mut about: Vec<usize> =
            terms.iter().filter(|(term, _)| rules::selects(term, pod)).map(|(_, at)| *at).collect();
        about.sort_unstable();
        if pod.spec.host_ports.is_empty() && own.is_empty() && about.is_empty() {
            return 0;
        }
        *shapes.entry((&pod.spec.host_ports, own, about)).or_insert_with(|| {
            let ports = Some(&pod.spec.host_ports).filter(|ports| !ports.is_empty());
            self.profiles.push(Profile { ports, apart: BTreeSet::new() });
            self.profiles.len() - 1
        })
    }

    /// Those with a term keep away from those it is about, and are kept away by them.
    fn set_apart(&mut self, terms: usize, shapes: &BTreeMap<Shape<'a>, usize>) {
        let (mut owners, mut subjects) = (vec![Vec::new(); terms], vec![Vec::new(); terms]);
        for ((_, own, about), profile) in shapes {
            own.iter().for_each(|term| owners[*term].push(*profile));
            about.iter().for_each(|term| subjects[*term].push(*profile));
        }
        for (owners, subjects) in owners.iter().zip(&subjects) {
            for owner in owners {
                self.profiles[*owner].apart.extend(subjects);
            }
            for subject in subjects {
                self.profiles[*subject].apart.extend(owners);
            }
        }
    }

    /// A pod's profile.
    pub fn of(&self, pod: &PodKey) -> usize {
        self.pods.get(pod).copied().unwrap_or(0)
    }

    /// The profile of a DaemonSet's pods; `None` for 0.
    pub fn of_daemonset(&self, set: &PodKey) -> Option<usize> {
        self.daemonsets.get(set).copied()
    }

    /// Whether a pod may come to a node where these are.
    pub fn admits(&self, profile: usize, present: &Present) -> bool {
        if profile == 0 || present.is_empty() {
            return true;
        }
        let newcomer = &self.profiles[profile];
        let ports = present.iter().filter_map(|other| self.profiles[*other].ports).flatten();
        newcomer.apart.is_disjoint(present)
            && newcomer.ports.is_none_or(|wanted| rules::check_ports(wanted, ports).is_ok())
    }

    /// Whether two pods keep away from each other, ports aside.
    pub fn apart(&self, one: usize, other: usize) -> bool {
        self.profiles[one].apart.contains(&other)
    }

    /// The ports of a profile as the solver compares them: equal numbers conflict. Every address of the node has the
    /// numbers of each address that anybody names.
    pub fn ports(&self, profile: usize) -> Vec<u32> {
        let mut numbers = BTreeSet::new();
        for port in self.profiles[profile].ports.into_iter().flatten() {
            let like = |other: &HostPort| {
                other.port == port.port
                    && other.protocol == port.protocol
                    && (port.ip.is_none() || port.ip == other.ip)
            };
            numbers.extend(self.numbers.iter().filter(|(other, _)| like(other)).map(|(_, number)| *number));
        }
        numbers.into_iter().collect()
    }

    /// A pod that runs and keeps this one away from more than its own node, and by which label.
    pub fn kept_away(&self, pod: &Pod) -> Option<(&'a PodKey, &'a str)> {
        self.wide
            .iter()
            .find(|(_, term)| rules::selects(term, pod.into()))
            .map(|(owner, term)| (&owner.key, term.topology_key.as_str()))
    }
}
