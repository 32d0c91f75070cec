//! Tests of whole answers, for use and offers as users write them.

use std::path::Path;
use std::time::Duration;

use poolwright_catalog::{InstanceTypeName, OfferingId, Usd, UsdPerHour, Zone, builtin};
use poolwright_ledger::Location;
use poolwright_report::replay::{History, Machine};
use poolwright_solver::purchase::Purchase;
use poolwright_terms::CapacityType;
use serde_json::json;

use super::answer::{Answer, Number, Saved};
use super::recorded::of_ledger;
use super::usage::{Usage, of_file, of_history};
use super::{answer, market, offers};
use crate::args::When;
use crate::exit::Failure;
use crate::source::Source;

const HEADER: &str = "hour,instance_type,node_hours,usd_per_hour\n";

fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), text: text.to_owned() }
}

fn usage(rows: &str) -> Result<Usage, String> {
    of_file(&source("u.csv", &format!("{HEADER}{rows}")), &builtin()).map_err(|problems| problems.to_string())
}

/// Returns the use of a type at one dollar, with this many nodes in each hour.
fn constant(hours: u64, nodes: u64) -> String {
    let rows: Vec<String> = (0..hours).map(|hour| format!("{hour},a,{nodes},1\n")).collect();
    rows.concat()
}

/// Answers for these offers, each the inside of a YAML mapping.
fn found(rows: &str, written: &[&str]) -> Answer {
    told(rows, written).unwrap_or_else(|problems| panic!("{problems}"))
}

fn told(rows: &str, written: &[&str]) -> Result<Answer, String> {
    let usage = usage(rows)?;
    let list: Vec<String> = written.iter().map(|one| format!("- {{{one}}}\n")).collect();
    let file = source("o.yaml", &format!("offers:\n{}", list.concat()));
    let (offered, notes) =
        offers::read(&file, &usage, &builtin()).map_err(|problems| problems.to_string())?;
    answer(&usage, &offered, notes).map_err(|failure| format!("{failure:?}"))
}

const YEAR: &str = "name: year, kind: reservation, instanceType: a, usdPerHour: 0.6, termMonths: 12";

#[test]
fn a_constant_load_is_reserved_and_the_figures_follow() {
    let all = found(&constant(10, 5), &[YEAR]);
    assert_eq!(all.offers[0].buy, Number::Nodes(5));
    assert_eq!((all.cost.without, all.cost.with), (Usd(50_000_000), Usd(30_000_000)));
    assert_eq!((all.cost.committed, all.cost.on_demand), (Usd(30_000_000), Usd(0)));
    assert_eq!(all.cost.saved, Saved(20_000_000), "the regret of doing nothing");
    assert_eq!(
        all.verdict,
        "Buy 5 of year (reservation for a): $2,190.00/month instead of $3,650.00/month, 40.0 % less"
    );
    assert!(all.lower_bound_usd.is_some_and(|bound| bound <= all.cost.with));
}

#[test]
fn at_less_load_the_same_commitments_are_paid_and_fewer_would_be_best() {
    let less = found(&constant(10, 5), &[YEAR]).at_less_load;
    assert_eq!(less.percent, 20);
    // Four nodes are used, and five are paid.
    assert_eq!((less.cost.without, less.cost.with), (Usd(40_000_000), Usd(30_000_000)));
    assert_eq!((less.usd_best, less.usd_regret), (Usd(24_000_000), Saved(6_000_000)));
}

#[test]
fn below_the_break_even_nothing_is_bought() {
    let rows: Vec<String> = (0..10).map(|hour| format!("{hour},a,{},1\n", u8::from(hour < 6))).collect();
    let all = found(&rows.concat(), &[YEAR]);
    assert!(all.verdict.starts_with("Buy nothing: no offer saves anything"), "{}", all.verdict);
    assert_eq!((all.offers[0].buy, all.cost.saved), (Number::Nodes(0), Saved(0)));
    let curve = all.curve.expect("the offer that comes closest");
    let costs: Vec<Usd> = curve.points.iter().map(|point| point.usd).collect();
    assert_eq!(costs, [Usd(6_000_000), Usd(6_000_000)], "at the break-even it makes no difference");
}

