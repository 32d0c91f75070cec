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
use crate::edge::events::Events;
use crate::edge::signal::Sender;
use crate::executor::context::testing::leading;
use crate::fake_api::FakeApi;
use crate::leader::{LeaderTerm, LeaseSettings};
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
        let lease = LeaseSettings::new(name, "poolwright");
        Self { keep: KeepLedger::new(folder.store(), &lease, context), clock: clock.clone(), leader }
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

    fn failed_reads(&self) -> u64 {
        self.keep.context.metrics.ledger_failures.with_label_values(&["read"]).get()
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

#[cfg(unix)]
#[tokio::test]
async fn what_begins_and_ends_while_the_ledger_cannot_be_read_is_written_later() {
    let (folder, clock) = (Folder::new("later"), Arc::new(TestClock::new()));
    let mut replica = Replica::new("a", &folder, &clock);
    // A folder in itself cannot be listed.
    let (version, link) = (folder.0.join("v1"), folder.0.join("v1/loop"));
    fs::create_dir(&version).expect("a folder");
    std::os::unix::fs::symlink(&version, &link).expect("a link");
    replica.put(launched());
    let short =
        Claim { name: ClaimName("gpu-2".into()), uid: poolwright_core::Uid("short".into()), ..launched() };
    replica.put(short.clone());
    replica.keep.look().await;
    replica.look_after(MINUTE).await;
    replica.remove(&short.name);
    replica.look_after(MINUTE).await;
    assert_eq!((replica.failed_reads(), replica.figures().0), (3, 0));
    fs::remove_file(link).expect("it is there");
    replica.look_after(MINUTE).await;
    assert_eq!(folder.ledger().await.money(), 5_000_000 * (3 + 2) * 60_000);
}

#[tokio::test]
async fn two_controllers_on_one_ledger_count_nothing_twice() {
    let (folder, clock) = (Folder::new("two"), Arc::new(TestClock::new()));
    let mut both = ["a", "b"].map(|name| Replica::new(name, &folder, &clock));
    for one in &mut both {
        one.put(launched());
        one.keep.look().await;
    }
    for _ in 0..5 {
        for one in &mut both {
            one.look_after(MINUTE / 2).await;
        }
    }
    for one in &mut both {
        one.remove(&launched().name);
        one.look_after(MINUTE / 2).await;
    }
    assert_eq!(folder.ledger().await.money(), 5_000_000 * 6 * 60_000);
}

#[tokio::test]
async fn a_clock_that_jumps_far_ahead_and_back_writes_nothing_into_later_days_and_the_leader_says_so() {
    let (folder, clock) = (Folder::new("jump"), Arc::new(TestClock::new()));
    let mut replica = Replica::new("a", &folder, &clock);
    let (events, mut queue) = Events::new(clock.clone(), replica.keep.context.metrics.clone());
    replica.keep.context.events = events;
    replica.put(launched());
    replica.keep.look().await;
    clock.advance_wall(MINUTE * 60 * 30);
    replica.look_after(MINUTE).await;
    clock.set_back(MINUTE * 60 * 30);
    replica.look_after(MINUTE).await;
    assert_eq!(folder.store().days().await.expect("it can be listed").len(), 1);
    assert_eq!(folder.ledger().await.money(), 5_000_000 * 2 * 60_000);
    let told = queue.recv().await.expect("an event").message;
    assert!(told.starts_with("The clock of the leader jumped."), "{told}");
}

#[tokio::test]
async fn a_leader_that_stops_writes_once_more_but_only_in_its_own_term() {
    let (folder, clock) = (Folder::new("stops"), Arc::new(TestClock::new()));
    let mut replica = Replica::new("a", &folder, &clock);
    replica.put(launched());
    let term = LeaderTerm { expires: clock.moment().after(MINUTE), number: 1 };
    replica.leader.replace(Some(term));
    replica.keep.begin(term);
    replica.keep.look().await;
    clock.advance(MINUTE / 2);
    replica.keep.end(LeaderTerm { number: 2, ..term }).await;
    assert_eq!(folder.ledger().await.money(), 0);
    replica.keep.end(term).await;
    assert_eq!(folder.ledger().await.money(), 5_000_000 * 30_000);
}

#[tokio::test]
async fn a_failure_is_an_event_on_the_lease_that_names_the_ledger() {
    let (folder, clock) = (Folder::new("event"), Arc::new(TestClock::new()));
    let mut replica = Replica::new("a", &folder, &clock);
    let (events, mut queue) = Events::new(clock.clone(), replica.keep.context.metrics.clone());
    replica.keep.context.events = events;
    fs::write(folder.0.join("v1"), "").expect("a file");
    replica.keep.look().await;
    let event = queue.recv().await.expect("an event");
    assert_eq!(
        (event.about.kind.as_deref(), event.about.namespace.as_deref()),
        (Some("Lease"), Some("poolwright"))
    );
    assert_eq!(event.reason.name, "LedgerNotKept");
    let place = folder.0.display().to_string();
    assert!(
        event.message.starts_with(&format!("The ledger {place} cannot be written.")),
        "{}",
        event.message
    );
}

#[tokio::test]
async fn a_leader_that_leads_again_writes_what_it_could_not_write_before() {
    let (folder, clock) = (Folder::new("again"), Arc::new(TestClock::new()));
    let mut replica = Replica::new("a", &folder, &clock);
    replica.put(launched());
    replica.keep.look().await;
    let (version, aside) = (folder.0.join("v1"), folder.0.join("aside"));
    fs::rename(&version, &aside).expect("a folder");
    fs::write(&version, "").expect("a file");
    replica.remove(&launched().name);
    replica.look_after(MINUTE).await;
    assert_eq!(replica.figures().2, 1);
    fs::remove_file(&version).expect("it is there");
    fs::rename(&aside, &version).expect("a folder");
    replica.keep.begin(LeaderTerm { expires: clock.moment().after(MINUTE), number: 2 });
    replica.look_after(MINUTE * 60).await;
    let ledger = folder.ledger().await;
    assert_eq!(ledger.money(), 5_000_000 * 60_000);
    assert!(ledger.spans().values().filter_map(|row| span(row)).all(|span| !span.estimated));
}
