//! Objects as last seen, so that a write need not read its object first.
//!
//! A write that starts from here carries the resource version and UID of the object. The API server refuses it if the object
//! has changed since, and only then is the object read. Nothing is decided from these copies, not even that there is nothing to
//! do.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use kube::{Resource, ResourceExt};
use poolwright_api::NodeClaim;

/// The newest seen version of each object of one kind, by name.
#[derive(Debug)]
pub struct LastSeen<K>(BTreeMap<String, K>);

impl<K> Default for LastSeen<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Resource + Clone> LastSeen<K> {
    /// Keeps a version of an object, unless a newer one is known.
    pub fn keep(&mut self, object: K) {
        let name = object.name_any();
        if self.0.get(&name).is_none_or(|known| !is_older(&object, known)) {
            self.0.insert(name, object);
        }
    }

    /// Forgets a deleted object.
    pub fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Keeps only the objects with these names.
    pub fn retain<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        let names: BTreeSet<&str> = names.collect();
        self.0.retain(|name, _| names.contains(name.as_str()));
    }

    /// Looks at the object as last seen, without copying it.
    pub fn view<T>(&self, name: &str, look: impl FnOnce(&K) -> T) -> Option<T> {
        self.0.get(name).map(look)
    }

    /// Returns the object as last seen.
    pub fn get(&self, name: &str) -> Option<K> {
        self.0.get(name).cloned()
    }
}

/// Returns whether `one` is an earlier version of the same object. Versions are numbers since Kubernetes 1.35, and in earlier
/// versions with etcd.
fn is_older<K: Resource>(one: &K, known: &K) -> bool {
    let version = |object: &K| object.meta().resource_version.as_ref()?.parse::<u64>().ok();
    one.meta().uid == known.meta().uid
        && version(one).zip(version(known)).is_some_and(|(one, known)| one < known)
}

/// Returns the part of a claim that is kept.
pub fn of_claim(mut claim: NodeClaim) -> NodeClaim {
    claim.metadata.managed_fields = None;
    claim
}

/// Returns the part of a node that is kept. The status is left out, because it is most of the node and not ours to write.
pub fn of_node(mut node: Node) -> Node {
    node.metadata.managed_fields = None;
    node.status = None;
    node
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn node(uid: &str, version: &str) -> Node {
        from_value(json!({ "metadata": { "name": "a", "uid": uid, "resourceVersion": version } })).unwrap()
    }

    fn version(seen: &LastSeen<Node>) -> Option<String> {
        seen.get("a")?.resource_version()
    }

    #[test]
    fn the_newest_version_is_kept_in_whatever_order_they_are_heard_of() {
        let mut seen = LastSeen::default();
        for (heard, kept) in [("9", "9"), ("10", "10"), ("9", "10"), ("11", "11")] {
            seen.keep(node("one", heard));
            assert_eq!(version(&seen).as_deref(), Some(kept));
        }
    }

    #[test]
    fn an_object_that_takes_the_name_of_another_takes_its_place() {
        let mut seen = LastSeen::default();
        seen.keep(node("one", "10"));
        seen.keep(node("two", "3"));
        assert_eq!(version(&seen).as_deref(), Some("3"));
    }

    #[test]
    fn objects_missing_from_a_list_are_forgotten() {
        let mut seen = LastSeen::default();
        seen.keep(node("one", "10"));
        seen.retain(["a", "b"].into_iter());
        assert!(seen.get("a").is_some());
        seen.retain(["b"].into_iter());
        assert!(seen.get("a").is_none());
    }

    #[test]
    fn a_nodes_status_is_not_kept() {
        let whole: Node = from_value(json!({
            "metadata": { "name": "a", "managedFields": [{ "manager": "kubelet" }] },
            "spec": { "providerID": "one" },
            "status": { "images": [{ "names": ["image"] }] },
        }))
        .unwrap();
        let kept: Node =
            from_value(json!({ "metadata": { "name": "a" }, "spec": { "providerID": "one" } })).unwrap();
        assert_eq!(of_node(whole), kept);
    }
}
