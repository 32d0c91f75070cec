//! The CustomResourceDefinitions, as objects and as manifests.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{EC2NodeClass, KwokNodeClass, NodeClaim, NodePool};

/// The CRDs of this API.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![NodePool::crd(), NodeClaim::crd(), KwokNodeClass::crd(), EC2NodeClass::crd()]
}

/// The manifests under `crds/`: file name and content.
pub fn crd_files() -> Vec<(String, String)> {
    crds().iter().map(|crd| (format!("{}.yaml", crd.spec.names.plural), render(crd))).collect()
}

/// One manifest as YAML, the same bytes every time.
pub fn render(crd: &CustomResourceDefinition) -> String {
    let value = serde_json::to_value(crd).expect("a CRD is JSON");
    serde_saphyr::to_string(&value).expect("JSON is YAML")
}
