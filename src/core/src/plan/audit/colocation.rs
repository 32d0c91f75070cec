//! The audit of colocation: checks every planned pod against all other pods on its node, with the rules themselves. Topology
//! spread is audited elsewhere ([`crate::plan::audit::topology`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::model::plan::{PlacedPod, PlannedClaim, Target};
use crate::model::{Claim, ClaimName, Pod, PodSpec, Requirement, Snapshot};
use crate::rules;
use crate::rules::identity::Identity;
use crate::rules::new_node::NewNodeLabels;
use crate::rules::selector_index::SelectorIndex;
use crate::supply::daemonsets::DaemonSets;

/// Returns the violations, as messages.
pub(crate) fn audit(
    snapshot: &Snapshot,
    daemons: &DaemonSets<'_>,
    claims: &[PlannedClaim],
    placements: &[PlacedPod],
) -> Vec<String> {
    let mut problems = Vec::new();
    for claim in claims {
        let pods: Vec<&Pod> =
            claim.planned_pods.iter().filter_map(|key| snapshot.pods.get(key)).map(AsRef::as_ref).collect();
        let tolerating = daemons.tolerating(&claim.taints);
        let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { continue };
        // Most offerings get pods of the same DaemonSets.
        let mut seen: BTreeSet<Vec<u16>> = BTreeSet::new();
        for offering in claim.offerings.iter().filter_map(|ranked| catalogue.offering(&ranked.offering)) {
            let labels = catalogue.node_labels(offering);
            let labels = NewNodeLabels { offering: &labels, template: &claim.labels, pool: &claim.pool };
            let landing = tolerating.landing(&labels);
            let identity = |set| Identity::of_daemonset(set, &snapshot.namespaces);
            let there: Vec<Identity<'_>> = tolerating.sets(&landing).map(identity).collect();
            if seen.insert(landing) {
                problems.extend(meet(snapshot, &format!("claim {}", claim.name), &pods, &there));
            }
        }
    }
    problems.extend(audit_rooms(snapshot, placements));
    problems
}

/// Audits pods on existing nodes.
fn audit_rooms(snapshot: &Snapshot, placements: &[PlacedPod]) -> Vec<String> {
    let mut planned: BTreeMap<&Target, Vec<&Pod>> = BTreeMap::new();
    for placement in placements {
        if let Some(pod) = snapshot.pods.get(&placement.pod) {
            planned.entry(&placement.target).or_default().push(pod);
        }
    }
    let node_of = |target: &Target| match target {
        Target::Node(name) => Some(name.clone()),
        Target::Claim(name) => node_of_claim(snapshot, name),
    };
    let planned: Vec<_> = planned.into_iter().map(|(target, pods)| (target, node_of(target), pods)).collect();
    let mut problems = Vec::new();
    for (target, node, pods) in &planned {
        let running = node.as_ref().and_then(|node| snapshot.pods.on_node(node));
        let running = running.into_iter().flat_map(|there| &there.pods);
        let there: Vec<_> = running.map(|pod| Identity::of_pod(pod, &snapshot.namespaces)).collect();
        problems.extend(meet(snapshot, &target.to_string(), pods, &there));
    }
    problems
}

fn node_of_claim(snapshot: &Snapshot, name: &ClaimName) -> Option<String> {
    let claim: &Claim = snapshot.claims.get(name)?;
    let id = claim.launched.as_ref().map(|launched| launched.provider_id.as_str());
    let by_id = id.and_then(|id| snapshot.nodes.with_provider_id(id));
    by_id.map(|node| node.name.clone()).or_else(|| claim.node_name.clone())
}