#[test]
fn an_answer_that_is_not_proven_does_not_say_that_no_offer_saves() {
    let usage = usage(&constant(10, 5)).expect("use");
    let file = source("o.yaml", &format!("offers:\n- {{{YEAR}}}\n"));
    let (offered, _) = offers::read(&file, &usage, &builtin()).expect("offers");
    let now = market(&usage, &offered);
    let of = |bound| {
        let nothing = Purchase { counts: vec![0], cost: Usd(50_000_000), bound };
        Answer::of(&usage, &offered, (&now, &nothing), (&now, &nothing))
    };
    let open = of(Some(Usd(30_000_000)));
    assert!(
        open.verdict.starts_with("Buy nothing: nothing that saves anything was found in time for this use")
    );
    assert!(open.assumptions.iter().any(|one| one.contains("up to 40.0 % less")), "{:?}", open.assumptions);
    assert!(of(None).verdict.contains("was found in time"));
    assert!(of(Some(Usd(49_999_990))).verdict.contains("no offer saves anything"));
}

#[test]
fn the_curve_falls_to_what_is_bought_and_rises_after_it() {
    // Two nodes all the time, and two more in one of four hours.
    let rows = "0,a,4,1\n1,a,2,1\n2,a,2,1\n3,a,2,1\n";
    let curve = found(rows, &[YEAR]).curve.expect("it is bought");
    let points: Vec<(Number, u128, bool)> =
        curve.points.iter().map(|point| (point.number, point.usd.0, point.is_bought)).collect();
    let point = |nodes, usd, is_bought| (Number::Nodes(nodes), usd, is_bought);
    assert_eq!(
        points,
        [
            point(0, 10_000_000, false),
            point(1, 8_400_000, false),
            point(2, 6_800_000, true),
            point(3, 8_200_000, false),
            point(4, 9_600_000, false)
        ]
    );
    assert_eq!(curve.pays_up_to, Number::Nodes(4));
}

#[test]
fn a_savings_plan_is_money_in_steps_and_covers_what_it_says() {
    let rows = "0,g5.xlarge,1,1\n0,g6.xlarge,1,1\n";
    let plan = "name: plan, kind: savings-plan, discountPercent: 50, termMonths: 12";
    let of = |covers: &str| found(rows, &[&format!("{plan}{covers}")]).offers[0].clone();
    let dollars = |text: &str| Number::Money(text.parse().expect("an amount"));
    assert_eq!(of("").buy, dollars("1"));
    let one = of(", covers: {families: [g5]}");
    assert_eq!((one.buy, one.of.as_str()), (dollars("0.5"), "g5.xlarge"));
    assert_eq!(of(", most: 0.25").buy, dollars("0.25"));
    assert_eq!(of(", least: 3").buy, dollars("0"), "the least is more than all costs");
}

#[test]
fn a_block_counts_in_its_hours() {
    let block = "name: b, kind: capacity-block, instanceType: a, usdPerHour: 0.5, fromHour: 2, hours: 3";
    let all = found(&constant(10, 1), &[block]);
    assert_eq!((all.cost.committed, all.cost.on_demand), (Usd(1_500_000), Usd(7_000_000)));
    let late = told(&constant(4, 1), &[block]).expect_err("it ends after the use");
    assert!(late.contains("is there from hour 2 to 5, and the use has hours 0 to 4"), "{late}");
}

#[test]
fn everything_wrong_with_the_offers_is_told_at_once() {
    let said = told(
        &constant(2, 1),
        &[
            "name: a, kind: reservation, instanceType: g5.xlarg, usdPerHour: 1, termMonths: 12",
            "name: b, kind: reservation, instanceType: a, usdPerHour: 0, termMonths: 12",
            "name: c, kind: savings-plan, discountPercent: -5, termMonths: 12",
            "name: d, kind: savings-plan, termMonths: 12",
            "name: b, kind: reservation, instanceType: a, usdPerHour: 1",
            "name: e, kind: committed-use, instanceType: a, usdPerHour: 1, termMonths: 12, least: 3, most: 2",
        ],
    )
    .expect_err("all are wrong");
    let parts = [
        "7 problems",
        "o.yaml: offers[0] (a): `g5.xlarg` is not an instance type of the catalogue or the use; did you mean g5.xlarge?",
        "o.yaml: offers[1] (b): usdPerHour: it is zero, and nothing is free",
        "o.yaml: offers[2] (c): discountPercent: `-5` is negative",
        "o.yaml: offers[3] (d): does not say how much a node uses of it",
        "o.yaml: offers[4] (b): another offer has this name",
        "o.yaml: offers[4] (b): has no termMonths",
        "o.yaml: offers[5] (e): most: it is below the least",
    ];
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(lines.len(), parts.len(), "{said}");
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.starts_with(part), "{part}: {line}");
    }
}

