//! Monthly budgets of pools: what was spent in a calendar month (UTC), and what the month will cost.
//!
//! The forecast for the end of the month is what was spent, and the price of all nodes of now for the rest of the month.

use std::fmt;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};
use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_terms::{ConditionType, Reason};
use serde::{Deserialize, Serialize};

use crate::model::claim::Claim;

/// The milliseconds of an hour.
const HOUR: u128 = 3_600_000;

/// A budget of a pool for each calendar month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonthlyBudget {
    /// The budget for one month.
    pub usd: Usd,
    /// Whether the pool buys nothing in a month whose budget is spent.
    pub stops_buying: bool,
    /// What was spent, as last recorded; `None` if nothing is recorded.
    pub spend: Option<MonthSpend>,
}

/// What was spent in one month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonthSpend {
    /// When counting began, in that month. Nodes that were gone by then are missing.
    pub from: Timestamp,
    /// Until when every second counts.
    pub until: Timestamp,
    /// What was spent until then.
    pub usd: Usd,
}

/// A node that is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaidNode {
    /// Its price; `None` if that is unknown. Then it counts as nothing.
    pub price: Option<UsdPerHour>,
    /// When it was launched.
    pub since: Timestamp,
    /// When it was gone; `None` if it is there.
    pub until: Option<Timestamp>,
}

impl PaidNode {
    /// Returns the node of a claim; `None` before its launch.
    pub fn of(claim: &Claim) -> Option<Self> {
        claim.launched.as_ref()?;
        let since = claim.since(ConditionType::Launched).unwrap_or(claim.created);
        Some(Self { price: claim.current_offering().price, since, until: None })
    }

    /// Returns what it costs between two times.
    fn cost(&self, from: Timestamp, to: Timestamp) -> Usd {
        Usd::of(self.price, time(self.since.max(from), self.until.map_or(to, |until| until.min(to))))
    }
}

impl MonthSpend {
    /// Continues what was recorded before until `now`, in whole seconds. Time that counts already never counts again, even if the clock
    /// goes back. In another month, counting begins anew.
    pub fn continued<'n>(
        before: Option<Self>,
        nodes: impl IntoIterator<Item = &'n PaidNode>,
        now: Timestamp,
    ) -> Self {
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let month = Month::of(now);
        let start = match before {
            Some(known) if Month::of(known.from) == month => known,
            // The months before were counted, so this one is counted from its start.
            Some(known) if known.from < month.start => Self::nothing(month.start, month.start),
            _ => Self::nothing(now, month.start),
        };
        let spent = nodes.into_iter().map(|node| node.cost(start.until, now).0).sum::<u128>();
        Self { usd: Usd(start.usd.0.saturating_add(spent)), until: start.until.max(now), ..start }
    }

    const fn nothing(from: Timestamp, until: Timestamp) -> Self {
        Self { from, until, usd: Usd(0) }
    }
}

/// A calendar month in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Month {
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment of the next month.
    pub end: Timestamp,
}

impl Month {
    /// Returns the month of a time.
    pub fn of(at: Timestamp) -> Self {
        let first = at.to_zoned(TimeZone::UTC).date().first_of_month();
        let midnight = |day: Date| Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp());
        let next = first.checked_add(Span::new().months(1)).ok();
        Self {
            start: midnight(first).unwrap_or(Timestamp::MIN),
            end: next.and_then(midnight).unwrap_or(Timestamp::MAX),
        }
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.start.to_zoned(TimeZone::UTC).date();
        write!(f, "{:04}-{:02}", first.year(), first.month())
    }
}

/// How a month will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetState {
    /// The budget lasts.
    OnTrack,
    /// The budget is spent before the month ends, at this time.
    WillMiss(Timestamp),
    /// The budget is spent.
    Spent,
}

/// What a month will cost, compared with its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetOutlook {
    /// The budget.
    pub budget: MonthlyBudget,
    /// The month.
    pub month: Month,
    /// What was spent.
    pub spend: MonthSpend,
    /// The price of all nodes of now, including those on their way.
    pub rate: UsdPerHour,
    /// The number of nodes without a known price. They count as nothing, so the month may cost more.
    pub unpriced: usize,
    /// What the month will cost.
    pub forecast: Usd,
    /// How it will end.
    pub state: BudgetState,
}

