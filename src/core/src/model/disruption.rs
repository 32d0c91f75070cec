//! The disruption settings of a pool: the nodes that may be disrupted, the causes, the number at a time, and the times.

use std::collections::BTreeSet;
use std::fmt;

use cronexpr::{Crontab, MakeTimestamp, parse_crontab};
use jiff::{SignedDuration, Timestamp};
use poolwright_terms::Reason;
use serde::{Deserialize, Serialize};

use crate::model::budget::CountOrPercent;

/// The disruption settings of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disruption {
    /// Whether nodes are consolidated: their pods move to other nodes so that the same pods cost less.
    pub consolidates: bool,
    /// The age that the newest pod of a node must reach before the node is consolidated; `None` for never.
    pub consolidate_after: Option<SignedDuration>,
    /// The time within which a move must earn back its cost.
    pub payback: SignedDuration,
    /// Whether nodes retire: whether they close to newcomers that would run cheaper elsewhere.
    pub retires: bool,
    /// The limits on the number of nodes disrupted at a time. If empty, [`Self::DEFAULT_PERCENT`] applies to every cause except
    /// [`Cause::Empty`].
    pub budgets: Vec<DisruptionBudget>,
    /// The age at which a node expires; `None` for never.
    pub expire_after: Option<SignedDuration>,
    /// Whether an annotation of the pool forbids disruption of its nodes.
    pub do_not_disrupt: bool,
    /// The node conditions that lead to the replacement of a node.
    #[serde(default)]
    pub repair: Vec<RepairRule>,
}

/// A rule that replaces a node once it has had this condition for some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairRule {
    /// The type of a node's condition.
    pub condition: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The time that the condition must last.
    pub after: SignedDuration,
}

impl Disruption {
    /// The percentage of nodes that may be disrupted at a time if a pool sets no budgets.
    pub const DEFAULT_PERCENT: u64 = 10;
}

impl Default for Disruption {
    /// Creates rules without consolidation and expiry, with retirement, which allow disruption of a tenth of the nodes at a time.
    fn default() -> Self {
        Self {
            consolidates: false,
            consolidate_after: Some(SignedDuration::from_mins(5)),
            payback: SignedDuration::from_hours(1),
            retires: true,
            budgets: Vec::new(),
            expire_after: None,
            do_not_disrupt: false,
            repair: Vec::new(),
        }
    }
}

/// The cause for which a healthy node is disrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// No workload pods run on it.
    Empty,
    /// Its pods cost less on other nodes.
    Underutilized,
    /// Its cloud reclaims the instance or has announced another interruption.
    Interrupted,
    /// It no longer matches its pool.
    Drifted,
    /// It is older than the pool's `expireAfter`.
    Expired,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 5] =
        [Self::Empty, Self::Underutilized, Self::Interrupted, Self::Drifted, Self::Expired];

    /// Returns the reason of the condition `Disrupting`.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Empty => Reason::Empty,
            Self::Underutilized => Reason::Underutilized,
            Self::Interrupted => Reason::Interrupted,
            Self::Drifted => Reason::Drifted,
            Self::Expired => Reason::Expired,
        }
    }

    /// Returns the name in the API.
    pub const fn as_str(self) -> &'static str {
        self.reason().as_str()
    }

    /// Returns the cause with this reason.
    pub fn of(reason: Reason) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.reason() == reason)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A disruption budget, which limits how many nodes may be disrupted at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisruptionBudget {
    /// The number of nodes. A percentage is rounded up.
    pub nodes: CountOrPercent,
    /// The causes that it applies to; empty for all.
    pub causes: BTreeSet<Cause>,
    /// The schedule on which it is in force; `None` for always.
    pub window: Option<Window>,
}

impl DisruptionBudget {
    /// Returns whether it applies to this cause at this time.
    pub fn concerns(&self, cause: Cause, now: Timestamp) -> bool {
        let causes = self.causes.is_empty() || self.causes.contains(&cause);
        causes && self.window.as_ref().is_none_or(|window| window.is_open(now))
    }

