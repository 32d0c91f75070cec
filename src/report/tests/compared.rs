//! Plans against their bounds and against simpler ways to buy, over small random problems.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::offering::CatalogueOrigin;
use poolwright_catalog::{
    Arch, Catalogue, Gpu, InstanceType, Interruptions, Offering, OfferingId, Price, PriceSource, Quote,
    ResourceList, ResourceName, UsdPerHour,
};
use poolwright_core::plan::{Baseline, Commitment, CostRule, Plan, PlanOptions, SpotRisk, plan};
use poolwright_core::{
    Deadlines, Disruption, Ending, Operator, Pod, PodDuration, PodHealth, PodKey, PodPhase, PodRole,
    PodScopes, PodSpec, Pool, PoolLimits, PoolName, Requirement, ScaleToZero, Snapshot, SpotRules, Uid,
};
use poolwright_report::Times;
use poolwright_report::plan::{
    Against, CatalogueSummary, Document, DocumentContext, PodNames, RuleCost, Serves, Under, Verdict,
    WhyCheaper, document,
};
use poolwright_solver::{NeverStop, Options};
use poolwright_terms::{CapacityType, NodeClassRef};
use proptest::prelude::*;

/// Types by name, with CPU, GiB of memory, GPUs, and the prices on demand and as spot in thousandths of a dollar.
const TYPES: [(&str, u64, u64, u64, u64, u64); 5] = [
    ("small", 4, 16, 0, 200, 90),
    ("middle", 8, 64, 0, 470, 210),
    ("large", 16, 64, 0, 700, 330),
    ("gpu", 8, 32, 1, 1_000, 450),
    ("gpus", 32, 128, 4, 3_600, 1_200),
];

fn node_class() -> NodeClassRef {
    NodeClassRef { group: "poolwright.dev".into(), kind: "KwokNodeClass".into(), name: "default".into() }
}

fn resources(cpu: u64, memory: u64, gpus: u64, pods: u64) -> ResourceList {
    ResourceList::new()
        .with(ResourceName::CPU, cpu * 1000)
        .with(ResourceName::MEMORY, memory << 30)
        .with(ResourceName::NVIDIA_GPU, gpus)
        .with(ResourceName::PODS, pods)
}

fn usd(thousandths: u64) -> UsdPerHour {
    UsdPerHour::from_micros(thousandths * 1_000)
}

/// Returns every type on demand and as spot, with this rate of interruptions.
fn catalogue(rate: u32) -> Catalogue {
    let types = TYPES.map(|(name, cpu, memory, gpus, ..)| InstanceType {
        name: name.into(),
        provider: "aws".into(),
        arch: Arch::Amd64,
        gpu: (gpus > 0).then(|| Gpu { model: "l4".into(), count: gpus as u32, memory_mib: None }),
        allocatable: resources(cpu, memory, gpus, 110),
    });
    let source = || PriceSource::new("test");
    let offering = |name: &str, capacity_type, price| Offering {
        id: OfferingId { instance_type: name.into(), zone: "a".into(), capacity_type },
        region: None,
        price: Price::Known(Quote { usd_per_hour: usd(price), source: source(), as_of: None }),
        available: None,
        interruptions: Some(Interruptions { per_million_hours: rate, source: source(), as_of: None }),
        notice: None,
    };
    let both = TYPES.iter().flat_map(|(name, .., price, spot)| {
        [offering(name, CapacityType::OnDemand, *price), offering(name, CapacityType::Spot, *spot)]
    });
    Catalogue::new(CatalogueOrigin { source: "test".into(), as_of: None }, types.into(), both.collect())
}

fn pod(at: usize, requests: ResourceList) -> Pod {
    Pod {
        key: format!("default/p{at}").parse::<PodKey>().unwrap(),
        uid: Uid(format!("p{at}")),
        labels: BTreeMap::new().into(),
        spec: PodSpec { requests, ..PodSpec::default() }.into(),
        request_origins: vec![],
        owner: None,
        volumes: vec![],
        priority: 0,
        scheduler: "default-scheduler".into(),
        group: None,
        gang: None,
        role: PodRole::Workload,
        daemonset: None,
        replaces: None,
        phase: PodPhase::Unschedulable { since: Timestamp::UNIX_EPOCH, message: String::new() },
        health: PodHealth::default(),
        reserved_for: vec![],
        nominated_node: None,
        deleting_since: None,
        created: Timestamp::UNIX_EPOCH,
        ending: Ending::default(),
        duration: PodDuration::default(),
        scopes: PodScopes::default(),
    }
}

