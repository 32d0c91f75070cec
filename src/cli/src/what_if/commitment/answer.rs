//! What to buy, what it costs, and what it rests on.

use std::cmp::Reverse;
use std::fmt;

use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_report::money::{Ratio, amount, maybe_amount};
use poolwright_solver::purchase::{Bill, MILLION, Market, Purchase, STEP, Terms, bill};
use serde::{Serialize, Serializer};

use super::offers::{Kind, Offered};
use super::usage::Usage;
use crate::print::counted;

/// Hours of a month, as the clouds' calculators count it.
const MONTH: u128 = 730;

/// A part of the cost below one of this many is a matter of rounding.
const ROUNDING: u128 = 10_000;

/// The most points of the curve, besides its begin.
const POINTS: u64 = 20;

/// The answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `poolwright.dev/v1alpha1`.
    api_version: &'static str,
    /// `Commitment`.
    kind: &'static str,
    /// The answer in one line.
    pub verdict: String,
    /// The hours of the use. All amounts below are for them, unless they say otherwise.
    pub hours: u64,
    /// What each offer is for, and how much of it to buy.
    pub offers: Vec<Row>,
    /// The cost without commitments and with them.
    pub cost: Costs,
    /// What no purchase can go below, as the solver says; unknown if it does not say it.
    #[serde(serialize_with = "maybe_amount")]
    pub lower_bound_usd: Option<Usd>,
    /// The same commitments if less is used.
    pub at_less_load: LessLoad,
    /// The cost against the number of one offer, with all others as they are bought.
    pub curve: Option<Curve>,
    /// What the figures rest on.
    pub assumptions: Vec<String>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// An offer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// What it pays for.
    pub of: String,
    /// Its term; null for a block.
    pub term_months: Option<u32>,
    /// How much of it to buy.
    pub buy: Number,
    /// What that costs.
    #[serde(serialize_with = "poolwright_report::money::usd")]
    pub usd_per_hour: UsdPerHour,
    /// The part of the time, or of the money, from which on it pays.
    pub break_even: Part,
}

/// A number of nodes, or dollars per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Nodes.
    Nodes(u64),
    /// Money.
    Money(UsdPerHour),
}

impl Number {
    /// Returns this many units of an offer.
    fn of(terms: &Terms, count: u64) -> Self {
        match terms {
            Terms::Nodes { .. } => Self::Nodes(count),
            Terms::Money(_) => Self::Money(STEP.times(count)),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(0) | Self::Money(UsdPerHour::ZERO) => f.pad("-"),
            Self::Nodes(nodes) => f.pad(&nodes.to_string()),
            Self::Money(money) => f.pad(&format!("${money}/h")),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nodes(nodes) => serializer.serialize_u64(*nodes),
            Self::Money(money) => serializer.serialize_f64(money.as_f64()),
        }
    }
}

/// A part, as a fraction in documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(pub Ratio);

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_f64())
    }
}

/// Two costs.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Costs {
    /// All on demand.
    #[serde(rename = "usdWithout", serialize_with = "amount")]
    pub without: Usd,
    /// With the commitments.
    #[serde(rename = "usdWith", serialize_with = "amount")]
    pub with: Usd,
    /// The commitments alone.
    #[serde(rename = "usdCommitted", serialize_with = "amount")]
    pub committed: Usd,
    /// The rest on demand.
    #[serde(rename = "usdOnDemand", serialize_with = "amount")]
    pub on_demand: Usd,
    /// The regret of doing nothing: what is saved. Negative if the commitments cost more.
    #[serde(rename = "usdSaved")]
    pub saved: Saved,
}

/// The same commitments at less load.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LessLoad {
    /// How much less.
    pub percent: u64,
    /// What the use costs then.
    pub cost: Costs,
    /// The lowest cost then, with other numbers.
    #[serde(serialize_with = "amount")]
    pub usd_best: Usd,
    /// The regret of having bought: what the other numbers would save.
    pub usd_regret: Saved,
}

/// The cost against the number of an offer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Curve {
    /// The offer.
    pub offer: String,
    /// The costs, in the order of the numbers.
    pub points: Vec<Point>,
    /// The largest number of these at which it costs no more than without this offer.
    pub pays_up_to: Number,
}

