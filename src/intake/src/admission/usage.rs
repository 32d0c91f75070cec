//! What an object uses of ResourceQuotas, by the names of their entries (`pkg/quota/v1/evaluator/core` in Kubernetes).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, PodStatus};
use poolwright_api::FieldProblem;
use poolwright_core::{PodScopes, QuotaScopes, VolumeClaim};
use serde_json::Value;

use crate::quota::{COUNT, LIMITS, REQUESTS, STORAGE_CLASS};
use crate::quota_scope;
use crate::requests::{limits, requests};

/// What quotas count of one object.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    pub(super) namespace: String,
    /// The ServiceAccount that a pod names.
    pub(super) account: Option<String>,
    scoped: Scoped,
    amounts: BTreeMap<String, u64>,
}

/// What scopes ask of an object.
#[derive(Clone, Debug)]
enum Scoped {
    Pod(PodScopes),
    /// The name of its VolumeAttributesClass.
    Claim(Option<String>),
    Other,
}

impl Usage {
    /// Returns what a pod uses (`PodUsageFunc`). `path` is the path of the spec.
    ///
    /// Errors: a quantity that cannot be read.
    pub fn of_pod(
        path: &str,
        namespace: Option<&str>,
        spec: &PodSpec,
        status: Option<&PodStatus>,
    ) -> Result<Self, FieldProblem> {
        let scoped = Scoped::Pod(quota_scope::of_pod(spec));
        let mut usage = Self::new(super::namespace_of(namespace), scoped);
        // The second field is the old name of the first.
        usage.account = spec.service_account_name.clone().or_else(|| spec.service_account.clone());
        // An ended pod is still an object, and uses nothing else.
        usage.add(count("", "pods"), 1);
        let phase = status.and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return Ok(usage);
        }
        for (name, amount) in requests(path, spec, status)?.iter() {
            let name = name.as_str();
            // Quotas limit extended resources only with `requests.` before the name.
            if !name.contains('/') {
                usage.add(name.to_owned(), amount);
            }
            usage.add(format!("{REQUESTS}{name}"), amount);
        }
        for (name, amount) in limits(path, spec)?.iter() {
            usage.add(format!("{LIMITS}{name}"), amount);
        }
        Ok(usage)
    }

    /// Returns what a PersistentVolumeClaim uses (`pvcEvaluator.Usage`). `default_class` is the StorageClass of claims that name
    /// none.
    pub fn of_claim(claim: &VolumeClaim, default_class: Option<&str>) -> Self {
        let attributes = claim.shape.attributes_class.clone();
        let scoped = Scoped::Claim(Some(attributes).filter(|class| !class.is_empty()));
        let mut usage = Self::new(claim.key.namespace.clone(), scoped);
        let class = claim.class.as_deref().or(default_class).filter(|class| !class.is_empty());
        usage.add(count("", "persistentvolumeclaims"), 1);
        for (entry, amount) in [("persistentvolumeclaims", 1), ("requests.storage", claim.shape.size)] {
            usage.add(entry.to_owned(), amount);
            if let Some(class) = class {
                usage.add(format!("{class}{STORAGE_CLASS}{entry}"), amount);
            }
        }
        usage
    }

    /// Returns what an object of any other kind uses. Of a Service, its spec decides too.
    pub fn of_object(group: &str, kind: &str, namespace: &str, object: &Value) -> Self {
        let mut usage = Self::new(super::namespace_of(Some(namespace)), Scoped::Other);
        let plural = plural(kind);
        usage.add(count(group, &plural), 1);
        if group.is_empty() {
            usage.add(plural, 1);
            if kind == "Service" {
                usage.add_service(&object["spec"]);
            }
        }
        usage
    }

    /// Adds the ports and the load balancer of a Service (`serviceEvaluator.Usage`).
    fn add_service(&mut self, spec: &Value) {
        let ports = || spec["ports"].as_array().into_iter().flatten();
        let is_balanced = spec["type"] == "LoadBalancer";
        let node_ports = match spec["type"].as_str() {
            Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => {
                ports().filter(|port| port["nodePort"].as_u64().is_some_and(|port| port > 0)).count()
            }
            Some("LoadBalancer" | "NodePort") => ports().count(),
            _ => 0,
        };
        self.add("services.loadbalancers".to_owned(), u64::from(is_balanced));
        self.add("services.nodeports".to_owned(), node_ports as u64);
    }

    fn new(namespace: String, scoped: Scoped) -> Self {
        Self { namespace, account: None, scoped, amounts: BTreeMap::new() }
    }

    fn add(&mut self, entry: String, amount: u64) {
        self.amounts.insert(entry, amount);
    }

    /// Returns the amount that it uses of an entry.
    pub(super) fn of_entry(&self, entry: &str) -> u64 {
        self.amounts.get(entry).copied().unwrap_or(0)
    }

    /// Returns whether a quota with these scopes counts it.
    pub(super) fn is_in(&self, scopes: &QuotaScopes) -> bool {
        match &self.scoped {
            Scoped::Pod(pod) => scopes.match_pod(pod),
            Scoped::Claim(attributes) => scopes.match_claim(attributes.as_deref()),
            Scoped::Other => scopes.match_others(),
        }
    }
}

/// Returns the entry that counts the objects of a kind, by its plural.
fn count(group: &str, plural: &str) -> String {
    if group.is_empty() { format!("{COUNT}{plural}") } else { format!("{COUNT}{plural}.{group}") }
}

/// Returns the plural of a kind, under which an API server serves it.
fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    if lower.ends_with("endpoints") {
        return lower;
    }
    if ["s", "x", "ch", "sh"].iter().any(|end| lower.ends_with(end)) {
        return format!("{lower}es");
    }
    match lower.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{lower}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_counted_under_their_plural_and_group() {
        for (group, kind, entry) in [
            ("apps", "Deployment", "count/deployments.apps"),
            ("", "Secret", "count/secrets"),
            ("", "Endpoints", "count/endpoints"),
            ("networking.k8s.io", "Ingress", "count/ingresses.networking.k8s.io"),
            ("networking.k8s.io", "NetworkPolicy", "count/networkpolicies.networking.k8s.io"),
            ("gateway.networking.k8s.io", "Gateway", "count/gateways.gateway.networking.k8s.io"),
        ] {
            assert_eq!(Usage::of_object(group, kind, "ml", &Value::Null).of_entry(entry), 1, "{entry}");
        }
    }

    #[test]
    fn a_service_uses_its_node_ports_and_its_load_balancer() {
        let of = |spec: Value| {
            let usage = Usage::of_object("", "Service", "ml", &json!({"spec": spec}));
            ["services", "services.nodeports", "services.loadbalancers"].map(|entry| usage.of_entry(entry))
        };
        let ports = json!([{"port": 80}, {"port": 81, "nodePort": 30_001}]);
        assert_eq!(of(json!({"ports": ports})), [1, 0, 0]);
        assert_eq!(of(json!({"type": "NodePort", "ports": ports})), [1, 2, 0]);
        assert_eq!(of(json!({"type": "LoadBalancer", "ports": ports})), [1, 2, 1]);
        let own = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": ports});
        assert_eq!(of(own), [1, 1, 1], "only the port that is written");
    }
}
