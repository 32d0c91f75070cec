//! Tests of ledgers in a local directory, and of what DuckDB reads there.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use futures::TryStreamExt;
use jiff::Timestamp;
use jiff::civil::{Date, date};
use poolwright_report::ledger::row::{Alive, Amounts, InstanceSpan, Phase, PodSpan, Row, Span};

use crate::{Appender, Location, Read, Store};

const DAY: Date = date(2026, 11, 30);

/// A directory of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("poolwright-rows-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn store(&self) -> Store {
        Store::open(&Location::Directory(self.0.clone())).expect("a directory")
    }

    fn files(&self, day: Date) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(format!("v1/day={day}"))).expect("a folder of a day");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn span(id: &str, from: &str, to: Option<&str>, seen: &str) -> Span {
    Span {
        id: id.into(),
        cluster: "c".into(),
        from: time(from),
        to: to.map(time),
        seen: time(seen),
        continued: false,
        estimated: false,
    }
}

fn instance(span: Span, pool: Option<&str>, price: Option<u64>) -> Row {
    Row::Instance(InstanceSpan {
        uid: span.id.split('/').next().unwrap_or_default().to_owned(),
        span,
        name: "gpu-1".into(),
        instance_id: None,
        node: None,
        pool: pool.map(str::to_owned),
        provider: "cloud".into(),
        region: "r".into(),
        zone: "z".into(),
        instance_type: "gpu.large".into(),
        capacity_type: "spot".into(),
        phase: Phase::Ready,
        price_micros_per_hour: price,
        list_micros_per_hour: None,
        price_source: None,
        price_at: None,
        commitment: None,
        offers: Amounts { gpu_millis: 4000, cpu_millis: 8000, memory_bytes: 1 << 30 },
    })
}

fn pod(span: Span, labels: BTreeMap<String, String>) -> Row {
    Row::Pod(PodSpan {
        span,
        uid: "p".into(),
        instance: "a".into(),
        namespace: "ml".into(),
        name: "train-0".into(),
        workload_kind: None,
        workload: None,
        daemon: false,
        labels,
        holds: Amounts { gpu_millis: 142, cpu_millis: 500, memory_bytes: 1 << 20 },
    })
}

fn alive(seen: &str) -> Row {
    Row::Alive(Alive { cluster: "c".into(), writer: "me".into(), seen: time(seen) })
}

async fn read(store: &Store, first: Date, last: Date) -> Vec<Read> {
    store.rows(first, last).try_collect().await.expect("it can be read")
}

#[tokio::test]
async fn rows_are_read_as_they_were_written_day_by_day() {
    let folder = Folder::new("days");
    let store = folder.store();
    assert!(store.days().await.expect("it can be listed").is_empty());
    let labels = BTreeMap::from([("team".to_owned(), "ünder\"score\n".to_owned())]);
    let rows = [
        instance(
            span("a/1", "2026-11-29T22:00:00Z", Some("2026-11-30T00:00:00Z"), "2026-11-30T00:00:30Z"),
            None,
            Some(7),
        ),
        pod(span("p/a/2", "2026-11-30T00:00:00.25Z", None, "2026-11-30T00:00:30Z"), labels),
        alive("2026-11-30T00:00:30Z"),
    ];
    let mut writer = Appender::new(store.clone(), "Pod_1", time("2026-11-30T00:00:00Z"));
    writer.append(time("2026-11-30T00:00:31Z"), &rows).await.expect("it is written");
    let days = store.days().await.expect("it can be listed");
    assert_eq!(days.into_iter().collect::<Vec<_>>(), [date(2026, 11, 29), DAY]);
    assert_eq!(folder.files(date(2026, 11, 29)), ["000031-pod-1-1795996800000-0.ndjson"]);
    assert_eq!(folder.files(DAY), ["000031-pod-1-1795996800000-1.ndjson"]);
    let expected: Vec<Read> = rows.into_iter().map(Read::Row).collect();
    assert_eq!(read(&store, date(2026, 11, 1), date(2026, 12, 31)).await, expected);
    assert_eq!(read(&store, DAY, DAY).await, expected[1..]);
}

#[tokio::test]
async fn two_writers_add_files_and_replace_none() {
    let folder = Folder::new("two");
    let start = time("2026-11-30T08:00:00Z");
    let mut writers = ["a", "b"].map(|name| Appender::new(folder.store(), name, start));
    for writer in &mut writers {
        for _ in 0..2 {
            writer.append(start, &[alive("2026-11-30T08:00:00Z")]).await.expect("it is written");
        }
    }
    assert_eq!(folder.files(DAY).len(), 4);
    // If two had one name, the second would fail instead of replacing a file.
    let mut twin = Appender::new(folder.store(), "a", start);
    let error = twin.append(start, &[alive("2026-11-30T08:00:00Z")]).await.expect_err("the file exists");
    assert!(error.to_string().contains("080000-a-1796025600000-0.ndjson was not written"), "{error}");
    assert_eq!(read(&folder.store(), DAY, DAY).await.len(), 4);
}

