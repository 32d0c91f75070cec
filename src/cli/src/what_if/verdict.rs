//! The answer in one line.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::delta::Delta;
use super::difference::Difference;
use super::outcome::{Outcome, Unplanned};
use crate::print::{count, counted};

/// The most instance types that the line names.
const TYPES_NAMED: usize = 3;

/// Says what a change costs, which nodes differ, and what becomes of pods:
/// `+$3.42/h (+12.0 %), +$2,496.60/month; 3 more g5.2xlarge; 4 pods move; nothing waits`. Whatever makes the sides differ is in it.
pub fn verdict(before: &Outcome, after: &Outcome, difference: &Difference) -> String {
    let mut parts = vec![cost(before, after, difference)];
    parts.extend(unpriced(before.cost.unknown_prices, after.cost.unknown_prices));
    parts.push(nodes(difference));
    let of = |pods: usize, does: &str, do_: &str| {
        (pods > 0).then(|| format!("{} {}", counted(pods, "pod"), if pods == 1 { does } else { do_ }))
    };
    parts.extend(of(difference.moves.len(), "moves", "move"));
    parts.extend(of(difference.lost.len(), "is lost", "are lost"));
    let added = difference.added.len();
    // Pods that are made anew under other names are both.
    parts.extend(match of(difference.removed.len(), "is removed", "are removed") {
        Some(removed) if added > 0 => Some(format!("{removed}, and {} added", count(added))),
        None => of(added, "is added", "are added"),
        removed => removed,
    });
    let (waited, waiting) = (before.waiting(), after.waiting());
    parts.push(match (waiting, difference.waits.len()) {
        (0, _) if waited > 0 => "nothing waits any more".to_owned(),
        (0, _) => "nothing waits".to_owned(),
        (_, 0) if waited == waiting => {
            format!("{}, as before", of(waiting, "waits", "wait").unwrap_or_default())
        }
        (_, 0) => {
            format!("{} instead of {}", of(waiting, "waits", "wait").unwrap_or_default(), count(waited))
        }
        (_, more) if more == waiting => of(waiting, "waits", "wait").unwrap_or_default(),
        (_, more) => {
            format!(
                "{}, {} of them only after the change",
                of(waiting, "waits", "wait").unwrap_or_default(),
                count(more)
            )
        }
    });
    parts.extend(unplanned(&before.unplanned, &after.unplanned));
    parts.join("; ")
}

/// Says how many nodes are in no cost, before and after the change.
fn unpriced(before: usize, after: usize) -> Option<String> {
    let nodes = |number| format!("{} of unknown price", counted(number, "node"));
    match (before, after) {
        (0, 0) => None,
        (before, 0) => Some(format!("{} before the change not counted", nodes(before))),
        (before, after) if before == 0 || before == after => Some(format!("{} not counted", nodes(after))),
        (before, after) => Some(format!("{} not counted, {} before the change", nodes(after), count(before))),
    }
}

/// Says which work is not planned.
fn unplanned(before: &Unplanned, after: &Unplanned) -> Vec<String> {
    let objects = |number: usize, one: &str, several: &str| {
        format!("{} {}", counted(number, "object"), if number == 1 { one } else { several })
    };
    let pods: usize = after.refused.iter().map(|refusal| refusal.pods).sum();
    // How many pods an object asks for is not always known.
    let refused = if after.refused.iter().any(|refusal| refusal.pods == 0) {
        format!("pods of {} are refused", counted(after.refused.len(), "object"))
    } else {
        format!("{} {} refused", counted(pods, "pod"), if pods == 1 { "is" } else { "are" })
    };
    let unread = objects(after.unread.len(), "that makes pods is not read", "that make pods are not read");
    let unknown =
        objects(after.on_unknown_nodes.len(), "has pods on unknown nodes", "have pods on unknown nodes");
    let parts = [
        said(&before.refused, &after.refused, refused, "no pod is refused any more"),
        said(&before.unread, &after.unread, unread, "no object that makes pods is unread any more"),
        said(
            &before.on_unknown_nodes,
            &after.on_unknown_nodes,
            unknown,
            "no object has pods on unknown nodes any more",
        ),
    ];
    parts.into_iter().flatten().collect()
}

fn said<T: PartialEq>(before: &[T], after: &[T], now: String, no_more: &str) -> Option<String> {
    if after.is_empty() {
        return (!before.is_empty()).then(|| no_more.to_owned());
    }
    Some(if before == after { format!("{now}, as before") } else { now })
}

fn cost(before: &Outcome, after: &Outcome, difference: &Difference) -> String {
    let delta = difference.cost;
    if delta.is_zero() {
        let loss = Delta::between(before.risk, after.risk);
        let loss = if loss.is_zero() { String::new() } else { format!("; expected loss {loss}") };
        return format!("the cost stays the same{loss}");
    }
    let percent = delta.percent_of(before.cost.usd_per_hour);
    let percent = percent.map_or_else(String::new, |percent| format!(" ({percent})"));
    format!("{delta}{percent}, {}", delta.per_month())
}

