//! The node classes in manifests.

use std::path::PathBuf;

use poolwright_intake::manifest::{NodeClassObject, WrittenObject, objects};
use poolwright_provider_contract::Registration;
use poolwright_terms::{GROUP, NodeClassRef};

use crate::exit::Failure;
use crate::node_classes::{self, NodeClasses};
use crate::problems::Problems;
use crate::{schema, source};

/// Reads the node classes of this cloud from the files. Other objects are ignored. Adds a note for each field that is not read.
pub fn read(
    paths: &[PathBuf],
    cloud: Option<&'static Registration>,
    notes: &mut Vec<String>,
) -> Result<NodeClasses, Failure> {
    let Some(cloud) = cloud else { return Ok(NodeClasses::new()) };
    let kind = cloud.node_class.kind.kind;
    let (mut found, mut problems) = (Vec::new(), Problems::new());
    for source in source::manifests(paths)? {
        match objects(&source.name, &source.text) {
            Ok(objects) => {
                let own = objects.into_iter().filter(|object| is_of(kind, object));
                for object in own {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                    if name.is_empty() {
                        problems.push(format!("{}: a {kind} has no name: set metadata.name", source.name));
                    }
                    let reference = NodeClassRef { group: GROUP.to_owned(), kind: kind.to_owned(), name };
                    found.push(NodeClassObject { file: source.name.clone(), reference, object });
                }
            }
            Err(errors) => errors.iter().for_each(|error| problems.push(error)),
        }
    }
    if problems.is_empty() && found.is_empty() && !paths.is_empty() {
        problems.push(format!("these files have no {kind} of {GROUP}"));
    }
    let (known, mut errors) = node_classes::read(&found, notes);
    let named = found.iter().filter(|class| !class.reference.name.is_empty());
    let written: Vec<WrittenObject> = named.filter_map(NodeClassObject::written).collect();
    let refused = schema::refused_written(&written, &errors);
    errors.extend(refused);
    problems.extend(Problems::all(errors));
    problems.extend(Problems::all(known.broken.into_values()));
    problems
        .or(known.classes)
        .map_err(|problems| Failure::bad_input(format!("the node classes cannot be used: {problems}")))
}

fn is_of(kind: &str, object: &serde_json::Value) -> bool {
    let group = object["apiVersion"].as_str().and_then(|version| version.split('/').next());
    object["kind"] == kind && group == Some(GROUP)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_class_is_told_from_karpenters() {
        let mut object = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "MistNodeClass"});
        assert!(is_of("MistNodeClass", &object));
        object["apiVersion"] = json!("karpenter.mist/v1");
        assert!(!is_of("MistNodeClass", &object));
    }
}
