//! `poolwright report`: what nodes cost over some days, and who held them.
//!
//! The ledger is read day by day, and the spans of no more than two days are in memory. `poolwright_report::ledger` folds rows into spans, and
//! `poolwright_report::bill` splits their costs.

mod answer;
mod csv_lines;
mod doubts;
mod focus;
mod markdown;
mod page;
pub mod period;
mod rates;
pub mod read;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::{self, Write};

use jiff::Timestamp;
use jiff::civil::Date;
use poolwright_report::bill::{Book, Charge, Method, Split};
use poolwright_report::ledger::{Day, Doubts, Fold, Gap};

use crate::args::{FocusVersion, ReportFlags, ReportFormat};
use crate::exit::{ExitStatus, Failure};
use crate::price_age;
use crate::print::TableLayout;

use answer::{Answer, Before};
use page::Daily;
use period::Period;
use read::{BadLine, Event, Ledger, Read, told};

/// The most unreadable lines that are kept to be named.
const NAMED: usize = 20;

/// What was read of some days.
struct Found {
    period: Period,
    book: Book,
    reading: Reading,
}

/// What is known of the rows of some days, besides the days.
pub struct Reading {
    doubts: Doubts,
    gaps: Vec<Gap>,
    /// The first and the last sign of a controller of any cluster.
    pub signs: Option<(Timestamp, Timestamp)>,
    /// The first lines that are no rows.
    unread: Vec<BadLine>,
    /// How many lines are no rows.
    unread_lines: usize,
}

/// Prints the report.
pub fn run(flags: &ReportFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let is_focus = matches!(flags.output, ReportFormat::Focus | ReportFormat::FocusCommitments);
    if flags.compare && is_focus {
        let message = format!("--compare: `-o {}` has no place for a change; remove the flag", flags.output);
        return Err(Failure::bad_input(message));
    }
    if flags.focus_version == FocusVersion::V1_4 && !is_focus {
        let message = "--focus-version: only `-o focus` uses it; add that, or remove the flag";
        return Err(Failure::bad_input(message));
    }
    if flags.commitments.is_some() && flags.output != ReportFormat::FocusCommitments {
        let message = "--commitments: only `-o focus-commitments` uses it; add that, or remove the flag";
        return Err(Failure::bad_input(message));
    }
    let today = price_age::today();
    let period = Period::of(flags.from, flags.to, today)?;
    let split = rates::split(flags)?;
    let ledger = Ledger::open(&flags.ledger)?;
    let now = period::now(today);
    match flags.output {
        ReportFormat::Focus => return as_focus(flags, &ledger, period, now, split, out),
        ReportFormat::FocusCommitments => {
            let named = focus::commitments::run(flags, out)?;
            for name in without_terms(&ledger, period, now, &named)? {
                let message = format!(
                    "the commitment {name} paid for nodes, and --commitments does not have it; add its terms"
                );
                // Nobody may read standard error.
                let _ = writeln!(io::stderr(), "note: {}", poolwright_terms::one_line(&message));
            }
            return Ok(ExitStatus::Done);
        }
        _ => {}
    }
    let book = Book::new(flags.by.clone(), split.clone());
    let mut daily = Daily::default();
    let is_page = flags.output == ReportFormat::Html;
    let found = read(&ledger, period, now, book, &mut |date, charge| {
        if is_page {
            daily.add(date, charge);
        }
    })?;
    let before = if flags.compare {
        let book = Book::new(Vec::new(), split);
        let found = read_any(&ledger, period.before(), now, book, &mut |_, _| {})?;
        Some(Before::of(&found))
    } else {
        None
    };
    let answer = Answer::of(&found, before, flags.method);
    print(&answer, &daily, flags.output, out).map_err(Failure::writing)?;
    Ok(ExitStatus::Done)
}

fn print(answer: &Answer, daily: &Daily, format: ReportFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        ReportFormat::Html => page::print(answer, daily, out),
        ReportFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, answer)?;
            writeln!(out)
        }
        ReportFormat::Yaml => {
            let text = serde_saphyr::to_string(answer).map_err(io::Error::other)?;
            out.write_all(text.as_bytes())
        }
        ReportFormat::Csv => csv_lines::print(answer, out),
        ReportFormat::Markdown => markdown::print(answer, out),
        ReportFormat::Table | ReportFormat::Focus | ReportFormat::FocusCommitments => {
            table::print(answer, TableLayout::list(false), out)
        }
    }
}

