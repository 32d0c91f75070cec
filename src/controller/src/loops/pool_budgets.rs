//! The loop that counts what pools with a monthly budget spend, in the status of each pool.
//!
//! The record says until when everything counts. Each write continues the record that it has just read, and fails if another write came
//! between. So neither a restart nor a second leader counts anything twice, and nothing that was written is forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use poolwright_api::{MonthlySpend, NodePool};
use poolwright_core::{
    BudgetOutlook, Claim, ConditionUpdate, EventType, MonthSpend, PaidNode, Pool, PoolName, Snapshot,
    Subject, Uid,
};
use poolwright_intake::merge_conditions;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};
use tracing::debug;

use super::leader_loop::LeaderLoop;
use crate::edge::signal::Receiver;
use crate::executor::Executor;
use crate::executor::context::Context;
use crate::executor::status::{Changed, change_status};
use crate::leader::LeaderTerm;

/// The time between two writes while a pool's nodes stay the same.
const PERIOD: Duration = Duration::from_mins(1);

/// The nodes of a pool since its last write, by the UID of their claim.
type Paid = BTreeMap<Uid, PaidNode>;

/// The loop that counts what pools spend.
pub struct PoolBudgets {
    context: Context,
    executor: Arc<Executor>,
    /// The nodes of each pool with a budget.
    paid: BTreeMap<PoolName, Paid>,
    /// When to write next, on the monotonic clock.
    next_write: Duration,
}

impl PoolBudgets {
    /// Creates a loop that has counted nothing yet.
    pub fn new(context: Context, executor: Arc<Executor>) -> Self {
        Self { context, executor, paid: BTreeMap::new(), next_write: Duration::ZERO }
    }

    /// Continues the record of a pool, and judges its budget.
    async fn write(&self, pool: &Pool, paid: &Paid, snapshot: &Snapshot, now: Timestamp) -> bool {
        let of_pool = |claim: &&Arc<Claim>| claim.pool == pool.name;
        let prices: Vec<_> =
            snapshot.claims.values().filter(of_pool).map(|claim| claim.current_offering().price).collect();
        let mut news = None;
        let changed = self.change(pool, |object| {
            news = None;
            let Some(budget) = poolwright_intake::node_pool(object).monthly_budget else { return false };
            let spend = MonthSpend::continued(budget.spend, paid.values(), now);
            let outlook = BudgetOutlook::after(budget, spend, prices.iter().copied());
            news = record(object, &outlook, now);
            true
        });
        let is_written = changed.await;
        if let Some((reason, message)) = news.filter(|_| is_written) {
            let kind = if reason == Reason::BudgetOnTrack { EventType::Normal } else { EventType::Warning };
            self.executor.record_event(&Subject::Pool(pool.name.clone()), kind, reason, &message);
        }
        is_written
    }

    /// Removes the record of a pool without a budget.
    async fn clear(&self, pool: &Pool) -> bool {
        let clear = |object: &mut NodePool| {
            let Some(status) = object.status.as_mut().filter(|_| object.spec.monthly_budget.is_none()) else {
                return false;
            };
            let conditions = status.conditions.len();
            status.conditions.retain(|one| one.type_ != ConditionType::BudgetOnTrack.as_str());
            status.monthly_spend.take().is_some() || status.conditions.len() < conditions
        };
        self.change(pool, clear).await
    }

    /// Changes the status of a pool. Returns whether that needs no repetition.
    async fn change(&self, pool: &Pool, change: impl FnMut(&mut NodePool) -> bool) -> bool {
        let api = self.context.reader.all::<NodePool>();
        let changed = change_status(&api, &self.context.writer, &pool.name.0, Some(&pool.uid.0), change);
        match changed.await {
            Changed::Written(_) | Changed::Unchanged(_) => true,
            Changed::NotWritten(outcome) => {
                debug!(pool = %pool.name, ?outcome, "what was spent is not written; the next write counts it too");
                false
            }
        }
    }
}

