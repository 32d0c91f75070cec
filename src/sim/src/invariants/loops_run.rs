//! A controller does not go on without one of its loops.

use std::time::Duration;

use axum::http::Method;
use serde_json::Value;

use super::{Memory, Scene};
use crate::run::lease_path;
use crate::wire::Process;

pub(super) const RULE: &str = "15 minutes after a panic in a controller, all its loops that call the cloud run, or its process was started again";

/// Each loop calls the cloud every five minutes or more often. A call has a minute, and a process may be paused or cut off.
const WITHIN: Duration = Duration::from_mins(15);
/// The calls of loops that run in each controller, and in the leader only.
const EACH: [&str; 2] = ["list", "catalogue"];
const LEADER: &str = "notices";

/// Who leads, and since when, as far as this rule saw it.
pub(super) type Seen = Option<(String, Duration)>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let before = memory.leader.take();
    if scene.processes.iter().all(|process| process.panicked().is_none()) {
        return None;
    }
    let (_, lease) = scene.cluster.server.ask(&Method::GET, &lease_path(), "", &Value::Null);
    let leader = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    let since = before.filter(|(before, _)| *before == leader).map_or(scene.now, |(_, since)| since);
    let is_long = |at: Duration| scene.now.saturating_sub(at) > WITHIN;
    let silent = |process: &Process| {
        let leads = process.identity == leader && is_long(since);
        // The catalogue of a cloud in doubt is not read.
        let each = EACH.into_iter().filter(|what| *what != "catalogue" || !scene.was_blind_within(WITHIN));
        let mut calls = each.chain(Some(LEADER).filter(|_| leads));
        calls.find(|what| process.called(what).is_none_or(is_long))
    };
    memory.leader = Some((leader.clone(), since));
    let mut late = scene.processes.iter().copied().filter(|process| process.panicked().is_some_and(is_long));
    late.find_map(|process| {
        let what = silent(process)?;
        let Process { identity, incarnation, .. } = process;
        Some(format!(
            "{identity}.{incarnation} last panicked at {:?}, and makes no call {what}",
            process.panicked()
        ))
    })
}
