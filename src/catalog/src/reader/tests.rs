use jiff::civil::date;
use poolwright_terms::CapacityType;
use proptest::prelude::*;

use super::*;
use crate::money::UsdPerHour;
use crate::offering::{OfferingId, Zone};
use crate::price::{Price, UnknownPrice};
use crate::resources::ResourceName;
use crate::{Arch, GpuModel};

const HEADER: &str = "instance_type,arch,allocatable_cpu_milli,allocatable_memory_mib,allocatable_pods,gpu_model,gpu_count,\
                      gpu_memory_mib_each,on_demand_usd_per_hour";
const G5: &str = "g5.xlarge,amd64,3920,14162,58,a10g,1,22888,1.006";

fn read(text: &str) -> Result<Catalogue, CsvProblems> {
    read_csv(&[("my.csv", text)])
}

fn problems(text: &str) -> Vec<String> {
    read(text).expect_err("the text has problems").iter().map(ToString::to_string).collect()
}

fn only_price(catalogue: &Catalogue, capacity_type: CapacityType) -> &Price {
    let mut offerings =
        catalogue.offerings().iter().filter(|offering| offering.id.capacity_type == capacity_type);
    let price = &offerings.next().expect("there is such an offering").price;
    assert!(offerings.next().is_none(), "there is one such offering");
    price
}

#[test]
fn a_minimal_catalogue_gives_one_on_demand_offering_in_any_zone() {
    let catalogue = read(&format!("{HEADER}\n{G5}\n")).expect("the catalogue is sound");
    let [offering] = catalogue.offerings() else {
        panic!("one row is one offering: {:?}", catalogue.offerings())
    };
    let id = OfferingId {
        instance_type: "g5.xlarge".into(),
        zone: Zone::from(Zone::ANY),
        capacity_type: CapacityType::OnDemand,
    };
    assert_eq!((&offering.id, &offering.region), (&id, &None));
    assert_eq!(offering.price.known(), Some(UsdPerHour::from_micros(1_006_000)));
    let kind = &catalogue.types()[&id.instance_type];
    assert_eq!(kind.arch, Arch::Amd64);
    assert_eq!(kind.provider.as_str(), UNSPECIFIED_PROVIDER);
    let gpu = kind.gpu.as_ref().expect("a g5.xlarge has a GPU");
    assert_eq!((&gpu.model, gpu.count, gpu.memory_mib), (&GpuModel::from("a10g"), 1, Some(22888)));
    let expected = [
        (ResourceName::CPU, 3920),
        (ResourceName::MEMORY, 14162 << 20),
        (ResourceName::PODS, 58),
        (ResourceName::NVIDIA_GPU, 1),
        (ResourceName::EPHEMERAL_STORAGE, 17 << 30),
    ];
    assert_eq!(kind.allocatable, expected.into_iter().collect());
}

#[test]
fn zones_region_spot_and_sources_are_read_whatever_the_order_of_the_columns() {
    let text = "zones,region,spot_usd_per_hour,spot_source,price_source,price_as_of,provider,ephemeral_storage_mib,\
                on_demand_usd_per_hour,gpu_memory_mib_each,gpu_count,gpu_model,allocatable_pods,allocatable_memory_mib,\
                allocatable_cpu_milli,arch,instance_type\n\
                r1a | r1b,r1,0.4,market,list,2026-07-20,acme,100,1.006,,1,A10G,58,14162,3920,arm64,x1.big\n";
    let catalogue = read(text).expect("the catalogue is sound");
    let ids: Vec<_> = catalogue.offerings().iter().map(|offering| offering.id.to_string()).collect();
    assert_eq!(ids, ["x1.big/r1a/spot", "x1.big/r1a/on-demand", "x1.big/r1b/spot", "x1.big/r1b/on-demand"]);
    for offering in catalogue.offerings() {
        let Price::Known(quote) = &offering.price else { panic!("{} has a price", offering.id) };
        let source = if offering.id.capacity_type == CapacityType::Spot { "market" } else { "list" };
        assert_eq!(quote.source.as_str(), source);
        assert_eq!(
            quote.as_of,
            Some(jiff::civil::date(2026, 7, 20)),
            "spot shares the date it does not state"
        );
        assert_eq!(offering.region.as_deref(), Some("r1"));
    }
    let kind = catalogue.types().values().next().expect("there is a type");
    assert_eq!(kind.gpu.as_ref().map(|gpu| (gpu.model.as_str(), gpu.memory_mib)), Some(("a10g", None)));
    assert_eq!(kind.allocatable.get(ResourceName::EPHEMERAL_STORAGE), 100 << 20);
    assert_eq!((kind.provider.as_str(), catalogue.providers().len()), ("acme", 1));
    assert_eq!(catalogue.origin().as_of, Some(jiff::civil::date(2026, 7, 20)));
}