/// Returns the first conflict between these pods, or between one of them and a resident.
fn meet(snapshot: &Snapshot, place: &str, pods: &[&Pod], there: &[Identity<'_>]) -> Option<String> {
    let planned = pods.iter().map(|pod| Identity::of_pod(pod, &snapshot.namespaces));
    let all: Vec<Identity<'_>> = planned.chain(there.iter().copied()).collect();
    let suspects = Suspects::new(&all);
    let pairs =
        (0..all.len()).flat_map(|at| suspects.of(at, all[at]).into_iter().map(move |other| (at, other)));
    // Of two planned pods, the later one comes to the earlier one.
    let pairs = pairs.map(|(at, other)| {
        let (first, last) = (at.min(other), at.max(other));
        if last < pods.len() { (last, first) } else { (first, last) }
    });
    let conflicts = pairs.filter(|(newcomer, _)| *newcomer < pods.len()).filter_map(|(newcomer, other)| {
        let rejection = rules::may_share(all[newcomer], all[other]).err()?;
        Some((newcomer, other, rejection))
    });
    let (newcomer, _, rejection) = conflicts.min_by_key(|(newcomer, other, _)| (*newcomer, *other))?;
    Some(format!("{place}: pod {} {rejection}", pods[newcomer].key))
}

/// Finds pairs of pods that may be in conflict, so that not every pair at a place is checked.
struct Suspects<'a> {
    /// All anti-affinity terms, by the labels that they look for.
    terms: SelectorIndex<'a>,
    /// The pod that has each term.
    owners: Vec<usize>,
    /// The pods with a host port of each number and protocol.
    with_port: BTreeMap<(u16, &'a str), Vec<usize>>,
}

impl<'a> Suspects<'a> {
    fn new(pods: &[Identity<'a>]) -> Self {
        let mut owners = Vec::new();
        let mut selectors: Vec<Option<&'a [Requirement]>> = Vec::new();
        let mut with_port: BTreeMap<(u16, &'a str), Vec<usize>> = BTreeMap::new();
        for (at, pod) in pods.iter().enumerate() {
            let spec: &'a PodSpec = pod.spec;
            for term in &spec.anti_affinity {
                owners.push(at);
                selectors.push(term.selector.as_deref());
            }
            for port in &spec.host_ports {
                with_port.entry((port.port, port.protocol.as_str())).or_default().push(at);
            }
        }
        Self { terms: SelectorIndex::new(selectors.into_iter()), owners, with_port }
    }

    /// Returns the pods that may have anti-affinity to this one, and those that may use one of its host ports.
    fn of(&self, at: usize, pod: Identity<'_>) -> Vec<usize> {
        let owners = self.terms.candidates(pod.labels).into_iter().map(|term| self.owners[term]);
        let ports = pod.spec.host_ports.iter();
        let sharing = ports.filter_map(|port| self.with_port.get(&(port.port, port.protocol.as_str())));
        owners.chain(sharing.flatten().copied()).filter(|other| *other != at).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use poolwright_terms::labels::HOSTNAME;
    use proptest::prelude::*;

    use super::*;
    use crate::model::{HostPort, Namespaces, PodAffinityTerm, PodKey, PodPhase};
    use crate::rules::generated;

    fn web() -> BTreeMap<String, String> {
        BTreeMap::from([("app".to_owned(), "web".to_owned())])
    }

    /// Returns the violations for two pods with these rules, of which one runs on a node and the other is planned there.
    fn said(spec: &PodSpec) -> Vec<String> {
        let pod = |name: &str, phase| Pod {
            labels: web().into(),
            phase,
            ..Pod::waiting(PodKey::new("default", name), spec.clone())
        };
        let mut snapshot = Snapshot::default();
        for pod in [pod("r", PodPhase::Bound { node: "n".into() }), pod("a", PodPhase::Waiting)] {
            snapshot.pods.insert(pod.key.clone(), pod.into());
        }
        let placement = PlacedPod { pod: PodKey::new("default", "a"), target: Target::Node("n".into()) };
        audit(&snapshot, &DaemonSets::new(&snapshot), &[], &[placement])
    }

    #[test]
    fn a_plan_that_breaks_a_rule_about_other_pods_is_refused_with_the_rule() {
        assert_eq!(said(&PodSpec::default()), [""; 0]);
        let port = HostPort { port: 80, protocol: "TCP".into(), ip: None };
        assert_eq!(
            said(&PodSpec { host_ports: [port].into(), ..PodSpec::default() }),
            ["node `n`: pod default/a needs host port 80/TCP, which another pod on the node uses"]
        );
        let topology_key = || "kubernetes.io/hostname".to_owned();
        let term = PodAffinityTerm {
            topology_key: topology_key(),
            namespaces: Namespaces::All,
            selector: Some(vec![]),
        };
        assert!(said(&PodSpec { anti_affinity: vec![term], ..PodSpec::default() })[0].contains("keeps away"));
    }

    /// Returns the first conflict, by a check of every pair.
    fn plain(snapshot: &Snapshot, pods: &[&Pod], there: &[Identity<'_>]) -> Option<String> {
        let identity = |pod| Identity::of_pod(pod, &snapshot.namespaces);
        for (index, pod) in pods.iter().enumerate() {
            let others = pods[..index].iter().map(|other| identity(other));
            for other in others.chain(there.iter().copied()) {
                if let Err(rejection) = rules::may_share(identity(pod), other) {
                    return Some(format!("node: pod {} {rejection}", pod.key));
                }
            }
        }
        None
    }

    proptest! {
        #[test]
        fn the_audit_finds_the_conflict_that_a_check_of_every_pair_finds_first(
            pods in generated::pods(HOSTNAME),
            residents in 0..12_usize,
        ) {
            let snapshot = generated::snapshot(&pods);
            let (there, planned) = pods.split_at(residents.min(pods.len()));
            let there: Vec<_> = there.iter().map(|pod| Identity::of_pod(pod, &snapshot.namespaces)).collect();
            let planned: Vec<&Pod> = planned.iter().collect();
            let found = meet(&snapshot, "node", &planned, &there);
            prop_assert_eq!(found, plain(&snapshot, &planned, &there));
        }
    }
}
