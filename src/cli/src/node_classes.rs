//! Reads node classes from files or from a cluster. The cloud of a kind reads its classes.

use std::collections::BTreeMap;

use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use poolwright_api::{FieldProblem, meant, strict};
use poolwright_intake::manifest::NodeClassObject;
use poolwright_provider_contract::{NodeClassFacts, Registration};
use poolwright_terms::{GROUP, NodeClassRef};
use serde_json::Value;

use crate::clouds::{clouds, of_kind};
use crate::problems::Problems;

/// A node class.
#[derive(Clone, Debug)]
pub struct NodeClass {
    /// Its cloud.
    pub cloud: &'static Registration,
    /// The properties that are known without asking the cloud.
    pub facts: NodeClassFacts,
    /// The object.
    pub object: Value,
}

/// Node classes by kind and name.
pub type NodeClasses = BTreeMap<NodeClassRef, NodeClass>;

/// Reads the node classes of manifests. A field of a stored class that its cloud does not know becomes a note: the API server that
/// printed it may be newer.
///
/// # Errors
///
/// A kind belongs to no cloud, or a cloud finds a problem in one of its classes.
pub fn read(objects: &[NodeClassObject], notes: &mut Vec<String>) -> Result<NodeClasses, Problems> {
    let (mut classes, mut problems) = (NodeClasses::new(), Problems::new());
    for given in objects {
        let mut read = class(&given.reference.kind, &given.object);
        if let Err(found) = &read
            && given.is_stored()
            && found.iter().any(|one| one.cause == strict::UNKNOWN_FIELD)
        {
            let mut known = given.object.clone();
            for one in found.iter().filter(|one| one.cause == strict::UNKNOWN_FIELD) {
                strict::remove(&mut known, &one.path);
                notes.push(format!(
                    "{}: {}: this version does not know the field, and ignores it",
                    given.name(),
                    one.path
                ));
            }
            read = class(&given.reference.kind, &known);
        }
        match read {
            Ok(class) => {
                classes.insert(given.reference.clone(), class);
            }
            Err(found) => found.into_iter().for_each(|one| problems.push(given.problem(one))),
        }
    }
    problems.or(classes)
}

/// Lists the node classes of a cluster, and notes those that cannot be read. A kind that is not installed has none.
///
/// # Errors
///
/// A kind could not be listed, with the cause.
pub async fn list(
    client: &Client,
    notes: &mut Vec<String>,
) -> Result<NodeClasses, (&'static str, kube::Error)> {
    let mut classes = NodeClasses::new();
    for cloud in clouds() {
        let kind = cloud.node_class.kind;
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
        let listed = match api.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err((kind.plural, error)),
            Ok(listed) => listed,
        };
        for object in listed.items {
            let name = object.name_any();
            let Ok(mut value) = serde_json::to_value(&object) else { continue };
            // Objects in a list do not have these fields.
            value["kind"] = kind.kind.into();
            value["apiVersion"] = poolwright_terms::API_VERSION.into();
            match class(kind.kind, &value) {
                Ok(class) => {
                    let (group, kind) = (GROUP.to_owned(), kind.kind.to_owned());
                    classes.insert(NodeClassRef { group, kind, name }, class);
                }
                Err(found) => notes.extend(
                    found
                        .iter()
                        .map(|one| format!("left out: {} {name}: {}: {}", kind.kind, one.path, one.cause)),
                ),
            }
        }
    }
    Ok(classes)
}

fn class(kind: &str, object: &Value) -> Result<NodeClass, Vec<FieldProblem>> {
    let Some(cloud) = of_kind(kind) else {
        let known = clouds().iter().map(|cloud| cloud.node_class.kind.kind);
        let known: Vec<&str> = ["NodePool", "NodeClaim"].into_iter().chain(known).collect();
        let next = match meant(kind, known.iter().copied()) {
            Some(kind) => format!("did you mean {kind}?"),
            None => format!("write one of {}", known.join(", ")),
        };
        return Err(vec![FieldProblem::new("", format!("{GROUP} has no such kind"), next)]);
    };
    let facts = (cloud.node_class.read)(object)?;
    Ok(NodeClass { cloud, facts, object: object.clone() })
}
