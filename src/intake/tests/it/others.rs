//! Tests the rules of a pod about other pods.

use k8s_openapi::api::core::v1::Pod;
use poolwright_core::{Namespaces, PodSpec};
use poolwright_intake::{IntakeError, daemonset, pod};
use serde_json::{Value, json};

fn try_read(spec: Value) -> Result<PodSpec, IntakeError> {
    let labels = json!({"app": "web", "hash": "x1"});
    let metadata = json!({"name": "a", "namespace": "ml", "labels": labels});
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    pod(&serde_json::from_value::<Pod>(object).expect("a pod")).map(|pod| PodSpec::clone(&pod.spec))
}

fn read(spec: Value) -> PodSpec {
    try_read(spec).expect("the pod converts")
}

fn ports(spec: Value) -> Vec<String> {
    read(spec).host_ports.iter().map(ToString::to_string).collect()
}

#[test]
fn host_ports_have_a_protocol_and_an_address() {
    let listed = json!([
        {"containerPort": 80},
        {"containerPort": 81, "hostPort": 8081},
        {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
        {"containerPort": 82, "hostPort": 8082, "hostIP": "0.0.0.0"},
    ]);
    let spec = json!({"containers": [{"image": "x", "name": "a", "ports": listed}]});
    assert_eq!(ports(spec.clone()), ["10.0.0.1:53/UDP", "8081/TCP", "8082/TCP"].map(str::to_owned));
    assert_eq!(read(spec).unmodelled, []);
}

#[test]
fn with_the_network_of_the_host_every_port_is_one_of_the_host() {
    let spec = json!({"hostNetwork": true, "containers": [{"image": "x", "name": "a", "ports": [{"containerPort": 80}]}]});
    assert_eq!(ports(spec), ["80/TCP"]);
}

#[test]
fn sidecars_keep_their_ports_and_other_init_containers_have_none() {
    let container =
        |name: &str, port: u16| json!({"name": name, "ports": [{"containerPort": port, "hostPort": port}]});
    let mut sidecar = container("s", 90);
    sidecar["restartPolicy"] = "Always".into();
    let spec =
        json!({"initContainers": [container("i", 91), sidecar], "containers": [{"image": "x", "name": "a"}]});
    assert_eq!(ports(spec), ["90/TCP"]);
}

#[test]
fn a_port_that_cannot_be_is_named_with_what_to_write() {
    let error = |port: Value| {
        let spec = json!({"containers": [{"image": "x", "name": "a", "ports": [port]}]});
        try_read(spec).expect_err("no such port").to_string()
    };
    assert_eq!(
        error(json!({"containerPort": 80, "hostPort": 70000})),
        "Pod ml/a: spec.containers[0].ports[0].hostPort: 70000 is not a port; use a number from 1 to 65535"
    );
    assert_eq!(
        error(json!({"containerPort": 80, "hostPort": 80, "protocol": "tcp"})),
        "Pod ml/a: spec.containers[0].ports[0].protocol: `tcp` is not a protocol of a port; use TCP, UDP or SCTP"
    );
}

fn away_from(term: Value) -> Value {
    let mut term = term;
    if term.get("topologyKey").is_none() {
        term["topologyKey"] = "kubernetes.io/hostname".into();
    }
    let rule = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    json!({"containers": [{"image": "x", "name": "a"}], "affinity": {"podAntiAffinity": rule}})
}

/// Returns the selector of the only term in words, and its namespaces.
fn term(written: Value) -> (String, Namespaces) {
    let spec = read(away_from(written));
    assert_eq!((spec.anti_affinity.len(), spec.unmodelled.len()), (1, 0), "{:?}", spec.unmodelled);
    let term = spec.anti_affinity[0].clone();
    let words = term.selector.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    (words.unwrap_or_else(|| "none".to_owned()), term.namespaces)
}

#[test]
fn a_term_is_about_the_pods_own_namespace_unless_it_says_otherwise() {
    let own = || Namespaces::Named(["ml".to_owned()].into());
    let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": [
        {"key": "tier", "operator": "NotIn", "values": ["x", "y"]}, {"key": "old", "operator": "DoesNotExist"},
    ]});
    let (words, namespaces) = term(json!({"labelSelector": selector}));
    assert_eq!((words.as_str(), namespaces), ("app In [web], old DoesNotExist, tier NotIn [x, y]", own()));
    assert_eq!(term(json!({})), ("none".to_owned(), own()));
    let named = term(json!({"labelSelector": {}, "namespaces": ["a", "b"]}));
    assert_eq!(named, (String::new(), Namespaces::Named(["a".to_owned(), "b".to_owned()].into())));
    assert_eq!(term(json!({"labelSelector": {}, "namespaceSelector": {}})), (String::new(), Namespaces::All));
}

#[test]
fn keys_to_match_take_the_values_of_the_pods_own_labels() {
    let written =
        json!({"labelSelector": {}, "matchLabelKeys": ["hash", "absent"], "mismatchLabelKeys": ["app"]});
    assert_eq!(term(written).0, "app NotIn [web], hash In [x1]");
}