#[tokio::test]
async fn a_line_that_is_no_row_is_told_and_the_others_are_read() {
    let folder = Folder::new("bad");
    let mut writer = Appender::new(folder.store(), "a", time("2026-11-30T08:00:00Z"));
    let rows = [alive("2026-11-30T08:00:00Z")];
    writer.append(time("2026-11-30T08:00:00Z"), &rows).await.expect("it is written");
    let bad = folder.0.join(format!("v1/day={DAY}/070000-x-0.ndjson"));
    fs::write(bad, "{\"kind\":\"later\"}\n{\"kind\":").expect("a file");
    fs::write(folder.0.join(format!("v1/day={DAY}/notes.txt")), "not ours").expect("a file");
    let lines = read(&folder.store(), DAY, DAY).await;
    let [Read::Unreadable(first), Read::Unreadable(second), Read::Row(_)] = lines.as_slice() else {
        panic!("two bad lines and a row");
    };
    assert!(
        first.to_string().starts_with("v1/day=2026-11-30/070000-x-0.ndjson:1: unknown variant"),
        "{first}"
    );
    assert_eq!(second.line, 2);
}

#[tokio::test]
async fn a_ledger_that_cannot_be_written_says_where_and_what_to_check() {
    let folder = Folder::new("full");
    let store = folder.store();
    fs::write(folder.0.join("v1"), "").expect("a file in the way");
    let mut writer = Appender::new(store, "a", time("2026-11-30T08:00:00Z"));
    let rows = [alive("2026-11-30T08:00:00Z")];
    let now = time("2026-11-30T08:00:00Z");
    let error = writer.append(now, &rows).await.expect_err("there is a file in the way").to_string();
    assert!(error.contains("check its room and that the credentials may write there"), "{error}");
    fs::remove_file(folder.0.join("v1")).expect("it is there");
    writer.append(now, &rows).await.expect("it is written");
    assert_eq!(folder.files(DAY), ["080000-a-1796025600000-1.ndjson"]);
}

/// Returns the Python that has DuckDB: `DUCKDB_PYTHON`, or the pinned one in the shared cache.
fn python() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if let Some(named) = variable("DUCKDB_PYTHON") {
        return named;
    }
    let cache = variable("POOLWRIGHT_CACHE")
        .unwrap_or_else(|| variable("HOME").expect("HOME is set").join(".cache").join("poolwright"));
    let path = cache.join("tools/duckdb-2.0.1/bin/python");
    assert!(
        path.is_file(),
        "DuckDB 2.0.1 was not found (no {}): run `python3 tests/tools.py duckdb`, which installs it once",
        path.display()
    );
    path
}

#[tokio::test]
async fn the_query_of_the_documents_sums_the_same_money_in_duckdb() {
    let folder = Folder::new("duckdb");
    let mut writer = Appender::new(folder.store(), "a", time("2026-11-30T08:00:00Z"));
    let start = "2026-11-30T08:00:00.25Z";
    let first = [
        instance(span("a/1", start, None, "2026-11-30T08:01:00Z"), Some("gpu"), Some(5_672_001)),
        instance(span("b/1", "2026-11-30T08:30:00Z", None, "2026-11-30T08:31:00Z"), None, None),
        // An old leader was still writing, and the next one did not know of the second span.
        instance(span("x/1", start, None, "2026-11-30T08:01:00Z"), Some("two"), Some(3_600_000)),
        instance(
            span("x/2", "2026-11-30T08:30:00Z", None, "2026-11-30T08:31:00Z"),
            Some("two"),
            Some(3_600_000),
        ),
        alive("2026-11-30T08:31:00Z"),
    ];
    let ended = Some("2026-11-30T09:00:00.25Z");
    let second = [
        instance(span("a/1", start, ended, "2026-11-30T09:01:00Z"), Some("gpu"), Some(5_672_001)),
        instance(span("x/1", start, ended, "2026-11-30T09:01:00Z"), Some("two"), Some(3_600_000)),
        instance(
            span("x/3", "2026-11-30T09:00:00.25Z", None, "2026-11-30T09:01:00Z"),
            Some("two"),
            Some(3_600_000),
        ),
        // It still runs at the last sign of life.
        instance(
            span("a/2", "2026-11-30T09:00:00.25Z", None, "2026-11-30T09:01:00Z"),
            Some("gpu"),
            Some(3_600_000),
        ),
        pod(
            span("p/a/1", start, ended, "2026-11-30T09:01:00Z"),
            BTreeMap::from([("team".into(), "a".into())]),
        ),
        alive("2026-11-30T09:30:00.251Z"),
    ];
    for rows in [&first[..], &second[..], &second[..]] {
        writer.append(time("2026-11-30T09:31:00Z"), rows).await.expect("it is written");
    }
    let page = include_str!("../../../docs/money.md");
    let query = page.split("```sql\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a query");
    let query = query.replace("/var/lib/poolwright/ledger", folder.0.to_str().expect("a plain name"));
    let program = "import duckdb, sys\n\
                   duckdb.sql(\"SET TimeZone='America/New_York'\")\n\
                   for row in duckdb.sql(sys.argv[1]).fetchall(): print(*row)\n";
    let done = Command::new(python()).args(["-c", program, &query]).output().expect("python starts");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // One hour at 5.672001 and 1,800,001 milliseconds at 3.60; 3,600,251 milliseconds without a price; 5,400,001 at 3.60.
    assert_eq!(said, "(no pool) 0.000000 3600251\ngpu 7.472002 0\ntwo 5.400001 0\n");
}
