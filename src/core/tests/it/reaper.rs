//! Tests of the reaper: instances without a claim.

use poolwright_core::lifecycle::Decision;
use poolwright_core::*;
use poolwright_terms::ConditionType;

use crate::kit::*;

fn instance(id: &str, claim: &str, launched: i64) -> ListedInstance {
    ListedInstance {
        provider_id: id.into(),
        claim_uid: Uid(claim.into()),
        node_class: node_class(),
        launched: at(launched),
    }
}

#[test]
fn an_instance_without_a_claim_is_reaped_after_a_minute() {
    let mut snapshot =
        with(cluster(aws(), [pool("gpu")]), [true_since(launched(claim()), ConditionType::Launched, 0)]);
    snapshot.instances =
        Some(listing(at(70), [instance("kwok://c", "uid-c", 0), instance("kwok://x", "uid-x", 10)]));
    assert_eq!(decide(&snapshot, at(69)), Decision { actions: vec![], wake_at: Some(at(70)) });
    assert_eq!(
        decide(&snapshot, at(70)).actions,
        [Action::Reap {
            provider_id: "kwok://x".into(),
            claim_uid: Uid("uid-x".into()),
            node_class: node_class(),
        }]
    );
}

#[test]
fn without_a_listing_nothing_is_reaped_or_taken_for_gone() {
    let snapshot =
        with(cluster(aws(), [pool("gpu")]), [true_since(launched(claim()), ConditionType::Launched, 0)]);
    assert_eq!(decide(&snapshot, at(800)).actions, []);
}

#[test]
fn an_instance_that_is_not_recorded_yet_is_known_by_the_uid_of_its_claim() {
    let mut snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim()]), [pod("p", requests(1, 1, 1))]);
    snapshot.instances = Some(listing(at(200), [instance("kwok://c", "uid-c", 0)]));
    assert_eq!(decide(&snapshot, at(200)).actions, [Action::Launch { claim: ClaimName("c".into()) }]);
}

#[test]
fn nothing_is_reaped_while_the_listing_has_none_of_the_instances_whose_nodes_are_ready() {
    let reaped = |snapshot: &Snapshot| {
        let actions = decide(snapshot, at(100)).actions;
        actions.iter().any(|action| matches!(action, Action::Reap { .. }))
    };
    let other = Claim { name: ClaimName("d".into()), uid: Uid("uid-d".into()), ..claim() };
    let other = true_since(launched(other), ConditionType::Launched, 10);
    let orphan = || instance("kwok://x", "uid-x", 10);
    let mut snapshot = with(with(cluster(aws(), [pool("gpu")]), [initialized(), other]), [claimed_node()]);
    snapshot.instances = Some(listing(at(90), [orphan()]));
    assert!(!reaped(&snapshot), "the listing may be of another account");
    snapshot.instances = Some(listing(at(90), [orphan(), instance("kwok://d", "uid-d", 10)]));
    assert!(reaped(&snapshot), "it has another of our instances");
}