#[test]
fn a_namespace_selector_chooses_beside_the_names_that_are_given() {
    let by_label = json!({"labelSelector": {}, "namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "x"}}});
    let Namespaces::NamedOrSelected(names, by) = term(by_label).1 else { panic!("chosen by label") };
    assert_eq!((names, by[0].to_string()), (["a".to_owned()].into(), "team In [x]".to_owned()));
}

#[test]
fn required_affinity_is_read_like_anti_affinity() {
    let zone = json!({"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "db"}}});
    let rule = json!({"requiredDuringSchedulingIgnoredDuringExecution": [zone]});
    let spec = read(json!({"containers": [{"image": "x", "name": "a"}], "affinity": {"podAffinity": rule}}));
    assert_eq!((spec.affinity.len(), spec.anti_affinity.len(), spec.unmodelled.len()), (1, 0, 0));
    assert_eq!(spec.affinity[0].topology_key, "topology.kubernetes.io/zone");
}

#[test]
fn terms_that_make_no_sense_are_named_by_their_field() {
    let found = |written: Value| {
        let spec = read(away_from(written));
        let field = spec.unmodelled[0].field.rsplit_once("Execution").expect("a required term").1;
        (format!("{field}: {}", spec.unmodelled[0].rule), spec.anti_affinity.len())
    };
    let senseless = || json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]});
    let said = |field: &str| (format!("[0].{field}: a rule about other pods with an invalid expression"), 0);
    assert_eq!(found(json!({"labelSelector": senseless()})), said("labelSelector"));
    assert_eq!(
        found(json!({"labelSelector": {}, "namespaceSelector": senseless()})),
        said("namespaceSelector")
    );
}

#[test]
fn the_pods_of_a_daemonset_have_the_labels_and_ports_of_its_template() {
    let spec = json!({"containers": [{"image": "x", "name": "a", "ports": [{"containerPort": 9100, "hostPort": 9100}]}]});
    let template = json!({"metadata": {"labels": {"app": "agent"}}, "spec": spec});
    let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template}});
    let set = daemonset(&serde_json::from_value(object).expect("a DaemonSet")).expect("it converts");
    assert_eq!(set.labels["app"], "agent");
    assert_eq!(set.spec.host_ports.len(), 1);
}

fn spread_over(constraint: Value) -> Value {
    let mut constraint = constraint;
    for (field, usual) in [
        ("topologyKey", json!("kubernetes.io/hostname")),
        ("whenUnsatisfiable", json!("DoNotSchedule")),
        ("maxSkew", json!(1)),
    ] {
        if constraint.get(field).is_none() {
            constraint[field] = usual;
        }
    }
    json!({"containers": [{"image": "x", "name": "a"}], "topologySpreadConstraints": [constraint]})
}

#[test]
fn spread_over_nodes_is_read_with_its_skew_and_the_pods_that_count() {
    let spec = read(spread_over(
        json!({"maxSkew": 3, "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["hash"]}),
    ));
    let rule = &spec.spreads[0];
    let words: Vec<String> = rule.selector.iter().flatten().map(ToString::to_string).collect();
    assert_eq!((rule.max_skew, words), (3, vec!["app In [web]".to_owned(), "hash In [x1]".to_owned()]));
    assert_eq!(rule.match_label_keys, ["hash"]);
    assert_eq!(spec.unmodelled, []);
    let preference = read(spread_over(json!({"whenUnsatisfiable": "ScheduleAnyway"})));
    assert_eq!(
        (preference.spreads.len(), preference.preferences.expect("a preference").spreads.len()),
        (0, 1)
    );
}

#[test]
fn spread_over_zones_is_read_with_all_its_policies() {
    let written = json!({"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "web"}},
        "minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"});
    let spec = read(spread_over(written));
    let rule = &spec.spreads[0];
    assert_eq!((rule.topology_key.as_str(), rule.min_domains), ("topology.kubernetes.io/zone", Some(3)));
    assert!(rule.ignore_node_affinity && rule.honor_node_taints);
    let usual = read(spread_over(json!({"labelSelector": {"matchLabels": {"app": "web"}}})));
    assert!(!usual.spreads[0].ignore_node_affinity && !usual.spreads[0].honor_node_taints);
}

#[test]
fn an_empty_selector_of_a_spread_counts_no_pods() {
    let spec = read(spread_over(json!({"labelSelector": {}})));
    assert_eq!(spec.spreads[0].selector, None);
}

#[test]
fn a_skew_that_cannot_be_kept_is_named() {
    let spec = read(spread_over(json!({"maxSkew": 0})));
    assert_eq!(spec.unmodelled[0].field, "spec.topologySpreadConstraints[0].maxSkew");
    assert_eq!(spec.unmodelled[0].rule, "topology spread with a maxSkew of 0");
}