fn pool(name: &str, types: &[&str], weight: u32, limits: PoolLimits) -> Pool {
    let values = types.iter().map(|name| (*name).to_owned()).collect();
    Pool {
        name: PoolName(name.into()),
        uid: Uid(name.into()),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        taints: vec![],
        startup_taints: vec![],
        readiness_gates: vec![],
        requirements: vec![Requirement {
            key: "node.kubernetes.io/instance-type".into(),
            operator: Operator::In(values),
        }],
        min_values: BTreeMap::new(),
        node_class: node_class(),
        weight,
        limits,
        monthly_budget: None,
        spot: SpotRules::default(),
        allow_unknown_price: BTreeSet::new(),
        scale_to_zero: ScaleToZero::Never,
        replicas: None,
        buffer: Vec::new(),
        disruption: Disruption::default(),
        deadlines: Deadlines::default(),
        deleting: false,
        problem: None,
        is_implicit: false,
    }
}

/// One pool of a case: its types as bits, weight, spot, and limits on nodes and CPU.
type PoolCase = (u8, u32, bool, Option<u64>, Option<u64>);

/// A small problem.
#[derive(Clone, Debug)]
struct Case {
    pods: Vec<(u64, u64, u64)>,
    pools: Vec<PoolCase>,
    /// Interruptions per million hours, and dollars lost by each.
    rate: u32,
    loss: u64,
    /// Thousandths of a dollar that a commitment pays for `large`.
    committed: u64,
}

fn any_case() -> impl Strategy<Value = Case> {
    let pod = (1u64..7, 1u64..24, prop_oneof![3 => Just(0u64), 1 => 1u64..3]);
    let pool = (1u8..32, 0u32..3, any::<bool>(), prop::option::of(0u64..4), prop::option::of(4u64..40));
    let pods = prop::collection::vec(pod, 1..9);
    let pools = prop::collection::vec(pool, 1..4);
    let committed = prop_oneof![2 => Just(0u64), 1 => 100u64..1500];
    (pods, pools, 0u32..300_000, 0u64..6, committed).prop_map(|(pods, pools, rate, loss, committed)| Case {
        pods,
        pools,
        rate,
        loss,
        committed,
    })
}

impl Case {
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.catalogues.insert(node_class(), Ok(Arc::new(catalogue(self.rate))));
        for (at, (types, weight, spot, nodes, cpu)) in self.pools.iter().enumerate() {
            let names = TYPES.iter().enumerate().filter(|(bit, _)| types >> bit & 1 == 1);
            let names: Vec<&str> = names.map(|(_, (name, ..))| *name).collect();
            let mut limits = PoolLimits { nodes: *nodes, ..PoolLimits::default() };
            limits.resources.extend(cpu.map(|cpu| (ResourceName::new(ResourceName::CPU), cpu * 1000)));
            let mut pool = pool(&format!("pool-{at}"), &names, *weight, limits);
            let capacity = if *spot { vec!["on-demand", "spot"] } else { vec!["on-demand"] };
            pool.requirements.push(Requirement {
                key: "poolwright.dev/capacity-type".into(),
                operator: Operator::In(capacity.into_iter().map(str::to_owned).collect()),
            });
            snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
        }
        for (at, (cpu, memory, gpus)) in self.pods.iter().enumerate() {
            let pod = pod(at, resources(*cpu, *memory, *gpus, 1));
            snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
        }
        snapshot
    }

    fn options(&self) -> PlanOptions {
        let large =
            |capacity_type| OfferingId { instance_type: "large".into(), zone: "a".into(), capacity_type };
        let commitment = Commitment {
            name: "plan".into(),
            left: usd(self.committed),
            rates: BTreeMap::from([(large(CapacityType::OnDemand), usd(500))]),
        };
        PlanOptions {
            spot_risk: SpotRisk::losing(usd(self.loss * 1000)),
            commitments: if self.committed > 0 { vec![commitment] } else { Vec::new() },
            solver: Options { work: 100_000, ..Options::default() },
            ..PlanOptions::default()
        }
    }
}

fn planned(snapshot: &Snapshot, options: &PlanOptions) -> Plan {
    plan(snapshot, Timestamp::UNIX_EPOCH, options, &mut NeverStop)
}

