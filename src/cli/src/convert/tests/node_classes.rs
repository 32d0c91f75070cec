//! References to node classes, and node classes that are not converted.

use serde_json::json;

use super::super::{Conversion, Outcome};
use super::{note, of, only, pool, template};

fn referring(group: &str, kind: &str) -> Conversion {
    of(&pool(|pool| {
        template(pool)["nodeClassRef"] = json!({"group": group, "kind": kind, "name": "default"});
    }))
}

#[test]
fn a_pool_of_a_managed_service_names_the_node_class_to_write() {
    let converted = referring("eks.amazonaws.com", "NodeClass");
    let class = &only(&converted).spec.template.spec.node_class_ref;
    assert_eq!((class.kind.as_str(), class.name.as_str()), ("EC2NodeClass", "default"));
    let kind = note(&converted, "spec.template.spec.nodeClassRef.kind");
    assert_eq!(kind.outcome, Outcome::Changed);
    assert!(kind.sentence.contains("Write an EC2NodeClass of this name"), "{}", kind.sentence);
    let group = &note(&converted, "spec.template.spec.nodeClassRef.group").sentence;
    assert!(
        group.contains("--aws-cluster") && group.contains("a KwokNodeClass with `provider: aws`"),
        "{group}"
    );
}

#[test]
fn a_node_class_that_poolwright_does_not_have_is_not_called_kept() {
    let converted = referring("karpenter.azure.com", "AKSNodeClass");
    let kind = note(&converted, "spec.template.spec.nodeClassRef.kind");
    assert_eq!(kind.outcome, Outcome::NotPossible);
    assert!(
        kind.sentence.contains("no AKSNodeClass") && kind.sentence.contains("KwokNodeClass"),
        "{}",
        kind.sentence
    );
    let known = referring("karpenter.k8s.aws", "EC2NodeClass");
    assert_eq!(note(&known, "spec.template.spec.nodeClassRef.kind").outcome, Outcome::Kept);
}

#[test]
fn a_node_class_of_a_managed_service_is_reported_field_by_field_and_says_what_to_write() {
    let converted = of(
        &json!({"apiVersion": "eks.amazonaws.com/v1", "kind": "NodeClass", "metadata": {"name": "default"},
        "spec": {"role": "node", "subnetSelectorTerms": [{"id": "subnet-1"}], "ephemeralStorage": {"size": "80Gi"}}}),
    );
    assert_eq!((converted.problems.as_slice(), converted.node_classes.len()), (&[][..], 0));
    let whole = &note(&converted, "").sentence;
    assert!(whole.contains("EKS Auto Mode") && whole.contains("(docs/ec2nodeclass.md)"), "{whole}");
    assert!(whole.contains("vpc-cni") && whole.contains("kube-proxy"), "nodes need both: {whole}");
    let role = &note(&converted, "spec.role").sentence;
    assert!(!role.contains("Copy it"), "a role of EKS Auto Mode does not do: {role}");
    assert!(role.contains("AmazonEKSWorkerNodePolicy") && role.contains("EC2_LINUX"), "{role}");
    assert!(note(&converted, "spec.subnetSelectorTerms").sentence.contains("Copy it"));
    assert!(note(&converted, "spec.ephemeralStorage").sentence.contains("blockDeviceMappings"));
    assert_eq!(converted.notes.len(), 4);
}
