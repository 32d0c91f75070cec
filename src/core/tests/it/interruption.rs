//! Tests of interruptions: the times at which nodes are closed, replacements are bought and pods are evicted.

use jiff::SignedDuration;
use poolwright_core::disruption::{FollowUp, MoveHistory, follow, propose};
use poolwright_core::lifecycle::interruption_conditions;
use poolwright_core::plan::{Plan, PlanOptions};
use poolwright_core::setbacks::Setbacks;
use poolwright_core::*;
use poolwright_solver::NeverStop;
use poolwright_terms::keys::DISRUPTED_TAINT;
use poolwright_terms::{ConditionStatus, ConditionType, InterruptionKind, Reason};
use proptest::prelude::*;

use crate::kit::*;

/// The time of the cloud's notice.
const NOTICED: i64 = 1000;

fn said(kind: InterruptionKind, deadline: Option<i64>) -> Interruption {
    Interruption { kind, noticed: at(NOTICED), deadline: deadline.map(at), message: "says the cloud".into() }
}

fn reclaim() -> Interruption {
    said(InterruptionKind::Reclaim, Some(NOTICED + 120))
}

/// Returns the claim with this interruption, which was recorded a second after the notice.
fn told(mut claim: Claim, interruption: Interruption) -> Claim {
    for ConditionUpdate { kind, status, reason, message } in
        interruption_conditions(&interruption, at(NOTICED + 1))
    {
        claim
            .conditions
            .insert(kind, Condition { status, since: at(NOTICED + 1), reason: Some(reason), message });
    }
    Claim { interruption: Some(interruption), planned_pods: vec![], ..claim }
}

fn replica(name: &str) -> Pod {
    Pod { owner: Some(Uid("web".into())), created: at(40), ..pod(name, requests(1, 1, 0)) }
}

fn protected(name: &str) -> Pod {
    let protection =
        Some(Protection { annotation: "poolwright.dev/do-not-disrupt=true".into(), until: None });
    Pod { ending: Ending { protection, grace: SignedDuration::from_secs(30) }, ..replica(name) }
}

/// Returns a cluster with the claim's open node and these pods of one ReplicaSet on it.
fn with_pods(claim: Claim, pods: Vec<Pod>) -> Snapshot {
    let count = pods.len() as u64;
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [claim]), [claimed_node()]);
    with(with(snapshot, pods.into_iter().map(|pod| bound(pod, "n"))), [web(count)])
}

fn followed(snapshot: &Snapshot, plan: &Plan, seconds: i64) -> FollowUp {
    follow(snapshot, plan, at(seconds))
}

fn retire() -> Action {
    Action::Drain { claim: ClaimName("c".into()), uid: Uid("uid-c".into()) }
}

fn terminates(snapshot: &Snapshot, seconds: i64) -> Option<bool> {
    decide(snapshot, at(seconds)).actions.iter().find_map(|action| match action {
        Action::Terminate { forced, .. } => Some(*forced),
        _ => None,
    })
}

/// Returns a cluster in which the claim was deleted two seconds after the notice and its node is closed.
fn going(claim: Claim, pods: Vec<Pod>) -> Snapshot {
    let claim = Claim { deleting_since: Some(at(NOTICED + 2)), ..claim };
    let node = Node { taints: vec![taint(DISRUPTED_TAINT, "")], ..claimed_node() };
    with(with_pods(claim, pods), [node])
}

#[test]
fn an_interrupted_node_closes_at_once_with_events_and_without_evictions() {
    let decision = decide(&with_pods(told(initialized(), reclaim()), vec![replica("a")]), at(NOTICED + 1));
    let message = "spot capacity is taken back at 2027-01-15T08:18:40Z (says the cloud): its node is closed, room for its pods is bought elsewhere, and they are evicted; pods that remain are deleted in time to end by 2027-01-15T08:18:30Z";
    let tell = |subject| {
        let (kind, reason) = (EventType::Warning, Reason::Interrupted);
        Action::RecordEvent(Event { subject, kind, reason, message: message.to_owned() })
    };
    let closed = Action::SetTaints { node: "n".into(), taints: vec![taint(DISRUPTED_TAINT, "")] };
    let expected = [tell(Subject::Claim(ClaimName("c".into()))), tell(Subject::Node("n".into())), closed];
    assert_eq!(decision.actions, expected);
    assert_eq!(decision.wake_at, Some(at(NOTICED + 11)));
}

