//! What an API server refuses of new PersistentVolumeClaims, PersistentVolumes and StorageClasses (`pkg/apis/core/validation` and
//! `pkg/apis/storage/validation` in Kubernetes). What has a wrong type is told where the object is read.

use poolwright_api::{FieldProblem, key_segment};
use poolwright_catalog::quantity;
use serde_json::Value;

use super::labels;
use super::names::{NameRule, items};
use super::pod_refusals::{one_of, required, selector};
use super::refusals::{Problems, written_amount};

/// The modes in which a volume can be mounted.
const ACCESS_MODES: [&str; 4] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", ALONE];

/// The mode that allows no other one beside it.
const ALONE: &str = "ReadWriteOncePod";

/// The fields of a volume's spec that are not its source.
const NOT_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// Checks the spec of a claim at a path (`ValidatePersistentVolumeClaimSpec`).
pub(super) fn claim(path: &str, spec: &Value) -> Problems {
    let mut problems = Vec::new();
    shared(path, spec, &mut problems);
    let size = &spec["resources"]["requests"]["storage"];
    positive(&format!("{path}.resources.requests.storage"), size, &mut problems);
    selector(&format!("{path}.selector"), &spec["selector"], &mut problems);
    problems
}

/// Checks the spec of a volume (`ValidatePersistentVolumeSpec`).
pub(super) fn volume(spec: &Value) -> Problems {
    let mut problems = Vec::new();
    let into = &mut problems;
    shared("spec", spec, into);
    let policies = ["Retain", "Delete", "Recycle"];
    let policy = &spec["persistentVolumeReclaimPolicy"];
    one_of("spec.persistentVolumeReclaimPolicy", policy, &policies, into);
    positive("spec.capacity.storage", &spec["capacity"]["storage"], into);
    for (name, _) in spec["capacity"].as_object().into_iter().flatten().filter(|(name, _)| *name != "storage")
    {
        let path = format!("spec.capacity{}", key_segment(name));
        into.push(FieldProblem::new(path, "a volume has no other capacity than storage", "remove it"));
    }
    let sources = spec.as_object().into_iter().flatten();
    let is_source =
        |(field, value): &(&String, &Value)| !NOT_SOURCES.contains(&field.as_str()) && !value.is_null();
    let sources: Vec<&str> = sources.filter(is_source).map(|(field, _)| field.as_str()).collect();
    if sources.is_empty() {
        into.push(FieldProblem::new(
            "spec",
            "it does not say where the volume is",
            "add a source, such as csi",
        ));
    } else if sources.len() > 1 {
        let cause = format!("a volume has one source, and this has {}", sources.join(" and "));
        into.push(FieldProblem::new("spec", cause, "keep one of them"));
    }
    let csi = &spec["csi"];
    for field in ["driver", "volumeHandle"].into_iter().filter(|_| csi.is_object()) {
        required(&format!("spec.csi.{field}"), &csi[field], "add it", into);
    }
    let affinity = &spec["nodeAffinity"];
    if spec["local"].is_object() {
        required("spec.nodeAffinity", affinity, "add it, because a local volume is on one node", into);
    }
    if affinity.is_object() {
        nodes("spec.nodeAffinity.required", &affinity["required"], into);
    }
    problems
}

/// Checks what claims and volumes have in common.
fn shared(path: &str, spec: &Value, into: &mut Problems) {
    let (modes, place) = (&spec["accessModes"], format!("{path}.accessModes"));
    for (at, mode) in items(modes).iter().enumerate() {
        one_of(&format!("{place}[{at}]"), mode, &ACCESS_MODES, into);
    }
    let is_other =
        |mode: &Value| *mode != ALONE && mode.as_str().is_some_and(|mode| ACCESS_MODES.contains(&mode));
    if modes.is_null() || modes.as_array().is_some_and(Vec::is_empty) {
        into.push(FieldProblem::new(place, "missing", "add one, such as ReadWriteOnce"));
    } else if items(modes).iter().any(|mode| *mode == ALONE) && items(modes).iter().any(is_other) {
        let cause = format!("an API server refuses {ALONE} beside other modes");
        into.push(FieldProblem::new(place, cause, "remove it, or the others"));
    }
    one_of(&format!("{path}.volumeMode"), &spec["volumeMode"], &["Filesystem", "Block"], into);
    let class = spec["storageClassName"].as_str().filter(|name| !name.is_empty());
    into.extend(
        class.and_then(|name| NameRule::Subdomain.broken_by(&format!("{path}.storageClassName"), name)),
    );
}