/// Writes what was spent, and the condition. Returns what is new about the budget: its state, if it is not on track at first.
fn record(object: &mut NodePool, outlook: &BudgetOutlook, now: Timestamp) -> Option<(Reason, String)> {
    let generation = object.metadata.generation;
    let status = object.status.get_or_insert_default();
    let spend = outlook.spend;
    status.monthly_spend = Some(MonthlySpend {
        month: outlook.month.to_string(),
        usd: spend.usd.exact(),
        forecast_usd: outlook.forecast.exact(),
        counted_from: Time(spend.from),
        counted_until: Time(spend.until),
    });
    let (kind, reason, message) = (ConditionType::BudgetOnTrack, outlook.reason(), outlook.to_string());
    let before = status.conditions.iter().find(|one| one.type_ == kind.as_str());
    let before = before.map_or(Reason::BudgetOnTrack.as_str(), |one| one.reason.as_str());
    let is_news = before != reason.as_str();
    let holds = reason == Reason::BudgetOnTrack;
    let update = ConditionUpdate {
        kind,
        status: if holds { ConditionStatus::True } else { ConditionStatus::False },
        reason,
        message: message.clone(),
    };
    status.conditions = merge_conditions(&status.conditions, &[update], now, generation);
    is_news.then_some((reason, message))
}

/// Notes the nodes that are there. One that is gone counts until now. Returns whether one came or went.
fn note(paid: &mut Paid, there: Paid, now: Timestamp) -> bool {
    let mut is_changed = false;
    for (uid, node) in paid.iter_mut().filter(|(uid, node)| node.until.is_none() && !there.contains_key(*uid))
    {
        debug!(claim = %uid.0, "a node of a pool with a budget is gone");
        node.until = Some(now);
        is_changed = true;
    }
    for (uid, node) in there {
        is_changed |= paid.insert(uid, node).is_none();
    }
    is_changed
}

impl LeaderLoop for PoolBudgets {
    const NAME: &'static str = "monthly budgets of pools";
    const PAUSE: Duration = Duration::from_secs(5);

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    fn begin(&mut self, _: LeaderTerm) {
        // Another leader has counted meanwhile.
        self.paid.clear();
        self.next_write = Duration::ZERO;
    }

