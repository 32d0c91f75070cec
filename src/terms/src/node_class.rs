//! References to node classes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reference to a node class, which has the settings for launching nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassRef {
    /// API group of the node class: `poolwright.dev`.
    #[schemars(length(min = 1, max = 253))]
    pub group: String,
    /// Kind of the node class: `KwokNodeClass`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name of the node class.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl fmt::Display for NodeClassRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)
    }
}
