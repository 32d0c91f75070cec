//! Reads the user's input: files, directories and standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use poolwright_intake::IntakeError;
use poolwright_intake::manifest::{Manifest, is_cluster_scoped, objects, read_files};
use serde_json::Value;

use crate::clouds;
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

/// Reads manifests as [`readable`] does. Unreadable files are reported together.
pub fn manifests(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let (sources, unreadable) = readable(paths);
    if unreadable.is_empty() { Ok(sources) } else { Err(cannot_read(&unreadable)) }
}

/// Reads manifests: files, directories (their YAML and JSON files in the order of names, without subdirectories), and `-`. Also
/// returns what is wrong with files that cannot be read, to be told with the problems of the others.
pub fn readable(paths: &[PathBuf]) -> (Vec<Source>, Vec<IntakeError>) {
    let (mut sources, mut unreadable) = (Vec::new(), Vec::new());
    for path in paths {
        let files = if path.is_dir() { in_directory(path) } else { Ok(vec![path.clone()]) };
        for path in files.map_err(|problem| unreadable.push(problem)).unwrap_or_default() {
            match file(&path) {
                Ok(source) => sources.push(source),
                Err(problem) => unreadable.push(problem),
            }
        }
    }
    // These sentences name the file and the next step.
    let told = |cause: String| IntakeError {
        file: None,
        object: String::new(),
        path: String::new(),
        cause,
        next_step: String::new(),
    };
    (sources, unreadable.into_iter().map(told).collect())
}

/// Says that files cannot be read.
pub fn cannot_read(unreadable: &[IntakeError]) -> Failure {
    Failure::bad_input(format!("cannot read the input: {}", Problems::all(unreadable)))
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
        io::stdin().lock().take(MOST_BYTES + 1).read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text))
    };
    match read {
        Ok(bytes) if bytes as u64 > MOST_BYTES => Err(format!(
            "{name}: larger than {} MiB; leave out what the plan does not need, such as old events and managedFields",
            MOST_BYTES >> 20
        )),
        Ok(_) => Ok(Source { name, text }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("{name}: there is no such file; check the path"))
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(format!("{name}: is not text in UTF-8; save it as such"))
        }
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// The most bytes of one file. A larger one would end in a lack of memory.
const MOST_BYTES: u64 = 64 << 20;

/// Puts the objects that name no namespace into this one, as `kubectl apply -n` does.
pub fn in_namespace(sources: Vec<Source>, namespace: &str) -> Vec<Source> {
    let put = |mut object: Value| {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let has_namespace = !is_cluster_scoped(api_version, kind) && !clouds::is_node_class(kind);
        let names_none = object["metadata"]["namespace"].as_str().is_none_or(str::is_empty);
        if let Some(metadata) = object["metadata"].as_object_mut().filter(|_| has_namespace && names_none) {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        object.to_string()
    };
    let moved = |source: Source| match objects(&source.name, &source.text) {
        Ok(all) => Source { text: all.into_iter().map(put).collect::<Vec<_>>().join("\n"), ..source },
        Err(_) => source,
    };
    sources.into_iter().map(moved).collect()
}

/// Reads the manifests of these files together, with their problems and what can be read nevertheless. `there` are objects that the
/// cluster has besides; they count to quotas, and their pods as those of the controllers of the files.
pub fn parsed(sources: &[Source], there: &[Value]) -> (Manifest, Vec<IntakeError>) {
    read_files(sources.iter().map(|source| (source.name.as_str(), source.text.as_str())), there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_without_a_namespace_are_put_into_that_of_the_flag() {
        let text = "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n---\nkind: Pod\napiVersion: v1\n\
                    metadata: {name: b, namespace: shop}\n---\nkind: Node\napiVersion: v1\nmetadata: {name: n}\n";
        let moved = in_namespace(vec![Source { name: "f".to_owned(), text: text.to_owned() }], "ml");
        let all = objects("f", &moved[0].text).expect("they can be read");
        let of = |at: usize| all[at]["metadata"]["namespace"].as_str();
        assert_eq!([of(0), of(1), of(2)], [Some("ml"), Some("shop"), None]);
    }
}
