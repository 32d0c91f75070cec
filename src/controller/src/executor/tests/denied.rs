//! Tests of writes that an admission policy or RBAC denies.

use jiff::SignedDuration;
use poolwright_terms::{Taint, TaintEffect};

use super::*;
use crate::edge::events::{Events, Queue};
use crate::executor::lanes::Turn;

const NODE: &str = "/api/v1/nodes/n";
const POD: &str = "/api/v1/namespaces/default/pods/train";

/// Returns an executor of the scene, with the queue of its events.
pub(super) fn telling(scene: &Scene) -> (Arc<Executor>, Queue) {
    let context = scene.executor.context.clone();
    let (events, queue) = Events::new(context.clock.clone(), context.metrics.clone());
    (Executor::new(Context { events, ..context }, 4, Stoppable::default()), queue)
}

/// Returns the name of the object of the next event, with the reason.
pub(super) fn told(queue: &mut Queue) -> Option<(String, &'static str)> {
    let event = queue.recv().now_or_never().flatten()?;
    Some((event.about.name.unwrap_or_default(), event.reason.name))
}

fn denial_of(name: &str) -> (String, &'static str) {
    (name.to_owned(), "WriteDenied")
}

fn pod() -> (ObjectKey, Uid) {
    (ObjectKey::new("default", "train"), Uid("p".into()))
}

/// Stores a pod with this UID, which runs on `node` if there is one.
fn put_pod(scene: &Scene, uid: &str, node: Option<&str>) {
    let metadata = json!({"name": "train", "namespace": "default", "uid": uid});
    let pod = json!({"metadata": metadata, "spec": {"nodeName": node, "containers": []}});
    scene.api.put(POD, pod.clone());
    let pod = poolwright_intake::pod(&serde_json::from_value(pod).unwrap()).unwrap();
    scene.world.change(|state| state.index.apply_pod(pod));
}

#[tokio::test]
async fn a_claim_goes_although_a_policy_denies_the_deletion_of_its_node() {
    let scene = Scene::with_node().await;
    assert!(matches!(scene.executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
    scene.api.fault(Method::DELETE, "/nodes/", Fault::Fails(422));
    let outcome = scene.executor.terminate(&scene.claim(), false).await;
    assert!(matches!(outcome, Progress::Done), "{outcome:?}");
    assert_eq!(scene.api.get(CLAIM), None);
    assert!(scene.api.get(NODE).is_some());
}

#[tokio::test]
async fn a_claim_waits_and_says_why_while_a_right_to_end_it_or_its_node_is_lacking() {
    let scene = Scene::with_node().await;
    let (executor, mut queue) = telling(&scene);
    let is_denied =
        |outcome: &Progress| matches!(outcome, Progress::Retry(wait, _) if *wait >= Duration::from_secs(30));
    scene.api.fault(Method::DELETE, "/nodeclaims/", Fault::Fails(403));
    let outcome = executor.delete_empty_claim(&scene.claim()).await;
    assert!(is_denied(&outcome), "{outcome:?}");
    assert_eq!(told(&mut queue), Some(denial_of("gpu-1")));
    assert!(matches!(executor.delete_empty_claim(&scene.claim()).await, Progress::Done));

    scene.api.fault(Method::DELETE, "/nodes/", Fault::Fails(403));
    let outcome = executor.terminate(&scene.claim(), false).await;
    assert!(is_denied(&outcome), "{outcome:?}");
    assert_eq!(told(&mut queue), Some(denial_of("n")));
    assert!(scene.api.get(NODE).is_some() && scene.api.get(CLAIM).is_some());

    scene.api.fault(Method::PATCH, "/nodeclaims/", Fault::Fails(403));
    let outcome = executor.terminate(&scene.claim(), false).await;
    assert!(is_denied(&outcome), "{outcome:?}");
    assert_eq!(told(&mut queue), Some(denial_of("gpu-1")));

    assert!(matches!(executor.terminate(&scene.claim(), false).await, Progress::Done));
    assert_eq!((scene.api.get(NODE), scene.api.get(CLAIM)), (None, None));
}

#[tokio::test]
async fn a_denied_eviction_or_deletion_of_a_pod_is_told_and_holds_nothing_up() {
    for code in [403, 422] {
        let scene = Scene::with_node().await;
        put_pod(&scene, "p", Some("n"));
        let (executor, mut queue) = telling(&scene);
        let is_passed = |outcome: &Progress| matches!(outcome, Progress::Passed(wait, _) if *wait >= Duration::from_secs(30));
        let (key, uid) = pod();
        scene.api.fault(Method::POST, "/eviction", Fault::Fails(code));
        let outcome = executor.evict(&key, &uid, "its node will be terminated").await;
        assert!(is_passed(&outcome), "{code}: {outcome:?}");
        assert_eq!(told(&mut queue), Some(denial_of("train")), "{code}");
        scene.api.fault(Method::DELETE, "/pods/", Fault::Fails(code));
        let outcome = executor.end_pod(&key, &uid, SignedDuration::from_secs(90)).await;
        assert!(is_passed(&outcome), "{code}: {outcome:?}");
        assert_eq!(told(&mut queue), Some(denial_of("train")), "{code}");
    }
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
        let (executor, mut queue) = telling(&scene);
        let context = &scene.executor.context;
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
        assert_eq!(told(&mut queue), Some(denial_of("n")));
        let end = Action::Terminate { claim: ClaimName("gpu-1".into()), forced: false };
        submit(vec![close, end]).await;
        assert_eq!(scene.api.get(CLAIM), None, "{code}");
        assert!(is_denied_once(), "{code}: it is not tried in each round");
    }
}

#[tokio::test]
async fn a_pod_that_may_not_be_nominated_is_told_and_holds_nothing_up() {
    for code in [403, 422] {
        let scene = Scene::with_node().await;
        put_pod(&scene, "p", None);
        let (executor, mut queue) = telling(&scene);
        scene.api.fault(Method::PATCH, "/status", Fault::Fails(code));
        let (key, uid) = pod();
        let outcome = executor.nominate(&key, &uid, "n").await;
        assert!(
            matches!(outcome, Progress::Passed(wait, _) if wait >= Duration::from_secs(30)),
            "{code}: {outcome:?}"
        );
        assert_eq!(told(&mut queue), Some(denial_of("train")), "{code}");
    }
}

#[tokio::test]
async fn a_pod_that_needs_no_nomination_any_more_is_not_told_that_one_was_denied() {
    for (uid, node) in [("p", Some("n")), ("later", None)] {
        let scene = Scene::with_node().await;
        put_pod(&scene, uid, node);
        let (executor, mut queue) = telling(&scene);
        let (key, nominated) = pod();
        scene.api.fault(Method::PATCH, "/status", Fault::Fails(422));
        let outcome = executor.nominate(&key, &nominated, "n").await;
        assert!(matches!(outcome, Progress::NothingToDo), "{uid}: {outcome:?}");
        scene.api.remove(POD);
        scene.api.fault(Method::PATCH, "/status", Fault::Fails(422));
        let outcome = executor.nominate(&key, &nominated, "n").await;
        assert!(matches!(outcome, Progress::NothingToDo), "it is gone: {outcome:?}");
        assert_eq!(told(&mut queue), None);
    }
}
