//! Tests of a cloud whose listings are doubted, and of instances that it does not list.

use super::*;
use crate::observed::providers::Providers;

const NODE: &str = "/api/v1/nodes/n";
const WHY: &str = "the account is wrong";

fn waits(outcome: &Progress) -> bool {
    matches!(outcome, Progress::Again(wait) if *wait >= Duration::from_mins(1))
}

impl Scene {
    fn doubt(&self, why: Option<&str>) {
        self.executor.context.providers.all()[0].set_doubt(why.map(str::to_owned));
    }

    /// Creates a scene with a node whose claim is deleted.
    async fn deleted() -> Self {
        let scene = Self::with_node().await;
        assert!(matches!(scene.executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
        scene
    }

    /// Makes the node ready or not ready.
    fn node_is(&self, ready: bool) {
        let mut node = self.api.get(NODE).unwrap();
        let status = if ready { "True" } else { "Unknown" };
        node["status"] = json!({"conditions": [{"type": "Ready", "status": status}]});
        let node = poolwright_intake::node(&serde_json::from_value(node).unwrap()).unwrap();
        self.world.change(|state| state.index.apply_node(node));
    }

    async fn terminate(&self) -> Progress {
        self.executor.terminate(&self.claim(), false).await
    }
}

#[tokio::test]
async fn a_doubted_cloud_launches_nothing() {
    let scene = Scene::created().await;
    scene.doubt(Some(WHY));
    let outcome = scene.executor.launch(&scene.claim()).await;
    assert!(waits(&outcome), "{outcome:?}");
    assert_eq!(scene.cloud.ever_made(), 0);
    scene.doubt(None);
    assert!(matches!(scene.executor.launch(&scene.claim()).await, Progress::Done));
}

#[tokio::test]
async fn a_doubted_cloud_that_does_not_know_an_instance_is_not_believed_to_have_terminated_it() {
    let scene = Scene::deleted().await;
    scene.cloud.lose(&scene.claim().uid.0);
    scene.doubt(Some(WHY));
    let outcome = scene.terminate().await;
    assert!(waits(&outcome), "{outcome:?}");
    assert!(scene.api.get(CLAIM).is_some() && scene.api.get("/api/v1/nodes/n").is_some());
    scene.doubt(None);
    assert!(matches!(scene.terminate().await, Progress::Done));
    assert_eq!((scene.api.get(CLAIM), scene.api.get("/api/v1/nodes/n")), (None, None));
}

#[tokio::test]
async fn nothing_is_launched_or_taken_for_gone_before_the_first_listing() {
    let scene = Scene::created().await;
    let unjudged = || {
        let providers = Providers::new(vec![Arc::new(MemoryProvider::new(scene.cloud.clone()))]).unwrap();
        let context = Context { providers, ..scene.executor.context.clone() };
        Executor::new(context, 4, Stoppable::default())
    };
    let executor = unjudged();
    let outcome = executor.launch(&scene.claim()).await;
    assert!(matches!(outcome, Progress::Again(wait) if wait <= Duration::from_secs(1)), "{outcome:?}");
    assert_eq!(scene.cloud.ever_made(), 0);
    executor.context.providers.all()[0].set_doubt(None);
    assert!(matches!(executor.launch(&scene.claim()).await, Progress::Done));

    scene.cloud.lose(&scene.claim().uid.0);
    let executor = unjudged();
    let outcome = executor.terminate(&scene.claim(), true).await;
    assert!(matches!(outcome, Progress::Again(_)), "{outcome:?}");
    assert!(scene.api.get(CLAIM).is_some());
}

#[tokio::test]
async fn an_instance_that_the_cloud_does_not_know_counts_as_gone_only_when_its_node_is_not_ready() {
    let scene = Scene::deleted().await;
    scene.node_is(true);
    let outcome = scene.terminate().await;
    assert!(matches!(outcome, Progress::Again(wait) if wait == Duration::from_secs(5)), "{outcome:?}");
    assert!(scene.api.get(CLAIM).is_some() && scene.api.get(NODE).is_some());
    scene.node_is(false);
    assert!(matches!(scene.terminate().await, Progress::Done));
    assert_eq!((scene.api.get(CLAIM), scene.api.get(NODE)), (None, None));
}

#[tokio::test]
async fn a_node_that_stays_ready_for_ever_holds_its_claim_for_ten_minutes() {
    for (minutes, is_held) in [(9, true), (10, false)] {
        let scene = Scene::deleted().await;
        scene.node_is(true);
        let deleting_since =
            Some(scene.executor.context.clock.now() - jiff::SignedDuration::from_mins(minutes));
        let claim = Claim { deleting_since, ..(*scene.claim()).clone() };
        let outcome = scene.executor.terminate(&claim, false).await;
        assert_eq!(matches!(outcome, Progress::Again(_)), is_held, "{minutes}: {outcome:?}");
        assert_eq!(scene.api.get(CLAIM).is_some(), is_held, "{minutes}");
    }
}

#[tokio::test]
async fn a_node_that_was_ready_without_a_known_instance_before_its_deletion_holds_its_claim_while_it_is_ready()
 {
    let scene = Scene::deleted().await;
    scene.node_is(true);
    let ago = |minutes| scene.executor.context.clock.now() - jiff::SignedDuration::from_mins(minutes);
    let mut claim = Claim { deleting_since: Some(ago(10)), ..(*scene.claim()).clone() };
    let unlisted = poolwright_core::Condition {
        status: poolwright_terms::ConditionStatus::True,
        since: ago(20),
        reason: Some(Reason::InstanceUnlisted),
        message: String::new(),
    };
    claim.conditions.insert(poolwright_terms::ConditionType::InstanceUnlisted, unlisted);
    let outcome = scene.executor.terminate(&claim, false).await;
    assert!(matches!(outcome, Progress::Again(_)), "{outcome:?}");
    assert!(scene.api.get(CLAIM).is_some());
    scene.node_is(false);
    assert!(matches!(scene.executor.terminate(&claim, false).await, Progress::Done));
    assert_eq!(scene.api.get(CLAIM), None);
}

#[tokio::test]
async fn an_instance_that_a_doubted_cloud_shows_is_terminated_and_its_claim_stays_until_the_doubt_ends() {
    let scene = Scene::deleted().await;
    scene.doubt(Some(WHY));
    let outcome = scene.terminate().await;
    assert!(waits(&outcome), "{outcome:?}");
    assert!(scene.cloud.instances().is_empty());
    assert!(scene.api.get(CLAIM).is_some());
    scene.doubt(None);
    assert!(matches!(scene.terminate().await, Progress::Done));
    assert_eq!(scene.api.get(CLAIM), None);
}

#[tokio::test]
async fn a_doubted_cloud_loses_no_instance_without_a_claim() {
    let scene = Scene::with_node().await;
    let instance = scene.cloud.instances().remove(0);
    scene.api.remove(CLAIM);
    let reap =
        async || scene.executor.reap(&instance.provider_id, &Uid(instance.key.clone()), &class()).await;
    scene.doubt(Some(WHY));
    let outcome = reap().await;
    assert!(waits(&outcome), "{outcome:?}");
    assert_eq!(scene.cloud.instances().len(), 1);
    scene.doubt(None);
    assert!(matches!(reap().await, Progress::Done));
    assert!(scene.cloud.instances().is_empty());
}

#[tokio::test]
async fn an_instance_that_its_cloud_shows_only_after_its_claim_has_gone_is_terminated() {
    let scene = Scene::deleted().await;
    let key = scene.claim().uid.0.clone();
    scene.cloud.set_hidden(&[key.as_str()]);
    assert!(matches!(scene.terminate().await, Progress::Done));
    assert_eq!((scene.api.get(CLAIM), scene.cloud.instances().len()), (None, 1));
    scene.cloud.set_hidden(&[]);
    let instance = scene.cloud.instances().remove(0);
    let outcome = scene.executor.reap(&instance.provider_id, &Uid(key), &class()).await;
    assert!(matches!(outcome, Progress::Done), "{outcome:?}");
    assert!(scene.cloud.instances().is_empty());
}

#[tokio::test]
async fn an_instance_without_tags_is_terminated_by_the_id_that_its_claim_records() {
    let scene = Scene::deleted().await;
    scene.cloud.retag(&scene.claim().uid.0, "");
    assert!(matches!(scene.terminate().await, Progress::Done));
    assert!(scene.cloud.instances().is_empty());
    assert_eq!(scene.api.get(CLAIM), None);
}

#[tokio::test]
async fn a_claim_stays_and_says_why_while_its_instance_runs_with_the_tags_of_another() {
    let scene = Scene::deleted().await;
    let key = scene.claim().uid.0.clone();
    scene.cloud.retag(&key, "another");
    for _again in 0..2 {
        let outcome = scene.terminate().await;
        assert!(matches!(outcome, Progress::Retry(wait, _) if wait >= Duration::from_mins(1)), "{outcome:?}");
    }
    assert_eq!(scene.cloud.instances().len(), 1);
    let condition = scene.condition("InstanceUnlisted").expect("the claim says why");
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("InstanceUnlisted")));
    let message = condition["message"].to_string();
    assert!(
        message.contains("its key is another") && message.contains("Restore the tags of the instance"),
        "{message}"
    );
    scene.cloud.retag("another", &key);
    assert!(matches!(scene.terminate().await, Progress::Done));
    assert_eq!(scene.api.get(CLAIM), None);
}

#[tokio::test]
async fn an_instance_that_got_other_tags_is_not_reaped() {
    let scene = Scene::with_node().await;
    let instance = scene.cloud.instances().remove(0);
    scene.api.remove(CLAIM);
    scene.cloud.retag(&instance.key, "another");
    let outcome = scene.executor.reap(&instance.provider_id, &Uid(instance.key.clone()), &class()).await;
    assert!(matches!(outcome, Progress::Retry(..)), "{outcome:?}");
    assert_eq!(scene.cloud.instances().len(), 1);
    assert!(scene.api.get("/api/v1/nodes/n").is_some());
}
