//! Lives: what is known about how long pods run, learned from the pods that this cluster finished.
//!
//! Each kind of work has a [life table](LifeTable). A kind with few pods borrows from a wider kind: the wider kind counts like ten
//! pods. The widest kind of jobs borrows from a prior with a heavy tail: of pods that have run for some time, half run as long
//! again. The widest kind of services borrows from pods that never end.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::duration::{OF_SERVICES, SEPARATOR};
use crate::model::life::{Life, ONE};
use crate::model::life_table::{AGES, CERTAIN, LifeTable, hazards_of, seconds, step};
use crate::model::pod::Pod;
use crate::model::retirement::about;

/// Half of all pods have ended at this age, in seconds, if nothing is known.
const PRIOR_MEDIAN: u64 = 3_600;
/// The hazards of pods of which none ends.
static ENDLESS: [u64; AGES] = [0; AGES];
/// The most kinds to remember.
pub(super) const KINDS: usize = 400;

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
    /// The pod is kept running by its controller, and no such pod has ended yet.
    Service,
    /// The pod declares its duration.
    Declared {
        /// The duration.
        duration: SignedDuration,
        /// The kind whose ended pods correct the declaration, and how many ended; `None` if none has ended yet.
        corrected_by: Option<(String, u32)>,
    },
    /// The trainer of the pod's TrainJob reports how much longer it runs.
    Reported {
        /// How much longer it ran when that was reported.
        left: SignedDuration,
        /// How long it has run since.
        since: SignedDuration,
    },
    /// Pods of this kind ended before.
    Learned {
        /// The kind.
        kind: String,
        /// How many ended.
        ended: u32,
        /// Their median duration; `None` if it is weeks or longer.
        median: Option<SignedDuration>,
    },
    /// Nothing is known about such pods.
    Prior,
}

impl fmt::Display for LifeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service => f.write_str("its controller keeps it running"),
            Self::Declared { duration, corrected_by } => {
                write!(f, "it declares a duration of {}", about(*duration))?;
                corrected_by.as_ref().map_or(Ok(()), |(kind, ended)| {
                    write!(f, ", corrected by how long pods of kind {kind} ran ({ended} ended)")
                })
            }
            Self::Reported { left, since } => {
                write!(
                    f,
                    "its TrainJob reported that {} were left, and it has run for {} since",
                    about(*left),
                    about(*since)
                )
            }
            Self::Learned { kind, ended, median: Some(median) } => {
                write!(f, "pods of kind {kind} run for {} in the median ({ended} ended)", about(*median))
            }
            Self::Learned { kind, ended, median: None } => {
                write!(f, "most pods of kind {kind} are expected to run for weeks or longer ({ended} ended)")
            }
            Self::Prior => f.write_str("no such pod has ended yet"),
        }
    }
}

/// The hazards of a kind, ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Curve {
    hazards: Vec<u64>,
    /// The pods that run, by step of their age.
    running: Vec<u32>,
    ended: u32,
    median: Option<SignedDuration>,
}

/// What is known about how long pods run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lives {
    tables: BTreeMap<String, LifeTable>,
    /// The hazards of each kind. Copies of these lives, as in snapshots, share them until the next refresh.
    curves: Arc<BTreeMap<String, Curve>>,
    /// The hazards of pods of no known kind; empty if nothing counts.
    prior: Vec<u64>,
}

/// What is known about how long pods run, as it is saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SavedLives {
    pub(super) tables: BTreeMap<String, LifeTable>,
    /// The pods that run, by kind and step of their age. Later steps have none.
    pub(super) running: BTreeMap<String, Vec<u32>>,
}

impl Lives {
    /// Returns what is known, to save it; `None` if nothing is, not even a prior.
    pub(crate) fn saved(&self) -> Option<SavedLives> {
        let counts = |(kind, curve): (&String, &Curve)| {
            let last = curve.running.iter().rposition(|count| *count > 0)?;
            Some((kind.clone(), curve.running[..=last].to_vec()))
        };
        let running = self.curves.iter().filter_map(counts).collect();
        (!self.is_blank()).then(|| SavedLives { tables: self.tables.clone(), running })
    }

