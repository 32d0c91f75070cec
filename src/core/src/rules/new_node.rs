//! Labels of new nodes.

use crate::model::PoolName;
use crate::rules::csi_labels::repeats;
use crate::rules::fields::NODE_NAME_FIELD;
use crate::rules::labels::Labels;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels::HOSTNAME;
use std::collections::BTreeMap;

/// The host name of a new node. No label value equals it.
pub(crate) const UNNAMED: &str = "(a new node)";

/// The labels of a new node of an offering for a pool.
#[derive(Clone, Copy, Debug)]
pub struct NewNodeLabels<'a> {
    /// Labels from the offering.
    pub offering: &'a BTreeMap<String, String>,
    /// Labels from the pool's template.
    pub template: &'a BTreeMap<String, String>,
    /// The pool.
    pub pool: &'a PoolName,
}

impl Labels for NewNodeLabels<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        match key {
            NODEPOOL_LABEL => Some(&self.pool.0),
            HOSTNAME | NODE_NAME_FIELD => Some(UNNAMED),
            _ => {
                let own = self.offering.get(key).or_else(|| self.template.get(key));
                own.or_else(|| self.offering.get(repeats(key)?)).map(String::as_str)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Operator;
    use crate::model::Requirement;
    use crate::rules::requirement::matches;

    #[test]
    fn a_new_node_has_a_host_name_but_none_that_anybody_can_ask_for() {
        let none = BTreeMap::new();
        let labels = NewNodeLabels { offering: &none, template: &none, pool: &PoolName("gpu".into()) };
        let host = |operator| matches(&Requirement { key: HOSTNAME.into(), operator }, &labels);
        assert!(!host(Operator::In(["node-1".into()].into())));
        assert!(host(Operator::NotIn(["node-1".into()].into())));
        assert!(host(Operator::Exists) && !host(Operator::DoesNotExist));
    }
}
