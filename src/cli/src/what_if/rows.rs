//! What tables and comments have in common.

use poolwright_catalog::UsdPerHour;

use super::answer::{Answer, NodeChange};
use super::delta::Delta;
use crate::print::{count, counted, money};

/// Returns the figures before, after and between, each with its name.
pub fn figures(answer: &Answer) -> Vec<[String; 4]> {
    let (before, after) = (&answer.before, &answer.after);
    let mut rows = vec![
        numbers("Nodes", before.nodes, after.nodes),
        amounts("Cost per hour", Some(before.usd_per_hour), Some(after.usd_per_hour)),
        [
            "Cost per month".to_owned(),
            format!("{:#}", before.usd_per_month),
            format!("{:#}", after.usd_per_month),
            answer.difference.month.per_month().trim_end_matches("/month").to_owned(),
        ],
    ];
    if before.risk_usd_per_hour.max(after.risk_usd_per_hour) > UsdPerHour::ZERO {
        rows.push(amounts(
            "Expected loss per hour",
            Some(before.risk_usd_per_hour),
            Some(after.risk_usd_per_hour),
        ));
    }
    rows.push(amounts("Lower bound", before.lower_bound_usd_per_hour, after.lower_bound_usd_per_hour));
    rows.push(amounts(
        "Cost at load +50 %",
        before.usd_per_hour_at_half_more_load,
        after.usd_per_hour_at_half_more_load,
    ));
    rows.push(numbers("Pods that wait", before.waiting.len(), after.waiting.len()));
    if let (Some(before), Some(after)) = (before.waiting_at_half_more_load, after.waiting_at_half_more_load)
        && before + after > 0
    {
        rows.push(numbers("Waiting at load +50 %", before, after));
    }
    if before.unknown_prices + after.unknown_prices > 0 {
        rows.push(numbers("Nodes of unknown price", before.unknown_prices, after.unknown_prices));
    }
    rows
}

/// Returns the price of each node of a kind, with that before if it differs.
pub fn each(node: &NodeChange) -> String {
    match (node.usd_per_hour_before, node.usd_per_hour_after) {
        (Some(before), Some(after)) if before != after => format!("{}, was {}", money(after), money(before)),
        (Some(one), _) | (None, Some(one)) => money(one),
        (None, None) => "unknown".to_owned(),
    }
}

/// Says how many more things there are than are shown; nothing if all are shown.
pub fn more_of(all: usize, shown: usize, what: &str) -> Option<String> {
    let more = all.saturating_sub(shown);
    (more > 0).then(|| format!("{} more; -o json lists them", counted(more, what)))
}

fn numbers(name: &str, before: usize, after: usize) -> [String; 4] {
    let difference = match after.abs_diff(before) {
        0 => "0".to_owned(),
        more if after > before => format!("+{}", count(more)),
        fewer => format!("-{}", count(fewer)),
    };
    [name.to_owned(), count(before), count(after), difference]
}

fn amounts(name: &str, before: Option<UsdPerHour>, after: Option<UsdPerHour>) -> [String; 4] {
    let cell = |amount: Option<UsdPerHour>| amount.map_or_else(|| "unknown".to_owned(), money);
    let difference = before.zip(after).map(|(before, after)| Delta::between(before, after).to_string());
    let difference = difference.as_deref().map_or("", |delta| delta.trim_end_matches("/h"));
    [name.to_owned(), cell(before), cell(after), difference.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::super::answer::tests::answer;
    use super::*;

    #[test]
    fn figures_show_both_sides_and_the_difference() {
        let rows = figures(&answer());
        let row = |name: &str| rows.iter().find(|row| row[0] == name).map(|row| row[1..].join(" "));
        assert_eq!(row("Nodes").as_deref(), Some("1 1 0"));
        assert_eq!(row("Cost per month").as_deref(), Some("$730.00 $1,095.00 +$365.00"));
        assert_eq!(row("Lower bound").as_deref(), Some("unknown unknown "));
        assert_eq!(row("Waiting at load +50 %"), None, "nothing waits");
    }

    #[test]
    fn a_price_that_changes_is_shown_with_the_one_before() {
        let mut node = answer().difference.nodes.remove(0);
        assert_eq!(each(&node), "$1.00");
        node.usd_per_hour_after = Some(UsdPerHour::from_micros(1_200_000));
        assert_eq!(each(&node), "$1.20, was $1.00");
    }
}
