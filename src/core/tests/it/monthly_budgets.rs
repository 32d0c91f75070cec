//! Tests of monthly budgets: what a pool whose budget is spent does, and what it leaves alone.

use std::sync::Arc;

use poolwright_catalog::Usd;
use poolwright_core::index::{Change, ClusterIndex};
use poolwright_core::plan::UnplacedReason;
use poolwright_core::*;
use poolwright_terms::Reason;

use crate::kit::*;

/// The first second of the next month.
const NEXT_MONTH: i64 = 1_440_000;

/// Returns a pool that has spent $100.
fn budgeted(dollars: u128, stops_buying: bool) -> Pool {
    let spend = MonthSpend { from: at(-10_000), until: at(0), usd: Usd(100_000_000) };
    let budget = MonthlyBudget { usd: Usd(dollars * 1_000_000), stops_buying, spend: Some(spend) };
    Pool { monthly_budget: Some(budget), ..pool("gpu") }
}

fn waiting(pools: impl IntoIterator<Item = Pool>) -> Snapshot {
    with(cluster(aws(), pools), [pod("a", requests(1, 1, 1))])
}

#[test]
fn a_pool_whose_month_is_spent_buys_nothing_until_the_next_and_following_its_advice_helps() {
    let snapshot = waiting([budgeted(100, true)]);
    let plan = planned(&snapshot);
    assert!(plan.claims.is_empty());
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoUsablePool);
    assert_eq!(
        plan.unplaced[0].message,
        "pool `gpu` cannot be used: monthlyBudget $100.00 of the pool is spent for 2027-01 ($100.00 spent since 2027-01-15T05:13:20Z, \
         $0.00/h now; forecast $100.00), so it buys nothing before 2027-02-01T00:00:00Z; raise spec.monthlyBudget.usd, or wait until then"
    );
    assert_eq!(plan.pools[&pool("gpu").name].unsold.as_ref().unwrap().0, Reason::BudgetSpent);
    assert_eq!(planned(&waiting([budgeted(101, true)])).claims.len(), 1, "it was raised");
    assert!(plan.again_at.is_some_and(|again| again <= at(NEXT_MONTH)));
    assert_eq!(planned_at(&snapshot, NEXT_MONTH - 1).claims.len(), 0);
    assert_eq!(planned_at(&snapshot, NEXT_MONTH).claims.len(), 1, "the next month begins");
}

#[test]
fn other_pools_static_pools_and_pools_that_only_warn_still_buy() {
    assert_eq!(planned(&waiting([budgeted(100, false)])).claims.len(), 1);
    let plan = planned(&waiting([budgeted(100, true), pool("other")]));
    assert_eq!(plan.claims[0].pool.0, "other");
    let fixed = Pool { replicas: Some(1), ..budgeted(100, true) };
    assert_eq!(planned(&cluster(aws(), [fixed])).claims.len(), 1);
}

#[test]
fn nodes_spend_between_two_records_and_a_spent_budget_touches_none_of_them() {
    let seen = |pool: Pool| {
        let snapshot = with(with(cluster(aws(), [pool]), [initialized()]), [claimed_node()]);
        with(snapshot, [bound(pod("p", requests(1, 1, 1)), "n"), pod("a", requests(1, 1, 1))])
    };
    let actions = |snapshot: &Snapshot| format!("{:?}", decide(snapshot, at(8000)).actions);
    let (spent, free) = (seen(budgeted(100, true)), seen(pool("gpu")));
    assert_eq!(actions(&spent), actions(&free));
    // The node costs $1.006 an hour.
    let buys = |seconds| planned_at(&seen(budgeted(101, true)), seconds).claims.len();
    assert_eq!((buys(3000), buys(3700)), (1, 0));
}

#[test]
fn what_was_spent_reaches_decisions_without_a_new_plan() {
    let mut index = ClusterIndex::new();
    assert_eq!(index.apply_pool(budgeted(100, true)), Change::Room);
    let mut later = budgeted(100, true);
    let budget = later.monthly_budget.as_mut().unwrap();
    budget.spend = Some(MonthSpend { until: at(60), ..budget.spend.unwrap() });
    assert_eq!(index.apply_pool(later.clone()), Change::None);
    assert_eq!(*index.view().pools[&later.name], later);
    assert_eq!(index.apply_pool(budgeted(200, true)), Change::Room);
}

#[test]
fn a_namespace_whose_month_is_spent_gets_no_node_until_the_next_and_others_do() {
    let of = |namespace: &str| {
        let pod = pod("a", requests(1, 1, 1));
        Pod { key: PodKey::new(namespace, "a"), uid: Uid(namespace.to_owned()), ..pod }
    };
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [of("ml"), of("web")]);
    let spent = SpentBudget { budget: Usd(5_000_000), spent: Usd(6_000_000), until: at(NEXT_MONTH) };
    snapshot.spent_namespaces = Arc::new([("ml".to_owned(), spent)].into());
    let plan = planned(&snapshot);
    let theirs: Vec<&str> =
        plan.claims.iter().flat_map(|claim| &claim.planned_pods).map(PodKey::namespace).collect();
    assert_eq!(theirs, ["web"]);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NamespaceLimitReached);
    assert_eq!(
        plan.unplaced[0].message,
        "monthly budget $5.00 of namespace `ml` is spent ($6.00 spent), so no node is bought for it before 2027-02-01T00:00:00Z; raise \
         --namespace-budget of the controller, or wait until then"
    );
    assert_eq!(planned_at(&snapshot, NEXT_MONTH).claims.len(), 2, "the next month begins");
    let mut running = with(with(cluster(aws(), [pool("gpu")]), [initialized()]), [claimed_node()]);
    running = with(running, [bound(of("ml"), "n")]);
    let actions = |snapshot: &Snapshot| format!("{:?}", decide(snapshot, at(8000)).actions);
    let before = actions(&running);
    running.spent_namespaces = snapshot.spent_namespaces;
    assert_eq!(actions(&running), before, "running pods and their nodes stay");
}
