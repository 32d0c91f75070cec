//! Checks whether a requirement on a label holds, and whether several requirements contradict each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::model::{Operator, Requirement};
use crate::rules::labels::Labels;

/// Returns whether the labels satisfy the requirement. An absent label satisfies only `NotIn` and `DoesNotExist`.
pub fn matches(requirement: &Requirement, labels: &impl Labels) -> bool {
    let value = labels.label(&requirement.key);
    match (&requirement.operator, value) {
        (Operator::NotIn(_) | Operator::DoesNotExist, None) => true,
        (_, None) => false,
        (operator, Some(value)) => allows(operator, value),
    }
}

/// Returns whether a label value satisfies an operator.
fn allows(operator: &Operator, value: &str) -> bool {
    let number = || value.parse::<i64>().ok();
    match operator {
        Operator::In(values) => values.contains(value),
        Operator::NotIn(values) => !values.contains(value),
        Operator::Exists => true,
        Operator::DoesNotExist => false,
        Operator::Gt(bound) => number().is_some_and(|number| number > *bound),
        Operator::Lt(bound) => number().is_some_and(|number| number < *bound),
        Operator::Gte(bound) => number().is_some_and(|number| number >= *bound),
        Operator::Lte(bound) => number().is_some_and(|number| number <= *bound),
    }
}

/// Describes the contradiction if no label value satisfies all requirements; `None` if some value does.
pub fn contradiction(requirements: &[Requirement]) -> Option<String> {
    let mut by_key: BTreeMap<&str, Vec<&Requirement>> = BTreeMap::new();
    for requirement in requirements {
        by_key.entry(&requirement.key).or_default().push(requirement);
    }
    by_key.into_iter().find(|(_, group)| !satisfiable(group)).map(|(key, group)| {
        let list: Vec<String> =
            group.iter().map(|requirement| format!("`{}`", requirement.operator)).collect();
        let list = list.join(" and ");
        format!("no value of label `{key}` satisfies {list}; drop or widen one of these requirements")
    })
}

