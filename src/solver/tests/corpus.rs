//! Runs the corpus of the fuzz target once, so that ordinary tests cover the code that it reached.

use std::path::Path;

#[path = "common/exercise.rs"]
mod exercise;
#[path = "common/extreme.rs"]
mod extreme;
#[path = "common/generate.rs"]
mod generate;

#[test]
fn every_problem_of_the_fuzz_corpus_is_refused_or_answered_soundly() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/problem");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a file of the corpus").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus in {}", folder.display());
    for file in files {
        let data = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        println!("{}", file.display());
        exercise::exercise(&data, &generate::Mix::LANDED, 30_000);
    }
}