fn documented(snapshot: &Snapshot, options: &PlanOptions) -> Document {
    let context = DocumentContext {
        snapshot,
        catalogue: CatalogueSummary::of(&catalogue(0)),
        notes: Vec::new(),
        unread: Vec::new(),
        on_unknown_nodes: Vec::new(),
        refused: Vec::new(),
        names: PodNames::Qualified,
        counts_risk: options.spot_risk.is_some(),
    };
    document(planned(snapshot, options), context, Times::default()).expect("a plan that holds")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn no_simpler_way_is_cheaper_without_a_reason_that_has_a_name(case in any_case()) {
        let plan = documented(&case.snapshot(), &case.options());
        for other in [&plan.baselines.one_pod_per_node, &plan.baselines.first_fit] {
            if let Against::Cheaper(by, why) = plan.against(other) {
                prop_assert!(why != WhyCheaper::Unknown, "{} less: {:?} {:?}", by, other, plan);
                // Only weights, limits and unfinished searches let another way be better by what the plan counts.
                let counted = plan.cost_usd_per_hour + plan.risk_usd_per_hour.unwrap_or_default();
                prop_assert!(matches!(why, WhyCheaper::Interruptions(_)) == (other.cost + other.risk >= counted));
            }
        }
    }

    #[test]
    fn a_plan_that_is_called_as_cheap_as_any_can_be_is_not_beaten_by_dropping_rules(case in any_case()) {
        let (mut snapshot, options) = (case.snapshot(), case.options());
        let plan = documented(&snapshot, &options);
        if plan.verdict() == Verdict::Cheapest(Vec::new()) {
            for pool in snapshot.pools.values().cloned().collect::<Vec<_>>() {
                let equal = Pool { weight: 0, ..Pool::clone(&pool) };
                snapshot.pools.insert(equal.name.clone(), Arc::new(equal));
            }
            for spot_risk in [options.spot_risk, None] {
                let other = documented(&snapshot, &PlanOptions { spot_risk, ..options.clone() });
                let left = |plan: &Document| plan.unplaced.iter().map(|left| left.pod.clone()).collect::<Vec<_>>();
                let is_cheaper = other.cost_usd_per_hour < plan.cost_usd_per_hour && left(&other) == left(&plan);
                prop_assert!(!is_cheaper, "{:?} {:?}", plan, other);
                for simpler in [other.baselines.one_pod_per_node, other.baselines.first_fit] {
                    let serves_all = simpler.unplaced == 0 && left(&other) == left(&plan);
                    prop_assert!(!serves_all || simpler.cost >= plan.cost_usd_per_hour);
                }
            }
        }
    }

    #[test]
    fn a_search_that_is_cut_short_gives_no_plan_that_is_dearer_than_a_simpler_way(case in any_case(), work in 1u64..200) {
        let mut case = case;
        // One pool without limits: every way keeps the same rules, and serves every pod that the plan serves.
        case.pools.truncate(1);
        (case.pools[0].3, case.pools[0].4) = (None, None);
        let options = case.options();
        let options = PlanOptions { solver: Options { work, ..options.solver }, ..options };
        let plan = documented(&case.snapshot(), &options);
        let counted = plan.cost_usd_per_hour + plan.risk_usd_per_hour.unwrap_or_default();
        for other in [plan.baselines.one_pod_per_node, plan.baselines.first_fit] {
            prop_assert_eq!(other.unplaced, 0);
            // The solver rounds the loss of each pod to micro-dollars.
            let rounded = UsdPerHour::from_micros(case.pods.len() as u64);
            prop_assert!(counted <= other.cost + other.risk + rounded, "{:?} {:?}", other, plan);
        }
    }

    #[test]
    fn a_way_with_the_same_rights_keeps_the_limits_and_pays_spot_prices(case in any_case()) {
        let mut case = case;
        // One pool that admits spot, without counted interruptions: every way buys only spot.
        case.pools.truncate(1);
        (case.pools[0].2, case.loss, case.committed) = (true, 0, 0);
        let snapshot = case.snapshot();
        let plan = documented(&snapshot, &case.options());
        let (_, _, _, nodes, _) = case.pools[0];
        let served = plan.nodes.iter().map(|node| node.pods.len()).sum::<usize>() as u64;
        let alone = plan.baselines.one_pod_per_node;
        if let Some(nodes) = nodes.filter(|_| served > 0) {
            prop_assert!(alone.unplaced as u64 >= served.saturating_sub(nodes));
        }
        if alone.unplaced == 0 && served > 0 {
            let dearest = TYPES.iter().map(|(.., spot)| usd(*spot)).max().unwrap_or_default();
            prop_assert!(alone.cost <= dearest.times(served));
            prop_assert!(alone.cost >= plan.cost_usd_per_hour, "no rule can make the plan dearer here");
        }
    }
}

