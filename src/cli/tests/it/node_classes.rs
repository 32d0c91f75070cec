//! Tests that plans, explanations and simulations count the settings of node classes.

use serde_json::Value;

use crate::support::{plan, poolwright};

const OF_KARPENTER: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: runners}
spec:
  role: example-node
  amiSelectorTerms: [{alias: al2023@v20250317}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: example}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: example}}]
  kubelet: {maxPods: 20}
  blockDeviceMappings:
    - {deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 250Gi, volumeType: gp3, encrypted: true, deleteOnTermination: true}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: runners}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: runners}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m6i]}
";

/// The same class and pool as Poolwright's. `NAME` and `MORE` are replaced.
const CLASS: &str = "apiVersion: poolwright.dev/v1alpha1
kind: EC2NodeClass
metadata: {name: runners}
spec:
  role: example-node
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{id: subnet-1}]
  securityGroupSelectorTerms: [{id: sg-1}]
  MORE
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: runners}
spec:
  template:
    spec:
      nodeClassRef: {group: poolwright.dev, kind: EC2NodeClass, name: NAME}
      requirements:
        - {key: poolwright.dev/instance-family, operator: In, values: [m6i]}
        - {key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}
---
";

const PODS: &str = "apiVersion: v1
kind: Pod
metadata: {name: build, namespace: ci}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: '2', memory: 4Gi, ephemeral-storage: 180Gi}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tiny, namespace: ci}
spec:
  replicas: 50
  selector: {matchLabels: {app: tiny}}
  template:
    metadata: {labels: {app: tiny}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 10m, memory: 32Mi}}}]}
";

fn class(name: &str, more: &str) -> String {
    CLASS.replace("NAME", name).replace("MORE", more)
}

