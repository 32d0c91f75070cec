//! The report as a page: the verdict, the bill, the cost of each day, and idle time.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::civil::Date;
use poolwright_report::bill::{Charge, Class, Micros};

use super::answer::Answer;
use super::table::{cells, headings, savings};
use crate::page::{Page, Plot, Quantity, Series, Shape};
use crate::print::counted;

/// The most rows of the bill.
const SHOWN: usize = 100;
/// The most pools of the plot that have an area of their own. More have colours that repeat.
const POOLS: usize = 7;

/// The cost of each day.
#[derive(Clone, Debug, Default)]
pub struct Daily {
    pools: BTreeMap<Option<String>, BTreeMap<Date, Micros>>,
    idle: BTreeMap<Class, BTreeMap<Date, Micros>>,
}

impl Daily {
    /// Adds a charge.
    pub fn add(&mut self, date: Date, charge: &Charge<'_>) {
        let Some(cost) = charge.cost else { return };
        let pool = &charge.instance.row.pool;
        if !self.pools.contains_key(pool) {
            self.pools.insert(pool.clone(), BTreeMap::new());
        }
        if let Some(days) = self.pools.get_mut(pool) {
            days.entry(date).or_default().0 += cost.0;
        }
        if charge.class.is_idle() {
            self.idle.entry(charge.class).or_default().entry(date).or_default().0 += cost.0;
        }
    }

    /// Returns the pools, the most expensive first, and then all others together.
    fn by_pool(&self) -> Vec<(String, BTreeMap<Date, Micros>)> {
        let name = |pool: &Option<String>| pool.clone().unwrap_or_else(|| "(no pool)".to_owned());
        let mut pools: Vec<(String, BTreeMap<Date, Micros>)> =
            self.pools.iter().map(|(pool, days)| (name(pool), days.clone())).collect();
        // The sort is stable, and the pools are in the order of their names.
        pools.sort_by_key(|(_, days)| std::cmp::Reverse(days.values().map(|cost| cost.0).sum::<i128>()));
        let others = pools.split_off(pools.len().min(POOLS));
        if !others.is_empty() {
            let mut sums: BTreeMap<Date, Micros> = BTreeMap::new();
            for (date, cost) in others.iter().flat_map(|(_, days)| days) {
                sums.entry(*date).or_default().0 += cost.0;
            }
            pools.push((counted(others.len(), "other pool"), sums));
        }
        pools
    }
}

/// Prints the page.
pub fn print(answer: &Answer, daily: &Daily, out: &mut impl Write) -> io::Result<()> {
    let mut page = Page::new("What did nodes cost?");
    page.paragraph("verdict", &answer.verdict);
    page.heading(&format!("By {}", answer.by.join(", ")));
    let headings = headings(answer);
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = answer.rows.iter().take(SHOWN).map(|row| cells(answer, row)).collect();
    page.table("groups", "", &headings, answer.by.len() + 1, &rows);
    if answer.rows.len() > SHOWN {
        let more = counted(answer.rows.len() - SHOWN, "more row");
        page.paragraph("", &format!("{more}; -o csv and -o json list them."));
    }
    let pools = daily.by_pool();
    over_days(&mut page, answer, "cost-by-day", "Cost of each day by pool", &pools)?;
    page.heading("Idle");
    let rows: Vec<Vec<String>> = answer
        .idle
        .iter()
        .map(|idle| {
            let usd = idle.usd.map_or_else(|| "not measured".to_owned(), |usd| format!("{usd:#}"));
            vec![idle.class.to_owned(), idle.what.to_owned(), usd]
        })
        .collect();
    page.table("idle", "", &["idle", "what it is", "cost"], 2, &rows);
    let classes: Vec<(String, BTreeMap<Date, Micros>)> =
        daily.idle.iter().map(|(class, days)| (class.name().to_owned(), days.clone())).collect();
    over_days(&mut page, answer, "idle-by-day", "Cost of idle time on each day", &classes)?;
    page.heading("Details");
    page.folded("Savings against the on-demand list price", &savings(answer));
    page.folded("Notes", &answer.notes);
    page.write(out)
}

/// Adds a plot with areas on top of each other, unless there is only one day.
fn over_days(
    page: &mut Page,
    answer: &Answer,
    id: &str,
    title: &str,
    areas: &[(String, BTreeMap<Date, Micros>)],
) -> io::Result<()> {
    let period = answer.period();
    if period.first == period.last || areas.is_empty() {
        return Ok(());
    }
    let series = areas.iter().map(|(name, days)| {
        let cost =
            |date: Date| days.get(&date).map_or(0, |cost| u64::try_from(cost.0.max(0)).unwrap_or(u64::MAX));
        let points = (0..).zip(period.days().map(cost)).collect();
        Series { name: name.clone(), shape: Shape::Stacked, points }
    });
    let plot = Plot {
        title: title.to_owned(),
        x: Quantity::Day { first: period.first },
        y: Quantity::Usd,
        series: series.collect(),
    };
    page.heading(title);
    page.plot(id, &plot)
}
