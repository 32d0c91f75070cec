//! The price paid, compared with the lower bound and with simpler planners.

use std::sync::Arc;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{PodCondition, PodStatus};
use poolwright_catalog::Catalogue;
use poolwright_core::Snapshot;
use poolwright_core::plan::{PlanOptions, StopSignal, plan};
use poolwright_plane::trace::TracePod;
use serde_json::Value;

use crate::cluster::Bill;

/// What a plan for all pods at once costs, in dollars per hour.
pub struct Judged {
    cost: f64,
    bound: f64,
    one_pod_per_node: f64,
    first_fit: f64,
}

/// The work of the three seconds that the controller's solver has: a unit is about half a microsecond of one core.
const WORK: u64 = 6_000_000;

/// Stops the solver after this much work.
struct Work {
    left: u64,
}

impl StopSignal for Work {
    fn should_stop(&mut self) -> bool {
        self.left == 0
    }

    fn spent(&mut self, units: u64) {
        self.left = self.left.saturating_sub(units);
    }
}

/// Plans all pods at once on an empty cluster, as `poolwright plan` does, with as much work as the controller spends on a plan.
pub fn judge(catalogue: Catalogue, pods: &[TracePod], objects: &[Value]) -> anyhow::Result<Judged> {
    let pool = objects.iter().find(|object| object["kind"] == "NodePool").context("there is no NodePool")?;
    let mut pool: poolwright_api::NodePool = serde_json::from_value(pool.clone())?;
    pool.metadata.uid = Some("demo".to_owned());
    let pool = poolwright_intake::node_pool(&pool);
    let mut snapshot = Snapshot::default();
    snapshot.catalogues.insert(pool.node_class.clone(), Ok(Arc::new(catalogue)));
    snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    for pod in pods {
        let mut object = pod.pod("default")?;
        // The scheduler has found no node for it.
        object.status = Some(unschedulable());
        let pod = poolwright_intake::pod(&object)?;
        snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
    }
    let mut work = Work { left: WORK };
    let plan = plan(&snapshot, jiff::Timestamp::UNIX_EPOCH, &PlanOptions::default(), &mut work);
    ensure!(
        plan.refused.is_empty() && plan.unplaced.is_empty(),
        "the plan leaves out pods: {:?}",
        plan.unplaced
    );
    Ok(Judged {
        cost: plan.cost.as_f64(),
        bound: plan.bound.as_f64(),
        one_pod_per_node: plan.baselines.one_pod_per_node.cost.as_f64(),
        first_fit: plan.baselines.first_fit.cost.as_f64(),
    })
}

fn unschedulable() -> PodStatus {
    let refused = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        ..PodCondition::default()
    };
    PodStatus { conditions: Some(vec![refused]), ..PodStatus::default() }
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