#[test]
fn a_plan_under_weights_says_what_they_cost_and_is_not_called_the_cheapest() {
    let eight = PoolLimits {
        resources: [(ResourceName::new(ResourceName::CPU), 8_000)].into(),
        ..PoolLimits::default()
    };
    let mut snapshot = Snapshot::default();
    snapshot.catalogues.insert(node_class(), Ok(Arc::new(catalogue(0))));
    let on_demand = |mut pool: Pool| {
        pool.requirements.push(Requirement {
            key: "poolwright.dev/capacity-type".into(),
            operator: Operator::In(["on-demand".to_owned()].into()),
        });
        pool
    };
    let own = on_demand(pool("own", &["middle"], 50, eight));
    let other = on_demand(pool("other", &["small"], 10, PoolLimits::default()));
    for pool in [own, other] {
        snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    }
    for at in 0..4 {
        let pod = pod(at, resources(3, 12, 0, 1));
        snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
    }
    let plan = documented(&snapshot, &PlanOptions::default());
    // Two pods on the node of the heavier pool at 0.47, and two on nodes at 0.20.
    assert_eq!(plan.cost_usd_per_hour, usd(870));
    assert!(matches!(plan.verdict(), Verdict::CheapestInSteps(under) if under == [Under::Weights]));
    let costs: Vec<_> = plan.rules.iter().map(|of| (of.usd_per_hour, of.at_least)).collect();
    assert_eq!(costs, [(Some(usd(70)), false)]);
    // Each pod alone: one node of the heavier pool, and three others.
    let alone = plan.baselines.one_pod_per_node;
    assert_eq!((alone.cost, alone.unplaced), (usd(1_070), 0));
}

#[test]
fn a_bound_is_said_to_hold_for_offerings_with_known_prices_if_others_might_cost_less() {
    let mut snapshot = Snapshot::default();
    snapshot.catalogues.insert(node_class(), Ok(Arc::new(catalogue(0))));
    let pool = pool("own", &["small"], 0, PoolLimits::default());
    snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    let mut plan = documented(&snapshot, &PlanOptions::default());
    assert!(!plan.under().contains(&Under::KnownPrices));
    plan.unpriced_types = 3;
    assert!(plan.under().contains(&Under::KnownPrices));
    let mut plan = plain_plan();
    assert!(!plan.under().contains(&Under::KnownPrices));
    plan.nodes[0].usd_per_hour = None;
    assert!(plan.under().contains(&Under::KnownPrices), "a node of the plan has no known price");
}

/// Returns a plan that costs something, without rules.
fn plain_plan() -> Document {
    let mut snapshot = Snapshot::default();
    snapshot.catalogues.insert(node_class(), Ok(Arc::new(catalogue(0))));
    let pool = pool("own", &["small"], 0, PoolLimits::default());
    snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    let pod = pod(0, resources(3, 12, 0, 1));
    snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
    let plan = documented(&snapshot, &PlanOptions::default());
    assert!(plan.cost_usd_per_hour > UsdPerHour::ZERO);
    assert_eq!(plan.rules, []);
    plan
}

fn rule_cost(rule: CostRule, usd_per_hour: Option<UsdPerHour>) -> RuleCost {
    RuleCost { rule, usd_per_hour, at_least: false, at_most: false, risk_without: UsdPerHour::ZERO }
}

#[test]
fn a_cheaper_way_names_the_rules_that_it_breaks_and_that_cost_something_the_dearest_first() {
    use CostRule::{MinValues, SpotRules};
    let mut plan = plain_plan();
    let both = Baseline { breaks_spot_rules: true, breaks_min_values: true, ..Baseline::default() };
    let spot_alone = Baseline { breaks_min_values: false, ..both };
    let mut why = |other: &Baseline, spot: Option<UsdPerHour>, values: Option<UsdPerHour>| {
        plan.rules = vec![rule_cost(SpotRules, spot), rule_cost(MinValues, values)];
        match plan.against(other) {
            Against::Cheaper(_, why) => why,
            against => panic!("it is cheaper: {against:?}"),
        }
    };
    let (nothing, some, more) = (Some(UsdPerHour::ZERO), Some(usd(10)), Some(usd(20)));
    assert_eq!(why(&both, some, nothing), WhyCheaper::Breaks(vec![SpotRules]));
    assert_eq!(why(&both, nothing, some), WhyCheaper::Breaks(vec![MinValues]));
    assert_eq!(why(&both, some, more), WhyCheaper::Breaks(vec![MinValues, SpotRules]));
    assert_eq!(why(&both, some, None), WhyCheaper::Breaks(vec![SpotRules, MinValues]), "unknown is not zero");
    assert_eq!(why(&spot_alone, some, more), WhyCheaper::Breaks(vec![SpotRules]), "it keeps minValues");
    assert_eq!(why(&Baseline::default(), some, more), WhyCheaper::Rule(SpotRules), "it keeps both");
    assert_eq!(why(&both, nothing, nothing), WhyCheaper::Breaks(vec![SpotRules, MinValues]), "only together");
}

