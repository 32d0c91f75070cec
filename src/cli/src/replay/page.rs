//! The report as a page: the figures first, then cost, GPUs and waiting over time, and cost against waiting.

use std::io::{self, Write};
use std::time::Duration;

use poolwright_report::money::Usd;
use poolwright_report::replay::baselines::Method;
use poolwright_report::replay::{Bought, Cause, Gpus, Report, Steps, Told};
use poolwright_terms::CapacityType;

use super::methods::names_of;
use super::print::{hours, names, span};
use crate::args::Span;
use crate::page::{Page, Plot, Quantity, Series, Shape};
use crate::print::counted;

/// The number of points of each series.
const POINTS: u32 = 240;
/// The most pools with an area of their own in the plot. The others are one area.
const POOLS: usize = 6;

/// Prints the page.
pub fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let mut page = Page::new("What a workload costs");
    let (cost, rate) = (report.cost(), report.rate());
    page.paragraph(
        "verdict",
        &format!(
            "{cost:#} in {}, {rate:#} on average; {} pods, {} of them waiting at the end; 95 % waited {} at most",
            Span(report.played),
            report.pods.made,
            report.pods.waiting,
            span(report.pending.p95)
        ),
    );
    if report.played < report.requested {
        let (played, requested) = (Span(report.played), Span(report.requested));
        page.paragraph("warning", &format!("Interrupted: played {played} of {requested}."));
    }
    if report.unknown_prices > 0 {
        let nodes = counted(usize::try_from(report.unknown_prices).unwrap_or(usize::MAX), "node");
        page.paragraph("warning", &format!("Not counted in any cost: {nodes} without a known price."));
    }
    page.table("figures", "", &["", "value"], 1, &figures(report));
    page.heading("Cost over time");
    page.plot("cost-over-time", &cost_over_time(report))?;
    page.heading("What was bought");
    page.table(
        "bought",
        "",
        &["pool", "capacity", "nodes", "node-hours", "GPU-hours", "cost"],
        2,
        &bought(report),
    );
    page.table("gap", "The cost above the lower limit, by cause", &["cause", "cost"], 1, &gap(report));
    page.heading("GPUs over time");
    page.plot("gpus-over-time", &gpus_over_time(report))?;
    page.heading("Waiting pods over time");
    page.plot("waiting-over-time", &waiting_over_time(report))?;
    if !report.baselines.is_empty() {
        page.heading("Cost against waiting");
        page.plot("cost-against-waiting", &cost_against_waiting(report))?;
        let header = ["method", "cost", "node starts", "p50 wait", "p95 wait", "longest wait", "evicted"];
        page.table("methods", "", &header, 1, &methods(report));
        for ignored in &report.baselines_ignore {
            page.paragraph("", &format!("The other methods work without {ignored}."));
        }
    }
    page.heading("Details");
    let told = |all: &[Told]| {
        let one = |told: &Told| {
            let reason = told.reason.as_deref().unwrap_or("no event says why");
            format!("{}: {reason}: {}", told.count, told.example)
        };
        all.iter().map(one).collect::<Vec<String>>()
    };
    page.folded("Why pods wait at the end", &told(&report.why_waiting));
    page.folded("Why nodes ended and never opened", &told(&report.in_vain));
    page.folded("Notes", &report.notes);
    page.write(out)
}

