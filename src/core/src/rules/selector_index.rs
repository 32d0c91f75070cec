//! An index of label selectors, to find those that may select a pod without a look at each. A tenant can write thousands.

use std::collections::BTreeMap;

use crate::model::{Operator, Requirement};

/// The most values of a requirement under which a selector is filed.
const MOST_VALUES: usize = 8;

/// Label selectors by number. Each is filed under the values of one label that it requires.
#[derive(Clone, Debug, Default)]
pub(crate) struct SelectorIndex<'a> {
    by_label: BTreeMap<&'a str, BTreeMap<&'a str, Vec<usize>>>,
    /// The selectors that require no value of a label.
    others: Vec<usize>,
}

impl<'a> SelectorIndex<'a> {
    /// Creates the index. `None` selects no pod, and an empty list every pod.
    pub fn new(selectors: impl Iterator<Item = Option<&'a [Requirement]>>) -> Self {
        let mut index = Self::default();
        for (at, selector) in selectors.enumerate() {
            let Some(selector) = selector else { continue };
            let values = selector.iter().filter_map(|one| match &one.operator {
                Operator::In(values) if values.len() <= MOST_VALUES => Some((one.key.as_str(), values)),
                _ => None,
            });
            match values.min_by_key(|(_, values)| values.len()) {
                Some((key, values)) => {
                    let of_key = index.by_label.entry(key).or_default();
                    for value in values {
                        of_key.entry(value).or_default().push(at);
                    }
                }
                None => index.others.push(at),
            }
        }
        index
    }

    /// Returns the selectors that may select a pod with these labels, ascending. All others do not select it.
    pub fn candidates(&self, labels: &BTreeMap<String, String>) -> Vec<usize> {
        let of = |(key, value): (&String, &String)| self.by_label.get(key.as_str())?.get(value.as_str());
        let mut all: Vec<usize> =
            labels.iter().filter_map(of).flatten().chain(&self.others).copied().collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::rules::generated::requirements;
    use crate::rules::matches;

    proptest! {
        #[test]
        fn every_selector_that_selects_a_pod_is_a_candidate_and_comes_once(
            selectors in vec(proptest::option::of(requirements()), 0..6),
            labels in btree_map("[abc]", "[xyz]", 0..3),
        ) {
            let index = SelectorIndex::new(selectors.iter().map(|one| one.as_deref()));
            let candidates = index.candidates(&labels);
            prop_assert!(candidates.is_sorted_by(|a, b| a < b), "{candidates:?}");
            for (at, selector) in selectors.iter().enumerate() {
                let selects = |all: &Vec<Requirement>| all.iter().all(|one| matches(one, &labels));
                if selector.as_ref().is_some_and(selects) {
                    prop_assert!(candidates.contains(&at));
                }
            }
        }
    }
}
