//! `NodeResourcesFit`: the node has room for the requests of the pod, and for one more pod.

use poolwright_catalog::ResourceName;
use poolwright_core::Pod;

use super::super::cluster::NodeInfo;
use super::super::reason::{Fits, Reason, Unfit};

pub(super) fn check(pod: &Pod, at: &NodeInfo) -> Fits {
    let room = &at.node.allocatable;
    let (mut reasons, mut resolvable) = (Vec::new(), true);
    if at.pods.len() as u64 + 1 > room.get(ResourceName::PODS) {
        reasons.push(Reason::TooManyPods);
    }
    for (name, wanted) in pod.spec.requests.iter().filter(|(name, _)| name.as_str() != ResourceName::PODS) {
        let all = room.get(name.as_str());
        if wanted > all.saturating_sub(at.used.get(name.as_str())) {
            reasons.push(Reason::Insufficient(name.clone()));
            resolvable &= wanted <= all;
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(Unfit { reasons, resolvable }) }
}
