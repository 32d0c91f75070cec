//! Horizons: the time that a node is paid for, which turns its price per hour into its cost.
//!
//! A new node is paid from its purchase until its last pod has ended and it has been empty for a while. So pods are put into
//! groups of similar remaining life, and a kind of node is offered to the solver once for each group: with room for pods of this
//! group and of shorter lives, at its price times the time that it would be paid for. Pods of one group take each other's
//! places: as one ends, another like it may come. So a node counts the mean life of its longest group.
//!
//! An existing node is paid anyway until its pods have ended. A further pod costs only what it adds: the node's price times the
//! expected time by which it postpones the node's end.
//!
//! All costs are counted in the longest of these times, so they are prices per hour. If all pods live equally long, they are the
//! prices of the moment.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{Usd, UsdPerHour};

use crate::model::idle::START;
use crate::model::{Ends, Life, PlanOptions, Pod, PodKey, Pool, Snapshot};
use crate::plan::pending::PendingPod;

/// The longest life that counts for the successor of a pod that gives way. If it runs longer, it may move again.
const MOVES_AGAIN: SignedDuration = SignedDuration::from_hours(1);
/// The longest time without pods that counts, for pools that keep empty nodes longer, or for ever.
const IDLE: SignedDuration = SignedDuration::from_mins(10);
/// The ratio between the means of groups: longer lives are another group. Finer groups keep similar pods apart, which costs more than
/// it saves: with a ratio of 4, weeks of the GPU trace cost 1 to 3 % more.
const RATIO: i64 = 64;
/// The end of the first group, in seconds.
const FIRST: i64 = 900;

/// The groups of pods by remaining life, and the times that count for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Horizons {
    is_known: bool,
    /// The groups, from short to long.
    groups: Vec<Group>,
    /// The time in which all costs are counted.
    unit: SignedDuration,
    by_pod: BTreeMap<PodKey, usize>,
}

#[derive(Clone, Debug)]
struct Group {
    /// The life of a typical pod of the group: the average of the distributions of all.
    life: Life,
    /// The time for which a new node for such pods is paid, until they have ended.
    paid: SignedDuration,
}

impl Horizons {
    /// Puts pods into groups.
    ///
    /// With commitments, all pods are one group: a commitment pays by the hour, so nodes can only be compared by the hour.
    pub fn new(
        snapshot: &Snapshot,
        options: &PlanOptions,
        pending: &[PendingPod<'_>],
        now: Timestamp,
    ) -> Self {
        let lives = &snapshot.lives;
        if lives.is_blank() {
            return Self::default();
        }
        let mut groups: BTreeMap<u32, Vec<(&Pod, Life)>> = BTreeMap::new();
        let gave_way = |pod: &Pod| {
            pod.replaces.as_ref().is_some_and(|replaced| snapshot.giving_way.contains_key(replaced.as_ref()))
        };
        for want in pending {
            let mut life = lives.of(want.pod, now).life;
            if gave_way(want.pod) {
                life = life.cut(MOVES_AGAIN);
            }
            let number = if options.commitments.is_empty() { number(life.mean()) } else { 0 };
            groups.entry(number).or_default().push((want.pod, life));
        }
        let mut horizons = Self { is_known: true, ..Self::default() };
        for pods in groups.into_values() {
            let life = Life::average(pods.iter().map(|(_, life)| life));
            let paid = START + life.mean();
            let at = horizons.groups.len();
            horizons.by_pod.extend(pods.into_iter().map(|(pod, _)| (pod.key.clone(), at)));
            horizons.groups.push(Group { life, paid });
        }
        let longest = horizons.groups.last().map(|group| group.paid).unwrap_or_default();
        horizons.unit = longest + snapshot.pools.values().map(|pool| idle(pool)).max().unwrap_or_default();
        horizons
    }

    /// Returns whether lives are known. If not, only prices count.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns the group of a pod.
    pub fn of(&self, pod: &PodKey) -> usize {
        self.by_pod.get(pod).copied().unwrap_or_default()
    }

    /// Returns whether costs of nodes differ from their prices.
    pub fn weighs(&self) -> bool {
        self.groups.len() > 1
    }

    /// Returns the amount for a cost.
    pub fn amount(&self, cost: UsdPerHour) -> Usd {
        Usd::of(Some(cost), Duration::try_from(self.unit).unwrap_or_default())
    }

    /// Returns the cost of a new node of a pool for pods of this and of shorter groups.
    pub fn of_new(&self, price: UsdPerHour, pool: &Pool, group: usize) -> UsdPerHour {
        match self.groups.get(group) {
            Some(group) if self.weighs() => self.during(price, group.paid + idle(pool)),
            _ => price,
        }
    }

    /// Returns a rate per hour of such a node, such as its interruptions, in the same unit.
    pub fn rate(&self, rate: u32, pool: &Pool, group: usize) -> u32 {
        let scaled = self.of_new(UsdPerHour::from_micros(u64::from(rate)), pool, group);
        u32::try_from(scaled.micros()).unwrap_or(u32::MAX)
    }

    /// Returns the cost of the time by which a pod of this group postpones the end of a node. It is never zero, so that of two
    /// nodes that live on anyway, the cheaper one gets the pod.
    pub fn of_existing(&self, price: UsdPerHour, ends: &Ends, group: usize) -> UsdPerHour {
        let Some(group) = self.groups.get(group) else { return UsdPerHour::ZERO };
        self.during(price, ends.extension(&group.life) + SignedDuration::from_secs(1))
    }

    /// Adds pods of a group to those that keep a node alive.
    pub fn add(&self, ends: &mut Ends, group: usize, count: u32) {
        if let Some(group) = self.groups.get(group) {
            ends.add_many(&group.life, count);
        }
    }

    fn during(&self, price: UsdPerHour, time: SignedDuration) -> UsdPerHour {
        let (part, whole) = (time.as_millis().max(0), self.unit.as_millis().max(1));
        let micros = i128::from(price.micros()) * part;
        UsdPerHour::from_micros(u64::try_from((micros + whole / 2) / whole).unwrap_or(u64::MAX))
    }
}

/// Returns the time for which a new node of a pool is paid if it runs only one pod.
pub(crate) fn paid(life: &Life, pool: &Pool) -> SignedDuration {
    START + life.mean() + idle(pool)
}

/// Returns the time that a node of the pool is paid after its last pod has ended.
pub(crate) fn idle(pool: &Pool) -> SignedDuration {
    pool.scale_to_zero.usual().map_or(IDLE, |idle| idle.min(IDLE))
}

/// Returns the number of the group for a mean life.
fn number(mean: SignedDuration) -> u32 {
    let mut end = FIRST;
    let mut number = 0;
    while mean.as_secs() > end && number < 8 {
        end *= RATIO;
        number += 1;
    }
    number
}
