//! The `poolwright` command. The library does the work.

use std::process::ExitCode;

/// Plans and simulations allocate and free many small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    poolwright_cli::main(std::env::args_os())
}
