//! ResourceQuotas: how many new pods a namespace may still have (admission plugin `ResourceQuota`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{self as k8s, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::FieldProblem;
use poolwright_catalog::ResourceList;

use super::quota_scope::{self, Scopes};
use crate::error::{IntakeError, OfObject, object_name};
use crate::quota::{LIMITS, left, of_pods};
use crate::requests::{limits, requests};

/// The quotas of the manifests, and how much of each is left.
#[derive(Default)]
pub(crate) struct Quotas {
    all: Vec<Quota>,
}

/// A quota of the manifests.
struct Quota {
    namespace: String,
    name: String,
    scopes: Scopes,
    /// By resource; entries of `limits.*` keep their prefix.
    left: BTreeMap<String, u64>,
    /// Whether it says what is in use.
    is_counted: bool,
}

impl Quota {
    fn counts(&self, pod: &Charge) -> bool {
        self.namespace == pod.namespace && self.scopes.match_pod(&pod.namespace, &pod.spec)
    }

    fn take(&mut self, pod: &Charge) {
        for (name, left) in &mut self.left {
            *left = left.saturating_sub(pod.uses(name));
        }
    }
}

/// What quotas count of one pod.
#[derive(Debug)]
pub(crate) struct Charge {
    namespace: String,
    requests: ResourceList,
    limits: ResourceList,
    spec: PodSpec,
}

impl Charge {
    /// Errors: a quantity that cannot be read. `path` is the path of the spec.
    pub fn of(path: &str, namespace: Option<&str>, spec: &PodSpec) -> Result<Self, FieldProblem> {
        let (requests, limits) = (requests(path, spec, None)?, limits(path, spec)?);
        Ok(Self { namespace: super::namespace_of(namespace), requests, limits, spec: spec.clone() })
    }

    fn uses(&self, resource: &str) -> u64 {
        match resource.strip_prefix(LIMITS) {
            Some(limited) => self.limits.get(limited),
            None => self.requests.get(resource),
        }
    }
}

impl Quotas {
    /// Adds a quota. Returns notes about what is not read of it.
    ///
    /// Errors: a quantity or, in a quota that no API server has stored, a scope that an API server would
    /// refuse.
    pub fn add(&mut self, from: &k8s::ResourceQuota) -> Result<Vec<String>, IntakeError> {
        let left = left(from, counted)?;
        let mut notes = Vec::new();
        for (at, scope) in from.spec.iter().flat_map(quota_scope::unknown) {
            if super::is_new(&from.metadata) {
                let meta = &from.metadata;
                let name = object_name("ResourceQuota", meta.namespace.as_deref(), meta.name.as_deref());
                return Err(quota_scope::problem(&at, scope).of(name));
            }
            notes.push(format!("{at}: the scope `{scope}` is not known, so the quota counts no pods"));
        }
        notes.extend(unread(from));
        self.all.push(Quota {
            namespace: super::namespace_of(from.metadata.namespace.as_deref()),
            name: from.metadata.name.clone().unwrap_or_default(),
            scopes: from.spec.as_ref().map(Scopes::of).unwrap_or_default(),
            left,
            is_counted: from.status.as_ref().is_some_and(|status| status.used.is_some()),
        });
        Ok(notes)
    }

    /// Returns whether a quota of a namespace does not say what is in use, so that its stored pods must be counted.
    pub fn counts_pods_of(&self, namespace: &str) -> bool {
        self.all.iter().any(|quota| !quota.is_counted && quota.namespace == namespace)
    }

    /// Counts a stored pod to the quotas that do not say what is in use.
    pub fn count(&mut self, pod: &Charge) {
        for quota in self.all.iter_mut().filter(|quota| !quota.is_counted && quota.counts(pod)) {
            quota.take(pod);
        }
    }

    /// Removes the pods that the quotas of their namespace do not allow, and counts the others. Returns a note if there are any.
    pub fn hold_back<T>(&mut self, pods: &mut Vec<T>, charge: impl Fn(&T) -> &Charge) -> Option<String> {
        let before = pods.len();
        let mut why: BTreeMap<String, String> = BTreeMap::new();
        pods.retain(|pod| {
            let pod = charge(pod);
            let theirs = self.all.iter_mut().filter(|quota| quota.counts(pod)).collect::<Vec<_>>();
            let over = theirs.iter().find_map(|quota| {
                let mut left = quota.left.iter();
                left.find(|(name, left)| pod.uses(name) > **left)
                    .map(|(name, _)| (quota.name.clone(), name.clone()))
            });
            if let Some((quota, resource)) = over {
                why.entry(quota).or_insert(resource);
                return false;
            }
            for quota in theirs {
                quota.take(pod);
            }
            true
        });
        let (name, resource) = why.into_iter().next()?;
        let held = before - pods.len();
        Some(format!(
            "{held} of its {before} pods cannot be created and are not planned, because ResourceQuota `{name}` allows no more {resource}; raise the quota to plan them"
        ))
    }
}

