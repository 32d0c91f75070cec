//! ResourceQuotas: the entries that an API server enforces, and what is left of each.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::{FieldProblem, key_segment};
use poolwright_catalog::ResourceName;
use poolwright_catalog::quantity::amount;
use poolwright_core::Quota;

use crate::error::{IntakeError, Keep, first_of, object_name, quantity_problem};
use crate::pod::key_of;
use crate::quota_scope::scopes;

/// The beginning of the entries that sum limits.
pub(crate) const LIMITS: &str = "limits.";
/// The beginning of the entries that sum requests.
pub(crate) const REQUESTS: &str = "requests.";
/// The beginning of the entries that count objects in any state.
pub(crate) const COUNT: &str = "count/";
/// What stands between the name of a StorageClass and the entry about its PersistentVolumeClaims.
pub(crate) const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// The beginning of the names of huge pages.
const HUGE_PAGES: &str = "hugepages-";

/// The resources of pods without a domain, besides huge pages.
const OF_PODS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// The resources that are counted in bytes, besides huge pages.
const IN_BYTES: [&str; 3] = ["memory", "ephemeral-storage", "storage"];

/// The entries about PersistentVolumeClaims of any StorageClass.
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// The entries that count objects without `count/`.
const OF_OBJECTS: [&str; 6] = [
    "configmaps",
    "replicationcontrollers",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// The kind whose objects decide about all others, so they are not refused here themselves.
const DECIDING: &str = "resourcequotas";

/// Converts a ResourceQuota: the requests and the number of pods that it still allows, and which pods it counts. It ignores limits.
/// A quota without a status has nothing in use: that lasts until its controller has counted.
pub fn quota(from: &k8s::ResourceQuota) -> Result<Quota, IntakeError> {
    let meta = &from.metadata;
    let name = || object_name("ResourceQuota", meta.namespace.as_deref(), meta.name.as_deref());
    let mut left = BTreeMap::new();
    for (key, entry) in entries(from).map_err(|problems| first_of(problems, name()))? {
        if let Some(resource) = of_pods(&key) {
            let least = left.entry(resource.to_owned()).or_insert(entry.left());
            *least = entry.left().min(*least);
        }
    }
    let scopes = from.spec.as_ref().map(scopes).unwrap_or_default();
    Ok(Quota { key: key_of(&from.metadata), scopes, left })
}

/// An entry of a quota.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The most that may be in use.
    pub hard: u64,
    /// What is in use.
    pub used: u64,
    /// Whether the status says what is in use. Otherwise nothing counts as used.
    pub is_counted: bool,
}

impl Entry {
    /// Returns what is left.
    pub fn left(self) -> u64 {
        self.hard.saturating_sub(self.used)
    }
}

/// Returns the entries of a quota. Errors: each quantity that cannot be read.
pub(crate) fn entries(from: &k8s::ResourceQuota) -> Result<BTreeMap<String, Entry>, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let mut read = |field: &str, key: &str, text: &str| {
        let amount = amount(unit(key), text);
        let at = || format!("{field}{}", key_segment(key));
        amount.map_err(|error| quantity_problem(at(), &error)).keep(&mut problems).unwrap_or(0)
    };
    let status = from.status.as_ref();
    let written = from.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let (field, hard) = match status.and_then(|status| status.hard.as_ref()) {
        Some(hard) => ("status.hard", Some(hard)),
        None => ("spec.hard", written),
    };
    let used = status.and_then(|status| status.used.as_ref());
    let mut entries = BTreeMap::new();
    for (key, total) in hard.into_iter().flatten() {
        let hard = read(field, key, &total.0);
        let in_use = used.and_then(|used| used.get(key)).map(|text| read("status.used", key, &text.0));
        let (used, is_counted) = (in_use.unwrap_or(0), in_use.is_some());
        entries.insert(key.clone(), Entry { hard, used, is_counted });
    }
    if problems.is_empty() { Ok(entries) } else { Err(problems) }
}

/// Returns the resource that has the unit of an entry.
fn unit(key: &str) -> &str {
    let own = key.rsplit_once(STORAGE_CLASS).map_or(key, |(_, own)| own);
    own.strip_prefix(REQUESTS).or_else(|| own.strip_prefix(LIMITS)).unwrap_or(own)
}

