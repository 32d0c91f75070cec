//! What goes wrong, where, and how often. Whether the so-manieth call fails is decided by the seed and its number alone, so
//! that a search can leave single accidents out and see whether the rest still does harm.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::dice::Dice;

/// How often what goes wrong, in a thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// A request that comes late.
    pub slow: u32,
    /// A request that never arrives: its sender hears of a broken connection.
    pub lost: u32,
    /// A request that never arrives, and its sender hears nothing.
    pub swallowed: u32,
    /// A request that is refused: 429, 500, 503.
    pub refused: u32,
    /// An update that is refused because the object has changed (409).
    pub conflict: u32,
    /// A request that is carried out, and the answer is lost.
    pub answer_lost: u32,
    /// A request that writes, after which its sender stands still for a while, as a process that is stopped does; a tenth of
    /// that for renewals of the lead.
    pub paused: u32,
    /// An event of a watch after which the watch ends.
    pub watch_ends: u32,
    /// An event of a watch that comes late, and all after it.
    pub watch_stalls: u32,
    /// An event of a watch that comes twice.
    pub watch_repeats: u32,
    /// A watch that begins with a state that is not the latest, for its server has not heard of it yet.
    pub stale: u32,
    /// A call of the cloud that is refused, or fails and has no effect.
    pub cloud_fails: u32,
    /// A call of the cloud that has its effect, and the answer is lost.
    pub cloud_answer_lost: u32,
    /// A call of the cloud that is never answered, and has no effect.
    pub cloud_swallowed: u32,
    /// An offering that is out of stock when it is asked for.
    pub stock_out: u32,
    /// Ten minutes after which the prices of spot instances are others.
    pub prices_move: u32,
    /// An instance that the cloud does not list for a while.
    pub unlisted: u32,
    /// An instance whose node never joins.
    pub never_joins: u32,
    /// An instance whose node lacks a GPU.
    pub lacks_gpu: u32,
    /// An instance that dies.
    pub dies: u32,
    /// A spot instance that the cloud takes back, told before or not.
    pub interrupted: u32,
    /// Accidents of the whole cluster in an hour: crashes, cut networks, clocks that jump.
    pub events_per_hour: u32,
}

impl Rates {
    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        slow: 0,
        lost: 0,
        swallowed: 0,
        refused: 0,
        conflict: 0,
        answer_lost: 0,
        paused: 0,
        watch_ends: 0,
        watch_stalls: 0,
        watch_repeats: 0,
        stale: 0,
        cloud_fails: 0,
        cloud_answer_lost: 0,
        cloud_swallowed: 0,
        stock_out: 0,
        prices_move: 0,
        unlisted: 0,
        never_joins: 0,
        lacks_gpu: 0,
        dies: 0,
        interrupted: 0,
        events_per_hour: 0,
    };

    /// A bad day.
    pub const USUAL: Self = Self {
        slow: 30,
        lost: 10,
        swallowed: 3,
        refused: 15,
        conflict: 15,
        answer_lost: 15,
        paused: 20,
        watch_ends: 5,
        watch_stalls: 10,
        watch_repeats: 10,
        stale: 200,
        cloud_fails: 50,
        cloud_answer_lost: 50,
        cloud_swallowed: 10,
        stock_out: 100,
        prices_move: 300,
        unlisted: 100,
        never_joins: 40,
        lacks_gpu: 30,
        dies: 40,
        interrupted: 80,
        events_per_hour: 10,
    };

    /// All of them so many hundredths of what they are; none above every other time.
    pub fn percent(self, percent: u32) -> Self {
        let scale = |rate: u32| (rate.saturating_mul(percent) / 100).min(500);
        Self {
            slow: scale(self.slow),
            lost: scale(self.lost),
            swallowed: scale(self.swallowed),
            refused: scale(self.refused),
            conflict: scale(self.conflict),
            answer_lost: scale(self.answer_lost),
            paused: scale(self.paused),
            watch_ends: scale(self.watch_ends),
            watch_stalls: scale(self.watch_stalls),
            watch_repeats: scale(self.watch_repeats),
            stale: scale(self.stale),
            cloud_fails: scale(self.cloud_fails),
            cloud_answer_lost: scale(self.cloud_answer_lost),
            cloud_swallowed: scale(self.cloud_swallowed),
            stock_out: scale(self.stock_out),
            prices_move: scale(self.prices_move),
            unlisted: scale(self.unlisted),
            never_joins: scale(self.never_joins),
            lacks_gpu: scale(self.lacks_gpu),
            dies: scale(self.dies),
            interrupted: scale(self.interrupted),
            events_per_hour: scale(self.events_per_hour),
        }
    }
}

/// Where accidents happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// A request to the API server.
    Request,
    /// An event of a watch.
    Watch,
    /// A call of the cloud.
    Cloud,
    /// An offering that is asked for.
    Stock,
    /// An instance.
    Instance,
    /// The whole cluster.
    Cluster,
    /// The prices of spot instances, every ten minutes.
    Price,
    /// The beginning of a watch.
    Cache,
}

