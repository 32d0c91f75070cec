//! Converts the fields of an EC2NodeClass.
//!
//! Most fields have the same name and meaning in both. The converter compares all others with the schema of the CRD and reports
//! those that it does not have, at any depth.

use std::collections::BTreeSet;

use kube::CustomResourceExt;
use poolwright_api::{FieldProblem, strict};
use poolwright_provider_contract::karpenter::{
    Fields, Outcome, Report, convert_object, is_empty, join, text,
};
use poolwright_terms::API_VERSION;
use serde_json::{Map, Value, json};

use super::{disks, entries, sentences, user_data};
use crate::node_class::{AmiFamily, EC2NodeClass};
use crate::resolve::{self, KIND};

/// The name of a class that has none, which is a problem.
const NAMELESS: &str = "nameless";

/// Converts an EC2NodeClass. If the report then contains problems, the result only serves to find more of them.
pub(super) fn convert(value: &Value, report: &mut Report) -> Option<Value> {
    let (kind, remedy) = ("It is called EC2NodeClass here too.", "add it; Karpenter requires it too");
    let (metadata, spec) = convert_object(value, kind, remedy, report)?;
    let fields = Fields::of("spec", spec, report)?;
    let raid = spec["instanceStorePolicy"] == "RAID0";
    let mut class = Class { schema: spec_schema(), family: family(spec), raid, spec: Map::new() };
    for (key, path, value) in fields.rest() {
        if is_empty(value) && !value.is_null() && class.needs(&key) {
            report.problem(path, "empty", "write at least one term; Karpenter requires one too");
            class.spec.insert(key, json!([]));
        } else if is_empty(value) && class.knows(&key) {
            report.changed(path, "Left out, because it is empty.");
        } else {
            class.field(&key, path, value, report);
        }
    }
    entries::check(&mut class.spec, report);
    class.absent(report);
    class.missing_lists(report);
    report.end_of_source();
    let name = if metadata.name.is_empty() { NAMELESS } else { metadata.name.as_str() };
    let mut object = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": Value::Object(class.spec),
    });
    for (field, values) in [("annotations", metadata.annotations), ("labels", metadata.labels)] {
        if !values.is_empty() {
            object["metadata"][field] = json!(values);
        }
    }
    Some(checked(object, report))
}

/// Reports what is wrong with a class, and what plans would refuse of its kubelet settings. Returns it with its defaults, or as it is
/// if it cannot be read.
fn checked(object: Value, report: &mut Report) -> Value {
    let found = problems_of(&object);
    // A term of Karpenter's that became two has its problem twice.
    let mut told = BTreeSet::new();
    for problem in strict::all_problems(&object, found, problems_of) {
        let field = match missing(&problem.cause) {
            Some(field) => join(&problem.path, field),
            None => problem.path,
        };
        let field = report.places.source_of(&field);
        if !report.is_replaced(&field) && told.insert((field.clone(), problem.cause.clone())) {
            report.problem(field, problem.cause, problem.next_step);
        }
    }
    let class = strict::read::<EC2NodeClass>(&object).ok();
    if let Some(Err(wrong)) = class.as_ref().map(|class| resolve::kubelet::reserved(&class.spec)) {
        let field = format!("spec.{}", wrong.field);
        if !report.is_replaced(&field) && !report.is_told(&field, &wrong.cause) {
            let (cause, next) = wrong.cause.split_once("; ").unwrap_or((&wrong.cause, "correct it"));
            report.problem(field, cause, next);
        }
    }
    class.and_then(|class| serde_json::to_value(class).ok()).unwrap_or(object)
}

/// Returns what keeps an object from being a class.
pub(super) fn problems_of(object: &Value) -> Vec<FieldProblem> {
    let class = match strict::read::<EC2NodeClass>(object) {
        Ok(class) => class,
        Err(found) => return found,
    };
    let broken = class.validate_cel().err().into_iter().flatten();
    let next = "correct it in the Karpenter manifest";
    broken.map(|error| FieldProblem::new(error.field_path, error.message, next)).collect()
}

/// Returns the field that is missing, according to a message of serde.
fn missing(cause: &str) -> Option<&str> {
    cause.strip_prefix("missing field `")?.strip_suffix('`')
}

