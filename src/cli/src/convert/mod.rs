//! Converts Karpenter's NodePools and node classes to Poolwright's, and reports on every field.
//!
//! This module reads Karpenter's NodePool (`karpenter.sh/v1`) and NodeOverlay from text, and writes the result as text. Each
//! cloud converts the node class and the labels of Karpenter's provider for it. The module uses no clusters and no clocks, and
//! only `command` reads files.
//!
//! Karpenter's fields and their defaults: <https://karpenter.sh/docs/concepts/nodepools/>,
//! <https://karpenter.sh/docs/concepts/disruption/>.

mod buffer;
pub mod command;
mod contradictions;
mod disruption;
mod labels;
mod mapped;
mod node_class_ref;
mod node_labels;
mod node_pool;
mod of_type;
mod others;
mod print;
mod read;
mod requirements;
mod scope;
mod spelling;
mod template;
#[cfg(test)]
mod tests;
mod values;
mod workload;

use std::collections::BTreeSet;

use poolwright_api::NodePool;
use poolwright_provider_contract::Registration;
#[cfg(test)]
use poolwright_provider_contract::karpenter::Outcome;
use poolwright_provider_contract::karpenter::{Managed, Report};
pub use poolwright_provider_contract::karpenter::{Note, Problem};
use serde_json::Value;

pub use node_labels::labels_of_node;
pub use print::{notes_table, yaml};
pub(crate) use read::documents;

use crate::clouds::clouds;
use crate::schema::{self, bracketed};
use crate::source::Source;
use buffer::Named;

/// The result of converting Karpenter's objects, and of workloads that use them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversion {
    /// Poolwright's NodePools, in the order of the source. `poolwright plan` and the API server accept each of them.
    pub manifests: Vec<NodePool>,
    /// Poolwright's node classes, in the order of the source. Each of them meets the rules of its CRD.
    pub node_classes: Vec<Value>,
    /// Workloads whose pods used labels or taints of Karpenter, with Poolwright's instead. What has no counterpart is
    /// still in them, for the user to correct.
    pub workloads: Vec<Value>,
    /// The outcome of every field.
    pub notes: Vec<Note>,
    /// Documents that are not converted, with the reasons. `manifests`, `node_classes` and `notes` contain nothing of them.
    pub problems: Vec<Problem>,
}

/// Converts files of Karpenter's objects. A document with a problem is left out as a whole; the others are converted.
pub fn convert(documents: &[Source]) -> Conversion {
    let mut all = Conversion::default();
    let mut names = BTreeSet::new();
    let read: Vec<_> = documents.iter().map(|source| (source, read::documents(&source.text))).collect();
    let mut named = Named::default();
    let all_documents = read.iter().flat_map(|(_, documents)| documents);
    all_documents.flat_map(|document| document.objects.iter().flatten()).for_each(|object| named.add(object));
    for (source, documents) in read {
        for document in documents {
            let mut nameless = Report::new(&source.name, document.number, String::new());
            match document.objects {
                Ok(objects) => {
                    for object in objects {
                        convert_object(
                            (&source.name, document.number),
                            &object,
                            &named,
                            &mut names,
                            &mut all,
                        );
                    }
                }
                Err(why) => nameless.problem("", why, "correct the syntax"),
            }
            all.problems.append(&mut nameless.problems);
        }
    }
    all
}

/// Converts one object.
fn convert_object(
    (file, document): (&str, usize),
    value: &Value,
    named: &Named,
    names: &mut BTreeSet<String>,
    all: &mut Conversion,
) {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let name = value.get("metadata").and_then(|meta| meta.get("name")).and_then(Value::as_str);
    let object = match (kind, name) {
        ("", _) => String::new(),
        (_, Some(name)) => format!("{kind}/{name}"),
        (_, None) => kind.to_owned(),
    };
    let mut report = Report::new(file, document, object.clone());
    let made = dispatch((api_version, kind), value, named, &mut report);
    let is_of_cluster = matches!(made, Some(ConvertedObject::Pool(_) | ConvertedObject::Class(_)));
    report.end_of_source();
    if is_of_cluster && name.is_some() && !names.insert(object) {
        report.problem(
            "metadata.name",
            "another object of this kind has the same name",
            "remove one or rename it",
        );
    }
    if let Some(made) = &made {
        check(file, made, &mut report);
    }
    if !report.problems.is_empty() {
        report.unknown_too();
    }
    if report.problems.is_empty() {
        match made {
            Some(ConvertedObject::Pool(made)) => all.manifests.push(made.pool),
            Some(ConvertedObject::Class(class)) => all.node_classes.push(class),
            Some(ConvertedObject::Workload(workload)) => all.workloads.push(workload),
            None => {}
        }
        all.notes.append(&mut report.notes);
    } else {
        all.problems.append(&mut report.problems);
    }
}

