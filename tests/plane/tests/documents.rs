//! Tests of the documents: links have targets, named files exist, sentences are short, and the architecture page takes at most
//! ten minutes to read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The most words a sentence may have.
const WORDS_OF_A_SENTENCE: usize = 30;

/// The most words docs/architecture.md may have.
const WORDS_OF_THE_ARCHITECTURE: usize = 1_500;

/// The folders with which paths in the documents begin.
const ROOTS: [&str; 6] = ["crds/", "deploy/", "docs/", "providers/", "src/", "tests/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns every page, by its path in the checkout.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::new();
    for page in ["README.md", "deploy/README.md", "fixtures/SOURCES.md"] {
        pages.insert(page.into(), fs::read_to_string(root().join(page)).expect("a page can be read"));
    }
    let mut folders = vec![PathBuf::from("docs"), PathBuf::from("examples")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder of documents can be read") {
            let entry = entry.expect("an entry of it can be read");
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(entry.path()).expect("a page can be read");
                pages.insert(path, text);
            }
        }
    }
    pages
}

/// Removes the fenced code blocks of a page.
fn without_code(page: &str) -> String {
    let mut code = false;
    let mut text = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Returns the targets of a page's `[text](target)` links, with their texts.
fn links(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (middle, _) in text.match_indices("](") {
        let Some(end) = text[middle..].find(')') else { continue };
        let Some(start) = text[..middle].rfind('[') else { continue };
        found.push((&text[start + 1..middle], &text[middle + 2..middle + end]));
    }
    found
}

/// Returns the anchors that GitHub gives to the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = without_code(page);
    headings
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

/// Returns a path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Returns one sentence for each broken link of these pages.
fn broken_links(pages: &BTreeMap<PathBuf, String>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for (page, text) in pages {
        let prose = without_code(text);
        for (_, target) in links(&prose) {
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => page.clone(),
                file => plain(&page.parent().unwrap_or(Path::new("")).join(file)),
            };
            if !exists(&path) {
                broken.push(format!("{}: there is no {target}", page.display()));
            } else if !anchor.is_empty() && !pages.get(&path).is_some_and(|it| anchors(it).contains(anchor)) {
                broken.push(format!("{}: no heading of {} is #{anchor}", page.display(), path.display()));
            }
        }
    }
    broken
}

/// Returns the backquoted words of a page that name a file or a folder of the checkout.
fn named_files(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted
        .filter(|word| !word.contains([' ', '*', '<', ':', '\n']) && !word.starts_with('/'))
        .filter(|word| {
            Path::new(word).extension().is_some_and(|extension| extension == "rs")
                || word.ends_with('/')
                || ROOTS.iter().any(|root| word.starts_with(root))
        })
        .collect()
}

/// Returns the named files that exist neither in the checkout's root nor in a folder that the page names.
fn missing_files(page: &str, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let page = without_code(page);
    let named = named_files(&page);
    let quoted = page.split('`').skip(1).step_by(2);
    let folders: Vec<&str> = quoted.filter(|word| ROOTS.iter().any(|root| word.starts_with(root))).collect();
    let is_there = |word: &str| {
        exists(Path::new(word))
            || folders.iter().any(|folder| {
                exists(&Path::new(folder).join(word)) || exists(&Path::new(folder).join("src").join(word))
            })
    };
    named.into_iter().filter(|word| !is_there(word)).map(str::to_owned).collect()
}

