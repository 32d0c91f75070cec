//! A problem in one field of an object.

use poolwright_terms::foreign::{message, one_line};

/// A problem at one place of an object. The caller adds the object's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// The path in the object, such as `spec.template.spec.weight`. Empty for the whole object.
    pub path: String,
    /// The cause.
    pub cause: String,
    /// The remedy.
    pub next_step: String,
}

impl FieldProblem {
    /// Makes a problem at `path`. Names and values that it quotes cannot begin a line of their own.
    pub fn new(path: impl Into<String>, cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        let (path, cause, next_step): (String, String, String) =
            (path.into(), cause.into(), next_step.into());
        Self { path: one_line(&path).into_owned(), cause: message(&cause), next_step: message(&next_step) }
    }

    /// Makes the problem of a text at `path` that is not a duration.
    pub fn duration(path: impl Into<String>, error: &crate::DurationError) -> Self {
        Self::new(
            path,
            format!("`{}` is not a duration", error.text),
            "write whole numbers with h, m, s or ms, such as `90s`, `5m` or `1h30m`",
        )
    }
}

/// Returns a map key as a part of a path: `.cpu`, or `["nvidia.com/gpu"]` if the key contains a dot.
pub fn key_segment(key: &str) -> String {
    let plain =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if plain { format!(".{key}") } else { format!("[{key:?}]") }
}
