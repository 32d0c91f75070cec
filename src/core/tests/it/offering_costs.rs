//! Tests of counted costs and stock of offerings: interruption risk, limited stock, commitments.

use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_catalog::{
    Catalogue, Interruptions, Offering, OfferingId, Price, PriceSource, Quote, RankedOffering, ResourceName,
    UsdPerHour,
};
use poolwright_core::plan::{
    Commitment, Plan, PlanOptions, SpotRisk, UnplacedReason, left_of_commitments, plan,
};
use poolwright_core::{
    Claim, ClaimName, Condition, Lives, Pod, PodDuration, PodGroup, Pool, PoolLimits, Snapshot,
    TopologySpreadConstraint, Uid,
};
use poolwright_solver::NeverStop;
use poolwright_terms::labels::CAPACITY_TYPE;
use poolwright_terms::{CapacityType, ConditionType, Reason};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::kit::*;

fn planned_with(snapshot: &Snapshot, options: &PlanOptions) -> Plan {
    let plan = plan(snapshot, at(10), options, &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    plan
}

/// Returns `aws()` with each offering replaced by the result of `change`.
fn with_offerings(change: impl Fn(&Offering) -> Vec<Offering>) -> Catalogue {
    let base = aws();
    let offerings = base.offerings().iter().flat_map(change).collect();
    Catalogue::new(base.origin().clone(), base.types().values().cloned().collect(), offerings)
}

fn spot(of: &Offering, price: &str, interruptions: u32) -> Offering {
    let mut spot = of.clone();
    spot.id.capacity_type = CapacityType::Spot;
    let quote = Quote { usd_per_hour: usd(price), source: PriceSource::new("test"), as_of: None };
    spot.price = Price::Known(quote);
    let source = PriceSource::new("test");
    spot.interruptions = Some(Interruptions { per_million_hours: interruptions, source, as_of: None });
    spot
}

fn three() -> [Pod; 3] {
    ["a", "b", "c"].map(|name| pod(name, requests(1, 1, 1)))
}

#[test]
fn no_more_nodes_are_bought_of_an_offering_than_can_be_had() {
    let catalogue = with_offerings(|offering| {
        let available = (offering.id.instance_type.as_str() == "g5.xlarge").then_some(1);
        vec![Offering { available, ..offering.clone() }]
    });
    let plan = planned(&with(cluster(catalogue, [pool("gpu")]), three()));
    let types: Vec<_> = plan.claims.iter().map(|claim| claim.instance_type().as_str()).collect();
    assert_eq!(types.iter().filter(|name| **name == "g5.xlarge").count(), 2, "one in each of two zones");
    assert_eq!(types.iter().filter(|name| **name == "g6.xlarge").count(), 1);
    let none = with_offerings(|offering| vec![Offering { available: Some(0), ..offering.clone() }]);
    let plan = planned(&with(cluster(none, [pool("gpu")]), three()));
    assert!(plan.claims.is_empty());
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::LimitReached);
    assert!(
        plan.unplaced[0].message.contains("available nodes of g5.xlarge/"),
        "{}",
        plan.unplaced[0].message
    );
}

#[test]
fn a_limit_that_keeps_pods_off_other_offerings_is_named_instead_of_the_stock_of_a_cheaper_one() {
    let catalogue = with_offerings(|offering| {
        let mut offering = offering.clone();
        if offering.id.instance_type.as_str() == "g5.xlarge" {
            offering = spot(&offering, "0", 0);
            offering.available = Some(1);
        }
        vec![offering]
    });
    let snapshot = |most: &str| {
        let limits = PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() };
        with(cluster(catalogue.clone(), [Pool { limits, ..pool("gpu") }]), three())
    };
    let short = planned(&snapshot("1"));
    assert_eq!(short.claims.len(), 2, "one in each of two zones");
    let sentence = "limit usdPerHour = 1.00 of pool `gpu` is below the $1.10/h that the smallest node which fits it uses; raise spec.limits";
    assert_eq!(short.unplaced[0].message, sentence);
    assert_eq!(short.unplaced[0].reason, UnplacedReason::LimitReached);
    assert!(short.pools[&pool("gpu").name].limit_reached.is_some(), "the pool says so, too");
    assert_eq!(planned(&snapshot("1.1")).unplaced, []);
}