#[test]
fn a_region_without_zones_is_its_own_zone() {
    let catalogue = read(&format!("{HEADER},region\n{G5},us-east-1\n")).expect("the catalogue is sound");
    assert_eq!(catalogue.offerings()[0].id.zone.as_str(), "us-east-1");
}

#[test]
fn an_empty_price_is_unknown_and_no_spot_price_is_no_spot_offering() {
    let rows = "g5.xlarge,amd64,3920,14162,58,a10g,1,22888,,";
    let catalogue = read(&format!("{HEADER},spot_usd_per_hour\n{rows}\n")).expect("the catalogue is sound");
    assert_eq!(only_price(&catalogue, CapacityType::OnDemand), &Price::Unknown(UnknownPrice::Missing));
    assert_eq!((catalogue.offerings().len(), catalogue.unknown_prices()), (1, 1));
}

#[test]
fn a_price_of_zero_is_quarantined_and_never_read_as_free() {
    let catalogue =
        read(&format!("{HEADER}\n{}\n", G5.replace("1.006", "0.000"))).expect("a zero is no format error");
    let reason = UnknownPrice::NotPositive { quoted: "0.000".into() };
    assert_eq!(only_price(&catalogue, CapacityType::OnDemand), &Price::Unknown(reason));
}

#[test]
fn a_spot_price_above_on_demand_is_quarantined_and_on_demand_stands() {
    let catalogue = read(&format!("{HEADER},spot_usd_per_hour\n{G5},1.5\n")).expect("no format error");
    let spot = only_price(&catalogue, CapacityType::Spot);
    assert!(matches!(spot, Price::Unknown(UnknownPrice::SpotNotBelowOnDemand { .. })), "{spot:?}");
    assert!(only_price(&catalogue, CapacityType::OnDemand).known().is_some());
}

#[test]
fn a_currency_that_is_stated_must_be_dollars_and_one_that_is_not_stated_is_in_the_column_name() {
    let priced_in = |currency: &str| {
        let catalogue = read(&format!("{HEADER},currency\n{G5},{currency}\n")).expect("no format error");
        only_price(&catalogue, CapacityType::OnDemand).clone()
    };
    assert_eq!(priced_in("EUR"), Price::Unknown(UnknownPrice::NotUsd { currency: "EUR".into() }));
    assert_eq!(priced_in(""), Price::Unknown(UnknownPrice::NotUsd { currency: String::new() }));
    assert!(priced_in("USD").known().is_some());
    assert!(read(&format!("{HEADER}\n{G5}\n")).expect("sound").offerings()[0].price.known().is_some());
}

#[test]
fn a_slice_of_a_gpu_is_no_gpu_to_the_scheduler() {
    let catalogue =
        read(&format!("{HEADER}\ng6f.large,amd64,1930,6900,29,l4,0,2861,0.202\n")).expect("sound");
    let kind = &catalogue.types()[&InstanceTypeName::from("g6f.large")];
    assert_eq!((&kind.gpu, kind.allocatable.get(ResourceName::NVIDIA_GPU)), (&None, 0));
}

