//! The loop that keeps the ledger: what each instance cost from when to when, and which pods held which share of it.
//!
//! Only the leader writes. It looks every ten seconds if something has changed, and writes once a minute. Rows wait in memory while the
//! ledger cannot be written. No other loop waits for this one.
//!
//! - `sight`: what a snapshot shows of instances and pods.
//! - `thing`: an instance or a pod during one span.
//! - `recorder`: what has been seen, as spans.
//! - `resume`: what the ledger tells a new leader.

mod recorder;
mod resume;
mod sight;
#[cfg(test)]
mod tests;
mod thing;

use std::time::Duration;

use futures::TryStreamExt;
use jiff::civil::Date;
use k8s_openapi::api::core::v1::Namespace;
use poolwright_ledger::{Appender, Read, Store};
use poolwright_report::ledger::row::Row;
use tokio::time::timeout;
use tracing::{error, info, warn};

use super::leader_loop::LeaderLoop;
use crate::edge::causes::causes;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;
use crate::leader::LeaderTerm;

use recorder::Recorder;
use resume::Resume;

/// How often rows are written, and the most that a crash loses.
const PERIOD: Duration = Duration::from_mins(1);
/// How long one batch of rows may take to be written.
const WRITE_LIMIT: Duration = Duration::from_secs(20);
/// How long the last days may take to be read.
const READ_LIMIT: Duration = Duration::from_mins(5);
/// The pause before the ledger is read again after a failure.
const AGAIN: Duration = Duration::from_secs(30);
/// The most rows of ended spans that wait to be written: about 100 MiB.
const MOST_WAITING: usize = 100_000;
/// How many days with rows of any cluster are searched for those of this one.
const DAYS: usize = 7;
/// The namespace whose UID is the cluster's id. Every cluster has it, and it is never deleted.
const SYSTEM: &str = "kube-system";

/// The loop that keeps the ledger.
pub struct KeepLedger {
    context: Context,
    appender: Appender,
    recorder: Option<Recorder>,
    /// Rows that an earlier term did not write.
    unwritten: Vec<Row>,
    /// When to read or write next, on the monotonic clock.
    next_try: Duration,
    /// Whether the last attempt to read or write failed.
    is_failing: bool,
}

impl KeepLedger {
    /// Creates a loop that writes to this ledger with this identity.
    pub fn new(store: Store, identity: &str, context: Context) -> Self {
        let appender = Appender::new(store, identity, context.clock.now());
        let (next_try, unwritten) = (Duration::ZERO, Vec::new());
        Self { context, appender, recorder: None, unwritten, next_try, is_failing: false }
    }

    /// Notes a failure, and says what it means and what to do.
    fn fail(&mut self, call: &'static str, why: &str) {
        self.context.metrics.ledger_failures.with_label_values(&[call]).inc();
        self.is_failing = true;
        let at = self.appender.store().shown();
        if call == "read" {
            warn!(
                at,
                why,
                "the ledger cannot be continued; it is tried again in {AGAIN:?}, and what starts and ends before that is missing from it"
            );
        } else {
            let rows = self.recorder.as_ref().map_or(0, Recorder::waiting);
            warn!(
                at,
                why,
                rows,
                "the ledger was not written; its rows wait in memory, {MOST_WAITING} of ended spans at most, and are written in the next minute that it can be"
            );
        }
    }

