//! Reads the user's input: files, directories and standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use poolwright_intake::IntakeError;
use poolwright_intake::manifest::{self, Manifest, is_cluster_scoped, read_files};
use poolwright_terms::one_line;
use serde_json::Value;

use crate::clouds;
use crate::exit::Failure;
use crate::problems::Problems;

/// The extensions of manifests in a directory.
const MANIFESTS: [&str; 3] = ["yaml", "yml", "json"];

/// A text with its name in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as it was given, in one line, or `stdin`.
    pub name: String,
    /// The content.
    pub text: String,
}

impl Source {
    fn bytes(&self) -> u64 {
        self.text.len() as u64
    }
}

/// Reads manifests as [`readable`] does. Unreadable files are reported together.
pub fn manifests(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let (sources, unreadable) = readable(paths, &[]);
    if unreadable.is_empty() { Ok(sources) } else { Err(cannot_read(&unreadable)) }
}

/// Reads manifests: files, directories (their YAML and JSON files in the order of names, without subdirectories), and `-`. Also
/// returns what is wrong with files that cannot be read, to be told with the problems of the others. `before` is what the command
/// has read already; it counts to the most that is read in all.
pub fn readable(paths: &[PathBuf], before: &[Source]) -> (Vec<Source>, Vec<IntakeError>) {
    within(paths, before, MOST_BYTES, MOST_BYTES_IN_ALL)
}

fn within(
    paths: &[PathBuf],
    before: &[Source],
    most: u64,
    most_in_all: u64,
) -> (Vec<Source>, Vec<IntakeError>) {
    let (mut sources, mut unreadable) = (Vec::new(), Vec::new());
    let mut left = before.iter().fold(most_in_all, |left, source| left.saturating_sub(source.bytes()));
    'paths: for path in paths {
        let files = if path.is_dir() { in_directory(path) } else { Ok(vec![path.clone()]) };
        for path in files.map_err(|problem| unreadable.push(problem)).unwrap_or_default() {
            match file_within(&path, most.min(left)) {
                Ok(source) => {
                    left -= source.bytes();
                    sources.push(source);
                }
                Err(Unread::Larger(name)) if left < most => {
                    // The same holds for the files after it.
                    unreadable.push(format!(
                        "{name}: with it, the files are larger than {} MiB together, and no more are read; name fewer files, or leave \
                         out what the plan does not need, such as old events and managedFields",
                        most_in_all >> 20
                    ));
                    break 'paths;
                }
                Err(problem) => unreadable.push(problem.told(most)),
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
    let name = named(directory);
    let explain = |error: io::Error| format!("{name}: {error}");
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
        return Err(format!("{name}: no file in it ends in .yaml, .yml or .json; name the files"));
    }
    Ok(files)
}

/// Returns a path for messages. A directory may hold files of others.
fn named(path: &Path) -> String {
    one_line(&path.display().to_string()).into_owned()
}

/// Reads one file; `-` is standard input.
///
/// # Errors
///
/// The file cannot be read. The error is a sentence that names the file.
pub fn file(path: &Path) -> Result<Source, String> {
    file_within(path, MOST_BYTES).map_err(|problem| problem.told(MOST_BYTES))
}

/// Reads one file as [`file`] does, which may be as large as all manifests of a command.
///
/// # Errors
///
/// The file cannot be read. The error is a sentence that names the file.
pub fn large_file(path: &Path) -> Result<Source, String> {
    file_within(path, MOST_BYTES_IN_ALL).map_err(|problem| problem.told(MOST_BYTES_IN_ALL))
}

/// Why a file is not read.
enum Unread {
    /// The file of this name is larger than the limit.
    Larger(String),
    /// Another cause: a sentence that names the file.
    Other(String),
}

impl Unread {
    /// Returns the sentence.
    fn told(self, most: u64) -> String {
        match self {
            Self::Larger(name) => format!(
                "{name}: larger than {} MiB; leave out what the plan does not need, such as old events and managedFields",
                most >> 20
            ),
            Self::Other(told) => told,
        }
    }
}

/// Reads a file of at most this many bytes.
fn file_within(path: &Path, most: u64) -> Result<Source, Unread> {
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "stdin".to_owned() } else { named(path) };
    let mut bytes = Vec::new();
    let read = if is_stdin {
        io::stdin().lock().take(most + 1).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
    };
    match read {
        // What is cut may end within a character, so this comes first.
        Ok(read) if read as u64 > most => Err(Unread::Larger(name)),
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Source { name, text }),
            Err(_) => Err(Unread::Other(format!("{name}: is not text in UTF-8; save it as such"))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Unread::Other(format!("{name}: there is no such file; check the path")))
        }
        Err(error) => Err(Unread::Other(format!("{name}: {error}"))),
    }
}