#[test]
fn all_problems_are_listed_at_once_with_file_line_column_cause_and_remedy() {
    let text = format!(
        "{HEADER}\n{G5}\n\
         g5.2xlarge,x86,-8,lots,0,,1,22888,-1.2\n\
         g5.4xlarge,amd64,1000\n\
         g5.xlarge,amd64,3920,14162,58,a10g,0.5,22888,$1\n"
    );
    assert_eq!(
        problems(&text),
        [
            "my.csv:3:arch: \"x86\" is not an architecture; use amd64 or arm64",
            "my.csv:3:allocatable_cpu_milli: \"-8\" is negative; use a whole number, 1 or more",
            "my.csv:3:allocatable_memory_mib: \"lots\" is not a whole number; use a whole number, 1 or more",
            "my.csv:3:allocatable_pods: \"0\" is too small; use a whole number, 1 or more",
            "my.csv:3:gpu_model: the cell is empty; it becomes a node label: write at most 63 letters, digits, `-`, `_` \
             and `.`, and begin and end with a letter or digit",
            "my.csv:3:on_demand_usd_per_hour: \"-1.2\" is negative; a price is a plain decimal above zero, like 1.006: \
             leave the cell empty if it is not known",
            "my.csv:4: the row has 3 cells and the header 9; give every column a cell, empty where nothing is known; \
             quote a cell that holds a comma",
            "my.csv:5:gpu_count: \"0.5\" is not a whole number; use a whole number, 0 or more",
            "my.csv:5:on_demand_usd_per_hour: \"$1\" is not a decimal number of US dollars per hour; a price is a plain \
             decimal above zero, like 1.006: leave the cell empty if it is not known",
            "my.csv:5:instance_type: \"g5.xlarge\" is already listed at my.csv:2; keep one row for each instance type; a \
             catalogue covers one region of each provider",
        ]
    );
}

#[test]
fn a_header_names_each_missing_unknown_and_repeated_column() {
    let header = HEADER.replace("gpu_model", "gpu_modle").replace("arch", "Arch") + ",colour,region,region";
    let found = problems(&format!("{header}\n"));
    let begins = [
        "my.csv:1:Arch: there is no such column; did you mean `arch`?",
        "my.csv:1:gpu_modle: there is no such column; did you mean `gpu_model`?",
        "my.csv:1:colour: there is no such column; remove it; known are instance_type, arch,",
        "my.csv:1:region: the column is listed twice; keep one of the two",
    ];
    assert_eq!(found.len(), begins.len(), "{found:#?}");
    for (problem, begin) in found.iter().zip(begins) {
        assert!(problem.starts_with(begin), "{problem}");
    }
}

#[test]
fn all_missing_columns_are_one_problem() {
    let header = HEADER.replace("arch,", "").replace("gpu_model,", "");
    assert_eq!(
        problems(&format!("{header}\n")),
        ["my.csv:1: the columns arch, gpu_model are missing; add them to the header"]
    );
}

#[test]
fn a_missing_column_is_reported_once_and_all_rows_are_read() {
    let header = HEADER.replace(",on_demand_usd_per_hour", "");
    let row = "g5.xlarge,amd64,-5,14162,58,a10g,1,22888";
    let again = "g5.xlarge,amd64,3920,14162,58,a10g,one,22888";
    let found = problems(&format!("{header}\n{row}\n{again}\n"));
    let begins = [
        "my.csv:1:on_demand_usd_per_hour: the column is missing; add it to the header",
        "my.csv:2:allocatable_cpu_milli: \"-5\" is negative",
        "my.csv:3:gpu_count: \"one\" is not a whole number",
        "my.csv:3:instance_type: \"g5.xlarge\" is already listed at my.csv:2",
    ];
    assert_eq!(found.len(), begins.len(), "{found:#?}");
    for (problem, begin) in found.iter().zip(begins) {
        assert!(problem.starts_with(begin), "{problem}");
    }
}

