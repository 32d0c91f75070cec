//! Splits a file into its documents and reads each alone, so that a malformed document does not affect the others.

use serde_json::Value;

/// One document of a file.
pub(crate) struct Document {
    /// Its number in the file, from 1.
    pub number: usize,
    /// Its objects, or why it cannot be read.
    pub objects: Result<Vec<Value>, String>,
}

/// Reads the documents of a file. Documents that contain only comments and directives are skipped.
///
/// A line that begins with `---` separates documents in every context (<https://yaml.org/spec/1.2.2/#91-documents>), so the
/// documents can be split without parsing them.
pub(crate) fn documents(text: &str) -> Vec<Document> {
    let mut pieces: Vec<(usize, String)> = vec![(0, String::new())];
    for (at, line) in text.lines().enumerate() {
        let marker = line.strip_prefix("---").filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        if let Some(rest) = marker {
            pieces.push((at, String::new()));
            push_line(&mut pieces, &format!("   {rest}"));
        } else if line != "..." && !line.starts_with('%') {
            push_line(&mut pieces, line);
        } else {
            push_line(&mut pieces, "");
        }
    }
    let says_something =
        |piece: &String| piece.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'));
    let pieces = pieces.into_iter().filter(|(_, piece)| says_something(piece));
    pieces
        .enumerate()
        .map(|(at, (line, piece))| Document { number: at + 1, objects: read(line, &piece) })
        .collect()
}

fn push_line(pieces: &mut [(usize, String)], line: &str) {
    if let Some((_, piece)) = pieces.last_mut() {
        piece.push_str(line);
        piece.push('\n');
    }
}

fn read(line: usize, piece: &str) -> Result<Vec<Value>, String> {
    let parse = |text: &str| -> Result<Vec<Value>, String> {
        let options = serde_saphyr::options! { with_snippet: false };
        serde_saphyr::from_multiple_with_options(text, options)
            .map_err(|error| format!("not readable as YAML or JSON: {error}"))
    };
    // Empty lines keep the line numbers of the file in an error. Before every document of a long file they would take most of the time.
    let values = parse(piece).or_else(|_| parse(&("\n".repeat(line) + piece)))?;
    let mut objects = Vec::new();
    for value in values {
        flatten(value, None, &mut objects);
    }
    Ok(objects)
}

/// Splits lists (`List`, `NodePoolList`), as `kubectl get -o yaml` writes them, into their objects.
fn flatten(mut value: Value, of: Option<(&str, &str)>, into: &mut Vec<Value>) {
    if let (Some((api_version, kind)), Some(fields)) = (of, value.as_object_mut()) {
        fields.entry("apiVersion").or_insert_with(|| api_version.into());
        fields.entry("kind").or_insert_with(|| kind.into());
    }
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let api_version = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = value.get_mut("items").filter(|items| items.is_array()).map(Value::take);
    match (kind.strip_suffix("List"), items) {
        (Some(item), Some(Value::Array(items))) => {
            let of = (!item.is_empty()).then_some((api_version.as_str(), item));
            for item in items {
                flatten(item, of, into);
            }
        }
        (_, Some(items)) => {
            value["items"] = items;
            into.push(value);
        }
        (_, None) => into.push(value),
    }
}
