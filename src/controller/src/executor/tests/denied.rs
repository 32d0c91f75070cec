//! Tests of writes of nodes that an admission policy denies.

use poolwright_terms::{Taint, TaintEffect};

use super::*;
use crate::edge::events::Events;
use crate::executor::lanes::Turn;

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
    assert!(matches!(outcome, Progress::Passed(..)), "{outcome:?}");
}

#[tokio::test]
async fn a_denied_change_of_a_node_is_told_and_waits_while_the_claim_of_a_leaving_node_ends() {
    for code in [403, 422] {
        let scene = Scene::with_node().await;
        let context = scene.executor.context.clone();
        let (events, mut queue) = Events::new(context.clock.clone(), context.metrics.clone());
        let executor = Executor::new(Context { events, ..context.clone() }, 4, Stoppable::default());
        let is_denied_once = || {
            let denied = context.metrics.actions.with_label_values(&["set-taints", "retry"]).get();
            let turn = executor.lanes.turn("nodeclaim/gpu-1", "set-taints", context.clock.monotonic());
            denied == 1 && turn == Turn::Passed
        };
        assert!(matches!(executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
        scene.api.fault(Method::PATCH, "/nodes/", Fault::Fails(code));
        let key = "poolwright.dev/disrupted".to_owned();
        let taint = Taint { key, value: String::new(), effect: TaintEffect::NoSchedule };
        let close = Action::SetTaints { node: "n".into(), taints: vec![taint] };
        let submit = async |actions: Vec<Action>| {
            executor.submit(actions, &scene.world.snapshot());
            while executor.lanes.busy() > 0 {
                tokio::task::yield_now().await;
            }
        };
        submit(vec![close.clone()]).await;
        assert!(is_denied_once(), "{code}");
        let event = queue.recv().now_or_never().flatten().expect("the node is told");
        assert_eq!((event.about.name.as_deref(), event.reason.name), (Some("n"), "WriteDenied"));
        let end = Action::Terminate { claim: ClaimName("gpu-1".into()), forced: false };
        submit(vec![close, end]).await;
        assert_eq!(scene.api.get(CLAIM), None, "{code}");
        assert!(is_denied_once(), "{code}: it is not tried in each round");
    }
}

#[tokio::test]
async fn a_pod_that_may_not_be_nominated_holds_nothing_up() {
    let scene = Scene::with_node().await;
    scene.api.fault(Method::PATCH, "/status", Fault::Fails(403));
    let pod = (ObjectKey::new("default", "train"), Uid("p".into()));
    let outcome = scene.executor.nominate(&pod.0, &pod.1, "n").await;
    assert!(matches!(outcome, Progress::Passed(wait, _) if wait >= Duration::from_secs(30)), "{outcome:?}");
}