#[test]
fn spot_is_bought_as_long_as_its_interruptions_lose_less_than_it_saves() {
    let snapshot = |rate: u32| {
        let catalogue = with_offerings(|offering| vec![offering.clone(), spot(offering, "0.5", rate)]);
        with(cluster(catalogue, [pool("gpu")]), [pod("a", requests(1, 1, 1))])
    };
    let risk = SpotRisk { per_gpu_micros: 10_000_000, prior: 0 };
    let options = PlanOptions { spot_risk: Some(risk), ..PlanOptions::default() };
    // The rate is 0.01 interruptions per hour: $10 x 0.01 = $0.1000/h.
    let plan = planned_with(&snapshot(10_000), &options);
    assert_eq!(plan.claims[0].offering().capacity_type, CapacityType::Spot);
    assert_eq!((plan.cost, plan.risk), (usd("0.5"), usd("0.1")));
    assert_eq!(plan.bound, usd("0.6"));
    // The loss of $10 x 0.1 = $1/h is more than spot saves.
    let plan = planned_with(&snapshot(100_000), &options);
    assert_eq!(plan.claims[0].offering().capacity_type, CapacityType::OnDemand);
    assert_eq!((plan.cost, plan.risk), (usd("1.006"), usd("0")));
    assert!(
        plan.claims[0].offerings.iter().all(|ranked| ranked.offering.capacity_type == CapacityType::OnDemand)
    );
    // By default, interruptions do not count.
    let plan = planned(&snapshot(100_000));
    assert_eq!((plan.cost, plan.risk), (usd("0.5"), usd("0")));
}

#[test]
fn interruptions_count_in_the_cost_over_time_for_as_long_as_each_node_is_paid() {
    let snapshot = |rate: u32| {
        let catalogue = with_offerings(|offering| {
            let is_small = offering.id.instance_type.as_str() == "g5.xlarge";
            let on_spot = is_small.then(|| spot(offering, "0.5", rate));
            [offering.clone()].into_iter().chain(on_spot).collect()
        });
        let lasting = |name: &str, hours: i64| {
            let expected = Some(SignedDuration::from_hours(hours));
            let pod = pod(name, requests(1, 1, 1));
            Pod { duration: PodDuration { expected, ..pod.duration }, ..pod }
        };
        let pods = [lasting("short", 1), lasting("long", 100)];
        let mut snapshot = with(cluster(catalogue, [pool("gpu")]), pods);
        snapshot.lives = Arc::new(Lives::prior());
        snapshot
    };
    let risk = SpotRisk { per_gpu_micros: 10_000_000, prior: 0 };
    let options = PlanOptions { spot_risk: Some(risk), ..PlanOptions::default() };
    let all_are = |plan: &Plan, kind: CapacityType| {
        plan.claims.len() == 2 && plan.claims.iter().all(|claim| claim.offering().capacity_type == kind)
    };
    let (free, counted) = (planned(&snapshot(10_000)), planned_with(&snapshot(10_000), &options));
    assert!(all_are(&free, CapacityType::Spot) && all_are(&counted, CapacityType::Spot), "{counted:?}");
    // To $0.50/h comes a loss of $10 x 0.01 per hour, a fifth of it, for either life.
    let over_time = |plan: &Plan| plan.over_time.expect("the lives are of two groups").cost.0;
    let (free, counted) = (over_time(&free), over_time(&counted));
    assert!((counted * 10).abs_diff(free * 12) * 100 < free, "{counted} and {free}");
    // A loss of $1/h is more than spot saves, however long the pod lives.
    let steady = planned_with(&snapshot(100_000), &options);
    assert!(all_are(&steady, CapacityType::OnDemand), "{steady:?}");
}

