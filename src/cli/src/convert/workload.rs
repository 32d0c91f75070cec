//! Workloads: replaces what pods take from Karpenter (labels in selectors, spreads and affinities, tolerations) in their templates.

use poolwright_api::Operator;
use poolwright_provider_contract::karpenter::{LabelMapping, Note, Outcome, Report, below, is_empty, join};
use poolwright_terms::domains::is_karpenters;
use poolwright_terms::{keys, labels as ours};
use serde_json::{Map, Value, json};

use super::contradictions;
use super::labels::label;
use super::mapped::{Mapped, mapped};

/// The fields of node affinity and of rules about other pods.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Converts an object with pod templates; `None` if it has none, or if nothing of it changes here or must
/// change by hand. Every field that Karpenter defines has a note.
pub(super) fn convert(value: &Value, report: &mut Report) -> Option<Value> {
    let mut object = value.clone();
    // Also the kinds of others, such as AdvancedDaemonSet.
    let is_daemonset = value["kind"].as_str().is_some_and(|kind| kind.ends_with("DaemonSet"));
    let found = templates(&mut object, "", false, is_daemonset, report);
    if !found {
        // Without pods, the object gets one note as a whole.
        report.notes.clear();
        return None;
    }
    // Such an object is printed as it is, so that the user can correct it with the others.
    let changes_by_hand = report.notes.iter().any(|note| note.outcome == Outcome::NotPossible);
    if object == *value && !changes_by_hand {
        if report.notes.is_empty() {
            report.kept("", "It uses nothing of Karpenter. Apply it unchanged.");
        }
        return None;
    }
    // What the cluster wrote is of the old object.
    let fields = object.as_object_mut()?;
    fields.remove("status");
    if let Some(meta) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.retain(|key, _| {
            !matches!(
                key.as_str(),
                "creationTimestamp" | "generation" | "managedFields" | "resourceVersion" | "uid"
            )
        });
    }
    Some(object)
}

/// Converts the pod specs below a value. Returns whether there are any. `of_pod` says whether the value is in
/// the metadata of a pod or of a template of pods, and `is_daemonset` whether the pods are of a DaemonSet.
fn templates(value: &mut Value, path: &str, of_pod: bool, is_daemonset: bool, report: &mut Report) -> bool {
    const ANNOTATION: &str = keys::KARPENTER_DO_NOT_DISRUPT_ANNOTATION;
    match value {
        Value::Object(fields) if fields.get("containers").is_some_and(Value::is_array) => {
            pod(fields, path, is_daemonset, report);
            true
        }
        Value::Object(fields) if path.ends_with("annotations") && fields.contains_key(ANNOTATION) => {
            let field = join(path, ANNOTATION);
            // Metadata is of the object that has it. Other annotations, such as those of `podMetadata`, may
            // reach pods.
            if of_pod || !path.ends_with("metadata.annotations") {
                report.kept(field, "Poolwright reads this annotation of pods, too.");
            } else {
                report.not_possible(
                    field,
                    "Poolwright reads this annotation of pods, and here it is on none: write it in the pod \
                     template.",
                );
            }
            false
        }
        Value::Object(fields) => {
            let containers = fields.get("spec").and_then(|spec| spec.get("containers"));
            let is_pod = containers.is_some_and(Value::is_array);
            let below_pod = |key: &str| match key {
                "metadata" => is_pod,
                "annotations" => of_pod,
                _ => false,
            };
            fields
                .iter_mut()
                .map(|(key, below)| templates(below, &join(path, key), below_pod(key), is_daemonset, report))
                .fold(false, |any, found| any | found)
        }
        Value::Array(entries) => entries
            .iter_mut()
            .enumerate()
            .map(|(at, below)| templates(below, &format!("{path}[{at}]"), false, is_daemonset, report))
            .fold(false, |any, found| any | found),
        _ => false,
    }
}

