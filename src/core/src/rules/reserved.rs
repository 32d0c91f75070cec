//! Reserved nodes: open only to the pods that are planned for them.

use poolwright_terms::keys::RESERVED_TAINT;

use crate::model::Node;

/// Returns whether the node is reserved.
pub(crate) fn is_reserved(node: &Node) -> bool {
    node.taints.iter().any(|taint| taint.key == RESERVED_TAINT)
}
