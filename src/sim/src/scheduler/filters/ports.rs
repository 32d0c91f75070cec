//! `NodePorts`: the host ports of the pod are free.

use poolwright_core::{Pod, rules};

use super::super::cluster::NodeInfo;
use super::super::reason::{Fits, Reason, Unfit};

pub(super) fn check(pod: &Pod, at: &NodeInfo) -> Fits {
    rules::check_ports(&pod.spec.host_ports, &at.ports).map_err(|_| Unfit::resolvable(Reason::Ports))
}
