//! Faults: their kinds, sites and rates. The seed and the number of a call alone decide whether it fails. So a search can leave
//! out single faults and check whether the rest still break a rule.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::dice::Dice;

/// Probabilities of faults, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// A request to the API server is delayed.
    pub slow: u32,
    /// A request gets lost, and its sender sees a broken connection.
    pub lost: u32,
    /// A request gets lost, and its sender gets no error.
    pub swallowed: u32,
    /// A request is refused with 429, 500 or 503.
    pub refused: u32,
    /// An update is refused because the object has changed (409).
    pub conflict: u32,
    /// A request takes effect, but its response is lost.
    pub answer_lost: u32,
    /// A process stops for a while after it sends a write, as after SIGSTOP. Renewals of the Lease have a tenth of this rate.
    pub paused: u32,
    /// A watch ends after an event.
    pub watch_ends: u32,
    /// A watch delivers an event and all later ones late.
    pub watch_stalls: u32,
    /// A watch delivers an event twice.
    pub watch_repeats: u32,
    /// A watch begins with an old state, because the server's cache is behind.
    pub stale: u32,
    /// A call of the cloud fails without effect.
    pub cloud_fails: u32,
    /// A call of the cloud takes effect, but its response is lost.
    pub cloud_answer_lost: u32,
    /// A call of the cloud is never answered and has no effect.
    pub cloud_swallowed: u32,
    /// A call of the cloud panics: its task in the controller dies.
    pub cloud_panics: u32,
    /// A launch finds its offering out of stock.
    pub stock_out: u32,
    /// Spot prices change. Drawn every ten minutes.
    pub prices_move: u32,
    /// Listings omit a new instance for a while.
    pub unlisted: u32,
    /// A listing is empty, while the instances are there.
    pub empty_listing: u32,
    /// For a while, the controller sees another account, without any of its instances.
    pub wrong_account: u32,
    /// The node of an instance never joins.
    pub never_joins: u32,
    /// The node of an instance lacks a GPU.
    pub lacks_gpu: u32,
    /// An instance fails.
    pub dies: u32,
    /// The cloud interrupts a spot instance, with or without notice.
    pub interrupted: u32,
    /// The kubelet of an instance stops to report for a while.
    pub freezes: u32,
    /// The cloud announces maintenance of an instance.
    pub maintained: u32,
    /// Faults of the whole cluster per hour: crashes, network partitions, clock jumps.
    pub events_per_hour: u32,
}

impl Rates {
    /// No faults.
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
        cloud_panics: 0,
        stock_out: 0,
        prices_move: 0,
        unlisted: 0,
        empty_listing: 0,
        wrong_account: 0,
        never_joins: 0,
        lacks_gpu: 0,
        dies: 0,
        interrupted: 0,
        freezes: 0,
        maintained: 0,
        events_per_hour: 0,
    };

    /// The usual rates of a fuzz run.
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
        cloud_panics: 5,
        stock_out: 100,
        prices_move: 300,
        unlisted: 100,
        empty_listing: 10,
        wrong_account: 3,
        never_joins: 40,
        lacks_gpu: 30,
        dies: 40,
        interrupted: 80,
        freezes: 30,
        maintained: 30,
        events_per_hour: 10,
    };

    /// Scales all rates to this percentage. No rate exceeds one half.
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
            cloud_panics: scale(self.cloud_panics),
            stock_out: scale(self.stock_out),
            prices_move: scale(self.prices_move),
            unlisted: scale(self.unlisted),
            empty_listing: scale(self.empty_listing),
            wrong_account: scale(self.wrong_account),
            never_joins: scale(self.never_joins),
            lacks_gpu: scale(self.lacks_gpu),
            dies: scale(self.dies),
            interrupted: scale(self.interrupted),
            freezes: scale(self.freezes),
            maintained: scale(self.maintained),
            events_per_hour: scale(self.events_per_hour),
        }
    }
}

/// A place where faults happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// A request to the API server.
    Request,
    /// An event of a watch.
    Watch,
    /// A call of the cloud.
    Cloud,
    /// The launch of an offering.
    Stock,
    /// An instance.
    Instance,
    /// The whole cluster.
    Cluster,
    /// The spot prices, every ten minutes.
    Price,
    /// The beginning of a watch.
    Cache,
    /// A call of the cloud whose code panics.
    Panic,
}

impl Site {
    const ALL: [Self; 9] = [
        Self::Request,
        Self::Watch,
        Self::Cloud,
        Self::Stock,
        Self::Instance,
        Self::Cluster,
        Self::Price,
        Self::Cache,
        Self::Panic,
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
            Self::Panic => "panic",
        }
    }
}

/// One fault: the n-th occasion at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Accident {
    /// The site.
    pub site: Site,
    /// The number of the occasion, from 0.
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
        let wrong =
            || format!("`{text}` is no fault: write a site and a number, as request:17 (sites: {})", sites());
        let (site, number) = text.split_once(':').ok_or_else(wrong)?;
        let site = Site::ALL.into_iter().find(|known| known.name() == site).ok_or_else(wrong)?;
        Ok(Self { site, number: number.parse().map_err(|_| wrong())? })
    }
}

/// The faults of one world. Clones share their state.
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
    /// Makes the faults of a seed: all of them, or only those in `only`.
    pub fn new(seed: u64, rates: Rates, only: Option<BTreeSet<Accident>>) -> Self {
        let inner = Inner { only, ..Inner::default() };
        Self { seed, rates, inner: Arc::new(Mutex::new(inner)) }
    }

    /// Draws a fault for this occasion. `choose` gets the rates and this occasion's own dice.
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

    /// Stops all faults from now on.
    pub fn end(&self) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).over = true;
    }

    /// Returns the number of faults so far at these sites.
    pub fn struck(&self, sites: &[Site]) -> u64 {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        sites.iter().map(|site| inner.struck[*site as usize]).sum()
    }

    /// Returns the faults so far, in order.
    pub fn happened(&self) -> Vec<Accident> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).happened.clone()
    }
}

/// Draws one of several faults by their rates (in thousandths), or none.
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

/// Draws a duration between two bounds.
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
