//! Tests the parsing of AWS's prices.

use jiff::civil::date;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{InstanceTypeName, Price, PriceSource, UnknownPrice, UsdPerHour, Zone};
use poolwright_provider_aws_model::prices::{
    BUILTIN_AS_OF, DEFAULT_MAX_AGE, OnDemandPrices, Refusal, SpotEntry, SpotPrices, SpotRefusal, read_entry,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Returns an entry in the format of GetProducts, including some of its unused fields.
fn entry(name: &str, price: &str) -> Value {
    json!({
        "product": {
            "productFamily": "Compute Instance",
            "attributes": {
                "instanceType": name, "regionCode": "eu-west-1", "operatingSystem": "Linux", "tenancy": "Shared",
                "preInstalledSw": "NA", "capacitystatus": "Used", "marketoption": "OnDemand", "vcpu": "4",
                "servicecode": "AmazonEC2", "usagetype": "EU-BoxUsage:g5.xlarge",
            },
            "sku": "ABCDEFGH12345678",
        },
        "serviceCode": "AmazonEC2",
        "terms": {
            "OnDemand": {"ABCDEFGH12345678.JRTCKXETXF": {
                "priceDimensions": {"ABCDEFGH12345678.JRTCKXETXF.6YS6EN2CT7": {
                    "unit": "Hrs", "beginRange": "0", "endRange": "Inf", "appliesTo": [],
                    "description": "per On Demand Linux instance hour", "pricePerUnit": {"USD": price},
                }},
                "effectiveDate": "2026-11-01T00:00:00Z", "termAttributes": {},
            }},
            "Reserved": {"ABCDEFGH12345678.38NPMPTW36": {"priceDimensions": {
                "x": {"unit": "Quantity", "pricePerUnit": {"USD": "4000"}},
            }}},
        },
        "version": "20261120000000",
    })
}

const DIMENSION: &str =
    "/terms/OnDemand/ABCDEFGH12345678.JRTCKXETXF/priceDimensions/ABCDEFGH12345678.JRTCKXETXF.6YS6EN2CT7";

fn at<'v>(entry: &'v mut Value, path: &str) -> &'v mut Value {
    entry.pointer_mut(path).expect(path)
}

fn read(text: &str) -> Result<Price, Refusal> {
    let day = Some(date(2026, 11, 23));
    read_entry(text, "eu-west-1", &PriceSource::from("test"), day).map(|listed| listed.price)
}

fn with(change: impl FnOnce(&mut Value)) -> Result<Price, Refusal> {
    let mut entry = entry("g5.xlarge", "1.1230000000");
    change(&mut entry);
    read(&entry.to_string())
}

#[test]
fn an_entry_has_a_price_with_its_source_and_day() {
    let Ok(Price::Known(quote)) = with(|_| {}) else { panic!("a price") };
    assert_eq!(quote.usd_per_hour, UsdPerHour::from_micros(1_123_000));
    assert_eq!((quote.source.as_str(), quote.as_of), ("test", Some(date(2026, 11, 23))));
}

#[test]
fn a_price_that_cannot_be_right_is_unknown_with_its_reason() {
    for zero in ["0.0000000000", "0", "0.0000004"] {
        let price = with(|entry| at(entry, DIMENSION)["pricePerUnit"] = json!({"USD": zero}));
        assert_eq!(price, Ok(Price::Unknown(UnknownPrice::NotPositive { quoted: zero.to_owned() })));
    }
    let yuan = with(|entry| at(entry, DIMENSION)["pricePerUnit"] = json!({"CNY": "7.1"}));
    assert_eq!(yuan, Ok(Price::Unknown(UnknownPrice::NotUsd { currency: "CNY".to_owned() })));
    let two = with(|entry| {
        let dimensions =
            at(entry, "/terms/OnDemand/ABCDEFGH12345678.JRTCKXETXF/priceDimensions").as_object_mut().unwrap();
        dimensions.insert("other".to_owned(), json!({"unit": "Hrs", "pricePerUnit": {"USD": "2"}}));
    });
    let (lower, higher) = (UsdPerHour::from_micros(1_123_000), UsdPerHour::from_micros(2_000_000));
    assert_eq!(two, Ok(Price::Unknown(UnknownPrice::Contradictory { lower, higher })));
}