#[test]
fn a_plan_in_steps_that_costs_more_names_the_rules_that_set_their_order_and_cost_something() {
    use CostRule::{MinValues, Preferences, Priorities, Weights};
    let mut plan = plain_plan();
    plan.in_steps = true;
    let mut by = |other: &Baseline, rules: Vec<RuleCost>| {
        plan.rules = rules;
        match plan.against(other) {
            Against::Cheaper(_, WhyCheaper::Order { serves, by }) => (serves, by),
            against => panic!("it is cheaper because of steps: {against:?}"),
        }
    };
    let (nothing, some, more) = (Some(UsdPerHour::ZERO), Some(usd(10)), Some(usd(20)));
    let later = Baseline { serves_later: true, ..Baseline::default() };
    let both = vec![rule_cost(Weights, some), rule_cost(Preferences, more), rule_cost(MinValues, more)];
    assert_eq!(by(&later, both), (Serves::More, vec![(Preferences, more), (Weights, some)]));
    let weights = vec![rule_cost(Weights, some)];
    assert_eq!(by(&Baseline::default(), weights), (Serves::AsMany, vec![(Weights, some)]));
    assert_eq!(by(&later, vec![rule_cost(Weights, nothing)]), (Serves::More, vec![]));
    let at_least = RuleCost { at_least: true, ..rule_cost(Weights, nothing) };
    assert_eq!(by(&later, vec![at_least]), (Serves::More, vec![(Weights, nothing)]), "it may cost something");
    assert_eq!(by(&later, vec![rule_cost(Weights, None)]), (Serves::More, vec![(Weights, None)]));
    let deferring = Baseline { defers_priorities: true, ..later };
    let both = || vec![rule_cost(Weights, some), rule_cost(Priorities, more)];
    assert_eq!(by(&later, both()), (Serves::More, vec![(Weights, some)]), "priorities are not why");
    assert_eq!(
        by(&deferring, both()),
        (Serves::MoreImportant, vec![(Priorities, more), (Weights, some)]),
        "it serves as many pods, but others"
    );
}

#[test]
fn a_cheaper_way_that_leaves_more_pods_to_a_lower_weight_is_told_so_also_by_a_plan_without_steps() {
    let mut plan = plain_plan();
    let rule = rule_cost(CostRule::Weights, Some(usd(10)));
    plan.rules = vec![rule];
    let why = |other: &Baseline| match plan.against(other) {
        Against::Cheaper(_, why) => why,
        against => panic!("it is cheaper: {against:?}"),
    };
    let later = Baseline { serves_later: true, ..Baseline::default() };
    let by = vec![(CostRule::Weights, Some(usd(10)))];
    assert_eq!(why(&later), WhyCheaper::Order { serves: Serves::More, by });
    assert_eq!(why(&Baseline::default()), WhyCheaper::Rule(CostRule::Weights), "it keeps the order");
}

#[test]
fn a_way_that_breaks_no_rule_that_costs_something_is_cheaper_because_the_search_ended() {
    let mut plan = plain_plan();
    assert!(plan.is_bounded());
    (plan.lower_bound_usd_per_hour, plan.gap) = (Some(UsdPerHour::ZERO), 1.0);
    assert!(!plan.is_bounded());
    plan.rules = vec![rule_cost(CostRule::SpotRules, Some(UsdPerHour::ZERO))];
    let other = Baseline { breaks_spot_rules: true, ..Baseline::default() };
    assert_eq!(plan.against(&other), Against::Cheaper(plan.cost_usd_per_hour, WhyCheaper::Search));
}

#[test]
fn units_of_buffers_that_a_simpler_way_leaves_out_are_not_called_pods() {
    let other = Baseline { units_unplaced: 2, ..Baseline::default() };
    assert_eq!(plain_plan().against(&other), Against::Fewer { pods: 0, units: 2 });
}
