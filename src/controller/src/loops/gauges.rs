//! The loop that updates gauges of the cluster's state. It runs on every replica, whether it leads or not.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use poolwright_catalog::UsdPerHour;
use poolwright_core::plan::{PlanOptions, budget_outlook};
use poolwright_core::why::{Broken, broken, oldest_price};
use poolwright_core::{Claim, Claims, PersistentMap, Pool, PoolName, Snapshot, Stage};
use poolwright_report::{PoolSums, WaitingPods};
use tracing::error;

use super::leader_loop::LeaderLoop;
use super::priced_nodes;
use crate::config::Config;
use crate::edge::metrics::Metrics;
use crate::edge::signal::Receiver;
use crate::edge::stoppable::message;
use crate::executor::context::Context;

/// How often invariants are checked and the age of prices is measured.
const CHECK: Duration = Duration::from_mins(1);

/// The loop that updates gauges.
pub struct Gauges {
    context: Context,
    /// The limits over pools and namespaces.
    options: PlanOptions,
    /// When invariants are checked and the age of prices is measured next, on the monotonic clock.
    next_check: Duration,
    shown: Shown,
}

/// The claims and pools that the gauges show now. While they stay, their gauges do.
#[derive(Default)]
struct Shown {
    claims: Claims,
    pools: PersistentMap<PoolName, Arc<Pool>>,
}

impl Shown {
    /// Notes the claims and pools of a snapshot. Returns whether they are others than before.
    fn changes(&mut self, snapshot: &Snapshot) -> bool {
        let is_same = self.claims.is_same(&snapshot.claims) && self.pools.is_same(&snapshot.pools);
        if !is_same {
            *self = Self { claims: snapshot.claims.clone(), pools: snapshot.pools.clone() };
        }
        !is_same
    }
}

impl Gauges {
    /// Creates a loop that updates gauges.
    pub fn new(config: &Config, context: Context) -> Self {
        let options = PlanOptions {
            limits: config.limits.clone(),
            default_usd_per_hour: config.default_usd_per_hour,
            namespace_limits: config.namespace_limits.clone(),
            ..PlanOptions::default()
        };
        Self { context, options, next_check: Duration::ZERO, shown: Shown::default() }
    }
}

impl LeaderLoop for Gauges {
    const NAME: &'static str = "gauges";
    const PAUSE: Duration = Duration::from_secs(1);

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    async fn look(&mut self) -> Option<Duration> {
        let Context { world, metrics, clock, providers, .. } = &self.context;
        let snapshot = world.snapshot();
        measure(&mut self.shown, &snapshot, metrics);
        let now = clock.moment();
        if self.next_check <= now.monotonic {
            self.next_check = now.monotonic.saturating_add(CHECK);
            measure_prices(&snapshot, metrics);
            measure_budgets(&snapshot, now.wall, metrics);
            let kinds = providers.node_class_kinds().map(|kind| kind.kind).collect();
            // This loop ends the process if it panics, and a count is not worth that.
            guarded(metrics, || count_broken(&snapshot, &self.options, &kinds, now.wall, metrics));
        }
        Some(self.next_check.saturating_sub(now.monotonic))
    }
}

/// Runs a check of invariants. A panic is logged and counted, and the next check comes as always.
fn guarded(metrics: &Metrics, check: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(check)) {
        let panic = message(&*panic);
        error!(panic, "the check of invariants panicked; this is a bug, please report it");
        metrics.task_failures.with_label_values(&["invariants"]).inc();
    }
}

/// Counts broken invariants. One that holds is shown as zero.
fn count_broken(
    snapshot: &Snapshot,
    options: &PlanOptions,
    kinds: &BTreeSet<&str>,
    now: Timestamp,
    metrics: &Metrics,
) {
    let all = broken(snapshot, options, kinds, now);
    for name in Broken::ALL {
        let found = all.iter().filter(|one| one.name() == name).count();
        metrics.invariant_broken.with_label_values(&[name]).set(count(found));
    }
}

