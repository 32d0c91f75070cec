//! Node affinity that the scheduler's configuration adds to every pod (`NodeAffinityArgs.addedAffinity`).

use crate::model::EnforcedAffinity;
use crate::rules::affinity::check as check_affinity;
use crate::rules::labels::Labels;
use crate::rules::rejection::Rejection;

/// Checks whether one of the added terms matches.
pub fn check(enforced: Option<&EnforcedAffinity>, labels: &impl Labels) -> Result<(), Rejection> {
    let Some(EnforcedAffinity { source, terms }) = enforced else { return Ok(()) };
    check_affinity(Some(terms), labels).map_err(|rejection| match rejection {
        Rejection::Affinity { requirement, has } => {
            Rejection::Enforced { requirement, has, source: source.clone() }
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::NodeSelectorTerm;
    use crate::model::Operator;
    use crate::model::Requirement;

    #[test]
    fn the_rejection_says_that_the_scheduler_asks_for_it_and_where_that_is_written() {
        let operator = Operator::In(["ml".to_owned()].into());
        let terms =
            vec![NodeSelectorTerm { requirements: vec![Requirement { key: "team".into(), operator }] }];
        let enforced = EnforcedAffinity { source: "scheduler.yaml".into(), terms };
        let node = BTreeMap::from([("team".to_owned(), "web".to_owned())]);
        assert!(check(None, &node).is_ok());
        let rejection = check(Some(&enforced), &node).expect_err("another team's");
        assert_eq!(
            rejection.to_string(),
            "may only use nodes with `team In [ml]` (the scheduler's addedAffinity, from scheduler.yaml), but the node has `team=web`"
        );
        assert!(check(Some(&enforced), &BTreeMap::from([("team".to_owned(), "ml".to_owned())])).is_ok());
    }
}
