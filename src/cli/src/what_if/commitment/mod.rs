//! `poolwright what-if commitment`: which reservations, savings plans, discounts and blocks cost least for a known use.
//!
//! The use is read from a file or from the ledger, or is that of a replay. The solver chooses the numbers, and counts what they cost.

mod answer;
mod lists;
mod markdown;
mod offers;
mod prices;
mod recorded;
mod table;
#[cfg(test)]
mod tests;
mod usage;

use std::collections::BTreeMap;
use std::io::{self, Write};

use poolwright_solver::purchase::{self, Market, Purchase, Slice};

use crate::args::{CommitmentFlags, CommitmentFormat, ReplayFlags};
use crate::exit::{ExitStatus, Failure};
use crate::print::TableLayout;
use crate::problems::Problems;
use crate::simulate::stop_when_interrupted;
use crate::{catalogue, replay, source};

use answer::Answer;
use offers::Offered;
use usage::Usage;

/// The part of the use that is left at less load: four fifths.
const LESS_LOAD: (u64, u64) = (4, 5);

/// Answers, and prints the answer.
pub fn run(flags: &CommitmentFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let answer = answered(flags)?;
    print(&answer, flags.output, out).map_err(Failure::writing)?;
    Ok(ExitStatus::Done)
}

fn print(answer: &Answer, format: CommitmentFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        CommitmentFormat::Table => table::print(answer, TableLayout::page(false), out),
        CommitmentFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, answer)?;
            writeln!(out)
        }
        CommitmentFormat::Yaml => {
            let text = serde_saphyr::to_string(answer).map_err(io::Error::other)?;
            out.write_all(text.as_bytes())
        }
        CommitmentFormat::Csv => lists::csv(answer, out),
        CommitmentFormat::Markdown => markdown::print(answer, out),
    }
}

fn answered(flags: &CommitmentFlags) -> Result<Answer, Failure> {
    let catalogue = catalogue::load(&flags.catalogue)?;
    let file = source::file(&flags.offers).map_err(Failure::bad_input)?;
    let refused = |problems: Problems| Failure::bad_input(format!("the use cannot be read: {problems}"));
    let useless = |problems: Problems| Failure::bad_input(format!("the offers cannot be used: {problems}"));
    let usage = match (&flags.usage, &flags.trace, &flags.ledger) {
        (Some(path), ..) => {
            let written = source::file(path).map_err(Failure::bad_input)?;
            usage::of_file(&written, &catalogue).map_err(refused)?
        }
        (None, Some(trace), _) => {
            let replay = flags.replay(trace.clone()).map_err(Failure::bad_input)?;
            // A wrong offer shows before the long replay.
            offers::check(&file, &catalogue).map_err(useless)?;
            played(&replay)?
        }
        (None, None, Some(place)) => {
            let days = flags.days().map_err(Failure::bad_input)?;
            recorded::of_ledger(place, days, flags.region.as_deref())?
        }
        // The parser wants one of them.
        (None, None, None) => {
            return Err(Failure::bad_input("there is no use; add --usage, --trace or --ledger"));
        }
    };
    let (offered, notes) = offers::read(&file, &usage, &catalogue).map_err(useless)?;
    answer(&usage, &offered, notes)
}

/// Returns the use of a replay.
fn played(flags: &ReplayFlags) -> Result<Usage, Failure> {
    let stop = stop_when_interrupted()?;
    let played = replay::played(flags, &stop)?;
    let mut usage = usage::of_history(&played.history).map_err(Failure::bad_input)?;
    let gaps = played.interrupted().into_iter().chain(played.empty_hours());
    usage.notes.extend(gaps.chain(played.notes_of_input().iter().cloned()));
    Ok(usage)
}

/// Finds what to buy for a use, and says what it costs.
fn answer(usage: &Usage, offered: &[Offered], notes: Vec<String>) -> Result<Answer, Failure> {
    let now = market(usage, offered);
    let mut less = now.clone();
    for nodes in less.slices.iter_mut().flat_map(|slice| &mut slice.nodes) {
        let (part, of) = LESS_LOAD;
        *nodes = (*nodes * part).div_ceil(of);
    }
    let best = |market: &Market| -> Result<Purchase, Failure> {
        purchase::best(market).map_err(|unsolved| Failure::Other(unsolved.into()))
    };
    let (bought, then) = (best(&now)?, best(&less)?);
    let mut answer = Answer::of(usage, offered, (&now, &bought), (&less, &then));
    answer.notes = usage.notes.iter().cloned().chain(notes).collect();
    Ok(answer)
}

/// Returns the program's view of a use, with hours that are alike together.
fn market(usage: &Usage, offered: &[Offered]) -> Market {
    let mut hours: BTreeMap<(Vec<u64>, Vec<bool>), u64> = BTreeMap::new();
    for hour in 0..usage.hours {
        let of_hour = usage.nodes.get(&hour);
        let nodes =
            usage.prices.keys().map(|kind| of_hour.and_then(|all| all.get(kind)).copied().unwrap_or(0));
        let is_there = |one: &Offered| one.window.is_none_or(|(from, until)| (from..until).contains(&hour));
        *hours.entry((nodes.collect(), offered.iter().map(is_there).collect())).or_default() += 1;
    }
    Market {
        prices: usage.prices.values().copied().collect(),
        slices: hours.into_iter().map(|((nodes, active), hours)| Slice { hours, nodes, active }).collect(),
        offers: offered.iter().map(|one| one.offer.clone()).collect(),
    }
}
