//! Tests that written objects of Kubernetes itself which an API server refuses are errors: one table for each kind, with what is
//! changed in a good object, and the problem.

use serde_json::{Value, json};

use crate::json_kit::{object, read, refused, stored};

/// A field, its new value, and the problem. There is none if the API server takes it.
pub type Row = (&'static str, Value, &'static str);

/// Returns an object with another value in a field.
fn with(object: &Value, path: &str, value: Value) -> Value {
    let mut changed = object.clone();
    *path.split('.').fold(&mut changed, |at, field| &mut at[field]) = value;
    changed
}

/// Checks the only problem of an object with each of these changes. What an API server has stored is read as it is.
pub fn check(good: &Value, rows: impl IntoIterator<Item = Row>) {
    read(std::slice::from_ref(good));
    for (path, value, problem) in rows {
        let changed = with(good, path, value);
        if problem.is_empty() {
            read(&[changed]);
            continue;
        }
        let found = refused(&changed);
        let is_it = found.len() == 1 && found[0].contains(&format!(": {problem}"));
        assert!(is_it, "{path}: {problem} is not all of {found:#?}");
        read(&[stored(changed, None)]);
    }
}

#[test]
fn claims_that_an_api_server_refuses() {
    let size = json!({"requests": {"storage": "1Gi"}});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": size});
    check(
        &object("v1", "PersistentVolumeClaim", "data", spec),
        [
            ("spec.accessModes", json!([]), "spec.accessModes: missing; add one, such as ReadWriteOnce"),
            ("spec.accessModes", json!(["ReadWriteOncePod"]), ""),
            (
                "spec.accessModes",
                json!(["ReadWriteOnce", "ReadWriteOncePod"]),
                "spec.accessModes: an API server refuses ReadWriteOncePod beside other modes; remove it, or the others",
            ),
            (
                "spec.accessModes",
                json!(["readWriteOnce"]),
                "spec.accessModes[0]: `readWriteOnce` does not exist; write `ReadWriteOnce`",
            ),
            ("spec.resources", json!({}), "spec.resources.requests.storage: missing; add it, such as 10Gi"),
            (
                "spec.resources.requests.storage",
                json!("0"),
                "spec.resources.requests.storage: `0` is not more than zero; write a size, such as 10Gi",
            ),
            (
                "spec.resources.requests.storage",
                json!("-1Gi"),
                "spec.resources.requests.storage: `-1Gi` is negative",
            ),
            ("spec.volumeMode", json!("block"), "spec.volumeMode: `block` does not exist; write `Block`"),
            (
                "spec.storageClassName",
                json!("Fast_1"),
                "spec.storageClassName: an API server refuses the name `Fast_1`",
            ),
        ],
    );
}

#[test]
fn volumes_that_an_api_server_refuses() {
    let csi = json!({"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"});
    let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": csi});
    let volume = object("v1", "PersistentVolume", "v", spec);
    let expression = json!({"key": "a b", "operator": "Exists"});
    let terms = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}});
    let no_term = json!({"required": {"nodeSelectorTerms": []}});
    check(
        &volume,
        [
            ("spec.capacity", json!({}), "spec.capacity.storage: missing; add it, such as 10Gi"),
            ("spec.capacity.storage", json!("0"), "spec.capacity.storage: `0` is not more than zero"),
            (
                "spec.capacity.cpu",
                json!("1"),
                "spec.capacity.cpu: a volume has no other capacity than storage; remove it",
            ),
            ("spec.accessModes", json!([]), "spec.accessModes: missing"),
            ("spec.csi", Value::Null, "spec: it does not say where the volume is; add a source, such as csi"),
            (
                "spec.nfs",
                json!({"server": "s", "path": "/"}),
                "spec: a volume has one source, and this has csi and nfs; keep one of them",
            ),
            ("spec.csi.volumeHandle", json!(""), "spec.csi.volumeHandle: missing; add it"),
            (
                "spec.persistentVolumeReclaimPolicy",
                json!("Reuse"),
                "spec.persistentVolumeReclaimPolicy: `Reuse`",
            ),
            ("spec.nodeAffinity", json!({}), "spec.nodeAffinity.required: missing"),
            (
                "spec.nodeAffinity",
                no_term,
                "spec.nodeAffinity.required.nodeSelectorTerms: missing; add a term",
            ),
            (
                "spec.nodeAffinity",
                terms,
                "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: an API server refuses the key `a b`",
            ),
        ],
    );
    let local = with(&with(&volume, "spec.csi", Value::Null), "spec.local", json!({"path": "/mnt"}));
    let found = refused(&local);
    let problem = "spec.nodeAffinity: missing; add it, because a local volume is on one node";
    assert!(found.len() == 1 && found[0].ends_with(problem), "{found:?}");
}

