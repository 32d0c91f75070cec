//! Tests of gangs that only their pods tell: no PodGroup says how many of them start together.

use poolwright_core::index::{Change, ClusterIndex};
use poolwright_core::plan::UnplacedReason;
use poolwright_core::*;

use crate::kit::*;
use crate::pod_groups::{nodes, why};

const RAY: &str = "RayCluster default/ray";
const TRAIN: &str = "PyTorchJob default/train";

/// Returns a pod with this mark that fills a g5.xlarge.
fn marked(name: &str, group: &str, mark: GangMark) -> Pod {
    Pod { group: Some(group.into()), gang: Some(Box::new(mark)), ..pod(name, requests(3, 12, 1)) }
}

/// Returns workers, none of which may be missing.
fn workers(count: usize) -> Vec<Pod> {
    (0..count).map(|at| marked(&format!("worker-{at}"), TRAIN, GangMark::default())).collect()
}

/// Returns the head of a cluster of Ray with an autoscaler, and two workers.
fn ray(head: Pod) -> Vec<Pod> {
    let label = ("node".to_owned(), "head".to_owned());
    let role = GroupRole { name: "head".into(), label: label.clone(), least: 1 };
    let mark = GangMark { role: Some(role), enough: Some(0) };
    let head = Pod { spec: head.spec, labels: [label].into(), created: at(5), ..marked("head", RAY, mark) };
    let worker = |name: &str| marked(name, RAY, GangMark::default());
    vec![head, worker("a"), worker("b")]
}

#[test]
fn the_pods_of_a_training_job_get_all_their_nodes_or_none() {
    let plan = planned(&with(nodes(3), workers(4)));
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 4));
    let (reason, message) = why(&plan, "worker-0");
    assert_eq!(reason, UnplacedReason::GangIncomplete);
    assert!(message.starts_with("4 pods of its PyTorchJob default/train start together"), "{message}");
    assert_eq!(names(&planned(&with(nodes(4), workers(4)))).len(), 4);
}

#[test]
fn a_replaced_worker_gets_a_node_beside_those_that_run() {
    let mut pods = workers(4);
    let new = pods.remove(0);
    let gone = Pod { deleting_since: Some(at(1)), ..bound(pods.remove(0), "n") };
    let ended = Pod { phase: PodPhase::Finished, ..pods.remove(0) };
    let runs = bound(pods.remove(0), "n");
    let plan = planned(&with(nodes(1), [new, gone, ended, runs]));
    assert_eq!(names(&plan), ["worker-0"]);
}

#[test]
fn a_worker_that_is_being_deleted_takes_no_place_of_another() {
    let mut pods = workers(4);
    let gone = Pod { deleting_since: Some(at(1)), ..bound(pods.remove(0), "n") };
    let runs = bound(pods.remove(0), "n");
    pods.extend([gone, runs]);
    let plan = planned(&with(nodes(1), pods.clone()));
    assert_eq!(plan.claims, [], "two of the three that stay have room");
    assert_eq!(names(&planned(&with(nodes(2), pods))), ["worker-2", "worker-3"]);
}

#[test]
fn a_pod_that_the_scheduler_has_not_tried_keeps_the_others_waiting() {
    let mut pods = workers(3);
    pods[2].phase = PodPhase::Waiting;
    let plan = planned(&with(nodes(9), pods));
    assert_eq!(plan.claims, []);
    let (reason, message) = why(&plan, "worker-0");
    assert_eq!(reason, UnplacedReason::PodGroupPending);
    assert!(message.contains("pod default/worker-2: the scheduler has not tried it yet"), "{message}");
}

#[test]
fn workers_of_ray_get_nodes_one_by_one_but_none_without_the_head() {
    let small = || pod("head", requests(3, 12, 1));
    assert_eq!(names(&planned(&with(nodes(2), ray(small())))).len(), 2);
    assert_eq!(names(&planned(&with(nodes(1), ray(small())))), ["head"]);
    let plan = planned(&with(nodes(9), ray(pod("head", requests(64, 64, 8)))));
    assert_eq!(plan.claims, []);
    let message = why(&plan, "a").1;
    assert!(message.starts_with("its RayCluster default/ray needs its head"), "{message}");
}

#[test]
fn a_pod_that_is_alone_is_planned_like_any_other() {
    let unmarked = workers(1).into_iter().map(|pod| Pod { group: None, gang: None, ..pod });
    let told = planned(&with(nodes(0), unmarked)).unplaced;
    assert_eq!((told.len(), planned(&with(nodes(0), workers(1))).unplaced), (1, told));
    assert_eq!(names(&planned(&with(nodes(1), workers(1)))), ["worker-0"]);
}

#[test]
fn the_index_plans_anew_when_a_waiting_pod_of_a_gang_goes() {
    let mut index = ClusterIndex::new();
    let untried = |pod: Pod| Pod { phase: PodPhase::Waiting, ..pod };
    for pod in workers(2) {
        assert_eq!(index.apply_pod(untried(pod)), Change::Life, "no PodGroup is missing");
    }
    let key = object_key(TRAIN);
    let least = |index: &ClusterIndex| index.view().pod_group(&key).and_then(|group| group.min_count);
    assert_eq!(least(&index), Some(2));
    assert_eq!(index.delete_pod(&object_key("worker-1")), Change::Room);
    assert_eq!(least(&index), None, "the other is alone");
    assert_eq!(index.delete_pod(&object_key("worker-0")), Change::Room);
    assert_eq!(index.view().pod_group(&key), None);
}
