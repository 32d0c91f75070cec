//! A ledger to read.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use jiff::civil::Date;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use poolwright_report::ledger::row::Row;

use crate::buckets;
use crate::lines::lines;
use crate::location::Location;

/// The version of the layout.
pub(crate) const VERSION: &str = "v1";
/// Begins the name of a day's folder, as Hive names partitions, so that Athena, BigQuery and DuckDB know the day.
pub(crate) const DAY: &str = "day=";
/// Ends the name of a file.
pub(crate) const ENDING: &str = ".ndjson";
/// The most files that are asked for at a time. A fleet's day has 1,440 small files, and a bucket takes some time to answer for each.
const AT_A_TIME: usize = 16;

/// A ledger.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) objects: Arc<dyn ObjectStore>,
    root: Path,
    shown: Arc<str>,
}

/// Why a ledger cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory does not exist and cannot be created.
    #[error("the directory {at} cannot be created; create it, or make the one above it writable")]
    Directory {
        /// The directory.
        at: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The settings of the bucket are wrong.
    #[error(
        "the bucket of {at} cannot be used; check its name, the region and the credentials in the environment"
    )]
    Bucket {
        /// The location.
        at: String,
        /// The cause.
        #[source]
        source: object_store::Error,
    },
    /// This program cannot use such buckets.
    #[error(
        "this program was built without buckets of this kind ({at}); build it with the feature `{feature}`"
    )]
    NotBuilt {
        /// The location.
        at: String,
        /// The feature of the command.
        feature: &'static str,
    },
}

/// Why a ledger cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what} of the ledger {at} cannot be read; check that it exists and that the credentials may list and read it"
)]
pub struct ReadError {
    what: String,
    at: Arc<str>,
    /// The cause.
    #[source]
    source: object_store::Error,
}

/// What a line of the ledger says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are rows, one at a time")]
pub enum Read {
    /// A row.
    Row(Row),
    /// A line that is not a row this version can read.
    Unreadable(BadLine),
}

/// A line that is not a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The file.
    pub file: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.why)
    }
}

impl Store {
    /// Opens the ledger at a location. A directory is created if it does not exist. Credentials of a bucket are those of the
    /// environment, and are first used when the ledger is read or written.
    pub fn open(location: &Location) -> Result<Self, OpenError> {
        let at = location.to_string();
        let (objects, prefix) = match location {
            Location::Directory(path) => (directory(path, &at)?, ""),
            Location::S3 { bucket, prefix } => (buckets::s3(bucket, &at)?, prefix.as_str()),
            Location::Gcs { bucket, prefix } => (buckets::gcs(bucket, &at)?, prefix.as_str()),
        };
        Ok(Self::of(objects, Path::from(prefix), &at))
    }

    /// Creates a ledger in these objects below a path.
    pub(crate) fn of(objects: Arc<dyn ObjectStore>, root: Path, shown: &str) -> Self {
        Self { objects, root, shown: shown.into() }
    }

    /// Returns its location, for messages.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the folder of a day's rows.
    pub(crate) fn folder(&self, day: Date) -> Path {
        self.root.clone().join(VERSION).join(format!("{DAY}{day}"))
    }

    /// Returns the days that have rows. Folders with other names are not of the ledger.
    pub async fn days(&self) -> Result<BTreeSet<Date>, ReadError> {
        let version = self.root.clone().join(VERSION);
        let listed = self.objects.list_with_delimiter(Some(&version)).await;
        let listed = listed.map_err(|source| self.failed("the list of days", source))?;
        let day = |path: &Path| -> Option<Date> { path.filename()?.strip_prefix(DAY)?.parse().ok() };
        Ok(listed.common_prefixes.iter().filter_map(day).collect())
    }

    /// Returns the rows of the days from `first` to `last`, as they lie in the files, by the time of writing within a day. Few of them are
    /// in memory at a time.
    pub fn rows(&self, first: Date, last: Date) -> BoxStream<'static, Result<Read, ReadError>> {
        let days = first.series(jiff::Span::new().days(1)).take_while(move |day| *day <= last);
        let (lister, opener) = (self.clone(), self.clone());
        stream::iter(days)
            .then(move |day| {
                let this = lister.clone();
                async move { this.files(day).await }
            })
            .map_ok(|files| stream::iter(files.into_iter().map(Ok::<_, ReadError>)))
            .try_flatten()
            .map_ok(move |file| opener.clone().read(file))
            .try_buffered(AT_A_TIME)
            .try_flatten()
            .boxed()
    }

    /// Returns the files of a day, by name: the time of writing begins it.
    async fn files(&self, day: Date) -> Result<Vec<Path>, ReadError> {
        let failed = |source| self.failed(format!("the folder of {day}"), source);
        let listed: Vec<ObjectMeta> =
            self.objects.list(Some(&self.folder(day))).try_collect().await.map_err(failed)?;
        let mut files: Vec<Path> = listed.into_iter().map(|object| object.location).collect();
        files.retain(|file| file.filename().is_some_and(|name| name.ends_with(ENDING)));
        files.sort();
        Ok(files)
    }

    /// Opens a file.
    async fn read(self, file: Path) -> Result<BoxStream<'static, Result<Read, ReadError>>, ReadError> {
        let found = self.objects.get(&file).await.map_err(|source| self.failed(&file, source))?;
        let read = lines(found.into_stream()).enumerate().map(move |(at, line)| match line {
            Ok(line) => Ok(parsed(&file, at + 1, &line)),
            Err(source) => Err(self.failed(&file, source)),
        });
        Ok(read.boxed())
    }

    fn failed(&self, what: impl fmt::Display, source: object_store::Error) -> ReadError {
        ReadError { what: what.to_string(), at: self.shown.clone(), source }
    }
}

/// Opens a directory, and creates it first if it does not exist.
fn directory(path: &std::path::Path, at: &str) -> Result<Arc<dyn ObjectStore>, OpenError> {
    let failed = |source| OpenError::Directory { at: at.to_owned(), source };
    std::fs::create_dir_all(path).map_err(failed)?;
    let files = LocalFileSystem::new_with_prefix(path);
    let files = files.map_err(|source| OpenError::Bucket { at: at.to_owned(), source })?;
    // A row that counts as written survives a loss of power, as in a bucket.
    Ok(Arc::new(files.with_fsync(true)))
}

fn parsed(file: &Path, line: usize, text: &[u8]) -> Read {
    match serde_json::from_slice(text) {
        Ok(row) => Read::Row(row),
        Err(error) => Read::Unreadable(BadLine { file: file.to_string(), line, why: error.to_string() }),
    }
}
