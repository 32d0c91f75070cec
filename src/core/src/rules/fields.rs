//! `matchFields` of a node affinity: requirements on the node's name.
//!
//! Kubernetes knows one field, `metadata.name`. It is held beside the labels, under a key that no label can have, so that
//! terms are one list of requirements.

/// The key under which a requirement asks for a node's name. A colon is in no label.
pub const NODE_NAME_FIELD: &str = "field:metadata.name";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::NodeTerm;
    use crate::model::Operator;
    use crate::model::PoolName;
    use crate::model::Requirement;
    use crate::rules::affinity::check as check_affinity;
    use crate::rules::new_node::NewNodeLabels;

    fn names(operator: Operator) -> [NodeTerm; 1] {
        [NodeTerm { requirements: vec![Requirement { key: NODE_NAME_FIELD.into(), operator }] }]
    }

    #[test]
    fn a_node_is_chosen_by_its_name() {
        let node = BTreeMap::from([(NODE_NAME_FIELD.to_owned(), "n1".to_owned())]);
        let of = |name: &str| [name.to_owned()].into();
        assert!(check_affinity(Some(&names(Operator::In(of("n1")))), &node).is_ok());
        let rejection = check_affinity(Some(&names(Operator::In(of("n2")))), &node).expect_err("another");
        assert_eq!(
            rejection.to_string(),
            "requires `field:metadata.name In [n2]`, but the node has `field:metadata.name=n1`"
        );
        assert!(check_affinity(Some(&names(Operator::NotIn(of("n1")))), &node).is_err());
    }

    #[test]
    fn a_node_that_is_not_there_yet_has_no_name_to_ask_for() {
        let none = BTreeMap::new();
        let new = NewNodeLabels { offering: &none, template: &none, pool: &PoolName("gpu".into()) };
        let of = |name: &str| [name.to_owned()].into();
        assert!(check_affinity(Some(&names(Operator::In(of("n1")))), &new).is_err());
        assert!(check_affinity(Some(&names(Operator::NotIn(of("n1")))), &new).is_ok());
    }
}