/// Writes an amount of an entry as a Kubernetes quantity, without rounding it.
pub(crate) fn written(key: &str, amount: u64) -> String {
    let resource = unit(key);
    if resource == ResourceName::CPU {
        let (cores, rest) = (amount / 1000, amount % 1000);
        return if rest == 0 { cores.to_string() } else { format!("{amount}m") };
    }
    if IN_BYTES.contains(&resource) || resource.starts_with(HUGE_PAGES) {
        let suffixes = [("Ti", 40_u32), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
        let is_whole = |(_, shift): &(&str, u32)| amount > 0 && amount.is_multiple_of(1 << *shift);
        let whole = suffixes.into_iter().find(is_whole);
        if let Some((suffix, shift)) = whole {
            return format!("{}{suffix}", amount >> shift);
        }
    }
    amount.to_string()
}

/// Returns the resource of pods that an entry limits, if it is about requests or the number of pods (`podResources` and
/// `isExtendedResourceNameForQuota` in Kubernetes).
fn of_pods(key: &str) -> Option<&str> {
    if key == "pods" || key == "count/pods" {
        return Some("pods");
    }
    let stated = key.strip_prefix(REQUESTS);
    let resource = stated.unwrap_or(key);
    let is_extended = || stated.is_some() && resource.contains('/') && !resource.contains("kubernetes.io/");
    let is_counted = OF_PODS.contains(&resource) || resource.starts_with(HUGE_PAGES) || is_extended();
    is_counted.then_some(resource)
}

/// What is done about an entry of a quota of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It is enforced, as by an API server.
    Enforced,
    /// An API server enforces it, and nothing here does.
    NotRead,
    /// Not even an API server enforces it.
    Ineffective,
}

/// Returns what is done about an entry. The evaluators of an API server decide which entries are effective
/// (`pkg/quota/v1/evaluator/core` in Kubernetes).
pub(crate) fn reading(key: &str) -> Reading {
    let counted = key.strip_prefix(COUNT);
    if counted.unwrap_or(key) == DECIDING || key.ends_with(".deviceclass.resource.k8s.io/devices") {
        return Reading::NotRead;
    }
    let of_class = key.rsplit_once(STORAGE_CLASS).map_or(key, |(_, own)| own);
    let of_limits = key.strip_prefix(LIMITS).is_some_and(|resource| OF_PODS.contains(&resource));
    let is_enforced = counted.is_some()
        || of_limits
        || of_pods(key).is_some()
        || OF_CLAIMS.contains(&of_class)
        || OF_OBJECTS.contains(&key);
    if is_enforced { Reading::Enforced } else { Reading::Ineffective }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_enforced_not_read_or_ineffective_as_in_an_api_server() {
        let all = |keys: &[&str], expected: Reading| {
            for key in keys {
                assert_eq!(reading(key), expected, "{key}");
            }
        };
        all(
            &[
                "cpu",
                "requests.cpu",
                "limits.ephemeral-storage",
                "hugepages-2Mi",
                "requests.hugepages-2Mi",
                "requests.nvidia.com/gpu",
                "pods",
                "count/pods",
                "count/jobs.batch",
                "count/limitranges",
                "services.nodeports",
                "requests.storage",
                "persistentvolumeclaims",
                "gold.storageclass.storage.k8s.io/requests.storage",
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
            ],
            Reading::Enforced,
        );
        all(
            &["resourcequotas", "count/resourcequotas", "gpu.deviceclass.resource.k8s.io/devices"],
            Reading::NotRead,
        );
        all(
            &[
                "nvidia.com/gpu",
                "limits.nvidia.com/gpu",
                "requests.gpu",
                "gold.storageclass.storage.k8s.io/storage",
            ],
            Reading::Ineffective,
        );
    }

    #[test]
    fn amounts_have_the_unit_of_their_resource() {
        assert_eq!(["requests.cpu", "limits.cpu", "cpu"].map(unit), ["cpu"; 3]);
        assert_eq!(unit("gold.storageclass.storage.k8s.io/requests.storage"), "storage");
        assert_eq!(unit("requests.nvidia.com/gpu"), "nvidia.com/gpu");
    }

    #[test]
    fn amounts_are_written_exactly_with_the_largest_unit() {
        for (key, amount, text) in [
            ("requests.cpu", 4000, "4"),
            ("limits.cpu", 1500, "1500m"),
            ("requests.memory", 10 << 30, "10Gi"),
            ("memory", (1 << 30) + (1 << 20), "1025Mi"),
            ("gold.storageclass.storage.k8s.io/requests.storage", 1000, "1000"),
            ("requests.storage", 0, "0"),
            ("requests.nvidia.com/gpu", 1024, "1024"),
            ("count/pods", 3, "3"),
        ] {
            assert_eq!(written(key, amount), text, "{key}");
        }
    }
}
