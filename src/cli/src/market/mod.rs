//! `poolwright gpus` and `poolwright prices`: list the offerings that Poolwright knows, with source and age.
//!
//! `read` reads a catalogue or asks a cloud, and does all I/O. `gpus` and `prices` build the lists, and `print` prints them as
//! tables.

mod gpus;
mod only;
mod prices;
mod print;
mod read;

pub use only::some;

use std::io::{self, Write};

use serde::Serialize;

use crate::args::{GpusFlags, MarketFormat, PricesFlags};
use crate::exit::{ExitStatus, Failure};
use crate::price_age;
use crate::print::TableLayout;

/// The default number of rows in a table.
const SHOWN: u32 = 30;

/// Lists types with GPUs.
pub fn gpus(flags: &GpusFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let believed = read::read(&flags.market)?;
    let list = gpus::list(&believed, &flags.gpu).map_err(Failure::bad_input)?;
    write(&list, flags.output, out, print::gpus)
}

/// Lists offerings and their prices.
pub fn prices(flags: &PricesFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let believed = read::read(&flags.market)?;
    let wanted = only::Only::of(flags);
    let mut list = prices::list(&believed, &wanted).map_err(Failure::bad_input)?;
    let remedy = match flags.market.provider {
        Some(_) => price_age::CATALOGUE,
        None => "--provider reads the prices of today from a cloud",
    };
    let oldest = price_age::oldest(prices::matching(&believed, &wanted));
    list.notes.extend(price_age::note(oldest, believed.today, "", remedy));
    let first = match (flags.first, flags.output) {
        (Some(first), _) => first,
        (None, MarketFormat::Table | MarketFormat::Wide) => SHOWN,
        (None, MarketFormat::Json) => 0,
    };
    if first > 0 {
        list.offerings.truncate(usize::try_from(first).unwrap_or(usize::MAX));
    }
    write(&list, flags.output, out, print::prices)
}

fn write<T: Serialize, W: Write>(
    list: &T,
    format: MarketFormat,
    out: &mut W,
    table: impl FnOnce(&T, TableLayout, &mut W) -> io::Result<()>,
) -> Result<ExitStatus, Failure> {
    let written = match format {
        MarketFormat::Table => table(list, TableLayout::list(false), out),
        MarketFormat::Wide => table(list, TableLayout::list(true), out),
        MarketFormat::Json => serde_json::to_writer_pretty(&mut *out, list)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
    };
    written.map_err(Failure::writing)?;
    Ok(ExitStatus::Done)
}