#[test]
fn a_type_that_two_files_list_is_a_problem_of_the_second() {
    let text = format!("{HEADER}\n{G5}\n");
    let found = read_csv(&[("a.csv", &text), ("b.csv", &text)]).expect_err("one type in two files");
    assert!(
        found.to_string().starts_with("b.csv:2:instance_type: \"g5.xlarge\" is already listed at a.csv:2"),
        "{found}"
    );
}

#[test]
fn problems_of_every_file_are_listed() {
    let found = read_csv(&[("a.csv", ""), ("b.csv", "arch\n")]).expect_err("neither file is sound");
    assert_eq!((found.len(), found.iter().next().map(|first| first.file.as_str())), (2, Some("a.csv")));
}

#[test]
fn an_empty_file_and_a_header_without_rows_are_problems() {
    for empty in ["", "\n\n", "\u{feff}", " , ,\n"] {
        assert!(
            problems(empty)[0].starts_with("my.csv:1: the file is empty; begin it with the header"),
            "{empty:?}"
        );
    }
    assert_eq!(
        problems(HEADER),
        ["my.csv:1: there is a header but no instance type below it; add one row for each instance type"]
    );
}

#[test]
fn semicolons_between_columns_are_called_that() {
    let found = problems(&HEADER.replace(',', ";"));
    assert_eq!(found, ["my.csv:1: the columns are separated by semicolons; separate them by commas"]);
}

#[test]
fn a_name_that_cannot_be_a_node_label_is_a_problem() {
    let text = format!("{HEADER},zones\nn1+t4,amd64,1,1,1,,0,,1,\nm.a,amd64,1,1,1,,0,,1,a|b c|a|\n");
    let found = problems(&text);
    let begins = [
        "my.csv:2:instance_type: \"n1+t4\" cannot be the value of a label",
        "my.csv:3:zones: \"b c\" cannot be the name of a zone",
        "my.csv:3:zones: \"a\" is listed twice",
        "my.csv:3:zones: \"\" cannot be the name of a zone",
    ];
    assert_eq!(found.len(), begins.len(), "{found:#?}");
    for (problem, begin) in found.iter().zip(begins) {
        assert!(problem.starts_with(begin), "{problem}");
    }
}

#[test]
fn a_date_that_is_none_is_reported_once_though_both_prices_share_it() {
    let found = problems(&format!("{HEADER},spot_usd_per_hour,price_as_of\n{G5},0.5,July\n"));
    assert_eq!(
        found,
        [
            "my.csv:2:price_as_of: \"July\" is not a date; write it as YYYY-MM-DD, or leave the cell empty if it is not known"
        ]
    );
}

#[test]
fn a_number_beyond_what_kubernetes_can_hold_is_too_large() {
    let found = problems(&format!("{HEADER}\nx,amd64,99999999999999999999,9000000000000,58,,0,,1\n"));
    assert!(
        found[0].starts_with("my.csv:2:allocatable_cpu_milli: \"99999999999999999999\" is too large"),
        "{found:?}"
    );
    assert!(
        found[1].starts_with("my.csv:2:allocatable_memory_mib: \"9000000000000\" is too large"),
        "{found:?}"
    );
}

#[test]
fn a_file_as_a_spreadsheet_writes_it_is_read() {
    let plain = read(&format!("{HEADER}\n{G5}\n")).expect("sound");
    let header = HEADER.replace(',', "\",\"");
    let row = G5.replace(',', "\",\"");
    let spreadsheet = format!("\u{feff}\"{header}\"\r\n\r\n\"{row}\"\r\n,,,,,,,,\r\n\r\n  \r\n");
    assert_eq!(read(&spreadsheet).expect("sound"), plain);
}

#[test]
fn line_numbers_count_blank_lines_and_carriage_returns() {
    let found = problems(&format!("\r\n{HEADER}\r\n\r\n\r\n{G5}\r\n\n \n{}", G5.replace("1.006", "cheap")));
    assert!(found[0].starts_with("my.csv:8:on_demand_usd_per_hour"), "{}", found[0]);
    assert!(found[1].contains("already listed at my.csv:5;"), "{}", found[1]);
}

