//! Reads the user's input: files, directories and standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use poolwright_intake::manifest::{Manifest, parse_files};

use crate::exit::Failure;
use crate::problems::Problems;

/// The extensions of manifests in a directory.
const MANIFESTS: [&str; 3] = ["yaml", "yml", "json"];

/// A text with its name in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as it was given, or `stdin`.
    pub name: String,
    /// The content.
    pub text: String,
}

/// Reads manifests: files, directories (their YAML and JSON files in the order of names, without subdirectories), and `-`.
/// Unreadable files are reported together.
pub fn manifests(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    let mut problems = Problems::new();
    for path in paths {
        let files = if path.is_dir() { in_directory(path) } else { Ok(vec![path.clone()]) };
        for path in files.map_err(|problem| problems.push(problem)).unwrap_or_default() {
            match file(&path) {
                Ok(source) => sources.push(source),
                Err(problem) => problems.push(problem),
            }
        }
    }
    problems.or(sources).map_err(|problems| Failure::bad_input(format!("cannot read the input: {problems}")))
}

fn in_directory(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let explain = |error: io::Error| format!("{}: {error}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(explain)? {
        let path = entry.map_err(explain)?.path();
        let is_manifest = path.extension().is_some_and(|end| MANIFESTS.iter().any(|known| end == *known));
        if is_manifest && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(format!(
            "{}: no file in it ends in .yaml, .yml or .json; name the files",
            directory.display()
        ));
    }
    Ok(files)
}

/// Reads one file; `-` is standard input.
///
/// # Errors
///
/// The file cannot be read. The error is a sentence that names the file.
pub fn file(path: &Path) -> Result<Source, String> {
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let read = if is_stdin {
        io::stdin().lock().read_to_string(&mut text).map(|_| ())
    } else {
        fs::read_to_string(path).map(|all| text = all)
    };
    match read {
        Ok(()) => Ok(Source { name, text }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("{name}: there is no such file; check the path"))
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(format!("{name}: is not text in UTF-8; save it as such"))
        }
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// Reads the manifests of these files together. If there are problems, returns all of them and no content.
pub fn parsed(sources: &[Source]) -> (Manifest, Problems) {
    let files = sources.iter().map(|source| (source.name.as_str(), source.text.as_str()));
    match parse_files(files) {
        Ok(manifest) => (manifest, Problems::new()),
        Err(errors) => (Manifest::default(), Problems::all(errors)),
    }
}
