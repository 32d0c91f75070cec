//! The loop that counts what the pods of namespaces with a monthly budget cost. A ConfigMap tells it to the next leader.
//!
//! Pods share the price of their node, as for the limits of namespaces. The record says until when everything counts, and a write fails if
//! another one came between. So neither a restart nor a second leader counts anything twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use poolwright_core::plan::namespace_rates;
use poolwright_core::{
    BudgetOutlook, BudgetState, MonthSpend, MonthlyBudget, PaidNode, SpentBudget, SpentBudgets,
};
use poolwright_terms::Reason;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::leader_loop::LeaderLoop;
use super::own_config_map::{OwnConfigMap, parse};
use crate::config::Config;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;
use crate::leader::LeaderTerm;

/// The name of the ConfigMap, in the controller's namespace.
pub const NAME: &str = "poolwright-spend";
/// The key of the data.
const KEY: &str = "spend.json";
/// The version of the format that this program writes and reads.
const VERSION: u32 = 1;
/// The time between two writes.
const PERIOD: Duration = Duration::from_mins(1);
/// The time after a failed read in which no other is tried.
const AGAIN: Duration = Duration::from_secs(30);

/// The data of the ConfigMap.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    /// What was spent, by namespace. Amounts are millionths of a dollar.
    namespaces: BTreeMap<String, MonthSpend>,
}

/// The loop.
pub struct KeepNamespaceSpend {
    context: Context,
    budgets: BTreeMap<String, MonthlyBudget>,
    object: OwnConfigMap,
    spends: BTreeMap<String, MonthSpend>,
    /// The state of each budget, as the log has it.
    states: BTreeMap<String, Reason>,
    /// Whether the object must not be written, because it could not be understood.
    is_foreign: bool,
    /// When to write next, on the monotonic clock.
    next_write: Duration,
}

impl KeepNamespaceSpend {
    /// Creates the loop.
    pub fn new(config: &Arc<Config>, context: Context) -> Self {
        let object = OwnConfigMap::new(&config.lease.namespace, NAME, KEY, context.clone());
        Self {
            context,
            budgets: config.namespace_budgets.clone(),
            object,
            spends: BTreeMap::new(),
            states: BTreeMap::new(),
            is_foreign: false,
            next_write: Duration::ZERO,
        }
    }

    /// Reads the object. Returns whether it was read. What it says replaces what is known.
    async fn load(&mut self) -> bool {
        let stored = match self.object.read().await {
            Ok(object) => parse::<Stored>(object, KEY, VERSION),
            Err(error) => {
                warn!(%error, "ConfigMap {NAME} cannot be read, so what namespaces spend is not counted; tried again in {AGAIN:?}");
                return false;
            }
        };
        let was_foreign = std::mem::replace(&mut self.is_foreign, stored.is_err());
        self.context.metrics.saved_state_ignored.with_label_values(&[NAME]).set(self.is_foreign.into());
        match stored {
            Ok(stored) => self.spends = stored.map(|stored| stored.namespaces).unwrap_or_default(),
            Err(why) if !was_foreign => warn!(
                why,
                "ConfigMap {NAME} cannot be understood, so what namespaces spend is counted anew and not kept; delete the ConfigMap, or run the version of Poolwright that wrote it"
            ),
            Err(_) => {}
        }
        true
    }

    /// Counts what namespaces spent until now, and judges their budgets.
    fn count(&mut self, now: Timestamp) {
        let rates = namespace_rates(&self.context.world.snapshot());
        self.spends.retain(|name, _| self.budgets.contains_key(name));
        let (mut spent, mut missed) = (SpentBudgets::new(), 0);
        for (name, budget) in &self.budgets {
            let price = Some(rates.get(name).copied().unwrap_or_default());
            let before = self.spends.get(name).copied();
            // Nobody knows what pods shared nodes before the record begins.
            let since = before.map_or(now, |before| before.until);
            let spend = MonthSpend::continued(before, &[PaidNode { price, since, until: None }], now);
            self.spends.insert(name.clone(), spend);
            let outlook = BudgetOutlook::after(*budget, spend, std::iter::once(price));
            if outlook.stops_buying() {
                let of = SpentBudget { budget: budget.usd, spent: spend.usd, until: outlook.month.end };
                spent.insert(name.clone(), of);
            }
            missed += i64::from(matches!(outlook.state, BudgetState::WillMiss(_)));
            let reason = outlook.reason();
            if self.states.insert(name.clone(), reason).unwrap_or(Reason::BudgetOnTrack) != reason {
                info!(
                    namespace = %name, state = %reason, budget = %budget.usd, spent = %spend.usd, forecast = %outlook.forecast,
                    "the monthly budget of a namespace is in another state"
                );
            }
        }
        let all_spent = self.states.values().filter(|state| **state == Reason::BudgetSpent).count();
        let gauge = |state: &str, count: i64| {
            self.context.metrics.namespaces_over_budget.with_label_values(&[state]).set(count);
        };
        gauge("will-be-missed", missed);
        gauge("spent", i64::try_from(all_spent).unwrap_or(i64::MAX));
        self.context.world.set_spent_namespaces(spent);
    }

    async fn write(&mut self) {
        if self.is_foreign {
            // A user may have deleted it meanwhile.
            self.object.forget();
            return;
        }
        let stored = Stored { version: VERSION, namespaces: self.spends.clone() };
        let data = serde_json::to_string(&stored).unwrap_or_default();
        if let Err(error) = self.object.write("namespace-spend", data).await {
            info!(%error, "what namespaces spent was not stored; it is counted again from the last record");
        }
    }
}