#[test]
fn pods_spread_over_capacity_types_get_nodes_of_each_whatever_they_cost() {
    let catalogue = with_offerings(|offering| vec![offering.clone(), spot(offering, "0.1", 0)]);
    let spread = TopologySpreadConstraint {
        topology_key: CAPACITY_TYPE.into(),
        max_skew: 1,
        selector: Some(vec![is_in("app", &["web"])]),
        ..TopologySpreadConstraint::default()
    };
    let web = |at: usize| {
        let mut pod = pod(&format!("web-{at}"), requests(3, 12, 1));
        pod.labels.insert("app".into(), "web".into());
        pod.spec.spreads = vec![spread.clone()];
        pod
    };
    let plan = planned(&with(cluster(catalogue, [pool("gpu")]), (0..4).map(web)));
    let of = |kind| -> usize {
        let nodes = plan.claims.iter().filter(|claim| claim.offering().capacity_type == kind);
        nodes.map(|claim| claim.planned_pods.len()).sum()
    };
    assert_eq!((of(CapacityType::Spot), of(CapacityType::OnDemand)), (2, 2), "{:?}", plan.unplaced);
}

/// Returns a cluster with a gang of this size, of pods with one GPU each, and with one type on demand and on spot.
fn gang_on(instance_type: &str, prices: &str, pods: usize) -> Snapshot {
    let catalogue = with_offerings(|offering| {
        let is_sold = offering.id.instance_type.as_str() == instance_type && offering.id.zone.as_str() == "a";
        if is_sold { vec![offering.clone(), spot(offering, prices, 10_000)] } else { Vec::new() }
    });
    let group = PodGroup {
        key: object_key("train"),
        uid: Uid("group-train".into()),
        min_count: Some(pods as u32),
        roles: vec![],
        unmodelled: vec![],
        stands_for: None,
        held: None,
    };
    let member = |at| Pod { group: Some("train".into()), ..pod(&format!("train-{at}"), requests(3, 12, 1)) };
    with(with(cluster(catalogue, [pool("gpu")]), [group]), (0..pods).map(member))
}

#[test]
fn a_gang_loses_the_work_of_all_its_pods_when_one_of_its_spot_nodes_is_taken() {
    let options = counting(10_000_000);
    // Each pod alone would lose $10 x 0.01 = $0.1000/h, so spot would always be cheaper.
    let plan = planned_with(&gang_on("g5.xlarge", "0.5", 4), &options);
    assert!(plan.claims.iter().all(|claim| claim.offering().capacity_type == CapacityType::Spot));
    assert_eq!((plan.cost, plan.risk), (usd("2"), usd("1.6")), "each of 4 nodes stops 4 pods");
    assert_eq!(plan.bound, usd("3.6"));
    let plan = planned_with(&gang_on("g5.xlarge", "0.5", 6), &options);
    assert!(plan.claims.iter().all(|claim| claim.offering().capacity_type == CapacityType::OnDemand));
    assert_eq!((plan.cost, plan.risk), (usd("6.036"), usd("0")), "$0.5000 and a loss of $0.6000 are more");
    // On one node, the gang is stopped as often as that node is taken.
    let plan = planned_with(&gang_on("g5.12xlarge", "3", 4), &options);
    assert_eq!((plan.claims.len(), plan.cost, plan.risk), (1, usd("3"), usd("0.4")));
    let plan = planned_with(&gang_on("g5.12xlarge", "3", 8), &options);
    assert_eq!((plan.claims.len(), plan.cost, plan.risk), (2, usd("6"), usd("1.6")));
}

#[test]
fn pods_of_a_group_that_does_not_start_together_lose_only_their_own_work() {
    let mut snapshot = gang_on("g5.xlarge", "0.5", 6);
    let group = PodGroup { min_count: None, ..PodGroup::clone(&snapshot.pod_groups[&object_key("train")]) };
    snapshot.pod_groups.insert(group.key.clone(), group.into());
    let plan = planned_with(&snapshot, &counting(10_000_000));
    assert_eq!((plan.cost, plan.risk), (usd("3"), usd("0.6")));
}

/// Returns a cluster with only spot offerings: an A10G that is a little cheaper and often reclaimed, and an L4.
fn near_equal() -> Snapshot {
    near_equal_for(pod("a", requests(1, 1, 1)))
}

