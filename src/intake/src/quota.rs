//! ResourceQuotas, as far as they prevent the creation of pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::key_segment;
use poolwright_catalog::quantity::amount;
use poolwright_core::Quota;

use crate::error::{IntakeError, OfObject, object_name, quantity_problem};
use crate::pod::key_of;

type Quantities = BTreeMap<String, Quantity>;

/// Converts a ResourceQuota: the requests and the number of pods that it still allows. It ignores limits,
/// and treats a quota for only some pods (`scopes`) as one for all. A quota without a status has nothing in use.
pub fn quota(from: &k8s::ResourceQuota) -> Result<Quota, IntakeError> {
    Ok(Quota { key: key_of(&from.metadata), left: left(from, of_pods)? })
}

/// Returns how much a quota still allows, by `counted`, the name under which an entry counts. Entries without one are left out.
pub(crate) fn left(
    from: &k8s::ResourceQuota,
    counted: impl Fn(&str) -> Option<&str>,
) -> Result<BTreeMap<String, u64>, IntakeError> {
    let meta = &from.metadata;
    let name = || object_name("ResourceQuota", meta.namespace.as_deref(), meta.name.as_deref());
    let status = from.status.as_ref();
    let amounts = |field: &str, resource: &str, key: &str, from: Option<&Quantities>| {
        let Some(text) = from.and_then(|amounts| amounts.get(key)) else { return Ok(0) };
        amount(resource.strip_prefix(LIMITS).unwrap_or(resource), &text.0)
            .map_err(|error| quantity_problem(format!("{field}{}", key_segment(key)), &error).of(name()))
    };
    let written = from.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let (field, hard) = match status.and_then(|status| status.hard.as_ref()) {
        Some(hard) => ("status.hard", Some(hard)),
        None => ("spec.hard", written),
    };
    let used = status.and_then(|status| status.used.as_ref());
    let mut left: BTreeMap<String, u64> = BTreeMap::new();
    for key in hard.into_iter().flat_map(Quantities::keys) {
        let Some(resource) = counted(key) else { continue };
        let total = amounts(field, resource, key, hard)?;
        let rest = total.saturating_sub(amounts("status.used", resource, key, used)?);
        let least = left.entry(resource.to_owned()).or_insert(rest);
        *least = rest.min(*least);
    }
    Ok(left)
}

/// The beginning of the entries that sum limits.
pub(crate) const LIMITS: &str = "limits.";

/// Returns the pod resource that an entry of a quota limits, if it is not about limits.
pub(crate) fn of_pods(key: &str) -> Option<&str> {
    match key {
        "cpu" | "memory" | "ephemeral-storage" | "pods" => Some(key),
        "count/pods" => Some("pods"),
        _ => key.strip_prefix("requests.").filter(|resource| *resource != "storage"),
    }
}
