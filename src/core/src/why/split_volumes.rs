//! Pods that share a volume which one node at a time can attach, and that the plan has on several nodes.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_terms::labels::HOSTNAME;

use crate::demand::volumes::bind::claim_of;
use crate::model::plan::{Plan, Target};
use crate::model::{ObjectKey, Pod, PodKey, PodPhase, Snapshot, VolumeClaim};
use crate::rules::format::list;

/// The most pods that a note names.
const SHOWN: usize = 3;

/// Returns a note for each claim for a volume of one node whose pods the plan has on several nodes.
pub fn split_volumes(snapshot: &Snapshot, plan: &Plan) -> Vec<String> {
    let bought = plan
        .claims
        .iter()
        .flat_map(|claim| claim.planned_pods.iter().map(move |pod| (pod, claim.name.0.as_str())));
    let placed = plan.placements.iter().map(|placed| (&placed.pod, node_of(snapshot, &placed.target)));
    let mut users: BTreeMap<ObjectKey, Vec<(&PodKey, &str)>> = BTreeMap::new();
    for (key, node) in bought.chain(placed) {
        let Some(pod) = snapshot.pods.get(key) else { continue };
        for claim in for_one_node(snapshot, pod) {
            users.entry(claim).or_default().push((key, node));
        }
    }
    for pod in snapshot.pods.bound_with_volumes().filter(|pod| pod.deleting_since.is_none()) {
        let PodPhase::Bound { node } = &pod.phase else { continue };
        for claim in for_one_node(snapshot, pod) {
            if let Some(known) = users.get_mut(&claim) {
                known.push((&pod.key, node.as_str()));
            }
        }
    }
    let sentence = |(claim, users): (&ObjectKey, &Vec<(&PodKey, &str)>)| {
        let nodes = users.iter().map(|(_, node)| *node).collect::<BTreeSet<_>>().len();
        let pods: BTreeSet<String> = users.iter().map(|(pod, _)| pod.to_string()).collect();
        let pods: Vec<String> = pods.into_iter().collect();
        (nodes > 1).then(|| {
            format!(
                "pods {} use PersistentVolumeClaim {claim} ({mode}), whose volume only one node at a time attaches, but the plan has \
                 them on {nodes} nodes, where all but one wait for it; give them required pod affinity to each other over {HOSTNAME}, \
                 or use a volume with ReadWriteMany",
                list(&pods, SHOWN),
                mode = VolumeClaim::ONE_NODE
            )
        })
    };
    users.iter().filter_map(sentence).collect()
}

fn node_of<'a>(snapshot: &'a Snapshot, target: &'a Target) -> &'a str {
    match target {
        Target::Claim(name) => {
            let claim = snapshot.claims.get(name);
            claim.and_then(|claim| claim.node_name.as_deref()).unwrap_or(&name.0)
        }
        Target::Node(name) => name,
    }
}

/// Returns the claims of a pod for volumes that one node at a time attaches.
fn for_one_node<'a>(snapshot: &'a Snapshot, pod: &'a Pod) -> impl Iterator<Item = ObjectKey> + 'a {
    let claims = pod.volumes.iter().filter_map(move |volume| claim_of(pod, volume));
    claims.filter(move |key| {
        let claim = snapshot.volume_claims.get(key);
        claim.is_some_and(|claim| claim.is_for_one_node())
    })
}
