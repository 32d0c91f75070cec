//! Parses the path of a request into a resource and an operation.

use std::collections::BTreeMap;

use axum::http::Uri;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::answer::Refusal;
use super::kinds::Kind;

/// The parts of an API path.
#[derive(Debug)]
pub(super) struct Target<'k> {
    pub kind: &'k Kind,
    /// The index of the kind in the list of kinds.
    pub index: usize,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
}

impl Target<'_> {
    /// Returns the same target without its subresource.
    pub fn main(&self) -> Self {
        let Self { kind, index, namespace, name, .. } = self;
        Self { kind, index: *index, namespace: namespace.clone(), name: name.clone(), subresource: None }
    }

    pub fn name(&self) -> Result<&str, Refusal> {
        self.name.as_deref().ok_or_else(Refusal::method_not_allowed)
    }

    /// Returns the key of the object in the store.
    pub fn key(&self) -> Result<Key, Refusal> {
        let namespace = self.namespace.clone().unwrap_or_default();
        Ok(Key { kind: self.index, namespace, name: self.name()?.to_owned() })
    }
}

/// The key of an object in the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub kind: usize,
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    pub name: String,
}

/// The query parameters of a request.
#[derive(Debug, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    pub fn new(uri: &Uri) -> Self {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub fn flag(&self, name: &str) -> bool {
        matches!(self.text(name), Some("true" | "1"))
    }

    /// Returns whether the request is a dry run, which stores nothing.
    pub fn dry_run(&self) -> bool {
        self.text("dryRun") == Some("All")
    }
}

/// Returns the kinds of a group and version (an `APIResourceList` without verbs and subresources), if this is the path of one that
/// has any.
pub(super) fn discovery(kinds: &[Kind], path: &str) -> Option<Value> {
    let version = path.strip_prefix("/apis/").filter(|rest| rest.matches('/').count() == 1)?;
    let resource = |kind: &Kind| {
        let Kind { plural, namespaced, kind, .. } = kind;
        json!({"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": []})
    };
    let of_version = |kind: &&Kind| !kind.group.is_empty() && kind.api_version() == version;
    let resources: Vec<Value> = kinds.iter().filter(of_version).map(resource).collect();
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources});
    (!resources.is_empty()).then_some(list)
}

fn decode(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

/// Finds the kind and object of a path.
pub(super) fn route<'k>(kinds: &'k [Kind], path: &str) -> Result<Target<'k>, Refusal> {
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Err(Refusal::nowhere()),
    };
    let (namespace, rest) = match rest {
        // A namespace is itself an object.
        ["namespaces", namespace, rest @ ..]
            if !rest.is_empty() && !matches!(rest[0], "status" | "finalize") =>
        {
            (Some((*namespace).to_owned()), rest)
        }
        rest => (None, rest),
    };
    let [plural, rest @ ..] = rest else { return Err(Refusal::nowhere()) };
    let of_path = |kind: &Kind| kind.group == group && kind.version == version && kind.plural == *plural;
    let index = kinds.iter().position(of_path).ok_or_else(|| {
        let built_in =
            kinds.iter().any(|kind| kind.group == group && kind.version == version && kind.custom.is_none());
        if built_in { Refusal::no_resource() } else { Refusal::nowhere() }
    })?;
    let kind = &kinds[index];
    if namespace.is_some() && !kind.namespaced {
        return Err(Refusal::nowhere());
    }
    let name = rest.first().map(|name| (*name).to_owned());
    if kind.namespaced && namespace.is_none() && name.is_some() {
        return Err(Refusal::nowhere());
    }
    let subresource = match rest {
        [] | [_] => None,
        [_, subresource] => Some((*subresource).to_owned()),
        _ => return Err(Refusal::nowhere()),
    };
    Ok(Target { kind, index, namespace, name, subresource })
}
