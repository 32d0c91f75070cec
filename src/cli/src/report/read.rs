//! Reads the files of a ledger. Those of a directory are read without the runtime that a bucket needs, which is several times faster.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context;
use futures::TryStreamExt;
use jiff::civil::Date;
pub use poolwright_ledger::{BadLine, Read};
use poolwright_ledger::{Location, Store};
use poolwright_terms::one_line;
use tokio::runtime::Runtime;

use crate::exit::Failure;

/// The version of the layout.
const VERSION: &str = "v1";
/// Begins the name of a day's folder.
const DAY: &str = "day=";
/// Ends the name of a file.
const ENDING: &str = ".ndjson";

/// Returns whether a newer version of Poolwright wrote the line: it has a kind or a phase that this one does not know.
pub fn is_newer(line: &BadLine) -> bool {
    line.why.starts_with("unknown variant")
}

/// Says what is wrong with a line.
pub fn told(line: &BadLine) -> String {
    let by = if is_newer(line) { "; a newer version of Poolwright wrote it" } else { "" };
    format!("{}{by}", one_line(&line.to_string()))
}

/// A ledger.
pub struct Ledger {
    place: Place,
    /// The days that have a folder.
    pub days: BTreeSet<Date>,
}

enum Place {
    Directory(PathBuf),
    Bucket(Runtime, Store),
}

impl Ledger {
    /// Opens the ledger at a location.
    pub fn open(location: &Location) -> Result<Self, Failure> {
        let ledger = match location {
            Location::Directory(root) => Self::in_directory(root)?,
            bucket => Self::in_bucket(bucket)?,
        };
        if ledger.days.is_empty() {
            return Err(refused(
                location,
                &format!("it has no folder {VERSION}/{DAY}..., so it is no ledger"),
                "name the place that the controller writes to",
            ));
        }
        Ok(ledger)
    }

    fn in_directory(root: &Path) -> Result<Self, Failure> {
        let location = Location::Directory(root.to_owned());
        if !root.is_dir() {
            return Err(refused(
                &location,
                "there is no such directory",
                "name the one that the controller writes",
            ));
        }
        let days: BTreeSet<Date> = match names(&root.join(VERSION)) {
            Ok(names) => names.iter().filter_map(|name| name.strip_prefix(DAY)?.parse().ok()).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
            Err(error) => return Err(refused(&location, &error.to_string(), "check that you may read it")),
        };
        let newer = |name: &String| {
            name.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok_and(|number| number > 1))
        };
        if days.is_empty() && names(root).is_ok_and(|names| names.iter().any(newer)) {
            return Err(refused(
                &location,
                "a newer version of Poolwright wrote it",
                "use that version to read it",
            ));
        }
        Ok(Self { place: Place::Directory(root.to_owned()), days })
    }

    fn in_bucket(location: &Location) -> Result<Self, Failure> {
        let store = Store::open(location).map_err(anyhow::Error::new)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime for network calls")?;
        let days = runtime.block_on(store.days()).map_err(anyhow::Error::new)?;
        Ok(Self { place: Place::Bucket(runtime, store), days })
    }

    /// Reads the rows of a day, by the time of writing. Only few lines are in memory.
    pub fn rows(&self, day: Date, each: &mut impl FnMut(Read)) -> Result<(), Failure> {
        if !self.days.contains(&day) {
            return Ok(());
        }
        match &self.place {
            Place::Directory(root) => rows_of_folder(root, day, each),
            Place::Bucket(runtime, store) => {
                let read = async {
                    let mut rows = store.rows(day, day);
                    while let Some(row) = rows.try_next().await? {
                        each(row);
                    }
                    Ok::<_, anyhow::Error>(())
                };
                Ok(runtime.block_on(read)?)
            }
        }
    }
}

fn refused(location: &Location, cause: &str, next: &str) -> Failure {
    Failure::bad_input(format!("--ledger {}: {cause}; {next}", one_line(&location.to_string())))
}

fn rows_of_folder(root: &Path, day: Date, each: &mut impl FnMut(Read)) -> Result<(), Failure> {
    let folder = root.join(VERSION).join(format!("{DAY}{day}"));
    let failed = |path: &Path, error: io::Error| {
        let path = one_line(&path.display().to_string()).into_owned();
        Failure::Other(anyhow::Error::new(error).context(format!("{path} of the ledger cannot be read")))
    };
    let files = names(&folder).map_err(|error| failed(&folder, error))?;
    for name in files.iter().filter(|name| name.ends_with(ENDING)) {
        let path = folder.join(name);
        let shown = format!("{VERSION}/{DAY}{day}/{}", one_line(name));
        file(&path, &shown, each).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

fn file(path: &Path, shown: &str, each: &mut impl FnMut(Read)) -> io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 18, File::open(path)?);
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if file.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let text = bytes.trim_ascii();
        if text.is_empty() {
            continue;
        }
        each(match serde_json::from_slice(text) {
            Ok(row) => Read::Row(row),
            Err(error) => {
                let why = one_line(&error.to_string()).into_owned();
                Read::Unreadable(BadLine { file: shown.to_owned(), line, why })
            }
        });
    }
    Ok(())
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
