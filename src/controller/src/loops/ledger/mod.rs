//! The loop that keeps the ledger: what each instance cost from when to when, and which pods held which share of it.
//!
//! Only the leader writes. It looks every ten seconds if something has changed, and writes once a minute. Rows wait in memory while the
//! ledger cannot be written. No other loop waits for this one.
//!
//! - `sight`: what a snapshot shows of instances and pods.
//! - `thing`: an instance or a pod during one span.
//! - `recorder`: what has been seen, as spans.
//! - `resume`: what the ledger tells a new leader.
//! - `steady`: the time that rows tell.

mod recorder;
mod resume;
mod sight;
mod steady;
#[cfg(test)]
mod tests;
mod thing;

use std::time::Duration;

use futures::TryStreamExt;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use k8s_openapi::api::core::v1::{Namespace, ObjectReference};
use poolwright_core::EventType;
use poolwright_ledger::{Appender, Read, Store};
use poolwright_terms::Reason;
use tokio::time::timeout;
use tracing::{error, info, warn};

use super::leader_loop::LeaderLoop;
use crate::edge::causes::causes;
use crate::edge::events::QueuedEvent;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;
use crate::leader::writer::WriteError;
use crate::leader::{LeaderTerm, LeaseSettings};

use recorder::{GAP, Recorder};
use resume::Resume;
use steady::{BELIEVED_AFTER, SKEW, SteadyTime};

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
/// The most lines of the ledger that cannot be read of which the log tells. The others are counted.
const LINES_TOLD: usize = 3;
/// The namespace whose UID is the cluster's id. Every cluster has it, and it is never deleted.
const SYSTEM: &str = "kube-system";

/// The loop that keeps the ledger.
pub struct KeepLedger {
    context: Context,
    appender: Appender,
    /// The Lease, which has the events about the ledger.
    lease: ObjectReference,
    /// What has been seen; `None` before the id of the cluster is known.
    recorder: Option<Recorder>,
    /// Whether the recorder continues the ledger. Before the ledger is read, it only remembers what is seen.
    is_resumed: bool,
    /// The recorder of an earlier term, with the rows that it did not write.
    before: Option<Recorder>,
    term: Option<u64>,
    steady: SteadyTime,
    /// When to read or write next, on the monotonic clock.
    next_try: Duration,
    /// Whether the last attempt to read or write failed.
    is_failing: bool,
}

