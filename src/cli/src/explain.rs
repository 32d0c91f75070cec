//! `poolwright explain`: explains in a few lines why one pod, node, claim or pool is as it is.

mod facts;

use std::io::Write;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_controller::clock::SystemClock;
use poolwright_core::disruption::{Kept, MoveHistory, Outlook, outlook};
use poolwright_core::plan::{Plan, PlanOptions};
use poolwright_core::{ClaimName, PoolName, Snapshot, why};
use poolwright_terms::{API_VERSION, one_line};
use serde_json::json;

use crate::args::{ExplainFlags, ExplainFormat, Explainable};
use crate::exit::{ExitStatus, Failure};
use crate::plan::{Input, PlanWithRoom, plan_with_room, prepare, tell_of_flags};
use crate::print::TableLayout;
use crate::solve_timer::SolveTimer;

/// Explains one object.
pub fn run(flags: &ExplainFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let (kind, name) = flags.object().map_err(Failure::bad_input)?;
    let namespace = flags.namespace.as_deref();
    let (input, mut options) = prepare(&flags.input, namespace, &flags.search)?;
    options.baselines = false;
    let clock = SystemClock::new();
    let mut timer = SolveTimer::new(&clock, flags.search.time_limit());
    let now = input.now(&clock);
    let PlanWithRoom { mut plan, explanations } = plan_with_room(&input.snapshot, now, &options, &mut timer);
    if matches!(kind, Explainable::Pod | Explainable::Pool) {
        tell_of_flags(&mut plan, &input, now, &options, &flags.search);
    }
    let snapshot = &input.snapshot;
    let lines = match kind {
        Explainable::Pod => {
            let key = input.pod_key(name, namespace)?;
            why::pod(snapshot, now, &options, &plan, &key).map(|mut lines| {
                if let Some((words, is_all)) = input.preemption(&key) {
                    // The plan counts the pod as running or as ended, which it is not yet.
                    lines.truncate(if is_all { 1 } else { lines.len() });
                    lines.insert(1, words);
                }
                lines.extend(explanations.get(&key).cloned());
                lines.extend(why::life(snapshot, now, &key));
                lines.extend(why::closed_room(snapshot, now, &options, &plan, &key));
                lines
            })
        }
        Explainable::Node => why::node(snapshot, now, &plan, name),
        Explainable::Claim => why::claim(snapshot, now, &plan, &ClaimName(name.to_owned())),
        Explainable::Pool => why::pool(snapshot, &plan, &PoolName(name.to_owned())),
    };
    let Some(mut lines) = lines else {
        return Err(Failure::bad_input(input.no_such(kind, name)));
    };
    // What follows does not happen while nobody leads.
    lines.splice(0..0, input.leadership.clone());
    if kind != Explainable::Pool {
        lines.extend(input.lives_unread.as_ref().map(|unread| format!("{unread}.")));
    }
    // A price in the answer may be old. The answer itself stays last.
    let reason = match kind {
        Explainable::Node | Explainable::Claim => {
            let mut timer = SolveTimer::new(&clock, flags.search.time_limit());
            consolidation(&input, &plan, kind, name, (now, &options, &mut timer))
        }
        Explainable::Pool => {
            input.told_of_pools.get(&PoolName(name.to_owned())).cloned().into_iter().collect()
        }
        Explainable::Pod => {
            let key = input.pod_key(name, namespace)?;
            let claim = plan.claims.iter().find(|claim| claim.planned_pods.contains(&key));
            let told = claim.and_then(|claim| Some((&claim.pool, input.told_of_pools.get(&claim.pool)?)));
            told.into_iter().map(|(pool, told)| format!("Pool {pool}: {told}")).collect()
        }
    };
    if lines.iter().chain(&reason).any(|line| line.contains('$')) {
        lines.extend(input.price_age().map(|old| format!("Note: {old}.")));
    }
    let unknown: Vec<String> = match kind {
        Explainable::Pod => {
            let key = input.pod_key(name, namespace)?;
            let unpriced = why::unpriced(snapshot, &plan, &options, Some(&key));
            let volumes = why::unknown_volume_limits(snapshot, &plan, Some(&key));
            unpriced.map(|unpriced| unpriced.note).into_iter().chain(volumes).collect()
        }
        Explainable::Node | Explainable::Claim | Explainable::Pool => Vec::new(),
    };
    let notes = unknown.into_iter().chain(input.notes_about(kind, name));
    lines.extend(notes.map(|note| format!("Note: {}.", note.trim_end_matches('.'))));
    if let Some(namespace) = namespace.filter(|_| kind != Explainable::Pod) {
        lines.push(format!("-n {namespace} has no effect here: only pods have a namespace."));
    }
    lines.extend(reason);
    if flags.output == ExplainFormat::Json {
        let (kind, name) = match kind {
            Explainable::Pod => ("Pod", input.pod_key(name, namespace)?.to_string()),
            Explainable::Node => ("Node", name.to_owned()),
            Explainable::Claim => ("NodeClaim", name.to_owned()),
            Explainable::Pool => ("NodePool", name.to_owned()),
        };
        let object = json!({"kind": kind, "name": name});
        let document =
            json!({"apiVersion": API_VERSION, "kind": "Explanation", "object": object, "lines": lines});
        writeln!(out, "{document:#}").map_err(Failure::writing)?;
        return Ok(ExitStatus::Done);
    }
    let layout = TableLayout::list(flags.output == ExplainFormat::Wide);
    for line in lines {
        writeln!(out, "{}", layout.fit(&one_line(&line), 0)).map_err(Failure::writing)?;
    }
    if layout.wide {
        let facts = match kind {
            Explainable::Pod => facts::of_pod(snapshot, &input.pod_key(name, namespace)?, now),
            Explainable::Node => facts::of_node(snapshot, name, now),
            Explainable::Claim => facts::of_claim(snapshot, &ClaimName(name.to_owned()), now),
            Explainable::Pool => facts::of_pool(snapshot, &PoolName(name.to_owned())),
        };
        facts::print(&facts, out).map_err(Failure::writing)?;
    }
    Ok(ExitStatus::Done)
}

/// Says why a node is not consolidated, as the search of the controller finds.
fn consolidation(
    input: &Input,
    plan: &Plan,
    kind: Explainable,
    name: &str,
    (now, options, timer): (Timestamp, &PlanOptions, &mut SolveTimer<'_>),
) -> Vec<String> {
    let mut snapshot: Snapshot = input.snapshot.clone();
    let gangs = input.gangs.iter();
    snapshot.gangs.extend(gangs.map(|gang| ((gang.kind.clone(), gang.key.clone()), Arc::new(gang.clone()))));
    let claim = if kind == Explainable::Claim {
        Some(ClaimName(name.to_owned()))
    } else {
        let node = snapshot.nodes.get(name);
        node.and_then(|node| snapshot.claims.of_node(node)).map(|claim| claim.name.clone())
    };
    // The moves that the controller remembers are not known here.
    let history = MoveHistory::default();
    let found = claim.and_then(|claim| outlook(&snapshot, plan, &history, now, options, &claim, timer));
    let Some(found) = found else { return vec![why::NOT_OURS.to_owned()] };
    let mut lines = why::consolidation(&found);
    if matches!(&found, Outlook::Stays { why: Kept::UnknownMaker(_), .. }) {
        lines.extend(input.makers_unread.as_ref().map(|unread| format!("{unread}.")));
    }
    lines
}
