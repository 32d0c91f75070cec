//! A problem in one field of an object.

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
    /// Makes a problem at `path`.
    pub fn new(path: impl Into<String>, cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { path: path.into(), cause: cause.into(), next_step: next_step.into() }
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
