//! `InterPodAffinity`: required pod affinity and anti-affinity, at any topology key.
//!
//! Written after interpodaffinity/filtering.go, over all nodes. It shares no counting code with the planner, so each is a second
//! opinion on the other.

use std::collections::BTreeMap;

use poolwright_core::rules::{Identity, selects};
use poolwright_core::{NamespaceLabels, Pod, PodAffinityTerm};

use super::super::cluster::{Cluster, NodeInfo};
use super::super::looks::Asking;
use super::super::reason::{Fits, Reason, Unfit};

/// The number of matches by topology key and value. Zeros are left out.
type Matches<'a> = BTreeMap<(&'a str, &'a str), i64>;

/// The pods near each place, for the affinity rules of one pod and the anti-affinity of others.
#[derive(Clone)]
pub(super) struct Company<'a> {
    pod: &'a Pod,
    /// Anti-affinity terms of other pods that match this pod.
    kept_away: Matches<'a>,
    /// Pods that meet all affinity terms of this pod.
    wanted: Matches<'a>,
    /// Pods that match the anti-affinity of this pod.
    shunned: Matches<'a>,
    /// False if no rule matched at the start: then the kube-scheduler skips the plugin for this pod, even if nominated pods are
    /// added later.
    matters: bool,
}

impl<'a> Company<'a> {
    pub fn new(cluster: &'a Cluster, pod: &'a Pod) -> Self {
        let mut company = Self {
            pod,
            kept_away: Matches::new(),
            wanted: Matches::new(),
            shunned: Matches::new(),
            matters: !pod.spec.affinity.is_empty() || !pod.spec.anti_affinity.is_empty(),
        };
        let namespaces = &cluster.around.namespaces;
        for at in cluster.nodes() {
            for other in &at.with_anti_affinity {
                company.count_theirs(namespaces, other, at, 1);
            }
        }
        company.matters |= !company.kept_away.is_empty();
        let (wants, shuns) = (&pod.spec.affinity, &pod.spec.anti_affinity);
        if !wants.is_empty() {
            let identity = |other| Identity::of_pod(other, namespaces);
            let meets = Asking::new(&cluster.looks, |other| meets_all(wants, identity(other)));
            count_all(cluster, meets, wants, &mut company.wanted);
        }
        for term in shuns {
            let meets =
                Asking::new(&cluster.looks, |other| selects(term, Identity::of_pod(other, namespaces)));
            count_all(cluster, meets, std::slice::from_ref(term), &mut company.shunned);
        }
        company
    }

    /// Adds or removes a pod.
    pub fn update(&mut self, cluster: &Cluster, other: &'a Pod, at: &'a NodeInfo, by: i64) {
        self.count_theirs(&cluster.around.namespaces, other, at, by);
        self.count_ours(&cluster.around.namespaces, other, at, by);
    }

    fn count_theirs(&mut self, namespaces: &NamespaceLabels, other: &'a Pod, at: &'a NodeInfo, by: i64) {
        let newcomer = Identity::of_pod(self.pod, namespaces);
        for term in other.spec.anti_affinity.iter().filter(|term| selects(term, newcomer)) {
            count(&mut self.kept_away, term, at, by);
        }
    }

    fn count_ours(&mut self, namespaces: &NamespaceLabels, other: &Pod, at: &'a NodeInfo, by: i64) {
        let spec = &self.pod.spec;
        let identity = Identity::of_pod(other, namespaces);
        if meets_all(&spec.affinity, identity) {
            spec.affinity.iter().for_each(|term| count(&mut self.wanted, term, at, by));
        }
        for term in spec.anti_affinity.iter().filter(|term| selects(term, identity)) {
            count(&mut self.shunned, term, at, by);
        }
    }

    pub fn check(&self, namespaces: &NamespaceLabels, at: &NodeInfo) -> Fits {
        if !self.matters {
            return Ok(());
        }
        if !self.has_company(namespaces, at) {
            return Err(Unfit::unresolvable(Reason::PodAffinity));
        }
        let shuns =
            |term: &PodAffinityTerm| near(at, term).is_some_and(|place| self.shunned.contains_key(&place));
        if self.pod.spec.anti_affinity.iter().any(shuns) {
            return Err(Unfit::resolvable(Reason::PodAntiAffinity));
        }
        let is_kept_away =
            |(key, value): (&String, &String)| self.kept_away.contains_key(&(key.as_str(), value.as_str()));
        if !self.kept_away.is_empty() && at.node.labels.iter().any(is_kept_away) {
            return Err(Unfit::resolvable(Reason::ExistingAntiAffinity));
        }
        Ok(())
    }

    /// Returns whether the affinity of the pod is met. The first pod of its kind may go anywhere if it matches its own terms.
    fn has_company(&self, namespaces: &NamespaceLabels, at: &NodeInfo) -> bool {
        let terms = &self.pod.spec.affinity;
        let mut all_there = true;
        for term in terms {
            let Some(place) = near(at, term) else { return false };
            all_there &= self.wanted.contains_key(&place);
        }
        all_there || (self.wanted.is_empty() && meets_all(terms, Identity::of_pod(self.pod, namespaces)))
    }
}

/// Counts pods for these terms.
fn count_all<'a>(
    cluster: &'a Cluster,
    mut meets: Asking<'a, impl Fn(&'a Pod) -> bool>,
    terms: &'a [PodAffinityTerm],
    matches: &mut Matches<'a>,
) {
    for at in cluster.nodes() {
        let met = at.pods.iter().filter(|other| meets.holds(other.look)).count() as i64;
        if met > 0 {
            for term in terms {
                count(matches, term, at, met);
            }
        }
    }
}

/// Returns whether a pod meets all terms; false if there are none.
fn meets_all(terms: &[PodAffinityTerm], pod: Identity<'_>) -> bool {
    !terms.is_empty() && terms.iter().all(|term| selects(term, pod))
}

/// Returns the topology key and value of a node, for a term.
pub(in super::super) fn near<'a>(at: &'a NodeInfo, term: &'a PodAffinityTerm) -> Option<(&'a str, &'a str)> {
    let value = at.node.labels.get(&term.topology_key)?;
    Some((&term.topology_key, value))
}

fn count<'a>(matches: &mut Matches<'a>, term: &'a PodAffinityTerm, at: &'a NodeInfo, by: i64) {
    let Some(place) = near(at, term) else { return };
    let sum = matches.entry(place).or_default();
    *sum += by;
    if *sum == 0 {
        matches.remove(&place);
    }
}