#[test]
fn an_overlay_replaces_the_types_it_names_and_keeps_the_rest() {
    let base = format!(
        "{HEADER},zones,price_as_of\n{G5},a|b,2025-01-01\n{},a,2026-01-01\n",
        G5.replace("xlarge", "big")
    );
    let mine = format!("{HEADER}\n{}\n{}\n", G5.replace("1.006", "0.9"), G5.replace("xlarge", "small"));
    let base = read(&base).expect("sound").named("base");
    let over = base.overlaid_with(read(&mine).expect("sound"));
    let offerings: Vec<_> = over
        .offerings()
        .iter()
        .map(|offering| {
            (offering.id.to_string(), offering.price.known().expect("every price is known").to_string())
        })
        .collect();
    let expected = [
        ("g5.big/a/on-demand", "1.006"),
        ("g5.small/any/on-demand", "1.006"),
        ("g5.xlarge/any/on-demand", "0.90"),
    ];
    assert_eq!(offerings, expected.map(|(id, price)| (id.to_owned(), price.to_owned())));
    assert_eq!(over.origin().source, "my.csv over base");
    assert_eq!(over.origin().as_of, Some(jiff::civil::date(2026, 1, 1)), "the oldest price left");
}

#[test]
fn the_bench_catalogue_is_read_whole_and_nothing_in_it_is_in_quarantine() {
    let text = include_str!("../../../../fixtures/catalogue/solver-bench-79-types.csv");
    let catalogue = read(text).expect("sound");
    assert_eq!(
        (catalogue.types().len(), catalogue.offerings().len(), catalogue.unknown_prices()),
        (79, 79, 0)
    );
}

/// Generates the cells of a valid row.
fn sound_row() -> impl Strategy<Value = Vec<String>> {
    let gpu = prop_oneof![
        Just((String::new(), "0".to_owned(), String::new())),
        ("[a-z][a-z0-9]{0,5}", 1u32..17, prop::option::of(1u64..300_000)).prop_map(
            |(model, count, memory)| {
                (model, count.to_string(), memory.map(|memory| memory.to_string()).unwrap_or_default())
            }
        ),
    ];
    (
        prop_oneof![Just("amd64"), Just("arm64")],
        1u64..500_000,
        1u64..5_000_000,
        1u64..800,
        gpu,
        prop::option::of(1u64..200_000_000),
        prop::collection::btree_set("[a-z]{1,4}", 0..4),
        "[a-z ,\"\n]{0,9}",
    )
        .prop_map(|(arch, cpu, memory, pods, (model, count, gpu_memory), price, zones, source)| {
            let price = price.map(|micros| UsdPerHour::from_micros(micros).to_string()).unwrap_or_default();
            let zones = zones.into_iter().collect::<Vec<_>>().join("|");
            vec![
                arch.to_owned(),
                cpu.to_string(),
                memory.to_string(),
                pods.to_string(),
                model,
                count,
                gpu_memory,
                price,
                zones,
                source,
            ]
        })
}

fn written(rows: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER.split(',').chain(["zones", "price_source"])).expect("memory can be written");
    for (which, cells) in rows.iter().enumerate() {
        // Each type has its own family, so that the sibling rule does not apply.
        let name = format!("f{which}.x");
        writer.write_record(std::iter::once(&name).chain(cells)).expect("memory can be written");
    }
    String::from_utf8(writer.into_inner().expect("memory can be written")).expect("cells are UTF-8")
}

