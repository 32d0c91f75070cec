//! Horizons: the time that a node is paid for, which turns its price per hour into its cost.
//!
//! A new node is paid from its purchase until its last pod has ended and it has been empty for a while. So pods are put into
//! groups of similar remaining life, and a kind of node is offered to the solver once for each group: with room for pods of this
//! group and of shorter lives, at its price times the time that it would be paid for.
//!
//! A node is paid until the last pod of its longest group has ended, and several pods are expected to end later than one alone. The
//! solver adds up costs of pods. So it counts a straight line from the expectation for one pod to that for the most that the node can
//! hold. The line lies nowhere above the expectation, because each further pod adds less. So a lower bound stays one. A group in which
//! several pods have one controller, or are of a gang, counts as one pod, because these may end together.
//!
//! An existing node is paid anyway until its pods have ended. A further pod costs only what it adds: the node's price times the
//! expected time by which it postpones the node's end. Several pods count by a straight line, too.
//!
//! All costs are counted in the longest of these times, so they are prices per hour. If all pods live equally long, they are the
//! prices of the moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{Usd, UsdPerHour};

use crate::model::idle::START;
use crate::model::{Ends, Life, PlanOptions, Pod, PodKey, Pool, Snapshot};
use crate::plan::pending::PendingPod;

/// The number of ended pods from which on room is kept free ([`crate::plan::pack::kept_room`]). With fewer, how long pods run is a guess.
const HISTORY: u32 = 100;

/// The longest life that counts for the successor of a pod that gives way. If it runs longer, it may move again.
const MOVES_AGAIN: SignedDuration = SignedDuration::from_hours(1);
/// The longest time without pods that counts, for pools that keep empty nodes longer, or for ever.
const IDLE: SignedDuration = SignedDuration::from_mins(10);
/// The ratio between the means of groups: longer lives are another group. Finer groups keep similar pods apart, which costs more than
/// it saves: with a ratio of 4, weeks of the GPU trace cost 1 to 3 % more.
const RATIO: i64 = 64;
/// The end of the first group, in seconds.
const FIRST: i64 = 900;
/// The most pods of a group whose common end is worked out. More pods count as if they ended with these.
const TOGETHER: usize = 128;

/// The groups of pods by remaining life, and the times that count for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Horizons {
    is_known: bool,
    keeps_room: bool,
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
    /// The time for which a new node for one such pod is paid, until it has ended.
    paid: SignedDuration,
    /// The times until one such pod, two, and so on have all ended; empty if these do not count.
    together: Vec<Ends>,
}

