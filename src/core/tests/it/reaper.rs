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
        Some(Instances::new(at(70), [instance("kwok://c", "uid-c", 0), instance("kwok://x", "uid-x", 10)]));
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
    snapshot.instances = Some(Instances::new(at(200), [instance("kwok://c", "uid-c", 0)]));
    assert_eq!(decide(&snapshot, at(200)).actions, [Action::Launch { claim: ClaimName("c".into()) }]);
}