#[test]
fn a_recorded_interruption_gets_its_missing_conditions() {
    let claim = Claim { interruption: Some(reclaim()), ..initialized() };
    let decision = decide(&with_pods(claim, vec![]), at(NOTICED + 1));
    let kinds = decision.actions.iter().find_map(|action| match action {
        Action::SetConditions { conditions, .. } => {
            Some(conditions.iter().map(|one| (one.kind, one.reason.as_str())).collect::<Vec<_>>())
        }
        _ => None,
    });
    let expected = [(ConditionType::Interrupted, "Reclaim"), (ConditionType::Disrupting, "Interrupted")];
    assert_eq!(kinds.as_deref(), Some(expected.as_slice()));
}

#[test]
fn the_next_plan_buys_for_protected_and_guarded_pods_too_and_only_then_the_claim_goes() {
    let budget = PodDisruptionBudget {
        key: object_key("web"),
        uid: Uid("pdb".into()),
        selector: BudgetSelector::Pods(vec![]),
        limit: Some(BudgetLimit::MaxUnavailable(CountOrPercent::Count(0))),
        expected: 2,
        allowed: Some(0),
        failure: None,
        unhealthy: UnhealthyPods::default(),
    };
    let none = DisruptionBudget { nodes: CountOrPercent::Count(0), causes: [].into(), window: None };
    let shut =
        Pool { disruption: Disruption { budgets: vec![none], ..Disruption::default() }, ..pool("gpu") };
    let mut snapshot = with_pods(told(initialized(), reclaim()), vec![replica("a"), protected("b")]);
    snapshot.pools.insert(shut.name.clone(), shut.into());
    let snapshot = with(snapshot, [budget]);
    assert_eq!(asked(&snapshot, NOTICED + 1), []);
    let plan = planned_at(&snapshot, NOTICED + 1);
    assert_eq!(names(&plan), ["ReplicaSet:web#0", "ReplicaSet:web#1"]);
    let followed = followed(&snapshot, &plan, NOTICED + 1);
    assert!(followed.actions.contains(&retire()), "{:?}", followed.actions);
    assert_eq!((followed.saved, followed.obsolete.len()), (usd("0"), 0));
}

#[test]
fn an_interrupted_claim_ends_although_its_pods_have_no_place() {
    let claim = told(initialized(), reclaim());
    let mut snapshot = with_pods(claim, vec![replica("a")]);
    snapshot.catalogues.clear();
    let plan = planned_at(&snapshot, NOTICED + 1);
    assert_eq!(plan.claims, []);
    assert!(followed(&snapshot, &plan, NOTICED + 1).actions.contains(&retire()));
}

#[test]
fn an_interrupted_claim_ends_without_a_plan_and_sooner_before_a_near_deadline() {
    let goes = |interruption: Interruption, seconds| {
        let snapshot = with_pods(told(initialized(), interruption), vec![replica("a")]);
        decide(&snapshot, at(NOTICED + seconds)).actions.contains(&retire())
    };
    assert_eq!((goes(reclaim(), 10), goes(reclaim(), 11)), (false, true));
    let short = said(InterruptionKind::Reclaim, Some(NOTICED + 30));
    assert_eq!((goes(short.clone(), 3), goes(short, 4)), (false, true));
    let late = said(InterruptionKind::Reclaim, Some(NOTICED - 5));
    assert!(goes(late, 1));
}

#[test]
fn a_running_gang_gets_a_place_for_its_interrupted_pod() {
    let member = |name: &str| Pod { group: Some("train".into()), ..replica(name) };
    let snapshot = with_pods(told(initialized(), reclaim()), vec![member("a")]);
    let group = PodGroup {
        key: object_key("train"),
        uid: Uid("group".into()),
        min_count: Some(3),
        roles: vec![],
        unmodelled: vec![],
        stands_for: None,
        held: None,
    };
    let others = ["b", "c"].map(|name| bound(member(name), "other"));
    let snapshot = with(with(with(snapshot, others), [node("other", capacity(2, 16, 0))]), [web(3)]);
    assert_eq!(names(&planned_at(&with(snapshot, [group]), NOTICED + 1)), ["ReplicaSet:web#0"]);
}

