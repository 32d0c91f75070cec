//! The `poolwright` command.
//!
//! This crate holds the flags and their help, the readers of files, clusters and traces, the printers of plans, and the exit
//! codes. It parses flags first and resolves them into objects afterwards; printers do not know flags.
//!
//! It must not decide anything. The same code that the controller runs decides what to buy.

#[cfg(not(any(feature = "default-tls", feature = "ring")))]
compile_error!("TLS needs a cryptography: feature `default-tls` (part of the default) or `ring`");

pub mod args;
pub mod catalogue;
mod check;
mod clouds;
mod connect;
mod controller;
mod convert;
mod crds;
mod credentials;
pub mod exit;
mod explain;
mod job;
mod lease;
mod log_fields;
mod man;
mod market;
mod near;
mod node_classes;
mod not_sold;
mod open;
mod overrides;
mod page;
mod plan;
mod price_age;
pub mod print;
pub mod problems;
mod reach;
mod replan;
mod replay;
mod report;
mod savings;
mod scheduler;
mod schema;
mod simulate;
mod snapshot;
mod solve;
mod solve_timer;
mod source;
mod top;
pub mod trace;
mod version;
mod what_if;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::FromArgMatches;
use poolwright_provider_contract::Registration;

use args::{Cli, Command, DebugCommand};
use exit::{ExitStatus, Failure};

/// Runs the command line like [`main`], with these clouds instead of those of the registry.
pub fn main_with(clouds: &'static [Registration], args: impl IntoIterator<Item = OsString>) -> ExitCode {
    clouds::know(clouds);
    main(args)
}

/// Runs the command line `args`, which begins with the program's name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = with_help_flag(args.into_iter().collect());
    let program = args.first().and_then(|name| Path::new(name).file_name()).and_then(|name| name.to_str());
    let command = args::command(program.unwrap_or("poolwright"));
    match command.try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches)) {
        // As for `kubectl diff`, code 1 is a difference, so no failure may have it.
        Ok(cli) if matches!(cli.command, Command::WhatIf(_)) => exit::code_of_comparison(run(cli)),
        Ok(cli) => exit::code(run(cli)),
        Err(usage) => {
            // Help goes to standard output with code 0, and an error to standard error with code 2. If nobody reads the output,
            // nobody can be told either.
            let _ = usage.print();
            if let Some(why) = clouds::not_built_for(&usage) {
                let _ = writeln!(io::stderr(), "\n{why}");
            }
            ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2))
        }
    }
}

/// Reads `poolwright help plan` as `poolwright plan --help`. As a subcommand, `help` would be in all man pages and completions.
fn with_help_flag(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.get(1).is_some_and(|first| first == "help") {
        args.remove(1);
        args.push("--help".into());
    }
    args
}

fn run(cli: Cli) -> Result<ExitStatus, Failure> {
    // Standard output is not locked, because `top` draws on it from its own code, and any thread that panics restores the
    // terminal.
    // JSON is written in small pieces, so they are collected before they are looked through.
    let mut out = BufWriter::new(print::Printable::new(io::stdout()));
    let outcome = match cli.command {
        Command::Plan(flags) => plan::run(&flags, &mut out),
        Command::WhatIf(flags) => what_if::run(&flags, &mut out),
        Command::Savings(flags) => savings::run(&flags, &mut out),
        Command::Explain(flags) => explain::run(&flags, &mut out),
        Command::Top(flags) => top::run(&flags, &mut out),
        Command::Snapshot(flags) => snapshot::run(&flags, &mut out),
        Command::Gpus(flags) => market::gpus(&flags, &mut out),
        Command::Prices(flags) => market::prices(&flags, &mut out),
        Command::Job(flags) => job::run(&flags, &mut out),
        Command::Report(flags) => report::run(&flags, &mut out),
        Command::Simulate(flags) => simulate::run(&flags, &mut out),
        Command::Controller(flags) => controller::run(&flags),
        Command::Check(flags) => check::run(&flags, &mut out),
        Command::Open(flags) => open::run(&flags, &mut out),
        Command::Convert(flags) => convert::command::run(&flags, &mut out),
        Command::Crds(flags) => crds::run(&flags, &mut out),
        Command::Completions(flags) => {
            let mut script = Vec::new();
            clap_complete::generate(flags.shell, &mut args::command("poolwright"), "poolwright", &mut script);
            out.write_all(&script).map_err(Failure::writing).map(|()| ExitStatus::Done)
        }
        Command::Man(flags) => man::run(&flags, &mut out),
        Command::Debug(flags) => match flags.command {
            DebugCommand::Solve(flags) => solve::run(&flags, &mut out),
            DebugCommand::Replan(flags) => replan::run(&flags, &mut out),
            DebugCommand::Fuzz(flags) => simulate::fuzz(&flags, &mut out),
        },
        Command::Solve(flags) => solve::run(&flags, &mut out),
        Command::Version(flags) => version::run(&flags, &mut out),
    }?;
    // Who looks at the exit code may read only the first lines.
    exit::unless_gone(out.flush())?;
    Ok(outcome)
}
