//! Plans more pods from documentation, each with its page (below https://kubernetes.io/docs/): pods of controllers, volumes,
//! devices, classes, and rules with all their fields.

use serde_json::{Value, json};

use crate::documentation_kit::{answer, node, pod, requests, running};

const ZONE: &str = "topology.kubernetes.io/zone";

/// A controller's object with this pod template.
fn workload(api: &str, kind: &str, name: &str, mut spec: Value, labels: &Value, template: &Value) -> Value {
    spec["template"] = json!({"metadata": {"labels": labels}, "spec": template});
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn containers(amounts: &Value) -> Value {
    json!({"containers": requests(amounts)})
}

fn set(kind: &str, name: &str, replicas: u32, amounts: &Value) -> Value {
    let labels = json!({"app": name});
    let spec = json!({"replicas": replicas, "serviceName": name, "selector": {"matchLabels": labels}});
    let spec = if kind == "StatefulSet" {
        spec
    } else {
        json!({"replicas": replicas, "selector": {"matchLabels": labels}})
    };
    workload("apps/v1", kind, name, spec, &labels, &containers(amounts))
}

fn job(name: &str, spec: Value) -> Value {
    let mut template = containers(&json!({"cpu": "3"}));
    template["restartPolicy"] = json!("Never");
    workload("batch/v1", "Job", name, spec, &json!({}), &template)
}

/// The instance type of each line, sorted.
fn kinds(lines: &[String]) -> Vec<&str> {
    let mut kinds: Vec<&str> = lines.iter().map(|line| line.split(" in ").next().unwrap_or(line)).collect();
    kinds.sort_unstable();
    kinds
}

/// concepts/workloads/controllers/deployment, .../replicaset; tutorials/stateless-application/guestbook
#[test]
fn deployments_and_replica_sets() {
    assert_eq!(
        answer(&[set("Deployment", "nginx-deployment", 3, &json!({}))]),
        ["small in a: nginx-deployment-0 nginx-deployment-1 nginx-deployment-2"]
    );
    assert_eq!(answer(&[set("ReplicaSet", "frontend", 3, &json!({"cpu": "3"}))]).len(), 3, "one each");
    let small = json!({"cpu": "100m", "memory": "100Mi"});
    let guestbook = [
        set("Deployment", "redis-leader", 1, &small),
        set("Deployment", "redis-follower", 2, &small),
        set("Deployment", "frontend", 3, &small),
    ];
    let lines = answer(&guestbook);
    assert_eq!(lines.len(), 1, "all six fit one node: {lines:?}");
    assert_eq!(lines[0].split(' ').count() - 3, 6);
}

/// concepts/workloads/controllers/job; tasks/job/coarse-parallel-processing-work-queue, .../indexed-parallel-processing-static;
/// concepts/workloads/controllers/cron-jobs
#[test]
fn jobs_run_as_many_pods_as_their_parallelism_allows() {
    assert_eq!(answer(&[job("pi", json!({"backoffLimit": 4}))]), ["small in a: pi-0"]);
    let queue = json!({"completions": 8, "parallelism": 2});
    assert_eq!(answer(&[job("job-wq-1", queue)]).len(), 2);
    let indexed = json!({"completions": 5, "parallelism": 3, "completionMode": "Indexed"});
    assert_eq!(answer(&[job("indexed-job", indexed)]).len(), 3);
    let fewer = json!({"completions": 1, "parallelism": 3});
    assert_eq!(answer(&[job("few", fewer)]).len(), 1, "more than are left to complete are never run");
    let hello = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "hello"}, "spec": {
        "schedule": "* * * * *", "jobTemplate": {"spec": job("unused", json!({}))["spec"]}}});
    assert_eq!(answer(&[hello]), [""; 0], "it makes jobs by the clock");
}

