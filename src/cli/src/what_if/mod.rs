//! `poolwright what-if`: plans for a base, and for the base with changes, and tells the difference.
//!
//! Objects change before they are read, as if the user had changed the files. What may be bought, the load and outages change in the
//! snapshot. Both plans are made by the code that the controller runs.

mod answer;
mod assumptions;
mod base;
mod commitment;
mod csv_lines;
mod delta;
mod difference;
mod gpu;
mod load;
mod markdown;
pub mod market;
mod node_prices;
mod objects;
mod outage;
mod outcome;
mod over_time;
mod owned;
mod page;
pub mod pattern;
mod rows;
mod runner_up;
mod table;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::thread;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, Offering};
use poolwright_core::plan::PlanOptions;
use poolwright_core::{PodKey, Snapshot};
use poolwright_report::plan::Document;
use poolwright_terms::NodeClassRef;

use crate::args::{Factor, InputFlags, Question, SearchFlags, SharingMode, WhatIfFlags, WhatIfFormat};
use crate::exit::{ExitStatus, Failure, unless_gone};
use crate::plan::{Given, Input, Planned, buyable, prepare_given};
use crate::price_age;
use crate::print::{Progress, TableLayout, counted};

use answer::{Answer, RunnerUp, State};
use base::Base;
use markdown::MARK;
pub use markdown::{add_lists, cell};
use outcome::Outcome;

/// Compares the two plans and prints the answer, or answers another question.
pub fn run(flags: &WhatIfFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    if let Some(Question::Commitment(flags)) = &flags.command {
        return commitment::run(flags, out);
    }
    if let Some(trace) = &flags.trace {
        return over_time::run(flags, trace, out);
    }
    let mut answer = answered(flags)?;
    answer.judge(&flags.fail_above);
    let mut text = Vec::new();
    print(&answer, flags.output, &mut text).map_err(Failure::writing)?;
    // Who looks at the exit code may read only the verdict.
    unless_gone(out.write_all(&text).and_then(|()| out.flush()))?;
    Ok(status(!answer.exceeded.is_empty(), answer.differs))
}

/// Returns the outcome of a comparison.
fn status(is_above: bool, differs: bool) -> ExitStatus {
    match (is_above, differs) {
        (true, _) => ExitStatus::AboveLimit,
        (false, true) => ExitStatus::Different,
        (false, false) => ExitStatus::Done,
    }
}

fn print(answer: &Answer, format: WhatIfFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        WhatIfFormat::Table => table::print(answer, TableLayout::page(false), out),
        WhatIfFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, answer)?;
            writeln!(out)
        }
        WhatIfFormat::Yaml => {
            let text = serde_saphyr::to_string(answer).map_err(io::Error::other)?;
            out.write_all(text.as_bytes())
        }
        WhatIfFormat::Csv => csv_lines::print(answer, out),
        WhatIfFormat::Markdown => markdown::print(answer, out),
        WhatIfFormat::Html => page::print(answer, out),
    }
}

/// Checks that there is something to compare.
fn check_change(flags: &WhatIfFlags) -> Result<(), Failure> {
    if flags.has_change() {
        return Ok(());
    }
    Err(Failure::bad_input(
        "there is no change to compare; add one, such as -f, --without or --load (`poolwright help what-if` lists them)",
    ))
}

