//! Pods that are set aside because a plan with them fails: it panics, or the independent check refuses it. Both are bugs, and
//! without this, one pod would stop all purchases.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use poolwright_core::{ObjectKey, PodKey, PodPhase, Snapshot, Uid};

/// How long a pod is set aside. Then it is tried again, because the cluster has changed.
pub const SET_ASIDE: SignedDuration = SignedDuration::from_hours(1);
/// The most pods of a unit that are told.
const TOLD: usize = 10;

/// The pods that plans do not see.
#[derive(Debug, Default)]
pub struct Quarantine(BTreeMap<PodKey, Entry>);

#[derive(Debug)]
struct Entry {
    uid: Uid,
    /// The end of its time.
    until: Timestamp,
    /// What the pod is told, if it is.
    message: Option<String>,
}

impl Quarantine {
    /// Sets pods of the snapshot aside. The first of them are told why.
    pub fn add(&mut self, pods: &[PodKey], snapshot: &Snapshot, message: &str, now: Timestamp) {
        let until = now.checked_add(SET_ASIDE).unwrap_or(Timestamp::MAX);
        for (at, key) in pods.iter().enumerate() {
            if let Some(pod) = snapshot.pods.get(key) {
                let message = (at < TOLD).then(|| message.to_owned());
                self.0.insert(key.clone(), Entry { uid: pod.uid.clone(), until, message });
            }
        }
    }

    /// Removes the pods that are set aside from a snapshot, and forgets those whose time is over or that are gone.
    pub fn apply(&mut self, snapshot: &mut Snapshot, now: Timestamp) {
        self.0.retain(|key, entry| {
            entry.until > now && snapshot.pods.get(key).is_some_and(|pod| pod.uid == entry.uid)
        });
        for key in self.0.keys() {
            snapshot.pods.remove(key);
        }
    }

    /// Returns the pods that are told why they are set aside, each with its message.
    pub fn told(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.0.iter().filter_map(|(key, entry)| Some((key.existing()?, entry.message.as_deref()?)))
    }

    /// Returns how many pods are set aside.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The search for pods with which a plan fails. Pods of one controller are one unit.
///
/// It finds the shortest list of units, in their order, with which a plan fails, by halving. Without the last unit of that list,
/// the plan for the others succeeds. This also holds if several units make it fail only together.
pub struct Search {
    units: Vec<Vec<PodKey>>,
    /// A plan with this many units succeeds; `None` if not even that without any is known to.
    fine: Option<usize>,
    /// A plan with this many units fails.
    fails: usize,
}

impl Search {
    /// Starts a search among the waiting pods of a snapshot with which a plan failed.
    pub fn among(snapshot: &Snapshot) -> Self {
        let waits = |phase: &PodPhase| matches!(phase, PodPhase::Waiting | PodPhase::Unschedulable { .. });
        let mut units: BTreeMap<String, Vec<PodKey>> = BTreeMap::new();
        for pod in snapshot.pods.unbound().filter(|pod| waits(&pod.phase)) {
            let unit = pod.owner.as_ref().map_or_else(|| pod.key.to_string(), |owner| owner.0.clone());
            units.entry(unit).or_default().push(pod.key.clone());
        }
        let units: Vec<_> = units.into_values().collect();
        Self { fine: None, fails: units.len(), units }
    }

    /// Returns how many units the next plan to try has; `None` if the search is over.
    pub fn next(&self) -> Option<usize> {
        match self.fine {
            None => (self.fails > 0).then_some(0),
            Some(fine) => (fine + 1 < self.fails).then(|| fine.midpoint(self.fails)),
        }
    }

    /// Returns the pods that a plan with this many units leaves out.
    pub fn without(&self, units: usize) -> impl Iterator<Item = &PodKey> {
        self.units[units..].iter().flatten()
    }

    /// Notes the result of a plan with this many units.
    pub fn tell(&mut self, units: usize, fails: bool) {
        if fails {
            self.fails = units;
        } else {
            self.fine = Some(units);
        }
    }

    /// Returns the pods without which the plan succeeds; `None` if it fails without any waiting pod, too.
    pub fn found(&self) -> Option<&[PodKey]> {
        Some(&self.units[self.fails.checked_sub(1)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(count: usize) -> Vec<Vec<PodKey>> {
        (0..count).map(|at| vec![PodKey::new("default", format!("p{at}"))]).collect()
    }

    /// Searches with plans that fail for these numbers of units. Returns the unit found, and how many plans it took.
    fn search(count: usize, fails: impl Fn(usize) -> bool) -> (Option<String>, usize) {
        let mut search = Search { units: pods(count), fine: None, fails: count };
        let mut tried = 0;
        while let Some(units) = search.next() {
            assert_eq!(search.without(units).count(), count - units);
            search.tell(units, fails(units));
            tried += 1;
        }
        (search.found().map(|pods| pods[0].name().into_owned()), tried)
    }

    #[test]
    fn the_pod_that_makes_plans_fail_is_found_by_halving() {
        for bad in 0..100 {
            let (found, tried) = search(100, |units| units > bad);
            assert_eq!(found, Some(format!("p{bad}")));
            assert!(tried <= 8, "{tried} plans");
        }
        assert_eq!(search(1, |units| units > 0), (Some("p0".into()), 1));
    }

    #[test]
    fn of_pods_that_fail_only_together_the_last_one_is_set_aside() {
        assert_eq!(search(10, |units| units > 7).0, Some("p7".into()), "p2 and p7 together");
    }

    #[test]
    fn nothing_is_set_aside_where_plans_fail_without_any_pod() {
        assert_eq!(search(10, |_| true).0, None);
        assert_eq!(search(0, |_| true), (None, 0));
    }
}
