//! Tests of objects that have the name of the expected one, and are others.

use poolwright_terms::{Taint, TaintEffect};

use super::*;

const NODE: &str = "/api/v1/nodes/n";

/// Gives the name of the node to another machine, without a watch event.
fn another_machine(scene: &Scene) {
    let mut node = scene.api.get(NODE).unwrap();
    node["spec"]["providerID"] = json!("another");
    scene.api.put(NODE, node);
}

#[tokio::test]
async fn a_machine_that_has_the_name_of_the_node_is_not_registered() {
    let scene = Scene::with_node().await;
    another_machine(&scene);
    let labels = [("team".to_owned(), "ml".to_owned())].into();
    let outcome = scene.executor.register(&scene.claim(), "n", &labels, &[].into(), &[]).await;
    assert!(matches!(outcome, Progress::NothingToDo), "{outcome:?}");
    assert!(scene.api.get(NODE).unwrap()["metadata"]["labels"]["team"].is_null());
}

#[tokio::test]
async fn a_change_of_a_node_that_was_replaced_is_not_denied_but_made_to_the_later_one() {
    let scene = Scene::with_node().await;
    let mut node = scene.api.get(NODE).unwrap();
    node["metadata"]["uid"] = json!("later");
    scene.api.put(NODE, node);
    let key = "poolwright.dev/disrupted".to_owned();
    let taint = Taint { key, value: String::new(), effect: TaintEffect::NoSchedule };
    let outcome = scene.executor.set_taints("n", &[taint]).await;
    assert!(matches!(outcome, Progress::Done), "{outcome:?}");
}

#[tokio::test]
async fn the_node_of_another_machine_outlives_the_instance_whose_name_it_has() {
    let scene = Scene::with_node().await;
    another_machine(&scene);
    assert!(matches!(scene.executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
    assert!(matches!(scene.executor.terminate(&scene.claim(), false).await, Progress::Done));
    assert_eq!((scene.cloud.instances().len(), scene.api.get(CLAIM)), (0, None));
    assert_eq!(scene.api.get(NODE).unwrap()["spec"]["providerID"], "another");
}

#[tokio::test]
async fn a_later_claim_of_the_same_name_is_not_deleted() {
    let scene = Scene::with_node().await;
    let outcome = scene.executor.delete_claim(&scene.claim().name, &Uid("an-earlier-one".into())).await;
    assert!(matches!(outcome, Progress::NothingToDo), "{outcome:?}");
    assert!(scene.api.get(CLAIM).unwrap()["metadata"]["deletionTimestamp"].is_null());
    assert!(scene.world.claim(&ClaimName("gpu-1".into())).is_some(), "it is still known");
}

#[tokio::test]
async fn a_termination_leaves_the_finalizers_of_others() {
    let scene = Scene::with_node().await;
    let mut claim = scene.api.get(CLAIM).unwrap();
    claim["metadata"]["finalizers"].as_array_mut().unwrap().push(json!("team/audit"));
    scene.api.put(CLAIM, claim);
    assert!(matches!(scene.executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
    assert!(matches!(scene.executor.terminate(&scene.claim(), false).await, Progress::Done));
    assert_eq!(scene.api.get(CLAIM).unwrap()["metadata"]["finalizers"], json!(["team/audit"]));
}

#[tokio::test]
async fn a_later_pod_of_the_same_name_is_not_evicted() {
    let scene = Scene::with_node().await;
    let pod = (ObjectKey::new("default", "train"), Uid("p".into()));
    let outcome = scene.executor.evict(&pod.0, &pod.1, "its node will be terminated").await;
    assert!(matches!(outcome, Progress::Again(_)), "{outcome:?}");
    let asked = scene.api.get("/api/v1/namespaces/default/pods/train/eviction/train").unwrap();
    assert_eq!(asked["deleteOptions"]["preconditions"], json!({"uid": "p"}), "where an API server reads it");
}
