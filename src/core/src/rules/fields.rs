//! `matchFields` of a node affinity: requirements on the node's name.
//!
//! Kubernetes supports one field, `metadata.name`. It is treated as a label, with a key that no real label can have, so that a
//! term is a single list of requirements.

/// The key of a requirement on a node's name. No label key contains a colon.
pub const NODE_NAME_FIELD: &str = "field:metadata.name";
