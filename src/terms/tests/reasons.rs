//! The registry of reasons against the page that documents it and the code that uses it.

use std::fs;
use std::path::{Path, PathBuf};

use poolwright_terms::Reason;

/// Marks where the generated table begins and ends.
const MARKS: (&str, &str) = ("<!-- reasons: begin -->\n", "<!-- reasons: end -->\n");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Rust files below a folder that are part of the product, without their test modules.
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

fn rooms(names: &[&str]) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for name in names {
        sources(&root().join("src").join(name).join("src"), &mut all);
    }
    all
}

#[test]
fn the_registry_is_sorted_and_every_reason_says_what_happened_and_what_to_do() {
    assert!(Reason::ALL.is_sorted_by_key(|reason| reason.as_str()));
    for reason in Reason::ALL {
        assert_eq!(Reason::named(reason.as_str()), Some(*reason));
        for sentence in [reason.happened(), reason.to_do()] {
            assert!(sentence.ends_with('.') && !sentence.contains('|'), "{reason}: {sentence}");
        }
    }
}

#[test]
fn the_page_of_reasons_is_the_registry() {
    let path = root().join("docs/reasons.md");
    let page = fs::read_to_string(&path).expect("docs/reasons.md can be read");
    let (before, rest) = page.split_once(MARKS.0).expect("the page marks where the table begins");
    let (_, after) = rest.split_once(MARKS.1).expect("the page marks where the table ends");
    let wanted = format!("{before}{}{}{}{after}", MARKS.0, Reason::markdown(), MARKS.1);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, wanted).expect("docs/reasons.md can be written");
        return;
    }
    assert!(page == wanted, "write docs/reasons.md anew: UPDATE_DOCS=1 cargo test -p poolwright-terms");
}

#[test]
fn no_reason_is_a_literal_outside_the_registry() {
    let mut literals = Vec::new();
    for (path, text) in rooms(&["core", "controller", "intake"]) {
        for (at, line) in text.lines().enumerate() {
            let of = |field: &str| {
                let said = line.split_once(field).map(|(_, rest)| rest.trim_start_matches("Some("));
                said.is_some_and(|rest| rest.starts_with('"'))
            };
            if of("reason: ") || of("\"reason\": ") {
                literals.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
            }
        }
    }
    assert!(literals.is_empty(), "use a reason of the registry:\n{}", literals.join("\n"));
}

#[test]
fn every_reason_of_the_registry_is_used() {
    let all = rooms(&["core", "controller", "intake", "terms"]);
    let used = |reason: &Reason| {
        let path = format!("Reason::{reason}");
        let next_is_part_of_the_name =
            |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        all.iter().any(|(_, text)| text.split(&path).skip(1).any(|rest| !next_is_part_of_the_name(rest)))
    };
    let unused: Vec<_> = Reason::ALL.iter().filter(|reason| !used(reason)).collect();
    assert!(unused.is_empty(), "take these out of the registry: {unused:?}");
}