    /// Works out again what was known when it was saved. All counts must be sound.
    pub(crate) fn of_saved(saved: &SavedLives) -> Self {
        let mut lives = Self::prior();
        lives.set_tables(saved.tables.clone());
        let running = saved.running.iter().map(|(kind, counts)| {
            let mut counts = counts.clone();
            counts.resize(AGES, 0);
            (kind.as_str(), counts)
        });
        lives.work_out(&running.collect());
        lives
    }

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
            self.tables.entry(kind.clone()).or_default().add(age, ended, now);
        }
        self.forget();
    }

    /// Forgets the kinds that were not used for the longest time, narrow ones first. Returns how many it forgets.
    fn forget(&mut self) -> usize {
        let more = self.tables.len().saturating_sub(KINDS);
        if more == 0 {
            return 0;
        }
        let age = |(kind, table): &(&String, &LifeTable)| (table.used(), Reverse(parts(kind)), table.total());
        let mut oldest: Vec<(&String, &LifeTable)> = self.tables.iter().collect();
        oldest.sort_by_key(age);
        let oldest: Vec<String> = oldest.into_iter().take(more).map(|(kind, _)| kind.clone()).collect();
        for kind in oldest {
            self.tables.remove(&kind);
        }
        more
    }

    /// The life tables, by kind.
    pub fn tables(&self) -> &BTreeMap<String, LifeTable> {
        &self.tables
    }

    /// Returns the number of ended pods that count.
    pub fn ended(&self) -> u32 {
        // Each pod counts in one widest kind, and in narrower ones.
        let widest = self.tables.iter().filter(|(kind, _)| parts(kind) == 0);
        widest.flat_map(|(_, table)| &table.ended).sum()
    }

    /// Replaces the life tables by others that were learned before. Returns how many of these are too many and forgotten.
    pub fn set_tables(&mut self, tables: BTreeMap<String, LifeTable>) -> usize {
        self.tables = tables;
        self.forget()
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
        self.work_out(&ages);
    }

    /// Works the tables out again, with the number of pods of each kind that run, by step of their age.
    fn work_out(&mut self, ages: &BTreeMap<&str, Vec<u32>>) {
        let mut curves: BTreeMap<String, Curve> = BTreeMap::new();
        let kinds = ages.keys().copied().chain(self.tables.keys().map(String::as_str));
        let mut kinds: Vec<&str> = kinds.collect();
        // Wider kinds first: narrower ones borrow from them.
        kinds.sort_by_key(|kind| (parts(kind), *kind));
        kinds.dedup();
        let nothing = LifeTable::default();
        for kind in kinds {
            let table = self.tables.get(kind).unwrap_or(&nothing);
            let prior = self.prior_of(is_of_services(kind));
            let parent =
                widen(kind).and_then(|parent| curves.get(parent)).map_or(prior, |curve| &*curve.hazards);
            let running = ages.get(kind).cloned().unwrap_or_default();
            let hazards = table.hazards(&running, parent);
            let median = life(&hazards, 0, None).median();
            let ended = table.ended.iter().sum();
            curves.insert(kind.to_owned(), Curve { hazards, running, ended, median });
        }
        self.curves = Arc::new(curves);
    }

    /// Returns the hazards of pods of no known kind. Services do not end.
    fn prior_of(&self, is_service: bool) -> &[u64] {
        if is_service { &ENDLESS } else { &self.prior }
    }

    /// Returns what is known about the remaining life of a pod.
    pub fn of(&self, pod: &Pod, now: Timestamp) -> Known {
        let age = seconds(pod.duration.age(now));
        let since_start = age.saturating_sub(seconds(pod.duration.ran_before));
        match pod.duration.reported.filter(|_| pod.duration.expected.is_none()) {
            Some(reported) => {
                let since = pod.duration.since(reported, now);
                let hazards = hazards_of(|age| as_declared(seconds(reported.left).max(1), age));
                let life = life(&hazards, seconds(since), until_deadline(pod, since_start));
                Known { life, source: LifeSource::Reported { left: reported.left, since } }
            }
            None => self.at_age(pod, age, since_start),
        }
    }

    /// Returns what is known about the life of the next pod like this one.
    pub fn of_new(&self, pod: &Pod, _: Timestamp) -> Known {
        self.at_age(pod, 0, 0)
    }

    fn at_age(&self, pod: &Pod, age: u64, since_start: u64) -> Known {
        let duration = &pod.duration;
        let left = until_deadline(pod, since_start);
        if let Some(expected) = duration.expected {
            // The declaration takes the place of the wider kinds. Pods of the pod's own kind that ended correct it.
            let nothing = LifeTable::default();
            let own = duration.kinds.first().and_then(|kind| self.tables.get(kind)).unwrap_or(&nothing);
            let curve = duration.kinds.first().and_then(|kind| Some((kind, self.curves.get(kind)?)));
            let running = curve.map_or(&[][..], |(_, curve)| &curve.running);
            let ended = curve.map(|(kind, curve)| (kind.clone(), curve.ended));
            let corrected_by = ended.filter(|(_, ended)| *ended > 0);
            let declared = hazards_of(|age| as_declared(seconds(expected).max(1), age));
            let life = life(&own.hazards(running, &declared), age, left);
            return Known { life, source: LifeSource::Declared { duration: expected, corrected_by } };
        }
        let unseen = if duration.is_service { LifeSource::Service } else { LifeSource::Prior };
        let mut known = duration.kinds.iter().filter_map(|kind| Some((kind, self.curves.get(kind)?)));
        let narrowest = known.clone().next();
        let hazards = narrowest.map_or(self.prior_of(duration.is_service), |(_, curve)| &curve.hazards);
        // A kind of which no pod has ended has its hazards from wider ones.
        let source = known.find(|(_, curve)| curve.ended > 0).map_or(unseen, |(kind, curve)| {
            LifeSource::Learned { kind: kind.clone(), ended: curve.ended, median: curve.median }
        });
        Known { life: life(hazards, age, left), source }
    }
}