#[test]
fn an_offer_for_what_is_not_used_is_named_and_left_out() {
    let other = "name: x, kind: reservation, instanceType: g5.xlarge, usdPerHour: 0.1, termMonths: 12";
    let all = found(&constant(2, 1), &[YEAR, other]);
    assert_eq!(all.offers.len(), 1);
    assert!(all.notes.iter().any(|note| note.contains("offers[1] (x): nothing that it covers is used")));
}

#[test]
fn wrong_lines_of_the_use_are_told_with_their_place() {
    let said = usage("5,g5.xlarg,1,\n5,g5.xlarge,-1,\n6,g5.xlarge,1,0\n4,g5.xlarge,1,\n6,g5.xlarge,2,\n")
        .expect_err("all are wrong");
    let expected = [
        "5 problems",
        "u.csv:2:instance_type: `g5.xlarg` is not an instance type of the catalogue; give its price in the column usd_per_hour; did you mean g5.xlarge?",
        "u.csv:3:node_hours: \"-1\" is negative; write the node-hours as 12 or 12.5",
        "u.csv:4:usd_per_hour: it is zero, and nothing is free; leave it empty for the price of the catalogue",
        "u.csv:5:hour: 4 is after 6, so the clock goes back; sort the lines by their hours",
        "u.csv:6:instance_type: hour 6 has g5.xlarge already; add the node-hours up to one line",
    ];
    assert_eq!(said.lines().map(str::trim).collect::<Vec<_>>(), expected);
    let empty = usage("").expect_err("nothing is used");
    assert!(empty.contains("u.csv: it has no node-hours"), "{empty}");
}

#[test]
fn hours_without_a_line_are_no_use_and_are_said() {
    let gaps = usage("100,g5.xlarge,1,\n103,g5.xlarge,1,\n").expect("it is read");
    assert_eq!((gaps.hours, gaps.total()), (4, 2_000_000));
    assert_eq!(gaps.prices["g5.xlarge"], UsdPerHour::from_micros(1_006_000), "that of the catalogue");
    assert_eq!(
        gaps.notes,
        ["u.csv: 2 hours between the first and the last have no line and count as no use"]
    );
}

/// Returns a machine that ran between these minutes.
fn machine(capacity_type: CapacityType, launched: u64, gone: Option<u64>) -> Machine {
    let minutes = |count: u64| Duration::from_mins(count);
    Machine {
        id: "i".to_owned(),
        claim: "c".to_owned(),
        pool: "p".to_owned(),
        offering: OfferingId {
            instance_type: InstanceTypeName::from("a"),
            zone: Zone::from("z"),
            capacity_type,
        },
        price: Some(UsdPerHour::from_micros(1_000_000)),
        gpus: 1,
        interrupted: false,
        launched: minutes(launched),
        opened: None,
        bought_for: Vec::new(),
        gone: gone.map(minutes),
    }
}

#[test]
fn the_use_of_a_replay_is_that_of_its_on_demand_nodes_hour_by_hour() {
    let machines = vec![
        machine(CapacityType::OnDemand, 30, Some(75)),
        machine(CapacityType::OnDemand, 90, None),
        machine(CapacityType::Spot, 0, None),
    ];
    let history = History { played: Duration::from_mins(150), machines, ..History::default() };
    let used = of_history(&history).expect("nodes on demand");
    let nodes: Vec<(u64, u64)> = used.nodes.iter().map(|(hour, nodes)| (*hour, nodes["a"])).collect();
    assert_eq!(nodes, [(0, 500_000), (1, 750_000), (2, 500_000)]);
    assert_eq!((used.hours, used.notes.len()), (3, 2), "{:?}", used.notes);
    let spot = vec![machine(CapacityType::Spot, 0, None)];
    let history = History { machines: spot, ..history };
    assert!(of_history(&history).is_err_and(|told| told.contains("nothing to commit to")));
}

