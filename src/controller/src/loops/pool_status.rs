//! The loop that writes the sums in the status of pools: nodes, resources and costs. The executor writes the conditions.

use std::time::Duration;

use poolwright_api::NodePool;
use poolwright_core::PoolName;
use poolwright_intake::allocatable_amounts;
use poolwright_report::PoolSums;
use tracing::debug;

use super::leader_loop::LeaderLoop;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;
use crate::executor::status::{Changed, change_status};
use crate::observed::reader::Objects;

/// The loop that writes the sums in the status of pools.
pub struct PoolStatus {
    context: Context,
}

impl PoolStatus {
    /// Creates a loop that writes the sums.
    pub fn new(context: Context) -> Self {
        Self { context }
    }

    async fn write(&self, api: &Objects<NodePool>, pool: &PoolName, sums: &PoolSums) {
        let resources = allocatable_amounts(&sums.resources);
        let (cost, planned) = (sums.cost.to_string(), sums.planned.to_string());
        let changed = change_status(api, &self.context.writer, &pool.0, None, |object| {
            let status = object.status.get_or_insert_default();
            let before = status.clone();
            status.nodes = Some(sums.nodes);
            status.resources.clone_from(&resources);
            status.usd_per_hour = Some(cost.clone());
            status.planned_usd_per_hour = Some(planned.clone());
            *status != before
        });
        if let Changed::NotWritten(outcome) = changed.await {
            debug!(pool = %pool, ?outcome, "the status was not written; it is written with the next change");
        }
    }
}

impl LeaderLoop for PoolStatus {
    const NAME: &'static str = "the status of pools";
    const PAUSE: Duration = Duration::from_secs(1);

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    async fn look(&mut self) -> Option<Duration> {
        let api = self.context.reader.all::<NodePool>();
        let snapshot = self.context.world.snapshot();
        for pool in snapshot.pools.keys() {
            self.write(&api, pool, &PoolSums::of(pool, &snapshot)).await;
        }
        None
    }
}