impl KeepLedger {
    /// Creates a loop that writes to this ledger as the holder of this Lease.
    pub fn new(store: Store, lease: &LeaseSettings, context: Context) -> Self {
        let appender = Appender::new(store, &lease.identity, context.clock.now());
        let lease = ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            namespace: Some(lease.namespace.clone()),
            name: Some(lease.name.clone()),
            ..Default::default()
        };
        Self {
            context,
            appender,
            lease,
            recorder: None,
            is_resumed: false,
            before: None,
            term: None,
            steady: SteadyTime::default(),
            next_try: Duration::ZERO,
            is_failing: false,
        }
    }

    /// Records an event about the ledger. One with the same message is repeated every half an hour.
    fn tell(&self, message: String) {
        self.context.events.record(QueuedEvent {
            about: self.lease.clone(),
            kind: EventType::Warning,
            reason: Reason::LedgerNotKept.into(),
            message,
            story: None,
        });
    }

    /// Notes a failure, and says what it means and what to do.
    fn fail(&mut self, call: &'static str, why: &str) {
        self.context.metrics.ledger_failures.with_label_values(&[call]).inc();
        self.is_failing = true;
        let at = self.appender.store().shown();
        let rows = self.recorder.as_ref().map_or(0, Recorder::waiting);
        if call == "read" {
            warn!(
                at,
                why,
                rows,
                "the ledger cannot be continued, because it was not read; what is seen meanwhile waits in memory, and the ledger is read again in {AGAIN:?}"
            );
        } else {
            warn!(
                at,
                why,
                rows,
                "the ledger was not written; its rows wait in memory, {MOST_WAITING} of ended spans at most, and are written in the next minute that it can be"
            );
        }
        // The cause names a file of its own in each attempt, so the log has it.
        let done = if call == "read" { "read" } else { "written" };
        self.tell(format!(
            "The ledger {at} cannot be {done}. Its rows wait in memory, {MOST_WAITING} of ended spans at most. The log says why: check its room and \
             the credentials."
        ));
    }

    /// Notes a success.
    fn succeed(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            info!(at = self.appender.store().shown(), "the ledger can be read and written again");
        }
    }

    /// Returns the time that counts. `witness` is the latest time that another machine has written.
    fn time(&mut self, witness: Option<Timestamp>) -> Timestamp {
        let was_doubted = self.steady.is_doubted();
        let time = self.steady.at(self.context.clock.moment(), witness);
        if !was_doubted && self.steady.is_doubted() {
            let message = format!(
                "The clock of the leader jumped. The ledger goes on with the time {time}, and believes the clock if it stays so for \
                 {BELIEVED_AFTER:?}. Check the time of its node."
            );
            warn!("{message}");
            self.tell(message);
        }
        time
    }

    /// Begins to record.
    async fn start(&mut self) -> Result<(), String> {
        let namespaces = self.context.reader.all::<Namespace>();
        let system = namespaces.get(SYSTEM).await.map_err(|error| {
            format!("the namespace {SYSTEM}, whose UID names the cluster, cannot be read: {}", causes(&error))
        })?;
        let uid = system.and_then(|system| system.metadata.uid);
        let cluster =
            uid.ok_or_else(|| format!("there is no namespace {SYSTEM}, whose UID names the cluster"))?;
        let now = self.time(None);
        let nothing = Resume::new(&cluster);
        self.recorder = Some(Recorder::new(cluster, nothing, MOST_WAITING, now));
        Ok(())
    }

    /// Reads what the ledger tells of this cluster, and continues it.
    async fn resume(&mut self) -> Result<(), String> {
        let Some(cluster) = self.recorder.as_ref().map(|recorder| recorder.cluster().to_owned()) else {
            return Ok(());
        };
        let now = self.time(None);
        let read = timeout(READ_LIMIT, last_days(self.appender.store(), &cluster, now)).await;
        let resume = read.unwrap_or_else(|_| {
            Err(format!(
                "it was not read within {READ_LIMIT:?}; if many clusters share it, give each a prefix of its own"
            ))
        })?;
        let now = self.time(resume.seen());
        let is_ours = resume.is_last(self.appender.writer());
        let mut recorder = match self.before.take() {
            // Nobody has written since.
            Some(before) if is_ours => before,
            before => {
                let mut recorder = Recorder::new(cluster, resume, MOST_WAITING, now);
                if let Some(before) = before {
                    recorder.adopt(before);
                }
                recorder
            }
        };
        if let Some(meanwhile) = self.recorder.take() {
            recorder.adopt(meanwhile);
        }
        (self.recorder, self.is_resumed) = (Some(recorder), true);
        Ok(())
    }

    /// Looks at everything there is, and records it.
    fn observe(&mut self) {
        let Some(cluster) = self.recorder.as_ref().map(|recorder| recorder.cluster().to_owned()) else {
            return;
        };
        let snapshot = self.context.world.snapshot();
        let seen = sight::seen(&snapshot, &cluster, |node| self.context.world.birth_of_node(node));
        let now = self.time(seen.witness);
        let Self { context, recorder: Some(recorder), .. } = self else { return };
        recorder.observe(seen.sightings, seen.replaced, now);
        let lost = recorder.take_lost();
        context.metrics.ledger_rows_waiting.set(i64::try_from(recorder.waiting()).unwrap_or(i64::MAX));
        if lost > 0 {
            context.metrics.ledger_rows_lost.inc_by(lost);
            error!(
                at = self.appender.store().shown(),
                lost,
                "rows of the ledger are lost, because more than {MOST_WAITING} waited to be written: bills for their days are too low; make it writable"
            );
            self.tell(format!(
                "The ledger {} lacks rows, because more than {MOST_WAITING} waited to be written. Bills for their days are too low. Make it writable.",
                self.appender.store().shown()
            ));
        }
    }

    /// Writes the rows that wait.
    async fn write(&mut self) {
        while let Some(recorder) = &mut self.recorder {
            let batch = recorder.batch(self.appender.writer());
            let (appender, now, rows) = (&mut self.appender, recorder.now(), batch.rows.as_slice());
            let append = async |_: &_| appender.append(now, rows).await;
            let written = self.context.writer.write("ledger", WRITE_LIMIT, append).await;
            match written {
                Ok(()) => recorder.written(&batch),
                // The next leader continues. It is no fault of the ledger.
                Err(WriteError::NotLeading) => return,
                Err(error) => {
                    self.fail("write", &causes(&error));
                    return;
                }
            }
            let metrics = &self.context.metrics;
            metrics.ledger_rows_written.inc_by(batch.rows.len() as u64);
            metrics.ledger_rows_waiting.set(i64::try_from(recorder.waiting()).unwrap_or(i64::MAX));
            metrics.ledger_last_success.set(self.context.clock.now().as_second());
            self.succeed();
            if batch.is_last {
                return;
            }
        }
    }
}

