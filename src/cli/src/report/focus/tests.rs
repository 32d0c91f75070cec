//! Compares the lines with the rules of the specification, which are in `rules.csv`: FOCUS 1.3, the dataset Cost and Usage.

use std::collections::BTreeMap;

use poolwright_report::bill::{Book, Split};
use serde_json::Value;

use super::super::tests::{alive, instance, pod, spans};
use super::*;

/// A line, by the names of its columns.
type Cells = BTreeMap<String, String>;

/// Returns the lines of a day with every kind of charge, and what its nodes cost.
fn lines(version: FocusVersion, method: Method) -> (Vec<Cells>, i128) {
    let mut spot = instance("spot", "00:00", "08:00");
    spot["capacityType"] = "spot".into();
    spot["priceMicrosPerHour"] = 1_234_567.into();
    let mut paid = instance("paid", "00:00", "07:07");
    paid["commitment"] = "plan \"one\"".into();
    let mut reserved = instance("reserved", "01:00", "02:00");
    reserved["capacityType"] = "reserved".into();
    reserved["commitment"] = "block".into();
    let mut starting = instance("starting", "00:00", "00:03");
    starting["phase"] = "starting".into();
    starting["listMicrosPerHour"] = Value::Null;
    let mut unknown = instance("unknown", "00:00", "01:00");
    unknown["priceMicrosPerHour"] = Value::Null;
    let mut labelled = pod("a", "spot", "00:10", "03:33");
    labelled["labels"] = serde_json::json!({"team": "red, \"green\""});
    labelled["workloadKind"] = "Job".into();
    labelled["workload"] = "train".into();
    let mut daemon = pod("b", "spot", "00:00", "08:00");
    daemon["daemon"] = true.into();
    let pods = [labelled, daemon, pod("c", "paid", "00:00", "07:07"), pod("d", "unknown", "00:00", "01:00")];
    let rows = [spot, paid, reserved, starting, unknown, alive("08:00")].into_iter().chain(pods);
    let day = spans(rows);
    let mut text = Vec::new();
    let mut lines = Lines::new(version, method, &mut text);
    let mut book = Book::new(Vec::new(), Split::by(method));
    book.add(&day, |charge| lines.write(charge));
    lines.finish().unwrap();
    let mut read = csv::Reader::from_reader(text.as_slice());
    (read.deserialize().map(Result::unwrap).collect(), book.totals().bill.0)
}

/// Returns an exact number of millionths.
fn micros(cell: &str) -> i128 {
    let (whole, decimals) = cell.split_once('.').expect("a decimal number");
    assert!(decimals.len() <= 6, "{cell}");
    format!("{whole}{decimals:0<6}").parse().expect("digits")
}

#[test]
fn every_line_follows_the_table_of_columns() {
    let rules = include_str!("rules.csv");
    let rules: Vec<Cells> =
        csv::Reader::from_reader(rules.as_bytes()).deserialize().map(Result::unwrap).collect();
    let (lines, _) = lines(FocusVersion::V1_3, Method::Weights);
    assert!(lines.len() > 6, "{}", lines.len());
    let known: Vec<&String> = rules.iter().map(|rule| &rule["column"]).collect();
    for name in lines[0].keys() {
        assert!(known.contains(&name) || name.starts_with("x_"), "{name} is no column of FOCUS 1.3");
    }
    for (rule, line) in rules.iter().flat_map(|rule| lines.iter().map(move |line| (rule, line))) {
        let name = &rule["column"];
        let Some(cell) = line.get(name) else { panic!("{name} is missing") };
        if cell.is_empty() {
            assert_eq!(rule["nulls"], "True", "{name} is null in {line:?}");
            continue;
        }
        match rule["type"].as_str() {
            "Decimal" => assert!(cell.parse::<f64>().is_ok() && cell.contains('.'), "{name}: {cell}"),
            "Date/Time" => {
                assert!(cell.len() == 20 && cell.parse::<jiff::Timestamp>().is_ok(), "{name}: {cell}");
            }
            "JSON" => {
                assert!(serde_json::from_str::<Value>(cell).is_ok_and(|value| value.is_object()), "{cell}");
            }
            _ => assert_eq!(cell.trim(), cell, "{name}"),
        }
        let allowed = &rule["allowed"];
        assert!(allowed.is_empty() || allowed.split('|').any(|value| value == cell), "{name}: {cell}");
    }
}

#[test]
fn what_the_specification_says_of_columns_together_holds() {
    for method in [Method::GpuOnly, Method::Weights, Method::Marginal] {
        let (lines, bill) = lines(FocusVersion::V1_3, method);
        let mut ratios: BTreeMap<(String, String), f64> = BTreeMap::new();
        for line in &lines {
            let cell = |name: &str| line[name].as_str();
            let number = |name: &str| cell(name).parse::<f64>().unwrap();
            for (price, cost) in [("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")] {
                let product = number(price) * number("PricingQuantity");
                assert!((product - number(cost)).abs() <= 2e-6, "{price}: {line:?}");
            }
            let committed = !cell("CommitmentDiscountId").is_empty();
            for name in ["Category", "Status", "Quantity", "Unit", "Type", "Name"] {
                assert_eq!(!line[&format!("CommitmentDiscount{name}")].is_empty(), committed, "{name}");
            }
            assert_eq!(cell("PricingCategory") == "Committed", committed);
            assert_eq!(!cell("ContractApplied").is_empty(), committed);
            assert_eq!(
                cell("CapacityReservationId").is_empty(),
                cell("CapacityReservationStatus").is_empty()
            );
            assert!(cell("ChargePeriodStart") < cell("ChargePeriodEnd"));
            assert!(cell("BillingPeriodStart") <= cell("ChargePeriodStart"));
            assert_eq!(cell("AllocatedMethodId"), format!("poolwright:{method}:v1"));
            assert_eq!(cell("AllocatedResourceId").is_empty(), cell("x_Namespace").is_empty());
            assert!(!cell("AllocatedMethodDetails").is_empty());
            let details: Value = serde_json::from_str(cell("AllocatedMethodDetails")).unwrap();
            let ratio = details["Elements"][0]["AllocatedRatio"].as_f64().unwrap();
            *ratios.entry((cell("ResourceId").to_owned(), cell("SkuPriceId").to_owned())).or_default() +=
                ratio;
        }
        let sum = |name: &str| lines.iter().map(|line| micros(&line[name])).sum::<i128>();
        assert_eq!(
            (sum("EffectiveCost"), sum("ContractedCost"), sum("BilledCost")),
            (bill, bill, 0),
            "{method}"
        );
        assert!(ratios.values().all(|ratio| (ratio - 1.0).abs() < 1e-9), "{ratios:?}");
        assert!(lines.iter().all(|line| line["ResourceId"] != "unknown"), "no cost is made up");
    }
}

#[test]
fn version_1_4_lacks_what_it_removed_and_nothing_else() {
    let (older, _) = lines(FocusVersion::V1_3, Method::Weights);
    let (newer, _) = lines(FocusVersion::V1_4, Method::Weights);
    let removed: Vec<&String> = older[0].keys().filter(|name| !newer[0].contains_key(*name)).collect();
    assert_eq!(removed, ["ProviderName", "PublisherName"]);
    assert_eq!(newer[0].len() + 2, older[0].len());
}
