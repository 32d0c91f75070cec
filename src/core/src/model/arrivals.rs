//! How often pods come while room for them is on its way, and how many units `units: auto` of a buffer therefore keeps.
//!
//! The reasoning is that of [`crate::model::idle`]: a start costs as much as [`BREAK_EVEN`] of a unit's price. Keeping a unit costs
//! its price for the time. So a unit pays while pods need it more often than once in this time.
//!
//! A pod takes the first unit that is there, and its room is bought again, which takes [`START`]. So the second unit is needed by a
//! pod that comes while the first is on its way, and so on. A pod that finds the room of an ended pod needs no unit.
//!
//! The rates fade with time. While a unit is kept, its rate falls by as much in [`BREAK_EVEN`] as a pod adds. So whatever comes, the
//! time for which units are kept is in sum at most [`BREAK_EVEN`] for each pod that came.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::idle::{BREAK_EVEN, START};

/// The time, in seconds, after which a third of a pod's weight is left. It is an hour, so a count is also the rate per hour.
const MEMORY: u64 = 3_600;
/// A pod, in the unit of counts.
const ONE: u64 = 1 << 16;
/// The part of a count that is left after a second, in 2^-32.
const PER_SECOND: u64 = (1 << 32) - (1 << 32) / MEMORY;
/// The price of a start, in seconds of a unit's price.
const PAID: u64 = BREAK_EVEN.as_secs().unsigned_abs();
/// The count from which a unit pays. A unit that is kept stays down to here.
const PAYS: u64 = ONE * MEMORY / PAID;
/// The count from which a unit is kept. It is larger, so that single pods do not end and begin it again and again.
const BEGINS: u64 = PAYS * 5 / 4;
/// The largest count: a unit is needed at most once in [`START`].
const MOST: u64 = ONE * 32;
/// The most units to count, and the most rooms of ended pods.
const UNITS: usize = 20;
/// The most sizes to remember.
const SIZES: usize = 50;

/// What is known about the pods that come to pools, by the pool and the size of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    sizes: BTreeMap<String, Bursts>,
}

/// The pods of one size that came to a pool. Times are in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bursts {
    /// How often each unit was needed lately, from the first on.
    needed: Vec<u64>,
    /// Until when the room of each unit is on its way.
    taken: Vec<i64>,
    /// When pods ended whose room no other pod has taken, in the order in which they did.
    left: Vec<i64>,
    /// How many units pay.
    pub(super) paying: usize,
    /// When the last pod came.
    last: i64,
    /// How many pods were seen.
    seen: u64,
}

/// The number of units that `auto` asks for, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The number.
    pub units: u32,
    /// The most that the pool allows.
    pub at_most: u32,
    /// How often per hour the last of these units is needed; the first if there is none.
    pub per_hour: u64,
    /// How many pods were seen.
    pub seen: u64,
}

impl Arrivals {
    /// Adds a pod that came and was seen later. Its pool keeps a node without work for `keep`, or for ever, and at most so many units.
    pub fn came(
        &mut self,
        size: &str,
        (came, seen): (Timestamp, Timestamp),
        keep: Option<SignedDuration>,
        at_most: u32,
    ) {
        let keep = keep.map_or(i64::MAX, |keep| keep.as_secs());
        let bursts = self.sizes.entry(size.to_owned()).or_default();
        bursts.came((came.as_second(), seen.as_second()), keep, UNITS.min(at_most as usize));
        while self.sizes.len() > SIZES {
            let oldest = self.sizes.iter().min_by_key(|(size, bursts)| (bursts.last, *size));
            let Some(oldest) = oldest.map(|(size, _)| size.clone()) else { return };
            self.sizes.remove(&oldest);
        }
    }

    /// Adds the room of a pod that ended. The next pod may take it.
    pub fn left(&mut self, size: &str, at: Timestamp) {
        let Some(bursts) = self.sizes.get_mut(size) else { return };
        bursts.left.push(at.as_second());
        if bursts.left.len() > UNITS {
            bursts.left.remove(0);
        }
    }

