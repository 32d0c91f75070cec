//! Prints the lists as tables.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table};
use poolwright_catalog::UsdPerHour;
use poolwright_terms::one_line;

use super::gpus::{self, Gpus};
use super::prices::{self, Prices};
use crate::print::{TableLayout, count, counted, money, plain, text};

/// The index of the column with the interruption rates.
const RATE: usize = 6;

/// The text for a value that the source does not have.
const NOT_SAID: &str = "-";

/// Prints types with GPUs.
pub fn gpus(list: &Gpus, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    let says_more = list.types.iter().any(|row| row.vcpus.is_some());
    let mut header = vec!["INSTANCE TYPE", "GPU", "GPUS", "GIB EACH", "MIG", "CPU", "GIB"];
    if says_more {
        header.extend(["EFA", "NVME GB"]);
    }
    if layout.wide {
        header.extend(["PROVIDER", "ARCH", "ZONES"]);
    }
    if says_more || list.types.iter().any(|row| !row.class.is_empty()) {
        header.push("NOTE");
    }
    let mut table = plain(layout);
    table.set_header(&header);
    for row in &list.types {
        let mut cells = vec![
            row.instance_type.clone(),
            row.gpu_model.clone(),
            number_of_gpus(row),
            row.gpu_memory_mib.map_or_else(|| NOT_SAID.to_owned(), gibibytes),
            mig(row, layout),
            cpu(row),
            row.memory_mib.or(row.allocatable_memory_mib).map_or_else(|| NOT_SAID.to_owned(), gibibytes),
        ];
        if says_more {
            cells.push(row.efa_interfaces.map_or_else(|| NOT_SAID.to_owned(), |number| number.to_string()));
            cells.push(row.local_nvme_gb.map_or_else(|| NOT_SAID.to_owned(), |gb| gb.to_string()));
        }
        if layout.wide {
            cells.push(row.provider.clone());
            cells.push(row.arch.unwrap_or(NOT_SAID).to_owned());
            cells.push(row.zones.join(","));
        }
        if header.contains(&"NOTE") {
            let whole = row.left_out.as_deref().filter(|_| layout.wide);
            cells.push(whole.unwrap_or(row.class).to_owned());
        }
        table.add_row(cells.iter().map(|cell| one_line(cell)));
    }
    right(&mut table, if says_more { &[2, 3, 5, 6, 7, 8] } else { &[2, 3, 5, 6] });
    writeln!(out, "{}\n", text(table))?;
    let what = if says_more {
        "CPU and memory are those of the instance."
    } else {
        "CPU and memory are what a node offers to pods; catalogues do not list EFA and NVMe."
    };
    writeln!(out, "{}", layout.fit(&format!("{}. {what}", counted(list.types.len(), "type")), 0))?;
    origin(&list.source, list.as_of.as_deref(), layout, out)?;
    notes(&list.notes, layout, out)
}

/// Returns the smallest MIG profile, or all of them.
fn mig(row: &gpus::Row, layout: TableLayout) -> String {
    let profiles = row.mig_profiles.iter().take(layout.rows(1)).copied().collect::<Vec<_>>();
    if profiles.is_empty() { "no".to_owned() } else { profiles.join(",") }
}

fn number_of_gpus(row: &gpus::Row) -> String {
    match (row.gpus, row.gpu_share_thousandths) {
        (0, Some(part)) if part > 0 && 1000 % part == 0 => format!("1/{}", 1000 / part),
        (0, Some(part)) => format!("0.{part:03}"),
        (gpus, _) => gpus.to_string(),
    }
}

fn cpu(row: &gpus::Row) -> String {
    match (row.vcpus, row.allocatable_cpu_milli) {
        (Some(vcpus), _) => vcpus.to_string(),
        (None, Some(milli)) => format!("{}.{:02}", milli / 1000, milli % 1000 / 10),
        (None, None) => NOT_SAID.to_owned(),
    }
}