/// Returns the sentences of a page. Code, tables and headings have none, and each list item begins one.
fn sentences(page: &str) -> Vec<String> {
    let page = without_code(page);
    let mut text = String::new();
    for line in page.lines() {
        let inner = line.trim_start();
        if inner.starts_with('|') {
            continue;
        }
        let mark = inner.split(' ').next().unwrap_or("");
        let is_point = !mark.is_empty() && mark.chars().all(|c| "-*0123456789.".contains(c));
        if inner.starts_with('#') || inner.is_empty() {
            text.push_str(". ");
        } else if is_point {
            text.push_str(". ");
            text.push_str(inner[mark.len()..].trim_start());
            text.push(' ');
        } else {
            text.push_str(inner);
            text.push(' ');
        }
    }
    for (label, target) in links(&text.clone()) {
        text = text.replace(&format!("[{label}]({target})"), label);
    }
    let mut sentences = vec![Vec::new()];
    for word in text.split_whitespace() {
        let is_end = word.ends_with(['.', '!', '?', ':', ';']);
        if word.chars().any(|c| !".!?:;".contains(c)) {
            sentences.last_mut().expect("one was begun").push(word);
        }
        if is_end {
            sentences.push(Vec::new());
        }
    }
    sentences.into_iter().filter(|words| !words.is_empty()).map(|words| words.join(" ")).collect()
}

#[test]
fn every_link_in_the_documents_has_a_target() {
    let broken = broken_links(&pages(), |path| root().join(path).exists());
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn every_file_named_in_the_architecture_and_design_pages_exists() {
    let mut missing = Vec::new();
    for (page, text) in pages() {
        if page == Path::new("docs/architecture.md") || page.starts_with("docs/design") {
            let of_it = missing_files(&text, |path| root().join(path).exists());
            missing.extend(of_it.into_iter().map(|file| format!("{} names {file}", page.display())));
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn the_architecture_page_takes_ten_minutes_to_read() {
    let words = pages()[Path::new("docs/architecture.md")].split_whitespace().count();
    assert!(words <= WORDS_OF_THE_ARCHITECTURE, "docs/architecture.md has {words} words");
}

#[test]
fn the_documents_contain_no_long_sentences() {
    let mut long = Vec::new();
    for (page, text) in pages() {
        for sentence in sentences(&text) {
            let words = sentence.split_whitespace().count();
            if words > WORDS_OF_A_SENTENCE {
                long.push(format!("{}: {words} words: {sentence}", page.display()));
            }
        }
    }
    assert!(long.is_empty(), "\n{}", long.join("\n"));
}

#[test]
fn the_list_of_pages_contains_every_page() {
    let pages = pages();
    let folder = Path::new("docs");
    let list = without_code(&pages[Path::new("docs/README.md")]);
    let listed: BTreeSet<PathBuf> =
        links(&list).into_iter().map(|(_, target)| plain(&folder.join(target))).collect();
    let missing: Vec<_> = pages
        .keys()
        .filter(|page| {
            // The pages of commands are linked from the page of all commands.
            let is_listed_elsewhere =
                page.starts_with("docs/cli") && *page != Path::new("docs/cli/README.md");
            page.starts_with(folder) && **page != folder.join("README.md") && !is_listed_elsewhere
        })
        .filter(|page| !listed.contains(*page))
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not list {missing:?}");
}

#[test]
fn a_link_to_a_missing_page_or_heading_is_reported() {
    let page = "# A page\n[one](other.md) [two](#a-page) [three](#none) [four](https://example.com/none)\n\n```\n[five](none.md)\n```\n";
    let pages = BTreeMap::from([(PathBuf::from("docs/page.md"), page.to_owned())]);
    let broken = broken_links(&pages, |path| path == Path::new("docs/page.md"));
    assert_eq!(
        broken,
        ["docs/page.md: there is no other.md", "docs/page.md: no heading of docs/page.md is #none"]
    );
}

#[test]
fn a_page_may_name_a_file_below_a_folder_that_it_names() {
    let page = "In `src/core`, `plan/` and `plan/rounds.rs` plan; `poolwright.dev/nodepool` is a label, `/metrics` an address.";
    let exists = |path: &Path| [Path::new("src/core"), Path::new("src/core/src/plan/")].contains(&path);
    assert_eq!(missing_files(page, exists), ["plan/rounds.rs"]);
}

#[test]
fn periods_and_headings_end_sentences_and_tables_and_code_do_not_count() {
    let page = "# Head\nOne two\nthree: four.\n\n- five [six](seven.md#eight)\n- nine\n\n| ten |\n\n```\neleven\n```\n";
    assert_eq!(sentences(page), ["One two three:", "four.", "five six", "nine"]);
}
