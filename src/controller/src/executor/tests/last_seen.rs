//! Tests of writes that start from the object as last seen, and read it only after a conflict.

use poolwright_core::ConditionUpdate;
use poolwright_terms::{ConditionStatus, ConditionType, Reason, Taint, TaintEffect};
use tokio::time::timeout;

use super::*;

const NODE: &str = "/api/v1/nodes/n";

fn update() -> ConditionUpdate {
    ConditionUpdate {
        kind: ConditionType::Initialized,
        status: ConditionStatus::True,
        reason: Reason::Ready,
        message: "all is there".into(),
    }
}

fn disrupted() -> Taint {
    Taint { key: "poolwright.dev/disrupted".into(), value: String::new(), effect: TaintEffect::NoSchedule }
}

impl Scene {
    async fn initialized(&self) -> Progress {
        self.executor.set_conditions(&Subject::Claim(ClaimName("gpu-1".into())), &[update()]).await
    }

    /// Changes an object without a watch event.
    fn somebody_writes(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.api.get(path).unwrap();
        change(&mut object);
        self.api.put(path, object);
    }

    fn taints(&self) -> Value {
        self.api.get(NODE).unwrap()["spec"]["taints"].clone()
    }
}

#[tokio::test]
async fn a_write_uses_the_last_seen_version_without_a_read() {
    let scene = Scene::with_node().await;
    scene.api.fault(Method::GET, "nodeclaims", Fault::Fails(500));
    scene.api.fault(Method::GET, "nodes", Fault::Fails(500));
    assert!(matches!(scene.initialized().await, Progress::Done));
    assert_eq!(scene.condition("Initialized").unwrap()["status"], "True");
    assert!(matches!(scene.executor.set_taints("n", &[disrupted()]).await, Progress::Done));
    assert_eq!(scene.taints()[0]["key"], disrupted().key);
}

#[tokio::test]
async fn a_write_keeps_concurrent_changes() {
    let scene = Scene::with_node().await;
    scene.somebody_writes(CLAIM, |claim| claim["status"]["nodeName"] = json!("renamed"));
    scene.somebody_writes(NODE, |node| {
        node["spec"]["taints"] = json!([{ "key": "team", "effect": "NoSchedule" }]);
    });
    assert!(matches!(scene.initialized().await, Progress::Done));
    assert_eq!(scene.api.get(CLAIM).unwrap()["status"]["nodeName"], "renamed");
    assert!(matches!(scene.executor.set_taints("n", &[disrupted()]).await, Progress::Done));
    assert_eq!(
        (&scene.taints()[0]["key"], &scene.taints()[1]["key"]),
        (&json!("team"), &json!(disrupted().key))
    );
}

#[tokio::test]
async fn nothing_to_do_is_concluded_only_from_the_current_object() {
    let scene = Scene::with_node().await;
    scene.initialized().await;
    scene.executor.set_taints("n", &[disrupted()]).await;
    scene.somebody_writes(CLAIM, |claim| claim["status"]["conditions"] = json!([]));
    scene.somebody_writes(NODE, |node| node["spec"]["taints"] = json!([]));
    assert!(matches!(scene.initialized().await, Progress::Done));
    assert_eq!(scene.condition("Initialized").unwrap()["status"], "True");
    assert!(matches!(scene.executor.set_taints("n", &[disrupted()]).await, Progress::Done));
    assert_eq!(scene.taints()[0]["key"], disrupted().key);
}

#[tokio::test]
async fn on_what_is_gone_there_is_nothing_to_write() {
    let scene = Scene::with_node().await;
    scene.api.remove(CLAIM);
    scene.api.remove(NODE);
    assert!(matches!(scene.initialized().await, Progress::NothingToDo));
    assert!(matches!(scene.executor.set_taints("n", &[disrupted()]).await, Progress::NothingToDo));
    assert!(scene.api.get(CLAIM).is_none() && scene.api.get(NODE).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_decision_made_during_another_action_is_made_again() {
    let scene = Scene::with_node().await;
    let nothing_to_do = || vec![Action::SetTaints { node: "n".into(), taints: vec![] }];
    for (decisions, again) in [(1, false), (2, true)] {
        let mut changes = scene.world.changes();
        for _ in 0..decisions {
            scene.executor.submit(nothing_to_do(), &scene.world.snapshot());
        }
        let poked = timeout(Duration::from_secs(10), changes.changed()).await;
        assert_eq!(poked.is_ok(), again, "after {decisions}");
    }
}
