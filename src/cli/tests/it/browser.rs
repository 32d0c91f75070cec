//! Tests of HTML pages as their readers see them: Chromium opens them, tells their numbers, and takes pictures.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{path, poolwright};

/// Runs the command with `-o json` and `-o html`. Returns the document, and what Chromium says of the page.
fn seen(name: &str, args: &[&str]) -> (Value, Value) {
    let printed = |format| {
        let output = poolwright(&[args, &["-o", format]].concat(), "");
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let document = serde_json::from_slice(&printed("json")).expect("JSON");
    let folder = std::env::temp_dir().join(format!("poolwright-page-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder");
    let page = folder.join("page.html");
    fs::write(&page, printed("html")).expect("a temporary file");
    let told = browse(&page, &folder);
    for picture in ["light", "dark", "print"] {
        let bytes = fs::read(folder.join(format!("{picture}.png"))).expect("a picture");
        assert!(bytes.starts_with(b"\x89PNG"), "{picture}");
    }
    fs::remove_dir_all(&folder).expect("it is ours");
    (document, told)
}

fn browse(page: &Path, folder: &Path) -> Value {
    let output = Command::new("python3")
        .arg(path("tests/browser.py"))
        .args([page, folder])
        .output()
        .expect("python3 starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "python3 tests/browser.py: {said}");
    serde_json::from_slice(&output.stdout).expect("what Chromium says is JSON")
}

/// Returns the cells after the name of a row.
fn row(told: &Value, table: &str, name: &str) -> Vec<String> {
    let rows = told["tables"][table].as_array().unwrap_or_else(|| panic!("{table}: {told}"));
    let row = rows.iter().find(|row| row[0].as_str().is_some_and(|text| text.starts_with(name)));
    let cells = row.and_then(Value::as_array).unwrap_or_else(|| panic!("{table}: {name}: {told}"));
    cells.iter().skip(1).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Reads an amount back: `$1,468.76` or `$2.54/h`.
fn amount(text: &str) -> f64 {
    let digits: String = text.chars().filter(|one| one.is_ascii_digit() || *one == '.').collect();
    digits.parse().unwrap_or_else(|_| panic!("{text} is no amount"))
}

/// The page shows amounts from one dollar on in whole cents.
fn is_the_amount(text: &str, number: &Value) {
    let number = number.as_f64().expect("a number");
    assert!((amount(text) - number).abs() < 0.006, "{text} is not {number}");
}

fn is_readable_and_loads_nothing(told: &Value) {
    assert_eq!((&told["asked"], &told["scripts"]), (&json!([]), &json!(0)), "{told}");
    let corner = |picture: &str| told["pictures"][picture]["corner"][0].as_u64().expect("a colour");
    // Letters and lines have many shades; an empty picture has one colour.
    for picture in ["light", "dark", "print"] {
        let colours = told["pictures"][picture]["colours"].as_u64();
        assert!(colours.is_some_and(|colours| colours > 20), "{picture}: {told}");
    }
    assert_eq!(told["whole_on_paper"], true, "what is folded is printed, too: {told}");
    assert!(corner("light") > 200 && corner("print") > 200 && corner("dark") < 60, "{told}");
}

#[test]
fn a_browser_shows_the_numbers_of_what_if_in_light_in_dark_and_on_paper() {
    let base = ["what-if", "--base", "fixtures/manifests/pool.yaml", "fixtures/manifests/two-gpu-pods.yaml"];
    let (document, told) = seen("what-if", &[&base[..], &["--price", "*=+10%"]].concat());
    is_readable_and_loads_nothing(&told);
    assert_eq!(told["paragraphs"][0], document["verdict"]);
    let nodes = row(&told, "figures", "Nodes");
    assert_eq!(nodes[..2], [document["before"]["nodes"].to_string(), document["after"]["nodes"].to_string()]);
    for (name, field) in [("Cost per hour", "usdPerHour"), ("Cost per month", "usdPerMonth")] {
        let cells = row(&told, "figures", name);
        is_the_amount(&cells[0], &document["before"][field]);
        is_the_amount(&cells[1], &document["after"][field]);
        is_the_amount(&cells[2], &document["difference"][field]);
    }
    assert_eq!(told["plots"].as_array().map(Vec::len), Some(1), "{told}");
    for side in ["before", "after"] {
        is_the_amount(&row(&told, "costs", side)[0], &document[side]["usdPerHour"]);
        let more = row(&told, "costs", &format!("{side}, at load +50 %"));
        is_the_amount(&more[0], &document[side]["usdPerHourAtHalfMoreLoad"]);
    }
}

#[test]
fn a_browser_shows_the_prices_of_a_job() {
    let job = ["job", "4x1xl4", "--hours", "10", "--catalogue", "src/cli/tests/market.csv"];
    let (document, told) = seen("job", &job);
    is_readable_and_loads_nothing(&told);
    assert_eq!(told["paragraphs"][0], document["verdict"]);
    let first = row(&told, "rows", document["rows"][0]["instanceType"].as_str().expect("a name"));
    is_the_amount(&first[5], &document["rows"][0]["usdPerJob"]);
}

#[test]
fn a_browser_shows_the_numbers_and_the_plots_of_a_replay() {
    let trace = ["--trace", "fixtures/traces/two-hours.csv", "--pools", "fixtures/manifests/pool.yaml"];
    let (document, told) = seen("replay", &[&["simulate"][..], &trace, &["--for", "3h"]].concat());
    is_readable_and_loads_nothing(&told);
    is_the_amount(&row(&told, "figures", "Cost")[0], &document["costUsd"]);
    for (name, field) in [("Pods that finished", "finished"), ("Pods evicted", "evicted")] {
        assert_eq!(row(&told, "figures", name)[0], document["pods"][field].to_string());
    }
    is_the_amount(row(&told, "bought", "gpu").last().expect("cells"), &document["bought"][0]["costUsd"]);
    let plots = told["plots"].as_array().expect("plots");
    assert_eq!(plots.len(), 4, "cost, GPUs, waiting, and cost against waiting: {told}");
    assert!(plots.iter().all(|width| width.as_u64() > Some(300)), "{told}");
    // The numbers beside the plot are those of the series.
    let series = document["series"].as_array().expect("series");
    let shown = told["tables"]["cost-over-time"].as_array().expect("rows");
    for shown in shown {
        let cell = |at: usize| amount(shown[at].as_str().expect("text"));
        let fits = |point: &&Value| {
            let near = |cell: f64, number: &Value| (cell - number.as_f64().expect("a number")).abs() < 0.006;
            near(cell(1), &point["pools"]["gpu"]) && near(cell(2), &point["lowerLimitUsdPerHour"])
        };
        assert!(series.iter().any(|point| fits(&point)), "{shown}");
    }
    let methods = told["tables"]["methods"].as_array().expect("rows");
    let baselines = document["baselines"].as_array().expect("baselines");
    assert_eq!(methods.len(), baselines.len() + 1);
    for (method, baseline) in methods.iter().skip(1).zip(baselines) {
        is_the_amount(method[1].as_str().expect("text"), &baseline["costUsd"]);
    }
}

#[test]
fn a_browser_shows_the_numbers_and_the_plots_of_a_report() {
    let days = ["--from", "2026-11-01", "--to", "2026-11-03", "--by", "label:team"];
    let (document, told) = seen("report", &[&["report", "--ledger", "fixtures/ledger"][..], &days].concat());
    is_readable_and_loads_nothing(&told);
    assert_eq!(told["paragraphs"][0], document["verdict"]);
    let rows = document["rows"].as_array().expect("rows");
    let red = rows.iter().find(|row| row["values"][0] == "red").expect("a group");
    is_the_amount(&row(&told, "groups", "red")[1], &red["usd"]);
    let plots = told["plots"].as_array().expect("plots");
    assert_eq!(plots.len(), 2, "cost by pool, and idle time: {told}");
    // The numbers beside the plot add up to the bill.
    let shown = told["tables"]["cost-by-day"].as_array().expect("rows");
    let cells = shown.iter().flat_map(|row| row.as_array().expect("cells").iter().skip(1));
    let sum: f64 = cells.map(|cell| amount(cell.as_str().expect("text"))).sum();
    assert!((sum - document["usd"].as_f64().expect("a number")).abs() < 0.06, "{told}");
}