#[test]
fn a_pod_of_a_set_of_jobs_has_its_place_bought_too() {
    let job = Workload { kind: "Job".into(), key: object_key("set-workers-0"), total: 1, ..web(1) };
    let part = GangPart {
        name: "workers".into(),
        controller: "Job".into(),
        controllers: vec!["set-workers-0".into()],
        pods_per_controller: 1,
        creates_missing: true,
        example: pod("template", requests(1, 1, 0)),
    };
    let set =
        Gang { kind: "JobSet".into(), key: object_key("set"), uid: Uid("set".into()), parts: vec![part] };
    let snapshot = with(cluster(aws(), [pool("gpu")]), [told(initialized(), reclaim())]);
    let snapshot = with(with(snapshot, [claimed_node()]), [bound(replica("a"), "n")]);
    let plan = planned_at(&with(with(snapshot, [job]), [set]), NOTICED + 1);
    assert_eq!(names(&plan), ["JobSet:set.workers#0"]);
}

#[test]
fn pods_that_were_planned_for_it_are_planned_elsewhere() {
    let claim = Claim { planned_pods: vec![key("p")], ..told(registered(), reclaim()) };
    let claim = Claim { planned_pods: vec![key("p")], node_name: None, ..claim };
    let snapshot = with(cluster(aws(), [pool("gpu")]), [claim]);
    let mut snapshot = with(snapshot, [pod("p", requests(3, 12, 1))]);
    snapshot.nominations.insert(key("p"), (Uid("pod-p".into()), "c".into()));
    let plan = planned_at(&snapshot, NOTICED + 1);
    assert_eq!(names(&plan), ["p"]);
    assert!(followed(&snapshot, &plan, NOTICED + 1).actions.contains(&retire()));
    let actions = decide(&snapshot, at(NOTICED + 1)).actions;
    assert!(actions.iter().all(|action| matches!(action, Action::RecordEvent(_))), "{actions:?}");
}

#[test]
fn a_protected_pod_gets_its_full_grace_period_before_the_interruption() {
    let snapshot = going(told(initialized(), reclaim()), vec![replica("a"), protected("b")]);
    assert_eq!(asked(&snapshot, NOTICED + 3), [("a".into(), None)]);
    let alone = going(told(initialized(), reclaim()), vec![protected("b")]);
    assert_eq!(asked(&alone, NOTICED + 79), []);
    assert_eq!(asked(&alone, NOTICED + 80), [("b".into(), Some(30))]);
    assert_eq!(terminates(&alone, NOTICED + 109), None);
    assert_eq!(terminates(&alone, NOTICED + 110), Some(true));
}

#[test]
fn a_pod_with_more_grace_than_is_left_is_told_once_and_at_once() {
    let long =
        Pod { ending: Ending { protection: None, grace: SignedDuration::from_mins(10) }, ..replica("long") };
    let snapshot = going(told(initialized(), reclaim()), vec![long]);
    assert_eq!(asked(&snapshot, NOTICED + 10), [("long".into(), Some(100))]);
}

#[test]
fn the_earlier_of_the_pools_time_and_the_clouds_counts() {
    let within = |seconds: i64| {
        let termination = Some(SignedDuration::from_secs(seconds));
        Claim { deadlines: Deadlines { termination, ..Deadlines::default() }, ..initialized() }
    };
    let ends = |claim| Claim { deleting_since: Some(at(NOTICED + 2)), ..claim }.ends_at();
    assert_eq!(ends(told(within(60), reclaim())), Some(at(NOTICED + 62)));
    assert_eq!(ends(told(within(600), reclaim())), Some(at(NOTICED + 110)));
    let hint = said(InterruptionKind::Rebalance, Some(NOTICED + 60));
    assert_eq!(ends(told(within(600), hint)), Some(at(NOTICED + 602)), "what is likely ends nothing");
    assert_eq!(ends(told(initialized(), said(InterruptionKind::Unhealthy, None))), None);
}

#[test]
fn a_claim_that_goes_already_gets_the_deadline_too() {
    let held = |claim| going(claim, vec![protected("b")]);
    assert_eq!(asked(&held(initialized()), NOTICED + 100), []);
    assert_eq!(asked(&held(told(initialized(), reclaim())), NOTICED + 100), [("b".into(), Some(10))]);
}

#[test]
fn an_ending_instance_evicts_all_pods_without_waiting() {
    let ending = said(InterruptionKind::Ending, None);
    let snapshot = going(told(initialized(), ending.clone()), vec![replica("a"), protected("b")]);
    assert_eq!(asked(&snapshot, NOTICED + 3), [("a".into(), Some(30)), ("b".into(), Some(30))]);
    assert_eq!(terminates(&snapshot, NOTICED + 3), Some(true));
    let before = with_pods(told(initialized(), ending), vec![replica("a")]);
    assert_eq!(names(&planned_at(&before, NOTICED + 1)), ["ReplicaSet:web#0"]);
}

