use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use jiff::tz::TimeZone;
use poolwright_core::{Claim, ClaimName};
use poolwright_ledger::{Location, Read, Store};
use serde_json::json;

use super::super::KeepLedger;
use super::look::claim;
use super::*;
use crate::edge::clock::testing::TestClock;
use crate::edge::clock::{Clock, SharedClock};
use crate::edge::signal::Sender;
use crate::executor::context::testing::leading;
use crate::fake_api::FakeApi;
use crate::leader::LeaderTerm;
use crate::loops::leader_loop::LeaderLoop;

const MINUTE: Duration = Duration::from_mins(1);

/// A directory of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("poolwright-ledger-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn store(&self) -> Store {
        Store::open(&Location::Directory(self.0.clone())).expect("a directory")
    }

    async fn ledger(&self) -> Ledger {
        let day = TestClock::new().now().to_zoned(TimeZone::UTC).date();
        let read: Vec<Read> = self.store().rows(day, day).try_collect().await.expect("it can be read");
        let rows = read.into_iter().map(|one| match one {
            Read::Row(row) => row,
            Read::Unreadable(line) => panic!("{line}"),
        });
        Ledger(rows.collect())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A replica that leads.
struct Replica {
    keep: KeepLedger,
    clock: Arc<TestClock>,
    leader: Sender<Option<LeaderTerm>>,
}

impl Replica {
    fn new(name: &str, folder: &Folder, clock: &Arc<TestClock>) -> Self {
        let api = FakeApi::default();
        let system = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "kube-system", "uid": CLUSTER}});
        api.put("/api/v1/namespaces/kube-system", system);
        let shared: SharedClock = clock.clone();
        let (context, leader) = leading(&api, &shared, Vec::new());
        Self { keep: KeepLedger::new(folder.store(), name, context), clock: clock.clone(), leader }
    }

    fn put(&self, claim: Claim) {
        self.keep.context.world.change(|state| state.index.apply_claim(claim));
    }

    fn remove(&self, name: &ClaimName) {
        self.keep.context.world.change(|state| state.index.delete_claim(name));
    }

    /// Looks after this time.
    async fn look_after(&mut self, time: Duration) {
        self.clock.advance(time);
        let expires = self.clock.moment().after(MINUTE);
        self.leader.replace(Some(LeaderTerm { expires, number: 1 }));
        self.keep.look().await;
    }

    fn figures(&self) -> (u64, i64, u64) {
        let metrics = &self.keep.context.metrics;
        let failures = metrics.ledger_failures.with_label_values(&["write"]).get();
        (metrics.ledger_rows_written.get(), metrics.ledger_rows_waiting.get(), failures)
    }
}

/// A claim whose instance was launched when the test's clock starts.
fn launched() -> Claim {
    Claim { conditions: [].into(), created: TestClock::new().now(), ..claim() }
}

#[tokio::test]
async fn rows_wait_while_the_ledger_cannot_be_written_and_nothing_is_lost() {
    let (folder, clock) = (Folder::new("full"), Arc::new(TestClock::new()));
    let mut replica = Replica::new("a", &folder, &clock);
    replica.put(launched());
    // Nothing can be written below a file.
    fs::write(folder.0.join("v1"), "").expect("a file");
    replica.keep.look().await;
    replica.look_after(MINUTE).await;
    assert_eq!(replica.figures(), (0, 1, 2));
    replica.remove(&launched().name);
    replica.look_after(MINUTE).await;
    fs::remove_file(folder.0.join("v1")).expect("it is there");
    replica.look_after(MINUTE).await;
    let (written, waiting, _) = replica.figures();
    assert_eq!((written, waiting), (2, 0), "the instance and the sign of life");
    // The claim was bought at 5 dollars an hour.
    assert_eq!(folder.ledger().await.money(), 5_000_000 * 2 * 60_000);
    let since = replica.keep.context.metrics.ledger_last_success.get();
    assert_eq!(since, clock.now().as_second());
}

#[tokio::test]
async fn the_next_leader_continues_the_spans_and_ends_what_is_gone() {
    let (folder, clock) = (Folder::new("next"), Arc::new(TestClock::new()));
    let mut first = Replica::new("a", &folder, &clock);
    first.put(launched());
    let other =
        Claim { name: ClaimName("gpu-2".into()), uid: poolwright_core::Uid("other".into()), ..launched() };
    first.put(other);
    first.keep.look().await;
    first.look_after(MINUTE).await;
    let mut next = Replica::new("b", &folder, &clock);
    next.put(launched());
    next.look_after(MINUTE * 9).await;
    let ledger = folder.ledger().await;
    assert_eq!(ledger.money(), 5_000_000 * (10 + 1) * 60_000);
    let estimated: Vec<bool> = ledger.spans().values().filter_map(|row| Some(span(row)?.estimated)).collect();
    assert_eq!(estimated, [false, true]);
    let alive = ledger.0.iter().filter_map(|row| match row {
        Row::Alive(row) => row.writer.split('-').next(),
        _ => None,
    });
    assert_eq!(alive.collect::<Vec<_>>(), ["a", "a", "b"]);
}

#[tokio::test]
async fn a_leader_that_cannot_read_the_ledger_writes_nothing() {
    let (folder, clock) = (Folder::new("unread"), Arc::new(TestClock::new()));
    let mut replica = Replica::new("a", &folder, &clock);
    replica.put(launched());
    let context = &replica.keep.context;
    let (failures, unnamed) = (context.metrics.ledger_failures.clone(), FakeApi::default());
    let shared: SharedClock = clock.clone();
    replica.keep.context.reader = leading(&unnamed, &shared, Vec::new()).0.reader;
    replica.keep.look().await;
    assert_eq!((failures.with_label_values(&["read"]).get(), folder.ledger().await.0.len()), (1, 0));
    // It tries again only after a while.
    replica.keep.look().await;
    assert_eq!(failures.with_label_values(&["read"]).get(), 1);
}
