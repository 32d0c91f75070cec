//! The rows that tables and pages have in common, and the offers as CSV.

use std::io::{self, Write};

use poolwright_catalog::UsdPerHour;

use super::answer::{Answer, Number, Point, Row};

/// The titles of the rows of [`offers`].
pub const OFFERS: [&str; 6] = ["OFFER", "KIND", "TERM", "BUY", "PAYS ABOVE", "OF"];

/// Returns a row for each offer.
pub fn offers(answer: &Answer) -> Vec<[String; 6]> {
    let term = |months: Option<u32>| match months {
        Some(months) => format!("{months} months"),
        None => "-".to_owned(),
    };
    let row = |row: &Row| {
        [
            row.name.clone(),
            row.kind.to_string(),
            term(row.term_months),
            row.buy.to_string(),
            format!("{} use", row.break_even.0),
            row.of.clone(),
        ]
    };
    answer.offers.iter().map(row).collect()
}

/// Returns the costs of a month, each with its name: now, and at less load.
pub fn costs(answer: &Answer) -> Vec<[String; 3]> {
    let (now, less) = (&answer.cost, &answer.at_less_load.cost);
    let month = |amount| format!("{:#}", answer.per_month(amount));
    let saved = |saved| answer.saved_per_month(saved).to_string();
    let row = |name: &str, now: String, less: String| [name.to_owned(), now, less];
    vec![
        row("Doing nothing", month(now.without), month(less.without)),
        row("With this purchase", month(now.with), month(less.with)),
        row("  commitments", month(now.committed), month(less.committed)),
        row("  on demand", month(now.on_demand), month(less.on_demand)),
        row("Regret of doing nothing", saved(now.saved), saved(less.saved)),
        row("Best purchase found", month(now.with), month(answer.at_less_load.usd_best)),
        row("Regret of this purchase", "-".to_owned(), saved(answer.at_less_load.usd_regret)),
        row("Lower bound", answer.lower_bound_usd.map_or_else(|| "unknown".to_owned(), month), String::new()),
    ]
}

/// Returns the points of the curve, each with a mark at what is bought.
pub fn curve(answer: &Answer) -> Vec<[String; 3]> {
    let points = answer.curve.iter().flat_map(|curve| &curve.points);
    let row = |point: &Point| {
        let mark = if point.is_bought { "bought" } else { "" };
        [point.number.to_string(), format!("{:#}", answer.per_month(point.usd)), mark.to_owned()]
    };
    points.map(row).collect()
}

/// Returns the sentence about the curve.
pub fn about_curve(answer: &Answer) -> Option<String> {
    let curve = answer.curve.as_ref()?;
    let pays = match curve.pays_up_to {
        Number::Nodes(0) | Number::Money(UsdPerHour::ZERO) => "none of these pays".to_owned(),
        number => format!("of these, it pays up to {number}"),
    };
    Some(format!("Cost per month against how much of {} is bought; {pays}", curve.offer))
}

/// Prints one line for each offer. Amounts are numbers.
pub fn csv(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut lines = csv::Writer::from_writer(out);
    lines.write_record(["offer", "kind", "of", "term_months", "buy", "usd_per_hour", "break_even"])?;
    for row in &answer.offers {
        lines.write_record([
            row.name.clone(),
            row.kind.to_string(),
            row.of.clone(),
            row.term_months.map_or_else(String::new, |months| months.to_string()),
            serde_json::to_string(&row.buy).map_err(io::Error::from)?,
            row.usd_per_hour.to_string(),
            row.break_even.0.as_f64().to_string(),
        ])?;
    }
    lines.flush()
}