fn near_equal_for(pod: Pod) -> Snapshot {
    let catalogue = with_offerings(|offering| match offering.id.instance_type.as_str() {
        "g5.xlarge" => vec![spot(offering, "0.400", 12_500)],
        "g6.xlarge" => vec![spot(offering, "0.405", 1_042)],
        _ => Vec::new(),
    });
    with(cluster(catalogue, [pool("gpu")]), [pod])
}

fn counting(per_gpu_micros: u64) -> PlanOptions {
    let spot_risk = Some(SpotRisk { per_gpu_micros, prior: 4_400 });
    PlanOptions { spot_risk, ..PlanOptions::default() }
}

fn ranked(plan: &Plan) -> Vec<String> {
    plan.claims[0].offerings.iter().map(|ranked| ranked.offering.to_string()).collect()
}

#[test]
fn similarly_priced_offerings_are_ranked_by_interruption_rate() {
    let plan = planned_with(&near_equal(), &counting(1_000_000));
    assert_eq!(ranked(&plan), ["g6.xlarge/a/spot", "g5.xlarge/a/spot", "g5.xlarge/b/spot"]);
    assert_eq!((plan.cost, plan.risk), (usd("0.405"), usd("0.001042")), "what is paid is the price");
    assert_eq!(plan.claims[0].offerings[1].price, Some(usd("0.400")));
    assert_eq!(
        plan.claims[0].reason,
        "g6.xlarge spot in a at $0.4050/h holds 1 pod (1 x nvidia.com/gpu); g5.xlarge/a/spot at $0.4000/h is cheaper, but the cloud takes it back more often: its expected loss counts as $0.0125/h, that of the chosen offering as $0.0010/h"
    );
}

#[test]
fn only_the_price_counts_if_interruptions_lose_nothing() {
    let cheapest_first = ["g5.xlarge/a/spot", "g5.xlarge/b/spot", "g6.xlarge/a/spot"];
    assert_eq!(ranked(&planned(&near_equal())), cheapest_first);
    assert_eq!(ranked(&planned_with(&near_equal(), &counting(0))), cheapest_first);
    // The expected loss is less than the difference in price.
    assert_eq!(ranked(&planned_with(&near_equal(), &counting(100_000))), cheapest_first);
}

#[test]
fn the_price_alone_decides_for_pods_without_gpus() {
    let snapshot = near_equal_for(pod("cpu", requests(1, 1, 0)));
    let plan = planned_with(&snapshot, &counting(1_000_000));
    assert_eq!(ranked(&plan)[0], "g5.xlarge/a/spot");
    assert!(!plan.claims[0].reason.contains("taken back"), "{}", plan.claims[0].reason);
}

#[test]
fn an_offering_without_an_interruption_rate_gets_the_default_rate() {
    let mut rows = near_equal();
    let rate = |said: Option<u32>| {
        with_offerings(|offering| match offering.id.instance_type.as_str() {
            "g5.xlarge" => {
                let spot = spot(offering, "0.400", said.unwrap_or(0));
                vec![Offering {
                    interruptions: spot.interruptions.clone().filter(|_| said.is_some()),
                    ..spot
                }]
            }
            "g6.xlarge" => vec![spot(offering, "0.403", 1_042)],
            _ => Vec::new(),
        })
    };
    for (said, first) in [(None, "g6.xlarge/a/spot"), (Some(3_125), "g5.xlarge/a/spot")] {
        rows.catalogues.insert(node_class(), Ok(rate(said).into()));
        assert_eq!(ranked(&planned_with(&rows, &counting(1_000_000)))[0], first, "{said:?}");
    }
}

#[test]
fn limits_of_money_count_prices_and_not_what_interruptions_may_lose() {
    let limited = |limit: &str| {
        let mut gpu = pool("gpu");
        gpu.limits.usd_per_hour = Some(usd(limit));
        let catalogue = with_offerings(|offering| match offering.id.instance_type.as_str() {
            "g5.xlarge" => vec![spot(offering, "0.400", 12_500)],
            _ => Vec::new(),
        });
        planned_with(&with(cluster(catalogue, [gpu]), [pod("a", requests(1, 1, 1))]), &counting(1_000_000))
    };
    let plan = limited("0.40");
    assert_eq!((plan.claims.len(), plan.cost, plan.risk), (1, usd("0.40"), usd("0.0125")));
    assert_eq!(limited("0.399999").unplaced[0].reason, UnplacedReason::LimitReached);
}

