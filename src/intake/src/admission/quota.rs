//! ResourceQuotas: how many new pods a namespace may still have (admission plugin `ResourceQuota`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{self as k8s, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::FieldProblem;
use poolwright_core::{Pod, Quota};

use crate::error::IntakeError;
use crate::quota::quota;

/// The quotas of the manifests, and how much of each is left.
#[derive(Default)]
pub(crate) struct Quotas {
    all: Vec<Quota>,
    /// Which of them do not say what is in use.
    uncounted: Vec<usize>,
}

impl Quotas {
    /// Adds a quota. Returns notes about its parts that are not read.
    ///
    /// Errors: a quantity that an API server would refuse.
    pub fn add(&mut self, from: &k8s::ResourceQuota) -> Result<Vec<String>, IntakeError> {
        let read = quota(from)?;
        let spec = from.spec.clone().unwrap_or_default();
        if spec.scopes.is_some_and(|scopes| !scopes.is_empty()) || spec.scope_selector.is_some() {
            return Ok(vec![
                "a quota for only some pods (scopes) is not read; it holds no pod back here".to_owned(),
            ]);
        }
        if from.status.as_ref().is_none_or(|status| status.used.is_none()) {
            self.uncounted.push(self.all.len());
        }
        self.all.push(read);
        let limits: Vec<String> = spec.hard.into_iter().flatten().map(|(name, _)| name).collect();
        let limits: Vec<&str> =
            limits.iter().map(String::as_str).filter(|name| name.starts_with("limits.")).collect();
        if limits.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![format!("not read, so that they hold no pod back here: {}", limits.join(", "))])
    }

    /// Returns whether a quota of a namespace does not say what is in use, so that its stored pods must be counted.
    pub fn counts_pods_of(&self, namespace: &str) -> bool {
        self.uncounted.iter().any(|at| self.all[*at].key.namespace == namespace)
    }

    /// Counts a stored pod to the quotas that do not say what is in use.
    pub fn count(&mut self, pod: &Pod) {
        for at in &self.uncounted {
            let quota = &mut self.all[*at];
            if quota.key.namespace == pod.key.namespace() {
                for (name, left) in &mut quota.left {
                    *left = left.saturating_sub(used(pod, name));
                }
            }
        }
    }

    /// Removes the pods that the quotas of their namespace do not allow, and counts the others. Returns a note if there are any.
    pub fn hold_back(&mut self, pods: &mut Vec<Pod>) -> Option<String> {
        let before = pods.len();
        let mut why: BTreeMap<String, String> = BTreeMap::new();
        pods.retain(|pod| {
            let theirs = || {
                self.all.iter().enumerate().filter(|(_, quota)| quota.key.namespace == pod.key.namespace())
            };
            let over = theirs().find_map(|(_, quota)| {
                let mut left = quota.left.iter();
                left.find(|(name, left)| used(pod, name) > **left).map(|(name, _)| (quota, name))
            });
            if let Some((quota, resource)) = over {
                why.entry(quota.key.name.clone()).or_insert_with(|| resource.clone());
                return false;
            }
            let counted: Vec<usize> = theirs().map(|(at, _)| at).collect();
            for at in counted {
                for (name, left) in &mut self.all[at].left {
                    *left = left.saturating_sub(used(pod, name));
                }
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

/// Returns how much of a quota's resource a pod uses.
fn used(pod: &Pod, resource: &str) -> u64 {
    pod.spec.requests.get(resource)
}

/// What a quota demands of each container: an API server refuses a pod that does not state what the quota limits.
pub(super) struct QuotaDemands {
    pub namespace: String,
    name: String,
    /// Keys such as `requests.cpu`.
    keys: Vec<&'static str>,
}

/// The keys of a quota that every container must state.
const STATED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

impl QuotaDemands {
    pub fn of(from: &k8s::ResourceQuota) -> Option<Self> {
        let spec = from.spec.as_ref()?;
        let has_scopes = spec.scopes.as_ref().is_some_and(|scopes| !scopes.is_empty());
        if has_scopes || spec.scope_selector.is_some() {
            return None;
        }
        let keys = STATED.into_iter().filter(|key| spec.hard.iter().flatten().any(|(name, _)| name == key));
        let keys: Vec<&str> = keys.collect();
        let namespace = super::namespace_of(from.metadata.namespace.as_deref());
        let name = from.metadata.name.clone().unwrap_or_default();
        (!keys.is_empty()).then_some(Self { namespace, name, keys })
    }

    /// Returns a problem for each container that does not state what the quota limits.
    pub fn refusals(&self, path: &str, spec: &PodSpec) -> Vec<FieldProblem> {
        let whole = spec.resources.as_ref();
        let lists =
            [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())];
        let mut problems = Vec::new();
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
