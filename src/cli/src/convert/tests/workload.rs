//! Tests of the conversion of workloads and buffers.

use serde_json::{Value, json};

use super::super::{Conversion, Outcome, convert};
use crate::source::Source;

pub(super) fn of(objects: &[Value]) -> Conversion {
    let text = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let converted = convert(&[Source { name: "file.yaml".to_owned(), text }]);
    assert_eq!(converted.problems, []);
    converted
}

pub(super) fn deployment(spec: Value) -> Value {
    let mut spec = spec;
    spec["containers"] =
        json!([{"name": "a", "resources": {"requests": {"cpu": "2", "nvidia.com/gpu": "1"}}}]);
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": 10, "template": {"metadata": {}, "spec": spec}}, "status": {"replicas": 10}})
}

/// Returns the pod spec of the one workload that changed, and the notes as outcome and sentence.
pub(super) fn pod(spec: Value) -> (Value, Vec<(Outcome, String)>) {
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
    let (pod, notes) = pod(json!({"nodeSelector": {"karpenter.k8s.aws/instance-category": "p"}}));
    assert_eq!(pod["nodeSelector"], Value::Null);
    let terms = &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let expression = &terms["nodeSelectorTerms"][0]["matchExpressions"][0];
    assert_eq!(expression["key"], "poolwright.dev/instance-family");
    let families = expression["values"].as_array().unwrap();
    assert!(families.contains(&json!("p5")) && !families.contains(&json!("g5")), "{families:?}");
    let said = &notes[0].1;
    assert!(said.contains("lists the families of AWS that it allows in the built-in catalogue"), "{said}");
    assert!(said.ends_with("No others match until you add them."), "{said}");
}

/// Returns a pod spec that requires these expressions.
pub(super) fn requiring(expressions: &Value) -> Value {
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": expressions}]});
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
}

/// Returns the expressions of the first term that a pod spec requires.
pub(super) fn required(pod: &Value) -> &Value {
    let required = &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    &required["nodeSelectorTerms"][0]["matchExpressions"]
}

#[test]
fn an_expression_on_a_part_of_the_type_says_that_its_list_is_of_the_built_in_catalogue() {
    let excluded =
        json!([{"key": "karpenter.k8s.aws/instance-category", "operator": "NotIn", "values": ["p"]}]);
    let (pod, notes) = pod(requiring(&excluded));
    assert_eq!(required(&pod)[0]["operator"], "NotIn");
    let said = &notes[0].1;
    assert!(said.contains("that it excludes in the built-in catalogue"), "{said}");
    assert!(said.ends_with("It excludes no others until you add them."), "{said}");
}

#[test]
fn a_bound_of_zero_vcpus_stays_one_that_every_node_meets_and_the_numbers_are_explained() {
    let bound = |operator: &str, value: &str| {
        let cpu = json!([{"key": "karpenter.k8s.aws/instance-cpu", "operator": operator, "values": [value]}]);
        let (pod, notes) = pod(requiring(&cpu));
        (required(&pod)[0].clone(), notes[0].1.clone())
    };
    let key = "poolwright.dev/instance-cpu";
    assert_eq!(bound("Gt", "0").0, json!({"key": key, "operator": "Exists"}));
    assert_eq!(bound("Lt", "0").0, json!({"key": key, "operator": "Lt", "values": ["0"]}));
    let (eight, said) = bound("In", "8");
    assert_eq!(eight, json!({"key": key, "operator": "In", "values": ["7"]}));
    assert!(said.contains("If the node class reserves more, lower the numbers further."), "{said}");
}

