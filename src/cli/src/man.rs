//! `poolwright man`: man pages, from the same definition as the help.

use std::fs;
use std::io::{self, Write};

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::args::{self, ManFlags};
use crate::exit::{ExitStatus, Failure};

/// Writes the pages and prints their paths.
pub fn run(flags: &ManFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let dir = &flags.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let mut command = args::command("poolwright");
    command.build();
    let mut pages = Vec::new();
    collect(&command, &mut pages).context("cannot make the pages")?;
    for (name, page) in pages {
        let path = dir.join(name);
        fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
        writeln!(out, "{}", path.display()).map_err(Failure::writing)?;
    }
    Ok(ExitStatus::Done)
}

/// Collects the page of a command, and the pages of the commands below it.
fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    pages.push(page(command)?);
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| collect(below, pages))
}

/// Returns the name of a page and the page.
fn page(command: &Command) -> io::Result<(String, Vec<u8>)> {
    let man = Man::new(command.clone())
        .source(format!("poolwright {}", env!("CARGO_PKG_VERSION")))
        .manual("Poolwright");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    let mut synopsis = Roff::default();
    synopsis.control("SH", ["SYNOPSIS"]).control("nf", []);
    let usage = command.clone().render_usage().to_string();
    for line in usage.trim_start_matches("Usage:").lines() {
        synopsis.text([roman(line.trim())]);
    }
    synopsis.control("fi", []).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(more) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        // Keeps the lines as they are, because most are commands to type.
        let mut examples = Roff::default();
        examples.control("SH", ["EXAMPLES AND EXIT CODES"]).control("nf", []);
        for line in more.to_string().lines() {
            examples.text([roman(line)]);
        }
        examples.control("fi", []);
        examples.to_writer(&mut page)?;
    }
    Ok((man.get_filename(), page))
}
