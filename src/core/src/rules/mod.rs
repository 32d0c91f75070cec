//! Scheduling rules. They decide whether a pod may run on a node, as the kube-scheduler does. Each rule has its own file and
//! explains its rejections.

pub(crate) mod added_affinity;
pub(crate) mod affinity;
pub(crate) mod allocatable_tolerance;
pub(crate) mod anti_affinity;
pub(crate) mod bare;
pub(crate) mod budget_index;
pub mod budgets;
pub(crate) mod claim_node;
pub(crate) mod colocation;
pub(crate) mod csi_labels;
pub(crate) mod discovery;
pub mod eviction;
pub(crate) mod fields;
pub(crate) mod fits;
pub(crate) mod format;
#[cfg(test)]
pub(crate) mod generated;
pub(crate) mod gpus;
pub(crate) mod held_gpus;
pub(crate) mod identity;
pub(crate) mod labels;
pub(crate) mod new_node;
pub(crate) mod pin;
pub(crate) mod ports;
pub(crate) mod rejection;
pub mod requests;
pub(crate) mod requirement;
pub(crate) mod resources;
pub(crate) mod selector;
pub(crate) mod selector_index;
pub(crate) mod spread;
pub(crate) mod taints;
pub(crate) mod volumes;

pub use crate::rules::added_affinity::check as check_enforced;
pub use crate::rules::affinity::check as check_affinity;
pub use crate::rules::anti_affinity::check as check_anti_affinity;
pub use crate::rules::csi_labels::{add_repeated, is_unattached, repeats};
pub use crate::rules::discovery::{Discovered, without_unforeseen};
pub use crate::rules::fields::NODE_NAME_FIELD;
pub use crate::rules::fits::{admits, check_labels, check_own_labels, daemonset_lands, may_share};
pub use crate::rules::held_gpus::held_gpus;
pub use crate::rules::identity::{Identity, selects};
pub use crate::rules::labels::Labels;
pub use crate::rules::new_node::NewNodeLabels;
pub use crate::rules::ports::check as check_ports;
pub use crate::rules::rejection::Rejection;
pub use crate::rules::requirement::{contradiction, matches};
pub use crate::rules::resources::check as check_resources;
pub use crate::rules::selector::check as check_selector;
pub use crate::rules::spread::constraint::{counts, is_host};
pub use crate::rules::taints::{
    check as check_taints, check_daemonset as check_daemonset_taints, is_of_agent, tolerates, untolerated,
};
pub use crate::rules::volumes::check as check_volumes;
