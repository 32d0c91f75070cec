//! Groups pods by namespace and labels, so that each rule is evaluated once for all pods that look the same to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_core::{Pod, Shared};

/// The looks of all pods, numbered. A look is a namespace and a set of labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    numbers: BTreeMap<(String, Shared<BTreeMap<String, String>>), usize>,
    /// A pod of each look, and the number of such pods. Unused numbers are reused.
    all: Vec<(Arc<Pod>, usize)>,
    unused: Vec<usize>,
}

impl Looks {
    /// Returns the number of the pod's look and counts the pod.
    pub fn take(&mut self, pod: &Arc<Pod>) -> usize {
        let look = (pod.key.namespace().to_owned(), pod.labels.clone());
        if let Some(&number) = self.numbers.get(&look) {
            self.all[number].1 += 1;
            return number;
        }
        let number = self.unused.pop().unwrap_or(self.all.len());
        if number == self.all.len() {
            self.all.push((pod.clone(), 1));
        } else {
            self.all[number] = (pod.clone(), 1);
        }
        self.numbers.insert(look, number);
        number
    }

    /// Removes one pod from a look.
    pub fn drop(&mut self, number: usize) {
        let (pod, count) = &mut self.all[number];
        *count -= 1;
        if *count == 0 {
            self.numbers.remove(&(pod.key.namespace().to_owned(), pod.labels.clone()));
            self.unused.push(number);
        }
    }
}

/// Evaluates a rule once per look.
pub(super) struct Asking<'a, F> {
    looks: &'a Looks,
    answers: Vec<Option<bool>>,
    rule: F,
}

impl<'a, F: Fn(&'a Pod) -> bool> Asking<'a, F> {
    /// Makes an evaluation of a rule. The rule may read only namespace and labels.
    pub fn new(looks: &'a Looks, rule: F) -> Self {
        Self { looks, answers: vec![None; looks.all.len()], rule }
    }

    /// Returns whether the rule selects pods of this look.
    pub fn holds(&mut self, look: usize) -> bool {
        *self.answers[look].get_or_insert_with(|| (self.rule)(&self.looks.all[look].0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::pod;
    use super::*;

    #[test]
    fn pods_that_are_alike_are_asked_about_once_and_numbers_are_used_again() {
        let mut looks = Looks::default();
        let mut take = |app: &str| looks.take(&Arc::new(pod("p").app(app).build()));
        let numbers = [take("web"), take("db"), take("web")];
        assert_eq!(numbers, [0, 1, 0]);
        let attempt = std::cell::Cell::new(0);
        let mut asking = Asking::new(&looks, |pod: &Pod| {
            attempt.set(attempt.get() + 1);
            pod.labels["app"] == "web"
        });
        assert_eq!(numbers.map(|look| asking.holds(look)), [true, false, true]);
        assert_eq!(attempt.get(), 2);
        looks.drop(0);
        looks.drop(1);
        let mut take = |app: &str| looks.take(&Arc::new(pod("p").app(app).build()));
        assert_eq!([take("cache"), take("web"), take("db")], [1, 0, 2]);
    }
}