impl Group {
    /// Returns the mean time by which so many pods postpone the end of those that are there.
    fn extension(&self, there: &Ends, pods: u64) -> SignedDuration {
        let known = usize::try_from(pods).unwrap_or(TOGETHER).min(self.together.len());
        known.checked_sub(1).map_or(SignedDuration::ZERO, |at| there.extension_by(&self.together[at]))
    }
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
        let keeps_room = options.keeps_room && options.commitments.is_empty() && lives.ended() >= HISTORY;
        let mut horizons = Self { is_known: true, keeps_room, ..Self::default() };
        // Prices per hour decide among pods that live equally long.
        let counted = if groups.len() > 1 { TOGETHER } else { 0 };
        for pods in groups.into_values() {
            let life = Life::average(pods.iter().map(|(_, life)| life));
            let paid = START + life.mean();
            let apart = if end_apart(pods.iter().map(|(pod, _)| *pod)) { counted } else { 0 };
            let together = ends(&life, pods.len().min(apart));
            let at = horizons.groups.len();
            horizons.by_pod.extend(pods.into_iter().map(|(pod, _)| (pod.key.clone(), at)));
            horizons.groups.push(Group { life, paid, together });
        }
        let longest = horizons.groups.last().map(|group| group.paid).unwrap_or_default();
        horizons.unit = longest + snapshot.pools.values().map(|pool| idle(pool)).max().unwrap_or_default();
        horizons
    }

    /// Returns whether lives are known. If not, only prices count.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns whether enough is known about lives to keep room free for pods without a cheaper home.
    pub fn keeps_room(&self) -> bool {
        self.keeps_room
    }

    /// Returns the life of a typical pod of a group.
    pub fn life(&self, group: usize) -> Option<&Life> {
        self.groups.get(group).map(|group| &group.life)
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

    /// Returns the cost of a new node of a pool for one pod of this group and any of shorter groups.
    pub fn of_new(&self, price: UsdPerHour, pool: &Pool, group: usize) -> UsdPerHour {
        match self.groups.get(group) {
            Some(group) if self.weighs() => self.during(price, group.paid + idle(pool)),
            _ => price,
        }
    }

    /// Returns what each further pod of a group adds to the cost of a node, at least, by postponing its end. `there` is the end of the
    /// pods that the node has already, and `most` returns the most pods of a group that it can hold beside them.
    ///
    /// The cost of a node that gets no pod of the group is less by as much. It is no less than if the node were for shorter groups alone,
    /// so that pods of these find no cheaper node here.
    pub fn of_further(
        &self,
        price: UsdPerHour,
        there: &Ends,
        group: usize,
        most: impl Fn(usize) -> u64,
    ) -> UsdPerHour {
        let Some(of) = self.groups.get(group).filter(|_| self.weighs()) else { return UsdPerHour::ZERO };
        let pods = most(group);
        if pods < 2 {
            return UsdPerHour::ZERO;
        }
        let one = of.extension(there, 1);
        let line = (of.extension(there, pods) - one).as_millis() / i128::from(pods - 1);
        let shorter = (0..group).map(|shorter| self.groups[shorter].extension(there, most(shorter)));
        let shorter = shorter.max().unwrap_or_default();
        let each = line.min((one - shorter).as_millis()).max(0);
        // Rounded down, so that many pods together count no more than they postpone the end.
        let micros = i128::from(price.micros()) * each / self.unit.as_millis().max(1);
        UsdPerHour::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
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

/// Returns the cost of a node over a time.
pub(crate) fn cost(price: UsdPerHour, time: SignedDuration) -> Usd {
    Usd::of(Some(price), Duration::try_from(time).unwrap_or_default())
}

/// Returns whether the pods end independently of each other. Those of a gang end together, and those of one controller may.
fn end_apart<'p>(mut pods: impl Iterator<Item = &'p Pod>) -> bool {
    let mut owners = BTreeSet::new();
    pods.all(|pod| {
        let is_alone = pod.group.is_none() && pod.key.existing().is_some();
        is_alone && pod.owner.as_ref().is_none_or(|owner| owners.insert(owner))
    })
}

/// Returns the times until one pod with this life, two, and so on up to `pods` have all ended.
fn ends(life: &Life, pods: usize) -> Vec<Ends> {
    let mut ends = Ends::default();
    let with_one_more = |_| {
        ends.add(life);
        ends.clone()
    };
    (0..pods).map(with_one_more).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups of uncertain lives: one or three hours, and 20 or 300.
    fn horizons() -> Horizons {
        let group = |of: [i64; 2]| {
            let life = Life::average(of.map(|after| Life::exactly(hours(after))).iter());
            Group { paid: START + life.mean(), together: ends(&life, TOGETHER), life }
        };
        let groups = vec![group([1, 3]), group([20, 300])];
        let unit = hours(200);
        Horizons { is_known: true, keeps_room: false, groups, unit, by_pod: BTreeMap::new() }
    }

    fn hours(hours: i64) -> SignedDuration {
        SignedDuration::from_hours(hours)
    }

    #[test]
    fn further_pods_cost_no_more_than_they_postpone_the_end_and_the_most_of_them_cost_that() {
        let (horizons, price) = (horizons(), UsdPerHour::from_micros(31_212_000));
        let rounding = UsdPerHour::from_micros(200);
        let empty_or_not = [Ends::default(), Ends::of([&Life::exactly(hours(2))])];
        for (there, (group, of)) in empty_or_not
            .iter()
            .flat_map(|there| horizons.groups.iter().enumerate().map(move |of| (there, of)))
        {
            for most in [0, 1, 2, 3, 8, 100, 1_000] {
                let further = horizons.of_further(price, there, group, |_| most);
                assert_eq!(further > UsdPerHour::ZERO, most > 1, "{most}");
                let (mut ends, mut later) = (Ends::default(), UsdPerHour::ZERO);
                for pods in 1..=most {
                    ends.add(&of.life);
                    later = horizons.during(price, there.extension_by(&ends) - there.extension(&of.life));
                    let counted = further.times(pods - 1);
                    assert!(counted <= later + UsdPerHour::from_micros(1), "{pods} of {most}: {counted:?}");
                }
                let all = further.times(most.saturating_sub(1));
                assert!(most > TOGETHER as u64 || all + rounding >= later, "{all:?} of {later:?}");
            }
        }
    }

    #[test]
    fn a_node_for_a_long_group_without_its_pods_costs_no_less_than_one_for_the_shorter_groups() {
        let (mut horizons, price) = (horizons(), UsdPerHour::from_micros(31_212_000));
        let none = Ends::default();
        let end = |after: i64| Ends::of([&Life::exactly(hours(after))]);
        // Two short pods together end almost as late as one long one.
        horizons.groups[0].together = vec![end(2), end(150)];
        let one = horizons.during(price, horizons.groups[1].life.mean());
        let shorter = horizons.during(price, end(150).mean());
        let further = horizons.of_further(price, &none, 1, |_| 2);
        assert!(further > UsdPerHour::ZERO);
        assert!(one.saturating_sub(further) + UsdPerHour::from_micros(1) >= shorter, "{further:?}");
        horizons.groups[0].together[1] = end(170);
        assert_eq!(horizons.of_further(price, &none, 1, |_| 2), UsdPerHour::ZERO);
    }
}