/// Makes both plans, and compares them. The sides are planned side by side, which changes no plan.
fn answered(flags: &WhatIfFlags) -> Result<Answer, Failure> {
    check_change(flags)?;
    let base = Base::read(flags)?;
    let mut prices = base.catalogue.clone();
    let (namespace, search, now) = (flags.namespace.as_deref(), &flags.search, base.now);
    let prepared = |input: &InputFlags, given: Given| {
        prepare_given(input, namespace, search, base.catalogue.clone(), Some(given))
    };
    let planner = |options: PlanOptions, prices: Catalogue, lost: BTreeSet<PodKey>| {
        // As in the controller: the answer compares no simpler plans.
        let options = PlanOptions { baselines: false, ..options };
        Planner { search, options, prices, lost, now }
    };
    let before = match base.given() {
        Some(given) => {
            let (input, options) = prepared(&flags.input(), given)?;
            Some((planner(options, prices.clone(), BTreeSet::new()), input))
        }
        None => None,
    };
    let mut changes = Vec::new();
    let given = base.changed(flags, &mut changes)?;
    let (mut input, options) = prepared(&changed_flags(flags, &mut changes)?, given)?;
    let lost = change(flags, &mut input.snapshot, &mut prices, &mut changes)?;
    let after = planner(options, prices, lost);
    let progress = Progress::begin("planning before and after the change");
    let (before, after_all) = side_by_side(
        || before.map_or_else(|| Ok(base::nothing()), |(planner, input)| planner.state(&input)),
        || after.state_and_runner_up(&input),
    );
    drop(progress);
    let before = before?;
    let (state, chosen, runner_up) = after_all?;
    let mut answer = Answer::of(&before, &state);
    answer.runner_up = runner_up;
    let offerings = offerings(&input.snapshot);
    answer.assumptions = assumptions::assumptions(
        &offerings,
        &chosen.catalogue.source,
        flags.prices.at_risk,
        price_age::today(),
    );
    answer.changes = changes;
    let buys = |pool: &str| chosen.nodes.iter().any(|node| node.pool.as_deref() == Some(pool));
    let not_ready = input.told_of_pools.iter().filter(|(pool, _)| buys(&pool.0));
    let not_ready = not_ready.map(|(pool, told)| format!("NodePool {pool}: the plan buys there. {told}"));
    let of_nodes = node_prices::notes(&input.snapshot, &after.prices);
    let others = base.notes.iter().cloned().chain(of_nodes).chain(chosen.notes.iter().cloned());
    answer.notes = not_ready.chain(others).collect();
    Ok(answer)
}

/// Does both, the first in another thread.
fn side_by_side<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        match one.join() {
            Ok(one) => (one, other),
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Returns the offerings that may be bought.
pub fn offerings(snapshot: &Snapshot) -> Vec<&Offering> {
    let sold = |class: &NodeClassRef| snapshot.catalogues.get(class)?.as_deref().ok();
    buyable::offerings(snapshot.pools.values().map(|pool| &**pool), sold).collect()
}

/// Returns the flags of the plan with the changes, and says what changed.
fn changed_flags(flags: &WhatIfFlags, told: &mut Vec<String>) -> Result<InputFlags, Failure> {
    let mut changed = flags.input();
    changed.spot = flags.spot;
    if let Some(path) = &flags.commitments {
        changed.commitments = Some(path.clone());
        told.push(format!("--commitments: those of {} pay first", path.display()));
    }
    match flags.sharing {
        Some(SharingMode::None) => {
            return Err(Failure::bad_input(
                "--sharing none: matches nothing, because pods share no GPU of new nodes in the base; choose another mode",
            ));
        }
        Some(mode) => {
            changed.sharing = mode;
            told.push(format!("--sharing: pods share the GPUs of new nodes by {mode}"));
        }
        None => {}
    }
    Ok(changed)
}

/// Changes the load, what may be bought, and what runs. Says what changed, and returns the pods that are lost.
///
/// # Errors
///
/// A change matches nothing.
fn change(
    flags: &WhatIfFlags,
    snapshot: &mut Snapshot,
    prices: &mut Catalogue,
    told: &mut Vec<String>,
) -> Result<BTreeSet<PodKey>, Failure> {
    if let Some(times) = flags.load {
        let more = load::multiplied(snapshot, times);
        *snapshot = more.map_err(|why| Failure::bad_input(format!("--load {times}: {why}")))?;
        told.push(format!("--load: {times} times as many pods of each workload"));
    }
    for models in &flags.gpu {
        let pods = gpu::replace(snapshot, models)?;
        told.push(format!("--gpu: {} instead of {} for {}", models.to, models.from, counted(pods, "pod")));
    }
    change_market(flags, snapshot, prices, told)?;
    let mut lost = BTreeSet::new();
    for zone in &flags.outage {
        lost.extend(outage::outage(snapshot, zone)?);
        told.push(format!("--outage: zone {zone} is out"));
    }
    change_interruptions(flags, snapshot, told)?;
    Ok(lost)
}

/// Changes what may be bought and its prices, and says what changed.
fn change_market(
    flags: &WhatIfFlags,
    snapshot: &mut Snapshot,
    prices: &mut Catalogue,
    told: &mut Vec<String>,
) -> Result<(), Failure> {
    if flags.spot {
        market::with_spot(snapshot)?;
        told.push("--spot: every pool may buy spot nodes".to_owned());
    }
    if flags.no_spot {
        market::without_spot(snapshot)?;
        told.push("--no-spot: no pool may buy spot nodes".to_owned());
    }
    for pattern in &flags.without {
        market::without(snapshot, pattern)?;
        told.push(format!("--without: no {pattern} may be bought"));
    }
    for change in &flags.price {
        market::price(snapshot, prices, change)?;
        told.push(format!("--price: {}", change.written));
    }
    Ok(())
}

/// Changes the interruption rates, and says so.
fn change_interruptions(
    flags: &WhatIfFlags,
    snapshot: &mut Snapshot,
    told: &mut Vec<String>,
) -> Result<(), Failure> {
    if let Some(times) = flags.interruptions {
        market::interrupt(snapshot, times)?;
        told.push(format!("--interruptions: {times} times the rates of spot offerings"));
    }
    Ok(())
}

/// What plans of one side share.
struct Planner<'a> {
    search: &'a SearchFlags,
    options: PlanOptions,
    /// The prices of nodes that run.
    prices: Catalogue,
    /// The pods that are lost.
    lost: BTreeSet<PodKey>,
    now: Timestamp,
}