fn cells_of(catalogue: &Catalogue, name: &str) -> Vec<String> {
    let kind = &catalogue.types()[&InstanceTypeName::from(name)];
    let offerings: Vec<_> =
        catalogue.offerings().iter().filter(|offering| offering.id.instance_type == kind.name).collect();
    let (price, source) = match &offerings[0].price {
        Price::Known(quote) => (quote.usd_per_hour.to_string(), quote.source.to_string()),
        Price::Unknown(_) => (String::new(), String::new()),
    };
    let zones: Vec<_> = offerings.iter().map(|offering| offering.id.zone.as_str()).collect();
    let gpu = kind.gpu.as_ref();
    vec![
        kind.arch.as_str().to_owned(),
        kind.allocatable.get(ResourceName::CPU).to_string(),
        (kind.allocatable.get(ResourceName::MEMORY) >> 20).to_string(),
        kind.allocatable.get(ResourceName::PODS).to_string(),
        gpu.map(|gpu| gpu.model.to_string()).unwrap_or_default(),
        kind.allocatable.get(ResourceName::NVIDIA_GPU).to_string(),
        gpu.and_then(|gpu| gpu.memory_mib).map(|memory| memory.to_string()).unwrap_or_default(),
        price,
        zones.join("|"),
        source,
    ]
}

proptest! {
    #[test]
    fn a_written_catalogue_reads_back_unchanged(rows in prop::collection::vec(sound_row(), 1..12)) {
        let catalogue = read(&written(&rows)).expect("every row is sound");
        prop_assert_eq!(catalogue.types().len(), rows.len());
        for (which, cells) in rows.iter().enumerate() {
            let mut expected = cells.clone();
            if expected[8].is_empty() {
                expected[8] = Zone::ANY.to_owned();
            }
            let source = expected[9].trim().to_owned();
            expected[9] = match (expected[7].is_empty(), source.is_empty()) {
                (true, _) => String::new(),
                (false, true) => "my.csv".to_owned(),
                (false, false) => source,
            };
            prop_assert_eq!(cells_of(&catalogue, &format!("f{which}.x")), expected);
        }
    }

    #[test]
    fn no_text_whatever_makes_the_reader_panic(text in any::<String>()) {
        let _: Result<Catalogue, CsvProblems> = read(&text);
    }

    #[test]
    fn no_rows_whatever_below_a_sound_header_make_the_reader_panic_and_every_problem_is_on_a_line_of_the_file(
        rows in "([a-zü0-9.,\"\r\n|-]{0,40}\r?\n){0,6}"
    ) {
        let text = format!("{HEADER},zones,spot_usd_per_hour,price_as_of\n{rows}");
        if let Err(problems) = read(&text) {
            let lines = text.bytes().filter(|byte| *byte == b'\n').count() as u64 + 1;
            prop_assert!(problems.iter().all(|problem| (1..=lines).contains(&problem.line)), "{problems}");
        }
    }

    #[test]
    fn one_spoilt_cell_is_one_problem_in_its_column(
        rows in prop::collection::vec(sound_row(), 1..6), at in 0usize..6, column in 1usize..4
    ) {
        let at = at % rows.len();
        let mut rows = rows;
        for row in &mut rows {
            row[9] = String::new();
        }
        rows[at][column] = "?".to_owned();
        let problems = read(&written(&rows)).expect_err("a cell is spoilt");
        prop_assert_eq!(problems.len(), 1);
        let problem = problems.iter().next().expect("there is one");
        prop_assert_eq!(problem.line, at as u64 + 2);
        prop_assert_eq!(problem.column.as_deref(), HEADER.split(',').nth(column + 1));
    }
}

const WIDE: &str = "instance_type,arch,allocatable_cpu_milli,allocatable_memory_mib,allocatable_pods,gpu_model,gpu_count,\
                    gpu_memory_mib_each,on_demand_usd_per_hour,zone,capacity_type,spot_usd_per_hour,available_nodes,\
                    spot_interruptions_per_hour";

#[test]
fn a_type_may_have_a_row_for_each_zone_and_capacity_type_with_stock_and_interruptions() {
    let machine = "g5.xlarge,amd64,3920,14162,58,a10g,1,22888";
    let catalogue = read(&format!(
        "{WIDE}\n{machine},1.006,a,on-demand,,,\n{machine},1.006,a,spot,0.4,3,0.0021\n{machine},1.1,b,,0.5,,\n"
    ))
    .expect("a catalogue");
    let found: Vec<_> = catalogue
        .offerings()
        .iter()
        .map(|offering| {
            let rate = offering.interruptions.as_ref().map(|said| said.per_million_hours);
            (offering.id.to_string(), offering.available, rate)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("g5.xlarge/a/spot".to_owned(), Some(3), Some(2100)),
            ("g5.xlarge/a/on-demand".to_owned(), None, None),
            ("g5.xlarge/b/spot".to_owned(), None, None),
            ("g5.xlarge/b/on-demand".to_owned(), None, None),
        ]
    );
    assert_eq!(catalogue.types().len(), 1);
}

