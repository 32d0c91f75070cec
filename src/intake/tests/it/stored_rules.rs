//! Tests stored controllers that today's LimitRanges and quotas refuse, or that cannot be read: what they have counts.

use serde_json::{Value, json};

use crate::json_kit::{OF_SET, OF_WEB, apps, has, names, object, pod, read, stored};

/// Rules that refuse the pods of `web`: too small for one, and without a request for the other.
fn rules() -> [(Value, &'static str); 2] {
    let limits = json!([{"type": "Container", "min": {"cpu": "2"}}]);
    [
        (
            object("v1", "LimitRange", "lr", json!({"limits": limits})),
            "spec.template.spec.containers[0].resources: LimitRange `lr` refuses a container with less than 2 of cpu",
        ),
        (
            object("v1", "ResourceQuota", "q", json!({"hard": {"requests.memory": "5Gi"}})),
            "spec.template.spec.containers[0].resources.requests.memory: missing, and ResourceQuota `q` refuses pods without it, because it \
             limits requests.memory",
        ),
    ]
}

/// Returns a Deployment with its ReplicaSet and so many of its two pods, after a rule.
fn web(rule: Value, pods: usize) -> Vec<Value> {
    let asking = |mut object: Value| {
        let containers = &mut object["spec"]["template"]["spec"]["containers"];
        containers[0]["resources"] = json!({"requests": {"cpu": "1"}});
        object
    };
    let mut all = vec![
        rule,
        asking(stored(apps("Deployment", "web", 2), None)),
        asking(stored(apps("ReplicaSet", "web-5d4", 2), OF_WEB)),
    ];
    all.extend(["web-5d4-a", "web-5d4-b"].into_iter().take(pods).map(|name| pod(name, OF_SET)));
    all
}

#[test]
fn a_stored_controller_that_a_rule_refuses_is_read_if_all_its_pods_are_there() {
    for (rule, _) in rules() {
        let manifest = read(&web(rule, 2));
        assert_eq!(names(&manifest), ["web-5d4-a", "web-5d4-b"]);
        assert_eq!((manifest.unread, manifest.refused), (Vec::new(), Vec::new()), "{:?}", manifest.notes);
        assert!(manifest.left_out.is_empty());
    }
}

#[test]
fn the_pods_that_a_stored_controller_lacks_are_refused_by_rules() {
    for (rule, why) in rules() {
        let manifest = read(&web(rule, 1));
        assert_eq!(names(&manifest), ["web-5d4-a"]);
        let note = format!(
            "ReplicaSet default/web-5d4: 1 of its 2 pods cannot be created and is not planned; {why}"
        );
        assert!(has(&manifest, &note), "{note} is not in {:#?}", manifest.notes);
        let refused: Vec<_> = manifest.refused.iter().map(|one| (one.object.as_str(), one.pods)).collect();
        assert_eq!((refused, manifest.unread.len()), (vec![("ReplicaSet default/web-5d4", 1)], 0));
    }
}

#[test]
fn a_stored_daemon_set_that_a_rule_refuses_counts_on_new_nodes_with_a_note() {
    let [(rule, _), _] = rules();
    let mut agent = stored(apps("DaemonSet", "agent", 1), None);
    agent["spec"].as_object_mut().expect("a spec").remove("replicas");
    agent["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    let manifest = read(&[rule, agent]);
    assert_eq!((manifest.daemonsets.len(), manifest.unread.len()), (1, 0), "{:?}", manifest.notes);
    let begin = "DaemonSet default/agent: new pods of it cannot be created now, but count on new nodes; ";
    assert!(manifest.notes.iter().any(|note| note.starts_with(begin)), "{:?}", manifest.notes);
}

#[test]
fn stored_controllers_without_a_template_that_can_be_read_are_not_read() {
    let job = stored(object("batch/v1", "Job", "j", json!({"parallelism": 1})), None);
    let web = stored(object("apps/v1", "Deployment", "d", json!({"replicas": "one"})), None);
    let training =
        stored(object("kubeflow.org/v1", "PyTorchJob", "pt", json!({"pytorchReplicaSpecs": 1})), None);
    let manifest = read(&[job, web, training]);
    let all = ["Job default/j", "Deployment default/d", "PyTorchJob default/pt"];
    assert_eq!(manifest.unread, all, "{:?}", manifest.notes);
}
