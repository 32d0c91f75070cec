//! Tests of `docs/cli`, which has one page for each command. The tables of commands and variables and the help of each command
//! are generated from the flags. These tests compare them, or write them anew if the variable below is set.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use poolwright_cli::args;
use poolwright_core::plan::UnplacedReason;

use crate::support::path;

/// The variable that makes the tests write the generated parts anew.
const WRITE: &str = "POOLWRIGHT_WRITE_DOCS";

/// The command that writes them.
const REMEDY: &str = "to write it anew: POOLWRIGHT_WRITE_DOCS=1 cargo test -p poolwright-cli --test it pages";

#[test]
fn the_schema_of_plans_has_every_reason_for_which_a_pod_can_be_left_out() {
    let schema = std::fs::read_to_string(path("docs/plan.schema.json")).expect("the schema");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let reasons = &schema["properties"]["unplaced"]["items"]["properties"]["reason"]["enum"];
    let known: BTreeSet<String> = serde_json::from_value(reasons.clone()).expect("a list of reasons");
    let all: BTreeSet<String> = UnplacedReason::ALL.iter().map(|reason| format!("{reason:?}")).collect();
    assert_eq!(known, all);
}

#[test]
fn every_command_has_a_page_with_the_help_it_prints() {
    for words in commands() {
        let usage = ["poolwright"].into_iter().chain(words.iter().map(String::as_str)).collect::<Vec<_>>();
        let printed = args::command("poolwright")
            .try_get_matches_from(usage.iter().copied().chain(["--help"]))
            .expect_err("help ends the command line");
        let help = format!("```console\n$ {} --help\n{printed}\n```\n", usage.join(" "));
        generated(&page(&words), "help", &help);
    }
}

#[test]
fn every_page_is_about_a_command_and_the_index_lists_them_all() {
    let mut table = "| command | what it does |\n|---|---|\n".to_owned();
    let mut expected = vec![path("docs/cli/README.md")];
    for words in commands() {
        let mut command = &args::command("poolwright");
        for word in &words {
            command = command.find_subcommand(word).expect("it was listed");
        }
        let about = command.get_about().expect("every command says what it does");
        let file = page(&words);
        let name = file.file_name().expect("a page has a name").to_string_lossy();
        writeln!(table, "| [`poolwright {}`]({name}) | {about} |", words.join(" "))
            .expect("a string takes it");
        expected.push(file);
    }
    generated(&path("docs/cli/README.md"), "commands", &table);
    let mut there: Vec<_> = std::fs::read_dir(path("docs/cli"))
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    there.sort();
    expected.sort();
    assert_eq!(there, expected, "a page without a command, or a command without a page");
}

#[test]
fn the_index_lists_every_variable_with_its_flag() {
    let mut table = "| variable | flag | commands |\n|---|---|---|\n".to_owned();
    let mut rows = std::collections::BTreeMap::<(String, String), Vec<String>>::new();
    for command in args::command("poolwright").get_subcommands() {
        for flag in command.get_arguments() {
            if let (Some(variable), Some(long)) = (flag.get_env(), flag.get_long()) {
                let row = (variable.to_string_lossy().into_owned(), format!("--{long}"));
                rows.entry(row).or_default().push(format!("`{}`", command.get_name()));
            }
        }
    }
    assert!(!rows.is_empty(), "the controller reads variables");
    for ((variable, flag), commands) in rows {
        writeln!(table, "| `{variable}` | `{flag}` | {} |", commands.join(", ")).expect("a string takes it");
    }
    generated(&path("docs/cli/README.md"), "environment", &table);
}

/// Returns every command as the user types it: `[debug, fuzz]`. Old names, which still work, are hidden.
pub fn commands() -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let visible = |command: &&clap::Command| !command.is_hide_set();
    for command in args::command("poolwright").get_subcommands().filter(visible) {
        let name = command.get_name().to_owned();
        let nested = command
            .get_subcommands()
            .filter(visible)
            .map(|below| vec![name.clone(), below.get_name().to_owned()]);
        let nested: Vec<_> = nested.collect();
        all.push(vec![name]);
        all.extend(nested);
    }
    all
}

fn page(words: &[String]) -> PathBuf {
    path("docs/cli").join(format!("{}.md", words.join("-")))
}

/// Compares the part of the page between the markers `name` with `text`, or writes it.
fn generated(page: &std::path::Path, name: &str, text: &str) {
    let shown = page.display();
    let old =
        std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{shown}: {error}; write the page"));
    let (begin, end) = (format!("<!-- begin: {name} -->\n"), format!("<!-- end: {name} -->\n"));
    let (before, rest) = old.split_once(&begin).unwrap_or_else(|| panic!("{shown} has no line {begin}"));
    let (there, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{shown} has no line {end}"));
    if std::env::var_os(WRITE).is_some() {
        let new = [before, &begin, text, &end, after].concat();
        std::fs::write(page, new).expect("the page can be written");
    } else {
        assert!(there == text, "{shown}: {name} is not what the flags say; {REMEDY}\n{text}");
    }
}
