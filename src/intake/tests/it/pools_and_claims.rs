//! Tests the conversion of pools and claims in both directions.

use jiff::SignedDuration;
use poolwright_api as api;
use poolwright_catalog::{InstanceTypeName, OfferingId, RankedOffering, ResourceList, UsdPerHour, Zone};
use poolwright_core::plan::PlannedClaim;
use poolwright_core::{
    Cause, ClaimName, CountOrPercent, Deadlines, Disruption, Operator, PodKey, PoolName, RepairRule,
    ScaleToZero, Uid, Units, Window,
};
use poolwright_intake::{claim_object, disruption_budget, node_claim, node_pool, offering_ref};
use poolwright_terms::{CapacityType, ConditionType, NodeClassRef, Reason, Taint, TaintEffect, keys};
use serde_json::{Value, json};

fn pool(spec: Value) -> poolwright_core::Pool {
    let mut object = json!({"apiVersion": poolwright_terms::API_VERSION, "kind": "NodePool", "metadata": {"name": "gpu", "uid": "p1"},
        "spec": {"template": {"spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"}}}}});
    merge(&mut object["spec"], spec);
    node_pool(&serde_json::from_value(object).expect("a NodePool"))
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

#[test]
fn a_pool_is_read_with_its_defaults() {
    let pool = pool(json!({
        "weight": 10,
        "limits": {"cpu": "1k", "nvidia.com/gpu": 16, "nodes": 10, "usdPerHour": "40.5"},
        "allowUnknownPrices": ["p6-b200.48xlarge"],
        "template": {"metadata": {"labels": {"team": "vision"}}, "spec": {
            "requirements": [{"key": "poolwright.dev/gpu-count", "operator": "Lte", "values": ["4"]}],
            "taints": [{"key": "gpu", "effect": "NoSchedule"}],
        }},
    }));
    assert_eq!(pool.problem, None);
    assert_eq!((pool.weight, pool.limits.nodes), (10, Some(10)));
    assert_eq!(pool.limits.usd_per_hour, Some(UsdPerHour::from_micros(40_500_000)));
    assert_eq!(
        pool.limits.resources.iter().map(|(name, n)| (name.as_str(), *n)).collect::<Vec<_>>(),
        [("cpu", 1_000_000), ("nvidia.com/gpu", 16)]
    );
    assert_eq!(pool.requirements[0].operator, Operator::Lte(4));
    assert_eq!(pool.scale_to_zero, ScaleToZero::Auto);
    assert_eq!(pool.deadlines, Deadlines::default());
    assert_eq!(pool.labels["team"], "vision");
    assert!(pool.allow_unknown_price.contains(&InstanceTypeName::from("p6-b200.48xlarge")));
}

#[test]
fn rules_on_spot_nodes_are_read_and_wrong_ones_are_a_problem() {
    let of = |spot: Value| pool(json!({"spot": spot}));
    let rules = of(json!({"onDemandFloor": "20%", "maxShare": "40%"})).spot;
    assert_eq!((rules.on_demand_floor, rules.max_share), (Some(CountOrPercent::Percent(20)), Some(40)));
    let rules = of(json!({"onDemandFloor": "3"})).spot;
    assert_eq!((rules.on_demand_floor, rules.max_share), (Some(CountOrPercent::Count(3)), None));
    assert!(of(json!({"onDemandFloor": "0", "maxShare": "100%"})).spot.is_empty());
    for (wrong, told) in [
        (
            json!({"onDemandFloor": "101%"}),
            "spec.spot.onDemandFloor: `101%` is not a number or a percentage; write such as 20%",
        ),
        (
            json!({"maxShare": "3"}),
            "spec.spot.maxShare: `3` is not a percentage from 1% to 100%; write such as 20%",
        ),
    ] {
        let problem = of(wrong).problem.expect("a problem");
        assert_eq!(problem.reason, Reason::InvalidSpot);
        assert_eq!(problem.message, told);
    }
}

