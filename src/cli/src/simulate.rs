//! `poolwright simulate` and `poolwright debug fuzz`: run the real controller in a simulated world with its own time.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_sim::accidents::{Accident, Rates};
use poolwright_sim::run::{Outcome as WorldEnd, Setup};
use poolwright_sim::search::{Counterexample, Report, Search};
use serde_json::json;

use crate::args::{FuzzFlags, FuzzFormat, LogFormat, SimulateFlags, Simulation};
use crate::exit::{ExitStatus, Failure};
use crate::print::Progress;
use crate::replay;

/// The number of lines that are shown from the end of a record.
const LINES: usize = 25;

/// Runs the command.
pub fn run(flags: &SimulateFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    match &flags.command {
        Some(Simulation::Fuzz(flags)) => fuzz(flags, out),
        None => replay::run(&flags.replay, out),
    }
}

/// Searches for a world in which the controller breaks a rule.
pub fn fuzz(flags: &FuzzFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let search = search(flags)?;
    if let Some(filter) = &flags.log_level {
        crate::controller::log(filter, LogFormat::Text)?;
    }
    // The file is created first, so that an error shows before hours of simulation.
    let record = flags
        .record
        .as_ref()
        .map(|file| fs::File::create(file).with_context(|| format!("cannot write {}", file.display())));
    let record = record.transpose()?;
    let clock = SystemClock::new();
    let stop = stop_when_interrupted()?;
    let progress = Progress::begin("playing worlds");
    let report = search.run(&stop, &|report| tell(&progress, flags.seeds, report));
    drop(progress);
    let report = report.context("the worlds cannot be played")?;
    let took = clock.monotonic();
    match flags.output {
        FuzzFormat::Text => text(flags, &report, took, out),
        FuzzFormat::Json => writeln!(out, "{}", document(&report)),
    }
    .map_err(Failure::writing)?;
    if let Some(mut file) = record {
        let lines = recorded(&search, &report)?.record.lines.join("\n");
        writeln!(file, "{lines}").context("cannot write the record")?;
    }
    Ok(if report.found.is_some() { ExitStatus::RuleBroken } else { ExitStatus::Done })
}

fn search(flags: &FuzzFlags) -> Result<Search, Failure> {
    let accidents: Result<BTreeSet<Accident>, String> =
        flags.only.iter().map(|text| text.trim().parse()).collect();
    let accidents = accidents.map_err(|error| Failure::bad_input(format!("--only: {error}")))?;
    let rates = Rates::USUAL.percent(flags.faults);
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Ok(Search {
        from: flags.from,
        seeds: flags.seeds,
        rates,
        only: (!accidents.is_empty()).then_some(accidents),
        threads: flags.threads.unwrap_or(cores),
        sabotage: None,
    })
}

/// Returns a flag that Ctrl-C sets. Worlds that have begun are finished, and the results so far are reported.
pub fn stop_when_interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .context("cannot listen to signals")?;
    let told = stop.clone();
    std::thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            told.store(true, Ordering::Relaxed);
        }
    });
    Ok(stop)
}

/// Returns the world to record: the broken one, or else the last one, run again.
fn recorded(search: &Search, report: &Report) -> Result<WorldEnd, Failure> {
    if let Some(found) = &report.found {
        return Ok(found.outcome.clone());
    }
    let seed = search.from.wrapping_add(report.seeds.saturating_sub(1));
    let setup =
        Setup { seed, rates: search.rates, only: search.only.clone(), keep_record: true, sabotage: None };
    Ok(poolwright_sim::run::run(&setup).context("the world cannot be played")?)
}

/// Says how far the search is. A broken rule has a line that stays.
fn tell(progress: &Progress, seeds: u64, report: &Report) {
    match &report.broken {
        Some((seed, violation)) if report.tried == 0 => {
            progress.line(&format!("seed {seed}: broken: {violation}"));
        }
        Some(_) => {
            progress.say(format!("removing faults that are not needed: {} worlds played", report.tried));
        }
        None => progress.say(format!("{} of {seeds} worlds, {} faults", report.seeds, report.accidents)),
    }
}

fn text(flags: &FuzzFlags, report: &Report, took: Duration, out: &mut impl Write) -> std::io::Result<()> {
    if let Some(found) = &report.found {
        counterexample(flags, found, out)?;
    }
    let hours = report.simulated.as_secs() / 3600;
    let seconds = took.as_millis().max(1);
    let per_second = |count: u64| u128::from(count) * 10_000 / seconds;
    let (seeds, simulated) = (per_second(report.seeds), per_second(hours));
    writeln!(
        out,
        "{}, {}, {}: {} ({}.{} worlds and {}.{} simulated hours per second)",
        counted(report.seeds, "world"),
        counted(hours, "simulated hour"),
        counted(report.accidents, "fault"),
        if report.found.is_some() { "a rule was broken" } else { "no rule was broken" },
        seeds / 10,
        seeds % 10,
        simulated / 10,
        simulated % 10,
    )
}

/// Formats a count: `1 world`, `2 worlds`.
fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn counterexample(flags: &FuzzFlags, found: &Counterexample, out: &mut impl Write) -> std::io::Result<()> {
    let WorldEnd { seed, violation, record, accidents, .. } = &found.outcome;
    let last = record.lines.iter().rev().take(LINES).rev();
    for line in last {
        writeln!(out, "  {line}")?;
    }
    let sentence = violation.as_ref().map_or_else(
        || {
            "the rule holds when the world is played again; this is a bug of the simulator, please report it"
                .to_owned()
        },
        ToString::to_string,
    );
    writeln!(out, "\nseed {seed}: broken: {sentence}")?;
    let list: Vec<String> = accidents.iter().map(ToString::to_string).collect();
    writeln!(
        out,
        "faults needed: {} of {} (found by playing {})",
        list.len(),
        found.accidents_before,
        counted(found.runs.into(), "world")
    )?;
    let faults = if flags.faults == 100 { String::new() } else { format!(" --faults {}", flags.faults) };
    let only = if list.is_empty() { String::new() } else { format!(" --only {}", list.join(",")) };
    writeln!(out, "again: poolwright debug fuzz --from {seed} --seeds 1{faults}{only} --record {seed}.log\n")
}

fn document(report: &Report) -> serde_json::Value {
    let found = report.found.as_ref().map(|found| {
        let outcome = &found.outcome;
        let accidents: Vec<String> = outcome.accidents.iter().map(ToString::to_string).collect();
        json!({
            "seed": outcome.seed,
            "rule": outcome.violation.as_ref().map(|violation| violation.rule),
            "seen": outcome.violation.as_ref().map(|violation| &violation.seen),
            "atSeconds": outcome.violation.as_ref().map(|violation| violation.at.as_secs()),
            "faults": accidents,
            "faultsBefore": found.accidents_before,
            "record": outcome.record.lines,
        })
    });
    json!({
        "worlds": report.seeds,
        "faults": report.accidents,
        "simulatedSeconds": report.simulated.as_secs(),
        "broken": found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_kind_is_singular() {
        assert_eq!(counted(1, "world"), "1 world");
        assert_eq!(
            (counted(0, "fault"), counted(2, "fault")),
            ("0 faults".to_owned(), "2 faults".to_owned())
        );
    }
}