/// The result of converting one object.
enum ConvertedObject {
    Pool(Box<node_pool::Converted>),
    Class(Value),
    Workload(Value),
}

fn dispatch(
    (api_version, kind): (&str, &str),
    value: &Value,
    named: &Named,
    report: &mut Report,
) -> Option<ConvertedObject> {
    if !value.is_object() || api_version.is_empty() || kind.is_empty() {
        report.problem(
            "",
            "not an object with apiVersion and kind",
            "write both, such as `apiVersion: karpenter.sh/v1` and `kind: NodePool`",
        );
        return None;
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if let Some((cloud, service)) = managed_by(group).filter(|(_, service)| service.kind == kind) {
        others::managed(&service, cloud.node_class.kind.kind, value, report);
        return None;
    }
    match (group, kind) {
        _ if !others::is_karpenter(group) => {
            let (converted, before) = (workload::convert(value, report), report.notes.len());
            if before == 0 && converted.is_none() {
                others::foreign(api_version, kind, value, named, report);
            }
            return converted.map(ConvertedObject::Workload);
        }
        ("karpenter.sh", "NodeOverlay") => others::overlay(value, report),
        ("karpenter.sh", _) if version == "v1" => match kind {
            "NodePool" => {
                return node_pool::convert(value, named, report).map(Box::new).map(ConvertedObject::Pool);
            }
            "NodeClaim" => others::claim(report),
            _ => others::unknown_kind(api_version, kind, &others::KINDS, report),
        },
        ("karpenter.sh", _) => others::old_version(api_version, kind, report),
        _ => {
            let ours = clouds().iter().filter_map(|cloud| cloud.karpenter).find(|one| one.group() == group);
            match ours {
                Some(_) if version != "v1" => others::old_version(api_version, kind, report),
                Some(cloud) if cloud.kind() == kind => {
                    return cloud.node_class(value, report).map(ConvertedObject::Class);
                }
                Some(cloud) => others::unknown_kind(api_version, kind, &[cloud.kind()], report),
                // Other providers have their own versions of their node classes.
                None => others::node_class(kind, value, report),
            }
        }
    }
    None
}

/// Returns the cloud with the managed service whose node classes are of this API group.
fn managed_by(group: &str) -> Option<(&'static Registration, Managed)> {
    clouds().iter().find_map(|cloud| {
        let service = cloud.karpenter?.managed()?;
        (service.group == group).then_some((cloud, service))
    })
}

/// Returns the managed service that defines a label, for nodes of its own.
fn service_of(key: &str) -> Option<Managed> {
    managed_by(key.split_once('/')?.0).map(|(_, service)| service)
}

/// Reports what an API server or a plan would refuse as problems of the source document, also if it has other problems: the user
/// learns of all at once.
fn check(file: &str, made: &ConvertedObject, report: &mut Report) {
    let (places, written) = match made {
        ConvertedObject::Pool(made) => {
            check_plan(file, made, report);
            (&made.places, serde_json::to_value(&made.pool).ok())
        }
        ConvertedObject::Class(class) => (&report.places, Some(class.clone())),
        ConvertedObject::Workload(_) => return,
    };
    // The rules of the schema: sizes, ranges and patterns.
    let refused = written.iter().flat_map(|object| schema::refused(&[object])).flatten();
    let refused = refused.map(|(field, why)| (places.source_of(&field), why));
    // Fields of the result that come from one field of the source have its problem each.
    let mut seen = BTreeSet::new();
    let is_new = |one: &(String, String)| {
        !report.is_replaced(&one.0) && !report.is_told(&one.0, &one.1) && seen.insert(one.clone())
    };
    let refused: Vec<_> = refused.filter(is_new).collect();
    for (field, why) in refused {
        report.problem(
            field,
            format!("the API server would refuse the converted field: {why}"),
            "correct it in the source, or split the object",
        );
    }
}

/// Reports what a plan would refuse of a pool.
fn check_plan(file: &str, made: &node_pool::Converted, report: &mut Report) {
    let errors = match yaml(std::slice::from_ref(&made.pool)) {
        Ok(text) => poolwright_intake::manifest::parse(file, &text).err().unwrap_or_default(),
        Err(why) => return report.problem("", why, "report this as a bug of `convert`"),
    };
    for error in errors {
        let field = made.places.source_of(&bracketed(&error.path));
        if report.is_replaced(&field) {
            continue;
        }
        let next =
            if error.next_step.is_empty() { "correct it in the source".to_owned() } else { error.next_step };
        report.problem(field, error.cause, next);
    }
}
