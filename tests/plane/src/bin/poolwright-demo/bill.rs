//! The price paid, compared with the lower bound and with simpler planners.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use poolwright_plane::poolwright_binary;
use poolwright_plane::trace::TracePod;

use crate::cluster::Bill;

/// The prices that `poolwright plan` computes for all pods at once.
pub struct Judged {
    cost: f64,
    bound: f64,
    one_pod_per_node: f64,
    first_fit: f64,
}

/// Runs `poolwright plan` on a file with all pods.
pub fn judge(file: &Path, pods: &[TracePod], pool: &str) -> anyhow::Result<Judged> {
    let mut manifest = pool.to_owned();
    for pod in pods {
        write!(manifest, "\n---\n{}", serde_json::to_string(&pod.object("default"))?)?;
    }
    fs::write(file, manifest)?;
    let output = Command::new(poolwright_binary()?).args(["plan", "-o", "json", "-f"]).arg(file).output()?;
    ensure!(output.status.success(), "poolwright plan: {}", String::from_utf8_lossy(&output.stderr));
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let number = |pointer: &str| {
        plan.pointer(pointer)
            .and_then(serde_json::Value::as_f64)
            .with_context(|| format!("the plan has no {pointer}"))
    };
    Ok(Judged {
        cost: number("/costUsdPerHour")?,
        bound: number("/lowerBoundUsdPerHour")?,
        one_pod_per_node: number("/baselines/onePodPerNodeUsdPerHour")?,
        first_fit: number("/baselines/firstFitUsdPerHour")?,
    })
}

/// Formats dollars per hour: `$5.67/h`.
pub fn per_hour(usd: f64) -> String {
    format!("${usd:.2}/h")
}

/// Prints the nodes bought and the comparison.
pub fn print_bill(bill: &Bill, judged: &Judged) {
    println!("\nBought:");
    for line in &bill.lines {
        println!(
            "  {:>4} x {:<18} {:>12} each  {:>12}",
            line.count,
            line.instance_type,
            per_hour(line.each),
            per_hour(line.total())
        );
    }
    let paid = bill.total();
    println!("  {:>4} nodes {:>48}\n", bill.nodes(), per_hour(paid));
    let row = |what: &str, cost: f64| {
        println!("  {what:<44} {:>12}  {:>+7.1} %", per_hour(cost), (cost / paid - 1.0) * 100.0);
    };
    row("paid now (two waves, one after the other)", paid);
    row("best plan for both waves at once", judged.cost);
    row("lower bound: nobody can do it for less", judged.bound);
    row("first fit, price-blind", judged.first_fit);
    row("one pod per node", judged.one_pod_per_node);
    println!(
        "  gap of the best plan to the bound: {:.2} %; of what was paid: {:.2} %",
        (judged.cost / judged.bound - 1.0) * 100.0,
        (paid / judged.bound - 1.0) * 100.0
    );
}
