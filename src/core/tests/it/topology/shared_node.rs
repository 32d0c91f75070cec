//! Tests of pods that must share a new node.

use super::*;

fn on_node_with(mut pod: Pod, of: &str) -> Pod {
    pod.spec.affinity = vec![term("kubernetes.io/hostname", of)];
    pod
}

fn off_nodes_with(mut pod: Pod, of: &str) -> Pod {
    pod.spec.anti_affinity = vec![term("kubernetes.io/hostname", of)];
    pod
}

#[test]
fn pods_that_must_share_a_node_get_one_that_holds_them_all() {
    let three = || ["p", "q", "r"].map(|name| on_node_with(app(name, "web"), "web"));
    assert_eq!(bought(&planned(&there(three()))), ["c7.xlarge: p q r"]);
    let mut large = three();
    large[2].spec.requests = requests(3, 1, 0);
    let plan = planned(&there(large));
    assert_eq!(plan.unplaced.len(), 1, "no node holds five cores");
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::TopologyRule);
    assert!(plan.unplaced[0].message.contains("share a node"), "{}", plan.unplaced[0].message);
}

#[test]
fn each_server_shares_a_node_with_a_cache_and_with_no_other_server() {
    let caches = ["c1", "c2", "c3"].map(|name| off_nodes_with(app(name, "cache"), "cache"));
    let servers =
        ["s1", "s2", "s3"].map(|name| off_nodes_with(on_node_with(app(name, "server"), "cache"), "server"));
    let snapshot = with(there(caches), servers);
    let plan = planned(&snapshot);
    assert_eq!(plan.unplaced, []);
    let mut nodes: Vec<Vec<String>> = plan
        .claims
        .iter()
        .map(|claim| claim.planned_pods.iter().map(|pod| pod.name()[..1].to_owned()).collect())
        .collect();
    nodes.sort();
    assert_eq!(nodes, [["c", "s"], ["c", "s"], ["c", "s"]]);
    // After the plan has been carried out, everything stays in place.
    let again = planned(&carried_out(&snapshot, &plan, 1));
    assert_eq!((again.claims.len(), again.placements.len()), (0, 6));
}

#[test]
fn a_pod_that_must_share_a_node_with_one_on_its_way_goes_to_its_claim_when_there_is_room() {
    let first = there([app("d", "db"), app("x", "x"), app("y", "y")]);
    let carried = carried_out(&first, &planned(&first), 1);
    let plan = planned(&with(carried, [on_node_with(app("p", "web"), "db")]));
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 0), "{:?}", plan.unplaced);
}

#[test]
fn requirements_of_a_follower_apply_to_the_shared_node() {
    let mut follower = on_node_with(app("p", "web"), "db");
    follower.spec.node_selector.insert(ZONE.into(), "b".into());
    let snapshot = there([app("d", "db"), follower]);
    let plan = planned(&snapshot);
    assert_eq!(zones(&snapshot, &plan), BTreeMap::from([("b".into(), vec!["d".into(), "p".into()])]));
    assert_eq!(plan.claims.len(), 1);
}
