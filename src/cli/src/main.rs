//! The `poolwright` command; its work is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    poolwright_cli::main(std::env::args_os())
}