#[test]
fn the_alternatives_are_those_that_cost_little_more_with_what_their_interruptions_lose() {
    let catalogue = with_offerings(|offering| match offering.id.instance_type.as_str() {
        // This offering counts as 0.45, an eighth more.
        "g5.xlarge" if offering.id.zone.as_str() == "a" => vec![spot(offering, "0.40", 50_000)],
        // This offering counts as 0.50, a quarter more.
        "g5.xlarge" => vec![spot(offering, "0.40", 100_000)],
        "g6.xlarge" => vec![spot(offering, "0.40", 0)],
        _ => Vec::new(),
    });
    let snapshot = with(cluster(catalogue, [pool("gpu")]), [pod("a", requests(1, 1, 1))]);
    let plan = planned_with(&snapshot, &counting(1_000_000));
    assert_eq!(ranked(&plan), ["g6.xlarge/a/spot", "g5.xlarge/a/spot"]);
    assert_eq!(plan.claims[0].offerings[0].allocatable.get(ResourceName::NVIDIA_GPU), 1);
}

#[test]
fn a_commitment_pays_until_it_is_used_up() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), three());
    let catalogue = aws();
    let rates =
        catalogue.offerings().iter().filter(|offering| offering.id.instance_type.as_str() == "g6.xlarge");
    let rates = rates.map(|offering| (offering.id.clone(), usd("0.55"))).collect();
    let commitments = vec![Commitment { name: "plan".into(), left: usd("1.1"), rates }];
    let options = PlanOptions { commitments, ..PlanOptions::default() };
    let plan = planned_with(&snapshot, &options);
    let types: Vec<_> = plan.claims.iter().map(|claim| claim.instance_type().as_str()).collect();
    assert_eq!(types.iter().filter(|name| **name == "g6.xlarge").count(), 2);
    assert_eq!(plan.cost, usd("1.006"));
    assert_eq!(plan.covered, usd("2.2"));
    assert_eq!(plan.commitments[0].used, usd("1.1"));
    assert_eq!(plan.bound, plan.cost);
}

/// Returns a commitment for nodes of one type, each of which uses `rate`.
fn commitment(kind: &str, left: &str, rate: &str) -> Commitment {
    let catalogue = aws();
    let rates = catalogue.offerings().iter().filter(|offering| offering.id.instance_type.as_str() == kind);
    let rates = rates.map(|offering| (offering.id.clone(), usd(rate))).collect();
    Commitment { name: "plan".into(), left: usd(left), rates }
}

/// Returns a claim of this offering.
fn claim_of(name: &str, offering: OfferingId) -> Claim {
    let ranked = RankedOffering { offering, price: Some(usd("1")), allocatable: capacity(4, 16, 1) };
    Claim { name: ClaimName(name.into()), uid: Uid(name.into()), offerings: vec![ranked], ..claim() }
}

#[test]
fn staying_nodes_use_their_part_of_a_commitment() {
    let on_demand = id("g6.xlarge", "a");
    let other = |kind| OfferingId { capacity_type: kind, ..on_demand.clone() };
    let going = Claim { deleting_since: Some(at(1)), ..claim_of("going", on_demand.clone()) };
    let leaving = true_since(claim_of("leaving", on_demand.clone()), ConditionType::Disrupting, 1);
    let leaving = Claim {
        conditions: leaving
            .conditions
            .into_iter()
            .map(|(kind, one)| (kind, Condition { reason: Some(Reason::Underutilized), ..one }))
            .collect(),
        ..leaving
    };
    let claims = [
        claim_of("ordered", on_demand.clone()),
        launched(claim_of("spot", other(CapacityType::Spot))),
        launched(claim_of("reserved", other(CapacityType::Reserved))),
        going,
        leaving,
    ];
    let options = |left: &str| PlanOptions {
        commitments: vec![commitment("g6.xlarge", left, "0.55")],
        ..PlanOptions::default()
    };
    // The staying nodes have room for three pods.
    let pods = ["a", "b", "c", "d", "e"].map(|name| pod(name, requests(1, 1, 1)));
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), claims), pods);
    let plan = planned_with(&snapshot, &options("1.1"));
    assert_eq!(plan.claims.len(), 2);
    assert_eq!((plan.commitments[0].left, plan.commitments[0].used), (usd("0.55"), usd("0.55")));
    let plan = planned_with(&snapshot, &options("0.5"));
    assert_eq!((plan.commitments[0].left, plan.commitments[0].used), (usd("0"), usd("0")));
}

