//! Files that hold problems of the solver.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use poolwright_solver::Problem;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::source;

const KIND: &str = "SolverProblems";

/// The content of a file of problems, for writing.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'p> {
    api_version: &'static str,
    kind: &'static str,
    problems: Vec<&'p Problem>,
}

/// The content of a file of problems, for reading.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Saved {
    api_version: String,
    kind: String,
    problems: Vec<Problem>,
}

/// The part of a file that distinguishes a file of problems from a single problem.
#[derive(Deserialize)]
struct Shape {
    problems: Option<IgnoredAny>,
}

/// Writes problems to a file.
pub fn save<'p>(path: &Path, problems: impl IntoIterator<Item = &'p Problem>) -> Result<(), Failure> {
    let written = Written {
        api_version: poolwright_terms::API_VERSION,
        kind: KIND,
        problems: problems.into_iter().collect(),
    };
    let write = || -> anyhow::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer(&mut file, &written)?;
        writeln!(file)?;
        file.flush()?;
        Ok(())
    };
    Ok(write().with_context(|| format!("cannot write {}", path.display()))?)
}

/// Reads the problems of a file: one that [`save`] wrote, or a single problem.
pub fn read(path: &Path) -> Result<Vec<Problem>, Failure> {
    let source = source::file(path).map_err(Failure::bad_input)?;
    parse(&source.text).map_err(|cause| {
        Failure::bad_input(format!(
            "{}: {cause}; pass a file that `poolwright plan --save-problem` wrote",
            source.name
        ))
    })
}

fn parse(text: &str) -> Result<Vec<Problem>, String> {
    let explain = |error: serde_json::Error| {
        if error.is_eof() && error.line() <= 1 && error.column() == 0 {
            "is empty".to_owned()
        } else {
            format!("is not a problem of the solver: {error}")
        }
    };
    let shape: Shape = serde_json::from_str(text).map_err(explain)?;
    let problems = if shape.problems.is_some() {
        let saved: Saved = serde_json::from_str(text).map_err(explain)?;
        if (saved.api_version.as_str(), saved.kind.as_str()) != (poolwright_terms::API_VERSION, KIND) {
            return Err(format!(
                "is a {} of {}, not a {KIND} of {}",
                saved.kind,
                saved.api_version,
                poolwright_terms::API_VERSION
            ));
        }
        saved.problems
    } else {
        vec![serde_json::from_str(text).map_err(explain)?]
    };
    for (at, problem) in problems.iter().enumerate() {
        problem.validate().map_err(|error| format!("problem {}: {error}", at + 1))?;
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_problem_and_a_file_of_problems_are_both_read() {
        let bare = r#"{"resources":[],"classes":[],"candidates":[],"existing":[],"limits":[]}"#;
        assert_eq!(parse(bare), Ok(vec![Problem::default()]));
        let file = format!(
            r#"{{"apiVersion":"poolwright.dev/v1alpha1","kind":"SolverProblems","problems":[{bare},{bare}]}}"#
        );
        assert_eq!(parse(&file).map(|problems| problems.len()), Ok(2));
    }

    #[test]
    fn an_invalid_problem_file_is_reported_with_its_position() {
        for (text, said) in [
            ("", "is empty"),
            ("[", "line 1 column 1"),
            ("{}", "missing field `resources`"),
            (r#"{"apiVersion":"v1","kind":"Plan","problems":[]}"#, "is a Plan of v1"),
            (
                r#"{"resources":["cpu"],"classes":[],"candidates":[{"name":"a","price":1,"capacity":[],"maxNodes":null,"limitUse":[]}],"existing":[],"limits":[]}"#,
                "problem 1: a has 0 resource amounts where the problem has 1 resources",
            ),
            (
                r#"{"resources":[],"classes":[],"candidates":[],"existing":[],"limits":[],"limit":[]}"#,
                "unknown field `limit`",
            ),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