/// Returns the use of some days of a ledger, or what is wrong.
fn recorded(root: &Path, [from, to]: [&str; 2], region: Option<&str>) -> Result<Usage, String> {
    let day = |text: &str| When::Day(text.parse().expect("a day"));
    match of_ledger(&Location::Directory(root.to_owned()), (day(from), Some(day(to))), region) {
        Ok(usage) => Ok(usage),
        Err(Failure::BadInput(told)) => Err(told),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn the_use_of_a_ledger_is_that_of_its_on_demand_instances_in_watched_hours() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/ledger"));
    let days = ["2026-11-01", "2026-11-03"];
    let used = recorded(root, days, None).expect("it has an instance on demand");
    // From 08:00 on the first day to 02:00 on the third, although the days are asked for whole.
    assert_eq!(used.hours, 42);
    let nodes: Vec<(u64, u64)> =
        used.nodes.iter().map(|(hour, nodes)| (*hour, nodes["g5.12xlarge"])).collect();
    assert_eq!(nodes, [(0, 1_000_000), (1, 1_000_000)], "two spans of one instance are one node");
    assert_eq!(used.prices["g5.12xlarge"], UsdPerHour::from_micros(5_672_000));
    for part in [
        "42 hours of the ledger, and hour 0 begins at 2026-11-01T08:00Z",
        "not counted: 1 instance that did not run on demand",
        "not counted: 1 instance that a commitment pays already",
    ] {
        assert!(used.notes.iter().any(|note| note.contains(part)), "{part}: {:?}", used.notes);
    }
    let nowhere = recorded(root, days, Some("eu-west-1")).expect_err("it ran elsewhere");
    assert!(nowhere.contains("not counted: 1 instance of other regions"), "{nowhere}");
    assert!(nowhere.ends_with("choose other days with --from and --to, or another --region"), "{nowhere}");
}

#[test]
fn a_type_of_two_regions_asks_for_one_and_a_changed_price_is_said() {
    let root = std::env::temp_dir().join(format!("poolwright-recorded-{}", std::process::id()));
    let day = root.join("v1/day=2026-11-10");
    std::fs::create_dir_all(&day).expect("a directory");
    let row = |uid: &str, region: &str, hours: [u32; 2], price: u64| {
        let [from, to] = hours.map(|hour| format!("2026-11-10T{hour:02}:00:00Z"));
        json!({"kind": "instance", "id": format!("{uid}/{from}"), "cluster": "c", "from": from, "to": to, "seen": to,
            "uid": uid, "name": uid, "provider": "p", "region": region, "zone": "z", "instanceType": "a",
            "capacityType": "on-demand", "phase": "ready", "priceMicrosPerHour": price,
            "offers": {"gpuMillis": 1000, "cpuMillis": 1000, "memoryBytes": 1}})
        .to_string()
    };
    let rows = [row("i", "here", [1, 2], 2), row("i", "here", [2, 3], 3), row("j", "there", [1, 3], 1)];
    std::fs::write(day.join("000000-w-1.ndjson"), rows.join("\n")).expect("a file");
    let days = ["2026-11-10"; 2];
    let (both, here) = (recorded(&root, days, None), recorded(&root, days, Some("here")));
    std::fs::remove_dir_all(&root).expect("it was made");
    let told = both.expect_err("there are two regions");
    assert_eq!(
        told,
        "--ledger: in 2026-11-10, a ran in here and there, and an offer is for one region; choose it with --region"
    );
    let here = here.expect("one region");
    assert_eq!((here.hours, here.total(), here.prices["a"]), (2, 2_000_000, UsdPerHour::from_micros(3)));
    assert!(here.notes.iter().any(|note| note.starts_with("a cost ") && note.contains("at the last price")));
}

#[test]
fn a_wrong_offer_shows_before_a_long_replay() {
    let checked = |one: &str| {
        let file = source("o.yaml", &format!("offers:\n- {{{one}}}\n"));
        offers::check(&file, &builtin()).map_err(|problems| problems.to_string())
    };
    let of = |kind: &str| format!("name: b, kind: capacity-block, instanceType: {kind}, usdPerHour: 1");
    let block = checked(&of("g5.xlarge")).expect_err("it has no hours");
    assert!(block.contains("offers[0] (b): has no fromHour or no hours"), "{block}");
    let name = checked(&format!("{}, fromHour: 1, hours: 2", of("g5.xlarg"))).expect_err("no such type");
    assert!(name.contains("did you mean g5.xlarge?"), "{name}");
    assert_eq!(checked(&format!("{}, fromHour: 1, hours: 2", of("g5.xlarge"))), Ok(()));
}