#[test]
fn the_rest_of_a_commitment_excludes_its_claims_and_is_never_negative() {
    let used = claim_of("a", id("g6.xlarge", "a"));
    let other = claim_of("b", id("g5.xlarge", "a"));
    let terms = [commitment("g6.xlarge", "1", "0.6"), commitment("g5.xlarge", "9", "0.5")];
    assert_eq!(left_of_commitments(&terms, &[]), [usd("1"), usd("9")]);
    assert_eq!(left_of_commitments(&terms, &[&used, &used, &other]), [usd("0"), usd("8.5")]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Pods come in waves. Each wave is planned when the nodes bought for earlier waves are there or on their way.
    #[test]
    fn a_commitment_is_never_used_twice(waves in vec(1_usize..4, 1..5), left in 0_u64..4_000_000) {
        let commitments = vec![Commitment { left: UsdPerHour::from_micros(left), ..commitment("g6.xlarge", "0", "0.55") }];
        let rate = commitments[0].rates[&id("g6.xlarge", "a")];
        let options = PlanOptions { commitments, ..PlanOptions::default() };
        let mut snapshot = cluster(aws(), [pool("gpu")]);
        let mut used = UsdPerHour::ZERO;
        for (wave, count) in waves.iter().enumerate() {
            let pods: Vec<Pod> = (0..*count).map(|at| pod(&format!("p-{wave}-{at}"), requests(1, 1, 1))).collect();
            snapshot = with(snapshot, pods);
            let plan = planned_with(&snapshot, &options);
            used += plan.commitments[0].used;
            snapshot = carried_out(&snapshot, &plan, 10);
        }
        let of = |claim: &&Arc<Claim>| options.commitments[0].rates.contains_key(&claim.current_offering().offering);
        let covered = snapshot.claims.values().filter(of).count() as u64;
        prop_assert!(used.micros() <= left, "{used} of {left}");
        prop_assert_eq!(used.micros(), left.min(covered * rate.micros()), "and never left lying");
    }
}

#[test]
fn an_unlaunched_claim_uses_the_stock_of_its_offering() {
    let catalogue = || {
        with_offerings(|offering| {
            let available = (offering.id.instance_type.as_str() == "g5.xlarge").then_some(1);
            vec![Offering { available, ..offering.clone() }]
        })
    };
    let before = with(cluster(catalogue(), [pool("gpu")]), [pod("a", requests(1, 1, 1))]);
    let first = planned(&before);
    assert_eq!(first.claims[0].instance_type().as_str(), "g5.xlarge");
    let types_of = |snapshot: Snapshot| -> Vec<String> {
        let plan = planned(&with(snapshot, ["b", "c"].map(|name| pod(name, requests(1, 1, 1)))));
        plan.claims.iter().map(|claim| claim.instance_type().to_string()).collect()
    };
    let count = |types: &[String]| types.iter().filter(|name| *name == "g5.xlarge").count();
    let ordered = types_of(carried_out(&before, &first, 5));
    assert_eq!((ordered.len(), count(&ordered)), (2, 1), "the one in the other zone: {ordered:?}");
    // Once the claims are launched, the catalogue's number of available instances counts without them.
    let there = with(before, first.claims.iter().map(|claim| launched(created(claim, 5))));
    assert_eq!(count(&types_of(there)), 2);
}