#[test]
fn storage_classes_that_an_api_server_refuses() {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
        "provisioner": "ebs.csi.aws.com"});
    let topology = |expressions: Value| json!([{"matchLabelExpressions": expressions}]);
    check(
        &class,
        [
            (
                "provisioner",
                json!(""),
                "provisioner: missing; add the name of a driver, such as disk.csi.example.com",
            ),
            ("provisioner", json!("a b"), "provisioner: an API server refuses the name `a b`"),
            ("provisioner", json!("Example.com/Disk"), ""),
            ("reclaimPolicy", json!("Recycle"), "reclaimPolicy: `Recycle` does not exist"),
            (
                "allowedTopologies",
                topology(json!([{"key": "zone", "values": []}])),
                "allowedTopologies[0].matchLabelExpressions[0].values: missing; add one",
            ),
            (
                "allowedTopologies",
                topology(json!([{"key": "zone", "values": ["a", "b", "a"]}])),
                "allowedTopologies[0].matchLabelExpressions[0].values[2]: `a` is there twice",
            ),
            (
                "allowedTopologies",
                topology(json!([{"key": "zone", "values": ["a"]}, {"key": "zone", "values": ["b"]}])),
                "allowedTopologies[0].matchLabelExpressions[1].key: another expression of the term has this key",
            ),
        ],
    );
}

#[test]
fn runtime_classes_that_an_api_server_refuses() {
    let tolerations = json!([{"key": "a", "operator": "Exists", "value": "b"}]);
    check(
        &json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"}),
        [
            (
                "handler",
                json!(""),
                "handler: missing; add the name that the nodes have for it, such as nvidia",
            ),
            ("handler", json!("kata.v1"), "handler: an API server refuses the name `kata.v1`"),
            ("overhead", json!({"podFixed": {"cpu": "-1"}}), "overhead.podFixed.cpu: `-1` is negative"),
            (
                "scheduling.tolerations",
                tolerations,
                "scheduling.tolerations[0].value: `Exists` takes no value",
            ),
        ],
    );
}

#[test]
fn budgets_that_an_api_server_refuses() {
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}});
    check(
        &object("policy/v1", "PodDisruptionBudget", "web", spec),
        [
            ("spec.selector", json!({}), ""),
            ("spec.minAvailable", json!("100%"), ""),
            ("spec.minAvailable", json!("150%"), "spec.minAvailable: `150%` is more than 100%; lower it"),
            (
                "spec.minAvailable",
                json!("+5%"),
                "spec.minAvailable: `+5%` is neither a number of pods nor a percentage",
            ),
            ("spec.minAvailable", json!(-1), "spec.minAvailable: `-1` is neither a number of pods nor"),
            ("spec.maxUnavailable", json!(1), "spec: a budget has minAvailable or maxUnavailable, not both"),
        ],
    );
}

#[test]
fn pods_that_an_api_server_refuses() {
    let volume = |ephemeral: Value| json!([{"name": "scratch", "ephemeral": ephemeral}]);
    let gates = |names: [&str; 2]| json!([{"name": names[0]}, {"name": names[1]}]);
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"]}});
    let pod = object("v1", "Pod", "a", json!({"containers": [{"image": "x", "name": "c"}]}));
    check(
        &pod,
        [
            (
                "spec.activeDeadlineSeconds",
                json!(0),
                "spec.activeDeadlineSeconds: `0` is not from 1 to 2147483647",
            ),
            ("spec.schedulingGates", gates(["a", "example.com/b"]), ""),
            (
                "spec.schedulingGates",
                gates(["a", "a"]),
                "spec.schedulingGates[1].name: another gate has the name `a`",
            ),
            (
                "spec.schedulingGates",
                gates(["a", "b c"]),
                "spec.schedulingGates[1].name: an API server refuses the name `b c`",
            ),
            (
                "spec.resourceClaims",
                json!([{"name": "gpu"}]),
                "spec.resourceClaims[0]: it has neither resourceClaimName nor resourceClaimTemplateName",
            ),
            (
                "spec.volumes",
                volume(json!({})),
                "spec.volumes[0].ephemeral.volumeClaimTemplate: missing; add it",
            ),
            (
                "spec.volumes",
                volume(json!({"volumeClaimTemplate": claim})),
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage: missing",
            ),
        ],
    );
    let port = |own: u16, host: u16| json!({"containerPort": own, "hostPort": host});
    let two = |first: Value, second: Value| json!([{"image": "x", "name": "c", "ports": [first]}, {"image": "x", "name": "d", "ports": [second]}]);
    let mut udp = port(81, 80);
    udp["protocol"] = json!("UDP");
    let taken = "spec.containers[1].ports[0].hostPort: another port of the pod takes port 80 (TCP) of the node; change one of them";
    check(
        &pod,
        [
            ("spec.containers", two(port(80, 80), udp), ""),
            ("spec.containers", two(port(80, 80), port(81, 80)), taken),
        ],
    );
    let other = "spec.containers[1].ports[0].hostPort: `82` is not the containerPort 81, as it must be with hostNetwork";
    let same =
        "spec.containers[1].ports[0].containerPort: another port of the pod takes port 80 (TCP) of the node";
    let own = json!({"containerPort": 80});
    check(
        &with(&pod, "spec.hostNetwork", json!(true)),
        [
            ("spec.containers", two(port(80, 80), port(81, 82)), other),
            ("spec.containers", two(own.clone(), own), same),
        ],
    );
}
