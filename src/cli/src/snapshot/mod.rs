//! `poolwright snapshot`: writes what a plan needs of a cluster to one file. `--snapshot` of other commands reads it.
//!
//! `kinds` and `table` say what is read and kept, in the notation of `fields`, with parts from `fragments`. `take` reads a cluster,
//! `aliases` renames, `saved` is the file, and `whole` writes it.

mod aliases;
mod fields;
mod fragments;
mod kinds;
mod saved;
mod table;
mod take;
#[cfg(test)]
mod tests;
mod whole;

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use poolwright_catalog::Catalogue;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_terms::one_line;

use crate::args::SnapshotFlags;
use crate::exit::{ExitStatus, Failure};
use crate::{catalogue, connect};

pub use saved::SavedCluster;
use take::{Taken, take};

/// Reads the cluster that the flags name, and writes a snapshot.
pub fn run(flags: &SnapshotFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let catalogue = catalogue::load(&flags.catalogue)?;
    let mut taken = taken(flags.kubeconfig.as_deref(), flags.context.as_deref(), catalogue)?;
    if flags.anonymise {
        taken.anonymise();
    }
    let text = taken.saved.text();
    let place = if let Some(path) = &flags.output {
        let place = path.display().to_string();
        whole::write(path, text.as_bytes()).with_context(|| format!("cannot write {place}"))?;
        place
    } else {
        out.write_all(text.as_bytes()).map_err(Failure::writing)?;
        "the snapshot".to_owned()
    };
    // Nobody may read standard error, and then there is nothing to do.
    let mut err = io::stderr();
    for line in taken.summary(&place) {
        let _ = writeln!(err, "{}", one_line(&line));
    }
    Ok(ExitStatus::Done)
}

/// Takes a snapshot of the cluster that the flags name.
pub fn taken(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    catalogue: Catalogue,
) -> Result<Taken, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    let read = async {
        let client = connect::client(kubeconfig, context, connect::Patience::Retries).await?;
        take(&client, catalogue, SystemClock::new().now()).await
    };
    Ok(runtime.block_on(read).context("cannot read the cluster")?)
}
