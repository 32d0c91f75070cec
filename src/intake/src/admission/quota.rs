//! ResourceQuotas: how many new pods a namespace may still have (admission plugin `ResourceQuota`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use poolwright_core::{Pod, Quota};

use crate::error::IntakeError;
use crate::quota::quota;

/// The quotas of the manifests, and how much of each is left.
#[derive(Default)]
pub(crate) struct Quotas(Vec<Quota>);

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
        self.0.push(read);
        let limits: Vec<String> = spec.hard.into_iter().flatten().map(|(name, _)| name).collect();
        let limits: Vec<&str> =
            limits.iter().map(String::as_str).filter(|name| name.starts_with("limits.")).collect();
        if limits.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![format!("not read, so that they hold no pod back here: {}", limits.join(", "))])
    }

    /// Removes the pods that the quotas of their namespace do not allow, and counts the others. Returns a note if there are any.
    pub fn hold_back(&mut self, pods: &mut Vec<Pod>) -> Option<String> {
        let before = pods.len();
        let mut why: BTreeMap<String, String> = BTreeMap::new();
        pods.retain(|pod| {
            let theirs =
                || self.0.iter().enumerate().filter(|(_, quota)| quota.key.namespace == pod.key.namespace());
            let over = theirs().find_map(|(_, quota)| {
                let mut left = quota.left.iter();
                left.find(|(name, left)| pod.spec.requests.get(name) > **left).map(|(name, _)| (quota, name))
            });
            if let Some((quota, resource)) = over {
                why.entry(quota.key.name.clone()).or_insert_with(|| resource.clone());
                return false;
            }
            let counted: Vec<usize> = theirs().map(|(at, _)| at).collect();
            for at in counted {
                for (name, left) in &mut self.0[at].left {
                    *left = left.saturating_sub(pod.spec.requests.get(name));
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
