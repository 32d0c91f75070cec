//! Topology spread that leaves a pod no place: the fields of the constraint that are the reason besides `maxSkew`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_terms::Taint;

use crate::model::{Operator, Pod, PodSpec, Requirement};
use crate::plan::place::topology::inputs::TopologyInputs;
use crate::plan::place::topology::places::{NONE, Place, Places};
use crate::plan::place::topology::tally::Tally;
use crate::rules;
use crate::rules::identity::Identity;
use crate::rules::spread::messages::SpreadCause;

/// A spread constraint that refuses a pod every place.
pub(crate) struct Uneven<'s, 'a> {
    pub inputs: &'s TopologyInputs<'s, 'a>,
    pub places: &'s Places<'a>,
    pub tally: &'s Tally,
    /// The index of the constraint in the relations.
    pub spread: usize,
    /// Whether the constraint counts the pod itself.
    pub counts_itself: bool,
    /// The domains with a room or an offering for the pod.
    pub homes: BTreeSet<usize>,
    /// Those of them that only this constraint keeps from taking the pod.
    pub full: BTreeSet<usize>,
}

impl Uneven<'_, '_> {
    /// Returns the fields, each of which alone leaves the pod no place.
    pub fn causes(&self) -> Vec<SpreadCause> {
        let spread = &self.inputs.relations.spreads[self.spread];
        let (rule, owner) = (spread.rule, spread.owner);
        let mut causes = Vec::new();
        if self.opens(&BTreeSet::new(), None) {
            causes.extend(rule.min_domains.map(SpreadCause::MinDomains));
        }
        if rule.ignore_node_affinity {
            let closed = self.closed(|labels, _| rules::check_own_labels(owner, labels).is_ok());
            causes.extend(closed.map(SpreadCause::NodeAffinity));
        }
        if !rule.honor_node_taints {
            let closed = self.closed(|_, taints| rules::check_taints(&owner.tolerations, taints).is_ok());
            causes.extend(closed.map(SpreadCause::NodeTaints));
        }
        causes
    }

    /// Returns whether nodes that are bought in other domains would help: the pod's own rules on the topology key let it go to those
    /// with the fewest pods or, where too few domains exist, let others count.
    pub fn may_go_elsewhere(&self, domains: &[(String, u64)], causes: &[SpreadCause]) -> bool {
        let spread = &self.inputs.relations.spreads[self.spread];
        let key = self.inputs.relations.keys[spread.key];
        if causes.iter().any(|cause| matches!(cause, SpreadCause::MinDomains(_))) {
            return spread.rule.ignore_node_affinity || !is_bound_to(spread.owner, key, domains);
        }
        let least = domains.iter().map(|(_, count)| *count).min();
        domains.iter().any(|(domain, count)| Some(*count) == least && may_be_in(spread.owner, key, domain))
    }

    /// Returns whether a domain would take the pod if some domains did not count, with these `minDomains`.
    fn opens(&self, without: &BTreeSet<usize>, min_domains: Option<u32>) -> bool {
        let max_skew = self.inputs.relations.spreads[self.spread].rule.max_skew;
        let counts = self.tally.of_spread(self.spread).without(without);
        self.full.iter().any(|domain| counts.admits(*domain, self.counts_itself, max_skew, min_domains))
    }

    /// Returns the domains that would not count if nodes counted only where `stays` says so. `None` if no domain would take the pod
    /// then, or if that is unknown, because counts in other domains would change.
    fn closed(&self, stays: impl Fn(&BTreeMap<String, String>, &[Taint]) -> bool) -> Option<Vec<String>> {
        let TopologyInputs { relations, rooms, lessons, .. } = *self.inputs;
        let spread = &relations.spreads[self.spread];
        if self.tally.counts(self.spread).all(|(domain, _)| self.homes.contains(&domain)) {
            return None;
        }
        // The domains with nodes that stay, with nodes that do not, and with pods on such nodes.
        let (mut staying, mut leaving, mut changing) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut see =
            |place: &Place, labels: &BTreeMap<String, String>, taints: &[Taint], node: Option<&str>| {
                let domain = place[spread.key];
                if domain == NONE || !spread.includes(|key| place[key] != NONE, labels, taints) {
                    return;
                }
                let domain = domain as usize;
                if stays(labels, taints) {
                    staying.insert(domain);
                } else {
                    leaving.insert(domain);
                    // The pods that are planned for a claim are not known here.
                    let has_pods = node.is_none_or(|node| self.has_counted_pods(node));
                    changing.extend(has_pods.then_some(domain));
                }
            };
        for (node, place) in &self.places.nodes {
            see(place, &node.labels, &node.taints, Some(node.name.as_str()));
        }
        for (room, place) in rooms.all.iter().zip(&self.places.rooms) {
            if room.node.is_none() {
                see(place, &room.labels, &room.taints, None);
            }
        }
        let name = |domain: usize| self.places.values[spread.key][domain].clone();
        let remains = |domain: usize| {
            let opened = || (relations.keys[spread.key].to_owned(), name(domain));
            staying.contains(&domain) || self.homes.contains(&domain) || lessons.opened.contains(&opened())
        };
        let (rest, closed): (BTreeSet<usize>, BTreeSet<usize>) =
            leaving.iter().copied().partition(|domain| remains(*domain));
        let is_known = rest.is_disjoint(&changing);
        let helps = is_known && !closed.is_empty() && self.opens(&closed, spread.rule.min_domains);
        helps.then(|| closed.into_iter().map(name).collect())
    }

    fn has_counted_pods(&self, node: &str) -> bool {
        let TopologyInputs { relations, snapshot, .. } = *self.inputs;
        let counts = |pod: &Arc<Pod>| {
            relations.spreads[self.spread].counts(Identity::of_pod(pod, &snapshot.namespaces))
        };
        snapshot.pods.on_node(node).is_some_and(|there| there.pods.iter().any(counts))
    }
}

/// Returns whether the pod's own rules on the topology key allow this domain.
fn may_be_in(spec: &PodSpec, key: &str, domain: &str) -> bool {
    let labels = BTreeMap::from([(key.to_owned(), domain.to_owned())]);
    let meets = |one: &Requirement| one.key != key || rules::matches(one, &labels);
    spec.node_selector.get(key).is_none_or(|value| value == domain)
        && spec
            .node_affinity
            .as_ref()
            .is_none_or(|terms| terms.iter().any(|term| term.requirements.iter().all(meets)))
}

/// Returns whether the pod's own rules on the topology key allow no other domain than these.
fn is_bound_to(spec: &PodSpec, key: &str, domains: &[(String, u64)]) -> bool {
    let is_known = |value: &String| domains.iter().any(|(domain, _)| domain == value);
    let binds = |one: &Requirement| {
        one.key == key && matches!(&one.operator, Operator::In(values) if values.iter().all(is_known))
    };
    spec.node_selector.get(key).is_some_and(is_known)
        || spec
            .node_affinity
            .as_ref()
            .is_some_and(|terms| terms.iter().all(|term| term.requirements.iter().any(binds)))
}
