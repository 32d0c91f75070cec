//! The controller's loops. Each looks at the world, asks `core` for actions, and hands them to the executor.

pub mod budget_warnings;
pub mod compute;
pub mod consolidation;
pub mod deadlines;
pub mod gauges;
pub mod interruptions;
pub mod leader_loop;
pub mod ledger;
pub mod lifecycle;
pub mod lives;
mod moves;
pub mod namespace_budgets;
pub mod node_classes;
mod own_config_map;
pub mod plan_events;
pub mod planner;
pub mod pool_budgets;
pub mod pool_status;
mod priced_nodes;
mod quarantine;

use std::sync::Arc;

use crate::config::Config;
use crate::edge::stoppable::Tasks;
use crate::executor::Executor;
use crate::executor::context::Context;
use crate::observed::commitments::Committed;

use budget_warnings::BudgetWarnings;
use compute::Compute;
use gauges::Gauges;
use interruptions::Interruptions;
use leader_loop::Leading;
use ledger::KeepLedger;
use lifecycle::Lifecycle;
use lives::KeepLives;
use namespace_budgets::KeepNamespaceSpend;
use node_classes::NodeClasses;
use planner::Planner;
use pool_budgets::PoolBudgets;
use pool_status::PoolStatus;

/// Starts every loop.
pub fn start(
    config: &Arc<Config>,
    committed: Committed,
    context: &Context,
    executor: &Arc<Executor>,
    compute: Compute,
    leading: &Leading,
    tasks: &mut Tasks,
) {
    let (context, executor) = (|| context.clone(), || executor.clone());
    tasks.spawn("gauges", leading.clone().run_always(Gauges::new(config, context())));
    tasks.spawn("pool status", leading.clone().run(PoolStatus::new(context())));
    tasks.spawn("pool budgets", leading.clone().run(PoolBudgets::new(context(), executor())));
    tasks.spawn("lives", leading.clone().run(KeepLives::new(config, context())));
    tasks.spawn("interruptions", leading.clone().run(Interruptions::new(context(), executor())));
    if let Some(store) = &config.ledger {
        let ledger = KeepLedger::new(store.clone(), &config.lease, context());
        tasks.spawn("ledger", leading.clone().run(ledger));
    }
    if !config.namespace_budgets.is_empty() {
        tasks.spawn("namespace budgets", leading.clone().run(KeepNamespaceSpend::new(config, context())));
    }
    let classes = NodeClasses::new(context());
    if classes.is_needed() {
        tasks.spawn("node class status", leading.clone().run(classes));
    }
    tasks.spawn("budget warnings", leading.clone().run(BudgetWarnings::new(context(), executor())));
    tasks.spawn("lifecycle", leading.clone().run(Lifecycle::new(config.placement, context(), executor())));
    tasks.spawn(
        "planning",
        leading.clone().run(Planner::new(config.clone(), committed, context(), executor(), compute)),
    );
}