/// Reads the rows of a cluster on the last two days that have some. Spans never cross midnight, so those that have not ended are
/// there. Other clusters may have written later. Days in the future are of a clock that was wrong.
async fn last_days(store: &Store, cluster: &str, now: Timestamp) -> Result<Resume, String> {
    let today = now.checked_add(SKEW).unwrap_or(now).to_zoned(TimeZone::UTC).date();
    let (days, later): (Vec<Date>, Vec<Date>) =
        store.days().await.map_err(|error| causes(&error))?.into_iter().partition(|day| *day <= today);
    if let Some(first) = later.first() {
        warn!(at = store.shown(), %first, "the ledger has days in the future, which do not count; was a clock wrong?");
    }
    let last: Vec<Date> = days.into_iter().rev().take(DAYS).collect();
    let (mut resume, mut found) = (Resume::new(cluster), 0);
    let (mut unreadable, mut more) = (Vec::new(), 0_u64);
    for day in last {
        let before = resume.rows();
        let mut rows = store.rows(day, day);
        while let Some(read) = rows.try_next().await.map_err(|error| causes(&error))? {
            match read {
                Read::Row(row) => resume.add(row),
                Read::Unreadable(line) if unreadable.len() < LINES_TOLD => unreadable.push(line),
                Read::Unreadable(_) => more += 1,
            }
        }
        found += usize::from(resume.rows() > before);
        if found == 2 {
            break;
        }
    }
    for line in unreadable {
        warn!(at = store.shown(), %line, more, "a line of the ledger cannot be read and does not count; was it written by a later version?");
    }
    Ok(resume)
}

impl LeaderLoop for KeepLedger {
    const NAME: &'static str = "the ledger";
    const PAUSE: Duration = Duration::from_secs(10);

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    fn begin(&mut self, term: LeaderTerm) {
        // Another leader may have written since.
        let now = self.context.clock.now();
        if let Some(recorder) = self.recorder.take() {
            if self.is_resumed {
                self.before = Some(recorder);
            } else if now.duration_since(recorder.now()) <= GAP {
                self.recorder = Some(recorder);
            }
        }
        (self.term, self.is_resumed, self.next_try) = (Some(term.number), false, Duration::ZERO);
    }

    async fn look(&mut self) -> Option<Duration> {
        let now = self.context.clock.monotonic();
        let is_due = self.next_try <= now;
        if is_due {
            self.next_try = now.saturating_add(PERIOD);
            if self.recorder.is_none()
                && let Err(why) = self.start().await
            {
                self.fail("read", &why);
                self.next_try = now.saturating_add(AGAIN);
            }
        }
        // Also before the ledger is read, which may take long: what ends meanwhile is not missed.
        self.observe();
        if is_due && self.recorder.is_some() && !self.is_resumed {
            if let Err(why) = self.resume().await {
                self.fail("read", &why);
                self.next_try = now.saturating_add(AGAIN);
            } else {
                self.succeed();
                self.observe();
            }
        }
        if is_due && self.is_resumed {
            self.write().await;
        }
        // The pause comes first.
        Some(self.next_try.saturating_sub(self.context.clock.monotonic()).saturating_sub(Self::PAUSE))
    }

    async fn end(&mut self, term: LeaderTerm) {
        // Otherwise another leader may have written since.
        if self.is_resumed && self.term == Some(term.number) {
            self.observe();
            self.write().await;
        }
    }
}
