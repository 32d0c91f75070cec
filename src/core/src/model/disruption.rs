//! Which nodes of a pool may be disturbed for which reasons, how many at a time, and when.

use std::collections::BTreeSet;
use std::fmt;

use cronexpr::{Crontab, MakeTimestamp, parse_crontab};
use jiff::{SignedDuration, Timestamp};
use poolwright_terms::Reason;
use serde::{Deserialize, Serialize};

use crate::model::budget::Share;

/// What a pool says about disturbing its nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disruption {
    /// Whether work is moved so that the same work costs less.
    pub moves_work: bool,
    /// How old the newest pod of a node must be before its work is moved; `None` for never.
    pub quiet_for: Option<SignedDuration>,
    /// Within which time a move must have earned back what it costs.
    pub payback: SignedDuration,
    /// How many nodes may be disturbed at a time; without any, [`Self::DEFAULT_PERCENT`] for every cause but [`Cause::Empty`].
    pub budgets: Vec<NodeBudget>,
    /// How old a node may get; `None` for any age.
    pub expire_after: Option<SignedDuration>,
    /// An annotation of the pool keeps all its nodes as they are.
    pub kept: bool,
    /// Which conditions of its nodes are borne for how long.
    #[serde(default)]
    pub repair: Vec<RepairRule>,
}

/// A node with this condition is replaced after a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairRule {
    /// The type of a node's condition.
    pub condition: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// For how long it is borne.
    pub after: SignedDuration,
}

impl Disruption {
    /// How many of a hundred nodes may be disturbed at a time where a pool says nothing.
    pub const DEFAULT_PERCENT: u64 = 10;
}

impl Default for Disruption {
    /// Work is not moved, nodes get as old as they like; a tenth at a time.
    fn default() -> Self {
        Self {
            moves_work: false,
            quiet_for: Some(SignedDuration::from_mins(5)),
            payback: SignedDuration::from_hours(1),
            budgets: Vec::new(),
            expire_after: None,
            kept: false,
            repair: Vec::new(),
        }
    }
}

/// Why a node is disturbed that could go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// It has no work.
    Empty,
    /// Its work costs less elsewhere.
    Underutilized,
    /// Its cloud takes the instance back, or says that something else is about to happen to it.
    Interrupted,
    /// It is not what its pool says any more.
    Drifted,
    /// It is older than its pool allows.
    Expired,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 5] =
        [Self::Empty, Self::Underutilized, Self::Interrupted, Self::Drifted, Self::Expired];

    /// The reason of the condition `Disrupting`.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Empty => Reason::Empty,
            Self::Underutilized => Reason::Underutilized,
            Self::Interrupted => Reason::Interrupted,
            Self::Drifted => Reason::Drifted,
            Self::Expired => Reason::Expired,
        }
    }

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        self.reason().as_str()
    }

    /// The cause of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == name)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How many nodes of a pool may be disturbed at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeBudget {
    /// How many; a percentage of the pool's nodes is rounded up.
    pub nodes: Share,
    /// For which causes; all if there are none.
    pub causes: BTreeSet<Cause>,
    /// When it is in force; `None` for always.
    pub window: Option<Window>,
}

impl NodeBudget {
    /// Whether it speaks of a cause at a time.
    pub fn concerns(&self, cause: Cause, now: Timestamp) -> bool {
        let causes = self.causes.is_empty() || self.causes.contains(&cause);
        causes && self.window.as_ref().is_none_or(|window| window.is_open(now))
    }

    /// How many of so many nodes may be disturbed.
    pub fn allows(&self, nodes: u64) -> u64 {
        match (&self.window, self.nodes) {
            // Nobody knows when it was to be in force.
            (Some(Window::Unreadable(_)), _) => 0,
            (_, Share::Count(count)) => count,
            (_, Share::Percent(percent)) => {
                u64::try_from((u128::from(nodes) * u128::from(percent)).div_ceil(100)).unwrap_or(u64::MAX)
            }
        }
    }
}

/// When a budget is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Window {
    /// For a time from each time of a schedule on.
    Scheduled {
        /// The times.
        schedule: Schedule,
        /// For how long.
        length: SignedDuration,
    },
    /// It makes no sense, for this reason: the budget is in force always and allows nothing.
    Unreadable(String),
}

impl Window {
    /// Whether it is open.
    pub fn is_open(&self, now: Timestamp) -> bool {
        match self {
            Self::Scheduled { schedule, length } => schedule.hits_within(now, *length),
            Self::Unreadable(_) => true,
        }
    }
}

/// Times that come again and again, as cron has them, in a time zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    text: String,
    zone: String,
}

impl Schedule {
    /// Reads five fields, or one of cron's names such as `@daily`, and the name of a time zone.
    ///
    /// # Errors
    /// What is wrong, in a sentence that quotes it.
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

    /// Whether one of its times is no longer ago than this. One that cannot be worked out is taken to be.
    pub fn hits_within(&self, now: Timestamp, length: SignedDuration) -> bool {
        let Ok(crontab) = self.crontab() else { return true };
        // A moment earlier, so that a time that is exactly that long ago is over.
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
    fn what_is_no_schedule_is_refused_with_what_to_write() {
        assert!(Schedule::parse("every day", "UTC").unwrap_err().contains("such as `0 9 * * mon-fri`"));
        assert!(Schedule::parse("61 * * * *", "UTC").unwrap_err().starts_with("`61 * * * *` is no schedule"));
        assert!(Schedule::parse("* * * * *", "Mars/Phobos").unwrap_err().contains("such as `Europe/Berlin`"));
        assert!(Schedule::parse("@reboot", "UTC").is_err());
    }

    #[test]
    fn a_budget_that_makes_no_sense_allows_nothing_at_any_time() {
        let window = Some(Window::Unreadable("no schedule".into()));
        let budget = NodeBudget { nodes: Share::Percent(50), causes: BTreeSet::new(), window };
        assert!(budget.concerns(Cause::Drifted, at("2026-11-23T08:30:00Z")));
        assert_eq!(budget.allows(100), 0);
    }

    #[test]
    fn a_percentage_is_rounded_up_and_a_number_is_itself() {
        let budget = |nodes| NodeBudget { nodes, causes: BTreeSet::new(), window: None };
        assert_eq!(budget(Share::Percent(10)).allows(1), 1);
        assert_eq!(budget(Share::Percent(10)).allows(11), 2);
        assert_eq!(budget(Share::Percent(0)).allows(11), 0);
        assert_eq!(budget(Share::Count(3)).allows(1), 3);
    }
}
