//! Tests of the conversion of workloads and buffers.

use serde_json::{Value, json};

use super::{Conversion, Outcome, convert};
use crate::source::Source;

fn of(objects: &[Value]) -> Conversion {
    let text = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let converted = convert(&[Source { name: "file.yaml".to_owned(), text }]);
    assert_eq!(converted.problems, []);
    converted
}

fn deployment(spec: Value) -> Value {
    let mut spec = spec;
    spec["containers"] =
        json!([{"name": "a", "resources": {"requests": {"cpu": "2", "nvidia.com/gpu": "1"}}}]);
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": 10, "template": {"metadata": {}, "spec": spec}}, "status": {"replicas": 10}})
}

/// Returns the pod spec of the one workload that changed, and the notes as outcome and sentence.
fn pod(spec: Value) -> (Value, Vec<(Outcome, String)>) {
    let converted = of(&[deployment(spec)]);
    let notes = converted.notes.into_iter().map(|note| (note.outcome, note.sentence)).collect();
    let pod = converted.workloads.first().map_or(Value::Null, |one| one["spec"]["template"]["spec"].clone());
    (pod, notes)
}

#[test]
fn labels_of_karpenter_in_pods_become_ours_wherever_they_select_nodes() {
    let term = json!({"labelSelector": {}, "topologyKey": "karpenter.sh/nodepool"});
    let (pod, notes) = pod(json!({
        "nodeSelector": {"karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "gpu", "team": "ml",
            "topology.kubernetes.io/zone": "us-east-1a"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["h100"]},
                    {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["7"]},
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [
                    {"key": "karpenter.sh/capacity-type", "operator": "NotIn", "values": ["spot"]}]}}]},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "topologySpreadConstraints": [
            {"topologyKey": "karpenter.sh/capacity-type", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
            {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
        "tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
            {"key": "nvidia.com/gpu", "operator": "Exists"}]
    }));
    assert_eq!(
        pod["nodeSelector"],
        json!({"poolwright.dev/capacity-type": "spot", "poolwright.dev/nodepool": "gpu", "team": "ml",
            "topology.kubernetes.io/zone": "us-east-1a"})
    );
    let affinity = &pod["affinity"]["nodeAffinity"];
    assert_eq!(
        affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]["matchExpressions"],
        json!([{"key": "poolwright.dev/gpu-model", "operator": "In", "values": ["h100"]},
            {"key": "poolwright.dev/instance-cpu", "operator": "Gt", "values": ["6"]},
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}])
    );
    assert_eq!(
        affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["preference"]["matchExpressions"][0]["key"],
        "poolwright.dev/capacity-type"
    );
    let anti = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(anti["topologyKey"], "poolwright.dev/nodepool");
    let keys: Vec<_> = [0, 1].map(|at| pod["topologySpreadConstraints"][at]["topologyKey"].clone()).into();
    assert_eq!(keys, ["poolwright.dev/capacity-type", "kubernetes.io/hostname"]);
    assert_eq!(
        pod["tolerations"],
        json!([{"key": "poolwright.dev/disrupted", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "nvidia.com/gpu", "operator": "Exists"}])
    );
    assert_eq!(notes.len(), 8, "{notes:#?}");
    assert!(notes.iter().all(|(outcome, _)| *outcome == Outcome::Changed), "{notes:#?}");
}

#[test]
fn a_selector_by_a_part_of_the_type_becomes_an_affinity_with_the_names() {
    let (pod, _) = pod(json!({"nodeSelector": {"karpenter.k8s.aws/instance-category": "p"}}));
    assert_eq!(pod["nodeSelector"], Value::Null);
    let terms = &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let expression = &terms["nodeSelectorTerms"][0]["matchExpressions"][0];
    assert_eq!(expression["key"], "poolwright.dev/instance-family");
    let families = expression["values"].as_array().unwrap();
    assert!(families.contains(&json!("p5")) && !families.contains(&json!("g5")), "{families:?}");
}

#[test]
fn a_label_without_counterpart_stays_and_its_note_says_what_to_do() {
    let spec = json!({"nodeSelector": {"karpenter.k8s.aws/instance-hypervisor": "nitro"}});
    let (converted, notes) = pod(spec);
    assert_eq!(converted, Value::Null);
    assert_eq!(notes[0].0, Outcome::NotPossible);
    assert!(
        notes[0].1.starts_with(
            "It stays as it is: Poolwright has no `karpenter.k8s.aws/instance-hypervisor`. Name "
        )
    );
    let excluded =
        json!([{"key": "eks.amazonaws.com/compute-type", "operator": "NotIn", "values": ["fargate"]}]);
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": excluded}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    let (_, notes) = pod(json!({"affinity": affinity}));
    assert_eq!(notes[0].1, "It uses nothing of Karpenter. Apply it unchanged.");
}

#[test]
fn a_changed_workload_is_printed_as_a_new_object_and_two_of_one_name_may_be_in_two_namespaces() {
    let mut first = deployment(json!({"nodeSelector": {"karpenter.sh/nodepool": "gpu"}}));
    let mut second = first.clone();
    first["metadata"]["namespace"] = json!("a");
    second["metadata"]["namespace"] = json!("b");
    let converted = of(&[first, second]);
    assert_eq!(converted.workloads.len(), 2);
    assert_eq!(converted.workloads[0]["metadata"], json!({"name": "web", "namespace": "a"}));
    assert_eq!(converted.workloads[0]["status"], Value::Null);
    let annotated = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p",
        "annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "spec": {"containers": [{"name": "a"}]}});
    let converted = of(&[annotated]);
    assert_eq!(converted.notes[0].sentence, "Poolwright reads this annotation of pods, too.");
    assert_eq!(converted.workloads, [] as [Value; 0]);
}

#[test]
fn a_capacity_buffer_becomes_an_entry_to_write_in_a_pool() {
    let buffer = |spec: Value| json!({"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": "b"}, "spec": spec});
    let said = |spec: Value| {
        let converted = of(&[buffer(spec), deployment(json!({}))]);
        converted.notes.into_iter().find(|note| note.object == "CapacityBuffer/b").unwrap().sentence
    };
    let of_web = json!({"apiGroup": "apps", "kind": "Deployment", "name": "web"});
    assert_eq!(
        said(json!({"scalableRef": of_web, "percentage": 25})),
        "Poolwright keeps free room by pool. Write `buffer: [{units: 3, requests: {cpu: 2, nvidia.com/gpu: 1}}]` in the NodePool that \
         its pods use (docs/nodepool.md)."
    );
    assert!(said(json!({"scalableRef": of_web, "replicas": 4})).contains("{units: 4, "));
    let missing = said(json!({"podTemplateRef": {"name": "t"}, "replicas": 4}));
    assert!(missing.contains("add PodTemplate `t` to the files"), "{missing}");
}
