//! Where a pod must go.

use crate::model::Requirement;

/// What a pod requires of its node besides what it says itself, AND-ed.
pub(crate) type Pin = Vec<Requirement>;