    async fn look(&mut self) -> Option<Duration> {
        let now = self.context.clock.moment();
        let snapshot = self.context.world.snapshot();
        let is_due = self.next_write <= now.monotonic;
        if is_due {
            self.next_write = now.monotonic.saturating_add(PERIOD);
        }
        self.paid.retain(|name, _| snapshot.pools.contains_key(name));
        let (mut is_any, mut are_written) = (false, true);
        for pool in snapshot.pools.values() {
            if pool.monthly_budget.is_none() {
                if self.paid.contains_key(&pool.name) && self.clear(pool).await {
                    self.paid.remove(&pool.name);
                }
                continue;
            }
            is_any = true;
            let claims = snapshot.claims.values().filter(|claim| claim.pool == pool.name);
            let there: Paid =
                claims.filter_map(|claim| Some((claim.uid.clone(), PaidNode::of(claim)?))).collect();
            let mut paid = self.paid.remove(&pool.name).unwrap_or_default();
            if note(&mut paid, there, now.wall) || is_due {
                if self.write(pool, &paid, &snapshot, now.wall).await {
                    paid.retain(|_, node| node.until.is_none());
                } else {
                    are_written = false;
                }
            }
            self.paid.insert(pool.name.clone(), paid);
        }
        if !are_written {
            // With the next look.
            self.next_write = Duration::ZERO;
        }
        is_any.then(|| {
            self.next_write.saturating_sub(self.context.clock.monotonic()).saturating_sub(Self::PAUSE)
        })
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use serde_json::{Value, json};

    use super::*;
    use crate::edge::clock::SharedClock;
    use crate::edge::clock::testing::TestClock;
    use crate::edge::signal::Sender;
    use crate::edge::stoppable::Stoppable;
    use crate::executor::context::testing::leading;
    use crate::fake_api::{FakeApi, Fault};

    const PATH: &str = "/apis/poolwright.dev/v1alpha1/nodepools/gpu";
    const HOUR: Duration = Duration::from_hours(1);

    /// A controller that leads.
    struct Scene {
        api: FakeApi,
        keep: PoolBudgets,
        leader: Sender<Option<LeaderTerm>>,
    }

    fn pool(budget: &Value) -> Value {
        json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "gpu", "uid": "gpu"},
            "spec": {"monthlyBudget": budget, "template": {"spec": {"nodeClassRef":
                {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"}}}}})
    }

    impl Scene {
        /// Starts a controller, which sees what the API server has.
        fn new(api: &FakeApi, clock: &Arc<TestClock>) -> Self {
            let clock: SharedClock = clock.clone();
            let (context, leader) = leading(api, &clock, Vec::new());
            let executor = Executor::new(context.clone(), 4, Stoppable::default());
            let scene = Self { api: api.clone(), keep: PoolBudgets::new(context, executor), leader };
            scene.sees_pool();
            scene
        }

        /// Looks, as a leader whose term was renewed just now.
        async fn look(&mut self) {
            let expires = self.keep.context.clock.moment().after(PERIOD);
            self.leader.replace(Some(LeaderTerm { expires, number: 1 }));
            self.keep.look().await;
        }

        fn sees_pool(&self) {
            let object = serde_json::from_value(self.api.get(PATH).unwrap()).unwrap();
            let pool = poolwright_intake::node_pool(&object);
            self.keep.context.world.change(|state| state.index.apply_pool(pool));
        }

        /// Shows these nodes, launched at the start of 2026.
        fn sees(&self, names: &[&str]) {
            let claims = names.iter().map(|name| {
                let object = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
                    "metadata": {"name": name, "uid": name, "labels": {"poolwright.dev/nodepool": "gpu"},
                        "creationTimestamp": "2026-01-01T00:00:00Z"},
                    "spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"},
                        "offerings": [{"instanceType": "g5.xlarge", "zone": "us-east-1a", "capacityType": "on-demand",
                            "usdPerHour": "2", "allocatable": {"cpu": "3920m"}}]},
                    "status": {"providerID": format!("kwok://{name}"), "offering": {"instanceType": "g5.xlarge",
                        "zone": "us-east-1a", "capacityType": "on-demand"}}});
                poolwright_intake::node_claim(&serde_json::from_value(object).unwrap()).unwrap()
            });
            let claims: Vec<Claim> = claims.collect();
            self.keep.context.world.change(|state| state.index.reset_claims(claims, Timestamp::MIN));
        }

        /// Returns what the API server has of the budget: the amount that was spent, and the reason of the condition.
        fn told(&self) -> (String, String) {
            let status = self.api.get(PATH).unwrap()["status"].clone();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&status["monthlySpend"]["usd"]), text(&status["conditions"][0]["reason"]))
        }
    }

    fn told(usd: &str, reason: &str) -> (String, String) {
        (usd.to_owned(), reason.to_owned())
    }

    #[tokio::test]
    async fn the_next_leader_continues_what_was_spent_and_the_next_month_begins_with_nothing() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        api.put(PATH, pool(&json!({"usd": 5000})));
        let mut old = Scene::new(&api, &clock);
        old.sees(&["a", "b"]);
        clock.advance(HOUR);
        old.look().await;
        assert_eq!(old.told(), told("4.00", "BudgetOnTrack"));
        let mut new = Scene::new(&api, &clock);
        new.sees(&["a"]);
        new.look().await;
        assert_eq!(new.told(), told("4.00", "BudgetOnTrack"), "no second counts twice");
        clock.advance(HOUR);
        new.look().await;
        assert_eq!(new.told(), told("6.00", "BudgetOnTrack"));
        // The old one has not noticed yet that it does not lead.
        old.look().await;
        assert_eq!(new.told().0, "6.00");
        clock.advance(30 * 24 * HOUR);
        new.look().await;
        assert_eq!(api.get(PATH).unwrap()["status"]["monthlySpend"]["month"], "2026-01");
        clock.advance(24 * HOUR);
        new.look().await;
        assert_eq!(new.told(), told("4.00", "BudgetOnTrack"), "two hours of February");
    }

    #[tokio::test]
    async fn a_node_that_is_gone_counts_until_then_also_if_the_write_fails() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        api.put(PATH, pool(&json!({"usd": 5000})));
        let mut scene = Scene::new(&api, &clock);
        scene.sees(&["a"]);
        scene.look().await;
        clock.advance(HOUR);
        scene.sees(&[]);
        api.fault(Method::PUT, "/nodepools", Fault::Fails(500));
        scene.look().await;
        clock.advance(HOUR);
        scene.look().await;
        assert_eq!(scene.told().0, "2.00");
        clock.advance(HOUR);
        scene.look().await;
        assert_eq!(scene.told().0, "2.00");
    }

    #[tokio::test]
    async fn the_condition_tells_each_change_and_goes_with_the_budget() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        api.put(PATH, pool(&json!({"usd": 6, "action": "StopBuying"})));
        let mut scene = Scene::new(&api, &clock);
        scene.sees(&["a"]);
        clock.advance(HOUR);
        scene.look().await;
        assert_eq!(scene.told(), told("2.00", "BudgetWillBeMissed"));
        clock.advance(2 * HOUR);
        scene.look().await;
        assert_eq!(scene.told(), told("6.00", "BudgetSpent"));
        let mut object = api.get(PATH).unwrap();
        object["spec"].as_object_mut().unwrap().remove("monthlyBudget");
        api.put(PATH, object);
        scene.sees_pool();
        scene.look().await;
        assert_eq!(scene.told(), told("", ""));
    }
}
