//! The rows of the table, and the lines of the curves.

use std::cmp::Ordering;
use std::time::Duration;

use poolwright_catalog::{Usd, UsdPerHour};

use super::answer::Answer;
use super::curves::Curves;
use crate::args::Span;
use crate::print::{count, money};
use crate::replay::chart::{Marks, one_scale};
use crate::replay::{hours, span};

/// Returns the figures before, after and between, each with its name.
pub fn figures(answer: &Answer) -> Vec<[String; 4]> {
    let (old, new) = (&answer.before, &answer.after);
    let number = |name: &str, old: u64, new: u64| {
        row(name, (old.into(), new.into()), |number| count(usize::try_from(number).unwrap_or(usize::MAX)))
    };
    let amount = |number: u128| format!("{:#}", Usd(number));
    let wait = |millis: u128| span(Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX)));
    let mut rows = vec![
        row("Cost", (old.cost.0, new.cost.0), amount),
        row("Cost per month", (old.usd_per_hour.per_month().0, new.usd_per_hour.per_month().0), amount),
        row("Lower limit", (old.lower_limit.0, new.lower_limit.0), amount),
        row("Pending p50", (old.p50.as_millis(), new.p50.as_millis()), wait),
        row("Pending p95", (old.p95.as_millis(), new.p95.as_millis()), wait),
        number("Node starts", old.node_starts, new.node_starts),
        number("Interruptions", old.interruptions, new.interruptions),
        number("Pods cut off", old.pods_cut_off, new.pods_cut_off),
        row("Lost GPU-hours", (old.lost_gpu_millis, new.lost_gpu_millis), hours),
        number("Pods that wait at the end", old.pods_waiting, new.pods_waiting),
    ];
    if old.nodes_with_unknown_price + new.nodes_with_unknown_price > 0 {
        rows.push(number(
            "Nodes of unknown price",
            old.nodes_with_unknown_price,
            new.nodes_with_unknown_price,
        ));
    }
    rows
}

/// Returns a row, with the sign of the difference.
fn row(name: &str, (old, new): (u128, u128), shown: impl Fn(u128) -> String) -> [String; 4] {
    let size = shown(new.abs_diff(old));
    let difference = match new.cmp(&old) {
        Ordering::Equal => size,
        Ordering::Greater => format!("+{size}"),
        Ordering::Less => format!("-{size}"),
    };
    [name.to_owned(), shown(old), shown(new), difference]
}

/// Returns the plots, each with its title. The two curves of a plot have one scale.
pub fn plots(answer: &Answer, marks: Marks) -> Vec<(String, [String; 2])> {
    let end = Span(answer.played);
    let pick = |of: fn(&Curves) -> &Vec<u64>| [of(&answer.plots[0]), of(&answer.plots[1])];
    let plot = |title: &dyn Fn(u64) -> String, curves: [&Vec<u64>; 2]| -> Option<(String, [String; 2])> {
        let most = curves.into_iter().flatten().copied().max().unwrap_or(0);
        (most > 0).then(|| (title(most), one_scale(curves.map(Vec::as_slice), marks)))
    };
    let all = [
        plot(
            &|most| format!("Cost per hour from 0 to {end}, up to {}", money(UsdPerHour::from_micros(most))),
            pick(|curves| &curves.cost),
        ),
        plot(&|most| format!("Waiting pods, up to {most}"), pick(|curves| &curves.waiting)),
        plot(&|most| format!("Interruptions, up to {most}"), pick(|curves| &curves.interruptions)),
        plot(&|most| format!("Lost GPU-hours, up to {}", hours(most.into())), pick(|curves| &curves.lost)),
    ];
    all.into_iter().flatten().collect()
}