#[test]
fn an_invalid_pool_becomes_a_pool_with_a_problem() {
    let cases = [
        (json!({"limits": {"cpu": "ten"}}), "InvalidQuantity", "spec.limits.cpu: `ten`"),
        (json!({"limits": {"usdPerHour": "cheap"}}), "InvalidQuantity", "spec.limits.usdPerHour"),
        (json!({"limits": {"nodes": "few"}}), "InvalidQuantity", "spec.limits.nodes: `few`"),
        (json!({"scaleToZero": {"after": "soon"}}), "InvalidDuration", "spec.scaleToZero.after: `soon`"),
        (
            json!({"template": {"spec": {"deadlines": {"launch": "0s"}}}}),
            "InvalidDuration",
            "spec.template.spec.deadlines.launch",
        ),
        (
            json!({"scaleToZero": {"after": "automatic"}}),
            "InvalidDuration",
            "spec.scaleToZero.after: `automatic` is not a duration, `Never` or `auto`; write such as `90s`",
        ),
        (
            json!({"template": {"spec": {"requirements": [{"key": "a", "operator": "Gt", "values": ["b"]}]}}}),
            "InvalidRequirement",
            "spec.template.spec.requirements[0]: a Gt",
        ),
    ];
    for (spec, reason, message) in cases {
        let problem = pool(spec).problem.expect(reason);
        assert_eq!(problem.reason, reason);
        assert!(problem.message.contains(message), "{} lacks {message}", problem.message);
    }
}

#[test]
fn all_problems_of_a_pool_in_a_file_are_told_at_once_and_each_of_them_once() {
    let pool = json!({"apiVersion": poolwright_terms::API_VERSION, "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {
        "weight": 5, "replicas": 3,
        "limits": {"cpu": "ten", "memory": "much"},
        "disruption": {"consolidateAfter": "soon", "paybackWithin": "later",
            "budgets": [{"nodes": "1", "schedule": "often", "duration": "1h"}]},
        "template": {"spec": {
            "nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"},
            "requirements": [{"key": "a", "operator": "In"}, {"key": "b", "operator": "Gt", "values": ["x"]}]}}}});
    let errors = poolwright_intake::manifest::parse("pool.yaml", &pool.to_string()).expect_err("problems");
    let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "spec.limits.cpu",
            "spec.limits.memory",
            "spec.template.spec.requirements[0]",
            "spec.template.spec.requirements[1]",
            "spec.disruption.consolidateAfter",
            "spec.disruption.paybackWithin",
            "spec",
            "spec.disruption.budgets[0].schedule",
        ],
        "{errors:#?}"
    );
}

#[test]
fn an_idle_node_that_never_goes_has_no_time_to_go() {
    assert_eq!(pool(json!({"scaleToZero": {"after": "Never"}})).scale_to_zero, ScaleToZero::Never);
    assert_eq!(pool(json!({"scaleToZero": {"after": "auto"}})).scale_to_zero, ScaleToZero::Auto);
}

#[test]
fn disruption_settings_are_read_and_an_invalid_budget_allows_nothing() {
    let repair = vec![lasts("Ready", "False", 30), lasts("Ready", "Unknown", 30)];
    let default = Disruption { consolidates: true, repair, ..Disruption::default() };
    assert_eq!(pool(json!({})).disruption, default);
    let read = |disruption: serde_json::Value| pool(json!({ "disruption": disruption })).disruption;
    assert!(!read(json!({"consolidationPolicy": "WhenEmpty"})).consolidates);
    let all = read(json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "Never",
        "paybackWithin": "3h", "budgets": [{"nodes": "20%", "reasons": ["Drifted"]}]}));
    assert_eq!((all.consolidates, all.consolidate_after), (true, None));
    assert_eq!(all.payback, SignedDuration::from_hours(3));
    assert_eq!((all.budgets[0].nodes, all.budgets[0].allows(10)), (CountOrPercent::Percent(20), 2));
    assert_eq!(all.budgets[0].causes, [Cause::Drifted].into());
    let wrong = |budget: serde_json::Value| {
        let budget = read(json!({ "budgets": [budget] })).budgets.remove(0);
        assert_eq!(budget.allows(100), 0);
        let Some(Window::Unreadable(why)) = budget.window else { panic!("{:?}", budget.window) };
        why
    };
    let why = wrong(json!({"nodes": "5", "schedule": "often", "duration": "1h"}));
    assert!(why.starts_with("spec.disruption.budgets[0].schedule: `often` is no schedule"), "{why}");
    let why = wrong(json!({"nodes": "5", "schedule": "@daily", "duration": "1h", "timeZone": "Mars/Phobos"}));
    assert!(why.contains("`Mars/Phobos` is not the name of a time zone"), "{why}");
    assert!(wrong(json!({"nodes": "many"})).contains("budgets[0].nodes: `many`"));
    assert_eq!(
        wrong(json!({"nodes": "5", "schedule": "@daily"})),
        "spec.disruption.budgets[0].schedule: it needs `duration` too; add it, or remove `schedule`"
    );
    let unclear = pool(json!({"disruption": {"paybackWithin": "soon"}}));
    assert!(unclear.disruption.do_not_disrupt, "nobody knows what it allows");
    assert!(unclear.problem.unwrap().message.contains("spec.disruption.paybackWithin: `soon`"));
}

