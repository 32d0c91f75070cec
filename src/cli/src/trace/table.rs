//! Reads CSV files with a header row by row, and keeps the position of every cell for messages.

use csv::{ReaderBuilder, StringRecord, Trim};
use poolwright_catalog::reader::LineNumbers;

use crate::problems::Problems;

/// One column of a format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
}

/// A row with its position.
pub(crate) struct Row<'a> {
    pub(crate) file: &'a str,
    pub(crate) line: u64,
    columns: &'a [Column],
    positions: &'a [Option<usize>],
    record: &'a StringRecord,
}

impl Row<'_> {
    /// Returns the text of a cell; `None` if the file does not have the column.
    pub(crate) fn cell(&self, column: &str) -> Option<&str> {
        let at = self.columns.iter().position(|known| known.name == column)?;
        self.record.get(self.positions[at]?)
    }

    /// Adds a problem of one cell.
    pub(crate) fn problem(
        &self,
        problems: &mut Problems,
        column: &str,
        cause: String,
        remedy: impl Into<String>,
    ) {
        // A missing column is reported once, for the header.
        if self.cell(column).is_some() {
            problems.csv(self.file, self.line, Some(column), cause, remedy);
        }
    }

    /// Reads a whole number of at most `most`. Otherwise adds a problem and returns `None`. Returns `None` for a missing column
    /// too.
    pub(crate) fn number(&self, problems: &mut Problems, column: &str, most: u64) -> Option<u64> {
        let text = self.cell(column)?;
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let cause = match text.parse::<u64>() {
            Ok(number) if number <= most => return Some(number),
            _ if text.is_empty() => "the cell is empty".to_owned(),
            _ if !is_integer => format!("\"{text}\" is not a whole number"),
            _ if text.starts_with('-') => format!("\"{text}\" is negative"),
            _ => format!("\"{text}\" is too large"),
        };
        let remedy = if cause.ends_with("too large") {
            format!("use a whole number, {most} or less")
        } else {
            "use a whole number, 0 or more".to_owned()
        };
        self.problem(problems, column, cause, remedy);
        None
    }
}

/// Reads `text`, calls `each` for every row, and adds the problems of the file itself. Ignores columns that are not in `columns`.
/// Returns the names of the optional columns that are missing.
pub(crate) fn read(
    file: &str,
    text: &str,
    columns: &[Column],
    problems: &mut Problems,
    mut each: impl FnMut(&Row<'_>, &mut Problems),
) -> Vec<&'static str> {
    // Spreadsheets on Windows begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let required = || {
        let names: Vec<_> =
            columns.iter().filter(|column| column.required).map(|column| column.name).collect();
        names.join(",")
    };
    let mut records =
        ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(text.as_bytes());
    let mut lines = LineNumbers::of(text);
    let mut record = StringRecord::new();
    let mut header: Option<(usize, Vec<Option<usize>>)> = None;
    loop {
        let begin = usize::try_from(records.position().byte()).unwrap_or(usize::MAX);
        match records.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                problems.csv(
                    file,
                    lines.at(begin),
                    None,
                    format!("cannot be read as CSV ({error})"),
                    "correct this line",
                );
                break;
            }
        }
        if record.iter().all(str::is_empty) {
            continue;
        }
        let line = lines.at(begin);
        let Some((width, positions)) = &header else {
            let positions = positions(file, line, &record, columns, problems);
            header = Some((record.len(), positions));
            continue;
        };
        if record.len() == *width {
            each(&Row { file, line, columns, positions, record: &record }, problems);
        } else {
            let cause = format!("the row has {} cells and the header {width}", record.len());
            problems.csv(
                file,
                line,
                None,
                cause,
                "give every column a cell; quote a cell that holds a comma",
            );
        }
    }
    let Some((_, positions)) = header else {
        let remedy = format!("begin it with a header that has at least `{}`", required());
        problems.csv(file, 1, None, "the file is empty".to_owned(), remedy);
        return Vec::new();
    };
    let absent = columns.iter().zip(positions).filter(|(_, position)| position.is_none());
    absent.map(|(column, _)| column.name).collect()
}

fn positions(
    file: &str,
    line: u64,
    header: &StringRecord,
    columns: &[Column],
    problems: &mut Problems,
) -> Vec<Option<usize>> {
    let found =
        |name: &str| header.iter().enumerate().filter(|(_, cell)| *cell == name).map(|(at, _)| at).collect();
    let places: Vec<Vec<usize>> = columns.iter().map(|column| found(column.name)).collect();
    for (column, places) in columns.iter().zip(&places) {
        if places.len() > 1 {
            let cause = format!("the column appears {} times", places.len());
            problems.csv(file, line, Some(column.name), cause, "keep one");
        }
    }
    let is_missing = |(column, places): &(&Column, &Vec<usize>)| places.is_empty() && column.required;
    let missing = columns.iter().zip(&places).filter(is_missing).map(|(column, _)| column.name);
    let missing: Vec<_> = missing.collect();
    let has = || header.iter().take(20).collect::<Vec<_>>().join(",");
    match missing.as_slice() {
        [] => {}
        [name] => {
            let remedy = format!("add it to the header, which has {}", has());
            problems.csv(file, line, Some(name), "the column is missing".to_owned(), remedy);
        }
        several => {
            let cause = format!("the columns {} are missing", several.join(", "));
            problems.csv(file, line, None, cause, format!("add them to the header, which has {}", has()));
        }
    }
    places.into_iter().map(|places| places.first().copied()).collect()
}
