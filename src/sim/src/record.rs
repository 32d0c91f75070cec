//! The log of a world, line by line. The same seed writes the same bytes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::dice::{DIGEST, digest};
use crate::time::Time;

/// The number of lines kept by default.
const LAST: usize = 200;

/// The log of one world. Clones write to the same log.
#[derive(Clone, Debug)]
pub struct Record {
    inner: Arc<Mutex<Inner>>,
    time: Time,
}

#[derive(Debug)]
struct Inner {
    lines: VecDeque<String>,
    keep_all: bool,
    count: u64,
    digest: u64,
}

/// A finished log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The last lines, or all of them.
    pub lines: Vec<String>,
    /// The number of lines written.
    pub count: u64,
    /// A digest of all lines (FNV-1a), to compare runs.
    pub digest: u64,
}

impl Record {
    /// Makes an empty log. It keeps the last lines, or all if `keep_all`.
    pub fn new(time: Time, keep_all: bool) -> Self {
        let inner = Inner { lines: VecDeque::new(), keep_all, count: 0, digest: DIGEST };
        Self { inner: Arc::new(Mutex::new(inner)), time }
    }

    /// Writes a line.
    pub fn say(&self, line: impl fmt::Display) {
        let elapsed = self.time.elapsed();
        let (seconds, millis) = (elapsed.as_secs(), elapsed.subsec_millis());
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let line = format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03} {line}");
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.count += 1;
        inner.digest = digest(inner.digest, line.bytes().chain(*b"\n"));
        inner.lines.push_back(line);
        if !inner.keep_all && inner.lines.len() > LAST {
            inner.lines.pop_front();
        }
    }

    /// Returns the log so far.
    pub fn close(&self) -> Closed {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Closed { lines: inner.lines.iter().cloned().collect(), count: inner.count, digest: inner.digest }
    }
}