impl Site {
    const ALL: [Self; 8] = [
        Self::Request,
        Self::Watch,
        Self::Cloud,
        Self::Stock,
        Self::Instance,
        Self::Cluster,
        Self::Price,
        Self::Cache,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Watch => "watch",
            Self::Cloud => "cloud",
            Self::Stock => "order",
            Self::Instance => "instance",
            Self::Cluster => "blow",
            Self::Price => "price",
            Self::Cache => "cache",
        }
    }
}

/// One accident: the so-manieth time that something could go wrong at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Accident {
    /// Where.
    pub site: Site,
    /// Which.
    pub number: u64,
}

impl fmt::Display for Accident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.site.name(), self.number)
    }
}

impl FromStr for Accident {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sites = || Site::ALL.map(Site::name).join(", ");
        let wrong = || {
            format!("`{text}` is no accident: write a site and a number, as request:17 (sites: {})", sites())
        };
        let (site, number) = text.split_once(':').ok_or_else(wrong)?;
        let site = Site::ALL.into_iter().find(|known| known.name() == site).ok_or_else(wrong)?;
        Ok(Self { site, number: number.parse().map_err(|_| wrong())? })
    }
}

/// What goes wrong in one world. Clones share everything.
#[derive(Clone, Debug)]
pub struct Accidents {
    seed: u64,
    rates: Rates,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    counts: [u64; Site::ALL.len()],
    only: Option<BTreeSet<Accident>>,
    happened: Vec<Accident>,
    struck: [u64; Site::ALL.len()],
    over: bool,
}

impl Accidents {
    /// Those of a seed: all, or only some of them.
    pub fn new(seed: u64, rates: Rates, only: Option<BTreeSet<Accident>>) -> Self {
        let inner = Inner { only, ..Inner::default() };
        Self { seed, rates, inner: Arc::new(Mutex::new(inner)) }
    }

    /// Looks whether something goes wrong here: `choose` is given the rates and dice that belong to this very occasion.
    pub fn at<T>(&self, site: Site, choose: impl FnOnce(&Rates, &mut Dice) -> Option<T>) -> Option<T> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let count = &mut inner.counts[site as usize];
        let accident = Accident { site, number: *count };
        *count += 1;
        if inner.over || inner.only.as_ref().is_some_and(|only| !only.contains(&accident)) {
            return None;
        }
        let chosen = choose(&self.rates, &mut Dice::nth(self.seed, site.name(), accident.number))?;
        inner.happened.push(accident);
        inner.struck[site as usize] += 1;
        Some(chosen)
    }

    /// From now on nothing goes wrong any more.
    pub fn end(&self) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).over = true;
    }

    /// How often something went wrong at these sites so far.
    pub fn struck(&self, sites: &[Site]) -> u64 {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        sites.iter().map(|site| inner.struck[*site as usize]).sum()
    }

    /// What went wrong so far, in order.
    pub fn happened(&self) -> Vec<Accident> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).happened.clone()
    }
}

/// One of several things that go wrong at the given rates (in a thousand), or nothing.
pub fn one_of<T: Copy>(dice: &mut Dice, all: &[(u32, T)]) -> Option<T> {
    let mut roll = u32::try_from(dice.below(1000)).unwrap_or(u32::MAX);
    for (rate, what) in all {
        if roll < *rate {
            return Some(*what);
        }
        roll -= *rate;
    }
    None
}

/// Between two times, by dice.
pub fn span(dice: &mut Dice, low_millis: u64, high_millis: u64) -> Duration {
    dice.between(Duration::from_millis(low_millis), Duration::from_millis(high_millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strike(accidents: &Accidents) -> Vec<bool> {
        let one =
            || accidents.at(Site::Request, |rates, dice| dice.per_mille(rates.refused * 10).then_some(()));
        (0..200).map(|_| one().is_some()).collect()
    }

    #[test]
    fn leaving_one_accident_out_moves_no_other() {
        let all = Accidents::new(5, Rates::USUAL, None);
        let before = strike(&all);
        let mut rest = all.happened();
        let first = rest.remove(0);
        let without = Accidents::new(5, Rates::USUAL, Some(rest.into_iter().collect()));
        let after = strike(&without);
        let differs: Vec<usize> = (0..200).filter(|at| before[*at] != after[*at]).collect();
        assert_eq!(differs, [usize::try_from(first.number).unwrap()]);
    }

    #[test]
    fn an_accident_is_read_as_it_is_written() {
        let accident = Accident { site: Site::Cluster, number: 3 };
        assert_eq!(accident.to_string().parse(), Ok(accident));
        let error = "blows:3".parse::<Accident>().unwrap_err();
        assert!(error.contains("`blows:3`") && error.contains("request, watch"), "{error}");
    }

    #[test]
    fn nothing_goes_wrong_once_it_is_over() {
        let accidents = Accidents::new(5, Rates::USUAL, None);
        accidents.end();
        assert!(strike(&accidents).iter().all(|struck| !struck));
        assert!(strike(&Accidents::new(5, Rates::NONE, None)).iter().all(|struck| !struck));
    }
}
