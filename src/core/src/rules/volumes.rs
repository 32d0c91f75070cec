//! Volume topology: every volume of the pod must be usable on the node (the kube-scheduler's `VolumeBinding` and `VolumeZone`).

use crate::model::NodeSelectorTerm;
use crate::rules::affinity::check as check_affinity;
use crate::rules::labels::Labels;
use crate::rules::rejection::Rejection;

/// Checks whether every volume can be used on a node with these labels. Each volume is a list of OR-ed terms.
pub fn check(volumes: &[Vec<NodeSelectorTerm>], labels: &impl Labels) -> Result<(), Rejection> {
    for terms in volumes {
        check_affinity(Some(terms), labels).map_err(|rejection| match rejection {
            Rejection::Affinity { requirement, has } => Rejection::Volume { requirement, has },
            other => other,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use poolwright_terms::labels::ZONE;

    use super::*;
    use crate::model::Operator;
    use crate::model::PoolName;
    use crate::model::Requirement;
    use crate::rules::csi_labels::add_repeated;
    use crate::rules::new_node::NewNodeLabels;

    fn only(key: &str, value: &str) -> Vec<NodeSelectorTerm> {
        let operator = Operator::In([value.to_owned()].into());
        vec![NodeSelectorTerm { requirements: vec![Requirement { key: key.into(), operator }] }]
    }

    #[test]
    fn every_volume_must_be_usable_and_the_rejection_says_where_one_is() {
        let node = BTreeMap::from([(ZONE.to_owned(), "a".to_owned())]);
        assert!(check(&[], &node).is_ok());
        assert!(check(&[only(ZONE, "a")], &node).is_ok());
        let rejection = check(&[only(ZONE, "a"), only(ZONE, "b")], &node).expect_err("one is elsewhere");
        assert_eq!(
            rejection.to_string(),
            "has a volume that needs `topology.kubernetes.io/zone In [b]`, but the node has `topology.kubernetes.io/zone=a`"
        );
    }

    #[test]
    fn a_new_node_will_have_the_zone_label_of_its_csi_driver_and_a_node_that_is_there_has_what_it_has() {
        let offering = BTreeMap::from([(ZONE.to_owned(), "a".to_owned())]);
        let none = BTreeMap::new();
        let new = NewNodeLabels { offering: &offering, template: &none, pool: &PoolName("gpu".into()) };
        let ebs = only("topology.ebs.csi.aws.com/zone", "a");
        assert!(check(std::slice::from_ref(&ebs), &new).is_ok());
        assert!(check(std::slice::from_ref(&ebs), &offering).is_err());
        let mut ours = offering.clone();
        add_repeated(&mut ours);
        assert!(check(&[ebs], &ours).is_ok());
    }
}