    /// Returns how many units of a size pay, but at most so many.
    pub fn choose(&self, size: &str, at_most: u32, now: Timestamp) -> Chosen {
        let Some(bursts) = self.sizes.get(size) else {
            return Chosen { units: 0, at_most, per_hour: 0, seen: 0 };
        };
        // After a jump of the clock, the past is as old as the jump is long.
        let needed = bursts.faded(now.as_second());
        let units = lasting(&needed, bursts.paying.min(at_most as usize));
        let of_last = needed.get(units.saturating_sub(1)).copied().unwrap_or_default();
        Chosen {
            units: u32::try_from(units).unwrap_or(at_most),
            at_most,
            per_hour: (of_last + ONE / 2) / ONE,
            seen: bursts.seen,
        }
    }

    /// What is known, by size.
    pub fn sizes(&self) -> &BTreeMap<String, Bursts> {
        &self.sizes
    }

    /// Makes arrivals from what was learned before.
    pub fn of_sizes(sizes: BTreeMap<String, Bursts>) -> Self {
        Self { sizes }
    }
}

impl Bursts {
    /// Returns whether [`Arrivals`] can have written it.
    pub fn is_sound(&self) -> bool {
        let latest = self.last.saturating_add(START.as_secs());
        [self.needed.len(), self.taken.len(), self.left.len()].iter().all(|length| *length <= UNITS)
            && self.paying <= self.needed.len()
            && self.needed.iter().all(|count| *count <= MOST)
            && self.taken.iter().all(|until| *until <= latest)
    }

    fn came(&mut self, (came, now): (i64, i64), keep: i64, units: usize) {
        let at = if now < self.last { now } else { came.clamp(self.last, now) };
        if now < self.last {
            // The clock was set back. What it said before happened by now.
            for until in &mut self.taken {
                *until = (*until).min(now.saturating_add(START.as_secs()));
            }
            self.left.retain(|left| *left <= now);
        }
        self.needed = self.faded(at);
        self.needed.resize(units, 0);
        self.taken.resize(units, 0);
        self.last = at;
        self.seen = self.seen.saturating_add(1);
        self.paying = lasting(&self.needed, self.paying);
        self.left.retain(|left| left.saturating_add(keep) >= at);
        if let Some(room) = self.left.iter().rposition(|left| *left <= came) {
            self.left.remove(room);
            return;
        }
        if let Some(unit) = self.taken.iter().position(|until| *until <= at) {
            self.taken[unit] = at.saturating_add(START.as_secs());
            self.needed[unit] = (self.needed[unit] + ONE).min(MOST);
        }
        let begins = self.needed.iter().take_while(|count| **count >= BEGINS).count();
        self.paying = self.paying.max(begins);
    }

    /// Returns the counts as they are at a time.
    fn faded(&self, at: i64) -> Vec<u64> {
        let (mut counts, mut factor, mut seconds) = (self.needed.clone(), PER_SECOND, at.abs_diff(self.last));
        while seconds > 0 && factor > 0 {
            if seconds % 2 == 1 {
                for count in &mut counts {
                    *count = (*count * factor) >> 32;
                }
            }
            factor = (factor * factor) >> 32;
            seconds /= 2;
        }
        // What is left has faded even from the largest count.
        if seconds > 0 {
            counts.fill(0);
        }
        counts
    }
}

