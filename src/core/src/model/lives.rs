//! Lives: what is known about how long pods run, learned from the pods that this cluster finished.
//!
//! Each kind of work has a life table: for each age, how many pods reached it, and how many of these ended there. The table gives
//! the survival of the kind (Kaplan-Meier), also where many pods still run. A kind with few pods borrows from a wider kind: the
//! wider kind counts like [`WEIGHT`] pods. The widest kind borrows from a prior with a heavy tail: of pods that have run for some
//! time, half run as long again.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::life::{Life, ONE};
use crate::model::pod::Pod;
use crate::model::retirement::about;

/// The number of ages in a life table.
pub const AGES: usize = 150;
/// The number of pods that a wider kind, or a declared duration, counts for.
const WEIGHT: u64 = 10;
/// Half of all pods have ended at this age, in seconds, if nothing is known.
const PRIOR_MEDIAN: u64 = 3_600;
/// The number of pods of a kind after which older pods count half.
const MEMORY: u32 = 1_000;
/// The most kinds to remember.
const KINDS: usize = 400;
/// Certainty, in the unit of hazards.
const CERTAIN: u64 = 1 << 30;

/// The ends of the steps of ages, in seconds: from ten seconds to more than a year, each a tenth later.
static BOUNDS: [u64; AGES] = bounds();

const fn bounds() -> [u64; AGES] {
    let mut bounds = [10_u64; AGES];
    let mut at = 1;
    while at < AGES {
        bounds[at] = bounds[at - 1] + if bounds[at - 1] / 10 > 1 { bounds[at - 1] / 10 } else { 1 };
        at += 1;
    }
    bounds
}

/// Returns the step of an age.
fn step(age: u64) -> usize {
    BOUNDS.partition_point(|bound| *bound <= age).min(AGES - 1)
}

fn seconds(duration: SignedDuration) -> u64 {
    u64::try_from(duration.as_secs()).unwrap_or_default()
}

/// What is known about a pod's remaining life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The distribution.
    pub life: Life,
    /// Where it comes from.
    pub source: LifeSource,
}

/// The source of an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifeSource {
    /// The pod is kept running by its controller.
    Service,
    /// The pod declares its duration.
    Declared(SignedDuration),
    /// Pods of this kind ended before.
    Learned {
        /// The kind.
        kind: String,
        /// How many ended.
        ended: u32,
        /// Their median duration; `None` if most of them still run.
        median: Option<SignedDuration>,
    },
    /// Nothing is known about such pods.
    Prior,
}

impl fmt::Display for LifeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service => f.write_str("its controller keeps it running"),
            Self::Declared(duration) => write!(f, "it declares a duration of {}", about(*duration)),
            Self::Learned { kind, ended, median: Some(median) } => {
                write!(f, "pods of kind {kind} run for {} in the median ({ended} ended)", about(*median))
            }
            Self::Learned { kind, ended, median: None } => {
                write!(f, "most pods of kind {kind} still run ({ended} ended)")
            }
            Self::Prior => f.write_str("no such pod has ended yet"),
        }
    }
}

/// The pods of one kind that ended, or were last seen running, by age.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifeTable {
    /// How many ended at each step of ages. Later steps have none.
    ended: Vec<u32>,
    /// How many were lost at each step, such as evicted pods: they would have run longer.
    lost: Vec<u32>,
    /// When the last one was added, in seconds.
    used: i64,
}

impl LifeTable {
    fn add(&mut self, age: u64, ended: bool, now: Timestamp) {
        let counts = if ended { &mut self.ended } else { &mut self.lost };
        let at = step(age);
        if counts.len() <= at {
            counts.resize(at + 1, 0);
        }
        counts[at] += 1;
        self.used = now.as_second();
        if self.total() > MEMORY {
            self.ended.iter_mut().chain(&mut self.lost).for_each(|count| *count /= 2);
        }
    }

    fn total(&self) -> u32 {
        self.ended.iter().chain(&self.lost).sum()
    }