/// concepts/workloads/controllers/statefulset; tutorials/stateful-application/zookeeper, .../cassandra
#[test]
fn stateful_sets_with_claims_of_their_own() {
    let class = |mode: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "my-storage-class"},
            "provisioner": "ebs.csi.aws.com", "volumeBindingMode": mode})
    };
    let mut web = set("StatefulSet", "web", 3, &json!({}));
    web["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "www"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "my-storage-class",
        "resources": {"requests": {"storage": "1Gi"}}}}]);
    assert_eq!(answer(&[class("WaitForFirstConsumer"), web.clone()]), ["small in a: web-0 web-1 web-2"]);
    let without = answer(&[web.clone()]);
    assert_eq!(without[0], "left: web-0 (VolumeUnusable)", "nobody made the class: {without:?}");
    assert_eq!(answer(&[class("Immediate"), web])[0], "left: web-0 (VolumePending)");

    let mut zk = set("StatefulSet", "zk", 3, &json!({"cpu": "500m", "memory": "1Gi"}));
    zk["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["zk"]}]}}]}});
    assert_eq!(kinds(&answer(&[zk])), ["small"; 3], "no two on a node");
    let cassandra = set("StatefulSet", "cassandra", 3, &json!({"cpu": "500m", "memory": "1Gi"}));
    assert_eq!(answer(&[cassandra]), ["small in a: cassandra-0 cassandra-1 cassandra-2"]);
}

fn with_claim(name: &str, claim: &str) -> Value {
    pod(name, json!({"volumes": [{"name": "storage", "persistentVolumeClaim": {"claimName": claim}}]}))
}

fn claim(name: &str, class: &str, volume: Option<&str>) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": "3Gi"}}});
    let mut meta = json!({"name": name, "namespace": "default"});
    if let Some(volume) = volume {
        spec["volumeName"] = json!(volume);
        meta["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})
}

fn volume(name: &str, class: &str, affinity: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "hostPath": {"path": "/mnt/data"}, "nodeAffinity": affinity}})
}

fn in_zone(zone: &str) -> Value {
    json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": ZONE, "operator": "In", "values": [zone]}]}]}})
}

/// tasks/configure-pod-container/configure-persistent-volume-storage; concepts/storage/persistent-volumes, .../volumes
#[test]
fn volumes_by_claim() {
    let manual = [
        claim("task-pv-claim", "manual", Some("task-pv-volume")),
        volume("task-pv-volume", "manual", json!(null)),
    ];
    let with = |objects: &[Value], pod: Value| answer(&[objects, &[pod]].concat());
    assert_eq!(with(&manual, with_claim("task-pv-pod", "task-pv-claim")), ["small in a: task-pv-pod"]);
    let zonal = [claim("task-pv-claim", "manual", Some("v")), volume("v", "manual", in_zone("c"))];
    assert_eq!(with(&zonal, with_claim("task-pv-pod", "task-pv-claim")), ["small in c: task-pv-pod"]);
    assert_eq!(
        with(&[], with_claim("mypod", "myclaim")),
        ["left: mypod (VolumeUnusable)"],
        "there is no such claim"
    );
    let mut block = with_claim("pod-with-block-volume", "task-pv-claim");
    block["spec"]["containers"][0]["volumeDevices"] = json!([{"name": "storage", "devicePath": "/dev/xvda"}]);
    assert_eq!(with(&manual, block), ["small in a: pod-with-block-volume"]);
}

/// concepts/storage/persistent-volumes#binding, #reserving-a-persistentvolume
#[test]
fn volumes_and_claims_without_a_class_are_bound_at_once() {
    let free = volume("v", "", in_zone("c"));
    let mut kept = free.clone();
    kept["spec"]["claimRef"] = json!({"namespace": "default", "name": "c1"});
    let wanting = |name: &str| claim(name, "", None);
    let mut naming = wanting("c1");
    naming["spec"]["volumeName"] = json!("v");
    let user = with_claim("p", "c1");
    for (volume, claim) in [(&free, naming.clone()), (&kept, wanting("c1")), (&free, wanting("c1"))] {
        assert_eq!(answer(&[volume.clone(), claim, user.clone()]), ["small in c: p"]);
    }
    let mut stored = wanting("c1");
    stored["metadata"]["uid"] = json!("u");
    stored["status"] = json!({"phase": "Pending"});
    assert_eq!(answer(&[free.clone(), stored, user.clone()]), ["left: p (VolumePending)"]);
    let two = [free.clone(), wanting("c1"), wanting("c2"), user.clone(), with_claim("q", "c2")];
    assert_eq!(answer(&two), ["small in c: p", "left: q (VolumePending)"]);
    let mut small = free;
    small["spec"]["capacity"]["storage"] = json!("1Gi");
    assert_eq!(answer(&[small.clone(), wanting("c1"), user.clone()]), ["left: p (VolumePending)"]);
    assert_eq!(answer(&[small, naming, user]), ["left: p (VolumePending)"]);
}

