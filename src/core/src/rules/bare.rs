//! Pods without a controller. Nothing creates them again when they end.

use crate::model::{Pod, PodRole};
use crate::rules::format::list;

/// The most pods that are named.
const NAMED: usize = 4;

/// Names those of these workload pods that have no controller, with their fate, such as `lost`; `None` if all have one.
pub(crate) fn without_controller<'a>(pods: impl IntoIterator<Item = &'a Pod>, fate: &str) -> Option<String> {
    let bare = pods.into_iter().filter(|pod| pod.role == PodRole::Workload && pod.owner.is_none());
    let mut names: Vec<String> = bare.map(|pod| pod.key.to_string()).collect();
    names.sort();
    match names.as_slice() {
        [] => None,
        [name] => Some(format!("pod {name} has no controller and is {fate}")),
        all => Some(format!("{} pods have no controller and are {fate}: {}", all.len(), list(all, NAMED))),
    }
}
