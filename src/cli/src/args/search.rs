//! Flags for the effort of the search, shared by all commands that solve.

use std::time::Duration;

use jiff::SignedDuration;
use poolwright_solver::Options;

use super::number::whole;
use super::plan::duration;

/// The default time limit of the search.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Without a gap from the user, plans of up to this many pods are searched on to the cheapest.
const FINISH_PODS: u64 = 100;

/// How far to search.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SearchFlags {
    /// Stop after this long with the best plan so far (5s, 500ms, 1m) [default: 5s]
    ///
    /// The search ends earlier when the plan is provably good enough. If a command makes several plans, each has this time.
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "How far to search")]
    pub time_limit: Option<SignedDuration>,

    /// Stop after this much counted work; one unit is about half a microsecond of one core [default: 20,000,000]
    ///
    /// Counted work ends at the same point on every machine, so the plan is the same. Then only --time-limit also limits the
    /// time. Each call of the solver has its own count: one call for each weight of pools, and more where limits leave pods out.
    #[arg(
        long,
        hide = true,
        value_name = "UNITS",
        value_parser = whole(1..=u64::MAX, 5_000_000),
        allow_negative_numbers = true,
        help_heading = "How far to search"
    )]
    pub work_limit: Option<u64>,

    /// Stop when the plan provably costs at most this much more than the cheapest [default: 0.1%]
    ///
    /// Write 0.1% or 0.001. With 0, each search goes on until it has proved its result the cheapest. A plan can take several
    /// searches, for instance where pools have weights or rules on spot nodes, and may then not be proved the cheapest. Without
    /// this flag, the search for up to 100 pods goes on below 0.1%, for up to an eighth of the counted work.
    #[arg(
        long,
        value_name = "RATIO",
        value_parser = ratio,
        allow_negative_numbers = true,
        help_heading = "How far to search"
    )]
    pub gap: Option<f64>,

    /// Threads to search with; the plan does not depend on it [default: one per processor, 8 at most]
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = whole(1..=64_u16, 8),
        allow_negative_numbers = true,
        help_heading = "How far to search"
    )]
    pub threads: Option<u16>,
}

impl SearchFlags {
    /// Returns the time limit; `None` for no limit.
    pub fn time_limit(&self) -> Option<Duration> {
        match (self.time_limit, self.work_limit) {
            (Some(limit), _) => Some(limit.unsigned_abs()),
            (None, Some(_)) => None,
            (None, None) => Some(TIME_LIMIT),
        }
    }

    /// Returns the options of the solver.
    pub fn options(&self) -> Options {
        let default = Options::default();
        Options {
            gap_target: self.gap.unwrap_or(default.gap_target),
            finish_pods: if self.gap.is_none() { FINISH_PODS } else { 0 },
            work: self.work_limit.unwrap_or(default.work),
            threads: self.threads.map_or(default.threads, usize::from),
            ..default
        }
    }
}

/// Parses `0.1%` or `0.001`, from 0 to 1.
fn ratio(text: &str) -> Result<f64, String> {
    let remedy = "write a percentage like 0.1%, or a fraction like 0.001";
    let (digits, per) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits.trim_end(), 100.0));
    let parsed: f64 = digits.parse().map_err(|_| format!("not a ratio; {remedy}"))?;
    let ratio = parsed / per;
    if (0.0..=1.0).contains(&ratio) { Ok(ratio) } else { Err(format!("a gap is from 0 to 100%; {remedy}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_percentage_or_a_fraction_and_neither_negative_nor_above_one() {
        assert_eq!(ratio("0.1%"), Ok(0.001));
        assert_eq!(ratio("0.001"), Ok(0.001));
        assert_eq!(ratio("0"), Ok(0.0));
        for wrong in ["", "%", "little", "-1", "-0.1%", "1.5", "101%", "NaN", "inf"] {
            assert!(ratio(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn small_plans_are_searched_to_the_cheapest_unless_a_gap_is_asked_for() {
        let options = |gap| SearchFlags { gap, ..SearchFlags::default() }.options();
        assert_eq!((options(None).gap_target, options(None).finish_pods), (0.001, FINISH_PODS));
        assert_eq!((options(Some(0.02)).gap_target, options(Some(0.02)).finish_pods), (0.02, 0));
    }

    #[test]
    fn counted_work_alone_stops_the_search_unless_time_is_asked_for_too() {
        let limits = |time: Option<i64>, work_limit| {
            let time_limit = time.map(SignedDuration::from_secs);
            SearchFlags { time_limit, work_limit, gap: None, threads: None }.time_limit()
        };
        assert_eq!(limits(None, None), Some(TIME_LIMIT));
        assert_eq!(limits(None, Some(1)), None);
        assert_eq!(limits(Some(60), Some(1)), Some(Duration::from_mins(1)));
    }
}