/// Checks that a size is more than zero (`ValidatePositiveQuantityValue`).
fn positive(path: &str, size: &Value, into: &mut Problems) {
    if !required(path, size, "add it, such as 10Gi", into) {
        return;
    }
    let Some(text) = written_amount(size) else { return };
    if quantity::parse(&text).is_ok_and(|amount| amount.milli_ceil() <= 0) {
        let cause = format!("`{text}` is not more than zero");
        into.push(FieldProblem::new(path, cause, "write a size, such as 10Gi"));
    }
}

/// Checks the nodes from which a volume can be used (`ValidateNodeSelector`). Operators are told where the volume is read.
fn nodes(path: &str, rule: &Value, into: &mut Problems) {
    let terms = items(&rule["nodeSelectorTerms"]);
    if rule.is_null() {
        into.push(FieldProblem::new(path, "missing", "add it, or remove nodeAffinity"));
    } else if terms.is_empty()
        && (rule["nodeSelectorTerms"].is_null() || rule["nodeSelectorTerms"].is_array())
    {
        into.push(FieldProblem::new(format!("{path}.nodeSelectorTerms"), "missing", "add a term"));
    }
    for (at, term) in terms.iter().enumerate() {
        for (place, expression) in items(&term["matchExpressions"]).iter().enumerate() {
            let path = format!("{path}.nodeSelectorTerms[{at}].matchExpressions[{place}]");
            let key = format!("{path}.key");
            required(&key, &expression["key"], "add the key of a label", into);
            labels::key(&key, &expression["key"], into);
            labels::values(&format!("{path}.values"), items(&expression["values"]), into);
        }
    }
}

/// Checks a StorageClass (`ValidateStorageClass`).
pub(super) fn storage_class(class: &Value) -> Problems {
    let mut problems = Vec::new();
    let into = &mut problems;
    let provisioner = &class["provisioner"];
    required("provisioner", provisioner, "add the name of a driver, such as disk.csi.example.com", into);
    // Its case does not count.
    let broken = |name: &&str| !name.is_empty() && !labels::is_key(&name.to_lowercase());
    if let Some(name) = provisioner.as_str().filter(broken) {
        let cause = format!("an API server refuses the name `{name}`");
        into.push(FieldProblem::new(
            "provisioner",
            cause,
            "write the name of a driver, such as disk.csi.example.com",
        ));
    }
    for (at, term) in items(&class["allowedTopologies"]).iter().enumerate() {
        let expressions = items(&term["matchLabelExpressions"]);
        for (place, expression) in expressions.iter().enumerate() {
            let path = format!("allowedTopologies[{at}].matchLabelExpressions[{place}]");
            let (key, own) = (format!("{path}.key"), &expression["key"]);
            required(&key, own, "add the key of a label", into);
            labels::key(&key, own, into);
            if !own.is_null() && expressions[..place].iter().any(|other| other["key"] == *own) {
                let cause = "another expression of the term has this key";
                into.push(FieldProblem::new(key, cause, "write all values in one of them"));
            }
            let (path, values) = (format!("{path}.values"), items(&expression["values"]));
            if expression["values"].is_null() || (expression["values"].is_array() && values.is_empty()) {
                into.push(FieldProblem::new(path.as_str(), "missing", "add one"));
            }
            for (number, value) in
                values.iter().enumerate().filter(|(number, value)| values[..*number].contains(value))
            {
                let value = value.as_str().unwrap_or_default();
                let cause = format!("`{value}` is there twice");
                into.push(FieldProblem::new(format!("{path}[{number}]"), cause, "remove one of them"));
            }
        }
    }
    problems
}
