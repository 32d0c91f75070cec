//! The offers of a file. Discounts are those that the user writes: none is guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use poolwright_catalog::{Catalogue, InstanceType, InstanceTypeName, UsdPerHour};
use poolwright_intake::Amount;
use poolwright_solver::purchase::{Offer, STEP, Terms};
use serde::{Deserialize, Serialize};

use super::prices;
use super::usage::Usage;
use crate::problems::Problems;
use crate::source::Source;
use crate::what_if::pattern::instead;

/// What to do about a file that is none of offers.
const AS_IN: &str = "write the list `offers` as in docs/cli/what-if-commitment.md";

/// A hundred percent, in the millionths that amounts are read in.
const HUNDRED: u64 = 100_000_000;

/// The most units of one offer.
const MOST: u64 = 1_000_000_000;

/// The kind of a commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Nodes of a type for a term: reserved instances.
    Reservation,
    /// Money per hour for a term.
    SavingsPlan,
    /// Google Cloud's commitments, of nodes or of money.
    CommittedUse,
    /// Nodes of a type for some hours.
    CapacityBlock,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reservation => "reservation",
            Self::SavingsPlan => "savings-plan",
            Self::CommittedUse => "committed-use",
            Self::CapacityBlock => "capacity-block",
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    offers: Vec<Entry>,
}

/// An offer as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    name: String,
    kind: Kind,
    /// For nodes: the type of each.
    instance_type: Option<String>,
    /// For nodes: the price of each, used or not.
    usd_per_hour: Option<Amount>,
    /// For money: a node uses its on-demand price less this.
    discount_percent: Option<Amount>,
    /// For money: what a node of each type uses.
    #[serde(default)]
    rates: BTreeMap<String, Amount>,
    /// For money: what it covers; nothing for everything.
    #[serde(default)]
    covers: Covers,
    /// The length of the commitment. A block has hours instead.
    term_months: Option<u32>,
    /// The least number of nodes or money per hour, if any is bought.
    least: Option<Amount>,
    /// The largest.
    most: Option<Amount>,
    /// For blocks: the first hour.
    from_hour: Option<u64>,
    /// For blocks: the number of hours.
    hours: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Covers {
    #[serde(default)]
    instance_types: BTreeSet<String>,
    #[serde(default)]
    families: BTreeSet<String>,
}

/// An offer for the use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// What it pays for: `g5.xlarge`, or the covered types that are used.
    pub of: String,
    /// Its term; `None` for a block.
    pub term_months: Option<u32>,
    /// The hours in which it is there; `None` for all.
    pub window: Option<(u64, u64)>,
    /// The part of the time, or of the money, that must be used for it to pay: this of that.
    pub break_even: (u64, u64),
    /// The offer in the program.
    pub offer: Offer,
}

