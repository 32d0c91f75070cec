//! What programs that measure have in common: variables that say how much, and an exit status that says how it went.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context;

/// A variable of the environment; `otherwise` where it is unset or empty.
///
/// # Errors
/// When it cannot be read as what is wanted.
pub fn variable<T: FromStr<Err: Error + Send + Sync + 'static>>(
    name: &str,
    otherwise: T,
) -> anyhow::Result<T> {
    match env::var(name) {
        Ok(text) if !text.is_empty() => text.parse().with_context(|| format!("{name} is `{text}`")),
        _ => Ok(otherwise),
    }
}

/// The exit status of a measurement that reached its goals, missed them, or failed, which it says.
pub fn end(reached: anyhow::Result<bool>) -> ExitCode {
    match reached {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("The measurement failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}
