//! Tests of reserved nodes, and of tolerations for their pods.

use super::*;

#[tokio::test]
async fn a_node_opens_and_is_reserved_in_one_write() {
    let scene = Scene::with_node().await;
    let writes = scene.api.writes().len();
    let claim = ClaimName("gpu-1".into());
    assert!(matches!(scene.executor.open("n", Some(&claim)).await, Progress::Done));
    assert_eq!(scene.api.writes().len(), writes + 1);
    let node = scene.api.get("/api/v1/nodes/n").unwrap();
    assert!(node["spec"]["unschedulable"].is_null());
    let reserved = json!([{"key": "poolwright.dev/reserved", "value": "gpu-1", "effect": "NoSchedule"}]);
    assert_eq!(node["spec"]["taints"], reserved);
    // A late repetition finds no gate, and does not restore a removed reservation.
    assert!(matches!(scene.executor.set_taints("n", &[]).await, Progress::Done));
    assert!(matches!(scene.executor.open("n", Some(&claim)).await, Progress::NothingToDo));
    assert_eq!(scene.api.get("/api/v1/nodes/n").unwrap()["spec"]["taints"], json!([]));
}

const POD: &str = "/api/v1/namespaces/default/pods/train";

/// Creates a pending pod with a toleration from its user.
fn waiting_pod(scene: &Scene) {
    let pod = json!({"metadata": {"name": "train", "namespace": "default", "uid": "p"},
        "spec": {"containers": [], "tolerations": [{"key": "team", "operator": "Exists", "tolerationSeconds": 7}]}});
    scene.api.put(POD, pod.clone());
    scene.world.change(|state| {
        state.index.apply_pod(poolwright_intake::pod(&serde_json::from_value(pod).unwrap()).unwrap())
    });
}

fn tolerations(scene: &Scene) -> Value {
    scene.api.get(POD).unwrap()["spec"]["tolerations"].clone()
}

async fn tolerate(scene: &Scene, uid: &str) -> Progress {
    let claim = ClaimName("gpu-1".into());
    scene.executor.tolerate(&ObjectKey::new("default", "train"), &Uid(uid.into()), &claim).await
}

#[tokio::test]
async fn a_pod_gets_one_toleration_more_and_no_other_change_whatever_is_lost() {
    for lost in ["nothing", "the write", "its answer", "a race"] {
        let scene = Scene::created().await;
        waiting_pod(&scene);
        match lost {
            "the write" => scene.api.fault(Method::PATCH, "/pods/", Fault::Fails(500)),
            "its answer" => scene.api.fault(Method::PATCH, "/pods/", Fault::AnswerLost),
            "a race" => scene.api.fault(Method::PATCH, "/pods/", Fault::Fails(409)),
            _ => {}
        }
        let before = scene.api.get(POD).unwrap();
        for _again in 0..3 {
            tolerate(&scene, "p").await;
        }
        let expected = json!([
            {"key": "team", "operator": "Exists", "tolerationSeconds": 7},
            {"key": "poolwright.dev/reserved", "operator": "Equal", "value": "gpu-1", "effect": "NoSchedule"},
        ]);
        assert_eq!(tolerations(&scene), expected, "{lost}");
        let mut after = scene.api.get(POD).unwrap();
        after["spec"]["tolerations"] = before["spec"]["tolerations"].clone();
        after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        assert_eq!(after, before, "{lost}");
        let known = scene.world.view(|all| all.pods[&PodKey::new("default", "train")].clone());
        assert_eq!(known.reserved_for, [ClaimName("gpu-1".into())], "and it is known at once");
    }
}

#[tokio::test]
async fn a_later_pod_of_the_same_name_and_one_that_is_gone_get_no_toleration() {
    let scene = Scene::created().await;
    waiting_pod(&scene);
    assert!(matches!(tolerate(&scene, "another").await, Progress::NothingToDo));
    assert_eq!(tolerations(&scene).as_array().unwrap().len(), 1);
    scene.api.remove(POD);
    assert!(matches!(tolerate(&scene, "p").await, Progress::NothingToDo));
}

#[tokio::test]
async fn refused_tolerations_pause_reservations_and_are_counted() {
    for (code, cause) in [(403, "forbidden"), (422, "invalid")] {
        let scene = Scene::created().await;
        waiting_pod(&scene);
        scene.api.fault(Method::PATCH, "/pods/", Fault::Fails(code));
        assert!(matches!(tolerate(&scene, "p").await, Progress::NothingToDo));
        scene.world.view(|all| assert!(all.unpatchable.contains("default"), "{code}"));
        let counted = scene.executor.context.metrics.tolerations_refused.with_label_values(&[cause]).get();
        assert_eq!(counted, 1, "{cause}");
        let pod = ObjectKey::new("default", "another");
        let again = scene.world.learn(&core::Outcome::TolerationRefused { pod: &pod, why: "forbidden" });
        assert_eq!(again, [], "it is told once");
        scene.clock.advance(Duration::from_mins(10));
        scene.world.expire_setbacks();
        scene.world.view(|all| assert!(all.unpatchable.is_empty(), "rights may have been given"));
    }
}
