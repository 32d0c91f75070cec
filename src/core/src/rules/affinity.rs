//! Required node affinity: all requirements of at least one term must hold.

use crate::model::NodeSelectorTerm;
use crate::rules::labels::Labels;
use crate::rules::rejection::Rejection;
use crate::rules::requirement::matches;

/// Checks whether one of the terms matches. `None` matches every node. An empty list of terms and a term without requirements
/// match no node.
pub fn check(terms: Option<&[NodeSelectorTerm]>, labels: &impl Labels) -> Result<(), Rejection> {
    let Some(terms) = terms else { return Ok(()) };
    let mut furthest = None;
    for term in terms {
        let met = term.requirements.iter().take_while(|requirement| matches(requirement, labels)).count();
        match term.requirements.get(met) {
            None if met > 0 => return Ok(()),
            Some(failed) if furthest.is_none_or(|(most, _)| met > most) => furthest = Some((met, failed)),
            _ => {}
        }
    }
    let requirement = furthest.map(|(_, requirement)| requirement.clone());
    let has = requirement.as_ref().and_then(|requirement| labels.label(&requirement.key)).map(str::to_owned);
    Err(Rejection::Affinity { requirement, has })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::Operator;
    use crate::model::Requirement;

    fn requirement(key: &str, value: &str) -> Requirement {
        Requirement { key: key.into(), operator: Operator::In([value.to_owned()].into()) }
    }

    #[test]
    fn terms_are_alternatives_and_an_empty_one_matches_nothing() {
        let labels = BTreeMap::from([("gpu".to_owned(), "l4".to_owned())]);
        let term = |requirements| NodeSelectorTerm { requirements };
        assert!(check(None, &labels).is_ok());
        assert!(check(Some(&[]), &labels).is_err());
        assert!(check(Some(&[term(vec![])]), &labels).is_err());
        let both = [term(vec![requirement("gpu", "h100")]), term(vec![requirement("gpu", "l4")])];
        assert!(check(Some(&both), &labels).is_ok());
    }

    #[test]
    fn the_rejection_names_the_requirement_of_the_term_that_got_furthest() {
        let labels = BTreeMap::from([("gpu".to_owned(), "l4".to_owned())]);
        let terms = [
            NodeSelectorTerm { requirements: vec![requirement("gpu", "h100")] },
            NodeSelectorTerm { requirements: vec![requirement("gpu", "l4"), requirement("zone", "a")] },
        ];
        let rejection = check(Some(&terms), &labels).expect_err("no term matches");
        assert_eq!(rejection.to_string(), "requires `zone In [a]`, but the node has no label `zone`");
    }
}