#[test]
fn what_all_nodes_meet_is_left_out_of_pods_as_it_is_of_pools() {
    let key = "karpenter.k8s.aws/instance-gpu-manufacturer";
    let not_amd = json!({"key": key, "operator": "NotIn", "values": ["amd"]});
    let sentence = format!("Left out: Poolwright has no `{key}`. Poolwright buys NVIDIA GPUs only.");
    let (alone, notes) = pod(requiring(&json!([not_amd])));
    assert_eq!(alone["affinity"], Value::Null, "an empty term would match no node");
    assert_eq!(notes, [(Outcome::Changed, sentence)]);
    let team = json!({"key": "team", "operator": "In", "values": ["ml"]});
    let (with_another, _) = pod(requiring(&json!([not_amd, team])));
    assert_eq!(*required(&with_another), json!([team]));
    let preferring = json!([{"weight": 1, "preference": {"matchExpressions": [not_amd]}},
        {"weight": 2, "preference": {"matchExpressions": [team]}}]);
    let preferred = json!({"preferredDuringSchedulingIgnoredDuringExecution": preferring});
    let (preferring, _) = pod(json!({"affinity": {"nodeAffinity": preferred}}));
    let left = &preferring["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(*left, json!([{"weight": 2, "preference": {"matchExpressions": [team]}}]));
    let tenancy = "karpenter.k8s.aws/instance-tenancy";
    let (dedicated, notes) = pod(json!({"nodeSelector": {tenancy: "dedicated"}}));
    assert_eq!(dedicated["nodeSelector"], json!({tenancy: "dedicated"}));
    assert_eq!(notes[0].0, Outcome::NotPossible);
}

#[test]
fn pods_for_all_nodes_of_karpenter_stay_off_other_nodes() {
    let any_pool = json!({"key": "poolwright.dev/nodepool", "operator": "Exists"});
    for (key, value) in [
        ("karpenter.sh/registered", "true"),
        ("karpenter.sh/initialized", "true"),
        ("eks.amazonaws.com/compute-type", "auto"),
        ("karpenter.k8s.aws/instance-tenancy", "default"),
    ] {
        let (selecting, notes) = pod(json!({"nodeSelector": {key: value}}));
        assert_eq!(selecting["nodeSelector"], Value::Null, "{key}");
        assert_eq!(*required(&selecting), json!([any_pool]), "{key}");
        assert_eq!(notes[0].0, Outcome::Changed, "{key}");
    }
    let registered = json!({"key": "karpenter.sh/registered", "operator": "In", "values": ["true"]});
    let managed = json!({"key": "eks.amazonaws.com/nodegroup", "operator": "Exists"});
    let terms = json!([{"matchExpressions": [registered]}, {"matchExpressions": [managed]}]);
    let either = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    let (either, _) = pod(json!({"affinity": {"nodeAffinity": either}}));
    assert_eq!(*required(&either), json!([any_pool]));
    let terms = &either["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(terms["nodeSelectorTerms"][1]["matchExpressions"], json!([managed]));
}

#[test]
fn a_bound_on_memory_in_a_pod_becomes_the_shorter_list_of_types_as_in_a_pool() {
    let memory = |operator: &str, value: &str| {
        let one =
            json!({"key": "karpenter.k8s.aws/instance-memory", "operator": operator, "values": [value]});
        let (pod, notes) = pod(requiring(&json!([one])));
        assert_eq!(notes[0].0, Outcome::Changed, "{operator} {value}: {notes:?}");
        required(&pod)[0].clone()
    };
    let most = memory("Gt", "8192");
    assert_eq!(
        (&most["key"], &most["operator"]),
        (&json!("node.kubernetes.io/instance-type"), &json!("NotIn"))
    );
    let few = memory("Lt", "16385");
    assert_eq!(few["operator"], "In");
    assert!(few["values"].as_array().unwrap().contains(&json!("g5.xlarge")), "{few}");
    assert_eq!(
        memory("Gt", "1")["key"],
        "poolwright.dev/nodepool",
        "all types meet it, and other nodes do not"
    );
}

#[test]
fn an_empty_term_still_matches_no_node_when_a_selector_becomes_an_affinity() {
    let (pod, _) = pod(json!({
        "nodeSelector": {"karpenter.k8s.aws/instance-category": "g"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {}, {"matchExpressions": [{"key": "team", "operator": "In", "values": ["ml"]}]}]}}}
    }));
    let required = &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = &required["nodeSelectorTerms"];
    assert_eq!(terms[0], json!({}));
    assert_eq!(terms[1]["matchExpressions"].as_array().map(Vec::len), Some(2), "{terms}");
}

