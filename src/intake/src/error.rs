//! Problems of objects: the place, the cause and the remedy.

use std::fmt;

use poolwright_api::FieldProblem;
use poolwright_catalog::quantity::QuantityError;
use poolwright_terms::foreign::{message, one_line};

/// A problem that makes an object unusable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IntakeError {
    /// The file of the object; `None` for objects of a cluster.
    pub file: Option<String>,
    /// Kind, namespace and name: `Deployment default/train`. `document 3` if the object has none.
    pub object: String,
    /// The path in the object: `spec.template.spec.containers[0].resources.requests.cpu`. Empty for the whole object.
    pub path: String,
    /// The cause.
    pub cause: String,
    /// The remedy.
    pub next_step: String,
}

impl fmt::Display for IntakeError {
    /// Writes one line, whatever names and values the problem quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [self.file.as_deref().unwrap_or_default(), &self.object, &self.path];
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            write!(f, "{}: ", message(part))?;
        }
        write!(f, "{}", message(&self.cause))?;
        if self.next_step.is_empty() { Ok(()) } else { write!(f, "; {}", message(&self.next_step)) }
    }
}

impl std::error::Error for IntakeError {}

/// Adds the object's name to a problem.
pub(crate) trait OfObject {
    /// Returns the problem with the object's name.
    fn of(self, object: impl Into<String>) -> IntakeError;
}

impl OfObject for FieldProblem {
    fn of(self, object: impl Into<String>) -> IntakeError {
        let Self { path, cause, next_step } = self;
        IntakeError { file: None, object: object.into(), path, cause, next_step }
    }
}

/// A result whose problems are collected with others, so that a user learns of all of them at once.
pub(crate) trait Keep {
    /// What there is if there are no problems.
    type Value;

    /// Returns the value, or adds the problems to others.
    fn keep(self, problems: &mut Vec<FieldProblem>) -> Option<Self::Value>;
}

impl<T> Keep for Result<T, FieldProblem> {
    type Value = T;

    fn keep(self, problems: &mut Vec<FieldProblem>) -> Option<T> {
        self.map_err(|problem| problems.push(problem)).ok()
    }
}

impl<T> Keep for Result<T, Vec<FieldProblem>> {
    type Value = T;

    fn keep(self, problems: &mut Vec<FieldProblem>) -> Option<T> {
        self.map_err(|found| problems.extend(found)).ok()
    }
}

/// Returns all values, or else all problems.
pub(crate) fn all_or_problems<R: Keep>(
    results: impl Iterator<Item = R>,
) -> Result<Vec<R::Value>, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let good = results.filter_map(|result| result.keep(&mut problems)).collect();
    if problems.is_empty() { Ok(good) } else { Err(problems) }
}

/// Adds the problems at paths that have none yet. What is wrong at one place may be found in several ways.
pub(crate) fn add_untold(found: Vec<FieldProblem>, problems: &mut Vec<FieldProblem>) {
    let known = problems.len();
    for problem in found {
        if problems[..known].iter().all(|known| known.path != problem.path) {
            problems.push(problem);
        }
    }
}

/// Returns the first of several problems, with the object's name.
pub(crate) fn first_of(problems: Vec<FieldProblem>, object: impl Into<String>) -> IntakeError {
    let first = problems.into_iter().next();
    first.unwrap_or_else(|| FieldProblem::new("", "it cannot be read", "correct it")).of(object)
}

/// Makes the problem of a text that is not a quantity. The error itself contains the remedy.
pub(crate) fn quantity_problem(path: impl Into<String>, error: &QuantityError) -> FieldProblem {
    let text = error.to_string();
    let (cause, next_step) = text.split_once("; ").unwrap_or((&text, ""));
    FieldProblem::new(path, cause, next_step)
}

/// Returns `Kind namespace/name` in one line, or `Kind name` for objects of the whole cluster.
pub(crate) fn object_name(kind: &str, namespace: Option<&str>, name: Option<&str>) -> String {
    let name = name.unwrap_or("(without a name)");
    let whole = match namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    };
    one_line(&whole).into_owned()
}