/// concepts/storage/storage-classes, .../ephemeral-volumes
#[test]
fn volumes_that_are_made_where_their_pod_goes() {
    let class = |name: &str, topologies: Value| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "pd.csi.storage.gke.io", "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": topologies})
    };
    let only_b = json!([{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]);
    let claimed =
        [class("standard", only_b), claim("pvc", "standard", None), with_claim("restricted", "pvc")];
    assert_eq!(answer(&claimed), ["small in b: restricted"]);
    let nowhere = json!([{"matchLabelExpressions": [{"key": ZONE, "values": ["us-central-1a"]}]}]);
    let claimed =
        [class("standard", nowhere), claim("pvc", "standard", None), with_claim("restricted", "pvc")];
    assert_eq!(kinds(&answer(&claimed)), ["left: restricted (NoOfferingFits)"]);
    let my_app = pod(
        "my-app",
        json!({"volumes": [{"name": "scratch-volume", "ephemeral": {"volumeClaimTemplate": {
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "scratch-storage-class",
            "resources": {"requests": {"storage": "1Gi"}}}}}}]}),
    );
    assert_eq!(answer(&[class("scratch-storage-class", json!(null)), my_app]), ["small in a: my-app"]);
}

/// concepts/storage/volumes, .../ephemeral-volumes, .../projected-volumes
#[test]
fn volumes_that_every_node_has_and_disks_by_name() {
    let with = |name: &str, volume: Value| answer(&[pod(name, json!({"volumes": [volume]}))]);
    assert_eq!(
        with("test-pd", json!({"name": "cache", "emptyDir": {"sizeLimit": "500Mi"}})),
        ["small in a: test-pd"]
    );
    let host = json!({"name": "example", "hostPath": {"path": "/data/foo", "type": "Directory"}});
    assert_eq!(with("hostpath-example-linux", host), ["small in a: hostpath-example-linux"]);
    let inline = json!({"name": "my-csi-inline-vol", "csi": {"driver": "inline.storage.kubernetes.io",
        "volumeAttributes": {"foo": "bar"}}});
    assert_eq!(with("my-csi-app", inline), ["small in a: my-csi-app"]);
    let projected =
        json!({"name": "all-in-one", "projected": {"sources": [{"secret": {"name": "mysecret"}}]}});
    assert_eq!(with("volume-test", projected), ["small in a: volume-test"]);
    let disk =
        json!({"name": "test-volume", "awsElasticBlockStore": {"volumeID": "vol-1", "fsType": "ext4"}});
    assert_eq!(
        with("test-ebs", disk),
        ["left: test-ebs (UnmodelledRule)"],
        "which zone it is in, nobody says"
    );
}

