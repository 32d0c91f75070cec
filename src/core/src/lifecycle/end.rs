//! From a deleted claim to an instance that is gone. Work is never killed.

use super::{REPEAT, Scene, after, empty, is, is_not, some_pods};
use crate::action::{Action, ConditionType};
use crate::model::Claim;

pub(super) fn decide(scene: &mut Scene<'_>, claim: &Claim) {
    let node = scene.node(claim);
    if let Some(node) = node.filter(|node| !empty::is_closed(node)) {
        empty::close(scene, node);
    }
    let work = scene.work(claim);
    // On an instance that is gone nothing runs, whatever is still bound to its node.
    if !work.is_empty() && !scene.instance_is_gone(claim) {
        let name = claim.node_name.as_deref().or(node.map(|node| node.name.as_str())).unwrap_or_default();
        let message = format!(
            "node {name} still runs {}; the instance is given back when they have ended: wait, or delete them",
            some_pods(&work)
        );
        return scene
            .conditions(claim, [is_not(ConditionType::InstanceTerminating, "WaitingForPods", message)]);
    }
    let message = "no work is on it: its instance is being given back";
    scene.conditions(claim, [is(ConditionType::InstanceTerminating, "Terminating", message)]);
    scene.act(Action::Terminate { claim: claim.name.clone() });
    scene.wake(after(scene.now, REPEAT));
}