    fn count(counts: &[u32], at: usize) -> u64 {
        counts.get(at).copied().unwrap_or_default().into()
    }

    /// Returns the hazards: for each step, the probability to end in it, of a pod that has reached it. `running` are the pods that
    /// run now, by step of their age. `wider` are the hazards of the wider kind.
    fn hazards(&self, running: &[u32], wider: &[u64]) -> Vec<u64> {
        let mut reached = 0;
        let mut hazards = vec![0; AGES];
        for at in (0..AGES).rev() {
            let ended = Self::count(&self.ended, at);
            let leave = Self::count(&self.lost, at) + Self::count(running, at);
            // A pod that leaves within a step was at risk in half of it.
            let at_risk = reached + ended + leave / 2;
            hazards[at] = (ended * CERTAIN + WEIGHT * wider[at]) / (at_risk + WEIGHT);
            reached += ended + leave;
        }
        hazards
    }
}

/// The hazards of a kind, ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Curve {
    hazards: Vec<u64>,
    ended: u32,
    median: Option<SignedDuration>,
}

/// What is known about how long pods run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lives {
    tables: BTreeMap<String, LifeTable>,
    curves: BTreeMap<String, Curve>,
    /// The hazards of pods of no known kind; empty if nothing counts.
    prior: Vec<u64>,
}

impl Lives {
    /// Expectations before any pod has ended.
    pub fn prior() -> Self {
        let survival = |age: u64| (PRIOR_MEDIAN * CERTAIN) / (PRIOR_MEDIAN + age);
        Self { prior: hazards_of(survival), ..Self::default() }
    }

    /// Returns whether nothing is known, not even a prior. Then plans do not count time.
    pub fn is_blank(&self) -> bool {
        self.prior.is_empty()
    }

    /// Adds a pod that ended, or that was lost at this age.
    pub fn observe(&mut self, kinds: &[String], age: SignedDuration, ended: bool, now: Timestamp) {
        for kind in kinds {
            self.tables.entry(kind.clone()).or_default().add(seconds(age), ended, now);
        }
        if self.tables.len() > KINDS {
            let oldest = self.tables.iter().min_by_key(|(kind, table)| (table.used, *kind));
            if let Some(oldest) = oldest.map(|(kind, _)| kind.clone()) {
                self.tables.remove(&oldest);
            }
        }
    }

    /// The life tables, by kind.
    pub fn tables(&self) -> &BTreeMap<String, LifeTable> {
        &self.tables
    }

    /// Adds tables that were learned before. Kinds that are known here from more pods keep their own table.
    pub fn remember(&mut self, tables: BTreeMap<String, LifeTable>) {
        for (kind, table) in tables {
            if self.tables.get(&kind).is_none_or(|own| own.total() < table.total()) {
                self.tables.insert(kind, table);
            }
        }
    }