#[test]
fn an_unrequested_product_is_rejected_by_name() {
    for (attribute, value) in [
        ("operatingSystem", "Windows"),
        ("preInstalledSw", "SQL Ent"),
        ("capacitystatus", "AllocatedCapacityReservation"),
        ("tenancy", "Dedicated"),
        ("regionCode", "us-east-1"),
    ] {
        let refusal = with(|entry| at(entry, "/product/attributes")[attribute] = json!(value));
        let text = refusal.expect_err(attribute).to_string();
        assert!(text.contains("g5.xlarge") && text.contains(attribute) && text.contains(value), "{text}");
    }
    let family = with(|entry| at(entry, "/product")["productFamily"] = json!("Dedicated Host"));
    assert!(family.expect_err("a host").to_string().contains("Dedicated Host"));
    let metal = with(|entry| {
        at(entry, "/product")["productFamily"] = json!("Compute Instance (bare metal)");
        at(entry, "/product/attributes")["tenancy"] = json!("Dedicated");
    });
    assert!(metal.is_ok());
    let unit = with(|entry| at(entry, DIMENSION)["unit"] = json!("Quantity"));
    assert!(matches!(unit, Err(Refusal::OtherUnit { .. })), "{unit:?}");
    let none = with(|entry| at(entry, "/terms")["OnDemand"] = json!({}));
    assert_eq!(none, Err(Refusal::NoPrice { instance_type: "g5.xlarge".to_owned() }));
    let no_type = with(|entry| at(entry, "/product/attributes")["instanceType"] = json!("../../etc"));
    assert_eq!(no_type, Err(Refusal::NotAType("../../etc".to_owned())));
}

#[test]
fn amounts_that_are_none_and_amounts_beyond_reason_are_refused() {
    for text in ["", "-1", "1e3", "NaN", "1,5", "$1", &"x".repeat(10_000)] {
        let refusal = with(|entry| at(entry, DIMENSION)["pricePerUnit"] = json!({"USD": text}));
        let refusal = refusal.expect_err(text);
        assert!(matches!(refusal, Refusal::NotAnAmount { .. }), "{refusal}");
        assert!(refusal.to_string().len() < 250);
    }
    assert!(with(|entry| at(entry, DIMENSION)["pricePerUnit"] = json!({"USD": "50000"})).is_ok());
    for text in ["50000.000001", "1000000000000000000000000000000"] {
        let refusal = with(|entry| at(entry, DIMENSION)["pricePerUnit"] = json!({"USD": text}));
        assert!(matches!(refusal, Err(Refusal::TooLarge { .. })), "{refusal:?}");
    }
    let number = with(|entry| at(entry, DIMENSION)["pricePerUnit"] = json!({"USD": 1.5}));
    assert!(matches!(number, Err(Refusal::NotAnEntry(_))), "a number has no exact value: {number:?}");
}

#[test]
fn hostile_texts_are_refused_and_not_looked_at_for_long() {
    let nested = |around: &str| around.replace('*', &format!("{}{}", "[".repeat(50_000), "]".repeat(50_000)));
    for text in [
        nested("*"),
        nested("{\"product\":*}"),
        nested("{\"product\":{\"attributes\":{\"instanceType\":*}}}"),
    ] {
        assert!(matches!(read(&text), Err(Refusal::NotAnEntry(_))), "{:?}", read(&text));
    }
    let long = with(|entry| at(entry, "/product")["sku"] = json!("x".repeat(300_000)));
    assert!(matches!(long, Err(Refusal::TooLong { bytes }) if bytes > 300_000), "{long:?}");
    let deep = entry("g5.xlarge", "1").to_string().replace("\"20261120000000\"", &nested("*"));
    assert!(read(&deep).is_ok(), "what nobody reads may be anything");
}

