//! Tests of Deployments in a snapshot, and of the pools of Karpenter.

use super::*;

/// Returns the objects of Karpenter for nodes like that of [`objects`].
fn of_karpenter() -> [Value; 2] {
    let taint = json!({"key": "acme.com/gpu", "value": "yes", "effect": "NoSchedule"});
    let tags = json!([{"tags": {"karpenter.sh/discovery": "prod-cluster"}}]);
    [
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu", "uid": "kp"},
            "spec": {"limits": {"cpu": "100"}, "template": {
                "metadata": {"labels": {"acme.com/tier": "gold"}, "annotations": {"note": SECRET}},
                "spec": {"taints": [taint], "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "requirements": [{"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["g"]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}]}}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "message": SECRET}]}}),
        json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default", "uid": "kc"},
            "spec": {"role": "prod-nodes", "amiSelectorTerms": [{"alias": "al2023@latest"}], "subnetSelectorTerms": tags,
                "securityGroupSelectorTerms": tags, "userData": SECRET, "tags": {"k": SECRET}, "odd": {"k": SECRET}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "message": SECRET}]}}),
    ]
}

#[test]
fn a_deployment_of_a_snapshot_is_scaled_and_removed_and_objects_of_karpenter_do_not_count() {
    let mut all = objects();
    let set = all.iter_mut().find(|one| one["kind"] == "ReplicaSet").expect("a set");
    set["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "train", "uid": "d", "controller": true}]);
    let (selector, template) = (set["spec"]["selector"].clone(), set["spec"]["template"].clone());
    all.push(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "train", "namespace": "ml", "uid": "d"},
        "spec": {"replicas": 3, "selector": selector, "template": template}, "status": {"replicas": 3}}));
    all.extend(of_karpenter());
    let more = what_if_of(all.clone(), "scaled", &["--replicas", "deploy/train=5"]);
    assert_eq!(more["difference"]["added"].as_array().map(Vec::len), Some(2), "{more}");
    assert!(!more["notes"].to_string().contains("karpenter"), "{more}");
    let less = what_if_of(all, "without", &["--remove", "deploy/train"]);
    assert_eq!(less["difference"]["removed"], json!(["ml/train-0", "ml/train-1", "ml/train-2"]), "{less}");
}

/// Returns what `savings` says of this snapshot.
fn savings(name: &str, saved: &SavedCluster) -> Value {
    let file = std::env::temp_dir().join(format!("poolwright-savings-{name}-{}.json", std::process::id()));
    fs::write(&file, saved.text()).expect("a file");
    let typed = ["poolwright", "savings", "-o", "json", "--snapshot", file.to_str().expect("UTF-8")];
    let Command::Savings(flags) = Cli::try_parse_from(typed).expect("flags").command else {
        panic!("it is savings")
    };
    let mut out = Vec::new();
    let answered = crate::savings::run(&flags, &mut out);
    fs::remove_file(&file).expect("the file is there");
    answered.unwrap_or_else(|failure| panic!("{failure:?}"));
    serde_json::from_slice(&out).expect("JSON")
}

#[test]
fn savings_convert_the_pools_of_karpenter_in_a_snapshot_also_with_aliases() {
    let mut all = objects();
    all.retain(|object| object["apiVersion"] != poolwright_terms::API_VERSION);
    let node = all.iter_mut().find(|object| object["kind"] == "Node").expect("a node");
    node["metadata"]["labels"]["eks.amazonaws.com/capacityType"] = "ON_DEMAND".into();
    all.extend(of_karpenter());
    let plain = taken(&cluster(all.clone(), &[]));
    let told = plain.summary("f").join("\n");
    assert!(
        told.contains("EC2NodeClass.karpenter.k8s.aws 1, ") && told.contains("NodePool.karpenter.sh 1, "),
        "{told}"
    );
    let text = plain.saved.text();
    assert!(!text.contains(SECRET) && text.contains("A snapshot has no user data"), "{text}");
    let mut anonymous = taken(&cluster(all.clone(), &[]));
    anonymous.anonymise();
    assert!(!anonymous.saved.text().contains("prod-"), "{}", anonymous.saved.text());
    let (found, aliased) = (savings("karpenter", &plain.saved), savings("aliases", &anonymous.saved));
    let bought = "The best plan buys what 1 NodePool of Karpenter may buy, after `poolwright convert`.";
    assert_eq!((&found["mayBuy"], &found["now"]["nodes"]), (&json!(bought), &json!(1)), "{found}");
    assert_eq!((&aliased["now"], &aliased["best"]), (&found["now"], &found["best"]), "{aliased}");
    let said = |answer: &Value, said: &str| answer["notes"].to_string().contains(said);
    assert!(said(&found, "a snapshot lacks userData, tags and most annotations"), "{found}");
    let forbidden = taken(&cluster(all.clone(), &["nodepools"]));
    assert!(said(&savings("forbidden", &forbidden.saved), "what you may not list is missing: "));
    all.retain(|object| object["apiVersion"] != "karpenter.sh/v1");
    let mut old = taken(&cluster(all, &[])).saved;
    old.header.kinds.retain(|asked| asked.group != "karpenter.sh");
    old.items.retain(|object| object["kind"] != "EC2NodeClass");
    assert!(said(&savings("old", &old), "this snapshot is of an older version"));
}
