//! What LimitRanges add to the requests of a pod, for messages: its author does not find these amounts in the pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;
use poolwright_catalog::{ResourceName, quantity};
use poolwright_core::{RequestOrigin, RequestPart};

use super::Admission;
use super::resources::Defaults;
use crate::requests::fill_in_whole;

impl Admission {
    /// Returns the requests that LimitRanges of the namespace would add to the containers of a new pod with this spec. Requests of
    /// the pod as a whole replace those of its containers. What is added to init containers counts only while they run, so it is
    /// left out.
    pub(crate) fn defaults_of(&self, namespace: Option<&str>, spec: &PodSpec) -> Vec<RequestOrigin> {
        let mut spec = spec.clone();
        fill_in_whole(&mut spec);
        let mut added: BTreeMap<ResourceName, Vec<RequestPart>> = BTreeMap::new();
        for ((_, limit_range), range) in self.in_namespace(namespace) {
            let mut defaults = Defaults::default();
            range.fill_in(&mut spec, &mut defaults);
            let mut amounts: BTreeMap<&str, u64> = BTreeMap::new();
            for (at, container) in spec.containers.iter().enumerate() {
                let Some(names) = defaults.requests.get(&format!("containers[{at}]")) else { continue };
                let requests = container.resources.as_ref().and_then(|stated| stated.requests.as_ref());
                for (name, text) in
                    requests.into_iter().flatten().filter(|(name, _)| names.contains_key(*name))
                {
                    let amount = quantity::amount(name, &text.0).unwrap_or(0);
                    let sum = amounts.entry(name).or_default();
                    *sum = sum.saturating_add(amount);
                }
            }
            let whole = spec.resources.as_ref().and_then(|whole| whole.requests.as_ref());
            for (name, amount) in amounts {
                if amount > 0 && !whole.is_some_and(|whole| whole.contains_key(name)) {
                    let part = RequestPart::Default { limit_range: limit_range.clone(), amount };
                    added.entry(ResourceName::new(name)).or_default().push(part);
                }
            }
        }
        added.into_iter().map(|(resource, parts)| RequestOrigin { resource, parts }).collect()
    }
}
