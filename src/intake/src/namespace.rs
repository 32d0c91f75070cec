//! Namespaces: their labels, and the limits that their annotations state.

use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::{FieldProblem, meant};
use poolwright_core::{Namespace, NamespaceLimit};
use poolwright_terms::keys::DOMAIN;

use crate::admission::Admission;

/// Converts a namespace. Limits that cannot be read count as such ([`ignored_in_namespace`]).
pub fn namespace(from: &k8s::Namespace) -> Namespace {
    let meta = &from.metadata;
    Namespace {
        name: meta.name.clone().unwrap_or_default(),
        labels: meta.labels.clone().unwrap_or_default(),
        limits: stated(from).map(|(limit, amount)| (limit, amount.ok())).collect(),
    }
}

/// Returns the limits of a namespace that cannot be read, and what counts instead. Names of annotations may be misspelt, too.
pub(crate) fn ignored_limits(from: &k8s::Namespace) -> Option<String> {
    let unreadable = stated(from).filter_map(|(limit, amount)| {
        let (key, name, problem) = (limit.annotation(), limit.name(), amount.err()?);
        Some(format!(
            "annotation {key}: {problem}; until then, the limit is that of --namespace-limit {name}, or 0 without it"
        ))
    });
    let known = || NamespaceLimit::ALL.into_iter().map(NamespaceLimit::annotation);
    let keys = from.metadata.annotations.iter().flatten().map(|(key, _)| key);
    let ours = keys.filter(|key| key.split_once('/').is_some_and(|(domain, _)| domain == DOMAIN));
    let unknown = ours.filter(|key| known().all(|known| known != key.as_str())).map(|key| {
        let next = match meant(key, known()) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("write one of {}", known().collect::<Vec<_>>().join(", ")),
        };
        format!("annotation {key}: not an annotation of a Namespace; {next}")
    });
    let problems: Vec<String> = unreadable.chain(unknown).collect();
    Some(problems.join("; ")).filter(|text| !text.is_empty())
}

/// Returns what of a namespace cannot be read: its limits, and what it adds to its pods.
pub fn ignored_in_namespace(from: &k8s::Namespace) -> Option<String> {
    let unreadable = Admission::default().add_namespace(from).err().into_iter().flatten();
    let unreadable =
        unreadable.map(|FieldProblem { path, cause, next_step }| format!("{path}: {cause}; {next_step}"));
    let ignored: Vec<String> = ignored_limits(from).into_iter().chain(unreadable).collect();
    Some(ignored.join("; ")).filter(|text| !text.is_empty())
}

/// Returns the limits that the annotations state, or what is wrong with them.
fn stated(from: &k8s::Namespace) -> impl Iterator<Item = (NamespaceLimit, Result<u64, String>)> {
    let annotations = from.metadata.annotations.as_ref();
    NamespaceLimit::ALL.into_iter().filter_map(move |limit| {
        let text = annotations?.get(limit.annotation())?;
        Some((limit, limit.read(text)))
    })
}

#[cfg(test)]
mod tests {
    use poolwright_core::StatedLimits;
    use serde_json::json;

    use super::*;

    fn annotated(annotations: &serde_json::Value) -> k8s::Namespace {
        let metadata = json!({"name": "ml", "labels": {"team": "ml"}, "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata})).expect("a namespace")
    }

    #[test]
    fn limits_are_read_from_annotations() {
        let stated =
            annotated(&json!({"poolwright.dev/limit-gpus": "8", "poolwright.dev/limit-usd-per-hour": "40.5",
            "example.com/limit-gpus": "9"}));
        let read = namespace(&stated);
        assert_eq!((read.name.as_str(), read.labels["team"].as_str()), ("ml", "ml"));
        let limits = [(NamespaceLimit::Gpus, Some(8000)), (NamespaceLimit::UsdPerHour, Some(40_500_000))];
        assert_eq!(read.limits, StatedLimits::from(limits));
        assert_eq!(ignored_limits(&stated), None);
        assert!(namespace(&annotated(&json!({}))).limits.is_empty());
    }

    #[test]
    fn a_wrong_limit_is_told_with_what_counts_instead_and_is_not_taken_for_no_limit() {
        let wrong = annotated(&json!({"poolwright.dev/limit-nodes": "few", "poolwright.dev/limit-gpu": "8"}));
        assert_eq!(namespace(&wrong).limits, StatedLimits::from([(NamespaceLimit::Nodes, None)]));
        assert_eq!(
            ignored_limits(&wrong).as_deref(),
            Some(
                "annotation poolwright.dev/limit-nodes: `few` is not a whole number; write one, such as 8; until then, the limit is \
                 that of --namespace-limit nodes, or 0 without it; annotation poolwright.dev/limit-gpu: not an annotation of a \
                 Namespace; did you mean poolwright.dev/limit-gpus?"
            )
        );
    }
}
