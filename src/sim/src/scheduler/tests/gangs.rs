//! Tests of gangs.

use std::sync::Arc;

use poolwright_catalog::ResourceName;

use super::super::kit::{cluster, node, pod};
use super::super::{Outcome, Preemption, Scheduler};

/// Tries a gang of three pods, each of which fills a node, on two nodes.
fn tried(least: usize) -> Vec<Outcome> {
    let member = |name: &str| pod(name).spec(|spec| spec.requests.set(ResourceName::CPU, 3_000));
    let pods = ["a", "b", "c"].map(|name| Arc::new(member(name).build()));
    let cluster = cluster([node("n1", "a"), node("n2", "a")], []);
    let outcomes = Scheduler::default().schedule_gang(&cluster, &pods, least, &mut |_| 0);
    outcomes.expect("nothing in it is unknown to the scheduler")
}

fn refused(message: &str) -> Outcome {
    Outcome::Unschedulable { message: message.to_owned(), preemption: Preemption::InVain }
}

#[test]
fn a_gang_without_room_for_enough_pods_is_not_placed_at_all() {
    let waits = || refused("waiting for minCount pods from a gang to be scheduled");
    let [first, second, third]: [Outcome; 3] = tried(3).try_into().expect("one outcome for each pod");
    assert_eq!((first, second), (waits(), waits()));
    let Outcome::Unschedulable { message, .. } = third else { panic!("there are two nodes for three pods") };
    assert!(message.starts_with("0/2 nodes are available: 2 Insufficient cpu."), "{message}");
}

#[test]
fn a_gang_with_room_for_enough_pods_is_placed_and_the_rest_waits() {
    let [first, second, third]: [Outcome; 3] = tried(2).try_into().expect("one outcome for each pod");
    let on = |node: &str| Outcome::Bind { node: node.to_owned() };
    assert_eq!((first, second), (on("n1"), on("n2")));
    assert!(matches!(third, Outcome::Unschedulable { preemption: Preemption::InVain, .. }), "{third:?}");
}
