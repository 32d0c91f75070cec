//! `poolwright simulate` without a subcommand: plays a workload through the real controller, and reports the result.

pub mod chart;
mod methods;
mod page;
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
use std::io::Write;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use poolwright_catalog::Catalogue;
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
use crate::print::{Progress, TableLayout};
use crate::problems::Problems;
use crate::simulate::stop_when_interrupted;
use crate::source::Source;
pub use pools::Pools;
pub use print::{hours, span};
pub use work::Work;

/// Plays the workload and prints the report.
pub fn run(flags: &ReplayFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let prepared = prepare(flags)?;
    // The output files are created first, so that an error shows before the long replay.
    let (record, svg) = (create(flags.record.as_deref())?, create(flags.svg.as_deref())?);
    let stop = stop_when_interrupted()?;
    let played = prepared.play(flags, &stop)?;
    let mut report = played.report();
    report.baselines = Progress::during("playing other methods for the same pods", || {
        played.prepared.baselines(played.history.played)
    });
    report.baselines_ignore.clone_from(&played.prepared.ignored);
    if taken_back(&played.history).is_some() {
        report.baselines_ignore.push("interruptions of spot nodes".to_owned());
    }
    print::report(&report, flags.output, TableLayout::list(flags.output == ReplayFormat::Wide), out)
        .map_err(Failure::writing)?;
    if let Some(mut file) = record {
        record::write(&played.history, &mut file).context("cannot write the record")?;
    }
    if let Some(mut file) = svg {
        svg::write(&report, &mut file).context("cannot write the drawing")?;
    }
    Ok(ExitStatus::Done)
}

/// Plays the workload for another command, which prints an answer of its own. Only what the controller does is computed: no lower limit,
/// and nothing of other methods.
pub fn played(flags: &ReplayFlags, stop: &AtomicBool) -> Result<Played, Failure> {
    prepare_with(flags, None, |_| Ok(()))?.play(flags, stop)
}

/// Prepares a replay with these pools instead of those of the flags, after a change.
pub fn prepared_with(
    flags: &ReplayFlags,
    pools: &[Source],
    change: impl FnOnce(&mut World) -> Result<(), Failure>,
) -> Result<Prepared, Failure> {
    prepare_with(flags, Some(pools), change)
}

/// Plays two replays side by side. Each has a thread and a time of its own, so neither changes what the other comes to.
pub fn played_both(
    [one, other]: [Prepared; 2],
    flags: &ReplayFlags,
    stop: &AtomicBool,
) -> Result<[Played; 2], Failure> {
    let progress = Progress::begin("beginning to play");
    let hours = [AtomicU64::new(0), AtomicU64::new(0)];
    let has_failed = AtomicBool::new(false);
    let play = |prepared: Prepared, at: usize| {
        let played = prepared.run(flags, &mut |now| {
            let hour = now.as_secs() / 3600;
            if hours[at].swap(hour, Ordering::Relaxed) < hour {
                let both = hours.iter().map(|hour| hour.load(Ordering::Relaxed)).min().unwrap_or(0);
                progress.say(format!(
                    "played {} of {} twice",
                    Span(Duration::from_hours(both)),
                    flags.length
                ));
            }
            // Without both, there is nothing to compare.
            !stop.load(Ordering::Relaxed) && !has_failed.load(Ordering::Relaxed)
        });
        has_failed.fetch_or(played.is_err(), Ordering::Relaxed);
        played
    };
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(|| play(other, 1));
        (play(one, 0), other.join())
    });
    Ok([one?, other.unwrap_or_else(|panic| resume_unwind(panic))?])
}

/// What a replay is made of, as it was read.
pub struct World {
    /// The pools, and what their node classes sell.
    pub pools: Pools,
    /// All that the cloud sells.
    pub prices: Catalogue,
    /// The workload.
    pub work: Work,
}

/// A replay that was played.
pub struct Played {
    prepared: Prepared,
    /// What happened.
    pub history: History,
    requested: Duration,
}

impl Played {
    /// Returns the notes on how the input was understood.
    pub fn notes_of_input(&self) -> &[String] {
        &self.prepared.notes
    }

    /// Returns the notes of the report: also on what the lower limit leaves out, and on what the cloud did by chance.
    pub fn notes(&self) -> Vec<String> {
        let limit = ignored_by_limit(&self.prepared.pools.models);
        self.prepared.notes.iter().cloned().chain(limit).chain(taken_back(&self.history)).collect()
    }

    /// Says that it was stopped before its end.
    pub fn interrupted(&self) -> Option<String> {
        let played = self.history.played;
        (played < self.requested)
            .then(|| format!("interrupted: played {} of {}", Span(played), Span(self.requested)))
    }

    /// Names the hours in which no pod of the workload exists, if there are any.
    pub fn empty_hours(&self) -> Option<String> {
        let hour = Duration::from_hours(1);
        let mut is_used = vec![false; usize::try_from(self.requested.as_secs() / 3600).unwrap_or(0)];
        for job in &self.prepared.replay.jobs {
            let until = job.length.map_or(self.requested, |length| job.arrives.saturating_add(length));
            let at = |moment: Duration| usize::try_from(moment.as_secs() / 3600).unwrap_or(usize::MAX);
            // A pod that ends with an hour is not in the next one.
            let until = until.min(self.requested).saturating_sub(Duration::from_millis(1)).max(job.arrives);
            let (first, last) = (at(job.arrives), at(until));
            is_used.iter_mut().take(last.saturating_add(1)).skip(first).for_each(|used| *used = true);
        }
        let empty = is_used.iter().filter(|used| !**used).count();
        let first = is_used.iter().position(|used| !used)?;
        let begin = Span(hour * u32::try_from(first).unwrap_or(u32::MAX));
        Some(format!(
            "the trace has gaps: in {empty} of {} hours no pod exists, the first after {begin}",
            is_used.len()
        ))
    }