/// Returns the stage of a claim, as metrics name it.
fn stage(claim: &Claim) -> &'static str {
    if claim.deleting_since.is_some() {
        return "terminating";
    }
    match claim.start_stage() {
        Stage::Pending => "pending",
        Stage::Launched => "launched",
        Stage::Registered => "registered",
        _ => "initialized",
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn measure(shown: &mut Shown, snapshot: &Snapshot, metrics: &Metrics) {
    if shown.changes(snapshot) {
        measure_pools(snapshot, metrics);
        priced_nodes::measure(snapshot, metrics);
    }
    metrics.life_kinds.set(count(snapshot.lives.tables().len()));
    metrics.life_ended.set(snapshot.lives.ended().into());
    metrics.offerings_held_back.set(count(snapshot.held_back.len()));
    metrics.offerings_taken_back.set(count(snapshot.reclaims.len()));
    let waiting = WaitingPods::of(snapshot);
    for (phase, pods) in
        [("unschedulable", waiting.unschedulable), ("waiting", waiting.waiting), ("gated", waiting.gated)]
    {
        metrics.pods_waiting.with_label_values(&[phase]).set(count(pods));
    }
}

/// Updates the date of prices. It looks at each offering of each pool, and dates change by days.
fn measure_prices(snapshot: &Snapshot, metrics: &Metrics) {
    let day = oldest_price(snapshot).and_then(|date| date.to_zoned(TimeZone::UTC).ok());
    match day {
        Some(day) => {
            let gauge = metrics.prices_as_of.with_label_values::<&str>(&[]);
            gauge.set(day.timestamp().as_second() as f64);
        }
        None => metrics.prices_as_of.reset(),
    }
}

/// Updates what pools with a monthly budget have spent and will spend.
fn measure_budgets(snapshot: &Snapshot, now: Timestamp, metrics: &Metrics) {
    let Metrics { pool_budget, pool_spent, pool_forecast, .. } = metrics;
    for gauge in [pool_budget, pool_spent, pool_forecast] {
        gauge.reset();
    }
    for pool in snapshot.pools.values() {
        let Some(outlook) = budget_outlook(pool, snapshot, now) else { continue };
        let name = [pool.name.0.as_str()];
        pool_budget.with_label_values(&name).set(outlook.budget.usd.as_f64());
        pool_spent.with_label_values(&name).set(outlook.spend.usd.as_f64());
        pool_forecast.with_label_values(&name).set(outlook.forecast.as_f64());
    }
}

/// Updates the gauges that show nothing but claims and pools.
fn measure_pools(snapshot: &Snapshot, metrics: &Metrics) {
    metrics.claims.reset();
    metrics.pool_cost.reset();
    metrics.pool_planned_cost.reset();
    metrics.pool_retiring.reset();
    metrics.pool_retiring_cost.reset();
    for claim in snapshot.claims.values() {
        metrics.claims.with_label_values(&[claim.pool.0.as_str(), stage(claim)]).inc();
    }
    for pool in snapshot.pools.keys() {
        let sums = PoolSums::of(pool, snapshot);
        metrics.pool_cost.with_label_values(&[pool.0.as_str()]).set(sums.cost.usd_per_hour.as_f64());
        metrics
            .pool_planned_cost
            .with_label_values(&[pool.0.as_str()])
            .set(sums.planned.usd_per_hour.as_f64());
        let retiring =
            snapshot.claims.values().filter(|claim| claim.pool == *pool && claim.retires_since().is_some());
        let retiring: Vec<Option<UsdPerHour>> =
            retiring.map(|claim| claim.current_offering().price).collect();
        let price: UsdPerHour = retiring.iter().flatten().copied().sum();
        metrics.pool_retiring.with_label_values(&[pool.0.as_str()]).set(count(retiring.len()));
        metrics.pool_retiring_cost.with_label_values(&[pool.0.as_str()]).set(price.as_f64());
    }
}

#[cfg(test)]
mod tests {
    use poolwright_core::Lives;
    use poolwright_intake as intake;
    use serde_json::{Value, json};

    use super::*;
    use crate::observed::lease_notes::tests::buying;

    fn claim(name: &str, pool: &str, true_conditions: &[&str]) -> Arc<Claim> {
        let conditions: Vec<Value> = true_conditions
            .iter()
            .map(|kind| {
                json!({"type": kind, "status": "True", "reason": "Ready", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        let object = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": name, "uid": name, "labels": {"poolwright.dev/nodepool": pool},
                "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": pool},
                "offerings": [{"instanceType": "g5.xlarge", "zone": "us-east-1a", "capacityType": "on-demand",
                    "usdPerHour": "1.006", "allocatable": {"cpu": "3920m"}}]},
            "status": {"conditions": conditions}});
        Arc::new(intake::node_claim(&serde_json::from_value(object).unwrap()).unwrap())
    }

    fn pool(name: &str) -> (PoolName, Arc<Pool>) {
        let object = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {"template": {"spec": {"nodeClassRef":
                {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": name}}}}});
        let pool = intake::node_pool(&serde_json::from_value(object).unwrap());
        (pool.name.clone(), Arc::new(pool))
    }

    #[test]
    fn retiring_nodes_are_counted_with_their_price_until_they_close_for_good() {
        const OPEN: [&str; 3] = ["Launched", "Registered", "Initialized"];
        let with = |more: &[&'static str]| [&OPEN, more].concat();
        let claims = [
            claim("open", "a", &OPEN),
            claim("retiring", "a", &with(&["Retiring"])),
            claim("another", "a", &with(&["Retiring"])),
            claim("emptied", "a", &with(&["Retiring", "Disrupting"])),
        ];
        let mut lives = Lives::prior();
        lives.observe(&["1 GPUs".to_owned()], jiff::SignedDuration::ZERO, true, jiff::Timestamp::UNIX_EPOCH);
        let snapshot = Snapshot {
            claims: claims.into_iter().map(|claim| (claim.name.clone(), claim)).collect(),
            pools: [pool("a"), pool("b")].into_iter().collect(),
            lives: Arc::new(lives),
            ..Snapshot::default()
        };
        let metrics = Metrics::new().unwrap();
        measure(&mut Shown::default(), &snapshot, &metrics);
        let text = metrics.text().unwrap();
        for line in [
            "poolwright_nodepool_retiring_nodes{nodepool=\"a\"} 2",
            "poolwright_nodepool_retiring_nodes{nodepool=\"b\"} 0",
            "poolwright_nodepool_retiring_usd_per_hour{nodepool=\"a\"} 2.012",
            "poolwright_life_kinds 1",
            "poolwright_life_ended_pods 1",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
    }

    #[test]
    fn a_node_with_a_known_price_has_the_metrics_of_opencost() {
        let with_node = |name: &str, price: Option<UsdPerHour>| {
            let mut claim = Claim::clone(&claim(name, "a", &["Launched", "Registered"]));
            let offering = claim.offerings[0].offering.clone();
            claim.launched =
                Some(poolwright_core::Launched { provider_id: format!("kwok://{name}"), offering });
            claim.node_name = Some(format!("node-{name}"));
            claim.offerings[0].price = price;
            Arc::new(claim)
        };
        let price = Some(UsdPerHour::from_micros(1_006_000));
        let claims = [with_node("known", price), with_node("unknown", None), claim("pending", "a", &[])];
        let snapshot = Snapshot {
            claims: claims.into_iter().map(|claim| (claim.name.clone(), claim)).collect(),
            ..Snapshot::default()
        };
        let metrics = Metrics::new().unwrap();
        measure(&mut Shown::default(), &snapshot, &metrics);
        let text = metrics.text().unwrap();
        let all: Vec<&str> =
            text.lines().filter(|line| line.starts_with("node_total_hourly_cost{")).collect();
        let labels = r#"instance_type="g5.xlarge",node="node-known",provider_id="kwok://known""#;
        assert_eq!(all, [format!("node_total_hourly_cost{{{labels}}} 1.006")], "{text}");
    }

    #[test]
    fn a_shared_gpu_counts_as_one_in_the_metrics_of_opencost() {
        let mut shared = Claim::clone(&claim("shared", "a", &["Launched", "Registered"]));
        let offering = shared.offerings[0].offering.clone();
        shared.launched =
            Some(poolwright_core::Launched { provider_id: "kwok://shared".to_owned(), offering });
        shared.node_name = Some("node-shared".to_owned());
        shared.offerings[0].price = Some(UsdPerHour::from_micros(1_000_000));
        shared.offerings[0].allocatable.set("nvidia.com/gpu", 4);
        let catalogue = Ok(Arc::new(poolwright_catalog::builtin()));
        let snapshot = Snapshot {
            catalogues: [(shared.node_class.clone(), catalogue)].into(),
            claims: [(shared.name.clone(), Arc::new(shared))].into_iter().collect(),
            ..Snapshot::default()
        };
        let metrics = Metrics::new().unwrap();
        measure(&mut Shown::default(), &snapshot, &metrics);
        let text = metrics.text().unwrap();
        for (name, value) in [("node_gpu_count", "1"), ("node_gpu_hourly_cost", "0.95")] {
            let mut lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{")));
            assert!(lines.next().is_some_and(|line| line.ends_with(&format!(" {value}"))), "{name}: {text}");
        }
    }

    #[test]
    fn gauges_follow_claims_and_pools_that_change() {
        let one = claim("one", "a", &[]);
        let mut snapshot = Snapshot {
            claims: [(one.name.clone(), one)].into_iter().collect(),
            pools: [pool("a")].into_iter().collect(),
            ..Snapshot::default()
        };
        let (metrics, mut shown) = (Metrics::new().unwrap(), Shown::default());
        let number = |stage: &str| metrics.claims.with_label_values(&["a", stage]).get();
        measure(&mut shown, &snapshot, &metrics);
        assert_eq!((number("pending"), number("initialized")), (1, 0));
        let open = claim("one", "a", &["Launched", "Registered", "Initialized"]);
        snapshot.claims.insert(open.name.clone(), open);
        measure(&mut shown, &snapshot, &metrics);
        assert_eq!((number("pending"), number("initialized")), (0, 1));
        let (name, other) = pool("b");
        snapshot.pools.insert(name, other);
        measure(&mut shown, &snapshot, &metrics);
        let text = metrics.text().unwrap();
        assert!(text.contains("poolwright_nodepool_retiring_nodes{nodepool=\"b\"} 0"), "{text}");
    }

    #[test]
    fn broken_invariants_are_counted_and_those_that_hold_are_zero() {
        let lost = claim("lost", "a", &["Launched"]);
        let mut lost = Claim::clone(&lost);
        let offering = lost.offerings[0].offering.clone();
        lost.launched = Some(poolwright_core::Launched { provider_id: "kwok://lost".to_owned(), offering });
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let snapshot = Snapshot {
            claims: [(lost.name.clone(), Arc::new(lost))].into_iter().collect(),
            instances: Some(poolwright_core::Instances::new(&["KwokNodeClass"], now, [])),
            ..Snapshot::default()
        };
        let metrics = Metrics::new().unwrap();
        let kinds = BTreeSet::from(["KwokNodeClass"]);
        count_broken(&snapshot, &PlanOptions::default(), &kinds, now, &metrics);
        for name in Broken::ALL {
            let found = metrics.invariant_broken.with_label_values(&[name]).get();
            assert_eq!(found, i64::from(name == "claim-without-instance"), "{name}");
        }
    }

    #[test]
    fn a_check_of_invariants_that_panics_is_counted_and_goes_no_further() {
        let metrics = Metrics::new().unwrap();
        let failures = || metrics.task_failures.with_label_values(&["invariants"]).get();
        guarded(&metrics, || {});
        assert_eq!(failures(), 0);
        guarded(&metrics, || panic!("a bug"));
        assert_eq!(failures(), 1);
    }

    #[test]
    fn the_date_of_the_oldest_price_of_what_the_pools_may_buy_is_told() {
        let metrics = Metrics::new().unwrap();
        let told = || -> Option<i64> {
            let text = metrics.text().unwrap();
            let mut lines = text.lines();
            lines.find_map(|line| {
                line.strip_prefix("poolwright_prices_as_of_timestamp_seconds ")?.parse().ok()
            })
        };
        assert_eq!(told(), None, "nothing is measured yet");
        measure_prices(&buying(&["on-demand"]), &metrics);
        // 2026-03-01T00:00:00Z
        assert_eq!(told(), Some(1_772_323_200));
        measure_prices(&Snapshot::default(), &metrics);
        assert_eq!(told(), None, "no pool may buy anything");
    }
}
