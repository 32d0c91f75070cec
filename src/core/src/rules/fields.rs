//! `matchFields` of a node affinity: requirements on the node's name.
//!
//! Kubernetes knows one field, `metadata.name`. It is held beside the labels, under a key that no label can have, so that
//! terms are one list of requirements.

/// The key under which a requirement asks for a node's name. A colon is in no label.
pub const NODE_NAME_FIELD: &str = "field:metadata.name";