impl BudgetOutlook {
    /// Returns the outlook after this was spent, with nodes of these prices.
    pub fn after(
        budget: MonthlyBudget,
        spend: MonthSpend,
        prices: impl Iterator<Item = Option<UsdPerHour>>,
    ) -> Self {
        let (mut rate, mut unpriced) = (UsdPerHour::ZERO, 0);
        for price in prices {
            match price {
                Some(price) => rate += price,
                None => unpriced += 1,
            }
        }
        let month = Month::of(spend.from);
        let rest = Usd::of(Some(rate), time(spend.until, month.end));
        let forecast = Usd(spend.usd.0.saturating_add(rest.0));
        let state = match budget.usd.0.checked_sub(spend.usd.0) {
            None | Some(0) => BudgetState::Spent,
            Some(left) if rest.0 > left => BudgetState::WillMiss(reached(left, rate, spend.until, month.end)),
            Some(_) => BudgetState::OnTrack,
        };
        Self { budget, month, spend, rate, unpriced, forecast, state }
    }

    /// Returns whether the pool buys nothing before the month ends.
    pub fn stops_buying(&self) -> bool {
        self.budget.stops_buying && self.state == BudgetState::Spent
    }

    /// Returns the reason for its state.
    pub const fn reason(&self) -> Reason {
        match self.state {
            BudgetState::OnTrack => Reason::BudgetOnTrack,
            BudgetState::WillMiss(_) => Reason::BudgetWillBeMissed,
            BudgetState::Spent => Reason::BudgetSpent,
        }
    }
}

impl fmt::Display for BudgetOutlook {
    /// Writes a sentence with the next step. What changes with each minute is in parentheses, where it is no news.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { budget, month, spend, .. } = self;
        let unpriced = if self.unpriced > 0 { " and more, because some prices are unknown" } else { "" };
        let since = if spend.from > month.start { format!(" since {}", spend.from) } else { String::new() };
        let when = match self.state {
            BudgetState::WillMiss(at) => format!(", all of it by {at}"),
            _ => String::new(),
        };
        let amounts = format!(
            "{:#} spent{since}, {:#} now{when}; forecast {:#}{unpriced}",
            spend.usd, self.rate, self.forecast
        );
        write!(f, "monthlyBudget {:#} of the pool ", budget.usd)?;
        match self.state {
            BudgetState::OnTrack => write!(f, "lasts until {month} ends ({amounts})"),
            BudgetState::WillMiss(_) => {
                write!(
                    f,
                    "will be spent before {month} ends ({amounts}); run less, or raise spec.monthlyBudget.usd"
                )
            }
            BudgetState::Spent if budget.stops_buying => write!(
                f,
                "is spent for {month} ({amounts}), so it buys nothing before {}; raise spec.monthlyBudget.usd, or wait until then",
                month.end
            ),
            BudgetState::Spent => {
                write!(f, "is spent for {month} ({amounts}); run less, or raise spec.monthlyBudget.usd")
            }
        }
    }
}