/// Returns the seconds until its deadline ends a pod; `None` if it has none.
fn until_deadline(pod: &Pod, since_start: u64) -> Option<u64> {
    pod.duration.deadline.map(|deadline| seconds(deadline).saturating_sub(since_start))
}

/// Returns the number of parts of a kind's name; wider kinds have fewer.
fn parts(kind: &str) -> usize {
    kind.matches(SEPARATOR).count()
}

/// Returns whether a kind is one of pods that a controller keeps running.
fn is_of_services(kind: &str) -> bool {
    kind.rsplit(SEPARATOR).next().is_some_and(|widest| widest.starts_with(OF_SERVICES))
}

/// Returns the next wider kind by name: without the first part.
fn widen(kind: &str) -> Option<&str> {
    kind.split_once(SEPARATOR).map(|(_, rest)| rest)
}

/// Returns the survival that a declared duration stands for: nine in ten pods run for half of it, half of them for all of it, and
/// one in ten for twice as long. The rest is far off.
fn as_declared(expected: u64, age: u64) -> u64 {
    let (half, twice) = (expected.div_ceil(2), expected * 2);
    let tenths = |part: u64, of: u64, tenths: u64| part.saturating_mul(tenths * (CERTAIN / 10)) / of.max(1);
    if age <= half {
        CERTAIN - tenths(age, half, 1)
    } else if age <= expected {
        CERTAIN / 10 * 9 - tenths(age - half, expected - half, 4)
    } else if age <= twice {
        CERTAIN / 10 * 5 - tenths(age - expected, twice - expected, 4)
    } else {
        (CERTAIN / 10).saturating_mul(twice) / age
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PodKey, PodSpec};

    const KIND: [&str; 3] =
        ["train with 8 CPUs, 64 GiB/namespace a, queue q/1 GPUs", "namespace a, queue q/1 GPUs", "1 GPUs"];
    const MINUTE: u64 = 60;
    const HOUR: u64 = 3600;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn kinds(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn length(seconds: u64) -> SignedDuration {
        SignedDuration::from_secs(i64::try_from(seconds).unwrap())
    }

    /// A pod of a kind that has run for a time.
    fn pod(names: &[&str], age: u64) -> Pod {
        let mut pod = Pod::waiting(PodKey::new("default", "p"), PodSpec::default());
        pod.duration.kinds = kinds(names);
        pod.duration.started = Some(now() - length(age));
        pod
    }

    /// Expectations after pods of one kind that ended at these ages, in minutes.
    fn after(names: &[&str], ended: impl IntoIterator<Item = u64>) -> Lives {
        let mut lives = Lives::prior();
        for minutes in ended {
            lives.observe(&kinds(names), length(minutes * MINUTE), true, now());
        }
        lives.refresh([].into_iter(), now());
        lives
    }

    fn median(lives: &Lives, pod: &Pod) -> u64 {
        lives.of(pod, now()).life.median().map_or(u64::MAX, seconds)
    }

    fn mean(lives: &Lives, pod: &Pod) -> u64 {
        seconds(lives.of(pod, now()).life.mean())
    }

    #[test]
    fn without_history_a_pod_runs_as_long_again_as_it_has_run() {
        let lives = Lives::prior();
        for (age, expected) in [(0, HOUR), (HOUR, 2 * HOUR), (9 * HOUR, 10 * HOUR)] {
            let median = median(&lives, &pod(&KIND, age));
            assert!((expected * 7 / 10..=expected * 14 / 10).contains(&median), "{age}: {median}");
        }
        assert_eq!(lives.of(&pod(&KIND, 0), now()).source, LifeSource::Prior);
    }

    #[test]
    fn forty_ended_pods_outweigh_the_prior() {
        let lives = after(&KIND, [12; 40]);
        let known = lives.of(&pod(&KIND, 0), now());
        let median = known.life.median().unwrap();
        assert!((10 * MINUTE..15 * MINUTE).contains(&seconds(median)), "{median:?}");
        assert_eq!(lives.ended(), 40, "each counts once, although it belongs to three kinds");
        let text = known.source.to_string();
        assert!(text.starts_with(&format!("pods of kind {} run for 1", KIND[0])), "{text}");
        assert!(text.ends_with(" in the median (40 ended)"), "{text}");
    }

    #[test]
    fn an_older_pod_is_expected_to_run_longer_if_its_kind_has_a_long_tail() {
        // Most pods end within minutes, and some run for a day.
        let lives = after(&KIND, [5; 60].into_iter().chain([1_440; 40]));
        assert!(median(&lives, &pod(&KIND, 0)) < 30 * MINUTE);
        let old = median(&lives, &pod(&KIND, HOUR));
        assert!((20 * HOUR..30 * HOUR).contains(&old), "{old}");
        assert!(median(&lives, &pod(&KIND, 20 * HOUR)) < 8 * HOUR, "and less as it approaches the end");
    }

    #[test]
    fn survival_descends_at_every_age() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut lives = Lives::prior();
        for _ in 0..3_000 {
            let age = random(10) * 10_u64.pow(u32::try_from(random(7)).unwrap());
            let from = usize::try_from(random(3)).unwrap();
            lives.observe(&kinds(&KIND[from..]), length(age), random(3) > 0, now());
        }
        let running: Vec<Pod> = (0..50).map(|_| pod(&KIND, random(1_000_000))).collect();
        lives.refresh(running.iter(), now());
        for age in [0, 1, 59, HOUR, 100 * HOUR, u64::from(u32::MAX)] {
            for expected in [None, Some(length(0)), Some(length(HOUR)), Some(SignedDuration::MAX)] {
                let mut pod = pod(&KIND, age);
                pod.duration.expected = expected;
                let life = lives.of(&pod, now()).life;
                let survival = (0..crate::model::life::STEPS).map(|step| life.survival(step));
                assert!(survival.is_sorted_by(|one, next| one >= next), "{age} {expected:?}: {life:?}");
                assert!(life.survival(0) <= ONE);
            }
        }
    }

    #[test]
    fn a_kind_never_seen_borrows_from_the_next_wider_one() {
        let lives = after(&KIND, [12; 40]);
        let stranger = pod(&["other with 8 CPUs, 64 GiB/namespace a, queue q/1 GPUs", KIND[1], KIND[2]], 0);
        assert!(median(&lives, &stranger) < 20 * MINUTE);
        assert!(
            matches!(lives.of(&stranger, now()).source, LifeSource::Learned { kind, .. } if kind == KIND[1])
        );
        let elsewhere =
            pod(&["other with 8 CPUs, 64 GiB/namespace b/8 GPUs", "namespace b/8 GPUs", "8 GPUs"], 0);
        assert_eq!(lives.of(&elsewhere, now()), Lives::prior().of(&elsewhere, now()));
    }

    #[test]
    fn a_first_pod_of_a_template_that_runs_is_explained_by_the_wider_kind_that_is_known() {
        let mut lives = after(&KIND[1..], [12; 40]);
        let first = pod(&KIND, MINUTE);
        lives.refresh([&first].into_iter(), now());
        assert!(
            matches!(lives.of(&first, now()).source, LifeSource::Learned { kind, ended: 40, .. } if kind == KIND[1])
        );
    }

    #[test]
    fn pods_that_still_run_lengthen_the_expectation() {
        let mut lives = after(&KIND, [12; 10]);
        let before = mean(&lives, &pod(&KIND, 0));
        let running: Vec<Pod> = (0..90).map(|_| pod(&KIND, 10 * HOUR)).collect();
        lives.refresh(running.iter(), now());
        assert!(mean(&lives, &pod(&KIND, 0)) > 4 * before);
        let mut declared = pod(&KIND, 0);
        declared.duration.expected = Some(length(20 * HOUR));
        assert!(median(&lives, &declared) > 10 * HOUR, "also that of pods with a declaration");
    }

    #[test]
    fn a_declared_duration_is_about_right_and_shuffled_ones_are_no_worse_than_the_history() {
        let lives = after(&KIND, [12; 40]);
        let mut stranger = pod(&["other/1 GPUs", "1 GPUs"], 0);
        stranger.duration.expected = Some(length(5 * HOUR));
        let known = lives.of(&stranger, now());
        let median = seconds(known.life.median().unwrap());
        assert!((4 * HOUR..7 * HOUR).contains(&median), "{median}");
        assert_eq!(known.source.to_string(), "it declares a duration of 5.0 h");
        // Pods of one template, of which each declares what another one will need.
        for minutes in [1, 12, 100] {
            let mut shuffled = pod(&KIND, 0);
            shuffled.duration.expected = Some(length(minutes * MINUTE));
            assert!(super::seconds(lives.of(&shuffled, now()).life.median().unwrap()) < 25 * MINUTE);
        }
    }

    #[test]
    fn a_lie_by_a_factor_of_one_hundred_costs_little() {
        // Too short: a pod that outlives its declaration is again a pod of its age.
        let mut pod = pod(&KIND, 100 * MINUTE);
        pod.duration.expected = Some(length(MINUTE));
        let left = median(&Lives::prior(), &pod);
        assert!((50 * MINUTE..200 * MINUTE).contains(&left), "{left}");
        // Too long: the pods of the template that ended correct it.
        pod.duration.expected = Some(length(20 * HOUR));
        pod.duration.started = Some(now());
        assert!(median(&Lives::prior(), &pod) > 15 * HOUR, "at first it is believed");
        assert!(median(&after(&KIND, [12; 10]), &pod) < 30 * MINUTE);
    }

    #[test]
    fn a_deadline_ends_a_pod_and_a_service_has_no_end() {
        let lives = after(&KIND, [600; 40]);
        let mut pod = pod(&KIND, 50 * MINUTE);
        pod.duration.deadline = Some(length(HOUR));
        assert!(mean(&lives, &pod) <= 11 * MINUTE);
        // The deadline counts from the start of this pod, not of its work.
        pod.duration.ran_before = length(10 * HOUR);
        assert!(mean(&lives, &pod) > 4 * MINUTE);
        pod.duration.deadline = None;
        pod.duration.make_service();
        assert_eq!(lives.of(&pod, now()), Known { life: Life::unbounded(), source: LifeSource::Service });
    }

    #[test]
    fn a_service_lives_as_long_as_services_like_it_and_not_as_jobs_do() {
        let mut service = pod(&KIND, 0);
        service.duration.make_service();
        let mut lives = after(&KIND, [12; 400]);
        let running: Vec<Pod> = vec![service.clone(); 20];
        lives.refresh(running.iter(), now());
        assert_eq!(lives.of(&service, now()), Known { life: Life::unbounded(), source: LifeSource::Service });
        for _ in 0..40 {
            lives.observe(&service.duration.kinds, length(3 * HOUR), true, now());
        }
        lives.refresh(running.iter(), now());
        let known = lives.of(&service, now());
        assert!((2 * HOUR..5 * HOUR).contains(&median(&lives, &service)), "{known:?}");
        assert!(matches!(known.source, LifeSource::Learned { ended: 40, .. }), "{known:?}");
        assert!(median(&lives, &pod(&KIND, 0)) < HOUR, "and jobs as jobs");
    }

    #[test]
    fn a_clock_that_jumps_makes_no_age_negative_and_nothing_panic() {
        let lives = after(&KIND, [12; 40]);
        let pod = pod(&KIND, 0);
        let new = lives.of(&pod, now());
        assert_eq!(lives.of(&pod, now() - length(1_000_000)), new, "a start in the future is a start now");
        for now in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
            let mut lives = lives.clone();
            lives.observe(&kinds(&KIND), pod.duration.age(now), true, now);
            lives.refresh([&pod].into_iter(), now);
            lives.of(&pod, now);
        }
    }

    #[test]
    fn old_pods_fade_but_rare_long_lives_stay() {
        let mut lives = after(&KIND, [5; 960].into_iter().chain((0..40).map(|at| 60 << (at % 10))));
        lives.observe(&kinds(&KIND), length(300), true, now());
        let table = &lives.tables()[KIND[0]];
        assert!((499..=501).contains(&table.total()), "{}", table.total());
        let long: u32 = table.ended[step(50 * MINUTE)..].iter().sum();
        assert_eq!(long, 20, "half of forty, although each step had few");
        // A change of the workload is learned within some hundred pods.
        for _ in 0..2_000 {
            lives.observe(&kinds(&KIND), length(10 * HOUR), true, now());
        }
        lives.refresh([].into_iter(), now());
        assert!(median(&lives, &pod(&KIND, 0)) > 8 * HOUR);
    }

    #[test]
    fn the_state_stays_small_and_wide_kinds_outlive_narrow_ones() {
        let mut lives = Lives::prior();
        for at in 0..20_000_u64 {
            let middle = format!("namespace {}/1 GPUs", at % 700);
            let names = [
                format!("job-of-a-usual-name-{} with 16 CPUs, 128 GiB/{middle}", at % 5_000),
                middle,
                KIND[2].to_owned(),
            ];
            lives.observe(&names, length(1 << (at % 20)), at % 3 > 0, Timestamp::UNIX_EPOCH);
        }
        assert_eq!(lives.tables().len(), KINDS);
        assert!(lives.tables().contains_key(KIND[2]));
        assert!(lives.tables().values().all(LifeTable::is_sound));
    }
}