/// A point of the curve.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// How much of the offer.
    pub number: Number,
    /// The cost.
    #[serde(serialize_with = "amount")]
    pub usd: Usd,
    /// Whether this number is bought.
    pub is_bought: bool,
}

/// A difference of costs in micro-dollars, which may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved(pub i128);

impl Saved {
    fn between(without: Usd, with: Usd) -> Self {
        let micros = |amount: Usd| i128::try_from(amount.0).unwrap_or(i128::MAX);
        Self(micros(without) - micros(with))
    }
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        f.pad(&format!("{sign}{:#}", Usd(self.0.unsigned_abs())))
    }
}

impl Serialize for Saved {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let size = Usd(self.0.unsigned_abs()).as_f64();
        serializer.serialize_f64(if self.0 < 0 { -size } else { size })
    }
}

impl Costs {
    fn of(market: &Market, counts: &[u64]) -> Self {
        let without = bill(market, &vec![0; counts.len()]).total();
        let with: Bill = bill(market, counts);
        Self {
            without,
            with: with.total(),
            committed: with.committed,
            on_demand: with.on_demand,
            saved: Saved::between(without, with.total()),
        }
    }
}

impl Answer {
    /// Describes a purchase, and how it does at less load, where another one is the best.
    pub fn of(
        usage: &Usage,
        offered: &[Offered],
        (now, bought): (&Market, &Purchase),
        (less, then): (&Market, &Purchase),
    ) -> Self {
        let cost = Costs::of(now, &bought.counts);
        let at_less = Costs::of(less, &bought.counts);
        let offers: Vec<Row> =
            offered.iter().zip(&bought.counts).map(|(one, count)| Row::of(one, *count)).collect();
        let (part, of) = super::LESS_LOAD;
        Self {
            api_version: poolwright_terms::API_VERSION,
            kind: "Commitment",
            verdict: verdict(&offers, &cost, usage.hours, unproven(bought).is_none()),
            hours: usage.hours,
            offers,
            cost,
            lower_bound_usd: bought.bound,
            at_less_load: LessLoad {
                percent: 100 - 100 * part / of,
                cost: at_less,
                usd_best: then.cost,
                usd_regret: Saved::between(at_less.with, then.cost),
            },
            curve: curve(offered, now, &bought.counts),
            assumptions: assumptions(usage, offered, bought),
            notes: Vec::new(),
        }
    }

    /// Returns an amount for a month of 730 hours.
    pub fn per_month(&self, cost: Usd) -> Usd {
        monthly(cost, self.hours)
    }

    /// Returns a difference for a month of 730 hours.
    pub fn saved_per_month(&self, saved: Saved) -> Saved {
        let size = i128::try_from(monthly(Usd(saved.0.unsigned_abs()), self.hours).0).unwrap_or(i128::MAX);
        Saved(if saved.0 < 0 { -size } else { size })
    }
}

fn monthly(cost: Usd, hours: u64) -> Usd {
    let hours = u128::from(hours.max(1));
    Usd((cost.0 * MONTH + hours / 2) / hours)
}

impl Row {
    fn of(one: &Offered, count: u64) -> Self {
        let usd_per_hour = match &one.offer.terms {
            Terms::Nodes { price, .. } => price.times(count),
            Terms::Money(_) => STEP.times(count),
        };
        let (part, whole) = one.break_even;
        Self {
            name: one.name.clone(),
            kind: one.kind,
            of: one.of.clone(),
            term_months: one.term_months,
            buy: Number::of(&one.offer.terms, count),
            usd_per_hour,
            break_even: Part(Ratio { part: part.into(), whole: whole.into() }),
        }
    }

    /// Returns whether any of it is bought.
    pub fn is_bought(&self) -> bool {
        self.usd_per_hour > UsdPerHour::ZERO
    }
}

/// Returns the part of the cost that the solver did not prove, unless it is a matter of rounding.
fn unproven(bought: &Purchase) -> Option<Ratio> {
    let cost = bought.cost.0;
    let part = bought.bound.map_or(cost, |bound| cost.saturating_sub(bound.0));
    (part * ROUNDING > cost).then_some(Ratio { part, whole: cost })
}