#[test]
fn for_what_is_only_likely_nothing_is_closed_moved_or_bought() {
    let hint = said(InterruptionKind::Rebalance, None);
    let claim = told(initialized(), hint);
    assert_eq!(claim.conditions[&ConditionType::Interrupted].status, ConditionStatus::Unknown);
    let snapshot = with_pods(claim, vec![replica("a")]);
    let actions = decide(&snapshot, at(NOTICED + 1)).actions;
    assert!(actions.iter().all(|action| matches!(action, Action::RecordEvent(_))), "{actions:?}");
    let plan = planned_at(&snapshot, NOTICED + 1);
    assert_eq!((plan.claims.len(), plan.moved.len()), (0, 0));
    assert_eq!(followed(&snapshot, &plan, NOTICED + 1).actions, []);
}

#[test]
fn before_maintenance_pods_move_as_budgets_allow_and_in_its_last_hour_whatever_they_say() {
    let start = NOTICED + 7200;
    let claim = told(initialized(), said(InterruptionKind::Maintenance, Some(start)));
    assert_eq!(claim.leaving(), None);
    let snapshot = with_pods(claim.clone(), vec![replica("a")]);
    assert_eq!(decide(&snapshot, at(NOTICED + 1)).wake_at, Some(at(start - 3600)));
    let leaves = |snapshot: &Snapshot, seconds| {
        let current = planned_at(snapshot, seconds);
        let options = PlanOptions::default();
        let look =
            propose(snapshot, &current, &MoveHistory::default(), at(seconds), &options, &mut NeverStop);
        look.proposal.map(|proposal| proposal.nodes_to_empty[0].condition.reason)
    };
    assert_eq!(leaves(&snapshot, NOTICED + 10), Some(Reason::Interrupted));
    let guarded = with_pods(claim, vec![protected("b")]);
    assert_eq!(leaves(&guarded, NOTICED + 10), None);
    let pressed = decide(&guarded, at(start - 3600)).actions;
    let disrupting = |action: &Action| match action {
        Action::SetConditions { conditions, .. } => {
            conditions.iter().any(|one| one.kind == ConditionType::Disrupting && one.reason == "Interrupted")
        }
        _ => false,
    };
    assert!(pressed.iter().any(disrupting), "{pressed:?}");
}

#[test]
fn a_record_that_presses_is_planned_for_in_a_moment_and_so_are_the_pods_that_are_made_anew() {
    let mut index = index::ClusterIndex::new();
    index.apply_claim(initialized());
    index.apply_pod(bound(replica("a"), "n"));
    assert_eq!(index.apply_pod(replica("more")), index::Change::Demand);
    assert_eq!(index.apply_claim(told(initialized(), reclaim())), index::Change::Interrupted);
    index.delete_pod(&object_key("a"));
    assert_eq!(index.apply_pod(replica("b")), index::Change::Interrupted);
    assert_eq!(index.apply_pod(pod("of-nobody", requests(1, 1, 0))), index::Change::Demand);
    let other = Pod { owner: Some(Uid("other".into())), ..replica("of-another") };
    assert_eq!(index.apply_pod(other), index::Change::Demand);
    let mut called_off = index.clone();
    called_off.apply_claim(initialized());
    assert_eq!(called_off.apply_pod(replica("d")), index::Change::Demand, "it is not taken after all");
    index.delete_claim(&ClaimName("c".into()));
    assert_eq!(
        index.apply_pod(replica("c")),
        index::Change::Demand,
        "the machine is gone, and what was on it"
    );
    let mut hinted = index::ClusterIndex::new();
    hinted.apply_claim(initialized());
    let hint = said(InterruptionKind::Rebalance, None);
    assert_eq!(hinted.apply_claim(told(initialized(), hint)), index::Change::Life);
}

#[test]
fn claims_are_found_by_what_their_cloud_calls_their_instance() {
    let launched = |name: &str, id: &str| {
        let offering = id_of();
        let launched = Some(Launched { provider_id: id.into(), offering });
        Claim { name: ClaimName(name.into()), launched, ..claim() }
    };
    let all =
        [launched("a", "aws:///us-east-1a/i-1"), launched("b", "kwok://i-1"), launched("c", "kwok://i-2")];
    let mut snapshot = with(Snapshot::default(), all);
    let called = |snapshot: &Snapshot, id: &str| {
        snapshot.claims.of_instance(id).map(|claim| claim.name.0.clone()).collect::<Vec<_>>()
    };
    assert_eq!(called(&snapshot, "i-1"), ["a", "b"]);
    snapshot.claims.remove(&ClaimName("a".into()));
    assert_eq!(called(&snapshot, "i-1"), ["b"]);
    assert_eq!(called(&snapshot, "i-3"), Vec::<String>::new());
}

