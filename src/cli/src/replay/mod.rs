//! `poolwright simulate` without a subcommand: plays a workload through the real controller, and reports the result.

mod chart;
mod methods;
mod policy;
mod pools;
mod print;
mod record;
mod snapshot;
mod svg;
#[cfg(test)]
mod tests;
mod traced;
mod work;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use poolwright_core::plan::Sharing;
use poolwright_core::{DaemonSet, Lives, Namespace, PodGroup};
use poolwright_intake::{daemonset, namespace, pod_group};
use poolwright_report::replay::baselines::{self, Around, Arrival, Baseline, Setting};
use poolwright_report::replay::{History, Machine, Report, bounds_over_time, ignored_by_limit};
use poolwright_sim::accidents::Rates;
use poolwright_sim::cloud::{NODE_CLASS_KIND, SIM_NODE_CLASS};
use poolwright_sim::replay::{Replay, ReplayError, SeededDelays};
use poolwright_terms::{CapacityType, NodeClassRef};
use serde_json::Value;

use crate::args::{ReplayFlags, ReplayFormat, Span};
use crate::catalogue;
use crate::clouds::clouds;
use crate::exit::{ExitStatus, Failure};
use crate::overrides;
use crate::plan::buyable;
use crate::plan::joined::joined;
use crate::plan::limits::Sold;
use crate::price_age;
use crate::print::TableLayout;
use crate::problems::Problems;
use crate::simulate::stop_when_interrupted;
use pools::Pools;

/// Plays the workload and prints the report.
pub fn run(flags: &ReplayFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let prepared = prepare(flags)?;
    // The output files are created first, so that an error shows before the long replay.
    let (record, svg) = (create(flags.record.as_deref())?, create(flags.svg.as_deref())?);
    let stop = stop_when_interrupted()?;
    let mut progress = Progress::new(flags.length);
    let history = prepared.replay.run(&mut |now| {
        progress.tell(now);
        !stop.load(Ordering::Relaxed)
    });
    progress.end();
    let mut history = history.map_err(|error| match error {
        ReplayError::Refused(message) => Failure::bad_input(message),
        other => anyhow::Error::new(other).into(),
    })?;
    for told in &mut history.waiting {
        overrides::in_message(&flags.overrides, &mut told.example);
    }
    let bounds =
        bounds_over_time(&history, &prepared.pools.models, &prepared.daemonsets, &prepared.pools.sold);
    let baselines = prepared.baselines(history.played);
    let (mut notes, mut ignored) = (prepared.notes, prepared.ignored);
    if let Some(note) = interrupted(&history) {
        notes.push(note);
        ignored.push("interruptions of spot nodes".to_owned());
    }
    let mut report = Report::new(&history, bounds, flags.length.0, notes);
    (report.baselines, report.baselines_ignore) = (baselines, ignored);
    print::report(&report, flags.output, TableLayout::list(flags.output == ReplayFormat::Wide), out)
        .map_err(Failure::writing)?;
    if let Some(mut file) = record {
        record::write(&history, &mut file).context("cannot write the record")?;
    }
    if let Some(mut file) = svg {
        svg::write(&report, &mut file).context("cannot write the drawing")?;
    }
    Ok(ExitStatus::Done)
}

/// A prepared replay.
struct Prepared {
    replay: Replay,
    arrivals: Vec<Arrival>,
    daemonsets: Vec<DaemonSet>,
    lives: Lives,
    pools: Pools,
    notes: Vec<String>,
    /// What the simpler methods ignore.
    ignored: Vec<String>,
}

impl Prepared {
    /// Plays the simpler methods.
    fn baselines(&self, played: Duration) -> Vec<Baseline> {
        baselines::play(&Setting {
            arrivals: &self.arrivals,
            pools: &self.pools.models,
            daemonsets: &self.daemonsets,
            sold: &self.pools.sold,
            default_usd_per_hour: self.replay.default_usd_per_hour,
            lives: &self.lives,
            delays: &self.delays(),
            played,
        })
    }

    /// Returns the delays of the world of the simpler methods.
    fn delays(&self) -> SeededDelays {
        SeededDelays { seed: self.replay.seed, agents: self.pools.all_wait_for_agents() }
    }
}