fn figures(report: &Report) -> Vec<Vec<String>> {
    let Report { pods, pending, .. } = report;
    let limit = report.above_bound().map_or_else(
        || format!("{:#}", report.bound),
        |above| format!("{:#}; the cost is {above} above it", report.bound),
    );
    let rows = [
        ("Cost", format!("{:#}", report.cost())),
        ("Cost per month at this rate", format!("{:#}", report.rate().per_month())),
        ("Lower limit", limit),
        ("Pods", pods.made.to_string()),
        ("Pods that finished", pods.finished.to_string()),
        ("Pods that run at the end", pods.running.to_string()),
        ("Pods that wait at the end", pods.waiting.to_string()),
        ("Pods evicted", pods.evicted.to_string()),
        ("Pods that lost their node", pods.machine_lost.to_string()),
        ("Waiting time, median", span(pending.p50)),
        ("Waiting time, 95th percentile", span(pending.p95)),
        ("Waiting time, longest", span(pending.most)),
        ("Node starts", report.node_starts().to_string()),
        ("GPU-hours paid", hours(report.paid_gpu_millis())),
        ("GPU-hours with a pod", hours(report.used_gpu_millis)),
        ("GPU-hours idle", format!("{} ({})", hours(report.idle_gpu_millis()), report.idle_gpus())),
        ("Lost work in GPU-hours", hours(report.lost_gpu_millis)),
    ];
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
}

fn bought(report: &Report) -> Vec<Vec<String>> {
    let row = |((pool, capacity), line): (&(String, CapacityType), &Bought)| {
        let (nodes, cost) = (line.nodes.to_string(), format!("{:#}", line.cost));
        vec![pool.clone(), capacity.to_string(), nodes, hours(line.millis), hours(line.gpu_millis), cost]
    };
    report.bought.iter().map(row).collect()
}

fn gap(report: &Report) -> Vec<Vec<String>> {
    let row = |cause| {
        let amount: Usd = report.gap.amount(cause);
        vec![names(cause)[2].to_owned(), format!("{amount:#}")]
    };
    Cause::ALL.into_iter().map(row).collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the averages of a number over time, as steps: each goes on until the next one.
fn stepped(report: &Report, steps: &Steps, times: u128) -> Vec<(u64, u64)> {
    let averages = report.averages(steps, POINTS, times);
    let starts = averages.iter().map(|(from, _)| millis(*from)).skip(1);
    let ends: Vec<u64> = starts.chain([millis(report.played)]).collect();
    let both =
        |((from, y), end): (&(Duration, u64), &u64)| [(millis(*from), *y), (end.saturating_sub(1), *y)];
    averages.iter().zip(&ends).flat_map(both).collect()
}

fn cost_over_time(report: &Report) -> Plot {
    // The pools that cost most come first; the others are one.
    let mut pools: Vec<(&String, &Steps)> = report.pool_steps.iter().collect();
    pools.sort_by_key(|(_, steps)| std::cmp::Reverse(steps.sum(Duration::ZERO, report.played)));
    let mut areas: Vec<Series> = Vec::new();
    for (at, (name, steps)) in pools.into_iter().enumerate() {
        let points = stepped(report, steps, 1);
        if at < POOLS {
            areas.push(Series { name: format!("pool {name}"), shape: Shape::Stacked, points });
        } else if at == POOLS {
            areas.push(Series { name: "other pools".to_owned(), shape: Shape::Stacked, points });
        } else if let Some(others) = areas.last_mut() {
            for (sum, (_, more)) in others.points.iter_mut().zip(points) {
                sum.1 = sum.1.saturating_add(more);
            }
        }
    }
    let bound = stepped(report, &report.bound_steps, 1);
    areas.push(Series { name: "lower limit".to_owned(), shape: Shape::Line, points: bound });
    Plot {
        title: "Cost per hour over time: the pools on top of each other, and the lower limit".to_owned(),
        x: Quantity::Time,
        y: Quantity::UsdPerHour,
        series: areas,
    }
}

fn gpus_over_time(report: &Report) -> Plot {
    let Gpus { asked, bought, used } = report.gpu_steps.each(|steps| stepped(report, steps, 1000));
    let series = [
        ("bought", bought, Shape::Area),
        ("with a pod", used, Shape::Area),
        ("asked for", asked, Shape::Line),
    ];
    let series = series.map(|(name, points, shape)| Series { name: name.to_owned(), shape, points });
    Plot {
        title: "GPUs over time: those that pods ask for, those that are paid, and those with a pod"
            .to_owned(),
        x: Quantity::Time,
        y: Quantity::Thousandths,
        series: series.into(),
    }
}

fn waiting_over_time(report: &Report) -> Plot {
    let points = report.points(POINTS).into_iter().map(|point| (millis(point.from), point.waiting)).collect();
    Plot {
        title: "The most pods that waited at a time".to_owned(),
        x: Quantity::Time,
        y: Quantity::Count,
        series: vec![Series { name: "waiting pods".to_owned(), shape: Shape::Area, points }],
    }
}

fn cost_against_waiting(report: &Report) -> Plot {
    let micros = |usd: Usd| u64::try_from(usd.0).unwrap_or(u64::MAX);
    let dot = |name: &str, wait: Duration, cost: Usd| Series {
        name: name.trim_start().to_owned(),
        shape: Shape::Dot,
        points: vec![(millis(wait), micros(cost))],
    };
    let mut series = vec![dot("Poolwright", report.pending.p95, report.cost())];
    let others = report.baselines.iter();
    series.extend(others.map(|one| dot(title(one.method), one.pending.p95, one.cost)));
    Plot {
        title: "Cost against the longest wait of 95 % of the pods: less of both is better".to_owned(),
        x: Quantity::Time,
        y: Quantity::Usd,
        series,
    }
}

/// Returns the name of a method that needs no line above it.
fn title(method: Method) -> &'static str {
    match method {
        Method::Consolidation => "like Karpenter, with consolidation; work is lost",
        Method::ConsolidationKept => "like Karpenter, with consolidation; work is kept",
        other => names_of(other)[2],
    }
}

