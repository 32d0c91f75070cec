//! Tests of expected pods, which are planned together with existing pods, and only once.

use std::collections::BTreeSet;

use poolwright_core::demand::{ForecastOptions, foresee};
use poolwright_core::plan::{MOST_OF_OWNER, Plan, expected};
use poolwright_core::*;
use poolwright_terms::{ConditionType, Reason};

use crate::kit::*;

fn job(wanted: u64, current: u64) -> Workload {
    let (kind, uid) = ("Job".into(), Uid("job".into()));
    Workload {
        kind,
        key: object_key("train"),
        uid,
        owner: None,
        total: wanted,
        wanted,
        current,
        scheduling_gated: false,
        selector: None,
    }
}

impl Put for Workload {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.workloads.insert((self.kind.clone(), self.key.clone()), self.into());
    }
}

/// Returns a pod of the Job, created at this second.
fn member(name: &str, second: i64) -> Pod {
    Pod { owner: Some(Uid("job".into())), created: at(second), ..pod(name, requests(10, 8, 1)) }
}

/// Returns a Job with pods that fit only a g5.12xlarge, which four of them fill.
fn gang(there: usize, wanted: u64) -> Snapshot {
    let pods = (0..there).map(|at| member(&format!("train-{at}"), at as i64));
    with(with(cluster(aws(), [pool("gpu")]), pods), [job(wanted, there as u64)])
}

#[test]
fn expected_pods_of_a_job_are_bought_with_its_existing_pods() {
    let plan = planned(&gang(2, 4));
    assert_eq!(bought(&plan), ["g5.12xlarge: Job:train#0 Job:train#1 train-0 train-1"]);
    let reason = &plan.claims[0].reason;
    assert!(
        reason.ends_with("; it keeps room for 2 pods of Job default/train that are still to come"),
        "{reason}"
    );
    assert_eq!((plan.counts.total, plan.counts.expected), (2, 2), "what is not there does not wait");
    assert_eq!(plan.nominations.len(), 2);
    assert_eq!(plan.again_at, Some(at(31)), "half a minute after the newest pod");
}

#[test]
fn one_controller_that_asks_for_millions_of_pods_is_planned_for_in_part_and_told_so() {
    let mut small = pool("gpu");
    small.limits.nodes = Some(2);
    let pods = [member("train-0", 0)];
    let plan = planned(&with(with(cluster(aws(), [small]), pods), [job(2_000_000_000, 1)]));
    assert_eq!(plan.claims.len(), 2);
    let [deferred] = plan.deferred.as_slice() else { panic!("{:?}", plan.deferred) };
    assert_eq!((deferred.planned, deferred.pods), (MOST_OF_OWNER, 2_000_000_000 - 1 - MOST_OF_OWNER));
    let told = |action: &Action| match action {
        Action::RecordEvent(event) if event.reason == Reason::TooManyPodsExpected => {
            Some(event.message.clone())
        }
        _ => None,
    };
    let all = poolwright_core::why::events::of_plan(&plan);
    assert_eq!(
        all.iter().find_map(told).as_deref(),
        Some(
            "Job default/train is about to create 1999999999 pods; 5000 of them are planned for now, and the others when they exist"
        )
    );
    assert_eq!(planned(&gang(2, 4)).deferred, []);
}

#[test]
fn a_thousand_expected_pods_of_one_job_share_the_spec_and_labels_of_their_example() {
    let outlook = ForecastOptions { now: at(10), lowest_priority: 0, scheduler: "default-scheduler" };
    let snapshot = gang(1, 1_001);
    let example = &snapshot.pods[&key("train-0")];
    let foreseen = foresee(&snapshot, &outlook);
    let waiting = foreseen.snapshot.pods.unbound();
    let coming: Vec<&Pod> = waiting.filter(|pod| pod.key.owner().is_some()).collect();
    assert_eq!(coming.len(), 1_000);
    for pod in coming {
        assert!(pod.spec.is_same(&example.spec) && pod.labels.is_same(&example.labels), "{}", pod.key);
        let says_nothing =
            |phase: &PodPhase| matches!(phase, PodPhase::Unschedulable { message, .. } if message.is_empty());
        assert!(
            says_nothing(&pod.phase) && !says_nothing(&example.phase),
            "the scheduler saw the example alone"
        );
    }
}

#[test]
fn a_pod_in_which_a_tenant_writes_much_is_copied_less_often() {
    let label = |at: usize| (format!("example.com/label-{at:05}"), "x".repeat(63));
    let first = Pod { labels: (0..10_000).map(label).collect(), ..member("train-0", 0) };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [first]), [job(2_000, 1)]);
    let all = expected(&snapshot, at(10));
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert!((10..50).contains(&one.missing), "{}", one.missing);
    assert_eq!(one.missing + one.beyond, 1_999, "the others are told of");
}

