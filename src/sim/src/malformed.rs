//! Objects that the controller cannot read: written before the schema existed, by a newer version, or directly into etcd.

use serde_json::{Value, json};

/// The number of sorts of such objects.
pub const SORTS: usize = 8;

/// Returns an object of a sort, and the path of its collection.
pub fn object(sort: usize, number: usize) -> (&'static str, Value) {
    let claims = "/apis/poolwright.dev/v1alpha1/nodeclaims";
    let pools = "/apis/poolwright.dev/v1alpha1/nodepools";
    let class = json!({"group": "poolwright.dev", "kind": "SimNodeClass", "name": "all"});
    let pool = |requirements: Value| json!({"template": {"spec": {"nodeClassRef": class, "requirements": requirements}}});
    let near = json!([{"key": "poolwright.dev/zone", "operator": "Near", "values": ["here"]}]);
    let lots = json!([{"name": "work", "resources": {"requests": {"cpu": "lots"}}}]);
    let (collection, kind, rest) = match sort % SORTS {
        0 => (pools, "NodePool", json!({"spec": pool(json!("none"))})),
        1 => (pools, "NodePool", json!({"spec": pool(near)})),
        2 => (claims, "NodeClaim", json!({"spec": {"nodeClassRef": class, "offerings": "any"}})),
        3 => (claims, "NodeClaim", json!({"spec": {"nodeClassRef": class, "offerings": []}})),
        4 => ("/api/v1/namespaces/default/pods", "Pod", json!({"spec": {"containers": lots}})),
        5 => ("/api/v1/namespaces/default/pods", "Pod", json!({"spec": {"containers": {"name": "work"}}})),
        6 => ("/api/v1/nodes", "Node", json!({"status": {"allocatable": {"cpu": "many"}}})),
        _ => ("/apis/batch/v1/namespaces/default/jobs", "Job", json!({"spec": {"parallelism": "two"}})),
    };
    let version = match kind {
        "NodePool" | "NodeClaim" => poolwright_terms::API_VERSION,
        "Job" => "batch/v1",
        _ => "v1",
    };
    let mut object =
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": format!("broken-{number}")}});
    for (field, value) in rest.as_object().into_iter().flatten() {
        object[field] = value.clone();
    }
    (collection, object)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{batch::v1 as batch, core::v1 as core};
    use poolwright_api::{NodeClaim, NodePool};

    use super::*;

    #[test]
    fn none_of_them_can_be_read() {
        for sort in 0..SORTS {
            let (_, object) = object(sort, 1);
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            let reads = match kind.as_str() {
                "NodePool" => serde_json::from_value::<NodePool>(object).is_ok(),
                "NodeClaim" => serde_json::from_value::<NodeClaim>(object)
                    .is_ok_and(|one| poolwright_intake::node_claim(&one).is_ok()),
                "Pod" => serde_json::from_value::<core::Pod>(object)
                    .is_ok_and(|one| poolwright_intake::pod(&one).is_ok()),
                "Node" => serde_json::from_value::<core::Node>(object)
                    .is_ok_and(|one| poolwright_intake::node(&one).is_ok()),
                _ => serde_json::from_value::<batch::Job>(object).is_ok(),
            };
            assert!(!reads, "sort {sort} of {kind} can be read");
        }
    }
}
