//! The `poolwright` command; its work is in the library beside it.

use std::process::ExitCode;

/// Plans and simulated worlds make and drop many small things.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    poolwright_cli::main(std::env::args_os())
}