#[test]
fn the_jobs_of_one_namespace_leave_room_for_those_of_others() {
    let jobs = |namespace: &str, count: usize| {
        let key = |name: String| ObjectKey::new(namespace, name);
        let of = |at: usize| {
            let uid = Uid(format!("{namespace}-{at}"));
            let job = Workload { key: key(format!("job-{at}")), uid: uid.clone(), ..job(1_000_000, 1) };
            let pod_key = PodKey::new(namespace, format!("pod-{at}"));
            let pod = Pod {
                owner: Some(uid.clone()),
                uid: Uid(pod_key.to_string()),
                key: pod_key,
                ..member("x", 0)
            };
            (job, pod)
        };
        (0..count).map(of).collect::<Vec<_>>()
    };
    let mut snapshot = cluster(aws(), [pool("gpu")]);
    for (job, pod) in jobs("greedy", 9).into_iter().chain(jobs("other", 1)) {
        snapshot = with(with(snapshot, [pod]), [job]);
    }
    let all = expected(&snapshot, at(10));
    let of = |namespace: &str| -> u64 {
        all.iter().filter(|one| one.owner.namespace == namespace).map(|one| one.missing).sum()
    };
    assert_eq!((of("greedy"), of("other")), (10_000, 5_000));
}

#[test]
fn pods_that_arrive_take_the_places_kept_for_them_and_nothing_more_is_bought() {
    let first = gang(1, 8);
    let plan = planned(&first);
    assert_eq!((plan.claims.len(), names(&plan).len()), (2, 8));
    let mut after = carried_out(&first, &plan, 11);
    // The pods come in bursts.
    for (burst, there) in [(12, 3), (14, 6), (16, 8)] {
        let fresh = (1..there).map(|at| member(&format!("train-{at}"), burst));
        after = with(with(after, fresh), [job(8, there as u64)]);
        let again = planned_at(&after, burst + 1);
        assert_eq!(again.claims, [], "{there} pods are there");
        assert_eq!(again.placements.len(), there);
        after.nominations.clone_from(&again.nominations);
    }
    let full: BTreeSet<&String> = after.nominations.values().map(|(_, target)| target).collect();
    assert_eq!(full.len(), 2, "four on each node");
    // A restart forgets the nominations, but the claims still list the pods that they keep room for.
    after.nominations.clear();
    let restarted = planned_at(&after, 20);
    assert_eq!((restarted.claims.len(), restarted.placements.len()), (0, 8));
}

#[test]
fn a_pod_that_was_not_tried_yet_counts_as_soon_as_one_of_its_like_found_no_node() {
    let waiting = Pod { phase: PodPhase::Waiting, ..member("train-1", 1) };
    let plan = planned(&with(gang(1, 2), [waiting.clone(), member("train-0", 0)]));
    assert_eq!(bought(&plan), ["g5.12xlarge: train-0 train-1"], "both are there, one was not tried");
    let plan = planned(&with(gang(1, 3), [waiting, member("train-0", 0)]));
    assert_eq!(bought(&plan), ["g5.12xlarge: Job:train#0 train-0 train-1"]);
}

#[test]
fn nothing_is_expected_of_a_controller_that_has_made_nothing_for_a_while_or_wants_no_more() {
    let here = |plan: &Plan| names(plan);
    assert_eq!(here(&planned_at(&gang(1, 4), 30)), ["train-0"]);
    assert_eq!(here(&planned(&gang(2, 2))), ["train-0", "train-1"]);
    assert_eq!(here(&planned(&gang(2, 0))), ["train-0", "train-1"], "suspended");
    // The controller reports that it has created all its pods, but the watch has not shown them yet.
    let said = with(gang(2, 4), [job(4, 4)]);
    assert_eq!(here(&planned(&said)), ["train-0", "train-1"]);
    // As long as the scheduler finds nodes for its pods, nothing is bought.
    let running = (0..2).map(|at| bound(member(&format!("train-{at}"), 0), "n"));
    assert!(planned(&with(gang(2, 8), running)).claims.is_empty());
}

