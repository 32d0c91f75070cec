//! A pod with which plans fail is set aside. Other rules check that the other pods get nodes, and that it has an event.

use std::time::Duration;

use super::{Memory, Scene};

pub(super) const RULE: &str = "plans fail for a pod only until it is set aside: at most 30 times within ten minutes for each start of a controller";

/// The search for the pod tries a plan for about half of the waiting pods, a quarter, and so on. The pods of one Job may arrive one by
/// one, and a new controller searches again.
const MOST: usize = 30;
const WITHIN: Duration = Duration::from_mins(10);

pub(super) fn check(scene: &Scene<'_>, _: &mut Memory) -> Option<String> {
    let is_recent = |at: &&Duration| scene.now.saturating_sub(**at) <= WITHIN;
    let failed = scene.failed_plans.iter().filter(is_recent).count();
    let starts = scene.started.len();
    (failed > MOST * starts).then(|| format!("{failed} plans failed, and controllers started {starts} times"))
}
