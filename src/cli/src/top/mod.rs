//! `poolwright top`: shows what Poolwright does now and why, on a terminal or as text.
//!
//! `feed` reads the cluster. `model`, `doing` and `view` hold the data to show. `text` prints it, `screen` and `keys` show it on
//! a screen, and `live` drives the terminal. `text` and `screen` share `columns`, `tables` and `words`.
//!
//! This module must not decide or write anything. Only `feed` and `live` do I/O; the rest are plain functions.

mod columns;
mod doing;
mod feed;
mod keys;
mod live;
mod model;
mod screen;
mod tables;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod text;
mod view;
pub mod words;

use model::Reading;
pub use model::leader;

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use poolwright_controller::clock::SystemClock;

use crate::args::{TopFlags, TopFormat};
use crate::connect::{self, Patience};
use crate::exit::{ExitStatus, Failure};
use crate::print::TableLayout;
use crate::snapshot::SavedCluster;

/// Shows the cluster that the flags name.
pub fn run(flags: &TopFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    if !flags.once && !io::stdout().is_terminal() {
        return Err(Failure::bad_input(
            "standard output is not a terminal; use --once, which prints one reading as text (or -o json)",
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    let clock = SystemClock::new();
    let saved = flags.snapshot.as_deref().map(SavedCluster::read).transpose()?;
    let read = async {
        if let Some(saved) = &saved {
            let client = saved.client();
            // Ages are those of the moment when the snapshot was taken.
            let reading = Reading { at: saved.header.taken_at, ..feed::read(&client, &clock).await? };
            return anyhow::Ok((client, format!("snapshot {}", saved.name), reading));
        }
        // The live view does not retry, so a busy API server has a rest until the next reading.
        let patience = if flags.once { Patience::Retries } else { Patience::Tells };
        let (client, cluster) =
            connect::named_client(flags.kubeconfig.as_deref(), flags.context.as_deref(), patience).await?;
        let reading = feed::read(&client, &clock).await?;
        anyhow::Ok((client, cluster, reading))
    };
    let (client, cluster, first) = runtime.block_on(read).context("cannot read the cluster")?;
    if !flags.once {
        let interval = flags.interval.unsigned_abs();
        let namespace = flags.namespace.clone();
        live::show(live::Source { runtime, client, cluster, namespace, interval }, &first, clock)?;
        return Ok(ExitStatus::Done);
    }
    let view = model::view(&cluster, &first, flags.namespace.as_deref());
    let printed = match flags.output.unwrap_or(TopFormat::Table) {
        TopFormat::Table => out.write_all(text::text(&view, TableLayout::list(false)).as_bytes()),
        TopFormat::Wide => out.write_all(text::text(&view, TableLayout::list(true)).as_bytes()),
        TopFormat::Json => serde_json::to_writer_pretty(&mut *out, &view)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
    };
    printed.map_err(Failure::writing)?;
    Ok(ExitStatus::Done)
}
