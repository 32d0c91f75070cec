//! What an API server refuses of the specs of new pods (`ValidatePodSpec` in Kubernetes). What has a wrong type is told where the
//! pod is read.

mod amounts;
mod claims;
mod fields;
mod mounts;
mod pod_affinity;

use poolwright_api::{FieldProblem, key_segment, meant};
use serde_json::Value;

use super::labels;
use super::names::{NameRule, items};
use super::refusals::Problems;
use super::spreads;
use super::volume_refusals;
use mounts::Volumes;

/// The fields of rules about nodes and about other pods.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// The operators of expressions about labels of pods and namespaces.
const OF_LABELS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

/// The operators of expressions about labels of nodes.
const OF_NODES: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

/// The fields of a pod's spec that have one of a few values.
const OF_POD: [(&str, &[&str]); 3] = [
    ("restartPolicy", &["Always", "OnFailure", "Never"]),
    ("preemptionPolicy", &["PreemptLowerPriority", "Never"]),
    ("dnsPolicy", &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
];

/// Those of a container.
const OF_CONTAINER: [(&str, &[&str]); 2] = [
    ("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    ("restartPolicy", &["Always", "OnFailure", "Never"]),
];

/// Adds what is wrong with all pod specs of an object, and with the labels and annotations of their templates.
pub(super) fn check(object: &Value, into: &mut Problems) {
    below("spec", &object["spec"], &object["metadata"]["labels"], &[], into);
}

/// Does the same below a path. `own` are the labels of what the value is the spec of. `claims` are the PersistentVolumeClaims that a
/// controller makes for each of the pods, as volumes with these names.
fn below<'v>(path: &str, value: &'v Value, own: &Value, claims: &[&'v str], into: &mut Problems) {
    let labels_below = &value["metadata"]["labels"];
    match value {
        Value::Object(fields) => {
            if value["containers"].is_array() {
                pod(path, value, own, claims, into);
                return;
            }
            if value["spec"]["containers"].is_array() {
                labels::of_meta(&format!("{path}.metadata"), &value["metadata"], into);
            }
            let claims: Vec<&str> = claims.iter().copied().chain(claim_templates(value)).collect();
            for (key, inner) in fields {
                below(&format!("{path}{}", key_segment(key)), inner, labels_below, &claims, into);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                below(&format!("{path}[{at}]"), item, labels_below, claims, into);
            }
        }
        _ => {}
    }
}

/// Returns the names of the PersistentVolumeClaims that a StatefulSet, a LeaderWorkerSet or a JobSet makes for its pods.
fn claim_templates(value: &Value) -> impl Iterator<Item = &str> {
    let policies = items(&value["volumeClaimPolicies"]).iter();
    let of_policies = policies.flat_map(|policy| items(&policy["templates"]));
    let templates = items(&value["volumeClaimTemplates"]).iter().chain(of_policies);
    templates.filter_map(|template| template["metadata"]["name"].as_str())
}

/// Checks the spec of a pod with these labels.
fn pod(path: &str, spec: &Value, own: &Value, claims: &[&str], into: &mut Problems) {
    for (field, known) in OF_POD {
        one_of(&format!("{path}.{field}"), &spec[field], known, into);
    }
    one_of(&format!("{path}.os.name"), &spec["os"]["name"], &["linux", "windows"], into);
    fields::deadline(path, spec, into);
    fields::dns(path, spec, into);
    fields::gates(path, spec, into);
    claims::check(path, spec, into);
    amounts::check(path, spec, into);
    containers(path, spec, claims, into);
    fields::host_ports(path, spec, into);
    labels::labels(&format!("{path}.nodeSelector"), &spec["nodeSelector"], into);
    volumes(&format!("{path}.volumes"), items(&spec["volumes"]), into);
    affinity(&format!("{path}.affinity"), &spec["affinity"], own, into);
    for (at, toleration) in items(&spec["tolerations"]).iter().enumerate() {
        tolerates(&format!("{path}.tolerations[{at}]"), toleration, into);
    }
    let constraints = items(&spec[spreads::FIELD]);
    let path = format!("{path}.{}", spreads::FIELD);
    spreads::of_pod(&path, constraints, into);
    for (at, constraint) in constraints.iter().enumerate() {
        let path = format!("{path}[{at}]");
        selector(&format!("{path}.labelSelector"), &constraint["labelSelector"], into);
        labels::key(&format!("{path}.topologyKey"), &constraint["topologyKey"], into);
        labels::keys(&format!("{path}.matchLabelKeys"), &constraint["matchLabelKeys"], into);
    }
}

/// Adds a problem if a text is none of a few names. A field without a value has its default.
pub(super) fn one_of(path: &str, value: &Value, known: &[&'static str], into: &mut Problems) {
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return };
    if known.contains(&text) {
        return;
    }
    let alike = known.iter().copied().find(|name| name.eq_ignore_ascii_case(text));
    let next = match alike.or_else(|| meant(text, known.iter().copied())) {
        Some(name) => format!("write `{name}`"),
        None => format!("write one of {}", known.join(", ")),
    };
    into.push(FieldProblem::new(path, format!("`{text}` does not exist"), next));
}

fn is_missing(value: &Value) -> bool {
    value.is_null() || *value == ""
}

/// Adds a problem if a field has no value. Returns whether it has one.
pub(super) fn required(path: &str, value: &Value, next: &str, into: &mut Problems) -> bool {
    if is_missing(value) {
        into.push(FieldProblem::new(path, "missing", next));
    }
    !is_missing(value)
}

/// Checks a name that other parts of a pod use, such as that of a container. `seen` are those before it.
fn own_name<'a>(path: &str, name: &'a Value, what: &str, seen: &mut Vec<&'a str>, into: &mut Problems) {
    let path = format!("{path}.name");
    if !required(&path, name, "add it", into) {
        return;
    }
    let Some(name) = name.as_str() else { return };
    into.extend(NameRule::Label.broken_by(&path, name));
    if seen.contains(&name) {
        into.push(FieldProblem::new(
            path,
            format!("another {what} has the name `{name}`"),
            "rename one of them",
        ));
    }
    seen.push(name);
}

/// Checks the containers. Init containers and the others share their names.
fn containers(path: &str, spec: &Value, claims: &[&str], into: &mut Problems) {
    let volumes = Volumes::of(spec, claims);
    let mut seen = Vec::new();
    for list in ["initContainers", "containers"] {
        for (at, container) in items(&spec[list]).iter().enumerate() {
            let path = format!("{path}.{list}[{at}]");
            own_name(&path, &container["name"], "container", &mut seen, into);
            for (field, known) in OF_CONTAINER {
                one_of(&format!("{path}.{field}"), &container[field], known, into);
            }
            fields::ports(&format!("{path}.ports"), items(&container["ports"]), into);
            fields::env(&format!("{path}.env"), items(&container["env"]), into);
            volumes.check(&path, container, into);
        }
    }
}

fn volumes(path: &str, volumes: &[Value], into: &mut Problems) {
    let mut seen = Vec::new();
    for (at, volume) in volumes.iter().enumerate() {
        let path = format!("{path}[{at}]");
        own_name(&path, &volume["name"], "volume", &mut seen, into);
        // A volume without a source is an emptyDir.
        let sources = volume.as_object().into_iter().flatten();
        let sources = sources.filter(|(field, value)| *field != "name" && !value.is_null());
        let sources: Vec<&str> = sources.map(|(field, _)| field.as_str()).collect();
        if sources.len() > 1 {
            let cause = format!("a volume has one source, and this has {}", sources.join(" and "));
            into.push(FieldProblem::new(path.as_str(), cause, "keep one of them"));
        }
        let claim = &volume["persistentVolumeClaim"];
        if claim.is_object() {
            let path = format!("{path}.persistentVolumeClaim.claimName");
            required(&path, &claim["claimName"], "add the name of the claim", into);
        }
        if volume["ephemeral"].is_object() {
            let template = &volume["ephemeral"]["volumeClaimTemplate"];
            let path = format!("{path}.ephemeral.volumeClaimTemplate");
            if required(&path, template, "add it", into) && template.is_object() {
                into.extend(volume_refusals::claim(&format!("{path}.spec"), &template["spec"]));
            }
        }
    }
}

/// Checks the affinity of a pod with these labels.
fn affinity(path: &str, affinity: &Value, own: &Value, into: &mut Problems) {
    let nodes = &affinity["nodeAffinity"];
    if nodes[REQUIRED].is_object() {
        let path = format!("{path}.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
        let terms = items(&nodes[REQUIRED]["nodeSelectorTerms"]);
        if terms.is_empty() {
            into.push(FieldProblem::new(path.as_str(), "missing", "add a term, or remove the rule"));
        }
        for (at, term) in terms.iter().enumerate() {
            let path = format!("{path}[{at}]");
            node_term(&path, term, into);
            values(&format!("{path}.matchExpressions"), &term["matchExpressions"], into);
        }
    }
    for (at, preferred) in items(&nodes[PREFERRED]).iter().enumerate() {
        let path = format!("{path}.nodeAffinity.{PREFERRED}[{at}]");
        weight(&path, preferred, into);
        node_term(&format!("{path}.preference"), &preferred["preference"], into);
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        for (at, term) in items(&affinity[field][REQUIRED]).iter().enumerate() {
            pod_affinity::term(&format!("{path}.{field}.{REQUIRED}[{at}]"), term, own, into);
        }
        for (at, preferred) in items(&affinity[field][PREFERRED]).iter().enumerate() {
            let path = format!("{path}.{field}.{PREFERRED}[{at}]");
            weight(&path, preferred, into);
            pod_affinity::term(&format!("{path}.podAffinityTerm"), &preferred["podAffinityTerm"], own, into);
        }
    }
}

fn weight(path: &str, preferred: &Value, into: &mut Problems) {
    let weight = preferred["weight"].as_i64().unwrap_or_default();
    if preferred["weight"].is_null() || (preferred["weight"].is_i64() && !(1..=100).contains(&weight)) {
        let cause = format!("`{weight}` is not from 1 to 100");
        into.push(FieldProblem::new(format!("{path}.weight"), cause, "write such a number"));
    }
}

fn node_term(path: &str, term: &Value, into: &mut Problems) {
    expressions(&format!("{path}.matchExpressions"), &term["matchExpressions"], &OF_NODES, into);
    for (at, field) in items(&term["matchFields"]).iter().enumerate() {
        let path = format!("{path}.matchFields[{at}]");
        one_of(&format!("{path}.key"), &field["key"], &["metadata.name"], into);
        one_of(&format!("{path}.operator"), &field["operator"], &["In", "NotIn"], into);
        if items(&field["values"]).len() != 1 {
            let cause = "a rule about the name of a node takes one value";
            into.push(FieldProblem::new(format!("{path}.values"), cause, "write one"));
        }
    }
}

/// Checks a selector of labels.
pub(super) fn selector(path: &str, selector: &Value, into: &mut Problems) {
    labels::labels(&format!("{path}.matchLabels"), &selector["matchLabels"], into);
    let (path, list) = (format!("{path}.matchExpressions"), &selector["matchExpressions"]);
    expressions(&path, list, &OF_LABELS, into);
    values(&path, list, into);
}

/// Checks the values of expressions. An API server accepts any value in a preference for nodes.
fn values(path: &str, expressions: &Value, into: &mut Problems) {
    for (at, expression) in items(expressions).iter().enumerate() {
        labels::values(&format!("{path}[{at}].values"), items(&expression["values"]), into);
    }
}

fn expressions(path: &str, list: &Value, operators: &[&'static str], into: &mut Problems) {
    for (at, expression) in items(list).iter().enumerate() {
        let path = format!("{path}[{at}]");
        let key = format!("{path}.key");
        required(&key, &expression["key"], "add the key of a label", into);
        labels::key(&key, &expression["key"], into);
        let place = format!("{path}.operator");
        required(&place, &expression["operator"], "add it, such as In", into);
        one_of(&place, &expression["operator"], operators, into);
        let operator = expression["operator"].as_str().filter(|operator| operators.contains(operator));
        let values = items(&expression["values"]);
        let wrong = match operator.unwrap_or_default() {
            "In" | "NotIn" if values.is_empty() => ("needs at least one value", "add one"),
            "Exists" | "DoesNotExist" if !values.is_empty() => ("takes no values", "remove them"),
            "Gt" | "Lt" if !is_number(values) => ("takes one whole number", "write one, in quotes"),
            _ => continue,
        };
        let cause = format!("`{}` {}", operator.unwrap_or_default(), wrong.0);
        into.push(FieldProblem::new(format!("{path}.values"), cause, wrong.1));
    }
}

/// Returns whether values are one whole number.
fn is_number(values: &[Value]) -> bool {
    matches!(values, [Value::String(text)] if text.parse::<i64>().is_ok())
}

pub(super) fn tolerates(path: &str, toleration: &Value, into: &mut Problems) {
    labels::key(&format!("{path}.key"), &toleration["key"], into);
    let operator = toleration["operator"].as_str().unwrap_or_default();
    // Clusters with a feature gate compare numbers, which is not modelled: such a pod is not planned, and its message says why.
    if !["Gt", "Lt"].contains(&operator) {
        one_of(&format!("{path}.operator"), &toleration["operator"], &["Equal", "Exists"], into);
    }
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    one_of(&format!("{path}.effect"), &toleration["effect"], &effects, into);
    if ["", "Equal"].contains(&operator) {
        labels::value(&format!("{path}.value"), &toleration["value"], into);
    }
    let mut refuse = |field: &str, cause: &str, next: &str| {
        into.push(FieldProblem::new(format!("{path}.{field}"), cause, next));
    };
    if operator == "Exists" && !is_missing(&toleration["value"]) {
        refuse("value", "`Exists` takes no value", "remove it, or write `operator: Equal`");
    }
    if ["Gt", "Lt"].contains(&operator) && !is_number(std::slice::from_ref(&toleration["value"])) {
        refuse("value", &format!("`{operator}` takes one whole number"), "write one, in quotes");
    }
    if is_missing(&toleration["key"]) && operator != "Exists" {
        refuse("key", "only `Exists` needs no key", "add the key, or write `operator: Exists`");
    }
    if !toleration["tolerationSeconds"].is_null() && toleration["effect"] != "NoExecute" {
        let cause = "an API server refuses it without the effect NoExecute";
        refuse("tolerationSeconds", cause, "write `effect: NoExecute`, or remove it");
    }
}