#[test]
fn a_selector_by_memory_becomes_the_names_of_the_types_that_have_it() {
    let (selecting, notes) = pod(json!({"nodeSelector": {"karpenter.k8s.aws/instance-memory": "65536"}}));
    let expression = &required(&selecting)[0];
    assert_eq!(expression["key"], "node.kubernetes.io/instance-type");
    let types = expression["values"].as_array().unwrap();
    assert!(types.contains(&json!("g5.4xlarge")) && !types.contains(&json!("g5.xlarge")), "{types:?}");
    assert_eq!(notes[0].0, Outcome::Changed);
}

#[test]
fn a_selector_by_the_cpu_manufacturer_becomes_the_names_of_the_families_with_its_processors() {
    let selector = json!({"karpenter.k8s.aws/instance-cpu-manufacturer": "intel"});
    let (selecting, notes) = pod(json!({"nodeSelector": selector}));
    let expression = &required(&selecting)[0];
    assert_eq!(expression["key"], "poolwright.dev/instance-family");
    let families = expression["values"].as_array().unwrap();
    assert!(families.contains(&json!("m6i")) && !families.contains(&json!("m6a")), "{families:?}");
    assert!(notes[0].1.contains("It lists the families of AWS that it allows"), "{}", notes[0].1);
}

#[test]
fn a_misspelt_value_or_label_in_a_pod_gets_a_hint() {
    let (_, notes) = pod(json!({"nodeSelector": {"karpenter.k8s.aws/instance-family": "g5x"}}));
    assert!(notes[0].1.contains("The built-in catalogue has no `g5x` of AWS"), "{}", notes[0].1);
    let (_, notes) = pod(json!({"nodeSelector": {"karpenter.k8s.aws/instance-categroy": "g"}}));
    assert!(notes[0].1.ends_with("Did you mean `karpenter.k8s.aws/instance-category`?"), "{}", notes[0].1);
}