/// concepts/workloads/pods/init-containers, .../sidecar-containers;
/// tasks/configure-pod-container/assign-pod-level-resources, .../quality-service-pod, .../extended-resource
#[test]
fn containers_of_all_sorts_and_resources_of_the_pod_as_a_whole() {
    let init =
        json!([{"name": "init-myservice", "image": "busybox"}, {"name": "init-mydb", "image": "busybox"}]);
    assert_eq!(answer(&[pod("myapp-pod", json!({"initContainers": init}))]), ["small in a: myapp-pod"]);
    let shipper = json!([{"name": "logshipper", "image": "alpine", "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "3"}}}]);
    let beside = json!({"initContainers": shipper, "containers": requests(&json!({"cpu": "1"}))});
    assert_eq!(answer(&[pod("myapp", beside)]), ["small in a: myapp"], "4 cores together");
    let mut sidecar = job("myjob", json!({}));
    sidecar["spec"]["template"]["spec"]["initContainers"] = json!([{"name": "logshipper", "image": "alpine",
        "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}]);
    assert_eq!(answer(&[sidecar]), ["large in a: myjob-0"], "3 cores and 2");

    let whole = |cpu: &str| {
        let container = |name: &str| json!({"name": name, "image": "x", "resources": {"requests": {"cpu": "0.5", "memory": "50Mi"}}});
        pod(
            "pod-resources-demo",
            json!({"resources": {"requests": {"cpu": cpu, "memory": "100Mi"}},
            "containers": [container("ctr-1"), container("ctr-2")]}),
        )
    };
    assert_eq!(answer(&[whole("1")]), ["small in a: pod-resources-demo"]);
    assert_eq!(answer(&[whole("5")]), ["large in a: pod-resources-demo"], "what the pod asks for counts");
    let qos = pod("qos-demo", containers(&json!({"memory": "200Mi", "cpu": "700m"})));
    assert_eq!(answer(&[qos]), ["small in a: qos-demo"]);
    let mut dongles = node("n", "a", json!({}));
    dongles["status"]["allocatable"]["example.com/dongle"] = json!("4");
    let two = |name: &str| pod(name, containers(&json!({"example.com/dongle": "3"})));
    let lines = answer(&[dongles, two("extended-resource-demo"), two("extended-resource-demo-2")]);
    assert_eq!(
        lines,
        ["node `n`: extended-resource-demo", "left: extended-resource-demo-2 (NoOfferingFits)"]
    );
}

/// concepts/containers/runtime-class, concepts/scheduling-eviction/pod-overhead
#[test]
fn a_runtime_class_takes_its_part() {
    let class = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata-fc"},
        "handler": "kata-fc", "overhead": {"podFixed": {"memory": "120Mi", "cpu": "250m"}}});
    let of = |name: &str, cpu: &str| json!({"name": name, "image": "x", "resources": {"limits": {"cpu": cpu, "memory": "100Mi"}}});
    let test = pod(
        "test-pod",
        json!({"runtimeClassName": "kata-fc",
        "containers": [of("busybox-ctr", "500m"), of("nginx-ctr", "1500m")]}),
    );
    let there = |cpu: &str| {
        let mut node = node("n", "a", json!({}));
        node["status"]["allocatable"]["cpu"] = json!(cpu);
        node
    };
    assert_eq!(
        answer(&[class.clone(), test.clone(), there("2250m")]),
        ["node `n`: test-pod"],
        "2250m, as the page says"
    );
    assert_eq!(answer(&[class, test, there("2249m")]), ["small in a: test-pod"]);
}

/// tasks/manage-gpus/scheduling-gpus, tasks/manage-hugepages/scheduling-hugepages;
/// concepts/scheduling-eviction/dynamic-resource-allocation
#[test]
fn devices_and_huge_pages() {
    let vendor = pod("example-vector-add", containers(&json!({"gpu-vendor.example/example-gpu": 1})));
    assert_eq!(answer(&[vendor]), ["left: example-vector-add (NoOfferingFits)"], "nobody sells that");
    let memory =
        json!([{"key": "gpu.gpu-vendor.example/installed-memory", "operator": "Gt", "values": ["40535"]}]);
    let affinity = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": memory}]}}}});
    assert_eq!(answer(&[pod("by-memory", affinity)]), ["left: by-memory (NoOfferingFits)"]);
    let gigantic = pod("huge-pages-example", containers(&json!({"hugepages-1Gi": "2Gi", "memory": "100Mi"})));
    assert_eq!(answer(&[gigantic]), ["left: huge-pages-example (NoOfferingFits)"]);
    let claims = json!({"resourceClaims": [{"name": "cat-0", "resourceClaimTemplateName": "large-black-cat-claim-template"}]});
    assert_eq!(answer(&[pod("pod0", claims)]), ["left: pod0 (UnmodelledRule)"]);
    let windows = json!({"os": {"name": "windows"}, "nodeSelector": {"kubernetes.io/os": "windows"}});
    assert_eq!(answer(&[pod("windows", windows)]), ["left: windows (UnmodelledRule)"]);
}

/// concepts/scheduling-eviction/pod-priority-preemption, .../pod-scheduling-readiness; reference/labels-annotations-taints
#[test]
fn priorities_and_gates() {
    let important = json!({"priorityClassName": "high-priority", "priority": 1_000_000});
    assert_eq!(answer(&[pod("nginx", important)]), ["small in a: nginx"]);
    // The node has room for one of two pods; the one with the higher priority gets it.
    let room = node("n", "a", json!({}));
    let asking = |name: &str, class: &str| {
        pod(name, json!({"priorityClassName": class, "containers": requests(&json!({"cpu": "2"}))}))
    };
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "important"},
        "value": 1000});
    let lines = answer(&[room, class, asking("low", ""), asking("high", "important")]);
    assert_eq!(lines, ["small in a: low", "node `n`: high"]);
    let gates = |left: Value| answer(&[pod("test-pod", json!({"schedulingGates": left}))]);
    assert_eq!(
        gates(json!([{"name": "example.com/foo"}, {"name": "example.com/bar"}])),
        ["left: test-pod (SchedulingGated)"]
    );
    assert_eq!(gates(json!([])), ["small in a: test-pod"]);
}

/// concepts/scheduling-eviction/taint-and-toleration, concepts/workloads/controllers/daemonset
#[test]
fn tolerations_for_a_time_and_daemonsets_on_their_nodes() {
    let mut tainted = node("n", "a", json!({}));
    tainted["spec"] = json!({"taints": [{"key": "example.com/maintenance", "effect": "NoExecute"}]});
    let patient = json!({"tolerations": [{"key": "example.com/maintenance", "operator": "Exists",
        "effect": "NoExecute", "tolerationSeconds": 6000}]});
    assert_eq!(answer(&[tainted.clone(), pod("patient", patient)]), ["node `n`: patient"]);
    assert_eq!(answer(&[tainted, pod("other", json!({}))]), ["small in a: other"]);
    let elsewhere = workload(
        "apps/v1",
        "DaemonSet",
        "ssd-driver",
        json!({"selector": {"matchLabels": {"app": "d"}}}),
        &json!({"app": "d"}),
        &json!({"nodeSelector": {"disktype": "hdd"}, "containers": requests(&json!({"cpu": "2"}))}),
    );
    let large = pod("p", containers(&json!({"cpu": "4"})));
    assert_eq!(answer(&[elsewhere, large]), ["small in a: p"], "it does not land on nodes of the pool");
}

fn affinity(kind: &str, term: Value) -> Value {
    let mut term = term;
    term["topologyKey"] = json!(ZONE);
    json!({kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
}

fn labelled(mut pod: Value, labels: Value) -> Value {
    pod["metadata"]["labels"] = labels;
    pod
}

/// concepts/scheduling-eviction/assign-pod-node
#[test]
fn pod_affinity_with_all_its_fields() {
    let full = requests(&json!({"cpu": "3"}));
    let there = node("n", "b", json!({}));
    // matchLabelKeys: pods of an older roll-out do not attract the new ones.
    let same = json!({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["database"]}]},
        "matchLabelKeys": ["pod-template-hash"]});
    let database = |name: &str, hash: &str, spec: Value| {
        labelled(pod(name, spec), json!({"app": "database", "pod-template-hash": hash}))
    };
    let server = |hash: &str| {
        database(
            "application-server",
            hash,
            json!({"affinity": affinity("podAffinity", same.clone()), "containers": full}),
        )
    };
    let running_there = database("old", "1", json!({"nodeName": "n"}));
    assert_eq!(
        answer(&[there.clone(), running_there.clone(), server("1")]),
        ["small in b: application-server"]
    );
    assert_eq!(
        answer(&[there.clone(), running_there, server("2")]),
        ["small in a: application-server"],
        "the first of its own"
    );
    // mismatchLabelKeys: pods of other tenants are excluded.
    let apart = json!({"labelSelector": {"matchExpressions": [{"key": "tenant", "operator": "Exists"}]},
        "mismatchLabelKeys": ["tenant"]});
    let tenant = |name: &str, tenant: &str, spec: Value| labelled(pod(name, spec), json!({"tenant": tenant}));
    let mut a = node("m", "a", json!({}));
    a["status"]["allocatable"]["cpu"] = json!("1");
    let other = tenant("theirs", "tenant-b", json!({"nodeName": "m"}));
    let ours = |of: &str| {
        tenant(
            "example-pod",
            of,
            json!({"affinity": affinity("podAntiAffinity", apart.clone()), "containers": full}),
        )
    };
    assert_eq!(answer(&[a.clone(), other.clone(), ours("tenant-a")]), ["small in b: example-pod"]);
    assert_eq!(answer(&[a, other, ours("tenant-b")]), ["small in a: example-pod"]);
    // namespaceSelector: selects pods of namespaces with a label.
    let team = |name: &str, team: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}});
    let chosen = json!({"labelSelector": {"matchLabels": {"app": "store"}}, "namespaceSelector": {"matchLabels": {"team": "backend"}}});
    let mut store = labelled(running("store", "n"), json!({"app": "store"}));
    store["metadata"]["namespace"] = json!("shops");
    let near = pod("near", json!({"affinity": affinity("podAffinity", chosen), "containers": full}));
    assert_eq!(
        answer(&[there.clone(), team("shops", "backend"), store.clone(), near.clone()]),
        ["small in b: near"]
    );
    assert_eq!(answer(&[there, team("shops", "frontend"), store, near]), ["left: near (TopologyRule)"]);
}