    /// Returns the number of nodes, out of `nodes`, that may be disrupted.
    pub fn allows(&self, nodes: u64) -> u64 {
        match (&self.window, self.nodes) {
            // The schedule is invalid, so the budget might be in force now.
            (Some(Window::Unreadable(_)), _) => 0,
            (_, CountOrPercent::Count(count)) => count,
            (_, CountOrPercent::Percent(percent)) => {
                u64::try_from((u128::from(nodes) * u128::from(percent)).div_ceil(100)).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The times at which a budget is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Window {
    /// For some time after each time of a schedule.
    Scheduled {
        /// The times.
        schedule: Schedule,
        /// The duration.
        length: SignedDuration,
    },
    /// The schedule is invalid, for this reason. The budget is then always in force and allows nothing.
    Unreadable(String),
}

impl Window {
    /// Returns whether the window is open at `now`.
    pub fn is_open(&self, now: Timestamp) -> bool {
        match self {
            Self::Scheduled { schedule, length } => schedule.hits_within(now, *length),
            Self::Unreadable(_) => true,
        }
    }
}

/// A cron schedule in a time zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    text: String,
    zone: String,
}

impl Schedule {
    /// Parses a schedule of five fields, or one of cron's names such as `@daily`, and the name of a time zone.
    ///
    /// # Errors
    /// Returns a sentence that quotes the error.
    pub fn parse(text: &str, zone: &str) -> Result<Self, String> {
        let schedule = Self { text: text.trim().to_owned(), zone: zone.trim().to_owned() };
        if schedule.fields().split_whitespace().count() != 5 {
            return Err(format!(
                "`{text}` is no schedule: write minute, hour, day of month, month and day of week, such as `0 9 * * mon-fri`, or `@daily`"
            ));
        }
        if jiff::tz::TimeZone::get(&schedule.zone).is_err() {
            return Err(format!(
                "`{zone}` is not the name of a time zone: write one of the IANA database, such as `Europe/Berlin`"
            ));
        }
        schedule.crontab().map_err(|error| {
            let why = error.to_string();
            let why = why.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("`{text}` is no schedule: {}", why.trim_matches([' ', '^', '|']))
        })?;
        Ok(schedule)
    }

    fn fields(&self) -> &str {
        match self.text.as_str() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            fields => fields,
        }
    }

    fn crontab(&self) -> Result<Crontab, cronexpr::Error> {
        let text = format!("{} {}", self.fields(), self.zone);
        parse_crontab(&text)
    }

    /// Returns whether one of its times was less than `length` ago. Returns true if that cannot be computed.
    pub fn hits_within(&self, now: Timestamp, length: SignedDuration) -> bool {
        let Ok(crontab) = self.crontab() else { return true };
        // The start is excluded: a time exactly `length` ago is over.
        let from = now.checked_sub(length).unwrap_or(Timestamp::MIN);
        crontab.find_next(MakeTimestamp(from)).is_ok_and(|next| next.timestamp() <= now)
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn open(text: &str, zone: &str, hours: i64, now: &str) -> bool {
        let schedule = Schedule::parse(text, zone).unwrap();
        Window::Scheduled { schedule, length: SignedDuration::from_hours(hours) }.is_open(at(now))
    }

    #[test]
    fn a_window_is_open_from_each_time_of_its_schedule_on_for_its_length() {
        // 2026-11-23 is a Monday.
        assert!(!open("0 9 * * mon-fri", "UTC", 8, "2026-11-23T08:59:59Z"));
        assert!(open("0 9 * * mon-fri", "UTC", 8, "2026-11-23T09:00:00Z"));
        assert!(open("0 9 * * mon-fri", "UTC", 8, "2026-11-23T16:59:59Z"));
        assert!(!open("0 9 * * mon-fri", "UTC", 8, "2026-11-23T17:00:00Z"));
        assert!(!open("0 9 * * mon-fri", "UTC", 8, "2026-11-22T10:00:00Z"));
        assert!(open("@daily", "UTC", 1, "2026-11-22T00:30:00Z"));
    }

    #[test]
    fn a_schedule_goes_by_its_time_zone_through_summer_and_winter() {
        assert!(open("0 9 * * *", "Europe/Berlin", 1, "2026-11-23T08:30:00Z"));
        assert!(!open("0 9 * * *", "Europe/Berlin", 1, "2026-11-23T07:30:00Z"));
        assert!(open("0 9 * * *", "Europe/Berlin", 1, "2026-07-23T07:30:00Z"));
    }

    #[test]
    fn an_invalid_schedule_is_rejected_with_an_example() {
        assert!(Schedule::parse("every day", "UTC").unwrap_err().contains("such as `0 9 * * mon-fri`"));
        assert!(Schedule::parse("61 * * * *", "UTC").unwrap_err().starts_with("`61 * * * *` is no schedule"));
        assert!(Schedule::parse("* * * * *", "Mars/Phobos").unwrap_err().contains("such as `Europe/Berlin`"));
        assert!(Schedule::parse("@reboot", "UTC").is_err());
    }

    #[test]
    fn a_budget_that_makes_no_sense_allows_nothing_at_any_time() {
        let window = Some(Window::Unreadable("no schedule".into()));
        let budget = DisruptionBudget { nodes: CountOrPercent::Percent(50), causes: BTreeSet::new(), window };
        assert!(budget.concerns(Cause::Drifted, at("2026-11-23T08:30:00Z")));
        assert_eq!(budget.allows(100), 0);
    }

    #[test]
    fn a_percentage_is_rounded_up_and_a_number_is_itself() {
        let budget = |nodes| DisruptionBudget { nodes, causes: BTreeSet::new(), window: None };
        assert_eq!(budget(CountOrPercent::Percent(10)).allows(1), 1);
        assert_eq!(budget(CountOrPercent::Percent(10)).allows(11), 2);
        assert_eq!(budget(CountOrPercent::Percent(0)).allows(11), 0);
        assert_eq!(budget(CountOrPercent::Count(3)).allows(1), 3);
    }
}
