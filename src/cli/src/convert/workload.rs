//! Workloads: replaces what pods take from Karpenter (labels in selectors, spreads and affinities, tolerations) in their templates.

use poolwright_api::Operator;
use poolwright_provider_contract::karpenter::{LabelMapping, Note, Outcome, Report, below, is_empty, join};
use poolwright_terms::domains::is_karpenters;
use poolwright_terms::{keys, labels as ours};
use serde_json::{Map, Value, json};

use super::labels::{KARPENTER_CATALOGUE, label, meant_label};
use super::of_type::Names;
use super::spelling;
use super::values::{
    CORES, MOST_VALUES, ReservedCpu, is_met_by_all, names_that_meet, values_in_words, whole_cores,
};

/// Converts an object with pod templates; `None` if it has none, or if nothing of it changes here or must
/// change by hand. Every field that Karpenter defines has a note.
pub(super) fn convert(value: &Value, report: &mut Report) -> Option<Value> {
    let mut object = value.clone();
    let found = templates(&mut object, "", false, report);
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
/// the metadata of a pod or of a template of pods.
fn templates(value: &mut Value, path: &str, of_pod: bool, report: &mut Report) -> bool {
    const ANNOTATION: &str = keys::KARPENTER_DO_NOT_DISRUPT_ANNOTATION;
    match value {
        Value::Object(fields) if fields.get("containers").is_some_and(Value::is_array) => {
            pod(fields, path, report);
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
                .map(|(key, below)| templates(below, &join(path, key), below_pod(key), report))
                .fold(false, |any, found| any | found)
        }
        Value::Array(entries) => entries
            .iter_mut()
            .enumerate()
            .map(|(at, below)| templates(below, &format!("{path}[{at}]"), false, report))
            .fold(false, |any, found| any | found),
        _ => false,
    }
}

fn pod(spec: &mut Map<String, Value>, path: &str, report: &mut Report) {
    let moved = node_selector(spec, path, report);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    if !moved.is_empty() {
        let affinity = object_in(spec, "affinity");
        let of_node = object_in(object_in(affinity, "nodeAffinity"), required);
        let is_written = of_node.contains_key("nodeSelectorTerms");
        let terms = of_node.entry("nodeSelectorTerms").or_insert_with(|| json!([{}]));
        for term in terms.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            // Kubernetes matches no node with an empty term, so it must stay empty.
            if is_written && term.values().all(is_empty) {
                continue;
            }
            let all = term.entry("matchExpressions").or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut() {
                all.extend(moved.iter().cloned());
            }
        }
    }
    let affinity = join(path, "affinity");
    if let Some(node) = spec.get_mut("affinity").and_then(|affinity| affinity.get_mut("nodeAffinity")) {
        let path = join(&affinity, "nodeAffinity");
        let mut all_meet = false;
        let before = report.notes.len();
        let mut unmet = Vec::new();
        let terms = node.get_mut(required).and_then(|of| of.get_mut("nodeSelectorTerms"));
        for (at, term) in entries(terms) {
            let field = format!("{path}.{required}.nodeSelectorTerms[{at}]");
            if expressions(term, &field, report) {
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
        for (at, term) in entries(node.get_mut(preferred)) {
            if let Some(term) = term.get_mut("preference")
                && expressions(term, &format!("{path}.{preferred}[{at}].preference"), report)
            {
                met.push(at);
            }
        }
        // Kubernetes matches no node with an empty term, and one term that all nodes meet is enough.
        if all_meet && let Some(node) = node.as_object_mut() {
            node.remove(required);
        }
        if !met.is_empty() {
            if let Some(terms) = node.get_mut(preferred).and_then(Value::as_array_mut) {
                remove_at(terms, &met);
            }
            if let Some(node) = node.as_object_mut()
                && node.get(preferred).is_some_and(is_empty)
            {
                node.remove(preferred);
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
        for (at, term) in entries(of.get_mut(required)) {
            topology_key(term, &format!("{path}.{required}[{at}]"), report);
        }
        for (at, term) in entries(of.get_mut(preferred)) {
            if let Some(term) = term.get_mut("podAffinityTerm") {
                topology_key(term, &format!("{path}.{preferred}[{at}].podAffinityTerm"), report);
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

/// The result for a requirement on a label of Karpenter.
enum Mapped {
    /// The user's own label, or one that Poolwright's nodes have too.
    Same,
    /// Another label, with these values. `also` is what else to know of them: empty, or sentences after a
    /// space.
    To { key: &'static str, operator: Operator, values: Vec<String>, also: String },
    /// No requirement is needed, because all nodes of Poolwright meet it. The sentence says why.
    Met(String),
    /// No counterpart. The sentence says what to do.
    None(String),
}

fn mapped(key: &str, operator: Operator, values: Vec<String>) -> Mapped {
    let to = |key, operator, values| Mapped::To { key, operator, values, also: String::new() };
    if key == ours::HOSTNAME || key.starts_with("poolwright.dev/") {
        return Mapped::Same;
    }
    if matches!(key, "karpenter.sh/nodepool" | "karpenter.sh/provisioner-name") {
        return to(keys::NODEPOOL_LABEL, operator, values);
    }
    let names = |key: &'static str, mapping, operator: Operator, values: &[String]| {
        if matches!(operator, Operator::Exists | Operator::DoesNotExist) {
            return to(key, operator, Vec::new());
        }
        let Some(names) = names_that_meet(mapping, operator, values) else {
            return Mapped::None(format!("Name the types that you want with `{}`.", ours::INSTANCE_TYPE));
        };
        let also = of_the_catalogue(key, operator, names.len());
        let operator = if operator == Operator::NotIn { operator } else { Operator::In };
        Mapped::To { key, operator, values: names, also }
    };
    match label(key) {
        LabelMapping::Renamed(same) if same == key => Mapped::Same,
        LabelMapping::UserDefined => Mapped::Same,
        LabelMapping::Renamed(other) => {
            let also = spelling::remark(other, operator, &values);
            Mapped::To { key: other, operator, values, also }
        }
        LabelMapping::OfType(to) => of_type((key, to), operator, &values),
        LabelMapping::Cpu => match whole_cores(operator, &values, ReservedCpu::default()) {
            Ok((Operator::In, cores)) if cores.is_empty() => {
                Mapped::None("No machine has zero vCPUs.".to_owned())
            }
            Ok((Operator::NotIn, cores)) if cores.is_empty() => {
                Mapped::Met("No machine has zero vCPUs.".to_owned())
            }
            // Pods have no operator Gte, and any number of cores is zero or more.
            Ok((Operator::Gte, _)) if operator == Operator::Gt => {
                to(ours::INSTANCE_CPU, Operator::Exists, Vec::new())
            }
            Ok((operator, cores)) => {
                let also = if cores.is_empty() { String::new() } else { format!(" It {CORES}") };
                Mapped::To { key: ours::INSTANCE_CPU, operator, values: cores, also }
            }
            Err(_) => Mapped::None("Write whole numbers of vCPUs.".to_owned()),
        },
        mapping @ (LabelMapping::Category | LabelMapping::Generation) => {
            names(ours::INSTANCE_FAMILY, mapping, operator, &values)
        }
        mapping @ LabelMapping::Size => names(ours::INSTANCE_TYPE, mapping, operator, &values),
        LabelMapping::GpuManufacturer => {
            let is_nvidia = values.iter().any(|value| value == "nvidia");
            match (operator, is_nvidia) {
                (Operator::In, true) | (Operator::Exists, _) => {
                    to(ours::GPU_MODEL, Operator::Exists, Vec::new())
                }
                (Operator::NotIn, true) | (Operator::DoesNotExist, _) => {
                    to(ours::GPU_MODEL, Operator::DoesNotExist, Vec::new())
                }
                (Operator::NotIn, false) => Mapped::Met("Poolwright buys NVIDIA GPUs only.".to_owned()),
                _ => Mapped::None("Poolwright buys NVIDIA GPUs only.".to_owned()),
            }
        }
        LabelMapping::Only(None, _) if matches!(operator, Operator::NotIn | Operator::DoesNotExist) => {
            Mapped::Same
        }
        LabelMapping::Only(Some(value), _) if is_met_by_all(operator, &values, Some(value)) => {
            of_all_nodes(operator)
        }
        LabelMapping::Only(Some(value), _) | LabelMapping::Unneeded(value, _)
            if matches!(operator, Operator::NotIn | Operator::DoesNotExist)
                && !is_met_by_all(operator, &values, Some(value)) =>
        {
            of_no_node()
        }
        LabelMapping::Only(_, instead) => Mapped::None(instead.to_owned()),
        LabelMapping::Unneeded(value, _) if is_met_by_all(operator, &values, Some(value)) => {
            of_all_nodes(operator)
        }
        // Pods kept off such nodes in Karpenter, and still do.
        LabelMapping::Absent(_) if is_met_by_all(operator, &values, None) => Mapped::Same,
        LabelMapping::Unneeded(_, instead) | LabelMapping::Absent(instead) => {
            Mapped::None(excluding(operator) + instead)
        }
        LabelMapping::NoCounterpart(instead) => {
            let hint = meant_label(key).map_or_else(String::new, |near| format!(" Did you mean `{near}`?"));
            Mapped::None(excluding(operator) + instead + &hint)
        }
    }
}

/// Converts a requirement on a label that all nodes of Karpenter have with the same value, and other nodes lack. All nodes of
/// Poolwright have the label with the name of their pool. Without any label, pods of a DaemonSet would run on the other nodes, too.
fn of_all_nodes(operator: Operator) -> Mapped {
    // Nodes without the label meet it, too.
    if operator == Operator::NotIn {
        return Mapped::Same;
    }
    let also = " All nodes that Poolwright buys have it, and no others.".to_owned();
    Mapped::To { key: keys::NODEPOOL_LABEL, operator: Operator::Exists, values: Vec::new(), also }
}

/// Converts a requirement that keeps pods off all nodes of Karpenter. Nodes of Poolwright lack the label, so they would meet it.
fn of_no_node() -> Mapped {
    let also = " All nodes that Poolwright buys have it, so this keeps the pods off them.".to_owned();
    Mapped::To { key: keys::NODEPOOL_LABEL, operator: Operator::DoesNotExist, values: Vec::new(), also }
}

/// Converts a requirement on a fact about instance types to one on their names, or on those of their families: those that meet it, or all
/// but the others.
fn of_type((key, to): (&str, &'static str), operator: Operator, values: &[String]) -> Mapped {
    let Names { met, unmet } = Names::by(key, to, operator, values);
    let excludes = matches!(operator, Operator::NotIn | Operator::DoesNotExist);
    if unmet.is_empty() && excludes {
        return Mapped::Met("All instance types of the built-in catalogue meet it.".to_owned());
    }
    if unmet.is_empty() {
        return of_all_nodes(operator);
    }
    let is_possible = excludes || !met.is_empty();
    let (listed, others) = ((Operator::In, met), (Operator::NotIn, unmet));
    let choices = if excludes { [others, listed] } else { [listed, others] };
    let fits = |choice: &(Operator, Vec<String>)| (1..=MOST_VALUES).contains(&choice.1.len());
    let Some((operator, names)) = choices.into_iter().find(fits).filter(|_| is_possible) else {
        return Mapped::None(format!("Name the types that you want with `{}`.", ours::INSTANCE_TYPE));
    };
    let also = of_the_catalogue(to, operator, names.len());
    Mapped::To { key: to, operator, values: names, also }
}

/// Says what becomes of a requirement that excludes nodes by a label that Poolwright does not know.
fn excluding(operator: Operator) -> String {
    if matches!(operator, Operator::NotIn | Operator::DoesNotExist) {
        "Plans count the label as absent, so this rule excludes no node of Poolwright. ".to_owned()
    } else {
        String::new()
    }
}

/// Says of a list of families or types that it is of the built-in catalogue, and what follows from that.
fn of_the_catalogue(key: &str, operator: Operator, number: usize) -> String {
    let what = values_in_words(key);
    let (verb, others) = if operator == Operator::NotIn {
        ("excludes", "It excludes no others")
    } else {
        ("allows", "No others match")
    };
    format!(
        " It lists the {what} of {} that it {verb} in the built-in catalogue: {number}. {others} until you \
         add them.",
        KARPENTER_CATALOGUE.clouds
    )
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
            Mapped::Same => {}
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

/// Converts the expressions of a term of node affinity. Returns whether all of them were left out, so that
/// all nodes meet the term.
fn expressions(term: &mut Value, path: &str, report: &mut Report) -> bool {
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
            Mapped::Same => {}
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
    // All nodes of Poolwright would be one topology, but its pools are several.
    if let LabelMapping::Unneeded(..) | LabelMapping::Only(..) = label(&key) {
        let instead =
            "All nodes that Karpenter buys have the same value, so they are one topology. Remove the rule.";
        return stays(&field, &key, instead, report);
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