/// Prints one line for each charge. What is not certain is told on standard error, because the file has no room for it.
fn as_focus(
    flags: &ReportFlags,
    ledger: &Ledger,
    period: Period,
    now: Timestamp,
    split: Split,
    out: &mut impl Write,
) -> Result<ExitStatus, Failure> {
    if split.method == Method::RateCard {
        let message = "--method rate-card: FOCUS splits what nodes cost, and a rate card has other prices; use another method with \
                       `-o focus`";
        return Err(Failure::bad_input(message));
    }
    let mut lines = focus::Lines::new(flags.focus_version, split.method, out);
    let book = Book::new(Vec::new(), split);
    let found = read(ledger, period, now, book, &mut |_, charge| lines.write(charge))?;
    lines.finish().map_err(Failure::writing)?;
    for note in doubts::notes(&found) {
        // Nobody may read standard error.
        let _ = writeln!(io::stderr(), "note: {}", poolwright_terms::one_line(&note));
    }
    Ok(ExitStatus::Done)
}

/// Returns the commitments that the ledger names and a file does not.
fn without_terms(
    ledger: &Ledger,
    period: Period,
    now: Timestamp,
    named: &BTreeSet<String>,
) -> Result<BTreeSet<String>, Failure> {
    let mut missing = BTreeSet::new();
    let book = Book::new(Vec::new(), Split::by(Method::Weights));
    read_any(ledger, period, now, book, &mut |_, charge| {
        let name = focus::commitment(&charge.instance.row).filter(|name| !named.contains(*name));
        missing.extend(name.map(str::to_owned));
    })?;
    Ok(missing)
}

/// Reads some days, in which an instance must have run.
fn read(
    ledger: &Ledger,
    period: Period,
    now: Timestamp,
    book: Book,
    each: &mut impl FnMut(Date, &Charge<'_>),
) -> Result<Found, Failure> {
    let found = read_any(ledger, period, now, book, each)?;
    if is_empty(&found) {
        let (first, last) = (ledger.days.first(), ledger.days.last());
        let there = first.zip(last).map(|(first, last)| Period { first: *first, last: *last });
        let there = there.map_or_else(String::new, |there| format!("; the ledger has {there}"));
        let unread = match found.reading.unread.first() {
            Some(line) => {
                let lines = found.reading.unread_lines;
                format!("; {lines} lines cannot be read, the first at {}", told(line))
            }
            None => String::new(),
        };
        let message =
            format!("no instance ran in {period}{there}{unread}; choose other days with --from and --to");
        return Err(Failure::bad_input(message));
    }
    Ok(found)
}

fn is_empty(found: &Found) -> bool {
    found.book.totals().instances.is_empty()
}

/// Reads some days.
fn read_any(
    ledger: &Ledger,
    period: Period,
    now: Timestamp,
    mut book: Book,
    each: &mut impl FnMut(Date, &Charge<'_>),
) -> Result<Found, Failure> {
    let reading = days(ledger, period, now, &mut |day: &Day| book.add(day, |charge| each(day.date, charge)))?;
    Ok(Found { period, book, reading })
}

/// Reads some days, one after the other. The rows of the day after each are read before it is closed, because they tell whether a
/// controller still lived.
pub fn days(
    ledger: &Ledger,
    period: Period,
    now: Timestamp,
    each: &mut impl FnMut(&Day),
) -> Result<Reading, Failure> {
    let mut fold = Fold::new(period.first, period.last, now);
    let (mut unread, mut unread_lines) = (Vec::new(), 0);
    let mut days: Vec<Date> = period.days().collect();
    days.extend(period.last.tomorrow());
    ledger.read(&days, &mut |event| match event {
        Event::Line(Read::Row(row)) => fold.push(row),
        Event::Line(Read::Unreadable(line)) => {
            unread_lines += 1;
            if unread.len() < NAMED {
                unread.push(line);
            }
        }
        Event::DayOver(day) if day > period.first => {
            if let Ok(date) = day.yesterday() {
                each(&fold.close(date));
            }
        }
        Event::DayOver(_) => {}
    })?;
    let (doubts, gaps, signs) =
        (fold.doubts(), fold.gaps().to_vec(), fold.first_sign().zip(fold.last_sign()));
    Ok(Reading { doubts, gaps, signs, unread, unread_lines })
}
