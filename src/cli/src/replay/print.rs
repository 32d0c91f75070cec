//! Prints replays for people, for programs, and for tables.

use std::io::{self, Write};
use std::time::Duration;

use poolwright_catalog::UsdPerHour;
use poolwright_report::money::{Ratio, Usd, six_decimals};
use poolwright_report::replay::baselines::Baseline;
use poolwright_report::replay::{Bought, Cause, Report, Steps, Told};
use poolwright_terms::one_line;
use serde_json::{Value, json};

use super::chart::{self, Marks};
use super::methods::{self, names_of};
use super::page;
use crate::args::{ReplayFormat, Span};
use crate::print::TableLayout;

/// The column at which figures begin, after their names.
const FIGURE: usize = 15;
/// The number of columns of the plot in the terminal.
const COLUMNS: u32 = 64;
/// The number of rows of each plot.
const ROWS: u32 = 4;
/// The number of points of each series in documents.
const POINTS: u32 = 240;

/// Prints `report` in this format.
pub fn report(
    report: &Report,
    format: ReplayFormat,
    layout: TableLayout,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        ReplayFormat::Text | ReplayFormat::Wide => text(report, layout, out),
        ReplayFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, &document(report))?;
            writeln!(out)
        }
        ReplayFormat::Csv => csv(report, out),
        ReplayFormat::Html => page::print(report, out),
    }
}

/// Formats hours with one decimal, rounded half up.
pub fn hours(millis: u128) -> String {
    let tenths = (millis + 180_000) / 360_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Formats a duration in whole seconds, rounded up: `12m30s`.
pub fn span(duration: Duration) -> String {
    Span(Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).div_ceil(1000) * 1000))
        .to_string()
}

fn text(report: &Report, layout: TableLayout, out: &mut impl Write) -> io::Result<()> {
    let mut said = Vec::new();
    figures(report, layout.rows(REASONS), &mut said)?;
    out.write_all(layout.fit(&String::from_utf8_lossy(&said), FIGURE).as_bytes())?;
    bought(report, out)?;
    methods::print(&report.baselines, &report.baselines_ignore, layout, out)?;
    plots(report, out)?;
    if !report.notes.is_empty() {
        writeln!(out)?;
    }
    for note in &report.notes {
        writeln!(out, "{}", layout.fit(&format!("note: {}", one_line(note)), 2))?;
    }
    Ok(())
}

/// Prints the figures of the whole replay, each with its name before it, and at most so many reasons.
fn figures(report: &Report, reasons: usize, out: &mut impl Write) -> io::Result<()> {
    let Report { pods, pending, .. } = report;
    if report.played < report.requested {
        writeln!(out, "Interrupted: played {} of {}.\n", Span(report.played), Span(report.requested))?;
    }
    let cost = report.cost();
    let rate = report.rate();
    let month = rate.per_month();
    writeln!(
        out,
        "Cost           {cost:#} in {}, {rate:#} on average ({month:#}/month)",
        Span(report.played)
    )?;
    let has_static = report.gap.amount(Cause::StaticPools) > Usd::default();
    let (kept, of) = if has_static {
        (" besides the nodes that static pools keep", "cost of the other nodes")
    } else {
        ("", "cost")
    };
    let above = report.above_bound().map(|above| format!("; the {of} is {above} above it"));
    writeln!(out, "Lower limit    {:#}{kept}{}", report.bound, above.unwrap_or_default())?;
    writeln!(out, "               as if nodes started at once and pods moved at any moment for nothing")?;
    for cause in Cause::ALL.into_iter().filter(|cause| *cause != Cause::StaticPools || has_static) {
        let (amount, [_, _, sentence]) = (report.gap.amount(cause), names(cause));
        writeln!(out, "               {amount:>#9}  {sentence}")?;
    }
    if report.unknown_prices > 0 {
        writeln!(
            out,
            "               nodes without a known price, missing from all costs: {}",
            report.unknown_prices
        )?;
    }
    writeln!(
        out,
        "Pods           {}: {} finished, {} running, {} waiting, {} evicted, {} lost their node",
        pods.made, pods.finished, pods.running, pods.waiting, pods.evicted, pods.machine_lost
    )?;
    writeln!(
        out,
        "Pending        p50 {}, p95 {}, p99 {}, longest {}",
        span(pending.p50),
        span(pending.p95),
        span(pending.p99),
        span(pending.most)
    )?;
    told(&report.why_waiting, reasons, ("pod waits", "pods wait"), out)?;
    writeln!(out, "Node starts    {}", report.node_starts())?;
    told(&report.in_vain, reasons, ("node ended and never opened", "nodes ended and never opened"), out)?;
    writeln!(
        out,
        "Lost work      {} pod-hours, {} GPU-hours",
        hours(report.lost_millis),
        hours(report.lost_gpu_millis)
    )?;
    let (paid, idle) = (report.paid_gpu_millis(), report.idle_gpu_millis());
    writeln!(out, "Idle GPUs      {} of {} GPU-hours ({})", hours(idle), hours(paid), report.idle_gpus())?;
    let one = &report.idle;
    writeln!(
        out,
        "Idle regret    {:#}: {:#} for nodes that pods had left and {:#} for {} avoidable starts, against {:#} at best",
        one.regret(),
        one.cost,
        one.start_cost,
        one.starts,
        one.best
    )
}