#[test]
fn an_interruption_rate_has_a_source_and_a_date() {
    let machine = "g5.xlarge,amd64,3920,14162,58,a10g,1,22888,1.006,,,0.4,,0.0021";
    let header = format!("{WIDE},interruptions_source,interruptions_as_of");
    let said = |rest: &str| {
        let catalogue = read(&format!("{header}\n{machine},{rest}\n")).expect("a catalogue");
        let spot = catalogue.offerings().iter().find_map(|offering| offering.interruptions.clone());
        spot.map(|said| (said.source.to_string(), said.as_of, said.age_in_days(date(2026, 1, 3))))
    };
    let day = date(2026, 1, 1);
    assert_eq!(said("advisor,2026-01-01"), Some(("advisor".to_owned(), Some(day), Some(2))));
    assert_eq!(said(","), Some(("my.csv".to_owned(), None, None)));
    let found = problems(&format!("{header}\n{machine},advisor,yesterday\n"));
    assert!(
        found[0].starts_with("my.csv:2:interruptions_as_of: \"yesterday\" is not a date; write"),
        "{found:?}"
    );
}

#[test]
fn a_spot_offering_has_the_notice_that_its_row_says_and_others_have_none() {
    let header = format!("{HEADER},spot_usd_per_hour,spot_notice_seconds");
    let notices = |cell: &str| {
        let catalogue = read(&format!("{header}\n{G5},0.4,{cell}\n")).expect("a catalogue");
        let of =
            |offering: &Offering| (offering.id.capacity_type, offering.notice.map(|said| said.as_secs()));
        catalogue.offerings().iter().map(of).collect::<Vec<_>>()
    };
    let (spot, on_demand) = (CapacityType::Spot, CapacityType::OnDemand);
    assert_eq!(notices("30"), [(spot, Some(30)), (on_demand, None)]);
    assert_eq!(notices(""), [(spot, None), (on_demand, None)]);
    for (cell, cause) in [("0", "too small"), ("90000", "too large"), ("soon", "not a whole number")] {
        let found = problems(&format!("{header}\n{G5},0.4,{cell}\n"));
        let expected = format!("my.csv:2:spot_notice_seconds: \"{cell}\" is {cause}; use");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
    }
}

#[test]
fn rows_of_one_type_that_contradict_each_other_are_listed() {
    let machine = "g5.xlarge,amd64,3920,14162,58,a10g,1,22888";
    let other = "g5.xlarge,amd64,7920,14162,58,a10g,1,22888";
    let found = problems(&format!(
        "{WIDE}\n{machine},1.006,a,,0.4,,\n{machine},1.006,a,spot,0.4,,\n{other},1.006,b,,,,\n\
         {machine},1.006,c,reserved,,-1,often\n{machine},1.006,d,spot,,,100\n"
    ));
    let expected = [
        "my.csv:3:instance_type: g5.xlarge/a/spot is already listed, first at my.csv:2; keep one row",
        "my.csv:4:instance_type: \"g5.xlarge\" is another machine than at my.csv:2; rows of one instance type",
        "my.csv:5:capacity_type: \"reserved\" is not a capacity type that has a price; use",
        "my.csv:5:available_nodes: \"-1\" is negative; use",
        "my.csv:5:spot_interruptions_per_hour: \"often\" is not a rate; give",
        "my.csv:6:spot_interruptions_per_hour: \"100\" is too large; give",
        "my.csv:6:capacity_type: the row is a spot offering and has no spot price; give",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}