#[test]
fn a_budget_over_all_pools_is_read_in_the_terms_of_a_pool_and_refused_where_it_makes_no_sense() {
    let read = disruption_budget(
        "{nodes: 10%, reasons: [Drifted, Expired], schedule: 0 9 * * mon-fri, duration: 8h}",
    );
    let budget = read.unwrap();
    assert_eq!(budget.nodes, CountOrPercent::Percent(10));
    assert_eq!(budget.causes, [Cause::Drifted, Cause::Expired].into());
    assert!(matches!(budget.window, Some(Window::Scheduled { .. })));
    let wrong = |text: &str| disruption_budget(text).unwrap_err();
    assert_eq!(wrong("{nodes: many}"), "nodes: `many` is neither a number nor a percentage; write 3 or 10%");
    for no_map in ["nodes", "10%", "[{nodes: '1'}]"] {
        assert_eq!(wrong(no_map), "not a budget; write a map such as {nodes: 10%}");
    }
    assert!(wrong("{nodes: '1', schedule: often, duration: 1h}").contains("`often` is no schedule"));
    let why = wrong("{nodes: '1', reason: [Drifted]}");
    assert!(why.contains("reason") && why.contains("reasons"), "{why}");
    assert!(wrong("nodes: [").contains("not readable as YAML"), "{}", wrong("nodes: ["));
}

#[test]
fn replicas_and_what_is_kept_free_are_read_and_what_makes_no_sense_is_the_pools_problem() {
    assert_eq!((pool(json!({})).replicas, pool(json!({})).buffer), (None, vec![]));
    assert_eq!(pool(json!({"replicas": 3})).replicas, Some(3));
    assert_eq!(pool(json!({"replicas": -3})).problem.unwrap().reason, "InvalidReplicas");
    let units = json!({"units": 2, "requests": {"nvidia.com/gpu": 1, "cpu": "500m"}});
    let read = pool(json!({ "buffer": [units] }));
    assert_eq!(read.problem, None);
    assert_eq!((read.buffer[0].units, read.buffer[0].requests.get("cpu")), (Units::Fixed(2), 500));
    assert_eq!(read.buffer[0].requests.get("pods"), 1, "a unit is a pod that has not come");
    let wrong = |units: Value| pool(json!({ "buffer": [units] })).problem.unwrap().message;
    let why = wrong(json!({"units": 1, "requests": {"cpu": "much"}}));
    assert!(why.starts_with("spec.buffer[0].requests.cpu: "), "{why}");
    let why = wrong(json!({"units": 1, "requests": {"cpu": 1}, "schedule": "often", "duration": "1h"}));
    assert!(why.contains("spec.buffer[0].schedule: `often` is no schedule"), "{why}");
    let chosen = |units: Value| pool(json!({ "buffer": [units] })).buffer[0].units;
    let unit = json!({"units": "auto", "requests": {"cpu": 1}});
    assert_eq!(chosen(unit), Units::Auto { at_most: 4 });
    let unit = json!({"units": "auto", "maxUnits": 2, "requests": {"cpu": 1}});
    assert_eq!(chosen(unit), Units::Auto { at_most: 2 });
    let why = wrong(json!({"units": "many", "requests": {"cpu": 1}}));
    assert_eq!(
        why,
        "spec.buffer[0].units: `many` is neither a number nor `auto`; write a number from 1 to 100, or auto"
    );
    let gates = json!({"template": {"spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"},
        "readinessGates": [{"conditionType": "GpuValidated"}]}}});
    assert_eq!(pool(gates).readiness_gates, ["GpuValidated"]);
}

fn lasts(condition: &str, status: &str, minutes: i64) -> RepairRule {
    let after = SignedDuration::from_mins(minutes);
    RepairRule { condition: condition.to_owned(), status: status.to_owned(), after }
}

#[test]
fn which_conditions_of_nodes_are_borne_for_how_long_is_read_and_an_empty_list_bears_all() {
    let of = |rules: Value| pool(json!({"disruption": {"repair": rules}}));
    let rule = json!({"condition": "GpuHealthy", "status": "False", "after": "10m"});
    assert_eq!(of(json!([rule])).disruption.repair, [lasts("GpuHealthy", "False", 10)]);
    assert_eq!(of(json!([])).disruption.repair, []);
    let unclear = of(json!([rule, {"condition": "Ready", "status": "Unknown", "after": "soon"}]));
    let why = unclear.problem.unwrap().message;
    assert!(why.contains("spec.disruption.repair[1].after: `soon`"), "{why}");
}