fn methods(report: &Report) -> Vec<Vec<String>> {
    let ours = vec![
        "Poolwright".to_owned(),
        format!("{:#}", report.cost()),
        report.node_starts().to_string(),
        span(report.pending.p50),
        span(report.pending.p95),
        span(report.pending.most),
        report.pods.evicted.to_string(),
    ];
    let others = report.baselines.iter().map(|one| {
        vec![
            title(one.method).to_owned(),
            format!("{:#}", one.cost),
            one.node_starts.to_string(),
            span(one.pending.p50),
            span(one.pending.p95),
            span(one.pending.most),
            one.evicted.to_string(),
        ]
    });
    std::iter::once(ours).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_page_has_a_plot_with_its_numbers_for_every_series_and_many_pools_share_one_area() {
        let at = Duration::from_hours;
        let pool = |number: u64| {
            (format!("pool<{number}>"), Steps::of_spans([(at(0), at(4), (number + 1) * 1_000_000)]))
        };
        let report = Report {
            played: at(4),
            requested: at(8),
            unknown_prices: 2,
            pool_steps: (0..8).map(pool).collect::<BTreeMap<_, _>>(),
            bound_steps: Steps::of_spans([(at(1), at(2), 1_000_000)]),
            ..Report::default()
        };
        for (report, pools) in [(report, 7), (Report::default(), 0)] {
            let plot = cost_over_time(&report);
            assert_eq!(plot.series.len(), pools + 1, "the pools and the limit");
            let paid: u64 =
                plot.series.iter().filter_map(|series| series.points.first()).map(|(_, y)| y).sum();
            assert_eq!(paid, if pools > 0 { 36_000_000 } else { 0 });
            let mut printed = Vec::new();
            print(&report, &mut printed).expect("memory takes it");
            let text = String::from_utf8(printed).expect("text");
            for plot in ["cost-over-time", "gpus-over-time", "waiting-over-time"] {
                assert!(text.contains(&format!("<table id=\"{plot}\">")), "{plot}: {text}");
            }
            assert_eq!(text.contains("Interrupted: played 4h of 8h."), pools > 0);
            assert!(text.contains(" of them waiting at the end; 95 % waited "), "{text}");
            assert_eq!(text.contains("Not counted in any cost: 2 nodes without a known price."), pools > 0);
            assert!(!text.contains("pool<"), "names are escaped");
        }
    }
}