impl LeaderLoop for KeepNamespaceSpend {
    const NAME: &'static str = "monthly budgets of namespaces";
    const PAUSE: Duration = Duration::from_secs(10);

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    fn begin(&mut self, _: LeaderTerm) {
        // Another leader has counted meanwhile.
        self.object.forget();
        self.next_write = Duration::ZERO;
    }

    async fn look(&mut self) -> Option<Duration> {
        if !self.object.is_read() && !self.load().await {
            tokio::time::sleep(AGAIN).await;
            return Some(Duration::ZERO);
        }
        let now = self.context.clock.moment();
        self.count(now.wall);
        if self.next_write <= now.monotonic {
            self.next_write = now.monotonic.saturating_add(PERIOD);
            self.write().await;
        }
        Some(self.next_write.saturating_sub(self.context.clock.monotonic()).saturating_sub(Self::PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::Usd;
    use poolwright_core::index::Change;
    use serde_json::{Value, json};

    use super::*;
    use crate::edge::clock::SharedClock;
    use crate::edge::clock::testing::TestClock;
    use crate::edge::signal::Sender;
    use crate::executor::context::testing::leading;
    use crate::fake_api::FakeApi;

    const PATH: &str = "/api/v1/namespaces/poolwright/configmaps/poolwright-spend";
    const HOUR: Duration = Duration::from_hours(1);

    /// A controller that leads, with a budget of $10 for `ml`, and a node for $2 an hour with one pod of `ml`.
    struct Scene {
        keep: KeepNamespaceSpend,
        leader: Sender<Option<LeaderTerm>>,
    }

    impl Scene {
        fn new(api: &FakeApi, clock: &Arc<TestClock>) -> Self {
            let clock: SharedClock = clock.clone();
            let (context, leader) = leading(api, &clock, Vec::new());
            let claim = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
                "metadata": {"name": "a", "uid": "a", "labels": {"poolwright.dev/nodepool": "gpu"},
                    "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"},
                    "offerings": [{"instanceType": "g5.xlarge", "zone": "us-east-1a", "capacityType": "on-demand",
                        "usdPerHour": "2", "allocatable": {"cpu": "4"}}]},
                "status": {"providerID": "kwok://a", "nodeName": "a"}});
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ml", "uid": "p"},
                "spec": {"nodeName": "a", "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]},
                "status": {"phase": "Running"}});
            let claim = poolwright_intake::node_claim(&serde_json::from_value(claim).unwrap()).unwrap();
            let pod = poolwright_intake::pod(&serde_json::from_value(pod).unwrap()).unwrap();
            context.world.change(|state| {
                state.index.apply_claim(claim);
                state.index.apply_pod(pod);
                Change::Room
            });
            let budget = MonthlyBudget { usd: Usd(10_000_000), stops_buying: true, spend: None };
            let namespace_budgets = [("ml".to_owned(), budget)].into();
            let config = Config { namespace_budgets, ..Config::new("controller", "poolwright") };
            Self { keep: KeepNamespaceSpend::new(&Arc::new(config), context), leader }
        }

        /// Looks, as a leader whose term was renewed just now.
        async fn look(&mut self) {
            let expires = self.keep.context.clock.moment().after(PERIOD);
            self.leader.replace(Some(LeaderTerm { expires, number: 1 }));
            self.keep.look().await;
        }

        /// Returns whether nothing is bought for `ml`.
        fn is_stopped(&self) -> bool {
            self.keep.context.world.view(|all| all.spent_namespaces.contains_key("ml"))
        }
    }

    /// Returns what the ConfigMap says that was spent, in millionths of a dollar.
    fn spent(api: &FakeApi) -> u64 {
        let object = api.get(PATH).unwrap();
        let data: Value = serde_json::from_str(object["data"][KEY].as_str().unwrap()).unwrap();
        data["namespaces"]["ml"]["usd"].as_u64().unwrap()
    }

    #[tokio::test]
    async fn a_new_leader_knows_what_was_spent_and_a_new_month_frees_the_namespace() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        let mut old = Scene::new(&api, &clock);
        old.look().await;
        assert_eq!((spent(&api), old.is_stopped()), (0, false));
        clock.advance(4 * HOUR);
        old.look().await;
        assert_eq!((spent(&api), old.is_stopped()), (8_000_000, false));
        let mut new = Scene::new(&api, &clock);
        clock.advance(HOUR);
        new.look().await;
        assert_eq!((spent(&api), new.is_stopped()), (10_000_000, true));
        // The old one has not noticed yet that it does not lead. The API server refuses its write, and it reads again.
        clock.advance(HOUR);
        old.look().await;
        old.look().await;
        assert_eq!(spent(&api), 10_000_000);
        clock.advance(30 * 24 * HOUR + 18 * HOUR);
        new.look().await;
        assert!(!new.is_stopped(), "February has begun");
    }

    #[tokio::test]
    async fn a_record_that_cannot_be_understood_stays_and_a_metric_says_so() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        api.put(PATH, json!({"metadata": {"name": NAME}, "data": {KEY: "{\"version\": 2}"}}));
        let mut scene = Scene::new(&api, &clock);
        scene.look().await;
        clock.advance(6 * HOUR);
        scene.look().await;
        assert!(api.writes().is_empty() && scene.is_stopped(), "it counts anew");
        assert_eq!(scene.keep.context.metrics.saved_state_ignored.with_label_values(&[NAME]).get(), 1);
    }
}