fn planned() -> PlannedClaim {
    let ranked = |kind: &str, price: Option<u64>| RankedOffering {
        offering: OfferingId {
            instance_type: kind.into(),
            zone: Zone::new("us-east-1a"),
            capacity_type: CapacityType::OnDemand,
        },
        price: price.map(UsdPerHour::from_micros),
        allocatable: ResourceList::new()
            .with("cpu", 3920)
            .with("memory", 15_461_882_265)
            .with("nvidia.com/gpu", 1),
    };
    PlannedClaim {
        name: ClaimName("gpu-4f2kq".into()),
        pool: PoolName("gpu".into()),
        pool_uid: Uid("p1".into()),
        node_class: NodeClassRef {
            group: "poolwright.dev".into(),
            kind: "KwokNodeClass".into(),
            name: "default".into(),
        },
        offerings: vec![ranked("g5.xlarge", Some(1_006_000)), ranked("p6-b200.48xlarge", None)],
        together: 0,
        choice: vec![],
        labels: [("team".to_owned(), "vision".to_owned())].into(),
        annotations: [("note".to_owned(), "x".to_owned())].into(),
        taints: vec![Taint { key: "gpu".into(), value: String::new(), effect: TaintEffect::NoSchedule }],
        startup_taints: vec![Taint {
            key: "driver".into(),
            value: "missing".into(),
            effect: TaintEffect::NoExecute,
        }],
        readiness_gates: vec!["DriverReady".into()],
        planned_pods: vec![PodKey::new("ml", "train-0")],
        bought_again: vec![],
        deadlines: Deadlines::default(),
        gpus: Vec::new(),
        reason: "train-0 needs one a10g; g5.xlarge is the cheapest.".into(),
    }
}

#[test]
fn a_planned_claim_survives_the_way_to_the_api_server_and_back() {
    let planned = planned();
    let written = serde_json::to_string(&claim_object(&planned)).unwrap();
    let read = node_claim(&serde_json::from_str(&written).unwrap()).unwrap();
    assert_eq!(
        (&read.name, &read.pool, &read.node_class),
        (&planned.name, &planned.pool, &planned.node_class)
    );
    assert_eq!(read.offerings, planned.offerings, "prices and promises come back to the last digit");
    assert_eq!((&read.labels, &read.annotations), (&planned.labels, &planned.annotations));
    assert_eq!((&read.taints, &read.startup_taints), (&planned.taints, &planned.startup_taints));
    assert_eq!(read.readiness_gates, planned.readiness_gates);
    assert_eq!((&read.planned_pods, read.deadlines), (&planned.planned_pods, planned.deadlines));
    assert_eq!((read.launched, read.node_name, read.conditions.len()), (None, None, 0));
}

#[test]
fn a_claim_is_owned_by_its_pool_and_kept_until_its_instance_is_gone() {
    let claim = claim_object(&planned());
    let owner = &claim.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str(), owner.uid.as_str()), ("NodePool", "gpu", "p1"));
    assert_eq!(claim.metadata.finalizers.unwrap(), [keys::TERMINATION_FINALIZER]);
    assert_eq!(claim.metadata.labels.unwrap()[keys::NODEPOOL_LABEL], "gpu");
    assert!(claim.metadata.annotations.unwrap()[keys::REASON_ANNOTATION].contains("g5.xlarge"));
}

#[test]
fn the_launched_instance_is_read_from_the_status() {
    let mut claim = claim_object(&planned());
    let ordered = planned().offerings[1].offering.clone();
    claim.status = Some(api::NodeClaimStatus {
        provider_id: Some("kwok://i-1".into()),
        node_name: Some("gpu-4f2kq".into()),
        offering: Some(offering_ref(&ordered)),
        conditions: serde_json::from_value(
            json!([{"type": "Launched", "status": "True", "reason": "Launched",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]),
        )
        .unwrap(),
        ..Default::default()
    });
    let read = node_claim(&claim).unwrap();
    let launched = read.launched.clone().unwrap();
    assert_eq!((launched.provider_id.as_str(), &launched.offering), ("kwok://i-1", &ordered));
    assert_eq!(read.current_offering().price, None);
    assert!(read.since(ConditionType::Launched).is_some());
}

#[test]
fn a_claim_without_its_label_is_found_by_its_owner_and_without_both_it_is_an_error() {
    let mut claim = claim_object(&planned());
    claim.metadata.labels = None;
    assert_eq!(node_claim(&claim).unwrap().pool, PoolName("gpu".into()));
    claim.metadata.owner_references = None;
    let error = node_claim(&claim).unwrap_err();
    assert_eq!(error.object, "NodeClaim gpu-4f2kq");
    assert!(error.cause.contains("poolwright.dev/nodepool"), "{error}");
}