fn satisfiable(group: &[&Requirement]) -> bool {
    let operators = || group.iter().map(|requirement| &requirement.operator);
    if operators().any(|operator| *operator == Operator::DoesNotExist) {
        return operators().all(|operator| matches!(operator, Operator::DoesNotExist | Operator::NotIn(_)));
    }
    if operators().all(|operator| matches!(operator, Operator::NotIn(_) | Operator::Exists)) {
        return true;
    }
    let allowed = |value: &str| operators().all(|operator| allows(operator, value));
    let listed = operators().find_map(|operator| match operator {
        Operator::In(values) => Some(values),
        _ => None,
    });
    if let Some(values) = listed {
        return values.iter().any(|value| allowed(value));
    }
    // For integers, the operators leave an interval without the excluded values.
    let (mut low, mut high) = (i64::MIN, i64::MAX);
    let mut excluded: BTreeSet<i64> = BTreeSet::new();
    for operator in operators() {
        match operator {
            Operator::Gt(bound) => match bound.checked_add(1) {
                Some(next) => low = low.max(next),
                None => return false,
            },
            Operator::Lt(bound) => match bound.checked_sub(1) {
                Some(previous) => high = high.min(previous),
                None => return false,
            },
            Operator::Gte(bound) => low = low.max(*bound),
            Operator::Lte(bound) => high = high.min(*bound),
            Operator::NotIn(values) => {
                excluded.extend(values.iter().filter_map(|value| value.parse::<i64>().ok()));
            }
            Operator::In(_) | Operator::Exists | Operator::DoesNotExist => {}
        }
    }
    if low > high {
        return false;
    }
    let free = i128::from(high) - i128::from(low) + 1 - excluded.range(low..=high).count() as i128;
    free > 0
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &BTreeSet<String>| {
            let shown: Vec<&str> = values.iter().take(5).map(String::as_str).collect();
            let more = if values.len() > 5 { ", ..." } else { "" };
            format!("[{}{more}]", shown.join(", "))
        };
        match self {
            Self::In(values) => write!(f, "In {}", list(values)),
            Self::NotIn(values) => write!(f, "NotIn {}", list(values)),
            Self::Exists => f.write_str("Exists"),
            Self::DoesNotExist => f.write_str("DoesNotExist"),
            Self::Gt(bound) => write!(f, "Gt {bound}"),
            Self::Lt(bound) => write!(f, "Lt {bound}"),
            Self::Gte(bound) => write!(f, "Gte {bound}"),
            Self::Lte(bound) => write!(f, "Lte {bound}"),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.operator)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(values: &[&str]) -> BTreeSet<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    fn holds(operator: Operator, value: Option<&str>) -> bool {
        let labels: BTreeMap<String, String> =
            value.map(|value| ("key".to_owned(), value.to_owned())).into_iter().collect();
        matches(&Requirement { key: "key".into(), operator }, &labels)
    }

    #[test]
    fn an_absent_label_satisfies_not_in_and_does_not_exist_alone() {
        assert!(holds(Operator::NotIn(values(&["a"])), None) && holds(Operator::DoesNotExist, None));
        assert!(!holds(Operator::In(values(&["a"])), None) && !holds(Operator::Exists, None));
        assert!(!holds(Operator::Gt(0), None) && !holds(Operator::Lte(0), None));
    }

    #[test]
    fn comparisons_need_an_integer() {
        assert!(holds(Operator::Gt(3), Some("4")) && !holds(Operator::Gt(3), Some("3")));
        assert!(holds(Operator::Gte(3), Some("3")) && holds(Operator::Lt(3), Some("-1")));
        assert!(!holds(Operator::Lte(3), Some("two")));
    }

    #[test]
    fn a_contradiction_names_the_key_and_what_contradicts() {
        let requirement = |operator| Requirement { key: "zone".into(), operator };
        let both = [requirement(Operator::In(values(&["a"]))), requirement(Operator::NotIn(values(&["a"])))];
        assert_eq!(
            contradiction(&both).as_deref(),
            Some(
                "no value of label `zone` satisfies `In [a]` and `NotIn [a]`; drop or widen one of these requirements"
            )
        );
        assert!(contradiction(&[requirement(Operator::Gt(3)), requirement(Operator::Lt(4))]).is_some());
        assert!(
            contradiction(&[requirement(Operator::Exists), requirement(Operator::DoesNotExist)]).is_some()
        );
        assert_eq!(contradiction(&[requirement(Operator::Gt(3)), requirement(Operator::Lte(4))]), None);
    }

    fn operator() -> impl Strategy<Value = Operator> {
        let value = prop_oneof![(0i64..5).prop_map(|number| number.to_string()), Just("word".to_owned())];
        let list = proptest::collection::btree_set(value, 1..4);
        prop_oneof![
            list.clone().prop_map(Operator::In),
            list.prop_map(Operator::NotIn),
            Just(Operator::Exists),
            Just(Operator::DoesNotExist),
            (-1i64..6).prop_map(Operator::Gt),
            (-1i64..6).prop_map(Operator::Lt),
            (-1i64..6).prop_map(Operator::Gte),
            (-1i64..6).prop_map(Operator::Lte),
        ]
    }

    proptest! {
        #[test]
        fn requirements_contradict_exactly_when_no_value_satisfies_them(
            operators in proptest::collection::vec(operator(), 0..5),
        ) {
            let requirements: Vec<Requirement> = operators
                .into_iter()
                .map(|operator| Requirement { key: "key".into(), operator })
                .collect();
            // Every number that the operators can distinguish, a word that they contain, another word, and an absent label.
            let mut candidates: Vec<Option<String>> = (-3i64..9).map(|number| Some(number.to_string())).collect();
            candidates.extend([Some("word".to_owned()), Some("other".to_owned()), None]);
            let possible = candidates.into_iter().any(|value| {
                let labels: BTreeMap<String, String> =
                    value.map(|value| ("key".to_owned(), value)).into_iter().collect();
                requirements.iter().all(|requirement| matches(requirement, &labels))
            });
            prop_assert_eq!(contradiction(&requirements).is_none(), possible);
        }
    }
}
