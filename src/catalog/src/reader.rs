//! Reads catalogues from CSV, built in or written by users. It reports all problems of all files at once.
//!
//! `docs/catalogue.md` describes the format for users.

mod columns;
mod lines;
mod problem;
mod row;

use std::collections::{BTreeMap, BTreeSet};

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::instance::{InstanceType, InstanceTypeName};
use crate::offering::{Catalogue, CatalogueOrigin, Offering, OfferingId};
use crate::sanity;
use columns::Columns;
pub use columns::{
    EPHEMERAL_STORAGE as EPHEMERAL_STORAGE_COLUMN, OPTIONAL as OPTIONAL_COLUMNS, REQUIRED as REQUIRED_COLUMNS,
};
pub use lines::LineNumbers;
pub use problem::{CsvProblem, CsvProblems};
use row::RowReader;
pub use row::{DEFAULT_EPHEMERAL_STORAGE_MIB, UNSPECIFIED_PROVIDER};

/// Reads one catalogue out of one or more CSV files, each given as its name (for messages) and its text.
///
/// Implausible prices are not errors. They go into quarantine, see [`crate::sanity`].
///
/// # Errors
///
/// All problems of all files, in the order of the files and their lines: a missing, unknown or repeated column, a row
/// with too many or too few cells, an invalid cell, an offering listed twice (in one file or in two), a file without
/// rows.
pub fn read_csv(sources: &[(&str, &str)]) -> Result<Catalogue, CsvProblems> {
    let mut read = Read::default();
    for (name, text) in sources {
        read.file(name, text);
    }
    if !read.problems.is_empty() {
        return Err(CsvProblems::new(read.problems));
    }
    sanity::quarantine(&read.types, &mut read.offerings);
    let source = sources.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let origin = CatalogueOrigin::of(source, &read.offerings);
    Ok(Catalogue::new(origin, read.types, read.offerings))
}

/// The most rows of a file. The clouds have about 2,000 types, and each takes memory and time in every plan.
const MOST_ROWS: u64 = 20_000;

/// The data read so far.
#[derive(Default)]
struct Read<'a> {
    types: Vec<InstanceType>,
    offerings: Vec<Offering>,
    /// The ids of `offerings`.
    ids: BTreeSet<OfferingId>,
    problems: Vec<CsvProblem>,
    /// The first row of each type.
    listed: BTreeMap<InstanceTypeName, Listed<'a>>,
}

/// The first row of an instance type, with the type that it describes; `None` if that row had problems.
struct Listed<'a> {
    file: &'a str,
    line: u64,
    kind: Option<InstanceType>,
}

impl<'a> Read<'a> {
    fn file(&mut self, name: &'a str, text: &str) {
        // Spreadsheets on Windows begin a file with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = LineNumbers::of(text);
        let mut records = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(Trim::All)
            .from_reader(text.as_bytes());
        let mut record = StringRecord::new();
        let mut columns: Option<Columns> = None;
        let before = self.problems.len();
        let mut rows = 0u64;
        loop {
            let begin = usize::try_from(records.position().byte()).unwrap_or(usize::MAX);
            match records.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    let cause = format!("cannot be read as CSV ({error})");
                    self.problems.push(CsvProblem::of_line(
                        name,
                        lines.at(begin),
                        cause,
                        "correct this line",
                    ));
                    break;
                }
            }
            if record.iter().all(str::is_empty) {
                continue;
            }
            let line = lines.at(begin);
            match &columns {
                None => match Columns::of_header(name, line, &record) {
                    Ok((found, problems)) => {
                        self.problems.extend(problems);
                        columns = Some(found);
                    }
                    Err(problem) => return self.problems.push(problem),
                },
                Some(_) if rows == MOST_ROWS => {
                    let cause = format!("the file lists more than {MOST_ROWS} instance types");
                    self.problems.push(CsvProblem::of_line(name, line, cause, "keep those that you may buy"));
                    break;
                }
                Some(columns) => {
                    rows += 1;
                    self.row(RowReader::new(name, line, columns, &record));
                }
            }
        }
        let header = REQUIRED_COLUMNS.join(",");
        if columns.is_none() {
            let remedy = format!("begin it with the header `{header}`");
            self.problems.push(CsvProblem::of_line(name, 1, "the file is empty".to_owned(), remedy));
        } else if rows == 0 && self.problems.len() == before {
            let cause = "there is a header but no instance type below it".to_owned();
            self.problems.push(CsvProblem::of_line(name, 1, cause, "add one row for each instance type"));
        }
    }

    fn row(&mut self, mut row: RowReader<'_, 'a>) {
        let kind_and_offerings = row.read();
        let (file, line) = (row.file, row.line);
        let mut is_new = true;
        if let Some(name) = row.instance_type() {
            if let Some(first) = self.listed.get(&name) {
                is_new = false;
                let split = row.is_split();
                if let Some((cause, remedy)) = self.against(first, kind_and_offerings.as_ref(), &name, split)
                {
                    row.problem(columns::INSTANCE_TYPE, cause, remedy);
                }
            } else {
                let kind = kind_and_offerings.as_ref().map(|(kind, _)| kind.clone());
                self.listed.insert(name, Listed { file, line, kind });
            }
        }
        self.problems.append(&mut row.problems);
        if let Some((kind, offerings)) = kind_and_offerings {
            if is_new {
                self.types.push(kind);
            }
            self.ids.extend(offerings.iter().map(|offering| offering.id.clone()));
            self.offerings.extend(offerings);
        }
    }

    /// Returns the problem of a further row of a type. Such a row must list other offerings of the same machine.
    fn against(
        &self,
        first: &Listed<'_>,
        row: Option<&(InstanceType, Vec<Offering>)>,
        name: &InstanceTypeName,
        split: bool,
    ) -> Option<(String, &'static str)> {
        let place = format!("{}:{}", first.file, first.line);
        if !split {
            return Some((
                format!("\"{name}\" is already listed at {place}"),
                "keep one row for each instance type; a catalogue covers one region of each provider",
            ));
        }
        let (kind, offerings) = row?;
        if let Some(twice) = offerings.iter().find(|offering| self.ids.contains(&offering.id)) {
            return Some((
                format!("{} is already listed, first at {place}", twice.id),
                "keep one row for each zone and capacity type of an instance type",
            ));
        }
        first.kind.as_ref().filter(|same| *same != kind).map(|_| {
            (
                format!("\"{name}\" is another machine than at {place}"),
                "rows of one instance type may differ only in zone, capacity type, prices, availability and interruptions",
            )
        })
    }
}

#[cfg(test)]
mod tests;
