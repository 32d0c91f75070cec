//! Tests the command on ledgers in a directory.

use std::fs;
use std::path::{Path, PathBuf};

use poolwright_ledger::Location;
use poolwright_report::ledger::{Day, Fold};
use serde_json::{Value, json};

use super::*;
use crate::args::{FocusVersion, When};

/// Returns a time of 2026-11-10.
fn at(time: &str) -> String {
    format!("2026-11-10T{time}:00Z")
}

/// Returns the row of an instance with 4 GPUs for 4 dollars per hour.
pub fn instance(uid: &str, from: &str, to: &str) -> Value {
    json!({"kind": "instance", "id": format!("{uid}/{from}"), "cluster": "c", "from": at(from), "to": at(to), "seen": at(to),
        "uid": uid, "name": uid, "provider": "aws", "region": "us-east-1", "zone": "us-east-1a", "pool": "gpu",
        "instanceType": "g5.12xlarge", "capacityType": "on-demand", "phase": "ready", "priceMicrosPerHour": 4_000_000,
        "listMicrosPerHour": 4_000_000, "offers": {"gpuMillis": 4000, "cpuMillis": 8000, "memoryBytes": 68_719_476_736_u64}})
}

/// Returns the row of a pod with one GPU.
pub fn pod(uid: &str, on: &str, from: &str, to: &str) -> Value {
    json!({"kind": "pod", "id": format!("{uid}/{on}/{from}"), "cluster": "c", "from": at(from), "to": at(to), "seen": at(to),
        "uid": uid, "instance": on, "namespace": "ml", "name": uid,
        "holds": {"gpuMillis": 1000, "cpuMillis": 2000, "memoryBytes": 17_179_869_184_u64}})
}

/// Returns a sign of a controller.
pub fn alive(time: &str) -> Value {
    json!({"kind": "alive", "cluster": "c", "writer": "w", "seen": at(time)})
}

/// Returns what rows tell of 2026-11-10.
pub fn spans(rows: impl IntoIterator<Item = Value>) -> Day {
    let day = "2026-11-10".parse().unwrap();
    let mut fold = Fold::new(day, day, "2026-11-20T00:00:00Z".parse().unwrap());
    rows.into_iter().for_each(|row| fold.push(serde_json::from_value(row).unwrap()));
    fold.close(day)
}

/// A ledger in a directory of its own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, lines: &[String]) -> Self {
        let root = std::env::temp_dir().join(format!("poolwright-report-{}-{name}", std::process::id()));
        let day = root.join("v1/day=2026-11-10");
        fs::create_dir_all(&day).unwrap();
        fs::write(day.join("000000-w-1.ndjson"), lines.join("\n")).unwrap();
        Self(root)
    }

    fn of(name: &str, rows: &[Value]) -> Self {
        Self::new(name, &rows.iter().map(Value::to_string).collect::<Vec<_>>())
    }

    /// Prints a report of 2026-11-10.
    fn report(&self, change: impl FnOnce(&mut ReportFlags)) -> Result<String, String> {
        let mut flags = flags(&self.0);
        change(&mut flags);
        let mut out = Vec::new();
        match run(&flags, &mut out) {
            Ok(_) => Ok(String::from_utf8(out).unwrap()),
            Err(Failure::BadInput(message)) => Err(message),
            Err(other) => panic!("{other:?}"),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn flags(ledger: &Path) -> ReportFlags {
    let day = When::Day("2026-11-10".parse().unwrap());
    ReportFlags {
        ledger: Location::Directory(ledger.to_owned()),
        from: day,
        to: Some(day),
        by: vec!["namespace".parse().unwrap()],
        method: Method::GpuOnly,
        rates: None,
        compare: false,
        output: ReportFormat::Table,
        focus_version: FocusVersion::V1_3,
        commitments: None,
    }
}

fn usual() -> [Value; 3] {
    [instance("a", "00:00", "00:04"), pod("p", "a", "00:02", "00:04"), alive("00:04")]
}

#[test]
fn the_table_begins_with_the_verdict_and_names_the_four_classes_of_idle_time() {
    let said = Folder::of("table", &usual()).report(|_| {}).unwrap();
    let verdict = "$0.2667 for 2026-11-10 on 1 instance: pods held $0.0333, and $0.2333 (87.5 %) was idle.";
    assert!(said.starts_with(verdict), "{said}");
    for part in [
        "NAMESPACE",
        "unallocated",
        "allocated and unused  not measured",
        "system and daemons",
        "starting or",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("Notes"), "{said}");
}

#[test]
fn every_format_is_of_the_same_report() {
    let folder = Folder::of("formats", &usual());
    let json = folder.report(|flags| flags.output = ReportFormat::Json).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["kind"], &json["usd"]), (&json!("CostReport"), &json!(0.266667)));
    assert_eq!(json["idle"][1]["usd"], Value::Null, "what is not measured is no zero");
    let sum: f64 = json["rows"].as_array().unwrap().iter().map(|row| row["usd"].as_f64().unwrap()).sum();
    assert!((sum - 0.266667).abs() < 1e-9, "{json}");
    let yaml = folder.report(|flags| flags.output = ReportFormat::Yaml).unwrap();
    assert!(yaml.contains("kind: CostReport"), "{yaml}");
    let csv = folder.report(|flags| flags.output = ReportFormat::Csv).unwrap();
    assert!(csv.starts_with("namespace,what,usd,") && csv.contains("\nml,pods,0.033333,"), "{csv}");
    let markdown = folder.report(|flags| flags.output = ReportFormat::Markdown).unwrap();
    assert!(markdown.starts_with(r"**\$0.2667 for") && markdown.contains("| not measured |"), "{markdown}");
}

