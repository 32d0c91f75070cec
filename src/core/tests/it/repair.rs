//! Tests of repair, which replaces unhealthy nodes.

use jiff::SignedDuration;
use poolwright_core::*;
use poolwright_terms::ConditionType;

use crate::kit::*;

fn rule(condition: &str, status: &str, minutes: i64) -> RepairRule {
    let after = SignedDuration::from_mins(minutes);
    RepairRule { condition: condition.to_owned(), status: status.to_owned(), after }
}

fn sick(kind: &str, status: &str, since: i64) -> NodeCondition {
    let (kind, status) = (kind.to_owned(), status.to_owned());
    NodeCondition { kind, status, since: at(since), cause: "Kubelet: it said why".to_owned() }
}

fn pool_of(kept: bool) -> Pool {
    let repair = vec![rule("Ready", "Unknown", 30), rule("GpuHealthy", "False", 10)];
    Pool { disruption: Disruption { repair, do_not_disrupt: kept, ..Disruption::default() }, ..pool("gpu") }
}

/// Returns a cluster with this number of open nodes of a pool, of which the first ones have the condition.
fn cluster_with(pool: Pool, nodes: usize, first: usize, condition: &NodeCondition) -> Snapshot {
    let ready = condition.kind != "Ready";
    let one = |index: usize| {
        let name = format!("n{index}");
        let named = Claim { name: ClaimName(name.clone()), uid: Uid(name.clone()), ..launched(claim()) };
        let open = true_since(true_since(named, ConditionType::Registered, 1), ConditionType::Initialized, 2);
        let size = open.offerings[0].allocatable.clone();
        let unhealthy_conditions = if index < first { vec![condition.clone()] } else { vec![] };
        let node = Node { ready: ready || index >= first, unhealthy_conditions, ..node(&name, size) };
        let id = format!("kwok://{name}");
        let launched = open.launched.clone().map(|launched| Launched { provider_id: id.clone(), ..launched });
        (
            Claim { node_name: Some(name), launched, planned_pods: vec![], ..open },
            Node { provider_id: Some(id), ..node },
        )
    };
    let (claims, nodes): (Vec<Claim>, Vec<Node>) = (0..nodes).map(one).unzip();
    let pods =
        (0..first).map(|index| bound(pod(&format!("p{index}"), requests(1, 1, 0)), &format!("n{index}")));
    with(with(with(cluster(aws(), [pool]), claims), nodes), pods)
}

/// Returns the claims that are deleted after this many seconds, and the condition that is recorded on the first claim.
fn after(snapshot: &Snapshot, seconds: i64) -> (Vec<String>, Option<String>) {
    let actions = decide(snapshot, at(seconds)).actions;
    let deleted = actions.iter().filter_map(|action| match action {
        Action::DeleteClaim { claim, only_if_empty: false, .. } => Some(claim.0.clone()),
        _ => None,
    });
    let said = actions.iter().find_map(|action| match action {
        Action::SetConditions { conditions, .. } => {
            conditions.iter().find(|one| one.kind == ConditionType::Unhealthy).map(|one| one.message.clone())
        }
        _ => None,
    });
    (deleted.collect(), said)
}

#[test]
fn a_sick_node_is_replaced_when_its_condition_has_lasted_for_as_long_as_its_pool_bears() {
    let snapshot = cluster_with(pool_of(false), 1, 1, &sick("GpuHealthy", "False", 100));
    let (deleted, said) = after(&snapshot, 699);
    assert_eq!(deleted, [""; 0]);
    let said = said.unwrap();
    assert!(said.starts_with("node n0 has had the condition GpuHealthy=False since 2"), "{said}");
    assert!(said.contains("it is replaced at"), "{said}");
    assert_eq!(after(&snapshot, 700).0, ["n0"]);
}

#[test]
fn decisions_wake_when_the_time_of_a_sick_node_is_up() {
    let snapshot = cluster_with(pool_of(false), 1, 1, &sick("GpuHealthy", "False", 100));
    assert_eq!(decide(&snapshot, at(200)).wake_at, Some(at(700)));
}

#[test]
fn a_condition_that_no_rule_names_replaces_nothing() {
    for other in
        [sick("GpuHealthy", "Unknown", 100), sick("Ready", "False", 100), sick("Frequent", "True", 100)]
    {
        let snapshot = cluster_with(pool_of(false), 1, 1, &other);
        assert_eq!(after(&snapshot, 100_000), (vec![], None), "{other}");
    }
}

#[test]
fn while_more_than_a_fifth_of_a_pool_is_sick_nothing_is_replaced_and_it_says_so() {
    let of = |first| after(&cluster_with(pool_of(false), 10, first, &sick("Ready", "Unknown", 100)), 10_000);
    assert_eq!(of(2).0, ["n0", "n1"]);
    let (deleted, said) = of(3);
    assert_eq!(deleted, [""; 0]);
    assert!(said.unwrap().contains("3 of the 10 nodes of pool `gpu` are unhealthy"));
}

#[test]
fn a_sick_node_that_an_annotation_keeps_stays() {
    let snapshot = cluster_with(pool_of(true), 1, 1, &sick("GpuHealthy", "False", 100));
    let (deleted, said) = after(&snapshot, 10_000);
    assert_eq!(deleted, [""; 0]);
    assert!(said.unwrap().contains("do-not-disrupt of its NodePool keeps it"));
}

#[test]
fn a_node_that_is_well_again_says_so_and_stays() {
    let mut snapshot = cluster_with(pool_of(false), 1, 0, &sick("GpuHealthy", "False", 100));
    let claim = (*snapshot.claims[&ClaimName("n0".into())]).clone();
    snapshot = with(snapshot, [true_since(claim, ConditionType::Unhealthy, 200)]);
    assert_eq!(after(&snapshot, 10_000), (vec![], Some("its node is healthy again".to_owned())));
}

/// Returns whether the instance of the first claim is terminated after its deletion.
fn ends(snapshot: Snapshot, seconds: i64) -> bool {
    let claim = (*snapshot.claims[&ClaimName("n0".into())]).clone();
    let going =
        Claim { deleting_since: Some(at(seconds)), ..true_since(claim, ConditionType::Unhealthy, 200) };
    let actions = decide(&with(snapshot, [going]), at(seconds)).actions;
    actions.iter().any(|action| matches!(action, Action::Terminate { forced: true, .. }))
}

#[test]
fn repair_waits_for_pods_only_if_the_kubelet_is_reachable() {
    assert!(ends(cluster_with(pool_of(false), 1, 1, &sick("Ready", "Unknown", 100)), 2_000));
    assert!(
        !ends(cluster_with(pool_of(false), 1, 1, &sick("Ready", "Unknown", 100)), 1_000),
        "its time is not up"
    );
    assert!(!ends(cluster_with(pool_of(false), 1, 1, &sick("GpuHealthy", "False", 100)), 2_000));
}

#[test]
fn a_sick_node_that_is_not_ready_for_a_moment_is_not_lost() {
    let mut snapshot = cluster_with(pool_of(false), 1, 1, &sick("GpuHealthy", "False", 100));
    let mut node = (*snapshot.nodes["n0"]).clone();
    node.ready = false;
    node.unhealthy_conditions.push(sick("Ready", "Unknown", 1_990));
    snapshot = with(snapshot, [node]);
    assert!(!ends(snapshot.clone(), 2_000), "its pods are asked to go, and are waited for");
    assert!(ends(snapshot, 1_990 + 1_800));
}
