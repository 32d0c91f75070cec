//! What identifies an object, and what it has made.

use poolwright_intake::manifest::is_cluster_scoped;
use serde_json::Value;

use crate::clouds;

/// Returns whether an object is in no namespace.
pub fn is_of_cluster(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    is_cluster_scoped(object["apiVersion"].as_str().unwrap_or_default(), kind) || clouds::is_node_class(kind)
}

/// What identifies an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id {
    group: String,
    kind: String,
    /// The namespace. Objects that name none have the usual one, also those of a cluster.
    pub namespace: String,
    name: String,
    uid: String,
}

impl Id {
    /// Returns what identifies an object. Without a namespace it is in `usual`.
    pub fn of(object: &Value, usual: &str) -> Self {
        let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let group = version.rsplit_once('/').map_or("", |(group, _)| group);
        let namespace = Some(meta("namespace")).filter(|namespace| !namespace.is_empty());
        Self {
            group: group.to_owned(),
            kind: object["kind"].as_str().unwrap_or_default().to_owned(),
            namespace: namespace.unwrap_or(usual).to_owned(),
            name: meta("name").to_owned(),
            uid: meta("uid").to_owned(),
        }
    }

    /// Returns whether it is the same object. Objects to which the API server will give a name are never the same.
    pub fn is(&self, other: &Self) -> bool {
        !self.name.is_empty()
            && (&self.group, &self.kind, &self.namespace, &self.name)
                == (&other.group, &other.kind, &other.namespace, &other.name)
    }

    /// Returns whether it has made an object: by its UID or, where either side has none, by its name.
    pub fn owns(&self, object: &Value, usual: &str) -> bool {
        let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let mut owners = owners.filter(|_| Self::of(object, usual).namespace == self.namespace);
        owners.any(|owner| {
            let text = |field: &str| owner[field].as_str().unwrap_or_default();
            if self.uid.is_empty() || text("uid").is_empty() {
                text("kind") == self.kind && text("name") == self.name
            } else {
                text("uid") == self.uid
            }
        })
    }

    /// Returns whether an autoscaler names it as its target.
    pub fn is_target(&self, target: &Value, autoscaler: &Self) -> bool {
        autoscaler.namespace == self.namespace && target["kind"] == self.kind && target["name"] == self.name
    }

    /// Returns the length of the name and the name: `web-10` comes after `web-9`.
    pub fn length_and_name(&self) -> (usize, &str) {
        (self.name.len(), &self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_owner_is_known_by_its_uid_and_without_one_by_its_name() {
        let owner = |uid: &str| {
            let meta = json!({"name": "web", "namespace": "ml", "uid": uid});
            Id::of(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta}), "default")
        };
        let made = json!({"metadata": {"namespace": "ml", "ownerReferences": [
            {"kind": "Deployment", "name": "web", "uid": "d"},
        ]}});
        assert!(owner("d").owns(&made, "default") && owner("").owns(&made, "default"));
        assert!(!owner("e").owns(&made, "default"), "it is another Deployment of that name");
        let elsewhere = json!({"metadata": {"ownerReferences": [{"kind": "Deployment", "name": "web"}]}});
        assert!(!owner("d").owns(&elsewhere, "default"));
    }
}
