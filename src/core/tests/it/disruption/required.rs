//! Tests of required disruption: drift and expiry.

use super::*;

#[test]
fn a_claim_drifts_when_its_pool_would_make_another_and_says_in_what() {
    let labels = BTreeMap::from([("team".to_owned(), "ml".to_owned())]);
    let changed = Pool {
        labels,
        taints: vec![taint("gpu", "only")],
        requirements: vec![is_in("node.kubernetes.io/instance-type", &["g6.xlarge"])],
        ..pool("gpu")
    };
    let snapshot = cluster_of(changed, vec![small("s")], &[("a", "s")]);
    let pool = snapshot.pools.values().next().unwrap().clone();
    let what = drift(&snapshot, &pool, &small("s").0).unwrap();
    assert_eq!(
        what,
        "label team=`ml` was added; taint `gpu=only:NoSchedule` was added; \
         the requirement on node.kubernetes.io/instance-type does not allow its value, `g5.xlarge`"
    );
    let same = cluster_of(pool_as_it_is(), vec![small("s")], &[("a", "s")]);
    assert_eq!(drift(&same, &pool_as_it_is(), &small("s").0), None);
}

fn pool_as_it_is() -> Pool {
    pool("gpu")
}

#[test]
fn a_node_that_drifted_is_replaced_also_where_work_is_not_moved_for_money() {
    let requirements = vec![is_in("node.kubernetes.io/instance-type", &["g6.xlarge"])];
    let changed = Pool { requirements, ..pool("gpu") };
    let snapshot = cluster_of(changed, vec![small("s")], &[("a", "s")]);
    let outlook = looked(&snapshot);
    let proposal = outlook.proposal.unwrap();
    assert_eq!(leaving(&proposal), [("s", "Drifted")]);
    assert_eq!(bought(&proposal.plan), ["g6.xlarge: ReplicaSet:web#0"], "dearer, but as the pool says");
    let noticed = outlook.actions.iter().any(|action| {
        matches!(action, Action::SetConditions { conditions, .. }
        if conditions[0].kind == ConditionType::Drifted && conditions[0].status == ConditionStatus::True)
    });
    assert!(noticed);
    // The replacement is lost, and it is bought again, because the drifted node must go.
    let mut begun = begun(&snapshot, &proposal);
    begun.claims.remove(&proposal.plan.claims[0].name);
    let plan = planned_at(&begun, NOW + 61);
    assert_eq!(plan.claims.len(), 1);
    assert_eq!(called_off(&follow(&begun, &plan, at(NOW + 61)).actions), None);
}

#[test]
fn a_node_that_is_too_old_is_replaced_by_one_of_its_kind() {
    let disruption =
        Disruption { expire_after: Some(SignedDuration::from_mins(60)), ..Disruption::default() };
    let snapshot = cluster_of(Pool { disruption, ..pool("gpu") }, vec![small("s")], &[("a", "s")]);
    assert_eq!(looked_at(&snapshot, 3599).proposal, None);
    let proposal = looked_at(&snapshot, 3600).proposal.unwrap();
    assert_eq!(leaving(&proposal), [("s", "Expired")]);
    assert_eq!(bought(&proposal.plan), ["g5.xlarge: ReplicaSet:web#0"]);
}

#[test]
fn a_node_that_must_go_and_cannot_yet_says_what_keeps_it() {
    let requirements = vec![is_in("node.kubernetes.io/instance-type", &["g6.xlarge"])];
    let none = Disruption { budgets: vec![budget(CountOrPercent::Count(0))], ..Disruption::default() };
    let changed = Pool { requirements, disruption: none, ..pool("gpu") };
    let outlook = looked(&cluster_of(changed, vec![small("s")], &[("a", "s")]));
    assert_eq!(outlook.proposal, None);
    let said = outlook.actions.iter().find_map(|action| match action {
        Action::RecordEvent(event) => Some(event.message.clone()),
        _ => None,
    });
    assert_eq!(
        said.unwrap(),
        "it has drifted and is not replaced yet: spec.disruption.budgets[0] of pool `gpu` allows 0 of 1 node at a time, and 0 are disrupted now"
    );
}
