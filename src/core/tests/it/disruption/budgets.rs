//! Tests of disruption budgets of single pools and of all pools together.

use super::*;

#[test]
fn a_budget_bounds_how_many_nodes_leave_at_a_time() {
    let one = Disruption { budgets: vec![budget(CountOrPercent::Count(1))], ..moving_pool().disruption };
    let few = Pool { disruption: one, ..moving_pool() };
    let nodes = vec![large("x"), large("y"), large("z")];
    let snapshot = cluster_of(few, nodes, &[("a", "x"), ("b", "y"), ("c", "z")]);
    let proposal = proposed(&snapshot).unwrap();
    assert_eq!(proposal.nodes_to_empty.len(), 1);
    assert_eq!(proposed(&begun(&snapshot, &proposal)), None, "one leaves already");
}

#[test]
fn an_explicit_budget_bounds_empty_nodes_too() {
    let empty = |disruption: Disruption| {
        let pool = Pool { disruption, ..pool("gpu") };
        let nodes = ["x", "y", "z"].map(|name| {
            let (claim, node) = small(name);
            (true_since(claim, ConditionType::Empty, 100), node)
        });
        let snapshot = cluster_of(pool, nodes.into(), &[]);
        let actions = decide(&snapshot, at(NOW)).actions;
        actions.iter().filter(|action| matches!(action, Action::SetTaints { .. })).count()
    };
    assert_eq!(empty(Disruption::default()), 3);
    assert_eq!(
        empty(Disruption { budgets: vec![budget(CountOrPercent::Count(2))], ..Disruption::default() }),
        2
    );
    let others = DisruptionBudget { causes: [Cause::Drifted].into(), ..budget(CountOrPercent::Count(0)) };
    assert_eq!(empty(Disruption { budgets: vec![others], ..Disruption::default() }), 3);
}

#[test]
fn a_node_whose_claim_is_being_deleted_counts_towards_the_budget() {
    let is_closed = |deleting_since, by_pool: Vec<DisruptionBudget>, over_all: Vec<DisruptionBudget>| {
        let (claim, node) = small("leaves");
        let leaves = (Claim { deleting_since, ..claim }, node);
        let (claim, node) = small("empty");
        let empty = (true_since(claim, ConditionType::Empty, 100), node);
        let disruption = Disruption { budgets: by_pool, ..Disruption::default() };
        let pool = Pool { disruption, ..pool("gpu") };
        let mut snapshot = cluster_of(pool, vec![leaves, empty], &[("a", "leaves")]);
        snapshot.disruption_budgets = over_all.into();
        let actions = decide(&snapshot, at(NOW)).actions;
        actions.iter().any(|action| matches!(action, Action::SetTaints { node, .. } if node == "empty"))
    };
    let one = || vec![budget(CountOrPercent::Count(1))];
    assert!(is_closed(None, one(), vec![]) && is_closed(None, vec![], one()));
    assert!(!is_closed(Some(at(NOW)), one(), vec![]), "one leaves already");
    assert!(!is_closed(Some(at(NOW)), vec![], one()), "also for a budget over all pools");
}

#[test]
fn the_budget_of_a_pool_bounds_its_drifted_nodes_and_none_of_another_pool() {
    let other = |(claim, node): (Claim, Node)| (Claim { pool: PoolName("other".into()), ..claim }, node);
    let drifted = |name: &str| Pool {
        name: PoolName(name.into()),
        requirements: vec![is_in("node.kubernetes.io/instance-type", &["g6.xlarge"])],
        disruption: Disruption {
            budgets: vec![budget(CountOrPercent::Count(1))],
            ..moving_pool().disruption
        },
        ..pool("gpu")
    };
    let mut snapshot = cluster_of(
        drifted("gpu"),
        vec![small("a"), small("b"), other(small("c")), other(small("d"))],
        &[("1", "a"), ("2", "b"), ("3", "c"), ("4", "d")],
    );
    let second = drifted("other");
    snapshot.pools.insert(second.name.clone(), second.into());
    let proposal = proposed(&snapshot).unwrap();
    assert_eq!(leaving(&proposal).into_iter().map(|(claim, _)| claim).collect::<Vec<_>>(), ["a", "c"]);
}

