//! Tests the preferences of a pod.

use k8s_openapi::api::core::v1::Pod;
use poolwright_core::{PodSpec, Preferences};
use poolwright_intake::pod;
use serde_json::{Value, json};

fn read(spec: Value) -> PodSpec {
    let metadata = json!({"name": "a", "namespace": "ml", "labels": {"app": "web", "hash": "x1"}});
    let mut object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    object["spec"]["containers"] = json!([{"name": "a"}]);
    let pod = pod(&serde_json::from_value::<Pod>(object).expect("a pod")).expect("the pod converts");
    PodSpec::clone(&pod.spec)
}

fn preferences(spec: Value) -> Preferences {
    *read(spec).preferences.expect("it has preferences")
}

fn node(preferred: Value) -> Value {
    json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}})
}

#[test]
fn a_pod_without_preferences_has_none() {
    assert_eq!(read(json!({})).preferences, None);
    let required = json!({"topologySpreadConstraints": [
        {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]});
    assert_eq!(read(required).preferences, None);
}

#[test]
fn preferred_node_affinity_is_read_with_its_weights_expressions_and_fields() {
    let preferences = preferences(node(json!([
        {"weight": 50, "preference": {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100"]}]}},
        {"weight": 7, "preference": {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}},
        {"weight": 1, "preference": {}},
    ])));
    let said: Vec<(u32, String)> = preferences
        .nodes
        .iter()
        .map(|preference| (preference.weight, preference.term.requirements[0].to_string()))
        .collect();
    assert_eq!(said.len(), 2, "what asks for nothing is met anyway");
    assert_eq!(said[0], (50, "gpu In [h100]".to_owned()));
    assert_eq!(said[1].0, 7);
    assert_eq!(preferences.unread, []);
}

#[test]
fn preferred_affinity_to_pods_is_read_both_ways() {
    let term = |weight: i32| {
        json!([{"weight": weight, "podAffinityTerm": {
        "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, "matchLabelKeys": ["hash"]}}])
    };
    let preferred = |weight| json!({"preferredDuringSchedulingIgnoredDuringExecution": term(weight)});
    let preferences =
        preferences(json!({"affinity": {"podAffinity": preferred(3), "podAntiAffinity": preferred(4)}}));
    assert_eq!((preferences.affinity[0].weight, preferences.anti_affinity[0].weight), (3, 4));
    assert_eq!(preferences.affinity[0].term, preferences.anti_affinity[0].term);
    let selector: Vec<String> =
        preferences.affinity[0].term.selector.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(selector, ["app In [db]", "hash In [x1]"]);
}

#[test]
fn spread_that_is_a_preference_is_one_and_no_rule() {
    let spec = read(json!({"topologySpreadConstraints": [
        {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway",
         "labelSelector": {"matchLabels": {"app": "web"}}}]}));
    assert_eq!(spec.spreads, []);
    let preferences = spec.preferences.expect("a preference");
    assert_eq!((preferences.spreads[0].topology_key.as_str(), preferences.spreads[0].max_skew), ("zone", 2));
}

#[test]
fn a_preference_that_makes_no_sense_is_dropped_and_named_and_the_pod_is_planned() {
    let senseless = json!({"matchExpressions": [{"key": "gpu", "operator": "Near", "values": ["h100"]}]});
    let good = json!({"matchExpressions": [{"key": "gpu", "operator": "Exists"}]});
    let mut spec = node(json!([
        {"weight": 1, "preference": senseless},
        {"weight": 2, "preference": good},
        {"weight": 200, "preference": good},
    ]));
    let selector = json!({"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]});
    spec["affinity"]["podAntiAffinity"] = json!({"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": selector}}]});
    spec["topologySpreadConstraints"] = json!([
        {"topologyKey": "zone", "maxSkew": 0, "whenUnsatisfiable": "ScheduleAnyway"}]);
    let spec = read(spec);
    assert_eq!(spec.unmodelled, [], "it keeps no pod from being planned");
    let preferences = spec.preferences.expect("preferences");
    assert_eq!(
        (preferences.nodes.len(), preferences.anti_affinity.len(), preferences.spreads.len()),
        (1, 0, 0)
    );
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let fields: Vec<String> = preferences.unread.iter().map(|rule| rule.field.clone()).collect();
    let expected = [
        format!("spec.affinity.nodeAffinity.{preferred}[0].preference.matchExpressions[0]"),
        format!("spec.affinity.nodeAffinity.{preferred}[2].weight"),
        format!("spec.affinity.podAntiAffinity.{preferred}[0].podAffinityTerm.labelSelector"),
        "spec.topologySpreadConstraints[0].maxSkew".to_owned(),
    ];
    assert_eq!(fields, expected);
}