#[test]
fn a_list_tells_what_it_could_not_use_and_knows_no_price_that_is_not_in_it() {
    let mut two = entry("g6.xlarge", "0.8");
    at(&mut two, "/terms/OnDemand")["other"] =
        json!({"priceDimensions": {"d": {"unit": "Hrs", "pricePerUnit": {"USD": "0.85"}}}});
    let texts = [
        entry("g5.xlarge", "1.123").to_string(),
        entry("g5.xlarge", "1.123").to_string(),
        entry("g6.xlarge", "0.9").to_string(),
        two.to_string(),
        entry("p5.48xlarge", "0").to_string(),
        entry("p5.48xlarge", "60").to_string(),
        "{".to_owned(),
    ];
    let list = OnDemandPrices::of_entries("eu-west-1", date(2026, 11, 23), texts.iter().map(String::as_str));
    let price = |name: &str| list.price(&InstanceTypeName::from(name));
    assert_eq!(price("g5.xlarge").known(), Some(UsdPerHour::from_micros(1_123_000)));
    let (lower, higher) = (UsdPerHour::from_micros(800_000), UsdPerHour::from_micros(900_000));
    assert_eq!(price("g6.xlarge"), Price::Unknown(UnknownPrice::Contradictory { lower, higher }));
    assert_eq!(price("p5.48xlarge").known(), Some(UsdPerHour::from_micros(60_000_000)));
    assert_eq!(price("g4dn.xlarge"), Price::Unknown(UnknownPrice::Missing));
    assert_eq!((list.len(), list.refused().len(), list.note()), (3, 1, None));
    assert_eq!(list.source(), "AWS price list of eu-west-1");
}

#[test]
fn the_list_built_in_is_of_one_region_and_says_so_everywhere_else() {
    let home = OnDemandPrices::builtin("us-east-1");
    assert_eq!(home.len(), 1348);
    let Price::Known(quote) = home.price(&"p5.48xlarge".into()) else { panic!("a price") };
    assert_eq!(quote.usd_per_hour.to_string(), "55.04");
    assert_eq!(quote.as_of, Some(BUILTIN_AS_OF));
    assert!(quote.source.as_str().contains("built-in"), "{}", quote.source);
    assert!(home.note().expect("a note").contains("2026-07-20"));
    let away = OnDemandPrices::builtin("eu-west-1");
    assert!(away.is_empty());
    assert_eq!(away.price(&"p5.48xlarge".into()), Price::Unknown(UnknownPrice::Missing));
    assert!(away.note().expect("a note").contains("pricing:GetProducts"));
}

#[test]
fn the_list_built_in_is_the_one_of_the_catalogue() {
    let list = OnDemandPrices::builtin("us-east-1");
    let catalogue = poolwright_catalog::builtin();
    let theirs = catalogue.offerings().iter().filter(|offering| {
        offering.region.as_deref() == Some("us-east-1")
            && offering.id.capacity_type == poolwright_terms::CapacityType::OnDemand
    });
    for offering in theirs {
        assert_eq!(list.price(&offering.id.instance_type).known(), offering.price.known(), "{}", offering.id);
    }
}

fn now() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().expect("a time")
}

fn spot(zone: &str, price: &str, hours_ago: i64) -> SpotEntry {
    SpotEntry {
        instance_type: "g5.xlarge".to_owned(),
        zone: zone.to_owned(),
        product: "Linux/UNIX".to_owned(),
        price: price.to_owned(),
        since: now() - SignedDuration::from_hours(hours_ago),
    }
}

fn known(prices: &SpotPrices, zone: &str) -> Option<String> {
    let price = prices.get(&"g5.xlarge".into(), &Zone::from(zone))?;
    Some(price.price.known()?.to_string())
}

