//! Tests that the tables of reasons match the page that documents them and the code that uses them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use poolwright_provider_contract::Registration;
use poolwright_provider_registry::CLOUDS;
use poolwright_terms::{Reason, RegisteredReason};

/// The marks at the beginning and the end of the generated tables.
const MARKS: (&str, &str) = ("<!-- reasons: begin -->\n", "<!-- reasons: end -->\n");

/// The folders of the code that uses the common reasons.
const COMMON: [&str; 4] = ["src/core", "src/controller", "src/intake", "src/terms"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the folder of the code that uses the reasons of a cloud.
fn folder(cloud: &Registration) -> String {
    format!("providers/{}", cloud.name)
}

/// Collects the Rust files below a folder that are part of the product, without their test modules.
fn sources(folder: &Path, into: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            if name != "tests" {
                sources(&path, into);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && name != "tests.rs"
            && !name.starts_with("fake")
        {
            let text = fs::read_to_string(&path).expect("the file can be read");
            let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
            into.push((path, product));
        }
    }
}

fn sources_of<'a>(folders: impl IntoIterator<Item = &'a str>) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for folder in folders {
        sources(&root().join(folder).join("src"), &mut all);
    }
    all
}

/// Renders a table in Markdown.
fn markdown(table: &[RegisteredReason]) -> String {
    let row = |one: &RegisteredReason| format!("| `{one}` | {} | {} |\n", one.happened, one.to_do);
    let rows: String = table.iter().map(row).collect();
    format!("| reason | what has happened | what to do |\n|---|---|---|\n{rows}")
}

#[test]
fn every_table_is_sorted_and_every_reason_says_what_happened_and_what_to_do() {
    for table in CLOUDS.iter().map(|cloud| cloud.reasons).chain([Reason::TABLE]) {
        assert!(table.is_sorted_by_key(|one| one.name), "{table:?}");
        for one in table {
            assert!(one.name.starts_with(|c: char| c.is_ascii_uppercase()), "{one}");
            assert!(one.name.chars().all(|c| c.is_ascii_alphanumeric()), "{one}");
            for sentence in [one.happened, one.to_do] {
                assert!(sentence.ends_with('.') && !sentence.contains('|'), "{one}: {sentence}");
            }
        }
    }
}

#[test]
fn a_cloud_has_no_reason_twice_and_none_of_the_common_ones() {
    for cloud in CLOUDS {
        let mut names = BTreeSet::new();
        for one in Reason::TABLE.iter().chain(cloud.reasons) {
            assert!(names.insert(one.name), "{} has two reasons {one}", cloud.name);
        }
    }
}

#[test]
fn a_reason_is_found_by_its_name() {
    for one in Reason::TABLE {
        assert_eq!(Reason::named(one.name).map(RegisteredReason::from), Some(*one));
    }
    assert_eq!(Reason::named("Because"), None);
}

#[test]
fn the_page_of_reasons_has_all_tables() {
    let path = root().join("docs/reasons.md");
    let page = fs::read_to_string(&path).expect("docs/reasons.md can be read");
    let (before, rest) = page.split_once(MARKS.0).expect("the page marks where the tables begin");
    let (_, after) = rest.split_once(MARKS.1).expect("the page marks where the tables end");
    let mut sections: Vec<String> = CLOUDS
        .iter()
        .filter(|cloud| !cloud.reasons.is_empty())
        .map(|cloud| format!("\n## {}\n\n{}", cloud.node_class.kind.kind, markdown(cloud.reasons)))
        .collect();
    sections.sort();
    let wanted =
        format!("{before}{}{}{}{}{after}", MARKS.0, markdown(Reason::TABLE), sections.concat(), MARKS.1);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, wanted).expect("docs/reasons.md can be written");
        return;
    }
    let command = "UPDATE_DOCS=1 cargo test -p poolwright-provider-registry";
    assert!(page == wanted, "write docs/reasons.md anew: {command}");
}

#[test]
fn no_reason_is_a_literal_outside_the_tables() {
    let clouds: Vec<String> = CLOUDS.iter().map(folder).collect();
    let mut literals = Vec::new();
    for (path, text) in sources_of(COMMON.into_iter().chain(clouds.iter().map(String::as_str))) {
        for (at, line) in text.lines().enumerate() {
            let of = |field: &str| {
                let said = line.split_once(field).map(|(_, rest)| rest.trim_start_matches("Some("));
                said.is_some_and(|rest| rest.starts_with('"'))
            };
            if of("reason: ") || of("\"reason\": ") {
                literals.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
            }
            let is_made = line.contains("RegisteredReason {") && !line.contains("-> RegisteredReason {");
            if is_made && !path.ends_with("terms/src/reason.rs") {
                literals.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
            }
        }
    }
    assert!(literals.is_empty(), "use a reason of a table:\n{}", literals.join("\n"));
}

#[test]
fn every_reason_of_a_table_is_used() {
    let is_used = |one: &RegisteredReason, all: &[(PathBuf, String)]| {
        let path = format!("Reason::{one}");
        let next_is_part_of_the_name =
            |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        all.iter().any(|(_, text)| text.split(&path).skip(1).any(|rest| !next_is_part_of_the_name(rest)))
    };
    let mut tables = vec![(Reason::TABLE, sources_of(COMMON))];
    tables.extend(CLOUDS.iter().map(|cloud| (cloud.reasons, sources_of([folder(cloud).as_str()]))));
    for (table, sources) in tables {
        let unused: Vec<_> = table.iter().filter(|one| !is_used(one, &sources)).collect();
        assert!(unused.is_empty(), "take these out of the table: {unused:?}");
    }
}
