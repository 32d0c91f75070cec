//! Responses: objects, and the errors of the Kubernetes API.

use serde_json::{Value, json};

use super::kinds::Kind;

/// An error of the Kubernetes API.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Value,
}

/// The response to a request: an HTTP code and an object.
pub(super) type Answer = Result<(u16, Value), Refusal>;

fn about(kind: &Kind, name: &str) -> Value {
    let group = (!kind.group.is_empty()).then_some(&kind.group);
    let mut details = json!({"kind": kind.plural});
    if !name.is_empty() {
        details["name"] = json!(name);
    }
    if let Some(group) = group {
        details["group"] = json!(group);
    }
    details
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: String, details: Value) -> Self {
        Self { code, reason, message, details }
    }

    pub fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.resource());
        Self::new(404, "NotFound", message, about(kind, name))
    }

    /// Makes the error for an unknown path. This is the only response that is not an object.
    pub fn nowhere() -> Self {
        Self::new(404, "", "404 page not found\n".to_owned(), Value::Null)
    }

    /// Makes the error for an unknown resource of a built-in group.
    pub fn no_resource() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self::new(404, "NotFound", message, json!({}))
    }

    /// Makes the error for an unknown subresource.
    pub fn no_subresource(kind: &Kind) -> Self {
        if kind.custom.is_none() { Self::no_resource() } else { Self::nowhere() }
    }

    /// Makes the error for an update without a resource version, of a kind that requires one.
    pub fn unversioned(kind: &Kind, name: &str) -> Self {
        let sentence = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
        let message = format!("{} \"{name}\" is invalid: {sentence}", kind.resource());
        Self::new(422, "Invalid", message, about(kind, name))
    }

    pub fn exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.resource());
        Self::new(409, "AlreadyExists", message, about(kind, name))
    }

    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.resource());
        Self::new(409, "Conflict", message, about(kind, name))
    }

    /// Makes the error for a deletion whose preconditions do not match the stored object.
    pub fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let mut refusal = Self::conflict(kind, name, why);
        refusal.details["kind"] = json!(kind.kind);
        refusal
    }

    /// Makes the error for a conflict: the object has changed since it was read.
    pub fn changed(kind: &Kind, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// Makes a validation error. Each problem is a field path and a message.
    pub fn invalid(kind: &Kind, name: &str, problems: &[(String, String)]) -> Self {
        let all: Vec<String> = problems.iter().map(|(path, message)| format!("{path}: {message}")).collect();
        let all = if all.len() == 1 { all[0].clone() } else { format!("[{}]", all.join(", ")) };
        let object =
            if kind.group.is_empty() { kind.kind.clone() } else { format!("{}.{}", kind.kind, kind.group) };
        let causes: Vec<Value> =
            problems.iter().map(|(path, message)| json!({"field": path, "message": message})).collect();
        let mut details = about(kind, name);
        details["kind"] = json!(kind.kind);
        details["causes"] = json!(causes);
        Self::new(422, "Invalid", format!("{object} \"{name}\" is invalid: {all}"), details)
    }

    /// Makes a validation error of a Scale object.
    pub fn invalid_scale(name: &str, (field, message): (&str, String)) -> Self {
        let details = json!({"kind": "Scale", "group": "autoscaling", "name": name,
            "causes": [{"field": field, "message": message}]});
        let sentence = format!("Scale.autoscaling \"{name}\" is invalid: {field}: {message}");
        Self::new(422, "Invalid", sentence, details)
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into(), json!({}))
    }

    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.resource());
        Self::new(403, "Forbidden", message, about(kind, name))
    }

    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::new(405, "MethodNotAllowed", message, json!({}))
    }

    pub fn unsupported_patch() -> Self {
        let message = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json";
        Self::new(415, "UnsupportedMediaType", message.to_owned(), json!({}))
    }

    /// Makes the error for a watch or list that needs compacted history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into(), json!({}))
    }

    pub fn disruption_budget(name: &str, message: String) -> Self {
        let cause = format!("The disruption budget {name} {message}");
        let details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
        let sentence = "Cannot evict pod as it would violate the pod's disruption budget.".to_owned();
        Self::new(429, "TooManyRequests", sentence, details)
    }

    /// Makes an error without a reason.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(500, "Unknown", message.into(), json!({}))
    }

    pub fn object(&self) -> Value {
        if self.reason.is_empty() {
            return json!(self.message);
        }
        let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code});
        if self.reason != "Unknown" {
            status["reason"] = json!(self.reason);
        }
        if self.details.as_object().is_some_and(|details| !details.is_empty()) {
            status["details"] = self.details.clone();
        }
        status
    }
}

/// Returns `Status: Success`, the response to a deletion, an eviction or a binding.
pub(super) fn success(code: u16, details: Value) -> Value {
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    if code != 200 {
        status["code"] = json!(code);
    }
    if !details.is_null() {
        status["details"] = details;
    }
    status
}

/// Returns the details in the response to a deletion.
pub(super) fn deleted(kind: &Kind, object: &Value) -> Value {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let mut details = about(kind, name);
    details["uid"] = object["metadata"]["uid"].clone();
    details
}
