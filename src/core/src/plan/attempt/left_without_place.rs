//! Why an attempt leaves pods without a place or a node: what this attempt and earlier ones found.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::PodKey;
use crate::model::plan::UnplacedReason;
use crate::plan::context::PlanContext;
use crate::plan::left_by::LeftBy;
use crate::plan::place::topology;
use crate::plan::unplaced::left_over::LeftPods;
use crate::rules::pin::Pin;

/// A pod without a place, and the reason.
pub(super) type WithoutPlace = (PodKey, UnplacedReason, LeftBy);

impl PlanContext<'_> {
    /// Returns the pods for which rules about other pods left no place, with the reasons.
    pub(super) fn without_place(
        &self,
        assigned: &topology::Assigned<'_>,
        lessons: &topology::Lessons,
    ) -> Vec<WithoutPlace> {
        let of = |(pod, rule): (&&PodKey, &String)| {
            if let Some(by) = lessons.cut.get(*pod) {
                return ((*pod).clone(), UnplacedReason::LimitReached, by.clone());
            }
            // If the pod's earlier place had no capacity, that is the reason. The rule only explains why the pod cannot go elsewhere.
            let had = lessons.bans.get(*pod).and_then(|pins| pins.values().next());
            // Without a rule, the pod keeps out of domains that a limit leaves without nodes.
            let few = || self.spreads_of(pod).iter().find_map(|at| lessons.few.get(at));
            let had = had.or_else(|| rule.is_empty().then(few).flatten());
            let (reason, by) = match had {
                Some(had) if rule.is_empty() => (UnplacedReason::LimitReached, had.clone()),
                Some(had) => {
                    (UnplacedReason::LimitReached, had.clone().with(&format!("; in other places it {rule}")))
                }
                None => (UnplacedReason::TopologyRule, LeftBy::other(rule.clone())),
            };
            ((*pod).clone(), reason, by)
        };
        assigned.unplaced.iter().map(of).collect()
    }

    /// Returns a limit that left pods out, in an attempt or an earlier one, by their spread constraint.
    pub(super) fn spread_limits(
        &self,
        without_place: &[WithoutPlace],
        left: &LeftPods,
    ) -> BTreeMap<usize, u32> {
        let before = without_place.iter().map(|(pod, _, by)| (pod, by));
        let now = left.by_limit.iter().map(|(pod, (_, by))| (pod, by));
        let mut limits = BTreeMap::new();
        for (pod, by) in before.chain(now) {
            let Some(limit) = by.reached() else { continue };
            for at in self.spreads_of(pod) {
                limits.entry(*at).or_insert(limit);
            }
        }
        limits
    }
}

/// Returns the domains in which a limit left a pod without a node, in an attempt or an earlier one.
pub(super) fn short(lessons: &topology::Lessons, left: &LeftPods) -> BTreeSet<(String, String)> {
    let by_limit = |(_, by): &(&Pin, &LeftBy)| by.reached().is_some();
    let before = lessons.bans.values().flatten().filter(by_limit).map(|(pin, _)| pin);
    let now = left.by_limit.values().map(|(pin, _)| pin);
    before.chain(now).filter_map(topology::domain_of).collect()
}