/// Returns the schema of Poolwright's `spec`.
pub(super) fn spec_schema() -> Value {
    let crd = serde_json::to_value(EC2NodeClass::crd()).unwrap_or_default();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// Returns the image family of Karpenter's spec: `amiFamily`, or else the family of the alias. It returns `None` for families that
/// Poolwright does not support.
fn family(spec: &Value) -> Option<AmiFamily> {
    let alias = || spec["amiSelectorTerms"].as_array()?.iter().find_map(|term| term["alias"].as_str());
    match (spec["amiFamily"].as_str(), alias().and_then(|alias| alias.split('@').next())) {
        (Some("AL2023"), _) | (None, Some("al2023")) => Some(AmiFamily::Al2023),
        (Some("Bottlerocket"), _) | (None, Some("bottlerocket")) => Some(AmiFamily::Bottlerocket),
        (Some("Custom"), _) => Some(AmiFamily::Custom),
        _ => None,
    }
}

/// The converted class.
struct Class {
    schema: Value,
    /// The image family; `None` for families that Poolwright does not support.
    family: Option<AmiFamily>,
    /// Whether local disks become one RAID 0.
    raid: bool,
    spec: Map<String, Value>,
}

impl Class {
    fn storage(&self) -> disks::Storage {
        disks::Storage { family: self.family, raid: self.raid }
    }

    fn field(&mut self, key: &str, path: String, value: &Value, report: &mut Report) {
        match key {
            "amiFamily" => self.family(path, value, report),
            "amiSelectorTerms" => self.images(path, value, report),
            "blockDeviceMappings" => self.disks(path, value, report),
            "metadataOptions" => self.metadata_service(path, value, report),
            "placementGroupSelector" => {
                report.changed(path.clone(), "It is `placementGroup` here.");
                let group = known(value, &self.schema["properties"]["placementGroup"], &path, report);
                report.places.add("spec.placementGroup", path);
                self.spec.insert("placementGroup".to_owned(), group);
            }
            "networkInterfaces" => self.interfaces(path, value, report),
            "userData" => self.user_data(path, value, report),
            "kubelet" => self.kubelet(path, value, report),
            _ => match sentences::of_field(key, self.family) {
                Some((outcome, sentence)) => self.take(key, path, value, (outcome, sentence), report),
                None if sentences::is_known(key) => report.not_possible(path, sentences::instead(key)),
                None => report.unknown(path, sentences::instead(key)),
            },
        }
    }

    /// Returns whether Poolwright or Karpenter has a field of this name.
    fn knows(&self, key: &str) -> bool {
        let renamed = ["networkInterfaces", "placementGroupSelector"];
        self.schema["properties"].get(key).is_some() || renamed.contains(&key) || sentences::is_known(key)
    }

    /// Takes the value of a field that has the same name here.
    fn take(
        &mut self,
        key: &str,
        path: String,
        value: &Value,
        (outcome, sentence): (Outcome, &str),
        report: &mut Report,
    ) {
        report.note(path.clone(), outcome, sentence);
        let value = known(value, &self.schema["properties"][key], &path, report);
        self.spec.insert(key.to_owned(), value);
    }

    /// Takes the user data, unless nodes could not be launched with it.
    fn user_data(&mut self, path: String, value: &Value, report: &mut Report) {
        let Some(own) = text(path.clone(), value, report) else { return };
        if let Some(why) = self.family.and_then(|family| user_data::refusal(family, &own)) {
            let (cause, next) = why.split_once("; ").unwrap_or((&why, "correct it"));
            return report.problem(path, cause, next);
        }
        let said = sentences::of_user_data(self.family, user_data::has_karpenters_taint(&own));
        self.take("userData", path, value, (said.0, &said.1), report);
    }

    /// Takes the settings of the kubelet, without those that the image family does not have.
    fn kubelet(&mut self, path: String, value: &Value, report: &mut Report) {
        let mut value = value.clone();
        let is_bottlerocket = self.family == Some(AmiFamily::Bottlerocket);
        if is_bottlerocket
            && value.as_object_mut().is_some_and(|settings| settings.remove("podsPerCore").is_some())
        {
            report.not_possible(join(&path, "podsPerCore"), sentences::PODS_PER_CORE);
            if is_empty(&value) {
                return;
            }
        }
        self.take("kubelet", path, &value, (Outcome::Kept, sentences::of_kubelet(self.family)), report);
    }

    fn family(&mut self, path: String, value: &Value, report: &mut Report) {
        let Some(family) = text(path.clone(), value, report) else { return };
        let families = ["AL2023", "Bottlerocket", "Custom"];
        let other_case = families.iter().find(|one| one.eq_ignore_ascii_case(&family));
        if families.contains(&family.as_str()) {
            let sentence = sentences::of_family(self.family);
            self.take("amiFamily", path, value, (Outcome::Kept, sentence), report);
        } else {
            // Any family with which the rest of the class can be checked.
            self.spec.insert("amiFamily".to_owned(), json!("Custom"));
            if let Some(right) = other_case {
                let cause = format!("there is no image family `{family}`: capital letters count");
                report.problem(path, cause, format!("write `{right}`"));
            } else if family == "Ubuntu" {
                let policy = if self.raid { ", and it does not support instanceStorePolicy" } else { "" };
                let cause = format!(
                    "with Poolwright's `Ubuntu`, kubeadm joins the nodes (docs/aws-kubeadm.md), and not the script of EKS{policy}"
                );
                report.problem(path, cause, MOVE);
            } else {
                let cause = format!("Poolwright does not support the image family `{family}`");
                report.problem(path, cause, instead_of(&family));
            }
        }
    }

    fn images(&mut self, path: String, value: &Value, report: &mut Report) {
        let value = known(value, &self.schema["properties"]["amiSelectorTerms"], &path, report);
        let mut terms = Vec::new();
        let (mut by_name, mut by_tags) = (false, false);
        for (at, term) in value.as_array().into_iter().flatten().enumerate() {
            let alias = term["alias"].as_str().unwrap_or_default();
            let family = alias.split('@').next().unwrap_or_default();
            let families = ["al2023", "bottlerocket"];
            let other_case = families.iter().find(|one| one.eq_ignore_ascii_case(family));
            if !alias.is_empty()
                && !families.contains(&family)
                && let Some(right) = other_case
            {
                let cause = format!("there is no image family `{family}`: an alias is in lower case");
                report.problem(format!("{path}[{at}].alias"), cause, format!("write `{right}`"));
            } else if !alias.is_empty() && !families.contains(&family) {
                let cause = format!("Poolwright does not support the image family `{family}`");
                report.problem(format!("{path}[{at}].alias"), cause, instead_of(family));
            }
            let chosen = term.get("name").is_some() || term.get("tags").is_some();
            if chosen && term.get("owner").is_none() {
                by_name |= term.get("name").is_some();
                by_tags |= term.get("name").is_none();
                for owner in ["self", "amazon"] {
                    let mut term = term.clone();
                    term["owner"] = json!(owner);
                    report.places.add(format!("{path}[{}]", terms.len()), format!("{path}[{at}]"));
                    terms.push(term);
                }
            } else {
                report.places.add(format!("{path}[{}]", terms.len()), format!("{path}[{at}]"));
                terms.push(term.clone());
            }
        }
        report.changed(path, sentences::of_images(by_name, by_tags));
        let terms = if value.is_array() { Value::Array(terms) } else { value };
        self.spec.insert("amiSelectorTerms".to_owned(), terms);
    }

    fn disks(&mut self, path: String, value: &Value, report: &mut Report) {
        let mut value = known(value, &self.schema["properties"]["blockDeviceMappings"], &path, report);
        disks::convert(self.storage(), &mut value, path, report);
        self.spec.insert("blockDeviceMappings".to_owned(), value);
    }

    fn metadata_service(&mut self, path: String, value: &Value, report: &mut Report) {
        let mut value = known(value, &self.schema["properties"]["metadataOptions"], &path, report);
        if value["httpTokens"] == "optional" {
            report.changed(
                join(&path, "httpTokens"),
                "Changed to `required`, the only value that Poolwright allows: with IMDSv1, a pod that can make the node send an HTTP \
                 request can get the node's credentials. Make sure that no program on your nodes uses IMDSv1.",
            );
            value["httpTokens"] = json!("required");
            report.kept(path, "Its other settings stay.");
        } else {
            report.kept(path, "The metadata service has the same settings.");
        }
        self.spec.insert("metadataOptions".to_owned(), value);
    }

    fn interfaces(&mut self, path: String, value: &Value, report: &mut Report) {
        let is_efa = |interface: &Value| {
            interface["interfaceType"].as_str().is_some_and(|kind| kind.starts_with("efa"))
        };
        let has_efa = value.as_array().into_iter().flatten().any(is_efa);
        if has_efa && self.spec.get("associatePublicIPAddress") == Some(&json!(true)) {
            report.problem(
                path,
                "its fabric adapters become `efa: Auto`, which excludes `associatePublicIPAddress: true`: EC2 gives no public address to \
                 instances with several network interfaces",
                "remove associatePublicIPAddress, or the interfaces of type efa and efa-only",
            );
        } else if has_efa {
            report.changed(
                path,
                "It is `efa: Auto` in Poolwright: one Elastic Fabric Adapter on every network card of the instance type that supports it.",
            );
            self.spec.insert("efa".to_owned(), json!("Auto"));
        } else {
            report.not_possible(
                path,
                "You cannot list network interfaces in Poolwright. A node has one, and `efa: Auto` adds fabric adapters. Leave it out.",
            );
        }
    }

    /// Returns whether the spec must have this list.
    fn needs(&self, key: &str) -> bool {
        let mut needed = self.schema["required"].as_array().into_iter().flatten();
        self.schema["properties"][key]["type"] == "array" && needed.any(|one| one == key)
    }

    /// Reports the lists that the spec must have. Empty ones take their place, so that the rest can be checked.
    fn missing_lists(&mut self, report: &mut Report) {
        let lists = self.schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone());
        let lists: Vec<String> =
            lists.filter(|key| self.needs(key) && !self.spec.contains_key(key)).collect();
        for key in lists {
            report.problem(join("spec", &key), format!("missing field `{key}`"), "add it");
            self.spec.insert(key, json!([]));
        }
        // Without images, nothing is known of their family.
        if self.spec.get("amiSelectorTerms").is_some_and(is_empty) {
            self.spec.entry("amiFamily").or_insert(json!("Custom"));
        }
    }

    /// Handles absent fields whose default differs: it writes Karpenter's default or reports the difference.
    fn absent(&mut self, report: &mut Report) {
        for (key, other, sentence) in sentences::ABSENT {
            let is_said = |key: &str| {
                self.spec.contains_key(key) || report.notes.iter().any(|note| note.field == join("spec", key))
            };
            if !is_said(key) && !is_said(other) {
                report.changed(join("spec", key), *sentence);
            }
        }
        if !self.spec.contains_key("blockDeviceMappings")
            && let Some(mut disks) = disks::karpenters(self.storage(), report)
        {
            disks::mark(self.storage(), &mut disks, "spec.blockDeviceMappings", report);
            self.spec.insert("blockDeviceMappings".to_owned(), disks);
        }
    }
}

