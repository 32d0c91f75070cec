//! Services, as far as a scheduler's default spread uses them.

use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::FieldProblem;
use poolwright_core::Service;
use serde_json::Value;

use crate::pod::key_of;

/// Converts a Service.
pub fn service(from: &k8s::Service) -> Service {
    let selector = from.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
    Service { key: key_of(&from.metadata), selector }
}

/// Reads a Service of a manifest, with only the fields that Poolwright uses. Other fields are not checked.
pub(crate) fn read_service(value: &Value) -> Result<Service, Vec<FieldProblem>> {
    let mut small = serde_json::json!({"apiVersion": "v1", "kind": "Service"});
    small["metadata"] =
        serde_json::json!({"name": value["metadata"]["name"], "namespace": value["metadata"]["namespace"]});
    small["spec"] = serde_json::json!({"selector": value["spec"]["selector"]});
    poolwright_api::strict::read(&small).map(|read| service(&read))
}