    /// Notes a success.
    fn succeed(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            info!(at = self.appender.store().shown(), "the ledger can be read and written again");
        }
    }

    /// Reads what the ledger tells of this cluster, and continues it.
    async fn resume(&mut self) -> Result<Recorder, String> {
        let namespaces = self.context.reader.all::<Namespace>();
        let system = namespaces.get(SYSTEM).await.map_err(|error| {
            format!("the namespace {SYSTEM}, whose UID names the cluster, cannot be read: {}", causes(&error))
        })?;
        let uid = system.and_then(|system| system.metadata.uid);
        let cluster =
            uid.ok_or_else(|| format!("there is no namespace {SYSTEM}, whose UID names the cluster"))?;
        let read = last_days(self.appender.store(), &cluster);
        let read = timeout(READ_LIMIT, read).await;
        let mut resume = read.unwrap_or_else(|_| Err(format!("it was not read within {READ_LIMIT:?}")))?;
        for row in &self.unwritten {
            resume.add(row.clone());
        }
        let mut recorder = Recorder::new(cluster, resume, MOST_WAITING, self.context.clock.now());
        recorder.keep(std::mem::take(&mut self.unwritten));
        Ok(recorder)
    }

    /// Looks at everything there is, and records it.
    fn observe(&mut self) {
        let Self { context, recorder: Some(recorder), .. } = self else { return };
        // The time is read first: what is seen later existed then, or begins with its own time.
        let (now, snapshot) = (context.clock.now(), context.world.snapshot());
        let seen = sight::seen(&snapshot, recorder.cluster(), |node| context.world.birth_of_node(node));
        recorder.observe(seen.sightings, seen.replaced, now);
        let lost = recorder.take_lost();
        context.metrics.ledger_rows_waiting.set(i64::try_from(recorder.waiting()).unwrap_or(i64::MAX));
        if lost > 0 {
            context.metrics.ledger_rows_lost.inc_by(lost);
            error!(
                at = self.appender.store().shown(),
                lost,
                "rows of the ledger are lost, because {MOST_WAITING} wait and it cannot be written: bills for their days are too low; make it writable"
            );
        }
    }

    /// Writes the rows that wait.
    async fn write(&mut self) {
        while let Some(recorder) = &mut self.recorder {
            let batch = recorder.batch(self.appender.writer());
            let (appender, now, rows) = (&mut self.appender, self.context.clock.now(), batch.rows.as_slice());
            let append = async |_: &_| appender.append(now, rows).await;
            let written = self.context.writer.write("ledger", WRITE_LIMIT, append).await;
            if let Err(error) = written {
                self.fail("write", &causes(&error));
                return;
            }
            recorder.written(&batch);
            let metrics = &self.context.metrics;
            metrics.ledger_rows_written.inc_by(batch.rows.len() as u64);
            metrics.ledger_rows_waiting.set(i64::try_from(recorder.waiting()).unwrap_or(i64::MAX));
            metrics.ledger_last_success.set(now.as_second());
            self.succeed();
            if batch.is_last {
                return;
            }
        }
    }
}

/// Reads the rows of a cluster on the last two days that have some. Spans never cross midnight, so those that have not ended are
/// there. Other clusters may have written later.
async fn last_days(store: &Store, cluster: &str) -> Result<Resume, String> {
    let days = store.days().await.map_err(|error| causes(&error))?;
    let last: Vec<Date> = days.into_iter().rev().take(DAYS).collect();
    let (mut resume, mut found) = (Resume::new(cluster), 0);
    for day in last {
        let before = resume.rows();
        let mut rows = store.rows(day, day);
        while let Some(read) = rows.try_next().await.map_err(|error| causes(&error))? {
            match read {
                Read::Row(row) => resume.add(row),
                Read::Unreadable(line) => {
                    warn!(at = store.shown(), %line, "a line of the ledger cannot be read and does not count; was it written by a later version?");
                }
            }
        }
        found += usize::from(resume.rows() > before);
        if found == 2 {
            break;
        }
    }
    Ok(resume)
}

impl LeaderLoop for KeepLedger {
    const NAME: &'static str = "the ledger";
    const PAUSE: Duration = Duration::from_secs(10);

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    fn begin(&mut self, _: LeaderTerm) {
        // Another leader may have written since.
        if let Some(recorder) = self.recorder.take() {
            self.unwritten.extend(recorder.unwritten());
        }
        self.next_try = Duration::ZERO;
    }

    async fn look(&mut self) -> Option<Duration> {
        let now = self.context.clock.monotonic();
        if self.recorder.is_none() && self.next_try <= now {
            match self.resume().await {
                Ok(recorder) => {
                    self.recorder = Some(recorder);
                    self.succeed();
                }
                Err(why) => {
                    self.fail("read", &why);
                    self.next_try = now.saturating_add(AGAIN);
                }
            }
        }
        self.observe();
        if self.recorder.is_some() && self.next_try <= now {
            self.write().await;
            self.next_try = now.saturating_add(PERIOD);
        }
        // The pause comes first.
        Some(self.next_try.saturating_sub(self.context.clock.monotonic()).saturating_sub(Self::PAUSE))
    }
}
