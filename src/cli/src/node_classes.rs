//! Reads node classes from files or from a cluster. The cloud of a kind reads its classes.

use std::collections::BTreeMap;

use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use poolwright_api::{FieldProblem, meant, strict};
use poolwright_catalog::Catalogue;
use poolwright_intake::IntakeError;
use poolwright_intake::manifest::{Manifest, NodeClassObject};
use poolwright_provider_contract::{NodeClassFacts, Registration};
use poolwright_sim::replay::refusals;
use poolwright_terms::{GROUP, NodeClassRef};
use serde_json::Value;

use crate::clouds::{clouds, not_built, of_kind, with_other_kinds};
use crate::not_sold::LeftOut;
use crate::schema;

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

impl NodeClass {
    /// Returns what the class sells of a catalogue, or why it sells nothing. Adds notes about what the offerings leave open, and
    /// the types that the class does not sell by default.
    pub fn sells(
        &self,
        name: &NodeClassRef,
        catalogue: &Catalogue,
        notes: &mut Vec<String>,
        not_sold: &mut LeftOut,
    ) -> Result<Catalogue, String> {
        let offers = (self.cloud.node_class.sells)(&self.object, catalogue);
        notes.extend(offers.notes.into_iter().map(|note| format!("{name}: {note}")));
        not_sold.insert(name.clone(), offers.left_out);
        offers.catalogue.map(|catalogue| with_other_kinds(catalogue, Some(name.kind.as_str())))
    }
}

/// Node classes by kind and name.
pub type NodeClasses = BTreeMap<NodeClassRef, NodeClass>;

/// Node classes, and those that an API server has stored but that cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The classes that were read.
    pub classes: NodeClasses,
    /// Why a class cannot be read, with its name.
    pub broken: BTreeMap<NodeClassRef, String>,
}

/// Reads the node classes of manifests. Of a class that an API server has stored, unknown fields are notes, and so is a problem.
/// Also returns what is wrong with the others: a kind belongs to no cloud, or a cloud finds a problem in one of its classes.
pub fn read(objects: &[NodeClassObject], notes: &mut Vec<String>) -> (Known, Vec<IntakeError>) {
    let (mut known, mut errors) = (Known::default(), Vec::new());
    for given in objects {
        let kind = given.reference.kind.as_str();
        if given.is_stored() && of_kind(kind).is_some() {
            known.add_stored(given.reference.clone(), &given.object, notes);
            continue;
        }
        match class(kind, &given.object) {
            Ok(class) => {
                known.classes.insert(given.reference.clone(), class);
            }
            Err(found) => {
                let judge = |rest: &Value| class(kind, rest).err().unwrap_or_default();
                let all = strict::all_problems(&given.object, found, judge);
                errors.extend(all.into_iter().map(|problem| given.problem(problem)));
            }
        }
    }
    (known, errors)
}

/// Reads the node classes of manifests as [`read`] does, and adds to the problems of the manifests what is wrong with these classes,
/// and what the API server would refuse of all objects of ours that it has not stored.
pub fn read_and_check(manifest: &mut Manifest, errors: &mut Vec<IntakeError>) -> Known {
    let (known, found) = read(&manifest.node_classes, &mut manifest.notes);
    errors.extend(found);
    let refused = schema::refused_written(&manifest.written, errors);
    errors.extend(refused);
    known
}

/// Returns the objections of the API server to these objects.
pub fn refused(objects: &[Value]) -> Vec<String> {
    if objects.is_empty() {
        return Vec::new();
    }
    let classes: Vec<_> = clouds().iter().map(|cloud| cloud.node_class).collect();
    refusals(objects, &classes)
}

/// Lists the node classes of a cluster. A kind that is not installed has none.
///
/// # Errors
///
/// A kind could not be listed, with the cause.
pub async fn list(client: &Client, notes: &mut Vec<String>) -> Result<Known, (&'static str, kube::Error)> {
    let mut known = Known::default();
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
            let (group, kind) = (GROUP.to_owned(), kind.kind.to_owned());
            known.add_stored(NodeClassRef { group, kind, name }, &value, notes);
        }
    }
    Ok(known)
}

impl Known {
    /// Adds a class that an API server has stored. An API server may know more fields than this version.
    fn add_stored(&mut self, name: NodeClassRef, object: &Value, notes: &mut Vec<String>) {
        let Err(found) = class(&name.kind, object).map(|class| self.classes.insert(name.clone(), class))
        else {
            return;
        };
        let (unknown, mut wrong): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|one| one.cause == strict::UNKNOWN_FIELD);
        if !unknown.is_empty() {
            let mut known_fields = object.clone();
            for field in &unknown {
                notes.push(format!(
                    "{name}: {}: this version does not know the field, and ignores it",
                    field.path
                ));
                strict::remove(&mut known_fields, &field.path);
            }
            wrong = match class(&name.kind, &known_fields) {
                Ok(class) => {
                    self.classes.insert(name, class);
                    return;
                }
                Err(found) => found,
            };
        }
        let told: Vec<String> =
            wrong.iter().map(|one| format!("{}: {}; {}", one.path, one.cause, one.next_step)).collect();
        self.broken.insert(name.clone(), format!("{name} cannot be used: {}", told.join("; ")));
    }
}

fn class(kind: &str, object: &Value) -> Result<NodeClass, Vec<FieldProblem>> {
    let Some(cloud) = of_kind(kind) else {
        if let Some(why) = not_built(|cloud| cloud.node_class == kind) {
            return Err(vec![FieldProblem::new("", why.cause(), why.next_step())]);
        }
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
