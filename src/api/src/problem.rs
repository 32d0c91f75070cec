//! A problem in one field of an object.

/// What is wrong at one place of an object. Whoever knows the object's name adds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// Where in the object: `spec.template.spec.weight`. Empty for the object as a whole.
    pub path: String,
    /// What is wrong.
    pub cause: String,
    /// What to do about it.
    pub next_step: String,
}

impl FieldProblem {
    /// A problem at `path`.
    pub fn new(path: impl Into<String>, cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { path: path.into(), cause: cause.into(), next_step: next_step.into() }
    }

    /// A text at `path` that is not a duration.
    pub fn duration(path: impl Into<String>, error: &crate::DurationError) -> Self {
        Self::new(
            path,
            format!("`{}` is not a duration", error.text),
            "write whole numbers with h, m, s or ms, such as `90s`, `5m` or `1h30m`",
        )
    }
}

/// A map key as a part of a path: `.cpu`, or `["nvidia.com/gpu"]` where a dot would mislead.
pub fn key_segment(key: &str) -> String {
    let plain =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if plain { format!(".{key}") } else { format!("[{key:?}]") }
}