fn gibibytes(mib: u64) -> String {
    let tenths = (mib * 10 + 512) / 1024;
    if tenths.is_multiple_of(10) {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

/// Prints offerings and prices.
pub fn prices(list: &Prices, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    let mut table = plain(layout);
    let mut header = vec!["INSTANCE TYPE", "ZONE", "CAPACITY", "GPUS", "$/H", "$/GPU-H", "AGE", "SOURCE"];
    let says_rates = list.offerings.iter().any(|row| row.interruptions.is_some());
    if says_rates {
        header.insert(RATE, "LOST A DAY");
    }
    let source = header.len() - 1;
    if layout.wide {
        header.splice(source..source, ["PRICE OF", "PROVIDER"]);
    }
    table.set_header(header);
    for row in &list.offerings {
        let mut cells = cells(row).to_vec();
        if says_rates {
            let rate = row.interruptions.as_ref().map(|said| in_a_day(said.per_million_hours));
            cells.insert(RATE, rate.unwrap_or_else(|| NOT_SAID.to_owned()));
        }
        if layout.wide {
            let day = row.as_of.clone().unwrap_or_else(|| NOT_SAID.to_owned());
            cells.splice(source..source, [day, row.provider.clone()]);
        }
        table.add_row(cells.iter().map(|cell| one_line(cell)));
    }
    right(&mut table, if says_rates { &[4, 5, 6, 7] } else { &[4, 5, 6] });
    if list.offerings.is_empty() {
        writeln!(out, "No instance type matches all filters.")?;
    } else {
        writeln!(out, "{}\n", text(table))?;
        let shown = match list.total - list.offerings.len() {
            0 => String::new(),
            more => format!(", {} more with --first 0", count(more)),
        };
        writeln!(
            out,
            "{}{shown}; {} without a known price.",
            counted(list.total, "offering"),
            count(list.unknown)
        )?;
    }
    let mut whys: Vec<&str> = Vec::new();
    for why in list.offerings.iter().filter(|row| row.suspicious).filter_map(|row| row.unknown.as_deref()) {
        if !whys.contains(&why) {
            whys.push(why);
        }
    }
    for why in whys {
        writeln!(out, "{}", layout.fit(&format!("suspicious: {}", one_line(why)), 2))?;
    }
    if list.total == 0 {
        writeln!(out, "{}", layout.fit(&format!("Source: {}.", list.source), 2))?;
    } else {
        origin(&list.source, list.as_of.as_deref(), layout, out)?;
    }
    for (source, age) in rates(list) {
        let age = age.map_or_else(|| "undated".to_owned(), |days| format!("{days}d old"));
        let said = format!(
            "Lost a day: the part of spot nodes that plans expect to be interrupted in a day, from {source} (docs/catalogue.md); {age}."
        );
        writeln!(out, "{}", layout.fit(&said, 2))?;
    }
    notes(&list.notes, layout, out)
}

/// Returns the sources of the interruption rates and their ages, in the order of the list.
fn rates(list: &Prices) -> Vec<(&str, Option<u32>)> {
    let mut all: Vec<(&str, Option<u32>)> = Vec::new();
    for said in list.offerings.iter().filter_map(|row| row.interruptions.as_ref()) {
        let who = (said.source.as_str(), said.age_days);
        if !all.contains(&who) {
            all.push(who);
        }
    }
    all
}

/// Converts interruptions in a million node-hours to percent of the nodes in a day, to a tenth.
fn in_a_day(per_million_hours: u32) -> String {
    let tenths = (u64::from(per_million_hours) * 24 + 500) / 1000;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

fn cells(row: &prices::Row) -> [String; 8] {
    let usd = |micros: u64| money(UsdPerHour::from_micros(micros));
    let gpus = match &row.gpu_model {
        Some(model) => format!("{} {model}", row.gpus),
        None => NOT_SAID.to_owned(),
    };
    let price = row.usd_micros_per_hour.map_or_else(|| "unknown".to_owned(), usd);
    let source = match (&row.source, row.suspicious) {
        (Some(source), _) => source.clone(),
        (None, true) => "suspicious, see below".to_owned(),
        (None, false) => row.unknown.clone().unwrap_or_default(),
    };
    [
        row.instance_type.clone(),
        row.zone.clone(),
        row.capacity_type.to_string(),
        gpus,
        price,
        row.usd_micros_per_gpu_hour.map_or_else(|| NOT_SAID.to_owned(), usd),
        row.age_days.map_or_else(|| NOT_SAID.to_owned(), |days| format!("{days}d")),
        source,
    ]
}

fn right(table: &mut Table, columns: &[usize]) {
    for column in columns {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn origin(source: &str, as_of: Option<&str>, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    let day = as_of.map_or_else(|| "prices undated".to_owned(), |day| format!("oldest price of {day}"));
    writeln!(out, "{}", layout.fit(&format!("Source: {source}; {day}."), 2))
}

fn notes(notes: &[String], layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    notes.iter().try_for_each(|note| writeln!(out, "{}", layout.fit(&format!("note: {}", one_line(note)), 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_rate_is_printed_per_hundred_nodes_and_day() {
        let said = [0, 1_042, 2_100, 4_400, 12_500].map(in_a_day);
        assert_eq!(said, ["0.0 %", "2.5 %", "5.0 %", "10.6 %", "30.0 %"]);
    }
}
