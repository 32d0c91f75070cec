//! The layers of the solver's files: each file uses only files of its own folder and of earlier layers. Code imports from
//! the defining file, so `crate::Name` does not hide a dependency either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files and folders of `src`, from the problem up to the entry points.
const LAYERS: &[&[&str]] = &[
    &["bits", "flow", "lp", "knapsack_lp", "problem", "solution", "stages", "units"],
    &["choice", "gpu", "nothing", "options", "stop"],
    &["check"],
    &["canonical", "explain", "meter"],
    &["baseline", "dual_bound", "knapsack", "master", "plan"],
    &[
        "exact",
        "greedy",
        "large_neighbourhood",
        "open",
        "pricing",
        "resource_bound",
        "shadow_prices",
        "simpler",
        "small_exact",
    ],
    &["diverse_columns"],
    &["column_generation"],
    &["admit", "branch", "dive", "verify"],
    &["warm"],
    &["branch_and_price"],
    &["moves"],
    &["solve"],
    &["purchase"],
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("a folder of the crate");
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the code of a file without comments and tests.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a source file");
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Returns the first names after `crate::`, including those in braces.
fn used(code: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.push(name(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = 0;
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    names.push(name(&list[start..at]));
                    start = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn no_file_of_the_solver_uses_a_later_layer() {
    let layer: BTreeMap<&str, usize> =
        LAYERS.iter().enumerate().flat_map(|(at, names)| names.iter().map(move |name| (*name, at))).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    let mut broken = Vec::new();
    for path in paths {
        let inside = path.strip_prefix(&root).expect("a path below the root").with_extension("");
        let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
        if parts == ["lib"] || parts == ["testing"] || parts.contains(&"tests") {
            continue;
        }
        let Some(own) = layer.get(parts[0]) else {
            broken.push(format!("{} has no layer", parts[0]));
            continue;
        };
        for name in used(&code(&path)) {
            match layer.get(name.as_str()) {
                _ if name == parts[0] => {}
                Some(other) if other < own => {}
                Some(_) => broken.push(format!("{} uses {name}", inside.display())),
                None => broken.push(format!("{} uses crate::{name} past its file", inside.display())),
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
