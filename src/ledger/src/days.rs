//! Reads days of a ledger in a local directory, with all processors.
//!
//! Each thread takes the next block of whole lines and parses it. The rows come in the order of days, files and lines nonetheless.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, Read as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use jiff::civil::Date;
use poolwright_report::ledger::row::Row;

use crate::store::{BadLine, DAY, ENDING, Read, VERSION};

/// The most threads: so many keep up with one that takes the rows.
const THREADS: usize = 8;
/// The bytes of a block. It ends with a line, so it has the rest of one in addition.
const BLOCK: usize = 1 << 20;
/// The bytes of a usual line.
const USUAL: usize = 400;

/// What is read of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are rows, one at a time")]
pub enum Event {
    /// A line of a day.
    Line(Read),
    /// All lines of a day have been told.
    DayOver(Date),
}

/// Why a file or a folder cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} of the ledger cannot be read", .path.display())]
pub struct FileError {
    /// The file or the folder.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

/// Returns the days that have a folder in a ledger's directory.
pub fn days_in(root: &Path) -> io::Result<BTreeSet<Date>> {
    let names = names(&root.join(VERSION))?;
    Ok(names.iter().filter_map(|name| name.strip_prefix(DAY)?.parse().ok()).collect())
}

/// Reads days. A day without a folder has no lines.
pub fn read_days(root: &Path, days: &[Date], each: &mut dyn FnMut(Event)) -> Result<(), FileError> {
    read_blocks(root, days, BLOCK, each)
}

fn read_blocks(
    root: &Path,
    days: &[Date],
    block: usize,
    each: &mut dyn FnMut(Event),
) -> Result<(), FileError> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS);
    let source = Mutex::new(Source { root, days: days.iter(), block, number: 0, files: None, opened: None });
    // Threads that are ahead wait, so that few blocks are in memory.
    let (sender, receiver) = sync_channel(2 * threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (source, sender) = (&source, sender.clone());
            scope.spawn(move || work(source, &sender));
        }
        drop(sender);
        in_order(receiver, each)
    })
}

/// The next thing to do.
enum Task {
    Block { file: Arc<str>, begins: bool, bytes: Vec<u8> },
    DayOver(Date),
    Failed(FileError),
}

/// The lines of a block that are not empty, by their number in it.
type Rows = Vec<(usize, Result<Row, String>)>;

/// What became of a task.
enum Done {
    /// The rows of a block, and how many lines it has.
    Block {
        file: Arc<str>,
        begins: bool,
        rows: Rows,
        lines: usize,
    },
    DayOver(Date),
    Failed(FileError),
}

/// Does tasks until there are none, or until nobody wants what becomes of them.
fn work(source: &Mutex<Source<'_>>, sender: &SyncSender<(u64, Done)>) {
    loop {
        let next = source.lock().unwrap_or_else(PoisonError::into_inner).next_task();
        let Some((number, task)) = next else { return };
        let done = match task {
            Task::Block { file, begins, bytes } => {
                let (rows, lines) = parsed(&bytes);
                Done::Block { file, begins, rows, lines }
            }
            Task::DayOver(day) => Done::DayOver(day),
            Task::Failed(error) => Done::Failed(error),
        };
        if sender.send((number, done)).is_err() {
            return;
        }
    }
}

/// Parses the lines of a block.
fn parsed(mut bytes: &[u8]) -> (Rows, usize) {
    let (mut rows, mut lines) = (Rows::with_capacity(bytes.len() / USUAL), 0);
    loop {
        let left = bytes;
        // Memory can always be read.
        let length = bytes.skip_until(b'\n').unwrap_or(0);
        if length == 0 {
            return (rows, lines);
        }
        lines += 1;
        let line = left[..length].trim_ascii();
        if !line.is_empty() {
            rows.push((lines, serde_json::from_slice(line).map_err(|error| error.to_string())));
        }
    }
}