#[test]
fn a_place_that_is_kept_is_not_kept_twice_when_pods_already_run() {
    let first = gang(1, 4);
    let plan = planned(&first);
    let claim = initialized();
    let claim = Claim {
        planned_pods: plan.claims[0].planned_pods.clone(),
        offerings: plan.claims[0].offerings.clone(),
        launched: Some(Launched {
            provider_id: "kwok://c".into(),
            offering: plan.claims[0].offering().clone(),
        }),
        ..claim
    };
    let node = Node { allocatable: capacity(48, 192, 4), ..claimed_node() };
    let pods = [bound(member("train-0", 0), "n"), bound(member("train-1", 12), "n"), member("train-2", 12)];
    let snapshot = with(with(with(with(first, [claim]), [node]), pods), [job(4, 3)]);
    let again = planned_at(&snapshot, 13);
    assert_eq!((again.claims.len(), again.placements.len()), (0, 1));
    let other = with(snapshot, [pod("other", requests(10, 8, 1))]);
    assert_eq!(bought(&planned_at(&other, 14)), ["g5.12xlarge: other"], "it keeps room for the one to come");
    let late = planned_at(&other, 43);
    assert_eq!((late.claims.len(), late.placements.len()), (0, 2), "and no longer than that");
}

#[test]
fn a_node_that_waits_for_pods_to_come_is_not_empty_until_they_are_not_believed_in() {
    let waiting = Claim { planned_pods: vec![key("Job:train#0")], ..initialized() };
    let snapshot = with(with(gang(1, 4), [waiting]), [claimed_node()]);
    let is_empty = |second| {
        let decision = decide(&snapshot, at(second));
        decision.actions.iter().any(|action| match action {
            Action::SetConditions { subject: Subject::Claim(_), conditions } => {
                conditions.iter().any(|one| one.kind == ConditionType::Empty)
            }
            _ => false,
        })
    };
    assert!(!is_empty(29) && is_empty(31));
    assert_eq!(expected(&snapshot, at(29))[0].missing, 3);
    assert!(expected(&snapshot, at(30)).is_empty());
}

#[test]
fn a_quota_that_lets_no_more_in_buys_nothing_for_what_it_keeps_out() {
    let quota = |left: [(&str, u64); 2]| Quota {
        key: object_key("quota"),
        scopes: QuotaScopes::default(),
        left: left.into_iter().map(|(resource, left)| (resource.to_owned(), left)).collect(),
    };
    let of = |quota: Quota| {
        let mut snapshot = gang(1, 4);
        snapshot.quotas.insert(quota.key.clone(), quota.into());
        names(&planned(&snapshot)).len()
    };
    assert_eq!(of(quota([("pods", 0), ("cpu", 1_000_000)])), 1, "the pod that is there");
    assert_eq!(of(quota([("pods", 9), ("cpu", 29_999)])), 3);
    assert_eq!(of(quota([("pods", 9), ("example.com/other", 0)])), 4);
}

#[test]
fn a_quota_with_scopes_keeps_out_only_the_pods_that_it_counts() {
    let classes =
        |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    let of = |scopes: Vec<QuotaScope>, pod: PodScopes| {
        let left = [("pods".to_owned(), 0)].into();
        let quota = Quota { key: object_key("quota"), scopes: QuotaScopes(scopes), left };
        let stuck = Pod { scopes: pod, ..member("train-0", 0) };
        let mut snapshot = with(gang(1, 4), [stuck]);
        snapshot.quotas.insert(quota.key.clone(), quota.into());
        names(&planned(&snapshot)).len()
    };
    let plain = PodScopes::default;
    let ending = || PodScopes { terminating: true, ..PodScopes::default() };
    assert_eq!(
        (of(vec![QuotaScope::Terminating], plain()), of(vec![QuotaScope::Terminating], ending())),
        (4, 1)
    );
    let both = || vec![QuotaScope::NotTerminating, QuotaScope::BestEffort];
    assert_eq!(of(both(), plain()), 4, "it meets one of two scopes");
    assert_eq!(of(both(), PodScopes { best_effort: true, ..plain() }), 1);
    let high = || PodScopes { priority_class: Some("high".into()), ..plain() };
    let by_class = |condition: Operator| vec![QuotaScope::PriorityClass(condition)];
    assert_eq!(of(by_class(Operator::In(classes(&["high"]))), high()), 1);
    assert_eq!(of(by_class(Operator::In(classes(&["low"]))), high()), 4);
    assert_eq!(of(by_class(Operator::NotIn(classes(&["high"]))), plain()), 1, "no class is none of these");
    assert_eq!(
        of(vec![QuotaScope::VolumeAttributesClass(Operator::Exists)], plain()),
        4,
        "it is about claims"
    );
}

#[test]
fn of_two_quotas_each_counts_its_own_pods() {
    let mut snapshot = gang(1, 4);
    let quota = |name: &str, scopes: Vec<QuotaScope>, pods: u64| Quota {
        key: object_key(name),
        scopes: QuotaScopes(scopes),
        left: [("pods".to_owned(), pods)].into(),
    };
    for one in [quota("ending", vec![QuotaScope::Terminating], 0), quota("all", Vec::new(), 2)] {
        snapshot.quotas.insert(one.key.clone(), one.into());
    }
    assert_eq!(names(&planned(&snapshot)).len(), 1 + 2);
}