    /// Works the tables out again, with the pods that run now.
    pub fn refresh<'a>(&mut self, running: impl Iterator<Item = &'a Pod>, now: Timestamp) {
        let mut ages: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for pod in running {
            let at = step(seconds(pod.duration.age(now)));
            for kind in &pod.duration.kinds {
                let counts = ages.entry(kind).or_insert_with(|| vec![0; AGES]);
                counts[at] += 1;
            }
        }
        let mut curves: BTreeMap<String, Curve> = BTreeMap::new();
        let kinds = ages.keys().copied().chain(self.tables.keys().map(String::as_str));
        let mut kinds: Vec<&str> = kinds.collect();
        // Wider kinds have fewer parts.
        kinds.sort_by_key(|kind| (kind.matches(SEPARATOR).count(), *kind));
        kinds.dedup();
        let nothing = LifeTable::default();
        for kind in kinds {
            let table = self.tables.get(kind).unwrap_or(&nothing);
            let parent =
                widen(kind).and_then(|parent| curves.get(parent)).map_or(&self.prior, |curve| &curve.hazards);
            let hazards = table.hazards(ages.get(kind).map_or(&[][..], Vec::as_slice), parent);
            let median = life(&hazards, 0, None).median();
            let ended = table.ended.iter().sum();
            curves.insert(kind.to_owned(), Curve { hazards, ended, median });
        }
        self.curves = curves;
    }

    /// Returns what is known about the remaining life of a pod.
    pub fn of(&self, pod: &Pod, now: Timestamp) -> Known {
        let age = seconds(pod.duration.age(now));
        let since_start = age.saturating_sub(seconds(pod.duration.ran_before));
        self.at_age(pod, age, since_start)
    }

    /// Returns what is known about the life of the next pod like this one.
    pub fn of_new(&self, pod: &Pod, _: Timestamp) -> Known {
        self.at_age(pod, 0, 0)
    }

    fn at_age(&self, pod: &Pod, age: u64, since_start: u64) -> Known {
        let duration = &pod.duration;
        let left = duration.deadline.map(|deadline| seconds(deadline).saturating_sub(since_start));
        if duration.is_service {
            return Known { life: Life::unbounded(), source: LifeSource::Service };
        }
        let known = duration.kinds.iter().find_map(|kind| Some((kind, self.curves.get(kind)?)));
        let hazards = known.map_or(&self.prior, |(_, curve)| &curve.hazards);
        if let Some(expected) = duration.expected {
            // The declaration is one more, narrower kind. Pods of the pod's own kind that ended correct it.
            let nothing = LifeTable::default();
            let own = duration.kinds.first().and_then(|kind| self.tables.get(kind)).unwrap_or(&nothing);
            let declared = hazards_of(|age| as_declared(seconds(expected).max(1), age));
            let life = life(&own.hazards(&[], &declared), age, left);
            return Known { life, source: LifeSource::Declared(expected) };
        }
        let source = match known {
            Some((kind, curve)) if curve.ended > 0 => {
                LifeSource::Learned { kind: kind.clone(), ended: curve.ended, median: curve.median }
            }
            _ => LifeSource::Prior,
        };
        Known { life: life(hazards, age, left), source }
    }
}

/// Separates the parts of a kind's name.
pub const SEPARATOR: char = '/';

/// Returns the next wider kind by name: without the first part.
fn widen(kind: &str) -> Option<&str> {
    kind.split_once(SEPARATOR).map(|(_, rest)| rest)
}

/// Returns the survival that a declared duration stands for: nine in ten pods run for half of it, and one in ten for twice as
/// long. The rest is far off.
fn as_declared(expected: u64, age: u64) -> u64 {
    let (half, twice) = (expected.div_ceil(2), expected * 2);
    let tenths = |part: u64, of: u64, tenths: u64| part.saturating_mul(tenths * (CERTAIN / 10)) / of.max(1);
    if age <= half {
        CERTAIN - tenths(age, half, 1)
    } else if age <= twice {
        CERTAIN / 10 * 9 - tenths(age - half, twice - half, 8)
    } else {
        (CERTAIN / 10).saturating_mul(twice) / age
    }
}

/// Returns the hazards for a survival by age.
fn hazards_of(survival: impl Fn(u64) -> u64) -> Vec<u64> {
    let mut before = CERTAIN;
    let hazard = |bound: &u64| {
        let after = survival(*bound).min(before);
        let hazard = (before - after) * CERTAIN / before.max(1);
        before = after;
        hazard
    };
    BOUNDS.iter().map(hazard).collect()
}

/// Returns the remaining life at an age. It ends after `left` seconds at the latest.
fn life(hazards: &[u64], age: u64, left: Option<u64>) -> Life {
    let (mut survival, mut at) = (CERTAIN, step(age));
    Life::from_survival(|time| {
        if left.is_some_and(|left| time >= left) {
            return 0;
        }
        let end = step(age.saturating_add(time));
        while at < end {
            survival = (survival * (CERTAIN - hazards[at].min(CERTAIN))) >> 30;
            at += 1;
        }
        u32::try_from((survival * u64::from(ONE)) >> 30).unwrap_or(ONE)
    })
}