fn said(args: &[&str], stdin: &str) -> String {
    let output = poolwright(args, stdin);
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn notes(plan: &Value) -> String {
    plan["notes"].to_string()
}

#[test]
fn a_plan_for_a_converted_class_counts_its_disk_and_its_limit_of_pods() {
    let converted = poolwright(&["convert", "--all", "-f", "-"], OF_KARPENTER);
    let converted = String::from_utf8(converted.stdout).expect("text");
    let plan = plan(&["-f", "-"], &format!("{converted}\n---\n{PODS}"));
    assert_eq!(plan["pods"]["placed"], 51, "180 GiB fit the disk of the class: {plan}");
    let nodes = plan["nodes"].as_array().expect("nodes");
    let pods = |node: &Value| node["pods"].as_array().expect("pods").len();
    assert_eq!(nodes.len(), 3, "51 pods, and 20 on each node: {plan}");
    assert!(nodes.iter().all(|node| pods(node) <= 20), "{plan}");
    let notes = notes(&plan);
    assert!(
        notes.contains("EC2NodeClass `runners`: only AWS knows what its spec.subnetSelectorTerms, "),
        "{notes}"
    );
    assert!(!notes.contains("not in the files"), "{notes}");
}

#[test]
fn a_pod_that_needs_more_than_the_class_leaves_is_left_out_and_explained_so() {
    let small = class("runners", "blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}]");
    let input = format!("{small}{PODS}");
    let plan = plan(&["-f", "-"], &input);
    assert_eq!(plan["pods"]["unplaced"], 1, "{plan}");
    let explained = said(&["explain", "pod", "ci/build", "-f", "-"], &input);
    assert!(explained.contains("ephemeral-storage"), "{explained}");
}

#[test]
fn reserved_resources_change_the_node_that_is_bought() {
    let pod = "apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1900m, memory: 6Gi}}}]}
";
    let bought = |more: &str| {
        let plan = plan(&["-f", "-"], &format!("{}{pod}", class("runners", more)));
        plan["nodes"][0]["instanceType"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(bought("detailedMonitoring: true"), "m6i.large");
    for reserved in [
        "kubelet: {kubeReserved: {cpu: 200m}}",
        "kubelet: {systemReserved: {memory: 1500Mi}}",
        "kubelet: {evictionHard: {memory.available: 20%}}",
        "kubelet: {evictionHard: {memory.available: 1500Mi}}",
    ] {
        assert_eq!(bought(reserved), "m6i.xlarge", "{reserved}");
    }
}

#[test]
fn a_class_that_is_not_in_the_files_is_named_with_those_that_are() {
    let plan = plan(&["-f", "-"], &format!("{}{PODS}", class("runner", "detailedMonitoring: true")));
    assert_eq!(plan["pods"]["placed"], 0);
    let text = plan.to_string();
    let why = "EC2NodeClass `runner` is not in the files, which have EC2NodeClass `runners`; add it, or correct nodeClassRef";
    assert!(text.contains(why), "{text}");
}

#[test]
fn a_class_with_a_mistake_is_refused_with_the_field_and_what_to_write() {
    for (more, told) in [
        (
            "kubelet: {systemReserved: {memory: 1Gib}}",
            "EC2NodeClass runners: spec.kubelet.systemReserved.memory: `1Gib` has the unknown suffix",
        ),
        (
            "kubelet: {maxPod: 20}",
            "EC2NodeClass runners: spec.kubelet.maxPod: unknown field; did you mean `maxPods`?",
        ),
        ("blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100}}]", "EC2NodeClass runners"),
        ("blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: '100'}}]", "volumeSize"),
        ("instanceProfile: nodes", "set either role or instanceProfile"),
    ] {
        let output = poolwright(&["plan", "-f", "-"], &format!("{}{PODS}", class("runners", more)));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(told), "{more}: {text}");
    }
}

#[test]
fn an_ubuntu_class_with_an_array_of_local_disks_is_refused_before_it_launches_a_node() {
    let fields = "amiFamily: Ubuntu\n  instanceStorePolicy: RAID0";
    let ubuntu = class("runners", fields).replace("{alias: al2023@latest}", "{id: ami-1}");
    let why = "spec.instanceStorePolicy: the family Ubuntu does not support instanceStorePolicy; remove it";
    for command in [&["plan", "-f", "-"][..], &["explain", "pod", "ci/build", "-f", "-"]] {
        let output = poolwright(command, &format!("{ubuntu}{PODS}"));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(why), "{command:?}: {text}");
    }
    // A stored class sells nothing, as in the controller, and the pods say why.
    let stored = ubuntu.replacen("{name: runners}", "{name: runners, uid: u-1, resourceVersion: '7'}", 1);
    let explained = said(&["explain", "pod", "ci/build", "-f", "-"], &format!("{stored}{PODS}"));
    assert!(explained.contains(why), "{explained}");
}

#[test]
fn a_class_that_a_server_printed_counts_with_its_zones_and_is_not_refused_for_a_new_field() {
    let status = "newField: true
status:
  subnets: [{id: subnet-1, zone: us-east-1c}]
  securityGroups: [{id: sg-1}]
  images: [{id: ami-1, architecture: amd64}]";
    let stored = class("runners", status).replacen(
        "{name: runners}",
        "{name: runners, uid: 6d0f7a3e-0000-4000-8000-000000000001, resourceVersion: '7'}",
        1,
    );
    let plan = plan(&["-f", "-"], &format!("{stored}{PODS}").replace("180Gi", "1Gi"));
    for node in plan["nodes"].as_array().expect("nodes") {
        assert_eq!(node["zone"], "us-east-1c", "{plan}");
    }
    let notes = notes(&plan);
    assert!(notes.contains("spec.newField: this version does not know the field"), "{notes}");
    assert!(!notes.contains("only AWS knows"), "{notes}");
}

#[test]
fn bare_metal_is_mentioned_once_and_only_if_a_pool_or_a_pod_asks_for_it() {
    let by_family = class("runners", "").replace("[m6i]", "[g4dn]");
    let told = |pools: &str, pods: &str| {
        let notes = notes(&plan(&["-f", "-"], &format!("{pools}{pods}")));
        (notes.matches("does not sell").count(), notes)
    };
    assert_eq!(told(&by_family, PODS).0, 0);
    let family = "{key: poolwright.dev/instance-family, operator: In, values: [m6i]}";
    let metal = "{key: node.kubernetes.io/instance-type, operator: In, values: [g4dn.xlarge, g4dn.metal]}";
    let (count, notes) = told(&class("runners", "").replace(family, metal), PODS);
    let why = "EC2NodeClass `runners`: it does not sell g4dn.metal, asked for by NodePool runners: it is bare metal: ";
    assert!(count == 1 && notes.contains(why) && notes.contains("alsoInstanceTypes"), "{notes}");
    let pods = PODS.replace(
        "spec: {containers:",
        "spec: {nodeSelector: {node.kubernetes.io/instance-type: g4dn.metal}, containers:",
    );
    let (count, notes) = told(&by_family, &pods);
    assert!(count == 1 && notes.contains("g4dn.metal, asked for by Pod ci/build and 50 more: "), "{notes}");
}

#[test]
fn a_simulation_counts_the_settings_of_a_class() {
    let directory = std::env::temp_dir().join(format!("poolwright-classes-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let (pools, pods) = (directory.join("pools.yaml"), directory.join("pods.yaml"));
    std::fs::write(&pools, class("runners", "kubelet: {maxPods: 20}")).expect("written");
    let tiny = PODS.split("---\n").nth(1).expect("the deployment");
    std::fs::write(&pods, tiny).expect("written");
    let (pools, pods) = (pools.to_str().expect("a path"), pods.to_str().expect("a path"));
    let text = said(&["simulate", "--snapshot", pods, "--pools", pools, "--for", "1h", "-o", "json"], "");
    std::fs::remove_dir_all(&directory).expect("removed");
    let replay: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(replay["bought"][0]["nodes"], 3, "50 pods, and 20 on each node: {replay}");
}

#[test]
fn a_written_pool_beyond_the_bounds_of_its_resource_is_refused_before_anything_is_planned() {
    let pool = |field: &str| {
        format!(
            "apiVersion: poolwright.dev/v1alpha1\nkind: NodePool\nmetadata: {{name: gpu}}\nspec:\n  {field}\n  \
             template: {{spec: {{nodeClassRef: {{group: poolwright.dev, kind: KwokNodeClass, name: aws}}}}}}\n"
        )
    };
    for (field, path) in [
        ("weight: 500", "spec.weight"),
        ("replicas: 100000", "spec.replicas"),
        ("buffer: [{units: 2147483647, requests: {cpu: 1}}]", "spec.buffer"),
    ] {
        let output = crate::support::poolwright(&["plan", "-f", "-"], &pool(field));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{field}: {said}");
        assert!(said.contains(path) && said.contains("gpu"), "{field}: {said}");
    }
}

#[test]
fn claims_and_storage_classes_that_the_files_lack_are_assumed_and_named() {
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  serviceName: db\n  replicas: 2\n  \
               selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{image: x, name: db, \
               resources: {requests: {cpu: '1'}}}]}}\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: gp3, \
               accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n\
               spec: {containers: [{image: x, name: a}], volumes: [{name: v, persistentVolumeClaim: {claimName: mine}}]}\n";
    let plan = crate::support::plan(&["-f", "-"], set);
    assert_eq!(plan["pods"]["unplaced"], 0, "{plan}");
    let notes = plan["notes"].to_string();
    for part in [
        "StorageClass `gp3` is not among the files",
        "PersistentVolumeClaim default/mine is not among the files",
        " can attach is unknown; the plan applies no limit",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    let explained = said(&["explain", "pod", "default/p", "-f", "-"], set);
    assert!(explained.contains("Note: the number of volumes that "), "{explained}");
}

#[test]
fn a_resource_that_another_kind_of_class_adds_is_told_with_that_kind_and_its_setting() {
    let text = "apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {name: trial}
spec: {provider: aws}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: gpu}
spec: {template: {spec: {nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: trial}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec:
  containers:
    - {name: c, image: x, resources: {requests: {cpu: 1, vpc.amazonaws.com/efa: 1}, limits: {vpc.amazonaws.com/efa: 1}}}
";
    let left = plan(&["-f", "-"], text)["unplaced"][0]["message"].to_string();
    assert!(left.contains("use an EC2NodeClass with `spec.efa: Auto`"), "{left}");
    assert!(!left.contains("KwokNodeClass `trial` has a setting"), "{left}");
}

#[test]
fn a_class_of_another_cloud_is_no_remedy_for_small_disks() {
    let left = |provider: &str| {
        let text = format!(
            "{{apiVersion: poolwright.dev/v1alpha1, kind: KwokNodeClass, metadata: {{name: trial}}, spec: {{provider: {provider}}}}}\n---\n\
             {{apiVersion: poolwright.dev/v1alpha1, kind: NodePool, metadata: {{name: p}}, spec: {{template: {{spec: {{nodeClassRef: \
             {{group: poolwright.dev, kind: KwokNodeClass, name: trial}}}}}}}}}}\n---\n\
             {{apiVersion: v1, kind: Pod, metadata: {{name: w}}, spec: {{containers: [{{image: x, name: c, resources: {{requests: \
             {{cpu: 1, ephemeral-storage: 90Ti}}}}}}]}}}}\n"
        );
        plan(&["-f", "-"], &text)["unplaced"][0]["message"].to_string()
    };
    let (aws, gcp) = (left("aws"), left("gcp"));
    assert!(aws.contains("use an EC2NodeClass with larger disks"), "{aws}");
    assert!(gcp.contains("have at most") && !gcp.contains("EC2NodeClass"), "{gcp}");
}
