//! Custom resources: defaulting, pruning and validation by the schema of their definition.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion;
use kube_cel::CompiledSchema;
use serde_json::{Map, Value, json};

use super::objects::set;

/// A served version of a custom resource definition.
pub(super) struct Custom {
    has_status: bool,
    whole: Part,
    /// The status alone, if no rule is about the whole object: then a status update needs to check only the status.
    status: Option<Part>,
}

/// The schema of an object, or of some of its fields.
struct Part {
    schema: Value,
    /// The schema as plain JSON Schema.
    checks: Option<jsonschema::Validator>,
    rules: CompiledSchema,
    context: kube_cel::RootContext,
}

impl std::fmt::Debug for Custom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Custom").field("kind", &self.whole.context.kind).finish_non_exhaustive()
    }
}

impl Custom {
    pub fn new(group: &str, kind: &str, version: &CustomResourceDefinitionVersion) -> Self {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let schema = schema.and_then(|schema| serde_json::to_value(schema).ok()).unwrap_or_else(|| json!({}));
        let has_status = version.subresources.as_ref().is_some_and(|all| all.status.is_some());
        let context = kube_cel::RootContext {
            api_version: format!("{group}/{}", version.name),
            api_group: group.to_owned(),
            kind: kind.to_owned(),
        };
        let status = (has_status && schema["x-kubernetes-validations"].is_null()).then(|| {
            let status = json!({"type": "object", "properties": {"status": schema["properties"]["status"]}});
            Part::new(status, context.clone())
        });
        Self { has_status, whole: Part::new(schema, context), status }
    }

    pub fn has_status(&self) -> bool {
        self.has_status
    }

    /// Prunes unknown fields, then adds defaults.
    pub fn complete(&self, object: &mut Value) {
        self.whole.complete(object);
    }

    /// Returns the validation errors of an object: field paths and messages.
    pub fn problems(&self, object: &Value, before: Option<&Value>) -> Vec<(String, String)> {
        self.whole.problems(object, before)
    }

    /// Returns the object with this status, and its validation errors if it is to be validated.
    pub fn with_status(
        &self,
        before: &Value,
        status: Option<Value>,
        is_validated: bool,
    ) -> (Value, Vec<(String, String)>) {
        let mut object = before.clone();
        let Some(part) = &self.status else {
            set(&mut object, "status", status);
            self.complete(&mut object);
            let problems = if is_validated { self.problems(&object, Some(before)) } else { Vec::new() };
            return (object, problems);
        };
        let of = |status: Option<Value>| {
            let mut fields = json!({});
            set(&mut fields, "status", status);
            fields
        };
        let mut fields = of(status);
        part.complete(&mut fields);
        let problems = if is_validated {
            part.problems(&fields, Some(&of(before.get("status").cloned())))
        } else {
            Vec::new()
        };
        set(&mut object, "status", fields.get_mut("status").map(Value::take));
        (object, problems)
    }
}

impl Part {
    fn new(schema: Value, context: kube_cel::RootContext) -> Self {
        let checks = jsonschema::draft7::new(&as_json_schema(&schema)).ok();
        let rules = kube_cel::compile_schema(&schema);
        Self { schema, checks, rules, context }
    }

    fn complete(&self, object: &mut Value) {
        let kept: Vec<(&str, Value)> = ["apiVersion", "kind", "metadata"]
            .into_iter()
            .filter_map(|field| Some((field, object.get_mut(field)?.take())))
            .collect();
        prune(&self.schema, object);
        let mut completed = kube_cel::apply_defaults(&self.schema, object);
        for (field, value) in kept {
            completed[field] = value;
        }
        *object = completed;
    }

    fn problems(&self, object: &Value, before: Option<&Value>) -> Vec<(String, String)> {
        let mut problems: Vec<(String, String)> = Vec::new();
        if let Some(checks) = &self.checks {
            problems.extend(checks.iter_errors(object).map(|error| {
                let path = error.instance_path().as_str().trim_start_matches('/').replace('/', ".");
                (path, format!("Invalid value: {error}"))
            }));
        }
        // Like Kubernetes, evaluates rules only on objects whose types are right.
        if problems.is_empty() {
            let asked = kube_cel::Validator::new().validate_compiled_with_context(
                &self.rules,
                object,
                before,
                Some(&self.context),
            );
            let found = asked.err().map(kube_cel::ValidationErrors::into_vec).unwrap_or_default();
            problems.extend(
                found
                    .into_iter()
                    .map(|error| (error.field_path, format!("Invalid value: {}", error.message))),
            );
        }
        problems
    }
}

/// Removes fields that a structural schema does not list.
fn prune(schema: &Value, value: &mut Value) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    match value {
        Value::Object(fields) => {
            let named = schema["properties"].as_object();
            let others = schema.get("additionalProperties").filter(|others| **others != Value::Bool(false));
            if named.is_none() && others.is_none() && schema["type"] != "object" {
                return;
            }
            fields.retain(|name, value| {
                let of_name = named.and_then(|named| named.get(name)).or(others);
                if let Some(schema) = of_name {
                    prune(schema, value);
                }
                of_name.is_some()
            });
        }
        Value::Array(items) => items.iter_mut().for_each(|item| prune(&schema["items"], item)),
        _ => {}
    }
}

/// Translates Kubernetes' extensions to plain JSON Schema: `x-kubernetes-int-or-string` allows both types, `nullable` allows
/// null.
fn as_json_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let either = fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
            let nullable = fields.get("nullable") == Some(&Value::Bool(true));
            let mut out: Map<String, Value> = fields
                .iter()
                .filter(|(name, _)| {
                    // A property of this name has an object as its value. The value of the keyword is no object.
                    !matches!(name.as_str(), "format" | "nullable" | "default" | "description")
                        || fields[name.as_str()].is_object()
                })
                .map(|(name, value)| (name.clone(), as_json_schema(value)))
                .collect();
            if either {
                out.insert("type".to_owned(), json!(["integer", "string"]));
            } else if nullable && let Some(Value::String(of)) = fields.get("type") {
                out.insert("type".to_owned(), json!([of, "null"]));
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(as_json_schema).collect(),
        other => other.clone(),
    }
}