/// Says how many more or fewer nodes of each instance type there are, those with the largest difference first.
fn nodes(difference: &Difference) -> String {
    let mut types: BTreeMap<&str, i64> = BTreeMap::new();
    for change in &difference.kinds {
        *types.entry(&change.kind.instance_type).or_default() += change.after as i64 - change.before as i64;
    }
    let mut types: Vec<(&str, i64)> = types.into_iter().filter(|(_, more)| *more != 0).collect();
    types.sort_by_key(|(name, more)| (Reverse(more.unsigned_abs()), *name));
    if types.is_empty() {
        let elsewhere = difference.kinds.iter().any(|change| change.before != change.after);
        let words = if elsewhere {
            "the same types of node, in other zones or bought in another way"
        } else {
            "the same nodes"
        };
        return words.to_owned();
    }
    let words = |(name, more): &(&str, i64)| {
        let word = if *more > 0 { "more" } else { "fewer" };
        format!("{} {word} {name}", count(more.unsigned_abs() as usize))
    };
    let mut named: Vec<String> = types.iter().take(TYPES_NAMED).map(words).collect();
    match types.len().saturating_sub(TYPES_NAMED) {
        0 => {}
        1 => named.push("1 other type differs".to_owned()),
        more => named.push(format!("{more} other types differ")),
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use poolwright_report::plan::Refusal;

    use super::super::difference::tests::{kind, outcome};
    use super::super::outcome::Place;
    use super::*;

    fn told(before: &Outcome, after: &Outcome) -> String {
        verdict(before, after, &Difference::between(before, after))
    }

    #[test]
    fn the_verdict_tells_cost_nodes_and_pods_in_one_line() {
        let (old, new) = (Place::New(kind("g6.xlarge")), Place::New(kind("g5.2xlarge")));
        let before = outcome("28.5", &[("g6.xlarge", 1)], &[("a", old.clone()), ("b", old)]);
        let after =
            outcome("31.92", &[("g5.2xlarge", 3), ("g6.xlarge", 1)], &[("a", new.clone()), ("b", new)]);
        assert_eq!(
            told(&before, &after),
            "+$3.42/h (+12.0 %), +$2,496.60/month; 3 more g5.2xlarge; 2 pods move; nothing waits"
        );
    }

    #[test]
    fn the_verdict_says_that_nothing_differs_and_who_waits() {
        let before = outcome("2", &[("g5.xlarge", 2)], &[("a", Place::Waits)]);
        assert_eq!(told(&before, &before), "the cost stays the same; the same nodes; 1 pod waits, as before");
        let after = outcome(
            "1",
            &[("g5.xlarge", 1)],
            &[("a", Place::Waits), ("b", Place::Waits), ("c", Place::Lost)],
        );
        assert_eq!(
            told(&before, &after),
            "-$1.00/h (-50.0 %), -$730.00/month; 1 fewer g5.xlarge; 1 pod is lost; 2 pods are added; 2 pods wait, 1 of them only after \
             the change"
        );
        let mut riskier = before.clone();
        riskier.risk = "0.5".parse().expect("an amount");
        assert_eq!(
            told(&before, &riskier),
            "the cost stays the same; expected loss +$0.5000/h; the same nodes; 1 pod waits, as before"
        );
        let one =
            outcome("2", &[("g5.xlarge", 2)], &[("a", Place::Waits), ("b", Place::Node("n".to_owned()))]);
        let two = outcome("2", &[("g5.xlarge", 2)], &[("a", Place::Waits), ("b", Place::Waits)]);
        assert_eq!(told(&two, &one), "the cost stays the same; the same nodes; 1 pod waits instead of 2");
        let nothing = Outcome::default();
        assert_eq!(
            told(&nothing, &outcome("1", &[("a", 1), ("b", 1), ("c", 1), ("d", 2)], &[])),
            "+$1.00/h, +$730.00/month; 2 more d, 1 more a, 1 more b, 1 other type differs; nothing waits"
        );
    }

    #[test]
    fn the_verdict_says_which_nodes_are_in_no_cost() {
        for (before, after, said) in [
            (0, 0, None),
            (2, 0, Some("2 nodes of unknown price before the change not counted")),
            (0, 1, Some("1 node of unknown price not counted")),
            (2, 2, Some("2 nodes of unknown price not counted")),
            (2, 1, Some("1 node of unknown price not counted, 2 before the change")),
        ] {
            assert_eq!(unpriced(before, after).as_deref(), said);
        }
        let mut before = outcome("1", &[], &[]);
        before.cost.unknown_prices = 1;
        let said = told(&before, &outcome("2", &[], &[]));
        assert!(said.contains("; 1 node of unknown price before the change not counted; "), "{said}");
    }

    #[test]
    fn the_verdict_says_what_is_removed_and_what_is_not_planned() {
        let before = outcome("1", &[], &[("a", Place::Waits), ("b", Place::Waits)]);
        let mut after = outcome("1", &[], &[]);
        assert_eq!(
            told(&before, &after),
            "the cost stays the same; the same nodes; 2 pods are removed; nothing waits any more"
        );
        after.places.insert("c".to_owned(), Place::Node("n".to_owned()));
        let refusal = |pods| Refusal { object: format!("Job ml/a{pods}"), pods };
        after.unplanned.refused = vec![refusal(2), refusal(3)];
        after.unplanned.unread = vec!["Trainer ml/a".to_owned()];
        assert_eq!(
            told(&before, &after),
            "the cost stays the same; the same nodes; 2 pods are removed, and 1 added; nothing waits any more; 5 pods are refused; \
             1 object that makes pods is not read"
        );
        assert!(
            told(&after, &before)
                .ends_with("; no pod is refused any more; no object that makes pods is unread any more")
        );
        after.unplanned.refused.push(refusal(0));
        after.unplanned.unread.clear();
        assert!(told(&after, &after).ends_with("; nothing waits; pods of 3 objects are refused, as before"));
    }
}
