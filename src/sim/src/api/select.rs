//! Label and field selectors of lists and watches.

use std::collections::BTreeMap;

use kube::core::{Expression, Selector, SelectorExt};
use serde_json::Value;

use super::answer::Refusal;
use super::kinds::Kind;
use super::route::Query;

/// The selectors of a list or a watch.
#[derive(Debug, Default)]
pub(super) struct Filter {
    namespace: Option<String>,
    name: Option<String>,
    labels: Option<Selector>,
    fields: Vec<Field>,
}

/// `path=value` or `path!=value`.
#[derive(Debug)]
struct Field {
    path: Vec<String>,
    value: String,
    equal: bool,
}

/// The fields of pods that field selectors support besides name and namespace. An absent value equals the empty one
/// (`pkg/apis/core/v1/conversion.go`).
const POD_FIELDS: [&str; 7] = [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.nominatedNodeName",
];

impl Filter {
    pub fn new(kind: &Kind, namespace: Option<String>, query: &Query) -> Result<Self, Refusal> {
        let labels = query.text("labelSelector").map(labels);
        let mut fields = Vec::new();
        for part in query.text("fieldSelector").unwrap_or_default().split(',').filter(|part| !part.is_empty())
        {
            let (path, value, equal) = if let Some((path, value)) = part.split_once("!=") {
                (path, value, false)
            } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (path, value, true)
            } else {
                return Err(Refusal::bad_request(format!(
                    "invalid selector: '{part}'; can't understand '{part}'"
                )));
            };
            let known = matches!(path, "metadata.name" | "metadata.namespace")
                || (kind.is_pod() && POD_FIELDS.contains(&path));
            if !known {
                return Err(Refusal::bad_request(format!("field label not supported: {path}")));
            }
            let path = path.split('.').map(str::to_owned).collect();
            fields.push(Field { path, value: value.to_owned(), equal });
        }
        Ok(Self { namespace, name: None, labels: labels.transpose()?, fields })
    }

    /// Returns whether it selects all objects of the kind or namespace.
    pub fn is_plain(&self) -> bool {
        self.labels.is_none() && self.fields.is_empty()
    }

    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    pub fn takes(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let is = |field: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| metadata[field].as_str() == Some(wanted))
        };
        is("namespace", &self.namespace)
            && is("name", &self.name)
            && self.fields.iter().all(|field| field.takes(object))
            && self.labels.as_ref().is_none_or(|selector| {
                let labels = metadata["labels"].as_object().into_iter().flatten();
                let text =
                    |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
                let labels: BTreeMap<String, String> = labels.filter_map(text).collect();
                selector.matches(&labels)
            })
    }
}

impl Field {
    fn takes(&self, object: &Value) -> bool {
        let is = match self.path.iter().fold(object, |value, part| &value[part]) {
            Value::String(text) => *text == self.value,
            Value::Null if self.path.last().is_some_and(|part| part == "hostNetwork") => {
                self.value == "false"
            }
            Value::Null => self.value.is_empty(),
            Value::Bool(is) => self.value.parse() == Ok(*is),
            _ => false,
        };
        is == self.equal
    }
}

/// Parses a label selector of a query: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
fn labels(text: &str) -> Result<Selector, Refusal> {
    let unreadable = |part: &str| Refusal::bad_request(format!("unable to parse requirement: `{part}`"));
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // A comma in brackets separates values, not requirements.
        let open = rest.find('(').filter(|at| rest.find(',').is_none_or(|comma| *at < comma));
        let end = match open {
            Some(open) => rest[open..].find(')').map(|at| open + at + 1).ok_or_else(|| unreadable(rest))?,
            None => rest.find(',').unwrap_or(rest.len()),
        };
        let part = rest[..end].trim();
        rest = rest[end..].trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        let owned = |text: &str| text.trim().to_owned();
        let expression = if let Some((left, values)) = part.split_once('(') {
            let values = values.trim_end_matches(')').split(',').map(owned).collect();
            match left.trim().rsplit_once(' ') {
                Some((key, "in")) => Expression::In(owned(key), values),
                Some((key, "notin")) => Expression::NotIn(owned(key), values),
                _ => return Err(unreadable(part)),
            }
        } else if let Some((key, value)) = part.split_once("!=") {
            Expression::NotEqual(owned(key), owned(value))
        } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            Expression::Equal(owned(key), owned(value))
        } else if let Some(key) = part.strip_prefix('!') {
            Expression::DoesNotExist(owned(key))
        } else if !part.is_empty() && !part.contains(' ') {
            Expression::Exists(part.to_owned())
        } else {
            return Err(unreadable(part));
        };
        all.push(expression);
    }
    Ok(all.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_are_read_as_queries_write_them() {
        let takes = |text: &str, of: &[(&str, &str)]| {
            let of: BTreeMap<String, String> =
                of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            labels(text).expect("it parses").matches(&of)
        };
        let one = [("app", "web"), ("tier", "front")];
        for text in ["app=web", "app==web,tier in (back, front)", "tier notin (back),app", "app!=db,!gone"] {
            assert!(takes(text, &one), "{text}");
        }
        for text in ["app=db", "tier in (back)", "app,tier notin (front)", "!app", "gone"] {
            assert!(!takes(text, &one), "{text}");
        }
        for text in ["a b", "a in (b", "a of (b)"] {
            assert!(labels(text).is_err(), "{text}");
        }
    }
}
