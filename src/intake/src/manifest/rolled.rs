//! How far the rollout of a Deployment goes on after its controller has scaled its ReplicaSets (`rolloutRolling` in Kubernetes).

/// A ReplicaSet during a rollout.
pub(super) struct Rolling {
    pub size: u64,
    /// How many of its pods are available.
    pub available: u64,
}

impl Rolling {
    fn ready(&self) -> u64 {
        self.size.min(self.available)
    }

    fn unavailable(&self) -> u64 {
        self.size.saturating_sub(self.available)
    }
}

/// What bounds a rollout.
pub(super) struct Bounds {
    /// The replicas of the Deployment.
    pub wanted: u64,
    /// How many more pods than these there may be.
    pub surge: u64,
    /// How many of these may be unavailable.
    pub unavailable: u64,
}

/// Scales the ReplicaSet with the new template up, and the old ones down, until the controller waits for pods to become available.
/// `old` begins with the oldest.
pub(super) fn rolled(new: &mut Rolling, old: &mut [Rolling], bounds: &Bounds) {
    let most = bounds.wanted.saturating_add(bounds.surge);
    let least = bounds.wanted.saturating_sub(bounds.unavailable);
    loop {
        let all = old.iter().map(|set| set.size).fold(new.size, u64::saturating_add);
        let added = most.saturating_sub(all).min(bounds.wanted.saturating_sub(new.size));
        new.size += added;
        let mut spare = all.saturating_add(added).saturating_sub(least).saturating_sub(new.unavailable());
        let may_go = spare > 0;
        let ready = old.iter().map(Rolling::ready).fold(new.ready(), u64::saturating_add);
        let mut deleted = 0;
        // Pods that are not available go first.
        for set in &mut *old {
            let gone = set.unavailable().min(spare);
            set.size -= gone;
            spare -= gone;
            deleted += gone;
        }
        let mut spare = if may_go { ready.saturating_sub(least) } else { 0 };
        for set in &mut *old {
            let gone = set.size.min(spare);
            set.size -= gone;
            spare -= gone;
            deleted += gone;
        }
        if added == 0 && deleted == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sizes of the old sets and of the new one after a rollout to 15 pods has gone on.
    fn sizes(old: &[(u64, u64)], new: (u64, u64), surge: u64, unavailable: u64) -> Vec<u64> {
        let of = |&(size, available): &(u64, u64)| Rolling { size, available };
        let (mut old, mut new) = (old.iter().map(of).collect::<Vec<_>>(), of(&new));
        rolled(&mut new, &mut old, &Bounds { wanted: 15, surge, unavailable });
        old.iter().map(|set| set.size).chain([new.size]).collect()
    }

    #[test]
    fn old_pods_that_are_not_available_make_room_for_new_ones() {
        assert_eq!(sizes(&[(11, 8)], (7, 5), 3, 2), [8, 10]);
        assert_eq!(sizes(&[(11, 8)], (7, 5), 3, 0), [10, 8], "fewer may be unavailable");
    }

    #[test]
    fn available_pods_of_the_oldest_set_go_as_far_as_enough_stay() {
        assert_eq!(sizes(&[(4, 4), (6, 6)], (8, 8), 3, 2), [0, 5, 13]);
        assert_eq!(sizes(&[(3, 3)], (15, 15), 3, 2), [0, 15]);
    }
}
