//! The CustomResourceDefinitions that all clouds share, and the manifest of any definition.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{NodeClaim, NodePool};

/// Returns the CRDs of NodePool and NodeClaim. Each cloud adds the CRD of its node class.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![NodePool::crd(), NodeClaim::crd()]
}

/// Renders a CRD as YAML. The same CRD always gives the same bytes.
pub fn render(crd: &CustomResourceDefinition) -> String {
    let value = serde_json::to_value(crd).expect("a CRD is JSON");
    serde_saphyr::to_string(&value).expect("JSON is YAML")
}