fn id_of() -> poolwright_catalog::OfferingId {
    id("g5.xlarge", "a")
}

#[test]
fn a_reclaimed_offering_is_avoided_longer_after_each_reclaim() {
    let mut setbacks = Setbacks::default();
    let offering = id_of();
    let until = |setbacks: &Setbacks, seconds| {
        setbacks.reclaims(at(seconds)).values().next().map(|one| one.until.as_second() - at(0).as_second())
    };
    let take = |setbacks: &mut Setbacks, seconds| {
        setbacks.interrupted(&node_class(), &id_of(), InterruptionKind::Reclaim, at(seconds));
    };
    take(&mut setbacks, 0);
    assert_eq!(until(&setbacks, 0), Some(300));
    take(&mut setbacks, 60);
    assert_eq!(until(&setbacks, 60), Some(300), "those that are taken together count once");
    setbacks.succeeded(&claim(), &offering, at(60));
    assert_eq!(until(&setbacks, 60), Some(300), "that another is sold says nothing of how long it stays");
    take(&mut setbacks, 400);
    assert_eq!(until(&setbacks, 400), Some(1000));
    let consecutive = |setbacks: &Setbacks| {
        setbacks.reclaims(at(400)).values().map(|one| one.consecutive).collect::<Vec<_>>()
    };
    assert_eq!(consecutive(&setbacks), [2]);
    let mut again = setbacks.clone();
    take(&mut again, 530);
    assert_eq!(
        (consecutive(&again), until(&again, 530)),
        (vec![3], Some(530 + 1200)),
        "of what was bought meanwhile"
    );
    for _ in 0..6 {
        let now = until(&setbacks, 400).unwrap();
        take(&mut setbacks, now);
    }
    let now = until(&setbacks, 400).unwrap();
    take(&mut setbacks, now);
    assert_eq!(until(&setbacks, now), Some(now + 3600), "an hour at most");
    take(&mut setbacks, now + 7200);
    assert_eq!(until(&setbacks, now + 7200), Some(now + 7500), "an hour without any ends the row");
    let mut hinted = Setbacks::default();
    hinted.interrupted(&node_class(), &offering, InterruptionKind::Rebalance, at(0));
    assert_eq!(until(&hinted, 0), Some(60));
    hinted.interrupted(&node_class(), &offering, InterruptionKind::Unhealthy, at(30));
    assert_eq!(until(&hinted, 30), Some(60), "one machine that fails says nothing of others");
}

fn any_interruption() -> impl Strategy<Value = Interruption> {
    let kind = proptest::sample::select(InterruptionKind::ALL.to_vec());
    (kind, 0i64..200, proptest::option::of(0i64..400), 0usize..3).prop_map(
        |(kind, noticed, deadline, text)| {
            let message = ["", "a", "b"][text].to_owned();
            Interruption { kind, noticed: at(noticed), deadline: deadline.map(at), message }
        },
    )
}

proptest! {
    #[test]
    fn notices_in_any_order_and_number_come_to_one_record(
        (all, shuffled) in proptest::collection::vec(any_interruption(), 1..8)
            .prop_flat_map(|all| {
                let twice: Vec<_> = all.iter().chain(&all).cloned().collect();
                (Just(all), Just(twice).prop_shuffle())
            }),
    ) {
        let merge = |all: &[Interruption]| all.iter().skip(1).fold(all[0].clone(), |one, next| one.merged(next));
        let record = merge(&all);
        prop_assert_eq!(&merge(&shuffled), &record);
        for one in &all {
            prop_assert_eq!(&record.merged(one), &record, "one that comes again changes nothing");
            prop_assert!(record.kind >= one.kind);
            prop_assert!(one.deadline.is_none_or(|deadline| record.deadline.is_some_and(|kept| kept <= deadline)));
        }
    }

    #[test]
    fn no_further_notice_extends_the_time_of_a_node(one in any_interruption(), other in any_interruption()) {
        let until = |one: &Interruption| one.usable_until().unwrap_or(jiff::Timestamp::MAX);
        prop_assert!(until(&one.merged(&other)) <= until(&one));
    }
}