fn pod(spec: &mut Map<String, Value>, path: &str, is_daemonset: bool, report: &mut Report) {
    let moved = node_selector(spec, path, report);
    if !moved.is_empty() {
        require(spec, &moved);
    }
    let affinity = join(path, "affinity");
    if let Some(node) = spec.get_mut("affinity").and_then(|affinity| affinity.get_mut("nodeAffinity")) {
        let path = join(&affinity, "nodeAffinity");
        let mut all_meet = false;
        let before = report.notes.len();
        let mut unmet = Vec::new();
        let terms = node.get_mut(REQUIRED).and_then(|of| of.get_mut("nodeSelectorTerms"));
        for (at, term) in entries(terms) {
            let field = format!("{path}.{REQUIRED}.nodeSelectorTerms[{at}]");
            let of = TermOf { is_daemonset, is_extended: !moved.is_empty() };
            if expressions(term, &field, of, report) {
                all_meet = true;
            } else {
                unmet.push(field);
            }
        }
        // Nothing of the other terms is in the result.
        if all_meet {
            let notes = report.notes.split_off(before);
            let of_unmet = |note: &Note| unmet.iter().any(|field| below(&note.field, field).is_some());
            report.notes.extend(notes.into_iter().filter(|note| !of_unmet(note)));
            for field in unmet {
                report.changed(
                    field,
                    "Left out: all nodes of Poolwright meet another term, and one is enough.",
                );
            }
        }
        let mut met = Vec::new();
        for (at, term) in entries(node.get_mut(PREFERRED)) {
            let field = format!("{path}.{PREFERRED}[{at}].preference");
            let of = TermOf { is_daemonset, is_extended: false };
            if let Some(term) = term.get_mut("preference")
                && expressions(term, &field, of, report)
            {
                met.push(at);
            }
        }
        // Kubernetes matches no node with an empty term, and one term that all nodes meet is enough.
        if all_meet && let Some(node) = node.as_object_mut() {
            node.remove(REQUIRED);
        }
        if !met.is_empty() {
            if let Some(terms) = node.get_mut(PREFERRED).and_then(Value::as_array_mut) {
                remove_at(terms, &met);
            }
            if let Some(node) = node.as_object_mut()
                && node.get(PREFERRED).is_some_and(is_empty)
            {
                node.remove(PREFERRED);
            }
        }
        let is_bare = is_empty(node);
        if (all_meet || !met.is_empty())
            && is_bare
            && let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut)
        {
            affinity.remove("nodeAffinity");
            if affinity.is_empty() {
                spec.remove("affinity");
            }
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(of) = spec.get_mut("affinity").and_then(|affinity| affinity.get_mut(kind)) else { continue };
        let path = join(&affinity, kind);
        for (at, term) in entries(of.get_mut(REQUIRED)) {
            topology_key(term, &format!("{path}.{REQUIRED}[{at}]"), report);
        }
        for (at, term) in entries(of.get_mut(PREFERRED)) {
            if let Some(term) = term.get_mut("podAffinityTerm") {
                topology_key(term, &format!("{path}.{PREFERRED}[{at}].podAffinityTerm"), report);
            }
        }
    }
    for (at, spread) in entries(spec.get_mut("topologySpreadConstraints")) {
        topology_key(spread, &format!("{}[{at}]", join(path, "topologySpreadConstraints")), report);
    }
    for (at, toleration) in entries(spec.get_mut("tolerations")) {
        self::toleration(toleration, &format!("{}[{at}]", join(path, "tolerations")), report);
    }
}

/// Adds these expressions to every term that the node affinity requires.
fn require(spec: &mut Map<String, Value>, more: &[Value]) {
    let affinity = object_in(spec, "affinity");
    let of_node = object_in(object_in(affinity, "nodeAffinity"), REQUIRED);
    let is_written = of_node.contains_key("nodeSelectorTerms");
    let terms = of_node.entry("nodeSelectorTerms").or_insert_with(|| json!([{}]));
    for term in terms.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        // Kubernetes matches no node with an empty term, so it must stay empty.
        if is_written && term.values().all(is_empty) {
            continue;
        }
        let all = term.entry("matchExpressions").or_insert_with(|| json!([]));
        if let Some(all) = all.as_array_mut() {
            all.extend(more.iter().cloned());
        }
    }
}

