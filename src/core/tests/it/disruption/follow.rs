//! Tests of disruptions in progress: the conditions that they wait for, and the reasons to call them off.

use super::*;

#[test]
fn a_move_is_called_off_when_what_was_bought_for_it_is_lost() {
    let snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    let proposal = proposed(&snapshot).unwrap();
    let mut begun = begun(&snapshot, &proposal);
    begun.claims.remove(&proposal.plan.claims[0].name);
    let plan = planned_at(&begun, NOW + 61);
    assert!(matches!(plan.moved[0].to, MovedTo::New(_)));
    let followed = follow(&begun, &plan, at(NOW + 61));
    assert!(!followed.obsolete.is_empty(), "what the plan buys is not bought");
    let why = called_off(&followed.actions).unwrap();
    assert!(why.starts_with("the node stays: the room for its pods on other nodes is gone"), "{why}");
}

#[test]
fn a_move_is_called_off_when_a_pod_there_becomes_protected() {
    let snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    let begun = begun(&snapshot, &proposed(&snapshot).unwrap());
    let protection =
        Some(Protection { annotation: "poolwright.dev/do-not-disrupt=true".into(), until: None });
    let ending = Ending { protection, ..Ending::default() };
    let (_, actions) = followed(&with(begun, [Pod { ending, ..bound(replica("a"), "big") }]));
    assert_eq!(
        called_off(&actions).unwrap(),
        "the node stays: pod default/a is protected by poolwright.dev/do-not-disrupt=true"
    );
}

#[test]
fn a_node_that_drains_already_is_not_drained_again() {
    let snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    let proposal = proposed(&snapshot).unwrap();
    let ready = opened(&begun(&snapshot, &proposal), &proposal.plan.claims[0].name);
    assert_eq!(retires(&followed(&ready).1), ["big"]);
    let claim = (*ready.claims[&ClaimName("big".into())]).clone();
    let drains = with(ready, [Claim { deleting_since: Some(at(NOW + 61)), ..claim }]);
    assert_eq!(followed(&drains).1, []);
}

#[test]
fn a_move_waits_for_a_disruption_budget_and_is_called_off_when_that_lasts() {
    let snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    let proposal = proposed(&snapshot).unwrap();
    let mut ready = opened(&begun(&snapshot, &proposal), &proposal.plan.claims[0].name);
    let budget = PodDisruptionBudget {
        key: object_key("web"),
        uid: Uid("pdb".into()),
        selector: BudgetSelector::Pods(vec![]),
        limit: Some(BudgetLimit::MaxUnavailable(CountOrPercent::Count(1))),
        expected: 1,
        allowed: Some(0),
        failure: None,
        unhealthy: UnhealthyPods::default(),
    };
    ready.budgets.insert(object_key("web"), budget.into());
    let after = |seconds: i64| {
        let plan = planned_at(&ready, NOW + seconds);
        follow(&ready, &plan, at(NOW + seconds)).actions
    };
    assert_eq!(after(899), []);
    assert!(called_off(&after(900)).unwrap().contains("PodDisruptionBudget default/web allows no eviction"));
}

#[test]
fn a_node_stays_closed_until_its_move_is_called_off_and_opens_then() {
    let snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    let mut begun = begun(&snapshot, &proposed(&snapshot).unwrap());
    let closed = Node { taints: vec![taint(DISRUPTED_TAINT, "")], ..large("big").1 };
    begun = with(begun, [closed]);
    let opens = Action::SetTaints { node: "big".into(), taints: vec![] };
    assert!(!decide(&begun, at(NOW + 5)).actions.contains(&opens));
    let mut claim = (*begun.claims[&ClaimName("big".into())]).clone();
    if let Some(condition) = claim.conditions.get_mut(&ConditionType::Disrupting) {
        (condition.status, condition.reason) = (ConditionStatus::False, Some(Reason::CalledOff));
    }
    assert!(decide(&with(begun, [claim]), at(NOW + 5)).actions.contains(&opens));
}