/// Returns the name under which an entry of a quota counts; `None` if it is not read.
fn counted(key: &str) -> Option<&str> {
    if key.starts_with(LIMITS) { Some(key) } else { of_pods(key) }
}

/// Returns a note that names the entries of a quota that are not read, because they are not about what pods
/// request or limit.
fn unread(from: &k8s::ResourceQuota) -> Option<String> {
    let written = from.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let stored = from.status.as_ref().and_then(|status| status.hard.as_ref());
    let keys = written.or(stored).into_iter().flatten().map(|(key, _)| key);
    let unread: Vec<String> =
        keys.filter(|key| counted(key).is_none()).map(|key| format!("`{key}`")).collect();
    let (are, they) = match unread.len() {
        0 => return None,
        1 => ("is", "it"),
        _ => ("are", "they"),
    };
    Some(format!("{} {are} not read, so objects that {they} would refuse are planned", unread.join(", ")))
}

/// What a quota demands of each container: an API server refuses a pod that does not state what the quota limits.
pub(super) struct QuotaDemands {
    pub namespace: String,
    name: String,
    scopes: Scopes,
    /// Keys such as `requests.cpu`.
    keys: Vec<&'static str>,
}

/// The keys of a quota that every container must state.
const STATED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

impl QuotaDemands {
    pub fn of(from: &k8s::ResourceQuota) -> Option<Self> {
        let spec = from.spec.as_ref()?;
        let keys = STATED.into_iter().filter(|key| spec.hard.iter().flatten().any(|(name, _)| name == key));
        let keys: Vec<&str> = keys.collect();
        let namespace = super::namespace_of(from.metadata.namespace.as_deref());
        let name = from.metadata.name.clone().unwrap_or_default();
        (!keys.is_empty()).then(|| Self { namespace, name, scopes: Scopes::of(spec), keys })
    }

    /// Returns a problem for each container that does not state what the quota limits.
    pub fn refusals(&self, path: &str, spec: &PodSpec) -> Vec<FieldProblem> {
        let whole = spec.resources.as_ref();
        let lists =
            [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())];
        let mut problems = Vec::new();
        if !self.scopes.match_pod(&self.namespace, spec) {
            return problems;
        }
        for key in &self.keys {
            if states(whole, key) {
                continue;
            }
            for (list, containers) in lists {
                for (at, container) in containers.into_iter().flatten().enumerate() {
                    if !states(container.resources.as_ref(), key) {
                        let (field, resource) = key.split_once('.').unwrap_or(("requests", key));
                        problems.push(FieldProblem::new(
                            format!("{path}.{list}[{at}].resources.{field}.{resource}"),
                            format!(
                                "missing, and ResourceQuota `{}` refuses pods without it, because it limits {key}",
                                self.name
                            ),
                            "write it, or add a LimitRange with a default to the files",
                        ));
                    }
                }
            }
        }
        problems
    }
}

/// Returns whether the resources state what a key of a quota limits. A limit is also a request.
fn states(stated: Option<&k8s::ResourceRequirements>, key: &str) -> bool {
    let (field, resource) = key.split_once('.').unwrap_or(("requests", key));
    let has =
        |amounts: Option<&BTreeMap<String, Quantity>>| amounts.is_some_and(|all| all.contains_key(resource));
    let is_limited = has(stated.and_then(|stated| stated.limits.as_ref()));
    is_limited || (field == "requests" && has(stated.and_then(|stated| stated.requests.as_ref())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn notes(quota: Value) -> Vec<String> {
        let quota: k8s::ResourceQuota = serde_json::from_value(quota).expect("a quota");
        Quotas::default().add(&quota).expect("it is read")
    }

    #[test]
    fn entries_that_are_not_read_are_named_together() {
        let of = |hard: Value| notes(json!({"metadata": {"name": "team"}, "spec": {"hard": hard}}));
        assert_eq!(
            of(json!({"requests.storage": "1Ti", "count/jobs.batch": "2", "pods": "9", "limits.cpu": "4"})),
            [
                "`count/jobs.batch`, `requests.storage` are not read, so objects that they would refuse are planned"
            ]
        );
        assert_eq!(
            of(json!({"services": "1"})),
            ["`services` is not read, so objects that it would refuse are planned"]
        );
        let read = json!({"count/pods": "2", "requests.nvidia.com/gpu": "8", "memory": "1Gi"});
        assert_eq!(of(read), [""; 0]);
    }

    #[test]
    fn an_unknown_scope_of_a_stored_quota_is_a_note() {
        let quota = json!({"metadata": {"name": "team", "uid": "u"}, "spec": {"scopes": ["Newer"]}});
        assert_eq!(
            notes(quota),
            ["spec.scopes[0]: the scope `Newer` is not known, so the quota counts no pods"]
        );
    }
}
