//! The writer of a ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use object_store::{ObjectStore, PutMode};
use poolwright_report::ledger::row::Row;

use crate::store::{ENDING, Store};

/// The most rows of one file: about five megabytes.
const ROWS_OF_A_FILE: usize = 10_000;

/// Appends rows to a ledger, each time as new files.
#[derive(Debug)]
pub struct Appender {
    store: Store,
    writer: Arc<str>,
    /// The number of the next file. No name is used twice, even if it is unknown whether a file was written.
    next: u64,
}

/// Why rows were not written. Some of them may have been.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A row has no JSON.
    #[error("a row cannot be written as JSON; this is a bug")]
    Json(#[from] serde_json::Error),
    /// The file was not written.
    #[error(
        "{file} was not written to the ledger {at}; check its room and that the credentials may write there"
    )]
    Put {
        /// The file.
        file: String,
        /// The ledger.
        at: String,
        /// The cause.
        #[source]
        source: object_store::Error,
    },
}

/// Returns the day in UTC to which a row belongs: that of the start of its span, or of the sign of life.
fn day_of(row: &Row) -> Date {
    let time = match row {
        Row::Instance(row) => row.span.from,
        Row::Pod(row) => row.span.from,
        Row::Alive(row) => row.seen,
    };
    time.to_zoned(TimeZone::UTC).date()
}

/// Returns a name with only what every file system and bucket takes.
fn safe(identity: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    // The end of a pod's name differs between replicas.
    let skipped = identity.chars().count().saturating_sub(40);
    identity.chars().skip(skipped).map(letter).collect()
}

impl Appender {
    /// Creates a writer with this identity, which started at this time.
    pub fn new(store: Store, identity: &str, started: Timestamp) -> Self {
        let writer = format!("{}-{}", safe(identity), started.as_millisecond()).into();
        Self { store, writer, next: 0 }
    }

    /// Returns the name of the writer, which no other has.
    pub fn writer(&self) -> &Arc<str> {
        &self.writer
    }

    /// Returns the ledger.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Writes rows, at this time. Rows of earlier days are written first, and those of one day in their order. So a sign of life at the
    /// end never vouches for rows that are missing.
    pub async fn append(&mut self, now: Timestamp, rows: &[Row]) -> Result<(), WriteError> {
        let mut days: BTreeMap<Date, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            days.entry(day_of(row)).or_default().push(row);
        }
        for (day, rows) in days {
            for rows in rows.chunks(ROWS_OF_A_FILE) {
                self.put(now, day, rows).await?;
            }
        }
        Ok(())
    }

    async fn put(&mut self, now: Timestamp, day: Date, rows: &[&Row]) -> Result<(), WriteError> {
        let mut text = Vec::new();
        for row in rows {
            serde_json::to_writer(&mut text, row)?;
            text.push(b'\n');
        }
        let time = now.to_zoned(TimeZone::UTC).strftime("%H%M%S").to_string();
        let name = format!("{time}-{}-{}{ENDING}", self.writer, self.next);
        self.next += 1;
        let file = self.store.folder(day).join(name);
        // Two writers never have one name. If they had, the second would be told.
        let put = self.store.objects.put_opts(&file, text.into(), PutMode::Create.into()).await;
        put.map(drop).map_err(|source| WriteError::Put {
            file: file.to_string(),
            at: self.store.shown().to_owned(),
            source,
        })
    }
}
