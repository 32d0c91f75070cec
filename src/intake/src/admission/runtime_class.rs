//! RuntimeClasses: overhead, node selector and tolerations of the runtime of a pod (admission plugin `RuntimeClass`).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::FieldProblem;
use poolwright_catalog::quantity;

use super::whereabouts;

/// Adds the changes of admission to the spec: overhead, node selector and tolerations of its runtime class. `path` is the path of
/// the spec. Returns a note if the class is not in the manifests. `lost` are the objects of
/// the manifests that are left out.
///
/// Errors: specs that admission would refuse.
pub(super) fn admit(
    path: &str,
    spec: &mut PodSpec,
    classes: &BTreeMap<String, RuntimeClass>,
    lost: &BTreeSet<String>,
) -> Result<Option<String>, FieldProblem> {
    let stated = spec.overhead.as_ref().filter(|stated| !stated.is_empty());
    let refused = |cause: String, next: &str| Err(FieldProblem::new(format!("{path}.overhead"), cause, next));
    let Some(name) = spec.runtime_class_name.clone().filter(|name| !name.is_empty()) else {
        return match stated {
            Some(_) => refused(
                "an API server refuses it without a RuntimeClass".to_owned(),
                "remove it, or write the runtimeClassName of a class with this overhead",
            ),
            None => Ok(None),
        };
    };
    let Some(class) = classes.get(&name) else {
        return Ok(stated.is_none().then(|| {
            let (is_where, next) = whereabouts(&format!("RuntimeClass {name}"), lost);
            format!(
                "RuntimeClass `{name}` {is_where}, so its overhead and its node selector are not counted; {next}"
            )
        }));
    };
    if let Some(fixed) = class.overhead.as_ref().and_then(|overhead| overhead.pod_fixed.as_ref()) {
        if stated.is_some_and(|stated| !is_same(stated, fixed)) {
            return refused(
                format!("it differs from that of RuntimeClass `{name}`, so admission would refuse the pod"),
                "remove it",
            );
        }
        spec.overhead = Some(fixed.clone());
    } else if stated.is_some() {
        return refused(
            format!("RuntimeClass `{name}` has no overhead, so admission would refuse the pod"),
            "remove it",
        );
    }
    let Some(scheduling) = &class.scheduling else { return Ok(None) };
    for (key, value) in scheduling.node_selector.iter().flatten() {
        let selector = spec.node_selector.get_or_insert_default();
        if let Some(stated) = selector.get(key).filter(|stated| *stated != value) {
            return Err(FieldProblem::new(
                format!("{path}.nodeSelector{}", poolwright_api::key_segment(key)),
                format!("`{stated}` contradicts RuntimeClass `{name}`, which needs nodes with `{value}`"),
                "remove one of them",
            ));
        }
        selector.insert(key.clone(), value.clone());
    }
    let tolerations = spec.tolerations.get_or_insert_default();
    for toleration in scheduling.tolerations.iter().flatten() {
        if !tolerations.contains(toleration) {
            tolerations.push(toleration.clone());
        }
    }
    Ok(None)
}

/// Returns whether two amounts of resources are equal, however they are written.
fn is_same(a: &BTreeMap<String, Quantity>, b: &BTreeMap<String, Quantity>) -> bool {
    let amount = |text: &Quantity| quantity::parse(&text.0).map(quantity::Quantity::milli_ceil).ok();
    let within = |a: &BTreeMap<String, Quantity>, b: &BTreeMap<String, Quantity>| {
        a.iter().all(|(name, text)| {
            b.get(name).is_some_and(|other| other == text || amount(other) == amount(text))
        })
    };
    within(a, b) && within(b, a)
}
