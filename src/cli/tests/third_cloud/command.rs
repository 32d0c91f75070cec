//! The `poolwright` command with one more cloud: Haze, which exists only in these tests. Only its registration makes it known.

mod haze;

use std::process::ExitCode;

use poolwright_provider_contract::Registration;
use poolwright_provider_registry::CLOUDS;

static WITH_HAZE: [Registration; 3] = [CLOUDS[0], CLOUDS[1], haze::REGISTRATION];

fn main() -> ExitCode {
    poolwright_cli::main_with(&WITH_HAZE, std::env::args_os())
}
