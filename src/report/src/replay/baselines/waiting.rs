//! The pods for which no node can be bought. If no node has room for one of them, none has room for another pod of its class. So each
//! class has its turn, however many of its pods wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Waiting pods.
#[derive(Default)]
pub(super) struct Waiting {
    /// The pods of each class, each with its number in the order in which all pods came. No list is empty.
    by_class: BTreeMap<usize, VecDeque<(u64, usize)>>,
    /// The number of pods that came so far.
    came: u64,
}

/// The classes whose turn is to come, each with the number of its first pod.
pub(super) struct Turns(BTreeSet<(u64, usize)>);

impl Turns {
    /// Returns the class whose first pod waits longest, and ends its turn.
    pub fn next_class(&mut self) -> Option<usize> {
        self.0.pop_first().map(|(_, class)| class)
    }
}

impl Waiting {
    /// Adds a pod of a class, behind all others.
    pub fn push(&mut self, class: usize, pod: usize) {
        self.came += 1;
        self.by_class.entry(class).or_default().push_back((self.came, pod));
    }

    pub fn is_empty(&self) -> bool {
        self.by_class.is_empty()
    }

    /// Gives each class a turn.
    pub fn turns(&self) -> Turns {
        let first = |(class, pods): (&usize, &VecDeque<(u64, usize)>)| Some((pods.front()?.0, *class));
        Turns(self.by_class.iter().filter_map(first).collect())
    }

    /// Takes the first pod of a class out. If more of them wait, the class has another turn.
    pub fn take(&mut self, class: usize, turns: &mut Turns) -> Option<usize> {
        let pods = self.by_class.get_mut(&class)?;
        let (_, pod) = pods.pop_front()?;
        if let Some((number, _)) = pods.front() {
            turns.0.insert((*number, class));
        } else {
            self.by_class.remove(&class);
        }
        Some(pod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_looked_at_once_however_many_of_its_pods_wait() {
        let mut waiting = Waiting::default();
        for pod in 0..1_000 {
            waiting.push(pod % 3, pod);
        }
        let mut turns = waiting.turns();
        let classes: Vec<usize> = std::iter::from_fn(|| turns.next_class()).collect();
        assert_eq!(classes, [0, 1, 2]);
    }

    #[test]
    fn pods_are_taken_in_the_order_in_which_they_came() {
        let mut waiting = Waiting::default();
        for (class, pod) in [(7, 0), (3, 1), (7, 2), (5, 3), (3, 4)] {
            waiting.push(class, pod);
        }
        let mut turns = waiting.turns();
        let mut taken = Vec::new();
        while let Some(class) = turns.next_class() {
            // Nothing has room for pods of class 3.
            if class != 3 {
                taken.extend(waiting.take(class, &mut turns));
            }
        }
        assert_eq!(taken, [0, 2, 3]);
        waiting.push(7, 5);
        let mut turns = waiting.turns();
        let rest = std::iter::from_fn(|| turns.next_class().map(|class| waiting.take(class, &mut turns)));
        assert_eq!(rest.flatten().collect::<Vec<_>>(), [1, 4, 5]);
        assert!(waiting.is_empty());
    }
}
