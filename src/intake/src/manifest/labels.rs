//! What an API server refuses of the keys and values of labels, annotations and selectors (`ValidateLabels`, `ValidateAnnotations` and
//! `ValidateLabelSelector` in Kubernetes). What has a wrong type is told where the object is read.

use poolwright_api::{FieldProblem, key_segment};
use serde_json::Value;

use super::names::{NameRule, items};
use super::refusals::Problems;

/// The most characters of a value, and of the part of a key after its domain.
const MOST: usize = 63;

/// The most bytes of all annotations of an object.
const MOST_BYTES: usize = 256 << 10;

/// Adds what is wrong with the labels and annotations in the metadata of an object or of a template.
pub(super) fn of_meta(path: &str, meta: &Value, into: &mut Problems) {
    labels(&format!("{path}.labels"), &meta["labels"], into);
    let path = format!("{path}.annotations");
    let mut bytes = 0;
    for (key, value) in meta["annotations"].as_object().into_iter().flatten() {
        bytes += key.len() + value.as_str().unwrap_or_default().len();
        // The case of an annotation's key does not count.
        into.extend(refused_key(&format!("{path}{}", key_segment(key)), key, &key.to_lowercase()));
    }
    if bytes > MOST_BYTES {
        let cause = format!("together they have {bytes} bytes, and {MOST_BYTES} are the most");
        into.push(FieldProblem::new(path, cause, "shorten them"));
    }
}

/// Adds what is wrong with labels, or with what selects by them.
pub(super) fn labels(path: &str, labels: &Value, into: &mut Problems) {
    for (name, text) in labels.as_object().into_iter().flatten() {
        let path = format!("{path}{}", key_segment(name));
        into.extend(refused_key(&path, name, name));
        value(&path, text, into);
    }
}

/// Adds a problem if a text is not the key of a label. One that is missing is told elsewhere.
pub(super) fn key(path: &str, key: &Value, into: &mut Problems) {
    let key = key.as_str().filter(|key| !key.is_empty());
    into.extend(key.and_then(|key| refused_key(path, key, key)));
}

/// Returns whether a text has the form of the key of a label, as other names also have (`IsQualifiedName` in Kubernetes).
pub(super) fn is_key(text: &str) -> bool {
    refused_key("", text, text).is_none()
}

/// Adds a problem for each text of a list that is not the key of a label.
pub(super) fn keys(path: &str, list: &Value, into: &mut Problems) {
    for (at, one) in items(list).iter().enumerate() {
        key(&format!("{path}[{at}]"), one, into);
    }
}

/// Adds a problem if a text is not the value of a label.
pub(super) fn value(path: &str, value: &Value, into: &mut Problems) {
    let Some(value) = value.as_str() else { return };
    if value.len() > MOST {
        into.push(too_long(path, "value", value.len()));
    } else if !value.is_empty() && !is_name(value) {
        let cause = format!("an API server refuses `{value}` as the value of a label or taint");
        let next = "write letters, digits, `-`, `_` and `.`, with a letter or digit at both ends";
        into.push(FieldProblem::new(path, cause, next));
    }
}

/// Adds a problem for each text of a list that is not the value of a label.
pub(super) fn values(path: &str, list: &[Value], into: &mut Problems) {
    for (at, one) in list.iter().enumerate() {
        value(&format!("{path}[{at}]"), one, into);
    }
}

/// Returns the problem of a `written` key if it is refused in the form that is judged.
fn refused_key(path: &str, written: &str, judged: &str) -> Option<FieldProblem> {
    let (domain, name) = judged.split_once('/').map_or((None, judged), |(domain, name)| (Some(domain), name));
    if name.len() > MOST {
        return Some(too_long(path, "name in the key", name.len()));
    }
    let is_domain = domain.is_none_or(|domain| NameRule::Subdomain.broken_by(path, domain).is_none());
    (!is_domain || !is_name(name)).then(|| {
        let cause = format!("an API server refuses the key `{written}`");
        let next = "write it as `name` or `domain/name`: the domain in lower case, the name with letters, digits, `-`, `_` and `.`, and a \
                    letter or digit at both ends";
        FieldProblem::new(path, cause, next)
    })
}

fn too_long(path: &str, what: &str, length: usize) -> FieldProblem {
    let cause = format!("the {what} has {length} characters, and {MOST} are the most");
    FieldProblem::new(path, cause, "shorten it")
}

/// Returns whether a text may be the name in a key, or a value.
fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}
