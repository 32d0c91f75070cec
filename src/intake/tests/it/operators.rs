//! Tests of kinds of other projects that are not read: those whose operators always make pods lack these, and those that never have
//! pods are not said to.

use serde_json::{Value, json};

use crate::json_kit::{object, read, stored};

fn prometheus(replicas: u32) -> Value {
    let spec = json!({"replicas": replicas, "resources": {"requests": {"memory": "4Gi"}}});
    object("monitoring.coreos.com/v1", "Prometheus", "k8s", spec)
}

#[test]
fn kinds_whose_operators_always_make_pods_lack_them() {
    for (version, kind) in [
        ("monitoring.coreos.com/v1", "Prometheus"),
        ("monitoring.coreos.com/v1", "Alertmanager"),
        ("postgresql.cnpg.io/v1", "Cluster"),
        ("kafka.strimzi.io/v1beta2", "KafkaNodePool"),
        ("kibana.k8s.elastic.co/v1", "Kibana"),
        ("rabbitmq.com/v1beta1", "RabbitmqCluster"),
        ("acid.zalan.do/v1", "postgresql"),
    ] {
        let manifest = read(&[object(version, kind, "a", json!({}))]);
        assert_eq!(manifest.unread, [format!("{kind} default/a")]);
        let told = format!("{kind} default/a: {version} {kind} is not read, so the pods that it makes");
        assert!(manifest.notes[0].starts_with(&told), "{:?}", manifest.notes);
    }
}

#[test]
fn what_an_operator_has_made_already_or_need_not_make_is_not_missing() {
    assert_eq!(read(&[prometheus(0)]).unread, [""; 0]);
    let mut set = object(
        "apps/v1",
        "StatefulSet",
        "prometheus-k8s",
        json!({"selector": {}, "serviceName": "a",
        "template": {"spec": {"containers": [{"image": "x", "name": "a"}]}}}),
    );
    set = stored(set, Some(["monitoring.coreos.com/v1", "Prometheus", "k8s"]));
    let manifest = read(&[stored(prometheus(1), None), set]);
    assert_eq!((manifest.unread.len(), manifest.pods.len()), (0, 1), "{:?}", manifest.notes);
}

#[test]
fn kinds_that_never_have_pods_are_passed_over_in_silence() {
    for (version, kind) in [
        ("resource.k8s.io/v1", "ResourceClaimTemplate"),
        ("resource.k8s.io/v1", "DeviceClass"),
        ("monitoring.coreos.com/v1", "ServiceMonitor"),
        ("monitoring.coreos.com/v1", "PrometheusRule"),
        ("cert-manager.io/v1", "Certificate"),
        ("kueue.x-k8s.io/v1beta1", "ClusterQueue"),
        ("kueue.x-k8s.io/v1beta1", "ResourceFlavor"),
        ("networking.k8s.io/v1", "Ingress"),
        ("gateway.networking.k8s.io/v1", "HTTPRoute"),
        ("kafka.strimzi.io/v1beta2", "KafkaTopic"),
    ] {
        let manifest = read(&[object(version, kind, "a", json!({"resources": {"nvidia.com/gpu": 8}}))]);
        assert_eq!((manifest.notes.len(), manifest.unread.len()), (0, 0), "{kind}: {:?}", manifest.notes);
    }
}

#[test]
fn objects_of_a_whole_cluster_are_named_without_a_namespace() {
    for (version, kind) in [
        ("karpenter.k8s.aws/v1", "EC2NodeClass"),
        ("karpenter.sh/v1", "NodePool"),
        ("karpenter.sh/v1", "NodeOverlay"),
        ("eks.amazonaws.com/v1", "NodeClass"),
        ("nvidia.com/v1alpha1", "NVIDIADriver"),
    ] {
        let manifest = read(&[object(version, kind, "a", json!({}))]);
        assert!(manifest.notes[0].starts_with(&format!("{kind} a: ")), "{:?}", manifest.notes);
    }
}
