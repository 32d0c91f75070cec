//! Tests of roles in gangs: no pod of a training job gets a node without its master.

use std::collections::BTreeMap;

use poolwright_catalog::ResourceList;
use poolwright_core::plan::UnplacedReason;
use poolwright_core::*;

use crate::kit::*;
use crate::pod_groups::{nodes, why};

/// A gang that starts with this many pods, of which so many must be masters.
fn gang(min_count: u32, masters: u32) -> PodGroup {
    let label = ("role".into(), "master".into());
    PodGroup {
        key: object_key("train"),
        uid: Uid("group-train".into()),
        min_count: Some(min_count),
        roles: vec![GroupRole { name: "master".into(), label, least: masters }],
        unmodelled: vec![],
        stands_for: Some("PyTorchJob default/train".into()),
        held: None,
    }
}

/// Returns workers, each of which fills a g5.xlarge.
fn workers(count: usize) -> Vec<Pod> {
    let worker =
        |at: usize| Pod { group: Some("train".into()), ..pod(&format!("worker-{at}"), requests(3, 12, 1)) };
    (0..count).map(worker).collect()
}

/// Returns a master, younger than the workers.
fn master(name: &str, requests: ResourceList) -> Pod {
    let labels = BTreeMap::from([("role".to_owned(), "master".to_owned())]);
    Pod { group: Some("train".into()), labels: labels.into(), created: at(5), ..pod(name, requests) }
}

#[test]
fn workers_get_no_nodes_if_their_master_fits_on_none() {
    let pods = workers(3).into_iter().chain([master("master", requests(64, 64, 8))]);
    let plan = planned(&with(with(nodes(9), [gang(2, 1)]), pods));
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 4));
    let (reason, message) = why(&plan, "worker-0");
    assert_eq!(reason, UnplacedReason::GangIncomplete);
    assert!(
        message.starts_with(
            "its PyTorchJob default/train needs its master, but a plan has room for none, so Poolwright buys nothing for any of its \
             pods; pod default/master: "
        ),
        "{message}"
    );
}

#[test]
fn a_gang_without_a_minimum_but_for_its_master_gets_nothing_without_it() {
    let alone = planned(&with(with(nodes(9), [gang(1, 1)]), workers(3)));
    assert_eq!(alone.claims, []);
    let needs =
        "its PyTorchJob default/train needs its master, but has none, so its other pods would do nothing";
    assert_eq!(why(&alone, "worker-0"), (UnplacedReason::PodGroupPending, needs.to_owned()));
    let untried = Pod { phase: PodPhase::Waiting, ..master("master", requests(1, 1, 1)) };
    let pods = workers(3).into_iter().chain([untried]);
    let held = planned(&with(with(nodes(9), [gang(1, 1)]), pods));
    assert_eq!(held.claims, []);
    let needs = "its PyTorchJob default/train needs its master, but none can be planned yet; \
                 pod default/master: the scheduler has not tried it yet";
    assert_eq!(why(&held, "worker-0"), (UnplacedReason::PodGroupPending, needs.to_owned()));
}

#[test]
fn a_limit_leaves_out_workers_before_the_master_that_they_need() {
    // It may look like the workers, or ask for more or less.
    for asked in [requests(3, 12, 1), requests(4, 16, 1), requests(3, 12, 0)] {
        let pods = workers(3).into_iter().chain([master("master", asked)]);
        let plan = planned(&with(with(nodes(3), [gang(2, 1)]), pods));
        assert_eq!(names(&plan).len(), 3, "{:?}", plan.unplaced);
        assert_eq!(names(&plan)[0], "master");
        assert_eq!(plan.unplaced[0].reason, UnplacedReason::LimitReached);
    }
}

#[test]
fn a_limit_below_the_masters_that_a_gang_needs_says_how_much_they_take() {
    let masters = ["master-0", "master-1"].map(|name| master(name, requests(2, 4, 1)));
    let pods = || workers(2).into_iter().chain(masters.clone());
    let plan = planned(&with(with(nodes(1), [gang(2, 2)]), pods()));
    assert_eq!(plan.claims, []);
    let (reason, message) = why(&plan, "worker-0");
    assert_eq!(reason, UnplacedReason::GangIncomplete);
    let needs = "its PyTorchJob default/train needs 2 pods of its role `master`, but a plan has room for only 1, so Poolwright buys \
                 nothing for any of its pods; pod default/master-";
    assert!(message.starts_with(needs) && message.ends_with("raise spec.limits (2 is enough)"), "{message}");
    let enough = planned(&with(with(nodes(2), [gang(2, 2)]), pods()));
    assert_eq!(names(&enough), ["master-0", "master-1"]);
}

#[test]
fn a_master_that_runs_counts() {
    let pods = workers(3).into_iter().chain([bound(master("master", requests(2, 4, 1)), "n")]);
    let plan = planned(&with(with(nodes(1), [gang(2, 1)]), pods));
    assert_eq!((names(&plan).len(), plan.unplaced.len()), (1, 2), "{:?}", plan.unplaced);
}

#[test]
fn cordoned_nodes_are_offered_only_if_they_hold_the_master_too() {
    let told = |asked: ResourceList| {
        let there = ["n1", "n2"].map(|name| Node { cordoned: true, ..node(name, capacity(4, 16, 1)) });
        let pods = workers(2).into_iter().chain([master("master", asked)]);
        why(&planned(&with(with(with(nodes(0), [gang(2, 1)]), there), pods)), "worker-0").1
    };
    let (small, large) = (told(requests(2, 4, 1)), told(requests(64, 64, 1)));
    assert!(small.ends_with("these nodes have room for 2 pods of its PyTorchJob default/train"), "{small}");
    assert!(!large.contains("uncordon"), "{large}");
}