/// Tells what was done, in the order of the tasks.
fn in_order(receiver: Receiver<(u64, Done)>, each: &mut dyn FnMut(Event)) -> Result<(), FileError> {
    let (mut early, mut next, mut before) = (BTreeMap::new(), 0, 0);
    for (number, done) in receiver {
        early.insert(number, done);
        while let Some(done) = early.remove(&next) {
            next += 1;
            match done {
                Done::Block { file, begins, rows, lines } => {
                    before = if begins { 0 } else { before };
                    for (line, row) in rows {
                        let bad = |why| BadLine { file: file.to_string(), line: before + line, why };
                        each(Event::Line(row.map_or_else(|why| Read::Unreadable(bad(why)), Read::Row)));
                    }
                    before += lines;
                }
                Done::DayOver(day) => each(Event::DayOver(day)),
                Done::Failed(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Finds the next task.
struct Source<'a> {
    root: &'a Path,
    days: std::slice::Iter<'a, Date>,
    block: usize,
    /// The number of the next task.
    number: u64,
    /// The day that is read, and the names of its files that are left, the next one last.
    files: Option<(Date, Vec<String>)>,
    opened: Option<Opened>,
}

impl Source<'_> {
    fn next_task(&mut self) -> Option<(u64, Task)> {
        let task = self.task().unwrap_or_else(|error| Some(Task::Failed(error)))?;
        self.number += 1;
        Some((self.number - 1, task))
    }

    fn task(&mut self) -> Result<Option<Task>, FileError> {
        loop {
            if let Some(opened) = &mut self.opened {
                let (begins, file) = (!opened.is_begun, opened.shown.clone());
                if let Some(bytes) = opened.block(self.block)? {
                    return Ok(Some(Task::Block { file, begins, bytes }));
                }
                self.opened = None;
            } else if let Some((day, files)) = &mut self.files {
                let day = *day;
                let Some(name) = files.pop() else {
                    self.files = None;
                    return Ok(Some(Task::DayOver(day)));
                };
                self.opened = Some(Opened::new(self.root, day, &name)?);
            } else {
                let Some(day) = self.days.next().copied() else { return Ok(None) };
                self.files = Some((day, files_of(self.root, day)?));
            }
        }
    }
}

/// A file that is read.
struct Opened {
    path: PathBuf,
    /// Its name for messages.
    shown: Arc<str>,
    file: File,
    /// Its bytes that are left, as far as is known: a minute's file is much smaller than a block.
    left: usize,
    is_begun: bool,
    /// What is read of the line after the last block.
    rest: Vec<u8>,
}

impl Opened {
    fn new(root: &Path, day: Date, name: &str) -> Result<Self, FileError> {
        let shown = format!("{VERSION}/{DAY}{day}/{name}");
        let path = root.join(&shown);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(source) => return Err(FileError { path, source }),
        };
        let length = file.metadata().map_or(0, |known| known.len());
        let left = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(Self { path, shown: shown.into(), file, left, is_begun: false, rest: Vec::new() })
    }

    /// Returns the next bytes up to the end of a line; `None` at the end of the file.
    fn block(&mut self, size: usize) -> Result<Option<Vec<u8>>, FileError> {
        self.is_begun = true;
        let mut bytes = std::mem::take(&mut self.rest);
        loop {
            let before = bytes.len();
            bytes.reserve(size.min(self.left));
            let read = self.file.by_ref().take(size as u64).read_to_end(&mut bytes);
            match read {
                Ok(0) => return Ok(Some(bytes).filter(|bytes| !bytes.is_empty())),
                Ok(more) => self.left = self.left.saturating_sub(more),
                Err(source) => return Err(FileError { path: self.path.clone(), source }),
            }
            if let Some(end) = bytes[before..].iter().rposition(|byte| *byte == b'\n') {
                self.rest = bytes.split_off(before + end + 1);
                return Ok(Some(bytes));
            }
        }
    }
}

/// Returns the names of the files of a day, the first one last.
fn files_of(root: &Path, day: Date) -> Result<Vec<String>, FileError> {
    let path = root.join(VERSION).join(format!("{DAY}{day}"));
    match names(&path) {
        Ok(mut names) => {
            names.retain(|name| name.ends_with(ENDING));
            names.reverse();
            Ok(names)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(FileError { path, source }),
    }
}

/// Returns the names in a directory, in their order.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Returns what is read of two days, in words, with blocks of this size.
    fn told(root: &Path, block: usize) -> Vec<String> {
        let mut told = Vec::new();
        let days = [date(2026, 11, 29), date(2026, 11, 30)];
        read_blocks(root, &days, block, &mut |event| {
            told.push(match event {
                Event::Line(Read::Row(Row::Alive(alive))) => alive.writer,
                Event::Line(Read::Row(other)) => format!("{other:?}"),
                Event::Line(Read::Unreadable(line)) => format!("{}:{}", line.file, line.line),
                Event::DayOver(day) => day.to_string(),
            });
        })
        .expect("it can be read");
        told
    }

    #[test]
    fn rows_come_in_the_order_of_files_and_lines_whatever_the_size_of_a_block() {
        let root = std::env::temp_dir().join(format!("poolwright-days-{}", std::process::id()));
        let folder = root.join("v1/day=2026-11-30");
        fs::create_dir_all(&folder).expect("a folder");
        let line = |writer: usize| {
            format!(r#"{{"kind":"alive","cluster":"c","writer":"{writer}","seen":"2026-11-30T00:00:00Z"}}"#)
        };
        let first: Vec<String> = (0..40).map(line).collect();
        // Line 42 of the first file is broken, and its last line has no end.
        let text = format!("{}\n\nbroken\n{}", first.join("\n"), line(40));
        fs::write(folder.join("000000-a.ndjson"), text).expect("a file");
        fs::write(folder.join("000001-b.ndjson"), format!("{}\nbroken\n", line(41))).expect("a file");
        fs::write(folder.join("notes.txt"), "not ours").expect("a file");
        let mut expected = vec!["2026-11-29".to_owned()];
        expected.extend((0..40).map(|number| number.to_string()));
        expected.push("v1/day=2026-11-30/000000-a.ndjson:42".to_owned());
        expected.extend(["40", "41"].map(str::to_owned));
        expected.push("v1/day=2026-11-30/000001-b.ndjson:2".to_owned());
        expected.push("2026-11-30".to_owned());
        for block in [1, 7, 100, BLOCK] {
            assert_eq!(told(&root, block), expected, "{block}");
        }
        assert_eq!(days_in(&root).expect("a list"), BTreeSet::from([date(2026, 11, 30)]));
        fs::remove_dir_all(&root).expect("it is ours");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told() {
        let root = std::env::temp_dir().join(format!("poolwright-days-{}-bad", std::process::id()));
        let file = root.join("v1/day=2026-11-30/000000-a.ndjson");
        fs::create_dir_all(&file).expect("a folder in the place of a file");
        let error = read_days(&root, &[date(2026, 11, 30)], &mut |_| {}).expect_err("it is no file");
        assert_eq!(error.path, file);
        fs::remove_dir_all(&root).expect("it is ours");
    }
}