/// The most reasons that are printed without `-o wide`.
const REASONS: usize = 3;

/// Prints the most frequent reasons, at most `most`, why one thing or many wait or failed.
fn told(all: &[Told], most: usize, (one, many): (&str, &str), out: &mut impl Write) -> io::Result<()> {
    for Told { reason, count, example } in all.iter().take(most) {
        let what = if *count == 1 { one } else { many };
        match reason {
            Some(reason) => {
                writeln!(out, "               {count} {what}: {reason}: {}", one_line(example))?;
            }
            None => writeln!(out, "               {count} {what}, and no event says why")?,
        }
    }
    let more: u64 = all.iter().skip(most).map(|told| told.count).sum();
    if more > 0 {
        writeln!(out, "               {more} more, for other reasons (-o wide lists them all)")?;
    }
    Ok(())
}

fn reasons(all: &[Told]) -> Vec<Value> {
    let one = |told: &Told| json!({"reason": told.reason, "count": told.count, "example": told.example});
    all.iter().map(one).collect()
}

/// Returns the names of a cause in JSON and CSV, and the sentence about it.
pub(super) fn names(cause: Cause) -> [&'static str; 3] {
    match cause {
        Cause::Start => ["startUsd", "gap_start_usd", "start of nodes, until pods can run on them"],
        Cause::Idle => ["idleUsd", "gap_idle_usd", "idle nodes, without a pod"],
        Cause::StaticPools => {
            ["staticPoolsUsd", "gap_static_pools_usd", "nodes that static pools keep, with or without a pod"]
        }
        Cause::Stranded => {
            ["strandedUsd", "gap_stranded_usd", "stranded: pods left, and the rest fits cheaper nodes"]
        }
        Cause::WrongType => {
            ["wrongTypeUsd", "gap_wrong_type_usd", "wrong type: dearer than needed when bought"]
        }
        Cause::LimitTooLow => {
            ["limitTooLowUsd", "gap_limit_too_low_usd", "limit too low: no plan known reaches it"]
        }
    }
}