fn verdict(offers: &[Row], cost: &Costs, hours: u64, is_proven: bool) -> String {
    let bought: Vec<String> = offers
        .iter()
        .filter(|row| row.is_bought())
        .map(|row| format!("{} of {} ({} for {})", row.buy, row.name, row.kind, row.of))
        .collect();
    if bought.is_empty() {
        let why = if is_proven {
            "no offer saves anything"
        } else {
            "nothing that saves anything was found in time"
        };
        let month = monthly(cost.without, hours);
        return format!("Buy nothing: {why} for this use, which costs {month:#}/month on demand");
    }
    let saved = Usd(cost.saved.0.unsigned_abs());
    format!(
        "Buy {}: {:#}/month instead of {:#}/month, {} less",
        bought.join(", "),
        monthly(cost.with, hours),
        monthly(cost.without, hours),
        Ratio { part: saved.0, whole: cost.without.0 }
    )
}

/// Returns the curve of the offer that is bought for the most money; without one, of that which comes closest to paying.
fn curve(offered: &[Offered], market: &Market, counts: &[u64]) -> Option<Curve> {
    let spent = |at: usize| Row::of(&offered[at], counts[at]).usd_per_hour;
    let bought = (0..offered.len()).filter(|at| counts[*at] > 0).max_by_key(|at| (spent(*at), Reverse(*at)));
    // Compared in millionths, which only chooses what is shown.
    let ratio = |at: usize| {
        u128::from(offered[at].break_even.0) * u128::from(MILLION)
            / u128::from(offered[at].break_even.1.max(1))
    };
    let at = bought.or_else(|| (0..offered.len()).min_by_key(|at| (ratio(*at), *at)))?;
    let most = market.most(at).max(counts[at]);
    let least = market.offers[at].least.min(most);
    let mut numbers: Vec<u64> = (0..=POINTS)
        .map(|point| (u128::from(most) * u128::from(point) / u128::from(POINTS)) as u64)
        .collect();
    numbers.extend([counts[at], least]);
    numbers.retain(|number| *number == 0 || *number >= least);
    numbers.sort_unstable();
    numbers.dedup();
    let shown = |count: u64| Number::of(&offered[at].offer.terms, count);
    let cost = |count: u64| {
        let mut with = counts.to_vec();
        with[at] = count;
        bill(market, &with).total()
    };
    let point =
        |count: &u64| Point { number: shown(*count), usd: cost(*count), is_bought: *count == counts[at] };
    let points: Vec<Point> = numbers.iter().map(point).collect();
    let without = points.first()?.usd;
    let pays_up_to = points.iter().rev().find(|point| point.usd <= without)?.number;
    Some(Curve { offer: offered[at].name.clone(), points, pays_up_to })
}

fn assumptions(usage: &Usage, offered: &[Offered], bought: &Purchase) -> Vec<String> {
    let mut all = vec![
        format!(
            "The use is {} of node-hours on demand. A month has 730 hours like them, and every month of a term is the same.",
            counted(usize::try_from(usage.hours).unwrap_or(usize::MAX), "hour")
        ),
        "Prices of offers are those of the file, and are paid in every hour, used or not. What is paid in advance must be spread over the \
         term there."
            .to_owned(),
        "Node-hours of a type in an hour share what is reserved for it, as the clouds bill. Commitments that you have already count on no side."
            .to_owned(),
    ];
    let is_money = |one: &&Offered| matches!(one.offer.terms, Terms::Money(_));
    if offered.iter().filter(is_money).count() > 1 {
        all.push(
            "Of several offers of money, the clouds use the one for fewer types first. The lower bound lets them be used in any order."
                .to_owned(),
        );
    }
    if bought.bound.is_none() {
        all.push("The solver did not prove its answer in time, so there is no lower bound.".to_owned());
    } else if let Some(part) = unproven(bought) {
        all.push(format!(
            "The solver did not prove that this is the best: another purchase may cost up to {part} less."
        ));
    }
    all
}
