//! The cost of moving pods, and whether a move pays off.

use jiff::SignedDuration;
use poolwright_catalog::{ResourceList, ResourceName, UsdPerHour};

use crate::lifecycle::protection::Facts;
use crate::model::{Claim, Pod};

/// The restart time of a recreated pod, which loads its image, model and caches.
const RESTART: SignedDuration = SignedDuration::from_mins(5);
/// The time for which old and new nodes are paid at the same time.
pub(crate) const OVERLAP: SignedDuration = SignedDuration::from_mins(10);
/// The least saving of a move, in thousandths of the nodes' price. Without this minimum, small price changes would move pods back
/// and forth.
const LEAST_PERMILLE: u64 = 10;

/// The costs of nodes until their pods have ended, at most for the payback time, in micro-dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverTime {
    /// The cost of the nodes that a move would empty.
    pub before: u64,
    /// The cost that the move causes instead: of new nodes, and of nodes that the moved pods keep longer.
    pub after: u64,
}

/// Why a move does not pay off. Prices are per hour, and amounts are in micro-dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortfall {
    /// The pods cost as much elsewhere, or more.
    NoSaving {
        /// The price of the nodes to empty.
        before: UsdPerHour,
        /// The highest price of the nodes that the pods would need instead.
        after: UsdPerHour,
    },
    /// The saving is too small.
    Small {
        /// The price of the nodes to empty.
        before: UsdPerHour,
        /// The highest price of the nodes that the pods would need instead.
        after: UsdPerHour,
        /// The least saving.
        least: UsdPerHour,
    },
    /// The move costs as much as it saves over time, or more.
    Loss {
        /// The price of the nodes to empty.
        before: UsdPerHour,
        /// The highest price of the nodes that the pods would need instead.
        after: UsdPerHour,
        /// The saving over time.
        saves: u64,
        /// The cost of the move.
        costs: u64,
    },
}

/// Returns the loss of emptying a claim's node, in micro-dollars.
pub(crate) fn lost(facts: &Facts<'_>, claim: &Claim, price: UsdPerHour) -> u64 {
    let total = &claim.current_offering().allocatable;
    facts.work(claim).map(|pod| lost_by(facts, pod, price, total)).fold(0, u64::saturating_add)
}

/// Returns the loss of moving one pod, in micro-dollars, if it runs on a node with this price and these resources. It loses its part of
/// the node's price during the restart. A pod that runs to completion also loses its part since it was created.
pub(crate) fn lost_by(facts: &Facts<'_>, pod: &Pod, price: UsdPerHour, total: &ResourceList) -> u64 {
    let runs_to_an_end = facts.maker(pod).is_none_or(|maker| maker.kind == "Job");
    let age = facts.now.duration_since(pod.created).max(SignedDuration::ZERO);
    let requests = &pod.spec.requests;
    let (time, part) = if runs_to_an_end {
        // Work that needs no GPU is worth something on a node with GPUs too.
        let part = Some(permille(requests, total)).filter(|part| *part > 0);
        (RESTART + age, part.unwrap_or_else(|| permille_of_cpu_or_memory(requests, total)))
    } else {
        (RESTART, permille(requests, total))
    };
    let cost = u128::from(during(price, time)) * u128::from(part) / 1000;
    u64::try_from(cost).unwrap_or(u64::MAX)
}

/// Returns the cost at a price over a time, in micro-dollars.
pub(crate) fn during(price: UsdPerHour, time: SignedDuration) -> u64 {
    let seconds = u128::try_from(time.as_secs()).unwrap_or(0);
    u64::try_from(u128::from(price.micros()) * seconds / 3600).unwrap_or(u64::MAX)
}

/// Returns a pod's part of a node in thousandths: of its GPUs or, if the node has none, of CPU or memory, whichever part is
/// larger.
fn permille(requests: &ResourceList, total: &ResourceList) -> u64 {
    permille_of(ResourceName::NVIDIA_GPU, requests, total)
        .unwrap_or_else(|| permille_of_cpu_or_memory(requests, total))
}

fn permille_of_cpu_or_memory(requests: &ResourceList, total: &ResourceList) -> u64 {
    let parts = [ResourceName::CPU, ResourceName::MEMORY];
    parts.into_iter().filter_map(|name| permille_of(name, requests, total)).max().unwrap_or(0)
}

/// Returns a pod's part of one resource of a node in thousandths; `None` if the node has none.
fn permille_of(name: &str, requests: &ResourceList, total: &ResourceList) -> Option<u64> {
    let (part, all) = (requests.get(name), total.get(name));
    (all > 0).then(|| u64::try_from(u128::from(part) * 1000 / u128::from(all)).unwrap_or(1000).min(1000))
}

/// Returns whether a move from nodes at one price to nodes at another saves more over time than it loses.
pub(crate) fn pays(before: UsdPerHour, after: UsdPerHour, over_time: OverTime, lost: u64) -> bool {
    shortfall(before, after, over_time, lost).is_none()
}

/// Returns why a move from nodes at one price to nodes at another does not pay off; `None` if it does.
pub(crate) fn shortfall(
    before: UsdPerHour,
    after: UsdPerHour,
    over_time: OverTime,
    lost: u64,
) -> Option<Shortfall> {
    let saving = before.saturating_sub(after);
    if saving == UsdPerHour::ZERO {
        return Some(Shortfall::NoSaving { before, after });
    }
    let least = u128::from(before.micros()) * u128::from(LEAST_PERMILLE) / 1000;
    if u128::from(saving.micros()) < least {
        let least = UsdPerHour::from_micros(u64::try_from(least).unwrap_or(u64::MAX));
        return Some(Shortfall::Small { before, after, least });
    }
    let costs = lost.saturating_add(during(after, OVERLAP));
    let saves = over_time.before.saturating_sub(over_time.after);
    (saves <= costs).then_some(Shortfall::Loss { before, after, saves, costs })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> UsdPerHour {
        text.parse().unwrap()
    }

    #[test]
    fn a_move_pays_when_it_saves_in_time_what_it_loses() {
        let hour = SignedDuration::from_hours(1);
        let pays = |before, after, lost, time| {
            let (before, after) = (usd(before), usd(after));
            let over_time = OverTime { before: during(before, time), after: during(after, time) };
            super::pays(before, after, over_time, lost)
        };
        assert!(pays("10", "0", 9_999_999, hour));
        assert!(!pays("10", "0", 10_000_000, hour));
        // The new nodes cost six dollars per hour, and ten minutes of overlap cost one dollar.
        assert!(pays("10", "6", 2_999_999, hour));
        assert!(!pays("10", "6", 3_000_000, hour));
        assert!(pays("10", "6", 6_000_000, hour * 2));
        assert!(!pays("10", "10", 0, hour));
        assert!(!pays("10", "9.95", 0, hour * 100));
    }

    #[test]
    fn a_pod_has_the_part_of_a_node_that_its_gpus_are_of_all() {
        let list =
            |cpu, gpus| ResourceList::new().with(ResourceName::CPU, cpu).with(ResourceName::NVIDIA_GPU, gpus);
        assert_eq!(permille(&list(500, 2), &list(1000, 8)), 250);
        assert_eq!(permille(&list(500, 0), &list(1000, 8)), 0);
        assert_eq!(permille(&list(500, 0), &list(1000, 0)), 500);
    }
}