/// The next step for images of unsupported families.
const MOVE: &str = "move to al2023 or bottlerocket, or name the image by its id and write `amiFamily: Custom` with user data that joins the cluster";

/// The next step for images of Windows. Naming such an image by its id would not help.
const KEEP: &str = "Poolwright buys Linux nodes only: keep this pool in Karpenter, with its class";

/// Returns the next step for images of a family that Poolwright does not support.
fn instead_of(family: &str) -> &'static str {
    if family.to_ascii_lowercase().starts_with("windows") { KEEP } else { MOVE }
}

/// Returns the value without null fields and without fields that the schema does not have. It reports each unknown field.
fn known(value: &Value, schema: &Value, path: &str, report: &mut Report) -> Value {
    match value {
        Value::Object(fields) if schema.get("properties").is_some() => {
            let mut found = Map::new();
            let parent = path;
            for (key, value) in fields {
                let path = join(parent, key);
                match schema["properties"].get(key) {
                    None if parent != "spec.kubelet" && sentences::is_known(key) => {
                        report.not_possible(path, sentences::instead_in(parent, key));
                    }
                    None => report.unknown(path, sentences::instead_in(parent, key)),
                    Some(_) if value.is_null() => {}
                    Some(inner) => drop(found.insert(key.clone(), known(value, inner, &path, report))),
                }
            }
            Value::Object(found)
        }
        Value::Array(items) => {
            let item = |(at, item)| known(item, &schema["items"], &format!("{path}[{at}]"), report);
            Value::Array(items.iter().enumerate().map(item).collect())
        }
        _ => value.clone(),
    }
}