impl Planner<'_> {
    /// Plans for the input, and for half as many pods again.
    fn state(&self, input: &Input) -> Result<State, Failure> {
        let (outcome, document) = self.outcome(input)?;
        let at_half_more = self.at_half_more(input, &outcome)?;
        Ok(State { outcome, waiting: document.unplaced, at_half_more })
    }

    /// Does the same, and plans without the type that costs most. Also returns the plan for the input.
    fn state_and_runner_up(&self, input: &Input) -> Result<(State, Document, Option<RunnerUp>), Failure> {
        let (outcome, document) = self.outcome(input)?;
        let (runner_up, at_half_more) =
            side_by_side(|| self.runner_up(input, &document), || self.at_half_more(input, &outcome));
        let (at_half_more, runner_up) = (at_half_more?, runner_up?);
        Ok((State { outcome, waiting: document.unplaced.clone(), at_half_more }, document, runner_up))
    }

    /// Plans for half as many pods again; `None` if no such plan is possible.
    fn at_half_more(&self, input: &Input, outcome: &Outcome) -> Result<Option<Outcome>, Failure> {
        match load::multiplied(&input.snapshot, Factor::HALF_MORE) {
            Ok(more) => Ok(Some(self.outcome(&input.with_snapshot(more))?.0)),
            // Without pods, nothing grows.
            Err(_) => Ok(outcome.places.is_empty().then(|| outcome.clone())),
        }
    }

    /// Plans without the type that costs most.
    fn runner_up(&self, input: &Input, chosen: &Document) -> Result<Option<RunnerUp>, Failure> {
        let Some(name) = runner_up::main_type(chosen) else { return Ok(None) };
        let Some(other) = runner_up::without(&input.snapshot, &name) else { return Ok(None) };
        let planned = self.planned(&input.with_snapshot(other))?;
        Ok(Some(runner_up::described(name, chosen, &planned.document)))
    }

    fn outcome(&self, input: &Input) -> Result<(Outcome, Document), Failure> {
        let Planned { document, giving_way } = self.planned(input)?;
        let mut outcome = Outcome::of(&input.snapshot, &document, &self.prices);
        let lost: BTreeSet<PodKey> = self.lost.iter().chain(input.preempted_for_good()).cloned().collect();
        outcome.put_running(&input.snapshot, &giving_way, &lost, |pod| input.name_of(pod));
        Ok((outcome, document))
    }

    fn planned(&self, input: &Input) -> Result<Planned, Failure> {
        input.planned(self.now, &self.options, self.search)
    }
}
