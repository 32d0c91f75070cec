//! `poolwright version`.

use std::io::Write;

use crate::args::VersionFlags;
use crate::exit::{ExitStatus, Failure};

/// Prints the versions of Poolwright and of its API.
pub fn run(flags: &VersionFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let api = poolwright_terms::API_VERSION;
    let text = if flags.output.is_some() {
        let object = serde_json::json!({ "version": version, "apiVersion": api });
        format!("{object:#}")
    } else {
        format!("poolwright {version} (API {api})")
    };
    writeln!(out, "{text}").map_err(Failure::writing)?;
    Ok(ExitStatus::Done)
}
