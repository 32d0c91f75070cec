//! Tests of events and conditions of plans.

use poolwright_core::why::events::of_plan;
use poolwright_core::*;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::kit::*;

#[test]
fn pods_are_told_what_was_bought_or_why_nothing_was_and_pools_how_they_stand() {
    let pods = [pod("a", requests(1, 1, 1)), pod("z", requests(1, 1, 16))];
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), pods));
    let status = |kind, status, reason: Reason, message: &str| ConditionUpdate {
        kind,
        status,
        reason,
        message: message.into(),
    };
    let tell = |name: &str, kind, reason: Reason, message: String| {
        Action::RecordEvent(Event { subject: Subject::Pod(object_key(name)), kind, reason, message })
    };
    let claim = &plan.claims[0];
    assert_eq!(
        of_plan(&plan),
        [
            Action::SetConditions {
                subject: Subject::Pool(PoolName("gpu".into())),
                conditions: vec![
                    status(ConditionType::Ready, ConditionStatus::True, Reason::Ready, "5 offerings may be bought now"),
                    status(ConditionType::ValidationSucceeded, ConditionStatus::True, Reason::Valid, "the spec is valid"),
                    status(
                        ConditionType::NodeClassReady,
                        ConditionStatus::True,
                        Reason::Ready,
                        "the node class exists and is ready"
                    ),
                    status(
                        ConditionType::LimitReached,
                        ConditionStatus::False,
                        Reason::WithinLimits,
                        "no limit leaves pods waiting"
                    ),
                ],
            },
            tell(
                "a",
                EventType::Normal,
                Reason::NodePlanned,
                format!(
                    "bought for it: g5.xlarge on-demand in a at $1.01/h holds 1 pod (1 x nvidia.com/gpu); next best: g6.xlarge at $1.10/h, 9 % dearer (claim {})",
                    claim.name
                )
            ),
            tell(
                "z",
                EventType::Warning,
                Reason::NoOfferingFits,
                "needs 16 nvidia.com/gpu in one node; the largest offering of pool `gpu` for it, g5.12xlarge, has 4; no instance type in the catalogue has more than 4, so ask for less".into()
            ),
        ]
    );
}

#[test]
fn a_pool_that_cannot_be_used_is_not_ready_for_that_reason() {
    let plan = planned(&cluster(aws(), [Pool { requirements: vec![is_in("x", &[])], ..pool("gpu") }]));
    let Action::SetConditions { conditions, .. } = &of_plan(&plan)[0] else {
        panic!("conditions come first")
    };
    let summary: Vec<_> = conditions.iter().map(|c| (c.kind, c.status, c.reason)).collect();
    assert_eq!(summary[0], (ConditionType::Ready, ConditionStatus::False, Reason::ContradictingRequirements));
    assert_eq!(
        summary[1],
        (ConditionType::ValidationSucceeded, ConditionStatus::False, Reason::ContradictingRequirements)
    );
    assert_eq!(summary[2], (ConditionType::NodeClassReady, ConditionStatus::True, Reason::Ready));
}

#[test]
fn pods_that_wait_for_somebody_else_are_left_in_peace() {
    let gated = Pod { phase: PodPhase::Gated, ..pod("a", requests(1, 1, 1)) };
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [gated]));
    assert!(of_plan(&plan).iter().all(|action| !matches!(action, Action::RecordEvent(_))));
}
