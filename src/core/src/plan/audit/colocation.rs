//! The audit of colocation: checks every planned pod against all other pods on its node, with the rules themselves. Topology
//! spread is audited elsewhere ([`crate::plan::audit::topology`]).

use std::collections::BTreeMap;

use crate::model::plan::{PlacedPod, PlannedClaim, Target};
use crate::model::{Claim, ClaimName, Pod, Snapshot};
use crate::rules;
use crate::rules::identity::Identity;
use crate::rules::new_node::NewNodeLabels;
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
        for offering in claim.offerings.iter().filter_map(|ranked| catalogue.offering(&ranked.offering)) {
            let labels = catalogue.node_labels(offering);
            let labels = NewNodeLabels { offering: &labels, template: &claim.labels, pool: &claim.pool };
            let landing = tolerating.landing(&labels);
            let identity = |set| Identity::of_daemonset(set, &snapshot.namespaces);
            let there: Vec<Identity<'_>> = tolerating.sets(&landing).map(identity).collect();
            problems.extend(meet(snapshot, &format!("claim {}", claim.name), &pods, &there));
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
    let identity = |pod| Identity::of_pod(pod, &snapshot.namespaces);
    for (index, pod) in pods.iter().enumerate() {
        let others = pods[..index].iter().map(|other| identity(other));
        for other in others.chain(there.iter().copied()) {
            if let Err(rejection) = rules::may_share(identity(pod), other) {
                return Some(format!("{place}: pod {} {rejection}", pod.key));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::HostPort;
    use crate::model::Namespaces;
    use crate::model::PodAffinityTerm;
    use crate::model::PodKey;
    use crate::model::PodPhase;
    use crate::model::PodSpec;

    fn web() -> BTreeMap<String, String> {
        BTreeMap::from([("app".to_owned(), "web".to_owned())])
    }

    /// Returns the violations for two pods with these rules, of which one runs on a node and the other is planned there.
    fn said(spec: &PodSpec) -> Vec<String> {
        let pod = |name: &str, phase| Pod {
            labels: web(),
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
}
