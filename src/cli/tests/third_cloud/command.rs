//! The `poolwright` command with one more cloud: Haze, which exists only in these tests. Only its registration makes it known.
//! With a variable, it has only the first cloud of the registry, like a build without the features of the others.

mod haze;

use std::process::ExitCode;

use poolwright_provider_contract::Registration;
use poolwright_provider_registry::CLOUDS;

static WITH_HAZE: [Registration; 3] = [CLOUDS[0], CLOUDS[1], haze::REGISTRATION];

fn main() -> ExitCode {
    let only_first = std::env::var_os("POOLWRIGHT_TEST_ONLY_FIRST_CLOUD").is_some();
    let clouds = if only_first { &WITH_HAZE[..1] } else { &WITH_HAZE[..] };
    poolwright_cli::main_with(clouds, std::env::args_os())
}