/// Returns the time between two moments; zero if the second is earlier.
fn time(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Returns when an amount is spent at a rate, in whole seconds, but not after `end`.
fn reached(left: u128, rate: UsdPerHour, from: Timestamp, end: Timestamp) -> Timestamp {
    let millis = left.saturating_mul(HOUR) / u128::from(rate.micros().max(1));
    let seconds = i64::try_from(millis / 1000).unwrap_or(i64::MAX);
    from.checked_add(SignedDuration::from_secs(seconds)).map_or(end, |at| at.min(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn node(price: &str, since: &str) -> PaidNode {
        PaidNode { price: Some(price.parse().unwrap()), since: at(since), until: None }
    }

    fn budget(dollars: u128) -> MonthlyBudget {
        MonthlyBudget { usd: Usd(dollars * 1_000_000), stops_buying: true, spend: None }
    }

    fn dollars(spend: &MonthSpend) -> u128 {
        assert_eq!(spend.usd.0 % 1_000_000, 0, "{spend:?}");
        spend.usd.0 / 1_000_000
    }

    fn outlook(dollars: u128, spend: MonthSpend, prices: &[Option<&str>]) -> BudgetOutlook {
        let prices = prices.iter().map(|price| price.map(|price| price.parse().unwrap()));
        BudgetOutlook::after(budget(dollars), spend, prices)
    }

    #[test]
    fn a_month_is_one_of_the_calendar_and_february_has_29_days_in_a_leap_year() {
        let february = Month::of(at("2028-02-29T23:59:59Z"));
        assert_eq!(february, Month { start: at("2028-02-01T00:00:00Z"), end: at("2028-03-01T00:00:00Z") });
        assert_eq!(february.to_string(), "2028-02");
        assert_eq!(Month::of(at("2026-12-31T23:59:59Z")).end, at("2027-01-01T00:00:00Z"));
        let spend = MonthSpend::continued(None, &[], at("2028-02-28T00:00:00Z"));
        assert_eq!(outlook(100, spend, &[Some("1")]).forecast, Usd(48_000_000), "two days are left");
    }

    #[test]
    fn every_second_of_a_node_counts_once_whoever_counts_and_however_the_clock_jumps() {
        let nodes = [node("2", "2026-11-10T00:00:00Z")];
        let first = MonthSpend::continued(None, &nodes, at("2026-11-10T03:00:00.7Z"));
        assert_eq!((dollars(&first), first.until), (6, at("2026-11-10T03:00:00Z")), "from its launch on");
        let back = MonthSpend::continued(Some(first), &nodes, at("2026-11-10T01:00:00Z"));
        assert_eq!(back, first, "the clock went back");
        let again = MonthSpend::continued(Some(back), &nodes, at("2026-11-10T03:00:00.9Z"));
        assert_eq!(again, first, "another leader counts");
        let later = MonthSpend::continued(Some(again), &nodes, at("2026-11-10T05:00:00Z"));
        assert_eq!(dollars(&later), 10);
        let gone = PaidNode { until: Some(at("2026-11-10T06:00:00Z")), ..nodes[0] };
        let last = MonthSpend::continued(Some(later), &[gone], at("2026-11-10T09:00:00Z"));
        assert_eq!(dollars(&last), 12, "until it was gone");
    }

    #[test]
    fn the_next_month_begins_with_nothing_at_its_first_moment() {
        let nodes = [node("2", "2026-11-10T00:00:00Z")];
        let november = MonthSpend::continued(None, &nodes, at("2026-11-30T23:00:00Z"));
        let december = MonthSpend::continued(Some(november), &nodes, at("2026-12-01T02:00:00Z"));
        assert_eq!((dollars(&december), december.from), (4, at("2026-12-01T00:00:00Z")));
        let jumped = MonthSpend::continued(Some(december), &nodes, at("2026-11-30T23:30:00Z"));
        assert_eq!(Month::of(jumped.from).to_string(), "2026-11", "a wrong clock was put right");
    }

    #[test]
    fn a_budget_is_judged_by_the_rate_of_now_and_a_change_in_mid_month_keeps_what_was_spent() {
        let from = at("2026-11-01T00:00:00Z");
        let spend = MonthSpend { from, until: at("2026-11-21T00:00:00Z"), usd: Usd(1_000_000_000) };
        let state = |dollars, prices: &[Option<&str>]| outlook(dollars, spend, prices).state;
        assert_eq!(state(1240, &[Some("1")]), BudgetState::OnTrack, "ten days for one dollar an hour");
        assert_eq!(state(1239, &[Some("1")]), BudgetState::WillMiss(at("2026-11-30T23:00:00Z")));
        assert_eq!(state(1239, &[]), BudgetState::OnTrack);
        assert_eq!(state(1000, &[]), BudgetState::Spent);
        assert_eq!(state(10, &[]), BudgetState::Spent);
        let unknown = outlook(5000, spend, &[None, Some("1")]);
        assert_eq!((unknown.unpriced, unknown.forecast), (1, Usd(1_240_000_000)));
        assert!(unknown.to_string().contains("forecast $1,240.00 and more"), "{unknown}");
    }

    #[test]
    fn the_sentence_has_the_budget_what_was_spent_the_end_of_the_month_and_what_to_do() {
        let spend = MonthSpend {
            from: at("2026-11-05T00:00:00Z"),
            until: at("2026-11-21T00:00:00Z"),
            usd: Usd(1_000_000_000),
        };
        assert_eq!(
            outlook(1000, spend, &[]).to_string(),
            "monthlyBudget $1,000.00 of the pool is spent for 2026-11 ($1,000.00 spent since 2026-11-05T00:00:00Z, $0.00/h now; forecast \
             $1,000.00), so it buys nothing before 2026-12-01T00:00:00Z; raise spec.monthlyBudget.usd, or wait until then"
        );
        assert_eq!(
            outlook(1239, spend, &[Some("1")]).to_string(),
            "monthlyBudget $1,239.00 of the pool will be spent before 2026-11 ends ($1,000.00 spent since 2026-11-05T00:00:00Z, $1.00/h \
             now, all of it by 2026-11-30T23:00:00Z; forecast $1,240.00); run less, or raise spec.monthlyBudget.usd"
        );
    }
}
