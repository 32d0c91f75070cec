//! Reads a ledger. The files of a directory are read by threads, and not by the runtime that a bucket needs, which is several times faster.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use futures::TryStreamExt;
use jiff::civil::Date;
pub use poolwright_ledger::{BadLine, Event, Read};
use poolwright_ledger::{FileError, Location, Store, days_in, read_days};
use poolwright_terms::one_line;
use tokio::runtime::Runtime;

use crate::exit::Failure;

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
                "it has no folder v1/day=..., so it is no ledger",
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
        let days = match days_in(root) {
            Ok(days) => days,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
            Err(error) => return Err(refused(&location, &error.to_string(), "check that you may read it")),
        };
        if days.is_empty() && has_newer(root) {
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

    /// Reads days, each file by the time of its writing. Only few lines are in memory.
    pub fn read(&self, days: &[Date], each: &mut impl FnMut(Event)) -> Result<(), Failure> {
        match &self.place {
            Place::Directory(root) => read_days(root, days, each).map_err(failed),
            Place::Bucket(runtime, store) => {
                let read = async {
                    for day in days {
                        if self.days.contains(day) {
                            let mut rows = store.rows(*day, *day);
                            while let Some(row) = rows.try_next().await? {
                                each(Event::Line(row));
                            }
                        }
                        each(Event::DayOver(*day));
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

fn failed(FileError { path, source }: FileError) -> Failure {
    let path = one_line(&path.display().to_string()).into_owned();
    Failure::Other(anyhow::Error::new(source).context(format!("{path} of the ledger cannot be read")))
}

/// Returns whether a directory has a newer layout.
fn has_newer(root: &Path) -> bool {
    let Ok(entries) = fs::read_dir(root) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix('v')?.parse::<u32>().ok());
        number.is_some_and(|number| number > 1)
    })
}