#[test]
fn a_label_without_counterpart_stays_and_its_note_says_what_to_do() {
    let spec = json!({"nodeSelector": {"karpenter.k8s.aws/instance-hypervisor": "kvm"}});
    let (converted, notes) = pod(spec);
    assert_eq!(converted["nodeSelector"], json!({"karpenter.k8s.aws/instance-hypervisor": "kvm"}));
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
fn a_pod_that_excludes_nodes_by_a_label_that_poolwright_does_not_know_learns_that_it_excludes_none() {
    for (key, value) in
        [("karpenter.k8s.aws/placement-group-partition", "3"), ("topology.k8s.aws/zone-id", "use1-az1")]
    {
        let excluded = json!([{"key": key, "operator": "NotIn", "values": [value]}]);
        let (converted, notes) = pod(requiring(&excluded));
        assert_eq!(*required(&converted), excluded, "{key}");
        let (outcome, said) = &notes[0];
        assert_eq!(*outcome, Outcome::NotPossible, "{said}");
        assert!(said.contains("this rule excludes no node of Poolwright"), "{said}");
    }
    let nothing: [(&str, &str, &[&str]); 4] = [
        ("eks.amazonaws.com/compute-type", "NotIn", &["fargate"]),
        ("eks.amazonaws.com/nodegroup", "DoesNotExist", &[]),
        ("cloud.google.com/gke-spot", "NotIn", &["true"]),
        ("node.kubernetes.io/windows-build", "DoesNotExist", &[]),
    ];
    for (key, operator, values) in nothing {
        let (_, notes) = pod(requiring(&json!([{"key": key, "operator": operator, "values": values}])));
        assert_eq!(notes[0].1, "It uses nothing of Karpenter. Apply it unchanged.", "{key}");
    }
}

#[test]
fn a_pod_for_nodes_that_a_service_does_not_buy_keeps_its_selector() {
    let key = "eks.amazonaws.com/compute-type";
    for value in ["hybrid", "fargate"] {
        let (selecting, notes) = pod(json!({"nodeSelector": {key: value}}));
        assert_eq!(selecting["nodeSelector"], json!({key: value}));
        assert_eq!(notes[0].0, Outcome::NotPossible, "{notes:?}");
    }
    let (ready, notes) = pod(json!({"nodeSelector": {"karpenter.sh/initialized": "true"}}));
    assert_eq!((&ready["nodeSelector"], notes[0].0), (&Value::Null, Outcome::Changed));
    let others = json!([{"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "NotIn", "values": ["amd"]}]);
    let (any, notes) = pod(requiring(&others));
    assert_eq!((&any["affinity"], notes[0].0), (&Value::Null, Outcome::Changed));
}

#[test]
fn terms_that_are_left_out_because_all_nodes_meet_another_have_one_note_each() {
    let terms = json!({"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "NotIn",
            "values": ["amd"]}]},
        {"matchExpressions": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
            {"key": "karpenter.k8s.aws/instance-hypervisor", "operator": "In", "values": ["nitro"]}]}]});
    let required = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    let (converted, notes) = pod(json!({"affinity": required}));
    assert_eq!(converted["affinity"], Value::Null);
    let outcomes: Vec<Outcome> = notes.iter().map(|(outcome, _)| *outcome).collect();
    assert_eq!(outcomes, [Outcome::Changed, Outcome::Changed], "{notes:?}");
    assert!(notes[1].1.contains("meet another term"), "{notes:?}");
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
fn an_annotation_of_pods_on_another_object_is_not_possible_and_one_in_the_template_is_kept() {
    let annotations = json!({"karpenter.sh/do-not-disrupt": "true"});
    let mut on_the_object = deployment(json!({}));
    on_the_object["metadata"]["annotations"] = annotations.clone();
    let converted = of(&[on_the_object]);
    let note = &converted.notes[0];
    assert_eq!(
        (note.outcome, note.field.as_str()),
        (Outcome::NotPossible, "metadata.annotations[\"karpenter.sh/do-not-disrupt\"]")
    );
    assert!(note.sentence.ends_with("write it in the pod template."), "{}", note.sentence);
    assert_eq!(converted.workloads.len(), 1);
    let mut in_the_template = deployment(json!({}));
    in_the_template["spec"]["template"]["metadata"]["annotations"] = annotations;
    let converted = of(&[in_the_template]);
    assert_eq!((converted.notes.len(), converted.notes[0].outcome), (1, Outcome::Kept));
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
    for (mut spec, units) in [
        (json!({"replicas": 4, "percentage": 20}), 2),
        (json!({"replicas": 4, "percentage": 90}), 4),
        (json!({"limits": {"cpu": "9"}}), 4),
        (json!({"limits": {"cpu": 9, "nvidia.com/gpu": "3", "memory": "1Gi"}}), 3),
        (json!({"replicas": 5, "limits": {"cpu": "4500m"}}), 2),
        (json!({"replicas": 1, "limits": {"cpu": "9"}}), 1),
    ] {
        spec["scalableRef"] = of_web.clone();
        let said = said(spec);
        assert!(said.contains(&format!("{{units: {units}, ")), "{said}");
    }
    let unbounded = said(json!({"scalableRef": of_web, "limits": {"memory": "1Gi"}}));
    assert!(unbounded.contains("give the number of pods"), "{unbounded}");
    let none = said(json!({"scalableRef": of_web, "limits": {"cpu": "1"}}));
    assert!(none.contains("Write no `buffer`"), "{none}");
    let many = said(json!({"scalableRef": of_web, "limits": {"cpu": "1000"}}));
    assert!(many.contains("500 pods of {cpu: 2, nvidia.com/gpu: 1}"), "{many}");
}
