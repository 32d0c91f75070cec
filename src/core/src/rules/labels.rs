//! Labels of a node that is there, and of one that is not there yet.

use std::collections::BTreeMap;

/// Something that has labels.
pub trait Labels {
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
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