/// Reads the offers for a use. Also returns notes about those that are of no use. All problems are told together.
pub fn read(
    file: &Source,
    usage: &Usage,
    catalogue: &Catalogue,
) -> Result<(Vec<Offered>, Vec<String>), Problems> {
    let mut problems = Problems::new();
    let (mut offers, mut notes, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (at, entry) in parsed(file)?.offers.iter().enumerate() {
        let mut wrong = Vec::new();
        if !names.insert(entry.name.clone()) {
            wrong.push("another offer has this name; rename one of them".to_owned());
        }
        let offered = entry.offered(usage, catalogue, &mut wrong);
        let place = entry.place(file, at);
        match offered {
            Some(offered) => offers.push(offered),
            None if wrong.is_empty() => {
                notes.push(format!("{place}: nothing that it covers is used, so it is left out"));
            }
            None => {}
        }
        for problem in wrong {
            problems.push(format!("{place}: {problem}"));
        }
    }
    problems.or((offers, notes))
}

/// Checks what can be checked before the use is known, which may take long. The use will be of types of the catalogue.
pub fn check(file: &Source, catalogue: &Catalogue) -> Result<(), Problems> {
    let mut problems = Problems::new();
    for (at, entry) in parsed(file)?.offers.iter().enumerate() {
        let mut wrong = Vec::new();
        entry.check_shape(&mut wrong);
        entry.check_names(&Usage::default(), catalogue, &mut wrong);
        for problem in wrong {
            problems.push(format!("{}: {problem}", entry.place(file, at)));
        }
    }
    problems.or(())
}

fn parsed(file: &Source) -> Result<File, Problems> {
    if file.text.trim().is_empty() {
        return Err(Problems::one(format!("{}: the file is empty; {AS_IN}", file.name)));
    }
    let options = serde_saphyr::options! { with_snippet: false };
    let written = serde_saphyr::from_str_with_options::<File>(&file.text, options)
        .map_err(|error| Problems::one(format!("{}: {error}; {AS_IN}", file.name)))?;
    if written.offers.is_empty() {
        return Err(Problems::one(format!("{}: it has no offer; {AS_IN}", file.name)));
    }
    Ok(written)
}

impl Entry {
    fn place(&self, file: &Source, at: usize) -> String {
        format!("{}: offers[{at}] ({})", file.name, self.name)
    }

    /// Returns the offer for a use; `None` if it covers nothing of it, or something is wrong.
    fn offered(&self, usage: &Usage, catalogue: &Catalogue, wrong: &mut Vec<String>) -> Option<Offered> {
        self.check_shape(wrong);
        let window = self.window(usage, wrong);
        self.check_names(usage, catalogue, wrong);
        let (terms, of, break_even) = match &self.instance_type {
            Some(kind) => self.of_nodes(kind, usage, wrong)?,
            None => self.of_money(usage, wrong)?,
        };
        let unit =
            if matches!(terms, Terms::Nodes { .. }) { UsdPerHour::MICROS_PER_USD } else { STEP.micros() };
        let least = limit("least", self.least.as_ref(), unit, wrong);
        let most = limit("most", self.most.as_ref(), unit, wrong);
        let least = least.map_or(1, |micros| micros.div_ceil(unit).max(1));
        let most = most.map(|micros| micros / unit);
        if most.is_some_and(|most| most < least) {
            wrong.push(
                "most: it is below the least that may be bought; raise it, or lower `least`".to_owned(),
            );
        }
        wrong.is_empty().then(|| Offered {
            name: self.name.clone(),
            kind: self.kind,
            of,
            term_months: self.term_months,
            window,
            break_even,
            offer: Offer { terms, least, most },
        })
    }

    /// Tells names that nobody has.
    fn check_names(&self, usage: &Usage, catalogue: &Catalogue, wrong: &mut Vec<String>) {
        for name in self.instance_type.iter().chain(self.rates.keys()).chain(&self.covers.instance_types) {
            if !usage.prices.contains_key(name)
                && let Some(instead) = prices::unknown(catalogue, name)
            {
                wrong
                    .push(format!("`{name}` is not an instance type of the catalogue or the use; {instead}"));
            }
        }
        let families: BTreeSet<&str> = catalogue.types().values().map(InstanceType::family).collect();
        for name in &self.covers.families {
            let is_used = |kind: &String| InstanceTypeName::from(kind.as_str()).family() == name;
            if !families.contains(name.as_str()) && !usage.prices.keys().any(is_used) {
                wrong.push(format!(
                    "`{name}` is not a family of the catalogue or the use; {}",
                    instead(name, &families)
                ));
            }
        }
    }

    /// Tells fields that contradict each other or the kind.
    fn check_shape(&self, wrong: &mut Vec<String>) {
        let mut say = |is_wrong: bool, why: &str| {
            if is_wrong {
                wrong.push(why.to_owned());
            }
        };
        let is_nodes = self.instance_type.is_some();
        let has_money = self.discount_percent.is_some() || !self.rates.is_empty();
        let covers = !self.covers.instance_types.is_empty() || !self.covers.families.is_empty();
        match self.kind {
            Kind::Reservation | Kind::CapacityBlock => {
                say(!is_nodes, "has no instanceType; name the type of its nodes");
            }
            Kind::SavingsPlan => {
                say(is_nodes, "has an instanceType; write covers.instanceTypes for a savings plan");
            }
            Kind::CommittedUse => {}
        }
        say(is_nodes && (has_money || covers), "has instanceType and fields of money; keep one of them");
        say(is_nodes && self.usd_per_hour.is_none(), "has no usdPerHour; write the price of one node");
        say(
            !is_nodes && self.usd_per_hour.is_some(),
            "has usdPerHour; the amount is what is looked for, so remove it",
        );
        say(
            !is_nodes && self.kind != Kind::Reservation && self.kind != Kind::CapacityBlock && !has_money,
            "does not say how much a node uses of it; give discountPercent, or rates by instance type",
        );
        say(
            self.discount_percent.is_some() && !self.rates.is_empty(),
            "has both discountPercent and rates; keep one of them",
        );
        let is_block = self.kind == Kind::CapacityBlock;
        say(!is_block && self.term_months.is_none(), "has no termMonths; write 12 or 36");
        say(self.term_months == Some(0), "termMonths: it must be above zero");
        say(is_block && self.term_months.is_some(), "has termMonths; a block has fromHour and hours");
        say(
            is_block && (self.from_hour.is_none() || self.hours.is_none()),
            "has no fromHour or no hours; say when the block is there",
        );
        say(
            !is_block && (self.from_hour.is_some() || self.hours.is_some()),
            "has fromHour or hours; only a block has them",
        );
    }

    /// Returns the hours of a block, which must be among those of the use.
    fn window(&self, usage: &Usage, wrong: &mut Vec<String>) -> Option<(u64, u64)> {
        let (from, hours) = self.from_hour.zip(self.hours)?;
        let until = from.saturating_add(hours);
        if hours == 0 || until > usage.hours {
            wrong.push(format!(
                "is there from hour {from} to {until}, and the use has hours 0 to {}; choose hours among them",
                usage.hours
            ));
        }
        Some((from, until))
    }

    /// Returns the terms of nodes, what they are of, and the break-even.
    fn of_nodes(
        &self,
        kind: &str,
        usage: &Usage,
        wrong: &mut Vec<String>,
    ) -> Option<(Terms, String, (u64, u64))> {
        let price = amount("usdPerHour", self.usd_per_hour.as_ref(), wrong)?;
        let at = usage.prices.keys().position(|used| used == kind)?;
        let terms = Terms::Nodes { kind: at, price };
        Some((terms, kind.to_owned(), (price.micros(), usage.prices[kind].micros())))
    }

    /// Returns the terms of money, what it pays for, and the break-even of the type with the largest discount.
    fn of_money(&self, usage: &Usage, wrong: &mut Vec<String>) -> Option<(Terms, String, (u64, u64))> {
        let discount = match self.discount_percent.as_ref().map(Amount::read) {
            Some(Ok(percent)) if percent.micros() < HUNDRED => Some(percent.micros()),
            Some(Ok(_)) => {
                wrong.push("discountPercent: it must be below 100, because nothing is free".to_owned());
                None
            }
            Some(Err(problem)) => {
                wrong.push(format!("discountPercent: {problem}"));
                None
            }
            None => None,
        };
        let mut written = BTreeMap::new();
        for (name, rate) in &self.rates {
            if let Some(rate) = amount(&format!("rates.{name}"), Some(rate), wrong) {
                written.insert(name.as_str(), rate);
            }
        }
        let (mut rates, mut of, mut best) = (Vec::new(), Vec::new(), None);
        for (kind, price) in &usage.prices {
            let less = |percent: u64| {
                let rest = u128::from(price.micros()) * u128::from(HUNDRED - percent);
                let rate = rest.div_ceil(u128::from(HUNDRED));
                UsdPerHour::from_micros(u64::try_from(rate).unwrap_or(u64::MAX))
            };
            let rate = written.get(kind.as_str()).copied().or_else(|| discount.map(less));
            let rate = rate.filter(|_| self.covers.has(kind));
            if let Some(rate) = rate {
                of.push(kind.as_str());
                let part = (rate.micros(), price.micros());
                let is_better = |(rate, price): (u64, u64)| {
                    u128::from(part.0) * u128::from(price) < u128::from(rate) * u128::from(part.1)
                };
                if best.is_none_or(is_better) {
                    best = Some(part);
                }
            }
            rates.push(rate);
        }
        Some((Terms::Money(rates), of.join(", "), best?))
    }
}

impl Covers {
    fn has(&self, kind: &str) -> bool {
        let meets = |wanted: &BTreeSet<String>, value: &str| wanted.is_empty() || wanted.contains(value);
        meets(&self.instance_types, kind) && meets(&self.families, InstanceTypeName::from(kind).family())
    }
}

/// Reads a limit in millionths. Of nodes it is a whole number.
fn limit(field: &str, written: Option<&Amount>, unit: u64, wrong: &mut Vec<String>) -> Option<u64> {
    let limit = amount(field, written, wrong)?.micros();
    if unit == UsdPerHour::MICROS_PER_USD && !limit.is_multiple_of(unit) {
        wrong.push(format!("{field}: it is no whole number of nodes"));
    }
    if limit / unit > MOST {
        wrong.push(format!("{field}: it is too large"));
    }
    Some(limit)
}

/// Reads an amount above zero.
fn amount(field: &str, written: Option<&Amount>, wrong: &mut Vec<String>) -> Option<UsdPerHour> {
    match written?.read() {
        Ok(UsdPerHour::ZERO) => {
            wrong.push(format!("{field}: it is zero, and nothing is free; write a price above zero"));
            None
        }
        Ok(amount) => Some(amount),
        Err(problem) => {
            wrong.push(format!("{field}: {problem}"));
            None
        }
    }
}
