//! An object of any kind as the API server sent it, before it is read as its type.
//!
//! The watches of all kinds have this one type. A watch per type would be compiled some twenty times over.

use std::borrow::Cow;

use kube::Resource;
use kube::api::ApiResource;
use kube::core::{DynamicResourceScope, ObjectMeta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object of any kind as the API server sent it.
#[derive(Clone, Debug)]
pub struct Received {
    /// What a watch needs, and no more: name, namespace, UID, version and the time of deletion.
    metadata: ObjectMeta,
    object: Value,
}

impl Received {
    /// Reads the object as its type, which leaves the metadata, or says what is malformed.
    pub fn read<K: DeserializeOwned>(&mut self) -> Result<K, String> {
        serde_json::from_value(self.object.take()).map_err(|error| error.to_string())
    }
}

impl<'de> Deserialize<'de> for Received {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Value::deserialize(deserializer)?;
        let field = |name| object.get("metadata").and_then(|metadata| metadata.get(name));
        let text = |name| field(name).and_then(Value::as_str).map(str::to_owned);
        let metadata = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            deletion_timestamp: field("deletionTimestamp").and_then(|at| Deserialize::deserialize(at).ok()),
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, object })
    }
}

impl Resource for Received {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_read_as_its_type_and_a_malformed_one_keeps_its_name_and_version() {
        let metadata = json!({"name": "a", "namespace": "ml", "uid": "u", "resourceVersion": "7",
            "deletionTimestamp": "2026-01-02T03:04:05Z", "labels": {"app": "x"}});
        let of =
            |spec| serde_json::from_value::<Received>(json!({"metadata": metadata, "spec": spec})).unwrap();
        let pod: Pod = of(json!({"containers": []})).read().unwrap();
        assert_eq!(pod.labels()["app"], "x");
        let mut malformed = of(json!({"containers": "none"}));
        assert_eq!(malformed.resource_version().as_deref(), Some("7"));
        let why = malformed.read::<Pod>().unwrap_err();
        let key = (malformed.namespace(), malformed.name_any(), malformed.uid());
        assert_eq!(key, (Some("ml".to_owned()), "a".to_owned(), Some("u".to_owned())));
        assert!(malformed.meta().deletion_timestamp.is_some());
        assert!(why.contains("none"), "{why}");
    }
}
