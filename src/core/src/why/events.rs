//! Events and conditions that follow from a plan.

use std::collections::BTreeMap;

use poolwright_terms::{ConditionStatus, ConditionType, NodeClassRef, Reason};

use crate::action::{Action, ConditionUpdate, Event, EventType, Subject};
use crate::model::plan::{DeferredPods, Plan, PoolFindings};
use crate::model::{PodKey, Snapshot};
use crate::rules::format;

/// Returns the events on pods and the conditions of pools that follow from a plan. The same plan gives the same events, and the
/// event queue leaves out repetitions.
pub fn of_plan(plan: &Plan) -> Vec<Action> {
    let mut actions = Vec::new();
    for (pool, findings) in &plan.pools {
        actions.push(Action::SetConditions {
            subject: Subject::Pool(pool.clone()),
            conditions: conditions(findings),
        });
        if let Some(message) = &findings.limit_reached {
            actions.push(event(
                Subject::Pool(pool.clone()),
                EventType::Warning,
                Reason::LimitReached,
                message.clone(),
            ));
        }
        if let Some(message) = &findings.buffer_unmet {
            let subject = Subject::Pool(pool.clone());
            actions.push(event(subject, EventType::Warning, Reason::BufferUnmet, message.clone()));
        }
    }
    for claim in &plan.claims {
        for pod in claim.planned_pods.iter().filter_map(PodKey::existing) {
            let message = format!("bought for it: {} (claim {})", claim.reason, claim.name);
            actions.push(event(Subject::Pod(pod.clone()), EventType::Normal, Reason::NodePlanned, message));
        }
    }
    for left in plan.unplaced.iter().filter(|left| left.reason.is_unmet_demand()) {
        let Some(pod) = left.pod.existing() else { continue };
        let subject = Subject::Pod(pod.clone());
        actions.push(event(subject, EventType::Warning, left.reason.reason(), left.message.clone()));
    }
    for DeferredPods { pod, owner, pods, planned } in &plan.deferred {
        let Some(pod) = pod.existing() else { continue };
        let message = format!(
            "{owner} is about to create {} pods; {planned} of them are planned for now, and the others when they exist",
            planned + pods
        );
        actions.push(event(
            Subject::Pod(pod.clone()),
            EventType::Warning,
            Reason::TooManyPodsExpected,
            message,
        ));
    }
    actions
}

/// Adds launch problems of node classes to the conditions of their pools. Plans do not know these problems.
pub fn add_launch_problems(
    actions: &mut [Action],
    snapshot: &Snapshot,
    problems: &BTreeMap<NodeClassRef, String>,
) {
    for action in actions {
        let Action::SetConditions { subject: Subject::Pool(name), conditions } = action else { continue };
        let Some(problem) = snapshot.pools.get(name).and_then(|pool| problems.get(&pool.node_class)) else {
            continue;
        };
        for kind in [ConditionType::NodeClassReady, ConditionType::Ready] {
            conditions.retain(|update| update.kind != kind || update.status != ConditionStatus::True);
            if !conditions.iter().any(|update| update.kind == kind) {
                let message = format!("its last launch failed, and a repeat would fail too: {problem}");
                conditions.push(update(kind, ConditionStatus::False, Reason::LaunchInvalid, message));
            }
        }
    }
}

/// Returns the conditions of a pool.
pub fn conditions(findings: &PoolFindings) -> Vec<ConditionUpdate> {
    let of = |kind, problem: &Option<(Reason, String)>, reason: Reason, message: String| match problem {
        Some((reason, message)) => update(kind, ConditionStatus::False, *reason, message.clone()),
        None => update(kind, ConditionStatus::True, reason, message),
    };
    let valid = of(
        ConditionType::ValidationSucceeded,
        &findings.invalid,
        Reason::Valid,
        "the spec is valid".to_owned(),
    );
    let class = of(
        ConditionType::NodeClassReady,
        &findings.node_class,
        Reason::Ready,
        "the node class exists and is ready".to_owned(),
    );
    let limit = match &findings.limit_reached {
        Some(message) => {
            update(ConditionType::LimitReached, ConditionStatus::True, Reason::LimitReached, message.clone())
        }
        None => update(
            ConditionType::LimitReached,
            ConditionStatus::False,
            Reason::WithinLimits,
            "no limit leaves pods waiting".to_owned(),
        ),
    };
    let shared = findings.shares_gpus.clone().map(|message| (Reason::GpusShared, message));
    let unpriced = findings.unsold.clone().filter(|(reason, _)| *reason == Reason::PriceUnknown);
    let problem = findings.invalid.as_ref().or(findings.node_class.as_ref()).cloned();
    let problem = problem.or(shared).or(unpriced);
    let offered = format!("{} may be bought now", format::count(findings.offerings, "offering"));
    // The pool can still buy nodes for pods, or can again when the cloud has some.
    let (reason, message) = match (&findings.unsold, &findings.buffer_unmet) {
        (Some((reason, message)), _) => (*reason, message.clone()),
        (None, Some(unmet)) => (Reason::BufferUnmet, format!("{offered}; {unmet}")),
        (None, None) => (Reason::Ready, offered),
    };
    let ready = of(ConditionType::Ready, &problem, reason, message);
    vec![ready, valid, class, limit]
}

fn update(kind: ConditionType, status: ConditionStatus, reason: Reason, message: String) -> ConditionUpdate {
    ConditionUpdate { kind, status, reason, message }
}

fn event(subject: Subject, kind: EventType, reason: Reason, message: String) -> Action {
    Action::RecordEvent(Event { subject, kind, reason, message })
}