/// Reads all input. Problems of pools and workload are reported together.
fn prepare(flags: &ReplayFlags) -> Result<Prepared, Failure> {
    let is_ignored = [
        ("--gpu-map", flags.gpu_map.is_some()),
        ("--from", !flags.from.0.is_zero()),
        ("--services", !flags.services.is_empty()),
    ];
    if let Some((flag, _)) = is_ignored.iter().find(|(_, given)| *given && flags.trace.is_none()) {
        return Err(Failure::bad_input(format!(
            "{flag}: only used with --trace; add --trace, or remove {flag}"
        )));
    }
    let prices = Arc::new(catalogue::load(&flags.prices)?);
    flags.overrides.check().map_err(Failure::bad_input)?;
    let pools = pools::read(&flags.pools, &flags.policy, &flags.overrides, &prices)?;
    let work = match &flags.trace {
        Some(file) => traced::read(file, flags)?,
        None => snapshot::read(&flags.snapshot)?,
    };
    let (mut pools, work) = match (pools, work) {
        (Ok(pools), Ok(work)) => (pools, work),
        (pools, work) => {
            let mut problems = Problems::new();
            pools.err().into_iter().chain(work.err()).for_each(|found| problems.extend(found));
            return Err(Failure::bad_input(format!("the replay cannot be played: {problems}")));
        }
    };
    // The other methods have as many nodes of static pools as the controller buys under its default limit.
    let default_usd_per_hour = flags.pool_rules.default_limit.usd_per_hour();
    for pool in pools.models.iter_mut().filter(|pool| pool.replicas.is_some()) {
        pool.limits = pool.limits.or_default(default_usd_per_hour);
    }
    let daemonsets = daemonsets(&work.objects);
    let stands_in = pools.sold.keys().any(|class| class.kind == NODE_CLASS_KIND).then_some(SIM_NODE_CLASS);
    let replay = Replay {
        seed: flags.seed,
        rates: Rates::USUAL.percent(flags.faults),
        catalogue: prices,
        classes: clouds().iter().map(|cloud| cloud.node_class).chain(stands_in).collect(),
        sold: pools.sold.clone(),
        objects: pools.objects.iter().chain(&work.objects).cloned().collect(),
        jobs: work.jobs,
        min_values: flags.pool_rules.min_values_policy.into(),
        default_usd_per_hour,
        length: flags.length.0,
    };
    let mut arrivals = replay.arrivals();
    let ignored = baselines::ignored(&arrivals, &pools.models);
    let intolerable = pools::intolerable(&pools.models, arrivals.iter().map(|arrival| &arrival.pod));
    let not_sold = pools.not_sold(&replay.catalogue, arrivals.iter().map(|arrival| &arrival.pod));
    let remedy = "--prices takes newer ones (docs/catalogue.md)";
    let sold = |class: &NodeClassRef| pools.sold.get(class).map(|catalogue| &**catalogue);
    let offerings = buyable::offerings(pools.models.iter(), sold);
    let old = price_age::note(price_age::oldest(offerings), price_age::today(), price_age::BUYABLE, remedy);
    // The replay gives pods whole GPUs.
    let limits = Sold::of(&replay.catalogue, pools.sold.values(), Sharing::Whole).notes(&pools.models);
    let notes = pools.notes.iter().chain(&work.notes).cloned();
    let notes = notes.chain(limits).chain(ignored_by_limit(&pools.models));
    let notes = notes.chain(intolerable).chain(not_sold).chain(old);
    let mut notes = joined(notes.collect());
    notes.extend(baselines::keep_startable(
        &mut arrivals,
        &Around {
            groups: &pod_groups(&work.objects),
            namespaces: &namespaces(&work.objects),
            pools: &pools.models,
            daemonsets: &daemonsets,
            sold: &pools.sold,
            default_usd_per_hour,
        },
    ));
    Ok(Prepared { replay, arrivals, daemonsets, lives: work.lives, pools, notes, ignored })
}

/// Says how many spot nodes the cloud took back; `None` if no spot node was bought.
fn interrupted(history: &History) -> Option<String> {
    let is_spot = |machine: &&Machine| machine.offering.capacity_type == CapacityType::Spot;
    let nodes = history.machines.iter().filter(is_spot).count();
    let taken = history.machines.iter().filter(is_spot).filter(|machine| machine.interrupted).count();
    (nodes > 0).then(|| {
        let again = if taken > 0 { "; the lower limit counts the work that was done again" } else { "" };
        format!(
            "the cloud took back {taken} of {nodes} spot nodes, by chance at their interruption rates{again}"
        )
    })
}

/// Returns the DaemonSets of a workload. The simulated API server has checked them.
fn daemonsets(objects: &[Value]) -> Vec<DaemonSet> {
    let all = objects.iter().filter(|object| object["kind"] == "DaemonSet");
    all.filter_map(|object| daemonset(&serde_json::from_value(object.clone()).ok()?).ok()).collect()
}

/// Returns the gangs of a workload. The simulated API server has checked their PodGroups.
fn pod_groups(objects: &[Value]) -> Vec<PodGroup> {
    let all = objects.iter().filter(|object| object["kind"] == "PodGroup");
    all.filter_map(|object| pod_group(&serde_json::from_value(object.clone()).ok()?).ok()).collect()
}

/// Returns the namespaces of a workload.
fn namespaces(objects: &[Value]) -> Vec<Namespace> {
    let all = objects.iter().filter(|object| object["kind"] == "Namespace");
    all.filter_map(|object| Some(namespace(&serde_json::from_value(object.clone()).ok()?))).collect()
}

fn create(path: Option<&Path>) -> anyhow::Result<Option<std::io::BufWriter<File>>> {
    let file =
        path.map(|path| File::create(path).with_context(|| format!("cannot write {}", path.display())));
    Ok(file.transpose()?.map(std::io::BufWriter::new))
}

/// A progress line on standard error, if that is a terminal.
struct Progress {
    shown: bool,
    length: Span,
    hours: u64,
}

impl Progress {
    fn new(length: Span) -> Self {
        Self { shown: std::io::stderr().is_terminal(), length, hours: 0 }
    }

    fn tell(&mut self, now: Duration) {
        let hours = now.as_secs() / 3600;
        if self.shown && hours > self.hours {
            self.hours = hours;
            eprint!("\r\x1b[K{} of {} played", Span(Duration::from_hours(hours)), self.length);
        }
    }

    fn end(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
