//! `poolwright version`.

use std::io::Write;

use crate::args::VersionFlags;
use crate::exit::{ExitStatus, Failure};

/// Prints the versions of Poolwright and of its API, and the commit it is built from. A development build also tells its checkout,
/// so that tests know whether it is theirs.
pub fn run(flags: &VersionFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("POOLWRIGHT_COMMIT"));
    let api = poolwright_terms::API_VERSION;
    let text = if flags.output.is_some() {
        let mut object = serde_json::json!({ "version": version, "apiVersion": api, "commit": commit });
        if let Some(checkout) = option_env!("POOLWRIGHT_CHECKOUT") {
            object["checkout"] = checkout.into();
        }
        format!("{object:#}")
    } else {
        format!("poolwright {version} (API {api}, commit {commit})")
    };
    writeln!(out, "{text}").map_err(Failure::writing)?;
    Ok(ExitStatus::Done)
}