    /// Computes the figures, without those of other methods.
    pub fn report(&self) -> Report {
        let pools = &self.prepared.pools;
        let bounds = Progress::during("looking for the cost that no plan can go below", || {
            bounds_over_time(&self.history, &pools.models, &self.prepared.daemonsets, &pools.sold)
        });
        Report::new(&self.history, bounds, self.requested, self.notes())
    }
}

/// A prepared replay.
pub struct Prepared {
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
    /// Plays it until its end, or until `stop` is set.
    fn play(self, flags: &ReplayFlags, stop: &AtomicBool) -> Result<Played, Failure> {
        let progress = Progress::begin("beginning to play");
        let mut hours = 0;
        self.run(flags, &mut |now| {
            let played = now.as_secs() / 3600;
            if played > hours {
                hours = played;
                progress.say(format!("played {} of {}", Span(Duration::from_hours(hours)), flags.length));
            }
            !stop.load(Ordering::Relaxed)
        })
    }

    /// Plays it until its end, or until `tell`, which is told the played time, returns `false`.
    fn run(self, flags: &ReplayFlags, tell: &mut dyn FnMut(Duration) -> bool) -> Result<Played, Failure> {
        let history = self.replay.run(tell);
        let mut history = history.map_err(|error| match error {
            ReplayError::Refused(message) => Failure::bad_input(message),
            other => anyhow::Error::new(other).into(),
        })?;
        for told in &mut history.waiting {
            overrides::in_message(&flags.overrides, &mut told.example);
        }
        Ok(Played { prepared: self, history, requested: flags.length.0 })
    }

    /// Leaves out the pods that no plan starts, for the simpler methods.
    fn for_other_methods(mut self) -> Self {
        let objects = &self.replay.objects;
        let left_out = baselines::keep_startable(
            &mut self.arrivals,
            &Around {
                groups: &pod_groups(objects),
                namespaces: &namespaces(objects),
                pools: &self.pools.models,
                daemonsets: &self.daemonsets,
                sold: &self.pools.sold,
                default_usd_per_hour: self.replay.default_usd_per_hour,
            },
        );
        self.notes.extend(left_out);
        self
    }

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
    Ok(prepare_with(flags, None, |_| Ok(()))?.for_other_methods())
}

/// Reads all input like [`prepare`], or all but the pools, and changes it.
fn prepare_with(
    flags: &ReplayFlags,
    given: Option<&[Source]>,
    change: impl FnOnce(&mut World) -> Result<(), Failure>,
) -> Result<Prepared, Failure> {
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
    let prices = catalogue::load(&flags.prices)?;
    flags.overrides.check().map_err(Failure::bad_input)?;
    let pools = match given {
        Some(sources) => pools::of(sources, &flags.policy, &flags.overrides, &prices),
        None => pools::read(&flags.pools, &flags.policy, &flags.overrides, &prices)?,
    };
    let work = match &flags.trace {
        Some(file) => traced::read(file, flags)?,
        None => snapshot::read(&flags.snapshot)?,
    };
    let mut world = match (pools, work) {
        (Ok(pools), Ok(work)) => World { pools, prices, work },
        (pools, work) => {
            let mut problems = Problems::new();
            pools.err().into_iter().chain(work.err()).for_each(|found| problems.extend(found));
            return Err(Failure::bad_input(format!("the replay cannot be played: {problems}")));
        }
    };
    change(&mut world)?;
    let World { mut pools, prices, work } = world;
    let prices = Arc::new(prices);
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
    let arrivals = replay.arrivals();
    let ignored = baselines::ignored(&arrivals, &pools.models);
    let intolerable = pools::intolerable(&pools.models, arrivals.iter().map(|arrival| &arrival.pod));
    let not_sold = pools.not_sold(&replay.catalogue, arrivals.iter().map(|arrival| &arrival.pod));
    let sold = |class: &NodeClassRef| pools.sold.get(class).map(|catalogue| &**catalogue);
    let offerings = buyable::offerings(pools.models.iter(), sold);
    let old = price_age::note(
        price_age::oldest(offerings),
        price_age::today(),
        price_age::BUYABLE,
        price_age::CATALOGUE,
    );
    // The replay gives pods whole GPUs.
    let limits = Sold::of(&replay.catalogue, pools.sold.values(), Sharing::Whole).notes(&pools.models);
    let notes = pools.notes.iter().chain(&work.notes).cloned();
    let notes = notes.chain(limits).chain(intolerable).chain(not_sold).chain(old);
    let notes = joined(notes.collect());
    Ok(Prepared { replay, arrivals, daemonsets, lives: work.lives, pools, notes, ignored })
}

/// Says how many spot nodes the cloud took back; `None` if no spot node was bought.
fn taken_back(history: &History) -> Option<String> {
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