#[test]
fn the_latest_spot_price_of_each_zone_counts() {
    let entries = [spot("a", "0.40", 5), spot("a", "0.4125", 1), spot("b", "0.39", 2), spot("a", "0.5", 9)];
    let prices = SpotPrices::of_history(entries, now(), DEFAULT_MAX_AGE);
    assert_eq!(known(&prices, "a").as_deref(), Some("0.4125"));
    assert_eq!(known(&prices, "b").as_deref(), Some("0.39"));
    assert_eq!((prices.len(), prices.refused().len(), known(&prices, "c")), (2, 0, None));
    let Price::Known(quote) = &prices.get(&"g5.xlarge".into(), &"b".into()).expect("a price").price else {
        panic!("a price")
    };
    assert_eq!(quote.as_of, Some(date(2026, 11, 23)));
}

#[test]
fn spot_prices_that_are_old_or_of_windows_are_not_there() {
    let old = spot("a", "0.40", 31 * 24);
    let windows = SpotEntry { product: "Windows".to_owned(), ..spot("a", "0.40", 1) };
    let nameless = SpotEntry { zone: String::new(), ..spot("a", "0.40", 1) };
    let prices = SpotPrices::of_history([old, windows, nameless], now(), DEFAULT_MAX_AGE);
    assert!(prices.is_empty());
    assert!(matches!(
        prices.refused(),
        [SpotRefusal::Stale { .. }, SpotRefusal::OtherProduct(_), SpotRefusal::NoNames { .. }]
    ));
}

#[test]
fn a_latest_spot_price_that_cannot_be_read_is_not_replaced_by_an_older_one() {
    for (text, reason) in [
        ("cheap", UnknownPrice::Missing),
        ("-1", UnknownPrice::Missing),
        ("0.000000", UnknownPrice::NotPositive { quoted: "0.000000".to_owned() }),
    ] {
        let prices =
            SpotPrices::of_history([spot("a", text, 1), spot("a", "0.4", 2)], now(), DEFAULT_MAX_AGE);
        let price = prices.get(&"g5.xlarge".into(), &"a".into()).expect("an entry");
        assert_eq!(price.price, Price::Unknown(reason), "{text}");
    }
}

proptest! {
    #[test]
    fn money_of_the_list_is_exact(micros in 1u64..50_000_000_000, padding in 0usize..5) {
        let text = format!("{}.{:06}{}", micros / 1_000_000, micros % 1_000_000, "0".repeat(padding));
        let price = read(&entry("g5.xlarge", &text).to_string());
        prop_assert_eq!(price.map(|price| price.known()), Ok(Some(UsdPerHour::from_micros(micros))));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*") {
        prop_assert!(read(&text).is_err());
    }

    #[test]
    fn no_damage_to_an_entry_makes_the_reader_panic(
        cuts in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6)
    ) {
        let mut bytes = entry("g5.xlarge", "1.1230000000").to_string().into_bytes();
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(Price::Known(quote)) = read(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(quote.usd_per_hour > UsdPerHour::ZERO);
        }
    }

    #[test]
    fn the_order_of_entries_does_not_matter(
        prices in proptest::collection::vec((0usize..3, "[0-9]\\.[0-9]{1,3}", 0i64..3), 0..12), turn in any::<usize>()
    ) {
        let names = ["g5.xlarge", "g6.xlarge", "p5.48xlarge"];
        let texts: Vec<_> = prices.iter().map(|(which, price, _)| entry(names[*which], price).to_string()).collect();
        let history: Vec<_> = prices.iter().map(|(zone, price, ago)| spot(["a", "b", "c"][*zone], price, *ago)).collect();
        let of = |turn: usize| {
            let (mut texts, mut history) = (texts.clone(), history.clone());
            let by = turn.checked_rem(texts.len()).unwrap_or(0);
            texts.rotate_left(by);
            history.rotate_left(by);
            let listed = OnDemandPrices::of_entries("eu-west-1", date(2026, 11, 23), texts.iter().map(String::as_str));
            let known = names.map(|name| listed.price(&name.into()).known());
            let spot = SpotPrices::of_history(history, now(), DEFAULT_MAX_AGE);
            (known, ["a", "b", "c"].map(|zone| self::known(&spot, zone)))
        };
        prop_assert_eq!(of(0), of(turn));
    }
}