#[test]
fn what_is_not_certain_is_told() {
    let mut unknown = instance("b", "00:01", "00:02");
    unknown["priceMicrosPerHour"] = Value::Null;
    let mut open = pod("q", "a", "00:03", "00:03");
    open["to"] = Value::Null;
    let mut lines: Vec<String> = usual()
        .into_iter()
        .chain([unknown, open, pod("r", "none", "00:01", "00:02")])
        .map(|row| row.to_string())
        .collect();
    lines.extend(["{".to_owned(), json!({"kind": "volume"}).to_string()]);
    lines.push(instance("d", "12:00", "12:01").to_string());
    let said = Folder::new("doubts", &lines).report(|_| {}).unwrap();
    for part in [
        "1 instance without a known price is not in it.",
        "1 instance of g5.12xlarge in us-east-1a (on-demand) ran 0.0 h without a known price.",
        "No controller wrote the ledger of the cluster c from 2026-11-10T00:04Z to 2026-11-10T12:01Z",
        "1 span has no end in the ledger",
        "1 pod span held an instance that the ledger does not know at that time.",
        "Not read: v1/day=2026-11-10/000000-w-1.ndjson:7: EOF while parsing",
        "ndjson:8: unknown variant `volume`",
        "a newer version of Poolwright wrote it. The other rows count.",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn the_change_is_told_if_it_is_asked_for() {
    let folder = Folder::of("change", &usual());
    let before = folder.0.join("v1/day=2026-11-09");
    fs::create_dir_all(&before).unwrap();
    let row = instance("z", "00:00", "00:02").to_string().replace("2026-11-10", "2026-11-09");
    fs::write(before.join("000000-w-1.ndjson"), row).unwrap();
    let said = folder.report(|flags| flags.compare = true).unwrap();
    assert!(said.contains("That is $0.1333 (100.0 %) more than from 2026-11-09 to 2026-11-09."), "{said}");
    fs::remove_dir_all(&before).unwrap();
    let said = folder.report(|flags| flags.compare = true).unwrap();
    assert!(said.contains("No instance ran in 2026-11-09, so there is no change to tell."), "{said}");
}

#[test]
fn a_page_has_the_bill_the_cost_of_each_day_and_idle_time() {
    let folder = Folder::of("page", &usual());
    let page = |from: &str| {
        let from = When::Day(from.parse().unwrap());
        folder.report(|flags| (flags.from, flags.output) = (from, ReportFormat::Html)).unwrap()
    };
    let before = folder.0.join("v1/day=2026-11-09");
    fs::create_dir_all(&before).unwrap();
    let row = instance("z", "00:00", "00:02").to_string().replace("2026-11-10", "2026-11-09");
    fs::write(before.join("000000-w-1.ndjson"), row.replace("\"gpu\"", "\"<b>\"")).unwrap();
    let said = page("2026-11-09");
    for part in [
        "<p class=\"verdict\">$0.4000 for 2026-11-09 to 2026-11-10 on 2 instances",
        "<table id=\"groups\">",
        "<table id=\"cost-by-day\">",
        "<table id=\"idle\">",
        "<table id=\"idle-by-day\">",
        "not measured",
        "&lt;b&gt;",
        ">2026-11-09<",
        ">$0.2667<",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.matches("<svg role=").count(), 2, "{said}");
    let one_day = page("2026-11-10");
    assert!(one_day.contains("<table id=\"idle\">") && !one_day.contains("<svg"), "{one_day}");
}

#[test]
fn a_flag_that_would_change_nothing_is_refused() {
    let folder = Folder::of("unused", &usual());
    for output in [ReportFormat::Focus, ReportFormat::FocusCommitments] {
        let said = folder.report(|flags| (flags.compare, flags.output) = (true, output)).unwrap_err();
        assert!(
            said.starts_with("--compare: ") && said.ends_with("has no place for a change; remove the flag")
        );
    }
    let said = folder.report(|flags| flags.focus_version = FocusVersion::V1_4).unwrap_err();
    assert!(said.starts_with("--focus-version: only `-o focus` uses it"), "{said}");
}

#[test]
fn a_commitment_of_the_ledger_without_terms_is_found() {
    let mut paid = instance("b", "00:00", "00:04");
    paid["commitment"] = "plan".into();
    let mut reserved = instance("d", "00:00", "00:04");
    (reserved["commitment"], reserved["capacityType"]) = ("block".into(), "reserved".into());
    let folder = Folder::of("terms", &[paid, reserved]);
    let ledger = Ledger::open(&Location::Directory(folder.0.clone())).unwrap();
    let day = "2026-11-10".parse().unwrap();
    let missing = |named: &[&str]| {
        let named = named.iter().map(|name| (*name).to_owned()).collect();
        let now = "2026-11-20T00:00:00Z".parse().unwrap();
        without_terms(&ledger, Period { first: day, last: day }, now, &named).unwrap()
    };
    assert_eq!(missing(&[]), BTreeSet::from(["plan".to_owned()]), "a reservation is no contract");
    assert!(missing(&["plan"]).is_empty());
}

#[test]
fn a_change_since_days_with_unknown_prices_is_told_as_uncertain() {
    let folder = Folder::of("uncertain", &usual());
    let before = folder.0.join("v1/day=2026-11-09");
    fs::create_dir_all(&before).unwrap();
    let mut unknown = instance("z", "00:00", "00:10");
    unknown["priceMicrosPerHour"] = Value::Null;
    let row = unknown.to_string().replace("2026-11-10", "2026-11-09");
    fs::write(before.join("000000-w-1.ndjson"), row).unwrap();
    let said = folder.report(|flags| flags.compare = true).unwrap();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("1 instance of 2026-11-09 has no known price. The change does not count it."),
        "{said}"
    );
    assert!(said.contains("In 2026-11-09, there were times without a controller."), "{said}");
}

#[test]
fn a_file_for_finops_of_days_without_nodes_is_no_file() {
    let folder = Folder::of("no-focus", &usual());
    let mut flags = flags(&folder.0);
    let day = When::Day("2026-11-01".parse().unwrap());
    (flags.output, flags.from, flags.to) = (ReportFormat::Focus, day, Some(day));
    let mut out = Vec::new();
    assert!(run(&flags, &mut out).is_err() && out.is_empty());
}

#[test]
fn errors_name_the_object_the_cause_and_the_next_step() {
    let folder = Folder::of("errors", &usual());
    let refused = |change: &dyn Fn(&mut ReportFlags)| folder.report(change).unwrap_err();
    let nowhere = refused(&|flags| flags.ledger = Location::Directory("no-such-folder".into()));
    assert_eq!(
        nowhere,
        "--ledger no-such-folder: there is no such directory; name the one that the controller writes"
    );
    let empty = refused(&|flags| flags.ledger = Location::Directory(folder.0.join("v1")));
    assert!(empty.contains("it has no folder v1/day=..., so it is no ledger"), "{empty}");
    let day = When::Day("2026-11-01".parse().unwrap());
    let period = refused(&|flags| (flags.from, flags.to) = (day, Some(day)));
    let expected =
        "no instance ran in 2026-11-01; the ledger has 2026-11-10; choose other days with --from and --to";
    assert_eq!(period, expected);
    let card = refused(&|flags| flags.method = Method::RateCard);
    assert!(card.contains("name their file with --rates"), "{card}");
    let unused = refused(&|flags| flags.commitments = Some("c.yaml".into()));
    assert!(unused.contains("only `-o focus-commitments` uses it"), "{unused}");
    let newer = Folder(std::env::temp_dir().join(format!("poolwright-report-{}-newer", std::process::id())));
    fs::create_dir_all(newer.0.join("v2")).unwrap();
    assert!(newer.report(|_| {}).unwrap_err().contains("a newer version of Poolwright wrote it"));
}

#[test]
fn the_file_for_finops_has_the_whole_bill() {
    let said = Folder::of("focus", &usual()).report(|flags| flags.output = ReportFormat::Focus).unwrap();
    assert_eq!(said.lines().count(), 3, "{said}");
    assert!(said.starts_with("AllocatedMethodDetails,AllocatedMethodId,"), "{said}");
}
