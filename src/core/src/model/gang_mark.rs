//! What is written on a pod about the others of its gang.

use serde::{Deserialize, Serialize};

use crate::model::group_role::GroupRole;

/// What is written on a pod about the others of its gang.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GangMark {
    /// The role of this one pod, if the others do nothing without it. Its `least` is 1.
    pub role: Option<GroupRole>,
    /// How many of the pods without such a role are enough to start; `None` if the pod does not say, which means all.
    pub enough: Option<u32>,
}
