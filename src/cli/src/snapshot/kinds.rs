//! The kinds that a snapshot has, with the fields of each that plans and views read.

use poolwright_controller::LIVES;
use poolwright_provider_contract::karpenter::FromKarpenter;
use poolwright_terms::{GROUP, VERSION, keys};
use serde_json::Value;

use super::fields::Shape;
use super::table::KINDS;
use crate::clouds::clouds;

/// The selector of unfinished pods. Finished pods use no resources, and clusters that run jobs keep many of them.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The plural name of the resource.
    pub plural: &'static str,
    /// The name of the kind.
    pub name: &'static str,
    /// The word for aliases of its objects.
    own: &'static str,
    /// What is kept of an object.
    fields: &'static str,
}

impl Kind {
    /// Returns the path of the list of all objects.
    pub fn path(&self) -> String {
        let Self { group, version, plural, .. } = self;
        if group.is_empty() {
            format!("/api/{version}/{plural}")
        } else {
            format!("/apis/{group}/{version}/{plural}")
        }
    }

    /// Returns `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        let Self { group, version, .. } = self;
        if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") }
    }

    /// Returns the field selector of the objects that are read.
    pub fn selector(&self) -> Option<String> {
        match self.plural {
            "pods" => Some(UNFINISHED.to_owned()),
            "configmaps" => Some(format!("metadata.name={LIVES}")),
            "leases" => Some(format!("metadata.name={}", keys::LEASE)),
            _ => None,
        }
    }

    /// Returns what is kept of an object.
    pub fn shape(&self) -> Shape {
        Shape::read(self.fields, self.own)
    }
}

/// Returns all kinds, those of the clouds last.
pub fn kinds() -> Vec<Kind> {
    let kind =
        |(group, version, plural, name, own, fields)| Kind { group, version, plural, name, own, fields };
    let classes = clouds().iter().map(|cloud| Kind {
        group: GROUP,
        version: VERSION,
        plural: cloud.node_class.kind.plural,
        name: cloud.node_class.kind.kind,
        own: "class",
        fields: "@meta spec:whole status:whole",
    });
    KINDS.into_iter().map(kind).chain(classes).chain(classes_of_karpenter()).collect()
}

/// Returns the node classes of Karpenter on each cloud, and of the services that run it.
fn classes_of_karpenter() -> impl Iterator<Item = Kind> {
    let of_cloud = clouds().iter().flat_map(|cloud| {
        // The kind of a node class has the same name in Karpenter.
        let own = |karpenter: &dyn FromKarpenter| {
            (karpenter.group(), karpenter.kind(), cloud.node_class.kind.plural)
        };
        let managed = |karpenter: &dyn FromKarpenter| {
            karpenter.managed().map(|service| (service.group, service.kind, service.plural))
        };
        let karpenter = cloud.karpenter;
        karpenter.map(own).into_iter().chain(karpenter.and_then(managed))
    });
    of_cloud.map(|(group, name, plural)| Kind {
        group,
        version: "v1",
        plural,
        name,
        own: "class",
        fields: "@meta spec:@karpenter-class",
    })
}

/// What is kept of the objects of all kinds.
pub struct Shapes(Vec<(String, &'static str, Shape)>);

impl Shapes {
    /// Reads the notation of all kinds.
    pub fn new() -> Self {
        Self(kinds().iter().map(|kind| (kind.api_version(), kind.name, kind.shape())).collect())
    }

    /// Returns what is kept of an object; `None` if its kind is not in snapshots.
    pub fn of(&self, object: &Value) -> Option<&Shape> {
        let found = self.0.iter().find(|(version, kind, _)| {
            object["kind"].as_str() == Some(*kind) && object["apiVersion"].as_str() == Some(version.as_str())
        });
        found.map(|(.., shape)| shape)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the fields of a schema that a shape lacks. Fields of a node class are kept whole.
    fn lacking(schema: &Value, shape: &Shape, path: &str, found: &mut BTreeSet<String>) {
        let schema = if schema["items"].is_object() { &schema["items"] } else { schema };
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            match shape {
                Shape::Value(_) => {}
                Shape::Object(fields) => match fields.get(name.as_str()) {
                    Some(shape) => lacking(below, shape, &path, found),
                    None => {
                        found.insert(path);
                    }
                },
            }
        }
    }

    #[test]
    fn all_fields_of_pools_and_claims_are_kept_but_the_annotations_of_nodes() {
        let mut found = BTreeSet::new();
        for definition in crate::clouds::crds() {
            let plural = definition.spec.names.plural.clone();
            let kind =
                kinds().into_iter().find(|kind| kind.plural == plural).expect("each kind is in a snapshot");
            let definition = serde_json::to_value(&definition).expect("JSON");
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
            let Shape::Object(fields) = kind.shape() else { panic!("an object") };
            for part in ["spec", "status"] {
                lacking(&schema[part], &fields[part], &format!("{plural}.{part}"), &mut found);
            }
        }
        let expected = ["nodeclaims.spec.annotations", "nodepools.spec.template.metadata.annotations"];
        assert_eq!(found, BTreeSet::from(expected.map(str::to_owned)));
    }

    #[test]
    fn every_kind_can_be_told_from_the_others_and_its_fields_can_be_read() {
        let all = kinds();
        let names: BTreeSet<_> = all.iter().map(|kind| (kind.group, kind.plural)).collect();
        assert_eq!(names.len(), all.len());
        for kind in all {
            let Shape::Object(fields) = kind.shape() else { panic!("an object") };
            assert!(fields.contains_key("metadata"), "{}", kind.name);
        }
        let pods = kinds().into_iter().find(|kind| kind.plural == "pods").expect("pods");
        assert_eq!((pods.path(), pods.api_version()), ("/api/v1/pods".to_owned(), "v1".to_owned()));
    }
}
