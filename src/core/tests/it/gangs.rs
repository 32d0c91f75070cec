//! Tests of gangs, which are planned as a whole from their templates, even if controllers are missing.

use poolwright_core::*;

use crate::kit::*;

impl Put for Gang {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.gangs.insert((self.kind.clone(), self.key.clone()), self.into());
    }
}

fn part(name: &str, jobs: usize, each: u64) -> GangPart {
    GangPart {
        name: name.into(),
        controller: "Job".into(),
        controllers: (0..jobs).map(|at| format!("set-{name}-{at}")).collect(),
        pods_per_controller: each,
        creates_missing: true,
        example: pod("template", requests(10, 8, 1)),
    }
}

fn set(parts: Vec<GangPart>) -> Gang {
    Gang { kind: "JobSet".into(), key: object_key("set"), uid: Uid("set".into()), parts }
}

/// Returns a Job of the JobSet with one unschedulable pod.
fn job(name: &str, wanted: u64) -> (Workload, Pod) {
    let uid = Uid(format!("job-{name}"));
    let of = Some(Uid("set".into()));
    let pod = Pod { owner: Some(uid.clone()), priority: 7, ..pod(&format!("{name}-0"), requests(10, 8, 1)) };
    (
        Workload {
            kind: "Job".into(),
            key: object_key(name),
            uid,
            owner: of,
            total: wanted,
            wanted,
            current: 1,
            scheduling_gated: false,
            selector: None,
        },
        pod,
    )
}

fn with_jobs(parts: Vec<GangPart>, jobs: &[(Workload, Pod)]) -> Snapshot {
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [set(parts)]);
    for (workload, pod) in jobs {
        snapshot = with(snapshot, [workload.clone()]);
        snapshot = with(snapshot, [pod.clone()]);
    }
    snapshot
}

#[test]
fn a_leader_alone_has_its_whole_gang_bought_before_any_other_job_is_there() {
    let parts = vec![part("leader", 1, 1), part("workers", 1, 3)];
    let snapshot = with_jobs(parts, &[job("set-leader-0", 1)]);
    let plan = planned(&snapshot);
    assert_eq!(
        bought(&plan),
        ["g5.12xlarge: JobSet:set.workers#0 JobSet:set.workers#1 JobSet:set.workers#2 set-leader-0-0"]
    );
    let reason = &plan.claims[0].reason;
    assert!(
        reason.ends_with("; it keeps room for 3 pods of JobSet default/set.workers that are still to come"),
        "{reason}"
    );
    assert_eq!((plan.counts.total, plan.again_at), (1, Some(at(30))));
}

#[test]
fn pods_of_jobs_that_come_later_take_the_places_kept_for_them() {
    let parts = || vec![part("leader", 1, 1), part("workers", 3, 1)];
    let first = with_jobs(parts(), &[job("set-leader-0", 1)]);
    let plan = planned(&first);
    assert_eq!(names(&plan).len(), 4);
    let mut after = carried_out(&first, &plan, 11);
    for there in 1..=3 {
        for at in 0..there {
            let (workload, pod) = job(&format!("set-workers-{at}"), 1);
            after = with(with(after, [workload]), [pod]);
        }
        let again = planned_at(&after, 12);
        assert_eq!((again.claims.len(), again.placements.len()), (0, 1 + there));
        after.nominations.clone_from(&again.nominations);
        // A restart forgets the nominations, but the claims still list the pods that they keep room for.
        let restarted = Snapshot { nominations: std::collections::BTreeMap::new(), ..after.clone() };
        assert_eq!(planned_at(&restarted, 12).claims, []);
    }
}

#[test]
fn parts_that_wait_for_others_are_not_expected_and_jobs_that_are_there_are() {
    let waiting = GangPart { creates_missing: false, ..part("workers", 2, 2) };
    let plan = planned(&with_jobs(vec![part("leader", 1, 1), waiting.clone()], &[job("set-leader-0", 1)]));
    assert_eq!(names(&plan), ["set-leader-0-0"]);
    let jobs = [job("set-leader-0", 1), job("set-workers-0", 2)];
    let plan = planned(&with_jobs(vec![part("leader", 1, 1), waiting], &jobs));
    assert_eq!(names(&plan), ["JobSet:set.workers#0", "set-leader-0-0", "set-workers-0-0"]);
    let plan = planned(&with_jobs(vec![], &[job("set-leader-0", 1)]));
    assert_eq!(names(&plan), ["set-leader-0-0"], "suspended");
}

#[test]
fn nothing_is_expected_of_a_gang_that_finds_nodes_or_has_made_nothing_for_a_while() {
    let parts = || vec![part("leader", 1, 1), part("workers", 1, 3)];
    let (workload, pod) = job("set-leader-0", 1);
    let runs = with_jobs(parts(), &[(workload, bound(pod, "n"))]);
    assert_eq!(planned(&runs).claims, []);
    let late = with_jobs(parts(), &[job("set-leader-0", 1)]);
    assert_eq!(names(&planned_at(&late, 30)), ["set-leader-0-0"]);
}

#[test]
fn the_parts_of_a_gang_share_what_a_quota_lets_in() {
    let parts = vec![part("leader", 1, 1), part("workers", 1, 3), part("others", 1, 3)];
    let mut snapshot = with_jobs(parts, &[job("set-leader-0", 1)]);
    let left = [("pods".to_owned(), 4)].into();
    let quota = Quota { key: object_key("quota"), scopes: QuotaScopes::default(), left };
    snapshot.quotas.insert(quota.key.clone(), quota.into());
    assert_eq!(names(&planned(&snapshot)).len(), 1 + 4);
}

#[test]
fn a_pod_to_come_is_as_important_as_its_like_and_templates_with_volumes_are_not_expected() {
    let snapshot = with_jobs(vec![part("leader", 1, 1), part("workers", 1, 1)], &[job("set-leader-0", 1)]);
    let priorities: Vec<i32> = demand::expected(&snapshot, at(10)).iter().map(|one| one.priority).collect();
    assert_eq!(priorities, [7], "its template says nothing of what admission writes");
    let mut workers = part("workers", 1, 1);
    workers.example.volumes = vec![PodVolume::Claim { name: "data".into(), ephemeral: false }];
    let plan = planned(&with_jobs(vec![part("leader", 1, 1), workers], &[job("set-leader-0", 1)]));
    assert_eq!(names(&plan), ["set-leader-0-0"]);
}