/// concepts/scheduling-eviction/topology-spread-constraints
#[test]
fn topology_spread_with_all_its_fields() {
    let full = json!({"cpu": "3"});
    let spread = |fields: Value| {
        let mut one = json!({"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "spread"}}});
        for (field, value) in fields.as_object().expect("fields") {
            one[field] = value.clone();
        }
        json!([one])
    };
    let of = |name: &str, hash: &str, spec: Value| {
        labelled(pod(name, spec), json!({"app": "spread", "pod-template-hash": hash}))
    };
    // minDomains: with fewer zones than that, an empty zone is counted too.
    let three: Vec<Value> = ["one", "two", "three"]
        .map(|name| of(name, "1", json!({"topologySpreadConstraints": spread(json!({"minDomains": 3})), "containers": requests(&full)})))
        .into();
    let lines = answer(&three);
    let zones: Vec<&str> = lines.iter().filter_map(|line| line.split([' ', ':']).nth(2)).collect();
    assert_eq!(zones, ["a", "b", "c"], "{lines:?}");
    // matchLabelKeys: pods of an older roll-out do not count.
    let there = node("n", "a", json!({}));
    let old = of("old", "1", json!({"nodeName": "n"}));
    let keys = spread(json!({"matchLabelKeys": ["pod-template-hash"]}));
    let new = |hash: &str| {
        of("new", hash, json!({"topologySpreadConstraints": keys, "containers": requests(&full)}))
    };
    assert_eq!(answer(&[there.clone(), old.clone(), new("2")]), ["small in a: new"]);
    assert_ne!(
        answer(&[there.clone(), old.clone(), new("1")]),
        ["small in a: new"],
        "zone a has one already"
    );
    // nodeAffinityPolicy: with Ignore, a zone that the pod may not use counts too, so the pod cannot be placed.
    let bound_to_a = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]}}});
    let policy = |policy: &str| {
        let spec = json!({"topologySpreadConstraints": spread(json!({"nodeAffinityPolicy": policy})),
            "affinity": bound_to_a, "containers": requests(&full)});
        answer(&[there.clone(), node("m", "b", json!({})), old.clone(), of("new", "2", spec)])
    };
    assert_eq!(policy("Honor"), ["small in a: new"], "only zone a counts");
    assert_eq!(policy("Ignore"), ["left: new (TopologyRule)"]);
    // nodeTaintsPolicy: with Honor, a tainted zone does not count.
    let mut tainted = node("m", "b", json!({}));
    tainted["spec"] = json!({"taints": [{"key": "key1", "value": "value1", "effect": "NoSchedule"}]});
    let honoured = of(
        "new",
        "2",
        json!({"topologySpreadConstraints": spread(json!({"nodeTaintsPolicy": "Honor"})),
        "affinity": bound_to_a, "containers": requests(&full)}),
    );
    assert_eq!(answer(&[there, tainted, old, honoured]), ["small in a: new"]);
}

/// https://jobset.sigs.k8s.io/docs/overview
#[test]
fn a_job_set_is_all_its_jobs() {
    let of = |name: &str, replicas: u32, parallel: u32| {
        let spec = json!({"parallelism": parallel, "completions": parallel, "backoffLimit": 0});
        json!({"name": name, "replicas": replicas, "template": {"spec": job("unused", spec)["spec"]}})
    };
    let set = |suspend: bool| {
        json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "multi-replicatedjobs"},
            "spec": {"suspend": suspend, "replicatedJobs": [of("leader", 1, 1), of("workers", 2, 2)]}})
    };
    let lines = answer(&[set(false)]);
    assert_eq!(
        lines,
        [
            "large in a: multi-replicatedjobs-leader-0-0 multi-replicatedjobs-workers-0-0 multi-replicatedjobs-workers-0-1 multi-replicatedjobs-workers-1-0 multi-replicatedjobs-workers-1-1"
        ],
        "five of three cores on one node, cheaper than on five small ones"
    );
    assert_eq!(answer(&[set(true)]), [""; 0]);
}
