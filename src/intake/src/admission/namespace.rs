//! What a namespace adds to its pods by its annotations (admission plugins `PodNodeSelector` and `PodTolerationRestriction`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{self as k8s, PodSpec, Toleration};
use poolwright_api::{FieldProblem, key_segment};

const NODE_SELECTOR: &str = "scheduler.alpha.kubernetes.io/node-selector";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";

/// The additions of a namespace.
pub(super) struct NamespaceDefaults {
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Toleration>,
}

impl NamespaceDefaults {
    /// Reads the annotations of a namespace; `None` if it adds nothing. Errors: all problems.
    pub fn of(from: &k8s::Namespace) -> Result<Option<Self>, Vec<FieldProblem>> {
        let annotation = |key: &str| from.metadata.annotations.as_ref()?.get(key).map(|text| text.trim());
        let problem = |key: &str, cause: String, next: &str| {
            FieldProblem::new(format!("metadata.annotations[{key:?}]"), cause, next)
        };
        let (mut node_selector, mut problems) = (BTreeMap::new(), Vec::new());
        let written = annotation(NODE_SELECTOR).unwrap_or_default();
        for term in written.split(',').map(str::trim).filter(|term| !term.is_empty()) {
            if let Some((key, value)) = term.split_once('=') {
                let value = value.trim_start_matches('=').trim();
                node_selector.insert(key.trim().to_owned(), value.to_owned());
            } else {
                let cause = format!("`{term}` has no `=`");
                problems.push(problem(NODE_SELECTOR, cause, "write labels as `key=value,key=value`"));
            }
        }
        let tolerations = match annotation(TOLERATIONS).filter(|text| !text.is_empty()) {
            None => Vec::new(),
            Some(text) => serde_json::from_str(text).unwrap_or_else(|error| {
                let cause = format!("not a list of tolerations: {error}");
                problems.push(problem(TOLERATIONS, cause, "write a list in JSON"));
                Vec::new()
            }),
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let adds = !node_selector.is_empty() || !tolerations.is_empty();
        Ok(adds.then_some(Self { node_selector, tolerations }))
    }

    /// Says what the namespace adds.
    pub fn note(&self) -> String {
        let labels: Vec<String> =
            self.node_selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let selector = (!labels.is_empty())
            .then(|| (format!("the node selector {}", labels.join(",")), "PodNodeSelector"));
        let tolerations = (!self.tolerations.is_empty())
            .then(|| ("default tolerations".to_owned(), "PodTolerationRestriction"));
        let (added, plugins): (Vec<_>, Vec<_>) = selector.into_iter().chain(tolerations).unzip();
        // No API tells which plugins an API server runs.
        format!(
            "by its annotations, its new pods get {}, if the API server runs {}",
            added.join(" and "),
            plugins.join(" and ")
        )
    }

    /// Adds them to a new pod.
    ///
    /// Errors: a node selector that contradicts that of the namespace.
    pub fn admit(&self, path: &str, spec: &mut PodSpec) -> Result<(), FieldProblem> {
        for (key, value) in &self.node_selector {
            let selector = spec.node_selector.get_or_insert_default();
            if let Some(stated) = selector.get(key).filter(|stated| *stated != value) {
                return Err(FieldProblem::new(
                    format!("{path}.nodeSelector{}", key_segment(key)),
                    format!("`{stated}` contradicts the node selector of the namespace, which has `{value}`"),
                    "remove one of them",
                ));
            }
            selector.insert(key.clone(), value.clone());
        }
        // The namespace's defaults are only for pods without tolerations of their own.
        let own = spec.tolerations.get_or_insert_default();
        if own.is_empty() {
            own.extend(self.tolerations.iter().cloned());
        }
        Ok(())
    }
}