/// The most bytes of one file. A larger one would end in a lack of memory.
const MOST_BYTES: u64 = 64 << 20;

/// The most bytes of all manifests of a command together.
const MOST_BYTES_IN_ALL: u64 = 256 << 20;

/// Puts the objects that name no namespace into this one, as `kubectl apply -n` does.
pub fn in_namespace(sources: Vec<Source>, namespace: &str) -> Vec<Source> {
    let has_namespace =
        |api_version: &str, kind: &str| !is_cluster_scoped(api_version, kind) && !clouds::is_node_class(kind);
    let moved = |source: Source| match manifest::in_namespace(&source.text, namespace, has_namespace) {
        Some(text) => Source { text, ..source },
        None => source,
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

    /// Reads two files of 6 and 7 bytes, after some others, from a folder of its own.
    fn limited(test: &str, before: &str, most: u64, in_all: u64) -> (Vec<u64>, Vec<String>) {
        let folder = std::env::temp_dir().join(format!("poolwright-source-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for (name, text) in [("a.yaml", "a: abc"), ("b.yaml", "b: \u{e4}\u{e4}")] {
            fs::write(folder.join(name), text).expect("a file");
        }
        let before = [Source { name: "x".to_owned(), text: before.to_owned() }];
        let (sources, unread) = within(std::slice::from_ref(&folder), &before, most, in_all);
        fs::remove_dir_all(&folder).expect("the folder is there");
        let inside = format!("{}/", folder.display());
        let unread = unread.iter().map(|problem| problem.to_string().replace(&inside, "")).collect();
        (sources.iter().map(Source::bytes).collect(), unread)
    }

    #[test]
    fn files_that_are_too_large_together_are_refused_with_the_name_of_the_first_that_is_too_many() {
        assert_eq!(limited("fits", "", 9, 13), (vec![6, 7], Vec::new()));
        let (read, unread) = limited("second", "", 9, 12);
        assert_eq!((read, unread.len()), (vec![6], 1));
        assert!(unread[0].starts_with("b.yaml: with it, the files are larger than"), "{unread:?}");
        assert!(unread[0].contains("name fewer files"), "{unread:?}");
        let (read, unread) = limited("before", "12345678", 9, 13);
        assert_eq!(
            (read, unread.len()),
            (Vec::new(), 1),
            "what was read before counts, and nothing is read after it"
        );
        assert!(unread[0].starts_with("a.yaml: with it"), "{unread:?}");
    }

    #[test]
    fn a_file_that_is_too_large_is_said_to_be_so_even_if_the_limit_is_within_a_character() {
        let (read, unread) = limited("one", "", 5, 100);
        assert_eq!((read, unread.len()), (Vec::new(), 2));
        assert!(unread[1].starts_with("b.yaml: larger than"), "{unread:?}");
    }

    #[test]
    fn objects_without_a_namespace_are_put_into_that_of_the_flag() {
        let text = "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n---\nkind: Pod\napiVersion: v1\n\
                    metadata: {name: b, namespace: shop}\n---\nkind: Node\napiVersion: v1\nmetadata: {name: n}\n";
        let moved = in_namespace(vec![Source { name: "f".to_owned(), text: text.to_owned() }], "ml");
        let all = manifest::objects("f", &moved[0].text).expect("they can be read");
        let of = |at: usize| all[at]["metadata"]["namespace"].as_str();
        assert_eq!([of(0), of(1), of(2)], [Some("ml"), Some("shop"), None]);
    }
}
