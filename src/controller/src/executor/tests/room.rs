//! Tests of evictions that make room for a waiting pod.

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Nominates a waiting pod and lets another one give way to it. Returns the writes.
async fn writes_with(fault: Option<Fault>) -> Vec<String> {
    let scene = Scene::new();
    for name in ["waits", "leaves"] {
        let metadata = json!({"name": name, "namespace": "default", "uid": name});
        let pod = json!({"metadata": metadata, "spec": {"containers": []}});
        scene.api.put(&format!("{PODS}/{name}"), pod);
    }
    if let Some(fault) = fault {
        scene.api.fault(Method::PATCH, "/pods/waits/status", fault);
    }
    let of = |name: &str| (ObjectKey::new("default", name), Uid(name.to_owned()));
    let ((pod, uid), why) = (of("leaves"), "its room is for another pod".to_owned());
    let evict = Action::Evict { pod, uid, why };
    let (pod, uid) = of("waits");
    let nominate = Action::Nominate { pod, uid, node: "n".to_owned() };
    let actions = vec![evict, nominate];
    scene.executor.submit_after_nominations(actions, &scene.world.snapshot()).await;
    while scene.executor.lanes.busy() > 0 {
        tokio::task::yield_now().await;
    }
    scene.api.writes()
}

#[tokio::test]
async fn no_pod_is_evicted_before_the_api_server_has_confirmed_the_nomination_of_the_pod_that_gets_its_room()
{
    let (nomination, eviction) =
        (format!("PATCH {PODS}/waits/status"), format!("POST {PODS}/leaves/eviction"));
    assert_eq!(writes_with(None).await, [nomination.clone(), eviction]);
    // It failed, or perhaps so; the pod was deleted; a policy denies it.
    for fault in [Fault::Fails(500), Fault::AnswerLost, Fault::Fails(409), Fault::Fails(422)] {
        assert_eq!(writes_with(Some(fault)).await, std::slice::from_ref(&nomination), "{fault:?}");
    }
}
