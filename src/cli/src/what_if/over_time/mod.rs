//! `poolwright what-if --trace`: compares two replays of a trace by the real controller in simulated time.

mod answer;
mod changes;
mod curves;
mod page;
mod print;
mod rows;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::Path;

use poolwright_catalog::UsdPerHour;
use poolwright_intake::manifest;

use super::objects::{Files, is_of_pools};
use super::{check_change, status};
use crate::args::{NOTHING, SearchFlags, WhatIfFlags};
use crate::exit::{ExitStatus, Failure, unless_gone};
use crate::replay::{self, Played};
use crate::simulate::stop_when_interrupted;
use crate::source::{self, Source};

use answer::Answer;

/// The loss of an interruption that the controller counts with by default.
const USUAL_AT_RISK: UsdPerHour = UsdPerHour::from_micros(1_000_000);

/// Compares the two replays and prints the answer.
pub fn run(flags: &WhatIfFlags, trace: &Path, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let mut answer = answered(flags, trace)?;
    answer.judge(&flags.fail_above);
    let mut text = Vec::new();
    print::print(&answer, flags.output, &mut text).map_err(Failure::writing)?;
    unless_gone(out.write_all(&text).and_then(|()| out.flush()))?;
    Ok(status(!answer.exceeded.is_empty(), answer.differs))
}

fn answered(flags: &WhatIfFlags, trace: &Path) -> Result<Answer, Failure> {
    check_change(flags)?;
    check_replayable(flags)?;
    if [Some(trace), flags.gpu_map.as_deref()].into_iter().flatten().any(|path| path.as_os_str() == "-") {
        return Err(Failure::bad_input(
            "--trace and --gpu-map are read for both replays; name files instead of -",
        ));
    }
    if flags.base.iter().any(|path| path.as_os_str() == NOTHING) {
        return Err(Failure::bad_input(format!(
            "--base {NOTHING}: a replay buys nothing without a NodePool; name a file with one"
        )));
    }
    let sources = source::manifests(&flags.base)?;
    check_pools(&sources)?;
    let stop = stop_when_interrupted()?;
    let play = flags.replay(trace.to_owned());
    let mut told = Vec::new();
    let mut files = Files::of(sources.clone(), None)?;
    if !flags.pool.is_empty() {
        told.extend(files.add("--pool", source::manifests(&flags.pool)?, Some(is_of_pools))?);
    }
    // A change that matches nothing shows before the replays.
    let changed = |world: &mut replay::World| changes::apply(flags, world, &mut told);
    let after = replay::prepared_with(&play, &files.sources(), changed)?;
    let before = replay::prepared_with(&play, &sources, |_| Ok(()))?;
    let [before, after] = replay::played_both([before, after], &play, &stop)?;
    let (before, after) = (whole(before)?, whole(after)?);
    let mut answer = Answer::of(&before, &after);
    answer.changes = told;
    answer.notes = notes(&before, &after);
    Ok(answer)
}

/// Refuses a replay that was stopped, because its figures are those of another time.
fn whole(played: Played) -> Result<Played, Failure> {
    match played.interrupted() {
        None => Ok(played),
        Some(why) => Err(Failure::Other(anyhow::anyhow!("{why}; there is nothing to compare"))),
    }
}

/// Returns the notes of both replays. Those of one of them say of which.
fn notes(before: &Played, after: &Played) -> Vec<String> {
    let gaps = before.empty_hours();
    let (first, second) = (before.notes(), after.notes());
    let only = |of: &[String], other: &[String], whose: &str| -> Vec<String> {
        of.iter().filter(|note| !other.contains(note)).map(|note| format!("{whose}: {note}")).collect()
    };
    let both = first.iter().filter(|note| second.contains(note)).cloned();
    let mut all: Vec<String> = gaps.into_iter().chain(both).collect();
    all.extend(only(&first, &second, "before"));
    all.extend(only(&second, &first, "after"));
    all
}

/// Refuses what cannot be replayed.
fn check_replayable(flags: &WhatIfFlags) -> Result<(), Failure> {
    const WORK: &str = "the work is that of the trace; use --load or --gpu";
    let SearchFlags { time_limit, work_limit, gap, threads } = &flags.search;
    let searches = time_limit.is_some() || work_limit.is_some() || gap.is_some() || threads.is_some();
    let refused = [
        ("-f", !flags.filename.is_empty(), WORK),
        ("--remove", !flags.remove.is_empty(), WORK),
        ("--replicas", !flags.replicas.is_empty(), WORK),
        ("-n", flags.namespace.is_some(), "the pods of a trace have no namespaces"),
        ("--outage", !flags.outage.is_empty(), "the simulated cloud has no outages of zones"),
        (
            "--commitments",
            flags.commitments.is_some(),
            "the replayed controller has none; `poolwright what-if commitment --trace` finds which ones pay",
        ),
        ("--sharing", flags.sharing.is_some(), "the controller gives each pod whole GPUs"),
        ("--provider", flags.provider.is_some(), "the node classes of the pools name it"),
        (
            "--at-risk",
            flags.prices.at_risk != USUAL_AT_RISK,
            "the replayed controller counts with the usual loss",
        ),
        ("--time-limit, --gap or --threads", searches, "the replayed controller searches as it always does"),
    ];
    match refused.iter().find(|(_, given, _)| *given) {
        None => Ok(()),
        Some((flag, _, why)) => {
            Err(Failure::bad_input(format!("{flag}: cannot be replayed with --trace, because {why}")))
        }
    }
}

/// Checks that the base has something to buy from.
fn check_pools(sources: &[Source]) -> Result<(), Failure> {
    // What cannot be read is told with its cause when the pools are read.
    let has_pool = |source: &Source| match manifest::objects(&source.name, &source.text) {
        Ok(objects) => objects.iter().any(|object| object["kind"] == "NodePool"),
        Err(_) => true,
    };
    if sources.iter().any(has_pool) {
        return Ok(());
    }
    Err(Failure::bad_input(
        "--base: has no NodePool, and a replay buys nothing without it; name a file with one",
    ))
}
