//! Tests of writes of nodes that an admission policy denies.

use poolwright_terms::{Taint, TaintEffect};

use super::*;

#[tokio::test]
async fn a_claim_goes_although_a_policy_denies_the_deletion_of_its_node() {
    let scene = Scene::with_node().await;
    assert!(matches!(scene.executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
    scene.api.fault(Method::DELETE, "/nodes/", Fault::Fails(422));
    let outcome = scene.executor.terminate(&scene.claim(), false).await;
    assert!(matches!(outcome, Progress::Done), "{outcome:?}");
    assert_eq!(scene.api.get(CLAIM), None);
    assert!(scene.api.get("/api/v1/nodes/n").is_some());
}

#[tokio::test]
async fn a_node_that_a_policy_keeps_open_holds_up_its_lane_only_until_its_claim_is_deleted() {
    let scene = Scene::with_node().await;
    let close = async || {
        scene.api.fault(Method::PATCH, "/nodes/", Fault::Fails(422));
        let key = "poolwright.dev/disrupted".to_owned();
        let taint = Taint { key, value: String::new(), effect: TaintEffect::NoSchedule };
        scene.executor.set_taints("n", &[taint]).await
    };
    let outcome = close().await;
    assert!(matches!(outcome, Progress::Retry(..)), "{outcome:?}");
    assert!(matches!(scene.executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
    let outcome = close().await;
    assert!(matches!(outcome, Progress::NothingToDo), "{outcome:?}");
}