#[test]
fn a_budget_over_all_pools_bounds_what_their_own_allow_together() {
    let other = |(claim, node): (Claim, Node)| (Claim { pool: PoolName("other".into()), ..claim }, node);
    let requirements = vec![is_in("node.kubernetes.io/instance-type", &["g6.xlarge"])];
    let mut snapshot = cluster_of(
        Pool { requirements: requirements.clone(), ..moving_pool() },
        vec![small("a"), small("b"), other(small("c")), other(small("d"))],
        &[("1", "a"), ("2", "b"), ("3", "c"), ("4", "d")],
    );
    let second = Pool { name: PoolName("other".into()), requirements, ..moving_pool() };
    snapshot.pools.insert(second.name.clone(), second.into());
    let drifted = |snapshot: &Snapshot| leaving(&proposed(snapshot).unwrap()).len();
    assert_eq!(drifted(&snapshot), 4);
    snapshot.disruption_budgets =
        vec![budget(CountOrPercent::Percent(50)), budget(CountOrPercent::Count(3))].into();
    assert_eq!(drifted(&snapshot), 2, "the most restrictive counts");
    let about_others =
        DisruptionBudget { causes: [Cause::Expired].into(), ..budget(CountOrPercent::Count(0)) };
    snapshot.disruption_budgets = vec![about_others].into();
    assert_eq!(drifted(&snapshot), 4);
    snapshot.disruption_budgets = vec![budget(CountOrPercent::Count(0))].into();
    let outlook = looked(&snapshot);
    assert_eq!(outlook.proposal, None);
    let said = outlook.actions.iter().find_map(|action| match action {
        Action::RecordEvent(event) => Some(event.message.clone()),
        _ => None,
    });
    assert_eq!(
        said.unwrap(),
        "it has drifted and is not replaced yet: budget 1 over all pools (--disruption-budget) allows 0 of 4 nodes at a time, and 0 are disrupted now"
    );
}

#[test]
fn a_budget_over_all_pools_bounds_empty_nodes_and_moves_for_money_too() {
    let empty = |nodes: CountOrPercent| {
        let rooms = ["x", "y", "z"].map(|name| {
            let (claim, node) = small(name);
            (true_since(claim, ConditionType::Empty, 100), node)
        });
        let mut snapshot = cluster_of(pool("gpu"), rooms.into(), &[]);
        snapshot.disruption_budgets = vec![budget(nodes)].into();
        let actions = decide(&snapshot, at(NOW)).actions;
        actions.iter().filter(|action| matches!(action, Action::SetTaints { .. })).count()
    };
    assert_eq!(
        (
            empty(CountOrPercent::Count(1)),
            empty(CountOrPercent::Percent(50)),
            empty(CountOrPercent::Count(9))
        ),
        (1, 2, 3)
    );
    let mut snapshot = cluster_of(moving_pool(), vec![large("l")], &[("a", "l")]);
    assert!(proposed(&snapshot).is_some());
    snapshot.disruption_budgets = vec![budget(CountOrPercent::Count(0))].into();
    assert_eq!(proposed(&snapshot), None);
}

#[test]
fn a_budget_that_makes_no_sense_is_told_on_its_pool() {
    let window =
        Some(Window::Unreadable("spec.disruption.budgets[0].schedule: `often` is no schedule".into()));
    let unreadable = DisruptionBudget { window, ..budget(CountOrPercent::Count(5)) };
    let disruption = Disruption { budgets: vec![unreadable], ..moving_pool().disruption };
    let outlook =
        looked(&cluster_of(Pool { disruption, ..moving_pool() }, vec![large("big")], &[("a", "big")]));
    assert_eq!(outlook.proposal, None, "it allows nothing");
    let [Action::RecordEvent(event)] = outlook.actions.as_slice() else { panic!("{:?}", outlook.actions) };
    assert_eq!(event.subject, Subject::Pool(PoolName("gpu".into())));
    assert!(event.message.contains("`often` is no schedule"), "{}", event.message);
}