fn bought(report: &Report, out: &mut impl Write) -> io::Result<()> {
    if report.bought.is_empty() {
        return Ok(());
    }
    let header = ["POOL", "CAPACITY", "NODES", "NODE-HOURS", "GPU-HOURS", "COST"].map(str::to_owned);
    let mut rows = vec![header];
    for ((pool, capacity), line) in &report.bought {
        rows.push([
            pool.clone(),
            capacity.to_string(),
            line.nodes.to_string(),
            hours(line.millis),
            hours(line.gpu_millis),
            format!("{:#}", line.cost),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    writeln!(out)?;
    for row in &rows {
        let [pool, capacity, numbers @ ..] = row;
        write!(out, "{pool:<0$}  {capacity:<1$}", widths[0], widths[1])?;
        for (number, width) in numbers.iter().zip(&widths[2..]) {
            write!(out, "  {number:>width$}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn plots(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let points = report.points(COLUMNS);
    let marks = Marks::of_locale();
    let plot = |out: &mut dyn Write, title: &str, numbers: Vec<u64>| {
        writeln!(out, "\n{title}")?;
        for line in chart::lines(&numbers, ROWS, marks) {
            writeln!(out, "{line}")?;
        }
        io::Result::Ok(())
    };
    let most = |numbers: &mut dyn Iterator<Item = u64>| numbers.max().unwrap_or(0);
    let dearest = UsdPerHour::from_micros(most(&mut points.iter().map(|point| point.cost)));
    let title = format!("Cost per hour, up to {dearest:#}");
    plot(out, &title, points.iter().map(|point| point.cost).collect())?;
    let waiting = most(&mut points.iter().map(|point| point.waiting));
    plot(out, &format!("Waiting pods, up to {waiting}"), points.iter().map(|point| point.waiting).collect())?;
    let end = Span(report.played).to_string();
    writeln!(out, " 0{end:>width$}", width = COLUMNS as usize - 1)
}

fn usd(micros: u128) -> f64 {
    Usd(micros).as_f64()
}

fn in_hours(millis: u128) -> f64 {
    six_decimals(millis as f64 / 3_600_000.0)
}

fn seconds(duration: Duration) -> f64 {
    six_decimals(duration.as_millis() as f64 / 1000.0)
}

fn baseline(one: &Baseline) -> Value {
    json!({"method": names_of(one.method)[0], "costUsd": usd(one.cost.0), "nodeStarts": one.node_starts,
        "evicted": one.evicted, "podsThatFitNoNode": one.unplaced,
        "pendingSeconds": {"p50": seconds(one.pending.p50), "p95": seconds(one.pending.p95),
            "p99": seconds(one.pending.p99), "longest": seconds(one.pending.most)}})
}

fn document(report: &Report) -> Value {
    let Report { pods, pending, .. } = report;
    let line = |((pool, capacity), line): (&(String, poolwright_terms::CapacityType), &Bought)| {
        json!({"pool": pool, "capacityType": capacity.as_str(), "nodes": line.nodes,
            "nodeHours": in_hours(line.millis), "gpuHours": in_hours(line.gpu_millis), "costUsd": usd(line.cost.0)})
    };
    let gap = Cause::ALL.map(|cause| (names(cause)[0].to_owned(), json!(usd(report.gap.amount(cause).0))));
    let averages = |steps: &Steps, times| report.averages(steps, POINTS, times);
    let pools: Vec<_> = report.pool_steps.iter().map(|(pool, steps)| (pool, averages(steps, 1))).collect();
    let gpus = report.gpu_steps.each(|steps| averages(steps, 1000));
    let points: Vec<Value> = report
        .points(POINTS)
        .into_iter()
        .enumerate()
        .map(|(at, point)| {
            let pools = pools.iter().map(|(pool, points)| ((*pool).clone(), json!(usd(points[at].1.into()))));
            let gpus = gpus.each(|points| six_decimals(points[at].1 as f64 / 1000.0));
            let gap = Cause::ALL.into_iter().zip(point.gap);
            let gap =
                gap.map(|(cause, rate)| (format!("{}PerHour", names(cause)[0]), json!(usd(rate.into()))));
            json!({"fromSeconds": seconds(point.from), "costUsdPerHour": usd(point.cost.into()),
                "lowerLimitUsdPerHour": usd(point.bound.into()), "podsWaiting": point.waiting,
                "pools": pools.collect::<serde_json::Map<_, _>>(),
                "gpus": {"asked": gpus.asked, "paid": gpus.bought, "used": gpus.used},
                "gap": gap.collect::<serde_json::Map<_, _>>()})
        })
        .collect();
    json!({
        "apiVersion": poolwright_terms::API_VERSION,
        "kind": "Replay",
        "playedSeconds": seconds(report.played),
        "askedSeconds": seconds(report.requested),
        "costUsd": usd(report.cost().0),
        "lowerLimitUsd": usd(report.bound.0),
        "gap": serde_json::Map::from_iter(gap),
        "aboveLowerLimit": report.above_bound().map(Ratio::as_f64),
        "bought": report.bought.iter().map(line).collect::<Vec<_>>(),
        "nodeStarts": report.node_starts(),
        "nodesWithUnknownPrice": report.unknown_prices,
        "pods": {"made": pods.made, "finished": pods.finished, "running": pods.running, "waiting": pods.waiting,
            "evicted": pods.evicted, "nodeLost": pods.machine_lost},
        "whyPodsWait": reasons(&report.why_waiting),
        "nodesNeverOpened": reasons(&report.in_vain),
        "pendingSeconds": {"p50": seconds(pending.p50), "p95": seconds(pending.p95), "p99": seconds(pending.p99),
            "longest": seconds(pending.most)},
        "lostWork": {"podHours": in_hours(report.lost_millis), "gpuHours": in_hours(report.lost_gpu_millis)},
        "gpuHours": {"paid": in_hours(report.paid_gpu_millis()), "used": in_hours(report.used_gpu_millis),
            "idle": in_hours(report.idle_gpu_millis())},
        "idleNodes": {"costUsd": usd(report.idle.cost.0), "avoidableStarts": report.idle.starts,
            "avoidableStartsUsd": usd(report.idle.start_cost.0), "bestUsd": usd(report.idle.best.0),
            "regretUsd": usd(report.idle.regret().0)},
        "series": points,
        "baselines": report.baselines.iter().map(baseline).collect::<Vec<_>>(),
        "baselinesIgnore": report.baselines_ignore,
        "notes": report.notes,
    })
}

fn csv(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let Report { pods, pending, .. } = report;
    let mut rows: Vec<[String; 4]> = Vec::new();
    for ((pool, capacity), line) in &report.bought {
        let mut row = |figure: &str, value: String| {
            rows.push([figure.to_owned(), pool.clone(), capacity.to_string(), value]);
        };
        row("cost_usd", usd(line.cost.0).to_string());
        row("nodes", line.nodes.to_string());
        row("node_hours", in_hours(line.millis).to_string());
        row("gpu_hours", in_hours(line.gpu_millis).to_string());
    }
    let mut all = |figure: &str, value: String| {
        rows.push([figure.to_owned(), String::new(), String::new(), value]);
    };
    all("played_seconds", seconds(report.played).to_string());
    all("cost_usd", usd(report.cost().0).to_string());
    all("lower_limit_usd", usd(report.bound.0).to_string());
    for cause in Cause::ALL {
        all(names(cause)[1], usd(report.gap.amount(cause).0).to_string());
    }
    all("node_starts", report.node_starts().to_string());
    all("nodes_with_unknown_price", report.unknown_prices.to_string());
    for (figure, count) in [
        ("pods_made", pods.made),
        ("pods_finished", pods.finished),
        ("pods_running", pods.running),
        ("pods_waiting", pods.waiting),
        ("pods_evicted", pods.evicted),
        ("pods_node_lost", pods.machine_lost),
    ] {
        all(figure, count.to_string());
    }
    for (figure, wait) in [
        ("pending_p50_seconds", pending.p50),
        ("pending_p95_seconds", pending.p95),
        ("pending_p99_seconds", pending.p99),
        ("pending_longest_seconds", pending.most),
    ] {
        all(figure, seconds(wait).to_string());
    }
    for (figure, millis) in [
        ("lost_pod_hours", report.lost_millis),
        ("lost_gpu_hours", report.lost_gpu_millis),
        ("paid_gpu_hours", report.paid_gpu_millis()),
        ("used_gpu_hours", report.used_gpu_millis),
        ("idle_gpu_hours", report.idle_gpu_millis()),
    ] {
        all(figure, in_hours(millis).to_string());
    }
    all("avoidable_starts", report.idle.starts.to_string());
    for (figure, amount) in [
        ("idle_nodes_usd", report.idle.cost),
        ("avoidable_starts_usd", report.idle.start_cost),
        ("idle_best_usd", report.idle.best),
        ("idle_regret_usd", report.idle.regret()),
    ] {
        all(figure, usd(amount.0).to_string());
    }
    for one in &report.baselines {
        let mut row =
            |figure: &str, value: String| all(&format!("{}_{figure}", names_of(one.method)[1]), value);
        row("cost_usd", usd(one.cost.0).to_string());
        row("node_starts", one.node_starts.to_string());
        row("pods_evicted", one.evicted.to_string());
        row("pending_p95_seconds", seconds(one.pending.p95).to_string());
    }
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["figure", "pool", "capacity_type", "value"]).map_err(io::Error::other)?;
    for row in rows {
        writer.write_record(row).map_err(io::Error::other)?;
    }
    writer.flush()
}