fn object_in<'a>(of: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let entry = of.entry(key).or_insert_with(|| json!({}));
    if !entry.is_object() {
        *entry = json!({});
    }
    entry.as_object_mut().expect("an object, as just made sure")
}

fn entries(list: Option<&mut Value>) -> impl Iterator<Item = (usize, &mut Value)> {
    list.and_then(Value::as_array_mut).into_iter().flatten().enumerate()
}

/// Converts the node selector. Returns the expressions for what it cannot express.
fn node_selector(spec: &mut Map<String, Value>, path: &str, report: &mut Report) -> Vec<Value> {
    let mut moved = Vec::new();
    let Some(selector) = spec.get_mut("nodeSelector").and_then(Value::as_object_mut) else { return moved };
    let path = join(path, "nodeSelector");
    for (key, value) in selector.clone() {
        let field = join(&path, &key);
        let Some(value) = value.as_str() else { continue };
        match mapped(&key, Operator::In, vec![value.to_owned()]) {
            Mapped::Same | Mapped::OfService(_) => {}
            Mapped::None(instead) => stays(&field, &key, &instead, report),
            Mapped::Met(why) => {
                left_out(&field, &key, &why, report);
                selector.remove(&key);
            }
            Mapped::To { key: to, operator: Operator::In, values, also } if values.len() == 1 => {
                report.changed(&field, format!("Becomes `{to}: {}`.{also}", values[0]));
                selector.remove(&key);
                selector.insert(to.to_owned(), json!(values[0]));
            }
            Mapped::To { key: to, operator, values, also } => {
                report
                    .changed(&field, format!("Becomes a requirement on `{to}` in the node affinity.{also}"));
                selector.remove(&key);
                moved.push(expression(to, operator, &values));
            }
        }
    }
    if selector.is_empty() {
        spec.remove("nodeSelector");
    }
    moved
}

fn expression(key: &str, operator: Operator, values: &[String]) -> Value {
    let mut made = json!({"key": key, "operator": operator});
    if !values.is_empty() {
        made["values"] = json!(values);
    }
    made
}

/// What to know of a term of node affinity besides its expressions.
#[derive(Clone, Copy)]
struct TermOf {
    /// Whether its pods are of a DaemonSet.
    is_daemonset: bool,
    /// Whether it got expressions from the node selector.
    is_extended: bool,
}

/// Converts the expressions of a term of node affinity. Returns whether all of them were left out, so that
/// all nodes meet the term. If no node would meet the result, nothing of it is converted.
fn expressions(term: &mut Value, path: &str, of: TermOf, report: &mut Report) -> bool {
    let (before, noted) = (term.clone(), report.notes.len());
    let all_met = convert_expressions(term, path, of, report);
    if (of.is_extended || *term != before)
        && let Some(key) = contradictions::in_term(term)
    {
        *term = before;
        report.notes.truncate(noted);
        report.not_possible(
            path,
            format!(
                "Its expressions are not converted: as conditions on `{key}`, no node would meet them together. Correct one of them, or write \
                 the term with the labels of docs/nodepool.md."
            ),
        );
        return false;
    }
    all_met
}

