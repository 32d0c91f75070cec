//! After the last fault all work completes, and then no instance or claim is left.

use std::time::Duration;

use super::{Memory, Scene};

pub(super) const RULE: &str = "after the last fault, all work completes and then nothing is left";

/// Three times the sum of these: ten minutes for offerings held back, some for nodes, ten for work.
const DONE_WITHIN: Duration = Duration::from_mins(90);

pub(super) fn check(scene: &Scene<'_>, _: &mut Memory) -> Option<String> {
    let since = scene.quiet_since?;
    if scene.now.saturating_sub(since) < DONE_WITHIN {
        return None;
    }
    let claims: Vec<&str> = scene.cluster.claims.keys().map(String::as_str).collect();
    let waiting: Vec<String> = scene.cluster.view().pods.unbound().map(|pod| pod.key.to_string()).collect();
    let machines: Vec<&str> =
        scene.machines.iter().map(|(_, one)| one.instance.provider_id.as_str()).collect();
    Some(format!(
        "after {} minutes of peace pods wait: [{}], claims are there: [{}], instances run: [{}]",
        DONE_WITHIN.as_secs() / 60,
        waiting.join(", "),
        claims.join(", "),
        machines.join(", ")
    ))
}
