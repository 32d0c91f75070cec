//! The table of the figures of other methods.

use std::io::{self, Write};

use poolwright_report::replay::baselines::{Baseline, Method};

use super::print::span;
use crate::print::TableLayout;

/// A column after the name of the method.
struct Column {
    title: &'static str,
    /// The least width.
    width: usize,
    /// Whether only `-o wide` has it.
    only_wide: bool,
    cell: fn(&Baseline) -> String,
}

const fn column(title: &'static str, width: usize, cell: fn(&Baseline) -> String) -> Column {
    Column { title, width, only_wide: false, cell }
}

const fn only_wide(title: &'static str, cell: fn(&Baseline) -> String) -> Column {
    Column { title, width: title.len(), only_wide: true, cell }
}

static COLUMNS: [Column; 8] = [
    column("COST", 10, |one| format!("{:#}", one.cost)),
    column("STARTS", 6, |one| one.node_starts.to_string()),
    only_wide("P50 WAIT", |one| span(one.pending.p50)),
    column("P95 WAIT", 8, |one| span(one.pending.p95)),
    only_wide("P99 WAIT", |one| span(one.pending.p99)),
    only_wide("LONGEST", |one| span(one.pending.most)),
    column("EVICTED", 7, |one| one.evicted.to_string()),
    only_wide("FIT NO NODE", |one| one.unplaced.to_string()),
];

/// Returns the names of a method in JSON, CSV and text.
pub fn names_of(method: Method) -> [&'static str; 3] {
    match method {
        Method::OnePodPerNode => ["onePodPerNode", "one_pod_per_node", "one pod per node"],
        Method::FirstFit => ["firstFit", "first_fit", "first fit into any room"],
        Method::Extension => ["extension", "extension", "room that costs less than an own node"],
        Method::Karpenter => ["karpenterLike", "karpenter_like", "like Karpenter, only empty nodes removed"],
        Method::Consolidation => [
            "karpenterLikeConsolidation",
            "karpenter_like_consolidation",
            "  and consolidation; work is lost",
        ],
        Method::ConsolidationKept => [
            "karpenterLikeConsolidationKept",
            "karpenter_like_consolidation_kept",
            "  and consolidation; work is kept",
        ],
    }
}

/// Prints the figures of other methods. A `*` marks those that ignore something of this replay, which the lines below name.
pub fn print(
    methods: &[Baseline],
    ignored: &[String],
    layout: TableLayout,
    out: &mut impl Write,
) -> io::Result<()> {
    if methods.is_empty() {
        return Ok(());
    }
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| layout.wide || !column.only_wide).collect();
    write!(out, "\n{:<41}", "OTHER METHODS")?;
    for column in &columns {
        write!(out, "  {:>width$}", column.title, width = column.width)?;
    }
    writeln!(out)?;
    let mark = if ignored.is_empty() { "" } else { "*" };
    for one in methods {
        let name = format!("{}{mark}", names_of(one.method)[2]);
        write!(out, "{name:<41}")?;
        for column in &columns {
            write!(out, "  {:>width$}", (column.cell)(one), width = column.width)?;
        }
        writeln!(out)?;
    }
    for ignored in ignored {
        writeln!(out, "{}", layout.fit(&format!("* without {ignored}"), 2))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use poolwright_report::money::Usd;
    use poolwright_report::replay::Pending;

    use super::*;

    #[test]
    fn wide_adds_all_waiting_times_and_the_pods_that_no_node_holds() {
        let wait = Duration::from_secs;
        let pending = Pending { p50: wait(61), p95: wait(62), p99: wait(63), most: wait(64) };
        let (method, cost) = (Method::FirstFit, Usd(2_500_000));
        let one = Baseline { method, cost, node_starts: 3, evicted: 4, pending, unplaced: 5 };
        let printed = |wide| {
            let mut out = Vec::new();
            let layout = TableLayout { width: None, wide };
            print(std::slice::from_ref(&one), &["volumes".to_owned()], layout, &mut out).expect("memory");
            String::from_utf8(out).expect("UTF-8")
        };
        let begin = |text: &str| format!("{text:<41}");
        assert_eq!(
            printed(false),
            format!(
                "\n{}        COST  STARTS  P95 WAIT  EVICTED\n{}       $2.50       3      1m2s        4\n* without volumes\n",
                begin("OTHER METHODS"),
                begin("first fit into any room*")
            )
        );
        let wide = printed(true);
        let line = |number: usize| wide.lines().nth(number).expect("a line").split_whitespace().skip(2);
        let titles = "COST STARTS P50 WAIT P95 WAIT P99 WAIT LONGEST EVICTED FIT NO NODE";
        assert_eq!(line(1).collect::<Vec<_>>().join(" "), titles);
        let cells: Vec<&str> = line(2).skip(3).collect();
        assert_eq!(cells, ["$2.50", "3", "1m1s", "1m2s", "1m3s", "1m4s", "4", "5"]);
    }
}