/// Returns how many of the first units still pay.
fn lasting(needed: &[u64], paying: usize) -> usize {
    needed.iter().take(paying).take_while(|count| **count >= PAYS).count()
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { units, at_most, per_hour, seen } = *self;
        let (verb, kept_from) = if units == 0 { ("keeps", BEGINS) } else { ("asks for", PAYS) };
        write!(f, "auto {verb} {units} {}, because ", if units == 1 { "unit" } else { "units" })?;
        if seen == 0 {
            f.write_str("nothing is known yet about how often pods of this size come")?;
        } else {
            write!(
                f,
                "{} or more pods of this size come within {} s and find no room of ended pods about {per_hour} times per hour ({seen} seen)",
                units.max(1),
                START.as_secs()
            )?;
        }
        write!(f, "; a unit is kept from {} times per hour on", kept_from.div_ceil(ONE))?;
        if units > 0 && units == at_most { f.write_str(", and maxUnits allows no more") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: &str = "gpu";
    const HOUR: i64 = 3_600;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn come(arrivals: &mut Arrivals, seconds: i64) {
        arrivals.came(SIZE, (at(seconds), at(seconds)), Some(BREAK_EVEN), 4);
    }

    /// A pod comes every so many seconds, for five hours.
    fn stream(every: usize) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for seconds in (0..5 * HOUR).step_by(every) {
            come(&mut arrivals, seconds);
        }
        arrivals
    }

    fn units(arrivals: &Arrivals, seconds: i64) -> u32 {
        arrivals.choose(SIZE, 4, at(seconds)).units
    }

    #[test]
    fn without_history_no_unit_is_kept() {
        let chosen = Arrivals::default().choose(SIZE, 4, at(0));
        assert_eq!(chosen.units, 0);
        assert_eq!(
            chosen.to_string(),
            "auto keeps 0 units, because nothing is known yet about how often pods of this size come; a unit is kept from 20 \
             times per hour on"
        );
        let mut arrivals = Arrivals::default();
        for pod in 0..15 {
            come(&mut arrivals, 120 * pod);
        }
        assert_eq!(units(&arrivals, 120 * 14), 0, "half an hour is a guess");
    }

    #[test]
    fn a_steady_stream_keeps_as_many_units_as_pods_come_during_a_start() {
        let kept = [20, 30, 40, 60, 120, 300].map(|every| units(&stream(every), 5 * HOUR));
        assert_eq!(kept, [4, 4, 3, 2, 1, 0]);
        assert_eq!(units(&stream(30), 5 * HOUR - 30), 4);
        assert_eq!(stream(30).choose(SIZE, 2, at(5 * HOUR)).units, 2, "maxUnits");
        assert_eq!(stream(30).choose("another size", 4, at(5 * HOUR)).units, 0);
    }

    #[test]
    fn one_burst_keeps_nothing_however_large_and_bursts_all_day_keep_no_more_than_the_pool_allows() {
        let mut arrivals = Arrivals::default();
        for _ in 0..10_000 {
            come(&mut arrivals, 0);
        }
        assert_eq!((units(&arrivals, 0), units(&arrivals, HOUR)), (0, 0));
        for burst in 0..24 * HOUR / 115 {
            for _ in 0..100 {
                come(&mut arrivals, 115 * burst);
            }
            assert!(units(&arrivals, 115 * burst) <= 4);
        }
        assert_eq!(units(&arrivals, 24 * HOUR), 4);
    }

    #[test]
    fn old_history_fades_within_the_hour() {
        let arrivals = stream(60);
        assert_eq!((units(&arrivals, 5 * HOUR), units(&arrivals, 6 * HOUR)), (2, 0));
        assert_eq!(arrivals.choose(SIZE, 4, at(30 * HOUR)).per_hour, 0);
        assert_eq!(arrivals.choose(SIZE, 4, Timestamp::MAX).units, 0);
    }

    #[test]
    fn a_pod_more_or_less_does_not_end_a_unit_that_is_kept() {
        let mut arrivals = stream(120);
        // It pays, but no unit would begin at this rate.
        for pod in 0..100 {
            let seconds = 5 * HOUR + 210 * pod;
            come(&mut arrivals, seconds);
            assert_eq!(units(&arrivals, seconds + 60), 1, "{pod}");
        }
        let mut fresh = Arrivals::default();
        for pod in 0..200 {
            come(&mut fresh, 210 * pod);
        }
        assert_eq!(units(&fresh, 210 * 199), 0);
    }

    #[test]
    fn pods_that_find_the_room_of_ended_pods_need_no_unit() {
        let mut arrivals = Arrivals::default();
        for pod in 0..500 {
            come(&mut arrivals, 60 * pod);
            arrivals.left(SIZE, at(60 * pod + 50));
        }
        assert_eq!(units(&arrivals, 60 * 500), 0);
        // Room that is gone before the next pod comes helps nobody.
        for pod in 500..1_000 {
            arrivals.came(SIZE, (at(60 * pod), at(60 * pod)), Some(SignedDuration::from_secs(5)), 4);
            arrivals.left(SIZE, at(60 * pod + 50));
        }
        assert_eq!(units(&arrivals, 60 * 1_000), 2);
    }

    #[test]
    fn pods_that_waited_count_when_they_came_and_not_when_their_nodes_were_there() {
        let mut arrivals = Arrivals::default();
        // They came at once, hours ago, and a limit lets one start each minute.
        for pod in 0..600 {
            arrivals.came(SIZE, (at(0), at(60 * pod)), Some(SignedDuration::ZERO), 4);
            assert_eq!(units(&arrivals, 60 * pod), 0);
        }
    }

    #[test]
    fn whatever_comes_units_are_kept_no_longer_than_a_start_costs_for_each_pod() {
        let (mut dice, mut kept, mut pods) = (7_u64, 0_i64, 0_i64);
        let mut arrivals = Arrivals::default();
        for second in 0..24 * HOUR {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Hours are busy, very busy, or quiet.
            let one_in = [80, 10, 2_000, 80][usize::try_from(second / HOUR % 4).unwrap()];
            if (dice >> 33).is_multiple_of(one_in) {
                come(&mut arrivals, second);
                pods += 1;
            }
            kept += i64::from(units(&arrivals, second));
        }
        assert!(kept > 5 * HOUR, "{kept}");
        assert!(kept <= BREAK_EVEN.as_secs() * pods, "{kept} s for {pods} pods");
    }

    #[test]
    fn a_clock_that_jumps_makes_history_as_old_as_the_jump_is_long() {
        let mut arrivals = stream(60);
        assert_eq!((units(&arrivals, 5 * HOUR - 300), units(&arrivals, -100 * HOUR)), (2, 0));
        for pod in 0..10 {
            come(&mut arrivals, -100 * HOUR + 60 * pod);
        }
        assert_eq!(units(&arrivals, -100 * HOUR + 600), 0, "it learns anew");
        for pod in 0..300 {
            come(&mut arrivals, -99 * HOUR + 60 * pod);
        }
        assert_eq!(units(&arrivals, -94 * HOUR), 2);
        // A clock that jumps with every pod.
        for pod in 0..10_000 {
            come(&mut arrivals, if pod % 2 == 0 { 0 } else { 400 });
            assert!(units(&arrivals, 0) <= 4);
        }
        assert!(arrivals.sizes().values().all(Bursts::is_sound));
    }

    #[test]
    fn the_sentence_says_what_was_seen_and_from_when_a_unit_is_kept() {
        assert_eq!(
            stream(60).choose(SIZE, 4, at(5 * HOUR)).to_string(),
            "auto asks for 2 units, because 2 or more pods of this size come within 115 s and find no room of ended pods about 30 \
             times per hour (300 seen); a unit is kept from 16 times per hour on"
        );
        let said = stream(60).choose(SIZE, 1, at(5 * HOUR)).to_string();
        assert!(said.starts_with("auto asks for 1 unit, because 1 or more pods "), "{said}");
        assert!(said.ends_with("from 16 times per hour on, and maxUnits allows no more"), "{said}");
        let said = stream(300).choose(SIZE, 4, at(5 * HOUR)).to_string();
        assert!(said.starts_with("auto keeps 0 units, because 1 or more pods of this size come "), "{said}");
        assert!(
            said.ends_with("about 11 times per hour (60 seen); a unit is kept from 20 times per hour on"),
            "{said}"
        );
    }

    #[test]
    fn the_memory_of_sizes_is_bounded() {
        let mut arrivals = Arrivals::default();
        for number in 0..200 {
            for _ in 0..30 {
                let size = format!("pool-{number}");
                arrivals.came(&size, (at(number), at(number)), None, u32::MAX);
                arrivals.left(&size, at(number));
            }
        }
        assert_eq!(arrivals.sizes().len(), SIZES);
        assert!(arrivals.sizes().values().all(Bursts::is_sound));
    }
}
