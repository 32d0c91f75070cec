//! Tests that each module of this crate uses only earlier ones.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module may use those before it. `lib.rs` composes them, and `fake_api.rs` serves the tests of all.
const ORDER: [&str; 7] = ["edge", "leader", "config", "observed", "executor", "loops", "environment"];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the files of a module with their text.
fn sources(name: &str) -> Vec<(PathBuf, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folder = source.join(name);
    let all = if folder.is_dir() { files(&folder) } else { vec![source.join(format!("{name}.rs"))] };
    all.into_iter().map(|path| (path.clone(), fs::read_to_string(&path).expect("a file"))).collect()
}

/// Returns the modules that a line uses, by the paths in it.
fn used(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
}

#[test]
fn every_module_uses_only_earlier_ones() {
    let mut back = Vec::new();
    for (at, name) in ORDER.into_iter().enumerate() {
        for (path, text) in sources(name) {
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let up = used(line).filter(|other| ORDER[at + 1..].contains(other));
                back.extend(up.map(|other| format!("{}: {name} uses {other}", path.display())));
            }
        }
    }
    assert!(back.is_empty(), "arrows back up:\n{}", back.join("\n"));
}

#[test]
fn every_file_is_in_a_module() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(source).expect("the sources") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let known = ["lib.rs", "fake_api.rs"].contains(&name.as_str())
            || ORDER.contains(&name.trim_end_matches(".rs"));
        assert!(known, "{name} is in no module");
    }
}

#[test]
fn only_the_reader_and_the_elector_hold_a_client() {
    let mut holders = Vec::new();
    for name in ORDER {
        for (path, text) in sources(name) {
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            let holds = |line: &str| {
                let line = line.trim_start();
                !line.starts_with("//") && !line.starts_with("use ") && line.contains(": Client")
            };
            if code.lines().any(holds) {
                holders.push(path.file_name().expect("a name").to_string_lossy().into_owned());
            }
        }
    }
    holders.sort();
    assert_eq!(holders, ["elector.rs", "reader.rs"], "whoever writes does so through the writer");
}