fn convert_expressions(term: &mut Value, path: &str, of: TermOf, report: &mut Report) -> bool {
    let mut met = Vec::new();
    for (at, one) in entries(term.get_mut("matchExpressions")) {
        let field = format!("{path}.matchExpressions[{at}]");
        let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let (key, Ok(operator)) = (text("key"), serde_json::from_value(one["operator"].clone())) else {
            continue;
        };
        let values = one["values"].as_array().into_iter().flatten();
        let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
        match mapped(&key, operator, values) {
            Mapped::OfService(said) if !of.is_daemonset => report.changed(&field, said),
            Mapped::Same | Mapped::OfService(_) => {}
            Mapped::None(instead) => stays(&field, &key, &instead, report),
            Mapped::Met(why) => {
                left_out(&field, &key, &why, report);
                met.push(at);
            }
            Mapped::To { key: to, operator, values, also } => {
                report.changed(&field, format!("`{key}` becomes `{to}`.{also}"));
                *one = expression(to, operator, &values);
            }
        }
    }
    if met.is_empty() {
        return false;
    }
    if let Some(all) = term.get_mut("matchExpressions").and_then(Value::as_array_mut) {
        remove_at(all, &met);
    }
    term.as_object().is_some_and(|term| term.values().all(is_empty))
}

/// Removes the entries at these places of a list.
fn remove_at(list: &mut Vec<Value>, places: &[usize]) {
    let mut next = 0;
    list.retain(|_| {
        next += 1;
        !places.contains(&(next - 1))
    });
}

fn topology_key(of: &mut Value, path: &str, report: &mut Report) {
    let Some(key) = of.get("topologyKey").and_then(Value::as_str).map(str::to_owned) else { return };
    let field = join(path, "topologyKey");
    match label(&key) {
        // All nodes of Poolwright would be one topology, but its pools are several.
        LabelMapping::Unneeded(..) | LabelMapping::Only(..) => {
            let instead = "All nodes that Karpenter buys have the same value, so they are one topology. Remove the rule.";
            return stays(&field, &key, instead, report);
        }
        // With any other label, the pods would be counted by other groups of nodes.
        LabelMapping::Category
        | LabelMapping::Generation
        | LabelMapping::Size
        | LabelMapping::OfType(_)
        | LabelMapping::GpuManufacturer => {
            let instead = format!(
                "No other label has the same values. Choose by what pods are to be counted instead, such as `{}` or `{}`.",
                ours::INSTANCE_TYPE,
                ours::INSTANCE_FAMILY
            );
            return stays(&field, &key, &instead, report);
        }
        _ => {}
    }
    match mapped(&key, Operator::Exists, Vec::new()) {
        Mapped::To { key: to, operator: Operator::Exists, .. } => {
            report.changed(field, format!("`{key}` becomes `{to}`."));
            of["topologyKey"] = json!(to);
        }
        // A topology without a key is not allowed.
        Mapped::None(instead) | Mapped::Met(instead) => stays(&field, &key, &instead, report),
        _ => {}
    }
}

fn toleration(of: &mut Value, path: &str, report: &mut Report) {
    let key = of.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !is_karpenters(&key) {
        return;
    }
    let to = match key.as_str() {
        "karpenter.sh/disrupted" | "karpenter.sh/disruption" => keys::DISRUPTED_TAINT,
        keys::KARPENTER_UNREGISTERED_TAINT => keys::UNREGISTERED_TAINT,
        _ => {
            return stays(
                path,
                &key,
                "Nodes of Poolwright have no such taint, so you can remove it.",
                report,
            );
        }
    };
    report.changed(path, format!("`{key}` becomes `{to}`, with any value."));
    of["key"] = json!(to);
    if let Some(fields) = of.as_object_mut() {
        fields.remove("value");
        fields.insert("operator".to_owned(), json!("Exists"));
    }
}

/// Notes a requirement that is left out, because all nodes of Poolwright meet it.
fn left_out(field: &str, key: &str, why: &str, report: &mut Report) {
    report.changed(field, format!("Left out: Poolwright has no `{key}`. {why}"));
}

/// Notes a field that stays as it is, although no node of Poolwright has its label.
fn stays(field: &str, key: &str, instead: &str, report: &mut Report) {
    report.note(
        field,
        Outcome::NotPossible,
        format!("It stays as it is: Poolwright has no `{key}`. {instead}"),
    );
}
